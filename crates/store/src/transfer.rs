//! Descriptions of what is moved between a file and memory: compact, and expanded only while it is moved.

use std::sync::Arc;

use crate::error::StoreError;
use crate::file::ArrayFile;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the file into memory.
    Read,
    /// From memory into the file.
    Write,
}

/// Bytes that are contiguous in the file and in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// First byte in the file, counted from the start of the file.
    pub file_offset_bytes: u64,
    /// First byte in memory.
    pub memory: *mut u8,
    /// Bytes.
    pub len_bytes: u64,
}

/// A repetition of a fragment: `count` times, each so much further in the file and in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stride {
    /// How often.
    pub count: u64,
    /// Bytes from one to the next in the file.
    pub file_bytes: u64,
    /// Bytes from one to the next in memory.
    pub memory_bytes: u64,
}

/// A fragment under nested repetitions, outermost first.
#[derive(Clone, Debug)]
struct Piece {
    first: Fragment,
    strides: Vec<Stride>,
}

/// Bytes moved at once between one file and memory: any number of fragments, gathered or scattered.
///
/// A block of an array of any rank is one compact entry, however many rows it has. Within one list no byte of the
/// file may be written twice, and no byte of memory read into twice.
#[derive(Clone, Debug)]
pub struct TransferList {
    file: ArrayFile,
    direction: Direction,
    pieces: Vec<Piece>,
    slack: Slack,
    label: Arc<str>,
}

/// Memory around what a read brings that nobody else uses, and that the read may fill with anything: a disk moves whole
/// pages, and with room for all of a block's pages none of them is copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slack {
    /// Bytes before the first fragment.
    pub before_bytes: u64,
    /// Bytes behind the last.
    pub after_bytes: u64,
}

// SAFETY: the raw pointers in it are only used by the disk after `Disk::submit`, whose contract makes the caller
// responsible for the memory behind them, from whichever thread.
unsafe impl Send for TransferList {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for TransferList {}

impl TransferList {
    /// An empty list. `label` names the transfer in errors; a clone of it costs no allocation.
    pub fn new(file: &ArrayFile, direction: Direction, label: Arc<str>) -> TransferList {
        TransferList { file: file.clone(), direction, pieces: Vec::new(), slack: Slack::default(), label }
    }

    /// A block of the file's array: `start` and `len` in elements for each dimension, `memory` the address of the
    /// block's first element, `row_pitch_bytes` from one row (a run along the last dimension) to the next; the rows of
    /// all outer dimensions follow each other at this pitch.
    ///
    /// # Errors
    /// [`StoreError::OutOfBounds`] when the block does not lie in the array.
    pub fn block(
        file: &ArrayFile,
        direction: Direction,
        start: &[u64],
        len: &[u64],
        memory: *mut u8,
        row_pitch_bytes: u64,
        label: Arc<str>,
    ) -> Result<TransferList, StoreError> {
        let mut pitches = vec![row_pitch_bytes; len.len().saturating_sub(1)];
        for outer in (1..pitches.len()).rev() {
            pitches[outer - 1] = pitches[outer].saturating_mul(len.get(outer).copied().unwrap_or(1));
        }
        TransferList::block_with_pitches(file, direction, start, len, memory, &pitches, label)
    }

