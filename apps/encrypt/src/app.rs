//! The two programs: what can be typed, and what is then done.

mod args;
mod decrypt;
mod encrypt;
mod ends;
mod range;

pub use args::{DecryptArgs, EncryptArgs};
pub use decrypt::decrypt;
pub use encrypt::encrypt;
pub use range::{ContentRange, RangeError};

use crate::error::Error;
use crate::mode::Mode;
use crate::pipeline::Moved;
use multigrain_console::{Failure, print};
use serde_json::json;
use std::time::Instant;

/// An error as the programs end with it.
pub fn failure(error: Error) -> Failure {
    match error.exit_status() {
        2 => Failure::Request(error.to_string()),
        _ => Failure::Run(error.to_string()),
    }
}

/// What was done, as one line of JSON.
fn report(app: &str, mode: Mode, moved: Moved, threads: usize, since: Instant) -> Result<(), Failure> {
    let seconds = since.elapsed().as_secs_f64();
    print(&format!(
        "{}\n",
        json!({
            "app": app,
            "mode": mode.name(),
            "bytes_in": moved.bytes_in,
            "bytes_out": moved.bytes_out,
            "threads": threads,
            "seconds": seconds,
        })
    ))
}
