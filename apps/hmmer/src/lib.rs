//! Scores of protein sequences against profile hidden Markov models: profiles, sequences, kernels, task, domains, table.
//!
//! In come profiles in HMMER's ASCII format and sequences in FASTA, gzipped or not; out goes a table of hits in the
//! layout of hmmsearch's `--tblout`, the same to the last byte on one thread or many, in any memory budget, on any
//! machine. Every sequence is scored in full: no filter discards one. This room never decides where blocks lie, and
//! builds no profiles.

pub mod app;
pub mod domain;
pub mod generate;
pub mod kernel;
pub mod profile;
pub mod search;
pub mod sequence;
pub mod table;
pub mod task;
