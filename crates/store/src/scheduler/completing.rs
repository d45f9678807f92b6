//! What a completion means for its operation: go on, copy out, fail.

use super::operation::PUT_OFF_MAX;
use super::run::{Runner, kind_of, transfer_error};
use crate::backend::Completion;
use crate::context::Context;
use crate::error::{Errno, StoreError};
use crate::transfer::Direction;

/// How often one operation is started again whose thread has ended. Who waits hands over what others have submitted, and
/// where the kernel has to carry on an operation later, it does so in the name of the thread that handed it over: if that
/// has ended, the operation fails with EFAULT or ECANCELED (liburing issue 1595). Whoever reaps it starts it anew. An
/// address that is really bad fails every time.
const ORPHANED_MAX: u32 = 16;

impl Runner {
    /// Carries on the operations that are complete. Whether there were any.
    pub(crate) fn reap(&mut self, context: &Context) -> bool {
        let mut completions = std::mem::take(&mut self.completions);
        self.backend.take(&mut completions);
        let any = !completions.is_empty();
        for completion in completions.drain(..) {
            self.complete(completion, context);
        }
        self.completions = completions;
        any
    }

    fn complete(&mut self, completion: Completion, context: &Context) {
        let index = completion.key as usize;
        let Some(operation) = self.operations.get_mut(index).and_then(Option::as_mut) else { return };
        let goes_on = match completion.result {
            Err(Errno(libc::EINTR | libc::EAGAIN)) if operation.put_off < PUT_OFF_MAX => {
                operation.put_off += 1;
                true
            }
            Err(Errno(libc::EFAULT | libc::ECANCELED)) if operation.orphaned < ORPHANED_MAX => {
                operation.orphaned += 1;
                true
            }
            Err(errno) => self.fail(index, errno),
            Ok(bytes) => self.progress(index, u64::from(bytes)),
        };
        if !(goes_on && self.start_raw(index, context)) {
            self.settle(index, context);
        }
    }

    fn fail(&mut self, index: usize, errno: Errno) -> bool {
        let Some(operation) = &self.operations[index] else { return false };
        let Some(transfer) = &mut self.transfers[operation.transfer] else { return false };
        let (offset, len) = operation.rest();
        let error = transfer_error(&transfer.list, kind_of(operation.direction), offset, len, errno);
        transfer.error.get_or_insert(error);
        false
    }

    /// Bytes have been moved, maybe fewer than asked for: whether the operation goes on.
    fn progress(&mut self, index: usize, bytes: u64) -> bool {
        let Some(operation) = &mut self.operations[index] else { return false };
        let Some(transfer) = &mut self.transfers[operation.transfer] else { return false };
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
            return false;
        }
        // Direct I/O goes on at a block of the device; what was moved of a begun block is moved again.
        operation.done_bytes = reached / alignment.read * alignment.read;
        if operation.done_bytes > before {
            return true;
        }
        match operation.direction {
            Direction::Read => {
                let file = &transfer.list.file().0;
                // Where the operation ended tells it only if it began before the end.
                let reached = operation.cut.offset_bytes + reached;
                let found = file.fd.try_clone().and_then(|fd| std::fs::File::from(fd).metadata());
                let found_bytes = found.map_or(reached, |found| reached.min(found.len()));
                transfer.error.get_or_insert(StoreError::Truncated {
                    path: file.path.clone(),
                    needed_bytes: file.data_offset_bytes + file.data_bytes,
                    found_bytes,
                });
                false
            }
            // A device that takes nothing and reports nothing.
            Direction::Write => self.fail(index, Errno(libc::EIO)),
        }
    }

    fn copy_out(&mut self, index: usize) {
        self.copy(index, |staging, memory, bytes| {
            // SAFETY: `staging` lies in the buffer that this operation holds and has been filled to its end (`needed`
            // bytes); `memory` is the caller's, valid and unshared until the ticket is complete; they do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(staging, memory, bytes) };
        });
    }
}
