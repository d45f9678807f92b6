//! A plan written by hand, and every kind of thing that can be wrong with it.

use multigrain_machine::{Driver, TransferRules};
use multigrain_plan::check::{BlockedWait, CheckError, Direction, Problem, Version, check};
use multigrain_plan::testing::{Naive, Product, Scale, naive_plan};
use multigrain_plan::{Body, ChildPlan, Op, Places, Plan, Slot, Traffic};
use multigrain_program::{Arg, Array, Program, Region, Role, Scalars};
use std::sync::Arc;

fn arg(array: u32, start: u64, len: u64) -> Arg {
    Arg { array, region: Region::new(&[start], &[len]) }
}

/// `x = x * 3 + a` on the first half, on the second half, and on the whole.
fn program() -> Program {
    let mut program = Program::new();
    let x: Array<f32, 1> = program.array("x", [8], Role::InOut).unwrap();
    let a: Array<f32, 1> = program.array("a", [8], Role::Input).unwrap();
    let scale = program.task(Scale::<f32, 1>::default());
    for (start, len) in [(0, 4), (4, 4), (0, 8)] {
        program.call(scale, (x.block([start], [len]), a.block([start], [len])), Scalars::new()).unwrap();
    }
    program
}

fn slot(offset_bytes: u64, block: Arg) -> Slot {
    Slot { offset_bytes, bytes: block.region.elements() * 4, block }
}

const fn fetch(transfer: u32, slot: u32) -> Op {
    Op::Fetch { transfer, slot }
}
const fn store(transfer: u32, slot: u32) -> Op {
    Op::Store { transfer, slot }
}
const fn await_(transfer: u32) -> Op {
    Op::Await { transfer }
}
const fn run(call: u32, first: u32) -> Op {
    Op::Run { call, places: Places::Slots { first } }
}

/// The first call on child 0; the others on child 1, which fetches ahead and waits for child 0.
fn staged() -> Plan {
    let mut plan = naive_plan(&program(), Naive { children: 2, views: false, seed: 0 });
    plan.children = vec![
        ChildPlan {
            ops: vec![fetch(0, 0), fetch(1, 1), await_(0), await_(1), run(0, 0), store(2, 0), await_(2), Op::Signal],
            slots: vec![slot(0, arg(0, 0, 4)), slot(64, arg(1, 0, 4))],
            places: vec![0, 1],
            staging_bytes: 80,
            batches: vec![],
            phases: vec![],
        },
        ChildPlan {
            ops: vec![
                fetch(0, 0),
                fetch(1, 1),
                fetch(2, 3),
                await_(0),
                await_(1),
                run(1, 0),
                store(3, 0),
                await_(3),
                Op::Wait { child: 0, signals: 1 },
                fetch(4, 2),
                await_(2),
                await_(4),
                run(2, 2),
                store(5, 2),
                await_(5),
            ],
            slots: vec![slot(0, arg(0, 4, 4)), slot(16, arg(1, 4, 4)), slot(0, arg(0, 0, 8)), slot(64, arg(1, 0, 8))],
            places: vec![0, 1, 2, 3],
            staging_bytes: 96,
            batches: vec![],
            phases: vec![],
        },
    ];
    (plan.capacity_bytes, plan.total_bytes) = (96, 96);
    plan.traffic = Traffic { bytes_down: 4 * 16 + 2 * 32, bytes_up: 2 * 16 + 32, bytes_across: 0, transfers: 9 };
    plan
}

/// The same calls on views: all halves are independent of each other, the whole is not.
fn views() -> Plan {
    let mut plan = naive_plan(&program(), Naive { children: 2, views: true, seed: 0 });
    let run = |call| Op::Run { call, places: Places::Views };
    plan.children[0].ops = vec![run(0), Op::Signal];
    plan.children[1].ops = vec![run(1), Op::Wait { child: 0, signals: 1 }, run(2)];
    plan
}

fn checked(plan: &Plan) -> Result<(), CheckError> {
    check(plan, &[TransferRules::default(), TransferRules::default()]).map(|_| ())
}

/// Changes the staged plan and returns what the check says.
fn wrong(change: impl FnOnce(&mut Plan)) -> Problem {
    wrong_in(staged(), change)
}

fn wrong_in(mut plan: Plan, change: impl FnOnce(&mut Plan)) -> Problem {
    change(&mut plan);
    checked(&plan).expect_err("the change was not found").problem
}

