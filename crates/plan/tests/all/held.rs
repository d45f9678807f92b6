//! What all plans of a program list together.

use multigrain_machine::{Driver, Edge, Machine, Memory, MemoryId, Processor, ProcessorKind};
use multigrain_plan::testing::Scale;
use multigrain_plan::{Mapping, Numbered, Plan, PlanError, PlanOptions, Planner};
use multigrain_program::{Program, Role, Scalars};

use crate::support::product;

/// A disk above so much memory, whose processor, or with a second kind beside it processors, compute.
fn machine(dram_bytes: u64, is_divided: bool) -> Machine {
    let processor = Processor { kind: ProcessorKind::Cpu, flops_per_second: 1e9, call_overhead_ns: 0.0, code_bytes: 0 };
    let dram = Memory::child("dram", MemoryId(0), 1, dram_bytes, Edge::new(Driver::DISK, 1e9, 1000.0));
    let core = |name, count| {
        Memory::child(name, MemoryId(1), count, 1 << 20, Edge::new(Driver::SHARED, 1e10, 100.0))
            .with_processor(processor)
    };
    let mut memories = vec![Memory::root("disk", 1 << 50), dram, core("core", 2)];
    memories.extend(is_divided.then(|| core("other", 3)));
    Machine::new("held", "", memories).unwrap()
}

fn planned(machine: &Machine, program: &Program, held_max: u64) -> Result<std::sync::Arc<Plan>, PlanError> {
    let options = PlanOptions { disk_buffer_bytes: 0, listed_max: 64, held_max, ..PlanOptions::default() };
    Planner::new(machine, Mapping::default(), options).plan(program)
}

/// What a plan lists, without its own list.
fn below(plan: &Plan) -> u64 {
    plan.all().into_iter().skip(1).map(Plan::listed_calls).sum()
}

/// A plan that has room is what it is without a limit; with less it is refused, and told about how long it would be, soon after
/// there is no room.
#[test]
fn what_is_held_has_room_or_is_refused() {
    let machine = machine(1 << 20, false);
    let program = product([3001, 2503, 2099]);
    let all = planned(&machine, &program, u64::MAX).unwrap();
    let held = below(&all);
    assert!(all.is_in_parts() && held > 256, "{held} calls in {all}");
    let same = planned(&machine, &program, held).unwrap();
    assert_eq!(format!("{same}"), format!("{all}"));
    for most in [held - 1, held / 2, held / 8] {
        match planned(&machine, &program, most).err() {
            Some(PlanError::TooLong { calls, most: told, task, .. }) => {
                assert_eq!((told, &task[..]), (most, "product"));
                assert!(calls > most && calls < 16 * held, "{calls} of {held} with room for {most}");
            }
            other => panic!("with room for {most} of {held}: {other:?}"),
        }
    }
}

/// What was planned to choose among ways is not held.
#[test]
fn what_was_not_chosen_is_not_held() {
    let machine = machine(4 << 20, true);
    let program = product([701, 503, 256]);
    let all = planned(&machine, &program, u64::MAX).unwrap();
    let held = below(&all);
    let looked_at: u64 = {
        let options = PlanOptions { disk_buffer_bytes: 0, listed_max: 64, ..PlanOptions::default() };
        let mut planner = Planner::new(&machine, Mapping::default(), options);
        planner.plan(&program).unwrap();
        planner.listed_calls()
    };
    assert!(looked_at > held, "{looked_at} calls were looked at, {held} are not fewer");
    let plan = planned(&machine, &program, held).unwrap();
    assert!(below(&plan) <= held, "{plan}");
    // With twice as much, the largest of the plans that are looked at, of the whole call, have room beside each other.
    assert_eq!(format!("{}", planned(&machine, &program, 2 * held).unwrap()), format!("{all}"));
}

/// Of calls that are divided none is part of another, so that their number is enough to refuse them.
#[test]
fn calls_that_are_divided_are_counted_before_they_are_planned() {
    let core = |name, count| {
        let processor =
            Processor { kind: ProcessorKind::Cpu, flops_per_second: 1e9, call_overhead_ns: 0.0, code_bytes: 0 };
        Memory::child(name, MemoryId(0), count, 1 << 20, Edge::new(Driver::SHARED, 1e10, 100.0))
            .with_processor(processor)
    };
    let machine =
        Machine::new("held", "", vec![Memory::root("dram", 1 << 40), core("core", 2), core("other", 3)]).unwrap();
    let mut program = Program::new();
    let scale = program.task(Scale::<f32, 1>::default());
    let x = program.array::<f32, 1>("x", [1000], Role::InOut).unwrap();
    let a = program.array::<f32, 1>("a", [1000], Role::Input).unwrap();
    for _ in 0..100 {
        program.call(scale, (x.all(), a.all()), Scalars::new()).unwrap();
    }
    let calls = planned(&machine, &program, u64::MAX).unwrap().calls.len() as u64;
    let refused = planned(&machine, &program, calls - 1).err();
    assert!(matches!(&refused, Some(PlanError::TooManyCalls { calls: told, .. }) if *told == calls), "{refused:?}");
    let refused = planned(&machine, &program, 99).err();
    assert!(matches!(refused, Some(PlanError::TooManyCalls { calls: 100, most: 99, .. })), "{refused:?}");
}

/// What is left of an interrupted run is counted as all of it was, also where memories of two kinds read from the disk.
#[test]
fn what_is_left_has_room_or_is_refused() {
    let processor = Processor { kind: ProcessorKind::Cpu, flops_per_second: 1e9, call_overhead_ns: 0.0, code_bytes: 0 };
    let below = |name| {
        Memory::child(name, MemoryId(0), 1, 1 << 20, Edge::new(Driver::DISK, 1e9, 1000.0)).with_processor(processor)
    };
    let core = |name, memory| {
        Memory::child(name, MemoryId(memory), 2, 1 << 20, Edge::new(Driver::SHARED, 1e10, 100.0))
            .with_processor(processor)
    };
    let disk = Memory::root("disk", 1 << 50);
    let memories = vec![disk, below("dram"), below("other"), core("core", 1), core("unit", 2)];
    let machine = Machine::new("held", "", memories).unwrap();
    let program = product([701, 503, 256]);
    let all = planned(&machine, &program, u64::MAX).unwrap();
    assert!(all.is_division && all.calls.len() > 1, "{all}");
    let left = Numbered::of(&program, &all.ways).unwrap().left(&[]);
    let go_on = |held_max| {
        let options = PlanOptions { disk_buffer_bytes: 0, listed_max: 64, held_max, ..PlanOptions::default() };
        Planner::new(&machine, Mapping::default(), options).plan_left(&left)
    };
    let room = go_on(u64::MAX).unwrap();
    assert_eq!(room.numbers, (0..all.calls.len() as u32).collect::<Vec<u32>>());
    let calls = all.calls.len() as u64;
    let refused = go_on(calls - 1).err();
    assert!(matches!(&refused, Some(PlanError::TooManyCalls { calls: told, .. }) if *told == calls), "{refused:?}");
    let most = self::below(&room) - 1;
    assert!(most >= calls, "{room}");
    let refused = go_on(most).err();
    assert!(matches!(&refused, Some(PlanError::TooLong { most: told, .. }) if *told == most), "{refused:?}");
}
