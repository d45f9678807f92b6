//! The figures: execution time over workers and over bootstraps, latency over SPEs, bandwidth over bytes.

use super::failed;
use crate::figures::lines::{Lines, Scale, Series};
use multigrain_console::Failure;
use multigrain_schedule::Operation;
use multigrain_schedule::policy::Policy;
use multigrain_sim::contexts::Policy as Sharing;
use multigrain_sim::papers::Row;
use multigrain_sim::papers::blade::{BARRIERS, BROADCASTS, REDUCTIONS, SPES, broadcast, latency_ns, reduce};
use multigrain_sim::papers::raxml::{Scheduling, seconds};
use multigrain_sim::papers::spufs;

/// All figures with their file names.
pub(super) fn all(rows: &[Row]) -> Result<Vec<(&'static str, Lines)>, Failure> {
    let over_spes = |title: &str, operation: Operation, names: &[&str]| latencies(title, operation, names);
    Ok(vec![
        ("papers-workers.svg", workers(rows)),
        ("papers-loops.svg", loops(rows)),
        ("papers-bootstraps-16.svg", bootstraps(1, &(1..=16).collect::<Vec<_>>())?),
        ("papers-bootstraps-128.svg", bootstraps(1, &MANY)?),
        ("papers-bootstraps-two-cells-16.svg", bootstraps(2, &(1..=16).collect::<Vec<_>>())?),
        ("papers-bootstraps-two-cells-128.svg", bootstraps(2, &MANY)?),
        ("papers-barrier.svg", over_spes("Barriers on a dual-Cell blade", Operation::Barrier, &BARRIERS)?),
        ("papers-broadcast.svg", over_spes("Broadcasts of 128 bytes", broadcast(128), &BROADCASTS)?),
        ("papers-reduce.svg", over_spes("Reductions of 32 floats", reduce(128), &REDUCTIONS)?),
        ("papers-bandwidth.svg", bandwidth()?),
        ("papers-contexts.svg", contexts()?),
    ])
}

/// Numbers of bootstraps in the figures of many.
const MANY: [u32; 14] = [1, 4, 8, 12, 16, 20, 24, 28, 32, 48, 64, 80, 100, 128];

/// The rows of a published table whose names are those of `kind`, by the first number in the name.
fn series(rows: &[Row], table: &str, kind: &str, at: impl Fn(&str) -> Option<f64>) -> [Series; 2] {
    let of: Vec<&Row> = rows.iter().filter(|row| row.table == table && row.row.contains(kind)).collect();
    let points =
        |value: fn(&Row) -> Option<f64>| of.iter().filter_map(|row| Some((at(&row.row)?, value(row)?))).collect();
    let published = Series { name: format!("{kind}, published"), points: points(|r| Some(r.published)), marks: true };
    [Series { name: kind.to_owned(), points: points(|r| r.simulated), marks: false }, published]
}

fn workers(rows: &[Row]) -> Lines {
    let at = |row: &str| row.split(' ').next()?.parse().ok();
    let table = "Blagojevic 2007, table 1";
    let series = ["edtlp", "linux"].map(|kind| series(rows, table, kind, at)).into_iter().flatten().collect();
    Lines {
        title: "RAxML on a Cell: event-driven and by Linux".into(),
        x: "workers, one bootstrap each".into(),
        y: "seconds".into(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        series,
    }
}

fn loops(rows: &[Row]) -> Lines {
    let at = |row: &str| row.rsplit(':').next()?.parse().ok();
    Lines {
        title: "One bootstrap with loops shared by several SPEs".into(),
        x: "SPEs a loop".into(),
        y: "seconds".into(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        series: series(rows, "Blagojevic 2007, table 2", "llp", at).into_iter().collect(),
    }
}

/// Seconds over bootstraps, under the policies.
fn bootstraps(cells: u32, counts: &[u32]) -> Result<Lines, Failure> {
    let policies = [
        Policy::Edtlp,
        Policy::Hybrid { workers_per_loop: 2 },
        Policy::Hybrid { workers_per_loop: 4 },
        Policy::Mgps,
        Policy::Marginal,
    ];
    let mut series = Vec::new();
    for policy in policies {
        let mut points = Vec::new();
        for &count in counts {
            let seconds = seconds(cells, count, Scheduling::Policy(policy)).map_err(failed)?;
            points.push((f64::from(count), seconds));
        }
        series.push(Series { name: policy.to_string(), points, marks: false });
    }
    let machine = if cells == 1 { "a Cell" } else { "two Cells" };
    Ok(Lines {
        title: format!("RAxML on {machine}: bootstraps under each policy"),
        x: "bootstraps".into(),
        y: "seconds".into(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        series,
    })
}

/// Latencies over SPEs, by algorithm.
fn latencies(title: &str, operation: Operation, names: &[&str]) -> Result<Lines, Failure> {
    let mut series = Vec::new();
    for name in names {
        let mut points = Vec::new();
        for spes in 2..=2 * SPES {
            points.push((f64::from(spes), latency_ns(operation, name, spes).map_err(failed)?));
        }
        series.push(Series { name: (*name).to_owned(), points, marks: false });
    }
    Ok(Lines {
        title: title.to_owned(),
        x: "SPEs, the ninth and further ones on the other chip".into(),
        y: "ns".into(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        series,
    })
}

/// Seconds of loop-bench over tasks: figure 3 of Merino-Vidal et al., and direct hand-off.
fn contexts() -> Result<Lines, Failure> {
    let mut series = Vec::new();
    for policy in [Sharing::Fifo, Sharing::Normal, Sharing::HandOff] {
        let mut points = Vec::new();
        for tasks in 1..=36 {
            points.push((tasks as f64, spufs::figure_3(tasks, policy).map_err(failed)?));
        }
        series.push(Series { name: policy.to_string(), points, marks: false });
    }
    Ok(Lines {
        title: "More tasks than SPEs on a PlayStation 3".into(),
        x: "tasks of a billion iterations".into(),
        y: "seconds".into(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        series,
    })
}

/// Bandwidth of broadcasts over bytes, on all SPEs.
fn bandwidth() -> Result<Lines, Failure> {
    let spes = 2 * SPES;
    let mut series = Vec::new();
    for name in BROADCASTS {
        let mut points = Vec::new();
        for bytes in (7..=14).map(|i| 1u64 << i) {
            let ns = latency_ns(broadcast(bytes), name, spes).map_err(failed)?;
            points.push((bytes as f64, f64::from(spes - 1) * bytes as f64 / ns));
        }
        series.push(Series { name: name.to_owned(), points, marks: false });
    }
    Ok(Lines {
        title: "Broadcasts among 16 SPEs of a dual-Cell blade".into(),
        x: "bytes".into(),
        y: "GB/s that arrive".into(),
        x_scale: Scale::Log,
        y_scale: Scale::Linear,
        series,
    })
}
