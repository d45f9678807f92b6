//! Maximum-likelihood phylogenies: alignments, models of substitution, trees, likelihood kernels, search, support.
//!
//! In come an alignment of DNA, proteins or binary data (PHYLIP, FASTA, NEXUS), a model, perhaps a partition file and trees in Newick; out
//! go the best tree, its log-likelihood and parameters, bootstraps and supports, the same to the last bit on one worker
//! or many and with whichever instruction set. This room never decides which grain runs in parallel (the policies do),
//! owns no threads, and writes no file that is not whole.
//!
//! The shared types, from which everything else is made:
//!
//! - [`alignment::Alignment`]: names and letters as read; [`alignment::DataType`]: alphabets; codes of letters and the
//!   table of ambiguity masks that they index.
//! - [`alignment::Patterns`]: the distinct columns of a set of sites, with weights, in the order of first occurrence.
//! - [`partition::Partition`]: patterns with their model; [`partition::Branches`]: whether partitions share lengths.
//! - [`model::Model`]: the parameters of a model of substitution and which of them are free; [`model::Eigen`]: its
//!   decomposition, P(t) = right diag(exp(values t)) left.

pub mod alignment;
pub mod alrt;
pub mod app;
mod bootstrap;
pub mod checkpoint;
pub mod choose;
pub mod constraint;
pub mod convergence;
pub mod copies;
pub mod draw;
pub mod error;
pub mod generate;
pub mod infer;
pub mod job;
pub mod joining;
pub mod kernel;
pub mod likelihood;
pub mod model;
mod optimize;
pub mod parsimony;
pub mod partition;
pub mod random;
pub mod search;
pub mod support;
pub mod tree;
pub mod ultrafast;

pub use error::Error;
