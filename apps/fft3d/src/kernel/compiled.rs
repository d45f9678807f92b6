//! The passes compiled for each instruction set, once, however many places call them.

use super::columns::{self, Columns};
use super::pass::{Compiled, Final, Packed, Place, Shape, Strided, pass};
use super::rows::{self, Rows};
use super::{Dft, Pass};
use multigrain_simd::{Isa, Lanes, compiled};

/// Runs one pass of any radix.
///
/// # Safety
/// As for [`pass`].
#[inline(always)]
unsafe fn any_radix<V: Lanes>(dft: &Dft, this: &Pass, vectors_of: usize, from: impl Place<V>, to: impl Place<V>) {
    let twiddles = dft.tables().twiddles[this.twiddles..].as_ptr();
    let shape = &Shape { m: this.m, s: this.s / vectors_of, twiddles };
    // SAFETY: the caller's promise.
    unsafe {
        match this.radix {
            2 => pass::<V, 2>(shape, from, to),
            3 => pass::<V, 3>(shape, from, to),
            4 => pass::<V, 4>(shape, from, to),
            5 => pass::<V, 5>(shape, from, to),
            7 => pass::<V, 7>(shape, from, to),
            8 => pass::<V, 8>(shape, from, to),
            16 => pass::<V, 16>(shape, from, to),
            _ => pass::<V, 1>(shape, from, to),
        }
    }
}

macro_rules! compiled_for {
    ($name:ident, $set:ident, $vector:ty) => {
        mod $name {
            use super::*;

            const PASSES: Compiled<$vector> = Compiled { first, middle, last, finish };

            compiled! { $set:
                fn first(dft: &Dft, this: &Pass, from: Strided<$vector>, to: Packed) {
                    any_radix::<$vector>(dft, this, 1, from, to)
                }

                fn middle(dft: &Dft, this: &Pass, vectors_of: usize, from: Packed, to: Packed) {
                    any_radix::<$vector>(dft, this, vectors_of, from, to)
                }

                fn last(dft: &Dft, this: &Pass, vectors_of: usize, from: Packed, to: Strided<$vector>) {
                    any_radix::<$vector>(dft, this, vectors_of, from, to)
                }

                fn finish(dft: &Dft, this: &Pass, from: Packed, to: Final<$vector>) {
                    any_radix::<$vector>(dft, this, 1, from, to)
                }

                pub(super) fn rows(call: &Rows<'_>, scratch: *mut f32) {
                    rows::rows::<$vector>(call, &PASSES, scratch)
                }

                pub(super) fn columns(call: &Columns<'_>, scratch: *mut f32) {
                    columns::columns::<$vector>(call, &PASSES, scratch)
                }
            }
        }
    };
}

compiled_for!(portable, Scalar, f32);
// The portable code where there is an instruction for a fused multiply-add.
#[cfg(target_arch = "x86_64")]
compiled_for!(fma, Avx2, f32);
#[cfg(target_arch = "x86_64")]
compiled_for!(avx2, Avx2, std::arch::x86_64::__m256);
#[cfg(target_arch = "x86_64")]
compiled_for!(avx512, Avx512, std::arch::x86_64::__m512);
#[cfg(target_arch = "aarch64")]
compiled_for!(neon, Neon, std::arch::aarch64::float32x4_t);

/// What is called as it is compiled for an instruction set.
macro_rules! chosen {
    ($isa:expr, $called:ident($($argument:expr),*)) => {
        match $isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512::$called($($argument),*),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2::$called($($argument),*),
            #[cfg(target_arch = "x86_64")]
            Isa::Scalar if Isa::Avx2.is_supported() => fma::$called($($argument),*),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => neon::$called($($argument),*),
            _ => portable::$called($($argument),*),
        }
    };
}

/// Transforms rows.
///
/// # Safety
/// As for [`rows::rows`]; the processor supports `isa`.
pub(super) unsafe fn isa_rows(isa: Isa, call: &Rows<'_>, scratch: *mut f32) {
    // SAFETY: the caller's promise.
    unsafe { chosen!(isa, rows(call, scratch)) }
}

/// Transforms columns.
///
/// # Safety
/// As for [`columns::columns`]; the processor supports `isa`.
pub(super) unsafe fn isa_columns(isa: Isa, call: &Columns<'_>, scratch: *mut f32) {
    // SAFETY: the caller's promise.
    unsafe { chosen!(isa, columns(call, scratch)) }
}
