//! Video: rows of macroblocks beside x264, beside one worker, and beside the same kernels off-loaded call by call.

use super::Entry;
use crate::harness::Bench;
use crate::harness::files::Scratch;
use crate::harness::rounds::{Turn, alternate};
use crate::harness::row::{Bar, Figure, Row, Unit};
use multigrain_console::Failure;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

pub(super) const ENTRIES: &[Entry] = &[Entry::rows(
    "encode",
    "Video as H.264; x264, one worker, the same kernels off-loaded call by call; only when it is named",
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

/// What others do: constrained baseline, one reference picture, for PSNR.
const X264: [&str; 10] =
    ["--quiet", "--tune", "psnr", "--profile", "baseline", "--ref", "1", "--weightp", "0", "--no-progress"];
const SUPERFAST: [&str; 2] = ["--preset", "superfast"];
/// What bits are compared with.
const REFERENCE: [&str; 6] = ["--preset", "medium", "--me", "hex", "--subme", "7"];

/// A video with its scratch folder.
struct Clip {
    scratch: Scratch,
    path: PathBuf,
    name: String,
    threads: u32,
    program: PathBuf,
}

/// One run of ours.
struct Run {
    seconds: f64,
    answer: Value,
}

fn failed(program: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::Run(format!("{}: {why}", program.display()))
}

/// Executes a command; what it printed, and how long it took.
fn executed(command: &mut Command) -> Result<(Vec<u8>, f64), String> {
    let began = Instant::now();
    let output = command.stdin(Stdio::null()).output().map_err(|e| e.to_string())?;
    match output.status.success() {
        true => Ok((output.stdout, began.elapsed().as_secs_f64())),
        false => Err(String::from_utf8_lossy(&output.stderr).trim_end().to_owned()),
    }
}

impl Clip {
    fn ours(&self, out: &str, threads: u32, cut: &str, qp: u32) -> Result<Run, Failure> {
        let mut command = Command::new(&self.program);
        command.arg(&self.path).arg("-o").arg(self.scratch.path(out)).args(["--json", "--cut", cut]);
        command.args(["--threads", &threads.to_string(), "--qp", &qp.to_string()]);
        if cut != "rows" && cut != "1" {
            // Two things beside each other, whether that pays or not.
            command.args(["--policy", "llp:2"]);
        }
        let (printed, _) = executed(&mut command).map_err(|why| failed(&self.program, why))?;
        let answer: Value = serde_json::from_slice(&printed).map_err(|e| failed(&self.program, e))?;
        let seconds =
            answer["seconds"].as_f64().ok_or_else(|| failed(&self.program, "it does not say how long it took"))?;
        Ok(Run { seconds, answer })
    }

    fn x264(&self, out: &str, preset: &[&str], qp: u32) -> Result<f64, String> {
        let mut command = Command::new("x264");
        command.args(preset).args(X264).args(["--threads", &self.threads.to_string(), "--qp", &qp.to_string()]);
        command.arg("-o").arg(self.scratch.path(out)).arg(&self.path);
        executed(&mut command).map(|(_, seconds)| seconds).map_err(|why| format!("x264: {why}"))
    }

    /// Samples that a decoder shows of a stream, or that the video has.
    fn samples(&self, path: &Path) -> Result<Vec<u8>, String> {
        let mut command = Command::new("ffmpeg");
        command.args(["-nostdin", "-v", "error", "-i"]).arg(path).args(["-f", "rawvideo", "-pix_fmt", "yuv420p", "-"]);
        executed(&mut command).map(|(samples, _)| samples).map_err(|why| format!("ffmpeg: {why}"))
    }

    /// Bits, and the peak ratio of signal to noise over all samples.
    fn point(&self, out: &str, samples: &[u8]) -> Result<(f64, f64), String> {
        let path = self.scratch.path(out);
        let bits = 8.0 * std::fs::metadata(&path).map_err(|e| e.to_string())?.len() as f64;
        let shown = self.samples(&path)?;
        if shown.len() != samples.len() {
            return Err(format!("{out} shows {} samples, and the video has {}", shown.len(), samples.len()));
        }
        let squares: u64 = shown.iter().zip(samples).map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2)).sum();
        let psnr = 10.0 * (255.0 * 255.0 * samples.len() as f64 / squares.max(1) as f64).log10();
        Ok((bits, psnr))
    }
}

