//! Strands in virtual time: what a team's threads do with searches whose kernels are off-loaded.
//!
//! Which strand a thread goes on with, whether a task is off-loaded, who gets it, how its loop is shared out and who claims
//! which chunk is decided by the rules of the schedule room ([`Lines`], [`Tallies`], [`multigrain_schedule::claim`]), the very
//! ones that threads go by. What is modelled beside them is what threads take: for an off-load, until another thread looks, to
//! claim. How long strands compute between their off-loads, and how long chunks take, is told; [`recorded`] takes it from a
//! trace.
//!
//! Every thread has a processor for itself. What others took of the processors in a traced run is repeated: it lengthened
//! chunks and the time between them, and helpers come as late as they came to the same loop, or to the strand's last one that
//! was shared there.

mod recorded;
mod shared;

use crate::simulation::Simulation;
use crate::time::Time;
use multigrain_schedule::policy::{Arrival, Decision, Departure, PolicyError, Start};
use multigrain_schedule::strands::{Done, Lines, LinesOptions, Next, Slice, Tallies, Way};
pub use recorded::{NotStrands, Recorded, recorded};
use shared::shared;

/// A task of a strand.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// How long the strand computes before it asks for it.
    pub before: Time,
    /// Its kind.
    pub kind: u16,
    /// Iterations of its loop, for what is learnt by length.
    pub iterations: u64,
    /// Chunks of its loop.
    pub chunks: u32,
    /// How long a chunk takes.
    pub chunk: Time,
    /// What those who shared the loop met with in a run, the leader first. Empty if nobody was to share it.
    pub met: Vec<Met>,
    /// How long its leader then waited for helpers that had come to nothing to leave.
    pub waited: Time,
}

/// What a thread met with that shared a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// How late it came; [`Time::MAX`] if all was done before.
    pub late: Time,
    /// Chunks that it executed.
    pub chunks: u32,
    /// How long each took: threads are not equally fast.
    pub chunk: Time,
    /// How much longer these took than others, since its processor was taken away: in the last, after which others had done
    /// the rest.
    pub stalled: Time,
}

impl Task {
    /// How long it takes, executed by one thread.
    fn work(&self) -> Time {
        let leader = self.met.first();
        leader.map_or(self.chunk, |met| met.chunk) * u64::from(self.chunks)
            + leader.map_or(Time::ZERO, |met| met.stalled)
    }
}

/// What a strand does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Its tasks, in order.
    pub tasks: Vec<Task>,
    /// How long it computes after the last.
    pub after: Time,
}

/// What threads take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Of an off-load, until the task begins on the strand's own thread, and from its end until the strand goes on.
    pub offload: [Time; 2],
    /// A task executed as a call.
    pub call: Time,
    /// Until another thread looks that is awake.
    pub hand_over: Time,
    /// Until one does that sleeps.
    pub wake: Time,
    /// How long a thread stays awake that has nothing to do.
    pub spin: Time,
    /// Going on with another strand.
    pub switch: Time,
}

impl Costs {
    /// Threads of today that are all on processors of their own: STRANDS.md of the team's room says where an off-load's time
    /// goes. A thread that sleeps is awake after some 50 us.
    pub const USUAL: Costs = Costs {
        offload: [Time::from_ps(100_000), Time::from_ps(100_000)],
        call: Time::from_ps(10_000),
        hand_over: Time::from_ps(150_000),
        wake: Time::from_ps(50_000_000),
        spin: Time::from_ps(1_000_000_000),
        switch: Time::from_ps(50_000),
    };
}

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// When the last strand ended.
    pub end: Time,
    /// Time that workers executed tasks, all together.
    pub busy: Time,
    /// Tasks that were plain calls, since nobody could have helped.
    pub calls: u64,
    /// Tasks executed by the strand's own thread, since off-loading does not pay, or to measure it.
    pub on_host: u64,
    /// Tasks off-loaded to one worker.
    pub on_one: u64,
    /// Tasks whose loop several workers shared.
    pub on_teams: u64,
    /// Off-loads for which the strand was switched out.
    pub waits: u64,
    /// What happened in the simulation.
    pub events: u64,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A thread's strand has computed: it asks for its next task, or ends.
    Asks { thread: usize },
    /// A thread has executed a task as a call.
    Called { thread: usize, way: Way, taken: Time },
    /// A thread has executed a task, as the one who leads it.
    Led { thread: usize, strand: u32, start: Start, posted: bool },
    /// The strand goes on after a task that its own thread has executed.
    GoesOn { thread: usize },
    /// A thread looks around that had nothing to do.
    Looks { thread: usize },
}

/// How the task of a strand went, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    called: Time,
    begin: Time,
    end: Time,
    busy: Time,
    workers: u32,
    unaided: bool,
    /// It was posted to a thread, and not begun by its strand's own at once.
    posted: bool,
}

