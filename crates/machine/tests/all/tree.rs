//! What can be asked of a machine.

use multigrain_machine::{Costs, Driver, Edge, Layout, Machine, Memory, MemoryId, Problem, Processor, ProcessorKind};

fn cpu() -> Processor {
    Processor { kind: ProcessorKind::Cpu, flops_per_second: 1e9, call_overhead_ns: 0.0, code_bytes: 0 }
}

fn shared() -> Edge {
    Edge::new(Driver::SHARED, 1e9, 100.0)
}

/// disk -> 2 x dram -> 3 x core
fn chain() -> Machine {
    let memories = vec![
        Memory::root("disk", 1 << 40),
        Memory::child("dram", MemoryId(0), 2, 1 << 30, Edge::new(Driver::DISK, 1e8, 1e5)),
        Memory::child("core", MemoryId(1), 3, 1 << 20, shared()).with_processor(cpu()),
    ];
    Machine::new("chain", "", memories).unwrap()
}

/// dram -> 2 x core, 1 x gpu
fn fork() -> Machine {
    let memories = vec![
        Memory::root("dram", 1 << 30),
        Memory::child("core", MemoryId(0), 2, 1 << 20, shared()).with_processor(cpu()),
        Memory::child("gpu", MemoryId(0), 1, 1 << 30, Edge::new(Driver::CUDA, 1e10, 1e4)).with_processor(cpu()),
    ];
    Machine::new("fork", "", memories).unwrap()
}

#[test]
fn edges_of_a_chain_are_numbered_from_the_root_down() {
    let chain = chain();
    let layout = Layout::of(&chain);
    let edges: Vec<_> = layout.edges().map(|(number, _, child)| (number, child)).collect();
    assert_eq!(edges, [(0, MemoryId(1)), (1, MemoryId(2))]);
    assert_eq!(layout.branches().len(), 2);
    let [disk, dram] = [layout.branch(0), layout.branch(1)];
    assert_eq!((disk.below(0), disk.below(1), dram.below(0)), (Some(1), Some(1), None));
    assert_eq!((disk.led(0, 1), dram.led(3, 2), disk.all(0), dram.all(3)), (3..6, 5..6, 0..6, 3..6));
    assert_eq!((dram.instance(1, 2), dram.parents, dram.above.as_slice()), (5, 2, &[0][..]));
    assert_eq!(disk.name(&chain), "disk - dram");
    assert_eq!(layout.workers(), 6);
    assert_eq!(chain.workers(), 6);
    assert_eq!(chain.total(MemoryId(1)), 2);
    assert_eq!(chain.find("core"), Some(MemoryId(2)));
    assert_eq!(chain.find("gpu"), None);
}

#[test]
fn kinds_of_children_are_divided_first() {
    let fork = fork();
    let layout = Layout::of(&fork);
    assert_eq!(fork.workers(), 3);
    assert_eq!(fork.children(MemoryId(0)).count(), 2);
    let children: Vec<_> = layout.branches().iter().map(|branch| branch.child).collect();
    assert_eq!(children, [None, Some(MemoryId(1)), Some(MemoryId(2))]);
    let division = layout.branch(0);
    assert!(division.is_division() && !layout.branch(1).is_division());
    assert_eq!((division.below(0), division.below(1)), (Some(1), Some(2)));
    assert_eq!((division.led(0, 0), division.led(0, 1), division.all(0)), (0..2, 2..3, 0..3));
    assert_eq!((division.instance(0, 1), layout.branch(1).instance(0, 1)), (0, 1));
    assert_eq!(
        (division.name(&fork).as_str(), layout.branch(2).name(&fork).as_str()),
        ("dram - core | gpu", "dram - gpu")
    );
    assert!(division.edge(&fork).driver.views);
}

/// Every worker is a leaf, and leaves of one memory follow each other.
#[test]
fn three_kinds_are_divided_twice() {
    let mut memories = vec![Memory::root("cluster", 1 << 40)];
    memories.push(Memory::child("node", MemoryId(0), 2, 1 << 30, Edge::new(Driver::MPI, 1e9, 1e4)));
    for (name, count) in [("a", 2), ("b", 3), ("c", 1)] {
        memories.push(Memory::child(name, MemoryId(1), count, 1 << 20, shared()).with_processor(cpu()));
    }
    let machine = Machine::new("three", "", memories).unwrap();
    let layout = Layout::of(&machine);
    let names: Vec<String> = layout.branches().iter().map(|branch| branch.name(&machine)).collect();
    assert_eq!(names, ["cluster - node", "node - a | b | c", "node - a", "node - b | c", "node - b", "node - c"]);
    assert_eq!((layout.workers(), machine.workers()), (12, 12));
    let (node, first, second) = (layout.branch(0), layout.branch(1), layout.branch(3));
    let leader = node.first_worker(0, 1);
    assert_eq!((leader, first.led(leader, 0), first.led(leader, 1)), (6, 6..8, 8..12));
    assert_eq!((second.led(8, 0), second.led(8, 1)), (8..11, 11..12));
    assert_eq!(layout.branch(4).instance(first.instance(1, 1), 2), 5);
    assert_eq!(second.above, [0, 1]);
}

#[test]
fn the_machine_below_the_root_is_one_of_its_children() {
    let below = chain().without_root();
    assert_eq!(below.memories().len(), 2);
    assert_eq!(below.memories()[0], Memory::root("dram", 1 << 30));
    assert_eq!(below.memories()[1].parent, Some(MemoryId(0)));
    assert_eq!(below.workers(), 3);
    let leaf = below.without_root();
    assert_eq!(leaf.memories().len(), 1);
    assert_eq!(leaf.without_root(), leaf);
    let gpu = fork().rooted_at(MemoryId(2));
    assert_eq!(gpu.memories().len(), 1);
    assert_eq!(gpu.memories()[0].name, "gpu");
}

