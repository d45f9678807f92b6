//! What reductions combine by.

use multigrain_schedule::{Laws, Order};

/// A way to combine two elements. Its laws decide in which order a reduction may combine; an operator that claims a law
/// that it does not have gives results that depend on the algorithm.
pub trait Operator<T>: Sync {
    /// What it is called, for messages, and to tell different operators apart.
    fn name(&self) -> &str;

    /// Which laws it obeys, to the bit.
    fn laws(&self) -> Laws;

    /// Left (+) right.
    fn combine(&self, left: T, right: T) -> T;

    /// The cheapest order that gives one result.
    fn order(&self) -> Order {
        self.laws().order()
    }
}

/// The laws of what may be combined in any order.
pub(super) const BOTH: Laws = Laws { associative: true, commutative: true };

/// The sum. Of integers: wrapping, in any order. Of floats: in the fixed order, since rounding is not associative; NaN
/// results are the one canonical NaN.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum;

/// The product; as [`Sum`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Product;

/// The smaller one. Of floats: NaN, canonical, if either is, and -0 is smaller than 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Min;

/// The larger one; as [`Min`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Max;

/// All bits that are set in either.
#[derive(Clone, Copy, Debug, Default)]
pub struct Union;

impl Union {
    /// Any order.
    pub(super) fn order(self) -> Order {
        BOTH.order()
    }
}

macro_rules! operator {
    ($operator:ty, $name:literal, $laws:expr, $combine:expr, $($type:ty)*) => {$(
        impl Operator<$type> for $operator {
            fn name(&self) -> &str {
                $name
            }

            fn laws(&self) -> Laws {
                $laws
            }

            #[inline]
            fn combine(&self, left: $type, right: $type) -> $type {
                let combine: fn($type, $type) -> $type = $combine;
                combine(left, right)
            }
        }
    )*};
}

macro_rules! integers {
    ($($type:ident)*) => {$(
        operator!(Sum, "sum", BOTH, |a, b| a.wrapping_add(b), $type);
        operator!(Product, "product", BOTH, |a, b| a.wrapping_mul(b), $type);
        operator!(Min, "minimum", BOTH, |a, b| a.min(b), $type);
        operator!(Max, "maximum", BOTH, |a, b| a.max(b), $type);
    )*};
}

integers!(u8 u16 u32 u64 i8 i16 i32 i64);

const ROUNDED: Laws = Laws { associative: false, commutative: true };

macro_rules! floats {
    ($($type:ident)*) => {$(
        operator!(Sum, "sum", ROUNDED, |a, b| canonical!($type, a + b), $type);
        operator!(Product, "product", ROUNDED, |a, b| canonical!($type, a * b), $type);
        operator!(Min, "minimum", BOTH, |a, b| ordered!($type, a, b, a < b || (a == b && a.is_sign_negative())), $type);
        operator!(Max, "maximum", BOTH, |a, b| ordered!($type, a, b, a > b || (a == b && a.is_sign_positive())), $type);
    )*};
}

/// Which payload a NaN keeps depends on the instruction, so results are given one.
macro_rules! canonical {
    ($type:ident, $value:expr) => {{
        let value = $value;
        if value.is_nan() { $type::NAN } else { value }
    }};
}

macro_rules! ordered {
    ($type:ident, $a:ident, $b:ident, $first:expr) => {
        if $a.is_nan() || $b.is_nan() {
            $type::NAN
        } else if $first {
            $a
        } else {
            $b
        }
    };
}

floats!(f32 f64);
