//! `--observe`: what the operating system did with the workers, in the trace of a run beside another program.

#![cfg(target_os = "linux")]

use crate::support;

use std::process::{Child, Command};
use support::Place;

/// A program that computes for ever, until this is dropped.
struct Busy(Child);

impl Busy {
    fn begin() -> Busy {
        Busy(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Binds this thread, and what it starts from now on, to the first processor that it may use.
fn bind_to_one_processor() {
    // SAFETY: a set of processors is plain data, for which zeros mean none.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes to a set of this size.
    assert_eq!(unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) }, 0);
    // SAFETY: the numbers are within the set.
    let first =
        (0..libc::CPU_SETSIZE as usize).find(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).expect("a processor");
    // SAFETY: the set is this function's own, and the number is within it.
    unsafe {
        libc::CPU_ZERO(&mut set);
        libc::CPU_SET(first, &mut set);
    }
    // SAFETY: the call reads a set of this size.
    assert_eq!(unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) }, 0);
}

#[test]
fn beside_a_busy_program_a_worker_is_seen_to_be_set_aside_for_it() {
    bind_to_one_processor();
    let place = Place::new();
    let busy = Busy::begin();
    let ran = place.run("run sgemm --n 1200 --threads 1 --trace run.trace --observe");
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    // By what it was observed is said, and how more could be known.
    assert!(ran.stderr.contains("--observe: "), "{}", ran.stderr);
    let told = place.run("trace run.trace --json").json();
    let kernel = &told["kernel"];
    let source = kernel["source"].as_str().expect("a source");
    let worker = &kernel["workers"][0];
    assert!(worker["preempted"].as_u64() > Some(0), "{source}: {told}");
    let text = place.run("trace run.trace").stdout;
    assert!(
        text.contains("by the operating system") && text.contains("its clock and that of the records agree"),
        "{text}"
    );
    if source.starts_with("processors") {
        // Among whatever else this computer has to do on that processor.
        let shell = format!("sh ({})", busy.0.id());
        let by = worker["set_aside_for"].as_array().unwrap();
        assert!(by.iter().any(|by| by["who"] == *shell && by["seconds"].as_f64() > Some(0.0)), "{told}");
        let stalls = told["stalls"].as_array().unwrap();
        let is_told = |stall: &serde_json::Value| stall["cause"] == "set aside" && stall["set_aside"] == true;
        assert!(stalls.iter().any(is_told), "{told}");
    } else {
        eprintln!("for whom was not looked at: {source} is what this system allows");
    }
    for format in ["perfetto", "paraver", "html"] {
        let ran = place.run(&format!("trace run.trace --to {format}"));
        assert_eq!(ran.status, Some(0), "{format}: {}", ran.stderr);
    }
}

/// It is entered with the memory that its source takes: where it takes a ring for each worker, and there is no room, it is named.
#[test]
fn many_workers_take_no_more_than_their_source() {
    let place = Place::new();
    let ran = place.run("run sgemm --n 700 --memory 32MiB --threads 64 --trace run.trace --observe");
    assert!(ran.status == Some(0) || ran.status == Some(2) && ran.stderr.contains("--observe"), "{}", ran.stderr);
}

#[test]
fn without_a_trace_there_is_nothing_to_add_to() {
    let place = Place::new();
    let ran = place.run("run saxpy --n 1000 --observe");
    assert_eq!(ran.status, Some(2));
    assert!(ran.stderr.contains("--trace"), "{}", ran.stderr);
}

/// A trace that was not asked for this has nothing of it.
#[test]
fn a_trace_without_it_says_nothing_of_the_system() {
    let place = Place::new();
    assert_eq!(place.run("run saxpy --n 1000 --trace run.trace").status, Some(0));
    assert!(place.run("trace run.trace --json").json()["kernel"].is_null());
    assert!(!place.run("trace run.trace").stdout.contains("operating system"));
}

/// It is an option of every application: none has another of this name.
#[test]
fn every_application_takes_it() {
    let place = Place::new();
    for app in ["saxpy", "sgemv", "sgemm", "conv2d", "fft3d", "gravity", "hmmer"] {
        let ran = place.run(&format!("run {app} --help"));
        assert_eq!(ran.status, Some(0), "{app}: {}", ran.stderr);
        assert!(ran.stdout.contains("--observe"), "{app}");
    }
}
