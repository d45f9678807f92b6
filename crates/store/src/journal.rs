//! The resume journal: which steps of a run are durable.
//!
//! ```text
//! <final>.journal
//! byte 0        "MGJRNL\r\n"   version u32   text u32              all numbers little-endian
//! byte 16       text: so many bytes, UTF-8: what the journal is about
//!               checksum u64 of everything before
//! then records  kind u32   number u32   a u64   b u64   checksum u64        32 bytes each
//! ```
//! The text is the caller's: it says what must be the same for the records to mean the same. `number` counts the records
//! from 0; the checksum of a record (XXH3, 64 bits) starts from the header's, so that records of another journal never
//! count. The reader takes records up to the first that is short, wrong or out of number: a torn tail is ignored, and cut
//! off before anything is appended.
//!
//! **The protocol**, whose kinds and meanings belong to the caller. For a block that a run writes once:
//! ```text
//!   Absent --write data--> Written --Disk::sync--> Durable --append(done)--> Recorded
//! ```
//! A `done` record is appended only in state Durable, so a reader may trust what it finds. A crash in an earlier state
//! leaves the block to be computed again. For a block that is updated in place:
//! ```text
//!   Recorded(old) --append(begin), Journal::sync--> Open --write data--> Written --Disk::sync--> Durable
//!                 --append(done)--> Recorded(new)
//! ```
//! A block that was Open at the crash has no trustworthy content: the caller computes it again from what it was
//! computed from, or keeps the old content elsewhere. `begin` must be durable before the first byte is overwritten,
//! hence the sync; a lost `done` only costs time.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::disk::{Context, Disk};
use crate::error::{Errno, StoreError};
use crate::faults::OperationKind;
use crate::naming::with_suffix;
use rustix::fs::FlockOperation;
use xxhash_rust::xxh3::xxh3_64_with_seed;

const MAGIC: [u8; 8] = *b"MGJRNL\r\n";
const VERSION: u32 = 3;
const RECORD_BYTES: usize = 32;
/// Bytes before the text.
const TEXT_AT: usize = 16;

/// One record; what the numbers mean is the caller's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// What happened.
    pub kind: u32,
    /// First number.
    pub a: u64,
    /// Second number.
    pub b: u64,
}

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    seed: u64,
    number: u32,
    end_bytes: u64,
}

impl Journal {
    /// The journal's name beside an output: `<final_path>.journal`.
    pub fn path_for(final_path: &Path) -> PathBuf {
        with_suffix(final_path, ".journal")
    }

    /// Starts an empty journal about `text`, replacing any under this name.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn create(disk: &Disk, path: impl AsRef<Path>, text: &str) -> Result<Journal, StoreError> {
        let path = path.as_ref();
        let header = header_of(text);
        let context = disk.context();
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let file = context.attempt(OperationKind::Create, path, || options.open(path))?;
        let journal = Journal {
            file,
            path: path.to_owned(),
            seed: checksum(0, &header),
            number: 0,
            end_bytes: header.len() as u64,
        };
        let begun = journal
            .write_at(context, &header, 0)
            .and_then(|()| journal.sync(disk))
            .and_then(|()| disk.sync_directory(path));
        if let Err(error) = begun {
            disk.remove(path);
            return Err(error);
        }
        Ok(journal)
    }

    /// The text of the journal of an interrupted run; `each` gets its valid records, of which few are in memory at a time.
    /// `None` when there is no journal, or when the run was killed before its header was written.
    ///
    /// # Errors
    /// [`StoreError::NotAJournal`]; [`StoreError::File`].
    pub fn read(disk: &Disk, path: impl AsRef<Path>, each: impl FnMut(Record)) -> Result<Option<String>, StoreError> {
        let path = path.as_ref();
        let file = match disk.context().attempt(OperationKind::Read, path, || File::open(path)) {
            Err(StoreError::File { errno: Errno(libc::ENOENT), .. }) => return Ok(None),
            other => other?,
        };
        Ok(scan(disk.context(), path, &file, each)?.map(|scanned| scanned.text))
    }

    /// Opens the journal of an interrupted run to go on with it, behind its valid records, which `each` gets; they are durable then. `None` as for
    /// [`read`](Self::read).
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn resume(
        disk: &Disk,
        path: impl AsRef<Path>,
        each: impl FnMut(Record),
    ) -> Result<Option<Journal>, StoreError> {
        let path = path.as_ref();
        let context = disk.context();
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true);
        let file = match context.attempt(OperationKind::Open, path, || options.open(path)) {
            Err(StoreError::File { errno: Errno(libc::ENOENT), .. }) => return Ok(None),
            other => other?,
        };
        let scanned = context.attempt(OperationKind::Read, path, || Ok::<_, std::io::Error>(()));
        let Some(scanned) = scanned.and_then(|()| scan(context, path, &file, each))? else { return Ok(None) };
        let Scanned { seed, records, end_bytes, whole_bytes, .. } = scanned;
        let journal = Journal { file, path: path.to_owned(), seed, number: records, end_bytes };
        if end_bytes < whole_bytes {
            // A torn append may have left later records whole; behind new records they would look valid again.
            context.attempt(OperationKind::Truncate, path, || journal.file.set_len(end_bytes))?;
        }
        // Who wrote them may have been killed before its flush, and who goes on relies on them: on the beginning of a block, which it
        // overwrites now.
        journal.sync(disk)?;
        Ok(Some(journal))
    }

    /// Appends records with one write. They survive the death of the process; [`sync`](Self::sync) makes them survive
    /// the death of the machine.
    ///
    /// # Errors
    /// [`StoreError::File`]; the journal is then as before, and the records may be appended again.
    pub fn append(&mut self, disk: &Disk, records: &[Record]) -> Result<(), StoreError> {
        let mut bytes = Vec::with_capacity(records.len() * RECORD_BYTES);
        let mut number = self.number;
        for record in records {
            encode(self.seed, number, record, &mut bytes);
            number = number.wrapping_add(1);
        }
        if !bytes.is_empty() {
            self.write_at(disk.context(), &bytes, self.end_bytes)?;
        }
        self.number = number;
        self.end_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Makes what was appended durable.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn sync(&self, disk: &Disk) -> Result<(), StoreError> {
        disk.context().attempt(OperationKind::Sync, &self.path, || self.file.sync_data())
    }

    /// Takes the journal's lock, which ends with it, so that others see that somebody writes it ([`Disk::is_locked`]). A file system without locks
    /// has no holders.
    ///
    /// # Errors
    /// [`StoreError::Busy`]: another process has it.
    pub fn lock(&self) -> Result<(), StoreError> {
        match rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => Err(StoreError::Busy { path: self.path.clone() }),
            _ => Ok(()),
        }
    }

    /// Records in the journal.
    pub fn len(&self) -> usize {
        self.number as usize
    }

    /// Whether it has no records.
    pub fn is_empty(&self) -> bool {
        self.number == 0
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the journal: after the output is published, or when the run is given up. What cannot be removed is
    /// ignored by every later run, which starts a new one or finds that it does not match.
    pub fn remove(self, disk: &Disk) {
        disk.remove(&self.path);
    }

    fn write_at(&self, context: &Context, bytes: &[u8], offset: u64) -> Result<(), StoreError> {
        context.attempt(OperationKind::Append, &self.path, || self.file.write_all_at(bytes, offset))
    }
}

