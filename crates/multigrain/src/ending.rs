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
        let Some(journals) = self.journals.take() else { return };
        // Without these files a journal that is left says that the run is over.
        self.scratch.iter().filter(|path| path.exists()).for_each(|path| self.disk.remove(path));
        journals.remove(&self.disk);
    }
}