#[derive(Clone, Copy)]
struct Strand<'a> {
    program: &'a Program,
    /// Tasks that are done.
    at: usize,
    /// The last of them of which it is known how late helpers came.
    late: Option<&'a [Met]>,
    host: usize,
    place: usize,
    /// It goes on after an off-load, not after a call.
    offloaded: bool,
    record: Record,
}

#[derive(Default)]
struct Thread {
    /// Strands that it executes, by place.
    places: Vec<Option<u32>>,
    /// The strand that it is executing.
    strand: Option<u32>,
    tallies: Tallies,
    slice: Slice,
    /// When its strand was switched in.
    since: Time,
    chosen: Option<Next>,
    post: Option<(u32, Start)>,
    rung: bool,
    /// Since when it has nothing to do; may be later than now, for those who help with a loop.
    waits: Option<Time>,
    /// It is about to look around.
    looks: bool,
}

struct Run<'a> {
    costs: Costs,
    throttle: bool,
    sim: Simulation<Event>,
    lines: Lines,
    strands: Vec<Strand<'a>>,
    /// The workers first, which execute tasks; from the first host on they execute strands.
    threads: Vec<Thread>,
    workers: usize,
    first_host: usize,
    /// Tasks that have arrived and not started, with their strands.
    waiting: Vec<(u64, u32)>,
    /// Tasks that are done and have not departed: their strands.
    done: Vec<(u64, u32)>,
    next_task: u64,
    quiet: bool,
    wanted: bool,
    outcome: Outcome,
}

/// Executes strands in virtual time.
///
/// # Errors
/// The policy does not suit the workers.
pub fn run(options: &LinesOptions, costs: Costs, programs: &[Program]) -> Result<Outcome, PolicyError> {
    let workers = options.workers as usize;
    let (first_host, threads) = options.own_hosts.map_or((0, workers), |hosts| (workers, workers + hosts as usize));
    let lines = Lines::new(LinesOptions { strands: programs.len() as u32, ..*options })?;
    let strand =
        |program| Strand { program, at: 0, late: None, host: 0, place: 0, offloaded: false, record: Record::default() };
    let mut run = Run {
        costs,
        throttle: options.throttle,
        sim: Simulation::new(),
        lines,
        strands: programs.iter().map(strand).collect(),
        workers,
        first_host,
        threads: (0..threads).map(|_| Thread::default()).collect(),
        waiting: Vec::new(),
        done: Vec::new(),
        next_task: 0,
        quiet: false,
        wanted: false,
        outcome: Outcome::default(),
    };
    for thread in 0..run.threads.len() {
        run.threads[thread].looks = true;
        run.sim.after(Time::ZERO, Event::Looks { thread });
    }
    while let Some(event) = run.sim.next() {
        run.handle(event);
    }
    run.outcome.events = run.sim.events();
    Ok(run.outcome)
}

fn ns(time: Time) -> u64 {
    time.ps() / 1000
}

impl<'a> Run<'a> {
    fn handle(&mut self, event: Event) {
        match event {
            Event::Asks { thread } => self.asks(thread),
            Event::Called { thread, way, taken } => self.called(thread, way, taken),
            Event::Led { thread, strand, start, posted } => self.led(thread, strand, start, posted),
            Event::GoesOn { thread } => {
                self.learn(thread);
                self.computes(thread);
            }
            Event::Looks { thread } => {
                self.threads[thread].looks = false;
                self.serve(thread);
            }
        }
    }

    /// Before the lines are told anything: time has passed, and what is done departs.
    fn enter(&mut self) {
        self.lines.advance(ns(self.sim.now()));
        self.departures();
    }

    fn departures(&mut self) {
        for (task, strand) in std::mem::take(&mut self.done) {
            let Strand { host, place, record, .. } = self.strands[strand as usize];
            self.lines.depart(departure(task, &record), host, place);
        }
    }

    /// Afterwards: who starts what, and who looks around. Returns how the task of `own` starts, if `me` is to execute it.
    fn leave(&mut self, me: usize, own: Option<u32>) -> Option<Start> {
        while self.wanted != self.lines.is_wanted() {
            self.wanted = self.lines.is_wanted();
            self.departures();
        }
        let mut mine = None;
        for decision in self.lines.decided().collect::<Vec<_>>() {
            let Decision::Start(start) = decision else { continue };
            let found = self.waiting.iter().position(|(task, _)| *task == start.task).expect("what starts has arrived");
            let (_, strand) = self.waiting.swap_remove(found);
            if own == Some(strand) && start.master as usize == me {
                mine = Some(start);
                continue;
            }
            self.threads[start.master as usize].post = Some((strand, start));
            self.look(start.master as usize);
        }
        self.quiet = self.lines.is_quiet();
        // Who is no host is none of them, either.
        for host in self.lines.to_ring(me.checked_sub(self.first_host).unwrap_or(usize::MAX)).iter() {
            self.ring(self.first_host + host as usize);
        }
        mine
    }

