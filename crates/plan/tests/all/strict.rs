//! Edges that enforce their rules: the planner keeps to them where it can, and the checker names what breaks them.

use crate::support;

use multigrain_machine::{Driver, Edge, Machine, Memory, MemoryId, Processor, ProcessorKind, TransferRules};
use multigrain_plan::check::{Problem, check, edge_rules};
use multigrain_plan::testing::{ProductUpdate, Scale, Windows, random_program};
use multigrain_plan::{Mapping, Plan, PlanError, PlanOptions, Planner};
use multigrain_program::notation::Notation;
use multigrain_program::{ElementType, LeafContext, Program, Read, Reduce, ReduceMut, Role, Scalars, Sum, Task, View};
use support::product;

/// Main memory above two local stores with the Cell's rules.
fn cell(store_bytes: u64, code_bytes: u64) -> Machine {
    let rules = TransferRules {
        alignment_bytes: 16,
        transfer_bytes_max: Some(16 << 10),
        list_entries_max: Some(2048),
        in_flight_max: Some(16),
        strict: true,
    };
    let edge = Edge { rules, ..Edge::new(Driver::LOCAL, 25.6e9, 90.6) };
    let processor =
        Processor { kind: ProcessorKind::Spe, flops_per_second: 25.6e9, call_overhead_ns: 160.0, code_bytes };
    let memories = vec![
        Memory::root("dram", 1 << 30),
        Memory::child("spe", MemoryId(0), 2, store_bytes, edge).with_processor(processor),
    ];
    Machine::new("cell", "", memories).unwrap()
}

fn plan(
    machine: &Machine,
    program: &Program,
    mapping: &str,
) -> Result<std::sync::Arc<multigrain_plan::Plan>, PlanError> {
    let mapping = Mapping::parse(mapping, "test").unwrap();
    Planner::new(machine, mapping, PlanOptions::default()).plan(program)
}

fn vector(n: u64) -> Program {
    let mut program = Program::new();
    let scale = program.task(Scale::<f32, 1>::default());
    let x = program.array::<f32, 1>("x", [n], Role::InOut).unwrap();
    let a = program.array::<f32, 1>("a", [n], Role::Input).unwrap();
    program.call(scale, (x.all(), a.all()), Scalars::new()).unwrap();
    program
}

#[test]
fn blocks_begin_at_units_where_they_can() {
    let machine = cell(16 << 10, 1 << 10);
    let rules = edge_rules(&machine);
    for n in [4, 1000, 1001, 4099, 30_000] {
        check(&plan(&machine, &vector(n), "").unwrap(), &rules).unwrap_or_else(|e| panic!("{n}: {e}"));
    }
    for (m, n, k) in [(64, 64, 64), (100, 200, 300), (4, 1024, 36)] {
        let mut program = Program::new();
        let product = program.task(ProductUpdate::<f32>::default());
        let a = program.array::<f32, 2>("a", [m, k], Role::Input).unwrap();
        let b = program.array::<f32, 2>("b", [k, n], Role::Input).unwrap();
        let c = program.array::<f32, 2>("c", [m, n], Role::InOut).unwrap();
        program.call(product, (a.all(), b.all(), c.all()), Scalars::new()).unwrap();
        check(&plan(&machine, &program, "").unwrap(), &rules).unwrap_or_else(|e| panic!("{m} {n} {k}: {e}"));
    }
}

/// Rows of `x` that are longer than a row of a block of it.
fn matrix(rows: u64, columns: u64) -> Program {
    let mut program = Program::new();
    let scale = program.task(Scale::<f32, 2>::default());
    let x = program.array::<f32, 2>("x", [rows, columns], Role::InOut).unwrap();
    let a = program.array::<f32, 2>("a", [rows, columns], Role::Input).unwrap();
    program.call(scale, (x.all(), a.all()), Scalars::new()).unwrap();
    program
}

#[test]
fn a_block_that_begins_within_a_unit_lies_so_in_its_slot() {
    let machine = cell(16 << 10, 1 << 10);
    let rules = edge_rules(&machine);
    let plan = plan(&machine, &vector(99), "[scale.spe]\nd0 = 33\n").unwrap();
    check(&plan, &rules).unwrap();
    let skews: Vec<u64> = plan.children.iter().flat_map(|c| &c.slots).map(|slot| slot.offset_bytes % 16).collect();
    assert!(skews.contains(&4) && skews.contains(&8), "blocks begin at bytes 0, 132 and 264: {skews:?}");

    // Regions of calls that no tile can align.
    let mut program = Program::new();
    let scale = program.task(Scale::<f32, 2>::default());
    let x = program.array::<f32, 2>("x", [3, 999], Role::InOut).unwrap();
    let a = program.array::<f32, 2>("a", [3, 999], Role::Input).unwrap();
    for row in 0..3 {
        let part = (x.block([row, 0], [1, 999]), a.block([row, 0], [1, 999]));
        program.call(scale, part, Scalars::new()).unwrap();
    }
    check(&self::plan(&machine, &program, "").unwrap(), &rules).unwrap();
}

