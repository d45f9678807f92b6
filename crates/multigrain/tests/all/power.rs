//! Random programs on random machines with a disk, of which the power fails at a random operation: of what was written
//! since a file was last made durable, any part may be there and any part not; files whose folder was not flushed since they
//! were made may be gone, and names may be those of before. The run is continued to the results of sequential execution,
//! whatever was lost, and what a flush has promised is not.

use crate::support;

use multigrain::rooms::plan::testing::Rng;
use multigrain::rooms::store::faults::Faults;
use multigrain::rooms::store::{BackendChoice, Disk, DiskOptions, Journal, Operation, OperationKind, Verdict};
use multigrain::{Job, Mapping, Settings, Sink, Source};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::random::{Failure, RandomCase, interrupted, many_interrupted};

/// What a disk writes whole.
const SECTOR: usize = 512;
/// ENOSPC.
const NO_SPACE: i32 = 28;
/// Kinds of a journal's records.
const DONE: u32 = 2;
const READY: u32 = 3;

/// Ends everything at some operation, and knows what is durable by then.
struct Ends {
    known: Arc<Mutex<Known>>,
    /// Whether the disk has room for second files of arrays, so that nothing that counts is overwritten.
    twins: bool,
}

/// When everything ends: before the operation of this number from the flush of this number on, of journals and folders, where 0 is
/// the beginning.
#[derive(Clone, Copy, Debug, Default)]
struct At {
    flush: u64,
    operation: u64,
}

#[derive(Default)]
struct Known {
    /// When this run ends.
    end: At,
    is_over: bool,
    /// What files held when they were last made durable.
    durable: HashMap<PathBuf, Vec<u8>>,
    /// Files that were made, whose names are not durable yet.
    made: Vec<PathBuf>,
    /// Final names that are not durable yet, and what they named before.
    named: Vec<(PathBuf, Option<Vec<u8>>)>,
}

impl Faults for Ends {
    fn before(&self, operation: &Operation<'_>) -> Verdict {
        let mut known = self.known.lock().unwrap();
        let path = operation.path.to_owned();
        if !self.twins && operation.kind == OperationKind::Allocate && path.to_string_lossy().ends_with(".twin.part") {
            return Verdict::Fail(NO_SPACE);
        }
        if known.ends(operation.kind, &path) {
            return Verdict::Dead;
        }
        match operation.kind {
            OperationKind::Create if !path.exists() => {
                known.durable.remove(&path);
                known.made.push(path);
            }
            // What others write meanwhile may be durable, too; it is not believed.
            OperationKind::Sync => {
                if let Ok(content) = std::fs::read(&path) {
                    known.durable.insert(path, content);
                }
            }
            OperationKind::Rename => {
                if let Some(content) = known.durable.remove(&unfinished(&path)) {
                    known.durable.insert(path.clone(), content);
                }
                let before = std::fs::read(&path).ok();
                known.named.push((path, before));
            }
            OperationKind::SyncDirectory => {
                known.made.retain(|name| name.parent() != path.parent());
                known.named.retain(|(name, _)| name.parent() != path.parent());
            }
            OperationKind::Remove => known.made.retain(|name| *name != path),
            _ => {}
        }
        Verdict::Go
    }
}

/// The name of a result while it is written, of a journal while its header is.
fn unfinished(name: &Path) -> PathBuf {
    if is_journal(name) {
        return Journal::new_path_for(name);
    }
    let mut part = name.as_os_str().to_owned();
    part.push(".part");
    part.into()
}

/// The bytes of a journal that are written more than once, together in a sector.
const MARKS: std::ops::Range<usize> = 16..48;

/// Whether a journal has grown at its end since then, besides its marks.
fn has_grown(now: &[u8], before: &[u8]) -> bool {
    before.len() >= MARKS.end
        && now.starts_with(&before[..MARKS.start])
        && now[MARKS.end..].starts_with(&before[MARKS.end..])
}

fn is_journal(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "journal")
}

impl Known {
    /// Whether this operation is not done any more.
    fn ends(&mut self, kind: OperationKind, path: &Path) -> bool {
        let flushes = kind == OperationKind::SyncDirectory || kind == OperationKind::Sync && is_journal(path);
        match self.end.flush {
            0 if self.end.operation == 0 => self.is_over = true,
            0 => self.end.operation -= 1,
            1 if flushes && self.end.operation == 0 => self.is_over = true,
            1 if flushes => self.end = At { flush: 0, operation: self.end.operation - 1 },
            _ => self.end.flush -= u64::from(flushes),
        }
        self.is_over
    }

