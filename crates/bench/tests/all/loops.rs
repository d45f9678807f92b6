//! `multigrain bench loops`: what it says, what it refuses, and programs that are killed or stopped.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn loops(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_multigrain-bench"));
    let workers = if arguments.contains(&"--workers") { &[][..] } else { &["--workers", "1"] };
    command.arg("loops").args(workers).args(arguments);
    command
}

fn ran(arguments: &[&str]) -> Output {
    loops(arguments).args(["--rounds", "1"]).output().unwrap()
}

fn object(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice::<Value>(&output.stdout).unwrap()["loops"].clone()
}

#[test]
fn every_policy_is_measured_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let figures = ["--figures", folder.path().to_str().unwrap()];
    let value = object(&ran(&[&["--quick", "--tasks", "3", "--json"][..], &figures].concat()));
    let policies = value["policies"].as_array().unwrap();
    let names: Vec<&str> = policies.iter().map(|policy| policy["policy"].as_str().unwrap()).collect();
    assert_eq!(names, ["fifo", "slices", "hand-off", "system"]);
    for policy in policies {
        let tasks = policy["tasks"].as_array().unwrap();
        assert_eq!(tasks.len(), 3, "{policy}");
        let wall = policy["wall_seconds"].as_f64().unwrap();
        for task in tasks {
            let seconds = |name: &str| task[name].as_f64().unwrap();
            assert!(seconds("processor_seconds") > 0.0 && seconds("end_seconds") <= wall, "{policy}");
            assert!(seconds("first_start_seconds") <= seconds("end_seconds"), "{policy}");
        }
        let fairness = policy["fairness"].as_f64().unwrap();
        assert!(fairness > 1.0 / 3.0 - 1e-9 && fairness <= 1.0 + 1e-9, "{policy}");
    }
    // Each has its processor to its end, in order.
    let ends: Vec<f64> =
        policies[0]["tasks"].as_array().unwrap().iter().map(|t| t["end_seconds"].as_f64().unwrap()).collect();
    assert!(ends.is_sorted() && policies[0]["turns"] == 3.0, "{}", policies[0]);
    let svg = std::fs::read_to_string(folder.path().join("loops.svg")).unwrap();
    assert!(svg.matches("<path ").count() == 12 && svg.contains("hand-off") && svg.ends_with("</svg>\n"), "{svg}");
}

#[test]
fn people_get_a_table_of_products_by_the_clock() {
    let asked = ["--quick", "--tasks", "2", "--policy", "system,hand-off", "--work", "sgemm", "--told", "clock"];
    let output = ran(&asked);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let line =
        |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_else(|| panic!("{text}"));
    assert!(line("system").contains("1.000") && text.contains("clock"), "{text}");
    assert!(line("hand-off").split_whitespace().count() >= 8, "{text}");
}

