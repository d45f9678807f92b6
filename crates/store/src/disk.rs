//! The driver of a disk edge: files, transfers between them and memory, and what they cost.

use std::sync::Arc;
use std::thread::JoinHandle;

use crate::backend::{Backend, BackendNews, Pool, Uring};
use crate::context::{Context, Counters};
use crate::error::StoreError;
use crate::faults::Faults;
use crate::scheduler::{Desk, Device, Job, Runner, Staging, TicketState, run_soon_after_waking};
use crate::transfer::TransferList;
use multigrain_trace::Tick;

/// How operations reach the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendChoice {
    /// io_uring; where the kernel refuses it, the pool.
    #[default]
    Auto,
    /// io_uring or an error.
    Uring,
    /// A pool of threads with positional reads and writes.
    Pool,
}

/// What a [`Disk`] is made with.
#[derive(Clone)]
pub struct DiskOptions {
    /// How operations reach the device.
    pub backend: BackendChoice,
    /// Operations in flight at most (clamped to 1 to 1024).
    pub queue_depth: usize,
    /// Bytes of staging for transfers that are not aligned: reserved at once, to be counted in the memory budget (at
    /// least 256 KiB are taken).
    pub staging_bytes: usize,
    /// Asked before every operation that touches the file system.
    pub faults: Option<Arc<dyn Faults>>,
}

impl Default for DiskOptions {
    /// Automatic choice, 64 operations, 8 MiB of staging, no faults.
    fn default() -> DiskOptions {
        DiskOptions { backend: BackendChoice::Auto, queue_depth: 64, staging_bytes: 8 << 20, faults: None }
    }
}

impl std::fmt::Debug for DiskOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiskOptions")
            .field("backend", &self.backend)
            .field("queue_depth", &self.queue_depth)
            .field("staging_bytes", &self.staging_bytes)
            .field("faults", &self.faults.is_some())
            .finish()
    }
}

/// The receipt for a submitted transfer list. Clones are the same receipt; dropping it cancels nothing.
#[derive(Clone)]
pub struct Ticket {
    state: Arc<TicketState>,
    desk: Arc<DiskDesk>,
}

impl Ticket {
    /// Whether the transfer is over, well or badly. Once this is `true`, the bytes are visible to the caller.
    pub fn is_done(&self) -> bool {
        if !self.state.is_done() {
            // Maybe it is complete and nobody has looked.
            self.desk.look();
        }
        self.state.is_done()
    }

    /// When the first operation of a transfer that was submitted as timed was started, and when its last ended. `None`
    /// before that, for other transfers, and for those without any operation.
    pub fn times(&self) -> Option<[Tick; 2]> {
        self.state.times()
    }

    /// Blocks until the transfer is over, carrying on whatever else is under way at the disk.
    ///
    /// # Errors
    /// The first fault of the transfer; how many of its bytes were moved is then unknown.
    pub fn wait(&self) -> Result<(), StoreError> {
        if !self.state.is_done() {
            self.desk.wait_until(|| self.state.is_done());
        }
        self.state.result()
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ticket(done: {})", self.is_done())
    }
}

/// A runner and what its operations pass, as the desk sees them.
struct Station {
    runner: Runner,
    context: Arc<Context>,
}

impl Station {
    /// Takes a transfer and starts what can be started.
    fn accept(&mut self, job: Job) {
        self.runner.accept(job);
        self.runner.issue(&self.context);
    }
}

impl Device for Station {
    fn progress(&mut self) -> bool {
        let any = self.runner.reap(&self.context);
        self.runner.issue(&self.context);
        any
    }

    fn is_idle(&self) -> bool {
        self.runner.is_idle()
    }

    fn needs_attention(&self) -> bool {
        self.runner.needs_attention()
    }
}

type DiskDesk = Desk<Station, BackendNews>;

/// Every file operation of a run goes through one `Disk`: it owns the way to the device, the staging memory, the
/// counters and the optional fault hook.
///
/// Dropping it waits for the transfers that are under way.
pub struct Disk {
    context: Arc<Context>,
    desk: Arc<DiskDesk>,
    staging_bytes: u64,
    attendant: Option<JoinHandle<()>>,
}

