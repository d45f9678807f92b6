//! Tasks whose split is free: how much is split to choose among the ways of doing it, and how good the choice is.

use multigrain_machine::{Driver, Edge, Machine, Memory, MemoryId, Processor, ProcessorKind};
use multigrain_plan::{Mapping, PlanError, PlanOptions, Planner};
use multigrain_program::{
    CallShape, LeafContext, Program, Read, Region, Role, Scalars, SubCall, Task, Tunable, Tunables, View, ViewMut,
    Work, Write, blocks,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A copy that is cut along its axes; the sub-calls of all splits are counted.
struct Copy<const R: usize> {
    flops: f64,
    made: Arc<AtomicU64>,
}

const AXES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A tunable for each axis of a result.
fn of_axes(dims: &[u64]) -> Vec<Tunable> {
    dims.iter().zip(AXES).map(|(&extent, name)| Tunable { name, extent, multiple: 1 }).collect()
}

impl<const R: usize> Task for Copy<R> {
    type Params = (Read<f32, R>, Write<f32, R>);
    fn name(&self) -> &'static str {
        "copy"
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        of_axes(call.shapes[1].dims())
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let mut regions: Vec<(Vec<u64>, Vec<u64>)> = vec![Default::default()];
        for (&extent, name) in call.shapes[1].dims().iter().zip(AXES) {
            let longer = |(start, len): (Vec<u64>, Vec<u64>)| {
                blocks(extent, tunables.get(name, extent))
                    .map(move |(at, length)| ([&start[..], &[at]].concat(), [&len[..], &[length]].concat()))
            };
            regions = regions.into_iter().flat_map(longer).collect();
        }
        self.made.fetch_add(regions.len() as u64, Ordering::Relaxed);
        let region = |(start, len): (Vec<u64>, Vec<u64>)| Region::new(&start, &len);
        regions.into_iter().map(region).map(|r| SubCall::itself([(0, r), (1, r)], &call.scalars)).collect()
    }
    fn leaf(&self, _: (View<'_, f32, R>, ViewMut<'_, f32, R>), _: &mut LeafContext<'_>) {}
    fn work(&self, call: &CallShape) -> Work {
        Work { flops: self.flops * call.shapes[1].elements() as f64, bytes: 0.0 }
    }
}

/// A disk above so much memory, whose two processors compute.
fn machine(dram_bytes: u64) -> Machine {
    let processor = Processor { kind: ProcessorKind::Cpu, flops_per_second: 1e9, call_overhead_ns: 0.0, code_bytes: 0 };
    let dram = Memory::child("dram", MemoryId(0), 1, dram_bytes, Edge::new(Driver::DISK, 1e9, 80_000.0));
    let core = Memory::child("core", MemoryId(1), 2, dram_bytes, Edge::new(Driver::SHARED, 1e10, 100.0));
    let memories = vec![Memory::root("disk", 1 << 50), dram, core.with_processor(processor)];
    Machine::new("free", "", memories).unwrap()
}

/// Copies arrays of these shapes: predicted seconds, and how many sub-calls all splits made.
fn plan<const R: usize>(
    dram_bytes: u64,
    shapes: &[[u64; R]],
    flops: f64,
    mapping: &str,
    calls_max: u64,
) -> (Result<f64, PlanError>, u64) {
    let made = Arc::new(AtomicU64::new(0));
    let mut program = Program::new();
    let copy = program.task(Copy::<R> { flops, made: made.clone() });
    for (number, &shape) in shapes.iter().enumerate() {
        let x = program.array::<f32, R>(&format!("x{number}"), shape, Role::Input).unwrap();
        let y = program.array::<f32, R>(&format!("y{number}"), shape, Role::Output).unwrap();
        program.call(copy, (x.all(), y.all()), Scalars::new()).unwrap();
    }
    let options = PlanOptions { disk_buffer_bytes: 0, calls_max, ..PlanOptions::default() };
    let planned = Planner::new(&machine(dram_bytes), Mapping::parse(mapping, "test").unwrap(), options).plan(&program);
    (planned.map(|plan| plan.seconds), made.load(Ordering::Relaxed))
}

/// Of five axes there are 20,000 ways and more, of which many make thousands of calls.
#[test]
fn ways_along_many_axes_are_not_all_split() {
    let (planned, made) = plan(40 << 20, &[[40; 5]], 1e6, "", 1 << 20);
    planned.unwrap();
    assert!(made < 1 << 19, "{made} sub-calls were made to choose");
}

/// Whether anything fits is told by the smallest blocks.
#[test]
fn what_cannot_fit_is_refused_by_the_smallest_blocks() {
    let (planned, made) = plan(1 << 13, &[[210, 209, 211]], 1.0, "", 5000);
    assert!(matches!(planned, Err(PlanError::DoesNotFit { .. } | PlanError::TooManyCalls { .. })), "{planned:?}");
    assert!(made < 1 << 20, "{made} sub-calls were made to refuse");
}

/// What is chosen takes about as little time as the best of many tiles.
#[test]
fn what_is_chosen_is_about_the_best_tile() {
    for (shape, dram_bytes, flops) in
        [([4013, 348], 1 << 20, 1.0), ([37, 90_001], 1 << 20, 50.0), ([999, 1001], 5 << 19, 4.0)]
    {
        let (planned, _) = plan(dram_bytes, &[shape], flops, "", 1 << 20);
        let planned = planned.unwrap();
        let mut best = f64::INFINITY;
        for a in (0..=8).map(|halvings| shape[0].div_ceil(1 << halvings)) {
            for b in (0..=8).map(|halvings| shape[1].div_ceil(1 << halvings)) {
                let tile = format!("[copy.dram]\na = {a}\nb = {b}\n");
                if let (Ok(seconds), _) = plan(dram_bytes, &[shape], flops, &tile, 1 << 20) {
                    best = best.min(seconds);
                }
            }
        }
        assert!(planned <= 1.05 * best, "{shape:?} in {dram_bytes}: {planned} s, a tile takes {best}");
    }
}

/// Of many calls of almost one length the first is searched for, and the others take little longer than if they were too.
#[test]
fn calls_like_another_are_not_searched_for() {
    let shapes: Vec<[u64; 1]> = (0..200).map(|number| [1_000_000 + 501 * number]).collect();
    let alone: Vec<(f64, u64)> = shapes
        .iter()
        .map(|&shape| plan(1 << 20, &[shape], 1.0, "", 1 << 20))
        .map(|(planned, made)| (planned.unwrap(), made))
        .collect();
    let (all, made) = plan(1 << 20, &shapes, 1.0, "", 1 << 20);
    let (all, each) = (all.unwrap(), alone.iter().map(|(seconds, _)| seconds).sum::<f64>());
    assert!(all < 1.1 * each, "{all} s for all calls, {each} for each alone");
    let each: u64 = alone.iter().map(|(_, made)| made).sum();
    assert!(made < each / 4, "{made} sub-calls for all calls, {each} for each alone");
}

/// A copy in tiles, each of which needs a table with an entry for each of them.
struct Tabled;

impl Task for Tabled {
    type Params = (Read<f32, 2>, Read<f32, 1>, Write<f32, 2>);
    fn name(&self) -> &'static str {
        "tabled"
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        of_axes(call.shapes[2].dims())
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let (rows, columns) = (call.shapes[2].dims()[0], call.shapes[2].dims()[1]);
        let (m, n) = (tunables.get("a", rows), tunables.get("b", columns));
        let entries = (rows.div_ceil(m) * columns.div_ceil(n)).min(call.shapes[1].elements());
        let table = Region::new(&[0], &[entries]);
        let tiles = blocks(rows, m).flat_map(|row| blocks(columns, n).map(move |column| (row, column)));
        let tiles = tiles.map(|((i, m), (j, n))| Region::new(&[i, j], &[m, n]));
        tiles.map(|tile| SubCall::itself([(0, tile), (1, table), (2, tile)], &call.scalars)).collect()
    }
    fn leaf(&self, _: (View<'_, f32, 2>, View<'_, f32, 1>, ViewMut<'_, f32, 2>), _: &mut LeafContext<'_>) {}
}

/// The smallest blocks need most.
#[test]
fn what_fits_is_found_where_the_smallest_blocks_need_more() {
    for kib in [64, 72, 80, 100, 110, 1024] {
        let mut program = Program::new();
        let task = program.task(Tabled);
        let x = program.array::<f32, 2>("x", [4000; 2], Role::Input).unwrap();
        let table = program.array::<f32, 1>("table", [16_000_000], Role::Input).unwrap();
        let y = program.array::<f32, 2>("y", [4000; 2], Role::Output).unwrap();
        program.call(task, (x.all(), table.all(), y.all()), Scalars::new()).unwrap();
        let options = PlanOptions { disk_buffer_bytes: 0, calls_max: 1 << 16, ..PlanOptions::default() };
        let planned = Planner::new(&machine(kib << 10), Mapping::default(), options).plan(&program);
        planned.unwrap_or_else(|why| panic!("{kib} KiB: {why}"));
    }
}
