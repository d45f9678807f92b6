//! Tables of the standard (ITU-T H.264, ISO/IEC 14496-10) that more than one module needs.

/// Places of coefficients in a block, row by row, in the order in which they are written (6.4.3, frame scan).
pub const ZIGZAG: [usize; 16] = [0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15];

/// The block at each place of the order in which blocks of a macroblock are written (6.4.3), counted row by row.
pub const BLOCK_ORDER: [usize; 16] = [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15];

/// The quantiser of chroma for that of luma (Table 8-15, without an offset).
pub fn chroma_qp(qp: u8) -> u8 {
    const FROM_30: [u8; 22] = [29, 30, 31, 32, 32, 33, 34, 34, 35, 35, 36, 36, 37, 37, 37, 38, 38, 38, 39, 39, 39, 39];
    if qp < 30 { qp } else { FROM_30[usize::from(qp) - 30] }
}

/// Which of three scales belongs to each place of a block: both coordinates even, both odd, or one of each (8.5.9).
pub const SCALE_CLASS: [usize; 16] = [0, 2, 0, 2, 2, 1, 2, 1, 0, 2, 0, 2, 2, 1, 2, 1];

/// `normAdjust4x4` (8-315), by quantiser modulo 6 and class.
pub const DEQUANT: [[i32; 3]; 6] = [[10, 16, 13], [11, 18, 14], [13, 20, 16], [14, 23, 18], [16, 25, 20], [18, 29, 23]];

/// What coefficients are multiplied by, times 2^15: the inverses of [`DEQUANT`] and of the transform's gain.
pub const QUANT: [[i32; 3]; 6] = [
    [13107, 5243, 8066],
    [11916, 4660, 7490],
    [10082, 4194, 6554],
    [9362, 3647, 5825],
    [8192, 3355, 5243],
    [7282, 2893, 4559],
];

/// What is written for a coded block pattern (Table 9-4, read the other way) of a macroblock with 4 x 4 intra prediction.
pub const CBP_INTRA: [u8; 48] = [
    3, 29, 30, 17, 31, 18, 37, 8, 32, 38, 19, 9, 20, 10, 11, 2, 16, 33, 34, 21, 35, 22, 39, 4, 36, 40, 23, 5, 24, 6, 7,
    1, 41, 42, 43, 25, 44, 26, 46, 12, 45, 47, 27, 13, 28, 14, 15, 0,
];

/// The same for one that is predicted from another picture.
pub const CBP_INTER: [u8; 48] = [
    0, 2, 3, 7, 4, 8, 17, 13, 5, 18, 9, 14, 10, 15, 16, 11, 1, 32, 33, 36, 34, 37, 44, 40, 35, 45, 38, 41, 39, 42, 43,
    19, 6, 24, 25, 20, 26, 21, 46, 28, 27, 47, 22, 29, 23, 30, 31, 12,
];

/// Lagrange's multiplier for sums of (transformed) absolute differences: 2^((qp - 12) / 6), at least one, as in x264.
pub fn lambda(qp: u8) -> u32 {
    (((f64::from(qp) - 12.0) / 6.0).exp2().round() as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn orders_and_codes_are_permutations() {
        for order in [ZIGZAG, BLOCK_ORDER] {
            assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), 16);
        }
        for codes in [CBP_INTRA, CBP_INTER] {
            assert!(codes.iter().copied().collect::<BTreeSet<_>>().into_iter().eq(0..48));
        }
    }

    /// Scaling there and back is a factor of 2^21 over all places, with the transforms' gains (16, 25, 20 by class).
    #[test]
    fn scales_are_inverses() {
        for (quant, dequant) in QUANT.iter().zip(DEQUANT) {
            for (class, gain) in [16.0, 25.0, 20.0].into_iter().enumerate() {
                let product = f64::from(quant[class] * dequant[class]) * gain / f64::from(1 << 21);
                assert!((product - 1.0).abs() < 0.01, "{product}");
            }
        }
    }
}
