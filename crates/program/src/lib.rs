//! Arrays, regions, tasks and calls: what to compute, with sequential meaning.
