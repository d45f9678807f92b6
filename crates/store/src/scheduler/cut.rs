//! Cutting the next operation off a transfer list: pure, no I/O.

use super::edges::Edges;
use crate::file::Alignment;
use crate::transfer::{Cursor, Direction, Fragment, TransferList};

/// Longest operation on memory of the caller. The devices at hand take 1 MiB at a time.
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

/// Before an unaligned write of a range up to this length one read of the whole is cheaper than one of each edge.
const READ_WHOLE_BYTES_MAX: u64 = 32 << 10;

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
    Staging { start: Cursor, payload_bytes: u64, edges: Edges },
}

/// Cuts the next operation off the list at `cursor`, which moves behind it.
pub(crate) fn cut(list: &TransferList, cursor: &mut Cursor, limits: &Limits) -> Option<Cut> {
    let first = cursor.peek(list)?;
    let unit = match list.direction() {
        Direction::Read => limits.alignment.read,
        Direction::Write => limits.alignment.write,
    };
    let long = first.len_bytes >= SPLIT_FROM_BYTES;
    // Sectors are what the interface wants; the disk behind it works in pages.
    let edge = if long { unit.max(PAGE_BYTES) } else { unit };
    let aligned = first.file_offset_bytes.is_multiple_of(edge)
        && (first.memory.addr() as u64).is_multiple_of(limits.alignment.memory);
    let whole = first.len_bytes.is_multiple_of(unit);
    if aligned && (whole || long) {
        let len_bytes = first.len_bytes.min(OPERATION_BYTES_MAX) / unit * unit;
        if first.len_bytes >= GATHER_BELOW_BYTES || !continues_close(list, cursor, limits, unit) {
            cursor.advance(list, len_bytes);
            let via = Via::Memory(first.memory);
            return Some(Cut { offset_bytes: first.file_offset_bytes, len_bytes, needed_bytes: len_bytes, via });
        }
    }
    // A long fragment whose address and file offset are odd alike: once its head is moved, the rest needs no copy.
    let head_bytes = edge - first.file_offset_bytes % edge;
    let alike = (first.memory.addr() as u64).wrapping_add(head_bytes).is_multiple_of(limits.alignment.memory);
    let payload_bytes_max = if alike && long { head_bytes } else { u64::MAX };
    Some(gather(list, cursor, limits, unit, payload_bytes_max))
}

/// Whether the fragment after the current one starts so soon after it that both are better moved by one operation.
fn continues_close(list: &TransferList, cursor: &Cursor, limits: &Limits, unit: u64) -> bool {
    let Some(current) = cursor.peek(list) else { return false };
    if current.len_bytes * 2 > limits.staging_bytes {
        return false;
    }
    let mut next = cursor.clone();
    next.advance(list, current.len_bytes);
    let end = current.file_offset_bytes + current.len_bytes;
    next.peek(list)
        .is_some_and(|f| f.len_bytes < GATHER_BELOW_BYTES && closes_gap(list.direction(), end, &f, unit).is_some())
}

/// The gap between `end` and the next fragment, if it is better crossed than made two operations of.
///
/// A read crosses what costs less than an operation. A write crosses a gap only
/// if that holds no whole block: every block of its range then is partly its own, so taking the blocks of the range
/// keeps every other writer of the bytes in the gap away.
fn closes_gap(direction: Direction, end: u64, next: &Fragment, unit: u64) -> Option<u64> {
    let gap_bytes_max = match direction {
        Direction::Read => GAP_BYTES_MAX,
        Direction::Write => unit - 1,
    };
    next.file_offset_bytes.checked_sub(end).filter(|&gap| gap <= gap_bytes_max)
}

/// One operation through a staging buffer for as many fragments as follow each other closely and fit, and at most
/// `payload_bytes_max`.
fn gather(list: &TransferList, cursor: &mut Cursor, limits: &Limits, unit: u64, payload_bytes_max: u64) -> Cut {
    let start = cursor.clone();
    let mut payload_bytes = 0;
    let mut offset_bytes = 0;
    let mut first_byte = 0;
    let mut end = 0;
    let mut gaps = false;
    while let Some(fragment) = cursor.peek(list) {
        if payload_bytes == 0 {
            first_byte = fragment.file_offset_bytes;
            offset_bytes = first_byte / unit * unit;
        } else {
            if fragment.len_bytes >= GATHER_BELOW_BYTES {
                break;
            }
            let Some(gap) = closes_gap(list.direction(), end, &fragment, unit) else { break };
            gaps |= gap > 0;
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
    let edges = match list.direction() {
        Direction::Read => Edges::None,
        Direction::Write => {
            let head = first_byte != offset_bytes;
            let tail = !end.is_multiple_of(unit);
            if gaps || (head && tail && len_bytes <= READ_WHOLE_BYTES_MAX) {
                Edges::All { first: offset_bytes, len_bytes, block_bytes: unit }
            } else {
                Edges::ends(head.then_some(offset_bytes), tail.then_some(end / unit * unit))
            }
        }
    };
    let needed_bytes = end - offset_bytes;
    Cut { offset_bytes, len_bytes, needed_bytes, via: Via::Staging { start, payload_bytes, edges } }
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
