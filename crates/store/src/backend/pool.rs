//! A few threads with positional reads and writes, for kernels that refuse io_uring.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::{Backend, Completion, RawOperation};
use crate::error::Errno;
use crate::transfer::Direction;

/// Enough to keep one device busy; more threads add switches, not bytes.
pub(crate) const POOL_THREADS: usize = 4;

#[derive(Default)]
struct State {
    todo: VecDeque<RawOperation>,
    done: Vec<Completion>,
    stop: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// There is something to do, or the end has come.
    work: Condvar,
    /// There is a completion.
    news: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pool; dropping it ends its threads after the operations they are in.
pub(crate) struct Pool {
    /// Why it is not io_uring, if that was refused.
    refused: Option<Errno>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// Where to block until an operation of a [`Pool`] is complete.
pub(crate) struct PoolNews(Arc<Shared>);

impl PoolNews {
    pub(crate) fn wait(&self) {
        let mut state = self.0.lock();
        while state.done.is_empty() {
            state = self.0.news.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Pool {
    pub(crate) fn new(refused: Option<Errno>) -> Result<(Pool, PoolNews), Errno> {
        let shared = Arc::new(Shared::default());
        let mut pool = Pool { refused, shared: Arc::clone(&shared), threads: Vec::new() };
        for n in 0..POOL_THREADS {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name(format!("disk-{n}")).spawn(move || work(&shared))?;
            pool.threads.push(thread);
        }
        Ok((pool, PoolNews(shared)))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // The threads do not panic; there is nothing to learn from the result.
            let _ = thread.join();
        }
    }
}

impl Backend for Pool {
    fn name(&self) -> String {
        let name = format!("{POOL_THREADS} threads with positional reads and writes");
        self.refused.map_or_else(|| name.clone(), |errno| format!("{name} (io_uring refused: {errno})"))
    }

    unsafe fn start(&mut self, operation: RawOperation) {
        self.shared.lock().todo.push_back(operation);
        self.shared.work.notify_one();
    }

    fn submit(&mut self) {}

    fn take(&mut self, completions: &mut Vec<Completion>) {
        completions.append(&mut self.shared.lock().done);
    }
}

fn work(shared: &Shared) {
    let mut state = shared.lock();
    loop {
        if let Some(operation) = state.todo.pop_front() {
            drop(state);
            let result = execute(&operation);
            state = shared.lock();
            state.done.push(Completion { key: operation.key, result });
            shared.news.notify_one();
        } else if state.stop {
            return;
        } else {
            state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn execute(operation: &RawOperation) -> Result<u32, Errno> {
    let RawOperation { fd, memory, len_bytes, offset_bytes, .. } = *operation;
    let result = match operation.direction {
        // SAFETY: the contract of `Backend::start` keeps the memory valid and unshared and the descriptor open.
        Direction::Read => unsafe { libc::pread64(fd, memory.cast(), len_bytes as usize, offset_bytes as i64) },
        // SAFETY: as above.
        Direction::Write => unsafe { libc::pwrite64(fd, memory.cast(), len_bytes as usize, offset_bytes as i64) },
    };
    u32::try_from(result).map_err(|_| Errno::last())
}
