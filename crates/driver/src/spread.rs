//! Arrays that lie in the memories of several ranks: each has an equal range of the elements, row-major.
//!
//! A rank copies what it owns itself, and what another of its node owns, whose memory it maps where the system lets it; for the rest it
//! asks the owner, which answers with the bytes, or is sent them and answers that they are there. Both are messages of some
//! [`MESSAGE_BYTES`], of which a rank has at most [`UNDER_WAY`] unanswered, and they are made when they are sent: what a transfer takes
//! beside the arrays is bounded, however large the block is and into however many fragments it falls, and what an owner answers is,
//! however many ask it (`at_one_owner`). Whoever carries messages serves
//! them, so an owner's workers are not disturbed. That nobody writes what is read is what the plan says, as for any memory.

use crate::exchange::{Desk, HERE, Left, Pieces, Rest, Share, UnderWay, lock};
pub use crate::exchange::{MESSAGE_BYTES, UNDER_WAY, owned};
use crate::ranks::{Ended, Ranks};
use crate::{Child, Direction, Driver, Location, Opaque, Receipt, Site, Span, StoreError, Transfer};
use multigrain_machine::DriverFacts;
use multigrain_program::{ElementType, Region, Shape};
use multigrain_store::AlignedBuffer;
use std::any::Any;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How often who waits looks whether the run has ended.
const LOOK: Duration = Duration::from_millis(20);

/// An array that lies in the memories of all ranks.
pub struct Spread {
    ranks: Arc<Ranks>,
    number: u32,
    name: String,
    element: ElementType,
    shape: Vec<u64>,
    own: Arc<Share>,
}

impl Spread {
    /// An array of zeros, of which this rank's part lies here. All ranks make the same arrays in the same order, so that they have the
    /// same numbers, and meet before one is used. It is there until all are [forgotten](Spread::forget_all).
    ///
    /// # Errors
    /// The system refuses the memory.
    pub fn new(ranks: &Arc<Ranks>, name: &str, element: ElementType, shape: &[u64]) -> Result<Spread, StoreError> {
        let range = owned(Shape::new(shape).elements(), ranks.rank(), ranks.count());
        let bytes = range.start * element.size_bytes()..range.end * element.size_bytes();
        let is_near = |other: &usize| *other != ranks.rank() && ranks.node(*other) == ranks.node(ranks.rank());
        let near: Vec<usize> = (0..ranks.count()).filter(is_near).collect();
        let len_bytes = (bytes.end - bytes.start) as usize;
        let (buffer, place) = match near.is_empty() {
            true => (AlignedBuffer::new(len_bytes)?, None),
            false => AlignedBuffer::shared(len_bytes)?,
        };
        let own = Arc::new(Share { buffer, bytes });
        let number = ranks.exchange.made.fetch_add(1, Ordering::Relaxed);
        lock(&ranks.exchange.shares).insert(number, Arc::clone(&own));
        if let Some(place) = place {
            let mut here = number.to_le_bytes().to_vec();
            here.extend(own.bytes.start.to_le_bytes());
            here.extend(own.bytes.end.to_le_bytes());
            here.extend(place.to_bytes());
            near.into_iter().for_each(|other| ranks.tell(other, HERE, &here));
        }
        let (name, shape) = (name.to_owned(), shape.to_vec());
        Ok(Spread { ranks: Arc::clone(ranks), number, name, element, shape, own })
    }

    /// Lets go of this rank's parts of all arrays; who reads one that was made before is refused. All ranks do it before arrays are made, and
    /// meet in between.
    pub fn forget_all(ranks: &Ranks) {
        lock(&ranks.exchange.shares).clear();
        lock(&ranks.exchange.near).clear();
        *lock(&ranks.exchange.desk) = Desk::default();
    }

    /// The elements that lie here.
    pub fn own_elements(&self) -> Range<u64> {
        let size = self.element.size_bytes();
        self.own.bytes.start / size..self.own.bytes.end / size
    }

    /// Where they lie: nobody else uses them as long as no plan does.
    pub fn own_start(&self) -> *mut u8 {
        self.own.buffer.as_mut_ptr()
    }

    /// Reads a region into dense memory, and waits for it.
    ///
    /// # Errors
    /// The run has ended on a rank.
    ///
    /// # Safety
    /// The memory holds the region, and is nobody else's.
    pub unsafe fn read(&self, region: &Region, into: *mut u8) -> Result<(), StoreError> {
        // SAFETY: the caller vouches for it.
        match unsafe { self.begin(region, Direction::Read, into) } {
            Some(receipt) => receipt.wait(),
            None => Ok(()),
        }
    }

    /// Each rank's part, where it lies on this node: all that the rank owns.
    fn near(&self) -> Vec<Option<Arc<Share>>> {
        let near = lock(&self.ranks.exchange.near);
        let (elements, size) = (Shape::new(&self.shape).elements(), self.element.size_bytes());
        let of = |rank| match rank == self.ranks.rank() {
            true => Some(Arc::clone(&self.own)),
            false => near.get(&(self.number, rank)).cloned(),
        };
        let is_whole = |rank: usize, share: &Arc<Share>| {
            let own = owned(elements, rank, self.ranks.count());
            share.bytes == (own.start * size..own.end * size)
        };
        (0..self.ranks.count()).map(|rank| of(rank).filter(|share| is_whole(rank, share))).collect()
    }