    /// Leaves of these files what the power might have left; that is durable then. Of every hundred names, new names and bytes of
    /// records that no flush has made durable, so many are kept.
    fn lose(&mut self, left: &[PathBuf], [names, renamed, records]: [u64; 3], rng: &mut Rng) -> Result<(), Failure> {
        let nothing = Vec::new();
        for path in left {
            let now = std::fs::read(path)?;
            let before = self.durable.get(path).unwrap_or(&nothing);
            let lost = if is_journal(path) && has_grown(&now, before) {
                // A record may be torn.
                let most = before.len() + (now.len() - before.len()) * records as usize / 100;
                let mut lost = now[..rng.range(before.len() as u64, most as u64) as usize].to_vec();
                if !rng.percent(50) {
                    lost[MARKS].copy_from_slice(&before[MARKS]);
                }
                lost
            } else if is_journal(path) {
                if rng.percent(50) { now } else { before.clone() }
            } else {
                // All of it, nothing, or anything between.
                let there = rng.pick(&[0, 20, 50, 80, 100]).copied().unwrap_or(0);
                let mut lost = now;
                for (number, sector) in lost.chunks_mut(SECTOR).enumerate() {
                    if !rng.percent(there) {
                        let old = before.get(number * SECTOR..).unwrap_or(&[]);
                        let len = old.len().min(sector.len());
                        sector[..len].copy_from_slice(&old[..len]);
                        sector[len..].fill(0);
                    }
                }
                lost
            };
            std::fs::write(path, lost)?;
            if self.made.contains(path) && !rng.percent(names) {
                std::fs::remove_file(path)?;
            }
        }
        for (path, before) in self.named.iter().filter(|(path, _)| path.exists() && !unfinished(path).exists()) {
            if is_journal(path) && keeps_work(self.durable.get(path).unwrap_or(&nothing))? {
                return Err(format!("{} keeps work, and may be gone", path.display()).into());
            }
            if !rng.percent(renamed) {
                std::fs::rename(path, unfinished(path))?;
                before.as_ref().map_or(Ok(()), |content| std::fs::write(path, content))?;
            }
        }
        self.durable.clear();
        self.made.clear();
        self.named.clear();
        Ok(())
    }

    /// What is there now will be, whatever happens.
    fn settle(&mut self, left: &[PathBuf]) -> std::io::Result<()> {
        left.iter().try_for_each(|path| std::fs::read(path).map(|now| drop(self.durable.insert(path.clone(), now))))
    }
}

/// Whether a journal says that there is something to go on with.
fn keeps_work(journal: &[u8]) -> Result<bool, Failure> {
    if journal.is_empty() {
        return Ok(false);
    }
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), journal)?;
    let (mut ready, mut done) = (false, false);
    let read = Journal::read(&Disk::new(DiskOptions::default())?, file.path(), |record| {
        ready |= record.kind == READY;
        done |= record.kind == DONE;
    })?;
    Ok(read.is_some() && ready && done)
}

/// `None` when the case proves nothing: no disk, no result, or no plan. Else whether some run continued.
fn one(seed: u64) -> Result<Option<bool>, Failure> {
    let Some(mut case) = RandomCase::new(seed, 0x706f_7765)? else { return Ok(None) };
    // Each store by itself, or some together.
    let interval = Some(Duration::from_micros(case.rng.pick(&[0, 100, 400, 1600]).copied().unwrap_or(0)));
    let known: Arc<Mutex<Known>> = Arc::default();
    let twins = case.rng.percent(40);
    interrupted(&mut case, 4, interval, |case, setup, before, operations| {
        let rng = &mut case.rng;
        let end = match rng.below(10) {
            // There is most to lose before a flush and behind it, and at the end, where names are given.
            0..3 => At { flush: rng.range(1, 12), operation: rng.below(8) },
            3 => At { flush: 0, operation: operations - rng.below(operations.min(12)) },
            _ => At { flush: 0, operation: rng.below(operations) },
        };
        {
            let mut known = known.lock().unwrap();
            if before == 0 {
                *known = Known::default();
            }
            (known.end, known.is_over) = (end, false);
        }
        let resume = before > 0;
        let settings = Settings { resume, discard: !resume, journal_interval: interval, ..Settings::default() };
        let ended = setup.runtime(Some(Arc::new(Ends { known: known.clone(), twins }))).run(&case.job, settings);
        // What a program that was killed has written is as good as before, until the power fails too.
        if ended.is_err() && case.rng.percent(30) {
            return Ok(format!("killed at {end:?}, "));
        }
        let what = format!("power lost at {end:?}, ");
        let left = case.left()?;
        // The worst is often that all of one kind is lost, and nothing of another.
        let kept = [0; 3].map(|_| *case.rng.pick(&[0, 50, 100]).unwrap());
        let mut known = known.lock().unwrap();
        known.lose(&left, kept, &mut case.rng).map_err(|e| format!("{what}{e}"))?;
        if ended.is_ok() {
            case.compare(&format!("{what}after the end"))?;
        }
        known.settle(&case.left()?)?;
        Ok(what)
    })
}

#[test]
fn runs_that_lose_power_continue_to_the_same_bytes() {
    many_interrupted(50, one);
}

