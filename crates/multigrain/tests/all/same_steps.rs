//! The engine and the simulator do the same with a plan, step by step: random programs on random machines are run and
//! simulated, and what was recorded of both is compared. Where every child keeps to its own steps, each worker has the same
//! leaves, transfers, calls and signals in the same order; where children claim batches, all have the same together, batches
//! stay whole, and phases follow each other. In both, nothing begins before what its plan lets it wait for.
//!
//! `MULTIGRAIN_CASES=10000 cargo test -p multigrain --release --test same_steps` is the longer form.

use multigrain::rooms::machine::{Driver, Edge, Layout, Machine, Memory, MemoryId, Processor, ProcessorKind};
use multigrain::rooms::plan::testing::{Rng, Scale, random_bytes, random_program};
use multigrain::rooms::plan::{Body, Op, Plan};
use multigrain::rooms::trace::{BARRIER_SIGNAL, Kind, Record, Trace};
use multigrain::testing::{machine, runtime};
use multigrain::{Error, Job, Settings, Simulation, Source};
use multigrain_program::{Program, Role, Scalars};
use std::collections::{BTreeMap, VecDeque};

/// What of a record does not depend on when or, with `worker` 0, by whom.
type Key = (u32, u8, u16, u32, u32, u8);

fn key(record: &Record, worker: u32) -> Key {
    (worker, record.kind as u8, record.index, record.subject, record.number, record.detail)
}

fn of(trace: &Trace, kinds: &[Kind]) -> Vec<Record> {
    let is_one = |record: &&Record| kinds.contains(&record.kind);
    trace.records.iter().filter(is_one).copied().collect()
}

fn counts(records: &[Record], worker: impl Fn(&Record) -> u32) -> BTreeMap<Key, usize> {
    let mut counts = BTreeMap::new();
    records.iter().for_each(|record| *counts.entry(key(record, worker(record))).or_default() += 1);
    counts
}

/// Whether any plan's batches are claimed by whoever is free.
fn claims(plan: &Plan) -> bool {
    plan.claims() || plan.classes.iter().any(|class| matches!(&class.body, Body::Inner(inner) if claims(inner)))
}

/// Whether any plan has work for two kinds of children.
fn divides(plan: &Plan) -> bool {
    (plan.is_division && plan.forks())
        || plan.classes.iter().any(|class| matches!(&class.body, Body::Inner(inner) if divides(inner)))
}

/// Whether two kinds of children that read files have work.
fn divides_files(plan: &Plan) -> bool {
    plan.is_division && plan.driver.files && plan.forks()
}

/// The same records in both, in orders that agree.
fn agree(plan: &Plan, ran: &Trace, simulated: &Trace) -> Result<(), String> {
    if (&ran.slots, &ran.uses, &ran.header.plans) != (&simulated.slots, &simulated.uses, &simulated.header.plans) {
        return Err("the plans differ".into());
    }
    let claimed = claims(plan);
    // Where children claim, whoever finishes a phase last gives the signal, and whoever has the batch counts its transfers.
    let whose = |record: &Record| if claimed { 0 } else { record.worker };
    let kinds = [Kind::Leaf, Kind::Transfer, Kind::Signal, Kind::Call];
    let anonymous = |record: &Record| match record.kind {
        Kind::Signal if claimed => Record { subject: 0, ..*record },
        Kind::Transfer if claimed => Record { number: 0, ..*record },
        _ => *record,
    };
    let all = |trace: &Trace| of(trace, &kinds).iter().map(anonymous).collect::<Vec<_>>();
    let (mut first, second) = (all(ran), all(simulated));
    let (found, expected) = (counts(&second, whose), counts(&first, whose));
    if found != expected {
        let only = |a: &BTreeMap<Key, usize>, b: &BTreeMap<Key, usize>| -> Vec<(Key, usize)> {
            a.iter()
                .filter(|(key, count)| b.get(*key) != Some(*count))
                .map(|(key, count)| (*key, *count))
                .take(4)
                .collect()
        };
        return Err(format!("ran {:?}, simulated {:?}", only(&expected, &found), only(&found, &expected)));
    }
    if claimed {
        return Ok(());
    }
    // As each worker did it: transfers are numbered as they were issued, and what contains others begins before them.
    let mut starts: BTreeMap<Key, VecDeque<u64>> = BTreeMap::new();
    second.iter().for_each(|record| starts.entry(key(record, record.worker)).or_default().push_back(record.start));
    let order = |r: &Record| (r.worker, r.start, u64::MAX - r.end, (r.kind == Kind::Transfer).then_some(r.number));
    first.sort_by_key(order);
    let mut before: BTreeMap<u32, (u64, Record)> = BTreeMap::new();
    for record in first {
        let start = starts.get_mut(&key(&record, record.worker)).and_then(VecDeque::pop_front).unwrap_or_default();
        if let Some((since, other)) = before.insert(record.worker, (start, record))
            && start < since
        {
            return Err(format!("run before {record:?}, simulated behind it: {other:?}"));
        }
    }
    Ok(())
}

