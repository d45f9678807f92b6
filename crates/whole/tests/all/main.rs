//! Tests of the crate in one program: linked once, and on all processors until the last.

mod whole;
