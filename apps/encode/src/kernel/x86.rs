//! The kernels with AVX2. One of the modules of this crate with `unsafe` in it.

use super::{Division, Edge, Kernels, Lanes, Samples, portable};
use multigrain_simd::Isa;
use std::arch::x86_64::*;

/// The table; the caller has seen that the processor has AVX2.
pub(super) fn kernels(isa: Isa) -> Kernels {
    Kernels {
        isa,
        sad,
        satd,
        satd_8,
        mean,
        copy,
        halves,
        transform,
        divide,
        transformed_sums,
        scale,
        reconstruct,
        chroma,
        smooth_luma,
        smooth_chroma,
    }
}

/// Makes functions with AVX2 of the portable ones.
macro_rules! compiled_with_avx2 {
    ($($name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        #[target_feature(enable = "avx2")]
        unsafe fn $name($($arg: $type),*) $(-> $result)? {
            // SAFETY: by the caller, whose conditions are those of the portable function.
            unsafe { portable::$name($($arg),*) }
        }
    )*};
}

compiled_with_avx2! {
    mean(to: *mut u8, a: *const u8, b: *const u8, stride: usize, rows: usize, wide: bool);
    copy(to: *mut u8, from: *const u8, stride: usize, rows: usize, wide: bool);
    halves(to: [*mut u8; 3], from: *const u8, stride: usize, width: usize, scratch: &mut [i16]);
    scale(lanes: &mut Lanes, factors: &[i16; 16]);
    transformed_sums(lanes: &mut Lanes) -> [u16; 16];
}

/// Two rows of 16 samples, `apart` bytes from each other.
///
/// # Safety
/// The pointer is valid for both.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn two_rows(from: *const u8, apart: usize) -> __m256i {
    // SAFETY: by the caller.
    unsafe { _mm256_loadu2_m128i(from.add(apart).cast(), from.cast()) }
}

#[target_feature(enable = "avx2")]
unsafe fn sad(source: &Samples, with: *const u8, stride: usize) -> [u32; 4] {
    let mut halves = [_mm256_setzero_si256(); 2];
    for (half, sum) in halves.iter_mut().enumerate() {
        for pair in 0..4 {
            let y = half * 8 + pair * 2;
            // SAFETY: rows y and y + 1 of both, for which the caller's pointer is valid.
            let (a, b) =
                unsafe { (two_rows(source.0.as_ptr().add(y * 16), 16), two_rows(with.add(y * stride), stride)) };
            *sum = _mm256_add_epi64(*sum, _mm256_sad_epu8(a, b));
        }
    }
    let [top, bottom] =
        halves.map(|sum| _mm_add_epi64(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum)));
    [
        _mm_cvtsi128_si32(top) as u32,
        _mm_extract_epi32::<2>(top) as u32,
        _mm_cvtsi128_si32(bottom) as u32,
        _mm_extract_epi32::<2>(bottom) as u32,
    ]
}

/// Sums of the absolute values of the transforms of four rows of differences, block by block: pairs of lanes of 32 bits,
/// four lanes of 16 differences, hold a block's.
#[target_feature(enable = "avx2")]
#[inline]
fn hadamard(rows: [__m256i; 4]) -> __m256i {
    let [a, b, c, d] = rows;
    let (s, t, u, v) = (_mm256_add_epi16(a, b), _mm256_add_epi16(c, d), _mm256_sub_epi16(a, b), _mm256_sub_epi16(c, d));
    let columns = [_mm256_add_epi16(s, t), _mm256_sub_epi16(s, t), _mm256_add_epi16(u, v), _mm256_sub_epi16(u, v)];
    let neighbours = _mm256_setr_epi16(1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1);
    let mut sum = _mm256_setzero_si256();
    for column in columns {
        let swapped = _mm256_shufflehi_epi16::<0b10_11_00_01>(_mm256_shufflelo_epi16::<0b10_11_00_01>(column));
        let first = _mm256_add_epi16(swapped, _mm256_sign_epi16(column, neighbours));
        // |x + y| + |x - y| is twice the larger of |x| and |y|, so the last step needs no second half.
        let size = _mm256_abs_epi16(first);
        let other = _mm256_shuffle_epi32::<0b10_11_00_01>(size);
        sum = _mm256_add_epi16(sum, _mm256_max_epi16(size, other));
    }
    // Every larger one is there twice, which is the factor of two; half of all is what is wanted.
    _mm256_madd_epi16(sum, _mm256_set1_epi16(1))
}

