//! Texts and files of what was found.

use super::files::{self, Outputs};
use super::prepare::Prepared;
use super::report::Report;
use super::run::Log;
use crate::checkpoint::Saved;
use crate::draw;
use crate::error::Error;
use crate::job::{Found, Job};
use crate::partition::{Branches, Partition};
use crate::support::{Replicates, Support};
use crate::tree::{HalfEdge, Newick, Splits, Tree};
use multigrain::rooms::team::strands::{Scheduler, Statistics};
use multigrain::whole::WholeFile;
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

/// The first lines of a log.
pub(crate) fn introduce(prepared: &Prepared, scheduler: &Scheduler, log: &Log<'_>) {
    log.line(&format!("multigrain phylo {}", env!("CARGO_PKG_VERSION")));
    let (taxa, kept, sites) = (prepared.names.len(), prepared.kept_names.len(), prepared.sites);
    let gaps = prepared.gap_columns;
    log.line(&format!("alignment: {taxa} taxa, {kept} of them different, {sites} sites, {gaps} of them gaps only"));
    match (prepared.partitions.len(), prepared.branches) {
        (1, _) => {}
        (count, Branches::Linked) if prepared.schemes.iter().any(|scheme| scheme.model.speed.is_some()) => {
            log.line(&format!("{count} partitions with branch lengths times the speed of each"));
        }
        (count, Branches::Linked) => log.line(&format!("{count} partitions with linked branch lengths")),
        (count, Branches::Unlinked) => log.line(&format!("{count} partitions with unlinked branch lengths")),
    }
    for (scheme, partition) in prepared.schemes.iter().zip(&prepared.partitions) {
        let (patterns, sites) = (partition.patterns.len(), scheme.sites.len());
        log.line(&format!("partition {}: {}, {sites} sites, {patterns} patterns", scheme.name, scheme.model));
    }
    prepared.notes.iter().for_each(|note| log.line(&format!("note: {note}")));
    let options = scheduler.options();
    log.line(&format!("seed {}, {} workers, policy {}", prepared.seed, options.workers, options.policy));
    if prepared.saved != Saved::default() {
        let (found, begun) = (prepared.saved.found.len(), prepared.saved.begun.len());
        log.line(&format!("resumed: {found} jobs are done, {begun} were begun"));
    }
}

/// Where kernels were executed.
pub(crate) fn account(s: &Statistics, log: &Log<'_>) {
    let teams = match s.on_teams {
        0 => String::new(),
        n => format!(" (of {:.1} workers in the mean)", s.team_workers as f64 / n as f64),
    };
    log.timed(&format!(
        "off-loads: {} as plain calls, {} on hosts, {} on one worker, {} on teams{teams}",
        s.calls, s.on_host, s.on_one, s.on_teams
    ));
}

/// A tree that this program has written.
fn read(text: &str, names: &[String]) -> Result<Tree, Error> {
    let newick = Newick::parse(text).map_err(|e| Error::run(format!("a tree of this run: {e}")))?;
    Tree::from_newick(&newick, names, None).map_err(|e| Error::run(format!("a tree of this run: {e}")))
}

/// Files as they are written: none has its name before all are complete, so a disk that fills leaves none of them.
struct Written<'a> {
    outputs: &'a Outputs,
    files: Vec<(String, WholeFile)>,
}

impl Written<'_> {
    fn write(&mut self, word: &str, text: &str) -> Result<(), Error> {
        self.files.push((word.to_owned(), self.outputs.begin(word, text)?));
        Ok(())
    }

    /// The last file: it names all others.
    fn finish(mut self, log: &Log<'_>) -> Result<Vec<(String, PathBuf)>, Error> {
        for (word, file) in &self.files {
            log.line(&format!("{word}: {}", file.path().display()));
        }
        log.timed("done");
        self.write(files::LOG, &log.text())?;
        self.files.into_iter().map(|(word, file)| Ok((word, files::publish(file)?))).collect()
    }
}

