//! Plans in virtual time: every call once, the same bits twice, and times that can be worked out by hand.

use multigrain_machine::{
    Driver, Edge, LeafRate, Machine, Memory, MemoryId, Network, Processor, ProcessorKind, Shape, TransferRules,
};
use multigrain_plan::testing::{Product, Scale, Transpose, random_machine, random_program};
use multigrain_plan::{Body, ChildPlan, Mapping, Op, Plan, PlanError, PlanOptions, Planner};
use multigrain_program::{Program, Role, Scalars};
use multigrain_sim::run::{Report, RunError, RunOptions, run};
use multigrain_trace::{Analysis, BARRIER_SIGNAL, Kind, Mode, NO_TRANSFER};
use std::sync::Arc;

const FULL: RunOptions<'_> = RunOptions { mode: Mode::Full, spill: None, program: "test", go_on: None };

fn plan(machine: &Machine, program: &Program) -> Result<Arc<Plan>, PlanError> {
    listing(machine, program, PlanOptions::default().listed_max)
}

/// The same with lists of so many calls.
fn listing(machine: &Machine, program: &Program, listed_max: u64) -> Result<Arc<Plan>, PlanError> {
    let options = PlanOptions { disk_buffer_bytes: 0, simulated: true, listed_max, ..PlanOptions::default() };
    Planner::new(machine, Mapping::default(), options).plan(program)
}

/// `x = x * 3 + a` on vectors: 12 bytes moved, 8 touched, two operations an element.
fn vector(n: u64) -> Program {
    let mut program = Program::new();
    let scale = program.task(Scale::<f32, 1>::default());
    let x = program.array::<f32, 1>("x", [n], Role::InOut).unwrap();
    let a = program.array::<f32, 1>("a", [n], Role::Input).unwrap();
    program.call(scale, (x.all(), a.all()), Scalars::new()).unwrap();
    program
}

fn processor(overhead_ns: f64) -> Processor {
    Processor { kind: ProcessorKind::Cpu, flops_per_second: 1e9, call_overhead_ns: overhead_ns, code_bytes: 0 }
}

/// Main memory above so many children with staging memories of 64 KiB, or cores that share it.
fn two_levels(edge: Edge, children: usize) -> Machine {
    let child = Memory::child("child", MemoryId(0), children, 64 << 10, edge).with_processor(processor(0.0));
    Machine::new("two levels", "", vec![Memory::root("dram", 1 << 40), child]).unwrap()
}

/// Leaves that one execution of a plan executes.
fn leaves(plan: &Plan) -> u64 {
    let of = |call: &u32| match &plan.classes[*call as usize].body {
        Body::Leaf { .. } => 1,
        Body::Inner(inner) => leaves(inner),
    };
    plan.class_of.iter().map(of).sum()
}

#[test]
fn random_plans_end_with_every_call_executed_and_twice_the_same_bits() {
    let (mut simulated, mut in_parts) = (0, 0);
    for seed in 0..120 {
        let machine = random_machine(seed);
        let listed_max = if seed % 4 == 0 { 1 << 14 } else { 2 };
        let Ok(plan) = listing(&machine, &random_program(seed), listed_max) else { continue };
        simulated += 1;
        in_parts += u32::from(plan.is_in_parts());
        let report = run(&plan, &machine, FULL).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let trace = report.trace.as_ref().unwrap();
        let executed = trace.records.iter().filter(|r| r.kind == Kind::Leaf).count() as u64;
        assert_eq!(executed, leaves(&plan), "seed {seed}");
        let moved = trace.records.iter().filter(|r| r.kind == Kind::Transfer && r.index == 0).count() as u64;
        assert_eq!(moved, plan.traffic.transfers, "seed {seed}");
        let parts = &report.breakdown;
        let sum = parts.leaf_seconds + parts.waited_seconds() + parts.overhead_seconds;
        assert!((sum / parts.worker_seconds() - 1.0).abs() < 1e-9, "seed {seed}: {parts:?}");
        // What each worker did never overlaps.
        for worker in 0..machine.workers() as u32 {
            let mut end = 0;
            for record in trace.records.iter().filter(|r| r.worker == worker && r.kind.is_activity() && r.ticks() > 0) {
                assert!(record.start >= end, "seed {seed}: {record:?} begins before {end}");
                end = record.end;
            }
            assert!(end <= trace.stop(), "seed {seed}");
        }
        Analysis::of(trace, 3);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        trace.write(&mut first).unwrap();
        run(&plan, &machine, FULL).unwrap().trace.unwrap().write(&mut second).unwrap();
        assert!(first == second, "seed {seed}: the traces differ");
    }
    assert!(simulated > 60 && in_parts > 5, "{simulated}, {in_parts} in parts");
}

