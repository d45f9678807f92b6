//! Broadcasts of plans: made of what all children fetch where that pays, proved, and missed where they are damaged.

use multigrain_machine::{Driver, Edge, Machine, Memory, MemoryId, Processor, ProcessorKind, TransferRules};
use multigrain_plan::check::{Problem, check, edge_rules};
use multigrain_plan::testing::{Product, Rng, Transpose, mutate, random_mapping, random_program};
use multigrain_plan::{ChildPlan, Mapping, Op, Plan, PlanError, PlanOptions, Planner};
use multigrain_program::{Program, Role, Scalars};
use std::sync::Arc;

const N: u64 = 32;

/// `c = a y`: a row of blocks of `c` for each child, all of which read all of `y`. If `y` is made by the program, as the
/// transpose of an input, each child makes a part of it first.
fn program(rows: u64, made: bool) -> Program {
    let mut program = Program::new();
    let (transpose, product) = (program.task(Transpose::<f32>::default()), program.task(Product::<f32>::default()));
    let a = program.array::<f32, 2>("a", [rows, N], Role::Input).unwrap();
    let y = program.array::<f32, 2>("y", [N, N], if made { Role::Temporary } else { Role::Input }).unwrap();
    let c = program.array::<f32, 2>("c", [rows, N], Role::Output).unwrap();
    if made {
        let x = program.array::<f32, 2>("x", [N, N], Role::Input).unwrap();
        program.call(transpose, (x.all(), y.all()), Scalars::new()).unwrap();
    }
    program.call(product, (a.all(), y.all(), c.all()), Scalars::new()).unwrap();
    program
}

fn machine(children: usize, sibling_bytes_per_second: Option<f64>, rules: TransferRules) -> Machine {
    let processor =
        Processor { kind: ProcessorKind::Cpu, flops_per_second: 1e9, call_overhead_ns: 100.0, code_bytes: 0 };
    let edge = Edge { sibling_bytes_per_second, rules, ..Edge::new(Driver::LOCAL, 1e9, 1.0) };
    let child = Memory::child("core", MemoryId(0), children, 64 << 10, edge).with_processor(processor);
    Machine::new("test", "A machine for tests.", vec![Memory::root("dram", 1 << 40), child]).unwrap()
}

const FAST: Option<f64> = Some(1e12);

fn planned(machine: &Machine, program: &Program, children: u64) -> Arc<Plan> {
    let rows = program.arrays()[0].shape.dims()[0];
    let mut mapping = Mapping::default();
    for (axis, each) in [("m", rows / children), ("n", N), ("k", 8)] {
        mapping.set("product", "core", axis, each);
    }
    if program.calls().len() > 1 {
        mapping.set("transpose", "core", "d0", N.div_ceil(children));
        mapping.set("transpose", "core", "d1", N);
    }
    let options = PlanOptions { disk_buffer_bytes: 0, ..PlanOptions::default() };
    Planner::new(machine, mapping, options).plan(program).unwrap()
}

fn broadcasts(child: &ChildPlan) -> usize {
    child.ops.iter().filter(|op| matches!(op, Op::Broadcast { .. })).count()
}

#[test]
fn what_all_children_read_is_read_once() {
    for children in [2, 3, 4, 5, 8] {
        let program = program(4 * children, false);
        let of = |sibling| {
            let machine = machine(children as usize, sibling, TransferRules::default());
            let plan = planned(&machine, &program, children);
            check(&plan, &edge_rules(&machine)).unwrap_or_else(|e| panic!("{children}: {e}\n{plan}"));
            plan
        };
        let (alone, together) = (of(None), of(FAST));
        let [a, y] = [0, 1].map(|array| program.arrays()[array].bytes());
        assert_eq!(alone.traffic.bytes_down, a + children * y, "{alone}");
        assert_eq!(together.traffic.bytes_down, a + y, "{together}");
        assert_eq!(together.traffic.bytes_across, (children - 1) * y, "{together}");
        assert_eq!(together.traffic.transfers + (children - 1) * (N / 8), alone.traffic.transfers);
        assert!(together.seconds < alone.seconds, "{} {}", together.seconds, alone.seconds);
        assert!(together.children.iter().all(|child| broadcasts(child) as u64 == N / 8), "{together}");
        let text = together.to_string();
        for part in ["broadcasts", "4 blocks from one of", "between siblings"] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        assert!(!alone.to_string().contains("siblings"));
        // Each is the root of as many.
        let fetched = |child: &ChildPlan| child.ops.iter().filter(|op| matches!(op, Op::Fetch { .. })).count();
        let most = together.children.iter().map(fetched).max().unwrap() as u64;
        assert!(most <= N / 8 + (N / 8).div_ceil(children), "{together}");
        // Slow siblings are left alone.
        let slow = of(Some(1e6));
        assert_eq!(slow.traffic, alone.traffic, "{slow}");
    }
}

