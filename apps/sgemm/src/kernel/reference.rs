//! What the kernels are compared with: the definition itself.

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
