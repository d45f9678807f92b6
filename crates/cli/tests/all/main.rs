//! Tests of the crate in one program: linked once, and on all processors until the last.

mod bad_input;
mod device;
mod external;
mod front;
mod kernel;
mod kinds;
mod loops;
mod memory;
mod met;
mod registered;
mod same_bytes;
mod sim;
mod strands;
mod support;
mod survive;