#[test]
fn broadcasts_stand_between_barriers() {
    for children in [2, 4] {
        let machine = machine(children as usize, FAST, TransferRules::default());
        let plan = planned(&machine, &program(4 * children, true), children);
        check(&plan, &edge_rules(&machine)).unwrap_or_else(|e| panic!("{children}: {e}\n{plan}"));
        for child in &plan.children {
            let met = child.ops.iter().position(|op| matches!(op, Op::Barrier)).unwrap();
            let first = child.ops.iter().position(|op| matches!(op, Op::Broadcast { .. })).unwrap();
            assert!(met < first, "{plan}");
            assert_eq!(broadcasts(child) as u64, N / 8, "{plan}");
        }
    }
}

#[test]
fn damage_to_broadcasts_is_found() {
    let (mut damaged, mut in_broadcasts) = (0, 0);
    for (number, (children, made)) in [(2, false), (2, true), (3, false), (4, true), (5, false)].into_iter().enumerate()
    {
        let machine = machine(children as usize, FAST, TransferRules::default());
        let rules = edge_rules(&machine);
        let plan = planned(&machine, &program(4 * children, made), children);
        let mut rng = Rng::new(number as u64);
        for _ in 0..300 {
            let Some((wrong, what)) = mutate(&plan, &mut rng) else { continue };
            damaged += 1;
            in_broadcasts += u32::from(what.contains("broadcast"));
            assert!(check(&wrong, &rules).is_err(), "{children} children, made {made}: not found: {what}\n{plan}");
        }
    }
    assert!(damaged > 1000 && in_broadcasts > 150, "{damaged} damaged, {in_broadcasts} in broadcasts");
}

/// Whether a child broadcasts a slot that it has not fetched.
fn made_it(child: usize, steps: &ChildPlan) -> bool {
    let fetched =
        |slot: u32| steps.ops.iter().any(|op| matches!(op, Op::Fetch { slot: filled, .. } if *filled == slot));
    steps.ops.iter().any(|op| matches!(*op, Op::Broadcast { root, slot } if root as usize == child && !fetched(slot)))
}

#[test]
fn random_programs_on_stores_that_reach_each_other_are_right() {
    let (mut sharing, mut waiting, mut made) = (0, 0, 0);
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let children = rng.range(2, 5) as usize;
        let rules = TransferRules { alignment_bytes: *rng.pick(&[1, 16, 64]).unwrap(), ..TransferRules::default() };
        let machine = machine(children, Some(1e13), rules).with_capacity("core", 256 * rng.range(4, 64)).unwrap();
        let machine = machine.with("core", |core| core.edge.as_mut().unwrap().latency_ns = 0.0).unwrap();
        let program = random_program(seed);
        let with = |mapping: Mapping| {
            let options = PlanOptions { disk_buffer_bytes: 0, ..PlanOptions::default() };
            Planner::new(&machine, mapping, options).plan(&program)
        };
        let planned = with(random_mapping(seed, &machine)).or_else(|_| with(Mapping::default()));
        let plan = match planned {
            Ok(plan) => plan,
            Err(PlanError::DoesNotFit { .. } | PlanError::Empty) => continue,
            Err(error) => panic!("seed {seed}: {error}"),
        };
        let rules = edge_rules(&machine);
        check(&plan, &rules).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        if plan.traffic.bytes_across == 0 {
            continue;
        }
        sharing += 1;
        waiting += u32::from(plan.children.iter().flat_map(|c| &c.ops).any(|op| matches!(op, Op::Wait { .. })));
        made += u32::from(plan.children.iter().enumerate().any(|(child, steps)| made_it(child, steps)));
        for _ in 0..5 {
            let Some((wrong, what)) = mutate(&plan, &mut rng) else { continue };
            assert!(check(&wrong, &rules).is_err(), "seed {seed}: not found: {what}");
        }
    }
    assert!(
        sharing > 60 && waiting > 50 && made > 0,
        "{sharing} plans with broadcasts, {waiting} wait too, {made} made"
    );
}

