//! What one thread has learnt about the tasks it leads: whether to off-load them, and how to share their loops.

use multigrain_schedule::policy::{Granularity, Part, Shares};

use super::seat::Portion;
use super::task::TaskKind;

/// By kind and power of two of the length. There are few, so they are searched from the front.
#[derive(Debug, Default)]
pub(super) struct Tallies {
    all: Vec<((u16, u32), Tally)>,
}

/// About tasks of one kind and length.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) granularity: Granularity,
    /// By number of participants.
    shares: Vec<Option<Shares>>,
    parts: Vec<Part>,
}

impl Tallies {
    pub(super) fn of(&mut self, kind: TaskKind, iterations: u64) -> &mut Tally {
        let key = (kind.number, iterations.max(1).ilog2());
        let place = self.all.iter().position(|(other, _)| *other == key).unwrap_or_else(|| {
            self.all.push((key, Tally::default()));
            self.all.len() - 1
        });
        &mut self.all[place].1
    }
}

impl Tally {
    /// The shares of so many participants.
    pub(super) fn shares(&mut self, participants: usize) -> &mut Shares {
        if self.shares.len() <= participants {
            self.shares.resize(participants + 1, None);
        }
        self.shares[participants].get_or_insert_with(|| Shares::new(participants))
    }

    /// Learns from a loop that took from `begin` to `end`; returns how long its participants computed, all together, and
    /// whether the first of them, who led, did everything.
    pub(super) fn learn<'p>(&mut self, did: impl Iterator<Item = &'p Portion>, begin: u64, end: u64) -> (u64, bool) {
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        parts.extend(did.map(|portion| portion.part(begin, end)));
        let busy = parts.iter().map(|part| part.busy as u64).sum();
        let unaided = parts.iter().skip(1).all(|part| part.chunks == 0);
        self.shares(parts.len()).learn(&parts);
        self.parts = parts;
        (busy, unaided)
    }
}
