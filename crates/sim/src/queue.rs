//! What is going to happen, ordered by (time, sequence): of two things at one time, the one that was planned first comes
//! first. So a simulation is one sequence of events, whatever the platform.

use crate::time::Time;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// When something happens: its time, and the number of the decision that it would.
pub(crate) type Key = (Time, u64);

struct Entry<T> {
    key: Key,
    what: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    /// The earliest is the greatest, since the heap of the standard library gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.cmp(&self.key)
    }
}

/// Events, earliest first.
pub(crate) struct Queue<T> {
    heap: BinaryHeap<Entry<T>>,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Queue<T> {
        Queue { heap: BinaryHeap::new() }
    }

    pub(crate) fn push(&mut self, key: Key, what: T) {
        self.heap.push(Entry { key, what });
    }

    pub(crate) fn first(&self) -> Option<Key> {
        self.heap.peek().map(|entry| entry.key)
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        self.heap.pop().map(|entry| entry.what)
    }
}

/// Times of things that are known by small numbers, each of which has one time or none, which may change: the ends of
/// flows, whose rates change with every other flow. A binary heap that knows where everything stands.
#[derive(Default)]
pub(crate) struct Alarms {
    heap: Vec<(Key, u32)>,
    /// For each number its place in the heap, or `NOWHERE`.
    place: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

impl Alarms {
    pub(crate) fn first(&self) -> Option<Key> {
        self.heap.first().map(|&(key, _)| key)
    }

    /// Whose time is the first.
    pub(crate) fn first_id(&self) -> Option<u32> {
        self.heap.first().map(|&(_, id)| id)
    }

    /// Gives `id` its one time.
    pub(crate) fn set(&mut self, id: u32, key: Key) {
        let index = id as usize;
        if index >= self.place.len() {
            self.place.resize(index + 1, NOWHERE);
        }
        let at = match self.place[index] {
            NOWHERE => {
                self.heap.push((key, id));
                self.place[index] = (self.heap.len() - 1) as u32;
                self.heap.len() - 1
            }
            at => {
                self.heap[at as usize].0 = key;
                at as usize
            }
        };
        let at = self.up(at);
        self.down(at);
    }

    /// Gives each of these its one time, and empties the list. Many at once are put in order together, which takes a step
    /// or two for each thing with a time; few one by one.
    pub(crate) fn set_all(&mut self, times: &mut Vec<(Key, u32)>) {
        let height = (usize::BITS - self.heap.len().leading_zeros()) as usize;
        if times.len() * height <= self.heap.len() {
            times.drain(..).for_each(|(key, id)| self.set(id, key));
            return;
        }
        for (key, id) in times.drain(..) {
            let index = id as usize;
            if index >= self.place.len() {
                self.place.resize(index + 1, NOWHERE);
            }
            match self.place[index] {
                NOWHERE => {
                    self.place[index] = self.heap.len() as u32;
                    self.heap.push((key, id));
                }
                at => self.heap[at as usize].0 = key,
            }
        }
        // Floyd's way: every subtree from the lowest up.
        for at in (0..self.heap.len() / 2).rev() {
            self.down(at);
        }
    }

    /// Takes the time of `id` away, if it has one.
    pub(crate) fn clear(&mut self, id: u32) {
        let Some(&at) = self.place.get(id as usize).filter(|at| **at != NOWHERE) else { return };
        let at = at as usize;
        self.place[id as usize] = NOWHERE;
        let last = self.heap.pop().expect("what has a place stands in the heap");
        if at < self.heap.len() {
            self.heap[at] = last;
            self.place[last.1 as usize] = at as u32;
            let at = self.up(at);
            self.down(at);
        }
    }

    fn up(&mut self, mut at: usize) -> usize {
        let moved = self.heap[at];
        let start = at;
        while at > 0 && moved.0 < self.heap[(at - 1) / 2].0 {
            self.heap[at] = self.heap[(at - 1) / 2];
            self.place[self.heap[at].1 as usize] = at as u32;
            at = (at - 1) / 2;
        }
        if at != start {
            self.heap[at] = moved;
            self.place[moved.1 as usize] = at as u32;
        }
        at
    }

    fn down(&mut self, mut at: usize) {
        let moved = self.heap[at];
        let start = at;
        loop {
            let mut child = 2 * at + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && self.heap[child + 1].0 < self.heap[child].0 {
                child += 1;
            }
            if moved.0 <= self.heap[child].0 {
                break;
            }
            self.heap[at] = self.heap[child];
            self.place[self.heap[at].1 as usize] = at as u32;
            at = child;
        }
        if at != start {
            self.heap[at] = moved;
            self.place[moved.1 as usize] = at as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Against a map that is searched from end to end.
        #[test]
        fn alarms_ring_in_order(steps in proptest::collection::vec((0u32..20, 0u64..50, 0u8..6), 1..200)) {
            let (mut alarms, mut plain) = (Alarms::default(), BTreeMap::new());
            for (sequence, &(id, ps, what)) in steps.iter().enumerate() {
                match what {
                    0 => {
                        alarms.clear(id);
                        plain.remove(&id);
                    }
                    1 => {
                        let least = plain.iter().min_by_key(|(_, key)| **key).map(|(&id, _)| id);
                        prop_assert_eq!(alarms.first_id(), least);
                        if let Some(id) = least {
                            alarms.clear(id);
                            plain.remove(&id);
                        }
                    }
                    // Several at once, from few to all.
                    2 | 3 => {
                        let more = |i: u32| ((Time::from_ps((ps * u64::from(i + 7)) % 50), (sequence as u64) << 8 | u64::from(i)), i);
                        let times: Vec<_> = (0..=id).map(more).collect();
                        plain.extend(times.iter().map(|&(key, id)| (id, key)));
                        alarms.set_all(&mut times.clone());
                    }
                    _ => {
                        let key = (Time::from_ps(ps), (sequence as u64) << 8);
                        alarms.set(id, key);
                        plain.insert(id, key);
                    }
                }
                prop_assert_eq!(alarms.first(), plain.values().min().copied());
            }
        }
    }
}
