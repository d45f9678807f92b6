//! What users met: names that are links, files that are protected, options that contradict each other, inputs that change,
//! pictures larger than the memory.

use crate::support;

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use support::Place;

fn refused(place: &Place, arguments: &str, parts: &[&str]) {
    let ran = place.run(arguments);
    assert_eq!(ran.status, Some(2), "{arguments}: {}", ran.stderr);
    for part in parts {
        assert!(ran.stderr.contains(part), "{arguments}: no \"{part}\" in {}", ran.stderr);
    }
}

#[test]
fn a_result_goes_where_its_link_leads() {
    let place = Place::new();
    std::fs::create_dir(place.path("far")).unwrap();
    for (name, arguments) in [
        ("y.npy", "run saxpy --n 100 -o y.npy"),
        ("d.npy", "run saxpy --n 100 --machine disk -o d.npy"),
        ("p.png", "run conv2d --n 20 -o p.png"),
        ("h.txt", "run hmmer --n 20 --m 20 -o h.txt"),
        ("t.trace", "run saxpy --n 100 --trace t.trace"),
    ] {
        symlink(format!("far/{name}"), place.path(name)).unwrap();
        for _ in 0..2 {
            let ran = place.run(arguments);
            assert_eq!(ran.status, Some(0), "{arguments}: {}", ran.stderr);
            assert!(std::fs::symlink_metadata(place.path(name)).unwrap().is_symlink(), "{arguments}");
            assert!(place.path(&format!("far/{name}")).is_file(), "{arguments}");
        }
    }
}

#[test]
fn a_protected_result_is_kept() {
    let place = Place::new();
    for (name, arguments) in [
        ("y.npy", "run saxpy --n 100 -o y.npy"),
        ("p.png", "run conv2d --n 20 -o p.png"),
        ("e.npy", "run gravity --n 20 --steps 2 --energies e.npy"),
        ("h.txt", "run hmmer --n 20 --m 20 --max --scores h.txt"),
        ("t.trace", "sim saxpy --n 100 --trace t.trace"),
        ("m.toml", "machine --assumed -o m.toml"),
    ] {
        place.write(name, "kept");
        let mut permissions = std::fs::metadata(place.path(name)).unwrap().permissions();
        permissions.set_readonly(true);
        std::fs::set_permissions(place.path(name), permissions).unwrap();
        refused(&place, arguments, &[name, "write-protected"]);
        assert_eq!(place.read(name), b"kept", "{arguments}");
    }
}

#[test]
fn sizes_beside_files_that_tell_their_own_are_not_ignored() {
    let place = Place::new();
    place.write_f32("a.npy", &[4, 6], &[1.0; 24]);
    place.write_f32("b.npy", &[6, 3], &[1.0; 18]);
    place.write_f32("x.npy", &[6], &[1.0; 6]);
    refused(&place, "run saxpy x.npy x.npy --n 5", &["--n 5", "x.npy", "6"]);
    refused(&place, "run sgemv a.npy x.npy --m 5", &["--m 5", "a.npy is 4 x 6"]);
    refused(&place, "run sgemm a.npy b.npy --n 5", &["--n 5", "b.npy is 6 x 3"]);
    refused(&place, "run sgemm a.npy b.npy --k 5", &["--k 5", "a.npy is 4 x 6"]);
    refused(&place, "run conv2d a.npy --n 5", &["--n 5", "a.npy is 4 x 6"]);
    refused(&place, "run hmmer a.hmm b.fa --n 5", &["--n"]);
    // What agrees is no contradiction.
    assert_eq!(place.run("run sgemm a.npy b.npy --m 4 --k 6 --n 3").status, Some(0));
    assert_eq!(place.run("run conv2d a.npy --m 4 --n 6").status, Some(0));
}

#[test]
fn names_that_promise_another_format_are_refused() {
    let place = Place::new();
    for arguments in ["run conv2d --n 20 -o o.jpg", "run saxpy --n 20 -o o.csv", "run gravity --n 20 --steps 1 -o o.h5"]
    {
        refused(&place, arguments, &["o.", ".npy"]);
    }
    assert!(place.names().is_empty(), "{:?}", place.names());
}

