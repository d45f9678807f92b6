//! Executing what was prepared: every job is a strand, whose kernels are off-loaded under a policy; checkpoints, results.

use super::chosen;
use super::count::Count;
use super::details::{self, Details};
use super::files::{self, Outputs};
use super::log::{Log, Nobody, Progress, Watcher, lock, save};
use super::prepare::{Prepared, SEARCHES_STEP, Task, turn};
use super::report::Report;
use super::results;
use super::ultrafast;
use crate::checkpoint::Saved;
use crate::convergence;
use crate::error::Error;
use crate::infer::{self, Place};
use crate::job::{Found, Job, best};
use crate::search::State as SearchState;
use crate::tree::Splits;
use multigrain::Abort;
use multigrain::rooms::team::strands::{Scheduler, Statistics, Strand};
use multigrain::rooms::trace::Trace;
use multigrain::whole::WholeFile;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A checkpoint is written when a job has ended and the last one is older than this.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(2);

/// The log tells how far a search is after so long a silence.
const LOG_INTERVAL: Duration = Duration::from_secs(30);

/// Does what was prepared on the workers of a scheduler, writes the files, and says what was found. What is found does not
/// depend on the scheduler.
///
/// # Errors
/// [`Error::Interrupted`] after `abort` was raised; what jobs had found by then, and how far others were, is in the
/// checkpoint. Files that cannot be written.
pub fn run(
    prepared: &Prepared,
    scheduler: &Scheduler,
    abort: Arc<Abort>,
    watcher: &dyn Watcher,
) -> Result<Report, Error> {
    let earlier = match prepared.is_resumed {
        true => std::fs::read_to_string(prepared.outputs.path(files::LOG)).unwrap_or_default(),
        false => String::new(),
    };
    let log = Log::new(earlier, watcher);
    results::introduce(prepared, scheduler, &log);
    let has_files = prepared.request.writes.iter().any(|word| word == files::LOG);
    if prepared.is_forced && has_files {
        // Takes the place of another run's, and says what may be replaced from now on.
        save(prepared, &mut Saved::default(), &log)?;
    }
    let chosen = chosen::choose(prepared, scheduler, &abort, &log)?;
    let prepared = chosen.as_ref().unwrap_or(prepared);
    if let Task::Evaluate { tree, fixed } = &prepared.task {
        let evaluate =
            |strand: &Strand<'_>| infer::evaluate(prepared, tree, *fixed, Place::on(prepared, strand, &abort));
        let early = |error| match error {
            Error::Interrupted => Error::run("interrupted; there is nothing to go on from"),
            other => other,
        };
        let outcome = scheduler.run(vec![evaluate]).map_err(|e| Error::run(e.to_string()))?;
        let found = outcome.results.into_iter().next().unwrap_or(Err(Error::Interrupted));
        let found = found.map_err(early)?;
        let details = details::look(prepared, &found, scheduler, &abort, &log).map_err(early)?;
        keep_trace(prepared, outcome.trace.as_ref(), &log)?;
        if has_files {
            save(prepared, &mut Saved::default(), &log)?;
        }
        let report = results::evaluated(prepared, &found, &details, *fixed, &log)?;
        remove_checkpoint(&prepared.outputs)?;
        return Ok(report);
    }
    let done = all_jobs(prepared, scheduler, &abort, &log)?;
    let details = match best(&done.found) {
        Some(best) => details::look(prepared, best, scheduler, &abort, &log),
        None => Ok(Details::default()),
    };
    let besides = details.and_then(|details| {
        let ultrafast = ultrafast::look(prepared, &done.found, scheduler, &abort, &log)?;
        Ok((details, ultrafast))
    });
    // Whoever is killed while files get their names has lost nothing.
    let mut saved = Saved { found: done.found.clone(), begun: BTreeMap::new(), ..prepared.saved.clone() };
    save(prepared, &mut saved, &log)?;
    let (details, ultrafast) = besides?;
    keep_trace(prepared, done.trace.as_ref(), &log)?;
    let report = results::searched(prepared, &done.found, &details, &ultrafast, &log)?;
    remove_checkpoint(&prepared.outputs)?;
    Ok(report)
}

