//! Encryption: from memory to memory beside one core of the cipher's library and a copy of the memory, its jobs by queue
//! beside by mailboxes, and from file to file beside `age`.

use crate::entry::Entry;
use crate::harness::Bench;
use crate::harness::driver::Driver;
use crate::harness::files::Scratch;
use crate::harness::rounds::status;
use crate::harness::row::{Bar, Figure, Row, Unit};
use multigrain::{Error, generate};
use multigrain_console::Failure;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

pub(super) const ENTRIES: &[Entry] = &[Entry::rows(
    "encrypt",
    "Encryption in memory and of files; one core of aws-lc, a copy of the memory, age; only when it is named",
    encrypt,
)
.when_named()];

/// What a turn in memory takes beside ours, in the answers of the program.
const IN_MEMORY: [(&str, &str); 5] = [
    ("one_core_seconds", "one core of aws-lc"),
    ("copy_seconds", "a copy of the memory"),
    ("counter_seconds", "AES-128-CTR, one core"),
    ("queue_seconds", "the same by the queue"),
    ("mailbox_seconds", "by mailboxes"),
];

/// Ours is held to so much of one core, or to so much of a copy where the memory is the limit.
const OF_ONE_CORE: f64 = 1.8;
const OF_A_COPY: f64 = 0.7;

/// In memory in the mode aes-128-gcm; files in the modes of age and of AES.
pub(crate) fn encrypt(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let program = multigrain_cli::front().built("encrypt")?;
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
    let figures: Vec<Figure> =
        IN_MEMORY.iter().zip(others).map(|((_, name), samples)| figure(name, None, samples)).collect();
    let [one_core, copy, counter, queue, mailbox] =
        <[Figure; 5]>::try_from(figures).expect("one for each that takes a turn");
    let memory_limits =
        copy.median().zip(one_core.median()).is_some_and(|(copy, core)| copy / OF_A_COPY > core / OF_ONE_CORE);
    let bar = |is_held: bool, bar: f64| if is_held { Bar::RatioAtLeast(bar) } else { Bar::None };
    let row = |name: &str, ours: &[f64], peer: Figure, bar: Bar, note: &str| {
        Row::new(name, unit, ours.to_vec(), [peer], bar, vec![note.to_owned()])
    };
    let by_ones = format!(
        "AES-128-CTR in jobs of 16 KiB, handed out one by one by a host that works, by the queue, {} threads; one core {:.2} \
         us a job",
        bench.threads(),
        counter.median().unwrap_or(f64::NAN) / bytes.div_ceil(16 << 10) as f64 * 1e6
    );
    Ok(vec![
        row("encrypt in memory, beside one core", &ours, one_core, bar(!memory_limits, OF_ONE_CORE), &note),
        row("encrypt in memory, beside a copy", &ours, copy, bar(memory_limits, OF_A_COPY), &note),
        row("encrypt in memory, beside counter mode", &ours, counter, Bar::None, &note),
        row("jobs of 16 KiB, busy host", &queue.samples, mailbox, Bar::RatioAtLeast(1.0), &by_ones),
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
        // Whoever replaces a file holds two of them, and the memory of the second may be the host's until it is touched.
        let _ = std::fs::remove_file(scratch.path(out));
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
    let decrypt = multigrain_cli::front().built("decrypt")?;
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
        if round == 0 {
            for out in ["ours", "aes", "theirs"].into_iter().filter(|out| *out != "theirs" || age_gone.is_none()) {
                opens(&decrypt, &scratch.path(out), &key, &input)
                    .map_err(|why| Failure::Run(format!("what was encrypted as {out:?} does not open: {why}")))?;
            }
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
    let row =
        |name: &str, ours: Vec<f64>, bar: Bar| Row::new(name, unit, ours, vec![peer.clone()], bar, vec![note.clone()]);
    Ok(vec![row("encrypt a file as age", ours, Bar::RatioAtLeast(4.0)), row("encrypt a file with AES", aes, Bar::None)])
}

/// What was encrypted opens to the content.
fn opens(program: &Path, sealed: &Path, key: &Path, content: &Path) -> Result<(), String> {
    let mut command = Command::new(program);
    command.arg("-i").arg(key).arg(sealed).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|e| e.to_string())?;
    let mut opened = child.stdout.take().ok_or("no output")?;
    let mut expected = std::fs::File::open(content).map_err(|e| e.to_string())?;
    let (mut one, mut other) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    let mut equal = true;
    loop {
        let bytes = opened.read(&mut one).map_err(|e| e.to_string())?;
        let there = expected.read_exact(&mut other[..bytes]).is_ok();
        equal &= there && one[..bytes] == other[..bytes];
        if bytes == 0 {
            break;
        }
    }
    equal &= expected.read(&mut other).is_ok_and(|bytes| bytes == 0);
    let ended = child.wait().map_err(|e| e.to_string())?;
    match equal && ended.success() {
        true => Ok(()),
        false => Err("it is not the content".into()),
    }
}

fn figure(name: &str, version: Option<String>, samples: Vec<f64>) -> Figure {
    Figure { name: name.to_owned(), version, samples, missing: None }
}

fn tell(round: u32, rounds: u32) {
    let label = "encrypt";
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