/// In what was recorded of a plan of the root that was executed once, and whose children keep to their steps, nothing begins
/// before what it waits for.
fn waits(plan: &Plan, trace: &Trace, layout: &Layout) -> Result<usize, String> {
    let mut looked_at = 0;
    // What one child alone has to do is done where the plan begins.
    let mine = |child: usize| if plan.forks() { layout.branch(0).first_worker(0, child) as u32 } else { 0 };
    let signals = |child: usize, number: u32| {
        let is_one =
            move |r: &&Record| r.kind == Kind::Signal && r.index == 0 && r.worker == mine(child) && r.number == number;
        trace.records.iter().filter(is_one).map(|r| r.start)
    };
    for (child, steps) in plan.children.iter().enumerate() {
        let own: Vec<&Record> = trace.records.iter().filter(|r| r.worker == mine(child)).collect();
        let mut transfers: Vec<&&Record> = own.iter().filter(|r| r.kind == Kind::Transfer && r.index == 0).collect();
        transfers.sort_by_key(|r| r.number);
        // When whatever has been waited for was there; when the step before ended.
        let (mut ready, mut barriers) = (0, 0);
        for (number, op) in steps.ops.iter().enumerate() {
            let begins = |start: u64, ready: u64| match start < ready {
                true => Err(format!("step {number} of child {child}, {op:?}, begins at {start}, waits until {ready}")),
                false => Ok(()),
            };
            looked_at += 1;
            match *op {
                Op::Fetch { transfer, .. } | Op::Store { transfer, .. } => {
                    let issued = transfers.get(transfer as usize).ok_or("a transfer without a record")?;
                    begins(issued.start, ready)?;
                    ready = ready.max(issued.start);
                }
                Op::Await { transfer } => {
                    ready = ready.max(transfers.get(transfer as usize).ok_or("a transfer without a record")?.end);
                }
                Op::Run { call, .. } => {
                    let leaf = matches!(plan.classes[plan.class_of[call as usize] as usize].body, Body::Leaf { .. });
                    let kind = if leaf { Kind::Leaf } else { Kind::Call };
                    let is_it = |r: &&&Record| r.kind == kind && r.subject == 0 && r.number == call;
                    let run = own.iter().find(is_it).ok_or(format!("call {call} has no record"))?;
                    begins(run.start, ready)?;
                    ready = run.end;
                }
                Op::Wait { child: other, signals: wanted } => {
                    let given = signals(other as usize, wanted).next().ok_or("a signal without a record")?;
                    ready = ready.max(given);
                }
                Op::Barrier => {
                    for other in 0..plan.children.len() {
                        let came = signals(other, BARRIER_SIGNAL).nth(barriers).ok_or("nobody came")?;
                        ready = ready.max(came);
                    }
                    barriers += 1;
                }
                Op::Broadcast { .. } | Op::Signal => {}
            }
        }
    }
    Ok(looked_at)
}

/// In what was recorded of a plan of the root whose batches are claimed, each batch is one worker's, from front to back, and
/// a phase begins when all of the one before is done.
fn batches(plan: &Plan, trace: &Trace) -> Result<usize, String> {
    let run = |call: u32| {
        let leaf = matches!(plan.classes[plan.class_of[call as usize] as usize].body, Body::Leaf { .. });
        let kind = if leaf { Kind::Leaf } else { Kind::Call };
        // Those that are led have the same record of a call: the leader is the first.
        let is_it = |r: &&Record| r.kind == kind && r.subject == 0 && r.number == call;
        trace.records.iter().filter(is_it).min_by_key(|r| r.worker).ok_or(format!("call {call} has no record"))
    };
    let (mut before, mut looked_at) = (0, 0);
    for phase in 0..plan.phases() {
        let mut over = before;
        for (owner, child) in plan.children.iter().enumerate() {
            for batch in child.phase(phase) {
                let ops = child.batches[batch as usize].clone();
                let mut last: Option<&Record> = None;
                for op in &child.ops[ops.start as usize..ops.end as usize] {
                    let &Op::Run { call, .. } = op else { continue };
                    let run = run(call)?;
                    let whole = last.is_none_or(|last| last.worker == run.worker && last.end <= run.start);
                    if !whole || run.start < before {
                        return Err(format!(
                            "batch {batch} of child {owner}, phase {phase}, from {before}: {last:?} {run:?}"
                        ));
                    }
                    (last, over, looked_at) = (Some(run), over.max(run.end), looked_at + 1);
                }
            }
        }
        before = over;
    }
    Ok(looked_at)
}

