//! Content on its way: read in blocks of chunks, sealed or opened by all workers, written in order.
//!
//! A block is one job. What can be read and written at any place (regular files) the workers read and write themselves,
//! each with two buffers of its own that stay in its cache; what comes or goes in one stream (pipes, armored files) the
//! host reads and writes, and then the buffers travel with the jobs and are used again. In both cases the results come
//! back in order, so the first damage is the one that is told, whatever the threads did, and a stream gets exactly the
//! authentic content before it.

use crate::cipher::{ContentKey, Damage};
use crate::error::Error;
use crate::mode::{Mode, TAG_BYTES};
use multigrain::Abort;
use multigrain::jobs::{JobOptions, Order, Team, TeamOptions};
use multigrain::whole::begin_writeback;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;

/// Content bytes of a block, where memory allows it: both buffers of two workers lie in caches of 1 MiB.
const BLOCK_BYTES: usize = 256 << 10;

/// What is used where nothing else is asked for, unless there are so many workers that they need more.
const MEMORY_BYTES: u64 = 64 << 20;

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Content becomes chunks.
    Seal,
    /// Chunks become content.
    Open,
}

/// Where bytes come from.
pub enum Input<'a> {
    /// A regular file: so many bytes from a place on.
    File(&'a File, u64, u64),
    /// All that comes.
    Stream(&'a mut dyn Read),
}

/// Where bytes go.
pub enum Output<'a> {
    /// A regular file, from a place on.
    File(&'a File, u64),
    /// In order. It is not flushed: the armor of the crate `age` 0.12 loses count of its columns when it is.
    Stream(&'a mut dyn Write),
}

/// The part of a message that goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The chunk with which the input begins.
    pub first: u64,
    /// Whether the message ends where the input does.
    pub ends: bool,
}

/// A whole message.
pub const WHOLE: Part = Part { first: 0, ends: true };

/// What is told about the two ends, and on the way.
pub struct Ends<'a> {
    /// The input, for errors.
    pub input: &'a str,
    /// The output, for errors.
    pub output: &'a str,
    /// Ends the work.
    pub abort: &'a Abort,
    /// Is told how many bytes of the input are done.
    pub progress: &'a dyn Fn(u64),
}

/// How many bytes went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes read.
    pub bytes_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
}

/// Workers and memory for messages of one mode.
#[derive(Debug)]
pub struct Pipeline {
    team: Team,
    chunks_a_block: usize,
    in_flight: u32,
}

/// A block.
struct Job {
    number: u64,
    bytes: usize,
    last: bool,
    input: Option<Vec<u8>>,
    output: Option<Vec<u8>>,
}

/// A block that is done.
struct Done {
    bytes_in: usize,
    bytes_out: usize,
    input: Option<Vec<u8>>,
    output: Option<Vec<u8>>,
    damage: Option<Damage>,
}

impl Pipeline {
    /// A team of so many threads whose buffers stay within the memory.
    ///
    /// # Errors
    /// Not even single chunks fit, or there are no threads to be had.
    pub fn new(mode: Mode, threads: Option<usize>, memory_bytes: Option<u64>) -> Result<Pipeline, Error> {
        let workers = threads.unwrap_or_else(|| TeamOptions::default().workers).max(1);
        let pair = 2 * mode.sealed_chunk_bytes();
        // Two buffers for each worker and for each block in flight: one a worker and one that is being read, beside the
        // one that is held back until it is known whether it is the last.
        let blocks = |workers: usize| 2 * workers + 2;
        let usual = MEMORY_BYTES.max((blocks(workers) * pair) as u64);
        let memory = usize::try_from(memory_bytes.unwrap_or(usual)).unwrap_or(usize::MAX);
        if memory / pair < blocks(workers) {
            return Err(Error::Request(format!(
                "{workers} threads need {} KiB of memory for single chunks of {} KiB, and --memory allows {} KiB; give more, \
                 or fewer --threads",
                (blocks(workers) * pair).div_ceil(1 << 10),
                mode.chunk_bytes() >> 10,
                memory >> 10,
            )));
        }
        let chunks_a_block = (memory / pair / blocks(workers)).clamp(1, BLOCK_BYTES / mode.chunk_bytes());
        let fit = memory / (pair * chunks_a_block);
        let in_flight = (fit - workers - 1).min(8 * workers) as u32;
        // Not bound to processors: several of these programs run beside each other.
        let team = Team::new(TeamOptions { workers, bind: false, ..TeamOptions::default() });
        let team =
            team.map_err(|e| Error::Request(format!("cannot start {workers} threads: {e}; use fewer --threads")))?;
        Ok(Pipeline { team, chunks_a_block, in_flight })
    }

