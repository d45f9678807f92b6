//! Cutting the next operation off a transfer list: pure, no I/O.

use crate::file::Alignment;
use crate::transfer::{Cursor, Direction, Fragment, TransferList};

/// Longest operation on memory of the caller, but for half as much more where the rest would be short. The devices at hand
/// take 1 MiB at a time.
pub(crate) const OPERATION_BYTES_MAX: u64 = 1 << 20;
/// An aligned part of an unaligned fragment goes without a copy from this length on; below, one operation through
/// staging is cheaper than two or three operations.
const SPLIT_FROM_BYTES: u64 = 128 << 10;
/// Direct reads that begin within a page are about half as fast on the disks at hand, although they are allowed to.
const PAGE_BYTES: u64 = 4096;
/// Reading through a gap of this many bytes costs less than another operation (measured with `examples/rates.rs` at 2.4
/// GiB/s and 40 000 operations a second: rows of 4 KiB with gaps of 12 KiB come three times as fast).
const GAP_BYTES_MAX: u64 = 16 << 10;
/// Fragments of at least this length are not gathered with their neighbours.
const GATHER_BELOW_BYTES: u64 = 32 << 10;

/// What the file and the staging allow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) alignment: Alignment,
    /// Bytes of one staging buffer: a multiple of every alignment.
    pub(crate) staging_bytes: u64,
}

/// One operation: an aligned range of the file, and where its bytes go or come from.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    /// The range of the file that the operation covers.
    pub(crate) offset_bytes: u64,
    pub(crate) len_bytes: u64,
    /// Bytes from the start of the range that must be there; what follows may lie beyond the end of the file.
    pub(crate) needed_bytes: u64,
    pub(crate) via: Via,
}

/// Where the bytes of an operation go or come from.
#[derive(Clone, Debug)]
pub(crate) enum Via {
    /// Straight in or out of the caller's memory.
    Memory(*mut u8),
    /// A staging buffer; the fragments from `start` on, `payload_bytes` in all, are copied.
    Staging { start: Cursor, payload_bytes: u64 },
    /// Out of the caller's memory into the page cache, at once: bytes that do not fill a block.
    Cache(*mut u8),
}

/// Cuts the next operation off the list at `cursor`, which moves behind it.
pub(crate) fn cut(list: &TransferList, cursor: &mut Cursor, limits: &Limits) -> Option<Cut> {
    let first = cursor.peek(list)?;
    Some(match list.direction() {
        Direction::Read => cut_read(list, cursor, limits, first),
        Direction::Write => cut_write(list, cursor, limits, first),
    })
}

fn cut_read(list: &TransferList, cursor: &mut Cursor, limits: &Limits, first: Fragment) -> Cut {
    if let Some(cut) = whole_pages(list, cursor, limits, first) {
        return cut;
    }
    let unit = limits.alignment.read;
    let long = first.len_bytes >= SPLIT_FROM_BYTES;
    // Sectors are what the interface wants; the disk behind it works in pages.
    let edge = if long { unit.max(PAGE_BYTES) } else { unit };
    let aligned = first.file_offset_bytes.is_multiple_of(edge) && in_memory(&first, limits);
    let whole = first.len_bytes.is_multiple_of(unit);
    if aligned
        && (whole || long)
        && (first.len_bytes >= GATHER_BELOW_BYTES || !continues_within(list, cursor, limits, GAP_BYTES_MAX))
    {
        return straight(list, cursor, first, unit);
    }
    // A long fragment whose address and file offset are odd alike: once its head is moved, the rest needs no copy.
    let head_bytes = edge - first.file_offset_bytes % edge;
    let alike = (first.memory.addr() as u64).wrapping_add(head_bytes).is_multiple_of(limits.alignment.memory);
    let payload_bytes_max = if alike && long { head_bytes } else { u64::MAX };
    gather(list, cursor, limits, unit, payload_bytes_max)
}

/// The next of the operations that bring all pages which a fragment touches, straight into memory that has room for
/// them. Operations of one fragment are equally long: two short ones at its ends would cost as much as long ones.
fn whole_pages(list: &TransferList, cursor: &mut Cursor, limits: &Limits, first: Fragment) -> Option<Cut> {
    let slack = list.slack()?;
    let head_bytes = first.file_offset_bytes % PAGE_BYTES;
    let tail_bytes = (head_bytes + first.len_bytes).wrapping_neg() % PAGE_BYTES;
    let alike = first.memory.addr() as u64 % PAGE_BYTES == head_bytes;
    let aligned =
        PAGE_BYTES.is_multiple_of(limits.alignment.read) && PAGE_BYTES.is_multiple_of(limits.alignment.memory);
    // What was cut off before ended with a page, so there is a head before the first operation only.
    if !alike || !aligned || head_bytes > slack.before_bytes || tail_bytes > slack.after_bytes {
        return None;
    }
    let whole_bytes = head_bytes + first.len_bytes + tail_bytes;
    let operations = ((whole_bytes + OPERATION_BYTES_MAX / 2) / OPERATION_BYTES_MAX).max(1);
    let len_bytes = whole_bytes.div_ceil(operations).next_multiple_of(PAGE_BYTES).min(whole_bytes);
    let payload_bytes = (len_bytes - head_bytes).min(first.len_bytes);
    cursor.advance(list, payload_bytes);
    Some(Cut {
        offset_bytes: first.file_offset_bytes - head_bytes,
        len_bytes,
        needed_bytes: head_bytes + payload_bytes,
        via: Via::Memory(first.memory.wrapping_sub(head_bytes as usize)),
    })
}

