//! Which strand a host begins or goes on with.

use std::collections::VecDeque;

use crate::jobs::Dispatch;
use crate::policy::{Arrival, Decision, Departure, Machine, Policy, PolicyError, Workers};

/// How strands are to be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinesOptions {
    /// Who gets how many workers.
    pub policy: Policy,
    /// How many workers.
    pub workers: u32,
    /// Hosts that are no workers; `None` if the workers are the hosts.
    pub own_hosts: Option<u32>,
    /// How many strands there are.
    pub strands: u32,
    /// How many are in progress at most; `None` for as many as [`Policy::strands_max`] says.
    pub strands_max: Option<usize>,
    /// Whether hosts execute themselves what does not pay to be off-loaded ([`super::Tallies`]).
    pub throttle: bool,
    /// How a task that waits gets to a worker that is done.
    pub dispatch: Dispatch,
}

/// What a host does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Begins this strand.
    Begin(u32),
    /// Goes on with the strand in this place of its own list.
    Resume(usize),
    /// Waits.
    Wait,
    /// Ends.
    Finished,
}

/// A policy at work, and the strands that can go on: first in, first out at each host. A strand stays on the host on which
/// it begins.
///
/// Each event is told with the time at which it happens ([`Lines::advance`] before it). What the policy decided by it is in
/// [`Lines::decided`], hosts that might sleep although there is a strand for them in [`Lines::to_ring`].
#[derive(Debug)]
pub struct Lines {
    machine: Machine,
    decisions: Vec<Decision>,
    dispatch: Dispatch,
    /// Hosts are workers.
    shared: bool,
    /// Strands that can go on, by host.
    ready: Vec<VecDeque<usize>>,
    ready_count: usize,
    /// Strands that have not begun: one line for all hosts, or one for each.
    fresh: Vec<VecDeque<u32>>,
    fresh_count: usize,
    live: usize,
    live_max: usize,
    /// Strands that have begun and not ended, by host.
    live_of: Vec<u32>,
    now_ns: u64,
}

impl Lines {
    /// No strand has begun, all workers are idle.
    ///
    /// # Errors
    /// The policy does not suit the workers.
    pub fn new(options: LinesOptions) -> Result<Lines, PolicyError> {
        let LinesOptions { policy, workers, own_hosts, strands, strands_max, throttle, dispatch } = options;
        let mut machine = Machine::new(policy, workers)?;
        let (shared, hosts) = (own_hosts.is_none(), own_hosts.unwrap_or(workers) as usize);
        if shared && throttle {
            machine.leave_calls_to_hosts();
        }
        let homes = shared && policy.home(0, workers).is_some();
        let mut fresh = vec![VecDeque::new(); if homes { hosts } else { 1 }];
        for strand in 0..strands {
            let line = policy.home(strand, workers).filter(|_| homes).unwrap_or(0);
            fresh[line as usize].push_back(strand);
        }
        Ok(Lines {
            machine,
            decisions: Vec::new(),
            dispatch,
            shared,
            ready: vec![VecDeque::new(); hosts],
            ready_count: 0,
            fresh,
            fresh_count: strands as usize,
            live: 0,
            live_max: strands_max.unwrap_or(policy.strands_max(workers) as usize).max(1),
            live_of: vec![0; hosts],
            now_ns: 0,
        })
    }

    /// It is so late, by some clock: the clocks of two processors may differ by a little, and time does not run backwards.
    #[inline]
    pub fn advance(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        // Decisions are made at events only, so a tick that was due since the last one is as good now.
        if self.machine.next_tick_ns().is_some_and(|due_ns| due_ns <= self.now_ns) {
            self.machine.tick(self.now_ns);
        }
    }

    /// A strand off-loads a task; see [`Machine::arrive`].
    #[inline]
    pub fn arrive(&mut self, arrival: Arrival) {
        self.machine.arrive(self.now_ns, arrival, &mut self.decisions);
    }

