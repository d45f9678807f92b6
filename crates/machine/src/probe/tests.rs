//! Probing within limits so small that only the code is tried, not the computer.

use super::*;
use crate::error::Problem;

fn small() -> Limits {
    Limits {
        disk_time: Duration::from_millis(20),
        disk_bytes_max: 4 << 20,
        dram_bytes: 1 << 20,
        memory_time: Duration::from_millis(2),
    }
}

/// A disk in `dir` above DRAM above two local stores, with constants that no measurement gives.
fn machine(dir: &Path) -> Machine {
    let text = format!(
        r#"
        name = "probed"
        [[memory]]
        name = "disk"
        capacity = "1 GiB"
        path = "{}"
        [[memory]]
        name = "dram"
        parent = "disk"
        capacity = "64 MiB"
        edge = {{ driver = "disk", read = "1 B/s", latency = "1 s" }}
        [[memory]]
        name = "local"
        parent = "dram"
        count = 2
        capacity = "32 KiB"
        edge = {{ driver = "local", read = "1 B/s", latency = "1 s", alignment = "16 B" }}
        processor = {{ kind = "cpu", rate = "1 FLOP/s" }}
        [[memory]]
        name = "gpu"
        parent = "dram"
        capacity = "1 GiB"
        edge = {{ driver = "cuda", read = "7 GB/s", latency = "3 us" }}
        processor = {{ kind = "gpu", rate = "9 TFLOP/s" }}
        "#,
        dir.display()
    );
    Machine::parse(&text, "probed.toml").unwrap()
}

#[test]
fn replaces_what_can_be_measured_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let before = machine(dir.path());
    let after = before.probe_within(&small()).unwrap();
    for name in ["dram", "local"] {
        let memory = after.memory(after.find(name).unwrap());
        let edge = memory.edge.unwrap();
        assert!(edge.read_bytes_per_second > 1000.0, "{name}: {edge:?}");
        assert!(edge.write_bytes_per_second > 1000.0, "{name}: {edge:?}");
        assert!(edge.latency_ns > 0.0 && edge.latency_ns < 1e9, "{name}: {edge:?}");
        assert!(memory.edge_source.as_deref().unwrap().starts_with(MEASURED));
    }
    let local = after.memory(after.find("local").unwrap());
    assert!(local.processor.unwrap().flops_per_second > 1e6);
    assert_eq!(local.processor_source.as_deref(), Some("rate measured; call overhead assumed"));
    assert_eq!(local.edge.unwrap().rules.alignment_bytes, 16);
    assert_eq!(after.memory(after.find("gpu").unwrap()), before.memory(before.find("gpu").unwrap()));
}

#[test]
fn leaves_no_file_behind() {
    let dir = tempfile::tempdir().unwrap();
    let found = disk::measure(dir.path(), &small()).unwrap().figures;
    assert!(found.fragment_ns.is_some_and(|ns| ns >= 0.0 && ns.is_finite()), "{found:?}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn shared_edges_are_measured() {
    let found = dram::shared(&[0], 1 << 20, Duration::from_millis(2)).unwrap();
    assert!(found.read_bytes_per_second > 1e6 && found.write_bytes_per_second > 1e6, "{found:?}");
    assert!(found.latency_ns > 0.0);
}

#[test]
fn a_directory_that_is_gone_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let machine = machine(dir.path());
    drop(dir);
    let error = machine.probe_within(&small()).unwrap_err();
    assert!(matches!(error.problem, Problem::Probe { .. }), "{error}");
    assert!(error.to_string().contains("memory \"disk\""), "{error}");
}

#[test]
fn workers_are_counted_below_an_edge() {
    let dir = tempfile::tempdir().unwrap();
    let machine = machine(dir.path());
    let below = |name| machine.workers_below(machine.find(name).unwrap());
    assert_eq!((below("disk"), below("dram"), below("local"), below("gpu")), (3, 3, 2, 1));
}
