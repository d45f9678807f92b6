//! Signal registers: a bit for each sender and half, and beside it what the sender is doing.
//!
//! A schedule sets bits and clears them, and its proof says that no bit is set twice without being cleared in between. So
//! a register need not be cleared at all: a sender *flips* its bit, and the receiver, who alone knows how often it has
//! awaited it, awaits the flip. That spares the receiver an atomic operation, and the line one way to and fro.
//!
//! Of two participants each flips the other's bit and then awaits its own, so both registers lie on one line, and who waits
//! takes the line as for writing: it passes once for each signal, where two lines pass twice.

use crate::abort::{Abort, Aborted};
use crate::pad::Padded;
use crate::signal::{SLEEPY, Signal};
use crate::spin::SpinLimit;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use multigrain_schedule::{Bit, Place, Registers};

/// Bits in half a register: bit 0 of the word is [`SLEEPY`], and two halves share the others.
const HALF_BITS: u32 = 31;

/// Where the bits of a half lie.
const LAYOUT: Registers = Registers { half_bits: HALF_BITS, registers: u32::MAX };

const _: () = assert!(SLEEPY == 1 && 2 * HALF_BITS < 64);

/// What a sender says about its operation: a hash, compared by the receiver.
pub(super) type Mark = u32;

/// A register. The marks of the first bits share the cache line with the word.
#[derive(Debug)]
#[repr(C)]
struct Register {
    word: Signal,
    marks: [AtomicU32; 2 * HALF_BITS as usize],
}

/// The registers of two participants with a sender each.
#[derive(Debug)]
#[repr(C)]
struct Pair {
    first: Signal,
    marks: [[AtomicU32; 2]; 2],
    second: Signal,
}

/// Both words and all marks share a line; what lies behind the second word is for those that sleep.
#[cfg(not(loom))]
const _: () = assert!(std::mem::offset_of!(Pair, second) + size_of::<u64>() <= 64);

#[derive(Debug)]
enum Lines {
    /// For each participant as many registers as its senders need.
    Each(Box<[Padded<Register>]>),
    Pair(Box<Padded<Pair>>),
}

/// All registers of a group.
#[derive(Debug)]
pub(super) struct RegisterFile {
    lines: Lines,
    /// What each receiver has awaited: for each of its registers the flips that it has seen. Only its own thread uses
    /// them.
    seen: Box<[Padded<AtomicU64>]>,
}

/// A bit, found: which register of all, and which bit of it, in even and in odd rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    register: u32,
    bits: [u8; 2],
}

/// Where the mark of a bit lies: those of the first bits of *both* halves on the line of the word.
#[inline]
fn beside(bit: u8) -> usize {
    let (low, odd) = (u32::from(bit) % HALF_BITS, u32::from(bit) / HALF_BITS);
    (2 * low + odd % 2) as usize
}

impl RegisterFile {
    /// Registers for `size` participants with at most `bits` senders each.
    pub(super) fn new(size: u32, bits: u32) -> RegisterFile {
        let each = bits.div_ceil(HALF_BITS).max(1) as usize;
        let all = size as usize * each;
        let mark = |_| AtomicU32::new(0);
        let lines = if (size, bits) == (2, 1) {
            let marks = std::array::from_fn(|_| std::array::from_fn(mark));
            Lines::Pair(Box::new(Padded(Pair { first: Signal::new(1), marks, second: Signal::new(1) })))
        } else {
            let register = || Register { word: Signal::new(1), marks: std::array::from_fn(mark) };
            Lines::Each((0..all).map(|_| Padded(register())).collect())
        };
        RegisterFile { lines, seen: (0..all).map(|_| Padded(AtomicU64::new(0))).collect() }
    }

    /// A register's word, and the mark of one of its bits.
    #[inline]
    fn at(&self, register: u32, bit: u8) -> (&Signal, &AtomicU32) {
        match &self.lines {
            Lines::Each(registers) => {
                let register = &registers[register as usize];
                (&register.word, &register.marks[beside(bit)])
            }
            Lines::Pair(pair) => {
                let word = if register == 0 { &pair.first } else { &pair.second };
                (word, &pair.marks[register as usize][beside(bit)])
            }
        }
    }

    /// Where a bit of `receiver` lies if it has at most `bits` senders.
    pub(super) fn find(receiver: u32, bit: Bit, bits: u32) -> Found {
        let each = bits.div_ceil(HALF_BITS).max(1);
        let [even, odd] = [0, 1].map(|round| LAYOUT.place(bit, round));
        let Place { register, .. } = even;
        Found { register: receiver * each + register, bits: [even.bit as u8, odd.bit as u8] }
    }

    /// Sets a bit, once for each time that it is awaited. What the caller did before is visible to whoever awaits it.
    #[inline]
    pub(super) fn signal(&self, found: Found, odd: bool, mark: Mark) {
        let bit = found.bits[usize::from(odd)];
        let (word, its_mark) = self.at(found.register, bit);
        // Relaxed: published by the flip.
        its_mark.store(mark, Ordering::Relaxed);
        word.flip(2 << bit);
    }

    /// Waits for a bit and clears it. Returns what the sender says that it is doing. Before it parks it asks whether it
    /// should.
    #[inline]
    pub(super) fn wait<E>(
        &self,
        found: Found,
        odd: bool,
        spin: SpinLimit,
        abort: &Abort,
        aborted: impl Fn(Aborted) -> E,
        before_sleep: impl FnOnce() -> Result<(), E>,
    ) -> Result<Mark, E> {
        let bit = found.bits[usize::from(odd)];
        let (word, mark) = self.at(found.register, bit);
        let seen = &self.seen[found.register as usize];
        // Relaxed, here and below: only the receiver's own thread uses it.
        let before = seen.load(Ordering::Relaxed);
        let flip = 2 << bit;
        let flipped = |word| (word ^ before) & flip != 0;
        let seen_flipped = match &self.lines {
            Lines::Each(_) => word.spin_until(flipped, spin, Some(abort)),
            Lines::Pair(_) => word.spin_owning(flipped, spin, Some(abort)),
        };
        if !seen_flipped.map_err(&aborted)? {
            before_sleep()?;
            word.sleep_until(flipped, Some(abort)).map_err(&aborted)?;
        }
        seen.store(before ^ flip, Ordering::Relaxed);
        Ok(mark.load(Ordering::Relaxed))
    }
}
