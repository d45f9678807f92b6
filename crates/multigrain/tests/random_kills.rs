//! Random programs on random machines with a disk: killed at a random operation, perhaps again while they continue,
//! and continued to the end. The results are those of sequential execution.

mod support;

use multigrain::rooms::store::faults::{Count, DieAt, Faults};
use multigrain::{Error, Settings};
use std::sync::Arc;
use std::time::Duration;
use support::random::{Failure, RandomCase, cases};
use support::run;

/// `None` when the case proves nothing: no disk, no result, or no plan. Else whether the last run continued.
fn one(seed: u64) -> Result<Option<bool>, Failure> {
    let Some(mut case) = RandomCase::new(seed, 0x6b69_6c6c)? else { return Ok(None) };
    let setup = case.setup(case.dram_bytes)?;
    let interval = if case.rng.percent(70) { Some(Duration::ZERO) } else { None };
    let count = Arc::new(Count::new());
    match run(&setup.runtime(Some(count.clone())), &case.job, false, interval) {
        Ok(_) => case.compare("undisturbed")?,
        Err(Error::Plan(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    case.clear()?;
    let mut continued = false;
    for _ in 0..3 {
        let mut what = String::new();
        for time in 0..case.rng.range(1, 3) {
            let n = case.rng.below(count.operations());
            let resume = time > 0 && case.rng.percent(85);
            what += &format!("killed at {n} (resume: {resume}), ");
            let faults: Arc<dyn Faults> = Arc::new(DieAt { n });
            let settings = Settings { resume, discard: !resume, journal_interval: interval, ..Settings::default() };
            let _ = setup.runtime(Some(faults)).run(&case.job, settings);
        }
        let outcome = run(&setup.runtime(None), &case.job, true, interval).map_err(|e| format!("{what}{e}"))?;
        continued |= outcome.resumed;
        case.compare(&what)?;
        case.nothing_else_is_left(&what)?;
        case.clear()?;
    }
    Ok(Some(continued))
}

#[test]
fn killed_runs_continue_to_the_same_bytes() {
    let mut continued = 0;
    let (ran, seeds) = cases(100, |seed| {
        let found = one(seed)?;
        continued += u64::from(found == Some(true));
        Ok(found.is_some())
    });
    eprintln!("{seeds}, {continued} continued");
    assert!(ran < 50 || continued * 3 > ran, "only {continued} of {ran} cases continued: the proof is too weak");
}
