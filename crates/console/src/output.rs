//! Writing what was asked for: standard output and short files.

use crate::failure::Failure;
use multigrain::whole;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Writes to standard output. A reader that has gone (`| head`) is no fault of the run.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Err(Failure::ReaderGone),
        Err(e) => Err(Failure::Run(format!("cannot write to standard output: {e}"))),
    }
}

/// Writes a short file, whole or not at all.
pub fn write_whole(path: &Path, text: &str) -> Result<(), Failure> {
    whole::check_target(path)?;
    let refused = |e| Failure::Run(format!("cannot write {}: {e}; free space, or choose another file", path.display()));
    whole::write(path, |out| out.write_all(text.as_bytes())).map_err(refused)
}
