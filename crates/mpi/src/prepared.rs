//! Scripts with their sizes: places in memory instead of blocks.

use crate::MpiError;
use multigrain_schedule::ScheduleError;
use multigrain_schedule::Topology;
use multigrain_schedule::message::{Algorithm, Local, Message, Operation, Payload, Piece, Request, Script, scripts};
use std::ops::Range;

/// Elements `start..end` of a memory of the rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) memory: Memory,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Where elements lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// What the rank contributes, or where the operation happens.
    First,
    /// What it receives.
    Second,
    Scratch,
}

pub(crate) struct Leg {
    pub(crate) sends: bool,
    pub(crate) with: u32,
    pub(crate) extents: Vec<Extent>,
    /// Where the message lies as a whole if it is in several extents, in elements of the packing buffer.
    pub(crate) packed: Option<Range<usize>>,
}

pub(crate) enum Act {
    Combine { into: Extent, left: Extent, right: Extent },
    Copy { into: Extent, from: Extent },
}

pub(crate) struct Round {
    pub(crate) legs: Vec<Leg>,
    pub(crate) acts: Vec<Act>,
}

/// What one rank does for one size.
pub(crate) struct Prepared {
    pub(crate) rounds: Vec<Round>,
    pub(crate) scratch_elements: usize,
    pub(crate) packed_elements: usize,
}

impl Prepared {
    pub(crate) fn new(
        operation: Operation,
        algorithm: Algorithm,
        topology: &Topology,
        rank: u32,
        elements: usize,
    ) -> Result<Prepared, MpiError> {
        let mut all = scripts(&Request { operation, algorithm, topology: topology.clone() })?;
        let last = topology.size() - 1;
        if rank > last {
            return Err(ScheduleError::OutsideGroup { what: "rank", rank, last }.into());
        }
        let script = all.ranks.swap_remove(rank as usize);
        // What makes the addresses below good ones.
        let malformed = |(round, wrong)| MpiError::Script { algorithm: algorithm.name(), round, wrong };
        script.well_formed(operation, topology.size()).map_err(malformed)?;
        Ok(Prepared::sized(&script, all.blocks, elements))
    }

    fn sized(script: &Script, blocks: u32, elements: usize) -> Prepared {
        let payload = Payload { elements: elements as u64, element_bytes: 1 };
        let begin = |block| payload.begin(block, blocks) as usize;
        // Scratch areas, one after the other.
        let mut scratch_elements = 0;
        let mut bases = Vec::new();
        for (area, room) in script.areas.iter().enumerate() {
            let base = if area < 2 { 0 } else { scratch_elements };
            bases.push((base, begin(room.start)));
            if area >= 2 {
                // On a line of its own, whatever the elements are.
                scratch_elements = (base + begin(room.end) - begin(room.start)).next_multiple_of(64);
            }
        }
        let extent = |piece: &Piece| {
            let memory = match piece.area {
                0 => Memory::First,
                1 => Memory::Second,
                _ => Memory::Scratch,
            };
            let (base, skipped) = bases[piece.area as usize];
            // All blocks of the first two areas have their places in what the caller gives.
            let skipped = if memory == Memory::Scratch { skipped } else { 0 };
            let at = |block| base + begin(block) - skipped;
            Extent { memory, start: at(piece.first), end: at(piece.end) }
        };
        let mut packed_elements = 0;
        let mut rounds = Vec::new();
        for round in &script.rounds {
            let mut packed_here = 0;
            let mut leg = |message: &Message, sends| {
                let extents: Vec<Extent> = message.pieces.iter().map(extent).collect();
                let packed = (extents.len() > 1).then(|| {
                    let len: usize = extents.iter().map(|e| e.end - e.start).sum();
                    let start = packed_here;
                    packed_here += len.next_multiple_of(64);
                    start..start + len
                });
                Leg { sends, with: message.with, extents, packed }
            };
            // Receives first: what comes finds its place.
            let mut legs: Vec<Leg> = round.receives.iter().map(|message| leg(message, false)).collect();
            legs.extend(round.sends.iter().map(|message| leg(message, true)));
            packed_elements = packed_elements.max(packed_here);
            let act = |local: &Local| match local {
                Local::Combine { into, left, right } => {
                    Act::Combine { into: extent(into), left: extent(left), right: extent(right) }
                }
                Local::Copy { into, from } => Act::Copy { into: extent(into), from: extent(from) },
            };
            rounds.push(Round { legs, acts: round.then.iter().map(act).collect() });
        }
        Prepared { rounds, scratch_elements, packed_elements }
    }
}
