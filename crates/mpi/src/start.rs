//! The beginning and the end of MPI in a process.

use crate::{MpiError, ffi};
use std::io::Write;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

/// Which threads may call MPI, besides the one that started it. MPI is told, so that it knows that others exist; this
/// layer calls it by that one only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Threads {
    /// There is one thread.
    Single,
    /// There are others, which do not call it.
    Funneled,
    /// One at a time.
    Serialized,
    /// All.
    Multiple,
}

/// MPI in this process, from its start to its end.
pub struct Mpi {
    threads: Threads,
    /// What was started by a thread is ended by it.
    bound: PhantomData<*mut ()>,
}

static STARTED: AtomicBool = AtomicBool::new(false);

impl Mpi {
    /// Starts MPI. A process that was not started by [`crate::MPIRUN`] is the only rank.
    ///
    /// # Errors
    /// It was started before, or refuses.
    pub fn start(wanted: Threads) -> Result<Mpi, MpiError> {
        // SAFETY: no arguments; may be called at any time.
        if STARTED.swap(true, Ordering::AcqRel) || unsafe { ffi::mg_started() } != 0 {
            return Err(MpiError::Again);
        }
        let mut level = 0;
        // SAFETY: called once, as was just seen.
        let code = unsafe { ffi::mg_start(wanted as i32, &raw mut level) };
        if code != ffi::SUCCESS {
            return Err(MpiError::Refused { what: "MPI cannot be started", text: ffi::text(0, code) });
        }
        let levels = [Threads::Single, Threads::Funneled, Threads::Serialized, Threads::Multiple];
        Ok(Mpi { threads: levels[level.clamp(0, 3) as usize], bound: PhantomData })
    }

    /// What it allows, which may be less than was wanted.
    pub fn threads(&self) -> Threads {
        self.threads
    }

    /// Which library it is, in its own words.
    pub fn version(&self) -> String {
        ffi::text(1, 0)
    }

    /// What it calls this node.
    pub fn node_name(&self) -> String {
        ffi::text(2, 0)
    }

    /// Ends the run on all ranks, after a message: what a rank has to do that cannot go on while others may wait for it.
    pub fn fail(&self, why: &str) -> ! {
        end(&format!("{why} (node {})", self.node_name()))
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Others may wait for this rank, and its end would wait for them.
            end(&format!("a panic on node {}", self.node_name()));
        }
        // SAFETY: it was started, and all that is made of it has ended.
        unsafe { ffi::mg_finish() };
    }
}

/// Ends the run on all ranks.
pub(crate) fn end(why: &str) -> ! {
    abort(1, &format!("error: {why}; the run ends on all ranks\n"))
}

/// Ends all ranks at once, after a line on stderr, which is written whole: what comes in pieces is lost in pieces.
pub(crate) fn abort(status: i32, line: &str) -> ! {
    // Where nobody can be told, the end is all that is left to do.
    let _ = std::io::stderr().write_all(line.as_bytes());
    // SAFETY: MPI is running.
    unsafe { ffi::mg_abort(status) }
}
