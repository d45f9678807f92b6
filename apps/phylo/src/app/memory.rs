//! What a run needs of memory, which is known before it begins.

use super::args::Args;
use super::prepare::{Prepared, Task};
use crate::alignment::Patterns;
use crate::choose::CATEGORIES_MOST;
use crate::error::Error;
use crate::kernel::kernel_states;
use crate::likelihood::{BRANCHES_MOST, fewest};
use crate::partition::Partition;
use crate::search;
use crate::ultrafast::{CHAINS, Drawn};
use multigrain::rooms::store::buffer::{give_free_memory_back, keep_no_free_memory};
use multigrain::rooms::team::strands::{Scheduler, SchedulerOptions};
use multigrain::{Machine, readable_bytes};
use std::path::Path;

/// The program itself, with its threads' stacks.
const PROGRAM_BYTES: u64 = 8 << 20;
/// A tree in text and in memory, each branch.
const BRANCH_BYTES: u64 = 200;

/// Bytes that a run takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Once: data, results, replicates of sites.
    pub shared: u64,
    /// For each search, replicate or evaluation that is in progress: as many vectors of conditional likelihoods as it uses.
    pub job: u64,
    /// Of how many inner nodes these are.
    pub vectors: usize,
    /// Each of these.
    pub vector: u64,
    /// How many of them a job can do without: it computes them again when it needs them.
    pub spare: usize,
    /// For each thread: transition matrices and tables of tips of a batch of kernels.
    pub thread: u64,
}

impl Needs {
    /// Those of a request.
    pub fn of(prepared: &Prepared) -> Needs {
        let taxa = prepared.kept_names.len() as u64;
        let patterns: u64 = prepared.partitions.iter().map(|p| p.patterns.len() as u64).sum();
        // An evaluation has one tree, too.
        let jobs = (prepared.jobs.len() + prepared.saved.found.len() + prepared.ultrafast).max(1) as u64;
        // Letters as they were read, and as patterns; chunks have their own.
        let letters = prepared.names.len() as u64 * prepared.sites as u64 + taxa * patterns;
        let replicates = match prepared.ultrafast {
            0 => 0,
            replicates => Drawn::bytes(patterns as usize, replicates),
        };
        let thread = |p: &Partition, categories: usize| {
            let (states, codes) = (p.model.states as u64, p.patterns.data_type.masks().len() as u64);
            categories as u64 * states * (states + codes) * size_of::<f64>() as u64
        };
        let vector = of_widest(prepared, vector_bytes);
        let vectors = vectors(prepared);
        let spare = match &prepared.task {
            Task::Search => search::SPARE_VECTORS + 2,
            Task::Evaluate { .. } => 2,
        };
        let patterns_of: Vec<&Patterns> = prepared.partitions.iter().map(|p| &p.patterns).collect();
        let start = match &prepared.task {
            Task::Search => search::start_bytes(&patterns_of, prepared.is_fast),
            Task::Evaluate { .. } => 0,
        };
        Needs {
            shared: PROGRAM_BYTES + letters + replicates + jobs * BRANCH_BYTES * 2 * taxa,
            job: ((vectors + spare) as u64 * vector + taxa * letters_bytes(prepared)).max(start),
            vectors,
            vector,
            spare: vectors - fewest(prepared.kept_names.len()),
            thread: (5 * taxa).min(BRANCHES_MOST as u64) * of_widest(prepared, thread),
        }
    }

    /// With so many jobs in progress on so many threads.
    pub fn bytes(&self, jobs: usize, threads: usize) -> u64 {
        self.shared + self.job * jobs as u64 + self.thread * threads as u64
    }

    /// The least that a run on so many threads takes: one job at a time, without the vectors that it can do without.
    pub fn least_bytes(&self, threads: usize) -> u64 {
        self.bytes(1, threads) - self.spare as u64 * self.vector
    }

    /// How many jobs may be in progress, at most `jobs`, where there are so many bytes, and how many vectors the only one does
    /// without where not even it has room for all.
    ///
    /// # Errors
    /// Where there is no room for one.
    pub fn jobs_within(&self, bytes: u64, jobs: usize, threads: usize) -> Result<(usize, usize), Error> {
        let fitting = (1..=jobs.max(1)).take_while(|&jobs| self.bytes(jobs, threads) <= bytes).last();
        let missing = self.bytes(1, threads).saturating_sub(bytes).div_ceil(self.vector.max(1)) as usize;
        match fitting {
            Some(jobs) => Ok((jobs, 0)),
            None if missing <= self.spare => Ok((1, missing)),
            None => {
                let [needed, one, there] = [self.least_bytes(threads), self.least_bytes(1), bytes].map(readable_bytes);
                let fewer = if threads > 1 { format!(" ({one} on one thread)") } else { String::new() };
                Err(Error::request(format!(
                    "one search at a time on {threads} threads needs at least about {needed} of memory{fewer}, and there are \
                     {there}: ask for more --memory, fewer --threads or fewer categories of rates"
                )))
            }
        }
    }
}

