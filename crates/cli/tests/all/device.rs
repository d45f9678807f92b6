//! Applications on emulated devices, which nobody else can touch: the same bytes as in shared memory, though arrays are larger
//! than the devices.

use crate::support;

use multigrain::MachineChoice;
use multigrain::prelude::*;
use multigrain_console::Failure;
use std::process::Command;
use support::Place;

/// Two small devices below memory. Copies are quick, so that tests are.
const DEVICES: &str = r#"
name = "devices"
description = "Two emulated devices."
[[memory]]
name = "dram"
capacity = "1 GiB"
[[memory]]
name = "device"
parent = "dram"
count = 2
capacity = "CAPACITY"
[memory.edge]
driver = "device"
read = "100 GB/s"
latency = "0 ns"
[memory.settings]
streams = 3
[memory.processor]
kind = "cpu"
rate = "10 GFLOP/s"
call_overhead = "10 us"
"#;

/// A leaf that panics.
#[task(axes(i))]
fn faulty(#[at(i)] x: Write<f32, 1>) {
    panic!("a fault of mine in {} elements", x.len(0));
}

/// Runs it on devices as programs do, in a process of its own.
fn fails() -> Result<(), Failure> {
    let machine = Machine::parse(&DEVICES.replace("CAPACITY", "1 MiB"), "devices").map_err(multigrain::Error::from)?;
    let machine = MachineChoice::Given(Box::new(machine));
    let runtime = Runtime::new(Options { machine, ..Options::default() })?;
    let mut program = Program::new();
    let task = program.task(faulty);
    let x = program.array::<f32, 1>("x", [1000], Role::Output).map_err(multigrain::Error::from)?;
    program.call(task, (x.all(),), Scalars::new()).map_err(multigrain::Error::from)?;
    runtime.run(&Job::new("faulty", program), Settings::default())?;
    Ok(())
}

/// The thread of a device's processor is no worker, but what panics there is told of as what does on one.
#[test]
fn a_leaf_that_panics_is_named() {
    const CHILD: &str = "MULTIGRAIN_TEST_FAULTY";
    if std::env::var_os(CHILD).is_some() {
        multigrain_console::begin();
        multigrain_device::register().unwrap();
        std::process::exit(multigrain_console::finished(fails).into());
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    let ended =
        child.args(["--exact", "device::a_leaf_that_panics_is_named", "--nocapture"]).env(CHILD, "1").output().unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    assert!(told.contains("faulty on x [") && told.contains("panicked: a fault of mine"), "{told}");
    assert!(!told.contains("internal error"), "{told}");
    assert_eq!(ended.status.code(), Some(1), "{told}");
}

#[test]
fn applications_give_the_same_bytes() {
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
        place.write("devices.toml", DEVICES.replace("CAPACITY", capacity));
        let run = |how: &str, output: &str| {
            let ran = place.run(&format!("run {request} {how} -o {output} --json"));
            assert_eq!(ran.status, Some(0), "{request} {how}: {}", ran.stderr);
            ran.json()
        };
        run("--threads 1", "expected");
        let ran = run("--machine devices.toml --check", "found");
        assert!(place.read("found") == place.read("expected"), "{request}: other bytes");
        assert!(ran["edges"][0]["bytes_down"].as_u64() > Some(0), "{request}: {ran}");
        assert_eq!(place.run(&format!("plan {request} --machine devices.toml --verify")).status, Some(0), "{request}");
        assert_eq!(place.run(&format!("sim {request} --machine devices.toml")).status, Some(0), "{request}");
        run("--machine device", "shipped");
        assert!(place.read("shipped") == place.read("expected"), "{request}: other bytes on the shipped machine");
    }
}

#[test]
fn a_fault_of_a_device_is_told() {
    let place = Place::new();
    place.write("devices.toml", DEVICES.replace("CAPACITY", "128 KiB").replace("streams = 3", "fail = 3"));
    let ran = place.run("run saxpy --n 200003 --machine devices.toml -o y.npy");
    assert_eq!(ran.status, Some(1), "{}", ran.stderr);
    for words in ["block [", "driver device", "a fault that the machine file asks for"] {
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
    assert_eq!(place.names(), ["devices.toml"]);
}