macro_rules! assert_problem {
    ($problem:expr, $pattern:pat $(if $guard:expr)?) => {
        let problem = $problem;
        assert!(matches!(problem, $pattern $(if $guard)?), "{problem:?}");
    };
}

#[test]
fn plans_that_are_right() {
    let report = check(&staged(), &[TransferRules::default()]).unwrap();
    let edge = &report.edges[0];
    assert_eq!((edge.calls, edge.ops, edge.waits, edge.transfers), (3, 23, 1, 9));
    assert_eq!((edge.staging_bytes, edge.unread_stores, edge.plans), (96, 0, 1));
    // Two cells of x and two of a.
    assert_eq!(edge.cells, 4);
    checked(&views()).unwrap();
    assert!(report.to_string().contains("3 calls"));
}

#[test]
fn an_error_names_everything() {
    let mut plan = staged();
    plan.children[1].ops.remove(8);
    let text = checked(&plan).unwrap_err().to_string();
    // Without its wait, child 1 fetches before or while child 0 stores.
    assert!(text.starts_with("plan of parent -> child: child 1, step 8: block x[0..8]: "), "{text}");
    assert!(text.contains("child 0, step 6 writes"), "{text}");
}

#[test]
fn every_call_runs_once_on_its_blocks() {
    assert_problem!(wrong_in(views(), |p| p.children[1].ops.truncate(2)), Problem::NeverRun);
    let again = Op::Run { call: 0, places: Places::Views };
    assert_problem!(wrong_in(views(), |p| p.children[0].ops.push(again)), Problem::RunTwice { child: 0, op: 0 });
    assert_problem!(wrong(|p| p.children[0].places[1] = 0), Problem::WrongBlock { slot: 0, .. });
    assert_problem!(wrong(|p| p.children[0].places.truncate(1)), Problem::BadIndex { what: "place", .. });
    assert_problem!(wrong(|p| p.children[0].places[1] = 9), Problem::BadIndex { what: "slot", index: 9, count: 2 });
    assert_problem!(wrong(|p| p.children[0].ops[0] = fetch(0, 7)), Problem::BadIndex { what: "slot", .. });
    assert_problem!(wrong_in(views(), |p| p.driver = Driver::LOCAL), Problem::ViewsNotShared { .. });
}

#[test]
fn blocks_are_read_in_the_right_version() {
    // x[0..8] is fetched before the second half has been updated, over the bytes where that is to happen.
    let early = wrong(|p| p.children[1].ops[5..10].rotate_right(2));
    assert_problem!(early, Problem::NoContent { slot: 0, lost_to: Some(2) });
    let old = wrong_in(views(), |p| {
        p.children[1].ops = vec![p.children[1].ops[1], p.children[1].ops[2], p.children[1].ops[0]]
    });
    assert_problem!(old, Problem::WrongVersion { expected: Version::Call(1), found: Version::Initial, .. });
    // Calls 1 and 2 swap their numbers in the sequence of calls: now the whole comes before the second half.
    let swapped = wrong_in(views(), |p| {
        p.calls.swap(1, 2);
        p.class_of.swap(1, 2);
        let run = |call| Op::Run { call, places: Places::Views };
        p.children[1].ops = vec![run(2), Op::Wait { child: 0, signals: 1 }, run(1)];
    });
    assert_problem!(swapped, Problem::WrongVersion { expected: Version::Call(1), found: Version::Initial, .. });
}

#[test]
fn results_are_complete_at_the_end() {
    let lost = wrong(|p| {
        p.children[1].ops.truncate(13);
        p.traffic.bytes_up -= 32;
        p.traffic.transfers -= 1;
    });
    assert_problem!(lost, Problem::WrongResult { expected: Version::Call(2), found: Version::Call(_), .. });
    let twice = wrong(|p| {
        p.children[0].ops.splice(7..7, [store(3, 0), await_(3)]);
        p.traffic.bytes_up += 16;
        p.traffic.transfers += 1;
    });
    assert_problem!(twice, Problem::SuperfluousStore { slot: 0 });
}

#[test]
fn transfers_are_issued_and_awaited_once() {
    assert_problem!(wrong(|p| p.children[0].ops[1] = fetch(0, 1)), Problem::IssuedTwice { transfer: 0, first: 0 });
    assert_problem!(wrong(|p| p.children[0].ops[1] = fetch(8, 1)), Problem::BadIndex { what: "transfer", .. });
    assert_problem!(wrong(|p| p.children[0].ops[3] = await_(0)), Problem::AwaitedTwice { transfer: 0, first: 2 });
    assert_problem!(wrong(|p| p.children[0].ops.swap(0, 2)), Problem::AwaitedUnissued { transfer: 0 });
    let never = wrong(|p| _ = p.children[1].ops.pop());
    assert_problem!(never, Problem::NeverAwaited { transfer: 5, direction: Direction::Store });
}

