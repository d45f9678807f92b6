//! Runs that several processes execute together: the ranks of a cluster.
//!
//! The root is a disk that all reach, with a memory below it for each rank. All plan alone and the same, agree on that before
//! anything is written, and each executes the steps of its own memory; the results lie in files that the first rank creates, fills
//! and publishes, and that the others open and write their blocks of:
//!
//! ```text
//! rank 0    agree   create, fill .part |            | execute, sync |          | publish |
//! others    agree                      | open .part | execute, sync |          |         |
//!                                      ^            ^               ^ all durable         ^ all named
//! ```
//! At each bar all meet. Who fails says so to all, and nobody waits any more; the first rank removes what it created.

use crate::clocks::{self, Readings};
use crate::cluster::is_spread;
use crate::error::Error;
use crate::homes::{Folder, Homes, Opening, Place, transfer_block};
use crate::identity::{Identity, InputStates, changed_input};
use crate::job::{Job, Sink};
use crate::names::hash;
use crate::options::{Options, Settings};
use crate::resume::{GoingOn, forget, remove_left};
use crate::run::{Done, Run};
use crate::sides::Sides;
use crate::together::{OfRank, heard, meet, number, same};
use multigrain_driver::ranks::Ranks;
use multigrain_driver::spread::Spread;
use multigrain_engine::EngineError;
use multigrain_machine::Machine;
use multigrain_plan::{Body, Plan};
use multigrain_store::{ArrayFile, Direction};
use multigrain_trace::{Part, Spill};
use std::hash::{Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3Default;

/// Whether this rank looks after files for all; refuses what ranks cannot do yet.
pub(crate) fn leads(options: &Options, settings: &Settings<'_>) -> Result<bool, Error> {
    let Some(ranks) = &options.ranks else {
        return match options.planned_ranks {
            Some(_) => Err(Error::Request("ranks that are not there can only be planned for".to_owned())),
            None => Ok(true),
        };
    };
    let refused = |what: &str| {
        Err(Error::Request(format!("on {} ranks {what}: leave that out, or start without mpirun", ranks.count())))
    };
    if settings.full_trace {
        return refused("records are kept in files only");
    }
    Ok(ranks.rank() == 0)
}

/// Refuses to go on unless all ranks have made the same plan for the same program and inputs on the same machine.
pub(crate) fn agree(
    ranks: &Ranks,
    machine: &Machine,
    plan: &Plan,
    (job, inputs): (&Job, &InputStates),
    going_on: Option<&GoingOn>,
) -> Result<(), Error> {
    let numbered = (plan.own_arrays(), &plan.tasks[..], &plan.calls[..]);
    let identity = Identity::new(job, inputs, numbered, &plan.ways, Path::new("."), &[]);
    let mut hasher = Xxh3Default::new();
    hash_plan(plan, &mut Vec::new(), &mut hasher);
    let mut things = identity.of_all_ranks().to_vec();
    things.push(("machine", machine.to_toml()));
    let events = going_on.map_or(&[][..], |going_on| &going_on.unfinished.found.events);
    things.push(("journal", hash(|h| events.hash(h))));
    things.push(("plan", hasher.finish().to_string()));
    same(ranks, &things)
}

/// Enters what all children do, and what is below.
fn hash_plan(plan: &Plan, seen: &mut Vec<*const Plan>, hasher: &mut impl Hasher) {
    (plan.edge, plan.numbers.as_slice(), plan.class_of.as_slice(), plan.children.as_slice()).hash(hasher);
    for class in &plan.classes {
        if let Body::Inner(inner) = &class.body {
            match seen.iter().position(|other| *other == Arc::as_ptr(inner)) {
                Some(number) => number.hash(hasher),
                None => {
                    seen.push(Arc::as_ptr(inner));
                    hash_plan(inner, seen, hasher);
                }
            }
        }
    }
}

/// Where this rank keeps what it records for a trace that is to have this name: there if it is the first, else in a file beside it,
/// which is removed when the trace is complete.
pub fn trace_path(ranks: &Ranks, path: &Path) -> PathBuf {
    match ranks.rank() {
        0 => path.to_owned(),
        rank => {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".rank-{rank}"));
            PathBuf::from(name)
        }
    }
}

