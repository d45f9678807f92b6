//! Scores of protein sequences against profile hidden Markov models: profiles, sequences, kernels, task, domains, table.
//!
//! In come profiles in HMMER's formats and sequences in FASTA or Stockholm, gzipped or not; out go tables of hits and of their
//! domains in the layouts of hmmsearch's `--tblout` and `--domtblout`, the same to the last byte on one thread or many,
//! in any memory budget, on any machine. Sequences pass the filters of HMMER 3, or are scored in full with `--max`. This
//! room never decides where blocks lie, and builds no profiles.

pub mod app;
mod args;
mod calibrate;
mod check;
pub mod domain;
pub mod filter;
pub mod generate;
pub mod kernel;
pub mod profile;
mod query;
mod random;
pub mod search;
pub mod sequence;
pub mod table;
pub mod task;
mod thresholds;
