//! What is said of the best tree besides: supports by likelihood ratios, the log-likelihood of every site.

use super::log::Log;
use super::prepare::Prepared;
use crate::alrt;
use crate::copies::only;
use crate::error::Error;
use crate::infer::{Place, sets, stoppable};
use crate::job::Found;
use crate::likelihood::Likelihood;
use crate::model::{Model, ModelSpec};
use crate::random::{Purpose, Random};
use crate::tree::{HalfEdge, Newick, Splits, Tree};
use multigrain::Abort;
use multigrain::rooms::team::strands::{Scheduler, Strand};
use multigrain_simd::Isa;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What is known of a tree besides its log-likelihood.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Details {
    /// SH-aLRT supports, 0 to 1, by the taxa that take part (bits) on the side of a branch without the first of them.
    supports: HashMap<Vec<u64>, f64>,
    /// For each partition the log-likelihood of each pattern; empty where nobody asked.
    patterns: Vec<Vec<f64>>,
}

/// Looks at a tree as `prepared` asks for.
///
/// # Errors
/// [`Error::Interrupted`].
pub(super) fn look(
    prepared: &Prepared,
    found: &Found,
    scheduler: &Scheduler,
    abort: &Arc<Abort>,
    log: &Log<'_>,
) -> Result<Details, Error> {
    if prepared.alrt == 0 && !prepared.site_likelihoods {
        return Ok(Details::default());
    }
    let (tree, models) = read(prepared, found)?;
    let one = |strand: &Strand<'_>| stoppable(|| details(prepared, &tree, &models, Place::on(prepared, strand, abort)));
    let outcome = scheduler.run(vec![one]).map_err(|e| Error::run(format!("internal error: {e}")))?;
    let details = outcome.results.into_iter().next().unwrap_or(Err(Error::Interrupted))?;
    if prepared.alrt > 0 {
        log.timed(&format!("SH-aLRT of {} branches by {} replicates", details.supports.len(), prepared.alrt));
    }
    Ok(details)
}

fn details(prepared: &Prepared, tree: &Tree, models: &[Model], place: Place<'_>) -> Details {
    let data: Vec<_> = prepared.partitions.iter().map(|p| &p.patterns).zip(models).collect();
    let mut likelihood = Likelihood::new(&data, prepared.branches, tree.clone(), Isa::detect(), place.stoppable());
    let mut details = Details::default();
    if prepared.site_likelihoods {
        details.patterns = likelihood.of_patterns();
    }
    if prepared.alrt > 0 {
        let weights: Vec<&[u32]> = prepared.partitions.iter().map(|p| &*p.patterns.weights).collect();
        let mut random = Random::new(prepared.seed, Purpose::Likelihoods, 0);
        let supports: HashMap<HalfEdge, f64> =
            alrt::supports(&mut likelihood, &weights, prepared.alrt, &mut random).into_iter().collect();
        let Splits { branches, sets } = Splits::new(tree);
        details.supports = branches.iter().zip(sets).map(|(half, set)| (set, supports[half])).collect();
    }
    details
}

/// The tree of the taxa that take part with all its lengths, and the models, from what a job has left as text.
pub(super) fn read(prepared: &Prepared, found: &Found) -> Result<(Tree, Vec<Model>), Error> {
    let wrong = |e: &dyn std::fmt::Display| Error::run(format!("internal error: a tree of this run: {e}"));
    let names = &prepared.kept_names;
    let sets = sets(prepared);
    // Where there are several sets, the first text has their mean.
    let texts = &found.trees[found.trees.len() - sets..];
    let mut trees = Vec::new();
    for text in texts {
        let newick = Newick::parse(text).map_err(|e| wrong(&e))?;
        let newick = only(&newick, &|name| names.iter().any(|kept| kept == name));
        trees.push(Tree::from_newick(&newick, names, None).map_err(|e| wrong(&e))?);
    }
    let mut tree = trees[0].with_sets(&vec![0; sets]);
    let branches: Vec<HalfEdge> = tree.branches().collect();
    for (set, own) in trees.iter().enumerate() {
        branches.iter().for_each(|&half| tree.set_length(half, set, own.length(half, 0)));
    }
    let parse = |(text, partition): (&String, &crate::partition::Partition)| {
        ModelSpec::parse(text).map(|spec| spec.model(&partition.patterns))
    };
    let models: Result<Vec<Model>, Error> = found.models.iter().zip(&prepared.partitions).map(parse).collect();
    Ok((tree, models?))
}

impl Details {
    /// SH-aLRT supports in per cent of the inner branches of a tree of all taxa. Branches that divide copies alone have none.
    pub(super) fn labels(&self, prepared: &Prepared, tree: &Tree) -> BTreeMap<HalfEdge, String> {
        let mut labels = BTreeMap::new();
        if self.supports.is_empty() {
            // The divisions of thousands of taxa take more memory than their likelihood.
            return labels;
        }
        let taxon_of: HashMap<&str, usize> = prepared.names.iter().enumerate().map(|(t, n)| (n.as_str(), t)).collect();
        let taxa: Vec<usize> = prepared.kept_names.iter().map(|name| taxon_of[name.as_str()]).collect();
        let Splits { branches, sets } = Splits::new(tree);
        for (half, set) in branches.into_iter().zip(sets) {
            let mut own = vec![0u64; taxa.len().div_ceil(64)];
            for (kept, &taxon) in taxa.iter().enumerate() {
                own[kept / 64] |= (set[taxon / 64] >> (taxon % 64) & 1) << (kept % 64);
            }
            if let Some(support) = self.supports.get(&own) {
                let text = format!("{}", (1000.0 * support).round() / 10.0);
                labels.insert(half, text.clone());
                labels.insert(tree.back(half), text);
            }
        }
        labels
    }

    /// The log-likelihoods of all sites of the alignment, as TREE-PUZZLE writes them and CONSEL, RAxML and IQ-TREE do: a line
    /// with the numbers of trees and sites, a line for the tree. Sites without a letter have 0. `None` where nobody asked.
    pub(super) fn sites(&self, prepared: &Prepared) -> Option<String> {
        if self.patterns.is_empty() {
            return None;
        }
        let mut sites = vec![0.0; prepared.sites];
        for ((scheme, partition), logs) in prepared.schemes.iter().zip(&prepared.partitions).zip(&self.patterns) {
            for (&site, pattern) in scheme.sites.iter().zip(&partition.patterns.pattern_of_site) {
                sites[site] = pattern.map_or(0.0, |pattern| logs[pattern as usize]);
            }
        }
        let numbers: Vec<String> = sites.iter().map(|value| format!("{value:.6}")).collect();
        Some(format!("1 {}\ntree1 {}\n", prepared.sites, numbers.join(" ")))
    }
}
