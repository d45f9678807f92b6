//! Operators that combine contributions, element by element.

use super::merge::Merge;
use crate::{Complex32, Complex64, DynTask, Element, Program, RawView, ReduceMut};
use std::sync::Arc;

/// An associative operator on elements of type `T`, with an identity.
///
/// Contributions are combined by a fixed tree, lower indices on the left, so that an operator that is associative only
/// up to rounding, as sums of floating-point numbers are, has one result all the same; it need not be commutative.
/// Every instruction set must give the same bits: what an operation on a NaN gives depends on the instruction, so
/// results that are NaN should be one canonical NaN.
///
/// ```
/// use multigrain_program::Operator;
///
/// /// The element of largest magnitude, the left one among equals.
/// #[derive(Debug)]
/// struct Farthest;
///
/// impl Operator<f32> for Farthest {
///     const NAME: &'static str = "farthest";
///     fn identity() -> f32 {
///         0.0
///     }
///     fn combine(left: f32, right: f32) -> f32 {
///         if right.abs() > left.abs() { right } else { left }
///     }
/// }
/// assert_eq!(Farthest::combine(Farthest::identity(), -2.0), -2.0);
/// ```
pub trait Operator<T: Element>: Send + Sync + 'static {
    /// Name, for plans and messages.
    const NAME: &'static str;
    /// Whether contributions may be combined in any order: associative and commutative to the last bit. Then a parameter
    /// can be reduced along several axes at once.
    const EXACT: bool = false;
    /// What leaves the other operand as it is.
    fn identity() -> T;
    /// Combines two elements, or what they stand for.
    fn combine(left: T, right: T) -> T;
}

/// Sums; of integers modulo 2 to the power of their bits. A NaN that comes out is the canonical one.
#[derive(Clone, Copy, Debug)]
pub struct Sum;

/// The smallest element; -0 is smaller than +0, and a NaN wins over everything, as in NumPy's `minimum`.
#[derive(Clone, Copy, Debug)]
pub struct Min;

/// The largest element; +0 is larger than -0, and a NaN wins over everything, as in NumPy's `maximum`.
#[derive(Clone, Copy, Debug)]
pub struct Max;

macro_rules! float {
    ($t:ident) => {
        impl Operator<$t> for Sum {
            const NAME: &'static str = "sum";
            /// Minus zero: plus zero would turn a sum of minus zeros into plus zero (IEEE 754-2019, 6.3).
            fn identity() -> $t {
                -0.0
            }
            fn combine(left: $t, right: $t) -> $t {
                let sum = left + right;
                if sum.is_nan() { $t::NAN } else { sum }
            }
        }
        impl Operator<$t> for Min {
            const NAME: &'static str = "min";
            const EXACT: bool = true;
            fn identity() -> $t {
                $t::INFINITY
            }
            fn combine(left: $t, right: $t) -> $t {
                if left.is_nan() || right.is_nan() {
                    $t::NAN
                } else if right < left || (right == left && right.is_sign_negative()) {
                    right
                } else {
                    left
                }
            }
        }
        impl Operator<$t> for Max {
            const NAME: &'static str = "max";
            const EXACT: bool = true;
            fn identity() -> $t {
                $t::NEG_INFINITY
            }
            fn combine(left: $t, right: $t) -> $t {
                if left.is_nan() || right.is_nan() {
                    $t::NAN
                } else if right > left || (right == left && right.is_sign_positive()) {
                    right
                } else {
                    left
                }
            }
        }
    };
}
float!(f32);
float!(f64);

macro_rules! integer {
    ($($t:ident)*) => {$(
        impl Operator<$t> for Sum {
            const NAME: &'static str = "sum";
            const EXACT: bool = true;
            fn identity() -> $t {
                0
            }
            fn combine(left: $t, right: $t) -> $t {
                left.wrapping_add(right)
            }
        }
        impl Operator<$t> for Min {
            const NAME: &'static str = "min";
            const EXACT: bool = true;
            fn identity() -> $t {
                $t::MAX
            }
            fn combine(left: $t, right: $t) -> $t {
                left.min(right)
            }
        }
        impl Operator<$t> for Max {
            const NAME: &'static str = "max";
            const EXACT: bool = true;
            fn identity() -> $t {
                $t::MIN
            }
            fn combine(left: $t, right: $t) -> $t {
                left.max(right)
            }
        }
    )*};
}
integer!(u8 i8 u16 i16 u32 i32 u64 i64);

