//! Measuring what detection can only assume. Each edge that this build can execute is driven the way a run drives it,
//! by as many threads as there are workers, for a bounded time; the constants of the machine are replaced by what came
//! out and marked [`MEASURED`].

mod disk;
mod dram;
mod flops;
mod threads;

use crate::detect::{self, ASSUMED};
use crate::error::{MachineError, Problem};
use crate::memory::{MemoryId, ProcessorKind};
use crate::tree::Machine;
use std::path::Path;
use std::time::Duration;

/// What stands in `source` where a constant was measured.
pub const MEASURED: &str = "measured";

/// How much a probe may use. The defaults measure well in about three seconds; smaller ones only try the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest time on one disk.
    pub disk_time: Duration,
    /// The largest temporary file, bytes.
    pub disk_bytes_max: u64,
    /// The memory that the DRAM probes read through, bytes; four times the last-level cache measures DRAM.
    pub dram_bytes: u64,
    /// The longest time on one measurement in memory or of a processor.
    pub memory_time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            disk_time: Duration::from_millis(1500),
            disk_bytes_max: 512 << 20,
            dram_bytes: (4 * detect::last_level_cache_bytes().unwrap_or(64 << 20)).clamp(256 << 20, 1 << 30),
            memory_time: Duration::from_millis(200),
        }
    }
}

/// Both bandwidths and the latency of an edge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct EdgeFigures {
    pub(crate) read_bytes_per_second: f64,
    pub(crate) write_bytes_per_second: f64,
    pub(crate) latency_ns: f64,
    /// What a fragment costs besides its bytes, nanoseconds, where that is measured.
    pub(crate) fragment_ns: Option<f64>,
}

impl Machine {
    /// This machine with every constant measured that can be: bandwidths and latency of the edges whose driver is
    /// executable, the rate of its CPU processors. Edges and processors of other kinds stay as they are.
    ///
    /// # Errors
    /// A directory that cannot be written, memory that cannot be had, threads that cannot be started.
    pub fn probe(&self) -> Result<Machine, MachineError> {
        self.probe_within(&Limits::default())
    }

    /// The same within other limits.
    ///
    /// # Errors
    /// As [`Machine::probe`].
    pub fn probe_within(&self, limits: &Limits) -> Result<Machine, MachineError> {
        let cpus = detect::cores()?.cpus;
        let mut measured = self.clone();
        for id in self.ids() {
            if let Some(found) = self.probe_edge(id, &cpus, limits)? {
                measured = measured.with(&self.memory(id).name, |memory| {
                    if let Some(edge) = &mut memory.edge {
                        edge.read_bytes_per_second = found.figures.read_bytes_per_second;
                        edge.write_bytes_per_second = found.figures.write_bytes_per_second;
                        edge.latency_ns = found.figures.latency_ns;
                        if let Some(ns) = found.figures.fragment_ns {
                            edge.costs.fragment_ns = ns;
                        }
                        memory.edge_source = Some(found.source.into());
                    }
                })?;
            }
            if self.memory(id).processor.is_some_and(|processor| processor.kind == ProcessorKind::Cpu) {
                let workers = threads::bound(&cpus, self.total(id));
                let rate = flops::measure(&workers, limits.memory_time)?;
                measured = measured.with(&self.memory(id).name, |memory| {
                    if let Some(processor) = &mut memory.processor {
                        processor.flops_per_second = rate;
                    }
                    memory.processor_source = Some(format!("rate {MEASURED}; call overhead {ASSUMED}"));
                })?;
            }
        }
        Ok(measured)
    }

    fn probe_edge(&self, id: MemoryId, cpus: &[usize], limits: &Limits) -> Result<Option<Found>, MachineError> {
        let memory = self.memory(id);
        let (Some(edge), Some(parent)) = (&memory.edge, memory.parent) else { return Ok(None) };
        let parent = self.memory(parent);
        let parents = memory.parent.map_or(1, |parent| self.total(parent));
        let workers = threads::bound(cpus, self.workers_below(id));
        // Never more than a quarter of what the memory has: the rest of the computer lives there too.
        let in_dram = limits.dram_bytes.min(parent.capacity_bytes / 4);
        if !edge.driver.executable || edge.driver.own_processor {
            return Ok(None);
        }
        if edge.driver.files {
            let path = parent.path.as_deref().unwrap_or(Path::new("."));
            let found = disk::measure(path, limits).map_err(|error| error.in_memory(&parent.name))?;
            let source = if found.direct { MEASURED } else { "measured through the page cache: direct I/O is refused" };
            return Ok(Some(Found { figures: found.figures, source }));
        }
        let figures = match edge.driver.views {
            true => dram::shared(&workers, in_dram, limits.memory_time),
            false => dram::local(&workers, in_dram, memory.capacity_bytes.min(in_dram), limits.memory_time),
        };
        let mut figures = figures.map_err(|error| error.in_memory(&memory.name))?;
        // The threads of all parents ran at once; an edge's bandwidth is that of one parent.
        figures.read_bytes_per_second /= parents as f64;
        figures.write_bytes_per_second /= parents as f64;
        Ok(Some(Found { figures, source: MEASURED }))
    }

    /// How many leaf memories the whole machine has at or below this kind of memory.
    fn workers_below(&self, id: MemoryId) -> usize {
        let is_below = |leaf: &MemoryId| {
            let mut at = Some(*leaf);
            while at.is_some_and(|at| at != id) {
                at = at.and_then(|at| self.memory(at).parent);
            }
            at.is_some()
        };
        let leaves = self.ids().filter(|leaf| self.children(*leaf).next().is_none());
        leaves.filter(is_below).map(|leaf| self.total(leaf)).sum::<usize>().max(1)
    }
}

struct Found {
    figures: EdgeFigures,
    source: &'static str,
}

fn failure(what: &'static str, reason: impl ToString) -> MachineError {
    Problem::Probe { what, reason: reason.to_string() }.into()
}

#[cfg(test)]
mod tests;
