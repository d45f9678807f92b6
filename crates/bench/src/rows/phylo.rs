//! Maximum-likelihood trees: likelihood kernels beside BEAGLE, one search and bootstraps beside RAxML and IQ-TREE.

use crate::entry::Entry;
use crate::harness::Bench;
use crate::harness::alignments::{DNA, Generated, Source, generated};
use crate::harness::files::Scratch;
use crate::harness::rounds::{Contender, Turn, alternate};
use crate::harness::row::{Bar, Row, Unit};
use multigrain::rooms::team::strands::{Policy, Scheduler, SchedulerOptions};
use multigrain_console::Failure;
use multigrain_phylo::alignment::Patterns;
use multigrain_phylo::app::{Prepared, execute};
use multigrain_phylo::likelihood::{Host, Likelihood};
use multigrain_phylo::model::Model;
use multigrain_phylo::partition::Branches;
use multigrain_phylo::tree::{HalfEdge, Tree};
use multigrain_simd::Isa;
use std::fmt::Write as _;
use std::time::Instant;

pub(super) const ENTRIES: &[Entry] = &[
    Entry::rows("phylo-kernels", "Likelihood kernels of trees; BEAGLE", kernels),
    Entry::rows("phylo-search", "One search for a maximum-likelihood tree; RAxML, IQ-TREE", search),
    Entry::rows("phylo-bootstraps", "Bootstraps of a maximum-likelihood tree; RAxML, IQ-TREE", bootstraps),
];

/// Taxa of the kernels' tree.
const KERNEL_TAXA: usize = 64;
/// Traversals between two looks at the clock, and how many such batches a turn has: as the peer's.
const CALLS: usize = 4;
const BATCHES: usize = 32;
/// Log-likelihoods of the same tree by both sides differ by less than this part of themselves.
const SAME: f64 = 1e-9;
/// A search must find a tree as good as that of the worse peer, up to this part of its log-likelihood: searches from other
/// starting trees end at trees that differ by some hundred thousandths.
const WORSE: f64 = 5e-5;
/// Taxa and sites of generated alignments: those of DS1 of the Bayesian benchmarks, and of the paper's 42_SC.
const SEARCH_SIZE: (usize, usize) = (27, 1949);
const BOOTSTRAP_SIZE: (usize, usize) = (42, 1167);
const SIZE_QUICK: (usize, usize) = (8, 300);
/// A turn of a peer takes up to minutes.
const ROUNDS_MAX: u32 = 3;
/// Replicates of a turn.
const REPLICATES: (u64, u64) = (5, 2);
/// More than the problem of the kernels takes, as text.
const PROBLEM_BYTES: u64 = 16 << 20;

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Run(error.to_string())
}

/// DNA and proteins.
pub(crate) fn kernels(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    Ok(vec![
        traversal(bench, "phylo-kernels-dna", DNA, 1000)?,
        traversal(bench, "phylo-kernels-protein", "LG+G4{0.5}", 300)?,
    ])
}

/// One traversal of a tree (transition matrices, all vectors, the log-likelihood) on one thread, by pattern and inner node.
fn traversal(bench: &Bench<'_>, name: &str, model: &str, sites: usize) -> Result<Row, Failure> {
    let (taxa, sites) = (bench.size(KERNEL_TAXA as u64, 8) as usize, bench.size(sites as u64, 40) as usize);
    let Generated { alignment, tree, model, data_type } = generated(model, taxa, sites)?;
    let patterns = Patterns::new(&alignment, 0..alignment.sites(), data_type);
    let isa = Isa::detect();
    let (data, place) = ([(&patterns, &model)], Box::new(Host));
    let mut likelihood = Likelihood::new(&data, Branches::Linked, tree.clone(), isa, place);
    let each = (patterns.len() * (taxa - 2)) as f64;
    let mut found = 0.0;
    let turn: Turn<'_> = Box::new(|| {
        let mut batches = Vec::with_capacity(BATCHES);
        for _ in 0..BATCHES {
            let begin = Instant::now();
            for _ in 0..CALLS {
                likelihood.invalidate();
                found = likelihood.log_likelihood();
            }
            batches.push(begin.elapsed().as_secs_f64() * 1e9 / CALLS as f64 / each);
        }
        crate::harness::row::median(&batches).ok_or_else(|| failed("nothing was measured"))
    });
    let scratch = Scratch::new(&bench.args.directory, PROBLEM_BYTES)?;
    let file = scratch.path("problem");
    std::fs::write(&file, problem(&patterns, &model, &tree)).map_err(failed)?;
    let options = [("problem", file.display().to_string()), ("calls", CALLS.to_string())];
    let mut peers = [Contender::start(bench, "beagle", "BEAGLE", &options)];
    let ours = alternate(bench, "phylo-kernels", bench.args.rounds, &mut [turn], &mut peers)?.concat();
    let mut notes = vec![format!(
        "{data_type}, {taxa} taxa, {} patterns, four categories, double precision, {isa}, one thread: matrices, all \
         vectors, log-likelihood; for one pattern and inner node",
        patterns.len()
    )];
    if let Some(theirs) = peers[0].last["log_likelihood"].as_f64() {
        if (theirs - found).abs() > SAME * found.abs() {
            return Err(failed(format!("{name}: log-likelihood {found} here, {theirs} by BEAGLE: not the same work")));
        }
        notes.push(format!("log-likelihood {found:.6}, by BEAGLE {theirs:.6}"));
    }
    Ok(Row::new(name, Unit::Nanoseconds, ours, peers, Bar::RatioAtLeast(1.0), notes))
}

