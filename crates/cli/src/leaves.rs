//! How fast leaves are on this computer, for the simulator.

use crate::apps::App;
use crate::args::{Cli, Command};
use crate::failure::Failure;
use clap::Parser;
use multigrain::rooms::machine::Driver;
use multigrain::{Machine, MachineChoice, Options, Runtime, fit_leaf_rates};

/// What is run to measure the leaves of an application: sizes that take some tenths of a second, apart enough to tell
/// starting, arithmetic and bytes from each other. Their arrays are in memory and, where a task streams, larger than caches:
/// what is small enough to stay in a cache between two calls says nothing of what is not.
const JOBS: [(&str, &[&str]); 6] = [
    ("saxpy", &["saxpy --n 24000000", "saxpy --n 64000000"]),
    ("sgemv", &["sgemv --n 2048", "sgemv --n 8192"]),
    ("sgemm", &["sgemm --n 512", "sgemm --n 1024", "sgemm --n 2048", "sgemm --n 3000"]),
    ("conv2d", &["conv2d --n 1024", "conv2d --n 4096"]),
    ("fft3d", &["fft3d --n 192", "fft3d --n 256", "fft3d --n 320"]),
    ("gravity", &["gravity --n 2048 --steps 5", "gravity --n 8192 --steps 5", "gravity --n 20000 --steps 2"]),
];

/// How often each job is run.
const TIMES: usize = 5;

/// The machine with the rates of the leaves of these applications, or of all of [`JOBS`].
pub(crate) fn measured(machine: Machine, apps: &[String], here: bool) -> Result<Machine, Failure> {
    if !here {
        let name = &machine.name;
        return Err(Failure::Request(format!(
            "--leaves measures on this computer, machine {name} is another: give its leaf rates in its file"
        )));
    }
    let known: Vec<&str> = JOBS.iter().map(|(app, _)| *app).collect();
    if let Some(unknown) = apps.iter().find(|app| !known.contains(&app.as_str())) {
        return Err(Failure::Request(format!("--leaves {unknown}: leaves can be measured of {}", known.join(", "))));
    }
    let root_is_disk = machine.memories().iter().any(|m| m.edge.is_some_and(|edge| edge.driver == Driver::Disk));
    let in_memory = if root_is_disk { machine.without_root() } else { machine.clone() };
    let options = Options { machine: MachineChoice::Given(Box::new(in_memory)), ..Options::default() };
    let runtime = Runtime::new(options)?;
    let mut samples = Vec::new();
    for (app, jobs) in JOBS {
        if apps.is_empty() || apps.iter().any(|asked| asked == app) {
            for job in jobs {
                samples.extend(runtime.measure_leaves(&prepared(job, &runtime)?.job, TIMES)?);
            }
        }
    }
    let rates = fit_leaf_rates(&samples, "measured: leaves of small jobs in memory, all workers at work");
    let leaf = machine.levels()?.last().map(|&id| machine.memory(id).name.clone()).unwrap_or_default();
    let measured = machine.with(&leaf, |memory| {
        memory.leaves.retain(|old| !rates.iter().any(|new| new.task == old.task));
        memory.leaves.extend(rates);
    })?;
    Ok(measured)
}

/// An application as it would be typed.
fn prepared(job: &str, runtime: &Runtime) -> Result<multigrain::app::AppJob, Failure> {
    let words = ["multigrain", "run"].into_iter().chain(job.split(' '));
    let cli = Cli::try_parse_from(words).map_err(|e| Failure::Run(format!("internal error: {job}: {e}")))?;
    let Command::Run(args) = cli.command else {
        return Err(Failure::Run(format!("internal error: {job} is no run")));
    };
    let app: &App = &args.app;
    Ok(app.prepare(runtime)?)
}
