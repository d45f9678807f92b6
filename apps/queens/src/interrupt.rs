//! Ctrl-C, and the signals that ask a process to end: the first lets the count write its checkpoint and say so, a second
//! one ends the process.

use multigrain::{Abort, whole};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit status after a second signal: what a shell gives for a process that SIGINT ended.
const KILLED: i32 = 128 + 2;

/// The way from a signal to the count.
pub(crate) struct Interrupt {
    /// Raised by the first signal.
    pub(crate) abort: Arc<Abort>,
    over: Arc<AtomicBool>,
}

impl Interrupt {
    /// Installs the handler for SIGINT, SIGTERM and SIGHUP. Where the system does not let it, signals end the process,
    /// which costs what was counted since the last checkpoint and nothing else.
    pub(crate) fn install() -> Interrupt {
        let interrupt = Interrupt { abort: Arc::new(Abort::new()), over: Arc::default() };
        let (abort, over) = (interrupt.abort.clone(), interrupt.over.clone());
        // On a thread of its own, so locks may be taken.
        let handler = move || {
            if abort.is_raised() || over.load(Ordering::Acquire) {
                whole::discard_all();
                std::process::exit(KILLED);
            }
            abort.raise();
        };
        let _ = ctrlc::set_handler(handler);
        interrupt
    }

    /// Says that there is nothing left to be kept: from here on one signal ends the process.
    pub(crate) fn run_is_over(&self) {
        self.over.store(true, Ordering::Release);
    }
}