/// Tree, data and model as numbers, as `bench/peers/beagle.c` reads them.
fn problem(patterns: &Patterns, model: &Model, tree: &Tree) -> String {
    let (states, taxa, eigen) = (model.states, tree.taxa(), model.eigen());
    let mut text = format!("{states} {taxa} {} {}\n", patterns.len(), model.categories);
    let mut line = |numbers: &mut dyn Iterator<Item = f64>| {
        // Digits that give the same number again.
        numbers.for_each(|x| _ = write!(text, "{x:?} "));
        text.push('\n');
    };
    for list in [&eigen.values, &eigen.right, &eigen.left, &model.frequencies, &model.rates()] {
        line(&mut list.iter().copied());
    }
    line(&mut model.category_weights().into_iter());
    line(&mut patterns.weights.iter().map(|&w| f64::from(w)));
    let masks = patterns.data_type.masks();
    for tips in &patterns.tips {
        line(&mut tips.iter().map(|&code| match masks[usize::from(code)] {
            one if one.is_power_of_two() => f64::from(one.ilog2()),
            _ => states as f64,
        }));
    }
    let branches: Vec<HalfEdge> = tree.branches().collect();
    line(&mut branches.iter().map(|&half| tree.length(half, 0)));
    let branch = |half: HalfEdge| branches.iter().position(|&b| b == half || b == tree.back(half)).unwrap_or(0);
    let node = |half: HalfEdge| if tree.is_tip(half) { half.index() } else { taxa + tree.inner_node(half) };
    // From the tips towards the first of them, below which the tree is evaluated.
    let (first, mut order, mut stack) = (tree.tip(0), Vec::new(), vec![tree.back(tree.tip(0))]);
    while let Some(half) = stack.pop() {
        if !tree.is_tip(half) {
            order.push(half);
            stack.extend(tree.others(half).map(|side| tree.back(side)));
        }
    }
    for &half in order.iter().rev() {
        let [a, b] = tree.others(half);
        let numbers = [node(half), node(tree.back(a)), branch(a), node(tree.back(b)), branch(b)];
        line(&mut numbers.into_iter().map(|x| x as f64));
    }
    let near = [node(tree.back(first)), node(first), branch(first)];
    line(&mut near.into_iter().map(|x| x as f64));
    text
}

/// Processor time of this process so far: user and system, in the ticks of a hundredth of a second that the system counts.
fn cpu_seconds() -> Result<f64, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat").map_err(failed)?;
    // The name of the program, in brackets, may hold anything; 12 fields after it.
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let ticks = |field: usize| fields.get(field).and_then(|text| text.parse::<f64>().ok());
    let ticks = ticks(11).zip(ticks(12)).ok_or_else(|| failed("/proc/self/stat is not as expected"))?;
    Ok((ticks.0 + ticks.1) / 100.0)
}

fn scheduler(bench: &Bench<'_>, workers: usize) -> Result<Scheduler, Failure> {
    let policy = if workers == 1 { Policy::Edtlp } else { Policy::Marginal };
    let bind = workers <= bench.threads();
    Scheduler::new(SchedulerOptions { policy, workers, bind, ..SchedulerOptions::default() }).map_err(failed)
}

