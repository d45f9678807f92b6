//! The tree of memories and what can be asked of it.

use crate::driver::Wire;
use crate::error::{MachineError, Problem};
use crate::host::Host;
use crate::memory::{Memory, MemoryId};
use serde::Serialize;

/// A tree of memories. Parents stand before their children and index 0 is the root; a [`Machine`] that exists has been
/// checked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// A short name: `local`, `ps3`.
    pub name: String,
    /// One sentence for people.
    pub description: String,
    memories: Vec<Memory>,
}

impl Machine {
    /// A machine of these memories: parents before children, the root first.
    ///
    /// # Errors
    /// Whatever a machine file can get wrong: two roots, a duplicate name, a zero, a leaf without processor.
    pub fn new(name: &str, description: &str, mut memories: Vec<Memory>) -> Result<Machine, MachineError> {
        for memory in &mut memories {
            memory.leaves.sort_by(|a, b| a.task.cmp(&b.task));
            memory.settings.sort();
        }
        crate::check::memories(&memories)?;
        Ok(Machine { name: name.into(), description: description.into(), memories })
    }

    /// All memories, parents before children, the root first.
    pub fn memories(&self) -> &[Memory] {
        &self.memories
    }

    /// All memories' ids, in the order of [`Machine::memories`].
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = MemoryId> + ExactSizeIterator + use<> {
        (0..self.memories.len()).map(MemoryId)
    }

    /// The topmost memory.
    pub fn root(&self) -> MemoryId {
        MemoryId(0)
    }

    /// One memory.
    ///
    /// # Panics
    /// If `id` is not of this machine.
    pub fn memory(&self, id: MemoryId) -> &Memory {
        &self.memories[id.0]
    }

    /// The memory of this name.
    pub fn find(&self, name: &str) -> Option<MemoryId> {
        self.memories.iter().position(|memory| memory.name == name).map(MemoryId)
    }

    /// The kinds of children of a memory, in order.
    pub fn children(&self, id: MemoryId) -> impl Iterator<Item = MemoryId> + '_ {
        self.ids().filter(move |child| self.memory(*child).parent == Some(id))
    }

    /// The host of what lies in a memory: its own, or that of the nearest memory above.
    pub fn host(&self, id: MemoryId) -> Option<&Host> {
        let mut at = Some(id);
        while let Some(id) = at {
            if let Some(host) = &self.memory(id).host {
                return Some(host);
            }
            at = self.memory(id).parent;
        }
        None
    }

    /// How many memories of this kind the whole machine has: the product of the counts from the root down to it.
    pub fn total(&self, id: MemoryId) -> usize {
        let mut total = 1usize;
        let mut at = Some(id);
        while let Some(id) = at {
            total = total.saturating_mul(self.memory(id).count);
            at = self.memory(id).parent;
        }
        total
    }

    /// How many leaf memories there are; on a chain, the product of the counts.
    pub fn workers(&self) -> usize {
        let leaves = self.ids().filter(|id| self.children(*id).next().is_none());
        leaves.fold(0, |sum, leaf| sum.saturating_add(self.total(leaf)))
    }

    /// The machine below the root: one of the root's (first) children with all that is under it. A machine of one
    /// memory is returned as it is. Used when the arrays already lie in memory.
    #[must_use]
    pub fn without_root(&self) -> Machine {
        match self.children(self.root()).next() {
            Some(child) => self.rooted_at(child),
            None => self.clone(),
        }
    }

    /// One memory of this kind with all that is under it.
    #[must_use]
    pub fn rooted_at(&self, root: MemoryId) -> Machine {
        let mut new_ids: Vec<Option<MemoryId>> = vec![None; self.memories.len()];
        let mut memories: Vec<Memory> = Vec::new();
        for id in self.ids().skip(root.0) {
            let mut memory = self.memory(id).clone();
            if id == root {
                memory = Memory {
                    parent: None,
                    count: 1,
                    edge: None,
                    edge_source: None,
                    network: None,
                    settings: Vec::new(),
                    ..memory
                };
            } else {
                // Parents stand before children, so a parent inside the subtree has its new id by now.
                let Some(parent) = memory.parent.and_then(|parent| new_ids[parent.0]) else { continue };
                memory.parent = Some(parent);
            }
            new_ids[id.0] = Some(MemoryId(memories.len()));
            memories.push(memory);
        }
        Machine { name: self.name.clone(), description: self.description.clone(), memories }
    }

    /// The same machine with another capacity of the memory `name`.
    ///
    /// # Errors
    /// No such memory; zero bytes.
    pub fn with_capacity(&self, name: &str, capacity_bytes: u64) -> Result<Machine, MachineError> {
        self.with(name, |memory| memory.capacity_bytes = capacity_bytes)
    }

    /// The same machine with another count of the memory `name`. Where each has a link of its own to its parent, it keeps
    /// that: what all of them get together changes with their number.
    ///
    /// # Errors
    /// No such memory; zero; the root.
    pub fn with_count(&self, name: &str, count: usize) -> Result<Machine, MachineError> {
        self.with(name, |memory| {
            if let Some(edge) =
                memory.edge.as_mut().filter(|edge| matches!(edge.driver.wire, Wire::Links | Wire::Aggregate))
            {
                let scale = count as f64 / memory.count as f64;
                edge.read_bytes_per_second *= scale;
                edge.write_bytes_per_second *= scale;
            }
            memory.count = count;
        })
    }

    /// The same machine with the memory `name` changed.
    ///
    /// # Errors
    /// No such memory; a change that no machine can have.
    pub fn with(&self, name: &str, change: impl FnOnce(&mut Memory)) -> Result<Machine, MachineError> {
        let id = self.find(name).ok_or_else(|| self.unknown(name))?;
        let mut memories = self.memories.clone();
        change(&mut memories[id.0]);
        Machine::new(&self.name, &self.description, memories)
    }

    fn unknown(&self, name: &str) -> MachineError {
        let known: Vec<&str> = self.memories.iter().map(|memory| memory.name.as_str()).collect();
        Problem::UnknownMemory { name: name.into(), known: known.join(", ") }.into()
    }
}