    /// As [`block`](Self::block), with the pitch in memory of every dimension but the last.
    ///
    /// # Errors
    /// [`StoreError::OutOfBounds`] when the block does not lie in the array, or the ranks differ.
    pub fn block_with_pitches(
        file: &ArrayFile,
        direction: Direction,
        start: &[u64],
        len: &[u64],
        memory: *mut u8,
        pitches_bytes: &[u64],
        label: Arc<str>,
    ) -> Result<TransferList, StoreError> {
        let shape = file.shape();
        let rank = shape.len();
        let inside = start.len() == rank
            && len.len() == rank
            && pitches_bytes.len() == rank.saturating_sub(1)
            && (0..rank).all(|d| start[d].checked_add(len[d]).is_some_and(|end| end <= shape[d]));
        if !inside {
            return Err(StoreError::OutOfBounds {
                path: file.path().to_owned(),
                start: start.to_vec(),
                len: len.to_vec(),
                shape: shape.to_vec(),
            });
        }
        let mut list = TransferList::new(file, direction, label);
        if len.contains(&0) {
            return Ok(list);
        }
        // Products of extents of an existing array with data: they fit, because the whole array does.
        let element = file.element().size_bytes();
        let mut file_offset_bytes = file.data_offset_bytes();
        let mut file_pitch = element;
        let mut strides = Vec::with_capacity(rank);
        for d in (0..rank).rev() {
            file_offset_bytes += start[d] * file_pitch;
            if d + 1 < rank {
                strides.push(Stride { count: len[d], file_bytes: file_pitch, memory_bytes: pitches_bytes[d] });
            }
            file_pitch *= shape[d];
        }
        strides.reverse();
        let len_bytes = len.last().copied().unwrap_or(1) * element;
        list.push_strided(Fragment { file_offset_bytes, memory, len_bytes }, &strides);
        Ok(list)
    }

    /// Allows a read to fill memory around its fragments; see [`Slack`].
    #[must_use]
    pub fn with_slack(mut self, slack: Slack) -> TransferList {
        self.slack = slack;
        self
    }

    /// What a read may fill around its only fragment; none where there are several, which lie apart in the file.
    pub(crate) fn slack(&self) -> Option<Slack> {
        let single = matches!(&self.pieces[..], [piece] if piece.strides.is_empty());
        (single && self.direction == Direction::Read).then_some(self.slack)
    }

    /// Adds a fragment; one that continues the last fragment on both sides makes it longer.
    pub fn push(&mut self, fragment: Fragment) {
        self.push_strided(fragment, &[]);
    }

    /// Adds a fragment repeated by nested strides, outermost first.
    pub fn push_strided(&mut self, first: Fragment, strides: &[Stride]) {
        if first.len_bytes == 0 || strides.iter().any(|s| s.count == 0) {
            return;
        }
        let mut piece = Piece { first, strides: Vec::with_capacity(strides.len()) };
        // Repetitions without a gap on either side are one longer fragment; nested ones that continue each other are
        // one longer repetition.
        for &stride in strides.iter().rev().filter(|s| s.count > 1) {
            let len = piece.first.len_bytes;
            match piece.strides.first_mut() {
                None if stride.file_bytes == len
                    && stride.memory_bytes == len
                    && len.checked_mul(stride.count).is_some() =>
                {
                    piece.first.len_bytes = len * stride.count;
                }
                Some(inner)
                    if inner.file_bytes.checked_mul(inner.count) == Some(stride.file_bytes)
                        && inner.memory_bytes.checked_mul(inner.count) == Some(stride.memory_bytes)
                        && inner.count.checked_mul(stride.count).is_some() =>
                {
                    inner.count *= stride.count;
                }
                _ => piece.strides.insert(0, stride),
            }
        }
        if let Some(last) = self.pieces.last_mut()
            && last.strides.is_empty()
            && piece.strides.is_empty()
            && last.first.file_offset_bytes.checked_add(last.first.len_bytes) == Some(piece.first.file_offset_bytes)
            && last.first.memory.wrapping_add(last.first.len_bytes as usize) == piece.first.memory
        {
            last.first.len_bytes += piece.first.len_bytes;
            return;
        }
        self.pieces.push(piece);
    }

    /// The file.
    pub fn file(&self) -> &ArrayFile {
        &self.file
    }

    /// Which way the bytes go.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// The name of the transfer in errors.
    pub fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// Bytes moved in all.
    pub fn len_bytes(&self) -> u64 {
        let bytes = |p: &Piece| p.strides.iter().fold(p.first.len_bytes, |n, s| n.saturating_mul(s.count));
        self.pieces.iter().map(bytes).fold(0, u64::saturating_add)
    }

