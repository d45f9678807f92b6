//! What bad machine files get: each message names the file, the line, the memory and the key.

use multigrain_machine::{
    Edge, Machine, MachineError, Memory, MemoryId, Problem, Processor, ProcessorKind, Shape, TransferRules, UnitError,
};
use std::path::Path;

const GOOD: &str = r#"name = "good"

[[memory]]
name = "dram"
capacity = "1 GiB"

[[memory]]
name = "core"
parent = "dram"
count = 2
capacity = "1 MiB"
[memory.edge]
driver = "shared"
read = "10 GB/s"
latency = "100 ns"
[memory.processor]
kind = "cpu"
rate = "16 GFLOP/s"
"#;

fn read(text: &str) -> Result<Machine, MachineError> {
    Machine::parse_on(text, "bad.toml", computer)
}

/// A computer with a disk, DRAM and two cores.
fn computer(dir: &Path) -> Result<Machine, MachineError> {
    let cpu = Processor { kind: ProcessorKind::Cpu, flops_per_second: 2e9, call_overhead_ns: 5.0, code_bytes: 0 };
    let edge = |driver| Edge::new(driver, 1e9, 100.0);
    let memories = vec![
        Memory { path: Some(dir.to_path_buf()), ..Memory::root("disk", 1 << 40) },
        Memory::child("dram", MemoryId(0), 1, 1 << 30, edge(multigrain_machine::Driver::DISK)),
        Memory::child("core", MemoryId(1), 2, 1 << 20, edge(multigrain_machine::Driver::SHARED)).with_processor(cpu),
    ];
    Machine::new("this computer", "", memories)
}

