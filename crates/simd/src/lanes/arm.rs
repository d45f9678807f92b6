//! [`Lanes`] of NEON.

use super::{Lanes, NAN_BITS};
use std::arch::aarch64::*;

/// Which lanes are chosen.
#[inline(always)]
unsafe fn chosen(mask: uint32x4_t) -> [u32; 4] {
    let mut lanes = [0; 4];
    // SAFETY: NEON is part of the architecture; the array has four elements.
    unsafe { vst1q_u32(lanes.as_mut_ptr(), mask) };
    lanes
}

// SAFETY of every block below: NEON is part of the architecture; the caller of a function of `Lanes` guarantees the pointers,
// as the trait demands.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Lanes for float32x4_t {
    const LANES: usize = 4;
    type Mask = uint32x4_t;
    type Index = uint8x16_t;
    type Order = bool;

    each! {
        splat(value: f32) -> Self { vdupq_n_f32(value) }
        load(from: *const f32) -> Self { vld1q_f32(from) }
        store(self, to: *mut f32) { vst1q_f32(to, self) }
        stream(self, to: *mut f32) { vst1q_f32(to, self) }
        fma(self, a: Self, b: Self) -> Self { vfmaq_f32(self, a, b) }
        fnma(self, a: Self, b: Self) -> Self { vfmsq_f32(self, a, b) }
        add(self, b: Self) -> Self { vaddq_f32(self, b) }
        sub(self, b: Self) -> Self { vsubq_f32(self, b) }
        mul(self, b: Self) -> Self { vmulq_f32(self, b) }
        div(self, b: Self) -> Self { vdivq_f32(self, b) }
        sqrt(self) -> Self { vsqrtq_f32(self) }
        fms(self, a: Self, b: Self) -> Self { vfmaq_f32(vnegq_f32(self), a, b) }
        canonical(self) -> Self { vbslq_f32(vceqq_f32(self, self), self, vdupq_n_f32(f32::from_bits(NAN_BITS))) }
        halving_sum(self) -> f32 {
            let two = vadd_f32(vget_low_f32(self), vget_high_f32(self));
            vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two)
        }
        mask(first: usize, end: usize) -> uint32x4_t {
            debug_assert!(first <= end && end <= 4);
            let lane = vld1q_u32([0, 1, 2, 3].as_ptr());
            vandq_u32(vcgeq_u32(lane, vdupq_n_u32(first as u32)), vcltq_u32(lane, vdupq_n_u32(end as u32)))
        }
        load_masked(mask: uint32x4_t, from: *const f32) -> Self {
            let mut lanes = [0.0; 4];
            for (i, is_chosen) in chosen(mask).into_iter().enumerate() {
                if is_chosen != 0 {
                    lanes[i] = *from.wrapping_add(i);
                }
            }
            vld1q_f32(lanes.as_ptr())
        }
        store_masked(self, mask: uint32x4_t, to: *mut f32) {
            let mut lanes = [0.0; 4];
            vst1q_f32(lanes.as_mut_ptr(), self);
            for (i, is_chosen) in chosen(mask).into_iter().enumerate() {
                if is_chosen != 0 {
                    *to.wrapping_add(i) = lanes[i];
                }
            }
        }
        fma_masked(self, mask: uint32x4_t, a: Self, b: Self) -> Self { vbslq_f32(mask, vfmaq_f32(self, a, b), self) }
        equal(self, b: Self) -> uint32x4_t { vceqq_f32(self, b) }
        select(self, mask: uint32x4_t, b: Self) -> Self { vbslq_f32(mask, b, self) }
        max(self, b: Self) -> Self { vmaxq_f32(self, b) }
        any_above(self, limit: f32) -> bool { vmaxvq_f32(self) > limit }
        index(from: *const u32) -> uint8x16_t {
            // The bytes of each entry.
            let first = vmulq_n_u32(vld1q_u32(from), 0x0404_0404);
            vreinterpretq_u8_u32(vaddq_u32(first, vdupq_n_u32(0x0302_0100)))
        }
        look_up(table: *const f32, index: uint8x16_t) -> Self {
            let low = vqtbl4q_u8(vld1q_u8_x4(table.cast()), index);
            let high = vld1q_u8_x4(table.cast::<u8>().add(64));
            vreinterpretq_f32_u8(vqtbx4q_u8(low, high, vsubq_u8(index, vdupq_n_u8(64))))
        }
        order_of_loads(swapped: bool) -> bool { swapped }
        order_of_stores(swapped: bool) -> bool { swapped }
        load_complex(from: *const f32, swapped: bool) -> (Self, Self) {
            let float32x4x2_t(re, im) = vld2q_f32(from);
            if swapped { (im, re) } else { (re, im) }
        }
        interleave(re: Self, im: Self, swapped: bool) -> (Self, Self) {
            let (re, im) = if swapped { (im, re) } else { (re, im) };
            (vzip1q_f32(re, im), vzip2q_f32(re, im))
        }
        halved_from(self, bits: u32) -> Self {
            let half = vshrq_n_u32::<1>(vreinterpretq_u32_f32(self));
            vreinterpretq_f32_u32(vsubq_u32(vdupq_n_u32(bits), half))
        }
        add_to(self, to: *mut f64) {
            let (low, high) = (vcvt_f64_f32(vget_low_f32(self)), vcvt_high_f64_f32(self));
            vst1q_f64(to, vaddq_f64(vld1q_f64(to), low));
            vst1q_f64(to.add(2), vaddq_f64(vld1q_f64(to.add(2)), high));
        }
        transpose(square: &mut [Self; 16]) {
            let s = *square;
            let (a, b) = (vtrnq_f32(s[0], s[1]), vtrnq_f32(s[2], s[3]));
            let low = |a: Self, b: Self| vcombine_f32(vget_low_f32(a), vget_low_f32(b));
            let high = |a: Self, b: Self| vcombine_f32(vget_high_f32(a), vget_high_f32(b));
            (square[0], square[1]) = (low(a.0, b.0), low(a.1, b.1));
            (square[2], square[3]) = (high(a.0, b.0), high(a.1, b.1));
        }
    }
    #[inline(always)]
    fn prefetch_near(_at: *const f32) {}
    #[inline(always)]
    fn prefetch(_at: *const f32) {
        // Without a stable intrinsic; streams are found by the hardware.
    }
    #[inline(always)]
    fn fence() {
        // `stream` stores as others do.
    }
}
