//! The policies that do not adapt.

use super::event::{Arrival, Reason};
use super::name::Policy;
use super::rule::{Choice, Rule, View};

/// static, edtlp, llp and hybrid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed {
    policy: Policy,
}

impl Fixed {
    pub(super) fn new(policy: Policy) -> Fixed {
        Fixed { policy }
    }
}

impl Rule for Fixed {
    fn choose(&mut self, task: &Arrival, view: &View) -> Choice {
        if let Some(home) = self.policy.home(task.strand, view.workers) {
            return Choice::On(home, Reason::Home);
        }
        match self.policy {
            Policy::Llp { workers_per_loop: workers } | Policy::Hybrid { workers_per_loop: workers } if workers > 1 => {
                Choice::Exactly(workers, Reason::Fixed { workers })
            }
            _ => Choice::UpTo(1, Reason::OneEach),
        }
    }

    fn is_constant(&self) -> bool {
        true
    }
}
