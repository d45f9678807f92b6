//! How a run whose results lie on disk begins: from its inputs, or from what an interrupted run has left behind.
//! `docs/resume.md` of this crate names the states and the races.

use crate::error::Error;
use crate::guard::Guard;
use crate::homes::{Homes, Opening, part_path};
use crate::job::{Job, Source};
use crate::journal::{Found, RunJournal};
use crate::runtime::Runtime;
use multigrain_machine::Machine;
use multigrain_plan::{Mapping, Op, Plan, PlanError, Rest};
use multigrain_program::{Arg, ArrayDecl, Role};
use multigrain_store::{Disk, Journal, StoreError};
use multigrain_team::Abort;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What beginning needs to know.
pub(crate) struct Begin<'a> {
    pub(crate) job: &'a Job,
    pub(crate) disk: &'a Disk,
    /// Where scratch files go.
    pub(crate) directory: &'a Path,
    pub(crate) journal_path: PathBuf,
    pub(crate) fingerprint: Vec<(String, u64)>,
    /// The tunables of the root edge, for a run that goes on ([`tile_of`]).
    pub(crate) tile: String,
    /// The plan of the whole job.
    pub(crate) whole: &'a Arc<Plan>,
    pub(crate) interval: Duration,
    /// Ends the beginning early when raised.
    pub(crate) abort: &'a Abort,
}

/// A run that can start.
pub(crate) struct Begun<'a> {
    pub(crate) homes: Homes,
    pub(crate) plan: Arc<Plan>,
    pub(crate) log: RunJournal<'a>,
}

impl<'a> Begin<'a> {
    fn parts(&self) -> Vec<(&str, u64)> {
        self.fingerprint.iter().map(|(name, value)| (name.as_str(), *value)).collect()
    }

    /// Begins from the inputs. When it fails, no file is left.
    pub(crate) fn afresh(&self) -> Result<Begun<'a>, Error> {
        let disk = self.disk;
        let create = || Journal::create(disk, &self.journal_path, &self.parts(), &self.tile).map_err(Error::File);
        // A journal of an earlier run must not be believed about the files that are made now: it is emptied first.
        let early = match self.journal_path.exists() {
            true => {
                refuse_if_busy(self.job, disk)?;
                Some(create()?)
            }
            false => None,
        };
        let homes =
            Homes::on_disk(self.job, disk, self.directory, Opening::Fresh, self.abort).and_then(
                |mut homes| match homes.add_temporaries(self.whole, disk, Some(self.directory)) {
                    Ok(()) => Ok(homes),
                    Err(error) => {
                        homes.discard(disk);
                        Err(error)
                    }
                },
            );
        let homes = match homes {
            Ok(homes) => homes,
            Err(error) => {
                if let Some(journal) = early {
                    journal.remove(disk);
                }
                return Err(error);
            }
        };
        let journal = match early.map_or_else(create, Ok) {
            Ok(journal) => journal,
            Err(error) => {
                homes.discard(disk);
                return Err(error);
            }
        };
        let guard = overwrites(self.whole, Vec::new()).then(|| Guard::of(self.whole));
        let mut log = RunJournal::new(disk, journal, self.interval, guard);
        if let Err(error) = log.ready(homes.unpublished()) {
            homes.discard(disk);
            log.remove();
            return Err(Error::File(error));
        }
        Ok(Begun { homes, plan: self.whole.clone(), log })
    }

    /// Begins where an interrupted run ended. `None` when there is nothing to continue from. When it fails, what the
    /// interrupted run left stays. The plan of the whole was made with `mapping`.
    pub(crate) fn continued(
        &self,
        runtime: &Runtime,
        machine: &Machine,
        mapping: &Mapping,
    ) -> Result<Option<Begun<'a>>, Error> {
        let disk = self.disk;
        if self.journal_path.exists() {
            refuse_if_busy(self.job, disk)?;
        }
        let Some((journal, records)) = Journal::resume(disk, &self.journal_path, &self.parts()).map_err(Error::File)?
        else {
            return Ok(None);
        };
        let found = Found::new(&records);
        // A `.part` that is not there must not be made while the journal says what it held.
        if !found.ready || !found.complete && !part_paths(self.job).all(|part| part.exists()) {
            return Ok(None);
        }
        let opening = if found.complete { Opening::Complete } else { Opening::Continued };
        let mut homes = Homes::on_disk(self.job, disk, self.directory, opening, self.abort)?;
        if !homes.resumed {
            return Ok(None);
        }
        let rest = Rest { events: &found.events, kept: &homes.kept, complete: found.complete };
        let (plan, repair) = match runtime.planner(machine, self.job, mapping)?.plan_rest(&self.job.program, &rest) {
            // The whole job fits, so it can begin anew even where the addresses of what is left cannot be found.
            Err(PlanError::DoesNotFit { .. }) => return Ok(None),
            planned => planned?,
        };
        if !plan.calls.is_empty() && homes.published.contains(&true) {
            // Results that go nowhere have to be made again, and might need what has its final name by now.
            return Ok(None);
        }
        homes.add_temporaries(&plan, disk, Some(self.directory))?;
        let stored = found.events.iter().filter(|e| e.durable).filter_map(|e| {
            let call = self.whole.calls.get(e.call as usize)?;
            call.args.get(e.argument as usize).copied()
        });
        let guard = overwrites(&plan, stored.collect()).then(|| {
            let given_up = repair.given_up.iter().copied();
            let events: Vec<_> = found.events.iter().copied().chain(given_up).collect();
            Guard::of(self.whole).after(&events)
        });
        let mut log = RunJournal::new(disk, journal, self.interval, guard);
        log.give_up(&repair.given_up).map_err(Error::File)?;
        homes.restore(self.job, disk, &repair.restore, self.abort).map_err(|error| match error {
            Error::Interrupted { .. } => Error::Interrupted { resume: true },
            other => other,
        })?;
        Ok(Some(Begun { homes, plan, log }))
    }
}

