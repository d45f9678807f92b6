//! The entry: observation begins, goes on beside a run, and ends.

use crate::sink::Sink;
use multigrain_trace::Observed;
use thiserror::Error;

/// Why nothing can be observed.
#[derive(Debug, Error)]
pub enum KernelError {
    /// This system has no way that is known here.
    #[error("--observe observes Linux, and this is {system}: leave it out")]
    System {
        /// Its name.
        system: &'static str,
    },
    /// The system refused a thread or a file.
    #[error("the operating system cannot be observed: {source}; run without --observe")]
    Refused {
        /// What it says.
        #[from]
        source: std::io::Error,
    },
}

/// Whether this system can be observed at all; which source it allows is found out when that begins.
///
/// # Errors
/// [`KernelError::System`].
pub fn check() -> Result<(), KernelError> {
    match cfg!(target_os = "linux") {
        true => Ok(()),
        false => Err(KernelError::System { system: std::env::consts::OS }),
    }
}

/// The most memory that observing so many threads of this process takes, by the source that it has now: rings, their copies, and
/// events on their way.
pub fn memory_bytes(threads: usize) -> u64 {
    // A ring of 128 KiB and its copy, and what its events are in memory: a record of a ring has 40 bytes or more, an event less than 48.
    const RING: u64 = 3 * (128 << 10) + (64 << 10);
    // A chunk of records, and names.
    const ELSE: u64 = 1 << 20;
    RING * system::rings_for(threads) as u64 + ELSE
}

#[cfg(target_os = "linux")]
mod system {
    use super::{KernelError, Observed, Sink};
    use crate::reader::Reader;
    use crate::sources;
    pub(super) use crate::sources::rings_for;
    use rustix::event::{EventfdFlags, eventfd};
    use std::os::fd::OwnedFd;
    use std::sync::Arc;
    use std::thread::{Builder, JoinHandle};

    /// An observation that goes on.
    #[derive(Debug)]
    pub struct Watch {
        stop: Arc<OwnedFd>,
        thread: Option<JoinHandle<Observed>>,
    }

    impl Watch {
        /// Begins to observe threads of this process, each by the number that the system has for it: the first is worker 0.
        /// Records go to `sink`, on the observer's thread.
        ///
        /// # Errors
        /// [`KernelError`], where not even sums can be read.
        pub fn begin(threads: Vec<u32>, sink: Sink) -> Result<Watch, KernelError> {
            let source = sources::open(&threads);
            let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).map_err(std::io::Error::from)?);
            let reader = Reader::new(source, threads, sink);
            let file = Arc::clone(&stop);
            let thread = Builder::new().name("observer".into()).spawn(move || reader.serve(&file))?;
            Ok(Watch { stop, thread: Some(thread) })
        }

        /// Ends it: all records are with the sink now.
        pub fn end(mut self) -> Observed {
            self.stop()
        }

        fn stop(&mut self) -> Observed {
            let Some(thread) = self.thread.take() else { return Observed::default() };
            // An eight-byte write to an event file that is not full always succeeds.
            let _ = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
            thread.join().unwrap_or_default()
        }
    }

    impl Drop for Watch {
        fn drop(&mut self) {
            self.stop();
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::{KernelError, Observed, Sink, check};

    /// Where there is no source there are no rings.
    pub(super) fn rings_for(_: usize) -> usize {
        0
    }

    /// An observation that goes on: here there is none.
    #[derive(Debug)]
    pub struct Watch(std::convert::Infallible);

    impl Watch {
        /// Refuses.
        ///
        /// # Errors
        /// [`KernelError::System`].
        pub fn begin(_: Vec<u32>, _: Sink) -> Result<Watch, KernelError> {
            check()?;
            Err(KernelError::System { system: std::env::consts::OS })
        }

        /// Ends it.
        pub fn end(self) -> Observed {
            match self.0 {}
        }
    }
}

pub use system::Watch;
