//! Several ranks execute one run together: here each is a thread of one process, whose messages are calls. Random programs on 1 to 5
//! ranks give the bytes of sequential execution; what differs between ranks, or fails on one, ends on all.

use multigrain::prelude::*;
use multigrain::ranks::{Link, Ranks};
use multigrain::rooms::machine::{Driver, Edge, Memory, MemoryId, Processor, ProcessorKind};
use multigrain::rooms::plan::check::{check, edge_rules};
use multigrain::rooms::plan::testing::{Combine, Rng, Scale, random_bytes, random_program, random_steps};
use multigrain::rooms::plan::{Op, PlanError};
use multigrain::rooms::program::ArrayDecl;
use multigrain::rooms::store::faults::{Count, Faults, Operation, OperationKind, Verdict};
use multigrain::testing::{TEST_BUFFER_BYTES, initial_bytes};
use multigrain::{MachineChoice, Sink};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The ranks of one process; a message is a call.
#[derive(Clone, Default)]
struct Here(Arc<OnceLock<Vec<Arc<Ranks>>>>);

struct From {
    rank: usize,
    all: Here,
}

impl Link for From {
    fn send(&self, to: usize, message: Vec<u8>) {
        self.all.0.get().unwrap()[to].deliver(self.rank, &message);
    }
}

fn ranks(count: usize) -> Vec<Arc<Ranks>> {
    let all = Here::default();
    let nodes: Vec<String> = (0..count).map(|rank| format!("node{}", rank / 2)).collect();
    let one = |rank| Ranks::new(rank, nodes.clone(), Box::new(From { rank, all: all.clone() }));
    all.0.get_or_init(|| (0..count).map(one).collect()).clone()
}

