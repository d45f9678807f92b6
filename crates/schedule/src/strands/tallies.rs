//! What a host has learnt about the tasks that its strands off-load: whether to off-load them, and how to share their
//! loops.

use crate::policy::{Granularity, Part, Shares, Side};

/// No hand-over to an idle worker that is awake takes longer: what does was waiting.
const HAND_OVER_NS_MAX: f64 = 2_000.0;

/// By kind and power of two of the length. There are few, so they are searched from the front.
#[derive(Debug, Default)]
pub struct Tallies {
    all: Vec<((u16, u32), Tally)>,
}

/// About tasks of one kind and length.
#[derive(Debug, Default)]
pub struct Tally {
    granularity: Granularity,
    /// By number of participants.
    shares: Vec<Option<Shares>>,
}

/// How a task is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As a call, since no other worker could help.
    Call,
    /// As a call, since off-loading does not pay, or to measure it.
    OnHost,
    /// By whom the policy says.
    Offload,
}

impl Way {
    /// That of the next task. `quiet`: an off-load could only get the worker it comes from
    /// ([`Lines::is_quiet`](super::Lines::is_quiet)). Where hosts execute what does not pay to be off-loaded, `side` says where it
    /// costs less ([`Tallies::side`]).
    #[inline]
    pub fn of(quiet: bool, throttle: bool, side: impl FnOnce() -> Side) -> Way {
        if quiet {
            Way::Call
        } else if throttle && side() == Side::Host {
            Way::OnHost
        } else {
            Way::Offload
        }
    }
}

/// How a task went that was off-loaded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Done {
    /// From its beginning to its end, nanoseconds.
    pub taken_ns: f64,
    /// If others executed it, or it waited, from when it was off-loaded to when it began, and from its end to when its strand
    /// went on; `None` if the strand's own host executed it at once.
    pub away_ns: Option<[f64; 2]>,
    /// How many workers had it.
    pub workers: u32,
    /// Whether its loop was to be shared, and nobody came.
    pub unaided: bool,
}

impl Tallies {
    /// What is known of tasks of a kind and about as many iterations.
    pub fn of(&mut self, kind: u16, iterations: u64) -> &mut Tally {
        let key = (kind, iterations.max(1).ilog2());
        let place = self.all.iter().position(|(other, _)| *other == key).unwrap_or_else(|| {
            self.all.push((key, Tally::default()));
            self.all.len() - 1
        });
        &mut self.all[place].1
    }

    /// Where the next task costs less, as far as is known, or is to be measured.
    pub fn side(&mut self, kind: u16, iterations: u64) -> Side {
        self.of(kind, iterations).granularity.choose()
    }

    /// A task that was executed [`Way::OnHost`] took so long.
    pub fn on_host(&mut self, kind: u16, iterations: u64, taken_ns: f64) {
        self.of(kind, iterations).granularity.measured(Side::Host, iterations, taken_ns);
    }

    /// A task was off-loaded: what that took, less the time in which it waited for a worker.
    pub fn offloaded(&mut self, kind: u16, iterations: u64, done: Done) {
        let granularity = &mut self.of(kind, iterations).granularity;
        let mut taken_ns = done.taken_ns;
        if let Some(away_ns) = done.away_ns {
            // A task that was begun late waited for a worker, a strand that went on late for its host. Of both, only what
            // a hand-over takes is the price of off-loading.
            taken_ns += away_ns.iter().map(|ns| ns.min(HAND_OVER_NS_MAX)).sum::<f64>();
        } else if done.workers == 1 {
            // On the strand's own thread it was a call, only dearer: it says what the host variant takes.
            return granularity.measured(Side::Host, iterations, taken_ns);
        }
        match done.unaided {
            true => granularity.unaided(iterations, taken_ns),
            false => granularity.measured(Side::Worker, iterations, taken_ns),
        }
    }
}

impl Tally {
    /// The shares of so many participants.
    fn shares(&mut self, participants: usize) -> &mut Shares {
        if self.shares.len() <= participants {
            self.shares.resize(participants + 1, None);
        }
        self.shares[participants].get_or_insert_with(|| Shares::new(participants))
    }

    /// The ends of the participants' ranges: see [`Shares::ends`].
    pub fn ends(&mut self, participants: usize, chunks: u32, ends: &mut Vec<u32>) {
        self.shares(participants).ends(chunks, ends);
    }

    /// Learns from a loop that is done; returns how long its participants computed, all together, and whether the leader did
    /// everything.
    pub fn learn(&mut self, parts: &[Part]) -> (f64, bool) {
        self.shares(parts.len()).learn(parts);
        (parts.iter().map(|part| part.busy).sum(), parts.iter().skip(1).all(|part| part.chunks == 0))
    }
}