    fn ring(&mut self, thread: usize) {
        self.threads[thread].rung = true;
        self.look(thread);
    }

    /// A thread looks around as soon as it can, if it has nothing to do.
    fn look(&mut self, thread: usize) {
        let now = self.sim.now();
        let Thread { waits: Some(since), looks: false, .. } = self.threads[thread] else { return };
        if since > now {
            return;
        }
        self.threads[thread].looks = true;
        let after = self.costs.until_it_looks(now, since);
        self.sim.after(after, Event::Looks { thread });
    }

    /// What a thread does that executes nothing.
    fn serve(&mut self, thread: usize) {
        let now = self.sim.now();
        self.threads[thread].waits = None;
        let next = match self.threads[thread].chosen.take() {
            Some(next @ (Next::Begin(_) | Next::Resume(_))) => next,
            _ => {
                if let Some((strand, start)) = self.threads[thread].post.take() {
                    return self.execute(thread, strand, start, true);
                }
                self.threads[thread].rung = false;
                self.threads[thread].since = now;
                match thread.checked_sub(self.first_host) {
                    None => Next::Wait,
                    Some(host) => {
                        self.enter();
                        let next = self.lines.next(host);
                        self.leave(thread, None);
                        next
                    }
                }
            }
        };
        match next {
            Next::Begin(strand) => {
                let places = &mut self.threads[thread].places;
                let place = places.iter().position(Option::is_none).unwrap_or_else(|| {
                    places.push(None);
                    places.len() - 1
                });
                places[place] = Some(strand);
                let at = &mut self.strands[strand as usize];
                (at.host, at.place) = (thread - self.first_host, place);
                self.threads[thread].strand = Some(strand);
                self.computes(thread);
            }
            Next::Resume(place) => {
                let strand = self.threads[thread].places[place].expect("only strands that have not ended are in line");
                self.threads[thread].strand = Some(strand);
                if std::mem::take(&mut self.strands[strand as usize].offloaded) {
                    self.learn(thread);
                }
                self.computes(thread);
            }
            Next::Wait => {
                self.threads[thread].waits = Some(now);
                if self.threads[thread].rung || self.threads[thread].post.is_some() {
                    self.look(thread);
                }
            }
            Next::Finished => {}
        }
    }

    /// The strand computes, up to its next task or its end.
    fn computes(&mut self, thread: usize) {
        let Strand { program, at, .. } = self.strand(thread);
        let before = program.tasks.get(*at).map_or(program.after, |task| task.before);
        self.sim.after(before, Event::Asks { thread });
    }

