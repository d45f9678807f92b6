//! Protein sequences: a FASTA or Stockholm file, gzipped or not, becomes one ragged array of residue codes.
//!
//! ```text
//! residues   M K V L A E | G S | M ...      one code a residue, one sequence after the other, in the file's order
//! offsets    0             6     8     ...  where each begins, and where the last one ends
//! headers    what follows each '>', bytes as they stand in the file
//! ```
//!
//! A database larger than a limit goes on as a scratch file without a name: it is gone when it is closed, however the
//! run ends.

mod codes;
mod error;
mod fasta;
mod pieces;
mod spill;
mod stockholm;
pub(crate) mod text;

#[cfg(test)]
mod tests;

pub use error::SequenceError;

use multigrain::Source;
use spill::{Spill, Stored};
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Ends a header, which is a line.
const END: u8 = b'\n';
/// Of so many headers one place is kept: there are millions of them, of which few are asked for.
const HEADERS_EACH: usize = 8;

/// Sequences that have been read.
#[derive(Debug)]
pub struct Database {
    path: PathBuf,
    offsets: Arc<Vec<u64>>,
    residues: Stored,
    /// Each with [`END`] behind it.
    headers: Stored,
    /// Where every [`HEADERS_EACH`]th header begins, and where the last one ends.
    header_offsets: Vec<u64>,
    empty: u64,
}

/// Where the bytes of large databases go.
#[derive(Clone, Copy, Debug)]
pub struct Limit<'a> {
    /// More bytes of residues, or of headers, than this are put into a scratch file.
    pub memory_bytes: u64,
    /// For the places of so many sequences, which are always in memory, there is room.
    pub sequences: usize,
    /// Directory of scratch files.
    pub directory: &'a Path,
}

/// Sequences as they come in.
struct Gathered {
    residues: Spill,
    records: Records,
}

/// What is known of their records.
struct Records {
    headers: Spill,
    header_end: u64,
    header_offsets: Vec<u64>,
    offsets: Vec<u64>,
    /// So many there is room for.
    most: usize,
    empty: u64,
}

impl Records {
    /// One more, whose residues, if there are any, end here.
    fn add(&mut self, header: &[u8], end: u64, any: bool) -> Result<(), SequenceError> {
        if !any {
            self.empty += 1;
            return Ok(());
        }
        let before = self.offsets.len() - 1;
        if before >= self.most {
            return Err(SequenceError::NoRoom { sequences: before as u64 + 1 });
        }
        if before.is_multiple_of(HEADERS_EACH) {
            self.header_offsets.push(self.header_end);
        }
        self.headers.buffer().extend_from_slice(header);
        self.headers.buffer().push(END);
        self.header_end = self.headers.settle()?;
        self.offsets.push(end);
        Ok(())
    }
}

impl Gathered {
    /// Room for about so many sequences.
    fn new(limit: Limit<'_>, sequences: usize) -> Gathered {
        let (mut offsets, mut header_offsets) = (Vec::new(), Vec::new());
        let [of_residues, of_headers] = Database::indices(sequences);
        offsets.reserve_exact(of_residues);
        header_offsets.reserve_exact(of_headers);
        offsets.push(0);
        let records = Records {
            headers: Spill::new(limit),
            header_end: 0,
            header_offsets,
            offsets,
            most: limit.sequences,
            empty: 0,
        };
        Gathered { residues: Spill::new(limit), records }
    }

    fn finish(mut self, path: &Path) -> Result<Database, SequenceError> {
        let Records { mut headers, header_end, mut header_offsets, mut offsets, empty, .. } = self.records;
        header_offsets.push(header_end);
        // They grew by doubling, and are kept.
        self.residues.buffer().shrink_to_fit();
        headers.buffer().shrink_to_fit();
        offsets.shrink_to_fit();
        header_offsets.shrink_to_fit();
        if offsets.len() == 1 {
            return Err(SequenceError::None { path: path.to_owned() });
        }
        Ok(Database {
            path: path.to_owned(),
            offsets: Arc::new(offsets),
            residues: self.residues.finish()?,
            headers: headers.finish()?,
            header_offsets,
            empty,
        })
    }
}

impl Database {
    /// Reads a FASTA or Stockholm file, gzipped or not, which its first bytes tell; `-` is the standard input. So many
    /// threads read a plain FASTA file; what comes of it is the same.
    ///
    /// # Errors
    /// [`SequenceError`]: the file cannot be read, is neither, holds no sequence that has residues, or a symbol that
    /// stands for none.
    pub fn read(path: &Path, limit: Limit<'_>, workers: usize) -> Result<Database, SequenceError> {
        if let Some(database) = pieces::read(path, limit, workers) {
            return Ok(database);
        }
        let (reader, gzip) =
            text::open(path).map_err(|source| SequenceError::Open { path: path.to_owned(), source })?;
        match Database::parse(reader, gzip, path, limit, 0) {
            // How many there are in all is soon counted where records can be told without being read.
            Err(SequenceError::NoRoom { sequences }) => {
                Err(SequenceError::NoRoom { sequences: pieces::count(path).unwrap_or(0).max(sequences) })
            }
            read => read,
        }
    }

