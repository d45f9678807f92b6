//! The scheduler over a device in memory that is as unkind as a real one may be: operations end in any order, come
//! short, are put off by signals. It also checks what the scheduler promises: alignment, and that no bytes of the file
//! are in two hands while one of them writes.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use super::run::Runner;
use super::staging::Staging;
use super::ticket::{Job, TicketState};
use crate::backend::{Backend, Completion, RawOperation};
use crate::buffer::AlignedBuffer;
use crate::context::Context;
use crate::error::{Errno, StoreError};
use crate::file::{Alignment, ArrayFile, OpenFile};
use crate::transfer::{Direction, TransferList};
use multigrain_program::ElementType;

const ALIGNMENT: Alignment = Alignment { read: 512, write: 4096, memory: 512 };

/// Linear congruential generator (Knuth's MMIX constants), high bits.
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

struct Unkind {
    file: Arc<Mutex<Vec<u8>>>,
    pending: Vec<RawOperation>,
    random: Random,
}

impl Unkind {
    fn range(operation: &RawOperation) -> std::ops::Range<u64> {
        operation.offset_bytes..operation.offset_bytes + u64::from(operation.len_bytes)
    }
}

impl Backend for Unkind {
    fn name(&self) -> String {
        "unkind".to_owned()
    }

    unsafe fn start(&mut self, operation: RawOperation) {
        // A write that came short goes on inside a block of the file system, but never ends inside one.
        let unit = if operation.direction == Direction::Read { ALIGNMENT.read } else { ALIGNMENT.write };
        let range = Unkind::range(&operation);
        assert!(range.start.is_multiple_of(ALIGNMENT.read) && range.end.is_multiple_of(unit), "{operation:?}");
        assert!((operation.memory.addr() as u64).is_multiple_of(ALIGNMENT.memory), "{operation:?}");
        for other in &self.pending {
            let theirs = Unkind::range(other);
            let apart = range.end <= theirs.start || theirs.end <= range.start;
            let both_read = operation.direction == Direction::Read && other.direction == Direction::Read;
            assert!(apart || both_read, "{operation:?} meets {other:?}");
        }
        self.pending.push(operation);
    }

    fn submit(&mut self) {}

    unsafe fn write_now(&mut self, operation: &RawOperation) -> Result<u32, Errno> {
        let range = Unkind::range(operation);
        // The device and the page cache may share a block; never a byte.
        for other in self.pending.iter().filter(|other| other.direction == Direction::Write) {
            let theirs = Unkind::range(other);
            assert!(range.end <= theirs.start || theirs.end <= range.start, "{operation:?} meets {other:?}");
        }
        let bytes = match self.random.below(6) {
            0 => return Err(Errno(libc::EINTR)),
            1 => 1 + self.random.below(u64::from(operation.len_bytes)) as usize,
            _ => operation.len_bytes as usize,
        };
        let mut file = self.file.lock().unwrap();
        let start = operation.offset_bytes as usize;
        if start + bytes > file.len() {
            return Err(Errno(libc::EIO));
        }
        let place = file[start..start + bytes].as_mut_ptr();
        // SAFETY: the contract of `write_now`.
        unsafe { std::ptr::copy_nonoverlapping(operation.memory, place, bytes) };
        Ok(bytes as u32)
    }

    fn take(&mut self, completions: &mut Vec<Completion>) {
        assert!(!self.pending.is_empty(), "nothing is under way: this would wait for ever");
        let operation = self.pending.swap_remove(self.random.below(self.pending.len() as u64) as usize);
        let RawOperation { key, direction, offset_bytes, memory, len_bytes, .. } = operation;
        let result = match self.random.below(12) {
            0 | 1 => Err(Errno(libc::EINTR)),
            2 | 3 => Err(Errno(libc::EAGAIN)),
            // As where the thread that handed it over has ended.
            4 => Err(Errno(libc::EFAULT)),
            5 => Err(Errno(libc::ECANCELED)),
            choice => {
                let mut file = self.file.lock().unwrap();
                let start = (offset_bytes as usize).min(file.len());
                let there = (file.len().saturating_sub(start)).min(len_bytes as usize);
                // Sometimes short: at a block, as direct I/O is.
                let blocks = there as u64 / 512;
                let short = choice <= 7 && blocks > 1;
                let moved = if short { 512 * (1 + self.random.below(blocks - 1)) as usize } else { there };
                let file = &mut file[start..start + moved];
                match direction {
                    // SAFETY: the contract of `start`: the memory holds `len_bytes` and is nobody else's now.
                    Direction::Read => unsafe { std::ptr::copy_nonoverlapping(file.as_ptr(), memory, moved) },
                    // SAFETY: as above.
                    Direction::Write => unsafe { std::ptr::copy_nonoverlapping(memory, file.as_mut_ptr(), moved) },
                }
                Ok(moved as u32)
            }
        };
        completions.push(Completion { key, result });
    }
}

