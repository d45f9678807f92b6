//! What a completion means for its operation: go on, begin the write, copy out, fail.

use super::cut::{Via, for_each_fragment};
use super::operation::Part;
use super::run::{Runner, kind_of, transfer_error};
use crate::backend::Completion;
use crate::disk::Context;
use crate::error::{Errno, StoreError};
use crate::faults::OperationKind;
use crate::transfer::Direction;

/// Short reads of edge blocks that are repeated before the file counts as cut.
const EDGE_RETRIES_MAX: u32 = 8;
/// How often one operation is started again that the system put off, before that counts as its fault.
const PUT_OFF_MAX: u32 = 10_000;

impl Runner {
    /// Waits for completions and carries their operations on.
    pub(crate) fn reap(&mut self, context: &Context) {
        let mut completions = std::mem::take(&mut self.completions);
        self.backend.reap(&mut completions);
        for completion in completions.drain(..) {
            self.complete(completion, context);
        }
        self.completions = completions;
    }

    fn complete(&mut self, completion: Completion, context: &Context) {
        let (index, part) = Part::from_key(completion.key);
        let Some(operation) = self.operations.get_mut(index).and_then(Option::as_mut) else { return };
        operation.pending -= 1;
        match (part, completion.result) {
            (_, Err(Errno(libc::EINTR | libc::EAGAIN))) if operation.put_off < PUT_OFF_MAX => {
                operation.put_off += 1;
                self.repeat(index, part, context);
            }
            (_, Err(errno)) => self.fail(index, part, errno),
            (Part::Main, Ok(bytes)) => self.progress(index, u64::from(bytes), context),
            (part, Ok(bytes)) => self.edge_read(index, part, u64::from(bytes), context),
        }
        self.settle_if_quiet(index, context);
    }

    /// The range of a part that is still to be moved: (first byte, bytes).
    fn range_of(&self, index: usize, part: Part) -> Option<(u64, u64)> {
        let operation = self.operations[index].as_ref()?;
        if part == Part::Main {
            let cut = &operation.cut;
            return Some((cut.offset_bytes + operation.done_bytes, cut.len_bytes - operation.done_bytes));
        }
        let transfer = self.transfers[operation.transfer].as_ref()?;
        let reads = operation.edge_reads(transfer.list.file().0.alignment.write);
        reads.into_iter().flatten().find(|r| r.0 == part).map(|(_, offset, len)| (offset, len))
    }

    /// Starts a part again that the system put off.
    fn repeat(&mut self, index: usize, part: Part, context: &Context) {
        let Some((offset, len)) = self.range_of(index, part) else { return };
        let Some(operation) = &self.operations[index] else { return };
        let place = operation.memory.wrapping_add((offset - operation.cut.offset_bytes) as usize);
        let direction = if part == Part::Main { operation.direction } else { Direction::Read };
        self.start_raw(index, part, direction, offset, place, len, context);
    }

    fn fail(&mut self, index: usize, part: Part, errno: Errno) {
        let Some((offset, len)) = self.range_of(index, part) else { return };
        let Some(operation) = &mut self.operations[index] else { return };
        operation.failed = true;
        let Some(transfer) = &mut self.transfers[operation.transfer] else { return };
        let kind = if part == Part::Main { kind_of(operation.direction) } else { OperationKind::Read };
        let error = transfer_error(&transfer.list, kind, offset, len, errno);
        transfer.error.get_or_insert(error);
    }

    /// Bytes of the main part have been moved: maybe fewer than asked for.
    fn progress(&mut self, index: usize, bytes: u64, context: &Context) {
        let Some(operation) = &mut self.operations[index] else { return };
        let Some(transfer) = &mut self.transfers[operation.transfer] else { return };
        let alignment = transfer.list.file().0.alignment;
        let before = operation.done_bytes;
        let reached = before + bytes;
        let enough = match operation.direction {
            Direction::Read => operation.cut.needed_bytes,
            Direction::Write => operation.cut.len_bytes,
        };
        if reached >= enough {
            operation.done_bytes = reached;
            if operation.direction == Direction::Read {
                self.copy_out(index);
            }
            return;
        }
        // Direct I/O goes on at a block of the device; what was moved of a begun block is moved again.
        operation.done_bytes = reached / alignment.read * alignment.read;
        if operation.done_bytes > before {
            self.start_main(index, context);
            return;
        }
        match operation.direction {
            Direction::Read => {
                operation.failed = true;
                let file = &transfer.list.file().0;
                transfer.error.get_or_insert(StoreError::Truncated {
                    path: file.path.clone(),
                    needed_bytes: file.data_offset_bytes + file.data_bytes,
                    found_bytes: operation.cut.offset_bytes + reached,
                });
            }
            // A device that takes nothing and reports nothing.
            Direction::Write => self.fail(index, Part::Main, Errno(libc::EIO)),
        }
    }

    /// Bytes of an edge block have arrived; when all have, the write itself begins.
    fn edge_read(&mut self, index: usize, part: Part, bytes: u64, context: &Context) {
        let Some((offset, len)) = self.range_of(index, part) else { return };
        if bytes < len {
            let Some(operation) = &mut self.operations[index] else { return };
            if bytes > 0 && operation.retries < EDGE_RETRIES_MAX {
                operation.retries += 1;
                self.repeat(index, part, context);
                return;
            }
            operation.failed = true;
            let Some(transfer) = &mut self.transfers[operation.transfer] else { return };
            // Outputs are as long as their last block while they are written: somebody has cut the file.
            transfer.error.get_or_insert(StoreError::Truncated {
                path: transfer.list.file().0.path.clone(),
                needed_bytes: offset + len,
                found_bytes: offset + bytes,
            });
            return;
        }
        let ready = self.operations[index].as_ref().is_some_and(|o| o.pending == 0 && !o.failed);
        if ready {
            self.copy_in(index);
            self.start_main(index, context);
        }
    }

    fn copy_out(&mut self, index: usize) {
        self.copy(index, |staging, memory, bytes| {
            // SAFETY: `staging` lies in the buffer that this operation holds and has been filled to its end (`needed`
            // bytes); `memory` is the caller's, valid and unshared until the ticket is complete; they do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(staging, memory, bytes) };
        });
    }

    pub(super) fn copy_in(&mut self, index: usize) {
        self.copy(index, |staging, memory, bytes| {
            // SAFETY: as in `copy_out`, the other way.
            unsafe { std::ptr::copy_nonoverlapping(memory, staging, bytes) };
        });
    }

    /// Calls `copy` with (place in the staging buffer, place in the caller's memory, bytes) for each fragment.
    fn copy(&self, index: usize, copy: impl Fn(*mut u8, *mut u8, usize)) {
        let Some(operation) = &self.operations[index] else { return };
        let Some(transfer) = &self.transfers[operation.transfer] else { return };
        let Via::Staging { start, payload_bytes, .. } = &operation.cut.via else { return };
        let offset = operation.cut.offset_bytes;
        for_each_fragment(&transfer.list, start, *payload_bytes, offset, |at, memory, bytes| {
            copy(operation.memory.wrapping_add(at), memory, bytes);
        });
    }
}
