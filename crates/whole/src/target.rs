//! Whether a file can be written, asked before the work that makes its content.

use crate::WholeFile;
use std::io;
use std::path::{Path, PathBuf};

/// Why a file could not be written where it is to be.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// Something other than a file has the name.
    #[error("cannot write {}: it is {found}; name a file", path.display())]
    NotAFile {
        /// The name.
        path: PathBuf,
        /// What has it.
        found: &'static str,
    },
    /// The directory is missing.
    #[error("cannot write {}: there is no directory {}; create it", path.display(), directory.display())]
    NoDirectory {
        /// The file.
        path: PathBuf,
        /// The directory that would hold it.
        directory: PathBuf,
    },
    /// The system lets no file be made in the directory.
    #[error("cannot write {}: {source}; name a file in another directory", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Refuses, before any work, a file that could not be written after it: a file is begun beside it and removed.
///
/// # Errors
/// [`TargetError`] says what stands in the way.
pub fn check_target(path: &Path) -> Result<(), TargetError> {
    let path = path.to_owned();
    if let Some(found) = other_than_a_file(&path) {
        return Err(TargetError::NotAFile { path, found });
    }
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !directory.is_dir() {
        let directory = directory.to_owned();
        return Err(TargetError::NoDirectory { path, directory });
    }
    match WholeFile::create(&path) {
        Ok(_) => Ok(()),
        Err(source) => Err(TargetError::Refused { path, source }),
    }
}

/// Whether two names are those of one file; of files that are not there yet, whether they are the same name.
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(a) == real(b)
}

/// What has the name, where that is no file that another could replace.
pub(crate) fn other_than_a_file(path: &Path) -> Option<&'static str> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Some("a directory"),
        Ok(found) if !found.is_file() => Some("a device or a pipe"),
        _ => path.file_name().is_none().then_some("a directory"),
    }
}
