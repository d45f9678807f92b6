//! `multigrain-queens`, which `multigrain queens` starts: arguments and signals in, a line or one JSON object out.

use clap::Parser;
use multigrain_console::{Bar, Failure, Interrupt, print};
use multigrain_queens::{Error, Finished, Request, run};
use multigrain_simd::Isa;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// Counts the ways to put N queens on a board of N x N so that none attacks another
#[derive(Parser, Debug)]
#[command(name = "multigrain queens", version, max_term_width = 100)]
struct Args {
    /// Rows of the board, 1 to 32
    #[arg(value_name = "N")]
    n: u32,
    /// Threads [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    threads: Option<u32>,
    /// Keeps what has been counted in this file
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Goes on from the checkpoint; where there is none yet, begins
    #[arg(long, requires = "checkpoint")]
    resume: bool,
    /// Prints one JSON object
    #[arg(long)]
    json: bool,
    /// Instruction set of the kernel, for tests
    #[arg(long, hide = true, value_parser = isa)]
    isa: Option<Isa>,
}

fn isa(name: &str) -> Result<Isa, String> {
    Isa::ALL.into_iter().find(|isa| isa.name() == name).ok_or_else(|| Isa::ALL.map(Isa::name).join(", "))
}

/// The result for programs. Keys are stable.
#[derive(Serialize)]
struct Object {
    app: &'static str,
    n: u32,
    solutions: u128,
    fundamental: u128,
    point_symmetric: u128,
    rotation_symmetric: u128,
    parts: usize,
    resumed: usize,
    threads: usize,
    kernel: &'static str,
    seconds: f64,
}

fn object(n: u32, finished: &Finished) -> Object {
    let Finished { counts, parts, resumed, threads, kernel, seconds } = *finished;
    Object {
        app: "queens",
        n,
        solutions: counts.solutions,
        fundamental: counts.fundamental,
        point_symmetric: counts.point_symmetric,
        rotation_symmetric: counts.rotation_symmetric,
        parts,
        resumed,
        threads,
        kernel: kernel.name(),
        seconds,
    }
}

fn text(n: u32, finished: &Finished) -> String {
    let counts = &finished.counts;
    let mut text = format!(
        "{} solutions of {n} x {n}, {} fundamental ({} point-symmetric, {} of these by a quarter turn)\n",
        counts.solutions, counts.fundamental, counts.point_symmetric, counts.rotation_symmetric
    );
    if finished.resumed == finished.parts {
        text.push_str("the checkpoint was finished; nothing was counted anew\n");
    }
    text
}

fn failure(error: Error) -> Failure {
    match error.exit_status() {
        2 => Failure::Request(error.to_string()),
        _ => Failure::Run(error.to_string()),
    }
}

fn queens(args: &Args) -> Result<(), Failure> {
    let request = Request {
        n: args.n,
        threads: args.threads.map(|threads| threads as usize),
        isa: args.isa,
        checkpoint: args.checkpoint.clone(),
        resume: args.resume,
    };
    let interrupt = Interrupt::install()?;
    let bar = Bar::new("queens", true);
    let mut begun = false;
    let watch = |progress| match std::mem::replace(&mut begun, true) {
        true => bar.set(progress),
        // The board is divided. What the checkpoint held says nothing about how fast this run is.
        false => {
            interrupt.begin();
            bar.begin_at(progress);
        }
    };
    let finished = run(&request, &interrupt.abort, watch).map_err(failure)?;
    bar.clear();
    interrupt.run_is_over();
    let line = match args.json {
        true => serde_json::to_string(&object(args.n, &finished)).map_err(|e| Failure::Run(e.to_string()))? + "\n",
        false => text(args.n, &finished),
    };
    print(&line)
}

fn main() -> ExitCode {
    multigrain_console::program(queens)
}