/// Reads the good file with one text replaced by another; the message must begin and go on as stated.
fn refused(from: &str, to: &str, place: &str, parts: &[&str]) -> Problem {
    assert!(GOOD.contains(from), "{from:?} is not in the file");
    let error = read(&GOOD.replacen(from, to, 1)).unwrap_err();
    let message = error.to_string();
    assert!(message.starts_with(place), "{message:?} does not begin with {place:?}");
    for part in parts {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
    error.problem
}

#[test]
fn the_good_file_is_good() {
    let machine = read(GOOD).unwrap();
    assert_eq!(machine.workers(), 2);
    let edge = machine.memories()[1].edge.unwrap();
    assert_eq!(edge.write_bytes_per_second, edge.read_bytes_per_second);
    assert_eq!(edge.rules.alignment_bytes, 1);
}

#[test]
fn wrong_units() {
    let place = "bad.toml:11: memory \"core\": capacity: ";
    let problem = refused("\"1 MiB\"", "\"1 Mib\"", place, &["\"Mib\"", "did you mean \"MiB\""]);
    assert!(matches!(problem, Problem::Unit(UnitError::UnknownUnit { .. })));
    refused("\"1 MiB\"", "\"1048576\"", place, &["no unit", "256 MiB"]);
    refused("\"1 MiB\"", "1048576", place, &["expected a size such as \"256 MiB\"", "found integer"]);
    refused("\"10 GB/s\"", "\"10 GB\"", "bad.toml:14: memory \"core\": edge.read: ", &["\"GB\"", "GB/s"]);
    refused("\"100 ns\"", "\"100 nm\"", "bad.toml:15: memory \"core\": edge.latency: ", &["\"nm\"", "ns, "]);
    refused("\"16 GFLOP/s\"", "\"16 GHz\"", "bad.toml:18: memory \"core\": processor.rate: ", &["GFLOP/s"]);
}

#[test]
fn unknown_keys_drivers_and_processors() {
    refused("name = \"good\"", "name = \"good\"\nnmae = 1", "bad.toml:2: nmae: ", &["unknown key", "description"]);
    refused("count = 2", "cuont = 2", "bad.toml:10: memory \"core\": cuont: ", &["unknown key", "count"]);
    refused("read =", "raed =", "bad.toml:14: memory \"core\": edge.raed: ", &["unknown key", "read"]);
    refused("rate =", "rat =", "bad.toml:18: memory \"core\": processor.rat: ", &["unknown key", "rate"]);
    let problem = refused("\"shared\"", "\"shard\"", "bad.toml:13: memory \"core\": edge.driver: ", &["shared, disk"]);
    assert_eq!(
        problem,
        Problem::UnknownDriver { found: "shard".into(), known: "shared, disk, local, cuda, mpi, link".into() }
    );
    let problem = refused("\"cpu\"", "\"cpus\"", "bad.toml:17: memory \"core\": processor.kind: ", &["cpu, spe, gpu"]);
    assert_eq!(problem, Problem::UnknownProcessor { found: "cpus".into() });
}

#[test]
fn missing_keys() {
    let missing = |from: &str, place: &str, example: &str| {
        let problem = refused(from, "", place, &["missing", example]);
        assert!(matches!(problem, Problem::Missing { .. }));
    };
    missing("name = \"good\"", "bad.toml: name: ", "name = ");
    missing("name = \"dram\"", "bad.toml:3: memory.name: ", "name = ");
    missing("capacity = \"1 MiB\"", "bad.toml:7: memory \"core\": capacity: ", "256 MiB");
    missing("driver = \"shared\"", "bad.toml:12: memory \"core\": edge.driver: ", "shared");
    missing("read = \"10 GB/s\"", "bad.toml:12: memory \"core\": edge.read: ", "GB/s");
    missing("latency = \"100 ns\"", "bad.toml:12: memory \"core\": edge.latency: ", "100 ns");
    missing("kind = \"cpu\"", "bad.toml:16: memory \"core\": processor.kind: ", "cpu");
    missing("rate = \"16 GFLOP/s\"", "bad.toml:16: memory \"core\": processor.rate: ", "GFLOP/s");
    let edge = "[memory.edge]\ndriver = \"shared\"\nread = \"10 GB/s\"\nlatency = \"100 ns\"\n";
    missing(edge, "bad.toml:7: memory \"core\": edge: ", "driver = ");
}

#[test]
fn numbers_out_of_range() {
    let out = |from: &str, to: &str, place: &str| {
        let problem = refused(from, to, place, &["must be"]);
        assert!(matches!(problem, Problem::OutOfRange { .. }));
    };
    out("\"1 MiB\"", "\"0 MiB\"", "bad.toml:11: memory \"core\": capacity: ");
    out("count = 2", "count = 0", "bad.toml:10: memory \"core\": count: is 0");
    out("count = 2", "count = -2", "bad.toml:10: memory \"core\": count: is -2");
    out("count = 2", "count = 99999999999999999999", "bad.toml:10: memory \"core\": count: ");
    out("\"10 GB/s\"", "\"0 GB/s\"", "bad.toml:14: memory \"core\": edge.read: is 0");
    out("latency =", "write = \"0 B/s\"\nlatency =", "bad.toml:15: memory \"core\": edge.write: is 0");
    out("latency =", "sibling = \"0 B/s\"\nlatency =", "bad.toml:15: memory \"core\": edge.sibling: is 0");
    out("latency =", "list_max = 0\nlatency =", "bad.toml:15: memory \"core\": edge.list_max: is 0");
    out("\"16 GFLOP/s\"", "\"0 GFLOP/s\"", "bad.toml:18: memory \"core\": processor.rate: is 0");
}

/// The good file with nodes that a network connects.
fn networked(network: &str) -> String {
    let nodes = GOOD.replace("\"shared\"", "\"mpi\"").replace("count = 2", "count = 12");
    nodes.replace("[memory.processor]", &format!("[memory.network]\n{network}\n[memory.processor]"))
}

#[test]
fn networks_that_are_none_or_do_not_fit() {
    let good = |network: &str| read(&networked(network)).unwrap().memories()[1].network.clone().unwrap();
    assert_eq!(good("shape = \"crossbar\"").shape, Shape::Crossbar);
    let tree = good("shape = \"fat tree\"\nleaf = 5\nup = 2\nlink = \"1 GB/s\"\nmessage = \"1 us\"");
    assert_eq!(tree.shape, Shape::FatTree { leaf: 5, up: 2, link_bytes_per_second: 1e9 });
    assert_eq!(tree.message_ns, 1000.0);
    good("shape = \"torus\"\nsizes = [2, 2, 3]\nlink = \"1 GB/s\"");
    good("shape = \"dragonfly\"\nrouter = 2\ngroup = 2\nglobal = 1\nlink = \"1 GB/s\"");

    let refused = |network: &str, line: usize, key: &str, parts: &[&str]| {
        let message = read(&networked(network)).unwrap_err().to_string();
        let place = format!("bad.toml:{line}: memory \"core\": network{key}: ");
        assert!(message.starts_with(&place), "{message:?} does not begin with {place:?}");
        parts.iter().for_each(|part| assert!(message.contains(part), "{message:?} lacks {part:?}"));
    };
    refused("shape = \"tree\"", 17, ".shape", &["\"tree\"", "crossbar, fat tree, torus, dragonfly"]);
    refused("message = \"1 us\"", 16, ".shape", &["missing", "shape = \"crossbar\""]);
    refused("shape = \"crossbar\"\nleaf = 2", 18, ".leaf", &["unknown key", "of a crossbar"]);
    refused("shape = \"fat tree\"\nleaf = 2\nup = 2", 16, ".link", &["missing", "50 GB/s"]);
    refused("shape = \"fat tree\"\nleaf = 0\nup = 2\nlink = \"1 GB/s\"", 18, ".leaf", &["is 0", "at least 1"]);
    refused("shape = \"fat tree\"\nleaf = 2\nup = 2\nlink = \"0 GB/s\"", 20, ".link", &["is 0"]);
    let torus = "shape = \"torus\"\nlink = \"1 GB/s\"\nsizes = [2, 2, 2]";
    refused(torus, 19, ".sizes", &["12 nodes", "has 8", "sizes = [3, 2, 2]"]);
    let dragonfly = "shape = \"dragonfly\"\nlink = \"1 GB/s\"\nrouter = 2\n";
    refused(&format!("{dragonfly}group = 4\nglobal = 1"), 20, ".group", &["12 nodes", "has 8", "divides"]);
    refused(&format!("{dragonfly}group = 1\nglobal = 2"), 21, ".global", &["2 links", "5 neighbours", "multiple of 5"]);
    // Between cores of one memory there is none; and with other nodes it may not fit any more.
    let on_a_bus = networked("shape = \"crossbar\"").replace("\"mpi\"", "\"shared\"");
    let message = read(&on_a_bus).unwrap_err().to_string();
    assert!(message.starts_with("bad.toml:16: memory \"core\": network: ") && message.contains("mpi"), "{message}");
    let fewer = read(&networked(&torus.replace("[2, 2, 2]", "[2, 6]"))).unwrap().with_count("core", 6);
    assert!(matches!(fewer.unwrap_err().problem, Problem::NetworkMisfit { nodes: 6, .. }));
}

#[test]
fn fewer_nodes_keep_their_links_and_fewer_cores_their_bus() {
    let nodes = read(&networked("shape = \"crossbar\"")).unwrap().with_count("core", 3).unwrap();
    assert_eq!(nodes.memories()[1].edge.unwrap().read_bytes_per_second, 2.5e9);
    let cores = read(GOOD).unwrap().with_count("core", 1).unwrap();
    assert_eq!(cores.memories()[1].edge.unwrap().read_bytes_per_second, 10e9);
}

#[test]
fn wrong_types() {
    let wrong = |from: &str, to: &str, place: &str| {
        let problem = refused(from, to, place, &["expected", "found"]);
        assert!(matches!(problem, Problem::WrongType { .. }));
    };
    wrong("name = \"good\"", "name = 1", "bad.toml:1: name: ");
    wrong("count = 2", "count = \"2\"", "bad.toml:10: memory \"core\": count: ");
    wrong("latency =", "strict = 1\nlatency =", "bad.toml:15: memory \"core\": edge.strict: ");
    let error = read("name = \"m\"\nmemory = 3\n").unwrap_err();
    assert!(error.to_string().starts_with("bad.toml:2: memory: expected [[memory]] tables"), "{error}");
    let error = read("name = \"m\"\n[[memory]]\nname = \"a\"\nedge = 3\n").unwrap_err();
    assert!(error.to_string().starts_with("bad.toml:4: memory \"a\": edge: expected"), "{error}");
}

#[test]
fn trees_that_are_none() {
    let problem = refused("parent = \"dram\"\n", "", "bad.toml:7: ", &["two roots, \"dram\" and \"core\""]);
    assert!(matches!(problem, Problem::TwoRoots { .. }));
    let problem = refused("\"1 GiB\"", "\"1 GiB\"\nparent = \"core\"", "bad.toml:6: ", &["dram -> core -> dram"]);
    assert!(matches!(problem, Problem::NoRoot { .. }));
    let problem = refused("\"dram\"\ncount", "\"darm\"\ncount", "bad.toml:9: ", &["no memory is called \"darm\""]);
    assert!(matches!(problem, Problem::UnknownParent { .. }));
    let problem = refused("\"core\"", "\"dram\"", "bad.toml:7: memory \"dram\": ", &["the first is in line 3"]);
    assert!(matches!(problem, Problem::DuplicateName { .. }));
    assert_eq!(read("name = \"m\"").unwrap_err().problem, Problem::Empty);
}

#[test]
fn a_cycle_beside_the_root() {
    let memory = |name: &str, parent: &str| {
        format!("[[memory]]\nname = \"{name}\"\nparent = \"{parent}\"\ncapacity = \"1 B\"\n")
    };
    let text = format!("{GOOD}{}{}{}", memory("a", "b"), memory("b", "c"), memory("c", "b"));
    let error = read(&text).unwrap_err();
    assert_eq!(error.problem, Problem::Cycle { through: vec!["b".into(), "c".into(), "b".into()] });
    assert!(error.to_string().starts_with("bad.toml:"), "{error}");
}

#[test]
fn leaves_roots_and_paths() {
    let processor = "[memory.processor]\nkind = \"cpu\"\nrate = \"16 GFLOP/s\"\n";
    assert_eq!(refused(processor, "", "bad.toml:7: memory \"core\": ", &["processor"]), Problem::NoProcessor);
    let edge = "\"1 GiB\"\nedge = { driver = \"disk\", read = \"1 GB/s\", latency = \"1 us\" }";
    assert_eq!(refused("\"1 GiB\"", edge, "bad.toml:6: memory \"dram\": edge: ", &["root"]), Problem::EdgeAtRoot);
    let problem = refused("\"1 GiB\"", "\"1 GiB\"\ncount = 3", "bad.toml:6: memory \"dram\": count: ", &["3"]);
    assert_eq!(problem, Problem::CountAtRoot { found: 3 });
    let path = "\"1 GiB\"\npath = \"/no/such/folder\"";
    let problem = refused("\"1 GiB\"", path, "bad.toml:6: memory \"dram\": path: ", &["/no/such/folder"]);
    assert!(matches!(problem, Problem::NotADirectory { .. }));
    refused("\"core\"", "\"\"", "bad.toml:8: memory \"\": name: ", &["not a name"]);
}

#[test]
fn text_that_is_not_toml_and_files_that_are_not_there() {
    let problem = refused("count = 2", "count = = 2", "bad.toml:10: ", &["not TOML"]);
    assert!(matches!(problem, Problem::Syntax { .. }));
    refused("count = 2", "count = 2\ncount = 3", "bad.toml:11: ", &["not TOML"]);
    let error = Machine::read(Path::new("no-such-file.toml")).unwrap_err();
    assert!(error.to_string().starts_with("no-such-file.toml: cannot be read: "), "{error}");
}

#[test]
fn this_computer_can_be_changed_extended_and_cut() {
    let text = r#"
        name = "mine"
        base = "this computer"
        root = "dram"
        [[memory]]
        name = "dram"
        capacity = "2 GiB"
        [[memory]]
        name = "store"
        replaces = "core"
        capacity = "64 KiB"
        edge = { driver = "local", alignment = "16 B" }
        [[memory]]
        name = "gpu"
        parent = "dram"
        capacity = "8 GiB"
        edge = { driver = "cuda", read = "20 GB/s", latency = "10 us" }
        processor = { kind = "gpu", rate = "10 TFLOP/s" }
    "#;
    let machine = read(text).unwrap();
    let names: Vec<&str> = machine.memories().iter().map(|memory| memory.name.as_str()).collect();
    assert_eq!(names, ["dram", "store", "gpu"]);
    let [dram, store, _] = machine.memories() else { panic!("three memories") };
    assert_eq!((dram.capacity_bytes, dram.edge, dram.parent), (2 << 30, None, None));
    let edge = store.edge.unwrap();
    assert_eq!((store.count, store.capacity_bytes, edge.rules.alignment_bytes), (2, 64 << 10, 16));
    assert_eq!((edge.driver, edge.read_bytes_per_second), (multigrain_machine::Driver::LOCAL, 1e9));
    assert_eq!(store.processor.unwrap().flops_per_second, 2e9);
}

#[test]
fn the_root_that_is_cut_at_is_one() {
    let machine = read("name = \"m\"\nbase = \"this computer\"\nroot = \"core\"\n").unwrap();
    let [core] = machine.memories() else { panic!("one memory") };
    assert_eq!((core.name.as_str(), core.count, core.edge), ("core", 1, None));
}

#[test]
fn the_disk_of_this_computer_lies_where_the_file_says() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().display();
    let disk = |keys: &str| format!("name = \"m\"\nbase = \"this computer\"\n[[memory]]\n{keys}\npath = \"{path}\"\n");
    let root = |keys: &str| read(&disk(keys)).unwrap().memories()[0].path.clone().unwrap();
    assert_eq!(root("name = \"disk\""), dir.path());
    assert_eq!(root("name = \"scratch\"\nreplaces = \"disk\""), dir.path());
    // The path of another memory says nothing about the disk.
    assert_eq!(root("name = \"dram\""), Path::new("."));
}

