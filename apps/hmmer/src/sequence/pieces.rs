//! A plain FASTA file is read by several threads: pieces of whole records, which their `>` tell, are parsed side by side
//! and put together in the file's order.
//!
//! Whatever is odd, be it an error, a record much longer than a piece, little memory or another format, is left to the
//! reader on one thread, which begins again: so there is one that says what is wrong, and where.

use super::spill::{Spill, Stored};
use super::{Database, Gathered, Limit, fasta, text};
use memchr::memchr_iter;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Bytes of the file that are one piece: they stay in a processor's cache while they are parsed.
const PIECE_BYTES: u64 = 256 << 10;
/// Smaller pieces are not worth a thread.
const PIECE_BYTES_LEAST: u64 = 16 << 10;
/// Pieces' worth of memory that each thread takes at most, where last records are as long as they may be: a text, and what was
/// parsed, being made and waiting to be put together.
const HELD: u64 = 6;
/// Bytes that are looked through at once for the end of a piece's last record.
const STEP_BYTES: usize = 16 << 10;

/// Residues of files from so many bytes on go into huge pages: first touches of small ones were half of the samples of the
/// thread that puts pieces together.
const HUGE_FROM_BYTES: u64 = 4 << 20;
/// Where that is at most this part of the memory for them, since the last page is more than they need.
const HUGE_SHARE: u64 = 4;
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Records that lie one after the other in the file.
#[derive(Default)]
struct Parsed {
    residues: Vec<u8>,
    headers: Vec<u8>,
    /// Of each record the end of its header, that of its residues, and whether it has any.
    ends: Vec<(usize, u64, bool)>,
}

/// The sequences of a plain FASTA file, read by so many threads; none if that cannot be or something is wrong.
pub(super) fn read(path: &Path, limit: Limit<'_>, workers: usize) -> Option<Database> {
    // The name means the standard input, also where there is such a file.
    if path.as_os_str() == text::STANDARD_INPUT {
        return None;
    }
    let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let bytes = metadata.len();
    let most = limit.memory_bytes / (HELD * workers.max(1) as u64);
    let piece_bytes = PIECE_BYTES.min(most);
    if workers < 2 || piece_bytes < PIECE_BYTES_LEAST || bytes <= piece_bytes {
        return None;
    }
    pieces(&File::open(path).ok()?, path, limit, workers, piece_bytes)
}

/// The same of pieces of so many bytes.
pub(super) fn pieces(file: &File, path: &Path, limit: Limit<'_>, workers: usize, piece_bytes: u64) -> Option<Database> {
    let bytes = file.metadata().ok()?.len();
    let mut first = [0];
    file.read_exact_at(&mut first, 0).ok()?;
    if first != *b">" {
        return None;
    }
    let pieces = bytes.div_ceil(piece_bytes);
    let workers = workers.min(pieces as usize);
    thread::scope(|scope| {
        // Each thread, this one is the first, has every so manieth piece; the others parse the next one while their last
        // waits to be taken.
        let others: Vec<_> = (1..workers as u64)
            .map(|worker| {
                let (send, parsed) = sync_channel(1);
                let (give, emptied) = sync_channel(2);
                for _ in 0..2 {
                    let _ = give.send(Parsed::default());
                }
                let mine = (worker..pieces).step_by(workers);
                scope.spawn(move || parse_all(file, path, mine, piece_bytes, &send, &emptied));
                (parsed, give)
            })
            .collect();
        let (mut gathered, mut text) = (Gathered::new(limit, 0), Vec::new());
        if (HUGE_FROM_BYTES..=limit.memory_bytes / HUGE_SHARE).contains(&bytes) {
            // What is too much of it has no pages, and is given back in the end.
            gathered.residues.buffer().reserve_exact(bytes as usize);
            advise_huge(gathered.residues.buffer());
        }
        for piece in 0..pieces {
            match (piece as usize % workers).checked_sub(1) {
                None => gathered.parse(records(file, piece * piece_bytes, piece_bytes, &mut text)?, path)?,
                Some(other) => {
                    let (parsed, give) = &others[other];
                    // Who gave up has sent nothing.
                    let parsed = parsed.recv().ok()?;
                    gathered.append(&parsed)?;
                    // Behind the last piece nobody waits for it.
                    let _ = give.send(parsed);
                }
            }
        }
        gathered.finish(path).ok()
    })
}

/// How many records a plain FASTA file has; none where it is another.
pub(super) fn count(path: &Path) -> Option<u64> {
    let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let (file, mut text, mut records) = (File::open(path).ok()?, Vec::new(), 0);
    for start in (0..metadata.len()).step_by(PIECE_BYTES as usize) {
        text.clear();
        // The byte before tells whether a line begins.
        let origin = start.saturating_sub(1);
        read_to(&file, origin, (start + PIECE_BYTES - origin) as usize, &mut text)?;
        if start == 0 {
            (*text.first()? == b'>').then_some(())?;
            records += 1;
        }
        records += memchr_iter(b'>', text.get(1..)?).filter(|&at| text[at] == b'\n').count() as u64;
    }
    Some(records)
}

