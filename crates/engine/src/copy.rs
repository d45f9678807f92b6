//! Copies of blocks between a memory and a local store.

use multigrain_program::RawView;
use multigrain_store::local::{Rows, RuleError};
use multigrain_store::{Direction, LocalStore};

/// Copies a block between the parent memory, where it is `part` of its home, and the local store, where it lies densely
/// from `offset_bytes` on.
///
/// # Errors
/// A rule of the local store that the copy would break, or bounds.
///
/// # Safety
/// The part is memory that nobody uses in a conflicting way meanwhile, and nobody else uses the store.
pub(crate) unsafe fn copy(
    store: &mut LocalStore,
    part: &RawView,
    mut offset_bytes: u64,
    direction: Direction,
) -> Result<(), RuleError> {
    let (shape, strides, size_bytes) = (part.shape(), part.strides(), part.element().size_bytes());
    let len = shape.dims();
    let rank = len.len();
    let row_bytes = len[rank - 1] * size_bytes;
    let rows = if rank >= 2 { len[rank - 2] } else { 1 };
    let pitch = if rank >= 2 { strides[rank - 2] as u64 * size_bytes } else { row_bytes };
    let outer = &len[..rank.saturating_sub(2)];
    let mut index = vec![0u64; outer.len()];
    loop {
        let skip: usize = index.iter().zip(strides).map(|(&i, stride)| i as usize * stride).sum();
        let parent = part.pointer().wrapping_add(skip * size_bytes as usize);
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