/// A program of passes over blocks, each of which reads what two calls of the one before have written: its batches come in
/// phases.
fn passes(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let (blocks, len) = (rng.range(3, 24), rng.range(1, 6));
    let mut program = Program::new();
    let scale = program.task(Scale::<f32, 1>::default());
    let arrays = ["a", "b", "c", "d"].map(|name| program.array::<f32, 1>(name, [blocks * len], Role::InOut).unwrap());
    for pass in 0..rng.range(1, 3) as usize {
        for block in 0..blocks {
            let from = (block + rng.below(2)) % blocks;
            let (out, input) = (arrays[pass + 1].block([block * len], [len]), arrays[pass].block([from * len], [len]));
            program.call(scale, (out, input), Scalars::new()).unwrap();
        }
    }
    program
}

/// Cores that share a memory, and take so long for a call that one is a batch.
fn cores(seed: u64) -> Machine {
    let mut core =
        Memory::child("core", MemoryId(0), 2 + seed as usize / 3 % 3, 1 << 20, Edge::new(Driver::SHARED, 1e10, 0.0));
    core.processor =
        Some(Processor { kind: ProcessorKind::Cpu, flops_per_second: 1e9, call_overhead_ns: 2e5, code_bytes: 0 });
    Machine::new("cores", "Slow ones.", vec![Memory::root("dram", 1 << 30), core]).unwrap()
}

#[test]
fn engine_and_simulator_do_the_same() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, cases) = (number("MULTIGRAIN_SEED").unwrap_or(0), number("MULTIGRAIN_CASES").unwrap_or(150));
    let directory = tempfile::tempdir().unwrap();
    let (mut compared, mut claimed, mut divided, mut files, mut looked_at, mut seed) = (0, 0, 0, 0, 0, first);
    while compared < cases {
        let program = if seed % 3 == 0 { passes(seed) } else { random_program(seed) };
        let mut job = Job::new("same steps", program);
        for (array, bytes) in random_bytes(job.program(), seed).into_iter().enumerate() {
            if matches!(job.arrays()[array].role, Role::Input | Role::InOut) {
                job = job.with_source(array, Source::Bytes(bytes));
            }
        }
        seed += 1;
        let seed = seed - 1;
        let machine = match seed % 3 {
            0 => cores(seed),
            _ => machine(seed, 1 + seed % 5, directory.path()).unwrap(),
        };
        let runtime = runtime(machine).unwrap();
        let simulated = match runtime.simulate(&job, Simulation { full_trace: true, ..Simulation::default() }) {
            Ok(simulated) => simulated,
            Err(Error::Plan(_) | Error::Request(_)) => continue,
            Err(error) => panic!("seed {seed}: {error}"),
        };
        let ran = runtime.run(&job, Settings { full_trace: true, ..Settings::default() });
        let ran = ran.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let (first, second) = (ran.trace.as_ref().unwrap(), simulated.trace.as_ref().unwrap());
        let fail = |what: String| panic!("seed {seed}: {what}\n{}\n{}", ran.machine.to_toml(), ran.plan);
        agree(&ran.plan, first, second).unwrap_or_else(fail);
        if !claims(&ran.plan) && !ran.plan.is_in_parts() {
            let layout = Layout::of(&ran.machine);
            for trace in [first, second] {
                looked_at +=
                    waits(&ran.plan, trace, &layout).unwrap_or_else(|what| panic!("seed {seed}: {what}\n{}", ran.plan));
            }
        }
        if ran.plan.claims() {
            for trace in [first, second] {
                looked_at +=
                    batches(&ran.plan, trace).unwrap_or_else(|what| panic!("seed {seed}: {what}\n{}", ran.plan));
            }
        }
        claimed += u64::from(claims(&ran.plan));
        divided += u64::from(divides(&ran.plan));
        files += u64::from(divides_files(&ran.plan));
        compared += 1;
    }
    println!(
        "{compared} plans, {claimed} with batches that are claimed, {divided} divided among kinds, {files} of them \
         below a disk, {looked_at} steps"
    );
    assert!(
        claimed > cases / 20 && divided > cases / 20 && files > cases / 100 && looked_at as u64 > cases,
        "{claimed} {divided} {files} {looked_at}"
    );
}
