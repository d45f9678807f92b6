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
        Some(b'-') => {
            Ok(Unarmored { bytes: Box::new(BufReader::new(Armor(ArmoredReader::new(plain)))), armored: true })
        }
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
