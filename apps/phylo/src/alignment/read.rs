//! Reading alignment files of any format.

use super::source::Source;
use super::{Alignment, fasta, nexus, phylip};
use crate::error::Error;
use flate2::bufread::MultiGzDecoder;
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

/// Reads an alignment, which may be gzipped. Errors name file, line and column.
pub fn read_alignment(path: &Path, format: Format) -> Result<(Alignment, Source), Error> {
    let shown = path.display();
    let cannot = |error: std::io::Error| Error::request(format!("cannot read alignment {shown}: {error}"));
    let bytes = std::fs::metadata(path).map_err(cannot)?.len();
    if bytes > BYTES_MAX {
        return Err(Error::request(format!("alignment {shown} has {bytes} bytes: at most {BYTES_MAX} can be read")));
    }
    let bytes = std::fs::read(path).map_err(cannot)?;
    if !bytes.starts_with(GZIP) {
        return parse_alignment(path, &bytes, format);
    }
    let mut text = Vec::new();
    MultiGzDecoder::new(&bytes[..]).take(BYTES_MAX + 1).read_to_end(&mut text).map_err(cannot)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(Error::request(format!("alignment {shown} has more than {BYTES_MAX} bytes: too many to be read")));
    }
    parse_alignment(path, &text, format)
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
    let begins = |with: &[u8]| {
        let bytes = bytes.trim_ascii_start();
        bytes.len() >= with.len() && bytes[..with.len()].eq_ignore_ascii_case(with)
    };
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
