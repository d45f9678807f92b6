//! Writing what was asked for: standard output, and files that appear whole or not at all.

use crate::failure::Failure;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Writes to standard output. A reader that has gone (`| head`) is no fault of the run.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Err(Failure::ReaderGone),
        Err(e) => Err(Failure::Run(format!("cannot write to standard output: {e}"))),
    }
}

/// Writes a file under another name in the same directory and renames it.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<(), Failure> {
    check_target(path)?;
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(part);
    let written = std::fs::File::create_new(&part).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&part, path)
    });
    written.map_err(|error| {
        let _ = std::fs::remove_file(&part);
        Failure::Request(format!("cannot write {}: {error}; choose another file", path.display()))
    })
}

/// Refuses, before any work, a file that could not be written after it.
pub(crate) fn check_target(path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.is_dir() || path.file_name().is_none() {
        return Err(Failure::Request(format!("cannot write {shown}: it is a directory; name a file")));
    }
    if !directory.is_dir() {
        let missing = directory.display();
        return Err(Failure::Request(format!("cannot write {shown}: there is no directory {missing}; create it")));
    }
    Ok(())
}
