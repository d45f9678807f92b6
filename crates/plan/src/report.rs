//! What a plan says about the whole machine: bytes over every edge, peaks in every memory, and the text of
//! `multigrain plan`.

use crate::plan::{Body, Plan, Traffic};
use multigrain_machine::{Driver, approximate_bytes, readable_bytes};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::{self, Write as _};

/// Traffic over one edge in a whole run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeTraffic {
    /// Its number.
    pub edge: usize,
    /// Parent and child: `disk - dram`.
    pub name: String,
    /// What moves the bytes.
    pub driver: Driver,
    /// Bytes and transfers.
    pub traffic: Traffic,
    /// Lower bound on bytes down plus bytes up for the capacity below this edge; 0 where views need no copies.
    pub lower_bound_bytes: u64,
}

/// The most that one memory has to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// Memory.
    pub name: String,
    /// Peak bytes of blocks.
    pub staging_bytes: u64,
    /// Bytes of scratch memory.
    pub scratch_bytes: u64,
    /// Bytes of transfer buffers and code.
    pub fixed_bytes: u64,
    /// What the memory holds.
    pub capacity_bytes: u64,
}

impl Plan {
    /// How many calls there are of each class.
    pub fn calls_of_class(&self) -> Vec<u64> {
        let mut counts = vec![0; self.classes.len()];
        for &class in &self.class_of {
            counts[class as usize] += 1;
        }
        counts
    }

    /// Floating-point operations of the calls of this plan.
    pub fn flops(&self) -> f64 {
        self.classes
            .iter()
            .zip(self.calls_of_class())
            .map(|(c, n)| n as f64 * self.tasks[c.task as usize].work(&c.shape).flops)
            .sum()
    }

    /// Bytes over every edge from here down in one run of this plan, in the order of the edges; nothing is moved at divisions.
    pub fn edges(&self) -> Vec<EdgeTraffic> {
        let mut below: BTreeMap<usize, EdgeTraffic> = BTreeMap::new();
        for (class, count) in self.classes.iter().zip(self.calls_of_class()) {
            let Body::Inner(plan) = &class.body else { continue };
            for edge in plan.edges() {
                let nothing = || EdgeTraffic { traffic: Traffic::default(), ..edge.clone() };
                below.entry(edge.edge).or_insert_with(nothing).traffic += edge.traffic.times(count);
            }
        }
        let below = below.into_values();
        if self.is_in_parts() || self.is_division {
            return below.collect();
        }
        let here = EdgeTraffic {
            edge: self.edge,
            name: format!("{} - {}", self.parent, self.child),
            driver: self.driver,
            traffic: self.traffic,
            lower_bound_bytes: 0,
        };
        std::iter::once(here).chain(below).collect()
    }

    /// The most that each memory below has to hold, in the order of the edges.
    pub fn memory_use(&self) -> Vec<MemoryUse> {
        self.use_by_edge().into_values().collect()
    }

    fn use_by_edge(&self) -> BTreeMap<usize, MemoryUse> {
        let here = MemoryUse {
            name: self.child.clone(),
            staging_bytes: self.children.iter().map(|c| c.staging_bytes).max().unwrap_or(0),
            scratch_bytes: self.scratch_bytes,
            fixed_bytes: self.fixed_bytes,
            capacity_bytes: self.total_bytes,
        };
        let mut uses = BTreeMap::new();
        for class in &self.classes {
            let Body::Inner(plan) = &class.body else { continue };
            for (edge, used) in plan.use_by_edge() {
                match uses.entry(edge) {
                    Entry::Vacant(entry) => drop(entry.insert(used)),
                    // The plan that needs most: its blocks and its scratch memory belong together.
                    Entry::Occupied(mut entry) => {
                        let most: &MemoryUse = entry.get();
                        if used.staging_bytes + used.scratch_bytes > most.staging_bytes + most.scratch_bytes {
                            entry.insert(used);
                        }
                    }
                }
            }
        }
        if !self.is_in_parts() && !self.is_division {
            uses.insert(self.edge, here);
        }
        uses
    }

    fn write_passes(&self, out: &mut String, depth: usize) {
        let pad = "  ".repeat(depth);
        let driver = if self.is_division { "division" } else { self.driver.name };
        let _ = writeln!(out, "{pad}{} - {} ({driver})", self.parent, self.child);
        for (task, values) in &self.tunables {
            let values: Vec<String> = values.iter().map(|(n, v)| format!("{n} = {v}")).collect();
            let _ = writeln!(out, "{pad}  split {task}: {}", values.join(", "));
        }
        for pass in &self.passes {
            let _ = writeln!(out, "{pad}  {:<17} {}", pass.pass, pass.summary);
        }
        let total = self.traffic.bytes_down + self.traffic.bytes_up;
        if total > 0 {
            let across = match self.traffic.bytes_across {
                0 => String::new(),
                bytes => format!(", {} between siblings", approximate_bytes(bytes)),
            };
            let _ = writeln!(
                out,
                "{pad}  {:<17} {} down, {} up in {} transfers{across}",
                "moves",
                approximate_bytes(self.traffic.bytes_down),
                approximate_bytes(self.traffic.bytes_up),
                self.traffic.transfers
            );
        }
        let counts = self.calls_of_class();
        // Of each edge below, the class of most calls.
        let mut of_edge: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (i, class) in self.classes.iter().enumerate() {
            if let Body::Inner(plan) = &class.body {
                of_edge.entry(plan.edge).or_default().push(i);
            }
        }
        for same in of_edge.into_values() {
            let Some(&i) = same.iter().max_by_key(|&&i| (counts[i], std::cmp::Reverse(i))) else { continue };
            let class = &self.classes[i];
            let Body::Inner(plan) = &class.body else { continue };
            let shapes: Vec<String> = class.shape.shapes.iter().map(|s| s.to_string()).collect();
            let name = self.tasks[class.task as usize].name();
            let others = same.len() - 1;
            let _ = writeln!(
                out,
                "{pad}  each of {} calls of {name} on ({}){}:",
                counts[i],
                shapes.join(", "),
                if others > 0 { format!(", and {others} other shapes likewise") } else { String::new() }
            );
            plan.write_passes(out, depth + 2);
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write_passes(&mut text, 0);
        for used in self.memory_use() {
            let need = used.staging_bytes + used.scratch_bytes + used.fixed_bytes;
            if used.staging_bytes > 0 {
                let _ = writeln!(
                    text,
                    "fits: {} needs {} of {} (blocks {}, scratch {}, buffers and code {})",
                    used.name,
                    readable_bytes(need),
                    readable_bytes(used.capacity_bytes),
                    readable_bytes(used.staging_bytes),
                    readable_bytes(used.scratch_bytes),
                    readable_bytes(used.fixed_bytes)
                );
            }
        }
        f.write_str(&text)
    }
}
