//! Texts and files of what was found.

use super::details::Details;
use super::files::{self, Outputs};
use super::log::Log;
use super::memory::Needs;
use super::prepare::Prepared;
use super::report::Report;
use crate::checkpoint::Saved;
use crate::draw;
use crate::error::Error;
use crate::job::{Found, Job, best};
use crate::likelihood::MIN_LENGTH;
use crate::partition::{Branches, Partition};
use crate::support::{Replicates, Support};
use crate::tree::{HalfEdge, Newick, Splits, Tree};
use multigrain::readable_bytes;
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
        let model = match prepared.criterion.filter(|_| scheme.is_open) {
            Some(criterion) => format!("the best {} model by {criterion}", scheme.model.data_type),
            None => scheme.model.to_string(),
        };
        log.line(&format!("partition {}: {model}, {sites} sites, {patterns} patterns", scheme.name));
    }
    if let Some(constraint) = &prepared.constraint {
        let splits = counted(constraint.splits(), "split", "splits");
        log.line(&format!("constraint: {splits} of {} taxa, in every tree", constraint.taxa().len()));
    }
    prepared.notes.iter().for_each(|note| log.line(&format!("note: {note}")));
    let options = scheduler.options();
    if let Some(jobs) = options.strands_max {
        let (needs, threads) = (Needs::of(prepared), options.workers);
        let missing = needs.vectors.saturating_sub(prepared.vectors);
        let [bytes, own] = [needs.without(missing, jobs, threads), Needs::OWN_BYTES].map(readable_bytes);
        let again = match missing {
            0 => String::new(),
            _ => format!(
                "; it has room for {} of {} vectors of conditional likelihoods, the others are computed again when they are",
                prepared.vectors, needs.vectors
            ),
        };
        log.line(&format!(
            "memory: about {bytes} with {own} for the program itself, {} at a time{again}",
            counted(jobs, "job", "jobs")
        ));
    }
    log.line(&format!("seed {}, {} workers, policy {}", prepared.seed, options.workers, options.policy));
    if prepared.saved != Saved::default() {
        let (found, begun) = (prepared.saved.found.len(), prepared.saved.begun.len());
        log.line(&format!(
            "resumed: {} done, {begun} begun",
            counted(found, "search or replicate is", "searches and replicates are")
        ));
    }
}

/// A job, as people count.
pub(crate) fn named(job: Job) -> String {
    match job {
        Job::Search(n) => format!("ML tree search #{}", n + 1),
        Job::Replicate(n) => format!("Bootstrap tree #{}", n + 1),
    }
}

/// Where kernels were executed.
pub(crate) fn account(s: &Statistics, log: &Log<'_>) {
    let teams = match s.on_teams {
        0 => String::new(),
        n => format!(" ({:.1} threads in the mean)", s.team_workers as f64 / n as f64),
    };
    log.timed(&format!(
        "batches of kernels: {} by the thread of their search, {} by another one, {} by several at once{teams}",
        s.calls + s.on_host,
        s.on_one,
        s.on_teams
    ));
}

/// A tree that this program has written.
pub(super) fn read(text: &str, names: &[String]) -> Result<Tree, Error> {
    let newick = Newick::parse(text).map_err(|e| Error::run(format!("a tree of this run: {e}")))?;
    Tree::from_newick(&newick, names, None).map_err(|e| Error::run(format!("a tree of this run: {e}")))
}

/// Files as they are written: none has its name before all are complete, so a disk that fills leaves none of them.
struct Written<'a> {
    outputs: &'a Outputs,
    /// [`Prepared::mark`]
    mark: &'a str,
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
        self.write(files::LOG, &format!("{}{}\n", log.text(), self.mark))?;
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
    let lengths = match prepared.branches {
        Branches::Linked => (2 * prepared.names.len()).saturating_sub(3),
        Branches::Unlinked => prepared.partitions.iter().map(|p| branches_of(prepared, p)).sum(),
    };
    let models: usize = prepared.partitions.iter().map(|p| p.model.free_parameters()).sum();
    // Of speeds only the ratios count, where all are free.
    let speeds = usize::from(prepared.partitions.iter().all(|p| p.model.free.speed));
    models - speeds + lengths
}

