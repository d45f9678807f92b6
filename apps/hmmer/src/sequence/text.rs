//! Lines of a text that may be gzipped, with their numbers.

use super::SequenceError;
use flate2::bufread::MultiGzDecoder;
use memchr::memchr;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Bytes that are read from the file, or decompressed, at once.
const BUFFER_BYTES: usize = 256 << 10;

/// Bytes of a line, at most: thirty times the longest protein has, so that no line takes more memory than is counted.
const LINE_BYTES_MAX: usize = 1 << 20;

/// First bytes of a gzip stream (RFC 1952, section 2.3.1).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The name of the standard input.
pub(crate) const STANDARD_INPUT: &str = "-";

/// Opens a text, and tells whether it is gzipped. A file of several gzip members is one text; `-` is the standard input.
pub(crate) fn open(path: &Path) -> std::io::Result<(Box<dyn BufRead>, bool)> {
    let file: Box<dyn Read> = match path.as_os_str() == STANDARD_INPUT {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(multigrain::whole::open_input(path)?),
    };
    let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
    if file.fill_buf()?.starts_with(&GZIP_MAGIC) {
        Ok((Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(file))), true))
    } else {
        Ok((Box::new(file), false))
    }
}

/// The lines of a text.
pub(super) struct Lines<R> {
    reader: R,
    gzip: bool,
    path: PathBuf,
    /// A line that does not lie in the reader's buffer as a whole.
    buffer: Vec<u8>,
    /// Bytes of the last line, if it does.
    taken: usize,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(reader: R, gzip: bool, path: &Path) -> Lines<R> {
        Lines { reader, gzip, path: path.to_owned(), buffer: Vec::new(), taken: 0, number: 0 }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// The next line without its end, and its number; `None` after the last one.
    pub(super) fn next(&mut self) -> Result<Option<(u64, &[u8])>, SequenceError> {
        self.reader.consume(std::mem::take(&mut self.taken));
        let end = match filled(&mut self.reader) {
            Ok([]) => return Ok(None),
            Ok(here) => memchr(b'\n', here),
            Err(source) => return Err(failed(&self.path, self.number, self.gzip, source)),
        };
        self.taken = end.map_or(0, |end| end + 1);
        if end.is_none() {
            self.buffer.clear();
            let most = LINE_BYTES_MAX as u64 + 1;
            if let Err(source) = (&mut self.reader).take(most).read_until(b'\n', &mut self.buffer) {
                return Err(failed(&self.path, self.number, self.gzip, source));
            }
        }
        self.number += 1;
        if self.taken.max(self.buffer.len()) > LINE_BYTES_MAX {
            return Err(SequenceError::Line { path: self.path(), line: self.number, most: LINE_BYTES_MAX });
        }
        let mut line = match self.taken {
            0 => &self.buffer[..],
            taken => match self.reader.fill_buf() {
                Ok(here) => &here[..taken],
                Err(source) => return Err(failed(&self.path, self.number, self.gzip, source)),
            },
        };
        line = line.strip_suffix(b"\n").unwrap_or(line);
        line = line.strip_suffix(b"\r").unwrap_or(line);
        Ok(Some((self.number, line)))
    }
}

/// What a reader has in its buffer, which is empty at the end.
fn filled<R: BufRead>(reader: &mut R) -> std::io::Result<&[u8]> {
    while let Err(error) = reader.fill_buf() {
        if error.kind() != ErrorKind::Interrupted {
            return Err(error);
        }
    }
    reader.fill_buf()
}

/// The error that a text cannot be read beyond this line.
fn failed(path: &Path, line: u64, gzip: bool, source: std::io::Error) -> SequenceError {
    let path = path.to_owned();
    match source.kind() {
        ErrorKind::UnexpectedEof if gzip => SequenceError::Truncated { path, line },
        ErrorKind::InvalidData | ErrorKind::InvalidInput if gzip => SequenceError::Damaged { path, line, source },
        _ => SequenceError::Read { path, line, source },
    }
}
