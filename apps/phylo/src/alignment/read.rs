//! Reading alignment files of any format.

use super::source::{PLACE_BYTES, Source};
use super::{Alignment, fasta, nexus, phylip};
use crate::error::Error;
use flate2::bufread::MultiGzDecoder;
use multigrain::readable_bytes;
use std::io::Read;
use std::path::Path;

/// Formats of alignment files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// FASTA where the first character is `>` or `;`, NEXUS where the file begins with `#NEXUS`, PHYLIP elsewhere.
    Auto,
    /// FASTA: a name is what stands between `>` and the first blank.
    Fasta,
    /// PHYLIP, relaxed or strict, sequential or interleaved: the first of these under which the file makes sense.
    Phylip,
    /// NEXUS: the matrix of a block DATA or CHARACTERS.
    Nexus,
}

/// An alignment file cannot be larger: letters are counted and indexed in memory.
const BYTES_MAX: u64 = 1 << 32;

/// Reads an alignment, which may be gzipped, where `room` is enough bytes of memory for it. Errors name file, line and column.
pub fn read_alignment(path: &Path, format: Format, room: u64) -> Result<(Alignment, Source), Error> {
    let shown = path.display();
    let cannot = |error: std::io::Error| Error::request(format!("cannot read alignment {shown}: {error}"));
    // `packed` bytes are there already.
    let refuse = |packed: u64, bytes: u64, more: &str| match bytes > BYTES_MAX {
        true => Error::request(format!("alignment {shown} has {bytes} bytes{more}: at most {BYTES_MAX} can be read")),
        false => {
            let [bytes, room] = [packed + bytes, room].map(readable_bytes);
            let needed = format!("to read alignment {shown} takes {bytes} of memory{more}");
            Error::request(format!("{needed} beside the program itself, and there are {room}: ask for more --memory"))
        }
    };
    let mut file = std::fs::File::open(path).map_err(cannot)?;
    let bytes = take(&mut file, file_bytes(path).map_err(cannot)?, room).map_err(cannot)?;
    let mut bytes = bytes.map_err(|bytes| refuse(0, bytes, " or more"))?;
    if bytes.starts_with(GZIP) {
        let packed = bytes.len() as u64;
        let text = take(&mut MultiGzDecoder::new(&bytes[..]), 0, room.saturating_sub(packed)).map_err(cannot)?;
        bytes = text.map_err(|bytes| refuse(packed, bytes, " or more"))?;
    }
    let mut needed = needed(&bytes);
    if needed > room {
        return Err(refuse(0, needed, ""));
    }
    let (alignment, mut source) = parse_alignment(path, &bytes, format)?;
    needed += SITE_BYTES * alignment.sites() as u64;
    if needed > room {
        return Err(refuse(0, needed, ""));
    }
    source.bytes = needed;
    Ok((alignment, source))
}

/// How long a file is said to be; nothing is known of pipes.
fn file_bytes(path: &Path) -> std::io::Result<u64> {
    std::fs::metadata(path).map(|data| data.len())
}

/// All that there is to read, about `expected` bytes, where that has room; otherwise how many bytes are too many.
fn take(from: &mut impl Read, expected: u64, room: u64) -> std::io::Result<Result<Vec<u8>, u64>> {
    let most = room.min(BYTES_MAX);
    if expected > most {
        return Ok(Err(expected));
    }
    let mut bytes = Vec::with_capacity(expected as usize);
    let mut piece = vec![0; PIECE];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(Ok(bytes)),
            Ok(count) if (bytes.len() + count) as u64 > most => return Ok(Err((bytes.len() + count) as u64)),
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Files are read in pieces.
const PIECE: usize = 1 << 16;

/// What it takes at most to parse a text and to find its patterns: the text, or the patterns after it was parsed; the letters; for
/// each of them that stands at the beginning of a line or behind a blank its place; lines, which FASTA is read without, and names.
fn needed(text: &[u8]) -> u64 {
    let (mut begins, mut lines, mut heads, mut before) = (0, 1, 0, b'\n');
    // Where a sequence of FASTA begins, and the most places that one has.
    let (mut begun, mut most) = (0, 0);
    for &byte in text {
        begins += u64::from(before.is_ascii_whitespace() && !byte.is_ascii_whitespace());
        let is_line = matches!(before, b'\n' | b'\r');
        lines += u64::from(is_line);
        if is_line && byte == b'>' {
            heads += 1;
            most = u64::max(most, begins - begun);
            begun = begins;
        }
        before = byte;
    }
    // PHYLIP says how many taxa there are.
    let first = text.trim_ascii_start().split(u8::is_ascii_whitespace).next();
    let promised = first.and_then(|word| std::str::from_utf8(word).ok()).and_then(|word| word.parse().ok());
    let names = lines.min(promised.unwrap_or(if heads > 0 { heads } else { u64::MAX }));
    let nexus = u64::from(begins_with(text, nexus::BEGINS));
    let letters = (2 + nexus) * text.len() as u64 + names * NAME_BYTES;
    match text.trim_ascii_start().first() {
        // The places of one sequence at a time are in a list that grows.
        Some(b'>' | b';') => letters + (begins + 2 * u64::max(most, begins - begun)) * PLACE_BYTES,
        _ => letters + 2 * begins * PLACE_BYTES + lines * LINE_BYTES,
    }
}

/// A line, in a list.
const LINE_BYTES: u64 = 24;

/// A sequence with its name, in lists and in a table that grow.
const NAME_BYTES: u64 = 320;

/// A site: its pattern, and what it is found by.
const SITE_BYTES: u64 = 100;

/// Whether a text begins so, in any case, behind blanks.
fn begins_with(text: &[u8], with: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    text.len() >= with.len() && text[..with.len()].eq_ignore_ascii_case(with)
}

/// How files of formats begin that are not read.
const OTHERS: [(&[u8], &str); 3] =
    [(b"CLUSTAL", "Clustal's"), (b"MUSCLE (", "Clustal's"), (b"# STOCKHOLM", "Stockholm")];

/// How gzipped files begin.
const GZIP: &[u8] = b"\x1f\x8b";

/// Parses the content of an alignment file; `file` is only named in messages.
pub fn parse_alignment(file: &Path, bytes: &[u8], format: Format) -> Result<(Alignment, Source), Error> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let first = bytes.iter().find(|b| !b.is_ascii_whitespace());
    let begins = |with: &[u8]| begins_with(bytes, with);
    let format = match format {
        Format::Auto if matches!(first, Some(b'>' | b';')) => Format::Fasta,
        Format::Auto if begins(nexus::BEGINS) => Format::Nexus,
        Format::Auto => Format::Phylip,
        named => named,
    };
    if let Some((_, name)) = OTHERS.iter().find(|(with, _)| begins(with)) {
        let file = file.display();
        return Err(Error::request(format!(
            "{file} is in {name} format: FASTA, PHYLIP and NEXUS are read, convert it to one"
        )));
    }
    if first.is_none() {
        return Err(Error::request(format!("{}: the alignment file is empty", file.display())));
    }
    let sequences = match format {
        Format::Fasta => fasta::parse(file, bytes)?,
        Format::Nexus => nexus::parse(file, bytes)?,
        Format::Phylip | Format::Auto => phylip::parse(file, bytes)?,
    };
    Source::assemble(file, sequences)
}