macro_rules! complex {
    ($t:ident) => {
        impl Operator<$t> for Sum {
            const NAME: &'static str = "sum";
            fn identity() -> $t {
                $t { re: -0.0, im: -0.0 }
            }
            fn combine(left: $t, right: $t) -> $t {
                $t { re: Sum::combine(left.re, right.re), im: Sum::combine(left.im, right.im) }
            }
        }
    };
}
complex!(Complex32);
complex!(Complex64);

/// An operator without its types, for blocks that lie in memory.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    /// Name of the operator.
    pub name: &'static str,
    /// Whether contributions may be combined in any order.
    pub exact: bool,
    fill: unsafe fn(&RawView),
    combine: unsafe fn(&RawView, &RawView),
    merge: fn() -> Arc<dyn DynTask>,
}

impl Reduction {
    pub(crate) const fn of<T: Element, const R: usize, O: Operator<T>>() -> Reduction {
        Reduction {
            name: O::NAME,
            exact: O::EXACT,
            fill: fill::<T, R, O>,
            combine: combine::<T, R, O>,
            merge: || Program::erase(Merge::<T, R, O>::default()),
        }
    }

    /// The same for a number of dimensions that is known at run time.
    ///
    /// # Panics
    /// With no dimension, or more than an array may have.
    pub(crate) fn of_rank<T: Element, O: Operator<T>>(rank: usize) -> Reduction {
        match rank {
            1 => Reduction::of::<T, 1, O>(),
            2 => Reduction::of::<T, 2, O>(),
            3 => Reduction::of::<T, 3, O>(),
            4 => Reduction::of::<T, 4, O>(),
            5 => Reduction::of::<T, 5, O>(),
            6 => Reduction::of::<T, 6, O>(),
            _ => panic!("{rank} dimensions, of at most {}", crate::RANK_MAX),
        }
    }

    /// The task that combines a block into another.
    pub(crate) fn merge(&self) -> Arc<dyn DynTask> {
        (self.merge)()
    }

    /// Sets every element of a block to the identity.
    ///
    /// # Safety
    /// As for [`ReduceMut::from_raw`], except that the block need not be initialised.
    pub(crate) unsafe fn fill(&self, block: &RawView) {
        // SAFETY: passed on to the caller; `of` chose the function for the element type and rank.
        unsafe { (self.fill)(block) }
    }

    /// Combines `right` into `left`, which is the left operand.
    ///
    /// # Safety
    /// As for [`ReduceMut::from_raw`] for `left`, and for [`crate::View::from_raw`] for `right`, of one shape.
    pub(crate) unsafe fn combine(&self, left: &RawView, right: &RawView) {
        // SAFETY: as above.
        unsafe { (self.combine)(left, right) }
    }
}

unsafe fn fill<T: Element, const R: usize, O: Operator<T>>(block: &RawView) {
    // SAFETY: passed on to the caller; nothing is read.
    unsafe { ReduceMut::<T, R, O>::from_raw(block) }.clear();
}

unsafe fn combine<T: Element, const R: usize, O: Operator<T>>(left: &RawView, right: &RawView) {
    // SAFETY: passed on to the caller.
    let (mut left, right) = unsafe { (ReduceMut::<T, R, O>::from_raw(left), crate::View::<T, R>::from_raw(right)) };
    left.combine_all(&right);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one<O: Operator<f32>>(values: &[f32]) {
        for &a in values {
            let id = O::combine(O::identity(), a);
            assert!(id.to_bits() == a.to_bits() || a.is_nan() && id.is_nan(), "{}: identity and {a}", O::NAME);
            for &b in values {
                for &c in values {
                    let left = O::combine(O::combine(a, b), c);
                    let right = O::combine(a, O::combine(b, c));
                    assert_eq!(left.to_bits(), right.to_bits(), "{} of {a}, {b}, {c}", O::NAME);
                }
            }
        }
    }

    #[test]
    fn extremes_are_associative_and_keep_signs_of_zero() {
        let values = [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE];
        one::<Min>(&values);
        one::<Max>(&values);
        assert!(<Min as Operator<f32>>::combine(0.0, -0.0).is_sign_negative());
        assert!(<Max as Operator<f32>>::combine(-0.0, 0.0).is_sign_positive());
        assert!(<Sum as Operator<f32>>::combine(-0.0, <Sum as Operator<f32>>::identity()).is_sign_negative());
        assert_eq!(<Sum as Operator<f32>>::combine(f32::INFINITY, f32::NEG_INFINITY).to_bits(), f32::NAN.to_bits());
    }
}
