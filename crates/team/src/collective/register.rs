//! Signal registers: a bit for each sender and half, and beside it what the sender is doing.
//!
//! A schedule sets bits and clears them, and its proof says that no bit is set twice without being cleared in between. So
//! a register need not be cleared at all: a sender *flips* its bit, and the receiver, who alone knows how often it has
//! awaited it, awaits the flip. That spares the receiver an atomic operation, and the line one way to and fro.

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

/// All registers of a group.
#[derive(Debug)]
pub(super) struct RegisterFile {
    /// For each participant as many as its senders need.
    registers: Box<[Padded<Register>]>,
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
        let register = || Register { word: Signal::new(1), marks: std::array::from_fn(|_| AtomicU32::new(0)) };
        RegisterFile {
            registers: (0..all).map(|_| Padded(register())).collect(),
            seen: (0..all).map(|_| Padded(AtomicU64::new(0))).collect(),
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
        let (register, bit) = (&self.registers[found.register as usize], found.bits[usize::from(odd)]);
        // Relaxed: published by the flip.
        register.marks[beside(bit)].store(mark, Ordering::Relaxed);
        register.word.flip(2 << bit);
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
        let (register, bit) = (&self.registers[found.register as usize], found.bits[usize::from(odd)]);
        let seen = &self.seen[found.register as usize];
        // Relaxed, here and below: only the receiver's own thread uses it.
        let before = seen.load(Ordering::Relaxed);
        let flip = 2 << bit;
        let flipped = |word| (word ^ before) & flip != 0;
        if !register.word.spin_until(flipped, spin, Some(abort)).map_err(&aborted)? {
            before_sleep()?;
            register.word.sleep_until(flipped, Some(abort)).map_err(&aborted)?;
        }
        seen.store(before ^ flip, Ordering::Relaxed);
        Ok(register.marks[beside(bit)].load(Ordering::Relaxed))
    }
}
