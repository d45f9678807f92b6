//! The resume journal: which steps of a run are durable.
//!
//! ```text
//! <final>.journal
//! byte 0        "MGJRNL\r\n"   version u32   parts u16   note u16       all numbers little-endian
//! byte 16       fingerprint: parts x u64
//!               note: so many bytes
//!               checksum u64 of everything before
//! then records  kind u32   number u32   a u64   b u64   checksum u64        32 bytes each
//! ```
//! `number` counts the records from 0; the checksum of a record starts from the header's, so that records of another
//! journal never count. The reader takes records up to the first that is short, wrong or out of number: a torn tail is
//! ignored, and cut off before anything is appended.
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
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::disk::{Context, Disk};
use crate::error::{Errno, StoreError};
use crate::faults::OperationKind;
use crate::naming::with_suffix;

const MAGIC: [u8; 8] = *b"MGJRNL\r\n";
const VERSION: u32 = 2;
const RECORD_BYTES: usize = 32;
/// Most parts of a fingerprint.
const PARTS_MAX: usize = 1024;
/// Longest note.
const NOTE_BYTES_MAX: usize = u16::MAX as usize;

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

    /// Starts an empty journal, replacing any under this name. `fingerprint` names what must be the same for a resume:
    /// (name, value), at most 1024; `note` is what a resuming run must know before it can say its own fingerprint
    /// ([`note`](Self::note)), at most 65535 bytes.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn create(
        disk: &Disk,
        path: impl AsRef<Path>,
        fingerprint: &[(&str, u64)],
        note: &str,
    ) -> Result<Journal, StoreError> {
        let path = path.as_ref();
        if note.len() > NOTE_BYTES_MAX {
            let found = format!("a note of {} bytes (at most {NOTE_BYTES_MAX})", note.len());
            return Err(StoreError::NotAJournal { path: path.to_owned(), found });
        }
        if fingerprint.len() > PARTS_MAX {
            let found = format!("a fingerprint of {} parts (at most {PARTS_MAX})", fingerprint.len());
            return Err(StoreError::NotAJournal { path: path.to_owned(), found });
        }
        let header = header_of(fingerprint, note);
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
            disk.remove_quietly(path);
            return Err(error);
        }
        Ok(journal)
    }

    /// The note of the journal of an interrupted run. `None` when there is no journal, or when the run was killed before
    /// its header was written.
    ///
    /// # Errors
    /// [`StoreError::NotAJournal`]; [`StoreError::File`].
    pub fn note(disk: &Disk, path: impl AsRef<Path>) -> Result<Option<String>, StoreError> {
        let path = path.as_ref();
        let bytes = match disk.context().attempt(OperationKind::Read, path, || std::fs::read(path)) {
            Err(StoreError::File { errno: Errno(libc::ENOENT), .. }) => return Ok(None),
            other => other?,
        };
        Ok(read_header(path, &bytes)?.map(|header| header.note))
    }

    /// Opens the journal of an interrupted run and reads its valid records. `None` when there is none, or when the run
    /// was killed before its header was written.
    ///
    /// # Errors
    /// [`StoreError::JournalMismatch`] names the first part of the fingerprint that differs;
    /// [`StoreError::NotAJournal`]; [`StoreError::File`].
    pub fn resume(
        disk: &Disk,
        path: impl AsRef<Path>,
        fingerprint: &[(&str, u64)],
    ) -> Result<Option<(Journal, Vec<Record>)>, StoreError> {
        let path = path.as_ref();
        let context = disk.context();
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true);
        let file = match context.attempt(OperationKind::Open, path, || options.open(path)) {
            Err(StoreError::File { errno: Errno(libc::ENOENT), .. }) => return Ok(None),
            other => other?,
        };
        let bytes = context.attempt(OperationKind::Read, path, || std::fs::read(path))?;
        let Some(header) = read_header(path, &bytes)? else { return Ok(None) };
        check_fingerprint(path, &header.fingerprint, fingerprint)?;
        let seed = checksum(0, &bytes[..header.len_bytes]);
        let records = read_records(seed, &bytes[header.len_bytes..]);
        let end_bytes = (header.len_bytes + records.len() * RECORD_BYTES) as u64;
        let journal = Journal { file, path: path.to_owned(), seed, number: records.len() as u32, end_bytes };
        if end_bytes < bytes.len() as u64 {
            // A torn append may have left later records whole; behind new records they would look valid again.
            context.attempt(OperationKind::Truncate, path, || journal.file.set_len(end_bytes))?;
            journal.sync(disk)?;
        }
        Ok(Some((journal, records)))
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
        disk.remove_quietly(&self.path);
    }

    fn write_at(&self, context: &Context, bytes: &[u8], offset: u64) -> Result<(), StoreError> {
        context.attempt(OperationKind::Append, &self.path, || self.file.write_all_at(bytes, offset))
    }
}

