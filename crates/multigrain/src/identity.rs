//! What a journal is about: all that must be the same for its records to mean the same, and what is needed to read them.
//! `docs/resume.md` of this crate lists it.

use crate::error::Error;
use crate::homes::Homes;
use crate::job::{Job, Sink, Source};
use crate::names::{absolute, hash, twin_path};
use multigrain_plan::{Ways, hash_calls};
use multigrain_program::{ArrayDecl, Call, DynTask, Role};
use multigrain_store::{Disk, FileState, program_hash};
use serde::{Deserialize, Serialize};
use std::hash::Hasher;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Version of the protocol that the records follow.
const FORMAT: u32 = 7;

/// What an array comes from that is in memory, or, where that is short, in a file without a name: it is one by its content.
const GIVEN: &str = "memory";

/// The text of a journal.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Text {
    /// Of a run, beside its first result.
    Run(Box<Identity>),
    /// Beside its other results: where the journal of the run lies.
    Journal(PathBuf),
    /// Of one of the ranks that executed the run together: the number by which the run's journal knows these.
    Rank(u64),
}

/// A run, as its journal knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Identity {
    format: u32,
    /// Hash of the executable.
    build: String,
    application: String,
    /// Hash of arrays, tasks and calls as they were written.
    program: String,
    /// Hash of the numbered calls ([`hash_calls`]).
    calls: String,
    inputs: Vec<Input>,
    /// Files from which inputs without a file of their own were made. What they hold is known by these inputs; these words
    /// say which was changed.
    read: Vec<FileRead>,
    /// Results, in the order of the arrays.
    pub(crate) results: Vec<Output>,
    /// Files that are made from results when the run is over.
    made: Vec<PathBuf>,
    /// Where arrays without a file of their own are kept, and which these are.
    pub(crate) scratch: PathBuf,
    pub(crate) kept: Vec<usize>,
    /// Arrays that lie in two files, and the second ones.
    pub(crate) twins: Vec<Twin>,
    /// How the calls were split, so that they can be numbered again.
    pub(crate) ways: Ways,
}

/// Where an array came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Input {
    array: String,
    /// The file, or what else.
    from: String,
    bytes: u64,
    /// Seconds and nanoseconds since 1970, of a file with a name.
    modified: Option<(i64, i64)>,
    changed: Option<(i64, i64)>,
    /// Hash of the sample that [`FileState`] describes, or of all bytes.
    content: String,
}

/// A file that was read to make the job, as it was then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileRead {
    path: PathBuf,
    bytes: u64,
    /// Seconds and nanoseconds since 1970.
    modified: (i64, i64),
}

impl FileRead {
    fn of(path: &PathBuf) -> FileRead {
        let now = std::fs::metadata(path).map(|now| (now.len(), (now.mtime(), now.mtime_nsec())));
        let (bytes, modified) = now.unwrap_or_default();
        FileRead { path: absolute(path), bytes, modified }
    }
}

/// The second file of an array ([`Sides`](crate::sides::Sides)).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Twin {
    pub(crate) array: usize,
    /// The file, which is written under its `.part` name.
    pub(crate) to: PathBuf,
}

/// Where an array goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Output {
    array: String,
    /// The file.
    pub(crate) to: PathBuf,
    /// Whether it is a .npy file.
    npy: bool,
}

/// The files that a job reads, as they were at a moment: in the order of the arrays.
pub(crate) type InputStates = Vec<Option<FileState>>;

/// What the files of a job are now. Of one without a name all is read for that, so only where a journal may want to know.
pub(crate) fn input_states(job: &Job, disk: &Disk) -> Result<InputStates, Error> {
    let may_have_journal = job.files_written().next().is_some();
    let is_wanted = |path: &Path| may_have_journal || std::fs::metadata(path).map_or(true, |found| found.nlink() > 0);
    let state = |source: &Option<Source>| match source {
        Some(Source::Npy(path) | Source::Raw(path)) if is_wanted(path) => {
            disk.state_of(path).map(Some).map_err(Error::File)
        }
        _ => Ok(None),
    };
    job.sources.iter().map(state).collect()
}

