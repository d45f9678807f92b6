//! The journals of one run: its own, beside its first result, and what points to it from the others.

use crate::error::Error;
use crate::identity::Text;
use crate::job::Job;
use crate::merged;
use crate::names::absolute;
use multigrain_store::{Disk, Journal};
use std::path::{Path, PathBuf};

/// The journal of a run, and beside its other results what points to it.
pub(crate) struct Journals {
    pub(crate) main: Journal,
    pointing: Vec<PathBuf>,
}

impl Journals {
    pub(crate) fn create(job: &Job, disk: &Disk, text: &Text) -> Result<Journals, Error> {
        let mut paths = journal_paths(job);
        let Some(first) = paths.next() else {
            return Err(Error::Request("no result goes to a file".to_owned()));
        };
        let unnamed = |path: &Path, why| {
            let (path, utf8) =
                (path.display(), "to be resumed a run writes down how its inputs and results are called");
            Error::Request(format!("the journal of {path} cannot be written: {why}; {utf8}: give them names in UTF-8"))
        };
        let as_text = |text: &Text| serde_json::to_string(text).map_err(|why| unnamed(&first, why));
        let main = Journal::create(disk, &first, &as_text(text)?).map_err(Error::File)?;
        let mut journals = Journals { main, pointing: Vec::new() };
        let to_first = Text::Journal(std::path::absolute(&first).unwrap_or_else(|_| first.clone()));
        for path in paths {
            match as_text(&to_first).and_then(|text| Journal::create(disk, &path, &text).map_err(Error::File)) {
                Ok(_) => journals.pointing.push(path),
                Err(error) => {
                    journals.remove(disk);
                    return Err(error);
                }
            }
        }
        Ok(journals)
    }

    pub(crate) fn resume(job: &Job, disk: &Disk) -> Result<Option<Journals>, Error> {
        let mut paths = journal_paths(job);
        let Some(first) = paths.next() else { return Ok(None) };
        // What it says is known.
        let resumed = Journal::resume(disk, &first, |_| ()).map_err(Error::File)?;
        Ok(resumed.map(|main| Journals { main, pointing: paths.collect() }))
    }

    /// Removes them: the run is over, or given up.
    pub(crate) fn remove(self, disk: &Disk) {
        self.pointing.iter().for_each(|path| disk.remove(path));
        let path = self.main.path().to_owned();
        self.main.remove(disk);
        merged::remove(disk, &path);
    }

    /// That of a rank alone.
    pub(crate) fn of_rank(main: Journal) -> Journals {
        Journals { main, pointing: Vec::new() }
    }
}

/// The names of journals beside the files that a job writes.
pub(crate) fn journal_paths(job: &Job) -> impl Iterator<Item = PathBuf> + '_ {
    job.files_written().map(|path| Journal::path_for(&absolute(path)))
}
