//! Instruction sets for leaf kernels: which of them this processor executes, and vectors for each.
//!
//! In comes nothing but the processor; out go [`Isa`], the choice at run time, [`dispatch!`], by which a kernel is compiled for
//! each ([`compiled!`]: for one), and [`Lanes`] (of `f32`), [`Doubles`] (eight of `f64`), [`Quad`] (four of `f32` on any processor),
//! [`Saturating`] (of `i8` or `i16`), [`Sixteen`] (of `i16`) and [`Bits`] (of `u16` or `u32`), in terms of which a kernel is written once for all of them, so that its order of
//! arithmetic cannot differ. This room holds no kernel, allocates nothing and knows nothing of machines, tasks or blocks.

// What `each` makes of its arguments is unsafe to call.
#![allow(clippy::macro_metavars_in_unsafe)]

/// Functions of a trait of vectors, written as `name(arguments) -> result { body }`: each is unsafe to call, since the processor
/// must support what its body uses, and inlined into a function that enables it.
#[macro_export]
macro_rules! each {
    ($($(#[$about:meta])* $name:ident($($argument:tt)*) $(-> $result:ty)? { $($body:tt)* })*) => {$(
        $(#[$about])*
        #[inline(always)]
        #[allow(unused_unsafe)]
        unsafe fn $name($($argument)*) $(-> $result)? {
            // SAFETY: as the trait demands of its callers.
            unsafe { $($body)* }
        }
    )*};
}

mod bits;
mod dispatch;
mod doubles;
mod isa;
mod lanes;
mod quad;
mod saturating;
mod sixteen;

pub use bits::Bits;
#[cfg(target_arch = "x86_64")]
pub use bits::{Narrow, Wide};
#[cfg(target_arch = "x86_64")]
pub use doubles::Pair;
pub use doubles::{DOUBLES, Doubles};
pub use isa::Isa;
pub use lanes::{Lanes, NAN_BITS, TABLE};
pub use quad::{QUAD, Quad};
pub use saturating::{Bytes, Saturating, Words};
pub use sixteen::Sixteen;
