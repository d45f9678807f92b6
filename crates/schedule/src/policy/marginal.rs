//! marginal, a policy of our own: workers go to loops by share and by measured gain.
//!
//! Where mgps falls short, and what is done instead:
//!
//! 1. *It leaves workers idle.* Between P/2 and P tasks it spreads no loop (5 strands on 8 workers: 3 idle), and below
//!    P/2 it gives floor(P/T) to each (3 strands: 6 of 8). Here a task that arrives is given what is idle, up to its
//!    strand's share of all workers, rounded *up*: with 5 strands, whoever comes when two workers are idle gets both, so
//!    that the surplus goes round and every strand gains. Who rounds down rations what nobody else can use.
//! 2. *It learns late.* Its regime is that of the last P off-loads. Here the share follows from the strands in progress
//!    and the idle workers at this moment, so the last strand of a run has all workers from its next off-load on.
//! 3. *It never asks whether a loop gains.* In the paper's table 2 eight workers take 24.4 s where five take 18.1 s, and
//!    mgps takes all eight. Here the time an iteration takes on each number of workers is measured, by kind of task and
//!    power of two of its length, and of the numbers within the share the fastest is taken: a worker is given where
//!    its marginal gain is positive.
//!
//! On two workers there is nothing to compare and little to share. What is left is (2), and on real computers that is less
//! than what turns of one policy differ: searches whose off-loads take some 25 us took it 0.97 to 0.99 of mgps's time
//! (1, 3 and 5 searches; medians of 12 to 60 turns), both about 0.93 of edtlp's for 3 and 5 and 0.79 for 1, within 2 % of
//! `llp:2` there. Whether off-loads of a few microseconds pay depends on helpers that are awake; that is
//! [`super::Granularity`]'s to find out, for every policy alike.
//!
//! Why it is never (much) worse than edtlp: a strand never waits for a worker where it would not under edtlp, because
//! of the idle workers one is kept for each strand that is in progress without a task, unless such strands occupy
//! workers of their own (a property test holds this); a task that others wait behind gets one worker; and a number of
//! workers that is slower than one is taken only to measure it. What is lost by measuring is bounded: each number
//! first [`TRIALS`] times, afterwards so seldom that what all trials lose stays below 1 / [`REGRET`] of the time. The
//! rest is noise of measurement: near-ties may be taken for one another.

use super::estimate::Estimate;
use super::event::{Arrival, Departure, Reason};
use super::rule::{Choice, Rule, View};
use std::collections::HashMap;

/// So often each number of workers is measured before the fastest is chosen: enough that one preemption does not
/// decide.
const TRIALS: u32 = 4;

/// One measurement is enough of a number of workers so many times slower than another.
const HOPELESS: f64 = 1.5;

/// All later trials together may cost 1/REGRET of the time.
const REGRET: f64 = 128.0;

#[derive(Debug)]
pub(super) struct Marginal {
    /// Numbers of workers that are compared, ascending: 1, 2, 3, 4, 6, 8, 12 and so on, and all.
    ladder: Vec<u32>,
    classes: HashMap<(u32, u32), Class>,
    /// One worker is not among the numbers that are compared, where there are others.
    several: bool,
}

/// What is known of tasks of one kind and length.
#[derive(Debug)]
struct Class {
    /// Tasks of the class that were decided about.
    count: u64,
    /// By place in the ladder.
    rungs: Vec<Rung>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Rung {
    /// Nanoseconds an iteration.
    taken: Estimate,
    /// Trials under way and done.
    tried: u32,
    /// The count of the class at which it is to be measured again.
    due: u64,
}

impl Marginal {
    pub(super) fn new(workers: u32) -> Marginal {
        let powers = (0..=workers.ilog2()).map(|power| 1 << power);
        let mut ladder: Vec<u32> =
            powers.flat_map(|power| [power, power + power / 2]).filter(|&k| k <= workers).chain([workers]).collect();
        ladder.sort_unstable();
        ladder.dedup();
        Marginal { ladder, classes: HashMap::new(), several: false }
    }

