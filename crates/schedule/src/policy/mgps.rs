//! mgps, the paper's adaptive policy: multigrain parallelism scheduling (Blagojevic et al., PPoPP 2007, section 5.4).
//!
//! How the text was read, for P workers where it writes 8:
//!
//! - *Window.* "We maintain a history of length equal to the number of SPEs": the regime is decided anew at every P-th
//!   departure, from what these P tasks saw.
//! - *U*, "how many discrete tasks were off-loaded to SPEs while the departing task was executing": the most tasks that
//!   ran at one moment of its execution, itself among them; of the window, the largest. (To count instead all tasks
//!   that came and went meanwhile would take one strand of many short tasks beside a long one for much parallelism.)
//! - *T*, "the number of tasks waiting for off-loading": the most that wanted workers at one moment of the window,
//!   with and without having them. Taken literally, without those that run, nobody waits as long as a worker is idle,
//!   and the quotient is not defined where it is needed most.
//! - *Regime.* U <= P/2: loops on floor(P/T) workers each. U > P/2: one worker each, as edtlp; also before the first
//!   window is over ("initially, upon arrivals, the scheduler conservatively assigns one SPE").
//! - *Timer*, for programs that off-load too seldom: if no window was completed for [`TIMER_NS`], the regime is decided
//!   from what there is, the tasks that still run included. If nothing ran, nothing was learnt, and the regime stays.

use super::event::{Arrival, Departure, Reason};
use super::rule::{Choice, Rule, View};

/// After how long without a decision the timer decides: 10 ms. The paper gives no figure; it is the shortest time slice
/// of the Linux kernels of its day, and a thousand of today's off-loads.
pub const TIMER_NS: u64 = 10_000_000;

#[derive(Debug)]
pub(super) struct Mgps {
    workers: u32,
    regime: Regime,
    /// Of each task that runs: its name, and the most tasks that ran at once since it started.
    seen_by: Vec<(u64, u32)>,
    departures: u32,
    at_once: u32,
    wanting: u32,
    decided_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Regime {
    workers_per_loop: u32,
    reason: Reason,
}

impl Mgps {
    pub(super) fn new(workers: u32) -> Mgps {
        Mgps {
            workers,
            regime: Regime { workers_per_loop: 1, reason: Reason::Unseen },
            seen_by: Vec::with_capacity(workers as usize),
            departures: 0,
            at_once: 0,
            wanting: 0,
            decided_ns: 0,
        }
    }

    fn decide(&mut self, now_ns: u64) {
        let at_once = self.at_once;
        let wanting = self.wanting.max(at_once).max(1);
        self.regime = if 2 * at_once <= self.workers {
            let workers_per_loop = (self.workers / wanting).max(1);
            Regime { workers_per_loop, reason: Reason::LoopParallelism { at_once, wanting } }
        } else {
            Regime { workers_per_loop: 1, reason: Reason::TaskParallelism { at_once } }
        };
        self.decided_ns = now_ns;
        (self.departures, self.at_once, self.wanting) = (0, 0, 0);
    }

    fn look(&mut self, view: &View) {
        self.wanting = self.wanting.max(view.running + view.waiting);
    }
}

impl Rule for Mgps {
    fn choose(&mut self, _task: &Arrival, _view: &View) -> Choice {
        Choice::UpTo(self.regime.workers_per_loop, self.regime.reason)
    }

    fn arrived(&mut self, _now_ns: u64, view: &View) {
        self.look(view);
    }

    fn started(&mut self, task: &Arrival, _degree: u32, view: &View) {
        self.seen_by.push((task.task, 0));
        for (_, most) in &mut self.seen_by {
            *most = (*most).max(view.running);
        }
    }

    fn departed(&mut self, now_ns: u64, task: &Arrival, _degree: u32, _departure: &Departure, view: &View) {
        if let Some(found) = self.seen_by.iter().position(|(name, _)| *name == task.task) {
            let (_, most) = self.seen_by.swap_remove(found);
            self.at_once = self.at_once.max(most);
        }
        // The departing task wanted workers in this window, too.
        self.wanting = self.wanting.max(view.running + view.waiting + 1);
        self.departures += 1;
        if self.departures == self.workers {
            self.decide(now_ns);
        }
    }

    fn tick(&mut self, now_ns: u64, view: &View) {
        if now_ns.saturating_sub(self.decided_ns) < TIMER_NS {
            return;
        }
        self.decided_ns = now_ns;
        if self.departures == 0 && view.running == 0 {
            return;
        }
        self.look(view);
        let running = self.seen_by.iter().map(|(_, most)| *most).max().unwrap_or(0);
        self.at_once = self.at_once.max(running);
        self.decide(now_ns);
    }

    fn next_tick_ns(&self) -> Option<u64> {
        Some(self.decided_ns + TIMER_NS)
    }
}
