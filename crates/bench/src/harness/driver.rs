//! One peer's process: started, greeted, asked for repetitions, ended. It can be silent, die, or talk nonsense, and
//! nothing of that keeps the bench from going on.

use multigrain::Abort;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// The longest line that is read: an answer is far shorter.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// How much of a line that makes no sense is shown.
const SHOWN_CHARS: usize = 80;
/// How often a wait looks whether the bench was interrupted.
const LOOK: Duration = Duration::from_millis(50);
/// What a process that was asked to end may take.
const FAREWELL: Duration = Duration::from_secs(3);

/// A peer that is ready to take turns.
pub(crate) struct Driver {
    child: Child,
    requests: Option<ChildStdin>,
    lines: Receiver<String>,
    /// What the peer says that it is.
    pub(crate) version: String,
}

/// One repetition.
pub(crate) struct Answer {
    /// Seconds, or nanoseconds a call.
    pub(crate) figure: f64,
    /// All members of the answer.
    pub(crate) members: Value,
}

impl Driver {
    /// Starts a driver and waits until it is ready.
    ///
    /// # Errors
    /// In words, why this peer cannot be had.
    pub(crate) fn start(
        command: &[String],
        options: &[String],
        patience: Duration,
        abort: &Abort,
    ) -> Result<Driver, String> {
        let program = command.first().ok_or("no command")?;
        let mut child = Command::new(program)
            .args(&command[1..])
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("cannot start {program}: {e}; bench/install-peers.sh installs it"))?;
        // A line at a time: a driver that talks without being asked is held up by its pipe.
        let (sender, lines) = sync_channel(1);
        let requests = child.stdin.take();
        if let Some(output) = child.stdout.take() {
            let read = move || {
                let mut output = BufReader::new(output);
                loop {
                    let mut line = Vec::new();
                    match (&mut output).take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
                        Ok(1..) => {}
                        _ => return,
                    }
                    if sender.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
                        return;
                    }
                }
            };
            std::thread::Builder::new().name("peer".into()).spawn(read).map_err(|e| e.to_string())?;
        }
        let mut driver = Driver { child, requests, lines, version: String::new() };
        let greeting = driver.answer(patience, abort)?;
        if greeting["ready"] != true {
            return Err(format!("it did not say that it is ready but {}", shown(&greeting.to_string())));
        }
        driver.version = greeting["version"].as_str().unwrap_or("of unknown version").to_owned();
        Ok(driver)
    }

    /// One timed repetition.
    ///
    /// # Errors
    /// In words, what the peer did instead. It is of no use afterwards.
    pub(crate) fn repeat(&mut self, patience: Duration, abort: &Abort) -> Result<Answer, String> {
        let asked = self.requests.as_mut().map(|r| r.write_all(b"run\n").and_then(|()| r.flush()));
        if !matches!(asked, Some(Ok(()))) {
            return Err(self.ended());
        }
        let members = self.answer(patience, abort)?;
        let figure = members["seconds"].as_f64().or_else(|| members["latency_ns"].as_f64());
        match figure.filter(|f| f.is_finite() && *f > 0.0) {
            Some(figure) => Ok(Answer { figure, members }),
            None => Err(format!("it answered without a time: {}", shown(&members.to_string()))),
        }
    }

    fn answer(&mut self, patience: Duration, abort: &Abort) -> Result<Value, String> {
        let give_up = Instant::now() + patience;
        let line = loop {
            match self.lines.recv_timeout(LOOK) {
                Ok(line) => break line,
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
                Err(RecvTimeoutError::Timeout) if abort.is_raised() => return Err("interrupted".into()),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= give_up => {
                    return Err(format!("it was silent for {} s and was given up", patience.as_secs()));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        let value: Value = serde_json::from_str(&line)
            .ok()
            .filter(Value::is_object)
            .ok_or_else(|| format!("it answered in no known words: {}", shown(&line)))?;
        for kind in ["missing", "error"] {
            if let Some(why) = value[kind].as_str() {
                return Err(why.to_owned());
            }
        }
        Ok(value)
    }

    /// What became of a process that is silent for good.
    fn ended(&mut self) -> String {
        match self.wait(FAREWELL) {
            Some(status) => format!("it ended before it answered ({status})"),
            None => "it closed its output before it answered".to_owned(),
        }
    }

    fn wait(&mut self, patience: Duration) -> Option<std::process::ExitStatus> {
        let give_up = Instant::now() + patience;
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < give_up => std::thread::sleep(Duration::from_millis(5)),
                Ok(status) => return status,
                Err(_) => return None,
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The end of its input ends a driver that listens; one that does not is killed. A pipe that is full of what
        // nobody reads any more is closed with the receiver, which cannot be dropped before this function is over.
        if let Some(mut requests) = self.requests.take() {
            let _ = requests.write_all(b"quit\n");
        }
        if self.wait(FAREWELL).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
    if text.chars().count() > SHOWN_CHARS {
        shown.push_str("...");
    }
    format!("'{shown}'")
}
