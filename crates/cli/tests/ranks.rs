//! The command on ranks that `mpirun` starts: the same bits as alone, one message and one exit status where something is wrong, and
//! an end everywhere when a rank is lost.

use multigrain_mpi::MPIRUN;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// A folder of the launcher's.
const LAUNCHER: &str = "launcher";

/// The command as so many ranks, more than there are cores if need be. Whoever hangs is ended, and has failed.
fn ranks(count: usize, directory: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "120", MPIRUN, "-n", &count.to_string()]).current_dir(directory);
    if is_open_mpi() {
        command.args(["--oversubscribe", "--allow-run-as-root", "--mca", "mpi_yield_when_idle", "1"]);
        // One that ends removes the folder of all launchers while another makes its own there.
        let own = directory.join(LAUNCHER);
        std::fs::create_dir_all(&own).unwrap();
        command.env("OMPI_MCA_orte_tmpdir_base", own);
    }
    command
}

fn is_open_mpi() -> bool {
    let version = Command::new(MPIRUN).arg("--version").output();
    let version = version.unwrap_or_else(|e| panic!("{MPIRUN} cannot be started: {e}"));
    String::from_utf8_lossy(&version.stdout).contains("open-mpi.org")
}

const COMMAND: &str = env!("CARGO_BIN_EXE_multigrain");

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
}

fn run(count: usize, directory: &Path, arguments: &str) -> Output {
    ranks(count, directory).arg(COMMAND).args(words(arguments)).output().unwrap()
}

/// What the command says of itself, apart from what the launcher adds.
fn said(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.lines().filter(|line| line.starts_with("multigrain: ")).map(str::to_owned).collect()
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != LAUNCHER);
    names.sort();
    names
}

#[test]
fn every_application_has_the_bits_of_one_process() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let mut predicted = 0;
    for (arguments, into) in [
        ("saxpy --n 300000", "-o"),
        ("sgemv --n 700", "-o"),
        ("sgemm --n 500", "-o"),
        ("conv2d --n 600", "-o"),
        ("fft3d --n 48", "-o"),
        ("gravity --n 2000 --steps 4", "-o"),
        ("hmmer --max", "--scores"),
    ] {
        let budgets = if arguments.starts_with("hmmer") { ["8MiB", "12MiB"] } else { ["1MiB", "8MiB"] };
        let alone = Command::new(COMMAND)
            .current_dir(at)
            .args(words(&format!("run {arguments} {into} alone.npy --memory 16MiB")))
            .output()
            .unwrap();
        assert!(alone.status.success(), "{arguments}: {}", String::from_utf8_lossy(&alone.stderr));
        let expected = std::fs::read(at.join("alone.npy")).unwrap();
        let cases = [(1, budgets[1]), (2, budgets[0]), (5, budgets[1])];
        let cases = if into == "-o" { &cases[..] } else { &cases[1..2] };
        for &(count, budget) in cases {
            let output = run(
                count,
                at,
                &format!("run {arguments} {into} ranks.npy --memory {budget} --threads 1 --check --json"),
            );
            let told = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success(),
                "{arguments} on {count}: {told}\n{}",
                String::from_utf8_lossy(&output.stderr)
            );
            assert!(said(&output).is_empty(), "{:?}", said(&output));
            let value: serde_json::Value = serde_json::from_str(&told).unwrap_or_else(|e| panic!("{e}: {told}"));
            let reported = value["ranks"].as_array().map_or(1, Vec::len);
            assert_eq!(reported, count, "{told}");
            if count > 1 {
                let seconds = |rank: usize| value["ranks"][rank]["leaf_seconds"].as_f64().unwrap();
                let of = |name: &str| seconds(value[name].as_u64().unwrap() as usize);
                let (fastest, slowest) = (of("fastest_rank"), of("slowest_rank"));
                assert!((0..count).all(|rank| (fastest..=slowest).contains(&seconds(rank))), "{told}");
            }
            // Arrays lie in files where they do not fit into half of the memories, and else in these: what then goes from rank to
            // rank is known beforehand, without any.
            let moved: Vec<u64> = (0..count).filter_map(|rank| value["ranks"][rank]["moved_bytes"].as_u64()).collect();
            if arguments.starts_with("sgemm") && count > 1 {
                assert_eq!(moved.iter().sum::<u64>() > 0, budget == budgets[1], "{told}");
            }
            let asked = format!("plan {arguments} --memory {budget} --threads 1 --ranks {count} --json");
            let planned = Command::new(COMMAND).current_dir(at).args(words(&asked)).output().unwrap();
            let text = String::from_utf8_lossy(&planned.stdout);
            let planned: serde_json::Value =
                serde_json::from_str(&text).unwrap_or_else(|e| panic!("{asked}: {e}: {text}"));
            if let Some(wire) = planned["wire"].as_object() {
                assert_eq!(serde_json::json!(moved), wire["moved_bytes"], "{asked}");
                predicted += moved.iter().sum::<u64>();
            } else {
                assert!(moved.iter().all(|&bytes| bytes == 0), "{asked}: {text}");
            }
            let found = std::fs::read(at.join("ranks.npy")).unwrap();
            assert!(found == expected, "{arguments} on {count} ranks in {budget} has other bits");
            std::fs::remove_file(at.join("ranks.npy")).unwrap();
        }
        assert_eq!(names(at), ["alone.npy"], "{arguments}");
    }
    assert!(predicted > 1 << 20, "{predicted} bytes from rank to rank");
}

