//! Random machines survive being written and read; no text makes the reader panic.

use multigrain_machine::{
    ContextScheduler, Contexts, Costs, Driver, Edge, Host, LeafRate, Machine, MachineError, Memory, MemoryId, Network,
    Problem, Processor, ProcessorKind, Shape, ThreadScheduler, TransferRules,
};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

/// A number that is finite and above zero, round or not.
fn positive() -> impl Strategy<Value = f64> {
    prop_oneof![(1u32..4000).prop_map(|tenths| f64::from(tenths) * 1e8), 1e-3..1e15, proptest::num::f64::POSITIVE]
        .prop_filter("finite and above zero", |value| value.is_finite() && *value > 0.0)
}

fn rules() -> impl Strategy<Value = TransferRules> {
    let limit = || proptest::option::of(1u64..=i64::MAX as u64);
    (1u64..100_000, proptest::option::of(1u64..), limit(), limit(), any::<bool>()).prop_map(
        |(alignment_bytes, transfer_bytes_max, list_entries_max, in_flight_max, strict)| TransferRules {
            alignment_bytes,
            transfer_bytes_max,
            list_entries_max,
            in_flight_max,
            strict,
        },
    )
}

fn costs() -> impl Strategy<Value = Option<Costs>> {
    let time = || 0.0f64..1e9;
    let times = (time(), time(), time(), time(), time());
    let given =
        (times, 0u64..1 << 50, positive(), positive()).prop_map(|(times, cached, uncached, first_touch)| Costs {
            fragment_ns: times.0,
            fragment_processor_ns: times.1,
            transfer_ns: times.2,
            queue_ns: times.3,
            wake_ns: times.4,
            cached_bytes: cached as f64,
            uncached_bytes_per_second: uncached,
            first_touch_bytes_per_second: first_touch,
        });
    proptest::option::of(given)
}

fn edge() -> impl Strategy<Value = Edge> {
    let driver = proptest::sample::select(Driver::all());
    let optional = || proptest::option::of(positive());
    (driver, positive(), positive(), positive(), costs(), optional(), rules()).prop_map(
        |(driver, read, write, latency_ns, costs, sibling_bytes_per_second, rules)| Edge {
            driver,
            read_bytes_per_second: read,
            write_bytes_per_second: write,
            latency_ns,
            costs: costs.unwrap_or(driver.costs),
            sibling_bytes_per_second,
            rules,
        },
    )
}

fn processor() -> impl Strategy<Value = Processor> {
    let kind = proptest::sample::select(ProcessorKind::ALL.to_vec());
    (kind, positive(), 0.0f64..1e6, any::<u64>()).prop_map(|(kind, rate, call_overhead_ns, code_bytes)| Processor {
        kind,
        flops_per_second: rate,
        call_overhead_ns,
        code_bytes,
    })
}

fn leaves() -> impl Strategy<Value = Vec<LeafRate>> {
    let known = || proptest::option::of(positive());
    let leaf = ("[^\\x00-\\x1f\\x7f-\\u{9f}]{0,8}", known(), known(), known(), text());
    proptest::collection::vec(leaf, 0..3).prop_map(|leaves| {
        let leaf = |(i, (task, flops_per_second, bytes_per_second, call_overhead_ns, source))| LeafRate {
            task: format!("{task}{i}"),
            flops_per_second,
            bytes_per_second,
            call_overhead_ns,
            source,
        };
        leaves.into_iter().enumerate().map(leaf).collect()
    })
}

fn host() -> impl Strategy<Value = Option<Host>> {
    proptest::option::of((1..1024u32, 1..1024u32, 100..10_000u32, text()).prop_map(
        |(cores, threads_per_core, interrupts_per_second, source)| Host {
            cores,
            threads_per_core,
            scheduler: ThreadScheduler::Linux2624,
            interrupts_per_second,
            source,
        },
    ))
}

fn contexts() -> impl Strategy<Value = Option<Contexts>> {
    let time = || 0.0f64..1e9;
    let scheduler = proptest::sample::select(ContextScheduler::ALL.to_vec());
    let all = (scheduler, time(), time(), time(), 0.0f64..=1.0, text());
    proptest::option::of(all.prop_map(|(scheduler, switch_ns, look_ns, spawn_ns, spread, source)| Contexts {
        scheduler,
        switch_ns,
        look_ns,
        spawn_ns,
        spread,
        source,
    }))
}

/// A network of so many nodes.
fn network(nodes: usize) -> impl Strategy<Value = Network> {
    let shape =
        (0..4, 1usize..100, 1usize..100, positive()).prop_map(move |(shape, leaf, up, link_bytes_per_second)| {
            match shape {
                0 => Shape::Crossbar,
                1 => Shape::FatTree { leaf, up, link_bytes_per_second },
                2 => Shape::Torus { sizes: vec![1, nodes], link_bytes_per_second },
                // Every node is a group.
                _ => Shape::Dragonfly { router: 1, group: 1, global: (nodes - 1) * up, link_bytes_per_second },
            }
        });
    (shape, 0.0f64..1e9, text()).prop_map(|(shape, message_ns, source)| Network { shape, message_ns, source })
}

fn text() -> impl Strategy<Value = Option<String>> {
    proptest::option::of(any::<String>())
}

