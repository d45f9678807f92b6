//! The crate rusty_h264, files to files: `rusty-h264-peer encode IN.y4m OUT.h264 QP THREADS` (it has one thread,
//! whatever is said), or `--probe`. Exit status 0 if it was done, else 1 with the reason on standard error.

use rusty_h264::{Encoder, EncoderConfig, Preset, YuvFrame};
use std::io::{BufRead, BufReader, Read, Write};

fn encode(from: &str, to: &str, qp: u8) -> Result<(), String> {
    let told = |name: &str, e: std::io::Error| format!("{name}: {e}");
    let mut input = BufReader::with_capacity(1 << 20, std::fs::File::open(from).map_err(|e| told(from, e))?);
    let mut line = String::new();
    input.read_line(&mut line).map_err(|e| told(from, e))?;
    let side = |letter: char| line.split_whitespace().find_map(|word| word.strip_prefix(letter)?.parse::<usize>().ok());
    let (width, height) = side('W').zip(side('H')).ok_or_else(|| format!("no size in {from}"))?;
    // As the others have it: constrained baseline, one picture before, one quantiser for all macroblocks. By itself it writes High
    // profile, by arithmetic codes. Of its presets the one that searches fractions of samples.
    let mut config = EncoderConfig::baseline(width, height);
    (config.gop_size, config.bitrate, config.qp, config.aq_strength) = (250, 0, qp, 0.0);
    config.preset = Preset::Balanced;
    let mut encoder = Encoder::new(config).map_err(|e| format!("{e:?}"))?;
    let mut output = std::fs::File::create(to).map_err(|e| told(to, e))?;
    loop {
        line.clear();
        if input.read_line(&mut line).map_err(|e| told(from, e))? == 0 {
            // What it holds back to look ahead.
            return output.write_all(&encoder.flush()).map_err(|e| told(to, e));
        }
        let mut planes = [width * height, width * height / 4, width * height / 4].map(|count| vec![0; count]);
        planes.iter_mut().try_for_each(|plane| input.read_exact(plane)).map_err(|e| told(from, e))?;
        let [y, u, v] = planes;
        let bytes = encoder.encode(&YuvFrame { width, height, y, u, v });
        output.write_all(&bytes).map_err(|e| told(to, e))?;
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["--probe"] => {
            println!("{{\"ready\": true, \"peer\": \"rusty_h264\", \"version\": \"0.17\"}}");
            Ok(())
        }
        ["encode", from, to, qp, _threads] => {
            qp.parse().map_err(|_| format!("{qp} is no quantiser")).and_then(|qp| encode(from, to, qp))
        }
        _ => Err("usage: encode IN.y4m OUT.h264 QP THREADS".to_owned()),
    };
    if let Err(why) = done {
        eprintln!("rusty-h264-peer: {why}");
        std::process::exit(1);
    }
}