/// Free parameters of the lengths of all branches that a partition has.
pub(super) fn branches_of(prepared: &Prepared, partition: &Partition) -> usize {
    (2 * taxa_of(prepared, partition)).saturating_sub(3)
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
    log.line(&format!("Final LogLikelihood: {log_likelihood:.4}"));
    if let Some([akaike, corrected, bayesian]) = report.criteria(prepared.sites) {
        let k = report.free_parameters;
        log.line(&format!("free parameters {k}, AIC {akaike:.4}, AICc {corrected:.4}, BIC {bayesian:.4}"));
    }
    for (name, model) in &report.models {
        log.line(&format!("model of {name}: {}", rounded(model)));
    }
}

/// A text with its numbers to four significant digits: files have them all.
fn rounded(text: &str) -> String {
    let is_number = |c: char| c.is_ascii_digit() || "+-.e".contains(c);
    let mut shown = String::new();
    let mut rest = text;
    while let Some(brace) = rest.find('{') {
        let end = rest[brace..].find('}').map_or(rest.len(), |at| brace + at);
        shown += &rest[..=brace];
        for value in rest[brace + 1..end].split_inclusive('/') {
            let digits = value.trim_end_matches('/');
            match digits.parse::<f64>() {
                Ok(x) if x != 0.0 && digits.chars().all(is_number) => {
                    let decimals = (3 - x.abs().log10().floor() as i32).clamp(0, 9) as usize;
                    shown += &format!("{x:.decimals$}");
                }
                _ => shown += digits,
            }
            shown += &value[digits.len()..];
        }
        rest = &rest[end..];
    }
    shown + rest
}

fn named_models(prepared: &Prepared, models: &[String]) -> Vec<(String, String)> {
    prepared.schemes.iter().map(|s| s.name.clone()).zip(models.iter().cloned()).collect()
}

/// Results of an evaluation.
pub(crate) fn evaluated(
    prepared: &Prepared,
    found: &Found,
    details: &Details,
    fixed: bool,
    log: &Log<'_>,
) -> Result<Report, Error> {
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
    let mut written = Written { outputs: &prepared.outputs, mark: &prepared.mark, files: vec![] };
    let tree = read(&found.trees[0], &prepared.names)?;
    tell_root(prepared, &tree, log);
    write_details(prepared, &tree, details, &mut written)?;
    if !fixed {
        write_best(prepared, found, &mut written)?;
    }
    // Of a number alone nothing is written.
    report.files = if written.files.is_empty() { vec![] } else { written.finish(log)? };
    report.seconds = log.seconds();
    Ok(report)
}

fn write_best(prepared: &Prepared, best: &Found, written: &mut Written<'_>) -> Result<(), Error> {
    if let Some(text) = best.trees.first() {
        let tree = match prepared.outgroup.is_empty() {
            true => format!("{text}\n"),
            false => labelled(prepared, &read(text, &prepared.names)?, &BTreeMap::new()),
        };
        written.write(files::BEST_TREE, &tree)?;
    }
    if best.trees.len() > 1 {
        let trees: String = best.trees[1..].iter().map(|t| format!("{t}\n")).collect();
        written.write(files::PARTITION_TREES, &trees)?;
    }
    written.write(files::BEST_MODEL, &best_model(prepared, &best.models))
}

/// What is known of the best tree besides.
fn write_details(prepared: &Prepared, tree: &Tree, details: &Details, written: &mut Written<'_>) -> Result<(), Error> {
    let labels = details.labels(prepared, tree);
    if prepared.alrt > 0 {
        written.write(files::ALRT, &labelled(prepared, tree, &labels))?;
    }
    details.sites(prepared).map_or(Ok(()), |sites| written.write(files::SITES, &sites))
}