/// A memory whose name and parent are still to be settled.
fn memory() -> impl Strategy<Value = (Memory, Edge, usize)> {
    let words = (text(), text(), text(), proptest::option::of(Just(PathBuf::from("."))), leaves());
    let values = (1usize..5000, 1u64.., edge(), processor(), any::<usize>(), "[^\\x00-\\x1f\\x7f-\\u{9f}]{0,8}");
    let parts = (words, values, host(), contexts());
    let with_network = parts.prop_flat_map(|parts| {
        let network = proptest::option::of(network(parts.1.0));
        (Just(parts), network)
    });
    with_network.prop_map(|((words, values, host, contexts), network)| {
        let (source, edge_source, processor_source, path, leaves) = words;
        let (count, capacity_bytes, edge, processor, choice, name) = values;
        let mut memory = Memory::root(&name, capacity_bytes).with_processor(processor);
        memory.count = count;
        memory.path = path;
        memory.source = source;
        memory.edge_source = edge_source;
        memory.processor_source = processor_source;
        memory.leaves = leaves;
        (memory.host, memory.contexts) = (host, contexts);
        memory.network = network.filter(|_| edge.driver == Driver::MPI);
        (memory, edge, choice)
    })
}

fn machine() -> impl Strategy<Value = Machine> {
    (any::<String>(), any::<String>(), proptest::collection::vec(memory(), 1..8)).prop_map(
        |(name, description, parts)| {
            let memories = parts.into_iter().enumerate().map(|(index, (memory, edge, choice))| {
                // The index keeps names apart and not empty.
                let name = format!("{}{index}", memory.name);
                if index == 0 {
                    return Memory { name, count: 1, edge_source: None, network: None, ..memory };
                }
                Memory { name, parent: Some(MemoryId(choice % index)), edge: Some(edge), ..memory }
            });
            let mut memories: Vec<Memory> = memories.collect();
            // Children of all kinds read files, or none does.
            let read = |memory: &Memory| memory.edge.is_some_and(|edge| edge.driver.files);
            let firsts: Vec<_> = memories.iter().map(|memory| (memory.parent, read(memory))).collect();
            for memory in &mut memories {
                let first = firsts.iter().find(|first| first.0 == memory.parent).is_some_and(|first| first.1);
                if read(memory) != first
                    && let Some(edge) = &mut memory.edge
                {
                    edge.driver = if first { Driver::DISK } else { Driver::LOCAL };
                    edge.costs = edge.driver.costs;
                    memory.network = None;
                }
            }
            Machine::new(&name, &description, memories).unwrap()
        },
    )
}

fn read(text: &str) -> Result<Machine, MachineError> {
    // A mutation may ask for this computer; detecting it again each time would only cost time.
    Machine::parse_on(text, "random.toml", |_: &Path| Err(Problem::Empty.into()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_machine_reads_back_as_itself(machine in machine()) {
        let text = machine.to_toml();
        let back = read(&text);
        prop_assert_eq!(back.as_ref(), Ok(&machine), "{}", text);
    }

    #[test]
    fn the_order_in_the_file_does_not_matter(machine in machine()) {
        let text = machine.to_toml();
        let mut parts: Vec<&str> = text.split("\n[[memory]]\n").collect();
        // A source may hold such a line in a text of several lines; then there is nothing to reorder safely.
        prop_assume!(parts.len() == machine.memories().len() + 1);
        parts[1..].reverse();
        let back = read(&parts.join("\n[[memory]]\n")).unwrap();
        prop_assert_eq!(back.memories().len(), machine.memories().len());
        for memory in machine.memories() {
            let found = back.memory(back.find(&memory.name).unwrap());
            let parent = |machine: &Machine, memory: &Memory| {
                memory.parent.map(|parent| machine.memory(parent).name.clone())
            };
            prop_assert_eq!(parent(&back, found), parent(&machine, memory));
            prop_assert_eq!(&Memory { parent: memory.parent, ..found.clone() }, memory);
        }
    }

    #[test]
    fn mutated_text_is_read_or_refused(
        machine in machine(),
        cuts in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>(), 0u8..4), 1..6),
    ) {
        let mut bytes = machine.to_toml().into_bytes();
        for (place, byte, kind) in cuts {
            if bytes.is_empty() {
                break;
            }
            let place = place.index(bytes.len());
            match kind {
                0 => bytes[place] = byte,
                1 => bytes.truncate(place),
                2 => { bytes.remove(place); }
                _ => bytes.insert(place, byte),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        match read(&text) {
            Ok(machine) => { read(&machine.to_toml()).unwrap(); }
            Err(error) => prop_assert!(error.to_string().starts_with("random.toml"), "{}", error),
        }
    }

    #[test]
    fn swapped_lines_are_read_or_refused(machine in machine(), swaps in proptest::collection::vec(any::<(proptest::sample::Index, proptest::sample::Index)>(), 1..6)) {
        let text = machine.to_toml();
        let mut lines: Vec<&str> = text.lines().collect();
        for (a, b) in swaps {
            let (a, b) = (a.index(lines.len()), b.index(lines.len()));
            lines.swap(a, b);
        }
        if let Ok(machine) = read(&lines.join("\n")) {
            read(&machine.to_toml()).unwrap();
        }
    }
}
