//! Random programs on random machines with a disk: killed at a random operation, perhaps again while they continue,
//! and continued to the end. The results are those of sequential execution.

use crate::support;

use multigrain::Settings;
use multigrain::rooms::store::faults::{DieAt, Faults};
use std::sync::Arc;
use std::time::Duration;
use support::random::{Failure, RandomCase, interrupted, many_interrupted};

/// `None` when the case proves nothing: no disk, no result, or no plan. Else whether some run continued.
fn one(seed: u64) -> Result<Option<bool>, Failure> {
    let Some(mut case) = RandomCase::new(seed, 0x6b69_6c6c)? else { return Ok(None) };
    let interval = if case.rng.percent(70) { Some(Duration::ZERO) } else { None };
    interrupted(&mut case, 3, interval, |case, setup, before, operations| {
        let n = case.rng.below(operations);
        let resume = before > 0 && case.rng.percent(85);
        let faults: Arc<dyn Faults> = Arc::new(DieAt { n });
        let settings = Settings { resume, discard: !resume, journal_interval: interval, ..Settings::default() };
        let _ = setup.runtime(Some(faults)).run(&case.job, settings);
        Ok(format!("killed at {n} (resume: {resume}), "))
    })
}

#[test]
fn killed_runs_continue_to_the_same_bytes() {
    many_interrupted(100, one);
}
