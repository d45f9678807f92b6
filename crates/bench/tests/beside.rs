//! `multigrain bench beside`: pairs that are measured, and those that cannot be.

use serde_json::Value;
use std::process::{Command, Output};

/// `peers` is a folder with a list of peers, or without one.
fn beside(peers: &std::path::Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_multigrain-bench"));
    command.args(["beside", "--quick", "--rounds", "1", "--threads", "1"]).args(arguments);
    command.env("MULTIGRAIN_PEERS", peers).env("XDG_RUNTIME_DIR", peers).current_dir(peers).output().unwrap()
}

#[test]
fn every_pair_is_measured_with_and_without_sharing() {
    let folder = tempfile::tempdir().unwrap();
    let output = beside(folder.path(), &["--among", "sgemm,hmmer,phylo", "--json", "--figures", "."]);
    assert!(output.status.success(), "{output:?}");
    let value = serde_json::from_slice::<Value>(&output.stdout).unwrap()["beside"].clone();
    let pairs = value["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 12, "six pairs: {value}");
    for pair in pairs {
        let parts: Vec<f64> = pair["of_half"].as_array().unwrap().iter().map(|part| part.as_f64().unwrap()).collect();
        assert!(parts.iter().all(|&part| part > 0.0), "{pair}");
        assert!((pair["together"].as_f64().unwrap() - (parts[0] + parts[1]) / 2.0).abs() < 1e-9, "{pair}");
    }
    let svg = std::fs::read_to_string(folder.path().join("beside.svg")).unwrap();
    assert!(svg.contains("hmmer beside phylo, off") && svg.matches("<path ").count() == 24, "{svg}");
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "the figure and the table: {left:?}");
}

#[test]
fn peers_that_are_not_there_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let output = beside(folder.path(), &["--among", "sgemm,openmp-active"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("openmp-active: not installed; bench/install-peers.sh installs it"), "{text}");
    let pair = text.lines().find(|line| line.contains("shared")).unwrap();
    assert!(pair.trim_start().starts_with("sgemm"), "{text}");
}
