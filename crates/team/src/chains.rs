//! Claims of chains: load balance in a shared address space.

use crate::pad::Padded;
use crate::sync::{AtomicU64, Ordering};
use multigrain_schedule::{End, claim};

/// For each worker a list of chains, numbered from 0, that it would execute on its own. Workers claim in the order of
/// [`claim`], every chain once.
///
/// A list is one word, so that a claim is one atomic operation:
///
/// | bits | |
/// |---|---|
/// | 0 to 31 | front: the next chain that the owner would claim |
/// | 32 to 63 | back: one more than the last chain that is not claimed |
///
/// Claims order nothing but themselves (all are relaxed): that the data of the chains is ready must be known by other
/// means, the fork that started the workers or a [`crate::Steps`].
#[derive(Debug)]
pub struct ChainQueue {
    lists: Box<[Padded<AtomicU64>]>,
}

const BACK_SHIFT: u32 = 32;
const FRONT_MASK: u64 = (1 << BACK_SHIFT) - 1;

impl ChainQueue {
    /// Lists of `lengths[worker]` chains.
    pub fn new(lengths: &[u32]) -> ChainQueue {
        ChainQueue { lists: lengths.iter().map(|length| Padded(AtomicU64::new(full(*length)))).collect() }
    }

    /// The next chain for `worker` as its owner and its number in the owner's list; `None` when every chain is
    /// claimed. A worker that owns no list only takes from others.
    #[inline]
    pub fn claim(&self, worker: usize) -> Option<(usize, usize)> {
        let claimed = claim(worker, self.lists.len(), |owner, end| claim_at(&self.lists[owner], end));
        claimed.map(|(owner, number)| (owner, number as usize))
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

/// The number at an end of a list, which it loses.
#[inline]
pub(crate) fn claim_at(list: &AtomicU64, end: End) -> Option<u32> {
    let mut word = list.load(Ordering::Relaxed);
    loop {
        let mut left = (word & FRONT_MASK) as u32..(word >> BACK_SHIFT) as u32;
        let number = end.take(&mut left)?;
        match list.compare_exchange_weak(word, range(left.start, left.end), Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return Some(number),
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