#[test]
fn what_makes_no_sense_is_refused_with_a_way_out() {
    let refused = |arguments: &[&str], words: &[&str]| {
        let output = ran(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(words.iter().all(|word| said.contains(word)), "{arguments:?}: {said}");
    };
    refused(&["--policy", "fair"], &["\"fair\" is no policy", "hand-off"]);
    refused(&["--tasks", "0"], &["1..=10000"]);
    refused(&["--tasks", "1"], &["1 tasks on 1 workers", "--tasks 4"]);
    refused(&["--workers", "0"], &["1..=4096"]);
    refused(&["--workers", "4000", "--tasks", "5000"], &["4000 workers", "--workers "]);
    refused(&["--slice", "2 s"], &["one turn only", "--slice", "--length"]);
    refused(&["--slice", "1 us"], &["mostly switching", "50 us"]);
    refused(&["--slice=-1 s"], &["does not begin with a number"]);
    refused(&["--length", "0 s"], &["one turn only"]);
    refused(&["--footprint", "1 B"], &["4 KiB at least", "--footprint"]);
    refused(&["--footprint", "1000 TB"], &["there is room for", "--footprint"]);
    refused(&["--programs", "2", "--greedy", "2"], &["2 of 2 programs are greedy", "--programs 3"]);
    refused(&["--greedy", "1"], &["--programs 2"]);
    refused(&["--programs", "0"], &["1..=64"]);
}

#[test]
fn programs_share_the_machine_with_a_greedy_one() {
    let asked = ["--quick", "--tasks", "2", "--policy", "hand-off", "--programs", "3", "--greedy", "1", "--json"];
    let value = object(&ran(&asked));
    let programs = value["policies"][0]["programs"].as_array().unwrap();
    let kinds: Vec<&str> = programs.iter().map(|program| program["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["tasks", "tasks", "greedy"]);
    for program in programs {
        assert!(program["missing"].is_null() && program["seconds"].as_f64().unwrap() > 0.0, "{value}");
    }
    assert!(programs[0]["of_fair_share"].as_f64().unwrap() > 0.0, "{value}");
    assert!(programs[2]["of_fair_share"].is_null(), "{value}");
}

/// Before anything is measured, whose table would be lost.
#[test]
fn figures_go_into_a_folder_that_is_there() {
    let nowhere = ["--figures", "/nowhere", "--tasks", "2", "--length", "1000 s"];
    for programs in ["1", "2"] {
        let output = ran(&[&nowhere[..], &["--programs", programs]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains("/nowhere: no such directory"), "{output:?}");
    }
}

/// What a task works on takes longer to be had and given back than the task itself.
#[test]
fn tasks_are_as_long_as_is_asked_whatever_they_work_on() {
    let asked =
        ["--tasks", "2", "--length", "20 ms", "--slice", "5 ms", "--policy", "fifo", "--footprint", "64 MiB", "--json"];
    let value = object(&ran(&asked));
    for task in value["policies"][0]["tasks"].as_array().unwrap() {
        // By a factor that no machine's noise makes.
        assert!(task["processor_seconds"].as_f64().unwrap() > 2e-3, "{value}");
    }
    let output =
        ran(&["--tasks", "2", "--length", "1 ms", "--slice", "100 us", "--work", "sgemm", "--footprint", "64 MiB"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("ask for longer tasks"), "{output:?}");
}

/// The programs of a bench that are there by now.
#[cfg(target_os = "linux")]
fn members(bench: u32) -> Vec<i32> {
    let of = |path: PathBuf| -> Option<i32> {
        let number: i32 = path.file_name()?.to_str()?.parse().ok()?;
        let status = std::fs::read_to_string(path.join("status")).ok()?;
        let words = std::fs::read_to_string(path.join("cmdline")).ok()?;
        (status.contains(&format!("PPid:\t{bench}\n")) && words.contains("--member")).then_some(number)
    };
    std::fs::read_dir("/proc").unwrap().filter_map(|entry| of(entry.ok()?.path())).collect()
}

/// Sends a signal to one of two programs, and gives what the bench says of both.
#[cfg(target_os = "linux")]
fn with_one(signal: &str, arguments: &[&str]) -> String {
    let common = ["--tasks", "2", "--length", "100 ms", "--policy", "hand-off", "--programs", "2", "--rounds", "4"];
    let arguments: Vec<&str> = common.iter().chain(arguments).copied().collect();
    let bench = loops(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut programs = Vec::new();
    while programs.len() < 2 {
        programs = members(bench.id());
        std::thread::yield_now();
    }
    assert!(Command::new("kill").args([signal, &programs[0].to_string()]).status().unwrap().success());
    let output = bench.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn a_killed_program_is_told_and_the_other_has_its_turns() {
    let text = with_one("-KILL", &[]);
    assert!(text.contains("hand-off, program ") && text.contains("it ended before it answered (signal: 9"), "{text}");
    let walls = text.lines().filter(|line| line.trim_start().starts_with("hand-off  "));
    assert_eq!(walls.filter(|line| !line.contains(" -  ")).count(), 1, "{text}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_stopped_program_is_given_up() {
    let text = with_one("-STOP", &["--peer-timeout", "2"]);
    assert!(text.contains("it was silent for 2 s and was given up"), "{text}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_killed_bench_leaves_no_program_behind() {
    let arguments = ["--tasks", "2", "--length", "1000 s", "--policy", "hand-off", "--programs", "2", "--greedy", "1"];
    let mut bench = loops(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let computes = |program: &i32| {
        let tasks = std::fs::read_dir(format!("/proc/{program}/task")).into_iter().flatten().flatten();
        let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        tasks.map(name).any(|name| name.starts_with("context-"))
    };
    let mut programs = Vec::new();
    while programs.len() < 2 || !programs.iter().any(computes) {
        programs = members(bench.id());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    bench.kill().unwrap();
    bench.wait().unwrap();
    let runs = |program: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{program}/status"));
        status.is_ok_and(|status| !status.contains("State:\tZ"))
    };
    // A second is enough; whoever stays does so for a quarter of an hour.
    let is_over = (0..600).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        !programs.iter().any(runs)
    });
    assert!(is_over, "{programs:?}");
}