    fn strand(&self, thread: usize) -> &Strand<'a> {
        &self.strands[self.threads[thread].strand.expect("it executes a strand") as usize]
    }

    fn asks(&mut self, thread: usize) {
        let now = self.sim.now();
        let Strand { program, at, place, .. } = *self.strand(thread);
        let strand = self.threads[thread].strand.take().expect("it executes a strand");
        let Some(task) = program.tasks.get(at) else {
            self.threads[thread].places[place] = None;
            self.enter();
            self.lines.end(thread - self.first_host);
            self.leave(thread, None);
            self.outcome.end = now;
            return self.serve(thread);
        };
        self.threads[thread].strand = Some(strand);
        let asks = &mut self.strands[strand as usize];
        asks.at += 1;
        if !task.met.is_empty() {
            asks.late = Some(&task.met);
        }
        let tallies = &mut self.threads[thread].tallies;
        let way = Way::of(self.quiet, self.throttle, || tallies.side(task.kind, task.iterations));
        if way != Way::Offload {
            self.outcome.busy += task.work();
            let taken = task.work() + self.costs.call;
            return self.sim.after(taken, Event::Called { thread, way, taken });
        }
        let number = self.next_task;
        self.next_task += 1;
        self.strands[strand as usize].record = Record { called: now, ..Record::default() };
        self.waiting.push((number, strand));
        self.enter();
        let near = (thread < self.workers).then_some(thread as u32);
        self.lines.arrive(Arrival { task: number, strand, kind: task.kind.into(), iterations: task.chunks, near });
        match self.leave(thread, Some(strand)) {
            Some(start) => self.execute(thread, strand, start, false),
            None => {
                self.outcome.waits += 1;
                self.switch_out(thread, true);
            }
        }
    }

    /// The strand is in line, or its task is elsewhere; its thread turns to others.
    fn switch_out(&mut self, thread: usize, offloaded: bool) {
        let strand = self.threads[thread].strand.take().expect("it executes a strand");
        self.strands[strand as usize].offloaded = offloaded;
        self.threads[thread].waits = Some(self.sim.now());
        self.threads[thread].looks = true;
        self.sim.after(self.costs.switch, Event::Looks { thread });
    }

    fn called(&mut self, thread: usize, way: Way, taken: Time) {
        let task = self.task(thread);
        if way == Way::OnHost {
            self.outcome.on_host += 1;
            self.threads[thread].tallies.on_host(task.kind, task.iterations, taken.ns());
        } else {
            self.outcome.calls += 1;
            if self.threads[thread].slice.called() && self.gives_way_after_slice(thread, false) {
                return;
            }
        }
        self.computes(thread);
    }

    /// The task that the strand of a thread asked for last.
    fn task(&self, thread: usize) -> &'a Task {
        let Strand { program, at, .. } = *self.strand(thread);
        &program.tasks[at - 1]
    }

    fn gives_way_after_slice(&mut self, thread: usize, offloaded: bool) -> bool {
        let now = self.sim.now();
        if !Slice::is_over((now - self.threads[thread].since).ns()) {
            return false;
        }
        self.threads[thread].since = now;
        self.enter();
        let Strand { host, place, .. } = *self.strand(thread);
        let next = self.lines.give_way(host, place);
        self.leave(thread, None);
        let Some(next) = next else { return false };
        self.threads[thread].chosen = Some(next);
        self.switch_out(thread, offloaded);
        true
    }

    /// A thread executes a task as the one who leads it.
    fn execute(&mut self, thread: usize, strand: u32, start: Start, posted: bool) {
        let now = self.sim.now();
        let Strand { program, at, late, .. } = self.strands[strand as usize];
        let task = &program.tasks[at - 1];
        let workers = start.workers.len();
        let begin = now + if posted { Time::ZERO } else { self.costs.offload[0] };
        let (mut end, mut busy, mut unaided) = (begin + task.work(), begin - now + task.work(), false);
        if workers == 1 {
            self.outcome.on_one += 1;
        } else {
            self.outcome.on_teams += 1;
            let helpers: Vec<usize> = start.workers.iter().map(|w| w as usize).filter(|w| *w != thread).collect();
            let comes = |(number, helper): (usize, &usize)| match late.and_then(|late| late.get(1 + number)) {
                Some(met) => begin + met.late,
                None => begin + self.costs.until_it_looks(now, self.threads[*helper].waits.unwrap_or(now)),
            };
            let begins: Vec<Time> = std::iter::once(begin).chain(helpers.iter().enumerate().map(comes)).collect();
            let tally = self.threads[thread].tallies.of(task.kind, task.iterations);
            let done = shared(tally, &begins, now, task);
            (end, busy, unaided) = (done.end + task.waited, done.busy, done.unaided);
            for (helper, (begin, end)) in helpers.into_iter().zip(done.helped) {
                // Whoever comes when nothing is left looks around in vain, but is awake.
                self.threads[helper].waits = Some(end.unwrap_or(begin.min(done.end)));
            }
        }
        self.outcome.busy += busy;
        let record = &mut self.strands[strand as usize].record;
        *record = Record { begin: now, end, busy, workers, unaided, posted, ..*record };
        self.sim.at(end, Event::Led { thread, strand, start, posted });
    }

    fn led(&mut self, thread: usize, strand: u32, start: Start, posted: bool) {
        let Strand { host, place, record, .. } = self.strands[strand as usize];
        if posted {
            self.done.push((start.task, strand));
            if self.wanted {
                self.enter();
                self.leave(usize::MAX, None);
            }
            self.ring(self.first_host + host);
            return self.serve(thread);
        }
        self.enter();
        let goes_on = self.lines.depart_and_go_on(departure(start.task, &record), host, place);
        self.leave(thread, None);
        if !goes_on {
            self.switch_out(thread, true);
        } else if !self.gives_way_after_slice(thread, true) {
            self.sim.after(self.costs.offload[1], Event::GoesOn { thread });
        }
    }

    /// A strand goes on after an off-load.
    fn learn(&mut self, thread: usize) {
        let (task, record, now) = (self.task(thread), self.strand(thread).record, self.sim.now());
        let away_ns = record.posted.then(|| [(record.begin - record.called).ns(), (now - record.end).ns()]);
        let taken_ns = (record.end - record.begin).ns();
        let done = Done { taken_ns, away_ns, workers: record.workers, unaided: record.unaided };
        self.threads[thread].tallies.offloaded(task.kind, task.iterations, done);
    }
}

impl Costs {
    /// How long after now a thread looks around that has had nothing to do since.
    fn until_it_looks(&self, now: Time, since: Time) -> Time {
        if now - since > self.spin { self.wake } else { self.hand_over }
    }
}

fn departure(task: u64, record: &Record) -> Departure {
    Departure { task, span_ns: ns(record.end - record.begin), busy_ns: ns(record.busy) }
}
