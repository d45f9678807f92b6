//! Scalar arguments of a call, passed by value.

use smallvec::SmallVec;

/// Scalar arguments in declared order, kept as bits so that calls compare and hash exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scalars(SmallVec<[u64; 2]>);

impl Scalars {
    /// No scalars.
    pub fn new() -> Scalars {
        Scalars::default()
    }

    /// Appends a single-precision number.
    #[must_use]
    pub fn with_f32(mut self, value: f32) -> Scalars {
        self.0.push(u64::from(value.to_bits()));
        self
    }

    /// Appends an unsigned integer.
    #[must_use]
    pub fn with_u64(mut self, value: u64) -> Scalars {
        self.0.push(value);
        self
    }

    /// Scalar `i`, appended with [`Scalars::with_f32`].
    ///
    /// # Panics
    /// When there is no scalar `i`: a mistake in the task, not in its input.
    pub fn f32(&self, i: usize) -> f32 {
        f32::from_bits(self.0[i] as u32)
    }

    /// Scalar `i`, appended with [`Scalars::with_u64`].
    ///
    /// # Panics
    /// When there is no scalar `i`: a mistake in the task, not in its input.
    pub fn u64(&self, i: usize) -> u64 {
        self.0[i]
    }

    /// The bits of all scalars.
    pub fn bits(&self) -> &[u64] {
        &self.0
    }
}
