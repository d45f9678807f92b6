//! What safe code cannot do, however wrong it is: reach memory that is not its own. Every task here is written without
//! `unsafe`, and each of these programs once read or wrote what belonged to somebody else.
#![forbid(unsafe_code)]

use crate::support;

use multigrain::prelude::*;
use multigrain::rooms::engine::EngineError;
use multigrain::rooms::plan::PlanError;
use multigrain::testing::write_npy;
use multigrain::{MachineChoice, Mapping};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::{BUFFER_BYTES, disk_machine, memory_machine};

const N: u64 = 4096;
/// Calls on as many elements are split wrongly.
const SMALL: u64 = 1024;

/// Makes a call of a block: where it starts, how long it is, of how many.
type Make = fn(u64, u64, u64) -> Vec<(usize, Region)>;

/// y = x; calls of at most `wrong_up_to` elements are split by `make`.
struct Move {
    wrong_up_to: u64,
    make: Make,
}

fn part(start: u64, len: u64) -> Region {
    Region::new(&[start], &[len])
}

impl Task for Move {
    type Params = (Read<f32, 1>, Write<f32, 1>);
    fn name(&self) -> &'static str {
        "move"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["x", "y"]
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        vec![Tunable { name: "n", extent: call.shapes[0].elements(), multiple: 1 }]
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let n = call.shapes[0].elements();
        let right: Make = |start, len, _| vec![(0, part(start, len)), (1, part(start, len))];
        let make = if n <= self.wrong_up_to { self.make } else { right };
        let call = |(start, len)| SubCall::itself(make(start, len, n), &call.scalars);
        blocks(n, tunables.get("n", n)).map(call).collect()
    }
    fn leaf(&self, (x, mut y): (View<'_, f32, 1>, ViewMut<'_, f32, 1>), _: &mut LeafContext<'_>) {
        y.row_mut(&[]).iter_mut().zip(x.row(&[])).for_each(|(y, x)| *y = *x);
    }
    fn work(&self, call: &CallShape) -> Work {
        let n = call.shapes[0].elements() as f64;
        Work { flops: n, bytes: 8.0 * n }
    }
}

/// Cores that share a memory, the same below a disk, and with local stores.
fn machines(directory: &std::path::Path) -> [Machine; 3] {
    [
        memory_machine(2, None),
        disk_machine(directory, 64 << 10, 2, None),
        disk_machine(directory, 64 << 10, 2, Some(8 << 10)),
    ]
}

/// Blocks of a quarter below a disk, and of a sixteenth for a core.
fn runtime(machine: &Machine, task: &str) -> Runtime {
    let mut mapping = Mapping::default();
    for memory in machine.memories() {
        match memory.name.as_str() {
            "dram" if machine.memory(machine.root()).name != "dram" => mapping.set(task, "dram", "n", SMALL),
            "core" => mapping.set(task, "core", "n", SMALL / 4),
            _ => {}
        }
    }
    Runtime::new(Options {
        machine: MachineChoice::Given(Box::new(machine.clone())),
        disk_buffer_bytes: Some(BUFFER_BYTES),
        mapping,
        ..Options::default()
    })
    .unwrap()
}

fn job<T>(task: T, outputs: u64) -> (Job, usize)
where
    T: Task<Params: ParamList<Blocks = (Block<f32, 1>, Block<f32, 1>)>>,
{
    let mut program = Program::new();
    let task = program.task(task);
    let x = program.array::<f32, 1>("x", [N], Role::Input).unwrap();
    let y = program.array::<f32, 1>("y", [outputs], Role::Output).unwrap();
    program.call(task, (x.all(), y.all()), Scalars::new()).unwrap();
    (Job::new("safety", program).with_source(x.index(), Source::Generated { seed: 1 }), y.index())
}

/// What the runs of all machines say of a split that is wrong at the root edge, and of one that is wrong below.
fn refused(make: Make, words: &str) {
    let directory = support::directory();
    for machine in machines(directory.path()) {
        for wrong_up_to in [N, SMALL] {
            let has_inner = machine.memories().len() > 2;
            if wrong_up_to < N && !has_inner {
                continue;
            }
            let runtime = runtime(&machine, "move");
            let (job, _) = job(Move { wrong_up_to, make }, N);
            let error = runtime.run(&job, Settings::default()).err().expect("a split that is wrong");
            assert!(matches!(error, Error::Plan(PlanError::Split(_))), "{error:?}");
            let text = error.to_string();
            assert!(text.contains("task move") && text.contains(words), "{words:?} is not in {text:?}");
            assert_eq!(error.exit_status(), 2);
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
        }
    }
}

