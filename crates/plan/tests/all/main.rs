//! Tests of the crate in one program: linked once, and on all processors until the last.

mod barriers;
mod broadcasts;
mod check_errors;
mod check_random;
mod free;
mod held;
mod numbered;
mod parts;
mod reduce;
mod rooms;
mod steps;
mod strict;
mod support;
