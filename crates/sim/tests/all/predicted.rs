//! The cost walk and the simulator give the steps of a plan one meaning: random programs on machines of one edge, whose
//! constants both count. What one child does takes as long in both, to the rounding of virtual time. Several children share a
//! bus as they need it in the simulator and evenly in the walk, so the one lies between what the other says with all of the
//! bus for each and with an even share; and the walk leaves out waits. Of what no processor copies the simulator counts bytes,
//! the walk cache lines.
//!
//! `MULTIGRAIN_CASES=10000 cargo test -p multigrain-sim --release --test predicted` is the longer form.

use multigrain_machine::{Costs, Driver, Edge, Machine, Memory, MemoryId, Processor, ProcessorKind, TransferRules};
use multigrain_plan::testing::{Rng, random_program, walked_seconds};
use multigrain_plan::{Mapping, Op, Plan, PlanError, PlanOptions, Planner};
use multigrain_sim::run::{RunOptions, run};
use multigrain_trace::{Kind, Mode};

/// By what blocks are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// The worker: it waits for what it issues.
    Worker,
    /// A device that serves one transfer after the other.
    Device,
    /// A link of each child, one transfer after the other.
    Link,
    /// An engine of each child, for which the walk takes the worker: so the simulator's time is the shorter one.
    Engine,
}

const ALL: [By; 4] = [By::Worker, By::Device, By::Link, By::Engine];

fn machine(rng: &mut Rng, moved: By, children: usize) -> Machine {
    let rate = 1e7 * rng.range(1, 100) as f64;
    let latency_ns = if moved == By::Link { 0.0 } else { 1e3 * rng.below(5) as f64 };
    let (driver, costs, in_flight_max) = match moved {
        By::Worker => (Driver::LOCAL, Costs::NONE, None),
        By::Device => {
            let fragment_ns = 1e3 * rng.below(20) as f64;
            let fragment_processor_ns = 100.0 * rng.below(20) as f64;
            let transfer_ns = 1e3 * rng.below(100) as f64;
            let mut costs = Costs { fragment_ns, fragment_processor_ns, transfer_ns, ..Costs::NONE };
            if rng.percent(30) {
                costs.cached_bytes = 64.0 * rng.below(10) as f64;
                costs.uncached_bytes_per_second = rate * rng.range(1, 20) as f64;
                costs.first_touch_bytes_per_second = rate * rng.range(1, 20) as f64;
            }
            (Driver::DISK, costs, None)
        }
        By::Engine => (Driver::LOCAL, Costs::NONE, Some(rng.range(1, 16))),
        By::Link => (Driver::LINK, Costs::NONE, Some(1)),
    };
    let rules = TransferRules { in_flight_max, ..TransferRules::default() };
    let write_bytes_per_second = rate * rng.range(3, 10) as f64 / 10.0;
    let mut edge = Edge { rules, costs, write_bytes_per_second, ..Edge::new(driver, rate, latency_ns) };
    if moved == By::Worker && rng.percent(70) {
        edge.latency_ns /= 10.0;
        edge.sibling_bytes_per_second = Some(rate * rng.range(1, 100) as f64);
    }
    let processor = Processor {
        kind: ProcessorKind::Cpu,
        flops_per_second: 1e7 * rng.range(1, 100) as f64,
        call_overhead_ns: rng.range(10, 10_000) as f64,
        code_bytes: 0,
    };
    let capacity_bytes = 256 * rng.range(4, 64);
    let child = Memory::child("child", MemoryId(0), children, capacity_bytes, edge).with_processor(processor);
    Machine::new("one edge", "", vec![Memory::root("above", 1 << 40), child]).unwrap()
}

/// The same with so many times the bandwidth.
fn faster(machine: &Machine, times: f64) -> Machine {
    let faster = machine.with("child", |memory| {
        let edge = memory.edge.as_mut().unwrap();
        edge.read_bytes_per_second *= times;
        edge.write_bytes_per_second *= times;
    });
    faster.unwrap()
}

fn planned(seed: u64, machine: &Machine) -> Option<std::sync::Arc<Plan>> {
    let options = PlanOptions { disk_buffer_bytes: 0, simulated: true, ..PlanOptions::default() };
    match Planner::new(machine, Mapping::default(), options).plan(&random_program(seed)) {
        Ok(plan) => Some(plan),
        Err(PlanError::DoesNotFit { .. } | PlanError::Empty) => None,
        Err(error) => panic!("seed {seed}: {error}"),
    }
}

