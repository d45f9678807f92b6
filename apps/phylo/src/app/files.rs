//! Output files: names, and the promise that nothing is overwritten unasked.

use crate::error::Error;
use multigrain::whole;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The files of a run, `PREFIX.` and a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outputs {
    prefix: PathBuf,
}

/// The tree with the highest log-likelihood.
pub(crate) const BEST_TREE: &str = "bestTree";
/// The same with the lengths of each partition, where they have their own: one tree a line.
pub(crate) const PARTITION_TREES: &str = "bestPartitionTrees";
/// Models with the best tree's parameters, as a partition file.
pub(crate) const BEST_MODEL: &str = "bestModel";
/// The trees of all searches, one a line.
pub(crate) const ML_TREES: &str = "mlTrees";
/// The trees of the replicates, one a line.
pub(crate) const BOOTSTRAPS: &str = "bootstraps";
/// The best tree with supports in per cent.
pub(crate) const SUPPORT: &str = "support";
/// The best tree with transfer bootstrap expectations.
pub(crate) const TRANSFER: &str = "supportTBE";
/// The majority-rule consensus of the replicates.
pub(crate) const CONSENSUS: &str = "consensus";
/// The best tree as a picture.
pub(crate) const PICTURE: &str = "svg";
/// What was said.
pub(crate) const LOG: &str = "log";
/// What a run can go on from.
pub(crate) const CHECKPOINT: &str = "checkpoint";

impl Outputs {
    /// Files whose names begin with `prefix`.
    pub fn new(prefix: &Path) -> Outputs {
        Outputs { prefix: prefix.to_owned() }
    }

    /// The path of the file with this word.
    pub fn path(&self, word: &str) -> PathBuf {
        let mut name = self.prefix.as_os_str().to_owned();
        name.push(".");
        name.push(word);
        PathBuf::from(name)
    }

    /// Refuses, before any work, files that could not be written after it, or that are there although `force` is not
    /// given.
    pub(crate) fn check(&self, words: &[&str], force: bool) -> Result<(), Error> {
        for word in words {
            let path = self.path(word);
            if path.exists() && !force {
                return Err(Error::request(format!(
                    "{} exists: choose another --prefix, or overwrite it with --force",
                    path.display()
                )));
            }
            whole::check_target(&path).map_err(|e| Error::request(e.to_string()))?;
        }
        Ok(())
    }

    /// Writes one of the files, whole or not at all.
    pub(crate) fn write(&self, word: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.path(word);
        let failed = |e: std::io::Error| Error::run(format!("cannot write {}: {e}", path.display()));
        whole::write(&path, |out| out.write_all(text.as_bytes())).map_err(failed)?;
        Ok(path)
    }
}
