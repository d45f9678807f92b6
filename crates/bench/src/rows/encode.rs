//! Video: rows of macroblocks beside x264, openh264 and rusty_h264, beside one worker, and beside the same kernels off-loaded
//! call by call.

mod clip;
mod curve;

use super::Entry;
use crate::harness::Bench;
use crate::harness::files::Scratch;
use crate::harness::rounds::{Turn, alternate};
use crate::harness::row::{Bar, Figure, Row, Unit};
use clip::{BASELINE, Clip, REFERENCE, SUPERFAST, failed, generate};
use curve::{Curve, more_bits};
use multigrain_console::Failure;
use serde_json::Value;
use std::fmt::Write as _;

pub(super) const ENTRIES: &[Entry] = &[Entry::rows(
    "encode",
    "Video as H.264; x264, openh264, one worker, the same kernels off-loaded call by call; only when it is named",
    encode,
)
.when_named()];

/// Quantisers of the comparison of bits, and that of all others.
const QUANTISERS: [u32; 4] = [22, 27, 32, 37];
const QUANTISER: u32 = 27;

/// Turns take a second each.
const ROUNDS_MAX: u32 = 5;

/// Macroblocks that are searched in a job, for the length at which jobs begin to pay.
const JOBS: [u32; 6] = [2, 4, 8, 16, 32, 64];

/// Encoders of other kinds, in the list of peers and as they are shown.
const PEERS: [(&str, &str); 2] = [("openh264", "openh264"), ("rusty-h264", "rusty_h264")];

/// All rows, of each video that is given, and of a generated one: of it alone all rows, else those of bits.
pub(crate) fn encode(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let program = multigrain_cli::front().built("encode")?;
    let scratch = Scratch::new(&bench.args.directory, 512 << 20)?;
    let (path, pictures) = (scratch.path("generated.y4m"), bench.size(120, 16) as usize);
    let written = generate(&path, 640, 352, pictures);
    written.map_err(|e| Failure::Run(format!("cannot write {}: {e}", path.display())))?;
    let name = format!("a generated video of {pictures} pictures of 640 x 352");
    let clip = |path, name| Clip { scratch: &scratch, path, name, threads: bench.args.threads, program: &program };
    let generated = clip(path, name);
    if bench.args.video.is_empty() {
        return all(bench, &generated);
    }
    let mut rows = Vec::new();
    for path in &bench.args.video {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        rows.extend(all(bench, &clip(path.clone(), name))?);
    }
    rows.extend(bits(bench, &generated, true));
    Ok(rows)
}

fn all(bench: &Bench<'_>, clip: &Clip<'_>) -> Result<Vec<Row>, Failure> {
    let rows = clip.ours("rows.h264", clip.threads, "rows", QUANTISER, &[])?;
    let read = |name: &str| std::fs::read(clip.scratch.path(name)).map_err(|e| failed(clip.program, e));
    let expected = read("rows.h264")?;
    for (threads, cut) in [(1, "rows"), (clip.threads, "1"), (clip.threads, "16")] {
        clip.ours("other.h264", threads, cut, QUANTISER, &[])?;
        if read("other.h264")? != expected {
            return Err(failed(clip.program, format!("the stream of --threads {threads} --cut {cut} is another")));
        }
    }
    let wide = rows.answer["width"].as_u64().unwrap_or(0) >= 320;
    let mut rows = vec![beside_x264(bench, clip)?, beside_others(bench, clip)?];
    rows.extend(bits(bench, clip, wide));
    rows.extend([workers(bench, clip)?, calls(bench, clip)?]);
    Ok(rows)
}

fn row(name: &str, unit: Unit, ours: Vec<f64>, peers: Vec<Figure>, bar: Bar, notes: Vec<String>) -> Row {
    Row { name: name.to_owned(), unit, ours, peers, bar, notes, failed: None }
}

fn figure(name: &str, samples: Result<Vec<f64>, String>) -> Figure {
    let missing = samples.as_ref().err().cloned();
    Figure { name: name.to_owned(), version: None, samples: samples.unwrap_or_default(), missing }
}

/// Seconds of somebody else, who takes turns with us, or why there are none.
struct Theirs<'a> {
    run: Box<dyn FnMut() -> Result<f64, String> + 'a>,
    seconds: Vec<f64>,
    gone: Option<String>,
}

