//! The ultrafast bootstrap of a run: its chains are strands, round after round, and so are the climbs of its replicates.

use super::details;
use super::log::Log;
use super::prepare::Prepared;
use crate::error::Error;
use crate::infer::{self, Place, stoppable};
use crate::job::{Found, Job, best};
use crate::likelihood::{Likelihood, Precision};
use crate::model::Model;
use crate::search::EXCHANGED;
use crate::tree::Tree;
use crate::ultrafast::{CHAINS, CORRELATION, Chain, Choice, Drawn, ROUNDS, correlation, merged, splits, tree_of};
use multigrain::Abort;
use multigrain::rooms::team::strands::{Scheduler, Strand};
use multigrain_simd::Isa;
use std::sync::{Arc, Mutex, PoisonError};

/// A chain that meets a tree so much better than the best one has shown that it was not searched for long enough.
const BETTER: f64 = 0.1;
/// A replicate's climb by exchanges ends where a round gains less.
const GAIN: f64 = 0.1;

/// The trees of all replicates, in Newick, all taxa in them; none where nobody asked.
///
/// # Errors
/// [`Error::Interrupted`].
pub(super) fn look(
    prepared: &Prepared,
    found: &[Found],
    scheduler: &Scheduler,
    abort: &Arc<Abort>,
    log: &Log<'_>,
) -> Result<Vec<String>, Error> {
    let (Some(best), 1..) = (best(found), prepared.ultrafast) else { return Ok(Vec::new()) };
    let (first, models) = details::read(prepared, best)?;
    if first.taxa() < 4 {
        return Ok(vec![infer::mean_text(prepared, &first); prepared.ultrafast]);
    }
    let mut trees = vec![(best.log_likelihood, first)];
    for other in found.iter().filter(|f| matches!(f.job, Job::Search(_)) && f.job != best.job) {
        trees.push((other.log_likelihood, details::read(prepared, other)?.0));
    }
    if trees.len() == 1 {
        log.line(
            "note: the ultrafast bootstrap begins with the tree of one search: where others, far from it, are as good, its \
             supports are too high; ask for more --searches",
        );
    }
    let own: Vec<&[u32]> = prepared.partitions.iter().map(|p| &*p.patterns.weights).collect();
    let weights: Vec<f64> = own.iter().flat_map(|w| w.iter().copied().map(f64::from)).collect();
    let drawn = Drawn::new(&own, prepared.ultrafast, prepared.seed);
    let work = Work { prepared, models: &models, drawn: &drawn, abort };

    let reference = {
        let of_first =
            |strand: &Strand<'_>| stoppable(|| work.likelihood(trees[0].1.clone(), strand).of_patterns().concat());
        one(scheduler, vec![of_first])?.remove(0)
    };
    let mut chains: Vec<Chain> =
        (0..CHAINS).map(|number| Chain::new(&trees, prepared.ultrafast, prepared.seed, number)).collect();
    let mut before = None;
    for round in 1..=ROUNDS {
        let walk = |chain: Chain| {
            let (work, weights, reference) = (&work, &weights, &reference);
            let chain = Mutex::new(Some(chain));
            move |strand: &Strand<'_>| {
                let taken = chain.lock().unwrap_or_else(PoisonError::into_inner).take();
                let mut chain = taken.ok_or(Error::Interrupted)?;
                stoppable(|| {
                    let mut likelihood = work.likelihood(chain.first().clone(), strand);
                    chain.round(&mut likelihood, work.drawn, reference, weights);
                    chain
                })
            }
        };
        chains = one(scheduler, chains.drain(..).map(walk).collect())?;
        let of = |chains: &[Chain]| splits(chains, &merged(chains, prepared.seed));
        // A round has the trees of those before; halves of the chains have in common only those with which all begin.
        let (some, others) = chains.split_at(CHAINS / 2);
        let halves = correlation(&of(some), &of(others));
        let now = of(&chains);
        let same = before.as_ref().map(|before| correlation(before, &now));
        let words = same.map_or(String::new(), |same| format!(", with those before by {same:.4}"));
        let trees = Chain::seen(&chains);
        log.timed(&format!(
            "ultrafast bootstrap, round {round}, {trees} trees: supports of two halves correlate by {halves:.4}{words}"
        ));
        if halves >= CORRELATION || same.is_some_and(|same| same >= CORRELATION) {
            break;
        }
        if round == ROUNDS {
            log.line("note: supports of the ultrafast bootstrap may still change");
        }
        before = Some(now);
    }
    let met = chains.iter().map(Chain::log_likelihood).fold(f64::NEG_INFINITY, f64::max);
    if met > best.log_likelihood + BETTER {
        log.line(&format!(
            "note: the ultrafast bootstrap has met a tree of logLikelihood {met:.4}, which is better than the best: \
             ask for more --searches"
        ));
    }
    let trees = merged(&chains, prepared.seed);
    let texts = match prepared.is_corrected {
        false => trees.into_iter().map(|choice| infer::mean_text(prepared, &tree_of(&chains, choice))).collect(),
        true => {
            let climb = |(replicate, choice): (usize, Choice)| {
                let (work, chains) = (&work, &chains);
                move |strand: &Strand<'_>| stoppable(|| work.climbed(replicate, tree_of(chains, choice), strand))
            };
            let texts = one(scheduler, trees.into_iter().enumerate().map(climb).collect())?;
            log.timed(&format!("{} replicates climbed by exchanges on their own sites", texts.len()));
            texts
        }
    };
    Ok(texts)
}

