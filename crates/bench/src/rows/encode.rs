//! Video: rows of macroblocks beside x264, openh264 and rusty_h264, beside one worker, and beside the same kernels off-loaded
//! call by call.

mod calls;
mod clip;
mod curve;
mod equal;

use crate::entry::Entry;
use crate::harness::files::Scratch;
use crate::harness::rounds::{Turn, alternate};
use crate::harness::row::{Bar, Figure, Row, Unit, median};
use crate::harness::{Bench, reason};
use clip::{BASELINE, Clip, REFERENCE, SUPERFAST, failed, generate};
use curve::{Curve, more_bits};
use multigrain_console::Failure;
use std::panic::resume_unwind;
use std::time::Instant;

pub(super) const ENTRIES: &[Entry] = &[
    Entry::rows("encode", "Video as H.264: all of the following rows; only when it is named, as these", |bench| {
        of_all(bench, &[beside_x264, equal::rows, workers, calls::rows])
    })
    .when_named(),
    Entry::rows("encode-x264", "Speed and bits; x264", |bench| of_all(bench, &[beside_x264])).when_named(),
    Entry::rows("encode-equal", "Speed and bits at equal PSNR; openh264, rusty_h264", |bench| {
        of_all(bench, &[equal::rows])
    })
    .when_named(),
    Entry::rows("encode-workers", "Several workers; one worker", |bench| of_all(bench, &[workers])).when_named(),
    Entry::rows("encode-calls", "Cut at rows; the same kernels off-loaded call by call", |bench| {
        of_all(bench, &[calls::rows])
    })
    .when_named(),
];

/// Quantisers of the comparison of bits, and that of all others.
const QUANTISERS: [u32; 4] = [22, 27, 32, 37];
const QUANTISER: u32 = 27;

/// Turns take a second each.
const ROUNDS_MAX: u32 = 5;

/// How many more bits than the reference, of wide pictures and of small ones.
const BITS_BAR: f64 = 1.12;
const BITS_BAR_SMALL: f64 = 1.2;

/// What is measured of a video.
type Rows = fn(&Bench<'_>, &Clip<'_>) -> Result<Vec<Row>, Failure>;

/// Rows of each video that is given, or of a generated one; then also of the generated one how many bits it takes.
fn of_all(bench: &Bench<'_>, kinds: &[Rows]) -> Result<Vec<Row>, Failure> {
    let program = multigrain_cli::front().built("encode")?;
    let scratch = Scratch::new(&bench.args.directory, 512 << 20)?;
    let (path, pictures) = (scratch.path("generated.y4m"), bench.size(120, 16) as usize);
    let written = generate(&path, 640, 352, pictures);
    written.map_err(|e| Failure::Run(format!("cannot write {}: {e}", path.display())))?;
    let name = format!("a generated video of {pictures} pictures of 640 x 352");
    let clip = |path, name| Clip { scratch: &scratch, path, name, threads: bench.args.threads, program: &program };
    let mut clips = vec![clip(path, name)];
    clips.splice(
        0..0,
        bench
            .args
            .video
            .iter()
            .map(|path| clip(path.clone(), path.file_name().unwrap_or_default().to_string_lossy().into_owned())),
    );
    let mut rows = Vec::new();
    for clip in &clips {
        check(clip)?;
        for kind in kinds {
            rows.extend(kind(bench, clip)?);
        }
    }
    Ok(rows)
}

