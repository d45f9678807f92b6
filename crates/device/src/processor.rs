//! The processor of a device: a thread that executes leaves, one after the other, with the arena open.

use crate::arena::Arena;
use crate::fault;
use crate::streams::until;
use multigrain::driver::{StoreError, catches_panics};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Where leaves go, and where their ends come from.
type Door = (Sender<Work>, Receiver<std::thread::Result<()>>);

type Leaf = *mut (dyn FnMut() + Send + 'static);

/// A leaf on its way to the processor, and where the worker may be that waits for it.
struct Work(Leaf, Option<CpuSet>);

// SAFETY: what it points to can be sent, and its owner waits in `Processor::run` until it is done with.
unsafe impl Send for Work {}

pub(crate) struct Processor {
    /// Gone when the thread is to end. Locked while a leaf is executed: one at a time.
    door: Mutex<Option<Door>>,
    thread: Option<JoinHandle<()>>,
}

impl Processor {
    /// With a processor that works `slower` times as long on a leaf as its thread does.
    pub(crate) fn new(arena: Arc<Arena>, slower: u64) -> Result<Processor, StoreError> {
        let (work, works) = channel::<Work>();
        let (answer, answers) = channel();
        let execute = move || {
            catches_panics();
            let mut place = None;
            for Work(leaf, caller) in works {
                // Where the worker that waits is bound to a processor, that one has nothing else to do.
                if caller.is_some() && place != caller {
                    // Where it cannot be bound it works as well.
                    let _ = caller.map(|caller| sched_setaffinity(None, &caller));
                    place = caller;
                }
                // SAFETY: the caller of `run` lends it until it has the answer.
                let leaf = unsafe { &mut *leaf };
                let (begun, used) = (Instant::now(), processor_time());
                let done = catch_unwind(AssertUnwindSafe(|| within(&arena, leaf)));
                // What others take of its thread's processor is not made longer.
                let more = u32::try_from(slower - 1).unwrap_or(u32::MAX);
                let rest = processor_time().saturating_sub(used).saturating_mul(more);
                until(begun, begun.elapsed().saturating_add(rest));
                if answer.send(done).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("device processor".into()).spawn(execute);
        let thread = thread.map_err(|error| fault(format!("its processor has no thread: {error}")))?;
        Ok(Processor { door: Mutex::new(Some((work, answers))), thread: Some(thread) })
    }

    /// Has a leaf executed; its panic is handed back.
    pub(crate) fn run(&self, leaf: &mut (dyn FnMut() + Send)) -> std::thread::Result<()> {
        // SAFETY: only the lifetime is other; the thread is done with it when it answers, or has ended.
        let leaf = unsafe { std::mem::transmute::<*mut (dyn FnMut() + Send + '_), Leaf>(leaf) };
        let door = self.door.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = || Box::new("the device's processor is gone".to_owned());
        let Some((work, answers)) = &*door else { return Err(gone()) };
        match work.send(Work(leaf, sched_getaffinity(None).ok())) {
            Ok(()) => answers.recv().unwrap_or_else(|_| Err(gone())),
            Err(_) => Err(gone()),
        }
    }
}

/// What the calling thread has used of processors.
fn processor_time() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec.unsigned_abs(), used.tv_nsec.unsigned_abs() as u32)
}

/// Executes a leaf while the arena is open. It is closed again whatever happens.
fn within(arena: &Arena, leaf: &mut (dyn FnMut() + Send)) {
    struct Closed<'a>(&'a Arena);
    impl Drop for Closed<'_> {
        fn drop(&mut self) {
            // What cannot be closed again stays open: nothing is wrong but that mistakes are not noticed.
            let _ = self.0.open(false);
        }
    }
    let _closed = Closed(arena);
    if let Err(errno) = arena.open(true) {
        panic!("the device's memory cannot be opened to its processor: {errno}");
    }
    leaf();
}

impl Drop for Processor {
    fn drop(&mut self) {
        drop(self.door.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(thread) = self.thread.take() {
            // It answers panics; there is nothing to learn from the result.
            let _ = thread.join();
        }
    }
}
