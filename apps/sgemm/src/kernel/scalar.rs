//! The portable path: the definition, blocked over a few columns so that the compiler may vectorise where the target
//! has fused multiply-adds. It packs nothing, so it is also the path for calls that were given no scratch.

use super::{Call, SPAN, canonical};

/// Columns that are accumulated side by side; independent chains, so the width does not reach the result.
const COLUMNS: usize = 16;

/// Computes one call.
///
/// # Safety
///
/// The promise of [`super::sgemm`] about the matrices.
pub(super) unsafe fn run(call: &Call) {
    let Call { overwrite, m, n, k, a, lda, b, ldb, c, ldc } = *call;
    for i in 0..m {
        for j0 in (0..n).step_by(COLUMNS) {
            let columns = COLUMNS.min(n - j0);
            // SAFETY: i < m and j0 + columns <= n; the caller promises that rows 0..m of n elements are C's.
            let c_row = unsafe { std::slice::from_raw_parts_mut(c.add(i * ldc + j0), columns) };
            let mut sum = [0.0f32; COLUMNS];
            if !overwrite {
                sum[..columns].copy_from_slice(c_row);
            }
            for k0 in (0..k).step_by(SPAN) {
                let span = SPAN.min(k - k0);
                let mut t = [0.0f32; COLUMNS];
                for kk in k0..k0 + span {
                    // SAFETY: i < m, kk < k.
                    let x = unsafe { *a.add(i * lda + kk) };
                    // SAFETY: kk < k and j0 + columns <= n.
                    let b_row = unsafe { std::slice::from_raw_parts(b.add(kk * ldb + j0), columns) };
                    for (t, &y) in t.iter_mut().zip(b_row) {
                        *t = x.mul_add(y, *t);
                    }
                }
                for (sum, &t) in sum.iter_mut().zip(&t) {
                    *sum = if overwrite && k0 == 0 { t } else { *sum + t };
                }
            }
            if k > 0 || overwrite {
                for (c, &sum) in c_row.iter_mut().zip(&sum) {
                    *c = canonical(sum);
                }
            }
        }
    }
}
