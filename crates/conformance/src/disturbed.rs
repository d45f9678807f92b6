//! A layer around any driver that makes its transfers fail, come late, or come in another order.

use multigrain::driver::{
    Child, Direction, Driver, DriverFacts, Location, Receipt, Site, Slack, Span, StoreError, Transfer,
};
use multigrain::rooms::plan::testing::Rng;
use multigrain::rooms::trace::Tick;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What happens to transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// Nothing; they are counted.
    None,
    /// The one of this number, from 0, fails when it is issued.
    IssueFails(u64),
    /// The one of this number is moved, and fails when it is awaited.
    WaitFails(u64),
    /// Each begins to move only when it is awaited.
    Late,
    /// When one is awaited, others that were issued before or after it move first, chosen by this seed.
    OutOfOrder(u64),
}

/// A driver with disturbances.
pub struct Disturbed {
    inner: Arc<dyn Driver>,
    what: Disturbance,
    issued: Arc<AtomicU64>,
}

impl Disturbed {
    /// The driver, with this.
    pub fn new(inner: Arc<dyn Driver>, what: Disturbance) -> Disturbed {
        Disturbed { inner, what, issued: Arc::default() }
    }

    /// How many transfers were issued.
    pub fn issued(&self) -> u64 {
        // Relaxed: a number.
        self.issued.load(Ordering::Relaxed)
    }
}

impl Driver for Disturbed {
    fn facts(&self) -> &'static DriverFacts {
        self.inner.facts()
    }

    fn reserve(&self, site: &Site<'_>) -> Result<Option<Box<dyn Child>>, StoreError> {
        let Some(child) = self.inner.reserve(site)? else { return Ok(None) };
        let seed = match self.what {
            Disturbance::OutOfOrder(seed) => seed ^ site.index as u64,
            _ => 0,
        };
        let queue = Queue { child, held: BTreeMap::new(), failed: BTreeMap::new(), rng: Rng::new(seed) };
        let (what, issued) = (self.what, Arc::clone(&self.issued));
        let span = queue.child.span();
        Ok(Some(Box::new(Around { what, issued, span, queue: Arc::new(Mutex::new(queue)) })))
    }
}

/// Transfers of one child that were issued and not begun.
struct Queue {
    child: Box<dyn Child>,
    held: BTreeMap<u64, Held>,
    /// What became of those that failed before they were awaited.
    failed: BTreeMap<u64, StoreError>,
    rng: Rng,
}

/// A transfer, kept.
struct Held {
    direction: Direction,
    location: Location<'static>,
    offset_bytes: u64,
    slack: Slack,
    name: String,
}

// SAFETY: addresses, which who issued the transfer vouches for until it is over.
unsafe impl Send for Held {}

struct Around {
    what: Disturbance,
    issued: Arc<AtomicU64>,
    span: Span,
    queue: Arc<Mutex<Queue>>,
}

/// The fault that is injected, as it is told.
pub(crate) const INJECTED: &str = "a fault that the conformance suite has made";

fn injected(name: &str) -> StoreError {
    StoreError::Driver { driver: "conformance".into(), what: format!("{name}: {INJECTED}") }
}

impl Queue {
    /// Moves one that is held, and waits until it is over.
    fn carry_out(&mut self, number: u64) {
        let Some(Held { direction, location, offset_bytes, slack, name }) = self.held.remove(&number) else { return };
        let name = || name.clone();
        let transfer = Transfer { direction, location, offset_bytes, slack, timed: false, name: &name };
        // SAFETY: who issued it vouches for both sides until the receipt says that it is over, which it has not yet.
        let issued = unsafe { self.child.issue(&transfer) };
        if let Err(error) = issued.and_then(|receipt| receipt.map_or(Ok(()), |receipt| receipt.wait())) {
            self.failed.insert(number, error);
        }
    }
}

// SAFETY: the child around which it lies does all that is done, or nothing is; what is held back is waited for.
unsafe impl Child for Around {
    fn span(&self) -> Span {
        self.span
    }

    unsafe fn issue(&self, transfer: &Transfer<'_>) -> Result<Option<Box<dyn Receipt>>, StoreError> {
        let number = self.issued.fetch_add(1, Ordering::Relaxed);
        let name = || (transfer.name)();
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        match self.what {
            Disturbance::IssueFails(fails) if fails == number => Err(injected(&name())),
            Disturbance::WaitFails(fails) if fails == number => {
                // SAFETY: as the caller says.
                let receipt = unsafe { queue.child.issue(transfer)? };
                Ok(Some(Box::new(Failing { receipt, name: name() })))
            }
            Disturbance::None | Disturbance::IssueFails(_) | Disturbance::WaitFails(_) => {
                // SAFETY: as the caller says.
                unsafe { queue.child.issue(transfer) }
            }
            Disturbance::Late | Disturbance::OutOfOrder(_) => {
                let Transfer { direction, offset_bytes, slack, .. } = *transfer;
                // SAFETY: only the lifetime is other: what is stored stays until the receipt says that it is over, and each is
                // carried out before that.
                let location: Location<'static> = unsafe { std::mem::transmute(transfer.location.clone()) };
                queue.held.insert(number, Held { direction, location, offset_bytes, slack, name: name() });
                let shuffled = self.what != Disturbance::Late;
                Ok(Some(Box::new(Holding { number, shuffled, queue: Arc::clone(&self.queue) })))
            }
        }
    }

    unsafe fn run(&self, leaf: &mut (dyn FnMut() + Send)) -> std::thread::Result<()> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: as the caller says.
        unsafe { queue.child.run(leaf) }
    }

    unsafe fn exchange(&self, offset_bytes: u64, bytes: u64, out: bool) -> Result<&mut [u8], StoreError> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: as the caller says; the child lives as long as this does, whatever the lock guards.
        unsafe {
            let child: *const dyn Child = &*queue.child;
            (*child).exchange(offset_bytes, bytes, out)
        }
    }
}

/// Moved or on its way, and told to have failed.
struct Failing {
    receipt: Option<Box<dyn Receipt>>,
    name: String,
}

impl Receipt for Failing {
    fn wait(&self) -> Result<(), StoreError> {
        self.receipt.as_ref().map_or(Ok(()), |receipt| receipt.wait())?;
        Err(injected(&self.name))
    }
}

struct Holding {
    number: u64,
    shuffled: bool,
    queue: Arc<Mutex<Queue>>,
}

impl Receipt for Holding {
    fn wait(&self) -> Result<(), StoreError> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        while queue.held.contains_key(&self.number) {
            let numbers: Vec<u64> = queue.held.keys().copied().collect();
            let any = queue.rng.pick(&numbers).copied();
            queue.carry_out(any.filter(|_| self.shuffled).unwrap_or(self.number));
        }
        queue.failed.get(&self.number).cloned().map_or(Ok(()), Err)
    }

    fn times(&self) -> Option<[Tick; 2]> {
        None
    }
}
