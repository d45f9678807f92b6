//! Prints the memories of this computer, measured, or of a machine named on the command line, as it is described.

use multigrain_machine::{Machine, MachineError};
use std::path::Path;

fn main() -> Result<(), MachineError> {
    let machine = match std::env::args().nth(1) {
        Some(name) => Machine::named(&name)?,
        None => Machine::detect(Path::new("."))?.probe()?,
    };
    print!("{}", machine.render());
    Ok(())
}
