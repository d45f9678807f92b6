//! Runs that are killed or interrupted: the final name shows nothing half-written, and `--resume` ends in the same bytes.

use crate::support;

use std::process::Command;
use std::time::{Duration, Instant};
use support::{Place, Ran, Rng, ended, exists};

/// Every completed store is recorded at once, so that a short run can be killed between many of them.
const RECORD_ALL: &str = "--journal-interval 0s";

/// Kills the command at random moments until it ends by itself, each time continuing, and compares the result. A moment
/// is counted in recorded stores, so that killed runs have done something, or in time, so that it may be any.
fn killed_often(request: &str, ending: &str, seed: u64) {
    let [out, expected_name] = ["out", "expected"].map(|name| format!("{name}.{ending}"));
    let mut rng = Rng(seed);
    let place = Place::new();
    let request = format!("run {request} --machine disk {RECORD_ALL}");
    let began = Instant::now();
    assert_eq!(place.run(&format!("{request} -o {expected_name}")).status, Some(0));
    let undisturbed = began.elapsed();
    let expected = place.read(&expected_name);
    let journal = place.path(&format!("{out}.journal"));
    let (mut killed, mut continued) = (0, 0);
    for round in 0..5 {
        for attempt in 0.. {
            // Whatever memory the run was begun with, it is continued with another.
            let (begun, resume) = match attempt {
                0 => (request.to_owned(), ""),
                attempt if attempt % 2 == 1 => (with_memory(&request, "64MiB"), "--resume"),
                _ => (request.to_owned(), "--resume"),
            };
            let mut child = place.start(&format!("{begun} -o {out} --json {resume}"));
            let began = Instant::now();
            let patience = undisturbed.mul_f64(rng.below(120) as f64 / 100.0);
            let bytes = records(&journal) + 32 * (1 + rng.below(12));
            let by_time = rng.below(3) == 0;
            // After a few kills the run is let go.
            while child.try_wait().unwrap().is_none() && attempt < 4 {
                if if by_time { began.elapsed() >= patience } else { records(&journal) >= bytes } {
                    let _ = child.kill();
                    break;
                }
                std::thread::sleep(Duration::from_micros(200));
            }
            let ran = ended(child);
            if let Some(status) = ran.status {
                assert_eq!(status, 0, "seed {seed}, round {round}: {}", ran.stderr);
                continued += u32::from(ran.json()["resumed"] == true);
                break;
            }
            killed += 1;
            // Published or not: what stands under the final name is whole.
            if exists(&place.path(&out)) {
                assert!(place.read(&out) == expected, "seed {seed}, round {round}: half-written");
            }
        }
        assert!(place.read(&out) == expected, "seed {seed}, round {round}: other bytes after {killed} kills");
        // A table that is made from results has, between its creation and its new name, that of a part with a number.
        let is_made = |name: &str| name.rsplit('.').nth(1).is_some_and(|process| process.parse::<u32>().is_ok());
        for name in
            place.names().iter().filter(|name| ending == "tbl" && name.matches('.').count() == 3 && is_made(name))
        {
            place.remove(name);
        }
        assert_eq!(place.names(), [&expected_name[..], &out], "seed {seed}, round {round}");
        place.remove(&out);
    }
    println!("seed {seed}: {killed} kills, {continued} of 5 results from continued runs");
    assert!(killed > 0 && continued > 0, "seed {seed}: {killed} kills, {continued} continued");
}

/// The request with another `--memory`.
fn with_memory(request: &str, memory: &str) -> String {
    let words: Vec<&str> = request.split(' ').collect();
    let at = words.iter().position(|word| *word == "--memory").expect("the request says its memory");
    words.iter().enumerate().map(|(i, word)| if i == at + 1 { memory } else { word }).collect::<Vec<_>>().join(" ")
}

/// Bytes of records in a journal, which follow a text at byte 48 whose length stands at byte 12, and a sum.
fn records(journal: &std::path::Path) -> u64 {
    let bytes = std::fs::read(journal).unwrap_or_default();
    let Some(text) = bytes.get(12..16).and_then(|b| b.try_into().ok()) else { return 0 };
    (bytes.len() as u64).saturating_sub(48 + u64::from(u32::from_le_bytes(text)) + 8)
}

#[test]
fn kill_9_at_any_moment_sgemm() {
    killed_often("sgemm --n 700 --memory 1500KiB", "npy", 1);
}

#[test]
fn kill_9_at_any_moment_saxpy_in_place() {
    killed_often("saxpy --n 1000000 --memory 512KiB", "npy", 2);
}

/// The table is made from stages that lie in no file of the user's; the database is a copy without a name.
#[test]
fn kill_9_at_any_moment_hmmer() {
    killed_often("hmmer --n 6000 --m 60 --memory 512KiB", "tbl", 3);
    killed_often("hmmer --max --n 1500 --m 40 --memory 512KiB", "tbl", 4);
}