fn seconds(machine: &Machine, program: &Program) -> Report {
    run(&plan(machine, program).unwrap(), machine, RunOptions { mode: Mode::Totals, ..FULL }).unwrap()
}

fn near(found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() < share, "{found} s instead of {expected} s");
}

#[test]
fn cores_share_the_memory_and_compute_at_their_own_rate() {
    let n = 1_000_000;
    let work = 2.0 * n as f64 / 1e9;
    for cores in [1, 2, 5] {
        // Touching 8 bytes an element at 8 GB/s for all takes as long however many share it.
        let machine = two_levels(Edge::new(Driver::SHARED, 8e9, 0.0), cores);
        let touch = 1e-3 * n as f64 / 1e6;
        near(seconds(&machine, &vector(n)).seconds, touch + work / cores as f64, 0.02);
        // With rates of its own, the leaf takes those: 4e9 operations and 3e9 bytes a second for each.
        let leaf = LeafRate {
            task: "scale".into(),
            flops_per_second: Some(4e9),
            bytes_per_second: Some(3e9),
            call_overhead_ns: None,
            source: None,
        };
        let machine = machine.with("child", |memory| memory.leaves.push(leaf)).unwrap();
        let touch = 8.0 * n as f64 / (3e9 * cores as f64);
        near(seconds(&machine, &vector(n)).seconds, touch + work / 4.0 / cores as f64, 0.02);
    }
}

#[test]
fn transfers_overlap_with_leaves_where_the_hardware_moves_them() {
    let n = 4_000_000;
    let rules = TransferRules { in_flight_max: Some(16), ..TransferRules::default() };
    let copying = Edge::new(Driver::LOCAL, 8e9, 0.0);
    let (moving, computing) = (12.0 * n as f64 / 8e9, 2.0 * n as f64 / 1e9);
    // One child: 6 ms of moving behind 8 ms of computing, or before it.
    let hidden = seconds(&two_levels(Edge { rules, ..copying }, 1), &vector(n));
    let touching = 8.0 * n as f64 / (10.0 * 8e9);
    near(hidden.seconds, computing + touching, 0.03);
    let shown = seconds(&two_levels(copying, 1), &vector(n));
    near(shown.seconds, computing + touching + moving, 0.05);
    near(shown.breakdown.waited_seconds(), moving, 0.05);
    // Eight children: moving takes longest.
    near(seconds(&two_levels(Edge { rules, ..copying }, 8), &vector(n)).seconds, moving, 0.1);
}

#[test]
fn a_cluster_moves_all_but_what_lies_on_the_node_already() {
    let n = 64_000_000;
    let edge = Edge::new(Driver::MPI, 4e9, 1000.0);
    let node = |count| {
        let memories = vec![
            Memory::root("cluster", 1 << 40),
            Memory::child("node", MemoryId(0), count, 1 << 30, edge),
            Memory::child("core", MemoryId(1), 1, 1 << 20, Edge::new(Driver::SHARED, 1e12, 0.0))
                .with_processor(Processor { flops_per_second: 1e12, ..processor(0.0) }),
        ];
        Machine::new("cluster", "", memories).unwrap()
    };
    // Two vectors are changed by what lies at different places of a third: its elements are used by several nodes, so it
    // lies evenly on all; 8 bytes an element of one vector go down, over the ports of all nodes. The two stay where they
    // are.
    let mut shifted = Program::new();
    let scale = shifted.task(Scale::<f32, 1>::default());
    let a = shifted.array::<f32, 1>("a", [n + n / 2], Role::Input).unwrap();
    for (name, first) in [("x", 0), ("y", n / 2)] {
        let x = shifted.array::<f32, 1>(name, [n], Role::InOut).unwrap();
        shifted.call(scale, (x.all(), a.block([first], [n])), Scalars::new()).unwrap();
    }
    let report = seconds(&node(4), &shifted);
    let down = 8.0 * n as f64 * 0.75 / 4e9;
    assert!(report.seconds >= down && report.seconds < 1.7 * down, "{} {down}", report.seconds);
    // One node has everything, and what only one node uses lies there.
    assert!(seconds(&node(1), &shifted).seconds < 0.1 * down);
    assert!(seconds(&node(4), &vector(n)).seconds < 0.1 * down);

    // One switch changes nothing while all fetch alike and nothing crosses the other way.
    let connected = |shape: Shape, message_ns: f64| {
        let network = Network { shape, message_ns, source: None };
        seconds(&node(4).with("node", |memory| memory.network = Some(network)).unwrap(), &shifted).seconds
    };
    near(connected(Shape::Crossbar, 0.0), report.seconds, 1e-6);
    // Two leaves of two nodes: half of what each node uses lies in the other leaf, and one link for both carries it.
    let tree = |up| connected(Shape::FatTree { leaf: 2, up, link_bytes_per_second: 1e9 }, 0.0);
    near(tree(2), report.seconds, 1e-6);
    let over_the_link = 8.0 * n as f64 / 2.0 / 2e9;
    assert!(tree(1) >= over_the_link && tree(1) - over_the_link < 1.1 * (report.seconds - down), "{}", tree(1));
    // A block of a vector is one piece, so one message: a node's port is kept by each in turn.
    let planned = plan(&node(4), &shifted).unwrap();
    let fetches = |child: &ChildPlan| {
        let of_a = |op: &&Op| matches!(op, Op::Fetch { slot, .. } if child.slots[*slot as usize].block.array == 0);
        child.ops.iter().filter(of_a).count()
    };
    let most = planned.children.iter().map(fetches).max().unwrap();
    assert!(most > 0);
    near(connected(Shape::Crossbar, 10e9), 10.0 * most as f64, 0.02);
}