#[target_feature(enable = "avx2")]
#[inline]
fn lanes_sum(sums: __m128i) -> u32 {
    let pairs = _mm_add_epi32(sums, _mm_shuffle_epi32::<0b01_00_11_10>(sums));
    let all = _mm_add_epi32(pairs, _mm_shuffle_epi32::<0b10_11_00_01>(pairs));
    (_mm_cvtsi128_si32(all) as u32) / 2
}

#[target_feature(enable = "avx2")]
unsafe fn satd(source: &Samples, with: [*const u8; 2], stride: usize) -> [u32; 4] {
    let mut sums = [0; 4];
    for half in 0..2 {
        let mut sum = _mm256_setzero_si256();
        for strip in 0..2 {
            let y = half * 8 + strip * 4;
            let difference = |row: usize| {
                // SAFETY: row y + row of all, for which the caller's pointers are valid.
                let (a, [b, c]) = unsafe {
                    (
                        _mm_load_si128(source.0.as_ptr().add((y + row) * 16).cast()),
                        with.map(|with| _mm_loadu_si128(with.add((y + row) * stride).cast())),
                    )
                };
                let b = _mm_avg_epu8(b, c);
                _mm256_sub_epi16(_mm256_cvtepu8_epi16(a), _mm256_cvtepu8_epi16(b))
            };
            sum = _mm256_add_epi32(sum, hadamard([difference(0), difference(1), difference(2), difference(3)]));
        }
        sums[half * 2] = lanes_sum(_mm256_castsi256_si128(sum));
        sums[half * 2 + 1] = lanes_sum(_mm256_extracti128_si256::<1>(sum));
    }
    sums
}

#[target_feature(enable = "avx2")]
unsafe fn satd_8(source: *const u8, with: [*const u8; 2], stride: usize) -> u32 {
    let difference = |row: usize| {
        // SAFETY: rows `row` and `row + 4`, 8 samples each, of all, for which the caller's pointers are valid.
        let (a, [b, c]) = unsafe {
            let load = |from: *const u8, apart: usize| {
                _mm_unpacklo_epi64(_mm_loadl_epi64(from.cast()), _mm_loadl_epi64(from.add(4 * apart).cast()))
            };
            (load(source.add(row * 16), 16), with.map(|with| load(with.add(row * stride), stride)))
        };
        let b = _mm_avg_epu8(b, c);
        _mm256_sub_epi16(_mm256_cvtepu8_epi16(a), _mm256_cvtepu8_epi16(b))
    };
    let sum = hadamard([difference(0), difference(1), difference(2), difference(3)]);
    lanes_sum(_mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum)))
}

/// Rows 4 b + `row` of a macroblock for b = 0..4 become, at each of four columns, that column of all blocks; and back, since it
/// is its own inverse up to the order of what comes in.
#[target_feature(enable = "avx2")]
#[inline]
fn transposed(rows: [__m128i; 4]) -> [__m128i; 4] {
    let [a, b, c, d] = rows;
    let (ab, cd) = (_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
    let (ab_high, cd_high) = (_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c, d));
    [
        _mm_unpacklo_epi64(ab, cd),
        _mm_unpackhi_epi64(ab, cd),
        _mm_unpacklo_epi64(ab_high, cd_high),
        _mm_unpackhi_epi64(ab_high, cd_high),
    ]
}

/// Byte `4 i + j` to place `4 j + i`.
#[target_feature(enable = "avx2")]
#[inline]
fn quads() -> __m128i {
    _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)
}

#[target_feature(enable = "avx2")]
unsafe fn transform(source: &Samples, prediction: &Samples, out: &mut Lanes) {
    let columns = |samples: &Samples, row: usize| {
        transposed(std::array::from_fn(|block| {
            // SAFETY: row 4 block + row of 16.
            let samples = unsafe { _mm_load_si128(samples.0.as_ptr().add((4 * block + row) * 16).cast()) };
            _mm_shuffle_epi8(samples, quads())
        }))
    };
    for row in 0..4 {
        let (a, b) = (columns(source, row), columns(prediction, row));
        for column in 0..4 {
            let difference = _mm256_sub_epi16(_mm256_cvtepu8_epi16(a[column]), _mm256_cvtepu8_epi16(b[column]));
            // SAFETY: sixteen values.
            unsafe { _mm256_store_si256(out.0[4 * row + column].as_mut_ptr().cast(), difference) };
        }
    }
    portable::forward(out);
}

