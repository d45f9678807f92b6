//! Prints a machine: `machine [NAME or FILE] [--probe]`; without a name, this computer.

use multigrain_machine::{Machine, MachineError};
use std::path::Path;

fn main() -> Result<(), MachineError> {
    let (options, names): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|text| text.starts_with("--"));
    let machine = match names.first() {
        Some(name) => Machine::named(name)?,
        None => Machine::detect(Path::new("."))?,
    };
    let machine = if options.iter().any(|option| option == "--probe") { machine.probe()? } else { machine };
    print!("{}", machine.render());
    Ok(())
}