    /// The workers.
    pub fn team(&self) -> &Team {
        &self.team
    }

    /// Seals a message from memory into memory.
    ///
    /// # Errors
    /// It is longer than the mode can hold.
    ///
    /// # Panics
    /// If `sealed` is not [`Mode::sealed_bytes`] long.
    pub fn seal_in_memory(&self, key: &ContentKey, content: &[u8], sealed: &mut [u8]) -> Result<(), Error> {
        let mode = key.mode();
        assert_eq!(sealed.len() as u64, mode.sealed_bytes(content.len() as u64), "room for the message");
        if mode.chunks(content.len() as u64) > mode.chunks_max() {
            return Err(Error::TooLong { name: "the message".into(), mode: mode.name() });
        }
        let (unit, sealed_unit) =
            (mode.chunk_bytes() * self.chunks_a_block, mode.sealed_chunk_bytes() * self.chunks_a_block);
        let (mut rest, mut into, mut first) = (Some(content), sealed, 0);
        let source = || {
            let Some(content) = rest else { return Ok(None) };
            let ends = content.len() <= unit;
            let (now, later) = content.split_at(content.len().min(unit));
            rest = (!ends).then_some(later);
            let here = if ends { into.len() } else { sealed_unit };
            let (out, after) = std::mem::take(&mut into).split_at_mut(here);
            into = after;
            first += self.chunks_a_block as u64;
            Ok(Some((first - self.chunks_a_block as u64, ends, now, out)))
        };
        let work = |(): &mut (), (first, ends, content, out): (u64, bool, &[u8], &mut [u8])| {
            key.seal(first, ends, content, out);
            Ok(())
        };
        self.team.jobs(&JobOptions::default(), source, |_| (), work, |()| Ok::<(), Error>(()))?;
        Ok(())
    }

    /// Seals or opens a message or a part of it.
    ///
    /// # Errors
    /// The input cannot be read or is damaged, the output cannot be written, or the work was ended. What the output then
    /// has in order before the fault is authentic.
    pub fn run(
        &self,
        way: Way,
        key: &ContentKey,
        part: Part,
        input: Input<'_>,
        output: Output<'_>,
        ends: &Ends<'_>,
    ) -> Result<Moved, Error> {
        let mode = key.mode();
        let (content, sealed) =
            (mode.chunk_bytes() * self.chunks_a_block, mode.sealed_chunk_bytes() * self.chunks_a_block);
        let (unit_in, unit_out) = match way {
            Way::Seal => (content, sealed),
            Way::Open => (sealed, content),
        };
        // An empty last chunk may follow a full block.
        let buffer_in = || vec![0_u8; unit_in];
        let buffer_out = || vec![0_u8; unit_out + TAG_BYTES];
        let (file_in, stream_in) = match input {
            Input::File(file, start, bytes) => (Some((file, start, bytes)), None),
            Input::Stream(stream) => (None, Some(stream)),
        };
        let (file_out, mut stream_out) = match output {
            Output::File(file, start) => (Some((file, start)), None),
            Output::Stream(stream) => (None, Some(stream)),
        };
        let unreadable = |source| Error::Read { name: ends.input.to_owned(), source };
        let unwritable = |source| Error::Write { name: ends.output.to_owned(), source };
        let spare = RefCell::new((Vec::new(), Vec::new()));
        let take = |buffers: &mut Vec<Vec<u8>>, new: &dyn Fn() -> Vec<u8>| buffers.pop().unwrap_or_else(new);

        let mut blocks = match (file_in, stream_in) {
            (Some((_, _, bytes)), _) => Blocks::Places { next: 0, left: Some(bytes), unit: unit_in as u64 },
            (None, Some(stream)) => Blocks::Stream(Held { stream, held: None, next: 0 }),
            (None, None) => unreachable!("an input is one of both"),
        };
        let source = || -> Result<Option<Job>, Error> {
            if ends.abort.is_raised() {
                return Err(Error::Interrupted);
            }
            let mut spare = spare.borrow_mut();
            let next = match &mut blocks {
                Blocks::Places { next, left, unit } => left.take().map(|bytes| {
                    let now = bytes.min(*unit);
                    let last = now == bytes;
                    if !last {
                        *left = Some(bytes - now);
                    }
                    *next += 1;
                    Job { number: *next - 1, bytes: now as usize, last, input: None, output: None }
                }),
                Blocks::Stream(held) => {
                    let next = held.next(|| take(&mut spare.0, &buffer_in));
                    next.map_err(|e| if ends.abort.is_raised() { Error::Interrupted } else { unreadable(e) })?
                }
            };
            Ok(next.map(|job| {
                let output = file_out.is_none().then(|| take(&mut spare.1, &buffer_out));
                Job { output, ..job }
            }))
        };
        let work = |own: &mut (Vec<u8>, Vec<u8>), job: Job| -> Result<Done, Error> {
            let Job { number, bytes, last, input: mut carried_in, output: mut carried_out } = job;
            let from = carried_in.as_mut().unwrap_or_else(|| filled(&mut own.0, buffer_in));
            let into = carried_out.as_mut().unwrap_or_else(|| filled(&mut own.1, buffer_out));
            if let Some((file, start, _)) = file_in {
                let place = start + number * unit_in as u64;
                file.read_exact_at(&mut from[..bytes], place).map_err(|source| match source.kind() {
                    ErrorKind::UnexpectedEof => unreadable(io::Error::other("it became shorter meanwhile")),
                    _ => unreadable(source),
                })?;
            }
            let first = part.first + number * self.chunks_a_block as u64;
            if first + self.chunks_a_block as u64 > mode.chunks_max() {
                return Err(Error::TooLong { name: ends.input.to_owned(), mode: mode.name() });
            }
            let (from, is_end) = (&from[..bytes], last && part.ends);
            let (bytes_out, damage) = match way {
                Way::Seal => (key.seal(first, is_end, from, into), None),
                Way::Open => key.open(first, is_end, from, into),
            };
            if let (Some((file, start)), None) = (file_out, damage) {
                let place = start + number * unit_out as u64;
                file.write_all_at(&into[..bytes_out], place).map_err(unwritable)?;
                begin_writeback(file, place, bytes_out as u64);
            }
            Ok(Done { bytes_in: bytes, bytes_out, input: carried_in, output: carried_out, damage })
        };
        let mut moved = Moved::default();
        let sink = |done: Done| -> Result<(), Error> {
            if let (Some(stream), Some(output)) = (&mut stream_out, &done.output) {
                stream.write_all(&output[..done.bytes_out]).map_err(unwritable)?;
            }
            if let Some(damage) = done.damage {
                let chunk_bytes = mode.chunk_bytes() as u64;
                return Err(Error::Damaged { name: ends.input.to_owned(), damage, chunk_bytes });
            }
            moved.bytes_in += done.bytes_in as u64;
            moved.bytes_out += done.bytes_out as u64;
            (ends.progress)(moved.bytes_in);
            let mut spare = spare.borrow_mut();
            spare.0.extend(done.input);
            spare.1.extend(done.output);
            Ok(())
        };
        let options = JobOptions { order: Order::Ordered, in_flight: self.in_flight, ..JobOptions::default() };
        self.team.jobs(&options, source, |_| Default::default(), work, sink)?;
        Ok(moved)
    }
}

