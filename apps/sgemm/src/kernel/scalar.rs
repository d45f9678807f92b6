//! The portable path: the definition, blocked over a few columns so that the compiler may vectorise where the target
//! has fused multiply-adds. It packs nothing, so it is also the path for calls that were given no scratch.

use super::{Call, SPAN, canonical};
#[cfg(target_arch = "x86_64")]
use multigrain_simd::compiled;

/// Columns that are accumulated side by side; independent chains, so the width does not reach the result.
const COLUMNS: usize = 32;

/// Computes one call.
///
/// # Safety
///
/// The promise of [`super::sgemm`] about the matrices.
pub(super) unsafe fn run(call: &Call) {
    #[cfg(target_arch = "x86_64")]
    if multigrain_simd::Isa::Avx2.is_supported() {
        // SAFETY: the features were just found; the matrices are the caller's promise.
        return unsafe { with_fma(call) };
    }
    // SAFETY: the caller's promise.
    unsafe { portable(call) }
}

#[cfg(target_arch = "x86_64")]
compiled! { Avx2:
    /// The portable code compiled with the instruction for a fused multiply-add, which the baseline of x86-64 would call
    /// a function for.
    fn with_fma(call: &Call) { portable(call) }
}

/// The portable code itself.
///
/// # Safety
///
/// As [`run`].
#[inline(always)]
pub(super) unsafe fn portable(call: &Call) {
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
                let mut t = [0.0f32; COLUMNS];
                for kk in k0..k.min(k0 + SPAN) {
                    // SAFETY: i < m, kk < k.
                    let x = unsafe { *a.add(i * lda + kk) };
                    // SAFETY: kk < k and j0 + columns <= n.
                    let b_row = unsafe { std::slice::from_raw_parts(b.add(kk * ldb + j0), columns) };
                    // Whole blocks have a width that the compiler knows, so that t stays in registers.
                    if let Ok(b_row) = <&[f32; COLUMNS]>::try_from(b_row) {
                        for (t, &y) in t.iter_mut().zip(b_row) {
                            *t = x.mul_add(y, *t);
                        }
                    } else {
                        for (t, &y) in t.iter_mut().zip(b_row) {
                            *t = x.mul_add(y, *t);
                        }
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
