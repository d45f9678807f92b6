//! Whether a file can be written, asked before the work that makes its content.

use crate::{WholeFile, directory_of};
use std::fs::File;
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
    /// The file is there and must not be written.
    #[error("cannot write {}: it is there and write-protected; lift that (chmod u+w) or name another file", path.display())]
    Protected {
        /// The file.
        path: PathBuf,
    },
    /// What is to be written is made from this very file.
    #[error("cannot write {}: it would replace the input {}; give it another name", path.display(), path.display())]
    Read {
        /// The file.
        path: PathBuf,
    },
    /// The directory is missing.
    #[error("cannot write {}: there is no directory {}; create it", path.display(), directory.display())]
    NoDirectory {
        /// The file.
        path: PathBuf,
        /// The directory that would hold it.
        directory: PathBuf,
    },
    /// No file can have the name.
    #[error("cannot write {}: {source}; give it a shorter one", path.display())]
    NameTooLong {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
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
    let path = target(path)?;
    let directory = directory_of(&path);
    if !directory.is_dir() && directory.exists() {
        return Err(TargetError::Refused { path, source: io::ErrorKind::NotADirectory.into() });
    }
    if !directory.is_dir() {
        let directory = directory.to_owned();
        return Err(TargetError::NoDirectory { path, directory });
    }
    match WholeFile::create(&path) {
        Ok(_) => Ok(()),
        Err(source) if source.kind() == io::ErrorKind::InvalidFilename => {
            Err(TargetError::NameTooLong { path, source })
        }
        Err(source) => Err(TargetError::Refused { path, source }),
    }
}

/// The file that a name stands for, as [`followed`], which another may replace. One that is there and write-protected may
/// not be: that would go around the protection.
///
/// # Errors
/// [`TargetError::NotAFile`] and [`TargetError::Protected`].
pub fn target(path: &Path) -> Result<PathBuf, TargetError> {
    if let Some(found) = other_than_a_file(path) {
        return Err(TargetError::NotAFile { path: path.to_owned(), found });
    }
    let refused = |e: io::Error| e.kind() == io::ErrorKind::PermissionDenied;
    let protected = std::fs::metadata(path).is_ok_and(|found| {
        found.is_file()
            && (found.permissions().readonly()
                || std::fs::OpenOptions::new().write(true).open(path).is_err_and(refused))
    });
    if protected { Err(TargetError::Protected { path: path.to_owned() }) } else { Ok(followed(path)) }
}

/// More links than this after one another lead in a circle, as the system has it.
const LINKS_MAX: usize = 40;

/// The file that a name stands for: where it is a symbolic link, what that leads to, which need not be there.
pub fn followed(path: &Path) -> PathBuf {
    let mut at = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(target) = std::fs::read_link(&at) else { return at };
        at = match at.parent() {
            Some(parent) if target.is_relative() => parent.join(target),
            _ => target,
        };
    }
    path.to_owned()
}

/// Opens a file to read it, a pipe or a device as well. A directory is refused at once, which the system does at the first
/// read.
///
/// # Errors
/// What the system says, and [`io::ErrorKind::IsADirectory`].
pub fn open_input(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    match file.metadata()?.is_dir() {
        true => Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory; name a file")),
        false => Ok(file),
    }
}

/// Refuses to write a file in the place of one that is read for it.
///
/// # Errors
/// [`TargetError::Read`].
pub fn check_keeps<'a>(path: &Path, read: impl IntoIterator<Item = &'a Path>) -> Result<(), TargetError> {
    match read.into_iter().any(|input| is_same_file(path, input)) {
        true => Err(TargetError::Read { path: path.to_owned() }),
        false => Ok(()),
    }
}

/// Whether two names are those of one file; of files that are not there yet, whether they are the same name in the same
/// directory.
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| {
        let path = followed(path);
        let directory = directory_of(&path);
        let beside = || Some(directory.canonicalize().ok()?.join(path.file_name()?));
        path.canonicalize().ok().or_else(beside).unwrap_or(path)
    };
    real(a) == real(b)
}

/// What has the name where that is no file that another could replace.
pub(crate) fn other_than_a_file(path: &Path) -> Option<&'static str> {
    if path.as_os_str() == "-" {
        return Some("the standard output, on which no file appears whole");
    }
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Some("a directory"),
        Ok(found) if !found.is_file() => Some("a device or a pipe"),
        // A link to nothing is one to a file that is to be.
        Err(e) if path.is_symlink() && e.kind() != io::ErrorKind::NotFound => {
            Some("a symbolic link that leads in a circle")
        }
        _ => path.file_name().is_none().then_some("a directory"),
    }
}