#[test]
fn a_memory_can_be_put_above_this_computer() {
    let text = r#"
        name = "cluster"
        base = "this computer"
        root = "all"
        [[memory]]
        name = "all"
        capacity = "4 GiB"
        [[memory]]
        name = "node"
        replaces = "dram"
        parent = "all"
        count = 4
        edge = { driver = "mpi", read = "1 GB/s", latency = "2 us" }
    "#;
    let machine = read(text).unwrap();
    let names: Vec<&str> = machine.memories().iter().map(|memory| memory.name.as_str()).collect();
    assert_eq!(names, ["all", "node", "core"]);
    assert_eq!(machine.workers(), 8);
}

#[test]
fn a_base_that_does_not_fit() {
    let refused = |text: &str, place: &str, part: &str| {
        let message = read(text).unwrap_err().to_string();
        assert!(message.starts_with(place) && message.contains(part), "{message:?}: {place:?}, {part:?}");
    };
    refused("name = \"m\"\nbase = \"that computer\"", "bad.toml:2: base: ", "this computer");
    refused("name = \"m\"\nbase = \"this computer\"\nroot = \"ram\"", "bad.toml:3: root: ", "disk, dram, core");
    let memory = "[[memory]]\nname = \"a\"\n";
    let base = "name = \"m\"\nbase = \"this computer\"\n";
    refused(&format!("name = \"m\"\n{memory}replaces = \"core\""), "bad.toml:4: memory \"a\": replaces: ", "base");
    refused(&format!("{base}{memory}replaces = \"b\""), "bad.toml:5: memory \"a\": replaces: ", "disk, dram, core");
    let disk = "[[memory]]\nname = \"disk\"\npath = \"/no/such\"";
    refused(&format!("{base}{disk}"), "bad.toml:5: memory \"disk\": path: ", "not a directory");
    refused(&format!("{base}{memory}parent = \"dram\""), "bad.toml:3: memory \"a\": capacity: ", "missing");
    let like =
        |name: &str| format!("{base}{memory}parent = \"dram\"\ncapacity = \"1 MiB\"\ncomputes_like = \"{name}\"\n");
    refused(&like("gpu"), "bad.toml:7: memory \"a\": computes_like: ", "disk, dram, core");
    // Nor like itself.
    refused(&like("a"), "bad.toml:7: memory \"a\": computes_like: ", "disk, dram, core");
    // A memory without children, and nothing that computes there.
    refused(&like("dram"), "bad.toml:3: memory \"a\": edge: ", "missing");
    let edge = "[memory.edge]\ndriver = \"local\"\nread = \"1 GB/s\"\nlatency = \"1 us\"\n";
    refused(&format!("{}{edge}", like("dram")), "bad.toml:3: memory \"a\": ", "processor");
    let twice = format!("{base}{memory}replaces = \"core\"\n[[memory]]\nname = \"core\"\n");
    refused(&twice, "bad.toml:6: memory \"core\": ", "second");
}