    /// Reads a FASTA or Stockholm text of about so many sequences; `path` is for messages only.
    ///
    /// # Errors
    /// As [`Database::read`].
    pub fn from_reader(
        text: impl BufRead,
        path: &Path,
        limit: Limit<'_>,
        sequences: usize,
    ) -> Result<Database, SequenceError> {
        Database::parse(text, false, path, limit, sequences)
    }

    fn parse(
        reader: impl BufRead,
        gzip: bool,
        path: &Path,
        limit: Limit<'_>,
        sequences: usize,
    ) -> Result<Database, SequenceError> {
        let mut gathered = Gathered::new(limit, sequences);
        let Gathered { residues, records } = &mut gathered;
        fasta::parse(text::Lines::new(reader, gzip, path), residues, |header, end, any| records.add(header, end, any))?;
        gathered.finish(path)
    }

    /// Sequences of which nothing is known but how long their headers and their residues are: enough to plan what is done with them,
    /// which keeps as much.
    pub(crate) fn of_lengths(
        lengths: impl Iterator<Item = (u64, u64)>,
        limit: Limit<'_>,
        sequences: usize,
    ) -> Database {
        let [of_residues, of_headers] = Database::indices(sequences);
        let (mut offsets, mut header_bytes, mut end) = (Vec::new(), 0, 0);
        offsets.reserve_exact(of_residues);
        offsets.push(0);
        offsets.extend(lengths.map(|(header, length)| {
            header_bytes += header + 1;
            end += length;
            end
        }));
        Database {
            path: PathBuf::new(),
            offsets: Arc::new(offsets),
            residues: Stored::unmade(end, limit),
            headers: Stored::unmade(header_bytes, limit),
            header_offsets: vec![0; of_headers],
            empty: 0,
        }
    }

    /// The file that was read.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of sequences without residues, which nothing else here counts: they are no hits, and E-values count them.
    pub fn empty(&self) -> u64 {
        self.empty
    }

    /// Number of sequences with residues, at least 1.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of residues of all sequences.
    pub fn residues(&self) -> u64 {
        self.offsets[self.len()]
    }

    /// How many places of residues and of headers there are of so many sequences.
    fn indices(sequences: usize) -> [usize; 2] {
        [sequences.saturating_add(1), (sequences.div_ceil(HEADERS_EACH)).saturating_add(1)]
    }

    /// Bytes of the places of so many sequences, which are always kept.
    pub fn indices_bytes(sequences: u64) -> u64 {
        let [of_residues, of_headers] = Database::indices(usize::try_from(sequences).unwrap_or(usize::MAX));
        (of_residues as u64).saturating_add(of_headers as u64).saturating_mul(size_of::<u64>() as u64)
    }

    /// Bytes that this keeps in memory, but for residues that a source has.
    pub fn kept_bytes(&self) -> u64 {
        let indices = (self.offsets.capacity() + self.header_offsets.capacity()) * size_of::<u64>();
        indices as u64 + self.residues.kept_bytes() + self.headers.kept_bytes()
    }

    /// Where each sequence begins in the array of residues, and where the last one ends.
    pub fn offsets(&self) -> &Arc<Vec<u64>> {
        &self.offsets
    }

    /// Number of residues of sequence `i`.
    ///
    /// # Panics
    /// When there is no sequence `i`.
    pub fn length(&self, i: usize) -> u64 {
        self.offsets[i + 1] - self.offsets[i]
    }

    /// Name and description of sequence `i`; bytes that are no UTF-8 are replaced.
    ///
    /// # Errors
    /// [`SequenceError::Scratch`] when they cannot be read back.
    ///
    /// # Panics
    /// When there is no sequence `i`.
    pub fn header(&self, i: usize) -> Result<(String, String), SequenceError> {
        let group = i / HEADERS_EACH;
        let headers = self.headers.read(self.header_offsets[group], self.header_offsets[group + 1])?;
        let header = headers.split(|&byte| byte == END).nth(i % HEADERS_EACH).unwrap_or_default();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok((text(fasta::name(header)), text(fasta::description(header))))
    }

    /// Residue codes of sequence `i`.
    ///
    /// # Errors
    /// [`SequenceError::Scratch`] when they cannot be read back.
    ///
    /// # Panics
    /// When there is no sequence `i`, or a source has the residues.
    pub fn sequence(&self, i: usize) -> Result<Vec<u8>, SequenceError> {
        self.residues.read(self.offsets[i], self.offsets[i + 1])
    }

    /// The array of residues as the source of a job's array, which can be used while this database lives. Those in memory
    /// are the source's from now on, and no longer here.
    pub fn take_source(&mut self) -> Source {
        match &mut self.residues {
            Stored::Memory(bytes) => Source::Bytes(std::mem::take(bytes)),
            // Whatever they would be.
            Stored::Unmade { directory: None, .. } => Source::Generated { seed: 0 },
            file => Source::Raw(file.path().unwrap_or_default()),
        }
    }
}
