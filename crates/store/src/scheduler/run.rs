//! Keeping operations in flight: which to start, and when an operation and a transfer are over.

use std::collections::VecDeque;
use std::sync::Arc;

use super::cut::{Cut, Limits, OPERATION_BYTES_MAX, Via, cut, for_each_fragment};
use super::operation::{Operation, PUT_OFF_MAX};
use super::staging::Staging;
use super::ticket::{Job, TicketState};
use crate::backend::{Backend, Completion, RawOperation};
use crate::context::{Context, Refusal};
use crate::error::{Errno, StoreError};
use crate::faults::OperationKind;
use crate::transfer::{Cursor, Direction, TransferList};
use multigrain_trace::Tick;

/// Bytes in flight beyond which no operation is added: enough for any one device, and later transfers wait less.
const IN_FLIGHT_BYTES_MAX: u64 = 64 * OPERATION_BYTES_MAX;

/// A transfer under way.
pub(super) struct Transfer {
    pub(super) list: TransferList,
    cursor: Cursor,
    /// An operation that is cut off but could not start yet: all staging buffers are taken.
    parked: Option<Cut>,
    exhausted: bool,
    outstanding: u32,
    pub(super) error: Option<StoreError>,
    ticket: Arc<TicketState>,
    timed: bool,
    /// When the first operation was started, if the transfer is timed.
    started: Option<Tick>,
}

impl Transfer {
    /// Asks the fault hook whether an operation may be done, and counts it; a refusal is the transfer's error.
    fn may(&mut self, direction: Direction, offset_bytes: u64, len_bytes: u64, context: &Context) -> bool {
        let kind = kind_of(direction);
        let refused = match context.ask(kind, &self.list.file().0.path, offset_bytes, len_bytes) {
            Ok(()) => {
                context.count_device(direction, len_bytes);
                return true;
            }
            Err(Refusal::Dead) => StoreError::Dead,
            Err(Refusal::Fail(errno)) => transfer_error(&self.list, kind, offset_bytes, len_bytes, errno),
        };
        self.error.get_or_insert(refused);
        false
    }
}

/// Everything that is under way at a disk, under the lock of its desk.
pub(crate) struct Runner {
    pub(super) backend: Box<dyn Backend>,
    staging: Staging,
    queue_depth: usize,
    pub(super) transfers: Vec<Option<Transfer>>,
    /// Transfers with something left to start, in the order of submission.
    order: VecDeque<usize>,
    pub(super) operations: Vec<Option<Operation>>,
    free_operations: Vec<usize>,
    free_transfers: Vec<usize>,
    in_flight: usize,
    in_flight_bytes: u64,
    /// Operations under way whose completion must be seen soon.
    to_be_seen: usize,
    pub(super) completions: Vec<Completion>,
}

// SAFETY: the pointers in it are only handed to the operating system or copied through under the lock of the desk; the
// contract of `Disk::submit` makes the caller responsible for the memory behind them, from whichever thread.
unsafe impl Send for Runner {}

impl Runner {
    /// What operations go through, for people.
    pub(crate) fn backend_name(&self) -> String {
        self.backend.name()
    }

