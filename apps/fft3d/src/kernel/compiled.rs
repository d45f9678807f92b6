//! The passes compiled for each instruction set, once, however many places call them.

use super::columns::{self, Columns};
use super::pass::{Compiled, Final, Packed, Place, Shape, Strided, pass};
use super::rows::{self, Rows};
use super::{Dft, Pass};
use multigrain_simd::{Isa, Lanes};

/// Runs one pass of any radix.
///
/// # Safety
/// As for [`pass`].
#[inline(always)]
unsafe fn any_radix<V: Lanes>(dft: &Dft, this: &Pass, vectors_of: usize, from: impl Place<V>, to: impl Place<V>) {
    let twiddles = dft.twiddles[this.twiddles..].as_ptr();
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
    ($name:ident, $vector:ty $(, $features:literal)?) => {
        mod $name {
            use super::*;

            /// # Safety
            /// As for [`pass`].
            $(#[target_feature(enable = $features)])?
            unsafe fn first(dft: &Dft, this: &Pass, from: Strided<$vector>, to: Packed) {
                // SAFETY: the caller's promise.
                unsafe { any_radix::<$vector>(dft, this, 1, from, to) }
            }

            /// # Safety
            /// As for [`pass`].
            $(#[target_feature(enable = $features)])?
            unsafe fn middle(dft: &Dft, this: &Pass, vectors_of: usize, from: Packed, to: Packed) {
                // SAFETY: the caller's promise.
                unsafe { any_radix::<$vector>(dft, this, vectors_of, from, to) }
            }

            /// # Safety
            /// As for [`pass`].
            $(#[target_feature(enable = $features)])?
            unsafe fn last(dft: &Dft, this: &Pass, vectors_of: usize, from: Packed, to: Strided<$vector>) {
                // SAFETY: the caller's promise.
                unsafe { any_radix::<$vector>(dft, this, vectors_of, from, to) }
            }

            /// # Safety
            /// As for [`pass`].
            $(#[target_feature(enable = $features)])?
            unsafe fn finish(dft: &Dft, this: &Pass, from: Packed, to: Final<$vector>) {
                // SAFETY: the caller's promise.
                unsafe { any_radix::<$vector>(dft, this, 1, from, to) }
            }

            const PASSES: Compiled<$vector> = Compiled { first, middle, last, finish };

            /// # Safety
            /// As for [`rows::rows`].
            $(#[target_feature(enable = $features)])?
            pub(super) unsafe fn rows(call: &Rows<'_>, scratch: *mut f32) {
                // SAFETY: the caller's promise.
                unsafe { rows::rows::<$vector>(call, &PASSES, scratch) }
            }

            /// # Safety
            /// As for [`columns::columns`].
            $(#[target_feature(enable = $features)])?
            pub(super) unsafe fn columns(call: &Columns<'_>, scratch: *mut f32) {
                // SAFETY: the caller's promise.
                unsafe { columns::columns::<$vector>(call, &PASSES, scratch) }
            }
        }
    };
}

compiled_for!(portable, f32);
// The portable code where there is an instruction for a fused multiply-add.
#[cfg(target_arch = "x86_64")]
compiled_for!(fma, f32, "avx2,fma");
#[cfg(target_arch = "x86_64")]
compiled_for!(avx2, std::arch::x86_64::__m256, "avx2,fma");
#[cfg(target_arch = "x86_64")]
compiled_for!(avx512, std::arch::x86_64::__m512, "avx2,fma,avx512f,avx512vl,avx512dq");
#[cfg(target_arch = "aarch64")]
compiled_for!(neon, std::arch::aarch64::float32x4_t);

/// Transforms rows.
///
/// # Safety
/// As for [`rows::rows`]; the processor supports `isa`.
pub(super) unsafe fn isa_rows(isa: Isa, call: &Rows<'_>, scratch: *mut f32) {
    // SAFETY: the caller's promise; AVX2 comes with fused multiply-adds.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512::rows(call, scratch),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2::rows(call, scratch),
            #[cfg(target_arch = "x86_64")]
            Isa::Scalar if Isa::Avx2.is_supported() => fma::rows(call, scratch),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => neon::rows(call, scratch),
            _ => portable::rows(call, scratch),
        }
    }
}

/// Transforms columns.
///
/// # Safety
/// As for [`columns::columns`]; the processor supports `isa`.
pub(super) unsafe fn isa_columns(isa: Isa, call: &Columns<'_>, scratch: *mut f32) {
    // SAFETY: as above.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512::columns(call, scratch),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2::columns(call, scratch),
            #[cfg(target_arch = "x86_64")]
            Isa::Scalar if Isa::Avx2.is_supported() => fma::columns(call, scratch),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => neon::columns(call, scratch),
            _ => portable::columns(call, scratch),
        }
    }
}
