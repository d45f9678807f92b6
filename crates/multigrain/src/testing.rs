//! Help for tests and benchmarks of applications: a job on a machine against sequential execution, calls split at random, small files.
//!
//! Not for use outside of these. Everything is a function of its seed; a failing seed reproduces the failure.

use crate::app::{Application, Checked};
use crate::{Error, Job, MachineChoice, Mapping, Options, Outcome, Runtime, Settings, Source, generate};
use multigrain_machine::{Machine, MemoryId};
use multigrain_plan::testing::{Rng, random_machine};
use multigrain_plan::{PlanError, check};
use multigrain_program::{
    Arg, CallShape, DynTask, ElementType, LeafContext, Parts, Program, RawView, Region, Role, Scalars, SequentialError,
    SubCall, Tunables,
};
use std::fmt::Debug;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Transfer buffers of a runtime for tests, bytes.
pub const TEST_BUFFER_BYTES: u64 = 256 << 10;

/// A random machine (see [`random_machine`]) whose memories below the root hold `scale` times as much, with its disk,
/// if it has one, in `directory`.
///
/// # Errors
/// When the machine is refused, which its generator excludes.
pub fn machine(seed: u64, scale: u64, directory: &Path) -> Result<Machine, Error> {
    let mut machine = random_machine(seed);
    for id in machine.ids() {
        let name = machine.memory(id).name.clone();
        machine = if id == machine.root() {
            let disk = has_disk(&machine);
            machine.with(&name, |m| m.path = disk.then(|| directory.to_owned()))?
        } else {
            let memory = machine.memory(id);
            // Transfer buffers come on top, or none of the small memories would hold them.
            let buffers = if memory.edge.is_some_and(|e| e.driver.files) { TEST_BUFFER_BYTES } else { 0 };
            let capacity = memory.capacity_bytes * scale + buffers;
            machine.with_capacity(&name, capacity)?
        };
    }
    Ok(machine)
}

fn has_disk(machine: &Machine) -> bool {
    machine.children(machine.root()).any(|c: MemoryId| machine.memory(c).edge.is_some_and(|e| e.driver.files))
}

/// A runtime with this machine and small transfer buffers.
///
/// # Errors
/// When the system refuses what it needs.
pub fn runtime(machine: Machine) -> Result<Runtime, Error> {
    runtime_with(machine, Mapping::default())
}

/// Some machines have plans of short lists, so that nearly everything on them is done in parts, and parts of parts.
fn listed_max(machine: &Machine) -> Option<u64> {
    let bytes: u64 = machine.memories().iter().skip(1).map(|memory| memory.capacity_bytes).fold(0, u64::wrapping_add);
    [None, Some(2), None, Some(5), None, Some(24)][(bytes % 97 % 6) as usize]
}

/// As [`runtime`], with a mapping.
///
/// # Errors
/// When the system refuses what it needs.
pub fn runtime_with(machine: Machine, mapping: Mapping) -> Result<Runtime, Error> {
    Runtime::new(Options {
        listed_max: listed_max(&machine),
        machine: MachineChoice::Given(Box::new(machine)),
        disk_buffer_bytes: Some(TEST_BUFFER_BYTES),
        mapping,
        ..Options::default()
    })
}

/// A [`runtime`] with the first random [`machine`] from `seed` on that has a disk.
///
/// # Errors
/// When the system refuses what it needs.
pub fn runtime_with_disk(seed: u64, scale: u64, directory: &Path) -> Result<Runtime, Error> {
    let mut seed = seed;
    loop {
        let machine = machine(seed, scale, directory)?;
        if has_disk(&machine) {
            return runtime(machine);
        }
        seed += 1;
    }
}

/// The initial content of a job's arrays. Files are left out: their arrays are empty.
pub fn initial_bytes(job: &Job) -> Vec<Vec<u8>> {
    job.arrays()
        .iter()
        .zip(&job.sources)
        .map(|(decl, source)| match source {
            None => vec![0; decl.bytes() as usize],
            Some(Source::Bytes(bytes)) => bytes.clone(),
            Some(Source::Generated { seed }) => {
                let mut bytes = vec![0; decl.bytes() as usize];
                generate::fill(decl.element, *seed, 0, &mut bytes);
                bytes
            }
            Some(Source::Npy(_) | Source::Raw(_)) => Vec::new(),
        })
        .collect()
}

