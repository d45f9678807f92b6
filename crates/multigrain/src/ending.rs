//! The end of a run that keeps a journal: what an interrupted run would need is removed when nobody needs it any more.
//! `docs/resume.md` of this crate names the states.

use crate::journals::Journals;
use multigrain_store::Disk;
use std::path::PathBuf;
use std::sync::Arc;

/// Of a run whose results are complete and have their names: its journals, and the files of arrays without names of their
/// own, for who makes other files from the results and is interrupted. Removed when dropped, but not by a panic.
pub(crate) struct Ending {
    pub(crate) disk: Arc<Disk>,
    pub(crate) scratch: Vec<PathBuf>,
    /// `None`: it is kept.
    pub(crate) journals: Option<Journals>,
    /// What the user calls the run by.
    pub(crate) result: PathBuf,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        // When results have their names, the next run for them may begin, and files of these names are its own.
        let Some(journals) = self.journals.take().filter(|journals| journals.main.has_its_name()) else { return };
        // Without these files a journal that is left says that the run is over.
        self.scratch.iter().filter(|path| path.exists()).for_each(|path| self.disk.remove(path));
        journals.remove(&self.disk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use multigrain_store::{DiskOptions, Journal};

    #[test]
    fn what_the_next_run_has_begun_stays() {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(Disk::new(DiskOptions::default()).unwrap());
        let [journal, scratch] = ["c.npy.journal", "scratch"].map(|name| directory.path().join(name));
        let begun = || {
            std::fs::write(&scratch, "").unwrap();
            let journals = Some(Journals::of_rank(Journal::create(&disk, &journal, "a run").unwrap()));
            Ending { disk: disk.clone(), scratch: vec![scratch.clone()], journals, result: PathBuf::new() }
        };
        let (first, next) = (begun(), begun());
        drop(first);
        assert!(journal.exists() && scratch.exists());
        drop(next);
        assert!(!journal.exists() && !scratch.exists());
    }
}
