//! `multigrain-encode`, which `multigrain encode` starts: arguments, a video and signals in, a file or a stream out.

mod args;

use args::Args;
use multigrain::Progress;
use multigrain::whole::{self, TargetError, is_same_file};
use multigrain_console::memory::Memory;
use multigrain_console::{Bar, Failure, Interrupt, Opened, Watched, has_stdout, open, print, say};
use multigrain_encode::error::Error;
use multigrain_encode::input::Input;
use multigrain_encode::kernel::Kernels;
use multigrain_encode::levels::{Taken, is_held};
use multigrain_encode::output::{Container, Expected, Output, Written};
use multigrain_encode::run::{Execution, LESS_MEMORY, run};
use multigrain_encode::shown::Shown;
use multigrain_simd::Isa;
use serde_json::json;
use std::io::{BufReader, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// Bytes that are read at once where lines are looked for; the rest of a picture goes where it is to be.
const READ_BYTES: usize = 64 << 10;

#[global_allocator]
static MEMORY: Memory = Memory::new(LESS_MEMORY);

/// A rate is missed by so much before it is told.
const MISSED: f64 = 1.1;

fn failure(error: Error) -> Failure {
    match error.exit_status() {
        2 => Failure::Request(error.to_string()),
        _ => Failure::Run(error.to_string()),
    }
}

/// What is to be written, if it can be; before any work.
fn container(args: &Args) -> Result<Container, Failure> {
    let refused = |why: String| Err(Failure::Request(why));
    if args.is_stream() {
        if args.json {
            return refused("standard output cannot be both stream and JSON; name a file with -o".to_owned());
        }
        if !has_stdout() {
            return refused("standard output is closed; name a file with -o".to_owned());
        }
        if std::io::stdout().is_terminal() {
            return refused("the stream would go to the terminal; name a file with -o".to_owned());
        }
        return Ok(Container::Bytes);
    }
    let name = args.output.display().to_string();
    let Some(container) = Container::of(&name) else {
        return refused(format!("{name} ends neither in .mp4 nor in .h264, which say what to write; name it so"));
    };
    match whole::check_target(&args.output) {
        Err(e @ TargetError::NotAFile { .. }) if !args.output.is_dir() => {
            refused(format!("{e}, or write a stream to it: -o - > {name}"))
        }
        checked => Ok(checked.map(|()| container)?),
    }
}

/// Refuses to write what is being read, or two things to one file.
fn check_names(args: &Args, input: &Opened) -> Result<(), Failure> {
    let is_file = input.file.metadata().is_ok_and(|found| found.is_file());
    let from = args.input().unwrap_or(Path::new("/dev/stdin"));
    let to = if args.is_stream() { Path::new("/dev/stdout") } else { &args.output };
    if is_file && is_same_file(from, to) {
        let to = if args.is_stream() { "standard output".to_owned() } else { to.display().to_string() };
        return Err(Failure::Request(format!("{to} is the input; name another file with -o")));
    }
    let mut others = vec![("the output", to)];
    if is_file {
        others.push(("the input", from));
    }
    for (option, path) in [("--trace", &args.trace), ("--recon", &args.recon)] {
        let Some(path) = path else { continue };
        if let Some((what, _)) = others.iter().find(|(_, other)| is_same_file(path, other)) {
            return Err(Failure::Request(format!("{} is {what}; name another file with {option}", path.display())));
        }
        whole::check_target(path)?;
        others.push(("the trace", path));
    }
    Ok(())
}

/// What was written is there, whatever fails behind it.
fn complete(args: &Args, failed: Failure) -> Failure {
    let name = if args.is_stream() { "the stream".to_owned() } else { args.output.display().to_string() };
    match failed {
        Failure::Run(why) => Failure::Run(format!("{name} is complete, but {why}")),
        other => other,
    }
}

fn encode(args: &Args) -> Result<(), Failure> {
    let container = container(args)?;
    let interrupt = Interrupt::install()?;
    let opened = open(args.input())?;
    check_names(args, &opened)?;
    let watched = Watched { file: &opened.file, abort: &interrupt.abort };
    let from = BufReader::with_capacity(READ_BYTES, watched);
    let corrected = |said| args.properties(said);
    let mut input = Input::open(Box::new(from), &opened.name, args.raw(), corrected).map_err(failure)?;
    let (size, rate) = (input.properties().size, input.properties().rate);
    let options = args.options(size)?;
    let expected = opened.bytes.map(|bytes| bytes / size.bytes() as u64);
    let taken = Taken::new(&input.properties(), options.structure.kept());
    let output = match args.is_stream() {
        true => Output::standard(taken),
        false => {
            let (keyint, is_reordered) = (options.keys.interval, options.structure.bidirectional > 0);
            let expected = expected.map(|pictures| Expected { pictures, keyint, is_reordered });
            Output::file(&args.output, container, taken, expected).map_err(failure)?
        }
    };
    let shown = args.recon.as_ref().map(|path| Shown::create(path, size)).transpose().map_err(failure)?;
    let threads =
        args.threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), |n| n as usize);
    let execution = Execution {
        threads,
        policy: args.policy,
        isa: args.isa.unwrap_or_else(Isa::detect),
        trace: args.trace.is_some(),
        cut: args.cut,
    };
    let bar = Bar::new("encode", true);
    let began = Instant::now();
    let watch = |pictures: u64| {
        let speed = pictures as f64 / began.elapsed().as_secs_f64();
        let left = expected.map(|all| format!(", {:.0} s left", all.saturating_sub(pictures) as f64 / speed));
        bar.message(format!("encode {pictures} pictures, {speed:.1} a second{}", left.unwrap_or_default()));
        if let Some(expected) = expected {
            bar.set(Progress { done: pictures as f64, total: expected as f64 });
        }
    };
    // Nobody may read a stream on: then the first signal ends the process.
    match args.is_stream() {
        true => interrupt.begin_stream(),
        false => interrupt.begin(),
    }
    let finished = run(&mut input, (output, shown), options, &execution, &interrupt.abort, &watch).map_err(failure)?;
    interrupt.run_is_over();
    bar.clear();
    let complete = |failed| complete(args, failed);
    let psnr = finished.shown.as_ref().map(Shown::psnr);
    if let Some(shown) = finished.shown {
        shown.finish().map_err(|error| complete(failure(error)))?;
    }
    if let (Some(path), Some(trace)) = (&args.trace, &finished.trace) {
        let refused = |e| {
            Failure::Run(format!("cannot write the trace {}: {e}; free space, or choose another file", path.display()))
        };
        trace.save(path).map_err(refused).map_err(complete)?;
    }
    let seconds = began.elapsed().as_secs_f64();
    let speed = finished.pictures as f64 / seconds;
    let shown_seconds = finished.pictures as f64 * f64::from(rate.under) / f64::from(rate.over);
    let Written { bytes, picture_bytes, level, level_told } = finished.written;
    if !is_held(&input.properties(), options.structure.kept()) {
        say(
            "no level holds pictures as large and as many a second; the stream says level 6.2, and players may refuse it",
        );
    }
    let bits = 8.0 * picture_bytes as f64 / shown_seconds;
    if let Some(wanted) = args.bits()
        && bits > MISSED * wanted
    {
        say(&format!(
            "the video takes {:.0} kb/s instead of {:.0}; so few do not hold it, or it is too short to make up for its begin",
            bits / 1e3,
            wanted / 1e3
        ));
    }
    if level > level_told {
        let number = |level: u8| format!("{}.{}", level / 10, level % 10);
        say(&format!(
            "the stream says level {} and has more bits than that, level {}'s; name a file with -o, or give --bitrate",
            number(level_told),
            number(level)
        ));
    }
    if args.json {
        let object = json!({
            "app": "encode",
            "width": size.width,
            "height": size.height,
            "pictures": finished.pictures,
            "bytes": bytes,
            "level": f64::from(level_told) / 10.0,
            "bits_per_second": bits,
            "bits_per_second_asked": args.bits(),
            "psnr": psnr,
            "threads": threads,
            "policy": args.policy.to_string(),
            "pictures_at_once": finished.at_once,
            "tasks_by_one": finished.decided.calls + finished.decided.on_one,
            "tasks_shared": finished.decided.on_teams,
            "workers_of_shared": finished.decided.team_workers,
            "kernel": Kernels::new(execution.isa).isa.name(),
            "seconds": seconds,
            "pictures_per_second": speed,
            "calls": finished.calls.count,
            "call_nanoseconds": finished.calls.took_ns,
            "wait_nanoseconds": finished.calls.waited_ns,
        });
        return print(&format!("{object}\n")).map_err(complete);
    }
    let psnr = psnr.map(|psnr| format!(", PSNR {psnr:.2} dB")).unwrap_or_default();
    let line = format!(
        "{} pictures of {} x {}, {bytes} bytes{psnr}, {speed:.1} pictures a second",
        finished.pictures, size.width, size.height
    );
    if args.is_stream() {
        say(&line);
        return Ok(());
    }
    print(&format!("{line}\n")).map_err(complete)
}

fn main() -> ExitCode {
    multigrain_console::program(encode)
}
