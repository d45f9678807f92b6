//! What every machine obeys, whoever made it. The picture: one pass down the list, each memory looked at by itself and
//! against those before it.

use crate::costs::{self, Unit};
use crate::driver::Wire;
use crate::error::{MachineError, Problem};
use crate::host::{Contexts, Host};
use crate::memory::{Edge, LeafRate, Memory, Processor};
use crate::network::Network;
use std::collections::HashMap;

/// More children than any machine has; keeps products of counts far from overflow.
pub(crate) const COUNT_MAX: usize = 1 << 24;

const POSITIVE: &str = "finite and above zero";
const NOT_NEGATIVE: &str = "finite and at least zero";

/// Checks a list of memories with parents before children and the root first.
pub(crate) fn memories(memories: &[Memory]) -> Result<(), MachineError> {
    let Some(root) = memories.first() else { return Err(Problem::Empty.into()) };
    let mut has_child = vec![false; memories.len()];
    let mut names = HashMap::new();
    for (index, memory) in memories.iter().enumerate() {
        let here = |problem: Problem| MachineError::from(problem).in_memory(&memory.name);
        if names.insert(memory.name.as_str(), index).is_some() {
            return Err(here(Problem::DuplicateName { first_line: None }));
        }
        match memory.parent {
            None if index > 0 => {
                return Err(Problem::TwoRoots { first: root.name.clone(), second: memory.name.clone() }.into());
            }
            Some(parent) if parent.0 >= index => return Err(here(Problem::ParentAfterChild)),
            Some(parent) => has_child[parent.0] = true,
            None => {}
        }
        if let Some(above) = memory.parent.map(|parent| &memories[parent.0])
            && let Some(edge) = above.edge.filter(|edge| edge.driver.own_processor)
        {
            let (parent, driver) = (above.name.clone(), edge.driver.to_string());
            return Err(here(Problem::BelowOwnProcessor { parent, driver }).at_key("parent"));
        }
        self::memory(memory).map_err(|(key, problem)| here(problem).at_key(key))?;
    }
    for memory in memories {
        let reads_files = |memory: &Memory| memory.edge.is_some_and(|edge| edge.driver.files);
        let beside = |other: &&Memory| other.parent == memory.parent && !reads_files(other);
        if reads_files(memory)
            && let Some(parent) = memory.parent
            && let Some(other) = memories.iter().find(beside)
        {
            let (parent, reader, other) = (memories[parent.0].name.clone(), memory.name.clone(), other.name.clone());
            let problem = Problem::FilesBesideOthers { parent, reader, other: other.clone() };
            return Err(MachineError::from(problem).in_memory(&other).at_key("edge.driver"));
        }
    }
    for (memory, has_child) in memories.iter().zip(has_child) {
        if !has_child && memory.processor.is_none() {
            return Err(MachineError::from(Problem::NoProcessor).in_memory(&memory.name));
        }
    }
    Ok(())
}

/// Checks the values of one memory; on error, the key that is wrong.
fn memory(memory: &Memory) -> Result<(), (&'static str, Problem)> {
    if memory.name.trim().is_empty() || memory.name.chars().any(char::is_control) {
        return Err(("name", Problem::BadName { found: memory.name.escape_debug().to_string() }));
    }
    if memory.capacity_bytes == 0 {
        return Err(("capacity", Problem::OutOfRange { found: "0 B".into(), expected: "at least one byte" }));
    }
    if memory.count == 0 || memory.count > COUNT_MAX {
        let found = memory.count.to_string();
        return Err(("count", Problem::OutOfRange { found, expected: "from 1 to 16777216" }));
    }
    if let Some(path) = &memory.path
        && path.to_str().is_none()
    {
        return Err(("path", Problem::PathNotText { path: path.clone() }));
    }
    match (memory.parent, &memory.edge) {
        (None, Some(_)) => return Err(("edge", Problem::EdgeAtRoot)),
        (None, None) if memory.count != 1 => {
            return Err(("count", Problem::CountAtRoot { found: memory.count }));
        }
        (Some(_), None) => {
            let example = "[memory.edge] with driver = \"shared\", read = \"10 GB/s\", latency = \"100 ns\"";
            return Err(("edge", Problem::Missing { example }));
        }
        (Some(_), Some(edge)) => {
            self::edge(edge)?;
            let known = edge.driver.settings;
            if let Some((key, _)) = memory.settings.iter().find(|(key, _)| !known.contains(&&**key)) {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let (driver, found) = (edge.driver.to_string(), key.clone());
                return Err(("settings", Problem::UnknownSetting { driver, found, known }));
            }
        }
        (None, None) => {}
    }
    if let Some(between) = &memory.network {
        network(between, memory)?;
    }
    memory.processor.as_ref().map_or(Ok(()), processor)?;
    memory.host.as_ref().map_or(Ok(()), host)?;
    if let Some(shared) = &memory.contexts {
        if memory.processor.is_none() {
            return Err(("contexts", Problem::ContextsWithout));
        }
        contexts(shared)?;
    }
    if memory.leaves.windows(2).any(|pair| pair[0].task == pair[1].task) {
        return Err(("leaf", Problem::DuplicateName { first_line: None }));
    }
    memory.leaves.iter().try_for_each(leaf)
}

