//! Arithmetic coding (9.3.4 of the standard): bins become bits, each by what its context has seen.

mod tables;

use crate::bits::Bits;
use tables::{AFTER_LESS, CONTEXTS, INTER, INTRA, RANGES};

/// One coder a slice: what it has seen goes on from row to row.
#[derive(Clone, Debug)]
pub struct Engine {
    bits: Bits,
    low: u32,
    range: u32,
    /// Bits that are all the opposite of the next.
    outstanding: u32,
    is_first: bool,
    bins: u64,
    /// State times two, with the more probable symbol.
    contexts: [u8; CONTEXTS],
}

impl Engine {
    /// For a slice with a quantiser, which may be predicted from other pictures.
    pub fn new(qp: u8, is_inter: bool) -> Engine {
        let [m, n] = if is_inter { &INTER } else { &INTRA };
        let contexts = std::array::from_fn(|i| {
            let state = ((i32::from(m[i]) * i32::from(qp)) >> 4) + i32::from(n[i]);
            match state.clamp(1, 126) {
                state @ ..64 => 2 * (63 - state) as u8,
                state => 2 * (state - 64) as u8 + 1,
            }
        });
        Engine { bits: Bits::default(), low: 0, range: 510, outstanding: 0, is_first: true, bins: 0, contexts }
    }

    #[inline]
    fn put(&mut self, bit: u32) {
        if self.is_first {
            self.is_first = false;
        } else {
            self.bits.put(1, bit);
        }
        while self.outstanding > 0 {
            let count = self.outstanding.min(16);
            self.bits.put(count, if bit == 0 { (1 << count) - 1 } else { 0 });
            self.outstanding -= count;
        }
    }

    #[inline]
    fn renormalise(&mut self) {
        while self.range < 256 {
            match self.low {
                ..256 => self.put(0),
                512.. => {
                    self.low -= 512;
                    self.put(1);
                }
                _ => {
                    self.low -= 256;
                    self.outstanding += 1;
                }
            }
            self.range <<= 1;
            self.low <<= 1;
        }
    }

    /// A bin by a context.
    #[inline]
    pub fn bin(&mut self, context: usize, value: bool) {
        self.bins += 1;
        let at = self.contexts[context];
        let (state, likely) = (at / 2, at & 1);
        let less = u32::from(RANGES[usize::from(state)][(self.range >> 6 & 3) as usize]);
        self.range -= less;
        self.contexts[context] = if u8::from(value) == likely {
            2 * (state + 1).min(62) + likely
        } else {
            self.low += self.range;
            self.range = less;
            2 * AFTER_LESS[usize::from(state)] + if state == 0 { 1 - likely } else { likely }
        };
        self.renormalise();
    }

    /// A bin of which nothing is known.
    #[inline]
    pub fn plain(&mut self, value: bool) {
        self.bins += 1;
        self.low <<= 1;
        if value {
            self.low += self.range;
        }
        match self.low {
            ..512 => self.put(0),
            1024.. => {
                self.low -= 1024;
                self.put(1);
            }
            _ => {
                self.low -= 512;
                self.outstanding += 1;
            }
        }
    }

    /// A number by an Exp-Golomb code of plain bins (9.3.2.3).
    pub fn plain_number(&mut self, mut order: u32, mut value: u32) {
        while value >= 1 << order {
            self.plain(true);
            value -= 1 << order;
            order += 1;
        }
        self.plain(false);
        (0..order).rev().for_each(|bit| self.plain(value >> bit & 1 == 1));
    }

    /// Whether the slice, or what is coded by arithmetic, ends here. If so, all bits are there, the last of them a one.
    pub fn end(&mut self, ends: bool) {
        self.bins += 1;
        self.range -= 2;
        if !ends {
            return self.renormalise();
        }
        self.low += self.range;
        self.range = 2;
        self.renormalise();
        self.put(self.low >> 9 & 1);
        self.bits.put(2, self.low >> 7 & 3 | 1);
    }

    /// Bytes as they are, after an end, and behind them a beginning.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bits.align();
        bytes.iter().for_each(|byte| self.bits.put(8, (*byte).into()));
        (self.low, self.range, self.outstanding, self.is_first) = (0, 510, 0, true);
    }

    /// How many bins there were.
    pub fn bins(&self) -> u64 {
        self.bins
    }

    /// The bits, after the end.
    pub fn into_bits(self) -> Bits {
        self.bits
    }
}