    /// Hosts find out themselves which tasks are faster alone, and execute those as calls ([`super::Granularity`]): what
    /// arrives is compared on several workers only. Two who learn the same from each other's leftovers learn late.
    pub(super) fn leave_calls_to_hosts(&mut self) {
        self.several = true;
    }

    fn class(&mut self, task: &Arrival) -> (&mut Class, &[u32]) {
        let key = (task.kind, task.iterations.max(1).ilog2());
        let rungs = self.ladder.len();
        let class = self.classes.entry(key).or_insert_with(|| Class { count: 0, rungs: vec![Rung::default(); rungs] });
        (class, &self.ladder)
    }
}

/// Workers that a task may have without taking them from another strand.
fn share(view: &View) -> u32 {
    if view.waiting > 1 {
        return 1;
    }
    let with_tasks = view.running + view.waiting;
    let strands = view.strands.max(with_tasks).max(1);
    let about_to_come = (strands - with_tasks).saturating_sub(view.occupied);
    let spare = view.idle.saturating_sub(about_to_come).max(1);
    spare.min(view.workers.div_ceil(strands))
}

impl Rule for Marginal {
    fn choose(&mut self, task: &Arrival, view: &View) -> Choice {
        let share = share(view).min(task.iterations.max(1));
        if share == 1 {
            return Choice::UpTo(1, Reason::Share { workers: 1 });
        }
        let within = self.ladder.iter().take_while(|&&k| k <= share).count();
        let first = usize::from(self.several && within > 1);
        if first + 1 == within {
            // Nothing to compare.
            return Choice::UpTo(self.ladder[first], Reason::Share { workers: share });
        }
        let (class, ladder) = self.class(task);
        class.count += 1;
        let rungs = &mut class.rungs[..within];
        let known = (first..within).filter(|&place| rungs[place].taken.is_known());
        let taken = |place: usize| rungs[place].taken.value();
        let fastest = known.min_by(|&a, &b| taken(a).total_cmp(&taken(b))).unwrap_or(first);
        let best = rungs[fastest].taken;
        // What has not been tried often enough, in rounds, the largest first, since most loops gain.
        let settled =
            |rung: &Rung| rung.tried >= TRIALS || rung.taken.is_known() && rung.taken.slower_than(best) > HOPELESS;
        let unsettled = (first..within).rev().filter(|&place| !settled(&rungs[place]));
        if let Some(place) = unsettled.min_by_key(|&place| rungs[place].tried) {
            rungs[place].tried += 1;
            return Choice::UpTo(ladder[place], Reason::Trial { workers: share });
        }
        // Trials cost the more the slower they are: the pause after one is such that its loss is a fixed part of it.
        for place in (first..within).filter(|&place| place != fastest) {
            let pause = (REGRET * within as f64 * rungs[place].taken.slower_than(best)) as u64;
            let due = &mut rungs[place].due;
            if *due == 0 {
                *due = class.count + pause;
            } else if *due <= class.count {
                *due = class.count + pause;
                return Choice::UpTo(ladder[place], Reason::Trial { workers: share });
            }
        }
        let reason = match fastest + 1 == within {
            true => Reason::Share { workers: share },
            false => Reason::Slower { workers: share },
        };
        Choice::UpTo(ladder[fastest], reason)
    }

    /// There is nothing to compare.
    fn is_constant(&self) -> bool {
        self.ladder.len() <= 1 + usize::from(self.several)
    }

    fn departed(&mut self, _now_ns: u64, task: &Arrival, degree: u32, departure: &Departure, _view: &View) {
        if self.is_constant() {
            return;
        }
        let iteration_ns = departure.span_ns as f64 / f64::from(task.iterations.max(1));
        let (class, ladder) = self.class(task);
        let Ok(place) = ladder.binary_search(&degree) else { return };
        class.rungs[place].taken.add(iteration_ns);
        // A number that was taken for slower and is faster now is tried again by the next task: soon it is known.
        let known = class.rungs.iter().filter(|rung| rung.taken.is_known());
        let best = known.map(|rung| rung.taken.value()).fold(f64::INFINITY, f64::min);
        if iteration_ns < best {
            class.rungs[place].due = class.count.max(1);
        }
    }
}
