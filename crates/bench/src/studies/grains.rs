//! `multigrain bench multigrain`: 1 to 16 searches under every policy, and the curves of them.
//!
//! After figures 7 and 8 of Blagojevic, Nikolopoulos, Stamatakis and Antonopoulos, "Dynamic multigrain parallelization on
//! the Cell Broadband Engine" (PPoPP 2007): time over the number of searches, first under policies that do not adapt,
//! then under those that do, beside an oracle that knows the best of the former for each number. The alignment is that of
//! `--alignment`, or a generated one with fewer taxa than the paper's (a search is over sooner) and of proteins (a kernel
//! takes longer).
//!
//! In a turn every policy runs once, each turn beginning with another one, and times are compared within their turn: what
//! slows the computer down for minutes slows all of them.

mod samples;

use crate::figures::lines::{Lines, Scale, Series};
use crate::harness::alignments::Source;
use crate::harness::{Bench, rounds};
use multigrain::rooms::team::strands::{Policy, Scheduler, SchedulerOptions};
use multigrain_console::Failure;
use multigrain_console::table;
use multigrain_console::write_whole;
use multigrain_phylo::app::execute;
use samples::{Sample, Samples};
use serde_json::{Value, json};
use std::time::Instant;

/// Searches at most, as in the figures' first parts.
const SEARCHES: u32 = 16;
const SEARCHES_QUICK: u32 = 4;
/// The model, taxa and sites of the generated alignment: a search takes some tenths of a second, a kernel some 20 us.
const MODEL: &str = "LG+G4{0.5}";
const SIZE: (usize, usize) = (7, 250);
const SIZE_QUICK: (usize, usize) = (6, 40);

/// The policies that do not adapt, and those that do.
fn policies(workers: usize) -> (Vec<Policy>, Vec<Policy>) {
    (Policy::fixed(workers as u32), vec![Policy::Mgps, Policy::Marginal])
}

/// One run of so many searches under a policy, in seconds.
fn seconds(bench: &Bench<'_>, source: &Source, searches: usize, policy: Policy) -> Result<f64, Failure> {
    let prepared = source.request(&["--searches", &searches.to_string()])?;
    let options = SchedulerOptions { policy, workers: bench.threads(), ..SchedulerOptions::default() };
    let scheduler = Scheduler::new(options).map_err(|e| Failure::Request(e.to_string()))?;
    let begun = Instant::now();
    let done = execute(&prepared, &scheduler, bench.abort.clone()).map_err(|e| match &bench.args.samples {
        Some(path) if bench.abort.is_raised() => {
            Failure::Run(format!("interrupted; turns that were whole are in {}", path.display()))
        }
        None if bench.abort.is_raised() => Failure::Run("interrupted; nothing is left behind".to_owned()),
        _ => Failure::Run(e.to_string()),
    })?;
    let taken = begun.elapsed().as_secs_f64();
    match done.found.len() {
        found if found == searches => Ok(taken),
        found => Err(Failure::Run(format!("{found} of {searches} searches came back"))),
    }
}

fn measure(
    bench: &Bench<'_>,
    source: &Source,
    counts: &[usize],
    every: &[Policy],
    samples: &mut Samples,
) -> Result<(), Failure> {
    for &searches in counts {
        for round in 0..bench.args.rounds {
            let turn = samples.next_turn(searches);
            let mut order = every.to_vec();
            order.rotate_left(turn as usize % every.len());
            let mut taken = Vec::with_capacity(order.len());
            for policy in order {
                rounds::status(&format!("{searches} searches, {policy}: turn {} of {}", round + 1, bench.args.rounds));
                let seconds = seconds(bench, source, searches, policy)?;
                taken.push(Sample { searches, turn, policy, seconds });
            }
            // Whole turns only.
            samples.all.extend(taken);
            samples.save()?;
        }
    }
    rounds::status("");
    Ok(())
}

fn median(samples: &Samples, searches: usize, policy: Policy) -> Option<f64> {
    let seconds: Vec<f64> = samples.of(searches, policy).into_iter().map(|(_, seconds)| seconds).collect();
    crate::harness::row::median(&seconds)
}

/// The policy that an oracle would choose among those that do not adapt, and its median time.
fn oracle(samples: &Samples, searches: usize, fixed: &[Policy]) -> Option<(Policy, f64)> {
    let times = fixed.iter().filter_map(|&policy| Some((policy, median(samples, searches, policy)?)));
    times.min_by(|a, b| a.1.total_cmp(&b.1))
}

fn curve(samples: &Samples, counts: &[usize], policy: Policy) -> Series {
    let points = counts.iter().filter_map(|&n| Some((n as f64, median(samples, n, policy)?)));
    Series { name: policy.to_string(), points: points.collect(), marks: false }
}