/// All ranks together show one bar where the launcher writes to a terminal, and nothing of it elsewhere.
#[test]
fn all_ranks_have_one_bar() {
    if Command::new("script").arg("--version").output().is_err() {
        println!("there is no script (util-linux), which makes terminals: bars are not tested");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let job = "run sgemm --n 700 -o z.npy --threads 1";
    for (count, memory) in [(2, "8MiB"), (3, "1MiB"), (5, "64MiB")] {
        let request = format!("{job} --memory {memory}");
        let without = run(count, at, &request);
        let text = String::from_utf8_lossy(&without.stderr);
        assert!(without.status.success() && !text.contains(['\x1b', '%']), "{text}");
        let plain = ranks(count, at);
        let mut line: Vec<&str> = plain.get_args().map(|word| word.to_str().unwrap()).collect();
        line.insert(0, "timeout");
        line.extend([COMMAND].into_iter().chain(words(&request)));
        let mut shown = Command::new("script");
        shown.args(["-qec", &line.join(" "), "/dev/null"]).current_dir(at).stdin(Stdio::null());
        let output = shown.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
        // What each does alone is a part of it: only all together come to the end, each time in one piece.
        let bars: Vec<&str> = text.split("\x1b[2K").filter(|piece| piece.contains(" elapsed, ")).collect();
        assert!(bars.iter().all(|bar| bar.contains("sgemm") && bar.contains(" left")), "{count}: {bars:?}");
        assert!(bars.iter().any(|bar| bar.contains("100 %")), "{count}: {text:?}");
    }
}

/// Ranks that cannot have each other's memory, though they are of one node or because they are not: in process namespaces of their own, as
/// in containers, and on nodes of different names. The same bits, the same bytes from rank to rank, and no more memory than is given, beside
/// the 16 MiB of any process and what as many ranks take for next to nothing: MPI's own memory differs by version and machine.
#[test]
fn what_cannot_be_mapped_goes_by_messages() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    // Of a column each row is a fragment, so what a transfer takes a fragment would be seen.
    let job = |n: u32| format!("run fft3d --n {n} -o z.npy --memory 48MiB --threads 1 --json");
    let memory = (48 + 16) << 20;
    let uts = "unshare --uts bash -c 'hostname node${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; exec \"$@\"' -";
    let cases =
        [("", "true"), (uts, uts), ("unshare --pid --fork --mount-proc", "unshare --pid --fork --mount-proc true")];
    let mut found: Option<(Vec<u8>, u64)> = None;
    for (within, probe) in cases {
        let probe = if probe == uts { "unshare --uts true" } else { probe };
        if within.contains("--pid") && !is_open_mpi() {
            println!("MPICH does not end in order where processes have numbers of their own: not tested");
            continue;
        }
        if !Command::new("bash").args(["-c", probe]).status().is_ok_and(|status| status.success()) {
            println!("{probe} is not allowed here: ranks within it are not tested");
            continue;
        }
        for count in [2, 3] {
            let executed = |n: u32| -> serde_json::Value {
                let script = format!("exec {within} {COMMAND} {}", job(n));
                let mut command = ranks(count, at);
                // Open MPI's own shared memory goes by process numbers without a look at whose they are (4.1.4: any program crashes).
                command.env("OMPI_MCA_pml", "ob1").env("OMPI_MCA_btl", "self,tcp");
                let output = command.args(["bash", "-c", &script]).output().unwrap();
                let told = String::from_utf8_lossy(&output.stdout);
                assert!(output.status.success(), "{script}: {told} {}", String::from_utf8_lossy(&output.stderr));
                serde_json::from_str(&told).unwrap_or_else(|e| panic!("{e}: {told}"))
            };
            let of = |value: &serde_json::Value, name: &str| {
                value["ranks"].as_array().unwrap().iter().map(|rank| rank[name].as_u64().unwrap()).collect::<Vec<_>>()
            };
            let least = of(&executed(8), "peak_rss_bytes");
            let value = executed(128);
            let peaks = of(&value, "peak_rss_bytes");
            let is_kept = peaks.iter().zip(&least).all(|(peak, least)| *peak <= least + memory);
            assert!(is_kept, "{within} on {count}: {peaks:?} bytes, with next to nothing {least:?}: {value}");
            let moved = of(&value, "moved_bytes").iter().sum::<u64>();
            assert!(moved > 0, "{value}");
            let bytes = std::fs::read(at.join("z.npy")).unwrap();
            if let Some((before, before_moved)) = found.as_ref().filter(|_| count == 2) {
                assert!(*before == bytes, "{within}: other bits");
                assert_eq!(*before_moved, moved, "{within}");
            }
            found = found.or(Some((bytes, moved)));
        }
    }
}

