//! `multigrain-phylo`, which `multigrain phylo` starts: arguments, an alignment and signals in, trees in files out.

use clap::Parser;
use multigrain_console::{Bar, Failure, Interrupt, print};
use multigrain_phylo::Error;
use multigrain_phylo::app::{Args, Prepared, Progress, Report, Watcher, prepare, run};
use serde_json::{Map, Value, json};
use std::process::ExitCode;

/// Maximum-likelihood trees from an alignment of DNA or proteins, with bootstrap supports
#[derive(Parser)]
#[command(name = "multigrain phylo", version, max_term_width = 100)]
struct Typed {
    #[command(flatten)]
    args: Args,
}

fn failure(error: Error) -> Failure {
    match error.exit_status() {
        2 => Failure::Request(error.to_string()),
        _ => Failure::Run(error.to_string()),
    }
}

/// The log on standard output, and the bar.
struct Shown {
    log: bool,
    bar: Bar,
}

impl Watcher for Shown {
    fn line(&self, line: &str) {
        if self.log {
            // Whoever read it may have gone; the log has its file.
            self.bar.suspend(|| drop(print(&format!("{line}\n"))));
        }
    }

    fn progress(&self, progress: Progress) {
        let (searches, replicates) = (progress.searches, progress.replicates);
        self.bar.set(multigrain::Progress {
            done: (searches.0 + replicates.0) as f64 + progress.begun,
            total: (searches.1 + replicates.1) as f64,
        });
        let mut parts = Vec::new();
        if searches.1 > 0 {
            parts.push(format!("searches {} of {}", searches.0, searches.1));
        }
        if replicates.1 > 0 {
            parts.push(format!("replicates {} of {}", replicates.0, replicates.1));
        }
        if let Some(log_likelihood) = progress.log_likelihood {
            parts.push(format!("log-likelihood {log_likelihood:.2}"));
        }
        if let Some((job, round)) = progress.round {
            parts.push(format!("{} {} in round {round}", job.kind(), job.number() + 1));
        }
        self.bar.message(parts.join(", "));
    }
}

/// Looks at the request, does it and reports.
fn phylo(args: &Args) -> Result<(), Failure> {
    let interrupt = Interrupt::install()?;
    let mut prepared = prepare(args).map_err(failure)?;
    if prepared.is_finished {
        return match args.json {
            true => print(&format!("{}\n", json!({ "app": "phylo", "finished": true }))),
            false => print("this run is finished; its files are where it has left them\n"),
        };
    }
    let scheduler = args.scheduler(&mut prepared).map_err(failure)?;
    interrupt.begin();
    let shown = Shown { log: !args.json, bar: Bar::new("phylo", !args.json) };
    let report = run(&prepared, &scheduler, interrupt.abort.clone(), &shown).map_err(failure)?;
    shown.bar.clear();
    interrupt.run_is_over();
    match args.json {
        true => print(&format!("{}\n", object(&prepared, &report, args, scheduler.options().workers))),
        false => Ok(()),
    }
}

fn object(prepared: &Prepared, report: &Report, args: &Args, workers: usize) -> Value {
    let files: Map<String, Value> =
        report.files.iter().map(|(word, path)| (word.clone(), json!(path.display().to_string()))).collect();
    let patterns: usize = prepared.partitions.iter().map(|p| p.patterns.len()).sum();
    let mut value = json!({
        "app": "phylo",
        "log_likelihood": report.log_likelihood,
        "taxa": prepared.names.len(),
        "distinct_taxa": prepared.kept_names.len(),
        "sites": prepared.sites,
        "patterns": patterns,
        "models": report.models.iter().map(|(name, model)| json!({ "partition": name, "model": model })).collect::<Vec<_>>(),
        "free_parameters": report.free_parameters,
        "searches": report.searches,
        "topologies": report.topologies,
        "replicates": report.replicates,
        "resumed": prepared.saved.found.len() + prepared.saved.begun.len(),
        "tree": report.tree,
        "seed": prepared.seed,
        "threads": workers,
        "policy": args.policy.to_string(),
        "files": files,
        "seconds": report.seconds,
    });
    if let Some([akaike, corrected, bayesian]) = report.criteria(prepared.sites) {
        value["aic"] = json!(akaike);
        // Infinite where there are too few sites: JSON has no such number, and null stands for it.
        value["aicc"] = json!(corrected.is_finite().then_some(corrected));
        value["bic"] = json!(bayesian);
    }
    value
}

fn main() -> ExitCode {
    multigrain_console::program(|typed: &Typed| phylo(&typed.args))
}
