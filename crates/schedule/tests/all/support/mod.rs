//! A small world in virtual time around a [`Machine`]: strands that compute, off-load and wait, on hosts of their own
//! or on the workers themselves. It checks, at every decision, what holds for every policy.

use multigrain_schedule::policy::{Arrival, Decision, Departure, Machine, Policy, Start, Workers};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

/// One off-load of a strand: what it computes before, then the task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Off {
    pub(crate) host_ns: u64,
    pub(crate) kind: u32,
    pub(crate) iterations: u32,
    /// On one worker.
    pub(crate) task_ns: u64,
}

/// How long a task takes that takes so long on one worker, on so many.
pub(crate) type Speed = fn(u64, u32) -> u64;

pub(crate) fn perfect(task_ns: u64, workers: u32) -> u64 {
    task_ns.div_ceil(u64::from(workers))
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) policy: Policy,
    pub(crate) workers: u32,
    /// Whether the workers execute the strands; otherwise each strand has a processor of its own.
    pub(crate) shared: bool,
    pub(crate) strands: Vec<Vec<Off>>,
    pub(crate) speed: Speed,
}

/// What happened.
#[derive(Debug, Default)]
pub(crate) struct Story {
    /// In order: time, what.
    pub(crate) log: Vec<(u64, Told)>,
    pub(crate) makespan_ns: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Told {
    Arrived(Arrival),
    Decided(Decision),
    Departed(Departure),
    Ticked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    OffLoads { strand: u32 },
    Done { task: u64 },
}

struct State<'a> {
    world: &'a World,
    machine: Machine,
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    now_ns: u64,
    story: Story,
    idle: Workers,
    started: BTreeSet<u64>,
    running: BTreeMap<u64, (Start, Off)>,
    waiting: BTreeMap<u64, (Arrival, Off)>,
    next_off: Vec<usize>,
    home: Vec<Option<u32>>,
    /// Strands that could go on, by the worker that they belong to.
    ready: Vec<VecDeque<u32>>,
    unstarted: VecDeque<u32>,
    on_worker: Vec<Option<u32>>,
}

/// Runs a world to its end.
pub(crate) fn run(world: &World) -> Story {
    let workers = world.workers as usize;
    let mut state = State {
        world,
        machine: Machine::new(world.policy, world.workers).unwrap(),
        heap: BinaryHeap::new(),
        sequence: 0,
        now_ns: 0,
        story: Story::default(),
        idle: Workers::first(world.workers),
        started: BTreeSet::new(),
        running: BTreeMap::new(),
        waiting: BTreeMap::new(),
        next_off: vec![0; world.strands.len()],
        home: vec![None; world.strands.len()],
        ready: vec![VecDeque::new(); workers],
        unstarted: (0..world.strands.len() as u32).collect(),
        on_worker: vec![None; workers],
    };
    state.begin();
    while let Some(Reverse((now_ns, _, event))) = state.heap.pop() {
        while let Some(tick_ns) = state.machine.next_tick_ns().filter(|&tick_ns| tick_ns < now_ns) {
            state.machine.tick(tick_ns);
            state.story.log.push((tick_ns, Told::Ticked));
        }
        state.now_ns = now_ns;
        match event {
            Event::OffLoads { strand } => state.off_loads(strand),
            Event::Done { task } => state.done(task),
        }
        state.begin();
        state.check();
    }
    let tasks: usize = world.strands.iter().map(Vec::len).sum();
    assert_eq!(state.started.len(), tasks, "every task starts, and the run ends");
    assert!(state.unstarted.is_empty() && state.running.is_empty() && state.waiting.is_empty());
    state.story.makespan_ns = state.now_ns;
    state.story
}