/// A worker's own buffer, made when it is first used.
fn filled(buffer: &mut Vec<u8>, new: impl Fn() -> Vec<u8>) -> &mut Vec<u8> {
    if buffer.is_empty() {
        *buffer = new();
    }
    buffer
}

/// The blocks of the input.
enum Blocks<'a> {
    /// Of a file: what is left, if anything or nothing has been taken at all.
    Places { next: u64, left: Option<u64>, unit: u64 },
    /// Of a stream.
    Stream(Held<'a>),
}

/// Reads a stream one block ahead: only then it is known which block is the last.
struct Held<'a> {
    stream: &'a mut dyn Read,
    /// The block that was read last and how many bytes it has.
    held: Option<(Vec<u8>, usize)>,
    next: u64,
}

impl Held<'_> {
    fn next(&mut self, mut buffer: impl FnMut() -> Vec<u8>) -> io::Result<Option<Job>> {
        if self.held.is_none() {
            if self.next > 0 {
                return Ok(None);
            }
            self.held = Some(self.read(buffer())?);
        }
        let Some((block, bytes)) = self.held.take() else { return Ok(None) };
        // A block that is not full ends the stream.
        if bytes == block.len() {
            let after = self.read(buffer())?;
            if after.1 > 0 {
                self.held = Some(after);
            }
        }
        self.next += 1;
        Ok(Some(Job { number: self.next - 1, bytes, last: self.held.is_none(), input: Some(block), output: None }))
    }

    /// Fills a buffer as far as the stream goes.
    fn read(&mut self, mut buffer: Vec<u8>) -> io::Result<(Vec<u8>, usize)> {
        let mut bytes = 0;
        while bytes < buffer.len() {
            match self.stream.read(&mut buffer[bytes..]) {
                Ok(0) => break,
                Ok(read) => bytes += read,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok((buffer, bytes))
    }
}
