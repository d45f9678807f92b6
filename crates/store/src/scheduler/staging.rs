//! The bounce buffers for bytes that direct I/O cannot move straight into or out of the caller's memory.

use std::sync::Arc;

use crate::buffer::AlignedBuffer;
use crate::error::StoreError;

/// Most bytes of one staging buffer: long operations, few copies at once.
const BUFFER_BYTES_MAX: usize = 256 << 10;
/// Least bytes of one staging buffer: an unaligned write of anything needs two edge blocks, wherever blocks are at most
/// 16 KiB.
const BUFFER_BYTES_MIN: usize = 64 << 10;
/// Fewest buffers: below that nothing overlaps.
const BUFFERS_MIN: usize = 4;

/// Buffers of one size, handed out by number.
pub(crate) struct Staging {
    memory: Arc<AlignedBuffer>,
    buffer_bytes: usize,
    free: Vec<usize>,
}

impl Staging {
    /// `bytes` in all, at least [`BUFFERS_MIN`] times [`BUFFER_BYTES_MIN`].
    pub(crate) fn new(bytes: usize) -> Result<Staging, StoreError> {
        let bytes = bytes.max(BUFFERS_MIN * BUFFER_BYTES_MIN);
        let buffer_bytes = (bytes / 32 / 4096 * 4096).clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX);
        let count = bytes / buffer_bytes;
        let memory = Arc::new(AlignedBuffer::new(count * buffer_bytes)?);
        Ok(Staging { memory, buffer_bytes, free: (0..count).rev().collect() })
    }

    pub(crate) fn memory(&self) -> &Arc<AlignedBuffer> {
        &self.memory
    }

    pub(crate) fn buffer_bytes(&self) -> u64 {
        self.buffer_bytes as u64
    }

    pub(crate) fn take(&mut self) -> Option<usize> {
        self.free.pop()
    }

    pub(crate) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    pub(crate) fn give_back(&mut self, buffer: usize) {
        debug_assert!(!self.free.contains(&buffer));
        self.free.push(buffer);
    }

    /// Address of a buffer's first byte.
    pub(crate) fn address(&self, buffer: usize) -> *mut u8 {
        self.memory.as_mut_ptr().wrapping_add(buffer * self.buffer_bytes)
    }
}