/// What is timed gives one stream, however it is executed, and ffmpeg, where it is installed, shows sample by sample the pictures that
/// the encoder says it makes, by every preset and profile that is timed.
fn check(clip: &Clip<'_>) -> Result<(), Failure> {
    clip.ours("rows.h264", clip.threads, "rows", QUANTISER, &[])?;
    let read = |name: &str| std::fs::read(clip.scratch.path(name)).map_err(|e| failed(clip.program, e));
    let expected = read("rows.h264")?;
    for (threads, cut) in [(1, "rows"), (clip.threads, "1"), (clip.threads, "16")] {
        clip.ours("other.h264", threads, cut, QUANTISER, &[])?;
        if read("other.h264")? != expected {
            return Err(failed(clip.program, format!("the stream of --threads {threads} --cut {cut} is another")));
        }
    }
    if clip.samples(&clip.path).is_err() {
        return Ok(());
    }
    let made = clip.scratch.path("made.yuv");
    let made_name = made.to_string_lossy();
    for options in [&["--preset", "fast"][..], &["--preset", "medium"], &["--profile", "main"]] {
        clip.ours("other.h264", clip.threads, "rows", QUANTISER, &[options, &["--recon", &made_name]].concat())?;
        let shown = clip.samples(&clip.scratch.path("other.h264")).map_err(|why| failed(clip.program, why))?;
        if shown != read("made.yuv")? {
            let what = format!("ffmpeg shows other pictures of {} than were made", options.join(" "));
            return Err(failed(clip.program, what));
        }
    }
    Ok(())
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

/// Seconds of ours in turns with those of others.
fn in_turns<'a>(
    bench: &Bench<'_>,
    mut turns: Vec<Turn<'a>>,
    others: &'a mut [Theirs<'_>],
) -> Result<Vec<Vec<f64>>, Failure> {
    let count = turns.len();
    turns.extend(others.iter_mut().map(|other| Box::new(|| other.turn()) as Turn<'_>));
    let mut samples = alternate(bench, "encode", bench.args.rounds.min(ROUNDS_MAX), &mut turns, &mut [])?;
    samples.truncate(count);
    Ok(samples)
}

/// Speed and bits beside x264.
fn beside_x264(bench: &Bench<'_>, clip: &Clip<'_>) -> Result<Vec<Row>, Failure> {
    let mut theirs = [Theirs::new(|| clip.x264("x264.h264", [&SUPERFAST, &BASELINE], QUANTISER))];
    let ours = || Ok(clip.ours("ours.h264", clip.threads, "rows", QUANTISER, &[])?.seconds);
    let seconds = in_turns(bench, vec![Box::new(ours)], &mut theirs)?.swap_remove(0);
    let peers = theirs.map(|theirs| theirs.figure("x264 superfast"));
    let notes = vec![format!("{}, QP {QUANTISER}, {} threads, baseline; whole runs", clip.name, clip.threads)];
    let mut rows = vec![Row::new("encode", Unit::Seconds, seconds, peers, Bar::RatioAtLeast(0.5), notes)];
    rows.extend(
        bits(clip)
            .unwrap_or_else(|why| vec![Row { bar: Bar::AtMost(BITS_BAR_SMALL), ..Row::failed("encode-bits", why) }]),
    );
    Ok(rows)
}

/// Bits at equal PSNR beside x264, in baseline and in main.
fn bits(clip: &Clip<'_>) -> Result<Vec<Row>, String> {
    let samples = clip.samples(&clip.path)?;
    let curve = |encode: &dyn Fn(u32) -> Result<f64, String>| -> Result<Curve, String> {
        let mut curve = [(0.0, 0.0); 4];
        for (point, qp) in curve.iter_mut().zip(QUANTISERS) {
            encode(qp)?;
            *point = clip.point("point.h264", &samples)?;
        }
        Ok(curve)
    };
    let ours = |options: &[&str]| {
        curve(&|qp| Ok(clip.ours("point.h264", clip.threads, "rows", qp, options).map_err(reason)?.seconds))
    };
    let x264 = |options: [&[&str]; 2]| curve(&|qp| clip.x264("point.h264", options, qp));
    // Small pictures have few macroblocks without a neighbour that is missing.
    let width = clip.ours("point.h264", clip.threads, "rows", QUANTISER, &[]).map_err(reason)?.answer["width"].as_u64();
    let bar = Bar::AtMost(if width.is_some_and(|width| width >= 320) { BITS_BAR } else { BITS_BAR_SMALL });
    let reference = x264([&REFERENCE, &BASELINE])?;
    let of = |name, bar, [ours, theirs]: [Curve; 2]| -> Result<Row, String> {
        let peer = figure("x264 superfast", Ok(vec![more_bits(&theirs, &reference)?]));
        let than = "x264 in baseline with hexagonal search and subme 7";
        let how = format!(
            "bits at equal PSNR, of all samples, luma and chroma, over those of {than}, QP {QUANTISERS:?} (Bjontegaard)"
        );
        let notes = vec![format!("{how}; {}", clip.name)];
        Ok(Row::new(name, Unit::Multiple, vec![more_bits(&ours, &reference)?], vec![peer], bar, notes))
    };
    let baseline = [ours(&[])?, x264([&SUPERFAST, &BASELINE])?];
    let main = [ours(&["--profile", "main"])?, x264([&SUPERFAST, &["--profile", "main"]])?];
    Ok(vec![of("encode-bits", bar, baseline)?, of("encode-main-bits", Bar::None, main)?])
}

/// Several workers beside one, and what the machine gives to as many runs of one worker beside each other, which share nothing.
fn workers(bench: &Bench<'_>, clip: &Clip<'_>) -> Result<Vec<Row>, Failure> {
    let run = |out: &str, threads: u32| Ok(clip.ours(out, threads, "rows", QUANTISER, &[])?.seconds);
    let apart = || {
        let began = Instant::now();
        let run = |i: u32| run(&format!("apart-{i}.h264"), 1);
        std::thread::scope(|scope| {
            let runs: Vec<_> = (0..clip.threads).map(|i| scope.spawn(move || run(i))).collect();
            runs.into_iter().try_for_each(|run| run.join().unwrap_or_else(|panic| resume_unwind(panic)).map(drop))
        })?;
        Ok(began.elapsed().as_secs_f64() / f64::from(clip.threads))
    };
    let turns: Vec<Turn<'_>> =
        vec![Box::new(|| run("ours.h264", clip.threads)), Box::new(|| run("ours.h264", 1)), Box::new(apart)];
    let [ours, one, apart]: [Vec<f64>; 3] =
        in_turns(bench, turns, &mut [])?.try_into().map_err(|_| failed(clip.program, "there are three turns"))?;
    let bar = if clip.threads > 1 { Bar::RatioAtLeast(0.95 * f64::from(clip.threads)) } else { Bar::None };
    let machine = median(&one).zip(median(&apart)).map_or(f64::NAN, |(one, apart)| one / apart);
    let notes = vec![format!(
        "{} workers; {}; as many runs of one worker beside each other, which share nothing: {machine:.2}",
        clip.threads, clip.name
    )];
    Ok(vec![Row::new("encode-workers", Unit::Seconds, ours, vec![figure("one worker", Ok(one))], bar, notes)])
}
