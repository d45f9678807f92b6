//! A run is killed at every moment between two operations on files, and continued: the bytes are those of an
//! undisturbed run.

use crate::support;

use multigrain::rooms::store::faults::{Count, DieAt};
use multigrain::rooms::store::{BackendChoice, StoreError};
use multigrain::{Error, Outcome, Settings};
use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;
use support::*;

/// Whether the fault hook ended the run.
fn is_dead(error: &Error) -> bool {
    if matches!(error, Error::File(StoreError::Dead) | Error::Store(StoreError::Dead)) {
        return true;
    }
    let mut source = error.source();
    while let Some(cause) = source {
        if matches!(cause.downcast_ref::<StoreError>(), Some(StoreError::Dead)) {
            return true;
        }
        source = cause.source();
    }
    error.to_string().contains(&StoreError::Dead.to_string())
}

/// A run that is killed before operation `n`; `true` when it ended before.
fn killed(case: &Case, n: u64, resume: bool, interval: Option<Duration>, expected: &[Vec<u8>]) -> bool {
    let runtime = case.setup.runtime(Some(Arc::new(DieAt { n })));
    let settings = Settings { resume, discard: !resume, journal_interval: interval, ..Settings::default() };
    let ended = runtime.run(&case.job, settings);
    drop(runtime);
    // Whatever stands under a final name is whole.
    for (path, expected) in case.outputs.iter().zip(expected) {
        if let Ok(found) = std::fs::read(path) {
            assert!(found == *expected, "{}, killed at {n}: {} is half written", case.name, path.display());
        }
    }
    match ended {
        Ok(_) => true,
        Err(error) => {
            assert!(is_dead(&error), "{}, killed at {n}: {error}", case.name);
            false
        }
    }
}

/// Continues, and asks for the bytes of an undisturbed run and for nothing else to be left.
fn continued(case: &Case, what: &str, interval: Option<Duration>, expected: &[Vec<u8>]) -> Outcome {
    let outcome = run(&case.setup.runtime(None), &case.job, true, interval)
        .unwrap_or_else(|error| panic!("{}, {what}: {error}", case.name));
    let found = case.results();
    for ((path, found), expected) in case.outputs.iter().zip(&found).zip(expected) {
        let at = found.iter().zip(expected).position(|(f, e)| f != e);
        assert!(found == expected, "{}, {what}: {} differs at {at:?}\n{}", case.name, path.display(), outcome.plan);
    }
    assert_eq!(case.left().len(), case.outputs.len(), "{}, {what}: {:?}", case.name, case.left());
    outcome
}

fn operations(case: &Case, interval: Option<Duration>) -> (u64, usize) {
    let count = Arc::new(Count::new());
    let outcome = run(&case.setup.runtime(Some(count.clone())), &case.job, false, interval).unwrap();
    case.clear();
    (count.operations(), outcome.plan.calls.len())
}

fn every_moment(case: &Case, interval: Option<Duration>) {
    let expected = case.expected();
    let (operations, calls) = operations(case, interval);
    let (mut resumed, mut shorter, mut least) = (0, 0, calls);
    for n in 0..=operations {
        let ended = killed(case, n, false, interval, &expected);
        if ended {
            // The last operations remove what is not needed any more: a run that could not do that is done.
            assert!(n + 4 >= operations, "{}: {n} of {operations}", case.name);
            continued(case, &format!("killed at {n} of {operations}, at its end"), interval, &expected);
            case.clear();
            continue;
        }
        let outcome = continued(case, &format!("killed at {n} of {operations}"), interval, &expected);
        resumed += u64::from(outcome.resumed);
        shorter += u64::from(outcome.resumed && outcome.plan.calls.len() < calls);
        least = least.min(outcome.plan.calls.len());
        case.clear();
    }
    eprintln!(
        "{}: {operations} operations, {resumed} resumed, {shorter} with less to do, at least {least} of {calls}",
        case.name
    );
    assert_eq!(least, 0, "{}: killed while publishing, nothing has to be computed again", case.name);
    // Without that nothing is recorded before the end: these runs are shorter than the interval.
    if interval.is_some() {
        assert!(resumed * 2 > operations, "{}: {resumed} of {operations} kills were continued", case.name);
        assert!(shorter * 4 > operations, "{}: {shorter} of {operations} had less to do", case.name);
    }
}

#[test]
fn a_product_is_killed_at_every_moment() {
    every_moment(&product(BackendChoice::Auto), Some(Duration::ZERO));
    every_moment(&product(BackendChoice::Pool), None);
}

#[test]
fn an_update_is_killed_at_every_moment() {
    every_moment(&update(BackendChoice::Auto), Some(Duration::ZERO));
    every_moment(&update(BackendChoice::Pool), None);
}

#[test]
fn two_results_with_temporaries_are_killed_at_every_moment() {
    every_moment(&pipeline(BackendChoice::Auto), Some(Duration::ZERO));
    every_moment(&pipeline(BackendChoice::Pool), None);
}

/// The run that continues is killed as well, and the one after it begins anew, or continues.
#[test]
fn runs_that_continue_are_killed_too() {
    for case in cases(BackendChoice::Auto) {
        let zero = Some(Duration::ZERO);
        let expected = case.expected();
        let (operations, _) = operations(&case, zero);
        let mut kills = 0;
        let step = operations as usize / 10;
        for first in (0..operations).step_by(step) {
            for second in (first % 5..operations).step_by(step + 3) {
                for resume in [true, false] {
                    if killed(&case, first, false, zero, &expected) {
                        case.clear();
                        continue;
                    }
                    let ended = killed(&case, second, resume, zero, &expected);
                    let what = format!("killed at {first}, then (resume: {resume}) at {second}");
                    if !ended {
                        continued(&case, &what, zero, &expected);
                        kills += 1;
                    }
                    case.clear();
                }
            }
        }
        eprintln!("{}: {kills} runs were killed twice", case.name);
    }
}
