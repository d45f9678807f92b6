//! Machines whose memories have children of several kinds: cores, local stores and emulated devices compute together, with the
//! same bytes as one core, whatever the division.

use crate::support;

use serde_json::Value;
use support::Place;

/// Two cores, and beside them a device of twice their rate. So slow by what it says that small arrays are worth dividing.
const KINDS: &str = r#"
name = "kinds"
description = "Cores and a device."
[[memory]]
name = "dram"
capacity = "1 GiB"
[[memory]]
name = "core"
parent = "dram"
count = 2
capacity = "1 MiB"
[memory.edge]
driver = "shared"
read = "100 GB/s"
latency = "100 ns"
[memory.processor]
kind = "cpu"
rate = "10 MFLOP/s"
call_overhead = "20 us"
[[memory]]
name = "device"
parent = "dram"
computes_like = "core"
capacity = "CAPACITY"
[memory.edge]
driver = "device"
read = "100 GB/s"
latency = "0 ns"
[memory.settings]
streams = 3
[memory.processor]
rate = "20 MFLOP/s"
"#;

/// The same on files.
const ON_DISK: &str = r#"
name = "disk+kinds"
description = "Cores and a device below a disk."
base = "kinds.toml"
[[memory]]
name = "disk"
capacity = "1 TiB"
path = "."
[[memory]]
name = "dram"
parent = "disk"
capacity = "64 MiB"
[memory.edge]
driver = "disk"
read = "1 GB/s"
latency = "100 us"
"#;

/// Two memories below one disk: one with cores, one with a device.
const TWO_MEMORIES: &str = r#"
name = "two"
description = "A disk, and below it two memories of different kinds."
base = "disk+kinds.toml"
[[memory]]
name = "far"
parent = "disk"
capacity = "32 MiB"
[memory.edge]
driver = "disk"
read = "1 GB/s"
latency = "100 us"
[[memory]]
name = "device"
parent = "far"
"#;

/// Local stores of a third kind beside both.
const THREE: &str = r#"
name = "three"
description = "Cores, a device and a local store."
base = "./kinds.toml"
[[memory]]
name = "local"
parent = "dram"
computes_like = "device"
capacity = "512 KiB"
[memory.edge]
driver = "local"
read = "20 GB/s"
latency = "100 ns"
"#;

/// Bytes that went down an edge.
fn bytes_down(ran: &Value, edge: &str) -> u64 {
    let edges = ran["edges"].as_array().expect("a list");
    edges.iter().find(|one| one["name"] == edge).and_then(|one| one["bytes_down"].as_u64()).unwrap_or(0)
}

fn write(place: &Place, capacity: &str) {
    place.write("kinds.toml", KINDS.replace("CAPACITY", capacity));
    place.write("three.toml", THREE);
    place.write("disk+kinds.toml", ON_DISK);
    place.write("two.toml", TWO_MEMORIES);
}

#[test]
fn all_applications_give_the_same_bytes() {
    let place = Place::new();
    for (request, capacity) in [
        ("saxpy --n 200003", "128 KiB"),
        ("sgemv --m 403 --n 1501", "256 KiB"),
        ("sgemm --m 201 --n 217 --k 531", "512 KiB"),
        ("conv2d --m 300 --n 210 --kernel gaussian:7", "128 KiB"),
        ("fft3d --n 32", "128 KiB"),
        ("gravity --n 500 --steps 3", "64 KiB"),
        ("hmmer --n 60 --m 40", "1 MiB"),
    ] {
        write(&place, capacity);
        let run = |how: &str, output: &str| {
            let ran = place.run(&format!("run {request} {how} -o {output} --json"));
            assert_eq!(ran.status, Some(0), "{request} {how}: {}", ran.stderr);
            ran.json()
        };
        run("--threads 1", "expected");
        for machine in ["kinds.toml", "three.toml", "disk+kinds.toml", "two.toml", "cpu+device"] {
            let ran = run(&format!("--machine {machine} --check"), "found");
            assert!(place.read("found") == place.read("expected"), "{request} on {machine}: other bytes");
            for edge in match machine {
                "two.toml" if request.starts_with("sgemm") => &["disk - dram", "disk - far", "far - device"][..],
                "two.toml" | "cpu+device" => &[],
                _ => &["dram - device"],
            } {
                assert!(bytes_down(&ran, edge) > 0, "{request}: {edge} has no part of it on {machine}: {ran}");
            }
            let how = format!("{request} --machine {machine}");
            assert_eq!(place.run(&format!("plan {how} --verify")).status, Some(0), "{request} on {machine}");
            assert_eq!(place.run(&format!("sim {how}")).status, Some(0), "{request}");
            place.remove("found");
        }
    }
}

