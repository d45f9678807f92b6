//! The command `sim`.

use crate::application::Request;
use crate::args::SimArgs;
use crate::report::Finished;
use crate::run::{check_trace, check_trace_target};
use crate::{json, report};
use multigrain::rooms::machine::approximate_time;
use multigrain::rooms::trace::{Spill, Trace};
use multigrain::{Breakdown, Runtime, Simulated, Simulation, whole};
use multigrain_console::Failure;
use multigrain_console::Interrupt;
use multigrain_console::print;
use multigrain_console::table;
use serde_json::{Value, json};

/// Executes an application's plan in virtual time and reports as a run does.
pub(crate) fn sim(args: &SimArgs, request: &Request) -> Result<(), Failure> {
    let runtime = Runtime::new(args.common.options()?)?;
    if let Some(trace) = &args.trace {
        check_trace_target(trace)?;
        whole::check_keeps(trace, args.compare.as_deref())?;
    }
    let interrupt = Interrupt::install()?;
    let mut app = request.prepare(&runtime)?;
    app.job = args.common.with_files_read(app.job);
    args.trace.as_deref().map(|path| check_trace(path, &app.job)).transpose()?;
    let compared = match &args.compare {
        None => None,
        Some(path) => {
            let shown = path.display();
            Some(Trace::load(path).map_err(|e| Failure::Request(format!("{shown}: {e}")))?)
        }
    };
    let spill = args.trace.as_deref().map(Spill::create).transpose().map_err(|e| Failure::Request(e.to_string()))?;
    let settings = Simulation { full_trace: false, trace: spill.clone(), abort: Some(&interrupt.abort) };
    let simulated = runtime.simulate(&app.job, settings)?;
    interrupt.run_is_over();
    if let Some(spill) = &spill {
        spill.publish().map_err(|e| Failure::Run(e.to_string()))?;
    }
    let laid = compared.as_ref().map(|trace| Laid::over(trace, &app.job.app, &simulated)).transpose()?;
    let finished = Finished {
        app: &app,
        machine: &simulated.machine,
        seconds: simulated.seconds,
        breakdown: &simulated.breakdown,
        edges: &simulated.edges,
        flops: simulated.flops,
        io: "simulated",
        resumed: false,
        simulated: true,
        peak_rss_bytes: simulated.memory_bytes,
        ranks: &[],
        after: None,
        checked: None,
        resume_asked: false,
    };
    print(&match args.common.json {
        true => {
            let mut value = json::run(&finished);
            if let Some(laid) = &laid {
                value["compared"] = laid.json();
            }
            json::line(&value)
        }
        false => {
            let mut text = report::run(&finished);
            if let Some(laid) = &laid {
                text += &laid.text();
            }
            text
        }
    })
}

/// A part of the time of a run: what it is, predicted and measured, in seconds of worker time.
struct Part {
    name: String,
    predicted: f64,
    measured: f64,
}

/// A prediction laid over the trace of a real run.
struct Laid {
    /// Predicted and measured wall time, seconds.
    wall: (f64, f64),
    parts: Vec<Part>,
}

impl Laid {
    fn over(trace: &Trace, app: &str, simulated: &Simulated) -> Result<Laid, Failure> {
        if trace.header.program != app {
            let found = &trace.header.program;
            return Err(Failure::Request(format!(
                "the trace is of {found}, not of {app}; give the trace of such a run"
            )));
        }
        let measured = trace.breakdown();
        let workers = simulated.machine.workers();
        if measured.workers != workers {
            return Err(Failure::Request(format!(
                "the trace is of a run with {} workers, the simulation has {workers}; simulate with --threads {}",
                measured.workers, measured.workers
            )));
        }
        let predicted = &simulated.breakdown;
        let part = |name: &str, of: &dyn Fn(&Breakdown) -> f64| Part {
            name: name.to_owned(),
            predicted: of(predicted),
            measured: of(&measured),
        };
        let mut parts = vec![part("leaf work", &|b| b.leaf_seconds)];
        let edges = predicted.wait_seconds.iter().chain(&measured.wait_seconds);
        let mut seen: Vec<&str> = Vec::new();
        for (edge, _) in edges {
            if seen.contains(&edge.as_str()) {
                continue;
            }
            seen.push(edge);
            let waited = |b: &Breakdown| b.wait_seconds.iter().filter(|(name, _)| name == edge).map(|(_, s)| s).sum();
            let part = part(&format!("wait on {edge}"), &waited);
            if part.predicted > 0.0 || part.measured > 0.0 {
                parts.push(part);
            }
        }
        parts.push(part("overhead", &|b| b.overhead_seconds));
        Ok(Laid { wall: (simulated.seconds, trace.wall_seconds()), parts })
    }

    fn text(&self) -> String {
        let title = ["", "predicted", "measured", "ratio"].map(str::to_owned).to_vec();
        let row = |name: &str, predicted: f64, measured: f64| {
            let time = |seconds: f64| approximate_time(seconds * 1e9);
            let ratio = if measured > 0.0 { format!("{:.3}", predicted / measured) } else { "-".to_owned() };
            vec![name.to_owned(), time(predicted), time(measured), ratio]
        };
        let mut rows = vec![title, row("wall time", self.wall.0, self.wall.1)];
        rows.extend(self.parts.iter().map(|p| row(&p.name, p.predicted, p.measured)));
        format!("\nlaid over the measured run\n{}", table::render(&rows, 2))
    }

    fn json(&self) -> Value {
        let part =
            |p: &Part| json!({ "name": p.name, "predicted_seconds": p.predicted, "measured_seconds": p.measured });
        json!({
            "predicted_seconds": self.wall.0,
            "measured_seconds": self.wall.1,
            "ratio": self.wall.0 / self.wall.1,
            "parts": self.parts.iter().map(part).collect::<Vec<_>>(),
        })
    }
}
