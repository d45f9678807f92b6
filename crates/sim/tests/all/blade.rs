//! The published collective operations of the dual-Cell blade, and the orders between them that its text states.

use multigrain_schedule::Operation;
use multigrain_sim::papers::blade::{BARRIERS, BROADCASTS, REDUCTIONS, broadcast, latency_ns, reduce, rows};
use multigrain_sim::papers::{Use, errors};

/// By algorithm and number of SPEs; the first two of each are not used.
fn table<const N: usize>(operation: Operation, names: [&str; N]) -> [Vec<f64>; N] {
    names.map(|name| {
        let ns = |spes| if spes < 2 { 0.0 } else { latency_ns(operation, name, spes).unwrap() };
        (0..=16).map(ns).collect()
    })
}

#[test]
fn published_figures_are_predicted() {
    let rows = rows().unwrap();
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row.usage == Use::Predict));
    for row in &rows {
        let error = row.error().unwrap();
        assert!(error.abs() <= 0.15, "{}: {:+.1} %", row.row, 100.0 * error);
    }
    let (median, _) = errors(&rows).unwrap();
    assert!(median <= 0.07, "median {:.1} %", 100.0 * median);
}

#[test]
fn barriers_stand_in_the_published_order() {
    let [ato, ato_b, tt, tt3, tt_b, tt3_b, pe] = &table(Operation::Barrier, BARRIERS);
    for n in 2..=16usize {
        let others = [ato, ato_b, tt, tt3, tt_b, tt3_b].map(|times| times[n]);
        let least = others.into_iter().fold(f64::INFINITY, f64::min);
        match n {
            // "Pairwise exchange is lowest at powers of two".
            2 | 4 | 8 | 16 => assert!(pe[n] < least, "{n}: {} {least}", pe[n]),
            // "ATOBar is best below 8": where it is a tree of degree 3 or the like as well, equally good.
            _ if n < 8 => assert!(ato[n] <= least && ato[n] <= pe[n], "{n}: {} {least} {}", ato[n], pe[n]),
            _ => {}
        }
        if n > 8 {
            assert!(tt_b[n] < tt[n] && tt3_b[n] < tt3[n], "{n}: the blade's trees are no better");
            // "Scales flat from 9 to 16", while the plain one grows fourfold.
            assert!(ato_b[n] < 1.15 * ato_b[9], "{n}: {} {}", ato_b[n], ato_b[9]);
        }
        if n <= 8 {
            assert_eq!((ato[n], tt[n], tt3[n]), (ato_b[n], tt_b[n], tt3_b[n]), "one chip is no blade");
        }
    }
    assert!(ato[16] > 3.0 * ato[9] && ato[16] > 2.0 * tt[16], "ATOBar: {ato:?}");
}

#[test]
fn broadcasts_stand_in_the_published_order() {
    let [ato, tt, tt3] = &table(broadcast(128), BROADCASTS);
    for n in 2..=16usize {
        let tree = tt[n].min(tt3[n]);
        assert!(if n > 6 { tree < ato[n] } else { tree >= ato[n] }, "128 bytes, {n}: {tree} {}", ato[n]);
    }
    let [ato, tt, tt3] = &table(broadcast(16 << 10), BROADCASTS);
    for n in 3..=16usize {
        let tree = tt[n].min(tt3[n]);
        // Up to four, the trees of degree 2 or 3 are the star.
        assert!(if n > 4 { tree < ato[n] } else { tree <= ato[n] }, "16 KiB, {n}: {tree} {}", ato[n]);
    }
}

#[test]
fn reductions_stand_in_the_published_order() {
    let [ato, tt, tt3] = &table(reduce(128), REDUCTIONS);
    for n in 2..=16usize {
        let tree = tt[n].min(tt3[n]);
        assert!(if n < 6 { ato[n] <= tree } else { tree < ato[n] }, "{n}: {tree} {}", ato[n]);
    }
    let ratio = ato[16] / tt[16];
    assert!((1.6..2.4).contains(&ratio), "about twice: {ratio}");
    let worse = tt3[16] / tt[16];
    assert!((1.0..1.2).contains(&worse), "slightly worse: {worse}");
}