fn peers(bench: &Bench<'_>, source: &Source, threads: usize, options: &[(&str, String)]) -> Vec<Contender> {
    let start = |name: &str, label: &str| {
        let mut all = vec![("alignment", source.file.display().to_string())];
        // The last one of an option holds.
        all.push(("threads", threads.to_string()));
        all.extend(options.iter().cloned());
        Contender::start(bench, name, label, &all)
    };
    vec![start("raxml", "RAxML"), start("iqtree", "IQ-TREE")]
}

/// One search from its starting tree to its best tree, on one thread; processor time.
pub(crate) fn search(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let (taxa, sites) = if bench.args.quick { SIZE_QUICK } else { SEARCH_SIZE };
    let source = Source::new(bench, taxa, sites)?;
    let prepared = source.request(&["--searches", "1"])?;
    let scheduler = scheduler(bench, 1)?;
    let mut found = f64::NAN;
    let turn: Turn<'_> = Box::new(|| {
        let begin = cpu_seconds()?;
        let all = execute(&prepared, &scheduler, bench.abort.clone()).map_err(failed)?.found;
        found = all.iter().map(|found| found.log_likelihood).fold(f64::NEG_INFINITY, f64::max);
        Ok((cpu_seconds()? - begin).max(0.01))
    });
    let mut peers = peers(bench, &source, 1, &[("figure", "cpu".into())]);
    let ours = alternate(bench, "phylo-search", bench.args.rounds.min(ROUNDS_MAX), &mut [turn], &mut peers)?.concat();
    let mut notes = vec![format!("one search on one thread, processor seconds: {}, {}", source.what, size(&prepared))];
    let theirs =
        peers.iter().filter_map(|p| Some(format!("{:.3} by {}", p.last["log_likelihood"].as_f64()?, p.label())));
    notes.push(format!(
        "log-likelihood {}",
        [format!("{found:.3}")].into_iter().chain(theirs).collect::<Vec<_>>().join(", ")
    ));
    // A search that ends early at a worse tree is no faster search.
    let worst = peers.iter().filter_map(|p| p.last["log_likelihood"].as_f64()).fold(f64::INFINITY, f64::min);
    let worse = (worst.is_finite() && found < worst - WORSE * worst.abs())
        .then(|| format!("log-likelihood {found:.3} here, {worst:.3} by the worse peer: not the same work"));
    if peers.iter().any(|p| p.version().is_some_and(|version| version.contains("PTHREADS"))) {
        notes.push(
            "this RAxML has two threads at least: its figure is their time on the clock, less than one would take"
                .into(),
        );
    }
    let row = Row::new("phylo-search", Unit::Seconds, ours, peers, Bar::RatioAtLeast(2.0), notes);
    match worse {
        None => Ok(vec![row]),
        Some(why) => Err(Failure::Run(why)),
    }
}

/// Bootstrap replicates on all threads; time on the clock.
pub(crate) fn bootstraps(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let (taxa, sites) = if bench.args.quick { SIZE_QUICK } else { BOOTSTRAP_SIZE };
    let source = Source::new(bench, taxa, sites)?;
    let replicates = bench.size(REPLICATES.0, REPLICATES.1).to_string();
    let prepared = source.request(&["--searches", "0", "--bootstraps", &replicates])?;
    let scheduler = scheduler(bench, bench.threads())?;
    let turn: Turn<'_> = Box::new(|| {
        let begin = Instant::now();
        execute(&prepared, &scheduler, bench.abort.clone()).map_err(failed)?;
        Ok(begin.elapsed().as_secs_f64())
    });
    let options = [("work", "bootstraps".into()), ("replicates", replicates.clone())];
    let mut peers = peers(bench, &source, bench.threads(), &options);
    let ours =
        alternate(bench, "phylo-bootstraps", bench.args.rounds.min(ROUNDS_MAX), &mut [turn], &mut peers)?.concat();
    let threads = bench.threads();
    Ok(vec![Row::new(
        format!("phylo-bootstraps-{threads}"),
        Unit::Seconds,
        ours,
        peers,
        Bar::RatioAtLeast(2.0),
        vec![format!("{replicates} standard bootstraps on {threads} threads: {}, {}", source.what, size(&prepared))],
    )])
}

fn size(prepared: &Prepared) -> String {
    let patterns: usize = prepared.partitions.iter().map(|p| p.patterns.len()).sum();
    format!("{} taxa, {patterns} patterns", prepared.kept_names.len())
}