#[test]
fn a_trace_replaces_nothing_that_is_read_or_kept() {
    let place = Place::new();
    assert_eq!(place.run("run saxpy --n 1000 --threads 1 --trace r.trace").status, Some(0));
    let before = place.read("r.trace");
    refused(&place, "sim saxpy --n 1000 --threads 1 --trace r.trace --compare r.trace", &["would replace", "r.trace"]);
    refused(&place, "sim saxpy --n 1000 --threads 1 --trace ./r.trace --compare r.trace", &["would replace"]);
    assert!(place.read("r.trace") == before);
    for taken in
        ["o.npy.part", "./o.npy.part", "o.npy.journal", "o.npy.twin.part", "o.npy.journal.new", "o.npy.journal.3"]
    {
        refused(&place, &format!("run saxpy --n 1000 -o o.npy --trace {taken}"), &["the trace would replace"]);
        refused(&place, &format!("sim saxpy --n 1000 -o o.npy --trace {taken}"), &["the trace would replace"]);
    }
}

#[test]
fn a_bare_size_is_one_of_bytes() {
    let place = Place::new();
    let json = place.run("run saxpy --n 1000 --machine disk --memory 2000000 --json").json();
    assert_eq!(json["memory_budget_bytes"], 2_000_000);
}

#[test]
fn an_input_that_changes_meanwhile_fails_the_run() {
    let place = Place::new();
    place.write_f32("a.npy", &[500, 500], &[1.0; 250_000]);
    place.write_f32("b.npy", &[500, 500], &[1.0; 250_000]);
    let over = AtomicBool::new(false);
    let ran = std::thread::scope(|scope| {
        scope.spawn(|| {
            let file = std::fs::File::options().write(true).open(place.path("a.npy")).unwrap();
            // Relaxed: it says nothing but that it is over.
            while !over.load(Ordering::Relaxed) {
                file.set_modified(SystemTime::now()).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let ran = place.run("run sgemm a.npy b.npy -o c.npy");
        over.store(true, Ordering::Relaxed);
        ran
    });
    assert_eq!(ran.status, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("a.npy changed while the run read it"), "{}", ran.stderr);
}

#[test]
fn a_picture_that_memory_does_not_hold_takes_no_more_than_was_given() {
    let place = Place::new();
    assert_eq!(place.run("run conv2d --n 1800 --kernel box:1 -o in.png").status, Some(0));
    let json = place.run("run conv2d in.png --kernel box:3 --memory 4MiB --border nearest -o out.png --json").json();
    let peak = json["after"]["peak_rss_bytes"].as_u64().unwrap();
    // 12 MiB of samples, and as many of the result.
    // What the process takes for itself is its code too, of which there is more without optimisation.
    let own = if cfg!(debug_assertions) { 24 } else { 16 };
    assert!(peak <= (4 + own) << 20, "{} KiB", peak >> 10);
    assert_eq!(place.names(), ["in.png", "out.png"]);
    // Rows so long that few fit: as many as there is room for are written at once, and what cannot be is refused before the work.
    place.remove("in.png");
    place.remove("out.png");
    let long = |memory: &str| place.run(&format!("run conv2d --m 3 --n 2000000 --memory {memory} -o long.png --json"));
    let refused = long("1MiB");
    assert_eq!(refused.status, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("writing long.png after the run (24 MB in all)"), "{}", refused.stderr);
    assert!(place.names().is_empty());
    let peak = long("24MiB").json()["after"]["peak_rss_bytes"].as_u64().unwrap();
    assert!(peak <= (24 + own) << 20, "{} KiB", peak >> 10);
}

/// Nobody writes into the pipe, and nobody waits for that.
#[test]
fn a_pipe_where_a_run_keeps_its_own_is_refused() {
    for name in ["o.npy.journal", "o.npy.part"] {
        for request in ["run saxpy --n 100000 -o o.npy", "run saxpy --n 100000 -o o.npy --machine disk --memory 1MiB"] {
            let place = Place::new();
            assert!(std::process::Command::new("mkfifo").arg(place.path(name)).status().unwrap().success());
            let ran = place.run(request);
            assert!(matches!(ran.status, Some(1 | 2)) && ran.stderr.contains(name), "{request}: {ran:?}");
            assert_eq!(place.names(), [name]);
        }
    }
}