/// Plans the job, has the independent checker look at the plan, runs it and compares every result with sequential
/// execution, byte by byte. `None`: the machine is too small for the job.
///
/// # Errors
/// In words, what failed or which array differs, with the machine and the plan.
pub fn run_and_compare(runtime: &Runtime, job: &Job) -> Result<Option<Outcome>, String> {
    let planned = match runtime.plan(job) {
        Ok(planned) => planned,
        Err(Error::Plan(PlanError::DoesNotFit { .. } | PlanError::MappingDoesNotFit { .. })) => return Ok(None),
        Err(error) => return Err(format!("plan: {error}")),
    };
    let explain = |what: String| format!("{what}\n{}\n{}", planned.machine.to_toml(), planned.plan);
    let rules = check::edge_rules(&planned.machine);
    check::check(&planned.plan, &rules).map_err(|e| explain(format!("checker: {e}")))?;
    let outcome = runtime.run(job, Settings::default()).map_err(|e| explain(format!("run: {e}")))?;
    let mut expected = initial_bytes(job);
    job.program.run_sequential(&mut expected).map_err(|e| e.to_string())?;
    for (i, decl) in job.arrays().iter().enumerate() {
        if matches!(decl.role, Role::Output | Role::InOut) {
            let found = outcome.read(i, &Region::whole(decl.shape)).map_err(|e| e.to_string())?;
            if let Some(at) = found.iter().zip(&expected[i]).position(|(a, b)| a != b) {
                let (name, shape) = (&decl.name, decl.shape);
                return Err(explain(format!("array {name} of shape {shape} differs from byte {at} on")));
            }
        }
    }
    Ok(Some(outcome))
}

/// Runs an application on a random [`machine`] for each seed and compares its results with sequential execution, byte by
/// byte ([`run_and_compare`]); `accept` judges what the application's own check found. How many runs there were: the
/// other machines were too small.
///
/// # Panics
/// Where a result differs or something is refused, with the seed.
pub fn on_random_machines<A: Application>(
    seeds: Range<u64>,
    scale: u64,
    directory: &Path,
    application: impl Fn(u64) -> A,
    accept: impl Fn(u64, &A, Checked),
) -> usize {
    let run = |seed: u64| -> Result<bool, String> {
        let text = |e: Error| e.to_string();
        let args = application(seed);
        let runtime = machine(seed, scale, directory).and_then(runtime).map_err(text)?;
        let app = args.prepare(&runtime).map_err(text)?;
        let Some(outcome) = run_and_compare(&runtime, &app.job)? else { return Ok(false) };
        accept(seed, &args, (app.check)(&outcome, seed).map_err(text)?);
        Ok(true)
    };
    seeds.filter(|&seed| run(seed).unwrap_or_else(|e| panic!("seed {seed}: {e}"))).count()
}

/// The content of a job's arrays after sequential execution, and after execution with every call split at random,
/// `depth` levels deep ([`run_split`]).
///
/// # Errors
/// When the sequential execution is refused.
///
/// # Panics
/// As [`run_split`].
pub fn whole_and_split(job: &Job, depth: usize, seed: u64) -> Result<[Vec<Vec<u8>>; 2], SequentialError> {
    let [mut whole, mut split] = [initial_bytes(job), initial_bytes(job)];
    job.program.run_sequential(&mut whole)?;
    run_split(&job.program, &mut split, depth, seed);
    Ok([whole, split])
}

/// The message with which a request is refused before anything is started.
///
/// # Panics
/// When it is accepted, or its error says that something was started.
pub fn refusal(runtime: &Runtime, args: &(impl Application + Debug)) -> String {
    let Err(error) = args.prepare(runtime) else { panic!("{args:?} was accepted") };
    assert_eq!(error.exit_status(), 2, "{error}");
    error.to_string()
}

/// Runs a program with every call split again and again, by tunables chosen at random, `depth` levels deep.
///
/// # Panics
/// When the arrays given are not those of the program, or a split makes a call outside of the blocks it was given.
pub fn run_split(program: &Program, arrays: &mut [Vec<u8>], depth: usize, seed: u64) {
    let mut memory: Vec<Vec<u64>> = arrays.iter().map(|bytes| vec![0; bytes.len().div_ceil(8)]).collect();
    for ((decl, bytes), words) in program.arrays().iter().zip(arrays.iter()).zip(&mut memory) {
        assert_eq!(decl.bytes(), bytes.len() as u64, "bytes of {}", decl.name);
        if matches!(decl.role, Role::Input | Role::InOut) {
            words.iter_mut().zip(bytes.chunks(8)).for_each(|(word, bytes)| {
                let mut all = [0; 8];
                all[..bytes.len()].copy_from_slice(bytes);
                *word = u64::from_ne_bytes(all);
            });
        }
    }
    let mut rng = Rng::new(seed);
    for call in program.calls() {
        let task = &program.tasks()[call.task as usize];
        let view = |arg: &Arg| {
            let decl = &program.arrays()[arg.array as usize];
            let whole = RawView::dense(memory[arg.array as usize].as_mut_ptr().cast(), decl.element, decl.shape);
            whole.part(&arg.region).expect("a block in its array")
        };
        let views: Vec<RawView> = call.args.iter().map(view).collect();
        split(task, &views, &call.scalars, depth, &mut rng);
    }
    for (bytes, words) in arrays.iter_mut().zip(&memory) {
        let all: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).take(bytes.len()).collect();
        *bytes = all;
    }
}