#[test]
fn bytes_in_use_or_in_flight_are_left_alone() {
    let used = wrong(|p| p.children[0].ops.swap(3, 4));
    assert_problem!(used, Problem::InFlight { slot: 1, direction: Direction::Fetch, transfer: 1, .. });
    // Slot 2 lies over slot 0, whose store is not complete.
    let stored = wrong(|p| p.children[1].ops[7..10].rotate_left(1));
    assert_problem!(stored, Problem::InFlight { slot: 2, other: 0, direction: Direction::Store, .. });
    let lost = wrong(|p| p.children[1].slots[3].offset_bytes = 0);
    let staging = |p: &mut Plan| {
        p.children[1].slots[3].offset_bytes = 0;
        p.children[1].staging_bytes = 32;
    };
    assert_problem!(lost, Problem::Differs { what: "bytes of staging memory", .. });
    assert_problem!(wrong(staging), Problem::InFlight { slot: 3, other: 1, direction: Direction::Fetch, .. });
    let over = wrong(|p| {
        p.children[0].slots[1].offset_bytes = 8;
        p.children[0].staging_bytes = 24;
    });
    assert_problem!(over, Problem::InFlight { slot: 1, other: 0, direction: Direction::Fetch, transfer: 0 });
    // Slots 0 and 1 of the second child lie in one unit.
    let unit = wrong(|p| {
        p.slot_unit_bytes = 32;
        p.children[0].staging_bytes = 96;
        (p.capacity_bytes, p.total_bytes) = (96, 96);
    });
    assert_problem!(unit, Problem::InFlight { slot: 1, other: 0, direction: Direction::Fetch, transfer: 0 });
    let mut product = nested().0;
    product.classes[0].body = Body::Leaf { scratch_bytes: 0 };
    checked(&product).unwrap();
    let written = wrong_in(product, |p| {
        let slots = &mut p.children[0].slots;
        slots[2].offset_bytes = slots[1].offset_bytes + 128;
        p.children[0].staging_bytes -= 128;
    });
    assert_problem!(written, Problem::SharedBytes { slot: 2, other: 1 });
    let nothing = wrong(|p| {
        p.children[0].ops = vec![fetch(0, 0), await_(0), run(0, 0), store(1, 0), await_(1), Op::Signal];
        p.traffic.bytes_down -= 16;
        p.traffic.transfers -= 1;
    });
    assert_problem!(nothing, Problem::NoContent { slot: 1, lost_to: None });
}

#[test]
fn children_do_not_race_or_wait_forever() {
    let race = wrong_in(views(), |p| _ = p.children[1].ops.remove(1));
    assert_problem!(race, Problem::Race { writes: true, other_writes: true, .. });
    // The signal comes before the store is awaited.
    assert_problem!(wrong(|p| p.children[0].ops.swap(6, 7)), Problem::Race { writes: false, other_writes: true, .. });
    let Problem::Deadlock { waits } = wrong(|p| _ = p.children[0].ops.pop()) else { panic!("no deadlock") };
    assert_eq!(waits, [BlockedWait { child: 1, op: 8, on: 0, signals: 1, given: 0 }]);
    let each_other = wrong_in(views(), |p| p.children[0].ops.insert(0, Op::Wait { child: 1, signals: 1 }));
    assert_problem!(each_other, Problem::Deadlock { ref waits } if waits.len() == 2);
    let itself = wrong(|p| p.children[0].ops.push(Op::Wait { child: 0, signals: 1 }));
    assert_problem!(itself, Problem::WaitsForItself { signals: 1 });
    let nobody = wrong(|p| p.children[0].ops.push(Op::Wait { child: 5, signals: 1 }));
    assert_problem!(nobody, Problem::BadIndex { what: "child", index: 5, count: 2 });
}

