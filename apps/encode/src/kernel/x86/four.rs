//! Blocks of 4 x 4 by themselves, as those are that are predicted from their own picture. One of the modules of this crate with
//! `unsafe` in it.

use super::{largest, pairs};
use crate::intra::{BLOCK_MODES, Line, MEAN, PICKS, THREE, TWO};
use crate::kernel::{Division, Lanes, Levels, Modes};
use crate::tables::ZIGZAG;
use std::arch::x86_64::*;

/// For each mode, what to pick from the line, from means of two and from means of three; 128 picks nothing.
const SHUFFLES: [[[u8; 16]; 3]; BLOCK_MODES as usize] = {
    let mut shuffles = [[[128; 16]; 3]; BLOCK_MODES as usize];
    let mut mode = 0;
    while mode < shuffles.len() {
        let mut place = 0;
        while place < 16 {
            let (part, from) = match PICKS[place][mode] {
                pick if pick >= THREE => (2, pick - THREE),
                pick if pick >= TWO => (1, pick - TWO),
                pick => (0, pick),
            };
            shuffles[mode][part][place] = from;
            place += 1;
        }
        mode += 1;
    }
    shuffles
};

#[target_feature(enable = "avx2")]
#[inline]
fn bytes(from: &[u8; 16]) -> __m128i {
    // SAFETY: sixteen bytes.
    unsafe { _mm_loadu_si128(from.as_ptr().cast()) }
}

/// Absolute values of the transform of differences, of which [`pairs`] were made, so that they add up to its sum.
#[target_feature(enable = "avx2")]
#[inline]
fn transformed(rows: __m256i) -> __m256i {
    // Each row is two words; sums and differences of rows two apart, then of neighbours.
    let far = _mm256_set_epi16(-1, -1, -1, -1, 1, 1, 1, 1, -1, -1, -1, -1, 1, 1, 1, 1);
    let near = _mm256_set_epi16(-1, -1, 1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1, 1, 1);
    let rows = _mm256_add_epi16(_mm256_sign_epi16(rows, far), _mm256_shuffle_epi32::<0b01_00_11_10>(rows));
    let rows = _mm256_add_epi16(_mm256_sign_epi16(rows, near), _mm256_shuffle_epi32::<0b10_11_00_01>(rows));
    largest(rows)
}

/// See [`Kernels`](crate::kernel::Kernels), as all others here.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn modes(source: &[u8; 16], line: &Line, out: &mut Modes) {
    let samples = bytes(&line.samples);
    // At the ends, the last sample stands for what would be beyond.
    let before = _mm_shuffle_epi8(samples, _mm_setr_epi8(0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14));
    let behind = _mm_shuffle_epi8(samples, _mm_setr_epi8(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 12, 14, 15, 15));
    let two = _mm_avg_epu8(samples, behind);
    // (a + 2 b + c + 2) / 4: the mean of b and of that of a and c, rounded down.
    let odd = _mm_and_si128(_mm_xor_si128(before, behind), _mm_set1_epi8(1));
    let three = _mm_avg_epu8(_mm_sub_epi8(_mm_avg_epu8(before, behind), odd), samples);
    let samples = _mm_insert_epi8::<{ MEAN as i32 }>(samples, line.mean().into());
    let source = pairs(bytes(source));
    let mut sums = [_mm256_setzero_si256(); 12];
    for ((shuffles, prediction), sum) in SHUFFLES.iter().zip(&mut out.predictions).zip(&mut sums) {
        let [a, b, c] = [(samples, 0), (two, 1), (three, 2)]
            .map(|(from, part): (__m128i, usize)| _mm_shuffle_epi8(from, bytes(&shuffles[part])));
        let all = _mm_or_si128(_mm_or_si128(a, b), c);
        // SAFETY: sixteen bytes.
        unsafe { _mm_storeu_si128(prediction.as_mut_ptr().cast(), all) };
        let sizes = transformed(_mm256_sub_epi16(source, pairs(all)));
        *sum = _mm256_madd_epi16(sizes, _mm256_set1_epi16(1));
    }
    for (four, to) in sums.as_chunks::<4>().0.iter().zip(out.sums.as_chunks_mut::<4>().0) {
        let [a, b, c, d] = *four;
        let sum = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
        let sum = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
        // SAFETY: four sums.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), _mm_srli_epi32::<1>(sum)) };
    }
}

