//! Out of core, a transform survives: killed at any moment, or ended by a failed operation, it is continued to the same
//! bytes, in another memory too, and nothing that was durable is made again. Its second pass works on what the first has
//! written, and in place both do.

use multigrain::app::Application;
use multigrain::prelude::*;
use multigrain::rooms::store::faults::{Count, DieAt, Faults};
use multigrain::rooms::store::{Journal, Operation, OperationKind, Record, Verdict, npy};
use multigrain::{MachineChoice, Mapping, testing};
use multigrain_fft3d::app::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const SHAPE: [u64; 3] = [12, 16, 32];
/// Memory for a few planes.
const PLANES_BYTES: u64 = 56 << 10;

/// A folder for hundreds of short runs: in memory where there is such a file system, because every flush of a disk takes
/// milliseconds. `MULTIGRAIN_TEST_DIR` names another.
fn folder() -> tempfile::TempDir {
    let given = std::env::var_os("MULTIGRAIN_TEST_DIR").map(PathBuf::from);
    let memory = PathBuf::from("/dev/shm");
    match given.or_else(|| memory.is_dir().then_some(memory)) {
        Some(parent) => tempfile::tempdir_in(parent).unwrap(),
        None => tempfile::tempdir().unwrap(),
    }
}

/// A transform in a folder of its own.
struct Case {
    name: &'static str,
    folder: tempfile::TempDir,
    args: Args,
}

impl Case {
    /// From one file into another.
    fn files() -> Case {
        let folder = folder();
        let input = folder.path().join("in.npy");
        let mut content = npy::write(ElementType::C64, &SHAPE).unwrap();
        let header = content.len();
        content.resize(header + 8 * SHAPE.iter().product::<u64>() as usize, 0);
        generate::fill(ElementType::C64, 3, 0, &mut content[header..]);
        std::fs::write(&input, content).unwrap();
        let output = Some(folder.path().join("out.npy"));
        Case { name: "files", args: Args { input: Some(input), output, ..Args::default() }, folder }
    }

    /// In place.
    fn in_place() -> Case {
        let folder = folder();
        let output = Some(folder.path().join("out.npy"));
        let args = Args { shape: SHAPE.to_vec(), inverse: true, output, ..Args::default() };
        Case { name: "in place", args, folder }
    }

    fn output(&self) -> PathBuf {
        self.folder.path().join("out.npy")
    }

    /// Tiles, given so that no run spends its time on choosing them.
    fn mapping(&self) -> Mapping {
        let first = if self.args.input.is_some() { "fft3d-planes-into" } else { "fft3d-planes" };
        let mut mapping = Mapping::default();
        for (memory, planes, rows) in [("dram", 2, 4), ("core", 1, 2)] {
            mapping.set(first, memory, "x", planes);
            mapping.set("fft3d-columns-x", memory, "y", rows);
            mapping.set("fft3d-columns-x", memory, "z", SHAPE[2]);
        }
        mapping
    }

    /// Runs on a disk with so many bytes for blocks.
    fn runtime(&self, faults: Option<Arc<dyn Faults>>, blocks_bytes: u64) -> Result<Runtime, Error> {
        Runtime::new(Options {
            machine: MachineChoice::Given(Box::new(Machine::named("disk").unwrap())),
            memory_bytes: Some(testing::TEST_BUFFER_BYTES + blocks_bytes),
            threads: Some(2),
            disk_buffer_bytes: Some(testing::TEST_BUFFER_BYTES),
            mapping: self.mapping(),
            faults,
            ..Options::default()
        })
    }

    /// With memory for a few planes.
    fn run(&self, faults: Option<Arc<dyn Faults>>, resume: bool) -> Result<Outcome, Error> {
        self.run_within(faults, resume, PLANES_BYTES)
    }

    fn run_within(&self, faults: Option<Arc<dyn Faults>>, resume: bool, blocks_bytes: u64) -> Result<Outcome, Error> {
        let runtime = self.runtime(faults, blocks_bytes)?;
        let job = self.args.prepare(&runtime)?.job;
        runtime.run(&job, Settings { resume, journal_interval: Some(Duration::ZERO), ..Settings::default() })
    }

    /// The result of an undisturbed run, and its number of operations on files. Nothing of it is left.
    fn undisturbed(&self) -> (Vec<u8>, u64) {
        let count = Arc::new(Count::new());
        let outcome = self.run(Some(count.clone()), false).unwrap();
        let edge = outcome.edges[0].traffic;
        let bytes = 8 * SHAPE.iter().product::<u64>();
        assert_eq!((edge.bytes_down, edge.bytes_up), (2 * bytes, 2 * bytes), "{}", outcome.plan);
        let result = std::fs::read(self.output()).unwrap();
        self.clear();
        (result, count.operations())
    }

