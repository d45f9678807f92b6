//! The machine files that are built in.

use multigrain_machine::{Driver, Edge, Machine, MemoryId, Problem};
use std::path::Path;

#[test]
fn every_file_is_built_in_under_its_own_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_suffix(".toml")?.to_string()))
        .collect();
    // Of this one the driver is another room's, which ships it.
    files.retain(|file| file != "cpu+device");
    let mut names: Vec<&str> = Machine::shipped_names().collect();
    files.sort();
    names.sort_unstable();
    assert_eq!(names, files);
    for name in names {
        assert_eq!(Machine::shipped(name).unwrap().name, name);
    }
}

#[test]
fn every_constant_says_where_it_comes_from() {
    for name in Machine::shipped_names() {
        for memory in Machine::shipped(name).unwrap().memories() {
            assert!(memory.source.is_some(), "{name}: {}", memory.name);
            assert_eq!(memory.edge.is_some(), memory.edge_source.is_some(), "{name}: {}", memory.name);
            assert_eq!(memory.processor.is_some(), memory.processor_source.is_some(), "{name}: {}", memory.name);
        }
    }
}

#[test]
fn shipped_machines_survive_being_written_and_read() {
    for name in Machine::shipped_names() {
        let machine = Machine::shipped(name).unwrap();
        assert_eq!(Machine::parse(&machine.to_toml(), name), Ok(machine));
    }
}

#[test]
fn local_stores_take_the_place_of_the_detected_cores() {
    let computer = Machine::detect(Path::new(".")).unwrap();
    let local = Machine::shipped("local").unwrap();
    let leaf = local.memories().last().unwrap();
    assert_eq!(local.memory(MemoryId(0)).name, "dram");
    assert_eq!((leaf.name.as_str(), leaf.capacity_bytes), ("local", 512 << 10));
    assert_eq!(leaf.edge.unwrap().driver, Driver::LOCAL);
    assert_eq!(local.workers(), computer.workers());

    let both = Machine::shipped("disk+local").unwrap();
    assert_eq!(both.memory(MemoryId(0)).name, "disk");
    assert_eq!(both.without_root().memories().len(), local.memories().len());
}

#[test]
fn the_cell_has_the_rules_of_its_hardware() {
    let cell = Machine::shipped("cell").unwrap();
    let spe = cell.memory(cell.find("spe").unwrap());
    let rules = spe.edge.unwrap().rules;
    assert_eq!((spe.count, spe.capacity_bytes, rules.alignment_bytes), (8, 256 << 10, 16));
    assert_eq!((rules.transfer_bytes_max, rules.list_entries_max), (Some(16 << 10), Some(2048)));
    assert!(rules.strict);
    assert_eq!(Machine::shipped("cluster-of-ps3s").unwrap().workers(), 12);
}

#[test]
fn only_machines_whose_runtime_reads_siblings_say_so() {
    // What was fitted on a runtime that reads main memory only must be planned as that runtime did.
    for name in Machine::shipped_names() {
        let machine = Machine::shipped(name).unwrap();
        let reaches = machine.memories().iter().any(|m| m.edge.is_some_and(|e| e.sibling_bytes_per_second.is_some()));
        assert_eq!(reaches, name == "cell-blade", "{name}");
    }
    let blade = Machine::shipped("cell-blade").unwrap();
    let (cell, spe) = (Machine::shipped("cell").unwrap(), blade.find("spe").unwrap());
    assert!(blade.render().contains("spe: siblings 25.6 GB/s from one to another"), "{}", blade.render());
    // Otherwise it is the Cell.
    let alone = Edge { sibling_bytes_per_second: None, ..blade.memory(spe).edge.unwrap() };
    assert_eq!(Some(alone), cell.memory(spe).edge);
}

#[test]
fn names_and_paths_are_told_apart() {
    let error = Machine::named("loca").unwrap_err();
    assert!(matches!(error.problem, Problem::UnknownShipped { .. }), "{error}");
    assert!(error.to_string().contains("disk+local"), "{error}");
    let error = Machine::named("no/such.toml").unwrap_err();
    assert!(matches!(error.problem, Problem::Unreadable { .. }), "{error}");
    assert!(error.to_string().starts_with("no/such.toml: "), "{error}");
    assert_eq!(Machine::named("ps3").unwrap().workers(), 6);
}

#[test]
fn what_is_said_of_a_leaf_is_said_of_its_variants() {
    let ps3 = Machine::shipped("ps3").unwrap();
    let spe = ps3.memory(ps3.find("spe").unwrap());
    let rate = |task: &str| spe.leaf(task).and_then(|leaf| leaf.flops_per_second);
    assert!(rate("fft3d").is_some());
    assert_eq!(rate("fft3d-planes-into"), rate("fft3d"));
    assert_eq!((rate("fft"), rate("fft3"), rate("planes-fft3d")), (None, None, None));
}

#[test]
fn every_constant_of_a_published_machine_has_its_source() {
    for name in Machine::shipped_names() {
        let machine = Machine::shipped(name).unwrap();
        for memory in machine.memories() {
            for leaf in &memory.leaves {
                assert!(leaf.source.is_some(), "{name}: {}: leaf {}", memory.name, leaf.task);
            }
            assert!(memory.edge.is_none() || memory.edge_source.is_some(), "{name}: {}", memory.name);
            assert!(memory.processor.is_none() || memory.processor_source.is_some(), "{name}: {}", memory.name);
        }
    }
}