fn signal(name: &str, child: &std::process::Child) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{name} {}", child.id())]).status();
    assert!(sent.unwrap().success());
}

/// Starts the request and sends a signal as soon as stores are recorded; starts again where the run was faster.
fn interrupted(place: &Place, request: &str, name: &str) -> Ran {
    for _ in 0..20 {
        let mut child = place.start(request);
        let journal = place.path("c.npy.journal");
        while child.try_wait().unwrap().is_none() {
            if records(&journal) > 256 {
                signal(name, &child);
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let ran = ended(child);
        if ran.status != Some(0) {
            return ran;
        }
        place.remove("c.npy");
    }
    panic!("every run ended before the signal came");
}

#[test]
fn signals_keep_the_journal_and_resume_finishes() {
    let place = Place::new();
    let request = format!("run sgemm --n 900 --memory 1500KiB --machine disk {RECORD_ALL}");
    assert_eq!(place.run(&format!("{request} -o expected.npy")).status, Some(0));
    for name in ["INT", "TERM", "HUP"] {
        let ran = interrupted(&place, &format!("{request} -o c.npy"), name);
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(1), ""), "{name}: {}", ran.stderr);
        assert!(ran.stderr.starts_with("multigrain: ") && ran.stderr.contains("--resume"), "{}", ran.stderr);
        assert_eq!(place.names(), ["c.npy.journal", "c.npy.part", "expected.npy"], "{name}");
        let resumed = place.run(&format!("{request} -o c.npy --resume --json --check")).json();
        assert_eq!(resumed["resumed"], true);
        assert_eq!(place.names(), ["c.npy", "expected.npy"], "{name}");
        assert!(place.read("c.npy") == place.read("expected.npy"), "{name}");
        place.remove("c.npy");
    }
}

#[test]
fn an_interrupted_run_is_begun_again_by_word_alone() {
    let place = Place::new();
    let request = format!("run sgemm --n 900 --memory 1500KiB --machine disk {RECORD_ALL} -o c.npy");
    interrupted(&place, &request, "INT");
    let before = place.names();
    // Nor by a run in memory, which keeps no journal.
    for request in [request.as_str(), "run sgemm --n 900 -o c.npy"] {
        let refused = place.run(request);
        assert_eq!((refused.status, refused.stdout.as_str()), (Some(2), ""), "{}", refused.stderr);
        assert!(refused.stderr.contains("--resume") && refused.stderr.contains("--discard"), "{}", refused.stderr);
        assert_eq!(place.names(), before);
    }
    assert_eq!(place.run(&format!("{request} --resume --discard")).status, Some(2));
    // What was moved for the rest is not held against the bound of all.
    let rest = place.run(&format!("{request} --resume"));
    assert_eq!(rest.status, Some(0), "{}", rest.stderr);
    let edge: Vec<&str> = rest.stdout.lines().find(|line| line.starts_with("disk - ")).unwrap().split("  ").collect();
    let cells: Vec<&str> = edge.into_iter().map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!(cells[4], "-", "{}", rest.stdout);
    assert!(rest.stdout.contains("bytes are of the rest"), "{}", rest.stdout);
    place.remove("c.npy");
    interrupted(&place, &request, "INT");
    let again = place.run(&format!("{request} --discard --json")).json();
    assert_eq!(again["resumed"], false);
    assert_eq!(place.names(), ["c.npy"]);
    // Then there is nothing to continue, and that is said.
    let text = place.run(&format!("{request} --resume"));
    assert_eq!(text.status, Some(0));
    assert!(text.stdout.contains("nothing was there to be continued"), "{}", text.stdout);
    interrupted(&place, &request, "INT");
    assert_eq!(place.run("run sgemm --n 900 -o c.npy --discard").status, Some(0));
    assert_eq!(place.names(), ["c.npy"]);
}

/// What was begun on a disk goes on there, whatever would be chosen for the job by now.
#[test]
fn a_run_that_would_fit_into_memory_by_now_goes_on() {
    let place = Place::new();
    let request = format!("run sgemm --n 900 {RECORD_ALL} -o c.npy");
    interrupted(&place, &format!("{request} --memory 1500KiB"), "INT");
    let resumed = place.run(&format!("{request} --resume --json --check")).json();
    assert_eq!(resumed["resumed"], true);
    assert_eq!(place.names(), ["c.npy"]);
}

#[test]
fn weights_that_were_changed_are_named() {
    let place = Place::new();
    let weights = |first: f32| {
        let mut values = [0.25; 9];
        values[0] = first;
        let file = std::path::absolute(place.path("w.npy")).unwrap();
        multigrain::testing::write_npy(&file, &[3, 3], &values).unwrap();
    };
    weights(0.5);
    let request = format!("run conv2d --n 1500 --kernel w.npy --machine disk --memory 1500KiB {RECORD_ALL} -o c.npy");
    interrupted(&place, &request, "INT");
    weights(0.75);
    let refused = place.run(&format!("{request} --resume"));
    assert_eq!(refused.status, Some(2), "{}", refused.stderr);
    for word in ["its input weights", "w.npy", "holds something else"] {
        assert!(refused.stderr.contains(word), "{}", refused.stderr);
    }
    let other = place.run(&format!("{} --resume", request.replace("w.npy", "box:3")));
    assert!(other.status == Some(2) && other.stderr.contains("made from"), "{}", other.stderr);
    // The same weights again, whatever their time, are what they were.
    weights(0.5);
    let resumed = place.run(&format!("{request} --resume --json"));
    assert_eq!(resumed.status, Some(0), "{}", resumed.stderr);
    assert_eq!(resumed.json()["resumed"], true);
}