/// The step of a child's broadcast, and its slot.
fn nth(plan: &Plan, child: usize, number: usize) -> (usize, u32) {
    let mut all = plan.children[child].ops.iter().enumerate().filter_map(|(step, op)| match *op {
        Op::Broadcast { slot, .. } => Some((step, slot)),
        _ => None,
    });
    all.nth(number).unwrap()
}

#[test]
fn what_is_wrong_with_a_broadcast_is_named() {
    let machine = machine(3, FAST, TransferRules::default());
    let rules = edge_rules(&machine);
    let plan = planned(&machine, &program(12, false), 3);
    let wrong = |damage: &dyn Fn(&mut Plan)| {
        let mut wrong = Plan::clone(&plan);
        damage(&mut wrong);
        check(&wrong, &rules).unwrap_err()
    };
    // The first is of child 0.
    let (step, slot) = nth(&plan, 2, 0);
    let root = wrong(&|plan| {
        plan.children[2].ops[step] = Op::Broadcast { root: 1, slot };
    });
    assert!(matches!(&root.problem, Problem::OtherMeeting { other: 0, .. }), "{root}");
    for part in ["child 2", "by child 1", "by child 0", "y[0..8, 0..32]"] {
        assert!(root.to_string().contains(part), "{part}: {root}");
    }
    let barrier = wrong(&|plan| plan.children[2].ops.insert(step, Op::Barrier));
    assert!(matches!(&barrier.problem, Problem::OtherMeeting { found, .. } if found == "a barrier"), "{barrier}");
    let nobody = wrong(&|plan| {
        plan.children[2].ops[step] = Op::Broadcast { root: 3, slot };
    });
    assert!(matches!(nobody.problem, Problem::BadIndex { what: "child", index: 3, count: 3 }), "{nobody}");
    // One more of which only two children know.
    let missing = wrong(&|plan| {
        let bytes = plan.children[1].slots[nth(plan, 1, 0).1 as usize].bytes;
        for child in [0, 1] {
            let slot = nth(plan, child, 0).1;
            plan.children[child].ops.push(Op::Broadcast { root: 0, slot });
        }
        plan.traffic.bytes_across += bytes;
    });
    assert!(matches!(&missing.problem, Problem::Unmet { missing: 2, met } if met[..] == [0, 1]), "{missing}");
    // The root's fetch is awaited behind it.
    let (step, _) = nth(&plan, 0, 0);
    let early = wrong(&|plan| plan.children[0].ops.swap(step - 1, step));
    assert!(matches!(early.problem, Problem::InFlight { .. }), "{early}");
    assert_eq!((early.site.child, early.site.op), (Some(0), Some(step - 1)));
    let counted = wrong(&|plan| plan.traffic.bytes_across += 1);
    assert!(matches!(counted.problem, Problem::Traffic { .. }), "{counted}");
    let disk = wrong(&|plan| plan.driver = Driver::DISK);
    assert!(matches!(disk.problem, Problem::NotBetweenSiblings { driver } if driver == Driver::DISK), "{disk}");
}

#[test]
fn slots_lie_as_the_roots_does_where_rules_are_enforced() {
    let strict = TransferRules { alignment_bytes: 16, strict: true, ..TransferRules::default() };
    let machine = machine(2, FAST, strict);
    let rules = edge_rules(&machine);
    let plan = planned(&machine, &program(8, false), 2);
    check(&plan, &rules).unwrap();
    assert!(plan.children.iter().all(|child| broadcasts(child) > 0), "{plan}");
    let mut moved = Plan::clone(&plan);
    let (_, slot) = nth(&moved, 1, 0);
    let child = &mut moved.children[1];
    child.slots[slot as usize].offset_bytes += 4;
    child.staging_bytes = child.slots.iter().map(|slot| slot.owned_bytes(plan.slot_unit_bytes).end).max().unwrap();
    let error = check(&moved, &rules).unwrap_err();
    assert!(matches!(error.problem, Problem::UnlikeRoot { slot_bytes: 4, root_bytes: 0, .. }), "{error}");
}