fn split(task: &Arc<dyn DynTask>, views: &[RawView], scalars: &Scalars, depth: usize, rng: &mut Rng) {
    let call = CallShape { shapes: views.iter().map(RawView::shape).collect(), scalars: scalars.clone() };
    if depth == 0 {
        let mut scratch = vec![0u128; task.scratch_bytes(&call, u64::MAX) as usize / 16 + 8];
        let base: *mut u8 = scratch.as_mut_ptr().cast();
        let skip = base.align_offset(64);
        // SAFETY: the vector is longer by 64 bytes or more than what is asked for from its aligned part.
        let scratch = unsafe { std::slice::from_raw_parts_mut(base.add(skip), 16 * scratch.len() - skip) };
        // SAFETY: blocks lie in arrays that `run_split` owns; one call runs at a time, and a program or a split passes no
        // overlapping blocks of which one is written.
        unsafe { task.leaf(views, &mut LeafContext::new(scalars, scratch)) };
        return;
    }
    let stages = task.stages(&call).unwrap_or_else(|error| panic!("{error}"));
    if !stages.is_empty() && rng.percent(50) {
        return run_parts(&stages, task, views, depth, rng);
    }
    let mut tunables = Tunables::new();
    for axis in task.tunables(&call) {
        let steps = axis.extent.div_ceil(axis.multiple.max(1));
        // Small blocks and whole axes alike.
        let most = if rng.percent(30) { steps } else { steps.min(8) };
        let blocks = match task.reduced_axis() == Some(axis.name) {
            true => 1 << rng.below(u64::from(most.ilog2()) + 2),
            false => rng.range(1, most),
        };
        tunables.set(axis.name, (axis.multiple * blocks).min(axis.extent));
    }
    let made = Parts::of(task, &call, &tunables).unwrap_or_else(|error| panic!("{error}"));
    let mut memory: Vec<Vec<u64>> =
        made.temporaries.iter().map(|decl| vec![u64::MAX; decl.bytes().div_ceil(8) as usize]).collect();
    let partials = made.temporaries.iter().zip(&mut memory);
    let views: Vec<RawView> = views
        .iter()
        .copied()
        .chain(partials.map(|(decl, words)| RawView::dense(words.as_mut_ptr().cast(), decl.element, decl.shape)))
        .collect();
    run_parts(&made.calls, task, &views, depth - 1, rng);
}

/// Runs sub-calls of a call, each split again.
fn run_parts(calls: &[SubCall], task: &Arc<dyn DynTask>, views: &[RawView], depth: usize, rng: &mut Rng) {
    for sub in calls {
        let part = |(from, region): &(usize, Region)| views[*from].part(region).expect("a block of an argument");
        let parts: Vec<RawView> = sub.args.iter().map(part).collect();
        split(sub.callee(task), &parts, &sub.scalars, depth, rng);
    }
}

/// The first `n` numbers of a seed's generated array.
pub fn numbers(seed: u64, n: u64) -> Vec<f32> {
    (0..n).map(|i| generate::f32_at(seed, i)).collect()
}

