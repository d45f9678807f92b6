//! The copy engine of a device: streams, each a thread that moves one block after the other.

use crate::arena::Arena;
use crate::fault;
use multigrain::driver::{Direction, Location, Receipt, StoreError, Transfer, rows};
use multigrain::rooms::program::RawView;
use multigrain::rooms::trace::{Tick, now};
use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How fast a device's link is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) read_bytes_per_second: f64,
    pub(crate) write_bytes_per_second: f64,
    pub(crate) latency_ns: f64,
}

/// Shorter than what a thread's sleep is longer than asked for.
const SLEEP_FROM: Duration = Duration::from_micros(100);

impl Pace {
    fn over(&self, begun: Instant, direction: Direction, bytes: usize) {
        let rate = match direction {
            Direction::Read => self.read_bytes_per_second,
            Direction::Write => self.write_bytes_per_second,
        };
        let seconds = self.latency_ns * 1e-9 + bytes as f64 / rate;
        until(begun, Duration::try_from_secs_f64(seconds).unwrap_or_default());
    }
}

/// Returns so long after a moment.
pub(crate) fn until(begun: Instant, whole: Duration) {
    if let Some(rest) = whole.checked_sub(begun.elapsed() + SLEEP_FROM) {
        std::thread::sleep(rest);
    }
    while begun.elapsed() < whole {
        std::hint::spin_loop();
    }
}

/// A block to be moved.
struct Command {
    direction: Direction,
    part: RawView,
    offset_bytes: usize,
    /// The name of a transfer that is to fail.
    fails: Option<String>,
    done: Sender<Moved>,
}

// SAFETY: it holds addresses; who issued the transfer vouches for what is behind them until it is over.
unsafe impl Send for Command {}

/// What became of a transfer, and when it moved.
type Moved = (Result<(), StoreError>, [Tick; 2]);

pub(crate) struct Streams {
    streams: Vec<(Option<Sender<Command>>, JoinHandle<()>)>,
    bytes: usize,
    issued: AtomicU64,
    /// Which transfer fails, counted from 1.
    fails: Option<u64>,
}

impl Streams {
    pub(crate) fn new(arena: Arc<Arena>, count: usize, pace: Pace, fails: Option<u64>) -> Result<Streams, StoreError> {
        let bytes = arena.len();
        let stream = |number: usize| {
            let (sender, commands) = channel();
            let arena = Arc::clone(&arena);
            let thread = std::thread::Builder::new().name(format!("device stream {number}"));
            let thread = thread.spawn(move || work(&arena, pace, commands));
            let thread = thread.map_err(|error| fault(format!("stream {number} has no thread: {error}")))?;
            Ok((Some(sender), thread))
        };
        let streams = (0..count).map(stream).collect::<Result<_, StoreError>>()?;
        Ok(Streams { streams, bytes, issued: AtomicU64::new(0), fails })
    }

    pub(crate) fn issue(&self, transfer: &Transfer<'_>) -> Result<Box<dyn Receipt>, StoreError> {
        let Location::Memory(part) = &transfer.location else {
            return Err(fault(format!("{} has no address that its copy engine could follow", (transfer.name)())));
        };
        let (offset, bytes) = (transfer.offset_bytes, bytes_of(part));
        let end = offset.checked_add(bytes as u64).filter(|&end| end <= self.bytes as u64);
        if end.is_none() {
            let what =
                format!("{} of {bytes} bytes at {offset} does not lie in {} bytes", (transfer.name)(), self.bytes);
            return Err(fault(what));
        }
        // Relaxed: a number.
        let number = self.issued.fetch_add(1, Ordering::Relaxed);
        let fails = (self.fails == Some(number + 1)).then(|| (transfer.name)());
        let (done, moved) = channel();
        let offset_bytes = offset as usize;
        let command = Command { direction: transfer.direction, part: *part, offset_bytes, fails, done };
        let stream = &self.streams[number as usize % self.streams.len()].0;
        let sent = stream.as_ref().is_some_and(|stream| stream.send(command).is_ok());
        let receipt = Waiting { moved, outcome: OnceCell::new() };
        if sent { Ok(Box::new(receipt)) } else { Err(fault("its stream is gone".to_owned())) }
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.streams.iter_mut().for_each(|(sender, _)| drop(sender.take()));
        for (_, thread) in self.streams.drain(..) {
            // It does not panic; there is nothing to learn from the result.
            let _ = thread.join();
        }
    }
}

struct Waiting {
    moved: Receiver<Moved>,
    outcome: OnceCell<Moved>,
}

impl Receipt for Waiting {
    fn wait(&self) -> Result<(), StoreError> {
        let gone = || (Err(fault("its stream is gone".to_owned())), [now(), now()]);
        self.outcome.get_or_init(|| self.moved.recv().unwrap_or_else(|_| gone())).0.clone()
    }

    fn times(&self) -> Option<[Tick; 2]> {
        self.outcome.get().map(|(_, times)| *times)
    }
}

/// What a stream does until the device is gone.
fn work(arena: &Arena, pace: Pace, commands: Receiver<Command>) {
    for Command { direction, part, offset_bytes, fails, done } in commands {
        let (begun, started) = (Instant::now(), now());
        let result = match fails {
            None => {
                // SAFETY: the block lies in the arena, as was seen when it was issued, and in the parent, as who issued it says;
                // nobody else uses either until it is over.
                unsafe { copy(&part, arena.own().add(offset_bytes), direction) };
                Ok(())
            }
            Some(name) => Err(fault(format!("{name}: a fault that the machine file asks for"))),
        };
        pace.over(begun, direction, bytes_of(&part));
        // Who does not want to know has dropped the receipt.
        let _ = done.send((result, [started, now()]));
    }
}

fn bytes_of(part: &RawView) -> usize {
    (part.shape().elements() * part.element().size_bytes()) as usize
}

/// Copies a block row by row between the parent and dense bytes.
///
/// # Safety
/// Both hold the block, do not overlap, and are nobody else's.
unsafe fn copy(part: &RawView, mut dense: *mut u8, direction: Direction) {
    for (parent, bytes) in rows(part) {
        // SAFETY: one row of the block, which the caller vouches for.
        unsafe {
            match direction {
                Direction::Read => std::ptr::copy_nonoverlapping(parent, dense, bytes),
                Direction::Write => std::ptr::copy_nonoverlapping(dense, parent, bytes),
            }
        }
        dense = dense.wrapping_add(bytes);
    }
}
