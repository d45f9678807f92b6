//! What participants move bytes through: memory that all of them may touch, in words that are atomic, so that no order
//! of accesses is undefined. Which orders occur is the schedule's affair.

use super::element::{Element, LINE_WORDS};
use super::operator::Operator;
use crate::pad::Padded;
use crate::sync::{AtomicU64, Ordering};

/// Bytes of a pair of cache lines: areas begin at multiples of it.
pub(super) const LINE_BYTES: u64 = 128;

const _: () = assert!(LINE_BYTES as usize == 8 * LINE_WORDS);

type Line = [AtomicU64; LINE_WORDS];

/// The memory of one participant.
#[derive(Debug)]
pub(super) struct Buffer {
    lines: Box<[Padded<Line>]>,
}

/// Values of a line.
type Words = [u64; LINE_WORDS];

impl Buffer {
    /// For areas of any schedule with rounds of `buffer_bytes`, which are whole lines.
    pub(super) fn new(buffer_bytes: u64) -> Buffer {
        let lines = multigrain_schedule::Schedule::memory_bytes(buffer_bytes) / LINE_BYTES;
        let line = |_| Padded(std::array::from_fn(|_| AtomicU64::new(0)));
        Buffer { lines: (0..lines).map(line).collect() }
    }

    /// The lines that hold `bytes` from line `first`, each with the words of it that are used.
    #[inline]
    fn area(&self, first: u32, bytes: usize) -> impl Iterator<Item = (&Line, usize)> {
        let lines = bytes.div_ceil(LINE_BYTES as usize);
        let used = move |i: usize| (bytes - i * LINE_BYTES as usize).div_ceil(8).min(LINE_WORDS);
        let all = &self.lines[first as usize..first as usize + lines];
        all.iter().enumerate().map(move |(i, line)| (&line.0, used(i)))
    }

    /// Stores elements.
    #[inline]
    pub(super) fn load_from<T: Element>(&self, first: u32, data: &[T]) {
        let chunks = data.chunks(LINE_BYTES as usize / size_of::<T>());
        for ((line, used), chunk) in self.area(first, size_of_val(data)).zip(chunks) {
            store(line, &T::pack(chunk), used);
        }
    }

    /// Loads elements.
    #[inline]
    pub(super) fn store_to<T: Element>(&self, first: u32, data: &mut [T]) {
        let bytes = size_of_val(data);
        let chunks = data.chunks_mut(LINE_BYTES as usize / size_of::<T>());
        for ((line, used), chunk) in self.area(first, bytes).zip(chunks) {
            T::unpack(&load(line, used), chunk);
        }
    }

    /// Copies `bytes` from another place, or another participant.
    #[inline]
    pub(super) fn copy_from(&self, first: u32, source: &Buffer, from: u32, bytes: usize) {
        for ((line, used), (other, _)) in self.area(first, bytes).zip(source.area(from, bytes)) {
            store(line, &load(other, used), used);
        }
    }

    /// Combines elements with what lies here, on their right or left.
    #[inline]
    pub(super) fn fold_into<T: Element>(&self, first: u32, data: &mut [T], right: bool, operator: &impl Operator<T>) {
        let bytes = size_of_val(data);
        let chunks = data.chunks_mut(LINE_BYTES as usize / size_of::<T>());
        for ((line, used), chunk) in self.area(first, bytes).zip(chunks) {
            let (own, here) = (T::pack(chunk), load(line, used));
            let (left, right) = if right { (&own, &here) } else { (&here, &own) };
            T::unpack(&T::combine(left, right, chunk.len(), operator), chunk);
        }
    }

    /// Stores left (+) right, element by element.
    #[inline]
    pub(super) fn combine_from<T: Element>(
        &self,
        first: u32,
        (left, left_first): (&Buffer, u32),
        (right, right_first): (&Buffer, u32),
        elements: usize,
        operator: &impl Operator<T>,
    ) {
        let bytes = elements * size_of::<T>();
        let operands = left.area(left_first, bytes).zip(right.area(right_first, bytes));
        let mut rest = elements;
        for ((line, used), ((a, _), (b, _))) in self.area(first, bytes).zip(operands) {
            let here = rest.min(LINE_BYTES as usize / size_of::<T>());
            rest -= here;
            store(line, &T::combine(&load(a, used), &load(b, used), here, operator), used);
        }
    }
}

// Relaxed: bits of registers order the accesses.

#[inline]
fn load(line: &Line, used: usize) -> Words {
    if used == LINE_WORDS {
        return std::array::from_fn(|i| line[i].load(Ordering::Relaxed));
    }
    let mut words = [0; LINE_WORDS];
    for (word, atomic) in words[..used].iter_mut().zip(line) {
        *word = atomic.load(Ordering::Relaxed);
    }
    words
}

#[inline]
fn store(line: &Line, words: &Words, used: usize) {
    if used == LINE_WORDS {
        for (word, atomic) in words.iter().zip(line) {
            atomic.store(*word, Ordering::Relaxed);
        }
        return;
    }
    for (word, atomic) in words[..used].iter().zip(line) {
        atomic.store(*word, Ordering::Relaxed);
    }
}
