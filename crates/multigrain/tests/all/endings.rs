//! Runs that end before their time: a leaf that panics, an interruption. Nothing hangs, nothing is left that should
//! not be, and the runtime can be used afterwards. And runs that end well, alike on every machine.

use crate::support;

use multigrain::Progress;
use multigrain::prelude::*;
use multigrain::rooms::engine::EngineError;
use multigrain::rooms::machine::{Driver, Edge, Memory, MemoryId, Processor, ProcessorKind};
use multigrain::rooms::plan::testing::{Product, Scale, Transpose};
use multigrain::rooms::plan::{ChildPlan, Mapping, Op};
use multigrain::rooms::store::BackendChoice;
use multigrain::rooms::trace::{Kind, Spill, Trace};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::*;

/// y = x + 1 by rows; panics at a row that starts with NaN, and calls `before` at each call.
struct Touchy {
    before: Arc<dyn Fn() + Send + Sync>,
}

impl Task for Touchy {
    type Params = (Read<f32, 2>, Write<f32, 2>);
    fn name(&self) -> &'static str {
        "touchy"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["x", "y"]
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        vec![Tunable { name: "rows", extent: call.shapes[0].dims()[0], multiple: 1 }]
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let (rows, columns) = (call.shapes[0].dims()[0], call.shapes[0].dims()[1]);
        blocks(rows, tunables.get("rows", rows))
            .map(|(start, len)| {
                let part = Region::new(&[start, 0], &[len, columns]);
                SubCall::itself([(0, part), (1, part)], &call.scalars)
            })
            .collect()
    }
    fn leaf(&self, (x, mut y): (View<'_, f32, 2>, ViewMut<'_, f32, 2>), _: &mut LeafContext<'_>) {
        (self.before)();
        for i in 0..x.len(0) {
            assert!(!x.row(&[i])[0].is_nan(), "a row that is no number");
            y.row_mut(&[i]).iter_mut().zip(x.row(&[i])).for_each(|(y, x)| *y = x + 1.0);
        }
    }
    fn work(&self, call: &CallShape) -> Work {
        let n = call.shapes[0].elements() as f64;
        Work { flops: n, bytes: 8.0 * n }
    }
}

fn touchy(before: Arc<dyn Fn() + Send + Sync>, machine: impl FnOnce(&std::path::Path) -> Machine) -> Case {
    let mut program = Program::new();
    let task = program.task(Touchy { before });
    let x = program.array::<f32, 2>("x", [64, 96], Role::Input).unwrap();
    let y = program.array::<f32, 2>("y", [64, 96], Role::Output).unwrap();
    program.call(task, (x.all(), y.all()), Scalars::new()).unwrap();
    case("touchy", program, machine, BackendChoice::Auto)
}

fn parsed((start, end): (&str, &str)) -> std::ops::Range<usize> {
    start.parse().unwrap()..end.parse().unwrap()
}