fn host(host: &Host) -> Result<(), (&'static str, Problem)> {
    let out = |found: u32, expected| Problem::OutOfRange { found: found.to_string(), expected };
    for (key, found) in [("host.cores", host.cores), ("host.threads", host.threads_per_core)] {
        if !(1..=1024).contains(&found) {
            return Err((key, out(found, "from 1 to 1024")));
        }
    }
    if !(100..=10_000).contains(&host.interrupts_per_second) {
        return Err(("host.interrupts", out(host.interrupts_per_second, "from 100 to 10000")));
    }
    Ok(())
}

fn contexts(contexts: &Contexts) -> Result<(), (&'static str, Problem)> {
    not_negative("contexts.switch", contexts.switch_ns)?;
    not_negative("contexts.look", contexts.look_ns)?;
    not_negative("contexts.spawn", contexts.spawn_ns)?;
    if !(0.0..=1.0).contains(&contexts.spread) {
        let found = contexts.spread.to_string();
        return Err(("contexts.spread", Problem::OutOfRange { found, expected: "from 0 to 1" }));
    }
    Ok(())
}

fn network(network: &Network, memory: &Memory) -> Result<(), (&'static str, Problem)> {
    if memory.edge.is_none_or(|edge| edge.driver.wire != Wire::Aggregate) {
        return Err(("network", Problem::NetworkWithout));
    }
    not_negative("network.message", network.message_ns)?;
    positive("network.link", network.shape.link_bytes_per_second().unwrap_or(1.0))?;
    network.shape.fits(memory.count)
}

fn edge(edge: &Edge) -> Result<(), (&'static str, Problem)> {
    positive("edge.read", edge.read_bytes_per_second)?;
    positive("edge.write", edge.write_bytes_per_second)?;
    positive("edge.sibling", edge.sibling_bytes_per_second.unwrap_or(1.0))?;
    not_negative("edge.latency", edge.latency_ns)?;
    for ((key, unit), cost) in costs::KEYS.into_iter().zip(edge.costs.values()) {
        match unit {
            // There is no such cost.
            Unit::Rate if cost == f64::INFINITY => {}
            Unit::Rate => positive(key, cost)?,
            Unit::Time | Unit::Size => not_negative(key, cost)?,
        }
    }
    let rules = &edge.rules;
    let limits = [
        ("edge.alignment", Some(rules.alignment_bytes)),
        ("edge.transfer_max", rules.transfer_bytes_max),
        ("edge.list_max", rules.list_entries_max),
        ("edge.in_flight_max", rules.in_flight_max),
    ];
    match limits.into_iter().find(|(_, limit)| *limit == Some(0)) {
        Some((key, _)) => Err((key, Problem::OutOfRange { found: "0".into(), expected: "at least 1" })),
        None => Ok(()),
    }
}

fn processor(processor: &Processor) -> Result<(), (&'static str, Problem)> {
    positive("processor.rate", processor.flops_per_second)?;
    not_negative("processor.call_overhead", processor.call_overhead_ns)
}

fn leaf(leaf: &LeafRate) -> Result<(), (&'static str, Problem)> {
    if leaf.task.trim().is_empty() || leaf.task.chars().any(char::is_control) {
        return Err(("leaf", Problem::BadName { found: leaf.task.escape_debug().to_string() }));
    }
    positive("leaf", leaf.flops_per_second.unwrap_or(1.0))?;
    positive("leaf", leaf.bytes_per_second.unwrap_or(1.0))?;
    not_negative("leaf", leaf.call_overhead_ns.unwrap_or(0.0))
}

fn positive(key: &'static str, value: f64) -> Result<(), (&'static str, Problem)> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err((key, Problem::OutOfRange { found: value.to_string(), expected: POSITIVE }))
}

fn not_negative(key: &'static str, value: f64) -> Result<(), (&'static str, Problem)> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err((key, Problem::OutOfRange { found: value.to_string(), expected: NOT_NEGATIVE }))
}
