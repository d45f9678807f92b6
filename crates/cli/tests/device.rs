//! Applications on emulated devices, which nobody else can touch: the same bytes as in shared memory, though arrays are larger
//! than the devices.

mod support;

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
