//! How much memory there is.

use crate::error::Error;
use multigrain::Machine;
use std::path::Path;

/// What the program itself takes of it.
pub(super) const OWN_BYTES: u64 = 8 << 20;

/// What there is: as much as was asked for, or the computer's memory.
pub(super) fn available(asked: Option<u64>) -> Result<u64, Error> {
    match asked {
        Some(bytes) => Ok(bytes),
        None => {
            let machine = Machine::detect(Path::new(".")).map_err(|e| Error::run(e.to_string()))?;
            Ok(machine.memory(machine.root()).capacity_bytes)
        }
    }
}
