//! A machine file half read: memories by name, each value still optional, with the lines they stand in. Drafts are
//! laid over a base, cut at a root, ordered, and turned into a checked [`Machine`].

use crate::costs::{self, Costs};
use crate::driver::Driver;
use crate::error::{MachineError, Problem};
use crate::host::{Contexts, Host};
use crate::memory::{Edge, LeafRate, Memory, MemoryId, Processor, ProcessorKind, TransferRules};
use crate::network::Network;
use crate::tree::Machine;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

/// A memory as far as a file gives it.
#[derive(Debug, Clone, Default)]
pub(crate) struct DraftMemory {
    pub(crate) name: String,
    pub(crate) replaces: Option<String>,
    pub(crate) computes_like: Option<String>,
    pub(crate) parent: Option<String>,
    pub(crate) count: Option<usize>,
    pub(crate) capacity_bytes: Option<u64>,
    pub(crate) path: Option<PathBuf>,
    pub(crate) settings: BTreeMap<String, String>,
    pub(crate) source: Option<String>,
    pub(crate) edge: Option<DraftEdge>,
    pub(crate) network: Option<Network>,
    pub(crate) processor: Option<DraftProcessor>,
    pub(crate) leaves: Vec<LeafRate>,
    pub(crate) host: Option<Host>,
    pub(crate) contexts: Option<Contexts>,
    /// The line of each key that the file gives; the empty key is the table itself.
    pub(crate) lines: BTreeMap<String, usize>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct DraftEdge {
    pub(crate) driver: Option<Driver>,
    pub(crate) read: Option<f64>,
    pub(crate) write: Option<f64>,
    pub(crate) latency_ns: Option<f64>,
    /// In the order of [`costs::KEYS`].
    pub(crate) costs: [Option<f64>; costs::KEYS.len()],
    pub(crate) sibling: Option<f64>,
    pub(crate) alignment: Option<u64>,
    pub(crate) transfer_max: Option<u64>,
    pub(crate) list_max: Option<u64>,
    pub(crate) in_flight_max: Option<u64>,
    pub(crate) strict: Option<bool>,
    pub(crate) source: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct DraftProcessor {
    pub(crate) kind: Option<ProcessorKind>,
    pub(crate) rate: Option<f64>,
    pub(crate) call_overhead_ns: Option<f64>,
    pub(crate) code_bytes: Option<u64>,
    pub(crate) source: Option<String>,
}

/// Takes each value that `over` gives.
macro_rules! overlay {
    ($under:expr, $over:expr, $($field:ident),+) => {
        $(if $over.$field.is_some() { $under.$field = $over.$field; })+
    };
}

impl DraftMemory {
    fn of(memory: &Memory, machine: &Machine) -> DraftMemory {
        DraftMemory {
            name: memory.name.clone(),
            replaces: None,
            computes_like: None,
            parent: memory.parent.map(|parent| machine.memory(parent).name.clone()),
            count: Some(memory.count),
            capacity_bytes: Some(memory.capacity_bytes),
            path: memory.path.clone(),
            settings: memory.settings.iter().cloned().collect(),
            source: memory.source.clone(),
            edge: memory.edge.map(|edge| DraftEdge {
                driver: Some(edge.driver),
                read: Some(edge.read_bytes_per_second),
                write: Some(edge.write_bytes_per_second).filter(|write| *write != edge.read_bytes_per_second),
                latency_ns: Some(edge.latency_ns),
                costs: edge.costs.values().map(Some),
                sibling: edge.sibling_bytes_per_second,
                alignment: Some(edge.rules.alignment_bytes),
                transfer_max: edge.rules.transfer_bytes_max,
                list_max: edge.rules.list_entries_max,
                in_flight_max: edge.rules.in_flight_max,
                strict: Some(edge.rules.strict),
                source: memory.edge_source.clone(),
            }),
            network: memory.network.clone(),
            processor: memory.processor.map(|processor| DraftProcessor {
                kind: Some(processor.kind),
                rate: Some(processor.flops_per_second),
                call_overhead_ns: Some(processor.call_overhead_ns),
                code_bytes: Some(processor.code_bytes),
                source: memory.processor_source.clone(),
            }),
            leaves: memory.leaves.clone(),
            host: memory.host.clone(),
            contexts: memory.contexts.clone(),
            lines: BTreeMap::new(),
        }
    }

    fn overlay(&mut self, over: DraftMemory) {
        self.name = over.name;
        self.lines = over.lines;
        overlay!(self, over, computes_like, parent, count, capacity_bytes, path, source, host, contexts);
        if let Some(over) = over.edge {
            let edge = self.edge.get_or_insert_default();
            if over.driver.is_some() && over.driver != edge.driver {
                // What is told of a driver holds for no other; how fast the wires are may.
                let DraftEdge { read, write, latency_ns, source, .. } = std::mem::take(edge);
                *edge = DraftEdge { read, write, latency_ns, source, ..DraftEdge::default() };
                self.settings.clear();
                self.network = None;
            }
            overlay!(edge, over, driver, read, write, latency_ns, sibling, alignment);
            for (under, over) in edge.costs.iter_mut().zip(over.costs) {
                *under = over.or(*under);
            }
            overlay!(edge, over, transfer_max, list_max, in_flight_max, strict, source);
        }
        overlay!(self, over, network);
        self.settings.extend(over.settings);
        self.compute(over.processor, over.leaves);
    }

    /// Takes what is said of a processor and its leaves.
    fn compute(&mut self, processor: Option<DraftProcessor>, leaves: Vec<LeafRate>) {
        if let Some(over) = processor {
            let processor = self.processor.get_or_insert_default();
            overlay!(processor, over, kind, rate, call_overhead_ns, code_bytes, source);
        }
        for leaf in leaves {
            self.leaves.retain(|known| known.task != leaf.task);
            self.leaves.push(leaf);
        }
    }

    /// The line of `key`, or of the table that it belongs to.
    fn line(&self, key: &str) -> Option<usize> {
        let table = key.split_once('.').map_or("", |(table, _)| table);
        [key, table, ""].iter().find_map(|key| self.lines.get(*key)).copied()
    }

    fn error(&self, key: &str, problem: Problem) -> MachineError {
        let error = MachineError::from(problem).at_line(self.line(key)).in_memory(&self.name);
        if key.is_empty() { error } else { error.at_key(key) }
    }

    /// Checks that the path, if there is one, is a directory.
    pub(crate) fn check_path(&self) -> Result<(), MachineError> {
        match self.path.as_ref().filter(|path| !path.is_dir()) {
            Some(path) => Err(self.error("path", Problem::NotADirectory { path: path.clone() })),
            None => Ok(()),
        }
    }

    /// The finished memory below `parent`.
    fn finish(&self, parent: Option<MemoryId>) -> Result<Memory, MachineError> {
        let missing = |key: &str, example| self.error(key, Problem::Missing { example });
        let capacity_bytes = self.capacity_bytes.ok_or_else(|| missing("capacity", "capacity = \"256 MiB\""))?;
        let mut memory = Memory::root(&self.name, capacity_bytes);
        memory.parent = parent;
        memory.count = self.count.unwrap_or(1);
        memory.path.clone_from(&self.path);
        memory.settings = self.settings.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        memory.source.clone_from(&self.source);
        if let Some(edge) = &self.edge {
            let read = edge.read.ok_or_else(|| missing("edge.read", "read = \"10 GB/s\""))?;
            let driver = edge.driver.ok_or_else(|| missing("edge.driver", "driver = \"shared\""))?;
            let mut costs = driver.costs.values();
            costs.iter_mut().zip(edge.costs).for_each(|(cost, given)| *cost = given.unwrap_or(*cost));
            memory.edge = Some(Edge {
                driver,
                read_bytes_per_second: read,
                write_bytes_per_second: edge.write.unwrap_or(read),
                latency_ns: edge.latency_ns.ok_or_else(|| missing("edge.latency", "latency = \"100 ns\""))?,
                costs: Costs::from_values(costs),
                sibling_bytes_per_second: edge.sibling,
                rules: TransferRules {
                    alignment_bytes: edge.alignment.unwrap_or(1),
                    transfer_bytes_max: edge.transfer_max,
                    list_entries_max: edge.list_max,
                    in_flight_max: edge.in_flight_max,
                    strict: edge.strict.unwrap_or(false),
                },
            });
            memory.edge_source.clone_from(&edge.source);
        }
        memory.network.clone_from(&self.network);
        if let Some(processor) = &self.processor {
            memory.processor = Some(Processor {
                kind: processor.kind.ok_or_else(|| missing("processor.kind", "kind = \"cpu\""))?,
                flops_per_second: processor.rate.ok_or_else(|| missing("processor.rate", "rate = \"100 GFLOP/s\""))?,
                call_overhead_ns: processor.call_overhead_ns.unwrap_or(0.0),
                code_bytes: processor.code_bytes.unwrap_or(0),
            });
            memory.processor_source.clone_from(&processor.source);
        }
        memory.leaves.clone_from(&self.leaves);
        memory.host.clone_from(&self.host);
        memory.contexts.clone_from(&self.contexts);
        self.check_path()?;
        Ok(memory)
    }
}

/// Lays `over` on the memories of `base`: a memory of the same name, or the one that it `replaces`, is changed in the
/// keys that are given; any other is added.
pub(crate) fn lay_over(base: &Machine, over: Vec<DraftMemory>) -> Result<Vec<DraftMemory>, MachineError> {
    let mut drafts: Vec<DraftMemory> = base.memories().iter().map(|memory| DraftMemory::of(memory, base)).collect();
    let mut changed = vec![false; drafts.len()];
    for memory in over {
        let target = memory.replaces.as_ref().unwrap_or(&memory.name);
        match base.find(target) {
            Some(id) if changed[id.0] => {
                return Err(memory.error("", Problem::DuplicateName { first_line: drafts[id.0].line("") }));
            }
            Some(id) => {
                changed[id.0] = true;
                let old_name = target.clone();
                for child in drafts.iter_mut().filter(|child| child.parent.as_ref() == Some(&old_name)) {
                    child.parent = Some(memory.name.clone());
                }
                drafts[id.0].overlay(memory);
            }
            None if memory.replaces.is_some() => {
                let problem = Problem::UnknownMemory { name: target.clone(), known: names(&drafts) };
                return Err(memory.error("replaces", problem));
            }
            None => drafts.push(memory),
        }
    }
    Ok(drafts)
}

/// Gives memories that compute like another one, in the order of the list, its processor and the rates of its leaves, as far as
/// they do not say otherwise.
pub(crate) fn computing(drafts: &mut [DraftMemory]) -> Result<(), MachineError> {
    for at in 0..drafts.len() {
        let Some(name) = drafts[at].computes_like.clone() else { continue };
        let known = || drafts.iter().filter(|memory| memory.computes_like.is_none());
        let Some(other) = known().find(|other| other.name == name) else {
            let known: Vec<&str> = known().map(|memory| memory.name.as_str()).collect();
            let problem = Problem::UnknownMemory { name, known: known.join(", ") };
            return Err(drafts[at].error("computes_like", problem));
        };
        let mut like = DraftMemory { computes_like: None, processor: other.processor.clone(), ..drafts[at].clone() };
        like.leaves.clone_from(&other.leaves);
        like.compute(drafts[at].processor.take(), std::mem::take(&mut drafts[at].leaves));
        drafts[at] = like;
    }
    Ok(())
}

/// Keeps the memory `root` and what is below it.
pub(crate) fn cut(drafts: Vec<DraftMemory>, root: &str) -> Result<Vec<DraftMemory>, MachineError> {
    if !drafts.iter().any(|memory| memory.name == root) {
        let problem = Problem::UnknownMemory { name: root.into(), known: names(&drafts) };
        return Err(MachineError::from(problem).at_key("root"));
    }
    let parents: HashMap<String, Option<String>> =
        drafts.iter().map(|memory| (memory.name.clone(), memory.parent.clone())).collect();
    let is_below = |name: &str| {
        // As many steps as there are memories reach the root unless the parents form a cycle.
        let mut at = Some(name.to_string());
        for _ in 0..=parents.len() {
            match at {
                Some(name) if name == root => return true,
                Some(name) => at = parents.get(&name).cloned().flatten(),
                None => return false,
            }
        }
        false
    };
    let mut kept: Vec<DraftMemory> = drafts.into_iter().filter(|memory| is_below(&memory.name)).collect();
    for memory in kept.iter_mut().filter(|memory| memory.name == root) {
        memory.parent = None;
        memory.edge = None;
        memory.network = None;
        memory.settings.clear();
        memory.count = Some(1);
    }
    Ok(kept)
}

/// Orders the memories, parents before children and otherwise as they stand, and checks them.
pub(crate) fn finish(name: &str, description: &str, drafts: &[DraftMemory]) -> Result<Machine, MachineError> {
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    for (index, memory) in drafts.iter().enumerate() {
        if let Some(first) = by_name.insert(&memory.name, index) {
            return Err(memory.error("", Problem::DuplicateName { first_line: drafts[first].line("") }));
        }
    }
    for memory in drafts {
        if let Some(parent) = memory.parent.as_ref().filter(|parent| !by_name.contains_key(parent.as_str())) {
            let problem = Problem::UnknownParent { parent: parent.clone(), known: names(drafts) };
            return Err(memory.error("parent", problem));
        }
    }
    let mut roots = drafts.iter().filter(|memory| memory.parent.is_none());
    match (roots.next(), roots.next()) {
        _ if drafts.is_empty() => return Err(Problem::Empty.into()),
        (Some(first), Some(second)) => {
            let problem = Problem::TwoRoots { first: first.name.clone(), second: second.name.clone() };
            return Err(MachineError::from(problem).at_line(second.line("")));
        }
        (None, _) => {
            let problem = Problem::NoRoot { through: cycle(drafts, &by_name, 0) };
            return Err(drafts[0].error("parent", problem));
        }
        (Some(_), None) => {}
    }
    let (order, ids) = order(drafts, &by_name)?;
    let mut memories = Vec::with_capacity(drafts.len());
    for &index in &order {
        let parent = drafts[index].parent.as_ref().map(|parent| ids[by_name[parent.as_str()]]);
        memories.push(drafts[index].finish(parent)?);
    }
    Machine::new(name, description, memories).map_err(|error| {
        // The check knows the memory and the key; the draft knows the line.
        let key = error.place.key.clone().unwrap_or_default();
        let draft = error.place.memory.as_ref().and_then(|name| by_name.get(name.as_str()));
        let line = draft.and_then(|index| drafts[*index].line(&key));
        error.at_line(line)
    })
}

/// The order in which parents come first, and each memory's id in it.
fn order(drafts: &[DraftMemory], by_name: &HashMap<&str, usize>) -> Result<(Vec<usize>, Vec<MemoryId>), MachineError> {
    let mut order = Vec::with_capacity(drafts.len());
    let mut ids: Vec<Option<MemoryId>> = vec![None; drafts.len()];
    while order.len() < drafts.len() {
        let before = order.len();
        for (index, memory) in drafts.iter().enumerate() {
            let parent_is_placed = memory.parent.as_ref().is_none_or(|parent| ids[by_name[parent.as_str()]].is_some());
            if ids[index].is_none() && parent_is_placed {
                ids[index] = Some(MemoryId(order.len()));
                order.push(index);
            }
        }
        if order.len() == before {
            let stuck = ids.iter().position(Option::is_none).unwrap_or(0);
            let problem = Problem::Cycle { through: cycle(drafts, by_name, stuck) };
            return Err(drafts[stuck].error("parent", problem));
        }
    }
    Ok((order, ids.into_iter().flatten().collect()))
}

/// The names along the cycle that is reached from a memory by going from parent to parent, the first one repeated.
fn cycle(drafts: &[DraftMemory], by_name: &HashMap<&str, usize>, from: usize) -> Vec<String> {
    let mut seen: Vec<usize> = Vec::new();
    let mut at = from;
    while !seen.contains(&at) {
        seen.push(at);
        let parent = drafts[at].parent.as_ref().and_then(|parent| by_name.get(parent.as_str()));
        at = parent.copied().unwrap_or(at);
    }
    let start = seen.iter().position(|index| *index == at).unwrap_or(0);
    let mut through: Vec<String> = seen[start..].iter().map(|index| drafts[*index].name.clone()).collect();
    through.push(drafts[at].name.clone());
    through
}

fn names(drafts: &[DraftMemory]) -> String {
    let names: Vec<&str> = drafts.iter().map(|memory| memory.name.as_str()).collect();
    names.join(", ")
}