#[test]
fn any_machine_file_can_be_a_base() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    let read = |name: &str| Machine::read(&dir.path().join(name));
    write("good.toml", GOOD);
    write("more.toml", "name = \"more\"\nbase = \"./good.toml\"\n[[memory]]\nname = \"core\"\ncount = 5\n");
    let kind = "[[memory]]\nname = \"slow\"\nparent = \"dram\"\ncapacity = \"1 MiB\"\ncomputes_like = \"core\"\n[memory.edge]\n\
                driver = \"local\"\nread = \"1 GB/s\"\nlatency = \"1 us\"\n[memory.processor]\nrate = \"4 GFLOP/s\"\n";
    write("kinds.toml", &format!("name = \"kinds\"\nbase = \"more.toml\"\n{kind}"));
    let [good, more, kinds] = ["good.toml", "more.toml", "kinds.toml"].map(|name| read(name).unwrap());
    assert_eq!(more.memories(), good.with_count("core", 5).unwrap().memories());
    let [_, core, slow] = kinds.memories() else { panic!("{kinds:?}") };
    assert_eq!(*core, more.memories()[1]);
    let rate = |memory: &Memory| memory.processor.unwrap().flops_per_second;
    assert_eq!((rate(core), rate(slow), slow.processor.unwrap().kind), (16e9, 4e9, core.processor.unwrap().kind));
    assert_eq!((slow.count, slow.edge.unwrap().driver.name), (1, "local"));
    assert_eq!(Machine::parse(&kinds.to_toml(), "again"), Ok(kinds));
    // A shipped one by its name, wherever the file is.
    write("half.toml", "name = \"half\"\nbase = \"cell\"\n[[memory]]\nname = \"spe\"\ncount = 4\n");
    let half = read("half.toml").unwrap();
    let cell = Machine::shipped("cell").unwrap().with_count("spe", 4).unwrap();
    assert_eq!(half.memories(), cell.memories());

    let refused = |name: &str, parts: &[&str]| {
        let message = read(name).unwrap_err().to_string();
        let at = dir.path().display();
        assert!(parts.iter().all(|part| message.contains(&part.replace("DIR", &at.to_string()))), "{message}");
    };
    write("lost.toml", "name = \"lost\"\nbase = \"no.toml\"\n");
    refused("lost.toml", &["DIR/lost.toml:2: base: ", "cannot be read: DIR/no.toml: No such file"]);
    write("unknown.toml", "name = \"unknown\"\n\nbase = \"sell\"\n");
    refused("unknown.toml", &["DIR/unknown.toml:3: base: ", "\"sell\"", "this computer", "cell, cell-blade, ps3"]);
    write("a.toml", "name = \"a\"\nbase = \"b.toml\"\n");
    write("b.toml", "name = \"b\"\n# of a\nbase = \"./a.toml\"\n");
    refused("a.toml", &["DIR/b.toml:3: base: ", "circle", "a.toml -> ", "b.toml -> "]);
    write("self.toml", "name = \"self\"\nbase = \"self.toml\"\n");
    refused("self.toml", &["DIR/self.toml:2: base: ", "circle"]);
    // What is wrong in the base is told there.
    write("bad.toml", &GOOD.replace("count = 2", "count = 0"));
    write("over.toml", "name = \"over\"\nbase = \"bad.toml\"\n");
    refused("over.toml", &["DIR/bad.toml:10: memory \"core\": count: is 0"]);
}