#[test]
#[allow(clippy::single_range_in_vec_init)]
fn batches_are_independent() {
    let run = |call| Op::Run { call, places: Places::Views };
    let balanced = |ops: [Vec<Op>; 2], batches: [Vec<std::ops::Range<u32>>; 2]| {
        let mut plan = views();
        plan.balanced = true;
        for ((child, ops), batches) in plan.children.iter_mut().zip(ops).zip(batches) {
            (child.ops, child.batches) = (ops, batches);
        }
        plan
    };
    let all = || [vec![run(0), run(1), run(2)], vec![]];
    let one = || [vec![0..3], vec![]];
    checked(&balanced(all(), one())).unwrap();
    let none = |_: &mut Plan| ();
    assert_problem!(wrong_in(balanced(all(), [vec![0..1, 1..3], vec![]]), none), Problem::Race { .. });
    assert_problem!(wrong_in(balanced(all(), [vec![0..1], vec![]]), none), Problem::NoBatch);
    assert_problem!(wrong_in(balanced(all(), [vec![0..1, 2..3], vec![]]), none), Problem::BatchRange { batch: 1, .. });
    let phased = |ends: [Vec<u32>; 2]| {
        let mut plan = balanced(all(), [vec![0..1, 1..3], vec![]]);
        plan.children.iter_mut().zip(ends).for_each(|(child, ends)| child.phases = ends);
        plan
    };
    checked(&phased([vec![1, 2], vec![0, 0]])).unwrap();
    assert_problem!(wrong_in(phased([vec![0, 2], vec![0, 0]]), none), Problem::Race { .. });
    for wrong in [[vec![1, 2], vec![0]], [vec![1, 1], vec![0, 0]], [vec![2, 1, 2], vec![0; 3]], [vec![1, 2], vec![]]] {
        assert_problem!(wrong_in(phased(wrong), none), Problem::Phases { .. });
    }
    let signals = [vec![run(0), run(1), Op::Signal], vec![]];
    assert_problem!(wrong_in(balanced(signals, one()), none), Problem::NotMovable { .. });
}

#[test]
fn memory_and_rules_are_obeyed() {
    assert_problem!(wrong(|p| p.capacity_bytes = 95), Problem::BeyondCapacity { slot: 3, end_bytes: 96, .. });
    assert_problem!(wrong(|p| p.fixed_bytes = 1), Problem::PartsExceedTotal { total_bytes: 96, .. });
    let scratch = |p: &mut Plan| p.classes[0].body = Body::Leaf { scratch_bytes: 1 };
    assert_problem!(wrong(scratch), Problem::TooLittleScratch { need_bytes: 1, scratch_bytes: 0 });
    assert_problem!(
        wrong(|p| p.children[1].slots[1].offset_bytes = 18),
        Problem::Misaligned { alignment_bytes: 4, .. }
    );
    assert_problem!(wrong(|p| p.children[1].slots[1].bytes = 12), Problem::Differs { what: "bytes of a slot", .. });
    assert_problem!(wrong(|p| p.children[1].slots[1].block = arg(1, 6, 4)), Problem::OutOfBounds { .. });
    assert_problem!(wrong(|p| p.traffic.bytes_down += 1), Problem::Traffic { .. });

    let with = |rules: TransferRules| check(&staged(), &[rules]).map(|_| ()).map_err(|e| e.problem);
    let none = TransferRules::default();
    let aligned = with(TransferRules { alignment_bytes: 32, ..none }).unwrap_err();
    assert_problem!(aligned, Problem::Misaligned { offset_bytes: 16, alignment_bytes: 32, .. });
    with(TransferRules { in_flight_max: Some(3), strict: true, ..none }).unwrap();
    let flight = with(TransferRules { in_flight_max: Some(2), ..none }).unwrap_err();
    assert_problem!(flight, Problem::TooManyInFlight { found: 3, max: 2 });
    // The second block begins 16 bytes into its array, in a slot at 0: alike in units of 16, not of 32.
    with(TransferRules { alignment_bytes: 16, strict: true, ..none }).unwrap();
    assert_problem!(check(&staged(), &[]).unwrap_err().problem, Problem::NoRules { edge: 0, given: 0 });
}

#[test]
fn calls_and_classes_are_well_formed() {
    assert_problem!(wrong(|p| p.class_of[2] = 0), Problem::Differs { what: "class of the call", .. });
    assert_problem!(wrong(|p| p.class_of[2] = 7), Problem::BadIndex { what: "class", .. });
    assert_problem!(wrong(|p| _ = p.class_of.pop()), Problem::Differs { .. });
    assert_problem!(wrong(|p| p.calls[0].args[0] = arg(0, 6, 4)), Problem::OutOfBounds { .. });
    assert_problem!(wrong(|p| p.calls[0].args[0].array = 4), Problem::BadIndex { what: "array", .. });
    assert_problem!(wrong(|p| p.calls[0].args[1] = arg(0, 2, 4)), Problem::Aliased { .. });
    assert_problem!(wrong(|p| p.arrays[0].role = Role::Input), Problem::WritesInput);
    assert_problem!(wrong(|p| p.calls[0].task = 3), Problem::BadIndex { what: "task", .. });
    assert_problem!(wrong(|p| _ = p.calls[0].args.pop()), Problem::Differs { what: "number of arguments", .. });
}

