//! What is recorded of a simulated run: the same as of a measured one.

use super::interpreter::Interpreter;
use crate::time::{Time, tick};
use multigrain_plan::Plan;
use multigrain_trace::{Flow, Idleness, Kind, Recorder};

impl Interpreter<'_> {
    /// A child began a part that `leader` handed out at `since`.
    pub(super) fn record_begin(&mut self, edge: usize, workers: std::ops::Range<usize>, leader: usize, since: Time) {
        if !self.traces() || workers.start == leader {
            return;
        }
        let now = self.now();
        for worker in workers {
            self.idle(worker, since, now, edge, Idleness::Start, leader, 0);
        }
    }

    /// A child's part is over.
    pub(super) fn record_scope(&mut self, plan: &Plan, child: usize, workers: std::ops::Range<usize>, since: Time) {
        let Some(numbers) = self.names().and_then(|names| names.of_plan(plan)) else { return };
        let now = tick(self.now());
        for worker in workers {
            let recorder = self.recorder(worker);
            recorder.interval(Kind::Scope, tick(since), now, plan.edge as u16, numbers.plan, child as u32, 0);
            recorder.left(now);
        }
    }

    /// All children have come together again: each worker waited for the last.
    pub(super) fn record_join(&mut self, edge: usize, workers: std::ops::Range<usize>) {
        if !self.traces() {
            return;
        }
        let now = tick(self.now());
        let Some(last) = workers.clone().max_by_key(|&w| self.recorder(w).has_left()) else { return };
        for worker in workers {
            let recorder = self.recorder(worker);
            let left = recorder.has_left();
            recorder.interval(Kind::Idle, left, now.max(left), edge as u16, last as u32, 0, Idleness::Join as u8);
        }
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn idle(
        &mut self,
        worker: usize,
        from: Time,
        to: Time,
        edge: usize,
        cause: Idleness,
        other: usize,
        number: u32,
    ) {
        let (edge, other) = (edge as u16, other as u32);
        self.recorder(worker).interval(Kind::Idle, tick(from), tick(to), edge, other, number, cause as u8);
    }

    pub(super) fn record_wait(&mut self, workers: std::ops::Range<usize>, since: Time, edge: usize, transfer: u32) {
        let (now, issuer) = (tick(self.now()), workers.start as u32);
        for worker in workers {
            self.recorder(worker).interval(Kind::Wait, tick(since), now, edge as u16, issuer, transfer, 0);
        }
    }

    pub(super) fn record_transfer(
        &mut self,
        worker: usize,
        times: [Time; 3],
        edge: usize,
        number: u32,
        slot: u32,
        up: bool,
    ) {
        let flow = if up { Flow::Up } else { Flow::Down };
        self.recorder(worker).transfer(times.map(tick), edge as u16, number, slot, flow);
    }

    fn recorder(&mut self, worker: usize) -> &mut Recorder {
        &mut self.recorders[worker]
    }
}