/// The letters of a taxon as kernels have them.
fn letters_bytes(prepared: &Prepared) -> u64 {
    let letters = |p: &Partition| (p.patterns.len().next_multiple_of(8) * size_of::<u16>()) as u64;
    prepared.partitions.iter().map(letters).sum()
}

/// A conditional likelihood vector of a partition with so many categories of rates.
fn vector_bytes(partition: &Partition, categories: usize) -> u64 {
    let entries = kernel_states(partition.model.states) * categories * size_of::<f64>() + size_of::<u32>();
    (partition.patterns.len().next_multiple_of(8) * entries) as u64
}

/// Bytes of all partitions, or, where models are chosen, of the one that takes most of those under the candidate of most
/// categories, if that is more: candidates are fitted to one partition at a time.
fn of_widest(prepared: &Prepared, bytes: impl Fn(&Partition, usize) -> u64) -> u64 {
    let all = prepared.partitions.iter().map(|p| bytes(p, p.model.categories)).sum::<u64>();
    let open = prepared.partitions.iter().zip(&prepared.schemes).filter(|(_, scheme)| scheme.is_open);
    let candidates = open.filter(|_| prepared.criterion.is_some()).map(|(p, _)| bytes(p, CATEGORIES_MOST));
    candidates.fold(all, u64::max)
}

/// How many vectors of inner nodes a job has where there is room for them. A search looks at one tree from all its branches, and uses
/// those that it has again and again. An evaluation makes all of them again for every model that it tries, and reads most of
/// them once: then the fewest, which stay in a core's cache, take less time than all, which are written to memory. Of several
/// partitions one is tried at a time, for which the others would lose theirs.
fn vectors(prepared: &Prepared) -> usize {
    let taxa = prepared.kept_names.len();
    match &prepared.task {
        Task::Evaluate { fixed: true, .. } => fewest(taxa),
        Task::Evaluate { .. } if prepared.partitions.len() == 1 && prepared.alrt == 0 => fewest(taxa),
        _ => taxa - 2,
    }
}

/// What there is: as much as was asked for, or the computer's memory.
pub(super) fn available(asked: Option<u64>) -> Result<u64, Error> {
    match asked {
        Some(bytes) => Ok(bytes),
        None => {
            let machine = Machine::detect(Path::new(".")).map_err(|e| Error::run(e.to_string()))?;
            Ok(machine.memory(machine.root()).capacity_bytes)
        }
    }
}

impl Args {
    /// The workers that were asked for, under the policy that was asked for, for no more jobs at once than have room. Says in what
    /// was prepared how many vectors each job has room for.
    ///
    /// # Errors
    /// A policy that cannot be had on so many workers; threads that cannot be started; too little memory for one job.
    pub fn scheduler(&self, prepared: &mut Prepared) -> Result<Scheduler, Error> {
        let mut options = SchedulerOptions {
            policy: self.policy,
            dispatch: self.dispatch,
            trace: self.trace.is_some(),
            ..SchedulerOptions::default()
        };
        options.workers = self.threads.unwrap_or(options.workers);
        let most = self.policy.strands_max(options.workers as u32) as usize;
        let most = prepared.jobs.len().max(prepared.ultrafast.min(CHAINS)).clamp(1, most.max(1));
        // What was freed since the alignment was read counts for nothing.
        give_free_memory_back();
        if self.memory.is_some() {
            keep_no_free_memory();
        }
        let bytes = available(self.memory)?;
        let needs = Needs::of(prepared);
        let (jobs, missing) = needs.jobs_within(bytes, most, options.workers)?;
        options.strands_max = Some(jobs);
        prepared.vectors = needs.vectors - missing;
        Scheduler::new(options).map_err(|e| Error::request(format!("--policy, --threads: {e}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_jobs_as_there_is_room_for() {
        let needs = Needs { shared: 100, job: 50, vectors: 9, vector: 3, spare: 2, thread: 10 };
        assert_eq!(needs.bytes(3, 2), 270);
        let of = |bytes| needs.jobs_within(bytes, 4, 2).ok();
        assert_eq!(
            [of(163), of(164), of(166), of(167), of(169)],
            [None, Some((1, 2)), Some((1, 2)), Some((1, 1)), Some((1, 1))]
        );
        assert_eq!([of(170), of(219), of(220), of(1000)], [(1, 0), (1, 0), (2, 0), (4, 0)].map(Some));
        let message = needs.jobs_within(1, 4, 2).unwrap_err().to_string();
        assert!(
            message.contains("164") && message.contains("on one thread") && message.contains("--memory"),
            "{message}"
        );
    }
}
