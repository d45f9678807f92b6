//! Encryption: from memory to memory beside one core of the cipher's library and a copy of the memory, and from file to
//! file beside `age`.

use super::driver::Driver;
use super::files::Scratch;
use super::rounds::status;
use super::row::{Bar, Figure, Row, Unit};
use super::{Bench, Name};
use crate::external;
use crate::failure::Failure;
use clap::ValueEnum;
use multigrain::{Error, generate};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// What a turn in memory takes beside ours, in the answers of the program.
const IN_MEMORY: [(&str, &str); 3] = [
    ("one_core_seconds", "one core of aws-lc"),
    ("copy_seconds", "a copy of the memory"),
    ("counter_seconds", "AES-128-CTR, one core"),
];

/// In memory in the mode aes-128-gcm; files in the modes of age and of AES.
pub(crate) fn encrypt(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let program = external::built("encrypt")?;
    let bytes = bench.size(1 << 30, 1 << 24);
    let mut rows = in_memory(bench, &program, bytes)?;
    rows.extend(from_files(bench, &program, bytes)?);
    Ok(rows)
}

/// One process takes all turns, so that all work on the same memory.
fn in_memory(bench: &Bench<'_>, program: &Path, bytes: u64) -> Result<Vec<Row>, Failure> {
    let words = ["--mode", "aes-128-gcm", "--bench"].map(str::to_owned);
    let options = [bytes.to_string() + "B", "--threads".to_owned(), bench.args.threads.to_string()];
    let command = [vec![program.display().to_string()], words.to_vec()].concat();
    let failed = |why: String| Failure::Run(format!("{}: {why}", program.display()));
    let mut driver = Driver::start(&command, &options, bench.patience(), &bench.abort).map_err(failed)?;
    let (mut ours, mut others) = (Vec::new(), vec![Vec::new(); IN_MEMORY.len()]);
    for round in 0..=bench.args.rounds {
        tell(round, bench.args.rounds);
        let answer = driver.repeat(bench.patience(), &bench.abort).map_err(failed)?;
        if round > 0 {
            ours.push(answer.figure);
            for (samples, (member, _)) in others.iter_mut().zip(IN_MEMORY) {
                samples.push(answer.members[member].as_f64().ok_or_else(|| failed(format!("no {member}")))?);
            }
        }
    }
    status("");
    let unit = Unit::GigabytesPerSecond(bytes as f64);
    let note =
        format!("{bytes} bytes from memory to memory, aes-128-gcm, chunks of 16 KiB, {} threads", bench.threads());
    // Ours is held to the first; to the second where the memory is the limit.
    let figures: Vec<Figure> =
        IN_MEMORY.iter().zip(others).map(|((_, name), samples)| figure(name, None, samples)).collect();
    let row = |name: &str, peer: usize, bar: Bar| Row {
        name: name.to_owned(),
        unit,
        ours: ours.clone(),
        peers: vec![figures[peer].clone()],
        bar,
        notes: vec![note.clone()],
        failed: None,
    };
    Ok(vec![
        row("encrypt in memory, beside one core", 0, Bar::RatioAtLeast(1.8)),
        row("encrypt in memory, beside a copy", 1, Bar::RatioAtLeast(0.7)),
        row("encrypt in memory, beside counter mode", 2, Bar::None),
    ])
}

/// Whole runs of both programs on one file, taking turns.
fn from_files(bench: &Bench<'_>, program: &Path, bytes: u64) -> Result<Vec<Row>, Failure> {
    let scratch = Scratch::new(&bench.args.directory, 4 * bytes)?;
    let (input, key) = (scratch.path("content"), scratch.path("identity"));
    write_content(&input, bytes).map_err(|e| Failure::Run(format!("cannot write {}: {e}", input.display())))?;
    let made = Command::new(program).arg("--keygen").arg("-o").arg(&key).stdin(Stdio::null()).output();
    let made = made.map_err(|e| Failure::Run(format!("cannot start {}: {e}", program.display())))?;
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    let recipient = said.rsplit(' ').next().unwrap_or_default().trim().to_owned();
    let run = |program: &Path, mode: Option<&str>, out: &str| -> Result<f64, String> {
        let begin = Instant::now();
        let mut command = Command::new(program);
        command.args(["-r", &recipient, "-o"]).arg(scratch.path(out)).stdin(Stdio::null());
        if let Some(mode) = mode {
            command.args(["--mode", mode, "--threads", &bench.args.threads.to_string()]);
        }
        let ran = command.arg(&input).output().map_err(|e| e.to_string())?;
        match ran.status.success() {
            true => Ok(begin.elapsed().as_secs_f64()),
            false => Err(String::from_utf8_lossy(&ran.stderr).trim_end().to_owned()),
        }
    };
    let age = Path::new("age");
    let version = Command::new(age)
        .arg("--version")
        .output()
        .map_err(|e| format!("age cannot be started: {e}; apt-get install age"));
    let mut age_gone = version.as_ref().err().cloned();
    let (mut ours, mut aes, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=bench.args.rounds {
        tell(round, bench.args.rounds);
        let failed = |why: String| Failure::Run(format!("{}: {why}", program.display()));
        let turns = (
            run(program, Some("age"), "ours").map_err(failed)?,
            run(program, Some("aes-128-gcm"), "aes").map_err(failed)?,
            if age_gone.is_none() { run(age, None, "theirs").map_err(|why| age_gone = Some(why)).ok() } else { None },
        );
        if bench.abort.is_raised() {
            return Err(Error::Interrupted { resume: false }.into());
        }
        if round > 0 {
            ours.push(turns.0);
            aes.push(turns.1);
            theirs.extend(turns.2);
        }
    }
    status("");
    let peer = match (age_gone, version) {
        (None, Ok(said)) => figure("age", Some(String::from_utf8_lossy(&said.stdout).trim().to_owned()), theirs),
        (why, _) => Figure { missing: why, ..figure("age", None, Vec::new()) },
    };
    let unit = Unit::GigabytesPerSecond(bytes as f64);
    let note = format!(
        "{bytes} bytes from file to file in {}, whole runs, {} threads",
        bench.args.directory.display(),
        bench.threads()
    );
    let row = |name: &str, ours: Vec<f64>, bar: Bar| Row {
        name: name.to_owned(),
        unit,
        ours,
        peers: vec![peer.clone()],
        bar,
        notes: vec![note.clone()],
        failed: None,
    };
    Ok(vec![row("encrypt a file as age", ours, Bar::RatioAtLeast(4.0)), row("encrypt a file with AES", aes, Bar::None)])
}

fn figure(name: &str, version: Option<String>, samples: Vec<f64>) -> Figure {
    Figure { name: name.to_owned(), version, samples, missing: None }
}

fn tell(round: u32, rounds: u32) {
    let label = Name::Encrypt.to_possible_value().map(|v| v.get_name().to_owned()).unwrap_or_default();
    status(&format!("{label}: turn {round} of {rounds}"));
}

/// Bytes that repeat nowhere.
fn write_content(path: &Path, bytes: u64) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
    for i in 0..bytes.div_ceil(4) {
        file.write_all(&generate::f32_at(1, i).to_le_bytes())?;
    }
    file.into_inner()?.set_len(bytes)
}
