//! The one place where kernels are compiled for instruction sets.

/// Functions compiled for an instruction set, by its name in [`Isa`](crate::Isa), written as `fn name(arguments) -> result { body }`:
/// each is unsafe to call, since the processor must support the set, and its caller promises what its body needs besides.
/// What that calls must be inlined (`#[inline(always)]`), or it is compiled without the set's instructions.
///
/// ```
/// use multigrain_simd::{Lanes, compiled};
///
/// #[inline(always)]
/// unsafe fn double<L: Lanes>(x: *mut f32) {
///     unsafe { L::load(x).add(L::load(x)).store(x) }
/// }
///
/// #[cfg(target_arch = "x86_64")]
/// compiled! { Avx2:
///     fn double_eight(x: *mut f32) { double::<std::arch::x86_64::__m256>(x) }
/// }
/// ```
#[macro_export]
macro_rules! compiled {
    (Scalar: $($functions:tt)*) => { $crate::compiled! { [allow(unused_unsafe)] $($functions)* } };
    (Neon: $($functions:tt)*) => { $crate::compiled! { [target_feature(enable = "neon")] $($functions)* } };
    (Avx2: $($functions:tt)*) => {
        $crate::compiled! { [target_feature(enable = "avx2,fma,popcnt,bmi1,bmi2")] $($functions)* }
    };
    (Avx512: $($functions:tt)*) => {
        $crate::compiled! {
            [target_feature(enable = "avx2,fma,popcnt,bmi1,bmi2,avx512f,avx512vl,avx512dq,avx512bw")] $($functions)*
        }
    };
    ($with:tt $(
        $(#[$about:meta])*
        $of:vis fn $name:ident $(<$(const $generic:ident: $kind:ty),+>)? ($($argument:ident: $type:ty),* $(,)?)
        $(-> $result:ty)? { $($body:tt)* }
    )*) => {$(
        $(#[$about])*
        #$with
        $of unsafe fn $name $(<$(const $generic: $kind),+>)? ($($argument: $type),*) $(-> $result)? {
            // SAFETY: as the caller promises; the features are enabled here.
            unsafe { $($body)* }
        }
    )*};
}

/// Calls a kernel as it is compiled for an instruction set: `Isa`, the arguments with their types, and what is called for each
/// set, mostly one generic function with the vector and the blocks that suit it. Constants of the function around it are named
/// with their types before the arguments: `<STREAM: bool>`.
///
/// The expansion is unsafe to execute: the processor must support the instruction set, and the kernel says what it needs besides.
/// What is called must be inlined (`#[inline(always)]`), or it is compiled without the set's instructions. Of a set of another
/// architecture nothing is compiled, and it is never asked for.
///
/// ```
/// use multigrain_simd::{Isa, Lanes, dispatch};
///
/// #[inline(always)]
/// unsafe fn double<L: Lanes>(x: *mut f32) {
///     unsafe { L::load(x).add(L::load(x)).store(x) }
/// }
///
/// fn double_sixteen(isa: Isa, x: &mut [f32; 16]) {
///     assert!(isa.is_supported());
///     let x = x.as_mut_ptr();
///     // SAFETY: the instruction set is there, and no vector is longer than the array.
///     unsafe {
///         dispatch!(isa, (x: *mut f32) => {
///             Scalar: double::<f32>,
///             Neon: double::<std::arch::aarch64::float32x4_t>,
///             Avx2: double::<std::arch::x86_64::__m256>,
///             Avx512: double::<std::arch::x86_64::__m512>,
///         });
///     }
/// }
/// # let mut x = [1.0; 16];
/// # double_sixteen(Isa::detect(), &mut x);
/// # assert_eq!(x[0], 2.0);
/// ```
#[macro_export]
macro_rules! dispatch {
    ($isa:expr, $(<$($generic:ident: $of:ty),+>)? ($($name:ident : $type:ty),* $(,)?) $(-> $result:ty)? => {
        Scalar: $scalar:expr, Neon: $neon:expr, Avx2: $avx2:expr, Avx512: $avx512:expr $(,)?
    }) => {{
        #[cfg(target_arch = "aarch64")]
        $crate::compiled! { Neon:
            fn neon $(<$(const $generic: $of),+>)? ($($name: $type),*) $(-> $result)? { $neon($($name),*) }
        }
        #[cfg(target_arch = "x86_64")]
        $crate::compiled! { Avx2:
            fn avx2 $(<$(const $generic: $of),+>)? ($($name: $type),*) $(-> $result)? { $avx2($($name),*) }
        }
        #[cfg(target_arch = "x86_64")]
        $crate::compiled! { Avx512:
            fn avx512 $(<$(const $generic: $of),+>)? ($($name: $type),*) $(-> $result)? { $avx512($($name),*) }
        }
        match $isa {
            #[cfg(target_arch = "aarch64")]
            $crate::Isa::Neon => neon$(::<$($generic),+>)?($($name),*),
            #[cfg(target_arch = "x86_64")]
            $crate::Isa::Avx2 => avx2$(::<$($generic),+>)?($($name),*),
            #[cfg(target_arch = "x86_64")]
            $crate::Isa::Avx512 => avx512$(::<$($generic),+>)?($($name),*),
            _ => $scalar($($name),*),
        }
    }};
}
