//! [`Bits`] of NEON, which has no compression either: lanes are moved by the table, byte by byte.

use super::{Bits, PACKED};
use std::arch::aarch64::*;

/// What differs between the two widths: a vector, its words, its lanes, and instructions by name; `move` makes of a mask which byte
/// goes where.
macro_rules! bits {
    (
        $vector:ty, $word:ty, $lanes:literal, $shift:ty, $signed:ty,
        $splat:ident, $splat_signed:ident, $load:ident, $store:ident, $and:ident, $or:ident, $xor:ident, $without:ident, $sub:ident,
        $below:ident, $shifted:ident, $opposite:ident, $test:ident, $sum:ident, $from_bytes:ident, $to_bytes:ident,
        move($mask:ident) $move:expr $(,)?
    ) => {
        // SAFETY of all functions: NEON is part of AArch64; the caller of the trait's functions promises pointers that are valid for
        // all lanes.
        impl Bits for $vector {
            type Word = $word;
            type Shift = $shift;
            const LANES: usize = $lanes;

            each! {
                // Instructions read a signed byte; beyond the width of a lane nothing is left as it is.
                shift(by: u32) -> $shift { $splat_signed(by.min(<$word>::BITS) as $signed) }
                splat(word: u32) -> Self { $splat(word as $word) }
                load(from: *const $word) -> Self { $load(from) }
                first(self, lanes: usize) -> Self {
                    let numbers: [$word; $lanes] = std::array::from_fn(|i| i as $word);
                    $and(self, $below($load(numbers.as_ptr()), $splat(lanes as $word)))
                }
                or(self, b: Self) -> Self { $or(self, b) }
                xor(self, b: Self) -> Self { $xor(self, b) }
                without_lowest(self) -> Self { $and(self, $sub(self, $splat(1))) }
                left(self, by: $shift) -> Self { $shifted(self, by) }
                right(self, by: $shift) -> Self { $shifted(self, $opposite(by)) }
                outside(self, a: Self, b: Self, c: Self) -> Self { $without(self, $or(a, $or(b, c))) }
                nonzero(self) -> u32 {
                    let bits: [$word; $lanes] = std::array::from_fn(|i| 1 << i);
                    u32::from($sum($and($test(self, self), $load(bits.as_ptr()))))
                }
                pack(self, $mask: u32, to: *mut $word) {
                    $store(to, $from_bytes(vqtbl1q_u8($to_bytes(self), $to_bytes($move))));
                }
            }
        }
    };
}

bits!(
    uint32x4_t, u32, 4, int32x4_t, i32,
    vdupq_n_u32, vdupq_n_s32, vld1q_u32, vst1q_u32, vandq_u32, vorrq_u32, veorq_u32, vbicq_u32, vsubq_u32,
    vcltq_u32, vshlq_u32, vnegq_s32, vtstq_u32, vaddvq_u32, vreinterpretq_u32_u8, vreinterpretq_u8_u32,
    move(mask) {
        let lanes = vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(PACKED[mask as usize & 0xf]))));
        vmlaq_n_u32(vdupq_n_u32(0x0302_0100), lanes, 0x0404_0404)
    },
);
bits!(
    uint16x8_t, u16, 8, int16x8_t, i16,
    vdupq_n_u16, vdupq_n_s16, vld1q_u16, vst1q_u16, vandq_u16, vorrq_u16, veorq_u16, vbicq_u16, vsubq_u16,
    vcltq_u16, vshlq_u16, vnegq_s16, vtstq_u16, vaddvq_u16, vreinterpretq_u16_u8, vreinterpretq_u8_u16,
    move(mask) {
        let lanes = vmovl_u8(vcreate_u8(PACKED[mask as usize & 0xff]));
        vmlaq_n_u16(vdupq_n_u16(0x0100), lanes, 0x0202)
    },
);
