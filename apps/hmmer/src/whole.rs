//! Text files that appear whole or not at all.

use multigrain::Error;
use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Refuses, before any work, a file that could not be written after it.
///
/// # Errors
/// [`Error::Request`] when it is a directory, or lies in none that can be written.
pub(crate) fn check_output(path: &Path) -> Result<(), Error> {
    let shown = path.display();
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.is_dir() || path.file_name().is_none() {
        return Err(Error::Request(format!("cannot write {shown}: it is a directory; name a file")));
    }
    if !directory.is_dir() {
        let missing = directory.display();
        return Err(Error::Request(format!("cannot write {shown}: there is no directory {missing}; create it")));
    }
    // A file without a name, gone at once, tells whether the directory can be written.
    tempfile::tempfile_in(directory)
        .map_err(|e| Error::Request(format!("cannot write {shown}: {e}; name a file in another directory")))?;
    Ok(())
}

/// Writes a file under another name in the same directory, and renames it when it is complete and durable. When that
/// fails, nothing is left.
///
/// # Errors
/// What the system or `write` says.
pub(crate) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&std::fs::File>) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(part);
    // A process of the same number that was killed may have left one behind.
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(&part)?;
    let mut out = BufWriter::new(&file);
    let written = write(&mut out).and_then(|()| out.flush());
    drop(out);
    let done = written.and_then(|()| file.sync_all()).and_then(|()| std::fs::rename(&part, path));
    if done.is_err() {
        // What cannot be removed stays under its `.part` name.
        let _ = std::fs::remove_file(&part);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_leaves_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("table");
        write_whole(&path, |out| out.write_all(b"first")).unwrap();
        let failed = write_whole(&path, |out| {
            out.write_all(b"second")?;
            Err(std::io::Error::other("no"))
        });
        assert!(failed.is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
