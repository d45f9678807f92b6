//! From what was prepared to likelihoods: evaluations, searches, replicates.

use crate::app::{Prepared, Start};
use crate::copies::with_copies;
use crate::error::Error;
use crate::generate::random_tree_within;
use crate::job::{Found, Job};
use crate::likelihood::{Likelihood, Offload, OnStrand, Precision};
use crate::model::Model;
use crate::partition::{Branches, Partition};
use crate::random::{Purpose, Random};
use crate::search::{Options, Progress, Search, State};
use crate::tree::Tree;
use multigrain::Abort;
use multigrain::rooms::team::strands::Strand;
use multigrain_simd::Isa;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// Parameters of an evaluated tree are fitted until a round gains less log-likelihood than this.
const EVALUATION_GAIN: f64 = 1e-3;

/// Ends a job from within, when the run's [`Abort`] is raised.
struct Stopped;

/// Looks at the run's [`Abort`] before every batch of kernels. A raised one unwinds the job with [`Stopped`]; where it was
/// at the end of its last round is with the run already, and everything else of it is dropped.
struct Stoppable<'o> {
    inner: Box<dyn Offload + 'o>,
    abort: Arc<Abort>,
    vectors: usize,
}

impl Offload for Stoppable<'_> {
    fn vectors(&self) -> usize {
        self.vectors
    }

    fn chunks(&self, chunks: usize, work: usize, body: &(dyn Fn(usize) + Sync)) {
        if self.abort.is_raised() {
            resume_unwind(Box::new(Stopped));
        }
        self.inner.chunks(chunks, work, body);
    }
}

/// Runs a job that may be stopped.
pub(crate) fn stoppable<T>(job: impl FnOnce() -> T) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(job)).map_err(|payload| match payload.is::<Stopped>() {
        true => Error::Interrupted,
        false => resume_unwind(payload),
    })
}

/// Sets of branch lengths.
pub(crate) fn sets(prepared: &Prepared) -> usize {
    match prepared.branches {
        Branches::Linked => 1,
        Branches::Unlinked => prepared.partitions.len(),
    }
}

/// Where the kernels of a job run, and what stops it.
pub struct Place<'o> {
    /// What executes batches of kernels.
    pub offload: Box<dyn Offload + 'o>,
    /// Ends the job when it is raised.
    pub abort: Arc<Abort>,
    /// [`Prepared::vectors`]
    pub vectors: usize,
}

impl<'o> Place<'o> {
    /// A strand.
    pub(crate) fn on(prepared: &Prepared, strand: &'o Strand<'o>, abort: &Arc<Abort>) -> Place<'o> {
        Place { offload: Box::new(OnStrand(strand)), abort: abort.clone(), vectors: prepared.vectors }
    }

    pub(crate) fn stoppable(self) -> Box<dyn Offload + 'o> {
        Box::new(Stoppable { inner: self.offload, abort: self.abort, vectors: self.vectors })
    }
}

/// The log-likelihood of a tree of all taxa with one set of lengths: as it is where it is `fixed`, and after lengths
/// and free parameters were fitted otherwise.
///
/// # Errors
/// [`Error::Interrupted`].
pub fn evaluate(prepared: &Prepared, tree: &Tree, fixed: bool, place: Place<'_>) -> Result<Found, Error> {
    let tree = tree.with_sets(&vec![0; sets(prepared)]);
    let data: Vec<_> = prepared.partitions.iter().map(|p| (&p.patterns, &p.model)).collect();
    let mut likelihood = Likelihood::new(&data, prepared.branches, tree, Isa::detect(), place.stoppable());
    let log_likelihood = stoppable(|| {
        if fixed {
            return likelihood.log_likelihood();
        }
        likelihood.optimize_thoroughly(EVALUATION_GAIN);
        likelihood.smooth(16, 1e-3 * EVALUATION_GAIN, Precision::FINE)
    })?;
    Ok(found(prepared, Job::Search(0), likelihood.tree(), likelihood.models(), log_likelihood))
}

/// Is told the state of a job after each of its rounds.
struct Told<'a>(&'a mut dyn FnMut(&State));

impl Progress for Told<'_> {
    fn round(&mut self, state: &State) -> ControlFlow<()> {
        (self.0)(state);
        ControlFlow::Continue(())
    }
}