#[test]
fn products_of_any_shape_have_the_same_bits() {
    let place = Place::new();
    write(&place, "256 KiB");
    for shape in [
        "--n 300",
        "--m 1 --n 700 --k 257",
        "--m 700 --n 1 --k 300",
        "--m 64 --n 1000 --k 3",
        "--m 333 --n 65 --k 1025",
    ] {
        place.run(&format!("run sgemm {shape} --threads 1 -o expected"));
        for machine in
            ["kinds.toml", "three.toml", "disk+kinds.toml --memory 16MiB", "two.toml --memory 2MiB", "cpu+device"]
        {
            let ran = place.run(&format!("run sgemm {shape} --machine {machine} -o found"));
            assert_eq!(ran.status, Some(0), "{shape} on {machine}: {}", ran.stderr);
            assert!(place.read("found") == place.read("expected"), "{shape} on {machine}: other bytes");
            place.remove("found");
        }
    }
}

#[test]
fn commands_show_kinds() {
    let place = Place::new();
    write(&place, "4 MiB");
    let plan = place.run("plan sgemm --n 700 --machine three.toml");
    for words in [
        "dram > (core x 2 | device | local)",
        "dram - core | device | local (division)",
        "dram - device | local (division)",
        "split sgemm: m = ",
        "core: 1 calls, ",
        "dram - device (device)",
        "dram - local (local)",
        "fits: device needs",
        "fits: local needs",
    ] {
        assert!(plan.stdout.contains(words), "{words:?} is not in\n{}", plan.stdout);
    }
    let machine = place.run("machine --machine three.toml");
    assert!(machine.stdout.contains("\n  device      1     4 MiB  device"), "{}", machine.stdout);
    let ran = place.run("run sgemm --n 700 --machine kinds.toml --trace run.trace");
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("wait on dram - device"), "{}", ran.stdout);
    let trace = place.run("trace run.trace");
    assert!(
        trace.stdout.contains("dram - core | device") || trace.stdout.contains("dram - device"),
        "{}",
        trace.stdout
    );
    // One more thread is one more core.
    let plan = place.run("plan sgemm --n 700 --machine kinds.toml --threads 4");
    assert!(plan.stdout.contains("dram > (core x 3 | device); 4 threads"), "{}", plan.stdout);
    let none = place.run("plan sgemm --n 700 --machine kinds.toml --threads 1");
    assert!(none.status == Some(2) && none.stderr.contains("multiple of 1 and 1 more"), "{}", none.stderr);
}

/// The processor of a Cell that stands beside its SPEs takes its share of what they would do alone.
#[test]
fn a_cell_with_its_own_processor_is_faster() {
    let place = Place::new();
    place.write(
        "ppe.toml",
        "name = \"ppe\"\nbase = \"cell\"\n[[memory]]\nname = \"ppe\"\nparent = \"dram\"\ncapacity = \"512 KiB\"\n[memory.edge]\n\
         driver = \"shared\"\nread = \"10 GB/s\"\nlatency = \"100 ns\"\n[memory.processor]\nkind = \"cpu\"\nrate = \"25.6 GFLOP/s\"\n",
    );
    let seconds = |machine: &str| {
        let ran = place.run(&format!("sim sgemm --n 2048 --machine {machine} --json"));
        ran.json()["seconds"].as_f64().expect("a number")
    };
    let (alone, beside) = (seconds("cell"), seconds("ppe.toml"));
    assert!(beside < 0.95 * alone, "{beside} s with the ninth processor, {alone} s without");
}

#[test]
fn wrong_machine_files_are_refused_where_they_are_wrong() {
    let place = Place::new();
    write(&place, "4 MiB");
    let kinds = KINDS.replace("CAPACITY", "4 MiB");
    let refused = |text: String, words: &[&str]| {
        place.write("wrong.toml", text);
        let ran = place.run("plan sgemm --n 100 --machine wrong.toml");
        assert_eq!(ran.status, Some(2), "{}", ran.stderr);
        assert!(words.iter().all(|word| ran.stderr.contains(word)), "{words:?}: {}", ran.stderr);
    };
    refused(kinds.replace("kind = \"cpu\"", "kind = \"core\""), &["wrong.toml:17: ", "\"core\"", "cpu, spe, gpu"]);
    let without =
        kinds.replace("computes_like = \"core\"\n", "").replace("[memory.processor]\nrate = \"20 MFLOP/s\"\n", "");
    refused(without, &["wrong.toml:20: memory \"device\"", "[memory.processor]"]);
    refused(kinds.replace("like = \"core\"", "like = \"gpu\""), &["wrong.toml:23: ", "computes_like", "dram, core"]);
    refused("name = \"wrong\"\nbase = \"wrong.toml\"\n".to_owned(), &["wrong.toml:2: base: ", "circle"]);
    refused("name = \"wrong\"\n\nbase = \"none.toml\"\n".to_owned(), &["wrong.toml:3: base: ", "none.toml"]);
}