struct Header {
    fingerprint: Vec<u64>,
    note: String,
    len_bytes: usize,
}

fn header_of(fingerprint: &[(&str, u64)], note: &str) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(fingerprint.len() as u16).to_le_bytes());
    bytes.extend_from_slice(&(note.len() as u16).to_le_bytes());
    for (_, value) in fingerprint {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    bytes.extend_from_slice(note.as_bytes());
    let sum = checksum(0, &bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// A valid header; `None` for one that was never completely written.
fn read_header(path: &Path, bytes: &[u8]) -> Result<Option<Header>, StoreError> {
    let foreign = |found: String| StoreError::NotAJournal { path: path.to_owned(), found };
    let damaged = || foreign("its header is damaged".into());
    let known = bytes.len().min(MAGIC.len());
    if bytes[..known] != MAGIC[..known] {
        return Err(foreign("it is no journal".into()));
    }
    if bytes.len() < 16 {
        return Ok(None);
    }
    let version = u32_at(bytes, 8);
    if version != VERSION {
        return Err(foreign(format!("its version is {version}, this program writes version {VERSION}")));
    }
    let lengths = u32_at(bytes, 12);
    let (parts, note_bytes) = ((lengths & 0xffff) as usize, (lengths >> 16) as usize);
    let note_at = 16 + parts * 8;
    let note_end = note_at + note_bytes;
    let len_bytes = note_end + 8;
    if bytes.len() < len_bytes {
        return Ok(None);
    }
    if checksum(0, &bytes[..note_end]) != u64_at(bytes, note_end) {
        return Err(damaged());
    }
    let fingerprint = (0..parts).map(|part| u64_at(bytes, 16 + part * 8)).collect();
    let note = String::from_utf8(bytes[note_at..note_end].to_vec()).map_err(|_| damaged())?;
    Ok(Some(Header { fingerprint, note, len_bytes }))
}

fn check_fingerprint(path: &Path, found: &[u64], expected: &[(&str, u64)]) -> Result<(), StoreError> {
    let differs = |what: &str, found, expected| StoreError::JournalMismatch {
        path: path.to_owned(),
        what: what.to_owned(),
        found,
        expected,
    };
    if found.len() != expected.len() {
        return Err(differs("number of fingerprint parts", found.len() as u64, expected.len() as u64));
    }
    match found.iter().zip(expected).find(|(found, (_, expected))| *found != expected) {
        Some((&found, &(name, expected))) => Err(differs(name, found, expected)),
        None => Ok(()),
    }
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

fn read_records(seed: u64, bytes: &[u8]) -> Vec<Record> {
    let valid = |(number, bytes): (usize, &[u8])| {
        let sound = u32_at(bytes, 4) as usize == number && checksum(seed, &bytes[..24]) == u64_at(bytes, 24);
        sound.then(|| Record { kind: u32_at(bytes, 0), a: u64_at(bytes, 8), b: u64_at(bytes, 16) })
    };
    bytes.chunks_exact(RECORD_BYTES).enumerate().map_while(valid).collect()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |b| u32::from_le_bytes(*b))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b))
}

/// FNV-1a, 64 bits (draft-eastlake-fnv), started from `seed`, with the finaliser of SplitMix64 so that every bit of the
/// input moves every bit of the sum. It detects torn writes; it does not defend against forgery.
fn checksum(seed: u64, bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ seed;
    for &byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