    /// A task departs whose strand was switched out; that is in this place of its host, and in line from now on.
    pub fn depart(&mut self, departure: Departure, host: usize, place: usize) {
        self.line_up(host, place);
        self.machine.depart(self.now_ns, departure, &mut self.decisions);
    }

    /// A task departs that the strand on this host executed itself; true if the host is to go on with the strand at once,
    /// otherwise the strand is in line.
    #[inline]
    pub fn depart_and_go_on(&mut self, departure: Departure, host: usize, place: usize) -> bool {
        self.machine.depart(self.now_ns, departure, &mut self.decisions);
        let goes_on = self.occupy(host);
        if !goes_on {
            self.line_up(host, place);
        }
        goes_on
    }

    /// The strand in this place gives way to others of its host: what the host does next; `None` if there are none.
    pub fn give_way(&mut self, host: usize, place: usize) -> Option<Next> {
        if !self.can_go_on(host) {
            return None;
        }
        self.line_up(host, place);
        if self.shared {
            self.machine.vacate(self.now_ns, host as u32, &mut self.decisions);
        }
        Some(self.next(host))
    }

    /// Whether the task that has just arrived and started on its strand's own worker need not depart before the next one of as
    /// many chunks, which would start in the same way: its strand is alone, no other could begin, and the policy learns nothing
    /// ([`Machine::repeats`]). Nobody else wants the workers meanwhile.
    pub fn keeps(&mut self) -> bool {
        let more_could_begin = self.fresh_count > 0 && self.live < self.live_max;
        self.shared && self.live == 1 && !more_could_begin && self.machine.repeats()
    }

    /// A task that was kept departs after all. What it took would teach the policy nothing.
    pub fn settle(&mut self, task: u64, host: usize) {
        let departure = Departure { task, span_ns: 0, busy_ns: 0 };
        self.machine.depart(self.now_ns, departure, &mut self.decisions);
        self.occupy(host);
    }

    /// A strand of this host has ended; true if all have.
    pub fn end(&mut self, host: usize) -> bool {
        self.machine.strand_ends();
        self.live -= 1;
        self.live_of[host] -= 1;
        if self.shared {
            self.machine.vacate(self.now_ns, host as u32, &mut self.decisions);
        }
        self.is_over()
    }

    /// Strands that have not begun never will.
    pub fn stop(&mut self) {
        self.fresh.iter_mut().for_each(VecDeque::clear);
        self.fresh_count = 0;
    }

    /// Whether all strands have ended.
    pub fn is_over(&self) -> bool {
        self.live == 0 && self.fresh_count == 0
    }

    /// What a host does next that executes nothing.
    pub fn next(&mut self, host: usize) -> Next {
        if self.is_over() {
            Next::Finished
        } else if !self.can_go_on(host) || self.shared && !self.occupy(host) {
            Next::Wait
        } else if self.can_begin(host) {
            // Before those that have begun: all that may be in progress have their turns.
            let line = self.line_of(host);
            let Some(strand) = self.fresh[line].pop_front() else { unreachable!("there was one") };
            self.fresh_count -= 1;
            self.live += 1;
            self.live_of[host] += 1;
            self.machine.strand_begins();
            Next::Begin(strand)
        } else {
            let Some(place) = self.ready[host].pop_front() else { unreachable!("there was one") };
            self.ready_count -= 1;
            Next::Resume(place)
        }
    }