#[test]
fn another_driver_brings_its_own_costs_and_rules() {
    let dir = tempfile::tempdir().unwrap();
    let over = |base: &str, memory: &str, edge: &str| {
        let text =
            format!("name = \"over\"\nbase = \"{base}\"\n[[memory]]\nname = \"{memory}\"\n[memory.edge]\n{edge}\n");
        std::fs::write(dir.path().join("over.toml"), text).unwrap();
        let machine = Machine::read(&dir.path().join("over.toml")).unwrap();
        (machine.memories()[1].edge.unwrap(), Machine::shipped(base).unwrap().memories()[1].edge.unwrap())
    };
    // Stores are as fast as fetches where a file says nothing, also of a base that says nothing.
    let (faster, smp) = over("smp", "core", "read = \"99 GB/s\"");
    assert_eq!((faster.write_bytes_per_second, faster.costs), (99e9, smp.costs));
    let (mpi, cell) = over("cell", "spe", "driver = \"mpi\"");
    assert!(cell.rules.strict && cell.rules.in_flight_max.is_some(), "the test needs rules: {cell:?}");
    let rates = |edge: Edge| (edge.read_bytes_per_second, edge.write_bytes_per_second);
    assert_eq!((mpi.costs, mpi.rules, rates(mpi)), (mpi.driver.costs, TransferRules::default(), rates(cell)));
    let (local, cell) = over("cell", "spe", "driver = \"local\"");
    assert_eq!(local, cell, "the same driver");
}

#[test]
fn children_of_all_kinds_read_files_or_none_does() {
    let local = "\n[[memory]]\nname = \"local\"\nparent = \"dram\"\ncapacity = \"1 MiB\"\ncomputes_like = \"core\"\n\
                 [memory.edge]\ndriver = \"local\"\nread = \"1 GB/s\"\nlatency = \"1 us\"\n";
    let text = format!("{}{local}", GOOD.replace("\"shared\"", "\"disk\""));
    let message = read(&text).unwrap_err().to_string();
    assert!(
        message.contains("memory \"local\": edge.driver: ") && message.contains("put \"local\" below a memory"),
        "{message}"
    );
    assert!(read(&format!("{GOOD}{local}")).is_ok());
    assert!(read(&text.replace("\"local\"\nread", "\"disk\"\nread")).is_ok());
}
