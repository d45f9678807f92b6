//! What every program of the workspace says and how it ends.
//!
//! In come results, failures, signals and panics; out go text on standard output, one line on standard error when
//! something goes wrong, a bar while a person looks on, and an exit status: 0 done, 1 the run failed, 2 the request is
//! wrong. The command `multigrain` and the programs that it finds beside itself are written on it, so they end alike. This
//! room knows no application and computes nothing.

pub mod failure;
pub mod interrupt;
pub mod output;
pub mod progress;

pub use failure::{Failure, say, usage};
pub use interrupt::{Interrupt, Undone, undone_by_signals};
pub use output::{print, write_whole};
pub use progress::Bar;

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

/// Gets the process ready: panics are told as failures, a write beyond the limit on file sizes is an error like others.
/// Before any other thread is started.
pub fn begin() {
    failure::install_panic_hook();
    interrupt::ignore_file_size_signal();
}

/// Does the work, tells what went wrong, and gives the exit status. No panic leaves it.
pub fn finish(work: impl FnOnce() -> Result<(), Failure>) -> ExitCode {
    // Nothing of what the work leaves behind is looked at after a panic.
    match std::panic::catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => failure.report(),
        Err(_) => Failure::panicked().report(),
    }
}