/// A run of several ranks has one trace, of all their workers, with the times and bytes that ranks report; what each has written for it is
/// gone.
#[test]
fn all_ranks_have_one_trace() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let json = |output: Output| -> serde_json::Value {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text} {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
    };
    for (job, count) in [
        ("run sgemm --n 500 -o z.npy --memory 1MiB --threads 2", 3),
        ("run fft3d --n 128 -o z.npy --memory 48MiB --threads 1", 3),
        ("run hmmer --max --scores z.npy --memory 12MiB --threads 1", 2),
    ] {
        let ran = json(run(count, at, &format!("{job} --trace t.trace --json")));
        let traced = json(Command::new(COMMAND).current_dir(at).args(["trace", "t.trace", "--json"]).output().unwrap());
        let workers = traced["workers"].as_array().unwrap();
        assert_eq!((workers.len() as u64, traced["dropped"].as_u64()), (ran["threads"].as_u64().unwrap(), Some(0)));
        let threads = workers.len() / count;
        for rank in 0..count {
            let own: f64 = workers[rank * threads..][..threads]
                .iter()
                .inspect(|worker| assert!(worker["name"].as_str().unwrap().starts_with(&format!("rank {rank} "))))
                .map(|worker| worker["leaf_seconds"].as_f64().unwrap())
                .sum();
            // Each process finds the rate of its clock itself.
            let told = ran["ranks"][rank]["leaf_seconds"].as_f64().unwrap();
            assert!(
                told > 0.0 && (own / told - 1.0).abs() < 0.01,
                "{job}: rank {rank} {own} s, and {told} s in its report"
            );
        }
        for (edge, told) in traced["edges"].as_array().unwrap().iter().zip(ran["edges"].as_array().unwrap()) {
            for bytes in ["bytes_down", "bytes_up"] {
                assert_eq!(edge[bytes], told[bytes], "{job}: {edge}");
            }
        }
        assert!(traced["seconds"].as_f64() >= ran["seconds"].as_f64(), "all of it");
        assert_eq!(names(at), ["t.trace", "z.npy"], "{job}");
        names(at).iter().for_each(|name| std::fs::remove_file(at.join(name)).unwrap());
    }
}

/// What random kills need: numbers that are others in every run, and told.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Bytes of what ranks have recorded since some moment: of a journal's records, which follow a text at byte 48 whose length stands at byte 12, and a sum.
fn recorded(at: &Path, since: SystemTime) -> u64 {
    let journal = |rank: u32| -> Option<u64> {
        let path = at.join(format!("z.npy.journal.{rank}"));
        // Those of an earlier run are there until what they say is written elsewhere.
        if path.metadata().ok()?.created().expect("the file system knows when files were made") < since {
            return None;
        }
        let bytes = std::fs::read(path).ok()?;
        let text = u32::from_le_bytes(bytes.get(12..16)?.try_into().ok()?);
        (bytes.len() as u64).checked_sub(48 + u64::from(text) + 8)
    };
    (0..3).filter_map(journal).max().unwrap_or(0)
}

