//! The program `multigrain-encrypt`, which the command `multigrain encrypt` becomes.

use multigrain_encrypt::app::encrypt;
use std::process::ExitCode;

fn main() -> ExitCode {
    multigrain_console::program(encrypt)
}
