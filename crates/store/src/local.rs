//! A worker's private arena, filled from and emptied into its parent memory by copies.
//!
//! By choice under the rules of the Cell's local stores (Cell Broadband Engine Architecture, memory flow controller):
//! a DMA command moves 1, 2, 4, 8 or a multiple of 16 bytes up to 16 KiB, both addresses aligned to the size (to 16
//! bytes from 16 on) and alike in their last four bits; a list holds at most 2048 commands; the store holds 256 KiB
//! with the code.

use crate::buffer::AlignedBuffer;
use crate::error::{RuleError, StoreError};

/// Rules that copies must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalRules {
    /// Most bytes of one command: a multiple of `alignment_bytes`.
    pub transfer_bytes_max: u64,
    /// Alignment of both addresses of a long command; a power of two. Source and destination must be alike modulo it.
    pub alignment_bytes: u64,
    /// Most commands of one list.
    pub list_entries_max: u64,
    /// Bytes of the store, code included.
    pub capacity_bytes: u64,
    /// Bytes that the code takes.
    pub code_bytes: u64,
}

impl LocalRules {
    /// A synergistic processor's local store with `code_bytes` of code in it.
    pub const fn cell(code_bytes: u64) -> LocalRules {
        LocalRules {
            transfer_bytes_max: 16 << 10,
            alignment_bytes: 16,
            list_entries_max: 2048,
            capacity_bytes: 256 << 10,
            code_bytes,
        }
    }
}

/// Rows of bytes in the arena: where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// First byte of the first row in the arena.
    pub offset_bytes: u64,
    /// Bytes from one row to the next in the arena.
    pub pitch_bytes: u64,
    /// Rows.
    pub rows: u64,
    /// Bytes of each row.
    pub row_bytes: u64,
}

/// What copies have cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalCounters {
    /// Bytes brought in.
    pub bytes_in: u64,
    /// Bytes brought out.
    pub bytes_out: u64,
    /// Commands: under rules as the rules count, otherwise one for each contiguous run.
    pub commands: u64,
    /// Lists of commands: under rules of bounded length, otherwise one for each call.
    pub lists: u64,
}

/// A worker's arena.
#[derive(Debug)]
pub struct LocalStore {
    memory: AlignedBuffer,
    rules: Option<LocalRules>,
    counters: LocalCounters,
}

impl LocalStore {
    /// An arena of `capacity_bytes`; with `rules`, every copy keeps them.
    ///
    /// # Errors
    /// [`RuleError::Capacity`], [`RuleError::Rules`] (as [`StoreError::Local`]); [`StoreError::Memory`].
    pub fn new(capacity_bytes: u64, rules: Option<LocalRules>) -> Result<LocalStore, StoreError> {
        if let Some(rules) = &rules {
            check_rules(rules, capacity_bytes)?;
        }
        let memory = AlignedBuffer::new(usize::try_from(capacity_bytes).unwrap_or(usize::MAX))?;
        Ok(LocalStore { memory, rules, counters: LocalCounters::default() })
    }

    /// Bytes of the arena.
    pub fn capacity_bytes(&self) -> u64 {
        self.memory.len() as u64
    }

