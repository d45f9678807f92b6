//! The names of files that a run makes beside its results before these are whole.

use crate::job::Job;
use multigrain_store::Journal;
pub(crate) use multigrain_store::part_path;
use multigrain_whole::followed;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3Default;

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

/// The name of the second file of an array that lies in this one.
fn twin_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".twin");
    name.into()
}

/// A name for the second file of an array: beside the first one, which lies in the folder for scratch files unless it is a
/// result's.
pub(crate) fn twin_path(job: &Job, folder: &Path, array: usize) -> PathBuf {
    let sink = |array: usize| job.sinks.get(array).and_then(Option::as_ref).map(|sink| absolute(sink.path()));
    let first = || job.files_written().next().map(absolute).unwrap_or_default();
    twin_of(&sink(array).unwrap_or_else(|| scratch_path(&absolute(folder), &first(), array)))
}

/// The names that a run makes beside a result before it is whole.
pub(crate) fn names_beside(result: &Path) -> [PathBuf; 4] {
    let journal = Journal::path_for(&absolute(result));
    [part_path(result), part_path(&twin_of(result)), Journal::new_path_for(&journal), journal]
}

/// Whether a run that writes a result has, makes or removes a file of this name on the way to it: what the result is while it is
/// written, its second file, journals, arrays without a file of their own, in whatever folder these lie.
pub fn is_beside(result: &Path, other: &Path) -> bool {
    let result = absolute(&followed(result));
    let beside = names_beside(&result);
    let journal = Journal::path_for(&result);
    let scratch = format!("{}.{}", result.file_name().unwrap_or_default().display(), place_of(&result));
    let is_it = |other: &Path| {
        let without = |path: &Path, whole: fn(&Path) -> PathBuf| {
            let shorter = path.with_extension("");
            if whole(&shorter) == path { shorter } else { path.to_owned() }
        };
        let array = without(&without(other, part_path), twin_of);
        beside.contains(&other.to_owned())
            || is_numbered(&without(other, Journal::new_path_for), &journal)
            || part_path(&without(other, part_path)) == other
                && array.file_name().is_some_and(|name| is_numbered(Path::new(name), Path::new(&scratch)))
    };
    is_it(&absolute(other)) || is_it(&absolute(&followed(other)))
}

/// Whether a path is another with a point and a number behind it.
fn is_numbered(path: &Path, of: &Path) -> bool {
    let rest = path.as_os_str().as_encoded_bytes().strip_prefix(of.as_os_str().as_encoded_bytes());
    let number = rest.and_then(|rest| rest.strip_prefix(b"."));
    number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

/// The folder of a file.
pub(crate) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_run_uses_are_known_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let result = folder.path().join("o.npy");
        let elsewhere = scratch_path(Path::new("/elsewhere"), &result, 12);
        let used = ["part", "twin.part", "journal", "journal.new", "journal.0", "journal.17.new"];
        let used = used.map(|ending| folder.path().join(format!("o.npy.{ending}")));
        for used in used.iter().chain(&[part_path(&elsewhere), part_path(&twin_of(&elsewhere))]) {
            assert!(is_beside(&result, used), "{}", used.display());
        }
        let others =
            ["new", "twin", "journal.", "journal.x", "journal.1x", "journal.1.old", "part.new", "journal.journal"];
        let others = others.map(|ending| folder.path().join(format!("o.npy.{ending}")));
        for other in
            others.iter().chain(&[result.clone(), elsewhere, folder.path().join("p.npy.part"), "/o.npy.part".into()])
        {
            assert!(!is_beside(&result, other), "{}", other.display());
        }
    }

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
