//! Granularity control: does it pay to off-load tasks of this kind and length?
//!
//! The paper's condition is t_worker + t_code + 2 t_comm < t_host (Blagojevic et al., PPoPP 2007, section 5.2). Nobody
//! declares these times: the left side is measured as a whole, from the call of the off-load to its return less the time
//! spent waiting for an idle worker, the right side as the run time of the host variant. Off-loading is tried
//! optimistically, throttled where it does not pay, and tried again now and then, the more seldom the more it lost.

use super::estimate::Estimate;

/// So often each side is measured before they are compared.
const TRIALS: u32 = 4;

/// Later trials of the slower side may cost 1/REGRET of the time.
const REGRET: f64 = 128.0;

/// The first of these come so many times sooner, and each that confirms what is known doubles the pause.
const HASTE: u32 = 32;

/// So many tasks in a row are off-loaded where off-loading is tried. The first is not compared: helpers that had nothing to
/// do for longer than they spin have to be woken, which takes ten times as long as a short task, and are awake for the
/// others. A single task could never find out that off-loading all of them pays.
const IN_A_ROW: u32 = 4;

/// So many off-loads in a row to which no helper came say nothing about off-loading: the helpers slept, and are awake for the
/// next, or their processors were taken away. More of them do: they always sleep.
const UNAIDED_MAX: u32 = 2 * IN_A_ROW;

/// The first task of a row counts as so many times a usual one at most: one whose processor was taken away says nothing.
const LATE_MAX: f64 = 32.0;

/// Where a task is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// By the strand's own thread, at once.
    Host,
    /// Off-loaded.
    Worker,
}

/// What is known of tasks of one kind and length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Granularity {
    host: Tried,
    worker: Tried,
    count: u64,
    /// Which side is tried again, and when.
    due: Option<(Side, u64)>,
    /// Later trials that confirmed what was known.
    confirmed: u32,
    /// Tasks that are left of a row.
    row: u32,
    /// The next off-load that is measured is the first of a row.
    wakes: bool,
    /// Off-loads since one to which a helper came.
    unaided: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tried {
    trials: u32,
    taken: Estimate,
}

impl Granularity {
    /// Nothing known yet.
    pub fn new() -> Granularity {
        Granularity::default()
    }

    /// Where the next task goes.
    pub fn choose(&mut self) -> Side {
        self.count += 1;
        if self.row > 0 {
            self.row -= 1;
            return Side::Worker;
        }
        if self.worker.trials == 0 {
            self.worker.trials = TRIALS;
            (self.row, self.wakes) = (TRIALS, true);
            return Side::Worker;
        }
        if self.host.trials < TRIALS {
            self.host.trials += 1;
            return Side::Host;
        }
        if !self.host.taken.is_known() || !self.worker.taken.is_known() {
            return Side::Worker;
        }
        let (fast, slow, faster, slower) = match self.faster() {
            Side::Worker => (self.worker, self.host, Side::Worker, Side::Host),
            Side::Host => (self.host, self.worker, Side::Host, Side::Worker),
        };
        let in_a_row = if slower == Side::Worker { IN_A_ROW } else { 1 };
        let pause = (self.regret() * f64::from(in_a_row) * slow.taken.slower_than(fast.taken)) as u64;
        match self.due {
            Some((side, due)) if side == slower && due <= self.count => {
                self.due = Some((slower, self.count + pause));
                self.confirmed += 1;
                (self.row, self.wakes) = (in_a_row - 1, in_a_row > 1);
                slower
            }
            Some((side, _)) if side == slower => faster,
            _ => {
                self.due = Some((slower, self.count + pause));
                faster
            }
        }
    }

    /// How many tasks as long as the trial was: the pause after it.
    fn regret(&self) -> f64 {
        REGRET / f64::from(HASTE >> self.confirmed.min(HASTE.ilog2()))
    }

    /// An off-loaded loop of so many iterations took so long, and whoever led it executed all of it.
    pub fn unaided(&mut self, iterations: u64, taken_ns: f64) {
        let before = self.unaided;
        self.wakes |= before < UNAIDED_MAX;
        self.measured(Side::Worker, iterations, taken_ns);
        self.unaided = before.saturating_add(1);
    }

    /// A task of so many iterations took so long there.
    pub fn measured(&mut self, side: Side, iterations: u64, taken_ns: f64) {
        let measurement = taken_ns / iterations.max(1) as f64;
        if side == Side::Worker {
            self.unaided = 0;
        }
        if side == Side::Worker && std::mem::take(&mut self.wakes) {
            // What waking took is paid for all the same: the next row comes the later.
            let (regret, host) = (self.regret(), self.host.taken);
            if let Some((Side::Worker, due)) = &mut self.due
                && host.is_known()
            {
                *due += (regret * (measurement / host.value().max(f64::MIN_POSITIVE)).min(LATE_MAX)) as u64;
            }
            return;
        }
        let tried = match side {
            Side::Worker => &mut self.worker,
            Side::Host => &mut self.host,
        };
        tried.taken.add(measurement);
        // A trial of the slower side that was faster: the next task tries it again, so that what was true before
        // (helpers asleep, the other strands not begun) is not believed for long.
        let (fast, faster) = match self.faster() {
            Side::Worker => (self.worker, Side::Worker),
            Side::Host => (self.host, Side::Host),
        };
        if side != faster && measurement < fast.taken.value() {
            self.due = Some((side, self.count));
            self.confirmed = 0;
        }
    }