/// The median of so many runs, in seconds, after one that is not counted. For benchmarks of kernels; nothing is timed in
/// a test.
pub fn median_seconds(runs: usize, mut run: impl FnMut()) -> f64 {
    run();
    let timed = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    let mut seconds: Vec<f64> = (0..runs.max(1)).map(timed).collect();
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// Writes a .npy file of float32.
///
/// # Errors
/// What the file system says.
pub fn write_npy(path: &Path, shape: &[u64], values: &[f32]) -> std::io::Result<()> {
    let mut content = multigrain_store::npy::write(ElementType::F32, shape).map_err(std::io::Error::other)?;
    content.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    std::fs::write(path, content)
}

/// Reads the elements of a .npy file of float32.
///
/// # Errors
/// The file cannot be read or is not what it should be.
pub fn read_npy(path: &Path) -> std::io::Result<Vec<f32>> {
    let content = std::fs::read(path)?;
    let header = multigrain_store::npy::parse(&content).map_err(std::io::Error::other)?;
    let data = content.get(header.data_offset_bytes as usize..).unwrap_or_default();
    Ok(data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
}

/// Alters the result of a run, a .npy file of float32, complex64 or float64, in each of the ways in which results go wrong,
/// one after the other, and asks `holds` each time whether the check lets it pass: one element by a hundredth of itself, one
/// NaN, one infinite, one (element and amount of `just_above`) by little more than what is allowed, two blocks swapped, one
/// block zero. Elements are chosen at random, not among the small ones. In between the file is as it was, and the check must
/// hold.
///
/// # Panics
/// Where a check lets an altered result pass or refuses the right one, with what was done; where the file is none.
pub fn alterations(path: &Path, just_above: Option<(u64, f64)>, seed: u64, mut holds: impl FnMut() -> bool) {
    let content = std::fs::read(path).expect("the result");
    let header = multigrain_store::npy::parse(&content).expect("a .npy file");
    let start = header.data_offset_bytes as usize;
    // A complex number is two numbers; rows are those of the last dimension.
    let (size, numbers) = match header.element {
        ElementType::F64 => (8, 1),
        ElementType::C64 => (4, 2),
        _ => (4, 1),
    };
    let value = |content: &[u8], i: usize| match content[start + i * size..][..size] {
        [a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])),
        ref bytes => f64::from_le_bytes(std::array::from_fn(|at| bytes[at])),
    };
    let set = |content: &mut [u8], i: usize, to: f64| match size {
        4 => content[start + i * 4..][..4].copy_from_slice(&(to as f32).to_le_bytes()),
        _ => content[start + i * 8..][..8].copy_from_slice(&to.to_le_bytes()),
    };
    let count = (content.len() - start) / size;
    let mean = ((0..count).map(|i| value(&content, i).powi(2)).sum::<f64>() / count as f64).sqrt();
    let mut rng = Rng::new(seed);
    let mut one = || loop {
        let i = rng.below(count as u64) as usize;
        if value(&content, i).abs() >= 0.5 * mean {
            return i;
        }
    };
    let mut cases: Vec<(String, Vec<u8>)> = Vec::new();
    let mut case = |what: String, alter: &mut dyn FnMut(&mut [u8])| {
        let mut altered = content.clone();
        alter(&mut altered);
        assert!(altered != content, "seed {seed}: {what} changes nothing");
        cases.push((what, altered));
    };
    for _ in 0..3 {
        let i = one();
        case(format!("number {i} by a hundredth"), &mut |content| set(content, i, 1.01 * value(content, i)));
    }
    for to in [f64::NAN, f64::INFINITY] {
        let i = one();
        case(format!("number {i} is {to}"), &mut |content| set(content, i, to));
    }
    if let Some((i, amount)) = just_above {
        let i = i as usize;
        case(format!("number {i} by {amount:e}"), &mut |content| set(content, i, value(content, i) + amount));
    }
    // Blocks of some rows and columns, where there is room for two.
    let columns = header.shape.last().map_or(1, |&n| n as usize * numbers);
    let rows = count / columns;
    let (high, wide) = ((rows / 3).clamp(1, 8), (columns / 3).clamp(1, 8));
    let mut place = |skip: usize| loop {
        let at =
            rng.below((rows - high + 1) as u64) as usize * columns + rng.below((columns - wide + 1) as u64) as usize;
        let apart = |a: usize, b: usize, by: usize| a.abs_diff(b) >= by;
        if skip == usize::MAX || apart(at / columns, skip / columns, high) || apart(at % columns, skip % columns, wide)
        {
            return at;
        }
    };
    let cells = |at: usize| (0..high * wide).map(move |i| at + i / wide * columns + i % wide);
    let zero = place(usize::MAX);
    case(format!("{high} x {wide} zeros from {zero} on"), &mut |content| {
        cells(zero).for_each(|i| set(content, i, 0.0))
    });
    if rows > 2 * high || columns > 2 * wide {
        let from = place(usize::MAX);
        let to = place(from);
        case(format!("{high} x {wide} from {from} and {to} swapped"), &mut |content| {
            for (a, b) in cells(from).zip(cells(to)) {
                let (left, right) = (value(content, a), value(content, b));
                set(content, a, right);
                set(content, b, left);
            }
        });
    }
    let put = |content: &[u8]| {
        let file = std::fs::OpenOptions::new().write(true).open(path).expect("the result");
        std::os::unix::fs::FileExt::write_all_at(&file, content, 0).expect("it can be written");
        file.sync_all().expect("it can be written");
    };
    for (what, altered) in &cases {
        put(altered);
        assert!(!holds(), "seed {seed}: the check lets pass: {what}");
        put(&content);
        assert!(holds(), "seed {seed}: the check refuses the right result, which had {what}");
    }
}