/// What a block that is kept takes at least: its beginning, its end and a sample of what it holds.
const KEPT: u64 = 3 * 32;

/// A random rank is killed at a random moment, and what is left is continued by other ranks, or alone. `MULTIGRAIN_KILLS=200` kills so often.
#[test]
fn after_a_kill_whoever_resumes_has_the_same_bits() {
    let number = |name: &str| std::env::var(name).ok().and_then(|s| s.parse::<u64>().ok());
    let (kills, seed) = (number("MULTIGRAIN_KILLS").unwrap_or(8), number("MULTIGRAIN_SEED"));
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let seed = seed.unwrap_or_else(now);
    let mut random = Random(seed);
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    // What is done is recorded at once, so that a short run can be killed between many records.
    let jobs =
        ["sgemm --n 2000 --memory 4MiB", "fft3d --n 144 --memory 2MiB", "gravity --n 6000 --steps 4 --memory 300KiB"]
            .map(|job| format!("run {job} -o z.npy --threads 1 --journal-interval 0s --json"));
    let expected = jobs.clone().map(|job| {
        let alone = Command::new(COMMAND).current_dir(at).args(words(&job)).output().unwrap();
        assert!(alone.status.success(), "{}", String::from_utf8_lossy(&alone.stderr));
        let bytes = std::fs::read(at.join("z.npy")).unwrap();
        std::fs::remove_file(at.join("z.npy")).unwrap();
        bytes
    });
    let (mut killed, mut results, mut continued, mut had_to) = (0, 0, 0, 0);
    while killed < kills {
        let which = results % jobs.len();
        let job = &jobs[which];
        let mut what = format!("seed {seed}, {job}");
        let mut is_kept = false;
        for attempt in 0..3 {
            let count = 1 + random.below(3) as usize;
            let request = format!("{job} {}", if attempt > 0 { "--resume" } else { "" });
            let output = match attempt {
                2 if random.below(4) == 0 => {
                    Command::new(COMMAND).current_dir(at).args(words(&request)).output().unwrap()
                }
                2 => run(count, at, &request),
                _ => {
                    let count = count.max(2);
                    let mut launcher = ranks(count, at);
                    if random.below(4) > 0 {
                        // Open MPI's asks the others to end, and gives them time, if it is not told to kill them too.
                        launcher.env("OMPI_MCA_odls_base_sigkill_timeout", "0");
                    }
                    let began = SystemTime::now();
                    let (mut child, processes) = started(at, launcher, count, &request);
                    // Now and then at any moment, mostly when there is something that must be kept.
                    let by_time = if attempt == 0 { results % 4 == 3 } else { random.below(2) == 0 };
                    let (moment, bytes) = (Duration::from_millis(random.below(1500)), KEPT + 32 * random.below(20));
                    let rank = random.below(count as u64) as usize;
                    let mut found = 0;
                    let is_killed = loop {
                        if child.try_wait().unwrap().is_some() {
                            break false;
                        }
                        found = recorded(at, began);
                        if if by_time { began.elapsed().unwrap() >= moment } else { found >= bytes } {
                            signal(processes[rank], libc::SIGKILL);
                            break true;
                        }
                        std::thread::sleep(Duration::from_micros(200));
                    };
                    let after = began.elapsed().unwrap();
                    let output = child.wait_with_output().unwrap();
                    gone(&processes);
                    if is_killed && !output.status.success() {
                        assert!(
                            output.status.code() != Some(124),
                            "{what}: {}",
                            String::from_utf8_lossy(&output.stderr)
                        );
                        what += &format!("; rank {rank} of {count} killed after {after:?}, {found} bytes of records");
                        killed += 1;
                        is_kept |= found >= KEPT;
                        if at.join("z.npy").exists() {
                            assert!(
                                std::fs::read(at.join("z.npy")).unwrap() == expected[which],
                                "{what}: half-written"
                            );
                            is_kept = false;
                        }
                        continue;
                    }
                    output
                }
            };
            let told = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{what}: {told} {}", String::from_utf8_lossy(&output.stderr));
            let value: serde_json::Value =
                serde_json::from_str(&told).unwrap_or_else(|e| panic!("{what}: {e}: {told}"));
            let went_on = value["resumed"] == true;
            assert!(went_on || !is_kept, "{what}: what was kept was not continued: {told}");
            results += 1;
            continued += usize::from(went_on);
            had_to += usize::from(is_kept);
            break;
        }
        assert!(std::fs::read(at.join("z.npy")).unwrap() == expected[which], "{what}: other bits");
        std::fs::remove_file(at.join("z.npy")).unwrap();
        // Of a first rank that is killed before it has told the others of files without names these stay.
        let left: Vec<String> = names(at).into_iter().filter(|name| name.starts_with("z.npy")).collect();
        assert_eq!(left, [""; 0], "{what}");
    }
    println!(
        "seed {seed}: {killed} kills, {results} results, {continued} of them from continued runs, as {had_to} had to be"
    );
    assert!(2 * continued > results, "seed {seed}: {continued} of {results} results from continued runs");
}

