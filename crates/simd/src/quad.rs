//! Four single-precision numbers side by side.
//!
//! Every operation is rounded once and on its own, so the bits are the same everywhere. On x86-64 the vectors that every
//! such processor has are used by name, for compilers cut arrays of four into pieces.

use std::ops::{Add, AddAssign, Mul};

/// Numbers of a [`Quad`].
pub const QUAD: usize = 4;

#[cfg(not(target_arch = "x86_64"))]
pub use portable::Quad;
#[cfg(target_arch = "x86_64")]
pub use sse::Quad;

impl Default for Quad {
    fn default() -> Self {
        Self::ZERO
    }
}

impl AddAssign for Quad {
    #[inline(always)]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Quad {
    /// (a + b) + (c + d).
    #[inline(always)]
    pub fn sum(self) -> f32 {
        let [a, b, c, d] = self.to_array();
        (a + b) + (c + d)
    }
}

#[cfg(target_arch = "x86_64")]
mod sse {
    use super::{Add, Mul, QUAD};
    use std::arch::x86_64::*;

    /// Four numbers.
    #[derive(Clone, Copy, Debug)]
    pub struct Quad(__m128);

    impl Quad {
        /// Zeros.
        pub const ZERO: Self = Self::splat(0.0);

        /// These numbers.
        #[inline(always)]
        pub const fn new(values: [f32; QUAD]) -> Self {
            // SAFETY: both are 16 bytes, and all bit patterns are numbers of both.
            Self(unsafe { std::mem::transmute::<[f32; QUAD], __m128>(values) })
        }

        /// All of them `value`.
        #[inline(always)]
        pub const fn splat(value: f32) -> Self {
            Self::new([value; QUAD])
        }

        /// The numbers.
        #[inline(always)]
        pub fn to_array(self) -> [f32; QUAD] {
            // SAFETY: both are 16 bytes, and all bit patterns are numbers of both.
            unsafe { std::mem::transmute::<__m128, [f32; QUAD]>(self.0) }
        }

        /// Every number one lane up; `first` comes in.
        #[inline(always)]
        pub fn up(self, first: f32) -> Self {
            // SAFETY: SSE is part of x86-64.
            Self(unsafe { _mm_move_ss(_mm_shuffle_ps::<0b10_01_00_00>(self.0, self.0), _mm_set_ss(first)) })
        }

        /// Every number one lane down; zero comes in.
        #[inline(always)]
        pub fn down(self) -> Self {
            // SAFETY: SSE is part of x86-64.
            unsafe {
                let rest = _mm_move_ss(self.0, _mm_setzero_ps());
                Self(_mm_shuffle_ps::<0b00_11_10_01>(rest, rest))
            }
        }

        /// The larger of each pair.
        #[inline(always)]
        pub fn max(self, other: Self) -> Self {
            // SAFETY: SSE is part of x86-64.
            Self(unsafe { _mm_max_ps(self.0, other.0) })
        }

        /// These numbers where `gate` is positive, 0 elsewhere.
        #[inline(always)]
        pub fn where_positive(self, gate: Self) -> Self {
            // SAFETY: SSE is part of x86-64.
            Self(unsafe { _mm_and_ps(_mm_cmpgt_ps(gate.0, _mm_setzero_ps()), self.0) })
        }

        /// Whether any number differs from the other's.
        #[inline(always)]
        pub fn differs(self, other: Self) -> bool {
            // SAFETY: SSE is part of x86-64.
            unsafe { _mm_movemask_ps(_mm_cmpneq_ps(self.0, other.0)) != 0 }
        }
    }

    impl Add for Quad {
        type Output = Quad;
        #[inline(always)]
        fn add(self, other: Self) -> Self {
            // SAFETY: SSE is part of x86-64.
            Self(unsafe { _mm_add_ps(self.0, other.0) })
        }
    }

    impl Mul for Quad {
        type Output = Quad;
        #[inline(always)]
        fn mul(self, other: Self) -> Self {
            // SAFETY: SSE is part of x86-64.
            Self(unsafe { _mm_mul_ps(self.0, other.0) })
        }
    }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
// Of x86-64 it is what the vectors are compared with.
#[cfg_attr(target_arch = "x86_64", allow(unreachable_pub))]
mod portable {
    use super::{Add, Mul, QUAD};
    use std::array::from_fn;

    /// Four numbers.
    #[derive(Clone, Copy, Debug)]
    #[repr(align(16))]
    pub struct Quad([f32; QUAD]);

    impl Quad {
        /// Zeros.
        #[cfg_attr(target_arch = "x86_64", expect(dead_code))]
        pub const ZERO: Self = Self([0.0; QUAD]);

        /// These numbers.
        #[inline(always)]
        pub const fn new(values: [f32; QUAD]) -> Self {
            Self(values)
        }

        /// All of them `value`.
        #[cfg_attr(target_arch = "x86_64", expect(dead_code))]
        #[inline(always)]
        pub const fn splat(value: f32) -> Self {
            Self([value; QUAD])
        }

        /// The numbers.
        #[inline(always)]
        pub fn to_array(self) -> [f32; QUAD] {
            self.0
        }

        /// Every number one lane up; `first` comes in.
        #[inline(always)]
        pub fn up(self, first: f32) -> Self {
            let [a, b, c, _] = self.0;
            Self([first, a, b, c])
        }

        /// Every number one lane down; zero comes in.
        #[inline(always)]
        pub fn down(self) -> Self {
            let [_, b, c, d] = self.0;
            Self([b, c, d, 0.0])
        }

        /// The larger of each pair.
        #[inline(always)]
        pub fn max(self, other: Self) -> Self {
            Self(from_fn(|i| if self.0[i] > other.0[i] { self.0[i] } else { other.0[i] }))
        }

        /// These numbers where `gate` is positive, 0 elsewhere.
        #[inline(always)]
        pub fn where_positive(self, gate: Self) -> Self {
            Self(from_fn(|i| if gate.0[i] > 0.0 { self.0[i] } else { 0.0 }))
        }

        /// Whether any number differs from the other's.
        #[inline(always)]
        pub fn differs(self, other: Self) -> bool {
            self.0 != other.0
        }
    }

    impl Add for Quad {
        type Output = Quad;
        #[inline(always)]
        fn add(self, other: Self) -> Self {
            Self(from_fn(|i| self.0[i] + other.0[i]))
        }
    }

    impl Mul for Quad {
        type Output = Quad;
        #[inline(always)]
        fn mul(self, other: Self) -> Self {
            Self(from_fn(|i| self.0[i] * other.0[i]))
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::{portable, sse};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn vectors_do_what_arrays_do(a: [f32; 4], b: [f32; 4]) {
            let (x, y) = (sse::Quad::new(a), sse::Quad::new(b));
            let (p, q) = (portable::Quad::new(a), portable::Quad::new(b));
            let pairs = [
                (x + y, p + q), (x * y, p * q), (x.up(b[2]), p.up(b[2])), (x.down(), p.down()),
                (x.max(y), p.max(q)), (x.where_positive(y), p.where_positive(q)),
            ];
            for (vector, array) in pairs {
                prop_assert_eq!(vector.to_array().map(f32::to_bits), array.to_array().map(f32::to_bits));
            }
            prop_assert_eq!(x.differs(y), p.differs(q));
            prop_assert!(!x.differs(x));
        }
    }
}
