//! How things end that do not go well: one line on standard error and an exit status.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use multigrain::driver::are_panics_caught;
use multigrain::{Error, ranks};
use std::error::Error as _;
use std::fmt::Write as _;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::process::ExitCode;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Why the command ends before its time.
#[derive(Debug)]
// Built once a run, not on a hot path.
#[allow(clippy::large_enum_variant)]
pub enum Failure {
    /// The facade refused the request or the run failed.
    Facade(Error),
    /// The request is wrong in a way that only the command line knows: exit status 2.
    Request(String),
    /// Something failed after work had been started: exit status 1.
    Run(String),
    /// What was asked could be neither shown nor refuted: exit status 3.
    Undecided(String),
    /// Whoever reads standard output has gone: nothing is left to be said, and that is no fault.
    ReaderGone,
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Facade(error.into())
    }
}

impl Failure {
    /// A panic that nobody expected, as the hook saw it.
    pub fn panicked() -> Failure {
        let seen = LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner).take();
        Failure::Run(format!("internal error: {}", seen.unwrap_or_else(|| "a panic without text".to_owned())))
    }

    /// Says what went wrong; gives the exit status. Where several ranks run together it ends on all of them, and one of them says
    /// so.
    pub fn told(self) -> u8 {
        let (message, status) = match self {
            Failure::Facade(error) => (error.to_string(), error.exit_status() as u8),
            Failure::Request(message) => (message, 2),
            Failure::Run(message) => (message, 1),
            Failure::Undecided(message) => (message, 3),
            Failure::ReaderGone => return 0,
        };
        if let Some(ranks) = ranks::joined() {
            ranks.end(status, &message);
        }
        say(&message);
        status
    }

    /// The same, for `main`.
    pub fn report(self) -> ExitCode {
        ExitCode::from(self.told())
    }
}

/// What messages begin with.
static NAME: OnceLock<&str> = OnceLock::new();

/// Says what this command is called in its messages, instead of `multigrain`; the first who says it counts.
pub fn called(name: &'static str) {
    let _ = NAME.set(name);
}

/// What it is called.
pub(crate) fn name() -> &'static str {
    NAME.get().copied().unwrap_or("multigrain")
}

/// Whether another rank speaks for this one.
pub(crate) fn is_silent() -> bool {
    ranks::joined().is_some_and(|ranks| !ranks.speaks())
}

/// One message on standard error. Where even that is gone, there is nobody to tell.
pub fn say(message: &str) {
    use std::io::Write as _;
    if is_silent() {
        return;
    }
    let _ = writeln!(std::io::stderr(), "{}: {message}", name());
}

/// Help and version on standard output with status 0; a usage error with status 2.
pub fn usage(error: &clap::Error) -> u8 {
    let is_told = !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if is_told {
        if !is_silent() {
            let _ = error.print();
        }
        return if error.use_stderr() { 2 } else { 0 };
    }
    let text = error.render().to_string();
    let text = match error.source().and_then(|why| Some((why.to_string(), expected(error, why)?))) {
        Some((why, expected)) => text.replacen(&why, &expected, 1),
        None => text,
    };
    say(&one_line(&text));
    2
}

/// Which number is expected where another text was given, which the parsers of numbers do not say.
fn expected(error: &clap::Error, why: &(dyn std::error::Error + 'static)) -> Option<String> {
    let value = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) => value.as_str(),
        _ => "",
    };
    if why.is::<ParseFloatError>() {
        return Some("a number is needed, such as 0.5 or 1e-3".to_owned());
    }
    match why.downcast_ref::<ParseIntError>()?.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => Some("it is too large".to_owned()),
        _ => {
            // What is a whole number all the same is written as one.
            let whole =
                value.replace('_', "").parse().ok().filter(|n: &f64| n.fract() == 0.0 && (0.0..1e15).contains(n));
            Some(format!("a whole number is needed, in digits alone, such as {}", whole.unwrap_or(4.0)))
        }
    }
}

/// What is wrong, and the hints; how the program is called is told by its help.
fn one_line(usage_error: &str) -> String {
    let text = usage_error.strip_prefix("error: ").unwrap_or(usage_error);
    let is_said = |part: &&str| !part.trim_start().starts_with("Usage:") && !part.starts_with("For more information");
    let words = |part: &str| part.split_whitespace().map(without_address).collect::<Vec<_>>().join(" ");
    let parts: Vec<String> = text.split("\n\n").filter(is_said).map(words).filter(|part| !part.is_empty()).collect();
    format!("{} (--help says more)", parts.join("; "))
}

/// A word that quotes what was asked: of an address only how it begins, since there may be a password in it, as behind a colon.
fn without_address(word: &str) -> String {
    let (begins, is_address) = match word.find("://") {
        Some(at) => (at + 3, true),
        None => {
            let is_quoted = word.starts_with('\'') && !word.starts_with("'-");
            (usize::from(is_quoted), word.contains('@') || (is_quoted && word.contains(':')))
        }
    };
    match is_address {
        true => format!("{}...{}", &word[..begins], if word.ends_with('\'') { "'" } else { "" }),
        false => word.to_owned(),
    }
}

static LAST_PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Keeps panics from printing that are caught: those of leaves come back from the engine with task and block named, those of the
/// main thread are told by `main`. Of others nobody would tell, and somebody may wait for their thread: the process ends.
pub fn install_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        let payload = info.payload();
        let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
        let mut text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        if let Some(location) = info.location() {
            let _ = write!(text, " ({location})");
        }
        if are_panics_caught() {
            *LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        } else {
            say(&format!("internal error: {text}"));
            std::process::exit(1);
        }
    }));
}