/// Measures, draws the figures, and gives text and JSON.
pub(super) fn grains(bench: &Bench<'_>) -> Result<(String, Value), Failure> {
    let workers = bench.threads();
    let (fixed, adaptive) = policies(workers);
    let every: Vec<Policy> = fixed.iter().chain(&adaptive).copied().collect();
    let quick = bench.args.quick;
    let (most, (taxa, sites)) = if quick { (SEARCHES_QUICK, SIZE_QUICK) } else { (SEARCHES, SIZE) };
    let asked: Vec<usize> = match &bench.args.searches[..] {
        [] => (1..=most as usize).collect(),
        named => named.iter().map(|&n| n as usize).collect(),
    };
    let source = Source::of_model(bench, MODEL, taxa, sites)?;
    let mut samples = Samples::load(bench.args.samples.clone(), &source.what, workers)?;
    measure(bench, &source, &asked, &every, &mut samples)?;
    let mut counts: Vec<usize> = samples.all.iter().map(|s| s.searches).collect();
    counts.sort_unstable();
    counts.dedup();
    let best = Series {
        name: "best static choice".to_owned(),
        marks: false,
        points: counts.iter().filter_map(|&n| Some((n as f64, oracle(&samples, n, &fixed)?.1))).collect(),
    };
    let axes = |title: &str, series: Vec<Series>| Lines {
        title: format!("{title}: {}, {workers} workers", source.what),
        x: "searches".to_owned(),
        y: "seconds".to_owned(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        series,
    };
    let curves = |policies: &[Policy]| policies.iter().map(|&p| curve(&samples, &counts, p)).collect::<Vec<_>>();
    let mut second = curves(&adaptive);
    second.extend([curve(&samples, &counts, Policy::Edtlp), best]);
    let mut written = Vec::new();
    for (name, lines) in [
        ("multigrain-static.svg", axes("Policies that do not adapt", curves(&fixed))),
        ("multigrain-adaptive.svg", axes("Policies that adapt", second)),
    ] {
        let path = bench.figures().join(name);
        write_whole(&path, &lines.svg())?;
        written.push(path.display().to_string());
    }
    let text = format!("{}\nfigures: {}\n", text(&samples, &every, &fixed, &counts), written.join(", "));
    let values: Vec<Value> = counts
        .iter()
        .flat_map(|&n| every.iter().map(move |&p| (n, p)))
        .filter_map(|(n, p)| object(&samples, n, p, &fixed))
        .collect();
    Ok((text, json!({ "multigrain": values, "alignment": source.what, "workers": workers, "figures": written })))
}

/// For people: a line for each number of searches; the oracle's choice and seconds, then medians of ratios to it.
fn text(samples: &Samples, every: &[Policy], fixed: &[Policy], counts: &[usize]) -> String {
    let mut lines = vec![["searches", "turns", "best static", "s"].map(str::to_owned).to_vec()];
    lines[0].extend(every.iter().map(|p| p.to_string()));
    lines[0].extend(["mgps / edtlp", "marginal / edtlp"].map(str::to_owned));
    let ratio = |n, policy, to| {
        crate::harness::row::median(&samples.ratios(n, policy, to))
            .map_or_else(String::new, |ratio| format!("{ratio:.3}"))
    };
    for &n in counts {
        let Some((best, seconds)) = oracle(samples, n, fixed) else { continue };
        let turns = samples.of(n, best).len().to_string();
        let mut line = vec![n.to_string(), turns, best.to_string(), format!("{seconds:.3}")];
        line.extend(every.iter().map(|&policy| ratio(n, policy, best)));
        line.extend([Policy::Mgps, Policy::Marginal].map(|policy| ratio(n, policy, Policy::Edtlp)));
        lines.push(line);
    }
    format!(
        "time over that of the best static choice, by policy: medians of the ratios of the turns\n{}",
        table::render(&lines, 0)
    )
}

/// For programs.
fn object(samples: &Samples, searches: usize, policy: Policy, fixed: &[Policy]) -> Option<Value> {
    let (best, oracle_seconds) = oracle(samples, searches, fixed)?;
    Some(json!({
        "policy": policy.to_string(),
        "searches": searches,
        "seconds": median(samples, searches, policy)?,
        "samples": samples.of(searches, policy).into_iter().map(|(_, seconds)| seconds).collect::<Vec<_>>(),
        "oracle": best.to_string(),
        "oracle_seconds": oracle_seconds,
        "ratios_to_oracle": samples.ratios(searches, policy, best),
        "ratios_to_edtlp": samples.ratios(searches, policy, Policy::Edtlp),
    }))
}