/// Whole blocks go to the device; what shares its block with other bytes goes through the page cache, which keeps it
/// together with what others write there. The alternative, reading the block and writing it back, costs two operations
/// of the device for a few bytes.
fn cut_write(list: &TransferList, cursor: &mut Cursor, limits: &Limits, first: Fragment) -> Cut {
    let unit = limits.alignment.write;
    let past = first.file_offset_bytes % unit;
    if past != 0 {
        return into_cache(list, cursor, first, (unit - past).min(first.len_bytes));
    }
    if first.len_bytes >= unit
        && in_memory(&first, limits)
        && (first.len_bytes >= GATHER_BELOW_BYTES || !continues_within(list, cursor, limits, 0))
    {
        return straight(list, cursor, first, unit);
    }
    // Fragments that follow each other in the file without a gap, up to the last whole block.
    let start = cursor.clone();
    let mut run_bytes = 0;
    let mut ahead = cursor.clone();
    while let Some(next) = ahead.peek(list)
        && next.file_offset_bytes == first.file_offset_bytes + run_bytes
        && run_bytes < limits.staging_bytes
    {
        run_bytes += next.len_bytes;
        ahead.advance(list, next.len_bytes);
    }
    let len_bytes = run_bytes.min(limits.staging_bytes) / unit * unit;
    if len_bytes == 0 {
        return into_cache(list, cursor, first, first.len_bytes);
    }
    let mut left = len_bytes;
    while left > 0
        && let Some(next) = cursor.peek(list)
    {
        let take = next.len_bytes.min(left);
        cursor.advance(list, take);
        left -= take;
    }
    let via = Via::Staging { start, payload_bytes: len_bytes };
    Cut { offset_bytes: first.file_offset_bytes, len_bytes, needed_bytes: len_bytes, via }
}

/// Whether a fragment's address is one that the device takes.
fn in_memory(fragment: &Fragment, limits: &Limits) -> bool {
    (fragment.memory.addr() as u64).is_multiple_of(limits.alignment.memory)
}

/// The whole units of an aligned fragment, without a copy.
fn straight(list: &TransferList, cursor: &mut Cursor, first: Fragment, unit: u64) -> Cut {
    let len_bytes = first.len_bytes.min(OPERATION_BYTES_MAX) / unit * unit;
    cursor.advance(list, len_bytes);
    let via = Via::Memory(first.memory);
    Cut { offset_bytes: first.file_offset_bytes, len_bytes, needed_bytes: len_bytes, via }
}

fn into_cache(list: &TransferList, cursor: &mut Cursor, first: Fragment, len_bytes: u64) -> Cut {
    cursor.advance(list, len_bytes);
    let via = Via::Cache(first.memory);
    Cut { offset_bytes: first.file_offset_bytes, len_bytes, needed_bytes: len_bytes, via }
}

/// Whether a short fragment starts at most `gap_bytes_max` after the current one, so that one operation for both is
/// better.
fn continues_within(list: &TransferList, cursor: &Cursor, limits: &Limits, gap_bytes_max: u64) -> bool {
    let Some(current) = cursor.peek(list) else { return false };
    if current.len_bytes * 2 > limits.staging_bytes {
        return false;
    }
    let mut next = cursor.clone();
    next.advance(list, current.len_bytes);
    let end = current.file_offset_bytes + current.len_bytes;
    next.peek(list).is_some_and(|f| f.len_bytes < GATHER_BELOW_BYTES && gap(end, &f) <= gap_bytes_max)
}

/// Bytes between `end` and the next fragment; none are as bad as too many.
fn gap(end: u64, next: &Fragment) -> u64 {
    next.file_offset_bytes.checked_sub(end).unwrap_or(u64::MAX)
}

/// One read through a staging buffer for as many fragments as follow each other closely and fit, and at most
/// `payload_bytes_max`.
fn gather(list: &TransferList, cursor: &mut Cursor, limits: &Limits, unit: u64, payload_bytes_max: u64) -> Cut {
    let start = cursor.clone();
    let mut payload_bytes = 0;
    let mut offset_bytes = 0;
    let mut end = 0;
    while let Some(fragment) = cursor.peek(list) {
        if payload_bytes == 0 {
            offset_bytes = fragment.file_offset_bytes / unit * unit;
        } else if fragment.len_bytes >= GATHER_BELOW_BYTES || gap(end, &fragment) > GAP_BYTES_MAX {
            break;
        }
        let room = (offset_bytes + limits.staging_bytes).saturating_sub(fragment.file_offset_bytes);
        let take = room.min(fragment.len_bytes).min(payload_bytes_max - payload_bytes);
        if take == 0 {
            break;
        }
        cursor.advance(list, take);
        payload_bytes += take;
        end = fragment.file_offset_bytes + take;
        if take < fragment.len_bytes {
            break;
        }
    }
    let len_bytes = end.next_multiple_of(unit) - offset_bytes;
    let needed_bytes = end - offset_bytes;
    Cut { offset_bytes, len_bytes, needed_bytes, via: Via::Staging { start, payload_bytes } }
}

/// Calls `copy` with (offset from `offset_bytes`, memory, bytes) for the fragments from `start` on.
pub(crate) fn for_each_fragment(
    list: &TransferList,
    start: &Cursor,
    payload_bytes: u64,
    offset_bytes: u64,
    mut copy: impl FnMut(usize, *mut u8, usize),
) {
    let mut cursor = start.clone();
    let mut left = payload_bytes;
    while left > 0 {
        let Some(fragment) = cursor.peek(list) else { return };
        let take = fragment.len_bytes.min(left);
        copy((fragment.file_offset_bytes - offset_bytes) as usize, fragment.memory, take as usize);
        cursor.advance(list, take);
        left -= take;
    }
}