/// The same plan on a machine that is twice as fast in everything takes half the time.
#[test]
fn time_scales_with_the_machine() {
    for seed in 0..40 {
        let machine = random_machine(seed);
        if machine.memories().iter().any(|m| m.edge.is_some_and(|e| e.driver == Driver::DISK)) {
            continue; // What disks cost besides their constants does not scale.
        }
        let Ok(plan) = plan(&machine, &random_program(seed)) else { continue };
        let mut fast = machine.clone();
        for name in machine.memories().iter().map(|m| m.name.clone()) {
            fast = fast
                .with(&name, |memory| {
                    if let Some(edge) = &mut memory.edge {
                        edge.read_bytes_per_second *= 2.0;
                        edge.write_bytes_per_second *= 2.0;
                        edge.latency_ns /= 2.0;
                    }
                    if let Some(processor) = &mut memory.processor {
                        processor.flops_per_second *= 2.0;
                        processor.call_overhead_ns /= 2.0;
                    }
                })
                .unwrap();
        }
        let time = |machine| run(&plan, machine, FULL).unwrap().seconds;
        let (slow, fast) = (time(&machine), time(&fast));
        assert!((slow / fast - 2.0).abs() < 1e-4, "seed {seed}: {slow} {fast}");
    }
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let machine = two_levels(Edge::new(Driver::SHARED, 1e9, 0.0), 2);
    let good = plan(&machine, &vector(1000)).unwrap();
    let other = machine.with_count("child", 3).unwrap();
    let error = run(&good, &other, FULL).unwrap_err();
    assert!(matches!(error, RunError::OtherMachine { planned: 2, found: 3, .. }), "{error}");
    // A child that waits for a signal that nobody gives.
    let mut stuck = Plan::clone(&good);
    stuck.balanced = false;
    stuck.children = vec![
        ChildPlan { ops: vec![Op::Wait { child: 1, signals: 1 }], ..ChildPlan::default() },
        ChildPlan { ops: vec![], ..ChildPlan::default() },
    ];
    assert!(matches!(run(&stuck, &machine, FULL), Err(RunError::Stuck)));
    // Rows of 33 floats over an edge that moves units of 16 bytes: as one run each its slot begins within a unit as the row
    // does; several rows of a block, out of longer ones, cannot all.
    let rules = TransferRules { alignment_bytes: 16, strict: true, ..TransferRules::default() };
    let strict = two_levels(Edge { rules, ..Edge::new(Driver::LOCAL, 1e9, 0.0) }, 1);
    let planned = |mapping: &str, program: &Program| {
        let mapping = Mapping::parse(mapping, "test").unwrap();
        Planner::new(&strict, mapping, PlanOptions::default()).plan(program).unwrap()
    };
    run(&planned("[scale.child]\nd0 = 33\n", &vector(99)), &strict, FULL).unwrap();
    let mut matrix = Program::new();
    let scale = matrix.task(Scale::<f32, 2>::default());
    let x = matrix.array::<f32, 2>("x", [8, 99], Role::InOut).unwrap();
    let a = matrix.array::<f32, 2>("a", [8, 99], Role::Input).unwrap();
    matrix.call(scale, (x.all(), a.all()), Scalars::new()).unwrap();
    let odd = planned("[scale.child]\nd0 = 4\nd1 = 33\n", &matrix);
    let error = run(&odd, &strict, FULL).unwrap_err();
    assert!(matches!(error, RunError::Rule { .. }), "{error}");
    for part in ["machine two levels", "block x[0..4, 0..33]", "unit of 16"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    // Whoever started it may end it.
    let ended = RunOptions { go_on: Some(&|| false), ..FULL };
    let long = plan(&machine, &vector(1000)).unwrap();
    assert!(run(&long, &machine, ended).is_ok(), "too short to look");
}

#[test]
fn children_meet_as_the_schedule_of_a_barrier_says() {
    // Rows of a transposition, of which each needs a part of every block, scaled: in pairs, at distances 1, 2, 4.
    let (latency, n) = (1000.0, 64u64);
    for (children, rounds) in [(2usize, 1), (4, 2), (8, 3)] {
        let machine = two_levels(Edge::new(Driver::LOCAL, 8e9, latency), children);
        let mut program = Program::new();
        let (transpose, scale) = (program.task(Transpose::<f32>::default()), program.task(Scale::<f32, 2>::default()));
        let x = program.array::<f32, 2>("x", [n, n], Role::Input).unwrap();
        let a = program.array::<f32, 2>("a", [n, n], Role::Input).unwrap();
        let y = program.array::<f32, 2>("y", [n, n], Role::Output).unwrap();
        program.call(transpose, (x.all(), y.all()), Scalars::new()).unwrap();
        program.call(scale, (y.all(), a.all()), Scalars::new()).unwrap();
        let mut mapping = Mapping::default();
        for (task, axis, each) in [("transpose", "d0", n / children as u64), ("transpose", "d1", n)] {
            mapping.set(task, "child", axis, each);
        }
        for (axis, each) in [("d0", n / children as u64), ("d1", n)] {
            mapping.set("scale", "child", axis, each);
        }
        let options = PlanOptions { disk_buffer_bytes: 0, simulated: true, ..PlanOptions::default() };
        let plan = Planner::new(&machine, mapping, options).plan(&program).unwrap();
        let trace = run(&plan, &machine, FULL).unwrap().trace.unwrap();
        let met = |kind| trace.records.iter().filter(move |r| r.kind == kind && r.number == BARRIER_SIGNAL);
        assert_eq!(met(Kind::Signal).count(), children);
        let last = met(Kind::Signal).map(|r| r.start).max().unwrap();
        // Nobody leaves earlier than so many signals after the last has come, and the last leaves then.
        let left: Vec<u64> = met(Kind::Idle).map(|r| r.end).collect();
        assert!(!left.is_empty());
        assert!(left.iter().all(|&at| at > last), "{children} children: {left:?} after {last}");
        assert_eq!(left.iter().max(), Some(&(last + rounds * 1_000_000)), "{children} children");
        Analysis::of(&trace, 3);
    }
}

/// `c = a b` on children that each have their own rows of `c` and read all of `b`, in blocks of so many of its rows.
fn product_of_rows(machine: &Machine, [rows, n, k]: [u64; 3], each: u64) -> Arc<Plan> {
    let children = machine.workers() as u64;
    let mut program = Program::new();
    let product = program.task(Product::<f32>::default());
    let a = program.array::<f32, 2>("a", [children * rows, k], Role::Input).unwrap();
    let b = program.array::<f32, 2>("b", [k, n], Role::Input).unwrap();
    let c = program.array::<f32, 2>("c", [children * rows, n], Role::Output).unwrap();
    program.call(product, (a.all(), b.all(), c.all()), Scalars::new()).unwrap();
    let mut mapping = Mapping::default();
    for (axis, each) in [("m", rows), ("n", n), ("k", each)] {
        mapping.set("product", "child", axis, each);
    }
    let options = PlanOptions { disk_buffer_bytes: 0, simulated: true, ..PlanOptions::default() };
    Planner::new(machine, mapping, options).plan(&program).unwrap()
}

#[test]
fn a_broadcast_takes_a_signal_and_a_transfer_between_siblings() {
    // Blocks of 4 KiB: one round, from the root to the only other child.
    let (latency, rate) = (1000.0, 4e9);
    let edge = Edge { sibling_bytes_per_second: Some(rate), ..Edge::new(Driver::LOCAL, 1e9, latency) };
    let machine = two_levels(edge, 2);
    let plan = product_of_rows(&machine, [4, 64, 32], 16);
    let count = plan.children[0].ops.iter().filter(|op| matches!(op, Op::Broadcast { .. })).count();
    assert_eq!(count, 2, "{plan}");
    let trace = run(&plan, &machine, FULL).unwrap().trace.unwrap();
    let came: Vec<u64> = trace.records.iter().filter(|r| r.kind == Kind::Signal).map(|r| r.start).collect();
    assert_eq!(came.len(), count, "the root of each");
    let waits: Vec<_> = trace.records.iter().filter(|r| r.kind == Kind::Wait && r.number == NO_TRANSFER).collect();
    assert_eq!(waits.len(), 2 * count);
    // The first root leaves at once. The other child finds the offer one latency later, or when it comes itself; then its
    // request takes another, and the bytes their time.
    let first = waits.iter().find(|r| r.worker == 0).unwrap();
    assert_eq!((first.start, first.end, first.subject), (came[0], came[0], 0));
    let other = waits.iter().find(|r| r.worker == 1).unwrap();
    let offered = other.start.max(came[0] + 1_000_000);
    assert_eq!((other.end, other.subject), (offered + 1_000_000 + 1_024_000, 0));
    Analysis::of(&trace, 3);
}

#[test]
fn broadcasts_take_reads_off_the_parent_and_time() {
    for children in [2, 3, 5, 8] {
        // Blocks of 12 KiB, two rounds each, and of 3 KiB.
        for each in [48, 12] {
            let edge = Edge::new(Driver::LOCAL, 1e9, 10.0);
            let with = |sibling_bytes_per_second, in_flight_max| {
                let rules = TransferRules { in_flight_max, ..TransferRules::default() };
                let machine = two_levels(Edge { sibling_bytes_per_second, rules, ..edge }, children);
                let plan = product_of_rows(&machine, [4, 64, 144], each);
                let report = run(&plan, &machine, FULL).unwrap();
                let again = run(&plan, &machine, FULL).unwrap();
                assert_eq!(report.trace, again.trace, "{children} children");
                (report.seconds, plan.traffic.bytes_down)
            };
            for engines in [None, Some(16)] {
                let (alone, shared) = (with(None, engines), with(Some(1e10), engines));
                assert!(shared.0 < alone.0 && shared.1 < alone.1, "{children} children: {shared:?} {alone:?}");
            }
        }
    }
}

/// Whether some list of a plan is of parts of more than one task.
fn has_parts_of_two_tasks(plan: &Plan) -> bool {
    let below = |body: &Body| matches!(body, Body::Inner(inner) if has_parts_of_two_tasks(inner));
    plan.is_in_parts() && plan.tasks.len() > 1 || plan.classes.iter().any(|class| below(&class.body))
}

/// Of products in parts along what they sum over, each part is priced by the rows of the arrays that its blocks are cut from, also
/// those of another task than the first.
#[test]
fn parts_take_as_long_as_their_plans_say() {
    let mut edge = Edge::new(Driver::DISK, 1e9, 0.0);
    edge.costs.fragment_ns = 10_000.0;
    let child = Memory::child("child", MemoryId(0), 1, 16 << 10, edge).with_processor(processor(0.0));
    let machine = Machine::new("slow fragments", "", vec![Memory::root("above", 1 << 40), child]).unwrap();
    for (m, n, k) in [(100, 300, 300), (30, 400, 300)] {
        let mut program = Program::new();
        let product = program.task(Product::<f32>::default());
        let a = program.array::<f32, 2>("a", [m, k], Role::Input).unwrap();
        let b = program.array::<f32, 2>("b", [k, n], Role::Input).unwrap();
        let c = program.array::<f32, 2>("c", [m, n], Role::Output).unwrap();
        program.call(product, (a.all(), b.all(), c.all()), Scalars::new()).unwrap();
        let plan = listing(&machine, &program, 8).unwrap();
        assert!(has_parts_of_two_tasks(&plan), "{plan}");
        let report = run(&plan, &machine, FULL).unwrap();
        let ratio = report.seconds / plan.predicted_seconds();
        assert!((0.9..=1.1).contains(&ratio), "simulated {ratio} times as long as predicted\n{plan}");
    }
}
