//! Lines of a file of profiles, and the fields of a line.

use super::ProfileError;
use super::alphabet::{RESIDUES, SYMBOLS};
use std::borrow::Cow;
use std::io::BufRead;
use std::path::Path;

/// Bytes that a line may have; the longest lines of real files are descriptions and command lines.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Reads lines and knows where it is.
pub(super) struct Lines<'a, R> {
    input: R,
    path: &'a Path,
    line: usize,
    bytes: Vec<u8>,
}

/// A line with its number.
pub(super) struct Line<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) at: At<'a>,
}

/// A place in a file, for messages.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    path: &'a Path,
    line: usize,
}

impl At<'_> {
    /// The error that something is wrong here.
    pub(super) fn error(self, reason: impl Into<String>) -> ProfileError {
        ProfileError::Format { path: self.path.to_owned(), line: self.line, reason: reason.into() }
    }
}

impl<'a, R: BufRead> Lines<'a, R> {
    pub(super) fn new(input: R, path: &'a Path) -> Self {
        Self { input, path, line: 0, bytes: Vec::new() }
    }

    /// Where the reader is: at the last line read.
    pub(super) fn at(&self) -> At<'a> {
        At { path: self.path, line: self.line.max(1) }
    }

    /// The next line that is neither blank nor a comment; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>, ProfileError> {
        loop {
            self.bytes.clear();
            let mut limited = std::io::Read::take(&mut self.input, LINE_BYTES_MAX as u64);
            let read = limited
                .read_until(b'\n', &mut self.bytes)
                .map_err(|source| ProfileError::Io { path: self.path.to_owned(), source })?;
            if read == 0 {
                return Ok(None);
            }
            self.line += 1;
            if read == LINE_BYTES_MAX {
                return Err(self
                    .at()
                    .error(format!("a line of more than {LINE_BYTES_MAX} bytes is no line of a profile")));
            }
            let first = self.bytes.iter().find(|byte| !byte.is_ascii_whitespace());
            if first.is_some_and(|&byte| byte != b'#') {
                let at = self.at();
                return Ok(Some(Line { text: String::from_utf8_lossy(&self.bytes), at }));
            }
        }
    }

    /// The next line, where the file must not end; `wanted` says what is missing if it does.
    pub(super) fn expect(&mut self, wanted: impl FnOnce() -> String) -> Result<Line<'_>, ProfileError> {
        let at = self.at();
        match self.next()? {
            Some(line) => Ok(line),
            None => Err(at.error(format!("the file ends here, before {}; it may have been cut short", wanted()))),
        }
    }
}

impl<'a> Line<'a> {
    /// The first field, and the rest of the line without the space around it.
    pub(super) fn tag(&self) -> (&str, &str) {
        let text = self.text.trim();
        match text.split_once(|c: char| c.is_ascii_whitespace()) {
            Some((tag, rest)) => (tag, rest.trim()),
            None => (text, ""),
        }
    }

    /// The fields of this line, of which there must be `count`.
    pub(super) fn fields(&self, count: usize, what: impl FnOnce() -> String) -> Result<Vec<&str>, ProfileError> {
        let fields: Vec<&str> = self.text.split_ascii_whitespace().collect();
        if fields.len() == count {
            return Ok(fields);
        }
        Err(self.at.error(format!("{} has {count} fields, found {}", what(), fields.len())))
    }
}

/// Reads a number; the message names the field.
pub(super) fn number(at: At<'_>, what: &str, field: &str) -> Result<f64, ProfileError> {
    let parsed = field.parse::<f64>().ok().filter(|number| number.is_finite());
    parsed.ok_or_else(|| at.error(format!("{what} must be a number, found '{}'", shown(field))))
}

/// Reads a probability p, written as -ln p; `*` is 0. As in HMMER, which keeps it in single precision, -ln p is rounded, and
/// then p.
pub(super) fn probability(at: At<'_>, field: &str) -> Result<f64, ProfileError> {
    if field == "*" {
        return Ok(0.0);
    }
    let log = number(at, "a probability p, written as -ln p or as * for 0,", field)?;
    if log < 0.0 {
        return Err(at.error(format!("a probability p is written as -ln p, which is not negative, found '{field}'")));
    }
    Ok(f64::from(f64::from(-log as f32).exp() as f32))
}

/// Probabilities sum to one but for what files round; what is wrong if not.
pub(super) fn near_one(sum: f64) -> Result<(), String> {
    const TOLERANCE: f64 = 0.01;
    if (sum - 1.0).abs() <= TOLERANCE { Ok(()) } else { Err(format!("must sum to 1, they sum to {sum:.4}")) }
}

/// A field as a message shows it: not endless, and printable.
pub(super) fn shown(field: &str) -> String {
    const CHARS_MAX: usize = 40;
    let mut text: String = field.chars().take(CHARS_MAX).flat_map(char::escape_default).collect();
    if field.chars().nth(CHARS_MAX).is_some() {
        text.push_str("...");
    }
    text
}

/// Reads the `//` behind the nodes.
pub(super) fn close<R: BufRead>(lines: &mut Lines<'_, R>, name: &str, nodes: usize) -> Result<(), ProfileError> {
    let line = lines.expect(|| format!("the closing // of profile {}", shown(name)))?;
    if line.tag().0 == "//" {
        return Ok(());
    }
    let found = shown(line.tag().0);
    Err(line.at.error(format!("after the {nodes} nodes that LENG says comes //, found '{found}'")))
}

/// The residue that a match state emits most, a capital where it is conserved.
pub(super) fn likeliest(emissions: &[f64; RESIDUES]) -> u8 {
    let (mut best, mut p) = (0, emissions[0]);
    for (i, &other) in emissions.iter().enumerate() {
        if other > p {
            (best, p) = (i, other);
        }
    }
    if p >= CONSERVED { SYMBOLS[best] } else { SYMBOLS[best].to_ascii_lowercase() }
}

/// A match state that emits a residue with this probability shows it as a capital, where the file names no consensus.
const CONSERVED: f64 = 0.5;

/// Checks the sum of probabilities on a line.
pub(super) fn sum_to_one(at: At<'_>, what: &str, sum: f64) -> Result<(), ProfileError> {
    near_one(sum).map_err(|wrong| at.error(format!("the probabilities of the {what} {wrong}")))
}
