//! The kernels with AVX2. One of the modules of this crate with `unsafe` in it.

mod four;
mod halves;

use super::smoothing::{smooth_lines, smooth_pairs};
use super::{Coefficients, Division, Edge, KEY_UNIT, Kernels, Keys, Lanes, portable};
use crate::intra::{Around, Mode};
use crate::samples::Samples;
use multigrain_simd::Isa;
use std::arch::x86_64::*;

/// The table; the caller has seen that the processor has AVX2.
pub(super) fn kernels() -> Kernels {
    Kernels {
        isa: Isa::Avx2,
        look,
        sad,
        wholes,
        intra_luma,
        intra_chroma,
        satd,
        satd_8,
        mean,
        average,
        copy,
        halves: halves::halves,
        transform,
        divide,
        modes: four::modes,
        code_block: four::code_block,
        scan: four::scan,
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
    intra_luma(mode: Mode, around: &Around<16>, out: &mut Samples);
    intra_chroma(mode: Mode, around: &Around<8>, out: &mut Samples, x: usize);
    mean(to: *mut u8, a: *const u8, b: *const u8, stride: usize, rows: usize, wide: bool);
    average(to: *mut u8, other: *const u8, rows: usize);
    copy(to: *mut u8, from: *const u8, stride: usize, rows: usize, wide: bool);
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
unsafe fn look(source: &Samples, with: *const u8, stride: usize, addend: u32, keys: &mut Keys) {
    let mut halves = [_mm_setzero_si128(); 2];
    for (half, to) in halves.iter_mut().enumerate() {
        let mut sum = _mm256_setzero_si256();
        for pair in 0..4 {
            let y = half * 8 + pair * 2;
            // SAFETY: rows y and y + 1 of both, for which the caller's pointer is valid.
            let (a, b) = unsafe {
                (_mm256_load_si256(source.0.as_ptr().add(y * 16).cast()), two_rows(with.add(y * stride), stride))
            };
            sum = _mm256_add_epi64(sum, _mm256_sad_epu8(a, b));
        }
        *to = _mm_add_epi64(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
    }
    // Sums are below 2^16 and have zeros beside them: those below go there.
    let quarters = _mm_or_si128(halves[0], _mm_slli_epi64::<32>(halves[1]));
    let quarters = _mm_shuffle_epi32::<0b11_01_10_00>(quarters);
    let beside = _mm_add_epi32(quarters, _mm_shuffle_epi32::<0b10_11_00_01>(quarters));
    let above = _mm_add_epi32(quarters, _mm_shuffle_epi32::<0b01_00_11_10>(quarters));
    let halves = _mm_unpacklo_epi64(_mm_shuffle_epi32::<0b10_00_10_00>(beside), above);
    let whole = _mm_add_epi32(beside, _mm_shuffle_epi32::<0b01_00_11_10>(beside));
    let (unit, addend) = (KEY_UNIT.trailing_zeros() as i32, _mm_set1_epi32(addend as i32));
    for (i, sums) in [quarters, halves, whole].into_iter().enumerate() {
        let key = _mm_add_epi32(_mm_sll_epi32(sums, _mm_cvtsi32_si128(unit)), addend);
        // SAFETY: four keys of twelve, aligned.
        unsafe {
            let to = keys.0.as_mut_ptr().add(4 * i).cast();
            _mm_store_si128(to, _mm_min_epu32(_mm_load_si128(to), key));
        }
    }
}

#[target_feature(enable = "avx2")]
unsafe fn sad(source: &Samples, with: *const u8, stride: usize) -> u32 {
    let mut sums = [_mm256_setzero_si256(); 2];
    for pair in 0..8 {
        let y = pair * 2;
        // SAFETY: rows y and y + 1 of both, for which the caller's pointer is valid.
        let (a, b) = unsafe {
            (_mm256_load_si256(source.0.as_ptr().add(y * 16).cast()), two_rows(with.add(y * stride), stride))
        };
        sums[pair % 2] = _mm256_add_epi64(sums[pair % 2], _mm256_sad_epu8(a, b));
    }
    let sum = _mm256_add_epi64(sums[0], sums[1]);
    let sum = _mm_add_epi64(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
    (_mm_cvtsi128_si32(sum) + _mm_extract_epi32::<2>(sum)) as u32
}

/// Sums of pairs of neighbours of 16 samples in the lower half, their differences in the upper half: the first step of
/// Hadamard's transform along rows.
#[target_feature(enable = "avx2")]
#[inline]
fn pairs(samples: __m128i) -> __m256i {
    let signs = _mm256_setr_epi64x(
        0x0101_0101_0101_0101,
        0x0101_0101_0101_0101,
        0xff01_ff01_ff01_ff01_u64 as i64,
        0xff01_ff01_ff01_ff01_u64 as i64,
    );
    _mm256_maddubs_epi16(_mm256_broadcastsi128_si256(samples), signs)
}

/// Shuffles each word to the place of the one beside it.
#[target_feature(enable = "avx2")]
#[inline]
fn neighbours() -> __m256i {
    _mm256_broadcastsi128_si256(_mm_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13))
}

/// Of four rows, of which [`pairs`] were made, Hadamard's transform along columns.
#[target_feature(enable = "avx2")]
#[inline]
fn along_columns(rows: [__m256i; 4]) -> [__m256i; 4] {
    let [a, b, c, d] = rows;
    let (s, t, u, v) = (_mm256_add_epi16(a, b), _mm256_add_epi16(c, d), _mm256_sub_epi16(a, b), _mm256_sub_epi16(c, d));
    [_mm256_add_epi16(s, t), _mm256_sub_epi16(s, t), _mm256_add_epi16(u, v), _mm256_sub_epi16(u, v)]
}

/// The last step along rows, and absolute values: of neighbours x and y, |x + y| + |x - y| is twice the larger of |x| and |y|, so it
/// needs no sums. Each value is there twice.
#[target_feature(enable = "avx2")]
#[inline]
fn largest(column: __m256i) -> __m256i {
    let size = _mm256_abs_epi16(column);
    _mm256_max_epi16(size, _mm256_shuffle_epi8(size, neighbours()))
}

/// Sums of absolute values of the transforms of four rows of differences, of which [`pairs`] were made: in each half, two
/// values of every block, each of which holds all that are added to it twice.
#[target_feature(enable = "avx2")]
#[inline]
fn hadamard(rows: [__m256i; 4]) -> __m256i {
    let [a, b, c, d] = along_columns(rows).map(|column: __m256i| largest(column));
    _mm256_add_epi16(_mm256_add_epi16(a, b), _mm256_add_epi16(c, d))
}

#[target_feature(enable = "avx2")]
unsafe fn wholes(source: &Samples, around: &Around<16>) -> [u32; 3] {
    let above = around.above.unwrap_or_default();
    // SAFETY: sixteen bytes.
    let above = pairs(unsafe { _mm_loadu_si128(above.as_ptr().cast()) });
    // What is predicted is transformed, too: downwards and as a mean it has sums of columns only, to the right sums of rows only.
    let downwards = _mm256_slli_epi16::<2>(above);
    let lower = |value: i16| _mm256_zextsi128_si256(_mm_set1_epi16(value));
    let mean = lower(8 * i16::from(around.mean()));
    let left = around.left.unwrap_or_default().map(i16::from);
    let mut sums = [_mm256_setzero_si256(); 3];
    for half in 0..2 {
        let mut words = [_mm256_setzero_si256(); 3];
        for strip in 2 * half..2 * half + 2 {
            let row = |i: usize| {
                // SAFETY: row 4 strip + i of 16.
                pairs(unsafe { _mm_load_si128(source.0.as_ptr().add((4 * strip + i) * 16).cast()) })
            };
            let columns = along_columns([row(0), row(1), row(2), row(3)]);
            let [a, b, c, d] = [0, 1, 2, 3].map(|i: usize| 2 * left[4 * strip + i]);
            let (s, t, u, v) = (a + b, c + d, a - b, c - d);
            let rows = [s + t, s - t, u + v, u - v];
            let others = [1, 2, 3].map(|i: usize| largest(columns[i]));
            let others = _mm256_add_epi16(_mm256_add_epi16(others[0], others[1]), others[2]);
            let to_right = [0, 1, 2, 3].map(|i: usize| largest(_mm256_sub_epi16(columns[i], lower(rows[i]))));
            let all = [
                _mm256_add_epi16(others, largest(_mm256_sub_epi16(columns[0], downwards))),
                _mm256_add_epi16(
                    _mm256_add_epi16(to_right[0], to_right[1]),
                    _mm256_add_epi16(to_right[2], to_right[3]),
                ),
                _mm256_add_epi16(others, largest(_mm256_sub_epi16(columns[0], mean))),
            ];
            for (word, more) in words.iter_mut().zip(all) {
                // Sums of two strips are below 2^15.
                *word = _mm256_add_epi16(*word, more);
            }
        }
        for (sum, word) in sums.iter_mut().zip(words) {
            *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(word, _mm256_set1_epi16(1)));
        }
    }
    let [a, b, c] = sums;
    let all = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, c));
    let all = _mm_srli_epi32::<1>(_mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256::<1>(all)));
    [_mm_extract_epi32::<0>(all), _mm_extract_epi32::<1>(all), _mm_extract_epi32::<2>(all)].map(|sum: i32| sum as u32)
}