#[test]
fn splits_stay_within_their_blocks() {
    refused(|i, n, _| vec![(0, part(i + (1 << 40), n)), (1, part(i, n))], "x is given");
    refused(|i, n, all| vec![(0, part(i + all, n)), (1, part(i, n))], "x is given");
    refused(|i, n, all| vec![(0, part(i, n)), (1, part(i + all, n))], "y is given");
    refused(|i, n, _| vec![(0, part(i, n)), (1, part(i.wrapping_sub(1), n))], "y is given");
    refused(|i, n, _| vec![(0, part(i, n)), (1, part(i, u64::MAX))], "y is given");
}

#[test]
fn splits_write_what_they_were_given_to_write() {
    refused(|i, n, _| vec![(1, part(i, n)), (1, part(i, n))], "x and y overlap");
    refused(|i, n, _| vec![(1, part(i, n)), (0, part(i, n))], "x is an input");
}

#[test]
fn splits_pass_the_arguments_that_there_are() {
    refused(|i, n, _| vec![(7, part(i, n)), (1, part(i, n))], "argument number 7 of 2");
    refused(|i, n, _| vec![(0, part(i, n))], "given 1 arguments and has 2");
    refused(|i, n, _| vec![(0, Region::new(&[i, 0], &[n, 1])), (1, part(i, n))], "x is given");
    refused(|_, _, _| Vec::new(), "given 0 arguments");
}

/// Overlapping blocks of one call are written in the order of the sub-calls, by whichever worker.
#[test]
fn sub_calls_that_share_what_they_write_have_an_order() {
    let overlapping: Make = |start, len, all| {
        let len = (len + len / 2).min(all - start);
        vec![(0, part(start, len)), (1, part(start, len))]
    };
    let directory = support::directory();
    for machine in machines(directory.path()) {
        let (job, y) = job(Move { wrong_up_to: N, make: overlapping }, N);
        let outcome = runtime(&machine, "move").run(&job, Settings::default()).unwrap();
        let found = outcome.read_f32(y, &part(0, N)).unwrap();
        assert!(found.iter().zip(0..).all(|(found, i)| *found == generate::f32_at(1, i)));
    }
}

/// it = it + 1, or it = 1 where it is only written.
struct One<P>(std::marker::PhantomData<P>);

impl<P: ParamKind<Block = Block<f32, 1>> + for<'a> ParamKind<View<'a> = ViewMut<'a, f32, 1>>> Task for One<P> {
    type Params = (P,);
    fn name(&self) -> &'static str {
        "one"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["it"]
    }
    fn leaf(&self, (mut it,): (ViewMut<'_, f32, 1>,), _: &mut LeafContext<'_>) {
        let reads = P::PARAM.access.reads();
        it.row_mut(&[]).iter_mut().for_each(|it| *it = 1.0 + if reads { *it } else { 0.0 });
    }
}

/// y = 2, block by block: by writing and then updating, or by updating alone what nobody has written.
struct Two {
    writes: bool,
    wrong_up_to: u64,
}

impl Task for Two {
    type Params = (Read<f32, 1>, Write<f32, 1>);
    fn name(&self) -> &'static str {
        "two"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["x", "y"]
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        vec![Tunable { name: "n", extent: call.shapes[1].elements(), multiple: 1 }]
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let n = call.shapes[1].elements();
        let (write, update) = (One::<Write<f32, 1>>(Default::default()), One::<Update<f32, 1>>(Default::default()));
        let (write, update) = (Program::erase(write), Program::erase(update));
        let calls = |(start, len)| {
            let one = |task| SubCall::of(task, [(1, part(start, len))], &call.scalars);
            match n <= self.wrong_up_to {
                false => vec![SubCall::itself([(0, part(start, len)), (1, part(start, len))], &call.scalars)],
                true if self.writes => vec![one(&write), one(&update)],
                true => vec![one(&update)],
            }
        };
        blocks(n, tunables.get("n", n)).flat_map(calls).collect()
    }
    fn leaf(&self, (_, mut y): (View<'_, f32, 1>, ViewMut<'_, f32, 1>), _: &mut LeafContext<'_>) {
        y.row_mut(&[]).fill(2.0);
    }
}

/// The memory that a block is written in held another array before.
#[test]
fn splits_read_what_they_have_written() {
    let directory = support::directory();
    for machine in machines(directory.path()) {
        for wrong_up_to in [N, SMALL] {
            if wrong_up_to < N && machine.memories().len() < 3 {
                continue;
            }
            let run = |writes| {
                let (job, y) = job(Two { writes, wrong_up_to }, N);
                runtime(&machine, "two").run(&job, Settings::default()).map(|outcome| (outcome, y))
            };
            let (outcome, y) = run(true).unwrap();
            assert!(outcome.read_f32(y, &part(0, N)).unwrap().iter().all(|&y| y == 2.0));
            let error = run(false).err().expect("a split that reads what nobody has written");
            let text = error.to_string();
            assert!(text.contains("task two") && text.contains("it reads") && text.contains("of y"), "{text}");
            assert_eq!(error.exit_status(), 2);
        }
    }
}