#[target_feature(enable = "avx2")]
unsafe fn divide(lanes: &mut Lanes, by: &Division) -> u16 {
    let mut any = _mm256_setzero_si256();
    for (values, (factor, bias)) in lanes.0.iter_mut().zip(by.factor.into_iter().zip(by.bias)) {
        let at = values.as_mut_ptr().cast();
        // SAFETY: sixteen values, aligned.
        let value = unsafe { _mm256_load_si256(at) };
        let size = _mm256_add_epi16(_mm256_abs_epi16(value), _mm256_set1_epi16(bias as i16));
        let level = _mm256_mulhi_epu16(size, _mm256_set1_epi16(factor as i16));
        any = _mm256_or_si256(any, level);
        // SAFETY: as above.
        unsafe { _mm256_store_si256(at, _mm256_sign_epi16(level, value)) };
    }
    let none = _mm256_cmpeq_epi16(any, _mm256_setzero_si256());
    let bytes = _mm_packs_epi16(_mm256_castsi256_si128(none), _mm256_extracti128_si256::<1>(none));
    !(_mm_movemask_epi8(bytes) as u16)
}

#[target_feature(enable = "avx2")]
unsafe fn chroma(to: *mut u8, from: *const u8, stride: usize, eighths: [u8; 2], size: usize) {
    let [x, y] = eighths.map(i16::from);
    // Pairs of neighbours in a row are weighed first, in bytes; then rows.
    let across = _mm_set1_epi16(x << 8 | (8 - x));
    let (above, below) = (_mm_set1_epi16(8 - y), _mm_set1_epi16(y));
    let row = |row: usize| {
        // SAFETY: the row and one sample more, for which the caller's pointer is valid.
        let (a, b) = unsafe {
            let from = from.add(row * stride);
            match size {
                8 => (_mm_loadl_epi64(from.cast()), _mm_loadl_epi64(from.add(1).cast())),
                _ => (_mm_loadu_si32(from.cast()), _mm_loadu_si32(from.add(1).cast())),
            }
        };
        _mm_maddubs_epi16(_mm_unpacklo_epi8(a, b), across)
    };
    let mut before = row(0);
    for i in 0..size {
        let after = row(i + 1);
        let sum = _mm_add_epi16(_mm_mullo_epi16(before, above), _mm_mullo_epi16(after, below));
        let mean = _mm_srli_epi16::<6>(_mm_add_epi16(sum, _mm_set1_epi16(32)));
        let samples = _mm_packus_epi16(mean, mean);
        // SAFETY: as many samples as a row of the block has.
        unsafe {
            let to = to.add(i * 16);
            match size {
                8 => _mm_storel_epi64(to.cast(), samples),
                _ => _mm_storeu_si32(to.cast(), samples),
            }
        }
        before = after;
    }
}

#[target_feature(enable = "avx2")]
unsafe fn reconstruct(coefficients: &Lanes, prediction: &Samples, out: &mut Samples) {
    let mut lanes = *coefficients;
    portable::inverse(&mut lanes);
    for row in 0..4 {
        let rows = |samples: *const u8| {
            std::array::from_fn(|block| {
                // SAFETY: row 4 block + row of 16.
                unsafe { _mm_shuffle_epi8(_mm_load_si128(samples.add((4 * block + row) * 16).cast()), quads()) }
            })
        };
        let mut columns = transposed(rows(prediction.0.as_ptr()));
        for (column, value) in columns.iter_mut().enumerate() {
            // SAFETY: sixteen values.
            let difference = unsafe { _mm256_load_si256(lanes.0[4 * row + column].as_ptr().cast()) };
            let sum = _mm256_add_epi16(_mm256_cvtepu8_epi16(*value), difference);
            *value = _mm_packus_epi16(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
        }
        for (block, samples) in transposed(columns).into_iter().enumerate() {
            // SAFETY: row 4 block + row of 16.
            unsafe {
                let to = out.0.as_mut_ptr().add((4 * block + row) * 16).cast();
                _mm_store_si128(to, _mm_shuffle_epi8(samples, quads()));
            };
        }
    }
}

#[target_feature(enable = "avx2")]
unsafe fn smooth_luma(at: *mut u8, stride: usize, edge: &Edge, between_rows: bool) {
    // SAFETY: by the caller.
    unsafe { portable::smooth_luma(at, stride, edge, between_rows) };
}

#[target_feature(enable = "avx2")]
unsafe fn smooth_chroma(at: *mut u8, stride: usize, edge: &Edge, between_rows: bool) {
    // SAFETY: by the caller.
    unsafe { portable::smooth_chroma(at, stride, edge, between_rows) };
}
