//! Tests of the crate in one program: linked once, and on all processors until the last.

mod hostile;
mod instants;
mod limits;
mod loss;
mod players;
mod refusals;
mod streams;
mod support;
mod transparent;
mod ways;
