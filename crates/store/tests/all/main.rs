//! Tests of the crate in one program: linked once, and on all processors until the last.

mod journal;
mod local;
mod npy;
mod outputs;
mod state;
mod support;
mod transfers;
