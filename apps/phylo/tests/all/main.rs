//! Tests of the crate in one program: linked once, and on all processors until the last.

mod alignments;
mod chosen;
mod commands;
mod constraints;
mod counts;
mod given_trees;
mod likelihood;
mod models;
mod optimum;
mod partitions;
mod program;
mod search;
mod support;
mod supports;
mod ultrafast;
