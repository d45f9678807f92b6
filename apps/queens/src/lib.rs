//! Queens: how many ways there are to put n queens on an n x n board so that none attacks another, and how many of them
//! are different when the board may be turned and mirrored.
//!
//! In comes n; out go exact counts, the same with any number of workers and each instruction set, and a checkpoint from
//! which a search of days goes on. The way there:
//!
//! 1. [`Ring`]: the outermost rows and columns hold three or four queens. Of every eight ways to place them that are
//!    images of each other one is searched, in the orientation that promises the smallest tree.
//! 2. [`Subtree`]: what is inside of a ring, divided by predicted work ([`multigrain::division`]) until the parts are
//!    even.
//! 3. [`kernel`]: counts a subtree, row by row, on registers full of boards.
//! 4. [`symmetric`]: solutions that are their own images, by searches of their own. With them the classes of
//!    symmetry must come out even ([`Counts::new`]), which the sum over rings knows nothing of.
//!
//! This room starts no thread (its jobs run on the workers of a [`multigrain::jobs::Team`]) and holds no table of results.

mod board;
mod checkpoint;
mod counts;
mod error;
pub mod kernel;
mod predict;
mod ring;
mod run;
mod subtree;
pub mod symmetric;

pub use board::{Board, Node, QUEENS_MAX, Row};
pub use counts::Counts;
pub use error::Error;
pub use ring::{Ring, rings};
pub use run::{Finished, Request, run};
pub use subtree::Subtree;
