//! The state machine that all policies share: tasks in line, idle workers, and the rule that brings both together.

use std::collections::VecDeque;

use super::event::{Arrival, Decision, Departure, Reason, Start};
use super::fixed::Fixed;
use super::marginal::Marginal;
use super::mgps::Mgps;
use super::name::{Policy, PolicyError};
use super::rule::{Choice, Rule, View};
use super::workers::{WORKERS_MAX, Workers};

/// A policy at work on a number of workers.
///
/// A worker is *idle*, has a *task*, or is *occupied*: it executes the strands themselves, where hosts and workers are
/// the same threads. Tasks are served in the order of arrival; where a policy waits for a team, nothing that arrived
/// later overtakes. Each event appends its decisions to a list that the caller owns, so that nothing is allocated
/// once the lists have grown.
///
/// Whoever drives a machine keeps its rules, which are asserted: a task is named once at a time, a strand has one task at
/// a time, what departs has started, time does not run backwards.
#[derive(Debug)]
pub struct Machine {
    policy: Policy,
    rule: RuleOf,
    workers: u32,
    idle: Workers,
    occupied: Workers,
    strands: u32,
    waiting: VecDeque<Arrival>,
    running: Vec<Running>,
    /// The first in line waits for so many workers.
    held_for: Option<u32>,
    now_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    arrival: Arrival,
    workers: Workers,
}

#[derive(Debug)]
enum RuleOf {
    Fixed(Fixed),
    Mgps(Mgps),
    Marginal(Box<Marginal>),
}

impl RuleOf {
    fn get(&mut self) -> &mut dyn Rule {
        match self {
            RuleOf::Fixed(rule) => rule,
            RuleOf::Mgps(rule) => rule,
            RuleOf::Marginal(rule) => &mut **rule,
        }
    }
}

impl Machine {
    /// A machine with all workers idle.
    ///
    /// # Errors
    /// [`PolicyError::Workers`] or [`PolicyError::TeamTooLarge`].
    pub fn new(policy: Policy, workers: u32) -> Result<Machine, PolicyError> {
        if workers == 0 || workers > WORKERS_MAX {
            return Err(PolicyError::Workers { workers });
        }
        let rule = match policy {
            Policy::Llp { workers_per_loop: wanted } | Policy::Hybrid { workers_per_loop: wanted }
                if wanted > workers =>
            {
                return Err(PolicyError::TeamTooLarge { policy, wanted, workers });
            }
            Policy::Static | Policy::Edtlp | Policy::Llp { .. } | Policy::Hybrid { .. } => {
                RuleOf::Fixed(Fixed::new(policy))
            }
            Policy::Mgps => RuleOf::Mgps(Mgps::new(workers)),
            Policy::Marginal => RuleOf::Marginal(Box::new(Marginal::new(workers))),
        };
        Ok(Machine {
            policy,
            rule,
            workers,
            idle: Workers::first(workers),
            occupied: Workers::default(),
            strands: 0,
            waiting: VecDeque::with_capacity(workers as usize),
            running: Vec::with_capacity(workers as usize),
            held_for: None,
            now_ns: 0,
        })
    }

    /// Says that hosts execute tasks as calls that are faster on one worker ([`super::Granularity`]), so that a policy that
    /// measures numbers of workers need not try one where there could be several.
    pub fn leave_calls_to_hosts(&mut self) {
        if let RuleOf::Marginal(rule) = &mut self.rule {
            rule.leave_calls_to_hosts();
        }
    }

    /// The policy.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// How many workers it decides for.
    pub fn workers(&self) -> u32 {
        self.workers
    }

    /// Workers that could start a task now.
    pub fn idle(&self) -> &Workers {
        &self.idle
    }

    /// Tasks that have arrived and not started.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Tasks that have started and not departed.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Whether a task that arrives right after one of its strand has departed starts on the workers of that one, if it has as
    /// many iterations, or both have at least as many as there are workers, and nothing else has happened: then the machine
    /// need be told of neither. Whoever leaves out some lets the first depart in the end.
    pub fn repeats(&mut self) -> bool {
        self.rule.get().is_constant() && self.waiting.is_empty()
    }

    /// Whether the idle workers are kept for the first task in line, which wants more than there are.
    pub fn is_held(&self) -> bool {
        self.held_for.is_some()
    }

    /// Whether one more strand may begin: see [`Policy::strands_max`].
    pub fn may_begin(&self) -> bool {
        self.strands < self.policy.strands_max(self.workers)
    }

    /// A strand begins. It may be more than [`Machine::may_begin`] allows, if the caller has its reasons.
    pub fn strand_begins(&mut self) {
        self.strands += 1;
    }

    /// A strand ends.
    ///
    /// # Panics
    /// If none has begun, or those in progress all have tasks.
    pub fn strand_ends(&mut self) {
        assert!(self.strands > 0, "a strand ends, but none is in progress");
        self.strands -= 1;
    }

    /// An idle worker turns to executing strands, unless the first task in line waits for it: then false. Only for
    /// machines whose workers are also hosts.
    ///
    /// # Panics
    /// If the worker is not idle.
    pub fn occupy(&mut self, worker: u32) -> bool {
        assert!(self.idle.contains(worker), "worker {worker} is to execute strands, but it is not idle");
        if self.held_for.is_some() {
            return false;
        }
        self.idle.remove(worker);
        self.occupied.insert(worker);
        true
    }

