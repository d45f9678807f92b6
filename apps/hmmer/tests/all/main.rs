//! Tests of the crate in one program: linked once, and on all processors until the last.

mod app;
mod biopython;
mod hmmsearch;
mod oracle;
mod support;
mod task;