/// Does the jobs, and where as many are made as are enough, more of them until they are.
fn all_jobs(prepared: &Prepared, scheduler: &Scheduler, abort: &Arc<Abort>, log: &Log<'_>) -> Result<Executed, Error> {
    let execute = |prepared: &Prepared| {
        let done = jobs(prepared, scheduler, abort.clone(), Some(CHECKPOINT_INTERVAL), log)?;
        results::account(&done.statistics, log);
        Ok::<_, Error>(done)
    };
    let mut done = execute(prepared)?;
    let mut searches = More::new(prepared.searches, SEARCHES_STEP);
    let mut replicates = More::new(prepared.bootstraps, convergence::STEP);
    loop {
        let is_wanted = |found: &&Found| match found.job {
            Job::Search(number) => number < searches.count,
            Job::Replicate(number) => number < replicates.count,
        };
        // What a run before had done beyond is not looked at: results do not depend on where it was interrupted.
        let found: Vec<Found> = done.found.iter().filter(is_wanted).cloned().collect();
        searches.look(|count, most| Ok(is_found_twice(&found, count, most, log)))?;
        replicates.look(|count, most| are_enough(prepared, &found, count, most, log))?;
        let saved = Saved { found: done.found.clone(), ..prepared.saved.clone() };
        let left = turn(&saved, searches.count, replicates.count);
        if left.is_empty() && !searches.is_open() && !replicates.is_open() {
            return Ok(Executed { found, ..done });
        }
        if prepared.trace.is_some() {
            log.line("note: the trace has the searches and replicates up to here");
        }
        let more = execute(&Prepared { jobs: left, saved, ..prepared.clone() })?;
        done = Executed { found: more.found, ..done };
    }
}

/// Jobs of one kind, of which there are more as long as there are not enough.
struct More {
    /// How many there are by now.
    count: usize,
    /// Of how many there may be, and how many more each time; none where there are enough.
    left: Option<(usize, usize)>,
}

impl More {
    fn new(wanted: Count, step: usize) -> More {
        let left = matches!(wanted, Count::Auto { .. }).then_some((wanted.most(), step));
        More { count: wanted.first(step), left }
    }

    fn is_open(&self) -> bool {
        self.left.is_some()
    }

    /// Asks whether so many, of so many at most, are enough; if not, there are to be more.
    fn look(&mut self, is_enough: impl FnOnce(usize, usize) -> Result<bool, Error>) -> Result<(), Error> {
        let Some((most, step)) = self.left else { return Ok(()) };
        match is_enough(self.count, most)? || self.count == most {
            true => self.left = None,
            false => self.count = most.min(self.count + step),
        }
        Ok(())
    }
}

/// Searches that end on the same tree differ by less in their log-likelihoods.
const ALIKE: f64 = 0.1;

/// Whether two searches found the best tree.
fn is_found_twice(found: &[Found], count: usize, most: usize, log: &Log<'_>) -> bool {
    let Some(best) = best(found) else { return true };
    let is_alike = |f: &&Found| matches!(f.job, Job::Search(_)) && f.log_likelihood >= best.log_likelihood - ALIKE;
    let times = found.iter().filter(is_alike).count();
    if times >= 2 {
        log.timed(&format!("{times} of {count} searches found the best tree: enough"));
    } else if count < most {
        log.timed(&format!("one of {count} searches found the best tree: more are made"));
    } else {
        log.line(&format!(
            "note: one of {most} searches found the best tree: more of them, by --searches, may find a better one"
        ));
    }
    times >= 2
}

/// Whether supports do not change with more replicates.
fn are_enough(prepared: &Prepared, found: &[Found], count: usize, most: usize, log: &Log<'_>) -> Result<bool, Error> {
    let replicates = found.iter().filter(|f| matches!(f.job, Job::Replicate(_)));
    let trees: Result<Vec<Splits>, Error> =
        replicates.map(|f| results::read(&f.trees[0], &prepared.names).map(|tree| Splits::new(&tree))).collect();
    let verdict = convergence::look(&trees?, prepared.seed);
    log.timed(&format!(
        "autoMRE after {count} replicates: halves are {:.2} % apart, {:.1} % of divisions at most {:.0} %{}",
        100.0 * verdict.distance,
        100.0 * verdict.passing,
        100.0 * convergence::CUTOFF,
        if verdict.is_enough { ": enough" } else { "" }
    ));
    if count == most && !verdict.is_enough {
        log.line(&format!("note: {most} replicates are not enough by autoMRE: supports may still change"));
    }
    Ok(verdict.is_enough)
}

