//! Blocks that one local store fetches for all: the bits are those of stores that fetch for themselves, and of sequential
//! execution, with fewer bytes read of the parent.

use crate::support;

use multigrain::prelude::*;
use multigrain::rooms::machine::{Driver, Edge, Memory, MemoryId, Processor, ProcessorKind, TransferRules};
use multigrain::rooms::plan::Mapping;
use multigrain::rooms::plan::testing::Product;
use multigrain::rooms::store::BackendChoice;
use multigrain::rooms::trace::{Kind, NO_TRANSFER, Spill, Trace};
use support::*;

/// Local stores at one memory, or below main memory in which parts of files lie.
fn stores(directory: Option<&std::path::Path>, count: usize, sibling: Option<f64>, rules: TransferRules) -> Machine {
    let processor =
        Processor { kind: ProcessorKind::Cpu, flops_per_second: 1e9, call_overhead_ns: 100.0, code_bytes: 0 };
    let mut memories = vec![Memory::root("dram", 1 << 30)];
    if let Some(directory) = directory {
        memories = vec![Memory { path: Some(directory.to_owned()), ..Memory::root("disk", 1 << 40) }];
        let disk = Edge::new(Driver::DISK, 2e9, 8e4);
        memories.push(Memory::child("dram", MemoryId(0), 1, (1 << 20) + BUFFER_BYTES, disk));
    }
    let edge = Edge { sibling_bytes_per_second: sibling, rules, ..Edge::new(Driver::LOCAL, 1e9, 1.0) };
    let parent = MemoryId(memories.len() - 1);
    memories.push(Memory::child("store", parent, count, 2 << 20, edge).with_processor(processor));
    Machine::new("stores", "Local stores.", memories).unwrap()
}

/// `c = a b` with blocks of `b` of so many rows, which all stores read; each has rows of its own of `c`.
fn product(name: &'static str, count: usize, machine: Machine, [n, k, each]: [u64; 3]) -> Case {
    let rows = 4 * count as u64;
    let mut program = Program::new();
    let task = program.task(Product::<f32>::default());
    let a = program.array::<f32, 2>("a", [rows, k], Role::Input).unwrap();
    let b = program.array::<f32, 2>("b", [k, n], Role::Input).unwrap();
    let c = program.array::<f32, 2>("c", [rows, n], Role::Output).unwrap();
    program.call(task, (a.all(), b.all(), c.all()), Scalars::new()).unwrap();
    let mut case = case(name, program, |_| machine, BackendChoice::Auto);
    let mut mapping = Mapping::default();
    for (axis, length) in [("m", 4), ("n", n), ("k", each)] {
        mapping.set("product", "store", axis, length);
    }
    case.setup.mapping = mapping;
    case
}

#[test]
fn stores_that_share_fetches_give_the_same_bits() {
    let strict = TransferRules {
        alignment_bytes: 16,
        transfer_bytes_max: Some(16 << 10),
        list_entries_max: Some(2048),
        in_flight_max: Some(16),
        strict: true,
    };
    for count in [2, 3, 5] {
        // Blocks of a few bytes, and of 96 KiB: more than a ring of the broadcast holds.
        for sizes in [[20, 64, 8], [384, 256, 64]] {
            for rules in [TransferRules::default(), strict] {
                let of = |sibling| product("product", count, stores(None, count, sibling, rules), sizes);
                let (alone, shared) = (of(None), of(Some(1e12)));
                let expected = shared.expected();
                assert!(alone.expected() == expected, "{count} stores");
                let traffic = |case: &Case| case.setup.runtime(None).plan(&case.job).unwrap().edges[0].traffic;
                let (before, now) = (traffic(&alone), traffic(&shared));
                assert_eq!(before.bytes_across, 0);
                assert_eq!(now.bytes_down + now.bytes_across, before.bytes_down, "{count} stores");
                assert_eq!(now.bytes_across, 4 * sizes[0] * sizes[1] * (count as u64 - 1), "{count} stores");
                // Many runs, since the order in which they come differs.
                let runtime = shared.setup.runtime(None);
                for _ in 0..10 {
                    run(&runtime, &shared.job, false, None).unwrap();
                    assert!(shared.results() == expected, "{count} stores");
                    shared.clear();
                }
            }
        }
    }
}

#[test]
fn stores_below_a_disk_share_fetches() {
    let name = "product on disk";
    let machine = |directory: &std::path::Path| stores(Some(directory), 3, Some(1e12), TransferRules::default());
    let directory = directory();
    let mut case = product(name, 3, machine(directory.path()), [64, 128, 16]);
    for (axis, length) in [("m", 12), ("n", 64), ("k", 32)] {
        case.setup.mapping.set("product", "dram", axis, length);
    }
    let edges = case.setup.runtime(None).plan(&case.job).unwrap().edges;
    assert_eq!((edges[0].traffic.bytes_across, edges[1].traffic.bytes_across > 0), (0, true), "{edges:?}");
    case.expected();
}

#[test]
fn a_trace_tells_who_waited_for_a_broadcast() {
    let case = product("product", 3, stores(None, 3, Some(1e12), TransferRules::default()), [64, 64, 16]);
    let path = case.directory().join("run.trace");
    let spill = Spill::create(&path).unwrap();
    let settings = Settings { trace: Some(spill.clone()), ..Settings::default() };
    case.setup.runtime(None).run(&case.job, settings).unwrap();
    spill.publish().unwrap();
    let trace = Trace::load(&path).unwrap();
    let of = |kind: Kind| trace.records.iter().filter(move |record| record.kind == kind);
    let waits: Vec<_> = of(Kind::Wait).filter(|record| record.number == NO_TRANSFER).collect();
    // Four blocks of three stores, roots in turn; a signal of each root.
    assert_eq!((waits.len(), of(Kind::Signal).count()), (12, 4));
    assert!(waits.iter().all(|record| record.subject < 3 && record.index == 0));
    let waited = trace.breakdown().wait_seconds[0].1;
    let ticks: u64 = of(Kind::Wait).map(|record| record.end - record.start).sum();
    assert!(waited > 0.0 && ticks > 0);
}