/// The models with the sites that they are for, as a partition file.
fn best_model(prepared: &Prepared, models: &[String]) -> String {
    let lines = prepared.schemes.iter().zip(models);
    lines.map(|(scheme, model)| format!("{model}, {} = {}\n", scheme.name, scheme.ranges())).collect()
}

/// Parameters as IQ-TREE and RAxML-NG count them: those of the models, and branch lengths, of which a partition with lengths
/// of its own has those of the tree of the taxa that it has.
fn free_parameters(prepared: &Prepared) -> usize {
    let branches = |taxa: usize| (2 * taxa).saturating_sub(3);
    let lengths = match prepared.branches {
        Branches::Linked => branches(prepared.names.len()),
        Branches::Unlinked => prepared.partitions.iter().map(|p| branches(taxa_of(prepared, p))).sum(),
    };
    let models: usize = prepared.partitions.iter().map(|p| p.model.free_parameters()).sum();
    // Of speeds only the ratios count, where all are free.
    let speeds = usize::from(prepared.partitions.iter().all(|p| p.model.free.speed));
    models - speeds + lengths
}

/// How many taxa have any letter in the partition that is not a gap.
fn taxa_of(prepared: &Prepared, partition: &Partition) -> usize {
    let patterns = &partition.patterns;
    let gap = patterns.data_type.gap();
    let has_letters: Vec<bool> = patterns.tips.iter().map(|tip| tip.iter().any(|&code| code != gap)).collect();
    prepared.representatives.iter().filter(|&&kept| has_letters[kept]).count()
}

fn summarize(report: &Report, prepared: &Prepared, log: &Log<'_>) {
    let Some(log_likelihood) = report.log_likelihood else { return };
    log.line(&format!("Final LogLikelihood: {log_likelihood:.6}"));
    if let Some([akaike, corrected, bayesian]) = report.criteria(prepared.sites) {
        let k = report.free_parameters;
        log.line(&format!("free parameters {k}, AIC {akaike:.6}, AICc {corrected:.6}, BIC {bayesian:.6}"));
    }
    for (name, model) in &report.models {
        log.line(&format!("model of {name}: {model}"));
    }
}

fn named_models(prepared: &Prepared, models: &[String]) -> Vec<(String, String)> {
    prepared.schemes.iter().map(|s| s.name.clone()).zip(models.iter().cloned()).collect()
}

/// Results of an evaluation.
pub(crate) fn evaluated(prepared: &Prepared, found: &Found, fixed: bool, log: &Log<'_>) -> Result<Report, Error> {
    let mut report = Report {
        log_likelihood: Some(found.log_likelihood),
        searches: vec![],
        topologies: 1,
        replicates: 0,
        models: named_models(prepared, &found.models),
        free_parameters: if fixed { 0 } else { free_parameters(prepared) },
        tree: found.trees.first().cloned(),
        files: vec![],
        seconds: 0.0,
    };
    summarize(&report, prepared, log);
    if !fixed {
        let mut written = Written { outputs: &prepared.outputs, files: vec![] };
        write_best(prepared, found, &mut written)?;
        report.files = written.finish(log)?;
    }
    report.seconds = log.seconds();
    Ok(report)
}

fn write_best(prepared: &Prepared, best: &Found, written: &mut Written<'_>) -> Result<(), Error> {
    if let Some(tree) = best.trees.first() {
        written.write(files::BEST_TREE, &format!("{tree}\n"))?;
    }
    if best.trees.len() > 1 {
        let trees: String = best.trees[1..].iter().map(|t| format!("{t}\n")).collect();
        written.write(files::PARTITION_TREES, &trees)?;
    }
    written.write(files::BEST_MODEL, &best_model(prepared, &best.models))
}

fn lines<'a>(found: impl Iterator<Item = &'a Found>) -> String {
    found.filter_map(|f| f.trees.first()).map(|t| format!("{t}\n")).collect()
}