    /// Copies what lies on this node, and asks others for the rest.
    ///
    /// # Safety
    /// As [`Child::issue`].
    unsafe fn begin(&self, region: &Region, direction: Direction, start: *mut u8) -> Option<Box<dyn Receipt>> {
        let shape = Shape::new(&self.shape);
        let pieces = Pieces::new(region, shape, self.element.size_bytes(), self.ranks.count(), start);
        let near = self.near();
        let (mut near_bytes, mut bytes) = (0, 0);
        for piece in pieces.clone() {
            let Some(share) = &near[piece.owner] else {
                bytes += piece.bytes;
                continue;
            };
            let (here, there) = (piece.place, share.address(piece.offset));
            let (from, to) = if direction == Direction::Read { (there, here) } else { (here, there) };
            // SAFETY: the piece lies in the owner's share, which is whole, and in the memory that the caller vouches for; the plan says that
            // nobody else uses either now. Of another process, what it did before came before the message that let this one go on.
            unsafe { from.copy_to_nonoverlapping(to, piece.bytes as usize) };
            near_bytes += if piece.owner == self.ranks.rank() { 0 } else { piece.bytes };
        }
        self.ranks.exchange.moved.fetch_add(near_bytes, Ordering::Relaxed);
        if bytes == 0 {
            return None;
        }
        let left = Left { bytes, over: false, failed: false };
        let under_way = Arc::new(UnderWay { state: Mutex::new(left), changed: Condvar::new() });
        let near = near.iter().map(Option::is_some).collect();
        let rest = Rest { of: Arc::clone(&under_way), array: self.number, direction, pieces: pieces.peekable(), near };
        lock(&self.ranks.exchange.desk).queue.push_back(rest);
        self.ranks.send_queued();
        Some(Box::new(Waiting { ranks: Arc::clone(&self.ranks), under_way }))
    }
}

impl Opaque for Spread {
    fn element(&self) -> ElementType {
        self.element
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn name(&self) -> String {
        format!("array {} of all ranks", self.name)
    }
}

/// A transfer that others have to answer.
struct Waiting {
    ranks: Arc<Ranks>,
    under_way: Arc<UnderWay>,
}

fn refused(what: String) -> StoreError {
    StoreError::Driver { driver: "ranks".into(), what }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Where nobody has waited, answers that come later find nobody.
        lock(&self.under_way.state).over = true;
    }
}

impl Receipt for Waiting {
    fn wait(&self) -> Result<(), StoreError> {
        let mut left = lock(&self.under_way.state);
        while left.bytes > 0 && !left.over {
            if let Some(Ended { text, .. }) = self.ranks.ended() {
                // Answers that come later find nobody.
                left.over = true;
                left.failed = true;
                return Err(refused(text));
            }
            left = self.under_way.changed.wait_timeout(left, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        match left.failed {
            true => Err(refused("an array of all ranks is not there any more: it was of an earlier run".to_owned())),
            false => Ok(()),
        }
    }
}

/// Another driver, which moves what lies in files or elsewhere, and beside that arrays of all ranks.
pub struct Beside<D>(pub D);

struct ChildBeside(Box<dyn Child>);

impl<D: Driver> Driver for Beside<D> {
    fn facts(&self) -> &'static DriverFacts {
        self.0.facts()
    }

    fn reserve(&self, site: &Site<'_>) -> Result<Option<Box<dyn Child>>, StoreError> {
        Ok(self.0.reserve(site)?.map(|child| Box::new(ChildBeside(child)) as Box<dyn Child>))
    }
}

// SAFETY: what is not a spread array is the other driver's; of these, the block's bytes and those of the child are touched until all
// messages are answered, or nobody waits.
unsafe impl Child for ChildBeside {
    fn span(&self) -> Span {
        self.0.span()
    }

    unsafe fn issue(&self, transfer: &Transfer<'_>) -> Result<Option<Box<dyn Receipt>>, StoreError> {
        if let Location::Opaque(array, region) = &transfer.location
            && let Some(spread) = (*array as &dyn Any).downcast_ref::<Spread>()
        {
            let Span { start, len_bytes } = self.0.span();
            let bytes = region.elements() * spread.element.size_bytes();
            if transfer.offset_bytes.checked_add(bytes).is_none_or(|end| end > len_bytes) {
                return Err(refused(format!("{} does not lie in its memory", (transfer.name)())));
            }
            let start = start.wrapping_add(transfer.offset_bytes as usize);
            // SAFETY: the caller's promises.
            return Ok(unsafe { spread.begin(region, transfer.direction, start) });
        }
        // SAFETY: the caller's promises.
        unsafe { self.0.issue(transfer) }
    }

    unsafe fn run(&self, leaf: &mut (dyn FnMut() + Send)) -> std::thread::Result<()> {
        // SAFETY: the caller's promises.
        unsafe { self.0.run(leaf) }
    }

    unsafe fn exchange(&self, offset_bytes: u64, bytes: u64, out: bool) -> Result<&mut [u8], StoreError> {
        // SAFETY: the caller's promises.
        unsafe { self.0.exchange(offset_bytes, bytes, out) }
    }
}

#[cfg(test)]
mod tests;
