//! `multigrain bench` with peers that are not there, that take turns, that die, that talk nonsense, that are silent.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// Runs the bench at small sizes, one turn each, with the peers listed in `peers`.
fn bench(peers: &Path, arguments: &[&str]) -> Output {
    let files = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let rounds = if arguments.contains(&"--rounds") { &[][..] } else { &["--rounds", "1"] };
    let output = Command::new(env!("CARGO_BIN_EXE_multigrain-bench"))
        .args(arguments)
        .args(rounds)
        .args(["--quick", "--threads", "1", "--directory"])
        .arg(files.path())
        .env("MULTIGRAIN_PEERS", peers)
        .output()
        .unwrap();
    let left: Vec<_> = std::fs::read_dir(files.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?} is left behind");
    output
}

fn rows(output: &Output) -> Vec<Value> {
    let object: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    object["rows"].as_array().unwrap().clone()
}

/// A folder with a list of peers: each a shell script under a name.
fn peers(scripts: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let entry = |(name, script): &(&str, &str)| {
        let command = ["/bin/sh", "-c", script, "peer"];
        serde_json::json!({ "name": name, "command": command, "ready": true, "peer": name, "version": "7" })
    };
    let entries: Vec<Value> = scripts.iter().map(entry).collect();
    std::fs::write(folder.path().join("peers.json"), serde_json::to_vec(&entries).unwrap()).unwrap();
    folder
}

const READY: &str = r#"echo '{"ready": true, "peer": "fake", "version": "fake 1.0"}'; "#;

fn with_greeting(rest: &str) -> String {
    format!("{READY}{rest}")
}

/// The row `conv2d` and its only peer, when that is `script`.
fn conv2d_beside(script: &str, arguments: &[&str]) -> (Value, Value) {
    let folder = peers(&[("opencv", script)]);
    let output = bench(folder.path(), &[&["conv2d", "--json"], arguments].concat());
    assert!(output.status.success(), "{output:?}");
    let row = rows(&output).remove(0);
    assert!(row["ours"].as_f64().unwrap() > 0.0, "{row}");
    let peer = row["peers"][0].clone();
    (row, peer)
}

#[test]
fn every_row_is_measured_without_peers_and_says_how_to_install_them() {
    let nothing = tempfile::tempdir().unwrap();
    let output = bench(nothing.path(), &["--json"]);
    assert!(output.status.success(), "{output:?}");
    let rows = rows(&output);
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    for name in [
        "sgemm",
        "sgemm-files",
        "saxpy",
        "sgemv",
        "saxpy-files",
        "sgemv-files",
        "conv2d-files",
        "conv2d",
        "fft3d",
        "fft3d-mkl",
        "fft3d-files",
        "fft3d-files-numpy",
        "hmmer",
        "hmmer-max",
        "gravity",
        "call",
        "barrier-1",
        "allreduce-3-128",
    ] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    for row in &rows {
        assert!(row["ours"].as_f64().unwrap() > 0.0, "{row}");
        assert_eq!(row["holds"], Value::Null, "small sizes are not judged: {row}");
        // Some peers are part of this program.
        let inside = |peer: &&Value| {
            ["own in memory", "std::sync::Barrier", "mgps", "edtlp", "mailbox", "1 workers", "one worker"]
                .contains(&peer["peer"].as_str().unwrap())
        };
        for peer in row["peers"].as_array().unwrap().iter().filter(|peer| !inside(peer)) {
            assert_eq!(peer["value"], Value::Null, "{row}");
            assert!(peer["missing"].as_str().unwrap().contains("bench/install-peers.sh"), "{row}");
        }
    }
}

#[test]
fn the_table_names_the_missing_peer() {
    let nothing = tempfile::tempdir().unwrap();
    let output = bench(nothing.path(), &["conv2d"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().any(|l| l.starts_with("conv2d ") && l.contains("missing") && l.contains("opencv")), "{text}");
    assert!(text.contains("bench/install-peers.sh installs it"), "{text}");
}

#[test]
fn a_peer_that_answers_yields_a_ratio() {
    let script = with_greeting(
        r#"while read -r line; do
            case $line in
            run) echo '{"peer": "fake", "version": "fake 1.0", "seconds": 1000}' ;;
            quit) exit 0 ;;
            esac
        done"#,
    );
    let (row, peer) = conv2d_beside(&script, &["--rounds", "3"]);
    assert_eq!(peer["version"], "fake 1.0");
    assert_eq!(peer["missing"], Value::Null);
    assert_eq!(peer["samples"].as_array().unwrap().len(), 3, "the first turn does not count: {peer}");
    // Our turn takes no thousand seconds; values are rates, so the ratio is ours over the peer's.
    let ratio = row["ratio"].as_f64().unwrap();
    assert!(ratio > 1.0, "{row}");
    let quotient = row["ours"].as_f64().unwrap() / peer["value"].as_f64().unwrap();
    assert!((ratio / quotient - 1.0).abs() < 1e-9, "{row}");
}