/// Rows of four words, two in each register, become columns.
#[target_feature(enable = "avx2")]
#[inline]
fn turned([above, below]: [__m128i; 2]) -> [__m128i; 2] {
    let (even, odd) = (_mm_unpacklo_epi16(above, below), _mm_unpackhi_epi16(above, below));
    [_mm_unpacklo_epi16(even, odd), _mm_unpackhi_epi16(even, odd)]
}

#[target_feature(enable = "avx2")]
#[inline]
fn halves_turned(two: __m128i) -> __m128i {
    _mm_shuffle_epi32::<0b01_00_11_10>(two)
}

/// A step of the forward transform, of rows 0 and 1, and 2 and 3.
#[target_feature(enable = "avx2")]
#[inline]
fn forward([above, below]: [__m128i; 2]) -> [__m128i; 2] {
    let below = halves_turned(below);
    let (sums, less) = (_mm_add_epi16(above, below), _mm_sub_epi16(above, below));
    let (outer, inner) = (_mm_unpacklo_epi64(sums, less), _mm_unpackhi_epi64(sums, less));
    let twice = _mm_setr_epi16(1, 1, 1, 1, 2, 2, 2, 2);
    [_mm_add_epi16(_mm_mullo_epi16(outer, twice), inner), _mm_sub_epi16(outer, _mm_mullo_epi16(inner, twice))]
}

/// A step of the inverse transform, likewise.
#[target_feature(enable = "avx2")]
#[inline]
fn inverse([above, below]: [__m128i; 2]) -> [__m128i; 2] {
    // Rows 0 and 2, and 1 and 3.
    let (even, odd) = (_mm_unpacklo_epi64(above, below), _mm_unpackhi_epi64(above, below));
    let other = halves_turned(even);
    let signs = _mm_setr_epi16(1, 1, 1, 1, -1, -1, -1, -1);
    // 0 + 2, 0 - 2.
    let outer = _mm_add_epi16(_mm_sign_epi16(even, signs), other);
    // 1 + 3 / 2, 1 / 2 - 3: of what is halved and what is not, in turns.
    let half = _mm_srai_epi16::<1>(odd);
    let first = _mm_unpacklo_epi64(odd, half);
    let second = _mm_sign_epi16(_mm_unpackhi_epi64(half, odd), signs);
    let inner = _mm_add_epi16(first, second);
    [_mm_add_epi16(outer, inner), halves_turned(_mm_sub_epi16(outer, inner))]
}

/// Where each byte of levels in scan order is among those of columns: in the first two, else in the others.
const SCAN: [[[u8; 16]; 2]; 2] = {
    let mut scan = [[[128; 16]; 2]; 2];
    let mut i = 0;
    while i < 16 {
        let from = ZIGZAG[i] % 4 * 4 + ZIGZAG[i] / 4;
        let to = &mut scan[i / 8][from / 8];
        to[i % 8 * 2] = (from % 8 * 2) as u8;
        to[i % 8 * 2 + 1] = (from % 8 * 2 + 1) as u8;
        i += 1;
    }
    scan
};

