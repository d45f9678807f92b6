//! Every application stays below its budget plus 16 MiB, the process itself included, whatever it keeps, checks, draws or
//! refuses.

use crate::support;

use std::process::Child;
use support::{Place, ended};

/// What a process may take beside its budget.
const BESIDE_BYTES: u64 = 16 << 20;

/// Of that, what its code takes (the smallest run of a release build has a peak of 10.8 to 11.1 MiB). Without optimisation it takes more: what
/// it does is allowed.
const CODE_BYTES: u64 = 11 << 20;

/// Application and options, machine, budget in MiB, exit status. Data of several times the budget with what is allowed beside
/// it, or tables, sums, rows, pictures or lists of calls that are as large.
const JOBS: &[(&str, &str, u64, i32)] = &[
    ("saxpy --n 2500000 --check", "disk", 1, 0),
    ("saxpy --n 2500000", "disk+local", 4, 0),
    // As many sums as elements; a vector as long as the matrix.
    ("sgemv --n 1 --m 3000000 --check", "disk", 1, 0),
    ("sgemv --n 3000000 --m 1 --check", "disk", 1, 0),
    ("sgemv --n 3000 --m 2500", "disk+local", 4, 0),
    ("sgemm --n 1000 --check", "disk", 1, 0),
    ("sgemm --n 1500", "disk+local", 4, 0),
    // Rows of 1.2 MB; many weights.
    ("conv2d --m 20 --n 300000 --check", "disk", 1, 0),
    ("conv2d --n 900 --kernel box:31 --check", "disk", 1, 0),
    ("conv2d --n 300 --kernel box:701 --check", "disk", 6, 0),
    ("conv2d --n 1900", "disk+local", 1, 0),
    // A sum for each of many lines; stacks of many threads.
    ("fft3d --shape 400,400,8 --check --threads 16", "disk", 1, 0),
    // Of a long prime length, whose check has no room.
    ("fft3d --shape 2,2,100003 --check", "disk", 17, 2),
    ("fft3d --shape 2,2,100003 --check", "disk", 40, 0),
    // Weights of one long line, and their transforms.
    ("fft3d --shape 1,1,1594323 --check", "disk", 90, 2),
    ("fft3d --shape 1,1,1594323 --check", "disk", 108, 0),
    ("fft3d --shape 1,1594323,1 --check", "disk", 108, 0),
    ("fft3d --shape 1594323,1,1 --check", "disk", 96, 0),
    ("fft3d --n 160", "disk+local", 4, 0),
    ("gravity --n 8000 --steps 8", "disk+local", 4, 0),
    ("gravity --n 20000 --steps 1 --check", "disk", 1, 0),
    ("gravity --n 20000 --steps 1 --picture orbits.png", "disk", 1, 0),
    ("gravity --n 1000000 --steps 1", "disk", 2, 2),
    // Workers take room themselves.
    ("gravity --n 2048 --steps 2 --threads 1000", "disk", 1, 2),
    ("gravity --n 2048 --steps 2 --threads 1000", "disk", 40, 0),
    // Splits that are free are made to be looked at, for many children.
    ("gravity --n 6000 --steps 5 --threads 64", "disk", 1, 0),
    ("hmmer --n 200000 --m 60 -o hits", "disk", 1, 0),
    ("hmmer --n 400000 --m 60", "disk", 1, 2),
    ("hmmer --n 240000 --m 5", "disk", 1, 0),
    ("hmmer --n 100000 --m 5 --check", "disk", 1, 0),
    ("hmmer --n 200000 --m 5", "disk+local", 2, 0),
    ("hmmer --n 1000000 --m 5", "disk", 1, 2),
    // Many hits, and more than memory holds: of some that is known when they are found.
    ("hmmer --max --n 4000 --m 5 -E 1e9 -o table --check", "disk", 1, 0),
    ("hmmer --max --n 60000 --m 5 -E 1e9 -o many", "disk", 1, 1),
    // A sequence, a line and a few rows of a picture that are longer than memory.
    ("hmmer p.hmm longest.fa -o table", "disk", 1, 2),
    ("hmmer p.hmm line.fa -o table", "disk", 1, 2),
    ("conv2d wide.png --kernel box:1 -o out.png", "disk", 1, 2),
    ("conv2d --m 300 --n 250 --kernel gaussian:999", "disk", 1, 2),
];

/// Less than what any process takes: it had ended before it was looked at.
const SEEN_BYTES: u64 = 1 << 20;

/// The peak of a process; of one that may end before it is looked at, of several runs the first that is seen.
fn watched(start: &dyn Fn() -> Child, expected: i32) -> u64 {
    let mut peaks = std::iter::repeat_with(|| watched_once(start(), expected)).take(20);
    peaks.find(|peak| *peak > SEEN_BYTES).expect("one of twenty runs is seen")
}

/// Looks at the peak of a process as long as it lives: it only grows, so little is missed.
fn watched_once(child: Child, expected: i32) -> u64 {
    let status = format!("/proc/{}/status", child.id());
    let (sender, receiver) = std::sync::mpsc::channel();
    let watcher = std::thread::spawn(move || {
        let mut peak = 0;
        while receiver.try_recv().is_err() {
            let text = std::fs::read_to_string(&status).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
            peak = line.trim().trim_end_matches(" kB").parse::<u64>().map_or(peak, |kib| peak.max(1024 * kib));
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        peak
    });
    let ran = ended(child);
    assert_eq!(ran.status, Some(expected), "{}", ran.stderr);
    sender.send(()).expect("the watcher waits for this");
    watcher.join().expect("the watcher looked")
}

#[test]
fn every_application_keeps_to_its_budget() {
    let place = Place::new();
    assert_eq!(place.run("run conv2d --m 3 --n 4000000 --kernel box:1 -o wide.png").status, Some(0));
    place.write("p.hmm", multigrain_hmmer::generate::profile(1, 6));
    place.write("longest.fa", format!(">a\n{}", format!("{}\n", "ACDEFGHIKL".repeat(100)).repeat(60_000)));
    place.write("line.fa", format!(">a {}\nMKV\n", "x".repeat(60_000_000)));
    // How much of its code is resident differs from run to run, since the system reads files ahead: the most of several.
    let smallest = || watched(&|| place.start("run saxpy --n 1000 --machine disk --memory 1MiB"), 0);
    let least = (0..5).map(|_| smallest()).max().expect("five runs");
    let beside = BESIDE_BYTES + least.saturating_sub(CODE_BYTES);
    let mut over = Vec::new();
    for &(job, machine, budget, status) in JOBS {
        let request = format!("run {job} --machine {machine} --memory {budget}MiB");
        let peak = watched(&|| place.start(&request), status);
        let limit = (budget << 20) + beside;
        eprintln!("{request}: {:.1} of {:.1} MiB", peak as f64 / 1048576.0, limit as f64 / 1048576.0);
        if peak > limit {
            over.push(request);
        }
    }
    assert!(over.is_empty(), "{over:?}");
}