/// The first file of a job that is no longer what it was before. Of an array that lies in its file the open file is looked
/// at, since another may have its name by now, without harm; `copied`: instead those of which a copy was made. One without a
/// name is nobody else's.
pub(crate) fn changed_input(
    job: &Job,
    before: &InputStates,
    homes: &Homes,
    copied: bool,
    disk: &Disk,
) -> Result<Option<PathBuf>, Error> {
    for (i, (source, before)) in job.sources.iter().zip(before).enumerate() {
        let (Some(Source::Npy(path) | Source::Raw(path)), Some(before)) = (source, before) else { continue };
        if before.modified.is_none() {
            continue;
        }
        let is_still = match homes.input(i) {
            Some(file) if !copied => disk.is_still(file, before),
            None if copied => disk.state_of(path).map(|now| now.holds_what(before)),
            _ => continue,
        };
        if !is_still.map_err(Error::Store)? {
            return Ok(Some(path.clone()));
        }
    }
    Ok(None)
}

impl Identity {
    /// Of a run of a job whose calls are numbered like this.
    pub(crate) fn new(
        job: &Job,
        inputs: &InputStates,
        (arrays, tasks, calls): (&[ArrayDecl], &[Arc<dyn DynTask>], &[Call]),
        ways: &Ways,
        scratch: &Path,
        twins: &[usize],
    ) -> Identity {
        let input = |((decl, source), state): ((&ArrayDecl, &Option<Source>), &Option<FileState>)| {
            let made = |from: String, bytes: u64, content: String| {
                Some(Input { array: decl.name.clone(), from, bytes, modified: None, changed: None, content })
            };
            match (source, state) {
                (Some(Source::Npy(path) | Source::Raw(path)), Some(state)) => Some(Input {
                    array: decl.name.clone(),
                    from: match state.modified {
                        Some(_) => absolute(path).display().to_string(),
                        None => GIVEN.to_owned(),
                    },
                    bytes: state.bytes,
                    modified: state.modified,
                    changed: state.changed,
                    content: format!("{:016x}", state.sample),
                }),
                (Some(Source::Generated { seed }), _) => made(format!("seed {seed}"), decl.bytes(), String::new()),
                (Some(Source::Bytes(bytes)), _) => made(GIVEN.to_owned(), bytes.len() as u64, hash(|h| h.write(bytes))),
                _ => None,
            }
        };
        Identity {
            format: FORMAT,
            build: program_hash().map_or("unknown".to_owned(), |hash| format!("{hash:016x}")),
            application: job.app.clone(),
            program: hash(|h| hash_calls(job.arrays(), job.program.tasks(), job.program.calls(), h)),
            calls: hash(|h| hash_calls(arrays, tasks, calls, h)),
            inputs: job.arrays().iter().zip(&job.sources).zip(inputs).filter_map(input).collect(),
            read: job.files_read.iter().map(FileRead::of).collect(),
            results: results(job).collect(),
            made: job.files_written.iter().map(|path| absolute(path)).collect(),
            scratch: absolute(scratch),
            kept: (0..arrays.len())
                .filter(|&i| arrays[i].role != Role::Input && job.sinks.get(i).is_none_or(Option::is_none))
                .collect(),
            twins: twins.iter().map(|&array| Twin { array, to: twin_path(job, scratch, array) }).collect(),
            ways: ways.clone(),
        }
    }