    /// What was decided since this was asked last.
    #[inline]
    pub fn decided(&mut self) -> impl Iterator<Item = Decision> + '_ {
        self.decisions.drain(..)
    }

    /// Whether a worker that is done with a task lets it depart at once, since a task waits for one.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.dispatch == Dispatch::Queue && self.machine.waiting() > 0
    }

    /// Whether an off-load could only get the worker it comes from, so that it may as well be a call: no task waits, and no
    /// worker is idle or the policy gives each task one.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        // Under these a task has one worker, and the strand's own is one.
        let alone = matches!(self.machine.policy(), Policy::Edtlp | Policy::Static);
        self.shared && self.machine.waiting() == 0 && (alone || self.machine.idle().is_empty())
    }

    /// Hosts other than `me` that might sleep although there is a strand for them.
    #[inline]
    pub fn to_ring(&self, me: usize) -> Workers {
        if self.ready_count == 0 && (self.fresh_count == 0 || self.live >= self.live_max) {
            return Workers::default();
        }
        let can_go_on = |host: &u32| *host as usize != me && self.can_go_on(*host as usize);
        if !self.shared {
            return (0..self.ready.len() as u32).filter(can_go_on).collect();
        }
        match self.machine.is_held() {
            true => Workers::default(),
            false => self.machine.idle().iter().filter(can_go_on).collect(),
        }
    }

    /// Whether there is a strand that this host could go on with or begin.
    fn can_go_on(&self, host: usize) -> bool {
        !self.ready[host].is_empty() || self.can_begin(host)
    }

    fn can_begin(&self, host: usize) -> bool {
        self.live < self.live_max && !self.fresh[self.line_of(host)].is_empty() && !self.leaves_to_others(host)
    }

    /// Strands stay where they begin. So who has some leaves one that has not begun to a worker that is idle and has fewer:
    /// else two would have their turns on one worker for ever, beside one that does nothing.
    fn leaves_to_others(&self, host: usize) -> bool {
        let has_fewer = |worker: u32| self.live_of[worker as usize] < self.live_of[host];
        self.shared && self.fresh.len() == 1 && !self.machine.is_held() && self.machine.idle().iter().any(has_fewer)
    }

    fn line_of(&self, host: usize) -> usize {
        if self.fresh.len() == 1 { 0 } else { host }
    }

    fn line_up(&mut self, host: usize, place: usize) {
        self.ready[host].push_back(place);
        self.ready_count += 1;
    }

    /// Takes the worker of a host for strands, if it is idle and nobody waits for it.
    fn occupy(&mut self, worker: usize) -> bool {
        self.machine.idle().contains(worker as u32) && self.machine.occupy(worker as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(policy: &str, workers: u32, strands: u32) -> Lines {
        let options = LinesOptions {
            policy: policy.parse().unwrap(),
            workers,
            own_hosts: None,
            strands,
            strands_max: Some(strands as usize),
            throttle: false,
            dispatch: Dispatch::Queue,
        };
        Lines::new(options).unwrap()
    }

    /// Three strands and two workers, of which the second comes late: the first one has its own strand only.
    #[test]
    fn who_has_a_strand_leaves_the_next_to_who_has_none() {
        let mut lines = lines("marginal", 2, 3);
        assert_eq!(lines.next(0), Next::Begin(0));
        assert_eq!(lines.give_way(0, 0), None, "the second worker is idle");
        assert_eq!(lines.next(1), Next::Begin(1));
        assert_eq!(lines.give_way(0, 0), Some(Next::Begin(2)), "nobody is idle");
        assert!(lines.is_quiet());
    }

    #[test]
    fn a_strand_has_its_home_where_the_policy_says_so() {
        let mut lines = lines("static", 2, 3);
        assert_eq!(lines.to_ring(0), [1].into_iter().collect());
        assert_eq!(lines.next(1), Next::Begin(1));
        assert_eq!(lines.next(0), Next::Begin(0));
        assert_eq!(lines.give_way(1, 0), None);
        assert_eq!(lines.give_way(0, 0), Some(Next::Begin(2)));
        assert!(!lines.end(1));
        assert_eq!(lines.next(1), Next::Wait);
        assert!(!lines.end(0));
        assert_eq!(lines.next(0), Next::Resume(0));
        assert!(lines.end(0));
        assert_eq!(lines.next(1), Next::Finished);
    }
}
