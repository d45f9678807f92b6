//! The published times of RAxML on a Cell, and what the text says about its policies.

use multigrain_schedule::policy::Policy;
use multigrain_sim::papers::raxml::{Scheduling, rows, seconds};
use multigrain_sim::papers::{Row, Use, errors};

fn policy(name: &str, bootstraps: u32) -> f64 {
    seconds(1, bootstraps, Scheduling::Policy(name.parse::<Policy>().unwrap())).unwrap()
}

#[test]
fn published_times_are_predicted() {
    let (fit, predicted): (Vec<Row>, Vec<Row>) = rows().unwrap().into_iter().partition(|row| row.usage == Use::Fit);
    assert_eq!((fit.len(), predicted.len()), (6, 18));
    for (row, bar) in fit.iter().map(|row| (row, 0.03)).chain(predicted.iter().map(|row| (row, 0.15))) {
        let error = row.error().unwrap();
        assert!(error.abs() <= bar, "{}: {:+.1} %", row.row, 100.0 * error);
    }
    let (median, _) = errors(&predicted).unwrap();
    assert!(median <= 0.07, "median {:.1} %", 100.0 * median);
}

#[test]
fn policies_stand_as_the_text_says() {
    // "The hybrid model outperforms EDTLP when up to 4 bootstraps are executed"; "EDTLP becomes again the best" from 5 to
    // 8. MGPS is "the best of two worlds".
    for bootstraps in 1..=8 {
        let (edtlp, hybrid) = (policy("edtlp", bootstraps), policy("hybrid:2", bootstraps));
        assert_eq!(hybrid < edtlp, bootstraps <= 4, "{bootstraps}: {hybrid} {edtlp}");
        let mgps = policy("mgps", bootstraps);
        assert!(mgps < 1.03 * edtlp.min(hybrid), "{bootstraps}: {mgps} {edtlp} {hybrid}");
    }
    // "About 2.6 times the performance of the Linux scheduler".
    let ratio = seconds(1, 8, Scheduling::Linux).unwrap() / policy("edtlp", 8);
    assert!((2.4..2.8).contains(&ratio), "{ratio}");
    // "Benefits from using MGPS for up to 28 bootstraps", where four are left in the end; none with many.
    assert!(policy("mgps", 12) < 0.95 * policy("edtlp", 12));
    assert!(policy("mgps", 28) < 0.99 * policy("edtlp", 28));
    let ratio = policy("mgps", 64) / policy("edtlp", 64);
    assert!((0.98..1.02).contains(&ratio), "{ratio}");
}

#[test]
fn two_cells_are_almost_twice_as_fast() {
    let edtlp = Scheduling::Policy(Policy::Edtlp);
    let ratio = seconds(1, 32, edtlp).unwrap() / seconds(2, 32, edtlp).unwrap();
    assert!((1.8..2.1).contains(&ratio), "{ratio}");
}
