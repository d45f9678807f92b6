//! The resume journal: which steps of a run are durable.
//!
//! ```text
//! <final>.journal
//! byte 0        "MGJRNL\r\n"   version u32   text u32              all numbers little-endian
//! byte 16       two marks: durable u64   checksum u64                                            16 bytes each
//! byte 48       text: so many bytes, UTF-8: what the journal is about
//!               checksum u64 of everything before but the marks
//! then records  kind u32   number u32   a u64   b u64   checksum u64        32 bytes each
//! ```
//! The text is the caller's: it says what must be the same for the records to mean the same. `number` counts the records
//! from 0; the checksum of a record (XXH3, 64 bits) starts from the header's, so that records of another journal never
//! count. The reader takes records up to the first that is short, wrong or out of number: a torn tail is ignored, and cut
//! off before anything is appended.
//!
//! **A torn tail and damage** are told apart by the marks. A mark says that so many records are durable: it is written in the
//! place of the older one behind each [`Journal::sync`], so of two one is always whole, and the higher one counts. Fewer valid
//! records than it says are no torn tail, and the journal is refused. So is one whose header is not whole: it gets its name,
//! by [`Journal::create`], when its header is durable.
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
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::context::Context;
use crate::disk::Disk;
use crate::error::{Errno, StoreError};
use crate::faults::OperationKind;
use crate::naming::with_suffix;
use rustix::fs::FlockOperation;
use xxhash_rust::xxh3::xxh3_64_with_seed;

const MAGIC: [u8; 8] = *b"MGJRNL\r\n";
const VERSION: u32 = 4;
const RECORD_BYTES: usize = 32;
/// Bytes before the marks, of a mark, and before the text.
const MARKS_AT: usize = 16;
const MARK_BYTES: usize = 16;
const TEXT_AT: usize = MARKS_AT + 2 * MARK_BYTES;
/// Suffix of a journal that has no whole header yet.
const NEW_SUFFIX: &str = ".new";

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
    /// Records that the last mark says are durable, and which of the two it is.
    marked: (u32, usize),
}

impl Journal {
    /// The journal's name beside an output: `<final_path>.journal`.
    pub fn path_for(final_path: &Path) -> PathBuf {
        with_suffix(final_path, ".journal")
    }

    /// The name that the journal `path` has while [`create`](Self::create) makes it.
    pub fn new_path_for(path: &Path) -> PathBuf {
        with_suffix(path, NEW_SUFFIX)
    }

    /// Starts an empty journal about `text`, replacing any journal under this name: nobody ever finds a part of its header there, and
    /// no file is written to that was there before, whatever other names it has.
    ///
    /// # Errors
    /// [`StoreError::File`]; [`StoreError::NotAJournal`]: something else has the name.
    pub fn create(disk: &Disk, path: impl AsRef<Path>, text: &str) -> Result<Journal, StoreError> {
        let path = path.as_ref();
        let new = Journal::new_path_for(path);
        let header = header_of(text);
        let context = disk.context();
        if is_one(path) == Some(false) {
            return Err(refused(path, "it is no journal".into(), false));
        }
        Journal::remove_new(disk, path);
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let file = context.attempt(OperationKind::Create, &new, || options.open(&new))?;
        let mut journal = Journal {
            file,
            path: new.clone(),
            seed: seed_of(&header),
            number: 0,
            end_bytes: header.len() as u64,
            marked: (0, 0),
        };
        let begun = journal
            .write_at(context, &header, 0)
            .and_then(|()| context.attempt(OperationKind::Sync, &new, || journal.file.sync_all()))
            .and_then(|()| context.attempt(OperationKind::Rename, path, || std::fs::rename(&new, path)));
        if let Err(error) = begun {
            disk.remove(&new);
            return Err(error);
        }
        journal.path = path.to_owned();
        if let Err(error) = disk.sync_directory(path) {
            disk.remove(path);
            return Err(error);
        }
        Ok(journal)
    }

    /// Removes what a run has left of a journal that it was killed while making.
    pub fn remove_new(disk: &Disk, path: &Path) {
        Journal::remove_at(disk, &Journal::new_path_for(path));
    }

    /// Removes the journal of this name, or what is left of one. What is something else stays.
    pub fn remove_at(disk: &Disk, path: &Path) {
        if is_one(path) == Some(true) {
            disk.remove(path);
        }
    }

