//! Plans of reductions: what two children do at once, what crosses an edge, what a mapping may ask for.

use multigrain_machine::{Driver, Edge, Machine, Memory, MemoryId, Processor, ProcessorKind};
use multigrain_plan::check::{check, edge_rules};
use multigrain_plan::testing::Dot;
use multigrain_plan::{Body, Mapping, Op, Plan, PlanError, PlanOptions, Planner};
use multigrain_program::{Program, Role, Scalars};
use std::sync::Arc;

const N: u64 = 1 << 14;

/// The products of two vectors, reduced to one number.
fn program() -> Program {
    let mut program = Program::new();
    let dot = program.task(Dot::<f32>::default());
    let a = program.array::<f32, 1>("a", [N], Role::Input).unwrap();
    let b = program.array::<f32, 1>("b", [N], Role::Input).unwrap();
    let out = program.array::<f32, 1>("out", [1], Role::Output).unwrap();
    program.call(dot, (a.all(), b.all(), out.all()), Scalars::new()).unwrap();
    program
}

fn machine(disk: Option<u64>, cores: usize) -> Machine {
    let mut memories = vec![Memory::root(if disk.is_some() { "disk" } else { "dram" }, 1 << 40)];
    if let Some(bytes) = disk {
        memories.push(Memory::child("dram", MemoryId(0), 1, bytes, Edge::new(Driver::DISK, 2e9, 8e4)));
    }
    let parent = MemoryId(memories.len() - 1);
    let mut core = Memory::child("core", parent, cores, 1 << 30, Edge::new(Driver::SHARED, 2e10, 100.0));
    core.capacity_bytes = memories[parent.0].capacity_bytes;
    core.processor =
        Some(Processor { kind: ProcessorKind::Cpu, flops_per_second: 1e9, call_overhead_ns: 100.0, code_bytes: 0 });
    memories.push(core);
    Machine::new("test", "A machine for tests.", memories).unwrap()
}

fn planned(machine: &Machine, mapping: Mapping) -> Result<Arc<Plan>, PlanError> {
    let options = PlanOptions { disk_buffer_bytes: 0, ..PlanOptions::default() };
    let plan = Planner::new(machine, mapping, options).plan(&program())?;
    check(&plan, &edge_rules(machine)).unwrap();
    Ok(plan)
}

#[test]
fn two_children_contribute_at_once() {
    let mut mapping = Mapping::default();
    mapping.set("dot", "core", "n", 1024);
    let plan = planned(&machine(None, 2), mapping).unwrap();
    let contributions = |child: usize| {
        let runs = plan.children[child].ops.iter().filter_map(|op| match op {
            Op::Run { call, .. } => Some(plan.tasks[plan.calls[*call as usize].task as usize].name()),
            _ => None,
        });
        runs.filter(|&name| name == "dot").count()
    };
    assert_eq!([contributions(0), contributions(1)], [8, 8]);
    let waits = plan.children.iter().flat_map(|c| &c.ops).filter(|op| matches!(op, Op::Wait { .. })).count();
    assert_eq!(waits, 1, "the halves of the tree meet once");
    let text = plan.to_string();
    assert!(text.contains("16 contributions to 1 blocks, a fixed tree of 15 merges"), "{text}");
}

#[test]
fn partial_results_stay_above_a_disk() {
    let plan = planned(&machine(Some(32 << 10), 2), Mapping::default()).unwrap();
    assert!(plan.arrays.len() > program().arrays().len(), "one call would not fit:\n{plan}");
    // The vectors once, and the one number.
    assert_eq!((plan.traffic.bytes_down, plan.traffic.bytes_up), (2 * 4 * N, 4), "\n{plan}");
}

#[test]
fn what_plans_below_keep_is_set_aside() {
    let mut mapping = Mapping::default();
    mapping.set("dot", "core", "n", 64);
    let plan = planned(&machine(Some(32 << 10), 2), mapping).unwrap();
    let below = plan.classes.iter().map(|class| match &class.body {
        Body::Inner(inner) => inner.temporary_bytes(),
        Body::Leaf { .. } => 0,
    });
    let below = below.max().unwrap();
    assert!(below > 0, "\n{plan}");
    assert!(plan.scratch_bytes >= below && plan.capacity_bytes + plan.scratch_bytes <= plan.total_bytes, "\n{plan}");
}

#[test]
fn a_mapping_keeps_to_the_tree() {
    for wrong in [6, 12, 3000] {
        let mut mapping = Mapping::default();
        mapping.set("dot", "core", "n", wrong);
        let Err(error) = planned(&machine(None, 2), mapping) else { panic!("{wrong} was taken") };
        assert!(error.to_string().contains("times a power of two"), "{error}");
    }
}

/// A call is split as one that is almost as large: where that is whole, so is this, and not at the other's end.
#[test]
fn what_is_like_a_whole_call_is_whole() {
    let machine = machine(Some(1 << 20), 1);
    let mut program = Program::new();
    let dot = program.task(Dot::<f32>::default());
    for (number, n) in [15_000, 16_001, 14_001, 15_999].into_iter().enumerate() {
        let [a, b] =
            ["a", "b"].map(|name| program.array::<f32, 1>(&format!("{name}{number}"), [n], Role::Input).unwrap());
        let out = program.array::<f32, 1>(&format!("out{number}"), [1], Role::Output).unwrap();
        program.call(dot, (a.all(), b.all(), out.all()), Scalars::new()).unwrap();
    }
    let options = PlanOptions { disk_buffer_bytes: 0, ..PlanOptions::default() };
    let plan = Planner::new(&machine, Mapping::default(), options).plan(&program).unwrap();
    check(&plan, &edge_rules(&machine)).unwrap();
}
