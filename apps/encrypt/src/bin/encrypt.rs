//! The program `multigrain-encrypt`, which the command `multigrain encrypt` becomes.

use clap::Parser;
use multigrain_encrypt::app::{EncryptArgs, encrypt};
use std::process::ExitCode;

fn main() -> ExitCode {
    multigrain_console::begin();
    match EncryptArgs::try_parse() {
        Ok(args) => multigrain_console::finish(|| encrypt(&args)),
        Err(usage) => multigrain_console::usage(&usage),
    }
}
