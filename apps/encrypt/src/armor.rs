//! Encrypted files as text (RFC 7468, as age restricts it); the crate `age` reads it.

use crate::error::Error;
use age::armor::ArmoredReader;
use std::io::{self, BufRead, BufReader, Read};

/// An encrypted file without its armor, if it had one.
pub struct Unarmored<'a> {
    /// The file from its beginning.
    pub bytes: Box<dyn BufRead + 'a>,
    /// Whether it had an armor.
    pub armored: bool,
}

/// Takes the armor off, if there is one; space around it is of no meaning.
///
/// # Errors
/// The input cannot be read, or is no encrypted file.
pub fn without_armor<'a>(name: &str, mut plain: impl BufRead + 'a) -> Result<Unarmored<'a>, Error> {
    let mut spaced = false;
    let first = loop {
        match plain.fill_buf() {
            Ok([]) => break None,
            Ok([space, ..]) if space.is_ascii_whitespace() => {
                spaced = true;
                plain.consume(1);
            }
            Ok([first, ..]) => break Some(*first),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(Error::Read { name: name.to_owned(), source }),
        }
    };
    match first {
        Some(b'-') => Ok(Unarmored {
            bytes: Box::new(BufReader::new(Armor(ArmoredReader::new(ShortLines { plain, line: 0, end: None })))),
            armored: true,
        }),
        Some(_) if !spaced => Ok(Unarmored { bytes: Box::new(plain), armored: false }),
        _ => Err(Error::NoEncryptedFile { name: name.to_owned() }),
    }
}

/// Says what the library's errors mean and what to do.
struct Armor<R: Read>(ArmoredReader<R>);

impl<R: BufRead> Read for Armor<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.read(bytes).map_err(|error| match error.kind() {
            kind @ (io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) => {
                io::Error::new(kind, format!("its armor is cut off or was changed ({error}); get the file again"))
            }
            _ => error,
        })
    }
}

/// Lines of an armor have 64 columns. The library reads a line whole, however long it is, and then refuses it.
const LINE_BYTES_MAX: usize = 1 << 10;

/// Refuses lines that are longer than any of an armor.
struct ShortLines<R> {
    plain: R,
    /// Bytes of the line that have been read.
    line: usize,
    /// Bytes that were shown last, if the line ends with them.
    end: Option<usize>,
}

impl<R: BufRead> BufRead for ShortLines<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let bytes = self.plain.fill_buf()?;
        let room = LINE_BYTES_MAX - self.line;
        if room == 0 && !bytes.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it has a line of more than 64 columns"));
        }
        let bytes = &bytes[..bytes.len().min(room)];
        self.end = bytes.iter().position(|&byte| byte == b'\n').map(|at| at + 1);
        Ok(&bytes[..self.end.unwrap_or(bytes.len())])
    }

    fn consume(&mut self, bytes: usize) {
        self.plain.consume(bytes);
        self.line = if self.end == Some(bytes) { 0 } else { self.line + bytes };
        self.end = None;
    }
}

impl<R: BufRead> Read for ShortLines<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let taken = bytes.len().min(into.len());
        into[..taken].copy_from_slice(&bytes[..taken]);
        self.consume(taken);
        Ok(taken)
    }
}
