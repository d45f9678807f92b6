//! Counts that are interrupted, killed, resumed; files that are no checkpoints of theirs; what is said on the way.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

fn command(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_multigrain-queens"));
    command.args(arguments.split_whitespace()).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn queens(folder: &Path, arguments: &str) -> Output {
    command(folder, arguments).output().unwrap()
}

#[track_caller]
fn object(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn refused(output: &Output, status: i32, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(status), true), "{output:?}");
    assert!(said.starts_with("multigrain: "), "{said}");
    assert!(words.iter().all(|word| said.contains(word)), "{words:?} in: {said}");
}

fn names(folder: &Path) -> Vec<PathBuf> {
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names
}

#[test]
fn wrong_requests() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for n in ["0", "33", "4000000000"] {
        refused(&queens(here, n), 2, &[n, "from 1 to 32"]);
    }
    for arguments in ["", "x", "-3", "8 9", "99999999999", "8 --threads 0", "8 --resume", "8 --odd"] {
        let output = queens(here, arguments);
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{arguments}: {output:?}");
    }
    refused(&queens(here, "8 --checkpoint missing/x"), 2, &["missing"]);
    refused(&queens(here, "8 --checkpoint . --resume"), 2, &["directory"]);
    assert!(names(here).is_empty());
}

#[test]
fn the_result_is_one_line_or_one_object() {
    let folder = tempfile::tempdir().unwrap();
    let text = queens(folder.path(), "8");
    assert_eq!(String::from_utf8_lossy(&text.stdout).lines().count(), 1);
    let value = object(&queens(folder.path(), "8 --json --threads 2"));
    assert_eq!((&value["solutions"], &value["fundamental"]), (&92.into(), &12.into()));
    assert_eq!((&value["threads"], &value["resumed"]), (&2.into(), &0.into()));
}

#[test]
fn a_checkpoint_begins_ends_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let first = object(&queens(here, "11 --json --checkpoint c --resume"));
    assert_eq!((&first["resumed"], &first["solutions"]), (&0.into(), &2680.into()));
    assert_eq!(names(here), [here.join("c")]);
    refused(&queens(here, "11 --checkpoint c"), 2, &["c:", "--resume"]);
    let again = object(&queens(here, "11 --json --checkpoint c --resume --threads 1"));
    assert_eq!((&again["resumed"], &again["solutions"]), (&again["parts"], &2680.into()));
    let said = queens(here, "11 --checkpoint c --resume");
    assert!(String::from_utf8_lossy(&said.stdout).contains("was finished"), "{said:?}");
    refused(&queens(here, "10 --checkpoint c --resume"), 2, &["11 x 11"]);
    let text = std::fs::read(here.join("c")).unwrap();
    for (damage, bytes) in [("cut", &text[..text.len() / 2]), ("noise", &[7, 0, 255][..]), ("empty", &[])] {
        std::fs::write(here.join(damage), bytes).unwrap();
        refused(&queens(here, &format!("11 --checkpoint {damage} --resume")), 2, &[damage, "another file"]);
        assert_eq!(std::fs::read(here.join(damage)).unwrap(), bytes, "what was refused is left as it was");
    }
}

/// Half of a checkpoint's lines are counted again, and nothing else.
#[test]
fn what_is_missing_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let whole = object(&queens(here, "12 --json --checkpoint c"));
    let text = std::fs::read_to_string(here.join("c")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let counts = &lines[3..lines.len() - 1];
    let kept: Vec<&str> = counts.iter().copied().step_by(2).collect();
    let body: String = lines[..3].iter().chain(&kept).map(|line| format!("{line}\n")).collect();
    let sum = crc32fast::hash(body.as_bytes());
    std::fs::write(here.join("c"), format!("{body}end {} {sum:08x}\n", kept.len())).unwrap();
    let resumed = object(&queens(here, "12 --json --checkpoint c --resume"));
    assert_eq!(resumed["resumed"], kept.len());
    for key in ["solutions", "fundamental", "point_symmetric", "rotation_symmetric", "parts"] {
        assert_eq!(resumed[key], whole[key], "{key}");
    }
    assert_eq!(std::fs::read_to_string(here.join("c")).unwrap(), text, "the same checkpoint in the end");
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// Long enough to be interrupted: the plain kernel on one thread.
const LONG: &str = "17 --isa scalar --threads 1";

#[test]
fn an_interrupted_count_keeps_its_checkpoint_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let child = command(here, &format!("{LONG} --checkpoint c")).spawn().unwrap();
    // Its handler is there when threads are; before that it ends at once, with nothing.
    std::thread::sleep(Duration::from_millis(1500));
    signal(&child, "-INT");
    refused(&child.wait_with_output().unwrap(), 1, &["interrupted", "c", "--resume"]);
    assert_eq!(names(here), [here.join("c")]);
    let done = object(&queens(here, "17 --json --checkpoint c --resume"));
    assert!(done["resumed"].as_u64().unwrap() > 0, "{done}");
    assert_eq!(done["solutions"], 95_815_104);
    let child = command(here, LONG).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    signal(&child, "-TERM");
    refused(&child.wait_with_output().unwrap(), 1, &["interrupted", "nothing was kept"]);
}

#[test]
fn a_killed_count_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for milliseconds in [3000, 50, 2700] {
        let mut child = command(here, &format!("{LONG} --checkpoint c --resume")).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let done = object(&queens(here, "17 --json --checkpoint c --resume"));
    assert_eq!(done["solutions"], 95_815_104);
}