/// A shell command that differs between the first rank and the others.
fn differing(first: &str, others: &str) -> String {
    format!("if [ \"${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}\" = 0 ]; then {first}; else {others}; fi")
}

#[test]
fn what_is_wrong_is_told_once_and_ends_all() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let made = run(1, at, "run saxpy --n 5000 -o x.npy --memory 4MiB");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    std::fs::create_dir(at.join("elsewhere")).unwrap();
    let command = |arguments: &str| format!("exec {COMMAND} {arguments}");
    let go = "run saxpy x.npy x.npy -o y.npy --memory 4MiB";
    let cases = [
        (command(&format!("{go} --trace x.npy")), "x.npy"),
        (
            differing(
                &command(&format!("{go} --trace t")),
                &format!("cd elsewhere; {}", command(&format!("{go} --trace t"))),
            ),
            "cannot open x.npy",
        ),
        (command("run saxpy missing.npy x.npy -o y.npy"), "cannot open missing.npy"),
        (command("run saxpy --nonsense"), "unexpected argument"),
        (command("machine"), "do nothing else"),
        (command("plan saxpy"), "do nothing else"),
        (command(&format!("{go} --machine local")), "no disk"),
        (command("run sgemm --n 3000 -o y.npy --memory 257KiB"), "give dram at least"),
        (differing(&command(go), &command(&format!("{go} --check"))), "has not the same arguments as rank 0"),
        (differing(&command(go), &format!("cd elsewhere; {}", command(go))), "cannot open x.npy"),
        (
            differing(&format!("cp {COMMAND} other; echo >> other; exec ./other {go}"), &command(go)),
            "has not the same program file as rank 0",
        ),
    ];
    for (script, expected) in cases {
        let output = ranks(3, at).args(["bash", "-c", &script]).output().unwrap();
        let said = said(&output);
        let all = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.len(), 1, "{script}: {all}");
        assert!(said[0].contains(expected), "{script}: {all}");
        assert_eq!(output.status.code(), Some(2), "{script}: {all}");
        let _ = std::fs::remove_file(at.join("other"));
        assert_eq!(names(at), ["elsewhere", "x.npy"], "{script}");
    }
}

/// A run that takes some time.
fn long(at: &Path, count: usize, memory: &str) -> (Child, Vec<u32>) {
    started(at, ranks(count, at), count, &format!("run sgemm --n 6000 -o z.npy --memory {memory} --threads 1"))
}

