//! The program `multigrain-decrypt`, which the command `multigrain decrypt` becomes.

use multigrain_encrypt::app::decrypt;
use std::process::ExitCode;

fn main() -> ExitCode {
    multigrain_console::program(decrypt)
}
