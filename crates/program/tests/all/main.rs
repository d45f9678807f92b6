//! Tests of the crate in one program: linked once, and on all processors until the last.

mod calls;
mod compile_fail;
mod notation;
mod reduce;
mod regions;
mod splits;
mod views;