impl State<'_> {
    fn after(&mut self, delay_ns: u64, event: Event) {
        self.sequence += 1;
        self.heap.push(Reverse((self.now_ns + delay_ns, self.sequence, event)));
    }

    /// Begins strands, and lets idle workers go on with them.
    fn begin(&mut self) {
        if !self.world.shared {
            while self.machine.may_begin()
                && let Some(strand) = self.unstarted.pop_front()
            {
                self.machine.strand_begins();
                self.goes_on(strand, None);
            }
            return;
        }
        for worker in 0..self.world.workers {
            if self.on_worker[worker as usize].is_some() || !self.machine.idle().contains(worker) {
                continue;
            }
            let fresh = self.ready[worker as usize].is_empty();
            if fresh && (!self.machine.may_begin() || self.unstarted.is_empty()) || !self.machine.occupy(worker) {
                continue;
            }
            assert!(self.idle.remove(worker));
            let strand = match fresh {
                true => {
                    self.machine.strand_begins();
                    self.unstarted.pop_front().unwrap()
                }
                false => self.ready[worker as usize].pop_front().unwrap(),
            };
            self.goes_on(strand, Some(worker));
        }
    }

    fn goes_on(&mut self, strand: u32, worker: Option<u32>) {
        self.home[strand as usize] = worker;
        if let Some(worker) = worker {
            self.on_worker[worker as usize] = Some(strand);
        }
        let off = self.world.strands[strand as usize].get(self.next_off[strand as usize]);
        self.after(off.map_or(0, |off| off.host_ns), Event::OffLoads { strand });
    }

    fn off_loads(&mut self, strand: u32) {
        let number = self.next_off[strand as usize];
        self.next_off[strand as usize] += 1;
        let near = self.home[strand as usize];
        if let Some(worker) = near {
            self.on_worker[worker as usize] = None;
            assert!(self.idle.insert(worker));
        }
        let mut decisions = Vec::new();
        let Some(&off) = self.world.strands[strand as usize].get(number) else {
            self.machine.strand_ends();
            if let Some(worker) = near {
                self.machine.vacate(self.now_ns, worker, &mut decisions);
            }
            return self.obey(decisions);
        };
        let task = u64::from(strand) << 32 | number as u64;
        let arrival = Arrival { task, strand, kind: off.kind, iterations: off.iterations, near };
        self.waiting.insert(task, (arrival, off));
        self.story.log.push((self.now_ns, Told::Arrived(arrival)));
        self.machine.arrive(self.now_ns, arrival, &mut decisions);
        self.obey(decisions);
    }

    fn done(&mut self, task: u64) {
        let (start, off) = self.running.remove(&task).unwrap();
        self.idle.insert_all(&start.workers);
        let degree = start.workers.len();
        let span_ns = (self.world.speed)(off.task_ns, degree);
        let departure = Departure { task, span_ns, busy_ns: off.task_ns };
        let mut decisions = Vec::new();
        self.story.log.push((self.now_ns, Told::Departed(departure)));
        self.machine.depart(self.now_ns, departure, &mut decisions);
        self.obey(decisions);
        match self.home[start.strand as usize] {
            Some(worker) => self.ready[worker as usize].push_back(start.strand),
            None => self.goes_on(start.strand, None),
        }
    }

    fn obey(&mut self, decisions: Vec<Decision>) {
        for decision in decisions {
            self.story.log.push((self.now_ns, Told::Decided(decision)));
            let Decision::Start(start) = decision else { continue };
            assert!(self.started.insert(start.task), "a task started twice: {start:?}");
            let (arrival, off) = self.waiting.remove(&start.task).expect("only what has arrived starts");
            assert_eq!(arrival.strand, start.strand);
            assert!(start.workers.contains(start.master), "{start:?}");
            assert!(start.workers.iter().all(|worker| self.idle.contains(worker)), "{start:?} of {:?}", self.idle);
            assert!(start.workers.len() <= arrival.iterations.max(1), "{start:?} for {arrival:?}");
            if let Some(near) = arrival.near.filter(|&near| self.idle.contains(near)) {
                assert!(start.master == near || self.world.policy == Policy::Static);
            }
            self.idle.remove_all(&start.workers);
            let span_ns = (self.world.speed)(off.task_ns, start.workers.len());
            self.running.insert(start.task, (start, off));
            self.after(span_ns, Event::Done { task: start.task });
        }
    }

    /// What holds between events.
    fn check(&self) {
        assert_eq!(*self.machine.idle(), self.idle);
        assert_eq!(self.machine.running(), self.running.len());
        assert_eq!(self.machine.waiting(), self.waiting.len());
        if let Policy::Edtlp | Policy::Mgps | Policy::Marginal = self.world.policy {
            assert!(self.waiting.is_empty() || self.idle.is_empty(), "work conserving");
        }
    }
}