/// Half of the sums of the left and of the right 8 samples of what [`hadamard`] made.
#[target_feature(enable = "avx2")]
#[inline]
fn halved(sums: __m256i) -> [u32; 2] {
    // Each value is there twice: pairs add up to twice of what is half of a transform's sum.
    let wide = _mm256_madd_epi16(sums, _mm256_set1_epi16(1));
    let both = _mm_add_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256::<1>(wide));
    let sides = _mm_add_epi32(both, _mm_shuffle_epi32::<0b10_11_00_01>(both));
    [(_mm_cvtsi128_si32(sides) as u32) / 2, (_mm_extract_epi32::<2>(sides) as u32) / 2]
}

#[target_feature(enable = "avx2")]
unsafe fn satd(source: &Samples, with: [*const u8; 2], stride: usize) -> [u32; 4] {
    let mut sums = [0; 4];
    for half in 0..2 {
        let mut sum = _mm256_setzero_si256();
        for strip in 0..2 {
            let mut rows = [_mm256_setzero_si256(); 4];
            for (i, row) in rows.iter_mut().enumerate() {
                let y = half * 8 + strip * 4 + i;
                // SAFETY: row y of all, for which the caller's pointers are valid.
                let (a, b, c) = unsafe {
                    (
                        _mm_load_si128(source.0.as_ptr().add(y * 16).cast()),
                        _mm_loadu_si128(with[0].add(y * stride).cast()),
                        _mm_loadu_si128(with[1].add(y * stride).cast()),
                    )
                };
                *row = _mm256_sub_epi16(pairs(a), pairs(_mm_avg_epu8(b, c)));
            }
            // Sums of two strips are below 2^15.
            sum = _mm256_add_epi16(sum, hadamard(rows));
        }
        [sums[half * 2], sums[half * 2 + 1]] = halved(sum);
    }
    sums
}