/// A run, and the processes of its ranks once all have come out of the start of MPI, unless it has ended before. Open MPI's launcher (4.1,
/// PMIx 4.2) may hang for ever when a rank is killed while it connects to it, also with programs that are not ours.
fn started(at: &Path, mut command: Command, count: usize, arguments: &str) -> (Child, Vec<u32>) {
    let variable = if is_open_mpi() { "OMPI_COMM_WORLD_RANK" } else { "PMI_RANK" };
    // Each rank leaves its number as a file's name and its process in it, and becomes the command.
    (0..count).for_each(|rank| drop(std::fs::remove_file(at.join(format!("pid.{rank}")))));
    let script = format!("echo $$ > pid.${variable}; exec {COMMAND} {arguments}");
    command.args(["bash", "-c", &script]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let process = |rank: usize| -> Option<u32> {
        std::fs::read_to_string(at.join(format!("pid.{rank}"))).ok()?.trim().parse().ok()
    };
    let processes = (0..count).map(|rank| until(&mut child, || process(rank)).unwrap_or(0)).collect::<Vec<_>>();
    assert!(!processes.contains(&0), "{}", String::from_utf8_lossy(&child.wait_with_output().unwrap().stderr));
    for &process in &processes {
        until(&mut child, || has_mpi(process).then_some(()));
    }
    (child, processes)
}

/// Waits until there is something, or a run has ended; what runs too long is ended from outside.
fn until<T>(child: &mut Child, mut there: impl FnMut() -> Option<T>) -> Option<T> {
    loop {
        let has_ended = child.try_wait().unwrap().is_some();
        let found = there();
        if found.is_some() || has_ended {
            return found;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether a rank has come out of the start of MPI: its thread that calls MPI has another name since.
fn has_mpi(process: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return false };
    let name = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
    threads.flatten().any(|thread| name(thread).trim() == "mpi")
}

fn signal(process: u32, signal: i32) {
    // SAFETY: asks the kernel to signal a process of this test's, which its launcher has not waited for.
    unsafe { libc::kill(process as i32, signal) };
}

/// Launchers end what is left: none of these is there much longer.
fn gone(processes: &[u32]) {
    let began = Instant::now();
    let is_there = |process: &&u32| {
        let of = Path::new("/proc").join(process.to_string()).join("exe");
        of.read_link().is_ok_and(|exe| exe == Path::new(COMMAND))
    };
    while let Some(process) = processes.iter().find(is_there) {
        if began.elapsed() > Duration::from_secs(30) {
            processes.iter().filter(is_there).for_each(|&process| signal(process, libc::SIGKILL));
            panic!("process {process} is there 30 seconds after its launcher's end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_rank_that_is_lost_ends_the_run_everywhere() {
    // Killed or stopped, the first rank and another, in preparing and in running, with arrays in files and in the ranks' memories.
    let (in_files, in_memories) = ("32MiB", "512MiB");
    for (sent, rank, begun, memory) in [
        (libc::SIGKILL, 0, false, in_files),
        (libc::SIGKILL, 1, true, in_memories),
        (libc::SIGKILL, 0, true, in_files),
        (libc::SIGSTOP, 1, true, in_memories),
        (libc::SIGSTOP, 0, true, in_files),
        (libc::SIGTERM, 1, true, in_files),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let (mut child, processes) = long(at, 3, memory);
        if begun {
            until(&mut child, || at.join("z.npy.part").exists().then_some(()));
        }
        signal(processes[rank], sent);
        let output = child.wait_with_output().unwrap();
        let all = String::from_utf8_lossy(&output.stderr);
        // 124: it had to be ended from outside.
        assert!(!output.status.success() && output.status.code() != Some(124), "{sent} to {rank}: {all}");
        assert!(!at.join("z.npy").exists(), "{sent} to {rank}: published");
        if sent == libc::SIGSTOP {
            assert!(
                all.contains(&format!("rank {rank} on node")) && all.contains("answers no more"),
                "{sent} to {rank}: {all}"
            );
            signal(processes[rank], libc::SIGKILL);
        }
        gone(&processes);
    }
}

#[test]
fn a_full_disk_on_one_rank_ends_all() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let (mut child, processes) = long(at, 3, "32MiB");
    let journal = || std::fs::metadata(at.join("z.npy.journal.1")).is_ok_and(|journal| journal.len() > 0);
    until(&mut child, || journal().then_some(()));
    // What this rank writes beyond a limit on files is refused from now on.
    let limit = libc::rlimit { rlim_cur: 1, rlim_max: 1 };
    // SAFETY: sets a limit of another process, and reads the limit that is given.
    let set = unsafe { libc::prlimit(processes[1] as i32, libc::RLIMIT_FSIZE, &raw const limit, std::ptr::null_mut()) };
    assert_eq!(set, 0);
    let output = child.wait_with_output().unwrap();
    let all = String::from_utf8_lossy(&output.stderr);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{all}");
    assert_eq!(said.len(), 1, "{all}");
    assert!(said[0].contains("rank 1 on node") && said[0].contains("File too large"), "{all}");
    // What others have done is kept, if they had come to do anything.
    let left: Vec<String> = names(at).into_iter().filter(|name| !name.starts_with("pid")).collect();
    assert_eq!(left.is_empty(), !said[0].contains("--resume"), "{left:?}: {all}");
    assert!(!at.join("z.npy").exists());
}