    pub(crate) fn new(backend: Box<dyn Backend>, staging: Staging, queue_depth: usize) -> Runner {
        Runner {
            backend,
            staging,
            queue_depth: queue_depth.max(1),
            transfers: Vec::new(),
            order: VecDeque::new(),
            operations: Vec::new(),
            free_operations: Vec::new(),
            free_transfers: Vec::new(),
            in_flight: 0,
            in_flight_bytes: 0,
            to_be_seen: 0,
            completions: Vec::new(),
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.order.is_empty()
    }

    /// Whether somebody must look at completions although nobody waits for them: there is more to start, or to copy,
    /// or the moment of the end was asked for.
    pub(crate) fn needs_attention(&self) -> bool {
        !self.order.is_empty() || self.to_be_seen > 0
    }

    pub(crate) fn accept(&mut self, job: Job) {
        let cursor = job.list.cursor();
        let transfer = Transfer {
            list: job.list,
            cursor,
            parked: None,
            exhausted: false,
            outstanding: 0,
            error: None,
            ticket: job.ticket,
            timed: job.timed,
            started: None,
        };
        let index = insert(&mut self.transfers, &mut self.free_transfers, transfer);
        self.order.push_back(index);
    }

    /// Starts operations, oldest transfer first, until the queue is full or nothing can start, and hands them over.
    pub(crate) fn issue(&mut self, context: &Context) {
        self.start(context);
        self.backend.submit();
    }

    fn start(&mut self, context: &Context) {
        let mut at = 0;
        while at < self.order.len() {
            let index = self.order[at];
            while self.has_room() && self.issue_one(index, context) {}
            let settled = self.transfers[index].as_ref().is_none_or(|t| t.exhausted);
            if settled {
                self.order.remove(at);
                self.finish_transfer(index, context);
            } else if self.has_room() {
                // This one waits for a staging buffer; a later one may not need it.
                at += 1;
            } else {
                return;
            }
        }
    }

    fn has_room(&self) -> bool {
        self.in_flight < self.queue_depth && self.in_flight_bytes < IN_FLIGHT_BYTES_MAX
    }

    /// Starts one operation of a transfer; `false` when none can be started now.
    fn issue_one(&mut self, index: usize, context: &Context) -> bool {
        let Some(transfer) = &mut self.transfers[index] else { return false };
        if transfer.exhausted {
            return false;
        }
        if transfer.error.is_some() {
            transfer.exhausted = true;
            return false;
        }
        let alignment = transfer.list.file().0.alignment;
        // Cuts end at block boundaries: the largest whole number of blocks that a staging buffer holds.
        let staging_bytes = self.staging.buffer_bytes() / alignment.write * alignment.write;
        let limits = Limits { alignment, staging_bytes };
        let next = transfer.parked.take().or_else(|| cut(&transfer.list, &mut transfer.cursor, &limits));
        let Some(next) = next else {
            transfer.exhausted = true;
            return false;
        };
        let staged = matches!(next.via, Via::Staging { .. });
        if staged && !self.staging.has_free() {
            transfer.parked = Some(next);
            return false;
        }
        if transfer.timed && transfer.started.is_none() {
            transfer.started = Some(multigrain_trace::now());
        }
        let (memory, staging) = match next.via {
            Via::Cache(memory) => {
                self.write_cached(index, next.offset_bytes, memory, next.len_bytes, context);
                return true;
            }
            Via::Memory(memory) => (memory, None),
            Via::Staging { .. } => {
                let buffer = self.staging.take();
                (self.staging.address(buffer.unwrap_or(0)), buffer)
            }
        };
        let direction = transfer.list.direction();
        let to_be_seen = staged || transfer.timed;
        transfer.outstanding += 1;
        self.in_flight += 1;
        self.in_flight_bytes += next.len_bytes;
        self.to_be_seen += usize::from(to_be_seen);
        let operation = Operation {
            transfer: index,
            direction,
            cut: next,
            staging,
            memory,
            done_bytes: 0,
            put_off: 0,
            orphaned: 0,
            to_be_seen,
        };
        let operation = insert(&mut self.operations, &mut self.free_operations, operation);
        if direction == Direction::Write {
            self.copy_in(operation);
        }
        if !self.start_raw(operation, context) {
            self.settle(operation, context);
        }
        true
    }

    fn copy_in(&mut self, index: usize) {
        self.copy(index, |staging, memory, bytes| {
            // SAFETY: `staging` lies in the buffer that this operation holds and takes as many bytes; `memory` is the
            // caller's, valid and unchanged until the ticket is complete; they do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(memory, staging, bytes) };
        });
    }

    /// Calls `copy` with (place in the staging buffer, place in the caller's memory, bytes) for each fragment.
    pub(super) fn copy(&self, index: usize, copy: impl Fn(*mut u8, *mut u8, usize)) {
        let Some(operation) = &self.operations[index] else { return };
        let Some(transfer) = &self.transfers[operation.transfer] else { return };
        let Via::Staging { start, payload_bytes } = &operation.cut.via else { return };
        let offset = operation.cut.offset_bytes;
        for_each_fragment(&transfer.list, start, *payload_bytes, offset, |at, memory, bytes| {
            copy(operation.memory.wrapping_add(at), memory, bytes);
        });
    }

    /// Asks the fault hook, then hands what is left of an operation to the backend. `false` where that is refused: the
    /// operation is over.
    pub(super) fn start_raw(&mut self, index: usize, context: &Context) -> bool {
        let Some(operation) = &self.operations[index] else { return false };
        let Some(transfer) = &mut self.transfers[operation.transfer] else { return false };
        let (offset_bytes, len_bytes) = operation.rest();
        let raw = RawOperation {
            key: index as u64,
            direction: operation.direction,
            fd: transfer.list.file().raw_fd(),
            offset_bytes,
            memory: operation.memory.wrapping_add(operation.done_bytes as usize),
            // At most 1 MiB or one staging buffer.
            len_bytes: len_bytes as u32,
        };
        if !transfer.may(operation.direction, offset_bytes, len_bytes, context) {
            return false;
        }
        // SAFETY: the memory is a staging buffer held by this operation, or the caller's, which the contract of
        // `Disk::submit` keeps valid until the ticket is complete; that happens only after this operation is reaped.
        // The transfer's list keeps the file open as long.
        unsafe { self.backend.start(raw) };
        true
    }

    /// Writes bytes that do not fill a block into the page cache, at once.
    fn write_cached(&mut self, index: usize, offset_bytes: u64, memory: *mut u8, len_bytes: u64, context: &Context) {
        let Some(transfer) = &mut self.transfers[index] else { return };
        let (mut done, mut put_off) = (0, 0);
        while done < len_bytes {
            let (offset, left) = (offset_bytes + done, len_bytes - done);
            if !transfer.may(Direction::Write, offset, left, context) {
                return;
            }
            let raw = RawOperation {
                key: 0,
                direction: Direction::Write,
                fd: transfer.list.file().cached_fd(),
                offset_bytes: offset,
                memory: memory.wrapping_add(done as usize),
                // Less than a block.
                len_bytes: left as u32,
            };
            // SAFETY: the memory is the caller's, valid until the ticket is complete, as in `start_raw`.
            let errno = match unsafe { self.backend.write_now(&raw) } {
                Ok(0) => Errno(libc::EIO),
                Ok(bytes) => {
                    done += u64::from(bytes);
                    continue;
                }
                Err(Errno(libc::EINTR | libc::EAGAIN)) if put_off < PUT_OFF_MAX => {
                    put_off += 1;
                    continue;
                }
                Err(errno) => errno,
            };
            let error = transfer_error(&transfer.list, OperationKind::Write, offset, left, errno);
            transfer.error.get_or_insert(error);
            return;
        }
    }

    /// Retires an operation of which nothing is under way.
    pub(super) fn settle(&mut self, index: usize, context: &Context) {
        let Some(operation) = self.operations[index].take() else { return };
        self.free_operations.push(index);
        self.in_flight -= 1;
        self.in_flight_bytes -= operation.cut.len_bytes;
        self.to_be_seen -= usize::from(operation.to_be_seen);
        if let Some(buffer) = operation.staging {
            self.staging.give_back(buffer);
        }
        if let Some(transfer) = &mut self.transfers[operation.transfer] {
            transfer.outstanding -= 1;
            if transfer.error.is_some() {
                transfer.exhausted = true;
            }
        }
        self.finish_transfer(operation.transfer, context);
    }

    /// Completes the ticket of a transfer with nothing left to start or under way.
    fn finish_transfer(&mut self, index: usize, context: &Context) {
        let done = self.transfers[index].as_ref().is_some_and(|t| t.exhausted && t.outstanding == 0);
        if !done {
            return;
        }
        // While `order` still names the transfer, its place must not be given to another.
        if self.order.contains(&index) {
            return;
        }
        let Some(transfer) = self.transfers[index].take() else { return };
        self.free_transfers.push(index);
        let result = match transfer.error {
            _ if context.is_dead() => Err(StoreError::Dead),
            Some(error) => Err(error),
            None => {
                context.count_payload(transfer.list.direction(), transfer.list.len_bytes());
                Ok(())
            }
        };
        // The list goes before the ticket completes: whoever waits may rely on the file being released.
        drop(transfer.list);
        if let Some(started) = transfer.started {
            transfer.ticket.took(started, multigrain_trace::now());
        }
        transfer.ticket.complete(result);
    }
}

pub(super) fn kind_of(direction: Direction) -> OperationKind {
    match direction {
        Direction::Read => OperationKind::Read,
        Direction::Write => OperationKind::Write,
    }
}

pub(super) fn transfer_error(
    list: &TransferList,
    operation: OperationKind,
    offset: u64,
    len: u64,
    errno: Errno,
) -> StoreError {
    StoreError::Transfer {
        operation,
        path: list.file().0.path.clone(),
        offset_bytes: offset,
        len_bytes: len,
        label: Arc::clone(list.label()),
        errno,
    }
}

/// Puts a value at a free place.
fn insert<T>(places: &mut Vec<Option<T>>, free: &mut Vec<usize>, value: T) -> usize {
    match free.pop() {
        Some(index) => {
            places[index] = Some(value);
            index
        }
        None => {
            places.push(Some(value));
            places.len() - 1
        }
    }
}
