//! What every program of the workspace says and how it ends.
//!
//! In come results, failures, signals and panics; out go text on standard output, one line on standard error when
//! something goes wrong, a bar while a person looks on, and an exit status: 0 done, 1 the run failed, 2 the request is
//! wrong, 3 a check could neither show nor refute a result. The command `multigrain` and the programs that it finds beside itself are written on it, so they end alike. This
//! room knows no application and computes nothing.

pub mod definition;
pub mod failure;
pub mod input;
pub mod interrupt;
pub mod memory;
pub mod output;
pub mod progress;
pub mod table;

pub use failure::{Failure, called, say, usage};
pub use input::{Opened, Watched, open};
pub use interrupt::{Interrupt, Undone, undone_by_signals};
pub use output::{has_stdout, leave_stdout_as_it_was, print, write_whole};
pub use progress::Bar;

use multigrain::driver::catches_panics;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

/// Gets the process ready: panics are told as failures, a write beyond the limit on file sizes is an error like others.
/// Before any other thread is started.
pub fn begin() {
    failure::install_panic_hook();
    interrupt::ignore_file_size_signal();
}

/// The whole `main` of a program of its own: reads the arguments, does the work, and ends as [`finish`] does. Asked for its
/// [`definition`], it tells that.
pub fn program<A: clap::Parser>(work: impl FnOnce(&A) -> Result<(), Failure>) -> ExitCode {
    begin();
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == definition::ASK) && arguments.next().is_none() {
        return finish(|| print(&definition::told(A::command())));
    }
    match A::try_parse() {
        Ok(args) => finish(|| work(&args)),
        Err(error) => ExitCode::from(usage(&error)),
    }
}

/// Does the work, tells what went wrong, and gives the exit status. No panic leaves it.
pub fn finish(work: impl FnOnce() -> Result<(), Failure>) -> ExitCode {
    ExitCode::from(finished(work))
}

/// The same, with the exit status as a number.
pub fn finished(work: impl FnOnce() -> Result<(), Failure>) -> u8 {
    catches_panics();
    // Nothing of what the work leaves behind is looked at after a panic.
    match std::panic::catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => failure.told(),
        Err(_) => Failure::panicked().told(),
    }
}
