//! The command `sim strands`: what a run of strands did, once more in virtual time, under its policy or another one.

use crate::args::SimArgs;
use crate::json;
use multigrain::rooms::machine::approximate_time;
use multigrain::rooms::sim::strands::{Outcome, Recorded, recorded, run};
use multigrain::rooms::team::strands::Policy;
use multigrain::rooms::trace::{Kind, Trace};
use multigrain_console::{Failure, print, table};
use serde_json::json;

/// The word behind `sim`.
pub(crate) const NAME: &str = "strands";

/// Searches whose kernels are off-loaded, from the trace of such a run that --compare names: how long it would have taken
#[derive(clap::Args, Debug)]
pub(crate) struct StrandsArgs {
    /// Who computes what, instead of the policy of the run: static, edtlp, llp:K, hybrid:K, mgps or marginal
    #[arg(long, value_name = "POLICY")]
    policy: Option<Policy>,
}

/// What is compared.
struct Part {
    name: &'static str,
    predicted: f64,
    measured: f64,
    /// A number of tasks, and no time.
    counted: bool,
}

/// Executes the strands of a trace in virtual time and lays that over the run.
pub(crate) fn strands(args: &SimArgs, of: &StrandsArgs) -> Result<(), Failure> {
    let common = &args.common;
    let refused = [
        (common.memory.is_some(), "--memory"),
        (common.machine.is_some(), "--machine"),
        (common.mapping.is_some(), "--mapping"),
        (args.trace.is_some(), "--trace"),
    ];
    if let Some((_, option)) = refused.into_iter().find(|(given, _)| *given) {
        return Err(Failure::Request(format!("strands are simulated as they were traced; leave out {option}")));
    }
    let Some(path) = &args.compare else {
        return Err(Failure::Request(
            "strands are taken from the trace of a run: make one, as phylo does with --trace, and name it by --compare"
                .into(),
        ));
    };
    let wrong = |error: &dyn std::fmt::Display| Failure::Request(format!("{}: {error}", path.display()));
    let trace = Trace::load(path).map_err(|e| wrong(&e))?;
    let Recorded { mut options, costs, programs } = recorded(&trace).map_err(|e| wrong(&e))?;
    let threads = common.threads.map(|threads| u32::try_from(threads).unwrap_or(u32::MAX));
    options.workers = threads.unwrap_or(options.workers);
    options.policy = of.policy.unwrap_or(options.policy);
    let simulated = run(&options, costs, &programs).map_err(|e| Failure::Request(e.to_string()))?;
    let parts = parts(&trace, &simulated);
    print(&if common.json {
        let part = |part: &Part| json!({ "name": part.name, "predicted": part.predicted, "measured": part.measured });
        let (predicted, measured) = (parts[0].predicted, parts[0].measured);
        json::line(&json!({
            "policy": options.policy.to_string(),
            "workers": options.workers,
            "strands": programs.len(),
            "seconds": predicted,
            "events": simulated.events,
            "compared": {
                "predicted_seconds": predicted,
                "measured_seconds": measured,
                "ratio": predicted / measured,
                "parts": parts[1..].iter().map(part).collect::<Vec<_>>(),
            },
        }))
    } else {
        let title = ["", "predicted", "measured", "ratio"].map(str::to_owned).to_vec();
        let row = |part: &Part| {
            let shown = |of: f64| if part.counted { of.to_string() } else { approximate_time(of * 1e9) };
            let ratio = match part.measured > 0.0 {
                true => format!("{:.3}", part.predicted / part.measured),
                false => "-".to_owned(),
            };
            vec![part.name.to_owned(), shown(part.predicted), shown(part.measured), ratio]
        };
        let rows: Vec<_> = std::iter::once(title).chain(parts.iter().map(row)).collect();
        let (strands, workers) = (programs.len(), options.workers);
        format!("{strands} strands on {workers} workers under {}\n\n{}", options.policy, table::render(&rows, 2))
    })
}

/// What is compared: the wall time first.
fn parts(trace: &Trace, simulated: &Outcome) -> Vec<Part> {
    let tasks = |detail: &dyn Fn(u8, u32) -> bool| {
        let decisions = trace.records.iter().filter(|record| record.kind == Kind::Decision);
        decisions.filter(|record| detail(record.detail, record.decided().workers)).count() as f64
    };
    let header = &trace.header;
    // The two last reasons are those of calls.
    let called = header.reasons.len().saturating_sub(2) as u8;
    let leaves = trace.records.iter().filter(|record| record.kind == Kind::Leaf);
    let busy = leaves.map(|record| record.ticks()).sum::<u64>() as f64 / header.clock.ticks_per_second;
    let time = |name, predicted, measured| Part { name, predicted, measured, counted: false };
    let count = |name, predicted: u64, measured| Part { name, predicted: predicted as f64, measured, counted: true };
    vec![
        time("wall time", simulated.end.seconds(), trace.wall_seconds()),
        time("computing tasks", simulated.busy.seconds(), busy),
        count("calls, nobody could help", simulated.calls, tasks(&|detail, _| detail == called)),
        count("calls, off-loading does not pay", simulated.on_host, tasks(&|detail, _| detail == called + 1)),
        count("on one worker", simulated.on_one, tasks(&|detail, workers| detail < called && workers == 1)),
        count("on several", simulated.on_teams, tasks(&|detail, workers| detail < called && workers > 1)),
    ]
}
