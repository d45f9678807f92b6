//! `multigrain bench multigrain`: 1 to 16 searches under every policy, and the curves of them.
//!
//! After figures 7 and 8 of Blagojevic, Nikolopoulos, Stamatakis and Antonopoulos, "Dynamic multigrain parallelization on
//! the Cell Broadband Engine" (PPoPP 2007): time over the number of searches, first under policies that do not adapt,
//! then under those that do, beside an oracle that knows the best of the former for each number. The alignment is that of
//! `--alignment`, or a generated one with fewer taxa than the paper's (a search is over sooner) and more sites (a kernel takes
//! longer).

use super::alignments::Source;
use super::lines::{Lines, Scale, Series};
use super::{Bench, rounds};
use crate::failure::Failure;
use crate::output::write_whole;
use crate::table;
use multigrain::rooms::team::strands::{Policy, Scheduler, SchedulerOptions, Statistics};
use multigrain_phylo::app::execute;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

/// Searches at most, as in the figures' first parts.
const SEARCHES: usize = 16;
const SEARCHES_QUICK: usize = 4;
/// Taxa and sites of the generated alignment.
const SIZE: (usize, usize) = (12, 3000);
const SIZE_QUICK: (usize, usize) = (8, 300);

/// What a policy took for a number of searches: the median of all turns.
struct Measured {
    policy: Policy,
    searches: usize,
    seconds: f64,
    statistics: Statistics,
}

/// The policies that do not adapt, and those that do.
fn policies(workers: usize) -> (Vec<Policy>, Vec<Policy>) {
    (Policy::fixed(workers as u32), vec![Policy::Mgps, Policy::Marginal])
}

fn measure(bench: &Bench<'_>, source: &Source, searches: usize, all: &[Policy]) -> Result<Vec<Measured>, Failure> {
    let prepared = source.request(&["--searches", &searches.to_string()])?;
    let mut seconds = vec![Vec::new(); all.len()];
    let mut statistics = vec![Statistics::default(); all.len()];
    for turn in 0..bench.args.rounds {
        for (i, &policy) in all.iter().enumerate() {
            rounds::status(&format!("{searches} searches, {policy}: turn {} of {}", turn + 1, bench.args.rounds));
            let options = SchedulerOptions { policy, workers: bench.threads(), ..SchedulerOptions::default() };
            let scheduler = Scheduler::new(options).map_err(|e| Failure::Request(e.to_string()))?;
            let begun = Instant::now();
            let (found, counted) =
                execute(&prepared, &scheduler, bench.abort.clone()).map_err(|e| Failure::Run(e.to_string()))?;
            seconds[i].push(begun.elapsed().as_secs_f64());
            statistics[i] = counted;
            if found.len() != searches {
                return Err(Failure::Run(format!("{} of {searches} searches came back", found.len())));
            }
        }
    }
    let measured = all.iter().zip(seconds).zip(statistics).map(|((&policy, seconds), statistics)| Measured {
        policy,
        searches,
        seconds: super::row::median(&seconds).unwrap_or(f64::NAN),
        statistics,
    });
    Ok(measured.collect())
}

/// The time that an oracle would take which knows the best policy that does not adapt for this number of searches.
fn oracle(all: &[Measured], searches: usize, fixed: &[Policy]) -> f64 {
    let times = all.iter().filter(|m| m.searches == searches && fixed.contains(&m.policy)).map(|m| m.seconds);
    times.fold(f64::INFINITY, f64::min)
}

fn curve(all: &[Measured], policy: Policy) -> Series {
    let points = all.iter().filter(|m| m.policy == policy).map(|m| (m.searches as f64, m.seconds));
    Series { name: policy.to_string(), points: points.collect(), marks: false }
}

/// Measures, writes the figures into `folder`, and gives text and JSON.
pub(super) fn grains(bench: &Bench<'_>, folder: &Path) -> Result<(String, Value), Failure> {
    let (fixed, adaptive) = policies(bench.threads());
    let every: Vec<Policy> = fixed.iter().chain(&adaptive).copied().collect();
    let quick = bench.args.quick;
    let (most, (taxa, sites)) = if quick { (SEARCHES_QUICK, SIZE_QUICK) } else { (SEARCHES, SIZE) };
    let source = Source::new(bench, taxa, sites)?;
    let measured = (1..=most).map(|searches| measure(bench, &source, searches, &every)).collect::<Result<Vec<_>, _>>();
    let all: Vec<Measured> = measured?.into_iter().flatten().collect();
    let counts: Vec<usize> = (1..=most).collect();
    let best = Series {
        name: "best static choice".to_owned(),
        marks: false,
        points: counts.iter().map(|&n| (n as f64, oracle(&all, n, &fixed))).collect(),
    };
    let axes = |title: &str, series: Vec<Series>| Lines {
        title: format!("{title}: {}, {} workers", source.what, bench.threads()),
        x: "searches".to_owned(),
        y: "seconds".to_owned(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        series,
    };
    let mut second: Vec<Series> = adaptive.iter().map(|&p| curve(&all, p)).collect();
    second.extend([curve(&all, Policy::Edtlp), best]);
    let mut written = Vec::new();
    for (name, lines) in [
        ("multigrain-static.svg", axes("Policies that do not adapt", fixed.iter().map(|&p| curve(&all, p)).collect())),
        ("multigrain-adaptive.svg", axes("Policies that adapt", second)),
    ] {
        let path = folder.join(name);
        write_whole(&path, &lines.svg())?;
        written.push(path.display().to_string());
    }
    let text = format!("{}\nfigures: {}\n", text(&all, &every, &fixed, &counts), written.join(", "));
    let values: Vec<Value> = all.iter().map(|m| object(m, oracle(&all, m.searches, &fixed))).collect();
    Ok((
        text,
        json!({ "multigrain": values, "alignment": source.what, "workers": bench.threads(), "figures": written }),
    ))
}

/// For people: a line for each number of searches; seconds of the oracle, then ratios to it.
fn text(all: &[Measured], every: &[Policy], fixed: &[Policy], counts: &[usize]) -> String {
    let mut lines = vec![vec!["searches".to_owned(), "best static, s".to_owned()]];
    lines[0].extend(every.iter().map(|p| p.to_string()));
    for &searches in counts {
        let best = oracle(all, searches, fixed);
        let mut line = vec![searches.to_string(), format!("{best:.3}")];
        for policy in every {
            let found = all.iter().find(|m| m.searches == searches && m.policy == *policy);
            line.push(found.map_or_else(String::new, |m| format!("{:.3}", m.seconds / best)));
        }
        lines.push(line);
    }
    format!("time over the best static choice's, by policy\n{}", table::render(&lines, 0))
}

/// For programs.
fn object(m: &Measured, oracle_seconds: f64) -> Value {
    let s = &m.statistics;
    json!({
        "policy": m.policy.to_string(),
        "searches": m.searches,
        "seconds": m.seconds,
        "oracle_seconds": oracle_seconds,
        "calls": s.calls,
        "on_host": s.on_host,
        "on_one": s.on_one,
        "on_teams": s.on_teams,
        "team_workers": s.team_workers,
        "waits": s.waits,
        "switches": s.switches,
    })
}
