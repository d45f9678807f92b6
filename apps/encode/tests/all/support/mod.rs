//! What tests of the program share.

pub(crate) mod pictures;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_multigrain-encode");

/// Runs the program with this input.
pub(crate) fn run(args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(PROGRAM)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A program that refuses its request does not read.
    let writer = std::thread::spawn(move || drop(to.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// So many such pictures, with a header.
pub(crate) fn video(width: usize, height: usize, count: usize) -> Vec<u8> {
    let mut bytes =
        format!("YUV4MPEG2 W{width} H{height} F30000:1001 Ip A128:117 C420jpeg XCOLORRANGE=LIMITED\n").into_bytes();
    for number in 0..count {
        bytes.extend(b"FRAME\n");
        bytes.extend(pictures::planes(width, height, number));
    }
    bytes
}

/// What needs another program is left out without it, unless `MULTIGRAIN_DECODERS=all` says that all have to be there.
pub(crate) fn is_there(found: bool, what: &str) -> bool {
    let all = std::env::var("MULTIGRAIN_DECODERS").is_ok_and(|which| which == "all");
    assert!(found || !all, "there is no {what}");
    if !found {
        println!("skipped: there is no {what}");
    }
    found
}

pub(crate) fn has_program(name: &str, ask: &str) -> bool {
    let status = Command::new(name).arg(ask).stdout(Stdio::null()).stderr(Stdio::null()).status();
    is_there(status.is_ok_and(|status| status.success()), name)
}

pub(crate) fn has_ffmpeg() -> bool {
    has_program("ffmpeg", "-version")
}

/// What ffmpeg shows of a stream.
pub(crate) fn shown(path: &Path) -> Vec<u8> {
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-xerror", "-i"])
        .arg(path)
        .args(["-f", "rawvideo", "-pix_fmt", "yuv420p", "-"])
        .output()
        .unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}
