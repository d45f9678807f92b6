//! Operators that combine contributions, element by element.

use crate::{Complex32, Complex64, Element};

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
