//! Output files: names, and the promise that nothing is overwritten unasked.

use crate::error::Error;
use multigrain::whole::{self, WholeFile};
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
/// The models that were tried, where one was chosen.
pub(crate) const MODELS: &str = "models";
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
/// The trees of the ultrafast bootstrap, one a line.
pub(crate) const ULTRAFAST: &str = "ufboot";
/// The best tree with its supports in per cent.
pub(crate) const ULTRAFAST_SUPPORT: &str = "supportUFBoot";
/// Its majority-rule consensus.
pub(crate) const ULTRAFAST_CONSENSUS: &str = "consensusUFBoot";
/// The best tree with SH-aLRT supports in per cent.
pub(crate) const ALRT: &str = "supportSHaLRT";
/// The best tree's log-likelihood of every site.
pub(crate) const SITES: &str = "siteLogLikelihoods";
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

    /// Refuses files of the run, and its trace, that would replace what it is made from.
    pub(crate) fn check_inputs(&self, words: &[&str], trace: Option<&Path>, inputs: &[&Path]) -> Result<(), Error> {
        let of_words = words.iter().map(|word| (self.path(word), "--prefix"));
        let of_trace = trace.map(|path| (path.to_owned(), "--trace"));
        for (path, option) in of_words.chain(of_trace) {
            let shown = path.display();
            if inputs.iter().any(|input| whole::is_same_file(&path, input)) {
                return Err(Error::request(format!("{shown} is an input of the run: choose another {option}")));
            }
            if option == "--trace" && words.iter().any(|word| whole::is_same_file(&path, &self.path(word))) {
                return Err(Error::request(format!("{shown} is a result of the run: choose another --trace")));
            }
        }
        Ok(())
    }

    /// Writes one of the files, whole or not at all.
    pub(crate) fn write(&self, word: &str, text: &str) -> Result<PathBuf, Error> {
        publish(self.begin(word, text)?)
    }

    /// Writes one of the files up to its end, without giving it its name yet.
    pub(crate) fn begin(&self, word: &str, text: &str) -> Result<WholeFile, Error> {
        let path = self.path(word);
        let written = WholeFile::create(&path).and_then(|mut file| file.write_all(text.as_bytes()).map(|()| file));
        written.map_err(|e| refused(&path, &e))
    }
}

/// Refuses, before any work, a file that could not be written after it, or that is there although `force` is not given; `option`
/// is what another name is given with.
pub(crate) fn check(path: &Path, force: bool, option: &str) -> Result<(), Error> {
    if path.exists() && !force {
        let shown = path.display();
        return Err(Error::request(format!("{shown} exists: choose another {option}, or overwrite it with --force")));
    }
    whole::check_target(path).map_err(|e| Error::request(e.to_string()))
}

/// Gives a file its name.
pub(crate) fn publish(file: WholeFile) -> Result<PathBuf, Error> {
    let path = file.path().to_owned();
    file.publish().map_err(|e| refused(&path, &e))?;
    Ok(path)
}

fn refused(path: &Path, error: &std::io::Error) -> Error {
    Error::run(format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_begun_has_no_name_and_vanishes_unless_it_is_published() {
        let place = tempfile::tempdir().unwrap();
        let names = || std::fs::read_dir(place.path()).unwrap().map(|e| e.unwrap().file_name()).collect::<Vec<_>>();
        let outputs = Outputs::new(&place.path().join("x"));
        let (tree, model) = (outputs.begin(BEST_TREE, "(a,b);\n").unwrap(), outputs.begin(BEST_MODEL, "JC\n").unwrap());
        assert!(!outputs.path(BEST_TREE).exists() && !outputs.path(BEST_MODEL).exists());
        drop(tree);
        assert!(names().len() <= 1, "what is begun has no name, or one of its own where files need one");
        assert_eq!(publish(model).unwrap(), outputs.path(BEST_MODEL));
        assert_eq!(names(), ["x.bestModel"]);
        assert_eq!(std::fs::read_to_string(outputs.path(BEST_MODEL)).unwrap(), "JC\n");
    }
}
