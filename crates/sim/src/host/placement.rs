//! To which hardware thread a thread goes: when it wakes, when it is new, and when another has nothing to do.
//!
//! Source: kernel/sched.c at v2.6.24, `try_to_wake_up`, `sched_balance_self`, `find_busiest_group` and what they call, in a domain
//! of hardware threads of one core: it tolerates an imbalance of a tenth, wakes and forks look for idle hardware threads.

use super::fair::FairQueues;
use crate::time::Time;

/// What one queue may have more than another without being relieved, percent of the other; wakes and forks: half the excess.
const IMBALANCE: u64 = 110;
const IMBALANCE_WAKING: u64 = 105;
/// How seldom a busy hardware thread looks at the others, in times that an idle one looks.
const BUSY: u64 = 64;
/// Weight of a thread of nice 0: what loads are rounded by.
const ONE: u64 = super::class::WEIGHT_USUAL;
/// Who has run so shortly before stays where its data are. Source: `sysctl_sched_migration_cost`.
const WARM: Time = Time::from_ps(500_000_000);

impl FairQueues {
    /// Where a thread that slept on `last` wakes, if who wakes it runs on `waker`.
    pub(super) fn waking(&self, thread: u32, last: usize, waker: usize) -> usize {
        let mut cpu = last;
        if waker != last {
            let (load, here) = (self.queues[last].load, self.queues[waker].load);
            let one = here.checked_div(self.queues[waker].runnable).unwrap_or(ONE);
            let weight = self.threads[thread as usize].weight;
            if (here <= load && here + load <= one) || 100 * (here + weight) <= IMBALANCE_WAKING * load {
                cpu = waker;
            }
        }
        // With more than one thread there, the others are taken to be busy as well.
        if self.fair.wakes_idle && self.queues[cpu].runnable == 1 {
            cpu = self.queues.iter().position(|queue| queue.runnable == 0).unwrap_or(cpu);
        }
        cpu
    }

    /// Where a thread begins whose parent runs on this one.
    pub(super) fn forking(&self, parent: usize) -> usize {
        let others = (0..self.queues.len()).filter(|cpu| *cpu != parent);
        let idlest = others.min_by_key(|cpu| self.queues[*cpu].load);
        idlest
            .filter(|cpu| 100 * self.queues[parent].load >= IMBALANCE_WAKING * self.queues[*cpu].load)
            .unwrap_or(parent)
    }

    pub(super) fn least_loaded(&self) -> usize {
        (0..self.queues.len()).min_by_key(|cpu| self.queues[*cpu].load).unwrap_or(0)
    }

    /// How long an idle hardware thread waits before it looks for work elsewhere, if there is some.
    pub(super) fn balance_after(&self, cpu: usize) -> Option<Time> {
        let nothing = self.queues[cpu].runnable == 0;
        (nothing && self.queues.iter().any(|queue| queue.runnable > 1)).then_some(self.fair.balance)
    }

    /// An idle hardware thread looks.
    pub(super) fn balance(&mut self, cpu: usize) {
        if self.queues[cpu].runnable == 0 {
            self.pull(cpu, None);
        }
    }

    /// A busy one looks now and then.
    pub(super) fn balance_busy(&mut self, cpu: usize) {
        self.queues[cpu].ticks += 1;
        if self.fair.tick.ps() * self.queues[cpu].ticks >= self.fair.balance.ps() * BUSY {
            self.queues[cpu].ticks = 0;
            self.pull(cpu, None);
        }
    }

    /// Takes what waits at the busiest hardware thread until both have the same; `now` if only what has grown cold.
    pub(super) fn pull(&mut self, cpu: usize, now: Option<Time>) {
        let others = (0..self.queues.len()).filter(|other| *other != cpu && self.queues[*other].runnable > 1);
        let Some(busiest) = others.max_by_key(|other| (self.queues[*other].load, std::cmp::Reverse(*other))) else {
            return;
        };
        let (most, here) = (self.queues[busiest].load, self.queues[cpu].load);
        let mean = self.queues.iter().map(|queue| queue.load).sum::<u64>() / self.queues.len() as u64;
        let one = most / self.queues[busiest].runnable;
        if here >= mean || 100 * most <= IMBALANCE * here || most <= one {
            return;
        }
        let mut excess = (most - mean).min(most - one).min(mean - here);
        if excess < one {
            let lighter = self.queues[cpu].runnable > 0 && one > here / self.queues[cpu].runnable;
            if most - here + ONE < one * if lighter { 1 } else { 2 } {
                return;
            }
            excess = one;
        }
        let waiting: Vec<_> = self.queues[busiest].waiting.iter().copied().collect();
        for entry in waiting {
            let of = self.threads[entry.2 as usize];
            let warm = now.is_some_and(|now| now - of.touched < WARM);
            if warm || of.weight / 2 > excess + ONE {
                continue;
            }
            self.migrate(entry, busiest, cpu);
            excess = excess.saturating_sub(of.weight);
            if excess == 0 {
                break;
            }
        }
    }
}