/// All rows.
pub(crate) fn encode(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let program = multigrain_cli::front().built("encode")?;
    let scratch = Scratch::new(&bench.args.directory, 512 << 20)?;
    let (path, name) = match &bench.args.video {
        Some(path) => (path.clone(), path.file_name().unwrap_or_default().to_string_lossy().into_owned()),
        None => {
            let (path, pictures) = (scratch.path("generated.y4m"), bench.size(120, 16) as usize);
            let written = generate(&path, 640, 352, pictures);
            written.map_err(|e| Failure::Run(format!("cannot write {}: {e}", path.display())))?;
            (path, format!("a generated video of {pictures} pictures of 640 x 352"))
        }
    };
    let clip = Clip { scratch, path, name, threads: bench.args.threads, program };
    let rows = clip.ours("rows.h264", clip.threads, "rows", QUANTISER)?;
    let read = |name: &str| std::fs::read(clip.scratch.path(name)).map_err(|e| failed(&clip.program, e));
    let expected = read("rows.h264")?;
    for (threads, cut) in [(1, "rows"), (clip.threads, "1"), (clip.threads, "16")] {
        clip.ours("other.h264", threads, cut, QUANTISER)?;
        if read("other.h264")? != expected {
            return Err(failed(&clip.program, format!("the stream of --threads {threads} --cut {cut} is another")));
        }
    }
    let wide = rows.answer["width"].as_u64().unwrap_or(0) >= 320;
    Ok(vec![beside_x264(bench, &clip)?, bits(&clip, wide)?, workers(bench, &clip)?, calls(bench, &clip)?])
}

fn row(name: &str, unit: Unit, ours: Vec<f64>, peer: Figure, bar: Bar, notes: Vec<String>) -> Row {
    Row { name: name.to_owned(), unit, ours, peers: vec![peer], bar, notes, failed: None }
}

fn figure(name: &str, samples: Result<Vec<f64>, String>) -> Figure {
    let missing = samples.as_ref().err().cloned();
    Figure { name: name.to_owned(), version: None, samples: samples.unwrap_or_default(), missing }
}

fn beside_x264(bench: &Bench<'_>, clip: &Clip) -> Result<Row, Failure> {
    let (mut theirs, mut gone) = (Vec::new(), None);
    let mut turns: Vec<Turn<'_>> =
        vec![Box::new(|| Ok(clip.ours("ours.h264", clip.threads, "rows", QUANTISER)?.seconds)), {
            let (theirs, gone) = (&mut theirs, &mut gone);
            Box::new(move || {
                if gone.is_none() {
                    match clip.x264("x264.h264", &SUPERFAST, QUANTISER) {
                        Ok(seconds) => theirs.push(seconds),
                        Err(why) => *gone = Some(why),
                    }
                }
                Ok(0.0)
            })
        }];
    let ours = alternate(bench, "encode", bench.args.rounds.min(ROUNDS_MAX), &mut turns, &mut [])?.swap_remove(0);
    drop(turns);
    // The first turn does not count.
    let theirs = gone.map_or_else(|| Ok(theirs.split_off(1)), Err);
    let notes = vec![format!("{}, QP {QUANTISER}, {} threads, baseline; whole runs", clip.name, clip.threads)];
    Ok(row("encode", Unit::Seconds, ours, figure("x264 superfast", theirs), Bar::RatioAtLeast(0.5), notes))
}

/// How many more bits at equal quality: cubics through the logarithm of bits over PSNR, their means over what both have
/// (Bjontegaard, VCEG-M33).
fn more_bits(of: &[(f64, f64); 4], than: &[(f64, f64); 4]) -> f64 {
    let range = |points: &[(f64, f64); 4]| {
        let least = points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
        (least, points.iter().map(|point| point.1).fold(0.0, f64::max))
    };
    let (a, b) = (range(of), range(than));
    let (least, most) = (a.0.max(b.0), a.1.min(b.1));
    // Lagrange's form, and Simpson's rule, which is exact for cubics.
    let at = |points: &[(f64, f64); 4], x: f64| -> f64 {
        let term = |i: usize| {
            let others = (0..4).filter(|j| *j != i);
            points[i].0.ln() * others.map(|j| (x - points[j].1) / (points[i].1 - points[j].1)).product::<f64>()
        };
        (0..4).map(term).sum()
    };
    let mean = |points| (at(points, least) + 4.0 * at(points, (least + most) / 2.0) + at(points, most)) / 6.0;
    (mean(of) - mean(than)).exp()
}

fn bits(clip: &Clip, is_wide: bool) -> Result<Row, Failure> {
    let measured = || -> Result<[[(f64, f64); 4]; 3], String> {
        let samples = clip.samples(&clip.path)?;
        let mut curves = [[(0.0, 0.0); 4]; 3];
        for (i, qp) in QUANTISERS.into_iter().enumerate() {
            clip.ours("point.h264", clip.threads, "rows", qp).map_err(crate::harness::reason)?;
            curves[0][i] = clip.point("point.h264", &samples)?;
            for (curve, preset) in curves[1..].iter_mut().zip([&SUPERFAST[..], &REFERENCE]) {
                clip.x264("point.h264", preset, qp)?;
                curve[i] = clip.point("point.h264", &samples)?;
            }
        }
        Ok(curves)
    };
    // Small pictures have few macroblocks without a neighbour that is missing.
    let bar = Bar::AtMost(if is_wide { 1.12 } else { 1.2 });
    let notes = vec![format!(
        "bits at equal PSNR over those of x264 with hexagonal search and subme 7, QP {QUANTISERS:?} (Bjontegaard); {}",
        clip.name
    )];
    Ok(match measured() {
        Ok([ours, superfast, reference]) => {
            let theirs = Ok(vec![more_bits(&superfast, &reference)]);
            let ours = vec![more_bits(&ours, &reference)];
            row("encode-bits", Unit::Multiple, ours, figure("x264 superfast", theirs), bar, notes)
        }
        Err(why) => Row::failed("encode-bits", why),
    })
}

