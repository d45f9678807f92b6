//! What a run needs of memory, which is known before it begins.

use super::args::Args;
use super::count::Count;
use super::prepare::{Prepared, Task};
use super::room::{self, available};
use crate::alignment::Patterns;
use crate::choose::CATEGORIES_MOST;
use crate::error::Error;
use crate::kernel::{MATRICES_KEPT, kernel_states};
use crate::likelihood::{BRANCHES_MOST, fewest};
use crate::parsimony::Parsimony;
use crate::partition::{Branches, Partition};
use crate::search::{self, EXCHANGED, Options};
use crate::tree::HalfEdge;
use crate::ultrafast::{CHAINS, Chain, Drawn};
use multigrain::readable_bytes;
use multigrain::rooms::store::buffer::give_free_memory_back;
use multigrain::rooms::team::strands::{Scheduler, SchedulerOptions};

/// A branch of a tree in text: a name or a support, and a length.
const BRANCH_BYTES: u64 = 48;
/// So often the tree of a job is there as text, and that of the best once more in results and picture.
const TEXTS: u64 = 5;
/// A search has so many trees at once: where it begins, where it is, and those that it goes back to.
const TREES: u64 = 12;
/// A job of the ultrafast bootstrap has so many trees at once, and so often log-likelihoods of all patterns.
const QUICK_TREES: u64 = 5;
const QUICK_LOGS: u64 = 6;
/// For each taxon its name, in lists, tables and results.
const NAME_BYTES: u64 = 320;

/// Bytes that a run takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Before there was anything else: to read the alignment.
    pub reading: u64,
    /// Once: data, results, replicates of sites.
    pub shared: u64,
    /// One after the other: searches, replicates or an evaluation; the ultrafast bootstrap; results.
    pub stages: [Stage; 3],
    /// Of how many inner nodes a job has vectors of conditional likelihoods.
    pub vectors: usize,
    /// Each of these.
    pub vector: u64,
    /// How many of them a job can do without: it computes them again when it needs them.
    pub spare: usize,
    /// For each thread: transition matrices and tables of tips of a batch of kernels.
    pub thread: u64,
}

/// What a part of a run takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stage {
    /// Once.
    pub shared: u64,
    /// For each job in progress, with its vectors; 0: there are none.
    pub job: u64,
}

impl Needs {
    /// The program itself: its code, its threads with their stacks, and what is too small to be counted.
    pub const OWN_BYTES: u64 = room::OWN_BYTES;

    /// Those of a request.
    pub fn of(prepared: &Prepared) -> Needs {
        let taxa = prepared.kept_names.len() as u64;
        let patterns = of_all(prepared, |p| p.patterns.len() as u64);
        let sets = if prepared.branches == Branches::Linked { 1 } else { prepared.partitions.len() as u64 };
        let tree = 4 * taxa * (size_of::<HalfEdge>() as u64 + size_of::<f64>() as u64 * sets);
        let vector = of_widest(prepared, vector_bytes);
        let vectors = vectors(prepared);
        let searched = match &prepared.task {
            Task::Search => searched_bytes(prepared, tree),
            Task::Evaluate { .. } => Searched { slots: 0, tables: 1, trees: tree, start: 0 },
        };
        // What is made anew for each pattern of a chunk: weight, states and likelihood of invariant sites, log-likelihood.
        let each = of_all(prepared, |p| p.patterns.len().next_multiple_of(8) as u64) * 28;
        let likelihood = |slots: usize, tables: usize| {
            (vectors + slots) as u64 * vector
                + tables as u64 * of_widest(prepared, table_bytes)
                + taxa * of_all(prepared, letters_bytes)
                + each
        };
        let first = Stage {
            shared: 0,
            job: likelihood(searched.slots, searched.tables).max(searched.start)
                + searched.trees
                + if prepared.bootstraps.most() > 0 { replicate_bytes(prepared) } else { 0 },
        };
        let thread = |p: &Partition, categories: usize| {
            let (states, codes) = (p.model.states as u64, p.patterns.data_type.masks().len() as u64);
            categories as u64 * states * (states + codes) * size_of::<f64>() as u64
        };
        let branches = (5 * taxa).clamp(MATRICES_KEPT as u64, BRANCHES_MOST as u64);
        Needs {
            reading: Needs::OWN_BYTES + prepared.reading,
            shared: Needs::OWN_BYTES + shared_bytes(prepared, taxa, patterns, sets),
            stages: match prepared.ultrafast as u64 {
                0 => [first, Stage::default(), Stage::default()],
                replicates => {
                    let quick = quick(prepared, tree, replicates);
                    let job = quick.job + likelihood(EXCHANGED, search::EXCHANGED_TABLES);
                    [first, Stage { job, ..quick }, written(prepared, replicates)]
                }
            },
            vectors,
            vector,
            spare: vectors - fewest(prepared.kept_names.len()),
            thread: branches * of_widest(prepared, thread),
        }
    }

