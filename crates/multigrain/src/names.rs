//! The names of files that a run makes beside its results before these are whole.

use crate::job::Job;
use multigrain_store::Journal;
use multigrain_whole::followed;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3Default;

/// What the name of a file ends with while it is written.
const PART: &str = ".part";

/// The name of a result while it is written.
pub(crate) fn part_path(result: &Path) -> PathBuf {
    let mut name = result.as_os_str().to_owned();
    name.push(PART);
    PathBuf::from(name)
}

/// The one name of a file in its folder, whichever way leads there: by `..`, by links, from another working directory.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    folder.zip(path.file_name()).map_or_else(|| path.clone(), |(folder, name)| folder.join(name))
}

/// A hash (XXH3) as text.
pub(crate) fn hash(feed: impl FnOnce(&mut Xxh3Default)) -> String {
    let mut hasher = Xxh3Default::new();
    feed(&mut hasher);
    format!("{:016x}", Hasher::finish(&hasher))
}

/// A name for what a run keeps of an array without a file of its own: beside the first result's name stands where that
/// lies, so that runs which share a folder for scratch files do not meet.
pub(crate) fn scratch_path(folder: &Path, first: &Path, array: usize) -> PathBuf {
    let first = absolute(first);
    let mut name = first.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.{array}", place_of(&first)));
    folder.join(name)
}

/// What stands in such names for where the first result lies.
fn place_of(first: &Path) -> String {
    let mut place = hash(|h| first.hash(h));
    place.truncate(8);
    place
}

/// What the name of an array's second file ends with.
pub(crate) const TWIN: &str = ".twin";

/// A name for the second file of an array: beside the first one, which lies in the folder for scratch files unless it is a
/// result's.
pub(crate) fn twin_path(job: &Job, folder: &Path, array: usize) -> PathBuf {
    let sink = |array: usize| job.sinks.get(array).and_then(Option::as_ref).map(|sink| absolute(sink.path()));
    let first = || job.files_written().next().map(absolute).unwrap_or_default();
    let mut name = sink(array).unwrap_or_else(|| scratch_path(&absolute(folder), &first(), array)).into_os_string();
    name.push(TWIN);
    name.into()
}

/// The names that a run makes beside a result before it is whole.
pub(crate) fn names_beside(result: &Path) -> [PathBuf; 4] {
    let mut twin = result.as_os_str().to_owned();
    twin.push(TWIN);
    let journal = Journal::path_for(&absolute(result));
    [part_path(result), part_path(Path::new(&twin)), Journal::new_path_for(&journal), journal]
}

/// Whether a run that writes a result has, makes or removes a file of this name on the way to it: what the result is while it is
/// written, its second file, journals, arrays without a file of their own.
pub fn is_beside(result: &Path, other: &Path) -> bool {
    let result = absolute(&followed(result));
    [absolute(other), absolute(&followed(other))].iter().any(|other| {
        let name = |path: &Path| path.file_name().unwrap_or_default().as_encoded_bytes().to_vec();
        let (result_name, other_name) = (name(&result), name(other));
        let Some(rest) = other_name.strip_prefix(&*result_name).and_then(|rest| std::str::from_utf8(rest).ok()) else {
            return false;
        };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(rest) = rest.strip_prefix(&*format!(".{}.", place_of(&result))) {
            // In whatever folder these lie.
            let array = rest.strip_suffix(PART).map(|rest| rest.strip_suffix(TWIN).unwrap_or(rest));
            return array.is_some_and(is_number);
        }
        if directory_of(&result) != directory_of(other) {
            return false;
        }
        let journal = rest.strip_suffix(".new").unwrap_or(rest).strip_prefix(".journal");
        let of_rank = |rest: &str| rest.strip_prefix('.').is_some_and(is_number);
        rest == PART || rest == [TWIN, PART].concat() || journal.is_some_and(|rest| rest.is_empty() || of_rank(rest))
    })
}

/// The folder of a file.
pub(crate) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whichever_way_leads_to_a_file_it_has_one_name() {
        let folder = tempfile::tempdir().unwrap();
        let sub = folder.path().join("sub");
        std::fs::create_dir(&sub).unwrap();
        std::os::unix::fs::symlink(&sub, folder.path().join("link")).unwrap();
        let name = absolute(&folder.path().join("o.npy"));
        assert_eq!(absolute(&sub.join("../o.npy")), name);
        assert_eq!(absolute(&folder.path().join("link/../o.npy")), name);
        assert_eq!(absolute(&folder.path().join("link/o.npy")), absolute(&sub.join("o.npy")));
        assert_ne!(absolute(&sub.join("o.npy")), name);
        assert_eq!(absolute(&folder.path().join("none/../o.npy")).file_name(), name.file_name());
    }
}