/// Asks for huge pages in room that nobody has touched yet.
fn advise_huge(room: &mut Vec<u8>) {
    let room = room.spare_capacity_mut();
    let begin = room.as_ptr().addr().wrapping_neg() % HUGE_PAGE_BYTES;
    let bytes = room.len().saturating_sub(begin) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    #[cfg(target_os = "linux")]
    if bytes > 0 {
        // Only advice, so the result is of no interest.
        // SAFETY: the range lies in the vector's own memory, and its content does not change.
        unsafe { libc::madvise(room[begin..].as_mut_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
    }
}

impl Gathered {
    fn parse(&mut self, records: &[u8], path: &Path) -> Option<()> {
        // FASTA's parser refuses a text without records.
        if records.is_empty() {
            return Some(());
        }
        let Gathered { residues, records: known } = self;
        let lines = text::Lines::new(records, false, path);
        fasta::parse(lines, residues, |header, end, any| known.add(header, end, any)).ok()
    }

    fn append(&mut self, piece: &Parsed) -> Option<()> {
        let before = self.residues.settle().ok()?;
        self.residues.buffer().extend_from_slice(&piece.residues);
        self.residues.settle().ok()?;
        let mut begin = 0;
        for &(header_end, end, any) in &piece.ends {
            self.records.add(&piece.headers[begin..header_end], before + end, any).ok()?;
            begin = header_end;
        }
        Some(())
    }
}

/// Parses a thread's pieces, until one is odd or nobody takes them any more.
fn parse_all(
    file: &File,
    path: &Path,
    mine: impl Iterator<Item = u64>,
    piece_bytes: u64,
    send: &SyncSender<Parsed>,
    emptied: &Receiver<Parsed>,
) {
    let mut text = Vec::new();
    for piece in mine {
        let Ok(emptied) = emptied.recv() else { return };
        let parsed = records(file, piece * piece_bytes, piece_bytes, &mut text)
            .and_then(|records| parse(records, path, emptied))
            .map(|parsed| send.send(parsed));
        if !matches!(parsed, Some(Ok(()))) {
            return;
        }
    }
}

fn parse(records: &[u8], path: &Path, mut parsed: Parsed) -> Option<Parsed> {
    parsed.residues.clear();
    parsed.headers.clear();
    parsed.ends.clear();
    if records.is_empty() {
        return Some(parsed);
    }
    let Parsed { residues, headers, ends } = &mut parsed;
    let mut spill = Spill::of(std::mem::take(residues));
    fasta::parse(text::Lines::new(records, false, path), &mut spill, |header, end, any| {
        headers.extend_from_slice(header);
        ends.push((headers.len(), end, any));
        Ok(())
    })
    .ok()?;
    match spill.finish().ok()? {
        Stored::Memory(bytes) => *residues = bytes,
        Stored::File { .. } | Stored::Unmade { .. } => return None,
    }
    Some(parsed)
}

/// The records that begin in a piece of the file, whose last may end beyond it; none where they cannot be read, or the last
/// one is longer than another piece.
fn records<'t>(file: &File, start: u64, piece_bytes: u64, text: &'t mut Vec<u8>) -> Option<&'t [u8]> {
    // A record begins with a `>` behind the end of a line, so the byte before the piece counts.
    let origin = start.saturating_sub(1);
    let nominal = (start + piece_bytes - origin) as usize;
    text.clear();
    let is_whole = read_to(file, origin, nominal, text)?;
    let begin = match start {
        0 => 0,
        _ => match begin_of_record(text, 1) {
            Some(begin) => begin,
            None => return Some(&[]),
        },
    };
    if is_whole {
        return Some(&text[begin..]);
    }
    let mut looked = nominal;
    loop {
        let is_whole = read_to(file, origin, looked + STEP_BYTES, text)?;
        if let Some(end) = begin_of_record(text, looked) {
            return Some(&text[begin..end]);
        }
        if is_whole {
            return Some(&text[begin..]);
        }
        looked = text.len();
        if looked > 2 * nominal {
            return None;
        }
    }
}

/// Where the first record begins in a text, at `from` or behind it.
fn begin_of_record(text: &[u8], from: usize) -> Option<usize> {
    memchr_iter(b'>', text.get(from..)?).map(|at| from + at).find(|&at| text[at - 1] == b'\n')
}

/// Reads on until the text has so many bytes, which begin at `origin` of the file: whether the file ends before.
fn read_to(file: &File, origin: u64, bytes: usize, text: &mut Vec<u8>) -> Option<bool> {
    let mut have = text.len();
    text.resize(bytes, 0);
    while have < bytes {
        match file.read_at(&mut text[have..], origin + have as u64) {
            Ok(0) => break,
            Ok(read) => have += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    text.truncate(have);
    Some(have < bytes)
}