#[test]
fn capacity_and_count_can_be_set() {
    let chain = chain().with_capacity("dram", 123).unwrap().with_count("core", 1).unwrap();
    assert_eq!(chain.memory(MemoryId(1)).capacity_bytes, 123);
    assert_eq!(chain.workers(), 2);
    let error = chain.with_capacity("cache", 1).unwrap_err();
    assert_eq!(error.problem, Problem::UnknownMemory { name: "cache".into(), known: "disk, dram, core".into() });
    assert!(matches!(chain.with_capacity("dram", 0).unwrap_err().problem, Problem::OutOfRange { .. }));
    assert!(matches!(chain.with_count("core", 0).unwrap_err().problem, Problem::OutOfRange { .. }));
    assert_eq!(chain.with_count("disk", 2).unwrap_err().problem, Problem::CountAtRoot { found: 2 });
}

#[test]
fn a_list_of_memories_is_checked() {
    let root = || Memory::root("dram", 1).with_processor(cpu());
    let child = |parent| Memory::child("core", MemoryId(parent), 1, 1, shared()).with_processor(cpu());
    let problem = |memories| Machine::new("m", "", memories).unwrap_err().problem;
    assert_eq!(problem(vec![]), Problem::Empty);
    assert_eq!(problem(vec![root(), child(1)]), Problem::ParentAfterChild);
    assert_eq!(problem(vec![child(7)]), Problem::ParentAfterChild);
    assert_eq!(problem(vec![root(), child(0), child(0)]), Problem::DuplicateName { first_line: None });
    assert!(matches!(problem(vec![root(), Memory { edge: None, ..child(0) }]), Problem::Missing { .. }));
    let second = Memory { name: "second".into(), ..root() };
    assert_eq!(problem(vec![root(), second]), Problem::TwoRoots { first: "dram".into(), second: "second".into() });
    assert_eq!(problem(vec![Memory { edge: Some(shared()), ..root() }]), Problem::EdgeAtRoot);
    assert_eq!(problem(vec![Memory::root("dram", 1)]), Problem::NoProcessor);
    for name in ["", " ", "two\nlines"] {
        assert!(matches!(problem(vec![Memory { name: name.into(), ..root() }]), Problem::BadName { .. }));
    }
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let edge = Edge { write_bytes_per_second: bad, ..shared() };
        assert!(matches!(problem(vec![root(), Memory { edge: Some(edge), ..child(0) }]), Problem::OutOfRange { .. }));
        let processor = Processor { flops_per_second: bad, ..cpu() };
        assert!(matches!(problem(vec![root().with_processor(processor)]), Problem::OutOfRange { .. }));
    }
    let mut edge = shared();
    edge.rules.in_flight_max = Some(0);
    assert!(matches!(problem(vec![root(), Memory { edge: Some(edge), ..child(0) }]), Problem::OutOfRange { .. }));
}

#[test]
fn rendering_aligns_columns_and_names_sources() {
    let chain = chain().with("dram", |memory| memory.edge_source = Some("measured".into())).unwrap();
    let text = chain.render();
    let lines: Vec<&str> = text.lines().collect();
    let expected = [
        "chain",
        "",
        "memory    count  capacity  edge        read     write  latency  processor",
        "disk          1     1 TiB  -              -         -        -  -",
        "  dram        2     1 GiB  disk    100 MB/s  100 MB/s   100 us  -",
        "    core      3     1 MiB  shared    1 GB/s    1 GB/s   100 ns  cpu 1 GFLOP/s",
    ];
    assert_eq!(lines[..expected.len()], expected);
    assert!(text.contains("\ndram: edge measured\n"), "{text}");
    assert!(text.contains("\ncore: edge source not given\n"), "{text}");
}

#[test]
fn costs_that_make_no_sense_are_refused_by_name() {
    let none = Costs::NONE;
    let cases = [
        ("edge.fragment:", Costs { fragment_ns: -1.0, ..none }),
        ("edge.wake:", Costs { wake_ns: f64::NAN, ..none }),
        ("edge.cached:", Costs { cached_bytes: f64::INFINITY, ..none }),
        ("edge.uncached:", Costs { uncached_bytes_per_second: 0.0, ..none }),
        ("edge.first_touch:", Costs { first_touch_bytes_per_second: -2e9, ..none }),
    ];
    for (key, costs) in cases {
        let memories = vec![
            Memory::root("disk", 1 << 40),
            Memory::child("dram", MemoryId(0), 1, 1 << 30, Edge { costs, ..Edge::new(Driver::DISK, 1e8, 1e5) })
                .with_processor(cpu()),
        ];
        let error = Machine::new("wrong", "", memories).unwrap_err();
        assert!(matches!(error.problem, Problem::OutOfRange { .. }), "{error}");
        assert!(error.to_string().contains(key), "{error}");
    }
    let asked = "name = \"m\"\n[[memory]]\nname = \"a\"\ncapacity = \"1 GiB\"\n[[memory]]\nname = \"b\"\nparent = \"a\"\n\
                 [memory.edge]\nfragments = \"1 us\"\n";
    let error = Machine::parse(asked, "m.toml").unwrap_err().to_string();
    assert!(error.contains("edge.fragments") && error.contains("fragment_cpu") && error.contains("strict"), "{error}");
}