/// What the jobs of a run found, and how they were executed.
#[derive(Debug)]
pub struct Executed {
    /// What each found, in their order.
    pub found: Vec<Found>,
    /// How often kernels were executed where.
    pub statistics: Statistics,
    /// Decisions with their reasons, and who computed what when, if the scheduler writes that down.
    pub trace: Option<Trace>,
}

/// Does the jobs that were prepared and nothing else: no file is written. For measurements.
///
/// # Errors
/// As [`run`].
pub fn execute(prepared: &Prepared, scheduler: &Scheduler, abort: Arc<Abort>) -> Result<Executed, Error> {
    let log = Log::new(String::new(), &Nobody);
    jobs(prepared, scheduler, abort, None, &log)
}

/// Writes the trace that was asked for, whole or not at all.
fn keep_trace(prepared: &Prepared, trace: Option<&Trace>, log: &Log<'_>) -> Result<(), Error> {
    let (Some(path), Some(trace)) = (&prepared.trace, trace) else { return Ok(()) };
    let shown = path.display();
    let refused = |e: &dyn std::fmt::Display| Error::run(format!("cannot write the trace {shown}: {e}"));
    let mut file = WholeFile::create(path).map_err(|e| refused(&e))?;
    trace.write(&mut file).map_err(|e| refused(&e))?;
    file.publish().map_err(|e| refused(&e))?;
    log.line(&format!("trace: {shown}"));
    Ok(())
}

fn remove_checkpoint(outputs: &Outputs) -> Result<(), Error> {
    let path = outputs.path(files::CHECKPOINT);
    match std::fs::remove_file(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::run(format!("cannot remove {}: {e}", path.display())))
        }
        _ => Ok(()),
    }
}

/// What the jobs of a run share. The lock is never held across an off-load.
struct Shared<'a> {
    prepared: &'a Prepared,
    abort: Arc<Abort>,
    log: &'a Log<'a>,
    /// How often a checkpoint is written; `None`: never.
    interval: Option<Duration>,
    state: Mutex<State>,
}

struct State {
    saved: Saved,
    failed: Option<Error>,
    /// When the checkpoint was written last.
    written: Instant,
    progress: Progress,
    /// How many rounds jobs have made in this run.
    rounds: BTreeMap<Job, usize>,
    /// How far jobs are that have not ended, 0 to 1.
    shares: BTreeMap<Job, f64>,
}

/// Does the jobs that are left and returns what all jobs found, in their order.
fn jobs(
    prepared: &Prepared,
    scheduler: &Scheduler,
    abort: Arc<Abort>,
    interval: Option<Duration>,
    log: &Log<'_>,
) -> Result<Executed, Error> {
    let count = |kind: fn(&Job) -> bool| {
        let done = prepared.saved.found.iter().filter(|f| kind(&f.job)).count();
        (done, done + prepared.jobs.iter().filter(|j| kind(j)).count())
    };
    let progress = Progress {
        searches: count(|j| matches!(j, Job::Search(_))),
        replicates: count(|j| matches!(j, Job::Replicate(_))),
        log_likelihood: None,
        round: None,
        begun: 0.0,
    };
    let state = State {
        saved: prepared.saved.clone(),
        failed: None,
        written: Instant::now(),
        progress,
        rounds: BTreeMap::new(),
        shares: BTreeMap::new(),
    };
    let shared = Shared { prepared, abort, log, interval, state: Mutex::new(state) };
    log.watcher.progress(progress);
    let strands = prepared.jobs.iter().map(|&job| {
        let shared = &shared;
        move |strand: &Strand<'_>| work(shared, job, strand)
    });
    let outcome = scheduler.run(strands.collect());
    let mut state = shared.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    let failed = match (&outcome, state.failed.take()) {
        (_, Some(failed)) => Some(failed),
        (Err(failed), None) => Some(Error::run(format!("internal error: {failed}"))),
        (Ok(_), None) => None,
    };
    if let Some(failed) = failed {
        let nothing = state.saved == Saved::default();
        if interval.is_some() && !nothing {
            log.timed(&failed.to_string());
            save(prepared, &mut state.saved, log)?;
        }
        return Err(match failed {
            Error::Interrupted if nothing => {
                Error::run("interrupted before the first round; there is nothing to go on from")
            }
            other => other,
        });
    }
    state.saved.found.sort_by_key(|f| f.job);
    let (statistics, trace) = outcome.map(|o| (o.statistics, o.trace)).unwrap_or_default();
    Ok(Executed { found: state.saved.found, statistics, trace })
}