impl Disk {
    /// Reserves the staging memory and starts the thread that attends to transfers for which nobody waits (bound to no
    /// core, asleep while there is nothing to do).
    ///
    /// # Errors
    /// [`StoreError::Memory`], [`StoreError::NoThread`]; [`StoreError::NoUring`] when io_uring was asked for.
    pub fn new(options: DiskOptions) -> Result<Disk, StoreError> {
        let staging = Staging::new(options.staging_bytes)?;
        let staging_bytes = staging.memory().len() as u64;
        let context = Arc::new(Context::new(options.faults.clone()));
        let depth = options.queue_depth.clamp(1, 1024);
        let (backend, news) = open_backend(options.backend, depth, &staging)?;
        let runner = Runner::new(backend, staging, depth);
        let desk = Arc::new(Desk::new(Station { runner, context: Arc::clone(&context) }, news));
        let attended = Arc::clone(&desk);
        let attendant = std::thread::Builder::new()
            .name("disk".into())
            .spawn(move || {
                run_soon_after_waking();
                attended.attend();
            })
            .map_err(|error| StoreError::NoThread { errno: error.into() })?;
        Ok(Disk { context, desk, staging_bytes, attendant: Some(attendant) })
    }

    /// How operations reach the device, for people: "io_uring, registered buffers" (registered where they were used), or the
    /// pool and why.
    pub fn backend_name(&self) -> String {
        self.desk.with(|station| station.runner.backend_name())
    }

    /// Bytes of staging memory that are reserved.
    pub fn staging_bytes(&self) -> u64 {
        self.staging_bytes
    }

    /// Starts the transfer of a list; returns at once. Transfers start in the order of submission, several are under
    /// way at a time, and they may complete in any order: who needs one before another waits in between.
    ///
    /// # Safety
    /// Until the ticket is done (or the disk is dropped), the memory of every fragment stays valid; for a read nobody
    /// else touches it, for a write nobody changes it; and no other transfer under way writes the same bytes of the
    /// file, or reads bytes that this one writes.
    pub unsafe fn submit(&self, list: TransferList) -> Ticket {
        self.submit_job(list, false)
    }

    /// As [`submit`](Self::submit), and the ticket will tell when the transfer started and ended
    /// ([`Ticket::times`]).
    ///
    /// # Safety
    /// As [`submit`](Self::submit).
    pub unsafe fn submit_timed(&self, list: TransferList) -> Ticket {
        self.submit_job(list, true)
    }

    fn submit_job(&self, list: TransferList, timed: bool) -> Ticket {
        let desk = Arc::clone(&self.desk);
        if let Err(error) = list.validate() {
            return Ticket { state: Arc::new(TicketState::finished(Err(error))), desk };
        }
        let state = Arc::new(TicketState::default());
        let job = Job { list, ticket: Arc::clone(&state), timed };
        self.desk.with(|station| station.accept(job));
        Ticket { state, desk }
    }

    /// Blocks until a transfer is over.
    ///
    /// # Errors
    /// See [`Ticket::wait`].
    pub fn wait(&self, ticket: Ticket) -> Result<(), StoreError> {
        ticket.wait()
    }

    /// Whether a transfer is over.
    pub fn is_done(&self, ticket: &Ticket) -> bool {
        ticket.is_done()
    }

    /// What went through so far.
    pub fn counters(&self) -> Counters {
        self.context.counters()
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.desk.stop();
        if let Some(thread) = self.attendant.take() {
            // It does not panic; there is nothing to learn from the result.
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Disk({})", self.backend_name())
    }
}

/// The backend of the choice.
fn open_backend(
    choice: BackendChoice,
    depth: usize,
    staging: &Staging,
) -> Result<(Box<dyn Backend>, BackendNews), StoreError> {
    let refused = if choice == BackendChoice::Pool {
        None
    } else {
        match Uring::new(depth as u32, staging.memory()) {
            Ok((uring, news)) => return Ok((Box::new(uring), BackendNews::Uring(news))),
            Err(errno) if choice == BackendChoice::Uring => return Err(StoreError::NoUring { errno }),
            Err(errno) => Some(errno),
        }
    };
    let (pool, news) = Pool::new(refused).map_err(|errno| StoreError::NoThread { errno })?;
    Ok((Box::new(pool), BackendNews::Pool(news)))
}
