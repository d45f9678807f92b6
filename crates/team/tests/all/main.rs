//! Tests of the crate in one program: linked once, and on all processors until the last.

mod collective;
mod contexts;
mod exact_cover;
mod jobs;
mod strands;
mod threads;