struct Header {
    text: String,
    len_bytes: usize,
}

fn header_of(text: &str) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    let sum = checksum(0, &bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// A valid header; `None` for one that was never completely written.
fn read_header(path: &Path, bytes: &[u8]) -> Result<Option<Header>, StoreError> {
    let refused = |found: String, ours| StoreError::NotAJournal { path: path.to_owned(), found, ours };
    let damaged = || refused("its header is damaged".into(), true);
    let known = bytes.len().min(MAGIC.len());
    if bytes[..known] != MAGIC[..known] {
        return Err(refused("it is no journal".into(), false));
    }
    if bytes.len() < TEXT_AT {
        return Ok(None);
    }
    let version = u32_at(bytes, 8);
    if version != VERSION {
        return Err(refused(format!("its version is {version}, this program writes version {VERSION}"), true));
    }
    let text_end = TEXT_AT + u32_at(bytes, 12) as usize;
    let len_bytes = text_end + 8;
    if bytes.len() < len_bytes {
        return Ok(None);
    }
    if checksum(0, &bytes[..text_end]) != u64_at(bytes, text_end) {
        return Err(damaged());
    }
    let text = String::from_utf8(bytes[TEXT_AT..text_end].to_vec()).map_err(|_| damaged())?;
    Ok(Some(Header { text, len_bytes }))
}

/// What a journal was found to be.
struct Scanned {
    text: String,
    seed: u64,
    /// Valid records, where they end, and where the file does.
    records: u32,
    end_bytes: u64,
    whole_bytes: u64,
}

/// Bytes of records that are read at a time.
const READ_BYTES: usize = RECORD_BYTES << 11;

/// Reads a journal piece by piece.
fn scan(
    context: &Context,
    path: &Path,
    file: &File,
    mut each: impl FnMut(Record),
) -> Result<Option<Scanned>, StoreError> {
    let failed = |errno: std::io::Error| context.failed(OperationKind::Read, path, errno);
    let whole_bytes = file.metadata().map_err(failed)?.len();
    let mut reader = BufReader::with_capacity(READ_BYTES, file);
    let mut header = Vec::new();
    reader.by_ref().take(TEXT_AT as u64).read_to_end(&mut header).map_err(failed)?;
    if header.len() == TEXT_AT {
        let rest = u64::from(u32_at(&header, 12)) + 8;
        reader.by_ref().take(rest).read_to_end(&mut header).map_err(failed)?;
    }
    let Some(Header { text, len_bytes }) = read_header(path, &header)? else { return Ok(None) };
    let seed = checksum(0, &header);
    let (mut records, mut bytes) = (0, [0; RECORD_BYTES]);
    loop {
        match reader.read_exact(&mut bytes) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => break,
            Err(e) => return Err(failed(e)),
        }
        let Some(record) = decode(seed, records, &bytes) else { break };
        each(record);
        records += 1;
    }
    let end_bytes = len_bytes as u64 + u64::from(records) * RECORD_BYTES as u64;
    Ok(Some(Scanned { text, seed, records, end_bytes, whole_bytes }))
}

fn encode(seed: u64, number: u32, record: &Record, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    bytes.extend_from_slice(&record.kind.to_le_bytes());
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&record.a.to_le_bytes());
    bytes.extend_from_slice(&record.b.to_le_bytes());
    let sum = checksum(seed, &bytes[start..]);
    bytes.extend_from_slice(&sum.to_le_bytes());
}

/// A record, if it is valid and has this number.
fn decode(seed: u64, number: u32, bytes: &[u8; RECORD_BYTES]) -> Option<Record> {
    let sound = u32_at(bytes, 4) == number && checksum(seed, &bytes[..24]) == u64_at(bytes, 24);
    sound.then(|| Record { kind: u32_at(bytes, 0), a: u64_at(bytes, 8), b: u64_at(bytes, 16) })
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |b| u32::from_le_bytes(*b))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b))
}

/// It detects torn writes; it does not defend against forgery.
fn checksum(seed: u64, bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, seed)
}