    /// The text of the journal of an interrupted run; `each` gets its valid records, of which few are in memory at a time.
    /// `None` when there is no journal.
    ///
    /// # Errors
    /// [`StoreError::NotAJournal`]: it is damaged, or something else; [`StoreError::File`].
    pub fn read(disk: &Disk, path: impl AsRef<Path>, each: impl FnMut(Record)) -> Result<Option<String>, StoreError> {
        let path = path.as_ref();
        let mut options = std::fs::OpenOptions::new();
        let Some((file, _)) = open(disk.context(), OperationKind::Read, path, options.read(true), 0)? else {
            return Ok(None);
        };
        Ok(Some(scan(disk.context(), path, &file, each)?.text))
    }

    /// Opens the journal of an interrupted run to go on with it, behind its valid records, which `each` gets; they are durable then. `None` as for
    /// [`read`](Self::read).
    ///
    /// # Errors
    /// As for [`read`](Self::read); [`StoreError::Linked`].
    pub fn resume(
        disk: &Disk,
        path: impl AsRef<Path>,
        each: impl FnMut(Record),
    ) -> Result<Option<Journal>, StoreError> {
        let path = path.as_ref();
        let context = disk.context();
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true);
        let opened = open(context, OperationKind::Open, path, &mut options, libc::O_NOFOLLOW)?;
        let Some((file, links)) = opened else { return Ok(None) };
        if links > 1 {
            return Err(StoreError::Linked { path: path.to_owned(), links });
        }
        let Scanned { seed, records, end_bytes, whole_bytes, marked, .. } = scan(context, path, &file, each)?;
        let mut journal = Journal { file, path: path.to_owned(), seed, number: records, end_bytes, marked };
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

    /// Makes what was appended durable, and marks that it is.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn sync(&mut self, disk: &Disk) -> Result<(), StoreError> {
        disk.context().attempt(OperationKind::Sync, &self.path, || self.file.sync_data())?;
        let (durable, last) = self.marked;
        if durable != self.number {
            let next = 1 - last;
            let mark = mark_of(self.seed, self.number);
            self.write_at(disk.context(), &mark, (MARKS_AT + next * MARK_BYTES) as u64)?;
            self.marked = (self.number, next);
        }
        Ok(())
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

    /// Whether its name leads to this journal, and not to that of a run which has begun since its output was published.
    pub fn has_its_name(&self) -> bool {
        let (own, named) = (self.file.metadata(), std::fs::symlink_metadata(&self.path));
        let which = |found: std::fs::Metadata| (found.dev(), found.ino());
        matches!((own.map(which), named.map(which)), (Ok(own), Ok(named)) if own == named)
    }

    /// Removes the journal: after the output is published, or when the run is given up. What cannot be removed is
    /// ignored by every later run, which starts a new one or finds that it does not match.
    pub fn remove(self, disk: &Disk) {
        if self.has_its_name() {
            disk.remove(&self.path);
        }
    }

    fn write_at(&self, context: &Context, bytes: &[u8], offset: u64) -> Result<(), StoreError> {
        context.attempt(OperationKind::Append, &self.path, || self.file.write_all_at(bytes, offset))
    }
}

/// Opens what a journal's name leads to, and tells how many names it has; `None` where there is nothing. A pipe is not waited for.
fn open(
    context: &Context,
    operation: OperationKind,
    path: &Path,
    options: &mut std::fs::OpenOptions,
    flags: i32,
) -> Result<Option<(File, u64)>, StoreError> {
    options.custom_flags(flags | libc::O_NONBLOCK);
    let file = match context.attempt(operation, path, || options.open(path)) {
        Err(StoreError::File { errno: Errno(libc::ENOENT), .. }) => return Ok(None),
        other => other?,
    };
    let found = context.attempt(operation, path, || file.metadata())?;
    match found.is_file() {
        true => Ok(Some((file, found.nlink()))),
        false => Err(refused(path, "it is no file".into(), false)),
    }
}

/// A header, with its marks.
fn header_of(text: &str) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.resize(TEXT_AT, 0);
    bytes.extend_from_slice(text.as_bytes());
    let sum = header_sum(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    let marks = mark_of(sum, 0).repeat(2);
    bytes[MARKS_AT..TEXT_AT].copy_from_slice(&marks);
    bytes
}

/// The sum of a header, of which these are the bytes up to it.
fn header_sum(bytes: &[u8]) -> u64 {
    checksum(checksum(0, &bytes[..MARKS_AT]), &bytes[TEXT_AT..])
}

/// What the sums of marks and records start from: the sum at the end of a header.
fn seed_of(header: &[u8]) -> u64 {
    u64_at(header, header.len() - 8)
}

