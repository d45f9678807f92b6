//! `multigrain sim strands`: the strands of a traced run in virtual time.

use crate::support;

use multigrain::rooms::team::strands::{Hosts, Scheduler, SchedulerOptions, Strand, TaskKind};
use support::{Place, keys};

/// The trace of three strands under llp:2, as a program writes it.
fn traced(place: &Place, name: &str) {
    let options = SchedulerOptions {
        policy: "llp:2".parse().unwrap(),
        workers: 2,
        hosts: Hosts::Workers,
        trace: true,
        throttle: false,
        ..SchedulerOptions::default()
    };
    let strand = |strand: &Strand<'_>| {
        for _ in 0..20 {
            let sum = |range: std::ops::Range<usize>, ()| range.map(|i| i as f64).sum::<f64>();
            strand.offload(TaskKind::new(0, "sum"), 1000, 100, (), sum, |a, b| a + b);
        }
    };
    let outcome = Scheduler::new(options).unwrap().run(vec![strand; 3]).unwrap();
    outcome.trace.unwrap().save(&place.path(name)).unwrap();
}

#[test]
fn a_traced_run_is_executed_again() {
    let place = Place::new();
    traced(&place, "run.trace");
    let of = |options: &str| place.run(&format!("sim strands --compare run.trace --json {options}")).json();
    let own = of("");
    assert_eq!(keys(&own), ["compared", "events", "policy", "seconds", "strands", "workers"]);
    assert_eq!((&own["policy"], &own["workers"], &own["strands"]), (&"llp:2".into(), &2.into(), &3.into()));
    let compared = &own["compared"];
    assert_eq!(keys(compared), ["measured_seconds", "parts", "predicted_seconds", "ratio"]);
    assert_eq!(compared["predicted_seconds"], own["seconds"]);
    assert_eq!(of(""), own, "another time, another outcome");
    // Every loop is shared by both, there and here.
    let shared = compared["parts"].as_array().unwrap().iter().find(|part| part["name"] == "on several").unwrap();
    assert_eq!((shared["predicted"].as_f64(), shared["measured"].as_f64()), (Some(60.0), Some(60.0)));
    // Under another policy none is.
    let other = of("--policy edtlp --threads 3");
    assert_eq!((&other["policy"], &other["workers"]), (&"edtlp".into(), &3.into()));
    let text = place.run("sim strands --compare run.trace").stdout;
    assert!(text.contains("3 strands on 2 workers under llp:2") && text.contains("wall time"), "{text}");
}

#[test]
fn what_makes_no_sense_is_told() {
    let place = Place::new();
    traced(&place, "run.trace");
    place.run("run saxpy --n 1000 --threads 2 --trace other.trace");
    for (options, why) in [
        ("", "name it by --compare"),
        ("--compare none.trace", "none.trace"),
        ("--compare other.trace", "has no strands"),
        ("--compare run.trace --machine ps3", "leave out --machine"),
        ("--compare run.trace --policy llp:3", "llp:3"),
        ("--compare run.trace --threads 0", "0 were asked for"),
    ] {
        let ran = place.run(&format!("sim strands {options}"));
        assert_eq!(ran.status, Some(2), "{options}: {}", ran.stderr);
        assert!(ran.stderr.contains(why), "{options}: {}", ran.stderr);
    }
}