    /// Address of the arena's first byte, aligned to 4096. Who uses it keeps apart from `fetch` and `store`.
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.memory.as_mut_ptr()
    }

    /// What copies have cost so far.
    pub fn counters(&self) -> LocalCounters {
        self.counters
    }

    /// Copies rows from the parent memory into the arena.
    ///
    /// # Errors
    /// [`RuleError`]: nothing is copied then.
    ///
    /// # Safety
    /// `source` is the first of `rows` readable rows of `row_bytes`, `source_pitch_bytes` apart, outside the arena;
    /// nobody writes them, and nobody uses the arena's rows, during the call.
    pub unsafe fn fetch(&mut self, to: Rows, source: *const u8, source_pitch_bytes: u64) -> Result<(), RuleError> {
        self.admit(&to, source.addr(), source_pitch_bytes)?;
        let local = self.memory.as_mut_ptr().wrapping_add(to.offset_bytes as usize);
        // SAFETY: `admit` has checked the bounds of the arena; the caller vouches for the parent's rows.
        unsafe { copy_rows(source, source_pitch_bytes, local, to.pitch_bytes, &to) };
        self.counters.bytes_in += to.rows * to.row_bytes;
        Ok(())
    }

    /// Copies rows from the arena out to the parent memory.
    ///
    /// # Errors
    /// [`RuleError`]: nothing is copied then.
    ///
    /// # Safety
    /// `target` is the first of `rows` writable rows of `row_bytes`, `target_pitch_bytes` apart, outside the arena;
    /// nobody else uses them, and nobody writes the arena's rows, during the call.
    pub unsafe fn store(&mut self, from: Rows, target: *mut u8, target_pitch_bytes: u64) -> Result<(), RuleError> {
        self.admit(&from, target.addr(), target_pitch_bytes)?;
        let local = self.memory.as_ptr().wrapping_add(from.offset_bytes as usize);
        // SAFETY: as in `fetch`.
        unsafe { copy_rows(local, from.pitch_bytes, target, target_pitch_bytes, &from) };
        self.counters.bytes_out += from.rows * from.row_bytes;
        Ok(())
    }

    /// Dense bytes of the arena, to be handed to siblings if they go `out`, or to be filled by one; counted as one row that
    /// lies alike in both stores.
    ///
    /// # Errors
    /// [`RuleError::Bounds`].
    ///
    /// # Safety
    /// Nobody else uses these bytes of the arena as long as the result is used.
    pub unsafe fn exchange(&mut self, offset_bytes: u64, bytes: u64, out: bool) -> Result<&mut [u8], RuleError> {
        let start = self.memory.as_mut_ptr().wrapping_add(offset_bytes as usize);
        let row = Rows { offset_bytes, pitch_bytes: bytes, rows: 1, row_bytes: bytes };
        self.admit(&row, start.addr(), bytes)?;
        *(if out { &mut self.counters.bytes_out } else { &mut self.counters.bytes_in }) += bytes;
        if bytes == 0 {
            return Ok(&mut []);
        }
        // SAFETY: `admit` has checked the bounds; the memory was zeroed when it was made; the caller vouches for the rest.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, bytes as usize) })
    }

    /// Checks the bounds and the rules, and counts the commands.
    fn admit(&mut self, rows: &Rows, parent: usize, parent_pitch_bytes: u64) -> Result<(), RuleError> {
        let Rows { offset_bytes, pitch_bytes, rows: count, row_bytes } = *rows;
        if count == 0 || row_bytes == 0 {
            return Ok(());
        }
        let capacity_bytes = self.capacity_bytes();
        let end = (count - 1)
            .checked_mul(pitch_bytes)
            .and_then(|n| n.checked_add(row_bytes))
            .and_then(|n| n.checked_add(offset_bytes));
        if end.is_none_or(|end| end > capacity_bytes) {
            return Err(RuleError::Bounds { offset_bytes, pitch_bytes, rows: count, row_bytes, capacity_bytes });
        }
        let contiguous = pitch_bytes == row_bytes && parent_pitch_bytes == row_bytes;
        let (count, row_bytes) = if contiguous { (1, count * row_bytes) } else { (count, row_bytes) };
        let Some(rules) = &self.rules else {
            self.counters.commands += count;
            self.counters.lists += 1;
            return Ok(());
        };
        let unit = rules.alignment_bytes;
        let local = self.memory.as_ptr().addr() as u64 + offset_bytes;
        let mut commands = 0;
        let mut row = 0;
        while row < count {
            let skew = |base: u64, pitch: u64| (base.wrapping_add(pitch.wrapping_mul(row))) % unit;
            let local_skew_bytes = skew(local, pitch_bytes);
            let parent_skew_bytes = skew(parent as u64, parent_pitch_bytes);
            if local_skew_bytes != parent_skew_bytes {
                return Err(RuleError::Alignment {
                    row_bytes,
                    parent_skew_bytes,
                    local_skew_bytes,
                    alignment_bytes: unit,
                });
            }
            let of_row = commands_of(local_skew_bytes, row_bytes, rules);
            // Pitches in whole units: every row is like this one.
            if pitch_bytes.is_multiple_of(unit) && parent_pitch_bytes.is_multiple_of(unit) {
                commands = of_row * count;
                break;
            }
            commands += of_row;
            row += 1;
        }
        self.counters.commands += commands;
        self.counters.lists += commands.div_ceil(rules.list_entries_max);
        Ok(())
    }
}

fn check_rules(rules: &LocalRules, asked_bytes: u64) -> Result<(), RuleError> {
    let LocalRules { transfer_bytes_max, alignment_bytes, list_entries_max, capacity_bytes, code_bytes } = *rules;
    let sound = alignment_bytes.is_power_of_two()
        && transfer_bytes_max > 0
        && transfer_bytes_max.is_multiple_of(alignment_bytes)
        && list_entries_max > 0;
    if !sound {
        return Err(RuleError::Rules { alignment_bytes, transfer_bytes_max, list_entries_max });
    }
    if asked_bytes.checked_add(code_bytes).is_none_or(|sum| sum > capacity_bytes) {
        return Err(RuleError::Capacity { asked_bytes, code_bytes, capacity_bytes });
    }
    Ok(())
}

/// Commands that move one row which starts `skew` bytes into a unit on both sides: short ones of 1, 2, 4, 8 bytes up to
/// the next unit, long ones in whole units, short ones for the rest.
fn commands_of(skew: u64, row_bytes: u64, rules: &LocalRules) -> u64 {
    let unit = rules.alignment_bytes;
    let mut at = skew;
    let mut left = row_bytes;
    let mut commands = 0;
    while left > 0 {
        let step = if at.is_multiple_of(unit) && left >= unit {
            (left / unit * unit).min(rules.transfer_bytes_max)
        } else {
            // The longest power of two below a unit that is aligned here and not too long.
            let aligned = 1 << (at | unit).trailing_zeros();
            let fitting = 1 << left.ilog2();
            (unit / 2).max(1).min(aligned).min(fitting)
        };
        at += step;
        left -= step;
        commands += 1;
    }
    commands
}

/// Copies rows; contiguous ones at once.
///
/// # Safety
/// Both sides hold the rows, and they do not overlap.
unsafe fn copy_rows(source: *const u8, source_pitch: u64, target: *mut u8, target_pitch: u64, rows: &Rows) {
    let Rows { rows: count, row_bytes, .. } = *rows;
    if source_pitch == row_bytes && target_pitch == row_bytes {
        // SAFETY: the rows follow each other without gaps on both sides.
        return unsafe { std::ptr::copy_nonoverlapping(source, target, (count * row_bytes) as usize) };
    }
    for row in 0..count {
        let from = source.wrapping_add((row * source_pitch) as usize);
        let to = target.wrapping_add((row * target_pitch) as usize);
        // SAFETY: the caller vouches for each row on both sides.
        unsafe { std::ptr::copy_nonoverlapping(from, to, row_bytes as usize) };
    }
}
