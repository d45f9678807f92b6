//! Scalar arguments of a call, passed by value.

use smallvec::SmallVec;
use std::fmt;

/// Scalar arguments in declared order, kept as bits so that calls compare and hash exactly; and, for blocks with a halo,
/// how much of it is there.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Scalars {
    bits: SmallVec<[u64; 2]>,
    /// For each window of the task's notation, elements of the block before the first that belongs to the axis.
    before: SmallVec<[u64; 2]>,
}

impl Scalars {
    /// No scalars.
    pub fn new() -> Scalars {
        Scalars::default()
    }

    /// Appends a single-precision number.
    #[must_use]
    pub fn with_f32(mut self, value: f32) -> Scalars {
        self.bits.push(u64::from(value.to_bits()));
        self
    }

    /// Appends a double-precision number.
    #[must_use]
    pub fn with_f64(self, value: f64) -> Scalars {
        self.with_u64(value.to_bits())
    }

    /// Appends an unsigned integer.
    #[must_use]
    pub fn with_u64(mut self, value: u64) -> Scalars {
        self.bits.push(value);
        self
    }

    /// Scalar `i`, appended with [`Scalars::with_f32`].
    ///
    /// # Panics
    /// When there is no scalar `i`: a mistake in the task, not in its input.
    pub fn f32(&self, i: usize) -> f32 {
        f32::from_bits(self.bits[i] as u32)
    }

    /// Scalar `i`, appended with [`Scalars::with_f64`].
    ///
    /// # Panics
    /// When there is no scalar `i`: a mistake in the task, not in its input.
    pub fn f64(&self, i: usize) -> f64 {
        f64::from_bits(self.bits[i])
    }

    /// Scalar `i`, appended with [`Scalars::with_u64`].
    ///
    /// # Panics
    /// When there is no scalar `i`: a mistake in the task, not in its input.
    pub fn u64(&self, i: usize) -> u64 {
        self.bits[i]
    }

    /// The same for a block of which so many elements lie before the first of its axis, for each window of the
    /// [notation](crate::Notation), in the order of parameters and dimensions. Without, blocks begin where their axes do.
    #[must_use]
    pub fn with_before(mut self, before: &[u64]) -> Scalars {
        // A block without halo is the same block, however it is written.
        self.before = if before.iter().all(|&b| b == 0) { SmallVec::new() } else { SmallVec::from_slice(before) };
        self
    }

    /// Elements of the block of a window that lie before the first of its axis.
    pub fn before(&self, window: usize) -> u64 {
        self.before.get(window).copied().unwrap_or(0)
    }
}

impl fmt::Debug for Scalars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.before.is_empty() {
            true => write!(f, "{:?}", self.bits.as_slice()),
            false => write!(f, "{:?} behind {:?}", self.bits.as_slice(), self.before.as_slice()),
        }
    }
}