#[test]
fn another_request_is_not_continued() {
    let place = Place::new();
    let request = format!("run sgemm --n 900 --machine disk {RECORD_ALL} -o c.npy");
    interrupted(&place, &format!("{request} --memory 1500KiB"), "INT");
    let before = place.names();
    for (other, words) in [("--memory 1500KiB --seed 5", "input A"), ("--memory 1500KiB --n 901", "")] {
        let refused = place.run(&format!("{request} {other} --resume"));
        assert_eq!(refused.status, Some(2), "{other}: {}", refused.stderr);
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
        assert_eq!(place.names(), before, "what could be continued stays");
    }
}

#[test]
fn another_memory_continues_with_the_tile_that_was_begun() {
    let place = Place::new();
    let request = format!("run sgemm --n 900 --machine disk {RECORD_ALL}");
    assert_eq!(place.run(&format!("{request} --memory 1500KiB -o expected.npy")).status, Some(0));
    // In less than the tile needs, each call is a part.
    for memory in ["6MiB", "64MiB", "900KiB", "500KiB"] {
        interrupted(&place, &format!("{request} --memory 1500KiB -o c.npy"), "INT");
        let resumed = place.run(&format!("{request} --memory {memory} -o c.npy --resume --json --check")).json();
        assert_eq!(resumed["resumed"], true, "{memory}");
        assert_eq!(place.names(), ["c.npy", "expected.npy"], "{memory}");
        assert!(place.read("c.npy") == place.read("expected.npy"), "{memory}");
        place.remove("c.npy");
    }
    // A memory that nothing fits into is refused, and nothing is lost by it.
    interrupted(&place, &format!("{request} --memory 1500KiB -o c.npy"), "INT");
    let refused = place.run(&format!("{request} --memory 256KiB -o c.npy --resume"));
    assert_eq!(refused.status, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("--memory"), "{}", refused.stderr);
    let resumed = place.run(&format!("{request} --memory 1500KiB -o c.npy --resume --json")).json();
    assert_eq!(resumed["resumed"], true);
    assert!(place.read("c.npy") == place.read("expected.npy"));
}

#[test]
fn an_old_result_stays_until_the_new_one_is_whole() {
    let place = Place::new();
    let request = format!("run sgemm --n 900 --memory 1500KiB --machine disk {RECORD_ALL} -o c.npy");
    place.write("c.npy", "the old result");
    let mut child = place.start(&request);
    let mut seen = 0;
    while child.try_wait().unwrap().is_none() {
        let bytes = place.read("c.npy");
        assert!(bytes == b"the old result" || bytes.len() > 900 * 900 * 4, "{} bytes", bytes.len());
        seen += u32::from(bytes == b"the old result");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(ended(child).status, Some(0));
    assert!(seen > 0);
    assert_eq!(place.names(), ["c.npy"]);
}

#[test]
fn a_second_signal_ends_at_once() {
    let place = Place::new();
    let mut child = place.start(&format!("run sgemm --n 1200 --memory 1500KiB --machine disk {RECORD_ALL} -o c.npy"));
    while child.try_wait().unwrap().is_none() && !exists(&place.path("c.npy.journal")) {
        std::thread::sleep(Duration::from_millis(1));
    }
    signal("INT", &child);
    while child.try_wait().unwrap().is_none() {
        let _ = Command::new("sh").args(["-c", &format!("kill -INT {} 2>/dev/null", child.id())]).status();
    }
    let ran = ended(child);
    // 1 where the run had ended by itself before the second one came.
    assert!(matches!(ran.status, Some(1 | 130)), "{ran:?}");
    assert!(!exists(&place.path("c.npy")));
}

/// A pipe for a database is not opened before there is a writer, so the command waits among its preparations.
#[test]
fn before_the_run_one_signal_ends_at_once_and_nothing_is_left() {
    let place = Place::new();
    let pipe = place.path("pipe.fa");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    place.write("p.hmm", multigrain_hmmer::generate::profile(1, 5));
    let child = place.start("run hmmer p.hmm pipe.fa -o table --trace run.trace");
    let _writer = std::fs::File::options().write(true).open(&pipe).unwrap();
    signal("INT", &child);
    let ran = ended(child);
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("before the run"), "{}", ran.stderr);
    assert_eq!(place.names(), ["p.hmm", "pipe.fa"]);
}