/// The results of a job while they are written.
fn part_paths(job: &Job) -> impl Iterator<Item = PathBuf> {
    job.sinks.iter().flatten().map(part_path)
}

/// Whoever runs holds the locks of the files that it writes; its journal must not be touched.
fn refuse_if_busy(job: &Job, disk: &Disk) -> Result<(), Error> {
    match job.sinks.iter().flatten().find(|sink| disk.is_busy(sink.path())) {
        Some(sink) => Err(Error::File(StoreError::Busy { path: part_path(sink) })),
        None => Ok(()),
    }
}

/// Before a run that keeps no journal makes the files of its results: a journal of an earlier run must not be believed
/// about them.
pub(crate) fn forget(job: &Job, disk: &Disk) -> Result<(), Error> {
    let Some(path) = journal_path(job) else { return Ok(()) };
    if path.exists() {
        refuse_if_busy(job, disk)?;
        Journal::create(disk, &path, &[], "").map_err(Error::File)?.remove(disk);
    }
    Ok(())
}

/// Where the journal of a job lies, if it can have one.
pub(crate) fn journal_path(job: &Job) -> Option<PathBuf> {
    job.sinks.iter().flatten().next().map(|sink| Journal::path_for(sink.path()))
}

/// The tunables of a plan's edge as the text of a mapping. A task that is split in several ways has no entry: then the
/// planner must find the same ways again.
pub(crate) fn tile_text(machine: &Machine, plan: &Plan) -> String {
    let mut tile = Mapping::default();
    let memory =
        machine.levels().ok().and_then(|levels| Some(machine.memory(*levels.get(plan.level + 1)?).name.clone()));
    let Some(memory) = memory else { return String::new() };
    for (task, values) in &plan.tunables {
        if plan.tunables.iter().all(|(other, ways)| other != task || ways == values) {
            values.iter().for_each(|(name, value)| tile.set(task, &memory, name, *value));
        }
    }
    tile.to_toml()
}

/// The tile of the interrupted run that a job would continue, as [`tile_text`] wrote it.
pub(crate) fn tile_of(job: &Job, disk: &Disk) -> Result<Option<String>, Error> {
    let Some(path) = journal_path(job) else { return Ok(None) };
    let note = Journal::note(disk, &path).map_err(Error::File)?;
    Ok(note.filter(|note| !note.is_empty()))
}

/// Whether a plan may overwrite blocks that a later resumed run would have to read: blocks that it has read before or
/// stores twice, or that are among those `stored` by an earlier run.
fn overwrites(plan: &Plan, mut stored: Vec<Arg>) -> bool {
    if plan.arrays.iter().any(|a: &ArrayDecl| a.role == Role::InOut) {
        return true;
    }
    for child in &plan.children {
        for op in &child.ops {
            match *op {
                Op::Store { slot, .. } => stored.push(child.slots[slot as usize].block),
                // Zeros, or a result that is used again.
                Op::Fetch { slot, .. } => {
                    let array = child.slots[slot as usize].block.array as usize;
                    if plan.arrays[array].role == Role::Output {
                        return true;
                    }
                }
                _ => {}
            }
        }
    }
    stored.sort();
    overlap(&stored)
}

/// Whether two of the blocks, which are sorted, overlap.
fn overlap(blocks: &[Arg]) -> bool {
    // Blocks that overlap begin close together along the first dimension; compare while they can.
    blocks.iter().enumerate().any(|(i, block)| {
        blocks[i + 1..]
            .iter()
            .take_while(|other| other.array == block.array && other.region.start()[0] < block.region.end(0))
            .any(|other| other.region.intersects(&block.region))
    })
}

/// What must be the same for a run to be continued.
pub(crate) fn fingerprint(job: &Job, plan: &Plan) -> Result<Vec<(String, u64)>, Error> {
    let hash = |value: &dyn Fn(&mut rustc_hash::FxHasher)| {
        let mut hasher = rustc_hash::FxHasher::default();
        value(&mut hasher);
        hasher.finish()
    };
    let mut parts = vec![
        (
            "the program".to_owned(),
            hash(&|h| {
                job.arrays().hash(h);
                for call in job.program.calls() {
                    job.program.tasks()[call.task as usize].name().hash(h);
                    (&call.args, call.scalars.bits()).hash(h);
                }
            }),
        ),
        ("the tile (--mapping or --machine)".to_owned(), hash(&|h| plan.tunables.hash(h))),
    ];
    for (decl, source) in job.arrays().iter().zip(&job.sources) {
        let value = match source {
            None => continue,
            Some(Source::Generated { seed }) => hash(&|h| (1, seed).hash(h)),
            Some(Source::Bytes(bytes)) => hash(&|h| (2, bytes).hash(h)),
            Some(Source::Npy(path) | Source::Raw(path)) => {
                let meta = std::fs::metadata(path).map_err(|e| Error::Request(format!("{}: {e}", path.display())))?;
                hash(&|h| (3, meta.len(), meta.modified().ok()).hash(h))
            }
        };
        parts.push((format!("input {}", decl.name), value));
    }
    Ok(parts)
}
