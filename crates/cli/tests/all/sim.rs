//! `multigrain sim`: what `run` prints, predicted; the same twice; laid over a real run; refusals.

use crate::support;

use serde_json::Value;
use support::{Place, keys};

#[test]
fn sim_prints_what_run_prints() {
    let place = Place::new();
    let job = "sgemm --n 96 --k 50 --machine disk+local --memory 2MiB --threads 2 --json";
    let (ran, simulated) = (place.run(&format!("run {job}")).json(), place.run(&format!("sim {job}")).json());
    assert_eq!(keys(&simulated), keys(&ran));
    for same in ["app", "shape", "machine", "threads", "memory_budget_bytes", "edges", "resumed"] {
        assert_eq!(simulated[same], ran[same], "{same}");
    }
    assert_eq!(keys(&simulated["breakdown"]), keys(&ran["breakdown"]));
    assert_eq!(keys(&simulated["breakdown"]["wait_seconds"]), keys(&ran["breakdown"]["wait_seconds"]));
    assert!(simulated["seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(simulated["io"], "simulated");
}

#[test]
fn the_same_request_gives_the_same_bytes() {
    let place = Place::new();
    for machine in ["ps3", "cluster-of-ps3s", "disk+ps3", "smp"] {
        let run =
            |trace: &str| place.run(&format!("sim sgemm --n 512 --machine {machine} --json --trace {trace}")).json();
        let (first, second) = (run("one.trace"), run("two.trace"));
        assert_eq!(first, second, "{machine}");
        assert!(place.read("one.trace") == place.read("two.trace"), "{machine}: the traces differ");
        // The trace is one like any other.
        let trace = place.run("trace one.trace --json").json();
        let (wall, seconds) = (trace["seconds"].as_f64(), first["seconds"].as_f64());
        if let (Some(wall), Some(seconds)) = (wall, seconds) {
            assert!((wall / seconds - 1.0).abs() < 1e-6, "{machine}: {wall} {seconds}");
        }
    }
}

#[test]
fn a_prediction_is_laid_over_a_real_run() {
    let place = Place::new();
    assert_eq!(place.run("run saxpy --n 300000 --threads 2 --trace run.trace").status, Some(0));
    let value = place.run("sim saxpy --n 300000 --threads 2 --compare run.trace --json").json();
    let compared = &value["compared"];
    assert_eq!(keys(compared), ["measured_seconds", "parts", "predicted_seconds", "ratio"]);
    assert_eq!(compared["predicted_seconds"], value["seconds"]);
    let (predicted, measured) = (compared["predicted_seconds"].as_f64(), compared["measured_seconds"].as_f64());
    assert_eq!(compared["ratio"].as_f64().unwrap(), predicted.unwrap() / measured.unwrap());
    let names: Vec<&str> = compared["parts"].as_array().unwrap().iter().filter_map(|p| p["name"].as_str()).collect();
    assert_eq!((names.first(), names.last()), (Some(&"leaf work"), Some(&"overhead")));
    let other = place.run("sim sgemm --n 64 --threads 2 --compare run.trace");
    assert!(other.status == Some(2) && other.stderr.contains("of saxpy, not of sgemm"), "{}", other.stderr);
    let workers = place.run("sim saxpy --n 300000 --threads 1 --compare run.trace");
    assert!(workers.status == Some(2) && workers.stderr.contains("--threads 2"), "{}", workers.stderr);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Place::new();
    let cell = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/cell.toml")).unwrap();
    let refused = |name: &str, text: String, parts: &[&str]| {
        assert_ne!(text, cell, "{name}: nothing was changed");
        place.write(name, text.as_bytes());
        let ran = place.run(&format!("sim sgemm --n 256 --machine {name} --json"));
        assert_eq!(ran.status, Some(2), "{name}: {}{}", ran.stdout, ran.stderr);
        for part in parts {
            assert!(ran.stderr.contains(part), "{name}: {part}: {}", ran.stderr);
        }
    };
    refused(
        "slow.toml",
        cell.replace("read = \"24 GB/s\"", "read = \"0 GB/s\""),
        &["slow.toml:26", "spe", "edge.read"],
    );
    refused("full.toml", cell.replace("code = \"32 KiB\"", "code = \"256 KiB\""), &["spe", "256 KiB"]);
    // Rows of an odd number of bytes cannot be moved by a Cell, whatever the blocks are.
    let ran = place.run("sim sgemm --n 251 --machine cell --json");
    assert_eq!(ran.status, Some(2), "{}{}", ran.stdout, ran.stderr);
    for part in ["machine cell", "step", "block", "unit of 16"] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    // The same plan runs here with the rules enforced, and gives the right result.
    let here = cell.replace("count = 8", "count = 2");
    place.write("here.toml", here.as_bytes());
    let checked: Value = place.run("run sgemm --n 256 --machine here.toml --check --json").json();
    let number = |key: &str| checked["checked"][key].as_f64().unwrap();
    assert!(number("max_relative_error") <= number("tolerance"), "{checked}");
}