/// Executes on as many ranks at the same time; what each gives, in their order.
fn on_ranks<T: Send>(count: usize, one: impl Fn(Arc<Ranks>) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = ranks(count).into_iter().map(|rank| scope.spawn(|| one(rank))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn machine(directory: &Path, dram_bytes: u64, cores: usize) -> Machine {
    let disk = Memory { path: Some(directory.to_owned()), ..Memory::root("disk", 1 << 40) };
    let capacity = dram_bytes + TEST_BUFFER_BYTES;
    let dram = Memory::child("dram", MemoryId(0), 1, capacity, Edge::new(Driver::DISK, 2e9, 8e4));
    let processor =
        Processor { kind: ProcessorKind::Cpu, flops_per_second: 1e9, call_overhead_ns: 100.0, code_bytes: 0 };
    let core = Memory::child("core", MemoryId(1), cores, capacity, Edge::new(Driver::SHARED, 2e10, 100.0));
    Machine::new("test", "A disk and a memory.", vec![disk, dram, core.with_processor(processor)]).unwrap()
}

fn options(ranks: &Arc<Ranks>, machine: &Machine, seed: u64) -> Options {
    Options {
        machine: MachineChoice::Given(Box::new(machine.clone())),
        ranks: Some(Arc::clone(ranks)),
        disk_buffer_bytes: Some(TEST_BUFFER_BYTES),
        listed_max: [None, None, Some(5)][seed as usize % 3],
        ..Options::default()
    }
}

fn runtime(ranks: &Arc<Ranks>, machine: &Machine, seed: u64) -> Runtime {
    Runtime::new(options(ranks, machine, seed)).unwrap()
}

/// A random job whose inputs come from files in a folder, if there is one, and else from memory.
fn job(seed: u64, directory: &Path, inputs: Option<&Path>) -> Job {
    let program = if seed.is_multiple_of(4) { random_steps(seed) } else { random_program(seed) };
    let bytes = random_bytes(&program, seed);
    let mut job = Job::new("random", program);
    for (i, (decl, content)) in job.arrays().to_vec().iter().zip(bytes).enumerate() {
        if matches!(decl.role, Role::Input | Role::InOut) {
            let source = match inputs {
                Some(folder) => {
                    let path = folder.join(format!("{i}.in"));
                    std::fs::write(&path, content).unwrap();
                    Source::Raw(path)
                }
                None => Source::Bytes(content),
            };
            job = job.with_source(i, source);
        }
        if goes_to_file(decl, seed, i) {
            job = job.with_sink(i, Sink::Raw(directory.join(format!("{i}.bin"))));
        }
    }
    job
}

fn goes_to_file(decl: &ArrayDecl, seed: u64, array: usize) -> bool {
    matches!(decl.role, Role::Output | Role::InOut) && !(seed + array as u64).is_multiple_of(3)
}

fn names(directory: &Path) -> Vec<String> {
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn random_programs_give_the_bytes_of_sequential_execution() {
    let number = |name: &str| std::env::var(name).ok().and_then(|s| s.parse::<u64>().ok());
    let (first, count) = (number("MULTIGRAIN_SEED").unwrap_or(1), number("MULTIGRAIN_CASES").unwrap_or(30));
    let (mut ran, mut several, mut waited, mut moved) = (0, 0, 0, 0);
    for seed in first..first + count {
        let (directory, inputs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut rng = Rng::new(seed);
        let (processes, cores) = (1 + seed as usize % 5, rng.range(1, 2) as usize);
        let in_memory = job(seed, directory.path(), None);
        if in_memory.program().calls().is_empty() {
            continue;
        }
        let mut expected = initial_bytes(&in_memory);
        in_memory.program().run_sequential(&mut expected).unwrap();
        // Arrays in files, or in the memories of all, which hold them besides.
        let (job, share) = match seed % 2 {
            0 => (job(seed, directory.path(), Some(inputs.path())), 0),
            _ => (in_memory.clone(), in_memory.bytes().div_ceil(processes as u64)),
        };
        let machine = machine(directory.path(), rng.range(2 << 10, 60 << 10) + share, cores);
        let runs = on_ranks(processes, |rank| {
            let runtime = runtime(&rank, &machine, seed);
            let outcome = match runtime.run(&job, Settings::default()) {
                Ok(outcome) => outcome,
                Err(Error::Plan(PlanError::DoesNotFit { .. } | PlanError::MappingDoesNotFit { .. })) => return None,
                Err(Error::OnRank { ended, .. }) if ended.text.contains("does not fit") => return None,
                Err(error) => panic!("seed {seed}, rank {}: {error}", rank.rank()),
            };
            check(&outcome.plan, &edge_rules(&outcome.machine)).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            if rank.rank() == 0 {
                for (i, decl) in job.arrays().iter().enumerate().filter(|(_, decl)| decl.role != Role::Temporary) {
                    let found = outcome.read(i, &Region::whole(decl.shape)).unwrap();
                    assert!(found == expected[i], "seed {seed}: array {} differs", decl.name);
                    let path = directory.path().join(format!("{i}.bin"));
                    assert!(!path.exists() || std::fs::read(&path).unwrap() == expected[i], "seed {seed}: {i}.bin");
                }
            }
            // The first reads what lies at the others as long as they are there.
            rank.bye(0);
            Some((outcome.plan.clone(), outcome.ranks.iter().map(|rank| rank.moved_bytes).sum::<u64>()))
        });
        assert!(runs.iter().all(|run| run.is_some() == runs[0].is_some()), "seed {seed}");
        let Some((plan, bytes)) = &runs[0] else { continue };
        ran += 1;
        let busy = plan.children.iter().filter(|child| !child.ops.is_empty()).count();
        several += u64::from(busy > 1 || plan.is_in_parts() && processes > 1);
        let waits = |op: &Op| matches!(op, Op::Wait { .. } | Op::Barrier);
        waited += u64::from(processes > 1 && plan.children.iter().any(|child| child.ops.iter().any(waits)));
        moved += u64::from(*bytes > 0);
        assert!(
            seed % 2 == 1 || *bytes == 0,
            "seed {seed}: {bytes} bytes between ranks, though all arrays lie in files"
        );
        let left = names(directory.path());
        assert!(left.iter().all(|name| name.ends_with(".bin")), "seed {seed}: {left:?}");
    }
    println!("{ran} ran, {several} on several ranks, {waited} with waits, {moved} with arrays of all ranks");
    assert!(
        count < 30 || ran > 22 && several > 10 && waited > 2 && moved > 5,
        "{ran} ran, {several} on several ranks, {waited} wait, {moved} move"
    );
}

#[task(axes(i))]
fn twice(#[at(i)] x: Read<f32, 1>, #[at(i)] y: Write<f32, 1>) {
    for i in 0..y.len(0) {
        y[[i]] = 2.0 * x[[i]];
    }
}

/// A job on an input of this length, whose result goes to a file.
fn doubled(length: u64, directory: &Path) -> Job {
    let mut program = Program::new();
    let task = program.task(twice);
    let x = program.array::<f32, 1>("x", [length], Role::Input).unwrap();
    let y = program.array::<f32, 1>("y", [length], Role::Output).unwrap();
    program.call(task, (x.all(), y.all()), Scalars::new()).unwrap();
    Job::new("doubled", program)
        .with_source(x, Source::Generated { seed: 1 })
        .with_sink(y, Sink::Npy(directory.join("y.npy")))
}

#[test]
fn ranks_that_do_not_have_the_same_are_told_once_and_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let machine = machine(directory.path(), 1 << 20, 1);
    let errors = on_ranks(4, |rank| {
        let length = if rank.rank() == 2 { 1001 } else { 1000 };
        let job = doubled(length, directory.path());
        let error = runtime(&rank, &machine, 0).run(&job, Settings::default()).err().unwrap();
        (error.exit_status(), error.to_string())
    });
    for (rank, (status, text)) in errors.iter().enumerate() {
        assert_eq!(*status, 2);
        assert!(text.contains("rank 2 on node node1 has not the same"), "rank {rank}: {text}");
    }
    assert_eq!(names(directory.path()), [""; 0]);
}

/// Fails every write.
struct FullDisk;

impl Faults for FullDisk {
    fn before(&self, operation: &Operation<'_>) -> Verdict {
        match operation.kind {
            OperationKind::Write => Verdict::Fail(28),
            _ => Verdict::Go,
        }
    }
}

#[test]
fn a_fault_on_one_rank_ends_all_and_others_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let machine = machine(directory.path(), 1 << 20, 1);
    let errors = on_ranks(3, |rank| {
        let faults: Option<Arc<dyn Faults>> = (rank.rank() == 1).then(|| Arc::new(FullDisk) as _);
        let runtime = Runtime::new(Options { faults, ..options(&rank, &machine, 0) }).unwrap();
        let error = runtime.run(&doubled(1 << 20, directory.path()), Settings::default()).err().unwrap();
        (error.exit_status(), error.to_string())
    });
    for (rank, (status, text)) in errors.iter().enumerate() {
        assert_eq!(*status, 1, "{text}");
        assert!(text.contains("No space left"), "rank {rank}: {text}");
        assert!(rank == 1 || text.starts_with("rank 1 on node node0: "), "rank {rank}: {text}");
    }
    // What the others have done is kept, if they had come to do anything.
    let is_kept = errors[0].1.contains("--resume");
    let left = names(directory.path());
    assert_eq!(left.is_empty(), !is_kept, "{left:?} {errors:?}");
    for done in executed(2, &machine, &doubled(1 << 20, directory.path()), true, |_| None) {
        assert_eq!(done.unwrap(), is_kept);
    }
    assert_eq!(names(directory.path()), ["y.npy"]);
}

/// Executes a job on so many ranks, of which some are asked before each operation, or alone; whether it went on with what was left.
fn executed(
    count: usize,
    machine: &Machine,
    job: &Job,
    resume: bool,
    faults: impl Fn(usize) -> Option<Arc<dyn Faults>> + Sync,
) -> Vec<Result<bool, Error>> {
    let settings = || Settings {
        resume,
        discard: !resume,
        journal_interval: Some(std::time::Duration::ZERO),
        ..Settings::default()
    };
    let run = |options: Options| Ok(Runtime::new(options)?.run(job, settings())?.resumed);
    if count == 0 {
        let options = Options {
            machine: MachineChoice::Given(Box::new(machine.clone())),
            disk_buffer_bytes: Some(TEST_BUFFER_BYTES),
            faults: faults(0),
            ..Options::default()
        };
        return vec![run(options)];
    }
    on_ranks(count, |rank| {
        let done = run(Options { faults: faults(rank.rank()), ..options(&rank, machine, 0) });
        rank.bye(0);
        done
    })
}

/// Runs on ranks are ended at a random operation, all at once or one rank alone, go on with another number of ranks or alone, perhaps to be
/// ended again, and give the bytes of sequential execution.
#[test]
fn what_ranks_have_done_is_continued_by_others_and_alone() {
    let number = |name: &str| std::env::var(name).ok().and_then(|s| s.parse::<u64>().ok());
    let (first, count) = (number("MULTIGRAIN_SEED").unwrap_or(1), number("MULTIGRAIN_CASES").unwrap_or(40));
    let (mut ran, mut continued) = (0, 0);
    for seed in first..first + count {
        let (directory, inputs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut rng = Rng::new(seed ^ 0x7261_6e6b);
        let job = job(seed, directory.path(), Some(inputs.path()));
        let results: Vec<usize> =
            (0..job.arrays().len()).filter(|&i| goes_to_file(&job.arrays()[i], seed, i)).collect();
        if job.program().calls().is_empty() || results.is_empty() {
            continue;
        }
        let in_memory = self::job(seed, directory.path(), None);
        let mut expected = initial_bytes(&in_memory);
        in_memory.program().run_sequential(&mut expected).unwrap();
        let machine = machine(directory.path(), rng.range(6 << 10, 60 << 10), 1);
        let counts = [rng.range(2, 4), rng.range(0, 4), rng.range(0, 4)].map(|count| count as usize);
        let operations = Arc::new(Count::new());
        let undisturbed = executed(counts[0], &machine, &job, false, |_| Some(operations.clone() as _));
        if undisturbed.iter().any(|done| matches!(done, Err(error) if error.to_string().contains("does not fit"))) {
            continue;
        }
        undisturbed.into_iter().for_each(|done| assert!(!done.unwrap_or_else(|e| panic!("seed {seed}: {e}"))));
        ran += 1;
        let (times, mut what) = (rng.range(1, 2) as usize, String::new());
        for (time, &count) in counts[..times].iter().enumerate() {
            // One rank has some of all operations.
            let one = rng.percent(40).then(|| rng.below(count.max(1) as u64) as usize);
            let n = rng.below(operations.operations().max(2) / if one.is_some() { count.max(1) as u64 } else { 1 });
            what += &format!("{count} ranks ended at {n} ({one:?}), ");
            let ending: Arc<dyn Faults> = Arc::new(Ending { n, seen: Count::new() });
            let _ = executed(count, &machine, &job, time > 0, |rank| {
                one.is_none_or(|one| one == rank).then(|| ending.clone())
            });
        }
        let last = counts[2];
        what += &format!("then {last}");
        for done in executed(last, &machine, &job, true, |_| None) {
            match done {
                Ok(resumed) => continued += u64::from(resumed),
                Err(error) => panic!("seed {seed}: {what}: {error}"),
            }
        }
        for i in results {
            let found = std::fs::read(directory.path().join(format!("{i}.bin"))).unwrap();
            assert!(found == expected[i], "seed {seed}: {what}: array {i} differs");
        }
        let left = names(directory.path());
        // Files that only ranks share are named after the process, and are of no use once it has ended.
        assert!(
            left.iter().all(|name| name.ends_with(".bin") || name.starts_with("multigrain-")),
            "seed {seed}: {what}: {left:?}"
        );
    }
    println!("{ran} ran, {continued} ranks continued");
    assert!(count < 40 || ran > 20 && continued > 15, "{ran} ran, {continued} ranks continued");
}

/// What is damaged of a rank's journal, or of the run's, is told: whoever goes on, nothing is begun again without a word.
#[test]
fn a_damaged_journal_of_a_rank_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let machine = machine(directory.path(), 1 << 20, 1);
    let job = doubled(1 << 20, directory.path());
    let operations = Arc::new(Count::new());
    executed(2, &machine, &job, false, |_| Some(operations.clone() as _))
        .into_iter()
        .for_each(|done| assert!(!done.unwrap()));
    std::fs::remove_file(directory.path().join("y.npy")).unwrap();
    let ending: Arc<dyn Faults> = Arc::new(Ending { n: operations.operations() * 7 / 10, seen: Count::new() });
    executed(2, &machine, &job, false, |_| Some(ending.clone())).into_iter().for_each(|done| assert!(done.is_err()));
    let before = names(directory.path());
    for name in ["y.npy.journal", "y.npy.journal.0", "y.npy.journal.1"] {
        let journal = directory.path().join(name);
        let bytes = std::fs::read(&journal).unwrap();
        let text = u32::from_le_bytes(*bytes[12..].first_chunk().unwrap()) as usize;
        let first_record = 48 + text + 8;
        assert!(bytes.len() > first_record + 32, "{name} has {} bytes", bytes.len());
        for at in [0, 5, 9, 14, 50, first_record - 3, first_record, first_record + 31] {
            for cut in [false, true] {
                let mut damaged = bytes.clone();
                match cut {
                    true => damaged.truncate(at),
                    false => damaged[at] ^= 1,
                }
                std::fs::write(&journal, damaged).unwrap();
                for (count, resume) in [(0, false), (0, true), (2, true)] {
                    let settings = || Settings { resume, ..Settings::default() };
                    let refused = match count {
                        0 => vec![
                            Runtime::new(Options {
                                machine: MachineChoice::Given(Box::new(machine.clone())),
                                disk_buffer_bytes: Some(TEST_BUFFER_BYTES),
                                ..Options::default()
                            })
                            .unwrap()
                            .run(&job, settings())
                            .err(),
                        ],
                        _ => executed(count, &machine, &job, true, |_| None).into_iter().map(Result::err).collect(),
                    };
                    for refused in refused {
                        let what = format!("{name}, byte {at}, cut: {cut}, {count} ranks, resume: {resume}");
                        let words = refused.unwrap_or_else(|| panic!("{what}: it was run")).to_string();
                        assert!(words.contains(name) && words.contains("--discard"), "{what}: {words}");
                    }
                }
                assert_eq!(names(directory.path()), before);
            }
        }
        std::fs::write(&journal, bytes).unwrap();
    }
    for done in executed(3, &machine, &job, true, |_| None) {
        assert!(done.unwrap(), "what is whole is continued");
    }
    assert_eq!(names(directory.path()), ["y.npy"]);
}

/// As if killed before an operation of several disks.
struct Ending {
    n: u64,
    seen: Count,
}

impl Faults for Ending {
    fn before(&self, operation: &Operation<'_>) -> Verdict {
        let is_over = self.seen.operations() >= self.n;
        self.seen.before(operation);
        if is_over { Verdict::Dead } else { Verdict::Go }
    }
}

#[test]
fn what_ranks_cannot_do_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let machine = machine(directory.path(), 1 << 20, 1);
    let texts = on_ranks(2, |rank| {
        let settings = Settings { full_trace: true, ..Settings::default() };
        let error = runtime(&rank, &machine, 0).run(&doubled(1000, directory.path()), settings).err().unwrap();
        assert_eq!(error.exit_status(), 2);
        error.to_string()
    });
    assert!(texts.iter().all(|text| text.contains("records are kept in files only")), "{texts:?}");
    let in_memory = machine.without_root();
    let texts = on_ranks(2, |rank| {
        runtime(&rank, &in_memory, 0)
            .run(&doubled(1000, directory.path()), Settings::default())
            .err()
            .unwrap()
            .to_string()
    });
    assert!(texts.iter().all(|text| text.contains("has no disk")), "{texts:?}");
}

#[task(axes(i))]
fn inverted(#[at(i)] x: Read<u64, 1>, #[at(i)] y: Write<u64, 1>) {
    for i in 0..y.len(0) {
        assert!(x[[i]] != 3, "three is not inverted");
        y[[i]] = !x[[i]];
    }
}

#[test]
fn a_panic_on_one_rank_ends_all() {
    let directory = tempfile::tempdir().unwrap();
    let machine = machine(directory.path(), 1 << 20, 1);
    let length = 1 << 20;
    let mut program = Program::new();
    let task = program.task(inverted);
    let x = program.array::<u64, 1>("x", [length], Role::Input).unwrap();
    let y = program.array::<u64, 1>("y", [length], Role::Output).unwrap();
    program.call(task, (x.all(), y.all()), Scalars::new()).unwrap();
    let mut content = vec![0; 8 * length as usize];
    content[8 * (length as usize - 1)] = 3;
    let inputs = tempfile::tempdir().unwrap();
    let input = inputs.path().join("x.bin");
    std::fs::write(&input, content).unwrap();
    let job = Job::new("inverted", program)
        .with_source(x, Source::Raw(input))
        .with_sink(y, Sink::Npy(directory.path().join("y.npy")));
    let errors = on_ranks(4, |rank| {
        let error = runtime(&rank, &machine, 0).run(&job, Settings::default()).err().unwrap();
        (error.exit_status(), error.to_string())
    });
    let own = errors.iter().filter(|(_, text)| !text.starts_with("rank ")).count();
    assert_eq!(own, 1, "{errors:?}");
    assert!(errors.iter().all(|(status, text)| *status == 1 && text.contains("three is not inverted")), "{errors:?}");
    assert!(!directory.path().join("y.npy").exists());
}

/// Bytes that are written to files without their final names.
#[derive(Default)]
struct Written(AtomicU64);

impl Faults for Written {
    fn before(&self, operation: &Operation<'_>) -> Verdict {
        if operation.kind == OperationKind::Write && operation.path.extension().is_some_and(|end| end == "part") {
            self.0.fetch_add(operation.len_bytes, Ordering::Relaxed);
        }
        Verdict::Go
    }
}

/// In a smaller memory each call that is left is a part, which all ranks execute. One that updates an array of two files first has
/// its block carried from one to the other, by one rank: others may be at work there already.
#[test]
fn a_part_that_updates_an_array_of_two_files_is_carried_over_once() {
    let (directory, inputs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (blocks, length) = (8, 1 << 12);
    let mut program = Program::new();
    let (combine, scale) = (program.task(Combine::<f32, 1>::default()), program.task(Scale::<f32, 1>::default()));
    let x = program.array::<f32, 1>("x", [blocks * length], Role::Input).unwrap();
    let y = program.array::<f32, 1>("y", [blocks * length], Role::Output).unwrap();
    let z = program.array::<f32, 1>("z", [blocks * length], Role::Temporary).unwrap();
    let at = |array: Array<f32, 1>, block: u64| array.block([block % blocks * length], [length]);
    let factor = || Scalars::new().with_u64(1);
    // y is written, and updated when all of it was read.
    (0..blocks).for_each(|i| program.call(combine, (at(x, i), at(x, i + 1), at(y, i)), factor()).unwrap());
    (0..blocks).for_each(|i| program.call(combine, (at(y, 3 * i + 1), at(y, i), at(z, i)), factor()).unwrap());
    (0..blocks).for_each(|i| program.call(scale, (at(y, i), at(z, i)), Scalars::new()).unwrap());
    let content = random_bytes(&program, 1);
    std::fs::write(inputs.path().join("x.in"), &content[0]).unwrap();
    let mut expected = content;
    program.run_sequential(&mut expected).unwrap();
    let job = Job::new("carried", program)
        .with_source(x, Source::Raw(inputs.path().join("x.in")))
        .with_sink(y, Sink::Raw(directory.path().join("y.bin")));
    let (large, small) = (machine(directory.path(), 80 << 10, 1), machine(directory.path(), 24 << 10, 1));
    let operations = Arc::new(Count::new());
    executed(0, &large, &job, false, |_| Some(operations.clone() as _)).pop().unwrap().unwrap();
    let mut carried = 0;
    for tenth in 3..9 {
        let n = operations.operations() * tenth / 10;
        let ended = executed(0, &large, &job, false, |_| Some(Arc::new(Ending { n, seen: Count::new() })));
        assert!(ended[0].is_err(), "ended at {n}");
        let written = Arc::new(Written::default());
        let done = on_ranks(3, |rank| {
            let options = Options { faults: Some(written.clone() as _), ..options(&rank, &small, 0) };
            let settings = Settings { resume: true, ..Settings::default() };
            Runtime::new(options).unwrap().run(&job, settings).map(|done| (done.resumed, done.plan))
        });
        let (resumed, plan) = done.into_iter().next().unwrap().unwrap_or_else(|e| panic!("ended at {n}: {e}"));
        assert!(resumed && plan.is_in_parts(), "ended at {n}");
        let found = std::fs::read(directory.path().join("y.bin")).unwrap();
        assert!(found == expected[1], "ended at {n}: other bytes");
        // Each part writes one block, and what it updates is carried over before.
        let updates = plan.calls.iter().filter(|call| plan.tasks[call.task as usize].name() == "scale").count();
        let bytes = written.0.load(Ordering::Relaxed);
        assert_eq!(
            bytes,
            (plan.calls.len() + updates) as u64 * 4 * length,
            "ended at {n}: {updates} of {} parts",
            plan.calls.len()
        );
        carried += updates;
    }
    assert!(carried >= 20, "{carried} parts were carried over");
}