impl<'a> Theirs<'a> {
    fn new(run: impl FnMut() -> Result<f64, String> + 'a) -> Theirs<'a> {
        Theirs { run: Box::new(run), seconds: Vec::new(), gone: None }
    }

    fn turn(&mut self) -> Result<f64, Failure> {
        if self.gone.is_none() {
            match (self.run)() {
                Ok(seconds) => self.seconds.push(seconds),
                Err(why) => self.gone = Some(why),
            }
        }
        Ok(0.0)
    }

    fn figure(mut self, name: &str) -> Figure {
        // The first turn does not count.
        figure(name, self.gone.take().map_or_else(|| Ok(self.seconds.split_off(1)), Err))
    }
}

/// Our seconds in turns with others.
fn in_turns(bench: &Bench<'_>, clip: &Clip<'_>, others: &mut [Theirs<'_>]) -> Result<Vec<f64>, Failure> {
    let mut turns: Vec<Turn<'_>> =
        vec![Box::new(|| Ok(clip.ours("ours.h264", clip.threads, "rows", QUANTISER, &[])?.seconds))];
    turns.extend(others.iter_mut().map(|other| Box::new(|| other.turn()) as Turn<'_>));
    let rounds = bench.args.rounds.min(ROUNDS_MAX);
    Ok(alternate(bench, "encode", rounds, &mut turns, &mut [])?.swap_remove(0))
}

fn speed_notes(clip: &Clip<'_>) -> Vec<String> {
    vec![format!("{}, QP {QUANTISER}, {} threads, baseline; whole runs", clip.name, clip.threads)]
}

fn beside_x264(bench: &Bench<'_>, clip: &Clip<'_>) -> Result<Row, Failure> {
    let mut theirs = [Theirs::new(|| clip.x264("x264.h264", [&SUPERFAST, &BASELINE], QUANTISER))];
    let ours = in_turns(bench, clip, &mut theirs)?;
    let peers = theirs.map(|theirs| theirs.figure("x264 superfast")).into();
    Ok(row("encode", Unit::Seconds, ours, peers, Bar::RatioAtLeast(0.5), speed_notes(clip)))
}

fn beside_others(bench: &Bench<'_>, clip: &Clip<'_>) -> Result<Row, Failure> {
    let mut theirs = PEERS.map(|(name, _)| {
        let words = bench.catalogue.command(name);
        Theirs::new(move || clip.peer(words.as_ref().map_err(Clone::clone)?, "peer.h264", QUANTISER))
    });
    let ours = in_turns(bench, clip, &mut theirs)?;
    let peers = theirs.into_iter().zip(PEERS).map(|(theirs, (_, label))| theirs.figure(label)).collect();
    Ok(row("encode-others", Unit::Seconds, ours, peers, Bar::RatioAtLeast(1.2), speed_notes(clip)))
}

/// Bits at equal PSNR: beside x264 in baseline and in main, and beside others that are there.
fn bits(bench: &Bench<'_>, clip: &Clip<'_>, is_wide: bool) -> Vec<Row> {
    let samples = match clip.samples(&clip.path) {
        Ok(samples) => samples,
        Err(why) => return vec![Row::failed("encode-bits", why)],
    };
    let curve = |encode: &dyn Fn(u32) -> Result<f64, String>| -> Result<Curve, String> {
        let mut curve = [(0.0, 0.0); 4];
        for (point, qp) in curve.iter_mut().zip(QUANTISERS) {
            encode(qp)?;
            *point = clip.point("point.h264", &samples)?;
        }
        Ok(curve)
    };
    let ours = |options: &[&str]| {
        curve(&|qp| {
            Ok(clip.ours("point.h264", clip.threads, "rows", qp, options).map_err(crate::harness::reason)?.seconds)
        })
    };
    let x264 = |options: [&[&str]; 2]| curve(&|qp| clip.x264("point.h264", options, qp));
    let notes = |than: &str| {
        let how = format!("bits at equal PSNR over those of {than}, QP {QUANTISERS:?} (Bjontegaard)");
        vec![format!("{how}; {}", clip.name)]
    };
    // Small pictures have few macroblocks without a neighbour that is missing.
    let bar = Bar::AtMost(if is_wide { 1.12 } else { 1.2 });
    let beside_x264 = || -> Result<Vec<Row>, String> {
        let reference = x264([&REFERENCE, &BASELINE])?;
        let of = |name, bar, [ours, theirs]: [Curve; 2]| {
            let peer = figure("x264 superfast", Ok(vec![more_bits(&theirs, &reference)]));
            let notes = notes("x264 in baseline with hexagonal search and subme 7");
            row(name, Unit::Multiple, vec![more_bits(&ours, &reference)], vec![peer], bar, notes)
        };
        let baseline = [ours(&[])?, x264([&SUPERFAST, &BASELINE])?];
        let main = [ours(&["--profile", "main"])?, x264([&SUPERFAST, &["--profile", "main"]])?];
        Ok(vec![of("encode-bits", bar, baseline), of("encode-main-bits", Bar::None, main)])
    };
    let mut rows = beside_x264().unwrap_or_else(|why| vec![Row::failed("encode-bits", why)]);
    for (name, label) in PEERS {
        let title = format!("encode-bits-{name}");
        // One that is not there is told beside its speed.
        let Ok(words) = bench.catalogue.command(name) else { continue };
        let measured = || {
            Ok([ours(&[])?, curve(&|qp| clip.peer(&words, "point.h264", qp).map_err(|why| format!("{label}: {why}")))?])
        };
        rows.push(match measured() {
            Ok([ours, theirs]) => {
                let peer = figure(label, Ok(vec![1.0]));
                row(&title, Unit::Multiple, vec![more_bits(&ours, &theirs)], vec![peer], Bar::AtMost(1.0), notes(label))
            }
            Err(why) => Row::failed(&title, why),
        });
    }
    rows
}

fn workers(bench: &Bench<'_>, clip: &Clip<'_>) -> Result<Row, Failure> {
    let mut turns: Vec<Turn<'_>> = [clip.threads, 1]
        .map(|threads| {
            Box::new(move || Ok(clip.ours("ours.h264", threads, "rows", QUANTISER, &[])?.seconds)) as Turn<'_>
        })
        .into();
    let mut samples = alternate(bench, "encode", bench.args.rounds.min(ROUNDS_MAX), &mut turns, &mut [])?.into_iter();
    let (ours, one) = (samples.next().unwrap_or_default(), samples.next().unwrap_or_default());
    let bar = if clip.threads > 1 { Bar::RatioAtLeast(0.95 * f64::from(clip.threads)) } else { Bar::None };
    let notes = vec![format!("{} workers; {}", clip.threads, clip.name)];
    Ok(row("encode-workers", Unit::Seconds, ours, vec![figure("one worker", Ok(one))], bar, notes))
}

/// Rows beside the search of macroblocks and half samples of rows off-loaded one by one.
fn calls(bench: &Bench<'_>, clip: &Clip<'_>) -> Result<Row, Failure> {
    let mut called = Value::Null;
    let mut turns: Vec<Turn<'_>> =
        vec![Box::new(|| Ok(clip.ours("ours.h264", clip.threads, "rows", QUANTISER, &[])?.seconds)), {
            let called = &mut called;
            Box::new(move || {
                let run = clip.ours("ours.h264", clip.threads, "1", QUANTISER, &[])?;
                *called = run.answer;
                Ok(run.seconds)
            })
        }];
    for cut in std::iter::once("rows".to_owned()).chain(JOBS.map(|count| count.to_string())) {
        let threads = if cut == "rows" { 1 } else { clip.threads };
        turns.push(Box::new(move || Ok(clip.ours("ours.h264", threads, &cut, QUANTISER, &[])?.seconds)));
    }
    let samples = alternate(bench, "encode", bench.args.rounds.min(ROUNDS_MAX), &mut turns, &mut [])?;
    drop(turns);
    let medians: Vec<f64> =
        samples.iter().map(|samples| figure("", Ok(samples.clone())).median().unwrap_or(0.0)).collect();
    let (alone, jobs) = (medians[2], &medians[3..]);
    let number = |key: &str| called[key].as_f64().unwrap_or(0.0);
    let (count, took, waited) = (number("calls"), number("call_nanoseconds"), number("wait_nanoseconds"));
    let mut notes = vec![
        format!(
            "the same stream, on one processor that codes and one that is called: {count} calls, which take {:.2} us and are \
             waited for {:.2} us, {:.0} % of it dispatch; {:.2} of the speed of one worker without calls",
            took / count / 1e3,
            waited / count / 1e3,
            100.0 * (1.0 - took / waited),
            alone / medians[1]
        ),
        "the thesis: more than half of a call was dispatch, off-loaded search slower in every setting, the filter no faster \
         with one thread"
            .to_owned(),
    ];
    let search_us = took / count / 1e3;
    let mut line = "jobs of so many searches, while those before are coded, beside one worker:".to_owned();
    for (length, seconds) in JOBS.iter().zip(jobs) {
        write!(line, " {length} ({:.0} us) {:.2},", f64::from(*length) * search_us, alone / seconds).unwrap_or(());
    }
    notes.push(line.trim_end_matches(',').to_owned());
    let pays = JOBS.iter().zip(jobs).find(|(_, seconds)| **seconds < alone);
    notes.push(match pays {
        Some((length, _)) => {
            format!("they pay from {length} macroblocks on, some {:.0} us", f64::from(*length) * search_us)
        }
        None => "none of them pays".to_owned(),
    });
    let by_call = figure("call by call", Ok(samples[1].clone()));
    Ok(row("encode-calls", Unit::Seconds, samples[0].clone(), vec![by_call], Bar::RatioAtLeast(1.0), notes))
}
