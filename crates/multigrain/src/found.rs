//! What the records of a journal say, whoever wrote them. `docs/resume.md` of this crate names the states.

use multigrain_plan::Stored;
use multigrain_store::Record;
use std::path::PathBuf;

pub(crate) const BEGIN: u32 = 1;
pub(crate) const DONE: u32 = 2;
/// The files are there, with their initial content.
pub(crate) const READY: u32 = 3;
/// Every result is durable; files take their final names.
pub(crate) const COMPLETE: u32 = 4;
/// What a block that is recorded begins with.
pub(crate) const SAMPLE: u32 = 5;
/// What a complete file holds.
pub(crate) const FILE: u32 = 6;
/// Whose journals count from here on beside this one; what stands before it counts.
pub(crate) const RANKS: u32 = 7;
/// What follows takes the place of those journals.
pub(crate) const FOLD: u32 = 8;

/// Ranks whose journals count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OfRanks {
    /// The number of their run.
    pub(crate) run: u64,
    pub(crate) count: u32,
    /// Whether all ranks execute each call.
    pub(crate) in_parts: bool,
}

impl OfRanks {
    /// The numbers of the record that says so.
    pub(crate) fn written(self) -> [u64; 2] {
        [self.run, u64::from(self.count) | u64::from(self.in_parts) << 32]
    }

    /// What such a record says; none where the run's journal counts alone.
    pub(crate) fn read(run: u64, count: u64) -> Option<OfRanks> {
        let (count, in_parts) = (count as u32, count >> 32 != 0);
        (count > 0).then_some(OfRanks { run, count, in_parts })
    }
}

/// What a journal says of the content of a block.
#[derive(Debug)]
pub(crate) struct Sample {
    /// So many events of the journal stand before it.
    pub(crate) events: usize,
    pub(crate) call: u32,
    pub(crate) argument: u32,
    pub(crate) hash: u64,
}

/// What a journal says.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Stores, for the planner.
    pub(crate) events: Vec<Stored>,
    /// Whether the files had their initial content.
    ready: bool,
    /// Whether every result was durable, so that some may have their final names.
    pub(crate) complete: bool,
    /// What was written.
    pub(crate) samples: Vec<Sample>,
    /// What complete files held: arrays and hashes.
    pub(crate) files: Vec<(u64, u64)>,
    /// Ranks whose journals count beside this one, and what these say.
    pub(crate) of_ranks: Option<OfRanks>,
    pub(crate) merged: Vec<Record>,
    /// A journal that counts and is not there.
    pub(crate) missing: Option<PathBuf>,
    /// How many events and samples stood before the last word on ranks.
    settled: [usize; 2],
}

impl Found {
    /// What the next record says.
    pub(crate) fn add(&mut self, record: Record) {
        let Record { kind, a, b } = record;
        match kind {
            BEGIN | DONE => self.events.push(Stored { call: a as u32, argument: b as u32, durable: kind == DONE }),
            SAMPLE => {
                let (call, argument) = (a as u32, (a >> 32) as u32);
                self.samples.push(Sample { events: self.events.len(), call, argument, hash: b });
            }
            FILE => self.files.push((a, b)),
            READY => self.ready = true,
            COMPLETE => self.complete = true,
            RANKS => {
                self.of_ranks = OfRanks::read(a, b);
                self.settled = [self.events.len(), self.samples.len()];
            }
            FOLD => self.unsettle(),
            _ => {}
        }
    }

    /// There are no more records in the run's journal: what was to take the place of ranks' and is not whole is nothing.
    pub(crate) fn end(&mut self) {
        if self.of_ranks.is_some() {
            self.unsettle();
        }
    }

    fn unsettle(&mut self) {
        self.events.truncate(self.settled[0]);
        self.samples.truncate(self.settled[1]);
    }

    /// Whether there is work that could be continued.
    pub(crate) fn has_work(&self) -> bool {
        self.complete || self.ready && (self.missing.is_some() || self.events.iter().any(|event| event.durable))
    }
}
