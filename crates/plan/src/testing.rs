//! Random programs, machines and damage, for property tests of everything that handles plans.
//!
//! Not for use outside of tests. Every generator is a function of a seed, so that a failing seed, put into the panic
//! message by the test, reproduces the failure:
//!
//! ```
//! use multigrain_plan::testing::{random_bytes, random_program};
//! for seed in 0..3 {
//!     let program = random_program(seed);
//!     let mut arrays = random_bytes(&program, seed);
//!     program.run_sequential(&mut arrays).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
//! }
//! ```

mod machine;
mod mutate;
mod naive;
mod program;
mod reductions;
mod rng;
mod steps;
mod tasks;
mod walk;

pub use machine::{random_machine, random_mapping};
pub use mutate::{mutate, mutate_reduction};
pub use naive::{Naive, naive_plan};
pub use program::{random_bytes, random_program};
pub use reductions::{Dot, Mix, RankK};
pub use rng::Rng;
pub use steps::{Windows, mix, random_steps};
pub use tasks::{Combine, Number, Product, ProductUpdate, Scale, Stencil, Transpose};
pub use walk::walked_seconds;