    /// The side that pays, as far as is known: optimistic until both were measured.
    fn faster(&self) -> Side {
        let known = self.host.taken.is_known() && self.worker.taken.is_known();
        match known && self.host.taken.value() <= self.worker.taken.value() {
            true => Side::Host,
            false => Side::Worker,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time of `tasks` tasks, and how many of the last half were off-loaded.
    fn total(tasks: u64, host_ns: impl Fn(u64) -> f64, worker_ns: impl Fn(u64) -> f64) -> (f64, u64) {
        let (mut granularity, mut sum_ns, mut off_loaded) = (Granularity::new(), 0.0, 0);
        for task in 0..tasks {
            let side = granularity.choose();
            let taken_ns = if side == Side::Host { host_ns(task) } else { worker_ns(task) };
            granularity.measured(side, 7, taken_ns);
            sum_ns += taken_ns;
            off_loaded += u64::from(side == Side::Worker && task >= tasks / 2);
        }
        (sum_ns, off_loaded)
    }

    #[test]
    fn the_faster_side_is_found_and_trials_cost_little() {
        for (host_ns, worker_ns) in [(1_000.0, 5_000.0), (5_000.0, 1_000.0), (1_000.0, 990.0), (1.0, 1e6)] {
            let tasks = 20_000;
            let best_ns = tasks as f64 * f64::min(host_ns, worker_ns);
            let first_ns = 16.0 * (host_ns + worker_ns);
            let (sum_ns, off_loaded) = total(tasks, |_| host_ns, |_| worker_ns);
            assert!(sum_ns <= best_ns * (1.0 + 1.0 / REGRET) + first_ns, "{host_ns} {worker_ns}: {sum_ns}");
            assert_eq!(off_loaded > tasks / 4, worker_ns < host_ns, "{host_ns} {worker_ns}: {off_loaded}");
        }
    }

    #[test]
    fn a_beginning_in_turbulence_is_forgotten() {
        // The first off-loads find their helpers asleep; then both sides are noisy.
        let noise = |task: u64| (task * 7_919 % 13) as f64 * 10.0;
        let worker_ns = |task: u64| if task < 8 { 9_000.0 } else { 600.0 + noise(task) };
        let (sum_ns, off_loaded) = total(2_000, |task| 1_000.0 + noise(task), worker_ns);
        assert!(off_loaded > 950 && sum_ns < 2_000.0 * 660.0 * 1.5, "{off_loaded} {sum_ns}");
    }

    /// Helpers sleep when they had nothing to do for 50 us, and waking one takes as long again; the first off-loads of all
    /// were disturbed. One off-load alone is always slow, all of them are fast: that is found, whatever was believed.
    #[test]
    fn sleeping_helpers_do_not_make_off_loading_look_slow() {
        let (mut granularity, mut now_ns, mut busy_until_ns, mut off_loaded) = (Granularity::new(), 0.0, 0.0, 0);
        for task in 0..20_000 {
            let side = granularity.choose();
            let taken_ns = match side {
                Side::Host => 5_000.0,
                Side::Worker if task < 20 => 200_000.0,
                Side::Worker if now_ns - busy_until_ns > 50_000.0 => 60_000.0,
                Side::Worker => 3_500.0,
            };
            now_ns += taken_ns;
            if side == Side::Worker {
                busy_until_ns = now_ns;
                off_loaded += u32::from(task >= 10_000);
            }
            granularity.measured(side, 15, taken_ns);
        }
        assert!(off_loaded > 9_000, "{off_loaded}");
    }

    /// Now and then helpers sleep, or lose their processors, for some off-loads in a row: to what such an off-load takes
    /// nothing is lost, so nothing is changed. Where they always sleep, off-loading never pays, and that is found.
    #[test]
    fn helpers_that_do_not_come() {
        for (always, expected) in [(false, 19_000..=20_000), (true, 0..=1_000)] {
            let (mut granularity, mut off_loaded) = (Granularity::new(), 0);
            for task in 0..20_000 {
                match granularity.choose() {
                    Side::Host => granularity.measured(Side::Host, 15, 5_000.0),
                    Side::Worker if always || task % 50 < 8 => granularity.unaided(15, 9_000.0),
                    Side::Worker => granularity.measured(Side::Worker, 15, 3_500.0),
                }
                off_loaded += u32::from(granularity.faster() == Side::Worker);
            }
            assert!(expected.contains(&off_loaded), "always: {always}, {off_loaded}");
        }
    }

    /// The same helpers, but kernels come so seldom that they always sleep: off-loading never pays, and to find that out
    /// again and again costs little.
    #[test]
    fn trials_of_sleeping_helpers_cost_little() {
        let (mut granularity, mut sum_ns, tasks) = (Granularity::new(), 0.0, 20_000);
        for _ in 0..tasks {
            let side = granularity.choose();
            let taken_ns = if side == Side::Host { 5_000.0 } else { 60_000.0 };
            sum_ns += taken_ns;
            granularity.measured(side, 15, taken_ns);
        }
        let (least_ns, first_ns) = (5_000.0 * f64::from(tasks), 40.0 * 60_000.0);
        assert!(sum_ns < least_ns * (1.0 + 2.0 / REGRET) + first_ns, "{sum_ns} {least_ns}");
    }

    #[test]
    fn a_change_is_noticed() {
        let (_, off_loaded) = total(20_000, |_| 1_000.0, |task| if task < 5_000 { 3_000.0 } else { 500.0 });
        assert!(off_loaded > 9_500, "{off_loaded}");
    }
}
