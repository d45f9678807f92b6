//! A job that is run again on the same runtime is not planned again, and is right whatever its memories hold from before.

use crate::support;

use std::sync::Arc;

use multigrain::Settings;
use multigrain_store::BackendChoice;
use multigrain_team::Abort;
use support::*;

#[test]
fn the_same_job_keeps_its_plan_and_gives_the_same_bytes() {
    for backend in backends() {
        for case in cases(backend) {
            let expected = case.expected();
            let runtime = case.setup.runtime(None);
            let mut plans = Vec::new();
            for turn in 0..3 {
                plans.push(run(&runtime, &case.job, false, None).unwrap().plan);
                assert!(case.results() == expected, "{} in turn {turn}", case.name);
                case.clear();
            }
            assert!(plans.iter().all(|plan| Arc::ptr_eq(plan, &plans[0])), "{} was planned again", case.name);
        }
    }
}

/// Jobs in turns, each with a plan of its own, and between them a run that ends before it begins.
#[test]
fn another_job_gets_its_own_plan() {
    let (case, other) = (product(BackendChoice::Auto), product(BackendChoice::Auto));
    let expected = case.expected();
    let runtime = case.setup.runtime(None);
    let first = run(&runtime, &case.job, false, None).unwrap().plan;
    assert!(case.results() == expected);
    case.clear();
    // Of the same shape, with tasks and files of its own.
    let theirs = run(&runtime, &other.job, false, None).unwrap().plan;
    assert!(other.results() == expected, "both are made from the same seeds");
    assert!(!Arc::ptr_eq(&first, &theirs));
    let abort = Abort::new();
    abort.raise();
    let settings = Settings { abort: Some(&abort), ..Settings::default() };
    assert!(runtime.run(&case.job, settings).is_err());
    case.clear();
    let last = run(&runtime, &case.job, false, None).unwrap().plan;
    assert!(case.results() == expected);
    assert!(!Arc::ptr_eq(&first, &last), "the plan of a job is kept until the next one");
}