    /// The calls of which the journal says last that their results are durable.
    fn durable(&self) -> Vec<u32> {
        const DONE: u32 = 2;
        let runtime = self.runtime(None, PLANES_BYTES).unwrap();
        let mut last: Vec<(u64, u32)> = Vec::new();
        let noted = |record: Record| {
            if record.kind <= DONE {
                last.retain(|(call, _)| *call != record.a);
                last.push((record.a, record.kind));
            }
        };
        Journal::read(runtime.disk(), Journal::path_for(&self.output()), noted).unwrap();
        last.iter().filter(|(_, kind)| *kind == DONE).map(|(call, _)| *call as u32).collect()
    }

    /// Removes all but the input.
    fn clear(&self) {
        for path in self.left() {
            std::fs::remove_file(path).unwrap();
        }
    }

    fn left(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.file_name().unwrap() != "in.npy").collect()
    }
}

fn assert_same(case: &Case, what: &str, expected: &[u8], path: &Path) {
    let found = std::fs::read(path).unwrap();
    assert!(found == expected, "{}, {what}: {} differs", case.name, path.display());
}

#[test]
fn killed_at_every_moment_it_is_continued() {
    for case in [Case::files(), Case::in_place()] {
        let (expected, operations) = case.undisturbed();
        let mut resumed = 0;
        for n in 0..operations {
            let what = format!("killed at {n} of {operations}");
            let ended = case.run(Some(Arc::new(DieAt { n })), false);
            if case.output().exists() {
                assert_same(&case, &what, &expected, &case.output());
            }
            if ended.is_err() {
                let durable = case.durable();
                let blocks_bytes = PLANES_BYTES * (1 + n % 2);
                let outcome = case
                    .run_within(None, true, blocks_bytes)
                    .unwrap_or_else(|e| panic!("{}, {what}, resumed in {blocks_bytes}: {e}", case.name));
                let again: Vec<_> = durable.iter().filter(|call| outcome.plan.numbers.contains(call)).collect();
                assert!(again.is_empty(), "{}, {what}: {again:?} of {durable:?} were made again", case.name);
                resumed += u64::from(outcome.resumed);
                assert_same(&case, &what, &expected, &case.output());
                assert_eq!(case.left(), [case.output()], "{}, {what}", case.name);
            }
            case.clear();
        }
        assert!(resumed * 2 > operations, "{}: {resumed} of {operations} kills were continued", case.name);
    }
}

/// Fails operation `n`, if it is a read or a write.
struct Fail {
    n: u64,
    asked: AtomicU64,
    failed: AtomicU64,
}

impl Faults for Fail {
    fn before(&self, operation: &Operation<'_>) -> Verdict {
        let number = self.asked.fetch_add(1, Ordering::SeqCst);
        if number == self.n && matches!(operation.kind, OperationKind::Read | OperationKind::Write) {
            self.failed.fetch_add(1, Ordering::SeqCst);
            // EIO.
            return Verdict::Fail(5);
        }
        Verdict::Go
    }
}

#[test]
fn a_failed_transfer_ends_the_run_with_a_message_and_it_is_continued() {
    for case in [Case::files(), Case::in_place()] {
        let (expected, operations) = case.undisturbed();
        let mut failures = 0;
        for n in 0..operations {
            let fail = Arc::new(Fail { n, asked: AtomicU64::new(0), failed: AtomicU64::new(0) });
            let ended = case.run(Some(fail.clone()), false);
            if fail.failed.load(Ordering::SeqCst) > 0 {
                let error =
                    ended.err().unwrap_or_else(|| panic!("{}: operation {n} failed, the run did not", case.name));
                let message = error.to_string();
                assert!(message.contains("in.npy") || message.contains("out.npy"), "{}, {n}: {message}", case.name);
                match error {
                    Error::Kept { .. } => {
                        assert!(case.run(None, true).unwrap().resumed, "{}, {n}: {message}", case.name);
                        assert_same(&case, &message, &expected, &case.output());
                    }
                    _ => assert_eq!(case.left(), Vec::<PathBuf>::new(), "{}, {n}: {message}", case.name),
                }
                failures += 1;
            }
            case.clear();
        }
        assert!(failures * 4 > operations, "{}: {failures} of {operations}", case.name);
        case.run(None, false).unwrap();
        assert_same(&case, "after all that", &expected, &case.output());
    }
}
