//! A set of workers.

use std::fmt;

/// The most workers that one machine decides for: eight sockets of 32 cores. More of them want several machines, each
/// with strands of its own.
pub const WORKERS_MAX: u32 = 256;

/// A set of workers, numbered from 0 to less than [`WORKERS_MAX`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Workers([u64; WORKERS_MAX as usize / 64]);

impl Workers {
    /// The first so many workers.
    ///
    /// # Panics
    /// If there are more than [`WORKERS_MAX`].
    pub fn first(count: u32) -> Workers {
        (0..count).collect()
    }

    /// The set of one.
    ///
    /// # Panics
    /// If the number is not below [`WORKERS_MAX`], as all that take one.
    pub fn one(worker: u32) -> Workers {
        std::iter::once(worker).collect()
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// Whether the worker is one of them.
    #[inline]
    pub fn contains(&self, worker: u32) -> bool {
        self.0[worker as usize / 64] & (1 << (worker % 64)) != 0
    }

    /// Adds a worker; false if it was there.
    #[inline]
    pub fn insert(&mut self, worker: u32) -> bool {
        let new = !self.contains(worker);
        self.0[worker as usize / 64] |= 1 << (worker % 64);
        new
    }

    /// Takes a worker out; false if it was not there.
    #[inline]
    pub fn remove(&mut self, worker: u32) -> bool {
        let there = self.contains(worker);
        self.0[worker as usize / 64] &= !(1 << (worker % 64));
        there
    }

    /// Adds all of the others.
    #[inline]
    pub fn insert_all(&mut self, others: &Workers) {
        self.0.iter_mut().zip(others.0).for_each(|(word, other)| *word |= other);
    }

    /// Takes all of the others out.
    #[inline]
    pub fn remove_all(&mut self, others: &Workers) {
        self.0.iter_mut().zip(others.0).for_each(|(word, other)| *word &= !other);
    }

    /// Whether both have a worker in common.
    pub fn intersects(&self, others: &Workers) -> bool {
        self.0.iter().zip(others.0).any(|(word, other)| word & other != 0)
    }

    /// The smallest number among them that is at least `from`.
    #[inline]
    pub fn next(&self, from: u32) -> Option<u32> {
        let mut at = from as usize / 64;
        let mut word = self.0.get(at)? & (u64::MAX << (from % 64));
        while word == 0 {
            at += 1;
            word = *self.0.get(at)?;
        }
        Some(at as u32 * 64 + word.trailing_zeros())
    }

    /// All of them, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.next(0), |&worker| self.next(worker + 1))
    }

    /// Up to `count` of them, the first at or after `from` first, from the lowest again after the highest: so whoever
    /// asks again from the same place gets the same neighbours.
    pub fn neighbours(&self, from: u32, count: u32) -> Workers {
        let after = std::iter::successors(self.next(from), |&worker| self.next(worker + 1));
        let before = self.iter().take_while(|&worker| worker < from);
        after.chain(before).take(count as usize).collect()
    }
}

impl FromIterator<u32> for Workers {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Workers {
        let mut all = Workers::default();
        numbers.into_iter().for_each(|worker| {
            all.insert(worker);
        });
        all
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set(steps in prop::collection::vec((any::<bool>(), 0..WORKERS_MAX), 0..200), from in 0..WORKERS_MAX, count in 0..20u32) {
            let (mut plain, mut set) = (BTreeSet::new(), Workers::default());
            for (insert, worker) in steps {
                if insert {
                    prop_assert_eq!(set.insert(worker), plain.insert(worker));
                } else {
                    prop_assert_eq!(set.remove(worker), plain.remove(&worker));
                }
            }
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), plain.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(set.len() as usize, plain.len());
            prop_assert_eq!(set.is_empty(), plain.is_empty());
            let expected: BTreeSet<u32> =
                plain.range(from..).chain(plain.range(..from)).take(count as usize).copied().collect();
            prop_assert_eq!(set.neighbours(from, count).iter().collect::<BTreeSet<_>>(), expected);
        }
    }
}
