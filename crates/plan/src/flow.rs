//! What moves over an edge when the blocks of a nest's parameters are kept in some way, in bytes and seconds.

use crate::cost::stolen_fragment_seconds;
use crate::facts::{EdgeFacts, fragment_seconds};
use multigrain_program::Access;
use smallvec::SmallVec;

/// One way to keep blocks of a parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stay {
    pub(crate) kept: f64,
    pub(crate) kept_bytes: f64,
    /// How often a block is loaded, in blocks.
    pub(crate) loads: f64,
    /// Whether another block is needed for nearly every call.
    pub(crate) streams: bool,
}

/// What moves when parameters are kept in some way: bytes, and seconds of the edge.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flow {
    pub(crate) kept_bytes: f64,
    pub(crate) seconds: f64,
    /// Without what fragments cost.
    pub(crate) flowing: f64,
    pub(crate) bytes: f64,
    pub(crate) transfers: f64,
    /// What fragments take from each worker.
    pub(crate) stolen: f64,
    /// Until the first blocks are there.
    pub(crate) first: f64,
    /// Bytes of blocks of which another is needed for nearly every call, and of others that are loaded again.
    pub(crate) streams: f64,
    pub(crate) panels: f64,
    /// Of these panels.
    pub(crate) stalls: f64,
}

/// The ways to keep a parameter, with what moves then.
pub(crate) type Ways = SmallVec<[(Stay, Flow); 2]>;

impl Flow {
    /// Of one parameter, whose block has so many bytes.
    pub(crate) fn of(facts: &EdgeFacts<'_>, access: Access, stay: &Stay, moved: &Moved, bytes: u64) -> Flow {
        let (down, up) = moved.times(access, stay.loads);
        let reading = moved.bytes / facts.edge.read_bytes_per_second;
        let writing = moved.bytes / facts.edge.write_bytes_per_second;
        let fragments = fragment_seconds(facts, moved.fragments);
        let (one, back) = (reading + fragments, writing + fragments);
        let seconds = down * one + up * back;
        let again = if stay.loads > 1.0 { bytes as f64 } else { 0.0 };
        let (streams, panels) = if stay.streams { (again, 0.0) } else { (0.0, again) };
        Flow {
            kept_bytes: stay.kept_bytes,
            seconds,
            flowing: down * reading + up * writing,
            bytes: (down + up) * moved.bytes,
            transfers: down + up,
            stolen: (down + up) * stolen_fragment_seconds(facts.edge, moved.fragments, facts.workers),
            first: if down > 0.0 { one } else { 0.0 },
            streams,
            panels,
            stalls: if panels > 0.0 { seconds } else { 0.0 },
        }
    }

    pub(crate) fn and(self, other: &Flow) -> Flow {
        Flow {
            kept_bytes: self.kept_bytes + other.kept_bytes,
            seconds: self.seconds + other.seconds,
            flowing: self.flowing + other.flowing,
            bytes: self.bytes + other.bytes,
            transfers: self.transfers + other.transfers,
            stolen: self.stolen + other.stolen,
            first: self.first + other.first,
            streams: self.streams + other.streams,
            panels: self.panels + other.panels,
            stalls: self.stalls + other.stalls,
        }
    }
}

/// An average block of a parameter.
pub(crate) struct Moved {
    pub(crate) bytes: f64,
    pub(crate) fragments: f64,
    /// How many there are.
    pub(crate) distinct: f64,
}

impl Moved {
    /// How many blocks go down and up.
    fn times(&self, access: Access, loads: f64) -> (f64, f64) {
        match access {
            Access::Read => (loads, 0.0),
            Access::Update => (loads, loads),
            // The first time there is nothing to be read.
            Access::Write => ((loads - self.distinct).max(0.0), loads),
            Access::Reduce => (0.0, loads),
        }
    }
}