    /// Fragments that the list expands to.
    pub fn fragments(&self) -> u64 {
        let count = |p: &Piece| p.strides.iter().fold(1u64, |n, s| n.saturating_mul(s.count));
        self.pieces.iter().map(count).fold(0, u64::saturating_add)
    }

    /// Checks that every byte lies in the data of the file and that a file to be written can be.
    pub(crate) fn validate(&self) -> Result<(), StoreError> {
        if self.direction == Direction::Write && !self.file.accepts_writes() {
            return Err(StoreError::ReadOnly { path: self.file.path().to_owned() });
        }
        let data_start_bytes = self.file.data_offset_bytes();
        let data_end_bytes = data_start_bytes + self.file.data_bytes();
        for piece in &self.pieces {
            let offset_bytes = piece.first.file_offset_bytes;
            let end = piece.strides.iter().try_fold(offset_bytes.checked_add(piece.first.len_bytes), |end, s| {
                Some(end.and_then(|end| end.checked_add(s.file_bytes.checked_mul(s.count - 1)?)))
            });
            let end_bytes = end.flatten().unwrap_or(u64::MAX);
            if offset_bytes < data_start_bytes || end_bytes > data_end_bytes {
                let path = self.file.path().to_owned();
                return Err(StoreError::OutsideData {
                    path,
                    offset_bytes,
                    end_bytes,
                    data_start_bytes,
                    data_end_bytes,
                });
            }
        }
        Ok(())
    }

    /// The place before the first fragment.
    pub(crate) fn cursor(&self) -> Cursor {
        Cursor::default()
    }
}

/// Deepest nesting of strides that a cursor walks without looking at the list's heap: more than any array has in
/// practice; deeper ones spill to a vector.
const DEPTH_INLINE: usize = 6;

/// A place in the expansion of a list: cheap to copy, so that an operation can keep where it began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cursor {
    piece: usize,
    inline: [u64; DEPTH_INLINE],
    deeper: Vec<u64>,
    /// Bytes of the current fragment that are behind.
    within: u64,
    /// Sums of the strides passed: where the current fragment starts, relative to the piece's first.
    file: u64,
    memory: u64,
}

impl Cursor {
    /// The rest of the current fragment.
    pub(crate) fn peek(&self, list: &TransferList) -> Option<Fragment> {
        let first = list.pieces.get(self.piece)?.first;
        Some(Fragment {
            file_offset_bytes: first.file_offset_bytes + self.file + self.within,
            memory: first.memory.wrapping_add(self.memory.wrapping_add(self.within) as usize),
            len_bytes: first.len_bytes - self.within,
        })
    }

    /// Passes `bytes`, at most the rest of the current fragment.
    pub(crate) fn advance(&mut self, list: &TransferList, bytes: u64) {
        let Some(piece) = list.pieces.get(self.piece) else { return };
        self.within += bytes;
        debug_assert!(self.within <= piece.first.len_bytes);
        if self.within < piece.first.len_bytes {
            return;
        }
        self.within = 0;
        for (depth, stride) in piece.strides.iter().enumerate().rev() {
            let passed = self.index(depth);
            *passed += 1;
            if *passed < stride.count {
                self.file += stride.file_bytes;
                self.memory = self.memory.wrapping_add(stride.memory_bytes);
                return;
            }
            *passed = 0;
            self.file -= stride.file_bytes * (stride.count - 1);
            self.memory = self.memory.wrapping_sub(stride.memory_bytes.wrapping_mul(stride.count - 1));
        }
        self.piece += 1;
    }

    fn index(&mut self, depth: usize) -> &mut u64 {
        if depth < DEPTH_INLINE {
            return &mut self.inline[depth];
        }
        let spilled = depth - DEPTH_INLINE;
        if self.deeper.len() <= spilled {
            self.deeper.resize(spilled + 1, 0);
        }
        &mut self.deeper[spilled]
    }
}
