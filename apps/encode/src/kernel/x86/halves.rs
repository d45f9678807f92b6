//! Half samples. One of the modules of this crate with `unsafe` in it.

use crate::kernel::portable;
use std::arch::x86_64::*;

/// Samples of one step.
const STEP: usize = 32;

/// The six taps (8.4.2.2.1) of 32 places, from what lies at each tap: words of places 0 to 7 and 16 to 23, and of the others.
#[target_feature(enable = "avx2")]
#[inline]
fn taps([a, b, c, d, e, f]: [__m256i; 6]) -> [__m256i; 2] {
    let far = _mm256_set1_epi16((-5_i16 << 8) | 1);
    let near = _mm256_set1_epi16(20 << 8 | 20);
    let sum = |outer: __m256i, middle: __m256i, other: __m256i| {
        let ends = _mm256_add_epi16(_mm256_maddubs_epi16(outer, far), _mm256_maddubs_epi16(other, far));
        _mm256_add_epi16(ends, _mm256_maddubs_epi16(middle, near))
    };
    [
        sum(_mm256_unpacklo_epi8(a, b), _mm256_unpacklo_epi8(c, d), _mm256_unpacklo_epi8(f, e)),
        sum(_mm256_unpackhi_epi8(a, b), _mm256_unpackhi_epi8(c, d), _mm256_unpackhi_epi8(f, e)),
    ]
}

/// Sums of taps as samples: a 32nd, rounded.
#[target_feature(enable = "avx2")]
#[inline]
fn clipped([a, b]: [__m256i; 2]) -> __m256i {
    // (value * 1024 + 2^14) / 2^15.
    let part = _mm256_set1_epi16(1024);
    _mm256_packus_epi16(_mm256_mulhrs_epi16(a, part), _mm256_mulhrs_epi16(b, part))
}

/// Sixteen places between both rows and columns, from sums of taps of columns.
///
/// # Safety
/// The pointer is valid for five values more.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn both(middle: *const i16) -> __m256i {
    // SAFETY: by the caller.
    let at = |i: usize| unsafe { _mm256_loadu_si256(middle.add(i).cast()) };
    let (a, b, c) = (_mm256_add_epi16(at(0), at(5)), _mm256_add_epi16(at(1), at(4)), _mm256_add_epi16(at(2), at(3)));
    // (a - 5 b + 20 c + 512) / 1024 in 16 bits, as the portable function has it.
    let sum = _mm256_sub_epi16(_mm256_srai_epi16::<2>(_mm256_sub_epi16(a, b)), b);
    let sum = _mm256_srai_epi16::<2>(_mm256_adds_epi16(sum, c));
    // (value * 512 + 2^14) / 2^15.
    _mm256_mulhrs_epi16(_mm256_add_epi16(sum, c), _mm256_set1_epi16(512))
}

/// See [`Kernels`](crate::kernel::Kernels).
#[target_feature(enable = "avx2")]
pub(super) unsafe fn halves(to: [*mut u8; 3], from: *const u8, stride: usize, width: usize, scratch: &mut [i16]) {
    if width < STEP {
        // SAFETY: by the caller.
        return unsafe { portable::halves(to, from, stride, width, scratch) };
    }
    let middle = scratch[..width + 5].as_mut_ptr();
    // The last step begins where it ends with the last place.
    let steps = |count: usize| (0..count.div_ceil(STEP)).map(move |i| (STEP * i).min(count - STEP));
    // SAFETY: all steps are of places from 0 to `width`, and of columns from two before to three behind these.
    unsafe {
        for x in steps(width) {
            let at = from.add(x);
            let columns = [-2, -1, 0, 1, 2, 3].map(|i: isize| _mm256_loadu_si256(at.offset(i).cast()));
            _mm256_storeu_si256(to[0].add(x).cast(), clipped(taps(columns)));
        }
        for x in steps(width + 5) {
            let at = from.sub(2).add(x);
            let rows = [-2, -1, 0, 1, 2, 3].map(|i: isize| _mm256_loadu_si256(at.offset(i * stride as isize).cast()));
            let [a, b] = taps(rows);
            let at = middle.add(x).cast::<__m256i>();
            _mm256_storeu_si256(at, _mm256_permute2x128_si256::<0x20>(a, b));
            _mm256_storeu_si256(at.add(1), _mm256_permute2x128_si256::<0x31>(a, b));
        }
        for x in steps(width) {
            let at = middle.add(x);
            // Words of packed halves come in turns.
            let packed = |a: __m256i, b: __m256i| _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi16(a, b));
            let part = _mm256_set1_epi16(1024);
            let word = |i: usize| _mm256_mulhrs_epi16(_mm256_loadu_si256(at.add(i).cast()), part);
            _mm256_storeu_si256(to[1].add(x).cast(), packed(word(2), word(18)));
            _mm256_storeu_si256(to[2].add(x).cast(), packed(both(at), both(at.add(16))));
        }
    }
}