/// A product on one child, whose own plan adds up two spans.
fn nested() -> (Plan, Plan) {
    let mut program = Program::new();
    let [a, b] = ["a", "b"].map(|name| program.array::<f32, 2>(name, [8, 8], Role::Input).unwrap());
    let c: Array<f32, 2> = program.array("c", [8, 8], Role::Output).unwrap();
    let product = program.task(Product::default());
    program.call(product, (a.all(), b.all(), c.all()), Scalars::new()).unwrap();
    let mut outer = naive_plan(&program, Naive { children: 1, views: false, seed: 0 });
    let shape = program.calls()[0].shape();
    let mut tunables = multigrain_program::Tunables::new();
    tunables.set("k", 4);
    let mut inner = outer.clone();
    let split = program.tasks()[0].split(&shape, &tunables).unwrap();
    inner.calls.clear();
    for sub in &split {
        if let multigrain_program::Callee::Task(task) = &sub.callee {
            inner.tasks.push(task.clone());
        }
        let args = sub.args.iter().map(|&(p, region)| Arg { array: p as u32, region }).collect();
        let task = inner.tasks.len() as u32 - 1;
        inner.calls.push(multigrain_program::Call { task, args, scalars: sub.scalars.clone() });
    }
    let leaf = Body::Leaf { scratch_bytes: 32 };
    let class = |c: &multigrain_program::Call| multigrain_plan::CallClass {
        task: c.task,
        shape: c.shape(),
        body: leaf.clone(),
    };
    inner.classes = inner.calls.iter().map(class).collect();
    inner.class_of = vec![0, 1];
    inner.children = vec![ChildPlan {
        ops: (0..2).map(|call| Op::Run { call, places: Places::Views }).collect(),
        ..ChildPlan::default()
    }];
    (inner.edge, inner.driver, inner.traffic) = (1, Driver::SHARED, Traffic::default());
    inner.tunables = vec![("product".into(), vec![("k", 4)])];
    outer.classes[0].body = Body::Inner(Arc::new(inner.clone()));
    (outer, inner)
}

#[test]
fn inner_plans_are_plans_of_the_call() {
    let (outer, inner) = nested();
    let report = check(&outer, &[TransferRules::default(); 2]).unwrap();
    assert_eq!(report.edges.iter().map(|e| (e.edge, e.calls)).collect::<Vec<_>>(), [(0, 1), (1, 2)]);
    let wrong_inner = |change: &dyn Fn(&mut Plan)| {
        let (mut outer, mut inner) = (outer.clone(), inner.clone());
        change(&mut inner);
        outer.classes[0].body = Body::Inner(Arc::new(inner));
        checked(&outer).expect_err("the change was not found").problem
    };
    assert_problem!(wrong_inner(&|p| p.arrays[2].role = Role::InOut), Problem::Differs { what: "an argument", .. });
    assert_problem!(wrong_inner(&|p| p.edge = 0), Problem::Differs { what: "edge", .. });
    assert_problem!(wrong_inner(&|p| p.edge = 5), Problem::NoRules { edge: 5, given: 2 });
    assert_problem!(wrong_inner(&|p| p.tunables.clear()), Problem::Differs { what: "a call of the split", .. });
    assert_problem!(wrong_inner(&|p| p.tunables[0].1[0].1 = 3), Problem::Differs { what: "a tunable", .. });
    let moved = |p: &mut Plan| p.calls[1].args[0].region = Region::new(&[0, 0], &[8, 4]);
    assert_problem!(wrong_inner(&moved), Problem::Differs { what: "a call of the split", .. });
    assert_problem!(wrong_inner(&|p| p.children[0].ops.swap(0, 1)), Problem::WrongVersion { .. });
    assert_problem!(
        wrong_inner(&|p| p.classes[1].body = Body::Leaf { scratch_bytes: 33 }),
        Problem::TooLittleScratch { .. }
    );
}
