//! Tests of the crate in one program: linked once, and on all processors until the last.

mod choice;
mod contexts;
mod jobs;
mod messages;
mod mutants;
mod policy;
mod proofs;
mod requests;
mod strands;
mod support;
