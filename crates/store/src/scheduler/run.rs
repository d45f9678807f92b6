//! Keeping operations in flight: which to start, and when an operation and a transfer are over.

use std::collections::VecDeque;
use std::sync::Arc;

use super::cut::{Cut, Limits, OPERATION_BYTES_MAX, Via, cut};
use super::edges::EdgeBlocks;
use super::operation::{Operation, Part};
use super::staging::Staging;
use super::thread::{Job, TicketState};
use crate::backend::{Backend, Completion, RawOperation};
use crate::disk::{Context, Refusal};
use crate::error::{Errno, StoreError};
use crate::faults::OperationKind;
use crate::transfer::{Cursor, Direction, TransferList};
use multigrain_trace::Tick;

/// Bytes in flight beyond which no operation is added: enough for any one device, and later transfers wait less.
const IN_FLIGHT_BYTES_MAX: u64 = 8 * OPERATION_BYTES_MAX;

/// A transfer under way.
pub(super) struct Transfer {
    pub(super) list: TransferList,
    cursor: Cursor,
    /// An operation that is cut off but could not start yet: its edge blocks or a staging buffer are taken.
    parked: Option<Cut>,
    exhausted: bool,
    outstanding: u32,
    pub(super) error: Option<StoreError>,
    ticket: Arc<TicketState>,
    timed: bool,
    /// When the first operation was started, if the transfer is timed.
    started: Option<Tick>,
}

/// Everything that the I/O thread owns.
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
    edge_blocks: EdgeBlocks,
    in_flight: usize,
    in_flight_bytes: u64,
    pub(super) completions: Vec<Completion>,
}

impl Runner {
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
            edge_blocks: EdgeBlocks::default(),
            in_flight: 0,
            in_flight_bytes: 0,
            completions: Vec::new(),
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.order.is_empty()
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

    /// Starts operations, oldest transfer first, until the queue is full or nothing can start.
    pub(crate) fn issue(&mut self, context: &Context) {
        let mut at = 0;
        while at < self.order.len() {
            let index = self.order[at];
            while self.has_room() && self.issue_one(index, context) {}
            let settled = self.transfers[index].as_ref().is_none_or(|t| t.exhausted);
            if settled {
                self.order.remove(at);
                self.finish_transfer(index, context);
            } else if self.has_room() {
                // This one waits for a staging buffer or an edge block; a later one may not need it.
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
        let file = Arc::clone(&transfer.list.file().0);
        // Cuts end at block boundaries: the largest whole number of blocks that a staging buffer holds.
        let staging_bytes = self.staging.buffer_bytes() / file.alignment.write * file.alignment.write;
        let limits = Limits { alignment: file.alignment, staging_bytes };
        let next = transfer.parked.take().or_else(|| cut(&transfer.list, &mut transfer.cursor, &limits));
        let Some(next) = next else {
            transfer.exhausted = true;
            return false;
        };
        let staged = next.needs_staging();
        if (staged && !self.staging.has_free()) || !self.edge_blocks.take(file.id, next.edges()) {
            transfer.parked = Some(next);
            return false;
        }
        if transfer.timed && transfer.started.is_none() {
            transfer.started = Some(multigrain_trace::now());
        }
        let direction = transfer.list.direction();
        transfer.outstanding += 1;
        let staging = if staged { self.staging.take() } else { None };
        let memory = match (&next.via, staging) {
            (Via::Memory(memory), _) => *memory,
            (_, buffer) => self.staging.address(buffer.unwrap_or(0)),
        };
        self.in_flight += 1;
        self.in_flight_bytes += next.len_bytes;
        let operation = Operation {
            transfer: index,
            direction,
            cut: next,
            staging,
            memory,
            done_bytes: 0,
            pending: 0,
            retries: 0,
            put_off: 0,
            failed: false,
        };
        let operation = insert(&mut self.operations, &mut self.free_operations, operation);
        self.begin(operation, context);
        true
    }

    /// First state of an operation: reads its edge blocks if it has any, or moves its bytes at once.
    fn begin(&mut self, index: usize, context: &Context) {
        let Some(operation) = &self.operations[index] else { return };
        let Some(transfer) = &self.transfers[operation.transfer] else { return };
        let first_byte = operation.cut.offset_bytes;
        let memory = operation.memory;
        let reads = operation.edge_reads(transfer.list.file().0.alignment.write);
        if reads == [None, None] {
            if operation.direction == Direction::Write {
                self.copy_in(index);
            }
            self.start_main(index, context);
            return;
        }
        for (part, offset, len) in reads.into_iter().flatten() {
            let place = memory.wrapping_add((offset - first_byte) as usize);
            self.start_raw(index, part, Direction::Read, offset, place, len, context);
        }
        self.settle_if_quiet(index, context);
    }

    pub(super) fn start_main(&mut self, index: usize, context: &Context) {
        let Some(operation) = &self.operations[index] else { return };
        let done = operation.done_bytes;
        let offset = operation.cut.offset_bytes + done;
        let len = operation.cut.len_bytes - done;
        let (direction, place) = (operation.direction, operation.memory.wrapping_add(done as usize));
        self.start_raw(index, Part::Main, direction, offset, place, len, context);
        self.settle_if_quiet(index, context);
    }

    /// Asks the fault hook, then hands one raw operation to the backend; a refusal fails the operation.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn start_raw(
        &mut self,
        index: usize,
        part: Part,
        direction: Direction,
        offset_bytes: u64,
        memory: *mut u8,
        len_bytes: u64,
        context: &Context,
    ) {
        let Some(operation) = &mut self.operations[index] else { return };
        if operation.failed {
            return;
        }
        let Some(transfer) = &mut self.transfers[operation.transfer] else { return };
        let kind = kind_of(direction);
        let path = &transfer.list.file().0.path;
        match context.ask(kind, path, offset_bytes, len_bytes) {
            Ok(()) => {
                operation.pending += 1;
                context.count_device(direction, len_bytes);
                let raw = RawOperation {
                    key: part.key(index),
                    direction,
                    fd: transfer.list.file().raw_fd(),
                    offset_bytes,
                    memory,
                    // At most 1 MiB or one staging buffer.
                    len_bytes: len_bytes as u32,
                };
                // SAFETY: the memory is a staging buffer held by this operation, or the caller's, which the contract
                // of `Disk::submit` keeps valid until the ticket is complete; that happens only after this operation
                // is reaped. The transfer's list keeps the file open as long.
                unsafe { self.backend.start(raw) };
            }
            Err(refusal) => {
                operation.failed = true;
                let error = match refusal {
                    Refusal::Dead => StoreError::Dead,
                    Refusal::Fail(errno) => transfer_error(&transfer.list, kind, offset_bytes, len_bytes, errno),
                };
                transfer.error.get_or_insert(error);
            }
        }
    }

    /// Retires an operation none of whose parts is under way.
    pub(super) fn settle_if_quiet(&mut self, index: usize, context: &Context) {
        if self.operations[index].as_ref().is_none_or(|o| o.pending > 0) {
            return;
        }
        let Some(operation) = self.operations[index].take() else { return };
        self.free_operations.push(index);
        self.in_flight -= 1;
        self.in_flight_bytes -= operation.cut.len_bytes;
        if let Some(buffer) = operation.staging {
            self.staging.give_back(buffer);
        }
        if let Some(transfer) = &mut self.transfers[operation.transfer] {
            self.edge_blocks.give_back(transfer.list.file().0.id, operation.edges());
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
