//! Beyond the papers: how two applications and a thousand bootstraps scale on larger machines, in virtual time.

use super::failed;
use super::levels::gflops;
use crate::figures::lines::{Lines, Scale, Series};
use crate::harness::reason;
use multigrain::{Error, Machine};
use multigrain_console::Failure;
use multigrain_schedule::policy::Policy;
use multigrain_sim::papers::raxml;
use serde_json::{Value, json};

/// A machine and the memory of which it may have fewer.
struct Scaled {
    machine: &'static str,
    memory: &'static str,
    /// How many of them in all, from few to many.
    counts: &'static [usize],
    /// What is counted.
    unit: &'static str,
    sgemm: &'static str,
    fft3d: &'static str,
    /// Workers of one of them, for bootstraps; `None` where these have no leaf variant.
    bootstrap_workers: Option<u32>,
}

const SCALED: [Scaled; 3] = [
    Scaled {
        machine: "server",
        memory: "core",
        counts: &[1, 2, 4, 8, 16, 32, 64],
        unit: "cores of each of two sockets",
        sgemm: "--n 16384",
        fft3d: "--n 512",
        bootstrap_workers: Some(2),
    },
    Scaled {
        machine: "gpu-server",
        memory: "gpu",
        counts: &[1, 2, 4, 8],
        unit: "GPUs",
        sgemm: "--n 65536",
        fft3d: "--n 1024",
        bootstrap_workers: None,
    },
    Scaled {
        machine: "thousand-nodes",
        memory: "node",
        counts: &[1, 4, 16, 64, 250, 1000],
        unit: "nodes",
        sgemm: "--n 131072",
        fft3d: "--n 2048",
        bootstrap_workers: Some(128),
    },
];

/// One curve: what, on which machine, and for each count the speed.
pub(super) struct Curve {
    machine: &'static str,
    unit: &'static str,
    what: String,
    measure: &'static str,
    points: Vec<(usize, Result<f64, String>)>,
}

impl Curve {
    /// For programs.
    pub(super) fn object(&self) -> Value {
        let points = self.points.iter().map(|(count, value)| match value {
            Ok(value) => json!({ "count": count, "value": value }),
            Err(why) => json!({ "count": count, "failed": why }),
        });
        json!({
            "machine": self.machine, "unit": self.unit, "what": self.what, "measure": self.measure,
            "points": points.collect::<Vec<_>>(),
        })
    }

    /// For people: a line of counts and values.
    pub(super) fn lines(&self) -> [Vec<String>; 2] {
        let mut head = vec![format!("{}, {} ({})", self.what, self.machine, self.measure)];
        let mut line = vec![format!("  {}", self.unit)];
        for (count, value) in &self.points {
            line.push(count.to_string());
            head.push(value.as_ref().map_or_else(|_| "failed".into(), |value| super::figure(*value)));
        }
        [line, head]
    }

    /// The figure, against a line of equal efficiency.
    pub(super) fn figure(&self) -> Lines {
        let points: Vec<(f64, f64)> =
            self.points.iter().filter_map(|(count, value)| Some((*count as f64, *value.as_ref().ok()?))).collect();
        let ideal = points.first().map_or(Vec::new(), |&(first, value)| {
            points.iter().map(|&(count, _)| (count, value * count / first)).collect()
        });
        Lines {
            title: format!("{} on {}", self.what, self.machine),
            x: self.unit.to_owned(),
            y: self.measure.to_owned(),
            x_scale: Scale::Log,
            y_scale: Scale::Log,
            series: vec![
                Series { name: "simulated".into(), points, marks: false },
                Series { name: "as efficient as the first".into(), points: ideal, marks: false },
            ],
        }
    }

    /// Name of the figure's file.
    pub(super) fn file(&self) -> String {
        let what = self.what.split(' ').next().unwrap_or_default();
        format!("scaling-{}-{what}.svg", self.machine)
    }
}

/// All curves.
pub(super) fn curves() -> Result<Vec<Curve>, Failure> {
    let mut curves = Vec::new();
    for scaled in &SCALED {
        for (app, arguments) in [("sgemm", scaled.sgemm), ("fft3d", scaled.fft3d)] {
            let mut points = Vec::new();
            for &count in scaled.counts {
                let machine = Machine::shipped(scaled.machine).map_err(Error::from)?;
                let machine = machine.with_count(scaled.memory, count).map_err(Error::from)?;
                points.push((count, gflops(machine, app, arguments).map_err(reason)));
            }
            let what = format!("{app} {arguments}");
            curves.push(Curve { machine: scaled.machine, unit: scaled.unit, what, measure: "GFLOP/s", points });
        }
        if let Some(workers) = scaled.bootstrap_workers {
            let mut points = Vec::new();
            for &count in scaled.counts {
                points.push((count, bootstraps_per_hour(scaled.machine, count as u32, workers).map_err(reason)));
            }
            let what = "bootstraps 1000".to_owned();
            curves.push(Curve { machine: scaled.machine, unit: scaled.unit, what, measure: "bootstraps/h", points });
        }
    }
    Ok(curves)
}

/// A thousand bootstraps under `marginal`: on one server all, on nodes each its share.
fn bootstraps_per_hour(machine: &str, count: u32, workers: u32) -> Result<f64, Failure> {
    const BOOTSTRAPS: u32 = 1000;
    let (workers, share) = match machine {
        "thousand-nodes" => (workers, BOOTSTRAPS.div_ceil(count)),
        _ => (workers * count, BOOTSTRAPS),
    };
    let seconds = raxml::on_cores(workers, share, Policy::Marginal).map_err(failed)?;
    Ok(f64::from(BOOTSTRAPS) / seconds * 3600.0)
}