/// y[0] = the sum of x, by spans of 64. Once `turned` is set its inner variant begins a block before the one it is given.
struct Total {
    turned: Arc<AtomicBool>,
}

impl Task for Total {
    type Params = (Read<f32, 1>, Reduce<f32, 1>);
    fn name(&self) -> &'static str {
        "total"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["x", "sum"]
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        vec![Tunable { name: "n", extent: call.shapes[0].elements(), multiple: 16 }]
    }
    fn reduced_axis(&self) -> Option<&'static str> {
        Some("n")
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let (n, whole) = (call.shapes[0].elements(), Region::whole(call.shapes[1]));
        let back = if self.turned.load(Ordering::Relaxed) { 16 } else { 0 };
        let call =
            |(i, len): (u64, u64)| SubCall::itself([(0, part(i.wrapping_sub(back), len)), (1, whole)], &call.scalars);
        blocks(n, tunables.get("n", n)).map(call).collect()
    }
    fn leaf(&self, (x, mut sum): (View<'_, f32, 1>, ReduceMut<'_, f32, 1, Sum>), _: &mut LeafContext<'_>) {
        sum.combine([0], x.row(&[]).iter().sum());
    }
    fn work(&self, call: &CallShape) -> Work {
        let n = call.shapes[0].elements() as f64;
        Work { flops: n, bytes: 4.0 * n }
    }
}

/// A leaf that reduces asks its inner variant again, when every order between calls has long been found.
#[test]
fn leaves_that_split_stay_within_their_blocks_whenever_they_are_asked() {
    let directory = support::directory();
    for machine in machines(directory.path()) {
        let turned = Arc::new(AtomicBool::new(false));
        let (job, y) = job(Total { turned: turned.clone() }, 1);
        let runtime = runtime(&machine, "total");
        let right = runtime.run(&job, Settings::default()).unwrap().read_f32(y, &part(0, 1)).unwrap();
        let turn = || turned.store(true, Ordering::Relaxed);
        let error =
            runtime.run(&job, Settings { on_start: Some(&turn), ..Settings::default() }).err().expect("a fault");
        let Error::Run(EngineError::LeafPanicked { call, message }) = &error else { panic!("{error:?}") };
        assert!(call.task == "total" && message.contains("x is given"), "{error}");
        // Told before anything is started where it is so from the start.
        let error = runtime.run(&job, Settings::default()).err().expect("a split that is wrong");
        assert!(matches!(error, Error::Plan(PlanError::Split(_))), "{error:?}");
        turned.store(false, Ordering::Relaxed);
        let again = runtime.run(&job, Settings::default()).unwrap().read_f32(y, &part(0, 1)).unwrap();
        assert_eq!(right[0].to_bits(), again[0].to_bits());
    }
}

/// Files that are longer or shorter than their arrays, or of more dimensions than arrays have.
#[test]
fn files_have_the_shape_of_their_arrays() {
    let directory = support::directory();
    let file = directory.path().join("in.npy");
    for role in [Role::Input, Role::InOut] {
        let mut program = Program::new();
        let task = program.task(Move { wrong_up_to: 0, make: |_, _, _| Vec::new() });
        let x = program.array::<f32, 1>("x", [N], role).unwrap();
        let y = program.array::<f32, 1>("y", [N], Role::Output).unwrap();
        program.call(task, (x.all(), y.all()), Scalars::new()).unwrap();
        let job = Job::new("safety", program).with_source(x.index(), Source::Npy(file.clone()));
        for machine in machines(directory.path()) {
            let runtime = runtime(&machine, "move");
            for shape in [&[2 * N][..], &[N / 2], &[N, 1], &[1, 1, 1, 1, N]] {
                let elements = shape.iter().product::<u64>() as usize;
                write_npy(&file, shape, &vec![1.0; elements]).unwrap();
                let error = runtime.run(&job, Settings::default()).err().expect("a file of another shape");
                let text = error.to_string();
                assert!(text.contains("in.npy has shape") && text.contains("4096"), "{text}");
                assert_eq!(error.exit_status(), 2);
            }
            write_npy(&file, &[N], &vec![1.0; N as usize]).unwrap();
            let outcome = runtime.run(&job, Settings::default()).unwrap();
            assert_eq!(outcome.read_f32(y.index(), &part(N - 1, 1)).unwrap(), [1.0]);
        }
    }
}