fn workers(bench: &Bench<'_>, clip: &Clip) -> Result<Row, Failure> {
    let mut turns: Vec<Turn<'_>> = [clip.threads, 1]
        .map(|threads| Box::new(move || Ok(clip.ours("ours.h264", threads, "rows", QUANTISER)?.seconds)) as Turn<'_>)
        .into();
    let mut samples = alternate(bench, "encode", bench.args.rounds.min(ROUNDS_MAX), &mut turns, &mut [])?.into_iter();
    let (ours, one) = (samples.next().unwrap_or_default(), samples.next().unwrap_or_default());
    let bar = if clip.threads > 1 { Bar::RatioAtLeast(0.95 * f64::from(clip.threads)) } else { Bar::None };
    let notes = vec![format!("{} workers; {}", clip.threads, clip.name)];
    Ok(row("encode-workers", Unit::Seconds, ours, figure("one worker", Ok(one)), bar, notes))
}

/// Rows beside the search of macroblocks and half samples of rows off-loaded one by one.
fn calls(bench: &Bench<'_>, clip: &Clip) -> Result<Row, Failure> {
    let mut called = Value::Null;
    let mut turns: Vec<Turn<'_>> =
        vec![Box::new(|| Ok(clip.ours("ours.h264", clip.threads, "rows", QUANTISER)?.seconds)), {
            let called = &mut called;
            Box::new(move || {
                let run = clip.ours("ours.h264", clip.threads, "1", QUANTISER)?;
                *called = run.answer;
                Ok(run.seconds)
            })
        }];
    for cut in std::iter::once("rows".to_owned()).chain(JOBS.map(|count| count.to_string())) {
        let threads = if cut == "rows" { 1 } else { clip.threads };
        turns.push(Box::new(move || Ok(clip.ours("ours.h264", threads, &cut, QUANTISER)?.seconds)));
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
    Ok(row("encode-calls", Unit::Seconds, samples[0].clone(), by_call, Bar::RatioAtLeast(1.0), notes))
}

/// Shapes that move over each other by fractions of samples, with some noise.
fn generate(path: &Path, width: usize, height: usize, pictures: usize) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
    writeln!(file, "YUV4MPEG2 W{width} H{height} F25:1 Ip A1:1 C420jpeg")?;
    let mut noise = 1_u32;
    for picture in 0..pictures {
        file.write_all(b"FRAME\n")?;
        let t = picture as f32;
        for (plane, part) in [(0, 1), (1, 2), (2, 2)] {
            for y in 0..height / part {
                let row: Vec<u8> = (0..width / part)
                    .map(|x| {
                        let (x, y) = ((x * part) as f32, (y * part) as f32);
                        let disc = (x - 100.0 - 2.3 * t).hypot(y - 120.0 - 0.7 * t) < 60.0;
                        let (u, v) = if disc { (x - 2.3 * t, y - 0.7 * t) } else { (x + 0.6 * t, y) };
                        let texture = 30.0 * (u / 5.0).sin() * (v / 7.0).cos() + 18.0 * ((u + 2.0 * v) / 23.0).sin();
                        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        let base = 110.0 + 15.0 * plane as f32 + if disc { 40.0 } else { 0.0 };
                        (base + texture + (noise >> 30) as f32).clamp(0.0, 255.0) as u8
                    })
                    .collect();
                file.write_all(&row)?;
            }
        }
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_bits_are_twice_the_bits() {
        let curve = [30.0, 34.0, 38.0, 42.0].map(|psnr: f64| ((psnr / 5.0 + 0.3 * (psnr / 4.0).sin()).exp(), psnr));
        assert!((more_bits(&curve.map(|(bits, psnr)| (2.0 * bits, psnr)), &curve) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_generated_video_has_all_its_pictures() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.y4m");
        generate(&path, 32, 16, 3).unwrap();
        let header = "YUV4MPEG2 W32 H16 F25:1 Ip A1:1 C420jpeg\n".len();
        assert_eq!(std::fs::metadata(&path).unwrap().len() as usize, header + 3 * (6 + 32 * 16 * 3 / 2));
    }
}