fn lines<'a>(found: impl Iterator<Item = &'a Found>) -> String {
    found.filter_map(|f| f.trees.first()).map(|t| format!("{t}\n")).collect()
}

/// Shorter branches, which optimisation has left at its lower bound, divide nothing.
const COLLAPSED: f64 = 2.0 * MIN_LENGTH;

/// The splits of the branches that have a length: two trees that differ only in how branches of no length resolve a node are
/// one.
fn topology(tree: &Tree) -> Vec<Vec<u64>> {
    let Splits { branches, sets } = Splits::new(tree);
    let of_length = branches.into_iter().zip(sets).filter(|(half, _)| tree.length(*half, 0) > COLLAPSED);
    let mut sets: Vec<Vec<u64>> = of_length.map(|(_, set)| set).collect();
    sets.sort_unstable();
    sets
}

/// `1 search`, `2 searches`.
fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Results of searches and replicates.
pub(crate) fn searched(
    prepared: &Prepared,
    found: &[Found],
    details: &Details,
    ultrafast: &[String],
    log: &Log<'_>,
) -> Result<Report, Error> {
    let names = &prepared.names;
    let is_search = |f: &&Found| matches!(f.job, Job::Search(_));
    let searches: Vec<&Found> = found.iter().filter(is_search).collect();
    let replicates: Vec<&Found> = found.iter().filter(|f| !is_search(f)).collect();
    let best = best(found);
    let mut written = Written { outputs: &prepared.outputs, mark: &prepared.mark, files: vec![] };
    let mut collected = Replicates::default();
    for f in &replicates {
        collected.add(&Splits::new(&read(&f.trees[0], names)?));
    }
    let mut topologies = HashSet::new();
    for f in &searches {
        topologies.insert(topology(&read(&f.trees[0], names)?));
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
        let count = counted(searches.len(), "search", "searches");
        log.line(&format!("{count} found {}", counted(report.topologies, "topology", "different topologies")));
        summarize(&report, prepared, log);
        write_best(prepared, best, &mut written)?;
        written.write(files::ML_TREES, &lines(searches.iter().copied()))?;
        let tree = read(&best.trees[0], names)?;
        tell_root(prepared, &tree, log);
        let percent = |s: &Support| format!("{}", (100.0 * s.felsenstein).round());
        let supports = collected.supports(&Splits::new(&tree), names.len());
        if !supports.is_empty() {
            written.write(files::SUPPORT, &labelled(prepared, &tree, &labels(&tree, &supports, &percent)))?;
            let share = |s: &Support| format!("{:.4}", s.transfer);
            written.write(files::TRANSFER, &labelled(prepared, &tree, &labels(&tree, &supports, &share)))?;
        }
        let mut quick = Replicates::default();
        for text in ultrafast {
            quick.add(&Splits::new(&read(text, names)?));
        }
        let quick_supports = quick.supports(&Splits::new(&tree), names.len());
        if !quick_supports.is_empty() {
            let lines: Vec<&str> = ultrafast.iter().flat_map(|text| [text, "\n"]).collect();
            written.write(files::ULTRAFAST, &lines.concat())?;
            let labels = labels(&tree, &quick_supports, &percent);
            written.write(files::ULTRAFAST_SUPPORT, &labelled(prepared, &tree, &labels))?;
            let consensus = format!("{}\n", quick.majority_consensus(names).to_text());
            written.write(files::ULTRAFAST_CONSENSUS, &consensus)?;
        }
        write_details(prepared, &tree, details, &mut written)?;
        let labels = match [&supports, &quick_supports].into_iter().find(|supports| !supports.is_empty()) {
            None => details.labels(prepared, &tree),
            Some(supports) => labels(&tree, supports, &percent),
        };
        written.write(files::PICTURE, &picture(prepared, &tree, &labels, best))?;
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

fn labelled(prepared: &Prepared, tree: &Tree, labels: &BTreeMap<HalfEdge, String>) -> String {
    let label = |half: HalfEdge| labels.get(&half).cloned();
    let newick = match root(prepared, tree) {
        Some(half) => draw::rooted_at(tree, &prepared.names, 0, &label, half, 0.5 * tree.length(half, 0)),
        None => tree.to_newick(&prepared.names, 0, &label),
    };
    format!("{}\n", newick.to_text())
}

/// The branch on one side of which the outgroup is, and nothing else; `None` where there is no such branch, or no outgroup.
fn root(prepared: &Prepared, tree: &Tree) -> Option<HalfEdge> {
    let outgroup = &prepared.outgroup;
    let has = |taxon: usize| outgroup.binary_search(&taxon).is_ok();
    let taxa = tree.taxa();
    match outgroup.len() {
        0 => return None,
        1 => return Some(tree.tip(outgroup[0])),
        n if n + 1 == taxa => return (0..taxa).find(|&taxon| !has(taxon)).map(|taxon| tree.tip(taxon)),
        _ => {}
    }
    let Splits { branches, sets } = Splits::new(tree);
    // Sets do not have the first taxon.
    let is_side = |set: &Vec<u64>| (0..taxa).all(|t| (set[t / 64] >> (t % 64) & 1 == 1) == (has(t) != has(0)));
    branches.into_iter().zip(&sets).find(|(_, set)| is_side(set)).map(|(half, _)| half)
}

/// Says where the trees are rooted.
fn tell_root(prepared: &Prepared, tree: &Tree, log: &Log<'_>) {
    if !prepared.outgroup.is_empty() && root(prepared, tree).is_none() {
        log.line("note: no branch of the best tree divides the outgroup from the others: trees are not rooted there");
    }
}

fn picture(prepared: &Prepared, tree: &Tree, labels: &BTreeMap<HalfEdge, String>, best: &Found) -> String {
    let label = |half: HalfEdge| labels.get(&half).cloned();
    let (rooted, place) = match root(prepared, tree) {
        Some(half) => {
            let below = 0.5 * tree.length(half, 0);
            (draw::rooted_at(tree, &prepared.names, 0, &label, half, below), "the outgroup")
        }
        None => (draw::rooted_at_midpoint(tree, &prepared.names, 0, &label), "the middle of the longest path"),
    };
    let mut models: Vec<String> = prepared.schemes.iter().map(|s| s.model.to_string()).collect();
    models.dedup();
    let model = models.join(", ");
    draw::svg(&rooted, &format!("{model}, log-likelihood {:.3}, rooted at {place}", best.log_likelihood))
}

#[cfg(test)]
mod tests {
    use super::{counted, rounded, topology};
    use crate::tree::{Newick, Tree};

    #[test]
    fn people_see_four_digits() {
        let model = "GTR{57740.50092635509/0.00123456789/1}+FU{0.21116908518695424/0.3}+G4m{0.02}+B{12.345678}";
        assert_eq!(rounded(model), "GTR{57741/0.001235/1.000}+FU{0.2112/0.3000}+G4m{0.02000}+B{12.35}");
        assert_eq!(rounded("JC"), "JC");
        assert_eq!(counted(1, "search", "searches"), "1 search");
        assert_eq!(counted(2, "search", "searches"), "2 searches");
    }

    #[test]
    fn branches_of_no_length_make_no_topology() {
        let names: Vec<String> = (0..5).map(|t| format!("t{t}")).collect();
        let read = |text: &str| topology(&Tree::from_newick(&Newick::parse(text).unwrap(), &names, None).unwrap());
        let [a, b] = ["(t0:1,t1:1,(t2:1,(t3:1,t4:1):1e-6):1);", "(t0:1,t1:1,((t2:1,t3:1):1e-6,t4:1):1);"].map(read);
        assert_eq!(a, b);
        assert_ne!(a, read("(t0:1,t1:1,((t2:1,t3:1):0.01,t4:1):1);"));
    }
}
