//! A PNG file as a decoder should see it: without what it would hold whole and nobody asks for.
//!
//! A chunk is its length, its name, so many bytes and a checksum (PNG, third edition, 5.3). Those of samples are decoded as they come.
//! Of the others a decoder holds all, and those that it has a use for are short: the longest is the palette.

use std::io::{BufRead, Error, ErrorKind, Read, Result, Seek, SeekFrom, copy, sink};

/// The longest chunk that is held, in bytes.
const HELD_MAX: u32 = 1 << 10;

const HEADER_BYTES: usize = 8;
const CHECKSUM_BYTES: u64 = 4;

/// The chunks of a PNG file but for long ones that need not be understood, such as what a camera says of itself.
pub(crate) struct Chunks<R> {
    file: R,
    /// Of the current chunk, and how much of it has been read.
    header: [u8; HEADER_BYTES],
    header_read: usize,
    /// So many bytes of the file come before the next chunk.
    left: u64,
}

impl<R: BufRead> Chunks<R> {
    /// A file of which nothing has been read.
    pub(crate) fn new(file: R) -> Chunks<R> {
        // What it begins with is as long as a header, and for the decoder to judge.
        Chunks { file, header: [0; HEADER_BYTES], header_read: HEADER_BYTES, left: HEADER_BYTES as u64 }
    }

    /// Goes on to the next chunk that is not left out; a file that ends has none.
    fn next(&mut self) -> Result<()> {
        loop {
            if self.file.fill_buf()?.is_empty() {
                return Ok(());
            }
            self.file.read_exact(&mut self.header)?;
            let [a, b, c, d, name @ ..] = self.header;
            let length = u32::from_be_bytes([a, b, c, d]);
            let rest = u64::from(length) + CHECKSUM_BYTES;
            if length <= HELD_MAX || matches!(&name, b"IDAT" | b"fdAT") {
                (self.header_read, self.left) = (0, rest);
                return Ok(());
            }
            // The case of the first letter says whether a picture can be understood without it.
            if name[0].is_ascii_uppercase() {
                let name = String::from_utf8_lossy(&name).into_owned();
                let why = format!("its chunk {name} has {length} bytes, and {HELD_MAX} at most can be right");
                return Err(Error::new(ErrorKind::InvalidData, why));
            }
            copy(&mut (&mut self.file).take(rest), &mut sink())?;
        }
    }
}

impl<R: BufRead> BufRead for Chunks<R> {
    fn fill_buf(&mut self) -> Result<&[u8]> {
        if self.header_read == HEADER_BYTES && self.left == 0 {
            self.next()?;
        }
        if self.header_read < HEADER_BYTES {
            return Ok(&self.header[self.header_read..]);
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let bytes = if most == 0 { &[] } else { self.file.fill_buf()? };
        Ok(&bytes[..bytes.len().min(most)])
    }

    fn consume(&mut self, bytes: usize) {
        if self.header_read < HEADER_BYTES {
            self.header_read += bytes;
        } else {
            self.file.consume(bytes);
            self.left -= bytes as u64;
        }
    }
}

impl<R: BufRead> Read for Chunks<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

/// Decoders ask for it, and never go back.
impl<R> Seek for Chunks<R> {
    fn seek(&mut self, _: SeekFrom) -> Result<u64> {
        Err(Error::new(ErrorKind::Unsupported, "chunks are read once"))
    }
}