/// What strands work with.
struct Work<'a> {
    prepared: &'a Prepared,
    models: &'a [Model],
    drawn: &'a Drawn,
    abort: &'a Arc<Abort>,
}

impl Work<'_> {
    fn likelihood<'o>(&self, tree: Tree, strand: &'o Strand<'o>) -> Likelihood<'o> {
        let place = Place::on(self.prepared, strand, self.abort);
        let data: Vec<_> = self.prepared.partitions.iter().map(|p| &p.patterns).zip(self.models).collect();
        let mut likelihood = Likelihood::new(&data, self.prepared.branches, tree, Isa::detect(), place.stoppable());
        likelihood.set_constraint(self.prepared.constraint.clone());
        likelihood.set_spare(EXCHANGED);
        likelihood
    }

    /// The tree that exchanges of neighbours lead to on a replicate's own sites (Hoang and others 2018), in Newick.
    fn climbed(&self, replicate: usize, tree: Tree, strand: &Strand<'_>) -> String {
        let place = Place::on(self.prepared, strand, self.abort);
        let all: Vec<_> = self.prepared.partitions.iter().map(|p| &p.patterns).collect();
        let own = self.drawn.patterns(&all, replicate);
        let tree = tree.with_sets(&vec![0; infer::sets(self.prepared)]);
        let data: Vec<_> = own.iter().zip(self.models).collect();
        let mut likelihood = Likelihood::new(&data, self.prepared.branches, tree, Isa::detect(), place.stoppable());
        likelihood.set_constraint(self.prepared.constraint.clone());
        likelihood.set_spare(EXCHANGED);
        likelihood.smooth(1, GAIN, Precision::COARSE);
        likelihood.exchange_while(GAIN);
        infer::mean_text(self.prepared, likelihood.tree())
    }
}

/// What all of these strands return, unless one was stopped.
fn one<T: Send, F: FnOnce(&Strand<'_>) -> Result<T, Error> + Send>(
    scheduler: &Scheduler,
    strands: Vec<F>,
) -> Result<Vec<T>, Error> {
    let outcome = scheduler.run(strands).map_err(|e| Error::run(format!("internal error: {e}")))?;
    outcome.results.into_iter().collect()
}
