//! Programs that encode a video, files to files, and what comes of it.

use crate::harness::files::Scratch;
use multigrain_console::Failure;
use serde_json::Value;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What x264 is told, as the other side has it: constrained baseline, one reference picture, for PSNR.
pub(super) const BASELINE: [&str; 6] = ["--profile", "baseline", "--ref", "1", "--weightp", "0"];
pub(super) const SUPERFAST: [&str; 2] = ["--preset", "superfast"];
/// What bits are compared with.
pub(super) const REFERENCE: [&str; 6] = ["--preset", "medium", "--me", "hex", "--subme", "7"];

/// A video with its scratch folder.
pub(super) struct Clip<'a> {
    pub(super) scratch: &'a Scratch,
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) threads: u32,
    pub(super) program: &'a Path,
}

/// One run of ours.
pub(super) struct Run {
    pub(super) seconds: f64,
    pub(super) answer: Value,
}

pub(super) fn failed(program: &Path, why: impl std::fmt::Display) -> Failure {
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

impl Clip<'_> {
    /// One run of ours: of so many threads, with what is off-loaded, and other options.
    pub(super) fn ours(&self, out: &str, threads: u32, cut: &str, qp: u32, options: &[&str]) -> Result<Run, Failure> {
        let mut command = Command::new(self.program);
        command.arg(&self.path).arg("-o").arg(self.scratch.path(out)).args(["--json", "--cut", cut]);
        command.args(["--threads", &threads.to_string(), "--qp", &qp.to_string()]);
        command.args(options);
        if cut != "rows" && cut != "1" {
            // Two things beside each other, whether that pays or not.
            command.args(["--policy", "llp:2"]);
        }
        // The clock is the peers': from the start of the process to its end.
        let (printed, seconds) = executed(&mut command).map_err(|why| failed(self.program, why))?;
        let answer: Value = serde_json::from_slice(&printed).map_err(|e| failed(self.program, e))?;
        Ok(Run { seconds, answer })
    }

    /// Seconds that x264 takes.
    pub(super) fn x264(&self, out: &str, options: [&[&str]; 2], qp: u32) -> Result<f64, String> {
        let mut command = Command::new("x264");
        command.args(options.concat()).args(["--quiet", "--no-progress", "--tune", "psnr"]).args([
            "--threads",
            &self.threads.to_string(),
            "--qp",
            &qp.to_string(),
        ]);
        command.arg("-o").arg(self.scratch.path(out)).arg(&self.path);
        executed(&mut command).map(|(_, seconds)| seconds).map_err(|why| format!("x264: {why}"))
    }

    /// Seconds that a peer takes, which is started by these words, by so many threads.
    pub(super) fn peer(&self, words: &[String], out: &str, threads: u32, qp: u32) -> Result<f64, String> {
        let Some((program, options)) = words.split_first() else { return Err("it has no command".to_owned()) };
        let mut command = Command::new(program);
        command.args(options).arg("encode").arg(&self.path).arg(self.scratch.path(out));
        command.args([qp, threads].map(|number| number.to_string()));
        executed(&mut command).map(|(_, seconds)| seconds)
    }

    /// Samples that a decoder shows of a stream, or that the video has.
    pub(super) fn samples(&self, path: &Path) -> Result<Vec<u8>, String> {
        let mut command = Command::new("ffmpeg");
        command.args(["-nostdin", "-v", "error", "-i"]).arg(path).args(["-f", "rawvideo", "-pix_fmt", "yuv420p", "-"]);
        executed(&mut command).map(|(samples, _)| samples).map_err(|why| format!("ffmpeg: {why}"))
    }

    /// Bits, and the peak ratio of signal to noise over all samples.
    pub(super) fn point(&self, out: &str, samples: &[u8]) -> Result<(f64, f64), String> {
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

/// Shapes that move over each other by fractions of samples, with some noise.
pub(super) fn generate(path: &Path, width: usize, height: usize, pictures: usize) -> std::io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
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
    fn a_generated_video_has_all_its_pictures() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.y4m");
        generate(&path, 32, 16, 3).unwrap();
        let header = "YUV4MPEG2 W32 H16 F25:1 Ip A1:1 C420jpeg\n".len();
        assert_eq!(std::fs::metadata(&path).unwrap().len() as usize, header + 3 * (6 + 32 * 16 * 3 / 2));
    }
}