fn mark_of(seed: u64, durable: u32) -> [u8; MARK_BYTES] {
    let mut mark = [0; MARK_BYTES];
    mark[..8].copy_from_slice(&u64::from(durable).to_le_bytes());
    let sum = checksum(seed, &mark[..8]);
    mark[8..].copy_from_slice(&sum.to_le_bytes());
    mark
}

/// The higher one of the valid marks: how many records are durable, and which mark says so.
fn highest_mark(seed: u64, header: &[u8]) -> Option<(u32, usize)> {
    let mark = |which: usize| {
        let bytes = &header[MARKS_AT + which * MARK_BYTES..][..MARK_BYTES];
        let durable = u64_at(bytes, 0) as u32;
        (*bytes == mark_of(seed, durable)).then_some((durable, which))
    };
    mark(0).max(mark(1))
}

fn refused(path: &Path, found: String, ours: bool) -> StoreError {
    StoreError::NotAJournal { path: path.to_owned(), found, ours }
}

/// How many of a header's first bytes are not those of any journal.
fn other_than_magic(header: &[u8]) -> usize {
    header.iter().zip(&MAGIC).filter(|(found, is)| found != is).count()
}

/// Whether what has this name is a journal, or what is left of one; `None` where nothing has it.
fn is_one(path: &Path) -> Option<bool> {
    let found = path.symlink_metadata().ok()?;
    if found.is_symlink() || found.nlink() > 1 {
        // Only this name is taken from it.
        return Some(true);
    }
    let mut header = Vec::new();
    let read = |file: File| file.take(MAGIC.len() as u64).read_to_end(&mut header);
    let is_read = found.is_file() && File::open(path).and_then(read).is_ok();
    // Zeros are what a loss of power leaves of what was written last.
    let begins_as_one = 2 * other_than_magic(&header) <= header.len() || header.iter().all(|byte| *byte == 0);
    Some(is_read && begins_as_one)
}

/// The text of a header, where that is whole.
fn text_of(path: &Path, header: &[u8]) -> Result<String, StoreError> {
    let damaged = |found: &str| refused(path, format!("it is damaged: {found}"), true);
    let other = other_than_magic(header);
    if 2 * other > header.len().min(MAGIC.len()) {
        return Err(refused(path, "it is no journal".into(), false));
    }
    if other > 0 {
        return Err(damaged("it does not begin as a journal does"));
    }
    if header.len() < TEXT_AT {
        return Err(damaged("it ends within its header"));
    }
    let version = u32_at(header, 8);
    if version != VERSION {
        let found = format!("its version is {version}, or it is damaged; this program writes version {VERSION}");
        return Err(refused(path, found, true));
    }
    let text_end = TEXT_AT + u32_at(header, 12) as usize;
    if header.len() < text_end + 8 {
        return Err(damaged("it ends within its header"));
    }
    if header_sum(&header[..text_end]) != u64_at(header, text_end) {
        return Err(damaged("its header is not what was written"));
    }
    String::from_utf8(header[TEXT_AT..text_end].to_vec()).map_err(|_| damaged("its header is no text"))
}

/// What a journal was found to be.
struct Scanned {
    text: String,
    seed: u64,
    /// Valid records, where they end, and where the file does.
    records: u32,
    end_bytes: u64,
    whole_bytes: u64,
    marked: (u32, usize),
}

/// Bytes of records that are read at a time.
const READ_BYTES: usize = RECORD_BYTES << 11;

/// Reads a journal piece by piece.
fn scan(context: &Context, path: &Path, file: &File, mut each: impl FnMut(Record)) -> Result<Scanned, StoreError> {
    let failed = |errno: std::io::Error| context.failed(OperationKind::Read, path, errno);
    let whole_bytes = file.metadata().map_err(failed)?.len();
    let mut reader = BufReader::with_capacity(READ_BYTES, file);
    let mut header = Vec::new();
    reader.by_ref().take(TEXT_AT as u64).read_to_end(&mut header).map_err(failed)?;
    if header.len() == TEXT_AT {
        let rest = u64::from(u32_at(&header, 12)) + 8;
        reader.by_ref().take(rest).read_to_end(&mut header).map_err(failed)?;
    }
    let text = text_of(path, &header)?;
    let seed = seed_of(&header);
    let marked = highest_mark(seed, &header).ok_or_else(|| {
        refused(path, "it is damaged: what its header says of its records cannot be read".into(), true)
    })?;
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
    if records < marked.0 {
        let found = format!("it is damaged: of {} records that were on the disk, it has {records}", marked.0);
        return Err(refused(path, found, true));
    }
    let end_bytes = header.len() as u64 + u64::from(records) * RECORD_BYTES as u64;
    Ok(Scanned { text, seed, records, end_bytes, whole_bytes, marked })
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
