//! Claims of chains: load balance in a shared address space.

use crate::pad::Padded;
use crate::sync::{AtomicU64, Ordering};

/// For each worker a list of chains, numbered from 0, that it would execute on its own. A worker claims from the
/// front of its list; when that is empty it takes from the back of another's, the next worker's first. So owners keep
/// their order, and with it what lies in their caches, for as long as possible, and every chain is claimed exactly
/// once.
///
/// A list is one word, so that a claim is one atomic operation:
///
/// | bits | |
/// |---|---|
/// | 0 to 31 | front: the next chain that the owner would claim |
/// | 32 to 63 | back: one more than the last chain that is not claimed |
///
/// Claims order nothing but themselves (all are relaxed): that the data of the chains is ready must be known by other
/// means, the fork that started the workers or a [`crate::Progress`].
#[derive(Debug)]
pub struct ChainQueue {
    lists: Box<[Padded<AtomicU64>]>,
}

const BACK_SHIFT: u32 = 32;
const FRONT_MASK: u64 = (1 << BACK_SHIFT) - 1;

fn front_and_back(word: u64) -> (u64, u64) {
    (word & FRONT_MASK, word >> BACK_SHIFT)
}

impl ChainQueue {
    /// Lists of `lengths[worker]` chains.
    pub fn new(lengths: &[u32]) -> ChainQueue {
        ChainQueue { lists: lengths.iter().map(|length| Padded(AtomicU64::new(full(*length)))).collect() }
    }

    /// How many workers own a list.
    pub fn owners(&self) -> usize {
        self.lists.len()
    }

    /// The next chain for `worker` as its owner and its number in the owner's list; `None` when every chain is
    /// claimed. A worker that owns no list only takes from others.
    #[inline]
    pub fn claim(&self, worker: usize) -> Option<(usize, usize)> {
        if let Some(list) = self.lists.get(worker)
            && let Some(index) = claim_from(list, |front, back| (front, front + 1, back))
        {
            return Some((worker, index));
        }
        self.take(worker)
    }

    #[cold]
    #[inline(never)]
    fn take(&self, worker: usize) -> Option<(usize, usize)> {
        let owners = self.lists.len();
        // For an owner the last of these is its own list, found empty before and empty for ever.
        (1..=owners).map(|distance| (worker + distance) % owners).find_map(|owner| {
            claim_from(&self.lists[owner], |front, back| (back - 1, front, back - 1)).map(|index| (owner, index))
        })
    }

    /// Puts all chains back, with new lengths, for the next plan. Lists beyond `lengths` become empty.
    pub fn refill(&mut self, lengths: &[u32]) {
        for (worker, list) in self.lists.iter_mut().enumerate() {
            *list = Padded(AtomicU64::new(full(lengths.get(worker).copied().unwrap_or(0))));
        }
    }
}

fn full(length: u32) -> u64 {
    range(0, length)
}

/// The word of a list that holds the numbers from `front` to less than `back`.
pub(crate) fn range(front: u32, back: u32) -> u64 {
    u64::from(front) | u64::from(back) << BACK_SHIFT
}

/// The owner's next number.
#[inline]
pub(crate) fn claim_front(list: &AtomicU64) -> Option<u32> {
    claim_from(list, |front, back| (front, front + 1, back)).map(|number| number as u32)
}

/// The number that another worker takes.
#[inline]
pub(crate) fn claim_back(list: &AtomicU64) -> Option<u32> {
    claim_from(list, |front, back| (back - 1, front, back - 1)).map(|number| number as u32)
}

/// Takes one chain from a list that is not empty: `pick` says which, and what front and back become.
#[inline]
fn claim_from(list: &AtomicU64, pick: impl Fn(u64, u64) -> (u64, u64, u64)) -> Option<usize> {
    let mut word = list.load(Ordering::Relaxed);
    loop {
        let (front, back) = front_and_back(word);
        if front >= back {
            return None;
        }
        let (index, front, back) = pick(front, back);
        match list.compare_exchange_weak(word, front | back << BACK_SHIFT, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return Some(index as usize),
            Err(now) => word = now,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn owners_go_forwards_and_takers_backwards() {
        let queue = ChainQueue::new(&[3, 2]);
        assert_eq!(queue.claim(0), Some((0, 0)));
        assert_eq!(queue.claim(1), Some((1, 0)));
        assert_eq!(queue.claim(1), Some((1, 1)));
        assert_eq!(queue.claim(1), Some((0, 2)));
        assert_eq!(queue.claim(0), Some((0, 1)));
        assert_eq!(queue.claim(0), None);
        assert_eq!(queue.claim(1), None);
    }

    #[test]
    fn a_worker_without_a_list_takes_from_others() {
        let queue = ChainQueue::new(&[1]);
        assert_eq!(queue.claim(5), Some((0, 0)));
        assert_eq!(queue.claim(5), None);
        assert_eq!(ChainQueue::new(&[]).claim(0), None);
    }

    #[test]
    fn the_longest_list_is_claimed_to_its_end() {
        let queue = ChainQueue::new(&[u32::MAX]);
        assert_eq!(queue.claim(0), Some((0, 0)));
        assert_eq!(queue.claim(1), Some((0, u32::MAX as usize - 1)));
    }

    #[test]
    fn refilled_lists_are_claimed_again() {
        let mut queue = ChainQueue::new(&[1, 1]);
        while queue.claim(0).is_some() {}
        queue.refill(&[2]);
        assert_eq!(queue.claim(1), Some((0, 1)));
        assert_eq!(queue.claim(1), Some((0, 0)));
        assert_eq!(queue.claim(1), None);
    }
}
