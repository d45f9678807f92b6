//! What the kernels are compared with: the definition itself, and the product in double precision.

use super::{SPAN, canonical};

/// The definition of the result as plain code: the bits that every path of [`super::sgemm`] must give.
///
/// A is m × k with row pitch `lda`, B k × n with `ldb`, C m × n with `ldc`, in elements; the product is added to C
/// unless `overwrite`. Panics if a slice is shorter than its matrix.
pub fn definition(
    overwrite: bool,
    (m, n, k): (usize, usize, usize),
    (a, lda): (&[f32], usize),
    (b, ldb): (&[f32], usize),
    (c, ldc): (&mut [f32], usize),
) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = if overwrite { 0.0 } else { c[i * ldc + j] };
            for k0 in (0..k).step_by(SPAN) {
                let mut t = 0.0f32;
                for kk in k0..k.min(k0 + SPAN) {
                    t = a[i * lda + kk].mul_add(b[kk * ldb + j], t);
                }
                sum = if overwrite && k0 == 0 { t } else { sum + t };
            }
            if overwrite || k > 0 {
                c[i * ldc + j] = canonical(sum);
            }
        }
    }
}

/// Chosen rows of A · B in double precision, for checks against a tolerance.
///
/// A has row pitch `lda` and k columns, B is k × n with row pitch `ldb`, in elements. Calls `each(i, row)` for every
/// `i` of `rows`, where `row` holds the n sums and, beside each, the sum of absolute values |a|·|b|, by which the
/// error of a sum in finite precision is bounded (Higham, "Accuracy and Stability of Numerical Algorithms", 3.1).
/// B is read once for every 8 rows. Panics if a slice is shorter than its matrix.
pub fn reference_rows(
    rows: &[usize],
    (n, k): (usize, usize),
    (a, lda): (&[f32], usize),
    (b, ldb): (&[f32], usize),
    mut each: impl FnMut(usize, &[(f64, f64)]),
) {
    const GROUP: usize = 8;
    let mut sums = vec![(0.0f64, 0.0f64); GROUP * n];
    for group in rows.chunks(GROUP) {
        sums.fill((0.0, 0.0));
        for kk in 0..k {
            let b_row = &b[kk * ldb..][..n];
            for (&i, sums) in group.iter().zip(sums.chunks_exact_mut(n.max(1))) {
                let x = f64::from(a[i * lda + kk]);
                for (sum, &y) in sums.iter_mut().zip(b_row) {
                    let product = x * f64::from(y);
                    sum.0 += product;
                    sum.1 += product.abs();
                }
            }
        }
        for (&i, sums) in group.iter().zip(sums.chunks_exact(n.max(1))) {
            each(i, sums);
        }
    }
}