/// Results of searches and replicates.
pub(crate) fn searched(prepared: &Prepared, found: &[Found], log: &Log<'_>) -> Result<Report, Error> {
    let names = &prepared.names;
    let is_search = |f: &&Found| matches!(f.job, Job::Search(_));
    let searches: Vec<&Found> = found.iter().filter(is_search).collect();
    let replicates: Vec<&Found> = found.iter().filter(|f| !is_search(f)).collect();
    // The first of equals, whichever was ready first.
    let best = searches.iter().copied().reduce(|a, b| if b.log_likelihood > a.log_likelihood { b } else { a });
    let mut written = Written { outputs: &prepared.outputs, files: vec![] };
    let mut collected = Replicates::default();
    for f in &replicates {
        collected.add(&Splits::new(&read(&f.trees[0], names)?));
    }
    let mut topologies = HashSet::new();
    for f in &searches {
        let mut sets = Splits::new(&read(&f.trees[0], names)?).sets;
        sets.sort_unstable();
        topologies.insert(sets);
    }
    let mut report = Report {
        log_likelihood: best.map(|b| b.log_likelihood),
        searches: searches.iter().map(|f| f.log_likelihood).collect(),
        topologies: topologies.len(),
        replicates: replicates.len(),
        models: best.map(|b| named_models(prepared, &b.models)).unwrap_or_default(),
        free_parameters: free_parameters(prepared),
        tree: best.map(|b| b.trees[0].clone()),
        files: vec![],
        seconds: 0.0,
    };
    if let Some(best) = best {
        let (count, topologies) = (searches.len(), report.topologies);
        log.line(&format!("{count} searches found {topologies} different topologies"));
        summarize(&report, prepared, log);
        write_best(prepared, best, &mut written)?;
        written.write(files::ML_TREES, &lines(searches.iter().copied()))?;
        let tree = read(&best.trees[0], names)?;
        let supports = collected.supports(&Splits::new(&tree), names.len());
        if !supports.is_empty() {
            let percent = |s: &Support| format!("{}", (100.0 * s.felsenstein).round());
            written.write(files::SUPPORT, &labelled(&tree, names, &supports, &percent))?;
            let share = |s: &Support| format!("{:.4}", s.transfer);
            written.write(files::TRANSFER, &labelled(&tree, names, &supports, &share))?;
        }
        written.write(files::PICTURE, &picture(prepared, &tree, &supports, best))?;
    }
    if !replicates.is_empty() {
        written.write(files::BOOTSTRAPS, &lines(replicates.iter().copied()))?;
        written.write(files::CONSENSUS, &format!("{}\n", collected.majority_consensus(names).to_text()))?;
    }
    report.files = written.finish(log)?;
    report.seconds = log.seconds();
    Ok(report)
}

/// Labels of branches, by either half-edge.
fn labels(tree: &Tree, supports: &[Support], text: &dyn Fn(&Support) -> String) -> BTreeMap<HalfEdge, String> {
    let both = |s: &Support| [(s.branch, text(s)), (tree.back(s.branch), text(s))];
    supports.iter().flat_map(both).collect()
}

fn labelled(tree: &Tree, names: &[String], supports: &[Support], text: &dyn Fn(&Support) -> String) -> String {
    let labels = labels(tree, supports, text);
    format!("{}\n", tree.to_newick(names, 0, &|half| labels.get(&half).cloned()).to_text())
}

fn picture(prepared: &Prepared, tree: &Tree, supports: &[Support], best: &Found) -> String {
    let labels = labels(tree, supports, &|s| format!("{}", (100.0 * s.felsenstein).round()));
    let rooted = draw::rooted_at_midpoint(tree, &prepared.names, 0, &|half| labels.get(&half).cloned());
    let mut models: Vec<String> = prepared.schemes.iter().map(|s| s.model.to_string()).collect();
    models.dedup();
    let model = models.join(", ");
    draw::svg(&rooted, &format!("{model}, log-likelihood {:.3}", best.log_likelihood))
}