    /// With so many jobs in progress on so many threads.
    pub fn bytes(&self, jobs: usize, threads: usize) -> u64 {
        self.without(0, jobs, threads)
    }

    /// Where the only job does without so many vectors.
    pub fn without(&self, vectors: usize, jobs: usize, threads: usize) -> u64 {
        let missing = vectors as u64 * self.vector;
        let running = self.stages.iter().map(|stage| stage.shared + (stage.job * jobs as u64).saturating_sub(missing));
        self.reading.max(self.shared + running.max().unwrap_or(0) + self.thread * threads as u64)
    }

    /// The least that a run on so many threads takes: one job at a time, without the vectors that it can do without.
    pub fn least_bytes(&self, threads: usize) -> u64 {
        self.without(self.spare, 1, threads)
    }

    /// How many jobs may be in progress, at most `jobs`, where there are so many bytes, and how many vectors the only one does
    /// without where not even it has room for all.
    ///
    /// # Errors
    /// Where there is no room for one.
    pub fn jobs_within(&self, bytes: u64, jobs: usize, threads: usize) -> Result<(usize, usize), Error> {
        let fitting = (1..=jobs.max(1)).take_while(|&jobs| self.bytes(jobs, threads) <= bytes).last();
        let missing = (1..=self.spare).find(|&missing| self.without(missing, 1, threads) <= bytes);
        match (fitting, missing) {
            (Some(jobs), _) => Ok((jobs, 0)),
            (None, Some(missing)) => Ok((1, missing)),
            (None, None) => {
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

/// What there is of data and results, whatever is in progress.
fn shared_bytes(prepared: &Prepared, taxa: u64, patterns: u64, sets: u64) -> u64 {
    let (all, sites) = (prepared.names.len() as u64, prepared.sites as u64);
    // Patterns with their weights, and for each site its pattern and its place.
    let data = taxa * patterns + 4 * patterns + sites * (size_of::<Option<u32>>() + size_of::<usize>()) as u64;
    // A run of several stages has what it began with and what it goes on with.
    let is_chosen = prepared.criterion.is_some();
    let is_counted =
        matches!(prepared.searches, Count::Auto { .. }) || matches!(prepared.bootstraps, Count::Auto { .. });
    let copies = 1 + u64::from(is_chosen) + u64::from(is_counted && prepared.task == Task::Search);
    let jobs = match prepared.task {
        Task::Search => (prepared.searches.most() + prepared.bootstraps.most()) as u64,
        Task::Evaluate { .. } => 1,
    };
    let text = 2 * all * BRANCH_BYTES * (sets + u64::from(sets > 1));
    let alrt = if prepared.alrt > 0 { 2 * taxa * patterns * size_of::<f64>() as u64 } else { 0 };
    data * copies
        + all * NAME_BYTES
        + (jobs + 1) * text * TEXTS
        + prepared.bootstraps.most() as u64 * divisions_bytes(prepared)
        + alrt
}

/// Each division of a tree as a set of taxa.
fn divisions_bytes(prepared: &Prepared) -> u64 {
    let all = prepared.names.len() as u64;
    all * (all.div_ceil(8) + 40)
}

/// A tree as text, its lengths with all their digits.
fn line_bytes(prepared: &Prepared) -> u64 {
    const LENGTH: usize = 28;
    prepared.names.iter().map(|name| name.len() + 2 * LENGTH).sum::<usize>() as u64
}

/// The ultrafast bootstrap, but for the likelihood that each of its jobs has.
fn quick(prepared: &Prepared, tree: u64, replicates: u64) -> Stage {
    let taxa = prepared.kept_names.len();
    let patterns = of_all(prepared, |p| p.patterns.len() as u64);
    let own = if prepared.is_corrected { patterns * (taxa + 2 * size_of::<u32>()) as u64 } else { 0 };
    Stage {
        shared: Drawn::bytes(patterns as usize, replicates as usize)
            + CHAINS as u64 * Chain::bytes(taxa, replicates, tree)
            + replicates * line_bytes(prepared),
        job: QUICK_TREES * tree + QUICK_LOGS * patterns * size_of::<f64>() as u64 + own,
    }
}

/// The trees of so many replicates of the ultrafast bootstrap, once each and once all in one, with their divisions.
fn written(prepared: &Prepared, replicates: u64) -> Stage {
    Stage { shared: replicates * (2 * line_bytes(prepared) + divisions_bytes(prepared)), job: 0 }
}

/// What a search takes beside the vectors of inner nodes.
struct Searched {
    slots: usize,
    tables: usize,
    trees: u64,
    /// Before its vectors are made.
    start: u64,
}

fn searched_bytes(prepared: &Prepared, tree: u64) -> Searched {
    let options = match (prepared.is_fast, prepared.searches.most()) {
        (true, _) => Options::fast(),
        (false, 0) => Options::replicate(),
        (false, _) => Options::default(),
    };
    let patterns: Vec<&Patterns> = prepared.partitions.iter().map(|p| &p.patterns).collect();
    let start = search::start_bytes(&patterns, prepared.is_fast);
    Searched { slots: options.slots(), tables: search::TABLES, trees: TREES * tree, start }
}

/// The sites of a replicate, and the parsimony of the trees from which it is climbed again.
fn replicate_bytes(prepared: &Prepared) -> u64 {
    let patterns: Vec<&Patterns> = prepared.partitions.iter().map(|p| &p.patterns).collect();
    let parsimony = if prepared.is_fast { 0 } else { Parsimony::bytes(&patterns) };
    let taxa = prepared.kept_names.len() as u64;
    let sites = 3 * (size_of::<u32>() + size_of::<Option<u32>>()) as u64 / 2 * prepared.sites as u64;
    of_all(prepared, |p| p.patterns.len() as u64) * taxa + sites + parsimony
}

/// The letters of a taxon as kernels have them.
fn letters_bytes(partition: &Partition) -> u64 {
    (partition.patterns.len().next_multiple_of(8) * size_of::<u16>()) as u64
}

/// A table of a branch.
fn table_bytes(partition: &Partition, categories: usize) -> u64 {
    let entries = kernel_states(partition.model.states) * categories + 1;
    (partition.patterns.len().next_multiple_of(8) * entries * size_of::<f64>()) as u64
}

/// The sum over all partitions.
fn of_all(prepared: &Prepared, bytes: impl Fn(&Partition) -> u64) -> u64 {
    prepared.partitions.iter().map(bytes).sum()
}

/// A conditional likelihood vector of a partition with so many categories of rates.
fn vector_bytes(partition: &Partition, categories: usize) -> u64 {
    let entries = kernel_states(partition.model.states) * categories * size_of::<f64>() + size_of::<u32>();
    (partition.patterns.len().next_multiple_of(8) * entries) as u64
}

/// Bytes of all partitions, or, where models are chosen, of the one that takes most of those under the candidate of most
/// categories, if that is more: candidates are fitted to one partition at a time.
fn of_widest(prepared: &Prepared, bytes: impl Fn(&Partition, usize) -> u64) -> u64 {
    let all = of_all(prepared, |p| bytes(p, p.model.categories));
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
        let stages = [Stage { shared: 0, job: 50 }, Stage { shared: 20, job: 25 }, Stage { shared: 40, job: 0 }];
        let needs = Needs { reading: 0, shared: 100, stages, vectors: 9, vector: 3, spare: 2, thread: 10 };
        assert_eq!(needs.bytes(3, 2), 270);
        let of = |bytes| needs.jobs_within(bytes, 4, 2).ok();
        assert_eq!(
            [of(163), of(164), of(166), of(167), of(169)],
            [None, Some((1, 2)), Some((1, 2)), Some((1, 1)), Some((1, 1))]
        );
        assert_eq!([of(170), of(219), of(220), of(1000)], [(1, 0), (1, 0), (2, 0), (4, 0)].map(Some));
        let [first, second, _] = stages;
        let longer = Needs { stages: [first, second, Stage { shared: 70, job: 0 }], ..needs };
        assert_eq!([longer.bytes(1, 2), longer.without(2, 1, 2), longer.bytes(2, 2)], [190, 190, 220]);
        let message = needs.jobs_within(1, 4, 2).unwrap_err().to_string();
        assert!(
            message.contains("164") && message.contains("on one thread") && message.contains("--memory"),
            "{message}"
        );
    }
}