fn fail(shared: &Shared<'_>, error: Error) {
    lock(&shared.state).failed.get_or_insert(error);
}

/// One job, on its strand.
fn work(shared: &Shared<'_>, job: Job, strand: &Strand<'_>) {
    if lock(&shared.state).failed.is_some() {
        return;
    }
    if shared.abort.is_raised() {
        return fail(shared, Error::Interrupted);
    }
    let begun = shared.prepared.saved.begun.get(&job).map(String::as_str);
    let place = Place::on(shared.prepared, strand, &shared.abort);
    match infer::search(shared.prepared, job, begun, place, &mut |state| round(shared, job, state)) {
        Ok(found) => done(shared, found),
        Err(error) => fail(shared, error),
    }
}

/// Keeps the state of a job, and tells its log-likelihood.
fn round(shared: &Shared<'_>, job: Job, now: &SearchState) {
    let text = now.to_text();
    let mut state = lock(&shared.state);
    state.saved.begun.insert(job, text);
    state.progress.log_likelihood = Some(now.log_likelihood);
    let rounds = state.rounds.entry(job).or_default();
    *rounds += 1;
    let rounds = *rounds;
    state.progress.round = Some((job, rounds));
    let share = state.shares.entry(job).or_default();
    *share = share.max(now.share());
    state.progress.begun = state.shares.values().sum();
    if shared.log.silence() > LOG_INTERVAL {
        let what = format!("{}, round {rounds}", results::named(job));
        shared.log.timed(&format!("{what}, logLikelihood: {:.4}", now.log_likelihood));
    }
    end(shared, state);
}

/// Writes a checkpoint if it is time to, and tells how far the run is.
fn end(shared: &Shared<'_>, mut state: MutexGuard<'_, State>) {
    if shared.interval.is_some_and(|interval| state.written.elapsed() > interval) {
        if let Err(error) = save(shared.prepared, &mut state.saved, shared.log) {
            drop(state);
            return fail(shared, error);
        }
        state.written = Instant::now();
    }
    let progress = state.progress;
    drop(state);
    shared.log.watcher.progress(progress);
}

fn done(shared: &Shared<'_>, found: Found) {
    let what = results::named(found.job);
    shared.log.timed(&format!("{what}, logLikelihood: {:.4}", found.log_likelihood));
    let mut state = lock(&shared.state);
    match found.job {
        Job::Search(_) => state.progress.searches.0 += 1,
        Job::Replicate(_) => state.progress.replicates.0 += 1,
    }
    state.shares.remove(&found.job);
    state.progress.begun = state.shares.values().sum();
    state.saved.begun.remove(&found.job);
    state.saved.found.push(found);
    end(shared, state);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There are more jobs until there are enough, and no more than may be.
    #[test]
    fn more_until_enough() {
        let counts = |wanted: Count, enough: usize| {
            let mut more = More::new(wanted, 5);
            let mut seen = Vec::new();
            loop {
                let mut look = |count, _| {
                    seen.push(count);
                    Ok(count >= enough)
                };
                more.look(&mut look).unwrap();
                if !more.is_open() {
                    return (seen, more.count);
                }
            }
        };
        let auto = |most: usize| Count::searches(&format!("auto{{{most}}}")).unwrap();
        assert_eq!(counts(Count::Number(7), 10), (vec![], 7));
        assert_eq!(counts(auto(20), 5), (vec![5], 5));
        assert_eq!(counts(auto(20), 11), (vec![5, 10, 15], 15));
        assert_eq!(counts(auto(12), 50), (vec![5, 10, 12], 12));
        assert_eq!(counts(auto(3), 50), (vec![3], 3));
    }
}
