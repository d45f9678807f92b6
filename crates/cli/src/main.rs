//! The `multigrain` command: machine, run, plan, phylo, sim, trace, bench.
//!
//! In come arguments, files and signals; out go text or one JSON object on standard output, one line on standard error
//! when something goes wrong, and an exit status: 0 done, 1 the run failed, 2 the request is wrong. This room only
//! translates between people and the facade: it never decides how anything is computed, and no panic leaves it.

mod apps;
mod args;
mod bench;
mod failure;
mod interrupt;
mod json;
mod leaves;
mod machine;
mod output;
mod phylo;
mod plan;
mod progress;
mod report;
mod run;
mod sim;
mod table;
mod trace;

use args::{Cli, Command};
use clap::Parser;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    failure::install_panic_hook();
    interrupt::ignore_file_size_signal();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => return failure::usage(&usage),
    };
    let done = std::panic::catch_unwind(|| match &cli.command {
        Command::Machine(args) => machine::machine(args),
        Command::Run(args) => run::run(args),
        Command::Plan(args) => plan::plan(args),
        Command::Phylo(args) => phylo::phylo(args),
        Command::Sim(args) => sim::sim(args),
        Command::Trace(args) => trace::trace(args),
        Command::Bench(args) => bench::bench(args),
    });
    match done {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => failure.report(),
        Err(_) => Failure::panicked().report(),
    }
}
