//! Direct N-body beside the loop that is written by hand for it.

use crate::entry::Entry;
use crate::harness::in_memory::repeated;
use crate::harness::rounds::{Contender, Turn, alternate};
use crate::harness::row::{Bar, Row, Unit};
use crate::harness::{Bench, right};
use multigrain::app::Application;
use multigrain_console::Failure;
use multigrain_front::fresh_seed;

pub(super) const ENTRIES: &[Entry] =
    &[Entry::rows("gravity", "Direct N-body, 100 steps in memory; a loop by hand with AVX-512 rsqrt14", gravity)];

/// Steps of a turn.
const STEPS: u64 = 100;
/// The largest error of a force, relative to the force, that is allowed.
const FORCE_ERROR_MAX: f64 = 1e-6;

/// Steps of a Plummer sphere in memory; the error of forces stands beside the rate.
pub(crate) fn gravity(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let (n, steps) = (bench.size(8192, 512), bench.size(STEPS, 4));
    let args = multigrain_gravity::app::Args { n: Some(n), steps, ..Default::default() };
    let runtime = bench.runtime(bench.threads(), None)?;
    let app = args.prepare(&runtime)?;
    let outcome = runtime.run(&app.job, bench.settings())?;
    let checked = (app.check)(&outcome, fresh_seed())?;
    let right = right(&app, &outcome)?;
    let error = checked.figures.iter().find(|(name, _)| *name == "force error").map_or(f64::NAN, |(_, error)| *error);
    let mut prepared = runtime.prepare(&app.job)?;
    let turn: Turn<'_> = Box::new(|| repeated(bench, &mut prepared, 1));
    let options = [("n", n.to_string()), ("steps", steps.to_string())];
    let mut peers = [Contender::start(bench, "rsqrt14", "rsqrt14", &options)];
    let ours = alternate(bench, "gravity", bench.args.rounds, &mut [turn], &mut peers)?.concat();
    let mut notes = vec![
        right,
        format!("{n} particles, {steps} steps in memory, 20 operations an interaction"),
        format!(
            "largest relative error of the sampled forces {error:.1e}, {}",
            if error <= FORCE_ERROR_MAX { "of 1.0e-6 allowed" } else { "MORE THAN THE 1.0e-6 ALLOWED" }
        ),
    ];
    let theirs = peers[0].last["max_relative_error"].as_f64();
    notes.extend(theirs.map(|error| format!("that of the peer {error:.1e}")));
    Ok(vec![Row::new(
        "gravity",
        Unit::Gflops(20.0 * (n * n * steps) as f64),
        ours,
        peers,
        Bar::RatioAtLeast(1.0),
        notes,
    )])
}
