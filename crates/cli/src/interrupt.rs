//! Ctrl-C, and the signals that ask a process to end.
//!
//! The first one raises the run's [`Abort`]: transfers under way end, what is complete is recorded, the run returns.
//! The second one ends the process at once. After the run there is nothing to keep in order, so one is enough.

use crate::failure::{Failure, say};
use multigrain::Abort;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit status after a second Ctrl-C: what a shell gives for a process that SIGINT ended.
const KILLED: i32 = 128 + 2;

/// The way from a signal to the run.
pub(crate) struct Interrupt {
    /// Raised by the first signal.
    pub(crate) abort: Arc<Abort>,
    run_is_over: Arc<AtomicBool>,
}

impl Interrupt {
    /// Installs the handler for SIGINT, SIGTERM and SIGHUP.
    pub(crate) fn install() -> Result<Interrupt, Failure> {
        let interrupt = Interrupt { abort: Arc::new(Abort::new()), run_is_over: Arc::new(AtomicBool::new(false)) };
        let (abort, over) = (interrupt.abort.clone(), interrupt.run_is_over.clone());
        // ctrlc calls this on a thread of its own, so locks may be taken.
        ctrlc::set_handler(move || {
            // Relaxed: the flag guards nothing but this choice.
            if over.load(Ordering::Relaxed) {
                say("interrupted after the run; what is written is complete, the rest is not written");
                std::process::exit(1);
            }
            if abort.is_raised() {
                std::process::exit(KILLED);
            }
            abort.raise();
        })
        .map_err(|e| Failure::Run(format!("cannot listen for Ctrl-C: {e}")))?;
        Ok(interrupt)
    }

    /// Says that what follows may be ended at any moment.
    pub(crate) fn run_is_over(&self) {
        self.run_is_over.store(true, Ordering::Relaxed);
    }
}

/// Lets a write beyond the limit on file sizes (`ulimit -f`) fail with an error that can be told and cleaned up after,
/// instead of ending the process.
pub(crate) fn ignore_file_size_signal() {
    // SAFETY: ignoring a signal installs no handler; it is done before any other thread is started.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
