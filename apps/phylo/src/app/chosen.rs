//! Models that are chosen before trees are searched.

use super::files;
use super::log::{self, Log};
use super::prepare::{Prepared, Task};
use super::results;
use crate::choose::{self, Candidate, Question};
use crate::error::Error;
use crate::infer::{self, Place, stoppable};
use crate::likelihood::Likelihood;
use crate::model::ModelSpec;
use crate::random::{Purpose, Random};
use crate::search::{Options, Search};
use crate::tree::Tree;
use multigrain::Abort;
use multigrain::rooms::team::strands::{Scheduler, Strand};
use multigrain_simd::Isa;
use std::fmt::Write as _;
use std::sync::Arc;

/// A fit of a given tree that would gain less log-likelihood is not gone on with.
const GAIN: f64 = 0.1;

/// The same request with models for the partitions that name none; `None` where there is nothing to choose. What a
/// checkpoint says was chosen already stays.
pub(super) fn choose(
    prepared: &Prepared,
    scheduler: &Scheduler,
    abort: &Arc<Abort>,
    log: &Log<'_>,
) -> Result<Option<Prepared>, Error> {
    let Some(criterion) = prepared.criterion else { return Ok(None) };
    let mut chosen = prepared.clone();
    if prepared.saved.chosen.is_empty() {
        let first = |strand: &Strand<'_>| guide(prepared, Place::on(prepared, strand, abort));
        let guides = scheduler.run(vec![first]);
        let guide = guides.map_err(|e| Error::run(e.to_string()))?.results.into_iter().next();
        let guide = guide.unwrap_or(Err(Error::Interrupted)).map_err(early)?;
        let ask = |partition: usize| {
            let (guide, abort) = (&guide, abort.clone());
            move |strand: &Strand<'_>| {
                let set = if guide.sets() == 1 { 0 } else { partition };
                let tree = guide.with_sets(&[set]);
                let own = guide.sets() > 1 || prepared.partitions.len() == 1;
                let part = &prepared.partitions[partition];
                let question = Question {
                    patterns: &part.patterns,
                    tree: &tree,
                    lengths: own,
                    speed: prepared.schemes[partition].model.speed == Some(None),
                    branches: results::branches_of(prepared, part),
                    sites: prepared.schemes[partition].sites.len(),
                    criterion,
                    besides: prepared.besides,
                };
                let offload = || Place::on(prepared, strand, &abort).stoppable();
                stoppable(|| choose::choose(&question, &offload))
            }
        };
        let open: Vec<usize> = (0..prepared.schemes.len()).filter(|&p| prepared.schemes[p].is_open).collect();
        let outcome = scheduler.run(open.iter().map(|&p| ask(p)).collect()).map_err(|e| Error::run(e.to_string()))?;
        let mut table = String::from("partition\tmodel\tlogLikelihood\tparameters\t");
        let _ = writeln!(table, "{criterion}\tweight");
        let mut names: Vec<String> = prepared.schemes.iter().map(|scheme| scheme.model.to_string()).collect();
        for (&p, candidates) in open.iter().zip(outcome.results) {
            let candidates: Vec<Candidate> = candidates.map_err(early)?;
            let scheme = &prepared.schemes[p];
            append(&mut table, &scheme.name, &candidates);
            let speed = if scheme.model.speed == Some(None) { "+B" } else { "" };
            names[p] = format!("{}{speed}", candidates[0].name);
            let (value, count) = (candidates[0].value, candidates.len());
            log.timed(&format!(
                "partition {}: {} is the best of {count} models by {criterion} ({value:.4})",
                scheme.name, candidates[0].name
            ));
        }
        chosen.saved.chosen = names;
        prepared.outputs.write(files::MODELS, &table)?;
        if prepared.task == Task::Search {
            log::save(prepared, &mut chosen.saved, log)?;
        }
    }
    let names = chosen.saved.chosen.clone();
    for ((scheme, partition), name) in chosen.schemes.iter_mut().zip(&mut chosen.partitions).zip(&names) {
        scheme.model = ModelSpec::parse(name)?;
        if scheme.model.data_type != partition.patterns.data_type {
            return Err(Error::request(format!(
                "the checkpoint's model {name} is for other data; start anew with --force"
            )));
        }
        partition.model = scheme.model.model(&partition.patterns);
    }
    Ok(Some(chosen))
}

fn early(error: Error) -> Error {
    match error {
        Error::Interrupted => Error::run("interrupted before models were chosen; there is nothing to go on from"),
        other => other,
    }
}

/// The tree that candidates are fitted on: that which is to be evaluated, or that of a quick search under rich models.
fn guide(prepared: &Prepared, place: Place<'_>) -> Result<Tree, Error> {
    let data: Vec<_> = prepared.partitions.iter().map(|p| (&p.patterns, &p.model)).collect();
    let (branches, isa, offload) = (prepared.branches, Isa::detect(), place.stoppable());
    if let Task::Evaluate { tree, .. } = &prepared.task {
        let tree = tree.with_sets(&vec![0; infer::sets(prepared)]);
        let mut likelihood = Likelihood::new(&data, branches, tree, isa, offload);
        return stoppable(|| {
            likelihood.optimize_all(GAIN);
            likelihood.tree().clone()
        });
    }
    let mut random = Random::new(prepared.seed, Purpose::Search, 0);
    let options = Options { constraint: prepared.constraint.clone(), ..Options::replicate() };
    let search = Search::new(&data, branches, options, isa, &mut random, offload);
    let found = stoppable(|| search.run(&mut ()))?;
    found.map(|found| found.tree).ok_or(Error::Interrupted)
}

/// The lines of a partition, the best model first, with the weight of each: exp(-difference / 2), sum 1.
fn append(table: &mut String, partition: &str, candidates: &[Candidate]) {
    let best = candidates.first().map_or(0.0, |c| c.value);
    let share = |value: f64| if value.is_finite() { (0.5 * (best - value)).exp() } else { 0.0 };
    let total: f64 = candidates.iter().map(|c| share(c.value)).sum();
    for Candidate { name, log_likelihood, parameters, value, .. } in candidates {
        let weight = share(*value) / total;
        let _ = writeln!(table, "{partition}\t{name}\t{log_likelihood:.4}\t{parameters}\t{value:.4}\t{weight:.4}");
    }
}