fn array(shape: &[u64], data_offset_bytes: u64) -> ArrayFile {
    ArrayFile(Arc::new(OpenFile {
        // Never used: the device is in memory.
        fd: std::fs::File::open("/dev/null").unwrap().into(),
        cached: None,
        path: "memory".into(),
        final_path: None,
        element: ElementType::F32,
        shape: shape.to_vec(),
        data_offset_bytes,
        data_bytes: 4 * shape.iter().product::<u64>(),
        direct: true,
        alignment: ALIGNMENT,
        writable: true,
        resumed: false,
        settled: AtomicBool::new(false),
    }))
}

fn drive(runner: &mut Runner, context: &Context) {
    loop {
        runner.issue(context);
        if runner.is_idle() {
            return;
        }
        runner.reap(context);
    }
}

#[test]
fn tiles_on_an_unkind_device() {
    let rounds = if cfg!(miri) { 4 } else { 150 };
    for seed in 0..rounds {
        let mut random = Random(seed);
        let small = cfg!(miri);
        let rows = 1 + random.below(if small { 3 } else { 40 });
        let columns = 1 + random.below(if small { 3000 } else { 20_000 });
        let tile = 1 + random.below(columns.min(5000));
        let offset = [0, 128, 4096][random.below(3) as usize];
        let array = array(&[rows, columns], offset);
        let bytes = (rows * columns * 4) as usize;
        let len = (offset as usize + bytes).next_multiple_of(4096);
        let file = Arc::new(Mutex::new(vec![0xA5; len]));
        let backend = Unkind { file: Arc::clone(&file), pending: Vec::new(), random: random.clone() };
        let mut runner = Runner::new(Box::new(backend), Staging::new(0).unwrap(), 1 + random.below(12) as usize);
        let context = Context::default();
        let mut reference = AlignedBuffer::new(bytes).unwrap();
        // SAFETY: no pointers given out yet.
        unsafe { reference.as_mut_slice() }.iter_mut().for_each(|b| *b = random.below(256) as u8);
        let copy = AlignedBuffer::new(bytes).unwrap();
        for (direction, memory) in [(Direction::Write, &reference), (Direction::Read, &copy)] {
            let mut tickets = Vec::new();
            for column in (0..columns).step_by(tile as usize) {
                let (start, len) = ([0, column], [rows, tile.min(columns - column)]);
                let place = memory.as_mut_ptr().wrapping_add(column as usize * 4);
                let list =
                    TransferList::block(&array, direction, &start, &len, place, columns * 4, "tile".into()).unwrap();
                let ticket = Arc::new(TicketState::default());
                runner.accept(Job { list, ticket: Arc::clone(&ticket), timed: false });
                tickets.push(ticket);
            }
            drive(&mut runner, &context);
            for ticket in tickets {
                assert!(ticket.is_done());
                assert_eq!(ticket.result(), Ok(()), "seed {seed}");
            }
        }
        // SAFETY: every transfer is done.
        let (reference, copy) = unsafe { (reference.as_slice(), copy.as_slice()) };
        let found = file.lock().unwrap();
        let offset = offset as usize;
        assert!(&found[offset..offset + bytes] == reference, "seed {seed}: written");
        assert!(copy == reference, "seed {seed}: read");
        let untouched = |bytes: &[u8]| bytes.iter().all(|&b| b == 0xA5);
        assert!(untouched(&found[..offset]) && untouched(&found[offset + bytes..]), "seed {seed}: outside");
    }
}

#[test]
fn a_file_that_ends_early_is_truncated_and_nothing_hangs() {
    for seed in 0..if cfg!(miri) { 2 } else { 40 } {
        let mut random = Random(seed);
        let array = array(&[5, 3000], 128);
        let whole = 128 + 5 * 3000 * 4;
        let len = random.below(whole - 1) as usize;
        let file = Arc::new(Mutex::new(vec![1; len]));
        let backend = Unkind { file, pending: Vec::new(), random };
        let mut runner = Runner::new(Box::new(backend), Staging::new(0).unwrap(), 4);
        let memory = AlignedBuffer::new(60_000).unwrap();
        for direction in [Direction::Read, Direction::Write] {
            let (start, len) = ([0, 0], [5, 3000]);
            let list = TransferList::block(&array, direction, &start, &len, memory.as_mut_ptr(), 12_000, "all".into())
                .unwrap();
            let ticket = Arc::new(TicketState::default());
            runner.accept(Job { list, ticket: Arc::clone(&ticket), timed: false });
            drive(&mut runner, &Context::default());
            assert!(ticket.is_done());
            let result = ticket.result();
            // A write into a file that somebody has cut finds its edge block gone, or a device that takes nothing.
            assert!(
                matches!(result, Err(StoreError::Truncated { .. } | StoreError::Transfer { .. })),
                "seed {seed} {direction:?}: {result:?}"
            );
        }
    }
}
