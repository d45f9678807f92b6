//! [`Lanes`] of NEON.

use super::{Lanes, NAN_BITS};
use std::arch::aarch64::*;

/// Operations that are one instruction each.
macro_rules! plain {
    ($($name:ident($this:ident $(, $other:ident)*) = $intrinsic:ident($($operand:ident),*);)*) => {$(
        #[inline(always)]
        unsafe fn $name($this $(, $other: Self)*) -> Self {
            unsafe { $intrinsic($($operand),*) }
        }
    )*};
}

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

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        unsafe { vdupq_n_f32(value) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        unsafe { vld1q_f32(from) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { vst1q_f32(to, self) }
    }
    #[inline(always)]
    unsafe fn stream(self, to: *mut f32) {
        unsafe { vst1q_f32(to, self) }
    }
    plain! {
        fma(self, a, b) = vfmaq_f32(self, a, b);
        fnma(self, a, b) = vfmsq_f32(self, a, b);
        add(self, b) = vaddq_f32(self, b);
        sub(self, b) = vsubq_f32(self, b);
        mul(self, b) = vmulq_f32(self, b);
        div(self, b) = vdivq_f32(self, b);
        sqrt(self) = vsqrtq_f32(self);
    }
    #[inline(always)]
    unsafe fn fms(self, a: Self, b: Self) -> Self {
        unsafe { vfmaq_f32(vnegq_f32(self), a, b) }
    }
    #[inline(always)]
    unsafe fn canonical(self) -> Self {
        unsafe { vbslq_f32(vceqq_f32(self, self), self, vdupq_n_f32(f32::from_bits(NAN_BITS))) }
    }
    #[inline(always)]
    unsafe fn halving_sum(self) -> f32 {
        unsafe {
            let two = vadd_f32(vget_low_f32(self), vget_high_f32(self));
            vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two)
        }
    }
    #[inline(always)]
    unsafe fn mask(first: usize, end: usize) -> uint32x4_t {
        debug_assert!(first <= end && end <= 4);
        unsafe {
            let lane = vld1q_u32([0, 1, 2, 3].as_ptr());
            vandq_u32(vcgeq_u32(lane, vdupq_n_u32(first as u32)), vcltq_u32(lane, vdupq_n_u32(end as u32)))
        }
    }
    #[inline(always)]
    unsafe fn load_masked(mask: uint32x4_t, from: *const f32) -> Self {
        let mut lanes = [0.0; 4];
        unsafe {
            for (i, is_chosen) in chosen(mask).into_iter().enumerate() {
                if is_chosen != 0 {
                    lanes[i] = *from.wrapping_add(i);
                }
            }
            vld1q_f32(lanes.as_ptr())
        }
    }
    #[inline(always)]
    unsafe fn store_masked(self, mask: uint32x4_t, to: *mut f32) {
        let mut lanes = [0.0; 4];
        unsafe {
            vst1q_f32(lanes.as_mut_ptr(), self);
            for (i, is_chosen) in chosen(mask).into_iter().enumerate() {
                if is_chosen != 0 {
                    *to.wrapping_add(i) = lanes[i];
                }
            }
        }
    }
    #[inline(always)]
    unsafe fn fma_masked(self, mask: uint32x4_t, a: Self, b: Self) -> Self {
        unsafe { vbslq_f32(mask, vfmaq_f32(self, a, b), self) }
    }
    #[inline(always)]
    unsafe fn equal(self, b: Self) -> uint32x4_t {
        unsafe { vceqq_f32(self, b) }
    }
    #[inline(always)]
    unsafe fn select(self, mask: uint32x4_t, b: Self) -> Self {
        unsafe { vbslq_f32(mask, b, self) }
    }
    #[inline(always)]
    unsafe fn halved_from(self, bits: u32) -> Self {
        unsafe {
            let half = vshrq_n_u32::<1>(vreinterpretq_u32_f32(self));
            vreinterpretq_f32_u32(vsubq_u32(vdupq_n_u32(bits), half))
        }
    }
    #[inline(always)]
    unsafe fn add_to(self, to: *mut f64) {
        unsafe {
            let (low, high) = (vcvt_f64_f32(vget_low_f32(self)), vcvt_high_f64_f32(self));
            vst1q_f64(to, vaddq_f64(vld1q_f64(to), low));
            vst1q_f64(to.add(2), vaddq_f64(vld1q_f64(to.add(2)), high));
        }
    }
    #[inline(always)]
    fn prefetch(_at: *const f32) {
        // Without a stable intrinsic; streams are found by the hardware.
    }
    #[inline(always)]
    fn fence() {
        // `stream` stores as others do.
    }
}
