//! The program `multigrain-decrypt`, which the command `multigrain decrypt` becomes.

use clap::Parser;
use multigrain_encrypt::app::{DecryptArgs, decrypt};
use std::process::ExitCode;

fn main() -> ExitCode {
    multigrain_console::begin();
    match DecryptArgs::try_parse() {
        Ok(args) => multigrain_console::finish(|| decrypt(&args)),
        Err(usage) => multigrain_console::usage(&usage),
    }
}
