//! The `multigrain` command: machine, run, plan, phylo, sim, trace, bench, and programs beside it by their names.
//!
//! In come arguments, files and signals; out go text or one JSON object on standard output, one line on standard error
//! when something goes wrong, and an exit status: 0 done, 1 the run failed, 2 the request is wrong. This room only
//! translates between people and the facade: it never decides how anything is computed, and no panic leaves it.

mod apps;
mod args;
mod bench;
mod external;
mod json;
mod leaves;
mod machine;
mod phylo;
mod plan;
mod report;
mod run;
mod sim;
mod table;
mod trace;

use args::{Cli, Command};
use clap::{CommandFactory, FromArgMatches};
use multigrain_console::{failure, interrupt, output, progress};
use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything that the program which takes over would inherit.
    let arguments: Vec<_> = std::env::args_os().collect();
    if let Err(failure) = external::take_over(&Cli::command(), arguments.get(1..).unwrap_or_default()) {
        return failure.report();
    }
    multigrain_console::begin();
    let parsed = external::with_programs(Cli::command()).try_get_matches_from(arguments);
    let cli = match parsed.and_then(|found| Cli::from_arg_matches(&found)) {
        Ok(cli) => cli,
        Err(usage) => return failure::usage(&usage),
    };
    multigrain_console::finish(|| match &cli.command {
        Command::Machine(args) => machine::machine(args),
        Command::Run(args) => run::run(args),
        Command::Plan(args) => plan::plan(args),
        Command::Phylo(args) => phylo::phylo(args),
        Command::Sim(args) => sim::sim(args),
        Command::Trace(args) => trace::trace(args),
        Command::Bench(args) => bench::bench(args),
    })
}