    /// A worker that executed strands is idle again.
    ///
    /// # Panics
    /// If it did not.
    pub fn vacate(&mut self, now_ns: u64, worker: u32, out: &mut Vec<Decision>) {
        self.advance(now_ns);
        assert!(self.occupied.remove(worker), "worker {worker} executes no strand");
        self.idle.insert(worker);
        self.dispatch(out);
    }

    /// A strand off-loads a task. If the task's [`Arrival::near`] executed the strand, it is idle by that.
    ///
    /// # Panics
    /// If the name of the task, or the strand, is that of a task that waits or runs, or a worker does not exist.
    pub fn arrive(&mut self, now_ns: u64, arrival: Arrival, out: &mut Vec<Decision>) {
        self.advance(now_ns);
        let live = self.waiting.iter().chain(self.running.iter().map(|running| &running.arrival));
        for other in live {
            assert!(other.task != arrival.task, "task {} has arrived already", arrival.task);
            assert!(other.strand != arrival.strand, "strand {} waits for task {}", arrival.strand, other.task);
        }
        if let Some(near) = arrival.near {
            assert!(near < self.workers, "there are {} workers, and {near} is none of them", self.workers);
            if self.occupied.remove(near) {
                self.idle.insert(near);
            }
        }
        self.waiting.push_back(arrival);
        let view = self.view();
        self.rule.get().arrived(now_ns, &view);
        self.dispatch(out);
        if let Some(last) = self.waiting.back().filter(|last| last.task == arrival.task) {
            let first = self.waiting.front().is_some_and(|first| first.task == last.task);
            let reason = match self.held_for {
                Some(wanted) if first => Reason::TeamIncomplete { wanted },
                Some(_) => Reason::Behind,
                None => Reason::NoneIdle,
            };
            out.push(Decision::Wait { task: arrival.task, strand: arrival.strand, reason });
        }
    }

    /// A task is done; its workers are idle.
    ///
    /// # Panics
    /// If no such task runs.
    pub fn depart(&mut self, now_ns: u64, departure: Departure, out: &mut Vec<Decision>) {
        self.advance(now_ns);
        let found = self.running.iter().position(|running| running.arrival.task == departure.task);
        let Some(found) = found else { panic!("task {} departs, but it does not run", departure.task) };
        let done = self.running.swap_remove(found);
        self.idle.insert_all(&done.workers);
        let view = self.view();
        self.rule.get().departed(now_ns, &done.arrival, done.workers.len(), &departure, &view);
        self.dispatch(out);
    }

    /// Time has passed. Decides nothing about tasks that run.
    pub fn tick(&mut self, now_ns: u64) {
        self.advance(now_ns);
        let view = self.view();
        self.rule.get().tick(now_ns, &view);
    }

    /// When the policy wants a [`Machine::tick`], in the time of the events; later does no harm.
    pub fn next_tick_ns(&mut self) -> Option<u64> {
        self.rule.get().next_tick_ns()
    }

    fn advance(&mut self, now_ns: u64) {
        assert!(now_ns >= self.now_ns, "the event of {now_ns} ns comes after that of {} ns", self.now_ns);
        self.now_ns = now_ns;
    }

    fn view(&self) -> View {
        View {
            workers: self.workers,
            idle: self.idle.len(),
            occupied: self.occupied.len(),
            strands: self.strands,
            running: self.running.len() as u32,
            waiting: self.waiting.len() as u32,
        }
    }

    /// Starts what can start, in the order of arrival.
    fn dispatch(&mut self, out: &mut Vec<Decision>) {
        self.held_for = None;
        let mut place = 0;
        while let Some(&task) = self.waiting.get(place)
            && !self.idle.is_empty()
        {
            let view = self.view();
            let mut choice = self.rule.get().choose(&task, &view);
            if task.iterations <= 1
                && let Choice::UpTo(..) | Choice::Exactly(..) = choice
            {
                choice = Choice::UpTo(1, Reason::NoLoop);
            }
            let cap = |degree: u32| degree.min(task.iterations).max(1);
            let (degree, reason) = match choice {
                Choice::On(home, _) if !self.idle.contains(home) => {
                    place += 1;
                    continue;
                }
                Choice::On(_, reason) => (1, reason),
                Choice::Exactly(wanted, _) if cap(wanted) > view.idle => {
                    self.held_for = Some(cap(wanted));
                    return;
                }
                Choice::Exactly(wanted, reason) => (cap(wanted), reason),
                Choice::UpTo(wanted, _) if cap(wanted) > view.idle => (view.idle, Reason::FewIdle { wanted }),
                Choice::UpTo(wanted, reason) => (cap(wanted), reason),
            };
            let near = task.near.filter(|&near| self.idle.contains(near));
            let master = match choice {
                Choice::On(home, _) => home,
                Choice::UpTo(..) | Choice::Exactly(..) => near.or(self.idle.next(0)).unwrap_or(0),
            };
            let workers = self.idle.neighbours(master, degree);
            self.waiting.remove(place);
            self.idle.remove_all(&workers);
            self.running.push(Running { arrival: task, workers });
            let view = self.view();
            self.rule.get().started(&task, degree, &view);
            out.push(Decision::Start(Start { task: task.task, strand: task.strand, master, workers, reason }));
        }
    }
}
