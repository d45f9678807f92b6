//! A part of the content.

use crate::error::Error;
use multigrain::parse_bytes;
use std::io::{self, Write};
use std::str::FromStr;
use thiserror::Error;

/// Bytes `start..end` of the content, or all from `start` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRange {
    start: u64,
    end: Option<u64>,
}

/// A text that is no range.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RangeError {
    /// There are no dots.
    #[error("a range is A..B, A.. or ..B")]
    NoDots,
    /// An end is no size.
    #[error("{0}")]
    NoSize(String),
    /// It ends before it begins.
    #[error("the range ends before it begins")]
    Backwards,
}

impl FromStr for ContentRange {
    type Err = RangeError;

    fn from_str(text: &str) -> Result<ContentRange, RangeError> {
        let (start, end) = text.split_once("..").ok_or(RangeError::NoDots)?;
        let size = |text: &str| match text.parse::<u64>() {
            Ok(bytes) => Ok(bytes),
            Err(_) => parse_bytes(text).map_err(|e| RangeError::NoSize(e.to_string())),
        };
        let start = if start.is_empty() { 0 } else { size(start)? };
        let end = if end.is_empty() { None } else { Some(size(end)?) };
        match end.is_some_and(|end| end < start) {
            true => Err(RangeError::Backwards),
            false => Ok(ContentRange { start, end }),
        }
    }
}

impl ContentRange {
    /// The range within content of so many bytes.
    ///
    /// # Errors
    /// It goes beyond.
    pub(super) fn within(self, content_bytes: u64) -> Result<std::ops::Range<u64>, Error> {
        let end = self.end.unwrap_or(content_bytes.max(self.start));
        match end <= content_bytes {
            true => Ok(self.start..end),
            false => Err(Error::Request(format!(
                "--range {}..{} goes beyond the content, which has {content_bytes} bytes; ask for a part of it",
                self.start,
                self.end.map(|end| end.to_string()).unwrap_or_default()
            ))),
        }
    }
}

/// Passes on a part of what is written: so many bytes after so many others.
pub(super) struct Trimmed<'a> {
    pub(super) inner: &'a mut dyn Write,
    pub(super) skip: u64,
    pub(super) take: u64,
}

impl Write for Trimmed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let skipped = self.skip.min(bytes.len() as u64);
        let rest = &bytes[skipped as usize..];
        let taken = self.take.min(rest.len() as u64);
        self.inner.write_all(&rest[..taken as usize])?;
        self.skip -= skipped;
        self.take -= taken;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        let range = |text: &str| text.parse::<ContentRange>();
        assert_eq!(range("3..10"), Ok(ContentRange { start: 3, end: Some(10) }));
        assert_eq!(range("1KiB.."), Ok(ContentRange { start: 1024, end: None }));
        assert_eq!(range("..2 MB"), Ok(ContentRange { start: 0, end: Some(2_000_000) }));
        assert_eq!(range("7"), Err(RangeError::NoDots));
        assert_eq!(range("7..3"), Err(RangeError::Backwards));
        assert!(matches!(range("a..3"), Err(RangeError::NoSize(_))));
        assert_eq!(range("..").unwrap().within(5).unwrap(), 0..5);
        assert_eq!(range("5..").unwrap().within(5).unwrap(), 5..5);
        assert!(range("6..").unwrap().within(5).is_err());
        assert!(range("0..6").unwrap().within(5).is_err());
    }

    #[test]
    fn a_part_is_passed_on_however_it_is_written() {
        for piece in 1..8 {
            let mut out = Vec::new();
            let mut trimmed = Trimmed { inner: &mut out, skip: 3, take: 4 };
            b"0123456789".chunks(piece).for_each(|bytes| trimmed.write_all(bytes).unwrap());
            assert_eq!(out, b"3456");
        }
    }
}