/// Eight rows of words become columns, in each half by itself.
#[target_feature(enable = "avx2")]
#[inline]
fn columns(rows: [__m256i; 8]) -> [__m256i; 8] {
    let mut before = rows;
    let mut values = rows;
    // As `columns_of` does it: row i beside row i + 4, three times.
    for _ in 0..3 {
        for i in 0..4 {
            values[2 * i] = _mm256_unpacklo_epi16(before[i], before[i + 4]);
            values[2 * i + 1] = _mm256_unpackhi_epi16(before[i], before[i + 4]);
        }
        before = values;
    }
    values
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn scan(lanes: &Lanes, levels: &mut Levels) {
    let half = |first: usize| {
        // SAFETY: sixteen words, aligned.
        columns(std::array::from_fn(|i| unsafe { _mm256_load_si256(lanes.0[ZIGZAG[first + i]].as_ptr().cast()) }))
    };
    let (before, behind) = (half(0), half(8));
    for (block, (a, b)) in before.into_iter().zip(behind).enumerate() {
        // SAFETY: sixteen words, aligned.
        unsafe {
            let mut to = |block: usize| levels.blocks[block].as_mut_ptr().cast();
            _mm256_store_si256(to(block), _mm256_permute2x128_si256::<0x20>(a, b));
            _mm256_store_si256(to(block + 8), _mm256_permute2x128_si256::<0x31>(a, b));
        }
        let none = [a, b].map(|half| _mm256_cmpeq_epi16(half, _mm256_setzero_si256()));
        let places = !_mm256_movemask_epi8(_mm256_packs_epi16(none[0], none[1]));
        levels.places[block] = places as u16;
        levels.places[block + 8] = (places >> 16) as u16;
    }
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn code_block(
    source: &[u8; 16],
    prediction: &[u8; 16],
    by: &Division,
    factors: &[i16; 16],
    made: &mut [u8; 16],
    levels: &mut [i16; 16],
) -> u16 {
    let wide = |samples: __m128i| [_mm_cvtepu8_epi16(samples), _mm_unpackhi_epi8(samples, _mm_setzero_si128())];
    let (source, prediction) = (wide(bytes(source)), wide(bytes(prediction)));
    let difference = [0, 1].map(|i: usize| _mm_sub_epi16(source[i], prediction[i]));
    // All factors are those of rows and of columns.
    let columns = forward(turned(forward(difference)));
    let mut found = columns;
    for (i, values) in found.iter_mut().enumerate() {
        // SAFETY: eight words of sixteen, each.
        let (factor, bias) = unsafe {
            let at = |from: &[u16; 16]| _mm_loadu_si128(from.as_ptr().add(8 * i).cast());
            (at(&by.factor), at(&by.bias))
        };
        let size = _mm_add_epi16(_mm_abs_epi16(*values), bias);
        *values = _mm_sign_epi16(_mm_mulhi_epu16(size, factor), *values);
    }
    let mut scanned = [_mm_setzero_si128(); 2];
    for ((shuffles, eight), to) in SCAN.iter().zip(&mut scanned).zip(levels.as_chunks_mut::<8>().0) {
        let [a, b] = [0, 1].map(|i: usize| _mm_shuffle_epi8(found[i], bytes(&shuffles[i])));
        *eight = _mm_or_si128(a, b);
        // SAFETY: eight words.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), *eight) };
    }
    let none = scanned.map(|eight| _mm_cmpeq_epi16(eight, _mm_setzero_si128()));
    let places = !_mm_movemask_epi8(_mm_packs_epi16(none[0], none[1])) as u16;
    let mut result = prediction;
    if places != 0 {
        for (i, values) in found.iter_mut().enumerate() {
            // SAFETY: eight words of sixteen.
            *values = _mm_mullo_epi16(*values, unsafe { _mm_loadu_si128(factors.as_ptr().add(8 * i).cast()) });
        }
        for (sum, added) in result.iter_mut().zip(inverse(turned(inverse(found)))) {
            *sum = _mm_add_epi16(*sum, _mm_srai_epi16::<6>(_mm_add_epi16(added, _mm_set1_epi16(32))));
        }
    }
    // SAFETY: sixteen bytes.
    unsafe { _mm_storeu_si128(made.as_mut_ptr().cast(), _mm_packus_epi16(result[0], result[1])) };
    places
}
