//! Plans in parts: where blocks of a part lie in the arrays that it is a part of.

use multigrain_machine::{Driver, Edge, Machine, Memory, MemoryId, Processor, ProcessorKind};
use multigrain_plan::testing::Scale;
use multigrain_plan::{Body, Mapping, Plan, PlanOptions, Planner};
use multigrain_program::notation::{along, around};
use multigrain_program::{LeafContext, Notation, Program, Read, Role, Scalars, Task, View, ViewMut, Write};
use std::sync::Arc;
use support::product;

use crate::support;

const PAGE_BYTES: u64 = 4096;

/// The plans of the parts of a plan in parts, with the first call of each.
fn parts(plan: &Plan) -> impl Iterator<Item = (&Plan, usize)> {
    plan.classes.iter().zip(0..).filter_map(|(class, number)| {
        let Body::Inner(part) = &class.body else { return None };
        Some((&**part, plan.class_of.iter().position(|&class| class == number)?))
    })
}

/// Slots lie as the files do, counted from where the part begins in its file, and for the arrays that it is called with.
#[test]
fn slots_of_a_part_lie_as_its_place_in_the_file() {
    // Parts of three blocks, three, and one, which begins within a page.
    let (n, block) = (7 * 40_123, 40_123);
    let processor = Processor { kind: ProcessorKind::Cpu, flops_per_second: 1e9, call_overhead_ns: 0.0, code_bytes: 0 };
    let edge = Edge::new(Driver::DISK, 1e9, 1000.0);
    let dram = Memory::child("dram", MemoryId(0), 1, 2 << 20, edge).with_processor(processor);
    let machine = Machine::new("disk", "", vec![Memory::root("disk", 1 << 40), dram]).unwrap();
    let mut program = Program::new();
    let scale = program.task(Scale::<f32, 1>::default());
    program.array::<f32, 1>("unused", [1], Role::Input).unwrap();
    let x = program.array::<f32, 1>("x", [n], Role::InOut).unwrap();
    let a = program.array::<f32, 1>("a", [n], Role::Input).unwrap();
    program.call(scale, (x.all(), a.all()), Scalars::new()).unwrap();
    let mut mapping = Mapping::default();
    mapping.set("scale", "dram", "d0", block);
    let file_offsets_bytes = vec![64, 128, 256];
    let options = PlanOptions {
        disk_buffer_bytes: 0,
        listed_max: 3,
        file_offsets_bytes: file_offsets_bytes.clone(),
        ..PlanOptions::default()
    };
    let plan = Planner::new(&machine, mapping, options).plan(&program).unwrap();
    let mut begun = Vec::new();
    for (part, first) in parts(&plan) {
        let args = &plan.calls[first].args;
        begun.push(args[0].region.start()[0]);
        for slot in part.children.iter().flat_map(|child| &child.slots) {
            let outer = &args[slot.block.array as usize];
            let element = outer.region.start()[0] + slot.block.region.start()[0];
            let in_file = file_offsets_bytes[outer.array as usize] + 4 * element;
            assert_eq!(slot.offset_bytes % PAGE_BYTES, in_file % PAGE_BYTES, "{:?} in {part}", slot.block);
        }
    }
    assert_eq!(begun, [0, 6 * block], "{plan}");
}

/// A disk of 30 MB/s above a memory of 8 MiB.
fn slow_disk() -> Machine {
    let processor =
        Processor { kind: ProcessorKind::Cpu, flops_per_second: 1e11, call_overhead_ns: 0.0, code_bytes: 0 };
    let edge = Edge::new(Driver::DISK, 3e7, 1e3);
    let dram = Memory::child("dram", MemoryId(0), 1, 8 << 20, edge).with_processor(processor);
    Machine::new("disk", "", vec![Memory::root("disk", 1 << 40), dram]).unwrap()
}

/// The plan of a product of n x n matrices on that disk.
fn planned(n: u64, listed_max: u64) -> Arc<Plan> {
    let options = PlanOptions { disk_buffer_bytes: 0, listed_max, ..PlanOptions::default() };
    Planner::new(&slow_disk(), Mapping::default(), options).plan(&product([n, n, n])).unwrap()
}

/// Nothing stays from one part to the next, so a list of tiny blocks that stream past one that stays, and that parts would store
/// and load again, is no good: larger ones are found.
#[test]
fn a_formula_knows_what_parts_load_again() {
    let n = 8192;
    for listed_max in [256, 512] {
        let plan = planned(n, listed_max);
        assert!(plan.is_in_parts(), "{plan}");
        assert_eq!(plan.traffic.bytes_up, 4 * n * n, "{listed_max} listed: {plan}");
    }
}

/// With a block of a ninth of the result in memory there is room for one panel that is large enough, and none for the next. That
/// it is waited for is nothing to a disk that never rests, so both factors are read three times, and not one of them four times.
#[test]
fn waiting_for_a_panel_costs_nothing_where_the_disk_is_what_takes_time() {
    let n = 3840;
    let plan = planned(n, 1 << 13);
    let moved = plan.traffic.bytes_down + plan.traffic.bytes_up;
    assert!(moved <= 7 * 4 * n * n, "{} arrays, {plan}", moved as f64 / (4 * n * n) as f64);
}

/// `out` is made of the rows of `u` and their neighbours.
struct Blur;

impl Task for Blur {
    type Params = (Read<f32, 2>, Write<f32, 2>);

    fn name(&self) -> &'static str {
        "blur"
    }
    fn notation(&self) -> Option<Notation> {
        Some(Notation::axes(["i", "j"]).param("u", [around("i", 1, 1), along("j")]).param("out", ["i", "j"]))
    }
    fn leaf(&self, _: (View<'_, f32, 2>, ViewMut<'_, f32, 2>), _: &mut LeafContext<'_>) {}
}

/// Parts of windows that are so long that they are taken apart again: of what lies within one, windows have neighbours, too.
#[test]
fn windows_are_planned_in_parts_of_parts() {
    let mut program = Program::new();
    let blur = program.task(Blur);
    let u = program.array::<f32, 2>("u", [60_000, 60_000], Role::Input).unwrap();
    let out = program.array::<f32, 2>("out", [60_000, 60_000], Role::Output).unwrap();
    program.call(blur, (u.all(), out.all()), Scalars::new()).unwrap();
    let options = PlanOptions { disk_buffer_bytes: 0, listed_max: 8, ..PlanOptions::default() };
    let plan = Planner::new(&slow_disk(), Mapping::default(), options).plan(&program).unwrap();
    assert!(parts(&plan).any(|(part, _)| part.is_in_parts()), "{plan}");
}
