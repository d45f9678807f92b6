//! What the threads of a process and its agent tell each other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use super::agent::{self, Waker};
use super::wants::Wants;
use super::{Here, locked};

#[derive(Debug)]
pub(super) struct Told {
    pub(super) wants: Wants,
    /// When the last run ended, in nanoseconds of the agent's clock.
    pub(super) ended_ns: AtomicU64,
    pub(super) refusal: Mutex<Option<String>>,
    agent: OnceLock<Option<Waker>>,
}

impl Told {
    pub(super) fn new() -> Told {
        let (ended_ns, refusal) = (AtomicU64::new(0), Mutex::new(None));
        Told { wants: Wants::new(), ended_ns, refusal, agent: OnceLock::new() }
    }

    /// A run begins on so many workers. The first of a process starts its agent.
    pub(super) fn begins(&self, here: &'static Here, workers: u32) {
        let must_wake = self.wants.begin(workers);
        let agent = self.agent.get_or_init(|| {
            agent::start(here).unwrap_or_else(|refusal| {
                *locked(&self.refusal) = Some(refusal);
                None
            })
        });
        if let Some(agent) = agent.as_ref().filter(|_| must_wake) {
            agent.wake();
        }
    }

    /// A run on so many workers has ended.
    pub(super) fn ends(&self, workers: u32) {
        self.ended_ns.store(agent::now_ns(), Ordering::Relaxed);
        self.wants.end(workers);
    }

    pub(super) fn refusal(&self) -> Option<String> {
        locked(&self.refusal).clone()
    }
}
