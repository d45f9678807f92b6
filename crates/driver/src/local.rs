//! A worker's arena: blocks are copied by the worker itself, by choice under the Cell's rules.

use crate::{Child, Driver, Location, Receipt, Site, Span, Transfer};
use multigrain_machine::{Driver as Name, DriverFacts};
use multigrain_program::RawView;
use multigrain_store::local::Rows;
use multigrain_store::{Direction, LocalRules, LocalStore, RuleError, StoreError};
use std::cell::UnsafeCell;

/// Arenas of workers, each a [`LocalStore`].
pub struct LocalDriver;

impl Driver for LocalDriver {
    fn facts(&self) -> &'static DriverFacts {
        Name::LOCAL.facts()
    }

    fn reserve(&self, site: &Site<'_>) -> Result<Option<Box<dyn Child>>, StoreError> {
        let (memory, rules) = (site.memory, &site.edge.rules);
        let code_bytes = memory.processor.map_or(0, |p| p.code_bytes);
        let rules = rules.strict.then(|| LocalRules {
            transfer_bytes_max: rules.transfer_bytes_max.unwrap_or(16 << 10),
            alignment_bytes: rules.alignment_bytes,
            list_entries_max: rules.list_entries_max.unwrap_or(2048),
            capacity_bytes: memory.capacity_bytes,
            code_bytes,
        });
        let store = LocalStore::new(memory.capacity_bytes.saturating_sub(code_bytes), rules)?;
        let span = Span { start: store.as_mut_ptr(), len_bytes: store.capacity_bytes() };
        Ok(Some(Box::new(Arena { span, store: UnsafeCell::new(store) })))
    }
}

/// A local store, of one worker at a time.
struct Arena {
    span: Span,
    store: UnsafeCell<LocalStore>,
}

// SAFETY: the methods that use the store are called by one thread at a time, as `Child` says.
unsafe impl Sync for Arena {}

// SAFETY: the span is the store's, which checks that blocks lie in it; nothing is on its way when `issue` returns.
unsafe impl Child for Arena {
    fn span(&self) -> Span {
        self.span
    }

    unsafe fn issue(&self, transfer: &Transfer<'_>) -> Result<Option<Box<dyn Receipt>>, StoreError> {
        let Location::Memory(part) = &transfer.location else {
            let what = format!("{} has no address", (transfer.name)());
            return Err(StoreError::Driver { driver: Name::LOCAL.name.into(), what });
        };
        // SAFETY: one thread at a time calls; the caller vouches for the block in the parent.
        unsafe { copy(&mut *self.store.get(), part, transfer.offset_bytes, transfer.direction)? };
        Ok(None)
    }

    unsafe fn exchange(&self, offset_bytes: u64, bytes: u64, out: bool) -> Result<&mut [u8], StoreError> {
        // SAFETY: one thread at a time calls; the caller vouches for the bytes, and keeps no other reference to the store.
        Ok(unsafe { (*self.store.get()).exchange(offset_bytes, bytes, out)? })
    }
}

/// Copies a block between the parent memory, where it is `part` of its home, and the local store, where it lies densely
/// from `offset_bytes` on.
///
/// # Errors
/// A rule of the local store that the copy would break, or bounds.
///
/// # Safety
/// The part is memory that nobody uses in a conflicting way meanwhile, and nobody else uses the store.
unsafe fn copy(
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