#[test]
fn a_leaf_that_panics_ends_the_run() {
    let on_disk = |d: &std::path::Path| disk_machine(d, 16 << 10, 2, None);
    let in_local = |d: &std::path::Path| disk_machine(d, 16 << 10, 3, Some(4 << 10));
    let in_memory = |_: &std::path::Path| memory_machine(4, None);
    let machines: [&dyn Fn(&std::path::Path) -> Machine; 3] = [&on_disk, &in_local, &in_memory];
    let mut kept_by = 0;
    for (number, machine) in machines.into_iter().enumerate() {
        let case = touchy(Arc::new(|| ()), machine);
        let input = case.directory().join("in-x.npy");
        let good = std::fs::read(&input).unwrap();
        for row in [0, 31, 63] {
            let mut bad = good.clone();
            let at = bad.len() - (64 - row) * 96 * 4;
            bad[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
            std::fs::write(&input, bad).unwrap();
            let runtime = case.setup.runtime(None);
            let error = run(&runtime, &case.job, false, None).err().expect("the leaf panicked, but not the run");
            let kept = matches!(error, Error::Kept { .. });
            let cause = if let Error::Kept { source, .. } = &error { source } else { &error };
            let Error::Run(EngineError::LeafPanicked { call, message }) = cause else { panic!("{error:?}") };
            assert_eq!(call.task, "touchy");
            assert!(message.contains("a row that is no number"), "{message}");
            // In the arrays of the program, however many plans are between them and the leaf.
            let rows = |block: &str| block.split(['[', ',']).nth(1).and_then(|rows| rows.split_once("..")).map(parsed);
            let named = call.blocks.iter().filter_map(|block| rows(block)).filter(|rows| rows.contains(&row)).count();
            assert_eq!(named, 2, "machine {number}, row {row}: {error}");
            assert!(call.blocks[0].starts_with("x [") && call.blocks[1].starts_with("y ["), "{error}");
            assert_eq!(error.exit_status(), 1);
            // On a disk what was done before is kept; but the input is another by now.
            assert_eq!(case.left().is_empty(), !kept, "machine {number}, row {row}: {:?}", case.left());
            std::fs::write(&input, &good).unwrap();
            if kept {
                kept_by += 1;
                assert!(error.to_string().contains("--resume"), "{error}");
                assert!(matches!(run(&runtime, &case.job, true, None), Err(Error::OtherRun { .. })));
            }
            runtime.run(&case.job, Settings { discard: true, ..Settings::default() }).unwrap();
            assert_eq!(case.left(), ["y.npy"]);
            case.clear();
        }
    }
    assert!(kept_by >= 2, "{kept_by} runs kept what they had done");
}

/// Four local stores at one memory.
fn four_stores() -> Machine {
    let processor =
        Processor { kind: ProcessorKind::Cpu, flops_per_second: 1e9, call_overhead_ns: 100.0, code_bytes: 0 };
    let edge = Edge::new(Driver::LOCAL, 2e10, 100.0);
    let store = Memory::child("core", MemoryId(0), 4, 64 << 10, edge).with_processor(processor);
    Machine::new("stores", "Four local stores.", vec![Memory::root("dram", 1 << 30), store]).unwrap()
}

#[test]
fn children_meet_at_a_barrier_and_nobody_waits_for_who_has_panicked() {
    // x + 1, transposed, + 1: every row of the last needs a part of every block of the first.
    let mut program = Program::new();
    let (touchy, transpose) =
        (program.task(Touchy { before: Arc::new(|| ()) }), program.task(Transpose::<f32>::default()));
    let [x, y, z, w] = [("x", Role::Input), ("y", Role::Temporary), ("z", Role::Temporary), ("w", Role::Output)]
        .map(|(name, role)| program.array::<f32, 2>(name, [64, 64], role).unwrap());
    program.call(touchy, (x.all(), y.all()), Scalars::new()).unwrap();
    program.call(transpose, (y.all(), z.all()), Scalars::new()).unwrap();
    program.call(touchy, (z.all(), w.all()), Scalars::new()).unwrap();
    for machine in [memory_machine(4, None), four_stores()] {
        let name = machine.name.clone();
        let mut case = case("met", program.clone(), |_| machine, BackendChoice::Auto);
        let mut mapping = Mapping::default();
        for (task, axis, length) in [("touchy", "rows", 16), ("transpose", "d0", 16), ("transpose", "d1", 64)] {
            mapping.set(task, "core", axis, length);
        }
        case.setup.mapping = mapping;
        let runtime = case.setup.runtime(None);
        let plan = runtime.plan(&case.job).unwrap().plan;
        let met = |child: &ChildPlan| child.ops.iter().filter(|op| matches!(op, Op::Barrier)).count();
        assert!(plan.children.iter().all(|child| met(child) == 1), "{name}: {plan}");
        let expected = case.expected();
        // Many runs, since the order in which children come differs.
        for _ in 0..20 {
            run(&runtime, &case.job, false, None).unwrap();
            assert!(case.results() == expected, "{name}");
            case.clear();
        }
        let input = case.directory().join("in-x.npy");
        let good = std::fs::read(&input).unwrap();
        for row in [0, 20, 63] {
            let mut bad = good.clone();
            let at = bad.len() - (64 - row) * 64 * 4;
            bad[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
            std::fs::write(&input, bad).unwrap();
            let error = run(&runtime, &case.job, false, None).err().expect("the leaf panicked, but not the run");
            assert!(matches!(error, Error::Run(EngineError::LeafPanicked { .. })), "{name}: {error}");
        }
        std::fs::write(&input, &good).unwrap();
        run(&runtime, &case.job, false, None).unwrap();
        assert!(case.results() == expected, "{name}");
    }
}

#[test]
fn nobody_waits_in_a_broadcast_for_who_has_panicked() {
    // y = x + 1, z = y w: each store has rows of its own, and all read all of w.
    let mut program = Program::new();
    let (touchy, product) = (program.task(Touchy { before: Arc::new(|| ()) }), program.task(Product::<f32>::default()));
    let [x, y, w, z] = [("x", Role::Input), ("y", Role::Temporary), ("w", Role::Input), ("z", Role::Output)]
        .map(|(name, role)| program.array::<f32, 2>(name, [64, 64], role).unwrap());
    program.call(touchy, (x.all(), y.all()), Scalars::new()).unwrap();
    program.call(product, (y.all(), w.all(), z.all()), Scalars::new()).unwrap();
    let stores = four_stores();
    let name = stores.memory(MemoryId(1)).name.clone();
    let stores = stores.with(&name, |m| m.edge.as_mut().unwrap().sibling_bytes_per_second = Some(1e12)).unwrap();
    let mut case = case("shared", program, |_| stores, BackendChoice::Auto);
    let mut mapping = Mapping::default();
    mapping.set("touchy", "core", "rows", 16);
    for (axis, length) in [("m", 16), ("n", 64), ("k", 8)] {
        mapping.set("product", "core", axis, length);
    }
    case.setup.mapping = mapping;
    let runtime = case.setup.runtime(None);
    let plan = runtime.plan(&case.job).unwrap().plan;
    let shared = |child: &ChildPlan| child.ops.iter().filter(|op| matches!(op, Op::Broadcast { .. })).count();
    assert!(plan.children.iter().all(|child| shared(child) == 8), "{plan}");
    let expected = case.expected();
    let input = case.directory().join("in-x.npy");
    let good = std::fs::read(&input).unwrap();
    for row in [0, 20, 47, 63] {
        let mut bad = good.clone();
        let at = bad.len() - (64 - row) * 64 * 4;
        bad[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
        std::fs::write(&input, bad).unwrap();
        let error = run(&runtime, &case.job, false, None).err().expect("the leaf panicked, but not the run");
        assert!(matches!(error, Error::Run(EngineError::LeafPanicked { .. })), "{error}");
        std::fs::write(&input, &good).unwrap();
        run(&runtime, &case.job, false, None).unwrap();
        assert!(case.results() == expected);
        case.clear();
    }
}

#[test]
fn the_trace_of_a_run_that_failed_tells_what_was_before() {
    let case = touchy(Arc::new(|| ()), |d| disk_machine(d, 16 << 10, 2, None));
    let input = case.directory().join("in-x.npy");
    let mut bad = std::fs::read(&input).unwrap();
    let at = bad.len() - 96 * 4;
    bad[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(&input, bad).unwrap();
    let runtime = case.setup.runtime(None);
    let path = case.directory().join("run.trace");
    let spill = Spill::create(&path).unwrap();
    let ended = runtime.run(&case.job, Settings { trace: Some(spill.clone()), ..Settings::default() });
    assert!(matches!(ended.err(), Some(Error::Run(_) | Error::Kept { .. })));
    spill.publish().unwrap();
    drop(spill);
    assert!(case.left().contains(&"run.trace".to_owned()));
    let trace = Trace::load(&path).unwrap();
    let leaves = trace.records.iter().filter(|record| record.kind == Kind::Leaf).count();
    assert!(leaves > 0 && trace.breakdown().leaf_seconds > 0.0, "{leaves} leaves");
    // Of a run that was refused before it began there is none.
    let spill = Spill::create(&path).unwrap();
    std::fs::remove_file(&input).unwrap();
    assert!(runtime.run(&case.job, Settings { trace: Some(spill.clone()), ..Settings::default() }).is_err());
    assert!(spill.publish().is_err());
}

#[test]
fn a_run_that_is_interrupted_while_its_inputs_are_made_leaves_nothing() {
    for on_disk in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let mut program = Program::new();
        let task = program.task(Scale::<f32, 2>::default());
        let x = program.array::<f32, 2>("x", [64, 96], Role::InOut).unwrap();
        let a = program.array::<f32, 2>("a", [64, 96], Role::Input).unwrap();
        program.call(task, (x.all(), a.all()), Scalars::new()).unwrap();
        let job = Job::new("update", program)
            .with_source(0, Source::Generated { seed: 1 })
            .with_source(1, Source::Generated { seed: 2 })
            .with_sink(0, Sink::Npy(directory.path().join("x.npy")));
        let machine = if on_disk { disk_machine(directory.path(), 16 << 10, 2, None) } else { memory_machine(2, None) };
        let setup = Setup { machine, mapping: Default::default(), backend: BackendChoice::Auto };
        let runtime = setup.runtime(None);
        let abort = Abort::new();
        let on_start = || abort.raise();
        let settings = Settings { abort: Some(&abort), on_start: Some(&on_start), ..Settings::default() };
        let error = runtime.run(&job, settings).err().expect("the run was interrupted");
        assert!(matches!(error, Error::Interrupted { resume: false }), "{error}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "on disk: {on_disk}");
        run(&runtime, &job, false, None).unwrap();
    }
}

#[test]
fn progress_is_told_of_every_child() {
    let directory = tempfile::tempdir().unwrap();
    for machine in [memory_machine(3, None), disk_machine(directory.path(), 16 << 10, 2, None)] {
        let mut program = Program::new();
        let task = program.task(Scale::<f32, 2>::default());
        let x = program.array::<f32, 2>("x", [64, 96], Role::InOut).unwrap();
        let a = program.array::<f32, 2>("a", [64, 96], Role::Input).unwrap();
        program.call(task, (x.all(), a.all()), Scalars::new()).unwrap();
        let job = Job::new("update", program).with_source(0, Source::Generated { seed: 1 });
        let job = job.with_source(1, Source::Generated { seed: 2 });
        let name = machine.memory(machine.root()).name.clone();
        let setup = Setup { machine, mapping: Default::default(), backend: BackendChoice::Auto };
        let seen = Mutex::new(Vec::new());
        let told = |progress: Progress| seen.lock().unwrap().push((progress.done, progress.total));
        let settings = Settings { progress: Some(&told), ..Settings::default() };
        let outcome = setup.runtime(None).run(&job, settings).unwrap();
        let seen = seen.into_inner().unwrap();
        assert_eq!(seen.len(), outcome.plan.calls.len(), "{name}");
        let furthest = seen.iter().map(|(done, _)| *done).fold(0.0, f64::max);
        assert!((furthest / seen[0].1 - 1.0).abs() < 1e-9, "{name}: {furthest} of {}", seen[0].1);
    }
}

#[test]
fn an_interrupted_run_is_continued() {
    let calls = Arc::new(AtomicU64::new(0));
    // The call at which the run is interrupted; none at first.
    let (at, seen) = (Arc::new(AtomicU64::new(u64::MAX)), Arc::new(AtomicBool::new(false)));
    let hook = {
        let (calls, at, seen) = (calls.clone(), at.clone(), seen.clone());
        move || {
            if calls.fetch_add(1, Ordering::SeqCst) == at.load(Ordering::SeqCst) {
                // Tells the other thread, and waits until it has raised the flag.
                seen.store(true, Ordering::SeqCst);
                while seen.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    };
    let case = touchy(Arc::new(hook), |d| disk_machine(d, 16 << 10, 2, None));
    let expected = case.expected();
    let runtime = case.setup.runtime(None);
    calls.store(0, Ordering::SeqCst);
    run(&runtime, &case.job, false, None).unwrap();
    case.clear();
    // In the middle, where something is done and something left.
    let middle = calls.swap(0, Ordering::SeqCst) / 2;
    assert!(middle > 0, "a single call cannot be interrupted in the middle");
    at.store(middle, Ordering::SeqCst);
    let abort = Abort::new();
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !seen.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            abort.raise();
            seen.store(false, Ordering::SeqCst);
        });
        runtime.run(&case.job, Settings { abort: Some(&abort), ..Settings::default() })
    });
    let error = ended.err().expect("the run was interrupted");
    assert!(matches!(error, Error::Interrupted { resume: true }), "{error}");
    assert_eq!(error.exit_status(), 1);
    assert_eq!(case.left(), ["y.npy.journal", "y.npy.part"]);
    at.store(u64::MAX, Ordering::SeqCst);
    let outcome = run(&runtime, &case.job, true, None).unwrap();
    let all = case.setup.runtime(None).plan(&case.job).unwrap().plan.calls.len();
    assert!(outcome.resumed && outcome.plan.calls.len() < all, "{} of {all} calls", outcome.plan.calls.len());
    assert!(case.results() == expected);
    assert_eq!(case.left(), ["y.npy"]);
}

#[test]
fn every_machine_gives_the_same_bytes() {
    let mut program = Program::new();
    let task = program.task(Product::<f32>::default());
    let a = program.array::<f32, 2>("a", [37, 90], Role::Input).unwrap();
    let b = program.array::<f32, 2>("b", [90, 41], Role::Input).unwrap();
    let c = program.array::<f32, 2>("c", [37, 41], Role::Output).unwrap();
    program.call(task, (a.all(), b.all(), c.all()), Scalars::new()).unwrap();
    let mut expected: Option<Vec<Vec<u8>>> = None;
    for threads in [1, 3, 4] {
        for local in [None, Some(8 << 10)] {
            for dram in [None, Some(16 << 10), Some(100 << 10)] {
                let machine = |d: &std::path::Path| match dram {
                    None => memory_machine(threads, local),
                    Some(bytes) => disk_machine(d, bytes, threads, local),
                };
                let mut case = case("product", program.clone(), machine, BackendChoice::Auto);
                // Here tiles are the planner's choice.
                case.setup.mapping = Default::default();
                run(&case.setup.runtime(None), &case.job, false, None).unwrap();
                let found = case.results();
                let expected = expected.get_or_insert_with(|| found.clone());
                assert!(found == *expected, "{threads} threads, local {local:?}, dram {dram:?}");
            }
        }
    }
}