/// Makes one search or one replicate, from its beginning or from the state (as text) that an earlier run left. `told` gets
/// every state from which the job can be continued to the same result.
///
/// # Errors
/// [`Error::Interrupted`], and a damaged state.
pub fn search(
    prepared: &Prepared,
    job: Job,
    state: Option<&str>,
    place: Place<'_>,
    told: &mut dyn FnMut(&State),
) -> Result<Found, Error> {
    let replicate: Vec<Partition>;
    let (partitions, purpose) = match job {
        Job::Search(_) => (&prepared.partitions, Purpose::Search),
        Job::Replicate(number) => {
            let mut random = Random::new(prepared.seed, Purpose::Resample, number as u64);
            let resampled = prepared.partitions.iter().zip(&prepared.schemes).map(|(partition, scheme)| {
                let patterns = partition.patterns.resampled(&mut random);
                let model = scheme.model.model(&patterns);
                Partition { name: partition.name.clone(), patterns, model }
            });
            replicate = resampled.collect();
            (&replicate, Purpose::Replicate)
        }
    };
    let data: Vec<_> = partitions.iter().map(|p| (&p.patterns, &p.model)).collect();
    let (branches, isa) = (prepared.branches, Isa::detect());
    let options = match job {
        _ if prepared.is_fast => Options::fast(),
        Job::Search(number) => Options { is_varied: number > 0, ..Options::default() },
        Job::Replicate(_) => Options::replicate(),
    };
    let options = Options { constraint: prepared.constraint.clone(), ..options };
    let begun = match state {
        None => {
            let mut random = Random::new(prepared.seed, purpose, job.number() as u64);
            let tree = match (&prepared.start, job) {
                (Start::Parsimony, _) | (_, Job::Replicate(_)) => None,
                (Start::Random, _) => {
                    let within = prepared.constraint.as_deref();
                    Some(random_tree_within(within, prepared.kept_names.len(), &mut random))
                }
                (Start::Given(trees), Job::Search(number)) => Some(trees[number % trees.len()].clone()),
            };
            match tree {
                None => Search::new(&data, branches, options, isa, &mut random, place.stoppable()),
                Some(tree) => {
                    let tree = tree.with_sets(&vec![0; sets(prepared)]);
                    Search::from_tree(&data, branches, options, isa, tree, random.bits(), place.stoppable())
                }
            }
        }
        Some(text) => {
            let models = partitions.iter().map(|p| p.model.clone()).collect();
            let tree = Tree::new(prepared.kept_names.len(), sets(prepared));
            let start = State::new(tree, models, 0);
            let state = State::from_text(text, &start).map_err(|e| {
                let (kind, number) = (job.kind(), job.number());
                Error::request(format!("the checkpoint, {kind} {number}: {e}; start anew with --force"))
            })?;
            Search::from_state(&data, branches, options, isa, state, place.stoppable())
        }
    };
    let result = stoppable(|| begun.run(&mut Told(told)))?.ok_or(Error::Interrupted)?;
    Ok(found(prepared, job, &result.tree, &result.models, result.log_likelihood))
}

/// A tree of the taxa that take part as Newick of all taxa. Of several sets of lengths, the mean of the partitions' lengths,
/// weighted by their sites, stands for all of them.
pub(crate) fn mean_text(prepared: &Prepared, tree: &Tree) -> String {
    let sites: Vec<f64> = prepared.partitions.iter().map(|p| p.patterns.sites() as f64).collect();
    text(prepared, &tree.mean(&sites), 0)
}

fn found(prepared: &Prepared, job: Job, tree: &Tree, models: &[Model], log_likelihood: f64) -> Found {
    let mut trees = Vec::new();
    if tree.sets() > 1 {
        trees.push(mean_text(prepared, tree));
    }
    trees.extend((0..tree.sets()).map(|set| text(prepared, tree, set)));
    let models = models.iter().map(|m| m.to_string()).collect();
    Found { job, log_likelihood, models, trees }
}

fn text(prepared: &Prepared, tree: &Tree, set: usize) -> String {
    let newick = tree.to_newick(&prepared.kept_names, set, &|_| None);
    let mut text = with_copies(&newick, &prepared.kept_names, &prepared.names, &prepared.representatives).to_text();
    // It stays.
    text.shrink_to_fit();
    text
}
