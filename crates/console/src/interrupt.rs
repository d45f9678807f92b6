//! Ctrl-C, and the signals that ask a process to end.
//!
//! ```text
//! Preparing --begin--> Running --run_is_over--> Over
//!                              --is_kept_beside--> Kept --run_is_over--> Over
//!           --begin_stream--> Streaming --run_is_over--> Over
//! ```
//! Before the run, while inputs are read or made and the plan is sought, no file of a result is there yet: a signal ends
//! the process at once. During the run the first one raises the run's [`Abort`]: transfers under way end, what is
//! complete is recorded, the run returns; a second one ends the process. A run that only writes a stream has nothing to record,
//! and whoever reads the stream may never read on: there, too, the first signal ends the process. After the run there is nothing to keep in order,
//! so one is enough; where what is made of results then can be made again from what is kept, it is told so.

use crate::failure::{Failure, say};
use multigrain::{Abort, whole};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Exit status after a second Ctrl-C: what a shell gives for a process that SIGINT ended.
const KILLED: i32 = 128 + 2;

/// How far the command is.
#[derive(Clone)]
enum State {
    Preparing,
    Running,
    Streaming,
    Kept(PathBuf),
    Over,
}

/// The way from a signal to the run.
pub struct Interrupt {
    /// Raised by the first signal.
    pub abort: Arc<Abort>,
    /// Set by SIGHUP where that asks to read what was asked for again.
    pub again: Arc<AtomicBool>,
    state: Arc<Mutex<State>>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Interrupt {
    /// Listens for SIGINT, SIGTERM and SIGHUP.
    pub fn install() -> Result<Interrupt, Failure> {
        Interrupt::listen(false)
    }

    /// The same for what serves until it is told to end: SIGHUP asks it to read again what it was asked for.
    pub fn install_reading_again() -> Result<Interrupt, Failure> {
        Interrupt::listen(true)
    }

    fn listen(reads_again: bool) -> Result<Interrupt, Failure> {
        let state = Arc::new(Mutex::new(State::Preparing));
        let interrupt = Interrupt { abort: Arc::new(Abort::new()), again: Arc::default(), state };
        let (abort, again, state) = (interrupt.abort.clone(), interrupt.again.clone(), interrupt.state.clone());
        let failed = |e: std::io::Error| Failure::Run(format!("cannot listen for Ctrl-C: {e}"));
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(failed)?;
        // A thread of its own, so locks may be taken.
        let heard = move || {
            for signal in signals.forever() {
                match signal {
                    SIGHUP if reads_again => again.store(true, Ordering::Relaxed),
                    _ => asked_to_end(&abort, &lock(&state)),
                }
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(heard).map_err(failed)?;
        Ok(interrupt)
    }

    /// Says that the run begins: from here on it is ended in order.
    pub fn begin(&self) {
        *lock(&self.state) = State::Running;
    }

    /// Says that a run begins that writes nothing but a stream.
    pub fn begin_stream(&self) {
        *lock(&self.state) = State::Streaming;
    }

    /// Says that the run is over and what it did is kept beside a result, of which the rest is made from it.
    pub fn is_kept_beside(&self, result: &Path) {
        *lock(&self.state) = State::Kept(result.to_owned());
    }

    /// Says that what follows may be ended at any moment.
    pub fn run_is_over(&self) {
        *lock(&self.state) = State::Over;
    }
}

/// Whoever ends the process keeps the lock on the state, so that the command does not go on to what must be kept in order.
fn asked_to_end(abort: &Abort, state: &State) {
    match state {
        State::Preparing => end("interrupted before the run, which has written nothing", 1),
        State::Running if abort.is_raised() => {
            whole::discard_all();
            std::process::exit(KILLED);
        }
        State::Running => abort.raise(),
        State::Streaming => end("interrupted; what was written is not complete", 1),
        State::Kept(result) => {
            let result = result.display();
            let how = "the same command with --resume continues, with --discard throws it away";
            end(&format!("interrupted after the run; what is done is kept beside {result}: {how}"), 1)
        }
        State::Over => end("interrupted after the run; what is written is complete, the rest is not written", 1),
    }
}

/// What is undone when a signal ends the process.
static UNDO: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);

/// As long as it lives, a signal that ends the process undoes something first.
pub struct Undone(());

/// Has `undo` done if a signal ends the process before what is returned is dropped: what lies outside of the process, such
/// as the modes of its terminal, does not end with it. There is one such thing at a time.
pub fn undone_by_signals(undo: impl Fn() + Send + 'static) -> Undone {
    *UNDO.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(undo));
    Undone(())
}

impl Drop for Undone {
    fn drop(&mut self) {
        *UNDO.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn end(message: &str, status: i32) {
    if let Some(undo) = &*UNDO.lock().unwrap_or_else(PoisonError::into_inner) {
        undo();
    }
    say(message);
    whole::discard_all();
    std::process::exit(status);
}

/// Lets a write beyond the limit on file sizes (`ulimit -f`) fail with an error that can be told and cleaned up after,
/// instead of ending the process.
pub fn ignore_file_size_signal() {
    // SAFETY: ignoring a signal installs no handler; it is done before any other thread is started.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