/// Ends everything at the first operation of a kind on a file of this name.
struct EndsAt {
    kind: OperationKind,
    name: &'static str,
    model: Ends,
}

impl Faults for EndsAt {
    fn before(&self, operation: &Operation<'_>) -> Verdict {
        let is_it = operation.kind == self.kind && operation.path.ends_with(self.name);
        if is_it {
            self.model.known.lock().unwrap().is_over = true;
        }
        self.model.before(operation)
    }
}

/// A run is killed when its result has its name, and that name is on no disk yet; the next one has nothing to do but to see to that.
#[test]
fn a_name_that_a_killed_run_has_given_is_made_durable_by_the_next() {
    let case = support::update(BackendChoice::Auto);
    let expected = case.expected();
    let known: Arc<Mutex<Known>> = Arc::default();
    known.lock().unwrap().end = At { flush: 0, operation: u64::MAX };
    let model = || Ends { known: known.clone(), twins: true };
    // The name is given, and its folder is about to be flushed.
    let at = EndsAt { kind: OperationKind::SyncDirectory, name: "x.npy", model: model() };
    assert!(support::run(&case.setup.runtime(Some(Arc::new(at))), &case.job, false, None).is_err());
    known.lock().unwrap().is_over = false;
    assert!(case.outputs[0].exists(), "{:?}", case.left());
    let resumed = support::run(&case.setup.runtime(Some(Arc::new(model()))), &case.job, true, None).unwrap();
    assert!(resumed.resumed && resumed.plan.calls.is_empty());
    let left: Vec<PathBuf> = case.left().iter().map(|name| case.directory().join(name)).collect();
    known.lock().unwrap().lose(&left, [0, 0, 0], &mut Rng::new(1)).unwrap();
    assert!(case.outputs[0].exists(), "the run was over, and its result is gone: {:?}", case.left());
    assert_eq!(case.results(), expected);
}

/// Results of a run in memory, in folders of their own: whenever the power fails, when one has its name the next run gives the
/// others theirs, and computes nothing.
#[test]
fn several_results_of_a_run_in_memory_get_all_names_or_it_is_known_which_are_left() {
    use multigrain::rooms::plan::testing::Scale;
    use multigrain::rooms::program::{Program, Role, Scalars};
    let folder = support::directory();
    let mut program = Program::new();
    let scale = program.task(Scale::<f32, 1>::default());
    let [x, y] = ["x", "y"].map(|name| program.array::<f32, 1>(name, [64], Role::InOut).unwrap());
    let a = program.array::<f32, 1>("a", [64], Role::Input).unwrap();
    for array in [x, y] {
        program.call(scale, (array.all(), a.all()), Scalars::new()).unwrap();
    }
    let folders = ["of x", "of y"].map(|name| folder.path().join(name));
    let results = [folders[0].join("x.npy"), folders[1].join("y.npy")];
    let mut job = Job::new("two", program);
    for array in 0..3 {
        job = job.with_source(array, Source::Generated { seed: array as u64 });
    }
    for (array, result) in results.iter().enumerate() {
        job = job.with_sink(array, Sink::Npy(result.clone()));
    }
    let machine = support::memory_machine(2, None);
    let setup = support::Setup { machine, mapping: Mapping::default(), backend: BackendChoice::Auto };
    let known: Arc<Mutex<Known>> = Arc::default();
    let (mut expected, mut gave) = (Vec::new(), 0);
    for operation in (0..u64::MAX).map(|n| n.wrapping_sub(1)) {
        for folder in &folders {
            let _ = std::fs::remove_dir_all(folder);
            std::fs::create_dir(folder).unwrap();
        }
        *known.lock().unwrap() = Known { end: At { flush: 0, operation }, ..Known::default() };
        let ended =
            support::run(&setup.runtime(Some(Arc::new(Ends { known: known.clone(), twins: true }))), &job, false, None);
        if operation == u64::MAX {
            ended.unwrap();
            expected = results.iter().map(|path| std::fs::read(path).unwrap()).collect();
            continue;
        }
        let left: Vec<PathBuf> = folders
            .iter()
            .flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()))
            .collect();
        // Names of files that were made are lost, those that were given are there.
        known.lock().unwrap().lose(&left, [0, 100, 0], &mut Rng::new(operation)).unwrap();
        let named = results.iter().filter(|path| path.exists()).count();
        let again = support::run(&setup.runtime(None), &job, true, None).unwrap();
        let what = format!("power lost at {operation}, {named} with their names");
        assert!(named != 1 || again.resumed, "{what}: the other is gone, and nobody says so");
        gave += u64::from(named == 1);
        for (path, expected) in results.iter().zip(&expected) {
            assert!(std::fs::read(path).unwrap() == *expected, "{what}: {}", path.display());
        }
        if ended.is_ok() {
            assert_eq!(named, 2, "{what}");
            break;
        }
    }
    assert!(gave > 1, "{gave} runs left one of two names to be given");
}
