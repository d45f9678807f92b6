//! Elements, and how they lie in words.

use super::operator::{BOTH, Operator, Union};
use multigrain_schedule::Laws;

/// Words of a line of a buffer.
pub(super) const LINE_WORDS: usize = 16;

type Words = [u64; LINE_WORDS];

mod sealed {
    pub trait Sealed {}
}

/// A number that collective operations can move and combine: integers and floats of 1 to 8 bytes.
pub trait Element: sealed::Sealed + Copy + Send + Sync + PartialEq + std::fmt::Debug + 'static {
    /// All bits zero.
    const ZERO: Self;

    #[doc(hidden)]
    const NAME: &'static str;

    /// Up to a line of elements as words; what is missing is zero.
    #[doc(hidden)]
    fn pack(data: &[Self]) -> [u64; LINE_WORDS];

    /// As many elements as there is room for.
    #[doc(hidden)]
    fn unpack(words: &[u64; LINE_WORDS], data: &mut [Self]);

    /// Combines the first `elements` of two lines.
    #[doc(hidden)]
    fn combine(
        left: &[u64; LINE_WORDS],
        right: &[u64; LINE_WORDS],
        elements: usize,
        operator: &impl Operator<Self>,
    ) -> [u64; LINE_WORDS];

    #[doc(hidden)]
    fn union(self, other: Self) -> Self;
}

macro_rules! elements {
    ($($type:ty, $bits:ty, $to:expr, $from:expr;)*) => {$(
        impl sealed::Sealed for $type {}

        impl Element for $type {
            const ZERO: $type = 0 as $type;
            const NAME: &'static str = stringify!($type);

            #[inline]
            fn pack(data: &[$type]) -> Words {
                const LANES: usize = 8 / size_of::<$type>();
                let word = |lanes: &[$type]| {
                    let mut word = 0u64;
                    for (i, lane) in lanes.iter().enumerate() {
                        word |= u64::from($to(*lane)) << (i * <$bits>::BITS as usize);
                    }
                    word
                };
                let mut words = [0; LINE_WORDS];
                if let Ok(full) = <&[$type; LANES * LINE_WORDS]>::try_from(data) {
                    // A length that the compiler knows: plain copies.
                    for (packed, lanes) in words.iter_mut().zip(full.chunks_exact(LANES)) {
                        *packed = word(lanes);
                    }
                } else {
                    for (packed, lanes) in words.iter_mut().zip(data.chunks(LANES)) {
                        *packed = word(lanes);
                    }
                }
                words
            }

            #[inline]
            fn unpack(words: &Words, data: &mut [$type]) {
                const LANES: usize = 8 / size_of::<$type>();
                let unpack = |word: u64, lanes: &mut [$type]| {
                    for (i, lane) in lanes.iter_mut().enumerate() {
                        *lane = $from((word >> (i * <$bits>::BITS as usize)) as $bits);
                    }
                };
                if let Ok(full) = <&mut [$type; LANES * LINE_WORDS]>::try_from(&mut *data) {
                    for (word, lanes) in words.iter().zip(full.chunks_exact_mut(LANES)) {
                        unpack(*word, lanes);
                    }
                } else {
                    for (word, lanes) in words.iter().zip(data.chunks_mut(LANES)) {
                        unpack(*word, lanes);
                    }
                }
            }

            #[inline]
            fn combine(left: &Words, right: &Words, elements: usize, operator: &impl Operator<$type>) -> Words {
                const LINE: usize = 8 / size_of::<$type>() * LINE_WORDS;
                let (mut a, mut b) = ([<$type>::ZERO; LINE], [<$type>::ZERO; LINE]);
                <$type>::unpack(left, &mut a);
                <$type>::unpack(right, &mut b);
                if elements == LINE {
                    for i in 0..LINE {
                        a[i] = operator.combine(a[i], b[i]);
                    }
                } else {
                    for (a, b) in a.iter_mut().zip(b).take(elements) {
                        *a = operator.combine(*a, b);
                    }
                }
                <$type>::pack(&a)
            }

            #[inline]
            fn union(self, other: $type) -> $type {
                $from($to(self) | $to(other))
            }
        }
    )*};
}

elements! {
    u8, u8, |x: u8| x, |x: u8| x;
    u16, u16, |x: u16| x, |x: u16| x;
    u32, u32, |x: u32| x, |x: u32| x;
    u64, u64, |x: u64| x, |x: u64| x;
    i8, u8, |x: i8| x.cast_unsigned(), |x: u8| x.cast_signed();
    i16, u16, |x: i16| x.cast_unsigned(), |x: u16| x.cast_signed();
    i32, u32, |x: i32| x.cast_unsigned(), |x: u32| x.cast_signed();
    i64, u64, |x: i64| x.cast_unsigned(), |x: u64| x.cast_signed();
    f32, u32, f32::to_bits, f32::from_bits;
    f64, u64, f64::to_bits, f64::from_bits;
}

impl<T: Element> Operator<T> for Union {
    fn name(&self) -> &str {
        "union"
    }

    fn laws(&self) -> Laws {
        BOTH
    }

    #[inline]
    fn combine(&self, left: T, right: T) -> T {
        left.union(right)
    }
}
