//! `multigrain sim loops`: what it prints, its trace in every format, refusals.

use crate::support;

use support::{Place, keys};

#[test]
fn the_last_of_twelve_tasks_starves_and_a_hand_off_cures_it() {
    let place = Place::new();
    let of = |policy: &str| place.run(&format!("sim loops --machine ps3 --tasks 12 --policy {policy} --json")).json();
    let (normal, handed) = (of("normal"), of("hand-off"));
    let expected =
        ["fairness", "host_seconds", "machine", "policy", "switch_seconds", "switches", "tasks", "wall_seconds"];
    assert_eq!(keys(&normal), expected);
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let wall = number(&normal["wall_seconds"]);
    assert!((wall / 42.86 - 1.0).abs() < 0.1 && (number(&normal["switches"]) / 2263.0 - 1.0).abs() < 0.1, "{normal}");
    let tasks = normal["tasks"].as_array().unwrap();
    assert_eq!(
        tasks.iter().map(|task| number(&task["task"]) as usize).collect::<Vec<_>>(),
        (1..=12).collect::<Vec<_>>()
    );
    let starts: Vec<f64> = tasks.iter().map(|task| number(&task["first_start_seconds"])).collect();
    assert!(starts[..11].iter().all(|start| *start < 1.0) && (20.0..32.0).contains(&starts[11]), "{starts:?}");
    assert!(tasks.iter().all(|task| number(&task["end_seconds"]) <= wall));
    assert!(number(&handed["wall_seconds"]) < 1.02 * 31.14, "{handed}");
    assert!(number(&handed["fairness"]) > 0.99 && number(&normal["fairness"]) < number(&handed["fairness"]));
    // For people: the table, and who waited.
    let text = place.run("sim loops --machine ps3").stdout;
    assert!(text.contains("12 tasks on 6 processors of ps3, normal") && text.contains("task 12 waited"), "{text}");
}

#[test]
fn its_trace_opens_in_every_format_and_is_the_same_twice() {
    let place = Place::new();
    let run = |trace: &str| {
        place.run(&format!("sim loops --machine cell --tasks 10 --work 500ms --trace {trace} --json")).json()
    };
    assert_eq!(run("one.trace"), run("two.trace"));
    assert!(place.read("one.trace") == place.read("two.trace"));
    let read = place.run("trace one.trace --json").json();
    assert!(read["seconds"].as_f64().unwrap() > 0.5, "{read}");
    for format in ["perfetto", "paraver", "html"] {
        let ran = place.run(&format!("trace one.trace --to {format}"));
        assert_eq!(ran.status, Some(0), "{format}: {}", ran.stderr);
    }
}

#[test]
fn cures_can_be_tried() {
    let place = Place::new();
    let wall = |options: &str| {
        let ran = place.run(&format!("sim loops --machine ps3 {options} --json"));
        assert_eq!(ran.status, Some(0), "{options}: {}", ran.stderr);
        ran.json()["wall_seconds"].as_f64().unwrap()
    };
    let none = wall("");
    for options in ["--features -new_fair_sleepers", "--features -START_DEBIT,+approx_avg", "--charged", "--spin 100us"]
    {
        assert!(wall(options) < 0.9 * none, "{options}");
    }
    assert!(wall("--tasks 12 --frames 50 --work 6s") > wall("--tasks 6 --frames 50 --work 6s"));
    assert!(wall("--policy gang --programs 2 --work 1s --background 10us --nice -5") > 1.9);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Place::new();
    for (options, part) in [
        ("", "--machine ps3"),
        ("--machine xeon", "[memory.contexts]"),
        ("--machine ps3 --tasks 0", "0 tasks"),
        ("--machine ps3 --policy fair", "hand-off"),
        ("--machine ps3 --policy gang", "does not fit on 6"),
        ("--machine ps3 --features approx_avg", "start_debit"),
        ("--machine ps3 --threads 2", "leave out --threads"),
        ("--machine ps3 --frames 0", "frames"),
        ("--machine ps3 --trace nowhere/to.trace", "nowhere"),
    ] {
        let ran = place.run(&format!("sim loops {options}"));
        assert!(ran.status == Some(2) && ran.stderr.contains(part), "{options}: {:?} {}", ran.status, ran.stderr);
    }
    let cell = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/cell.toml")).unwrap();
    for (from, to, part) in [
        ("interrupts = 250", "interrupts = 0", "host.interrupts: is 0, but must be from 100 to 10000"),
        ("scheduler = \"spufs-2.6.24\"", "scheduler = \"spufs\"", "spufs-2.6.25"),
        ("switch = \"26 us\"\n", "", "contexts.switch: missing"),
        ("spread = 0.3", "spread = 2", "from 0 to 1"),
    ] {
        assert!(cell.contains(from));
        place.write("my.toml", cell.replace(from, to).as_bytes());
        let ran = place.run("sim loops --machine my.toml");
        assert!(ran.status == Some(2) && ran.stderr.contains(part) && ran.stderr.contains("my.toml"), "{}", ran.stderr);
    }
}
