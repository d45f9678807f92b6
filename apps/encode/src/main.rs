//! `multigrain-encode`, which `multigrain encode` starts: arguments, a video and signals in, a file or a stream out.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, ValueEnum};
use multigrain::Progress;
use multigrain::strands::Policy;
use multigrain::whole;
use multigrain_console::{Bar, Failure, Interrupt, print, say};
use multigrain_encode::encoder::Options;
use multigrain_encode::error::Error;
use multigrain_encode::headers::{self, Colour, Names, Profile, Properties, Ratio, Structure};
use multigrain_encode::input::{Input, Raw, checked_size};
use multigrain_encode::output::{Container, Output};
use multigrain_encode::picture::Size;
use multigrain_encode::rate::{Keys, Rate};
use multigrain_encode::run::{Cut, Execution, run};
use multigrain_encode::search::Effort;
use multigrain_simd::Isa;
use serde_json::json;
use std::fs::File;
use std::io::{BufReader, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Encodes a video as H.264 on all processors
///
/// The input is YUV4MPEG2 (`ffmpeg -i FILE -pix_fmt yuv420p -f yuv4mpegpipe -`), or 4:2:0 samples with --size. The result is the
/// same whatever the number of threads and the policy.
#[derive(Parser, Debug)]
#[command(name = "multigrain encode", version, max_term_width = 100)]
struct Args {
    /// The video; - for standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Where to: .mp4 or .h264, or - for a stream on standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Quantiser of all pictures; the first, and those at which decoding can begin, have 3 less [default: 26]
    #[arg(long, value_name = "0-51", value_parser = clap::value_parser!(u8).range(0..=51), group = "rate_by")]
    qp: Option<u8>,
    /// Quantiser of pictures of usual change; more where more changes, less where less does
    #[arg(long, value_name = "0-51", value_parser = quality, group = "rate_by")]
    crf: Option<f64>,
    /// Bits a second that the video takes, such as 800k or 2.5M
    #[arg(long, value_name = "BITS", value_parser = bits, group = "rate_by")]
    bitrate: Option<f64>,
    /// Pictures from one at which decoding can begin to the next
    #[arg(long, value_name = "N", default_value_t = 250, value_parser = clap::value_parser!(u32).range(1..))]
    keyint: u32,
    /// Decoding does not begin where another scene does
    #[arg(long)]
    no_scenecut: bool,
    /// How thoroughly motion is searched
    #[arg(long, default_value = "medium")]
    preset: Preset,
    /// What players have to be able to do: main takes fewer bits
    #[arg(long, default_value = "baseline")]
    profile: ProfileName,
    /// Pictures in a row that are predicted from one before and one behind them; more than 0 needs main [default: by preset]
    #[arg(long, value_name = "0-16", value_parser = clap::value_parser!(u8).range(0..=16))]
    bframes: Option<u8>,
    /// Pictures that one may be predicted from [default: by preset]
    #[arg(long, value_name = "1-16", value_parser = clap::value_parser!(u8).range(1..=16))]
    refs: Option<u8>,
    /// The input has no header: columns x rows of its pictures
    #[arg(long, value_name = "WxH", value_parser = size)]
    size: Option<Size>,
    /// Pictures a second of an input without header
    #[arg(long, value_name = "N[:M]", value_parser = rate, requires = "size", default_value = "25")]
    rate: Ratio,
    /// Width of a sample over its height, where the input does not say it or is wrong
    #[arg(long, value_name = "N:M", value_parser = rate)]
    sar: Option<Ratio>,
    /// Whether samples use all values or 16 to 235, where the input does not say it or is wrong
    #[arg(long)]
    range: Option<Range>,
    /// Which colours the primaries are (ITU-T H.273)
    #[arg(long, value_parser = named(Colour::PRIMARIES), hide_possible_values = true, value_name = "NAME, such as bt709")]
    primaries: Option<u8>,
    /// How values follow light (ITU-T H.273)
    #[arg(long, value_parser = named(Colour::TRANSFER), hide_possible_values = true, value_name = "NAME, such as bt709")]
    transfer: Option<u8>,
    /// How luma and chroma are made of red, green and blue (ITU-T H.273)
    #[arg(long, value_parser = named(Colour::MATRIX), hide_possible_values = true, value_name = "NAME, such as bt709")]
    matrix: Option<u8>,
    /// Threads [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: Option<u32>,
    /// Who decides how many workers share a loop
    #[arg(long, value_name = "POLICY", default_value = "marginal")]
    policy: Policy,
    /// Writes down who computed what when; `multigrain trace FILE` shows it
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Prints one JSON object
    #[arg(long)]
    json: bool,
    /// What is off-loaded, for comparison: rows, or the search of so many macroblocks
    #[arg(long, hide = true, value_name = "rows|N", value_parser = cut, default_value = "rows")]
    cut: Cut,
    /// Instruction set of the kernels, for tests
    #[arg(long, hide = true, value_parser = isa)]
    isa: Option<Isa>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProfileName {
    /// Constrained baseline: what everything plays
    Baseline,
    /// Arithmetic codes
    Main,
}

impl From<ProfileName> for Profile {
    fn from(name: ProfileName) -> Profile {
        match name {
            ProfileName::Baseline => Profile::Baseline,
            ProfileName::Main => Profile::Main,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Range {
    /// All 256 values
    Full,
    /// Luma from 16 to 235
    Limited,
}

fn named(names: &'static Names) -> impl TypedValueParser<Value = u8> {
    let number = |name: String| names.iter().find(|known| known.0 == name).map_or(2, |known| known.1);
    PossibleValuesParser::new(names.iter().map(|known| known.0)).map(number)
}

/// What is known of the pictures, and what is said of them instead.
fn properties(found: Properties, args: &Args) -> Properties {
    Properties {
        aspect: args.sar.or(found.aspect),
        is_full_range: args.range.map(|range| range == Range::Full).or(found.is_full_range),
        colour: Colour {
            primaries: args.primaries.unwrap_or(found.colour.primaries),
            transfer: args.transfer.unwrap_or(found.colour.transfer),
            matrix: args.matrix.unwrap_or(found.colour.matrix),
        },
        ..found
    }
}

/// The quantiser if nothing is said of it.
const QP: u8 = 26;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Preset {
    /// Whole macroblocks only
    Fast,
    /// Parts of macroblocks, too
    Medium,
    /// More steps of search
    Slow,
}

impl Preset {
    fn effort(self) -> Effort {
        match self {
            Preset::Fast => Effort { steps: 3, fine: 1, has_parts: false, enough: 64 },
            Preset::Medium => Effort { steps: 6, fine: 2, has_parts: true, enough: 48 },
            Preset::Slow => Effort { steps: 16, fine: 3, has_parts: true, enough: 16 },
        }
    }
}

/// What pictures may be predicted from: what is asked for, else what the preset has.
fn structure(args: &Args, size: Size) -> Result<Structure, Failure> {
    let most = headers::kept_max(size);
    let (bidirectional, references) = match (args.profile, args.preset) {
        (ProfileName::Main, Preset::Medium) if most > 1 => (2, 1),
        (ProfileName::Main, Preset::Slow) if most > 1 => (2, 2),
        (ProfileName::Baseline, Preset::Slow) => (0, most.min(2)),
        _ => (0, 1),
    };
    let bidirectional = args.bframes.map_or(bidirectional, usize::from);
    if bidirectional > 0 && matches!(args.profile, ProfileName::Baseline) {
        return Err(Failure::Request(format!(
            "--bframes {bidirectional} is more than players of the baseline profile can do; add --profile main"
        )));
    }
    let structure = Structure { references: args.refs.map_or(references, usize::from), bidirectional };
    if structure.kept() > most {
        return Err(Failure::Request(format!(
            "players keep {most} pictures of {} x {} at most, and {} were to be kept; give smaller --refs and --bframes",
            size.width,
            size.height,
            structure.kept()
        )));
    }
    Ok(structure)
}

fn isa(name: &str) -> Result<Isa, String> {
    Isa::ALL.into_iter().find(|isa| isa.name() == name).ok_or_else(|| "scalar, avx2 or avx512".into())
}

fn cut(text: &str) -> Result<Cut, String> {
    let count = text.parse().ok().filter(|count| *count > 0).map(Cut::Macroblocks);
    count.or_else(|| (text == "rows").then_some(Cut::Rows)).ok_or_else(|| "rows, or a number of macroblocks".into())
}

fn size(text: &str) -> Result<Size, String> {
    let sides = text.split_once('x').and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
    let (width, height) = sides.ok_or("columns x rows, such as 640x480")?;
    checked_size(width, height).map_err(|why| format!("it {why}"))
}

fn quality(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value| (0.0..=51.0).contains(value));
    value.ok_or_else(|| "a number from 0 to 51".into())
}

fn bits(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1e3),
        None => text.strip_suffix('M').map_or((text, 1.0), |number| (number, 1e6)),
    };
    let value = number.parse().ok().map(|number: f64| number * unit).filter(|value| (1e3..=1e12).contains(value));
    value.ok_or_else(|| "bits a second, at least 1000, such as 800k or 2.5M".into())
}

fn rate(text: &str) -> Result<Ratio, String> {
    let (over, under) = text.split_once(':').unwrap_or((text, "1"));
    let ratio = over.parse().ok().zip(under.parse().ok()).filter(|(over, under)| *over > 0 && *under > 0);
    ratio.map(|(over, under)| Ratio { over, under }).ok_or_else(|| "a number, or a fraction such as 30000:1001".into())
}

fn failure(error: Error) -> Failure {
    match error {
        Error::ReaderGone => Failure::ReaderGone,
        other if other.exit_status() == 2 => Failure::Request(other.to_string()),
        other => Failure::Run(other.to_string()),
    }
}

/// Opens the input; how many pictures it has, where that can be told from its size.
fn open(args: &Args) -> Result<(Input<'static>, Option<u64>), Failure> {
    let raw = args.size.map(|size| Raw { size, rate: args.rate });
    if args.input.as_os_str() == "-" {
        let input = Input::open(Box::new(BufReader::with_capacity(1 << 20, std::io::stdin())), "standard input", raw);
        return Ok((input.map_err(failure)?, None));
    }
    let name = args.input.display().to_string();
    let unreadable = |e| Failure::Request(format!("cannot read {name}: {e}; give the name of a video"));
    let file = File::open(&args.input).map_err(unreadable)?;
    let found = file.metadata().map_err(unreadable)?;
    if found.is_dir() {
        return Err(Failure::Request(format!("{name} is a directory; give the name of a video")));
    }
    let bytes = found.is_file().then_some(found.len());
    let input = Input::open(Box::new(BufReader::with_capacity(1 << 20, file)), &name, raw).map_err(failure)?;
    let pictures = bytes.map(|bytes| bytes / input.properties().size.bytes() as u64);
    Ok((input, pictures))
}

fn encode(args: &Args) -> Result<(), Failure> {
    let is_stream = args.output.as_os_str() == "-";
    let name = args.output.display().to_string();
    let container = match (is_stream, Container::of(&name)) {
        (true, _) => Container::Bytes,
        (false, Some(container)) => container,
        (false, None) => {
            return Err(Failure::Request(format!(
                "{name} ends neither in .mp4 nor in .h264, which say what to write; name it so"
            )));
        }
    };
    if is_stream && std::io::stdout().is_terminal() {
        return Err(Failure::Request("the stream would go to the terminal; name a file with -o".to_owned()));
    }
    if is_stream && args.json {
        return Err(Failure::Request("standard output cannot be both stream and JSON; name a file with -o".to_owned()));
    }
    if !is_stream {
        if args.input.as_os_str() != "-" && whole::is_same_file(&args.input, &args.output) {
            return Err(Failure::Request(format!("{name} is the input; name another file with -o")));
        }
        whole::check_target(&args.output)?;
    }
    if let Some(trace) = &args.trace {
        if whole::is_same_file(trace, &args.output) || whole::is_same_file(trace, &args.input) {
            return Err(Failure::Request(format!(
                "{} is the input or the output; name another file with --trace",
                trace.display()
            )));
        }
        whole::check_target(trace)?;
    }
    let interrupt = Interrupt::install()?;
    let (mut input, expected) = open(args)?;
    input.correct(properties(input.properties(), args));
    let size = input.properties().size;
    let structure = structure(args, size)?;
    let output = match is_stream {
        true => Output::standard(),
        false => Output::file(&args.output, container).map_err(failure)?,
    };
    let threads =
        args.threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), |n| n as usize);
    let execution = Execution {
        threads,
        policy: args.policy,
        isa: args.isa.unwrap_or_else(Isa::detect),
        trace: args.trace.is_some(),
        cut: args.cut,
    };
    let by = match (args.crf, args.bitrate) {
        (Some(quality), _) => Rate::Quality(quality),
        (None, Some(bits)) => Rate::Bits(bits),
        (None, None) => Rate::Constant(args.qp.unwrap_or(QP)),
    };
    let keys = Keys { interval: args.keyint, at_cuts: !args.no_scenecut };
    let options = Options { rate: by, keys, effort: args.preset.effort(), profile: args.profile.into(), structure };
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
    interrupt.begin();
    let finished = run(&mut input, output, options, &execution, &interrupt.abort, &watch).map_err(failure)?;
    interrupt.run_is_over();
    bar.clear();
    if let (Some(path), Some(trace)) = (&args.trace, &finished.trace) {
        let refused = |e| {
            Failure::Run(format!("cannot write the trace {}: {e}; free space, or choose another file", path.display()))
        };
        trace.save(path).map_err(refused)?;
    }
    let seconds = began.elapsed().as_secs_f64();
    let speed = finished.pictures as f64 / seconds;
    if args.json {
        let object = json!({
            "app": "encode",
            "width": size.width,
            "height": size.height,
            "pictures": finished.pictures,
            "bytes": finished.bytes,
            "threads": threads,
            "policy": args.policy.to_string(),
            "pictures_at_once": finished.at_once,
            "tasks_by_one": finished.decided.calls + finished.decided.on_one,
            "tasks_shared": finished.decided.on_teams,
            "workers_of_shared": finished.decided.team_workers,
            "kernel": execution.isa.name(),
            "seconds": seconds,
            "pictures_per_second": speed,
            "calls": finished.calls.count,
            "call_nanoseconds": finished.calls.took_ns,
            "wait_nanoseconds": finished.calls.waited_ns,
        });
        return print(&format!("{object}\n"));
    }
    let line = format!(
        "{} pictures of {} x {}, {} bytes, {speed:.1} pictures a second",
        finished.pictures, size.width, size.height, finished.bytes
    );
    if is_stream {
        say(&line);
        return Ok(());
    }
    print(&format!("{line}\n"))
}

fn main() -> ExitCode {
    multigrain_console::program(encode)
}
