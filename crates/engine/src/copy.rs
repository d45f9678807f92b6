//! Copies of blocks between a memory and a local store.

use multigrain_plan::Slot;
use multigrain_program::RawView;
use multigrain_store::local::{Rows, RuleError};
use multigrain_store::{Direction, LocalStore};

/// Copies a slot's block between its home in the parent memory and the local store, where it lies densely.
///
/// # Errors
/// A rule of the local store that the copy would break.
///
/// # Safety
/// `home` is the whole array; nobody else uses the slot, and nobody uses the block in a conflicting way, meanwhile.
pub(crate) unsafe fn copy(
    store: &mut LocalStore,
    home: &RawView,
    slot: &Slot,
    size_bytes: u64,
    direction: Direction,
) -> Result<(), RuleError> {
    let region = &slot.block.region;
    let part = home.part(region.start(), region.shape(), size_bytes);
    let len = region.len();
    let rank = len.len();
    let row_bytes = len[rank - 1] * size_bytes;
    let rows = if rank >= 2 { len[rank - 2] } else { 1 };
    let pitch = if rank >= 2 { part.strides[rank - 2] as u64 * size_bytes } else { row_bytes };
    let outer = &len[..rank.saturating_sub(2)];
    let mut index = vec![0u64; outer.len()];
    let mut offset_bytes = slot.offset_bytes;
    loop {
        let skip: usize = index.iter().zip(part.strides).map(|(&i, stride)| i as usize * stride).sum();
        let parent = part.pointer.wrapping_add(skip * size_bytes as usize);
        let local = Rows { offset_bytes, pitch_bytes: row_bytes, rows, row_bytes };
        // SAFETY: the rows lie in the block, which the caller vouches for.
        unsafe {
            match direction {
                Direction::Read => store.fetch(local, parent, pitch)?,
                Direction::Write => store.store(local, parent, pitch)?,
            }
        }
        offset_bytes += rows * row_bytes;
        // Count up the outer indices, the last one fastest.
        let Some(d) = (0..outer.len()).rev().find(|&d| index[d] + 1 < outer[d]) else {
            return Ok(());
        };
        index[d] += 1;
        index[d + 1..].fill(0);
    }
}