    /// What has to be the same on all ranks that execute the run together, and what each of it is called. Of files only what is in
    /// them: a node may have a copy of its own.
    pub(crate) fn of_all_ranks(&self) -> [(&'static str, String); 3] {
        let content = |input: &Input| format!("{} {} {}", input.array, input.bytes, input.content);
        [
            ("inputs", self.inputs.iter().map(content).collect::<Vec<_>>().join("; ")),
            ("results", self.written().map(|path| path.display().to_string()).collect::<Vec<_>>().join("; ")),
            ("program", format!("{} {} {}", self.application, self.program, self.calls)),
        ]
    }

    /// The files beside which the run has journals: results, and what is made from them. The first one's is the run's.
    pub(crate) fn written(&self) -> impl Iterator<Item = &PathBuf> {
        self.results.iter().map(|result| &result.to).chain(&self.made)
    }

    /// Arrays without a file of their own that are still needed when the run is over.
    pub(crate) fn needed_afterwards<'a>(&'a self, arrays: &'a [ArrayDecl]) -> impl Iterator<Item = usize> + 'a {
        let is_result = |&i: &usize| arrays.get(i).is_some_and(|array| array.role != Role::Temporary);
        self.kept.iter().copied().filter(is_result)
    }

    /// Why an input that was made from other files is not what it was, where now these were read.
    fn read_since(&self, now: &[FileRead]) -> String {
        let names = |read: &[FileRead]| match read {
            [] => "no file".to_owned(),
            read => read.iter().map(|file| file.path.display().to_string()).collect::<Vec<_>>().join(" and "),
        };
        if self.read.len() != now.len() || self.read.iter().zip(now).any(|(then, now)| then.path != now.path) {
            return format!("it was made from {}, now from {}", names(&self.read), names(now));
        }
        let changed: Vec<FileRead> = now.iter().filter(|now| !self.read.contains(now)).cloned().collect();
        match changed.is_empty() {
            true => "what is given for it is another".to_owned(),
            false => format!("it is made from {}, which holds something else since", names(&changed)),
        }
    }

    /// The first thing in which a run differs from this one, of which the journal is, in words.
    pub(crate) fn difference(&self, now: &Identity) -> Option<String> {
        if self.format != now.format || self.build != now.build {
            return Some("it was begun by another build of the program".to_owned());
        }
        if self.application != now.application {
            return Some(format!("it was begun as {}, this is {}", self.application, now.application));
        }
        let [then, here] = [self, now].map(|run| run.results.len());
        if then != here {
            return Some(format!("it had {then} results that go to files, this one has {here}"));
        }
        if let Some((then, now)) = self.results.iter().zip(&now.results).find(|(then, now)| then != now) {
            let (array, to, went) = (&now.array, now.to.display(), then.to.display());
            return Some(format!("its result {} went to {went}, that of this run, {array}, goes to {to}", then.array));
        }
        if self.made != now.made {
            let names = |run: &Identity| match &run.made[..] {
                [] => "nothing".to_owned(),
                made => made.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" and "),
            };
            return Some(format!("{} was to be made from its results, now {}", names(self), names(now)));
        }
        if self.inputs.len() != now.inputs.len() {
            return Some(format!("it had {} inputs, this one has {}", self.inputs.len(), now.inputs.len()));
        }
        let read = &now.read;
        if let Some((then, now)) = self.inputs.iter().zip(&now.inputs).find(|(then, now)| then != now) {
            let what = if then.array != now.array || then.from != now.from {
                format!("it came from {}, now from {}", then.from, now.from)
            } else if then.from == GIVEN {
                self.read_since(read)
            } else if then.bytes != now.bytes {
                format!("{} had {} bytes, now it has {}", then.from, then.bytes, now.bytes)
            } else if then.modified != now.modified {
                format!("{} was modified since", then.from)
            } else if then.content != now.content {
                format!("{} holds something else since", then.from)
            } else {
                format!(
                    "the status of {} was changed since (attributes, names, or content whose time of modification was put \
                     back: which, no file system tells)",
                    then.from
                )
            };
            return Some(format!("its input {} is not what it was: {what}", then.array));
        }
        if self.program != now.program {
            return Some("its program is another: arrays, tasks, their versions or calls differ".to_owned());
        }
        (self.calls != now.calls).then(|| "its tasks split their calls otherwise".to_owned())
    }
}

/// The results of a job that go to files.
fn results(job: &Job) -> impl Iterator<Item = Output> + '_ {
    job.arrays().iter().zip(&job.sinks).filter_map(|(decl, sink)| {
        let sink = sink.as_ref()?;
        let npy = matches!(sink, Sink::Npy(_));
        Some(Output { array: decl.name.clone(), to: absolute(sink.path()), npy })
    })
}

/// Nanoseconds since 1970, to tell runs apart.
pub(crate) fn moment() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}