/// Gives what the other ranks, of so many workers each, have recorded to the first one's trace.
fn trace_together(ranks: &Ranks, workers: usize, spill: &Spill, before: &Readings) -> Result<(), Error> {
    let failed = |error| Error::Run(EngineError::Trace(error));
    let after = heard(ranks, clocks::read(ranks))?;
    if ranks.rank() > 0 {
        spill.publish().map_err(failed)?;
    }
    // All are there.
    let paths = heard(ranks, ranks.gather(spill.path().as_os_str().as_encoded_bytes())).inspect_err(|_| {
        if ranks.rank() > 0 {
            // Nobody else will.
            let _ = std::fs::remove_file(spill.path());
        }
    })?;
    if ranks.rank() == 0 {
        for (rank, path) in paths.iter().enumerate().skip(1) {
            let path = PathBuf::from(std::ffi::OsStr::from_bytes(path));
            let first_worker = (rank * workers) as u32;
            spill.join(Part { path, first_worker, shift: clocks::shift(before, &after, rank) });
        }
    }
    Ok(())
}

/// Peak resident size of this process so far; 0 where the system does not tell.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.map_or(0, |kib: u64| kib * 1024)
}

impl Run<'_> {
    /// Reads the clocks of all ranks where all record the run, each in a file of its own.
    fn traced_by_all(&self, ranks: &Ranks) -> Result<Option<Readings>, Error> {
        let own = self.settings.trace.as_ref().map_or(&[][..], |spill| spill.path().as_os_str().as_encoded_bytes());
        let mut paths = heard(ranks, ranks.gather(own))?;
        if paths.iter().all(Vec::is_empty) {
            return Ok(None);
        }
        paths.sort_unstable();
        if paths[0].is_empty() || paths.windows(2).any(|pair| pair[0] == pair[1]) {
            let text = "a run is traced by all ranks or by none, each in a file of its own (ranks::trace_path)";
            return Err(Error::Request(text.to_owned()));
        }
        heard(ranks, clocks::read(ranks)).map(Some)
    }

    /// Executes this rank's part of the plan; results have their names when all have done theirs.
    pub(crate) fn on_ranks(
        &mut self,
        plan: &Plan,
        ranks: &Arc<Ranks>,
        going_on: Option<&GoingOn>,
    ) -> Result<Done, Error> {
        let root = self.machine.memory(self.machine.root());
        let directory = root.path.clone().unwrap_or_else(|| PathBuf::from("."));
        let leads = ranks.rank() == 0;
        let (mut made, mut results) = (None, Vec::new());
        let abort = self.abort;
        let (moved_before, peak_before) = (ranks.moved_bytes(), peak_bytes());
        let mut clocks = None;
        let done = std::thread::scope(|scope| {
            let _watch = ranks.watch(abort, scope);
            // Files without a name of their own are known to all by one that no other run has.
            let name = format!("multigrain-{}-{}", std::process::id(), crate::identity::moment());
            // And whether the first shows how far all are.
            let own = [&[u8::from(self.settings.progress.is_some())], name.as_bytes()].concat();
            let told = heard(ranks, ranks.gather(&own))?;
            let (shown, name) = told[0].split_first().unwrap_or((&0, &[]));
            self.is_shown = *shown == 1;
            let name = directory.join(String::from_utf8_lossy(name).as_ref());
            // All have come here, so nobody uses arrays of a run before, or tells how far that is.
            Spread::forget_all(ranks);
            ranks.begin();
            meet(ranks)?;
            clocks = self.traced_by_all(ranks)?;
            match going_on.is_some() || !is_spread(self.machine) && self.job.files_written().next().is_some() {
                true => self.kept_on_ranks(plan, ranks, (&directory, &name), going_on),
                false => {
                    let report = self.on_ranks_in(plan, ranks, (&directory, &name), &mut made, &mut results)?;
                    Ok((made.take().unwrap_or_else(Homes::none), report, None))
                }
            }
        });
        if let (true, Err(_), Some(homes)) = (leads, &done, &made) {
            homes.discard(&self.means.disk);
        }
        if leads && done.is_err() {
            results.iter().for_each(|(_, file)| self.means.disk.discard(file));
        }
        let done = done?;
        if let (Some(before), Some(spill)) = (&clocks, &self.settings.trace) {
            trace_together(ranks, self.machine.workers() / ranks.count(), spill, before)?;
        }
        self.tell_all(ranks, &done.1, ranks.moved_bytes() - moved_before, peak_before)?;
        Ok(done)
    }

    /// What the run was on each rank; `before`: the peak of this rank's memory before it used that of others.
    fn tell_all(
        &mut self,
        ranks: &Ranks,
        report: &multigrain_engine::Report,
        moved: u64,
        before: u64,
    ) -> Result<(), Error> {
        let peak_bytes = before.max(peak_bytes().saturating_sub(ranks.near_bytes()));
        let own = [report.seconds.to_bits(), report.breakdown.leaf_seconds.to_bits(), peak_bytes, moved];
        let bytes: Vec<u8> = own.iter().flat_map(|number| number.to_le_bytes()).collect();
        ranks.tell_done();
        let all = heard(ranks, ranks.gather(&bytes))?;
        if let Some(show) = self.settings.progress.filter(|_| ranks.rank() == 0) {
            show(ranks.done());
        }
        let of = |(rank, bytes): (usize, &Vec<u8>)| OfRank {
            node: ranks.node(rank).to_owned(),
            seconds: f64::from_bits(number(bytes, 0)),
            leaf_seconds: f64::from_bits(number(bytes, 1)),
            peak_bytes: number(bytes, 2),
            moved_bytes: number(bytes, 3),
        };
        self.of_ranks = all.iter().enumerate().map(of).collect();
        Ok(())
    }

    /// Creates the files of results whose arrays lie in the ranks' memories, so that a name that cannot be written is refused before the work.
    fn create_results(&self, results: &mut Vec<(usize, ArrayFile)>) -> Result<(), Error> {
        for (i, (decl, sink)) in self.job.arrays().iter().zip(&self.job.sinks).enumerate() {
            let Some(sink) = sink else { continue };
            let (element, dims) = (decl.element, decl.shape.dims());
            let file = match sink {
                Sink::Npy(path) => self.means.disk.create_npy(path, element, dims, false),
                Sink::Raw(path) => self.means.disk.create_raw(path, element, dims, false),
            };
            results.push((i, file.map_err(Error::File)?));
        }
        Ok(())
    }

    /// Writes what lies here of such arrays into their files, and makes it durable.
    fn write_own(&self, homes: &Homes) -> Result<(), Error> {
        let disk = &self.means.disk;
        for ((decl, sink), place) in self.job.arrays().iter().zip(&self.job.sinks).zip(&homes.places) {
            let (Some(sink), Place::Spread(array)) = (sink, place) else { continue };
            let elements = [decl.shape.elements()];
            let npy = matches!(sink, Sink::Npy(_));
            let file = disk.join(sink.path(), decl.element, &elements, npy).map_err(Error::Store)?;
            let own = array.own_elements();
            let (start, len) = ([own.start], [own.end - own.start]);
            if len[0] > 0 {
                transfer_block(disk, &file, Direction::Write, &start, &len, array.own_start()).map_err(Error::Store)?;
            }
            disk.sync(&file).map_err(Error::Store)?;
        }
        Ok(())
    }

    fn on_ranks_in(
        &mut self,
        plan: &Plan,
        ranks: &Arc<Ranks>,
        (directory, name): (&Path, &Path),
        made: &mut Option<Homes>,
        results: &mut Vec<(usize, ArrayFile)>,
    ) -> Result<multigrain_engine::Report, Error> {
        let (disk, job) = (&self.means.disk, self.job);
        let leads = ranks.rank() == 0;
        let spread = is_spread(self.machine);
        let folder = Folder { path: directory, first: None, shared: Some(name), spread: spread.then_some(ranks) };
        let open = |opening| Homes::on_disk(job, plan, disk, folder, opening, &mut Sides::default(), self.abort);
        if leads {
            forget(job, disk, self.settings)?;
            remove_left(job, disk, directory, plan.arrays.len())?;
            *made = Some(open(Opening::Fresh)?);
            if spread {
                self.create_results(results)?;
            }
        }
        meet(ranks)?;
        if !leads {
            *made = Some(open(Opening::Joined)?);
        }
        meet(ranks)?;
        let Some(homes) = made else { return Err(Error::Request("no arrays".to_owned())) };
        if leads {
            // Who has opened them needs no names.
            homes.shared().for_each(|file| disk.remove(file.path()));
        }
        let report = self.engine(plan, homes, None, None).map_err(|error| match error {
            EngineError::Interrupted => Error::Interrupted { resume: false },
            error => Error::Run(error),
        })?;
        homes.unpublished().try_for_each(|(_, file)| disk.sync(file)).map_err(Error::Store)?;
        if spread {
            // Nobody stores any more.
            meet(ranks)?;
            self.write_own(homes)?;
        }
        if leads && let Some(path) = changed_input(job, &self.inputs, homes, false, disk)? {
            return Err(Error::InputChanged { path });
        }
        meet(ranks)?;
        if leads {
            let spread = results.iter().map(|(array, file)| (*array, file));
            self.publish(&homes.unpublished().chain(spread).collect::<Vec<_>>())?;
        }
        Ok(report)
    }
}
