//! `multigrain-queens`, which `multigrain queens` starts: arguments and signals in, a line or one JSON object out.

mod interrupt;

use clap::Parser;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use interrupt::Interrupt;
use multigrain_queens::{Error, Finished, Progress, Request, run};
use multigrain_simd::Isa;
use serde::Serialize;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

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
    Isa::ALL.into_iter().find(|isa| isa.name() == name).ok_or_else(|| "scalar, avx2 or avx512".into())
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

/// One message on standard error. Where even that is gone, there is nobody to tell.
fn say(message: &str) {
    let _ = writeln!(std::io::stderr(), "multigrain queens: {message}");
}

/// A bar on a terminal.
fn bar() -> Option<ProgressBar> {
    const STEPS: u64 = 100_000;
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr_with_hz(10));
    if let Ok(style) =
        ProgressStyle::with_template("queens  {bar:40}  {percent_precise} %  {elapsed} elapsed, {eta} left")
    {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.enable_steady_tick(Duration::from_millis(250));
    Some(bar)
}

fn text(n: u32, finished: &Finished) -> String {
    let counts = &finished.counts;
    let mut text = format!(
        "{} solutions of {n} x {n}, {} of them fundamental (point-symmetric {}, quarter-turn-symmetric {})\n",
        counts.solutions, counts.fundamental, counts.point_symmetric, counts.rotation_symmetric
    );
    if finished.resumed == finished.parts {
        text.push_str("the checkpoint was finished already; nothing was counted anew\n");
    }
    text
}

fn queens(args: &Args) -> Result<String, Error> {
    let request = Request {
        n: args.n,
        threads: args.threads.map(|threads| threads as usize),
        isa: args.isa,
        checkpoint: args.checkpoint.clone(),
        resume: args.resume,
    };
    let interrupt = Interrupt::install();
    let bar = bar();
    let mut begun = false;
    let watch = |progress: Progress| {
        if let Some(bar) = &bar
            && progress.total > 0.0
        {
            bar.set_position((progress.done / progress.total * bar.length().unwrap_or(0) as f64) as u64);
            if !std::mem::replace(&mut begun, true) {
                // What the checkpoint held took no time now.
                bar.reset_eta();
            }
        }
    };
    let finished = run(&request, &interrupt.abort, watch);
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    let finished = finished?;
    interrupt.run_is_over();
    if !args.json {
        return Ok(text(args.n, &finished));
    }
    let object = Object {
        app: "queens",
        n: args.n,
        solutions: finished.counts.solutions,
        fundamental: finished.counts.fundamental,
        point_symmetric: finished.counts.point_symmetric,
        rotation_symmetric: finished.counts.rotation_symmetric,
        parts: finished.parts,
        resumed: finished.resumed,
        threads: finished.threads,
        kernel: finished.kernel.name(),
        seconds: finished.seconds,
    };
    Ok(serde_json::to_string(&object).map(|line| line + "\n").unwrap_or_default())
}

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) if !error.use_stderr() => {
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            let text = error.render().to_string();
            say(text.strip_prefix("error: ").unwrap_or(&text).trim_end());
            return ExitCode::from(2);
        }
    };
    match queens(&args) {
        Ok(text) => {
            let mut out = std::io::stdout().lock();
            match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
                Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                    say(&format!("cannot write to standard output: {error}"));
                    ExitCode::FAILURE
                }
                _ => ExitCode::SUCCESS,
            }
        }
        Err(error) => {
            say(&error.to_string());
            ExitCode::from(error.exit_status())
        }
    }
}