/// By how much cache lines are more than the bytes of a block, at most.
fn lines_by_bytes(plan: &Plan) -> f64 {
    let slots = plan.children.iter().flat_map(|child| &child.slots);
    let of = |slot: &multigrain_plan::Slot| {
        let array = &plan.arrays[slot.block.array as usize];
        let (_, elements) = slot.block.region.fragments(array.shape);
        let run_bytes = elements * array.element.size_bytes();
        ((run_bytes.div_ceil(64) + 1) * 64) as f64 / run_bytes as f64
    };
    slots.map(of).fold(1.0, f64::max)
}

fn has(plan: &Plan, is_one: impl Fn(&Op) -> bool) -> bool {
    plan.children.iter().any(|child| child.ops.iter().any(&is_one))
}

#[test]
fn steps_take_as_long_in_the_cost_walk_as_in_the_simulator() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, cases) = (number("MULTIGRAIN_SEED").unwrap_or(0), number("MULTIGRAIN_CASES").unwrap_or(600));
    let (mut alone, mut bounded, mut above, mut broadcasting, mut ops) = (0, 0, 0, 0, 0);
    let mut late_ones = 0;
    for seed in first..first + cases {
        let mut rng = Rng::new(seed ^ 0x0c05_7a1c);
        let moved = ALL[(seed / 2 % 4) as usize];
        let children = if seed % 2 == 0 { 1 } else { rng.range(2, 4) as usize };
        let machine = machine(&mut rng, moved, children);
        let Some(plan) = planned(seed, &machine).filter(|plan| !plan.is_in_parts()) else { continue };
        let options = RunOptions { mode: Mode::Full, spill: None, program: "test", go_on: None };
        let report = run(&plan, &machine, options).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let trace = report.trace.as_ref().unwrap();

        // Bytes and transfers.
        let transfers = trace.records.iter().filter(|r| r.kind == Kind::Transfer).count() as u64;
        let crossed = [plan.traffic.bytes_down, plan.traffic.bytes_up];
        assert_eq!((transfers, report.crossed_bytes[0]), (plan.traffic.transfers, crossed), "seed {seed}: {plan}");

        // Time, rounded up to whole bytes of each transfer and to picoseconds.
        let walked = walked_seconds(&plan, &machine).unwrap();
        let steps: usize = plan.children.iter().map(|child| child.ops.len()).sum();
        let edge = machine.memory(MemoryId(1)).edge.unwrap();
        let byte = children as f64 / edge.write_bytes_per_second;
        let rounding = walked * 1e-9 + steps as f64 * 2e-12 + 2.0 * transfers as f64 * byte;
        let what = || {
            format!(
                "seed {seed}, {moved:?}: {walked} s walked, {} s simulated\n{}\n{plan}",
                report.seconds,
                machine.to_toml()
            )
        };
        ops += steps;
        let broadcasts = has(&plan, |op| matches!(op, Op::Broadcast { .. }));
        let waits = has(&plan, |op| matches!(op, Op::Wait { .. } | Op::Barrier));
        if children == 1 && matches!(moved, By::Worker | By::Device) {
            // The walk counts what the first touch of slots takes, and what leaves the cache, at the end.
            let late = plan.predicted_seconds() - walked;
            let takes = walked - rounding..=walked + late + rounding;
            assert!(takes.contains(&report.seconds), "{late} s for slots; {}", what());
            (alone, late_ones) = (alone + 1, late_ones + u32::from(late > rounding));
            continue;
        }
        if broadcasts {
            // The walk knows them by a formula.
            assert!((0.5..=2.0).contains(&(report.seconds / walked)), "{}", what());
            broadcasting += 1;
            continue;
        }
        if moved != By::Engine {
            let lines = if moved == By::Link { lines_by_bytes(&plan) } else { 1.0 };
            let least = walked_seconds(&plan, &faster(&machine, lines * children as f64)).unwrap();
            assert!(report.seconds >= least - rounding, "{least} s at least; {}", what());
            bounded += 1;
        }
        if !waits && moved != By::Device {
            let handing = 2.0 * edge.latency_ns * 1e-9;
            assert!(report.seconds <= walked + handing + rounding, "{}", what());
            above += 1;
        }
    }
    println!(
        "{alone} plans of one child ({late_ones} with costs of slots), {bounded} bounded from below, {above} from above, {broadcasting} with broadcasts, {ops} steps"
    );
    assert!(alone as u64 > cases / 6 && bounded as u64 > cases / 6 && above as u64 > cases / 8);
    assert!(late_ones > 0 && broadcasting > 0);
}