#[test]
fn what_breaks_a_rule_is_named_with_the_operation() {
    let machine = cell(16 << 10, 1 << 10);
    let plan = plan(&machine, &matrix(8, 99), "[scale.spe]\nd0 = 4\nd1 = 33\n").unwrap();
    let error = check(&plan, &edge_rules(&machine)).unwrap_err();
    assert!(matches!(error.problem, Problem::Unlike { parent_bytes: 12, slot_bytes: 4, .. }), "{error}");
    let text = error.to_string();
    for part in ["dram -> spe", "child", "step", "block x[0..4, 0..33]", "132 bytes", "unit of 16"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn code_that_does_not_fit_is_refused() {
    let error = plan(&cell(16 << 10, 16 << 10), &vector(1000), "").err().unwrap();
    assert!(matches!(error, PlanError::DoesNotFit { .. }), "{error}");
    assert!(error.to_string().contains("spe") && error.to_string().contains("16 KiB"), "{error}");
}

/// Whatever a program is, it is planned or refused, and what obeys the rules is proved to.
#[test]
fn random_programs_are_planned_or_refused() {
    let machine = cell(2 << 10, 0);
    let rules = edge_rules(&machine);
    let mut planned = 0;
    for seed in 0..100 {
        let listed_max = if seed % 2 == 0 { 2 } else { PlanOptions::default().listed_max };
        let Ok(plan) = listing(&machine, &random_program(seed), listed_max) else { continue };
        planned += 1;
        match check(&plan, &rules).map_err(|e| e.problem) {
            // Odd shapes and regions have no lawful blocks.
            Ok(_) | Err(Problem::Unlike { .. }) => {}
            Err(problem) => panic!("seed {seed}: {problem}"),
        }
    }
    assert!(planned > 20, "{planned} were planned");
}

/// Among the blocks whose cost is a formula those are found that obey the rules: short rows at units, and whole rows of odd
/// lengths, which begin elsewhere in a unit.
#[test]
fn a_formula_keeps_to_the_rules() {
    let small =
        [[100, 200, 320], [64, 64, 64], [333, 1020, 192], [64, 37, 64], [99, 7, 576], [1, 13, 65], [8, 1001, 2]];
    // In the last, parts of rows would be cheaper: of whole ones there is no room for two of each.
    let large = [[256, 37, 64], [32, 1001, 10]];
    for (store_bytes, shapes) in [(16 << 10, &small[..]), (64 << 10, &large[..])] {
        let machine = cell(store_bytes, 1 << 10);
        for &shape in shapes {
            let plan = plan(&machine, &product(shape), "").unwrap();
            check(&plan, &edge_rules(&machine)).unwrap_or_else(|e| panic!("{shape:?}: {e}"));
        }
    }
}

fn listing(machine: &Machine, program: &Program, listed_max: u64) -> Result<std::sync::Arc<Plan>, PlanError> {
    let options = PlanOptions { listed_max, ..PlanOptions::default() };
    Planner::new(machine, Mapping::default(), options).plan(program)
}

/// The sums of rows of `x`.
struct Sums;

impl Task for Sums {
    type Params = (Read<f32, 2>, Reduce<f32, 1>);

    fn name(&self) -> &'static str {
        "sums"
    }

    fn notation(&self) -> Option<Notation> {
        Some(Notation::axes(["m", "n"]).param("x", ["m", "n"]).param("sums", ["m"]))
    }

    fn leaf(&self, _: (View<'_, f32, 2>, ReduceMut<'_, f32, 1, Sum>), _: &mut LeafContext<'_>) {}
}

/// A list of calls that is too long is told from blocks that are too large, though longer blocks make a shorter list. What is
/// reduced is not taken apart.
#[test]
fn what_fits_in_too_many_calls_is_no_lack_of_local_memory() {
    let machine = cell(16 << 10, 1 << 10);
    let options = PlanOptions { calls_max: 1000, ..PlanOptions::default() };
    let mut program = Program::new();
    let sums = program.task(Sums);
    let x = program.array::<f32, 2>("x", [4096, 1024], Role::Input).unwrap();
    let out = program.array::<f32, 1>("sums", [4096], Role::Output).unwrap();
    program.call(sums, (x.all(), out.all()), Scalars::new()).unwrap();
    let error = Planner::new(&machine, Mapping::default(), options).plan(&program).err().unwrap();
    assert!(matches!(error, PlanError::TooManyCalls { calls: 1001.., most: 1000, .. }), "{error}");
}

/// What would be a long list is in parts, each of which begins where a unit does, as an array of its own would.
#[test]
fn parts_keep_to_the_rules() {
    let machine = cell(16 << 10, 1 << 10);
    let mut in_parts = 0;
    for shape in [[512, 512, 512], [100, 1020, 320], [333, 260, 192], [1000, 37, 64], [999, 7, 576]] {
        for listed_max in [2, 5, 30, 100] {
            let plan = listing(&machine, &product(shape), listed_max).unwrap();
            check(&plan, &edge_rules(&machine)).unwrap_or_else(|e| panic!("{shape:?}, {listed_max} listed: {e}"));
            in_parts += u32::from(plan.is_in_parts());
        }
    }
    assert!(in_parts > 12, "{in_parts} are in parts");
}

/// Sums of many products are long chains: parts have pieces of all of them, so that eight children have something to do.
#[test]
fn parts_keep_all_children_busy() {
    let machine = cell(16 << 10, 1 << 10).with("spe", |spe| spe.count = 8).unwrap();
    for k in [1 << 14, 1 << 15] {
        let [list, parts] = [1 << 16, 400].map(|listed| listing(&machine, &product([128, 128, k]), listed).unwrap());
        check(&parts, &edge_rules(&machine)).unwrap();
        assert!(!list.is_in_parts() && parts.is_in_parts(), "{list}\n{parts}");
        assert!(parts.seconds < 1.2 * list.seconds, "{k}: {} s, a list {} s\n{parts}", parts.seconds, list.seconds);
    }
}

/// Rows of 9,999 elements, one call each: as parts their plans would take each to begin with a unit.
#[test]
fn calls_that_begin_within_a_unit_are_no_parts() {
    let mut program = Program::new();
    let scale = program.task(Scale::<f32, 2>::default());
    let x = program.array::<f32, 2>("x", [16, 9999], Role::InOut).unwrap();
    let a = program.array::<f32, 2>("a", [16, 9999], Role::Input).unwrap();
    for row in 0..16 {
        let part = (x.block([row, 0], [1, 9999]), a.block([row, 0], [1, 9999]));
        program.call(scale, part, Scalars::new()).unwrap();
    }
    let machine = cell(2 << 10, 1 << 10);
    let rules = edge_rules(&machine);
    let plan = listing(&machine, &program, 1000).unwrap();
    check(&plan, &rules).unwrap();
    assert!(!plan.is_in_parts());

    // What an edge without rules makes of them the checker refuses for one with rules.
    let lenient =
        machine.with("spe", |spe| spe.edge = spe.edge.map(|edge| Edge { rules: TransferRules::default(), ..edge }));
    let plan = listing(&lenient.unwrap(), &program, 1000).unwrap();
    assert!(plan.is_in_parts());
    let error = check(&plan, &rules).unwrap_err();
    assert!(matches!(error.problem, Problem::UnlikePart { call: 1, parent_bytes: 12, part_bytes: 0, .. }), "{error}");
}

/// Of long lists of blocks that cannot be moved it is told at once.
#[test]
fn what_no_block_obeys_is_refused_where_lists_are_long() {
    let machine = cell(16 << 10, 1 << 10);
    let error = listing(&machine, &product([1001, 1001, 1001]), 1000).err().unwrap();
    assert!(matches!(error, PlanError::Unmovable { alignment_bytes: 16, .. }), "{error}");
    for part in ["product", "spe", "aligned", "16 bytes"] {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
}

/// 64 is a multiple of the four elements of a unit: blocks of as many are found where there is no room for more.
#[test]
fn blocks_are_as_small_as_a_common_multiple_of_what_the_task_says_and_the_rules() {
    let machine = cell(4 << 10, 0);
    let plan = plan(&machine, &product([64, 64, 512]), "").unwrap();
    check(&plan, &edge_rules(&machine)).unwrap();
    let k = plan.tunables.iter().flat_map(|(_, lengths)| lengths).find(|(axis, _)| *axis == "k");
    assert_eq!(k.map(|&(_, length)| length), Some(64), "{:?}", plan.tunables);
}

/// Where a block begins with what is before it, it is known that it begins within a unit: whole rows are moved, though blocks
/// of parts of rows would have less around them.
#[test]
fn halos_keep_to_the_rules() {
    let machine = cell(24 << 10, 0);
    for (columns, along) in [(128, (1, 1)), (100, (1, 0)), (96, (3, 2)), (128, (2, 2))] {
        let mut program = Program::new();
        let task = program.task(Windows { reach: vec![(3, 3), along], by: Some(vec![(0, 0); 2]), scratch: false });
        let dims = multigrain_program::Shape::new(&[90, columns]);
        let mut array = |name, role| program.any_array(name, ElementType::U64, dims, role).unwrap();
        let (u, by) = (array("u", Role::Input), array("by", Role::Input));
        let out = array("out", Role::Output);
        program.any_call(task, &[u.all(), by.all(), out.all()], Scalars::new().with_u64(1)).unwrap();
        let plan = plan(&machine, &program, "").unwrap();
        check(&plan, &edge_rules(&machine)).unwrap_or_else(|e| panic!("{columns} columns, {along:?}: {e}"));
    }
}
