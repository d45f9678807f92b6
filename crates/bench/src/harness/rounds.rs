//! Taking turns: A B A B, never two at once.

use super::Bench;
use super::driver::Driver;
use super::row::Figure;
use multigrain::Error;
use multigrain_console::Failure;
use serde_json::Value;
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// After its last step a team spins for some 50 us and then sleeps; whoever is next must not feel it.
const PARKED: Duration = Duration::from_millis(2);

/// A turn of ours: seconds, or whatever the peers of the row answer in.
pub(crate) type Turn<'a> = Box<dyn FnMut() -> Result<f64, Failure> + 'a>;

/// A peer in one comparison.
pub(crate) struct Contender {
    name: String,
    driver: Result<Driver, String>,
    version: Option<String>,
    samples: Vec<f64>,
    /// What it said last.
    pub(crate) last: Value,
}

impl Contender {
    /// Starts peer `name`, shown as `label`.
    pub(crate) fn start(bench: &Bench<'_>, name: &str, label: &str, options: &[(&str, String)]) -> Contender {
        status(&format!("starting {label}"));
        let mut words = vec!["--threads".to_owned(), bench.args.threads.to_string()];
        for (option, value) in options {
            words.push(format!("--{option}"));
            // A flag has no value.
            words.extend((!value.is_empty()).then(|| value.clone()));
        }
        let command = bench.catalogue.command(name);
        let driver = command.and_then(|c| Driver::start(&c, &words, bench.patience(), &bench.abort));
        let version = driver.as_ref().ok().map(|d| d.version.clone());
        Contender { name: label.to_owned(), driver, version, samples: Vec::new(), last: Value::Null }
    }

    /// The name that is shown.
    pub(crate) fn label(&self) -> &str {
        &self.name
    }

    /// What it calls itself, if it is there.
    pub(crate) fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    fn turn(&mut self, bench: &Bench<'_>, counts: bool) {
        let Ok(driver) = &mut self.driver else { return };
        match driver.repeat(bench.patience(), &bench.abort) {
            Ok(answer) => {
                self.last = answer.members;
                if counts {
                    self.samples.push(answer.figure);
                }
            }
            Err(why) => self.driver = Err(why),
        }
    }
}

impl From<Contender> for Figure {
    /// What is shown of it. A peer that failed on its way has no figure.
    fn from(peer: Contender) -> Figure {
        let failed = peer.driver.err();
        let samples = if failed.is_some() { Vec::new() } else { peer.samples };
        Figure { name: peer.name, version: peer.version, samples, missing: failed }
    }
}

/// Everybody's turns, `rounds` of them after one that does not count: our own figures in the order of `own`; those of
/// the peers are kept with them.
pub(crate) fn alternate(
    bench: &Bench<'_>,
    name: &str,
    rounds: u32,
    own: &mut [Turn<'_>],
    peers: &mut [Contender],
) -> Result<Vec<Vec<f64>>, Failure> {
    let mut samples = vec![Vec::new(); own.len()];
    for round in 0..=rounds {
        status(&format!("{name}: turn {round} of {rounds}"));
        for (turn, samples) in own.iter_mut().zip(&mut samples) {
            let figure = turn()?;
            if round > 0 {
                samples.push(figure);
            }
            std::thread::sleep(PARKED);
        }
        for peer in peers.iter_mut() {
            peer.turn(bench, round > 0);
            if bench.abort.is_raised() {
                return Err(Error::Interrupted { resume: false }.into());
            }
        }
    }
    status("");
    Ok(samples)
}

/// One line that is written over by the next, on a terminal only.
pub(crate) fn status(text: &str) {
    let mut out = std::io::stderr();
    if out.is_terminal() {
        let _ = write!(out, "\r\x1b[K{text}");
        let _ = out.flush();
    }
}
