//! What scripts cost, and which is the cheapest.
//!
//! A message between two ranks takes the latency of their distance and its bytes by the bandwidth of that distance; an end
//! is busy with one message's bytes at a time, and its processor a while with each message. This is the model of latency
//! and bandwidth of Hockney ("The communication challenge for MPP", Parallel Computing 20, 1994), with an end's
//! occupation as in LogGP (Alexandrov, Ionescu, Schauser, Scheiman, SPAA 1995). Networks have no contention inside.

use super::{Algorithm, Local, Message, Operation, Payload, Request, Scripts, scripts};
use crate::{ScheduleError, Topology};
use std::collections::HashMap;

/// What a message costs between ranks of one distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tier {
    /// From the beginning of an empty message to its end at the other side, processors included.
    pub latency_ns: f64,
    /// Bandwidth of one message.
    pub bytes_per_ns: f64,
}

/// What the steps of scripts cost on a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// By [`Topology::distance`], nearest first; the last serves all that are further.
    pub tiers: Vec<Tier>,
    /// How long a processor is busy with a message, besides its bytes.
    pub message_ns: f64,
    /// Bytes of results that one rank combines in a nanosecond.
    pub combine_bytes_per_ns: f64,
    /// Bytes that one rank copies in a nanosecond: what is copied, and messages of several pieces.
    pub copy_bytes_per_ns: f64,
}

/// A script that would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// By which algorithm.
    pub algorithm: Algorithm,
    /// Time until the last rank is done, if all begin together.
    pub time_ns: f64,
}

/// All algorithms for an operation, the cheapest first.
///
/// # Errors
/// The root is outside of the group.
pub fn choose(
    operation: Operation,
    topology: &Topology,
    payload: Payload,
    costs: &Costs,
) -> Result<Vec<Candidate>, ScheduleError> {
    let mut found = Vec::new();
    for algorithm in Algorithm::performing(operation, topology) {
        let request = Request { operation, algorithm, topology: topology.clone() };
        let time_ns = costs.time_ns(&scripts(&request)?, payload);
        found.push(Candidate { algorithm, time_ns });
    }
    found.sort_by(|a, b| a.time_ns.total_cmp(&b.time_ns));
    Ok(found)
}

impl Costs {
    /// Time until the last rank is done, if all begin together. Scripts that were not proved and stop half-way take for
    /// ever.
    pub fn time_ns(&self, scripts: &Scripts, payload: Payload) -> f64 {
        let n = scripts.ranks.len();
        // When the k-th message between two ranks can begin, by each of its ends.
        let mut offered: HashMap<(u32, u32), Vec<f64>> = HashMap::new();
        let mut awaited: HashMap<(u32, u32), Vec<f64>> = HashMap::new();
        let mut counts: HashMap<(u32, u32), [usize; 2]> = HashMap::new();
        let mut now = vec![0f64; n];
        let mut next = vec![0usize; n];
        let mut begun = vec![false; n];
        loop {
            let mut moved = false;
            for (rank, script) in (0..).zip(&scripts.ranks) {
                let me = rank as usize;
                while let Some(round) = script.rounds.get(next[me]) {
                    if !std::mem::replace(&mut begun[me], true) {
                        let ends = [(&round.sends, &mut offered, true), (&round.receives, &mut awaited, false)];
                        let mut processor = now[me];
                        for (messages, known, sends) in ends {
                            // Bytes leave one after the other, and arrive so; both at the same time.
                            let mut wire = processor;
                            for message in messages {
                                let at = processor.max(wire);
                                let pair = if sends { (rank, message.with) } else { (message.with, rank) };
                                known.entry(pair).or_default().push(at);
                                processor += self.message_ns;
                                wire = at + self.wire_ns(scripts, payload, rank, message);
                            }
                        }
                        moved = true;
                    }
                    let Some(end) = self.end(scripts, payload, rank, &offered, &awaited, &mut counts, next[me]) else {
                        break;
                    };
                    let then: f64 = round.then.iter().map(|local| self.local_ns(scripts, payload, local)).sum();
                    now[me] = end.max(now[me]) + then;
                    next[me] += 1;
                    begun[me] = false;
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        let over = scripts.ranks.iter().zip(&next).all(|(script, &next)| next == script.rounds.len());
        if over { now.into_iter().fold(0.0, f64::max) } else { f64::INFINITY }
    }

    /// When all messages of a round are over; none if that is not known yet.
    #[allow(clippy::too_many_arguments)]
    fn end(
        &self,
        scripts: &Scripts,
        payload: Payload,
        rank: u32,
        offered: &HashMap<(u32, u32), Vec<f64>>,
        awaited: &HashMap<(u32, u32), Vec<f64>>,
        counts: &mut HashMap<(u32, u32), [usize; 2]>,
        round: usize,
    ) -> Option<f64> {
        let round = &scripts.ranks[rank as usize].rounds[round];
        let mut end = 0f64;
        let mut seen: Vec<((u32, u32), usize)> = Vec::new();
        for (messages, side) in [(&round.sends, 0), (&round.receives, 1)] {
            for message in messages {
                let pair = if side == 0 { (rank, message.with) } else { (message.with, rank) };
                let earlier = seen.iter().filter(|s| **s == (pair, side)).count();
                let at = counts.get(&pair).map_or(0, |c| c[side]) + earlier;
                let (a, b) = (offered.get(&pair)?.get(at)?, awaited.get(&pair)?.get(at)?);
                let tier = self.tier(scripts, rank, message.with);
                end = end.max(a.max(*b) + tier.latency_ns + self.wire_ns(scripts, payload, rank, message));
                seen.push((pair, side));
            }
        }
        for (pair, side) in seen {
            counts.entry(pair).or_default()[side] += 1;
        }
        Some(end)
    }

    fn tier(&self, scripts: &Scripts, a: u32, b: u32) -> Tier {
        let distance = scripts.request.topology.distance(a, b) as usize;
        let at = distance.min(self.tiers.len().saturating_sub(1));
        self.tiers.get(at).copied().unwrap_or(Tier { latency_ns: 0.0, bytes_per_ns: f64::INFINITY })
    }

    /// How long the bytes of a message keep an end busy.
    fn wire_ns(&self, scripts: &Scripts, payload: Payload, rank: u32, message: &Message) -> f64 {
        let bytes: u64 = message.pieces.iter().map(|piece| payload.bytes(*piece, scripts.blocks)).sum();
        let packed = if message.pieces.len() > 1 { bytes as f64 / self.copy_bytes_per_ns } else { 0.0 };
        bytes as f64 / self.tier(scripts, rank, message.with).bytes_per_ns + packed
    }

    fn local_ns(&self, scripts: &Scripts, payload: Payload, local: &Local) -> f64 {
        match *local {
            Local::Combine { into, .. } => payload.bytes(into, scripts.blocks) as f64 / self.combine_bytes_per_ns,
            Local::Copy { into, .. } => payload.bytes(into, scripts.blocks) as f64 / self.copy_bytes_per_ns,
        }
    }
}