#[test]
fn a_peer_is_given_threads_and_sizes() {
    let script = with_greeting(r#"read -r line; echo "{\"error\": \"was given $*\"}""#);
    let (_, peer) = conv2d_beside(&script, &[]);
    assert_eq!(peer["missing"], "was given --threads 1 --rows 256 --cols 128 --size 9");
}

#[test]
fn a_peer_that_cannot_be_had_says_why() {
    let (row, peer) = conv2d_beside(r#"echo '{"missing": "no such processor"}'; exit 3"#, &[]);
    assert_eq!(peer["missing"], "no such processor");
    assert_eq!(row["ratio"], Value::Null);
}

#[test]
fn a_peer_that_dies_is_reported() {
    let (_, peer) = conv2d_beside("exit 9", &[]);
    assert!(peer["missing"].as_str().unwrap().contains("ended before it answered"), "{peer}");
    // In the turns that count, after one that did not.
    let script = with_greeting(r#"read -r line; echo '{"seconds": 1}'; read -r line; exit 1"#);
    let (row, peer) = conv2d_beside(&script, &[]);
    assert!(peer["missing"].as_str().unwrap().contains("ended before it answered"), "{peer}");
    assert_eq!((&peer["value"], &row["ratio"]), (&Value::Null, &Value::Null));
}

#[test]
fn a_peer_that_talks_nonsense_is_reported() {
    for (script, why) in [
        ("echo 'Segmentation fault (core dumped)'; cat".to_owned(), "no known words: 'Segmentation fault"),
        (with_greeting("while read -r line; do echo 42; done"), "no known words: '42'"),
        (with_greeting(r#"while read -r line; do echo '{"seconds": -1}'; done"#), "without a time"),
        (with_greeting(r#"while read -r line; do echo '{"seconds": "1"}'; done"#), "without a time"),
        // For ever, and without the end of a line.
        ("cat /dev/zero".to_owned(), "no known words"),
    ] {
        let (_, peer) = conv2d_beside(&script, &[]);
        assert!(peer["missing"].as_str().unwrap().contains(why), "{script}: {peer}");
    }
}

#[test]
fn a_silent_peer_is_given_up_and_ended() {
    // It hears neither `quit` nor the end of its input.
    let (_, peer) = conv2d_beside("exec sleep 1000", &["--peer-timeout", "1"]);
    assert!(peer["missing"].as_str().unwrap().contains("silent for 1 s"), "{peer}");
}

#[test]
fn a_list_that_cannot_be_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("peers.json"), "[{").unwrap();
    let output = bench(folder.path(), &["conv2d"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("bench/install-peers.sh"), "{output:?}");
}

#[test]
fn a_row_that_cannot_be_measured_leaves_the_others() {
    let nothing = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_multigrain-bench"))
        .args(["saxpy-files", "conv2d", "--json", "--quick", "--rounds", "1", "--threads", "1"])
        .args(["--directory", "/nonexistent"])
        .env("MULTIGRAIN_PEERS", nothing.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let rows = rows(&output);
    assert!(rows[0]["failed"].as_str().unwrap().contains("/nonexistent"), "{rows:?}");
    assert!(rows[1]["ours"].as_f64().unwrap() > 0.0, "{rows:?}");
}

#[test]
fn levels_have_every_application_on_every_machine_and_two_figures() {
    let (nothing, figures) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let output = bench(nothing.path(), &["levels", "--json", "--figures", figures.path().to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    let levels = object["levels"].as_array().unwrap();
    for app in ["saxpy", "sgemv", "sgemm", "conv2d", "fft3d", "gravity", "hmmer"] {
        for machine in ["shared", "local", "disk", "disk+local"] {
            let level = levels.iter().find(|l| l["app"] == app && l["machine"] == machine).unwrap();
            assert!(level["gflops"].as_f64().is_some_and(|rate| rate > 0.0), "{level}");
            let waits: f64 = level["wait_shares"].as_object().unwrap().values().map(|s| s.as_f64().unwrap()).sum();
            let shares = level["leaf_share"].as_f64().unwrap() + waits + level["overhead_share"].as_f64().unwrap();
            assert!((shares - 1.0).abs() < 0.05, "the parts are the whole: {level}");
        }
    }
    for (name, machines) in [("levels-one-edge.svg", 3), ("levels-two-edges.svg", 1)] {
        let svg = std::fs::read_to_string(figures.path().join(name)).unwrap();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
        assert_eq!(svg.matches(">sgemm<").count(), 1, "{name}");
        assert!(svg.matches("sgemm on ").count() >= 2 * machines, "{name}");
    }
}
