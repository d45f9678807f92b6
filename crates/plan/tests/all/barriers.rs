//! Barriers of plans: made where every child waits for every other, proved, and missed where they are taken away.

use multigrain_machine::{Driver, Edge, Machine, Memory, MemoryId, Processor, ProcessorKind};
use multigrain_plan::check::{Problem, check, edge_rules};
use multigrain_plan::testing::{Scale, Transpose};
use multigrain_plan::{Mapping, Op, Plan, PlanOptions, Planner};
use multigrain_program::{Program, Role, Scalars};
use std::sync::Arc;

const N: u64 = 64;

/// A transposition, of which every row of the result is then scaled: each needs a part of every block of rows.
fn program() -> Program {
    let mut program = Program::new();
    let (transpose, scale) = (program.task(Transpose::<f32>::default()), program.task(Scale::<f32, 2>::default()));
    let x = program.array::<f32, 2>("x", [N, N], Role::Input).unwrap();
    let a = program.array::<f32, 2>("a", [N, N], Role::Input).unwrap();
    let y = program.array::<f32, 2>("y", [N, N], Role::Output).unwrap();
    program.call(transpose, (x.all(), y.all()), Scalars::new()).unwrap();
    program.call(scale, (y.all(), a.all()), Scalars::new()).unwrap();
    program
}

fn machine(driver: Driver, children: usize) -> Machine {
    let processor =
        Processor { kind: ProcessorKind::Cpu, flops_per_second: 1e9, call_overhead_ns: 100.0, code_bytes: 0 };
    let edge = Edge::new(driver, 2e10, 100.0);
    let child = Memory::child("core", MemoryId(0), children, 64 << 10, edge).with_processor(processor);
    Machine::new("test", "A machine for tests.", vec![Memory::root("dram", 1 << 40), child]).unwrap()
}

fn planned(machine: &Machine, blocks: u64) -> Arc<Plan> {
    let mut mapping = Mapping::default();
    for (task, axis, each) in
        [("transpose", "d0", N / blocks), ("transpose", "d1", N), ("scale", "d0", N / blocks), ("scale", "d1", N)]
    {
        mapping.set(task, "core", axis, each);
    }
    let options = PlanOptions { disk_buffer_bytes: 0, ..PlanOptions::default() };
    Planner::new(machine, mapping, options).plan(&program()).unwrap()
}

fn barriers(plan: &Plan) -> Vec<usize> {
    plan.children.iter().map(|c| c.ops.iter().filter(|op| matches!(op, Op::Barrier)).count()).collect()
}

#[test]
fn children_that_need_all_others_meet_once() {
    for driver in [Driver::LOCAL, Driver::SHARED] {
        for children in [2usize, 3, 4, 8] {
            for each in [1, 2] {
                let machine = machine(driver, children);
                let plan = planned(&machine, (children * each) as u64);
                assert!(!plan.balanced, "{driver:?}: so little work is not worth a phase");
                assert_eq!(
                    barriers(&plan),
                    vec![1; children],
                    "{driver:?}, {children} children, {each} blocks\n{plan}"
                );
                let told = |op: &&Op| matches!(op, Op::Signal | Op::Wait { .. });
                assert_eq!(plan.children.iter().flat_map(|c| &c.ops).filter(told).count(), 0, "{plan}");
                assert!(plan.to_string().contains(&format!("1 of {children} children, by PEBar")), "{plan}");
                check(&plan, &edge_rules(&machine)).unwrap();
            }
        }
    }
}

#[test]
fn a_barrier_that_is_missing_is_found() {
    // In one address space, where there is nothing else to be missed: a child that ends before the others meet.
    let shared = machine(Driver::SHARED, 4);
    let mut ended: Plan = (*planned(&shared, 4)).clone();
    let steps = &mut ended.children[2].ops;
    steps.truncate(steps.iter().position(|op| matches!(op, Op::Barrier)).unwrap());
    let unmet = check(&ended, &edge_rules(&shared)).unwrap_err();
    assert!(matches!(&unmet.problem, Problem::Unmet { missing: 2, met } if met[..] == [0, 1, 3]), "{unmet}");
    let machine = machine(Driver::LOCAL, 4);
    let rules = edge_rules(&machine);
    let plan = planned(&machine, 4);
    let mut one: Plan = (*plan).clone();
    one.children[2].ops.retain(|op| !matches!(op, Op::Barrier));
    let race = check(&one, &rules).unwrap_err();
    assert!(matches!(race.problem, Problem::Race { .. }), "{race}");
    let mut none: Plan = (*plan).clone();
    none.children.iter_mut().for_each(|child| child.ops.retain(|op| !matches!(op, Op::Barrier)));
    let early = check(&none, &rules).unwrap_err();
    assert!(early.to_string().contains("must hold what call 1 wrote"), "{early}");
}
