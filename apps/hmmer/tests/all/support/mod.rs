//! Real inputs with independent results: those in `data`, whose README names their sources, and larger ones where they lie
//! beside the repository.

use std::path::{Path, PathBuf};

/// A file of the reference data; `None`, with a line that says so, where there is none. The folder is `data` here, then
/// `shared/data` beside the repository, or `MULTIGRAIN_DATA`.
pub(crate) fn data(name: &str) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    if here.exists() {
        return Some(here);
    }
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = std::env::var_os("MULTIGRAIN_DATA").map_or_else(beside, PathBuf::from).join(name);
    if !path.exists() {
        println!("skipped: there is no {}", path.display());
        return None;
    }
    Some(path)
}