/// Eight samples, and eight from a pointer so many bytes behind.
///
/// # Safety
/// The pointer is valid for both.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn two_eights(from: *const u8, apart: usize) -> __m128i {
    // SAFETY: by the caller.
    unsafe { _mm_unpacklo_epi64(_mm_loadl_epi64(from.cast()), _mm_loadl_epi64(from.add(apart).cast())) }
}

#[target_feature(enable = "avx2")]
unsafe fn satd_8(source: *const u8, with: [*const u8; 2], stride: usize) -> u32 {
    let mut rows = [_mm256_setzero_si256(); 4];
    for (i, row) in rows.iter_mut().enumerate() {
        // SAFETY: rows i and i + 4, 8 samples each, of all, for which the caller's pointers are valid.
        let (a, b, c) = unsafe {
            (
                two_eights(source.add(i * 16), 4 * 16),
                two_eights(with[0].add(i * stride), 4 * stride),
                two_eights(with[1].add(i * stride), 4 * stride),
            )
        };
        *row = _mm256_sub_epi16(pairs(a), pairs(_mm_avg_epu8(b, c)));
    }
    let [left, right] = halved(hadamard(rows));
    left + right
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

/// Of rows 4 b + `row` of a macroblock, at each of four columns, that column of all blocks.
#[target_feature(enable = "avx2")]
#[inline]
fn columns_at(samples: &Samples, row: usize) -> [__m128i; 4] {
    let mut rows = [_mm_setzero_si128(); 4];
    for (block, to) in rows.iter_mut().enumerate() {
        // SAFETY: row 4 block + row of 16.
        let samples = unsafe { _mm_load_si128(samples.0.as_ptr().add((4 * block + row) * 16).cast()) };
        *to = _mm_shuffle_epi8(samples, quads());
    }
    transposed(rows)
}

#[target_feature(enable = "avx2")]
unsafe fn transform(source: &Samples, prediction: &Samples, out: &mut Lanes) {
    for row in 0..4 {
        let (a, b) = (columns_at(source, row), columns_at(prediction, row));
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
    // Places of one class have the same, and rows two apart have the same classes.
    let of = |all: &[u16; 16], place: usize| _mm256_set1_epi16(all[place] as i16);
    let [even, odd, mixed] = [0, 5, 1].map(|place| (of(&by.factor, place), of(&by.bias, place)));
    let mut any = _mm256_setzero_si256();
    for rows in lanes.0.as_chunks_mut::<8>().0 {
        let classes = [even, mixed, even, mixed, mixed, odd, mixed, odd];
        for (values, (factor, bias)) in rows.iter_mut().zip(classes) {
            let at = values.as_mut_ptr().cast();
            // SAFETY: sixteen values, aligned.
            let value = unsafe { _mm256_load_si256(at) };
            let level = _mm256_mulhi_epu16(_mm256_add_epi16(_mm256_abs_epi16(value), bias), factor);
            any = _mm256_or_si256(any, level);
            // SAFETY: as above.
            unsafe { _mm256_store_si256(at, _mm256_sign_epi16(level, value)) };
        }
    }
    let none = _mm256_cmpeq_epi16(any, _mm256_setzero_si256());
    let bytes = _mm_packs_epi16(_mm256_castsi256_si128(none), _mm256_extracti128_si256::<1>(none));
    !(_mm_movemask_epi8(bytes) as u16)
}

#[target_feature(enable = "avx2")]
unsafe fn chroma(to: *mut u8, from: *const u8, stride: usize, eighths: [u8; 2], size: usize) {
    let [x, y] = eighths.map(i16::from);
    if eighths == [0; 2] {
        for i in 0..size {
            // SAFETY: a row of both, for which the caller's pointers are valid.
            unsafe {
                let (to, from) = (to.add(i * 16), from.add(i * stride));
                match size {
                    8 => _mm_storel_epi64(to.cast(), _mm_loadl_epi64(from.cast())),
                    _ => _mm_storeu_si32(to.cast(), _mm_loadu_si32(from.cast())),
                }
            }
        }
        return;
    }
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
unsafe fn reconstruct(coefficients: Coefficients<'_>, prediction: &Samples, out: &mut Samples) {
    let mut lanes = portable::scaled(coefficients);
    portable::inverse(&mut lanes);
    for row in 0..4 {
        let mut columns = columns_at(prediction, row);
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

/// Sixteen rows of 8 samples become 8 columns of 16.
#[target_feature(enable = "avx2")]
#[inline]
fn columns_of(rows: [__m128i; 16]) -> [__m128i; 8] {
    // Row i beside row i + 8, and so on: after four steps each register has a column.
    let mut values = [_mm_setzero_si128(); 8];
    for i in 0..8 {
        values[i] = _mm_unpacklo_epi8(rows[i], rows[i + 8]);
    }
    for _ in 0..3 {
        let before = values;
        for i in 0..4 {
            values[2 * i] = _mm_unpacklo_epi8(before[i], before[i + 4]);
            values[2 * i + 1] = _mm_unpackhi_epi8(before[i], before[i + 4]);
        }
    }
    values
}

/// And back: eight columns of 16 become 16 rows of 8, two in a register.
#[target_feature(enable = "avx2")]
#[inline]
fn rows_of(columns: [__m128i; 8]) -> [__m128i; 8] {
    let [a, b, c, d, e, f, g, h] = columns;
    let pairs = |a, b| (_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b));
    let ((ab, ab2), (cd, cd2), (ef, ef2), (gh, gh2)) = (pairs(a, b), pairs(c, d), pairs(e, f), pairs(g, h));
    let eight = |ab, cd, ef, gh| {
        let (left, left2) = (_mm_unpacklo_epi16(ab, cd), _mm_unpackhi_epi16(ab, cd));
        let (right, right2) = (_mm_unpacklo_epi16(ef, gh), _mm_unpackhi_epi16(ef, gh));
        [
            _mm_unpacklo_epi32(left, right),
            _mm_unpackhi_epi32(left, right),
            _mm_unpacklo_epi32(left2, right2),
            _mm_unpackhi_epi32(left2, right2),
        ]
    };
    let (upper, lower) = (eight(ab, cd, ef, gh), eight(ab2, cd2, ef2, gh2));
    [upper[0], upper[1], upper[2], upper[3], lower[0], lower[1], lower[2], lower[3]]
}

/// Samples become words, and back.
#[target_feature(enable = "avx2")]
#[inline]
fn narrowed(values: __m256i) -> __m128i {
    _mm_packus_epi16(_mm256_castsi256_si128(values), _mm256_extracti128_si256::<1>(values))
}

/// The limit of each place along an edge, four or two places to a quarter; less than zero where nothing is done.
#[target_feature(enable = "avx2")]
#[inline]
fn limits(edge: &Edge, is_luma: bool) -> __m256i {
    let mut four = 0;
    for limit in edge.limit.iter().rev() {
        four = four << 8 | i32::from(limit.map_or(0xff, |limit| limit));
    }
    let places = match is_luma {
        true => _mm_setr_epi8(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3),
        false => _mm_setr_epi8(0, 0, 1, 1, 2, 2, 3, 3, 0, 0, 1, 1, 2, 2, 3, 3),
    };
    _mm256_cvtepi8_epi16(_mm_shuffle_epi8(_mm_cvtsi32_si128(four), places))
}

#[target_feature(enable = "avx2")]
unsafe fn smooth_luma(at: *mut u8, stride: usize, edge: &Edge, between_rows: bool) {
    let (mut p, mut q) = ([_mm256_setzero_si256(); 4], [_mm256_setzero_si256(); 4]);
    if between_rows {
        // SAFETY: 16 samples of each of four rows on both sides, for which the caller's pointer is valid.
        let row = |distance: isize| unsafe { at.offset(distance * stride as isize).cast::<__m128i>() };
        for i in 0..4 {
            // SAFETY: as above.
            let (a, b) = unsafe { (_mm_loadu_si128(row(-1 - i as isize)), _mm_loadu_si128(row(i as isize))) };
            (p[i], q[i]) = (_mm256_cvtepu8_epi16(a), _mm256_cvtepu8_epi16(b));
        }
        // SAFETY: the processor has AVX2.
        if unsafe { smooth_lines(&mut p, &mut q, edge, limits(edge, true)) } {
            for i in 0..3 {
                // SAFETY: as above.
                unsafe {
                    _mm_storeu_si128(row(-1 - i as isize), narrowed(p[i]));
                    _mm_storeu_si128(row(i as isize), narrowed(q[i]));
                }
            }
        }
        return;
    }
    // SAFETY: 8 samples of each of sixteen rows around the edge, for which the caller's pointer is valid.
    let row = |i: usize| unsafe { at.sub(4).add(i * stride) };
    let mut rows = [_mm_setzero_si128(); 16];
    for (i, to) in rows.iter_mut().enumerate() {
        // SAFETY: as above.
        *to = unsafe { _mm_loadl_epi64(row(i).cast()) };
    }
    let mut columns = columns_of(rows);
    for i in 0..4 {
        (p[i], q[i]) = (_mm256_cvtepu8_epi16(columns[3 - i]), _mm256_cvtepu8_epi16(columns[4 + i]));
    }
    // SAFETY: as above.
    if !unsafe { smooth_lines(&mut p, &mut q, edge, limits(edge, true)) } {
        return;
    }
    for i in 0..4 {
        (columns[3 - i], columns[4 + i]) = (narrowed(p[i]), narrowed(q[i]));
    }
    for (i, two) in rows_of(columns).into_iter().enumerate() {
        // SAFETY: as above.
        unsafe {
            _mm_storel_epi64(row(2 * i).cast(), two);
            _mm_storel_epi64(row(2 * i + 1).cast(), _mm_unpackhi_epi64(two, two));
        }
    }
}

#[target_feature(enable = "avx2")]
unsafe fn smooth_chroma(at: [*mut u8; 2], stride: usize, edge: &Edge, between_rows: bool) {
    if between_rows {
        // SAFETY: 8 samples of each of two rows on both sides, for which the caller's pointers are valid.
        let row =
            |plane: usize, distance: isize| unsafe { at[plane].offset(distance * stride as isize).cast::<__m128i>() };
        let line = |distance: isize| {
            // SAFETY: as above.
            let (cb, cr) = unsafe { (_mm_loadl_epi64(row(0, distance)), _mm_loadl_epi64(row(1, distance))) };
            _mm256_cvtepu8_epi16(_mm_unpacklo_epi64(cb, cr))
        };
        // SAFETY: the processor has AVX2.
        let (p, q) = unsafe { smooth_pairs([line(-1), line(-2)], [line(0), line(1)], edge, limits(edge, false)) };
        for (distance, line) in [(-1, p), (0, q)] {
            let samples = narrowed(line);
            // SAFETY: as above.
            unsafe {
                _mm_storel_epi64(row(0, distance), samples);
                _mm_storel_epi64(row(1, distance), _mm_unpackhi_epi64(samples, samples));
            }
        }
        return;
    }
    // SAFETY: 4 samples of each of eight rows around the edge in both planes, for which the caller's pointers are valid.
    let row = |i: usize| unsafe { at[i / 8].sub(2).add(i % 8 * stride) };
    let mut rows = [_mm_setzero_si128(); 16];
    for (i, to) in rows.iter_mut().enumerate() {
        // SAFETY: as above.
        *to = unsafe { _mm_loadu_si32(row(i).cast()) };
    }
    let columns = columns_of(rows);
    let at = |column: usize| _mm256_cvtepu8_epi16(columns[column]);
    // SAFETY: as above.
    let (p, q) = unsafe { smooth_pairs([at(1), at(0)], [at(2), at(3)], edge, limits(edge, false)) };
    let (p, q) = (narrowed(p), narrowed(q));
    let mut pairs = [0_u16; 16];
    // SAFETY: sixteen pairs.
    unsafe {
        _mm_storeu_si128(pairs.as_mut_ptr().cast(), _mm_unpacklo_epi8(p, q));
        _mm_storeu_si128(pairs.as_mut_ptr().add(8).cast(), _mm_unpackhi_epi8(p, q));
    }
    for (i, pair) in pairs.into_iter().enumerate() {
        // SAFETY: as above.
        unsafe { row(i).add(1).cast::<u16>().write_unaligned(pair) };
    }
}
