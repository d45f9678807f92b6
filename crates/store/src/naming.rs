//! Names of the files that accompany an output.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// `<path><suffix>`, in the same directory.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The name of an output while it is written.
pub fn part_path(final_path: &Path) -> PathBuf {
    with_suffix(final_path, ".part")
}
