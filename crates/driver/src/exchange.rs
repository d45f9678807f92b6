//! What ranks tell each other about arrays that lie in the memories of several: who owns what, what is asked for and sent, and what
//! was not answered yet.

use crate::Direction;
use multigrain_program::{Region, Shape};
use multigrain_store::{AlignedBuffer, SharedPlace, touched_bytes};
use std::collections::{HashMap, VecDeque};
use std::iter::Peekable;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes of a message, at most, besides its head: the content, and where each piece of it lies. A fragment may be cut. Tests of this crate
/// have many of them.
pub const MESSAGE_BYTES: usize = if cfg!(test) { 64 } else { 1 << 20 };
/// Bytes that say where a piece lies.
pub(crate) const PLACE_BYTES: u64 = 16;
/// Messages of a rank that wait for their answers, at most.
pub const UNDER_WAY: usize = 8;

/// How many messages a rank sends to one owner before that has answered, of how many bytes, so that an owner that all others ask at once is asked for
/// no more than [`UNDER_WAY`] of [`MESSAGE_BYTES`]. Two at least: while one is answered the next is on its way.
fn at_one_owner(ranks: usize) -> (usize, usize) {
    let others = ranks.saturating_sub(1).max(1);
    let messages = (UNDER_WAY / others).max(2);
    let bytes = MESSAGE_BYTES * UNDER_WAY / UNDER_WAY.max(messages * others);
    (messages, bytes.max(2 * PLACE_BYTES as usize))
}
/// Elements at which the ranges of ranks begin, where there are enough: whole blocks of any file, whatever the elements.
const CUT_ELEMENTS: u64 = 4096;
const GET: u8 = 8;
pub(crate) const DATA: u8 = 9;
const PUT: u8 = 10;
const STORED: u8 = 11;
/// Where a rank's part of an array lies, to those of its node.
pub(crate) const HERE: u8 = 12;

/// What of an array lies at one rank.
pub(crate) struct Share {
    pub(crate) buffer: AlignedBuffer,
    pub(crate) bytes: Range<u64>,
}

impl Share {
    /// The address of some bytes of the array; none where they do not all lie here.
    fn at(&self, offset: u64, bytes: u64) -> Option<*mut u8> {
        let end = offset.checked_add(bytes)?;
        (offset >= self.bytes.start && end <= self.bytes.end).then(|| self.address(offset))
    }

    /// The address of a byte of the array that lies here.
    pub(crate) fn address(&self, offset: u64) -> *mut u8 {
        self.buffer.as_mut_ptr().wrapping_add((offset - self.bytes.start) as usize)
    }
}

/// What a rank has to do with spread arrays: its shares, and what it has asked others for.
#[derive(Default)]
pub(crate) struct Exchange {
    /// Arrays so far: a number is given once, so what is told of an array of an earlier run is never taken for one of this run.
    pub(crate) made: AtomicU32,
    pub(crate) shares: Mutex<HashMap<u32, Arc<Share>>>,
    /// Those of other ranks of this node, by the array's number and the rank, where the system lets them be mapped.
    pub(crate) near: Mutex<HashMap<(u32, usize), Arc<Share>>>,
    pub(crate) desk: Mutex<Desk>,
    /// Bytes of content that others own and that were fetched or stored.
    pub(crate) moved: AtomicU64,
}

/// Transfers whose messages were not all sent, the oldest first, and messages that were not answered yet, by number.
#[derive(Default)]
pub(crate) struct Desk {
    pub(crate) queue: VecDeque<Rest>,
    pub(crate) asked: HashMap<u64, Message>,
    pub(crate) number: u64,
    /// Somebody sends what is in the queue.
    is_sending: bool,
}

impl Desk {
    /// The next message of the oldest transfer whose owner was not asked for so many already.
    fn next(&mut self, messages: usize, message_bytes: u64) -> Option<Message> {
        let mut at = 0;
        while let Some(rest) = self.queue.get_mut(at) {
            let Some(owner) = rest.owner() else {
                self.queue.remove(at);
                continue;
            };
            if self.asked.values().filter(|message| message.owner == owner).count() < messages {
                return rest.next(message_bytes);
            }
            at += 1;
        }
        None
    }
}

/// What of a transfer was not sent yet.
pub(crate) struct Rest {
    pub(crate) of: Arc<UnderWay>,
    pub(crate) array: u32,
    pub(crate) direction: Direction,
    /// Those of owners whose parts do not lie on this node are sent.
    pub(crate) pieces: Peekable<Pieces>,
    pub(crate) near: Vec<bool>,
}

impl Rest {
    /// Whose the next message is; none if there is no more to send, or nobody waits any more.
    fn owner(&mut self) -> Option<usize> {
        if lock(&self.of.state).over {
            return None;
        }
        while self.pieces.next_if(|piece| self.near[piece.owner]).is_some() {}
        self.pieces.peek().map(|piece| piece.owner)
    }

    /// The next message, of so many bytes at most, after [`Rest::owner`] has said whose it is.
    fn next(&mut self, message_bytes: u64) -> Option<Message> {
        let begin = self.pieces.clone();
        let first = self.pieces.next()?;
        let (mut count, mut content_bytes) = (1, first.bytes);
        // Pieces of one owner follow each other.
        while let Some(piece) = self.pieces.next_if(|piece| {
            let bytes = content_bytes + piece.bytes + (count + 1) * PLACE_BYTES;
            piece.owner == first.owner && bytes <= message_bytes
        }) {
            (count, content_bytes) = (count + 1, content_bytes + piece.bytes);
        }
        let (of, array, direction) = (Arc::clone(&self.of), self.array, self.direction);
        Some(Message { of, array, direction, owner: first.owner, begin, count, content_bytes })
    }
}

/// A part of a transfer: pieces of an array, all of one owner.
pub(crate) struct Message {
    of: Arc<UnderWay>,
    array: u32,
    direction: Direction,
    owner: usize,
    /// The first so many of these.
    begin: Peekable<Pieces>,
    count: u64,
    pub(crate) content_bytes: u64,
}

impl Message {
    fn pieces(&self) -> impl Iterator<Item = Piece> + use<> {
        self.begin.clone().take(self.count as usize)
    }

    /// The message, to be sent under its number; none if nobody waits any more.
    fn encode(&self, number: u64) -> Option<Vec<u8>> {
        let left = lock(&self.of.state);
        if left.over {
            return None;
        }
        let is_put = self.direction == Direction::Write;
        let content = if is_put { self.content_bytes } else { 0 };
        let mut bytes = Vec::with_capacity(17 + (PLACE_BYTES * self.count + content) as usize);
        bytes.push(if is_put { PUT } else { GET });
        bytes.extend(number.to_le_bytes());
        bytes.extend(self.array.to_le_bytes());
        bytes.extend((self.count as u32).to_le_bytes());
        for piece in self.pieces() {
            bytes.extend(piece.offset.to_le_bytes());
            bytes.extend(piece.bytes.to_le_bytes());
        }
        for piece in self.pieces().filter(|_| is_put) {
            // SAFETY: whoever began the transfer vouches for these bytes, which nobody writes, until it is over; it is not, since this
            // holds the lock.
            bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(piece.place, piece.bytes as usize) });
        }
        Some(bytes)
    }
}

/// A transfer of several messages.
pub(crate) struct UnderWay {
    pub(crate) state: Mutex<Left>,
    pub(crate) changed: Condvar,
}

pub(crate) struct Left {
    /// Bytes that were not answered.
    pub(crate) bytes: u64,
    /// Nobody waits any more: nothing may be touched.
    pub(crate) over: bool,
    pub(crate) failed: bool,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The elements of an array that a rank owns.
pub fn owned(elements: u64, rank: usize, ranks: usize) -> Range<u64> {
    let cut = |rank: usize| {
        let exact = (u128::from(elements) * rank as u128 / ranks as u128) as u64;
        match elements / ranks as u64 >= CUT_ELEMENTS && rank < ranks {
            true => exact / CUT_ELEMENTS * CUT_ELEMENTS,
            false => exact,
        }
    };
    cut(rank)..cut(rank + 1)
}

/// Bytes of an array, one of whose owners is asked for: whose they are, where they begin, how many, and where they are in the
/// child.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) owner: usize,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) place: *mut u8,
}

/// A region's bytes by owner, in the order in which they lie densely: so those of one owner follow each other.
#[derive(Clone)]
pub(crate) struct Pieces {
    region: Region,
    shape: Shape,
    element_bytes: u64,
    ranks: usize,
    bytes_max: u64,
    fragments: u64,
    run_bytes: u64,
    /// The next fragment, and what is left of the one before: where it begins and ends.
    fragment: u64,
    left: Range<u64>,
    /// The owner of the piece before, and where its part ends.
    owner: usize,
    end: u64,
    place: *mut u8,
}

// SAFETY: the bytes at `place` are touched only under the lock of the piece's transfer, while that is not over.
unsafe impl Send for Piece {}
// SAFETY: as above.
unsafe impl Send for Pieces {}

impl Pieces {
    pub(crate) fn new(region: &Region, shape: Shape, element_bytes: u64, ranks: usize, place: *mut u8) -> Pieces {
        let (fragments, run) = region.fragments(shape);
        let mut pieces = Pieces {
            region: *region,
            shape,
            element_bytes,
            ranks,
            bytes_max: at_one_owner(ranks).1 as u64 - PLACE_BYTES,
            fragments,
            run_bytes: run * element_bytes,
            fragment: 0,
            left: 0..0,
            owner: 0,
            end: 0,
            place,
        };
        pieces.end = pieces.end_of(0);
        pieces
    }

    fn end_of(&self, owner: usize) -> u64 {
        owned(self.shape.elements(), owner, self.ranks).end * self.element_bytes
    }
}

impl Iterator for Pieces {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        while self.left.is_empty() {
            if self.fragment == self.fragments {
                return None;
            }
            let first = self.region.element(self.fragment * (self.run_bytes / self.element_bytes), self.shape);
            self.left = first * self.element_bytes..first * self.element_bytes + self.run_bytes;
            self.fragment += 1;
        }
        while self.end <= self.left.start && self.owner + 1 < self.ranks {
            self.owner += 1;
            self.end = self.end_of(self.owner);
        }
        let offset = self.left.start;
        // Beyond the last owner's there is nothing.
        let bytes = self.left.end.min(self.end).checked_sub(offset).filter(|&bytes| bytes > 0)?;
        let bytes = bytes.min(self.bytes_max);
        let piece = Piece { owner: self.owner, offset, bytes, place: self.place };
        (self.left.start, self.place) = (offset + bytes, self.place.wrapping_add(bytes as usize));
        Some(piece)
    }
}

/// The first eight bytes, and what is behind them.
fn word(bytes: &[u8]) -> Option<(u64, &[u8])> {
    bytes.split_first_chunk::<8>().map(|(word, rest)| (u64::from_le_bytes(*word), rest))
}

impl Exchange {
    /// Bytes of other ranks' parts of arrays that this process has touched: memory of theirs.
    pub(crate) fn near_bytes(&self) -> u64 {
        let near: Vec<Arc<Share>> = lock(&self.near).values().cloned().collect();
        touched_bytes(near.iter().map(|share| &share.buffer))
    }

    /// Sends what is queued, as far as so many messages may be under way.
    pub(crate) fn send_queued(&self, ranks: usize, send: &dyn Fn(usize, Vec<u8>)) {
        let mut desk = lock(&self.desk);
        if desk.is_sending {
            // An answer that comes while a message is sent, on this thread or another: who sends looks again.
            return;
        }
        desk.is_sending = true;
        let (messages, message_bytes) = at_one_owner(ranks);
        while desk.asked.len() < UNDER_WAY {
            let Some(message) = desk.next(messages, message_bytes as u64) else { break };
            desk.number += 1;
            let number = desk.number;
            let Some(bytes) = message.encode(number) else { continue };
            let owner = message.owner;
            self.moved.fetch_add(message.content_bytes, Ordering::Relaxed);
            desk.asked.insert(number, message);
            drop(desk);
            send(owner, bytes);
            desk = lock(&self.desk);
        }
        desk.is_sending = false;
    }

    /// Serves a message about spread arrays, for one of so many ranks.
    pub(crate) fn deliver(&self, from: usize, kind: u8, bytes: &[u8], ranks: usize, send: &dyn Fn(usize, Vec<u8>)) {
        // What is cut off is no message.
        let _ = match kind {
            GET | PUT => self.serve(kind, bytes).map(|answer| send(from, answer)),
            DATA | STORED => self.answered(kind, bytes).map(|()| self.send_queued(ranks, send)),
            HERE => self.found(from, bytes),
            _ => None,
        };
    }

    /// Maps a part of an array that lies at another rank of this node; where that cannot be, it is asked for by messages.
    fn found(&self, from: usize, bytes: &[u8]) -> Option<()> {
        let (number, rest) = bytes.split_first_chunk::<4>()?;
        let (start, rest) = word(rest)?;
        let (end, place) = word(rest)?;
        let place = SharedPlace::from_bytes(place.try_into().ok()?);
        let buffer = AlignedBuffer::of_other(place, usize::try_from(end.checked_sub(start)?).ok()?)?;
        let share = Arc::new(Share { buffer, bytes: start..end });
        lock(&self.near).insert((u32::from_le_bytes(*number), from), share);
        Some(())
    }

    /// Gives what was asked for, or takes what was sent; an answer that is too short says that it is not there.
    fn serve(&self, kind: u8, bytes: &[u8]) -> Option<Vec<u8>> {
        let (number, rest) = word(bytes)?;
        let (array, rest) = rest.split_first_chunk::<4>()?;
        let (count, rest) = rest.split_first_chunk::<4>()?;
        let (places, mut rest) = rest.split_at_checked(u32::from_le_bytes(*count) as usize * PLACE_BYTES as usize)?;
        let places =
            || places.chunks_exact(PLACE_BYTES as usize).filter_map(|place| word(place).zip(word(&place[8..])));
        let share = lock(&self.shares).get(&u32::from_le_bytes(*array)).cloned();
        let content: u64 = if kind == GET { places().fold(0, |sum, (_, (len, _))| sum.saturating_add(len)) } else { 1 };
        let mut answer = Vec::with_capacity(9 + content.min(MESSAGE_BYTES as u64) as usize);
        answer.push(if kind == GET { DATA } else { STORED });
        answer.extend(number.to_le_bytes());
        let mut all = share.is_some();
        for ((offset, _), (len, _)) in places() {
            let Some(here) = share.as_ref().and_then(|share| share.at(offset, len)) else {
                all = false;
                continue;
            };
            match kind {
                // SAFETY: the bytes lie in this rank's share, which `share` keeps; the plan says that nobody writes them now.
                GET => answer.extend_from_slice(unsafe { std::slice::from_raw_parts(here, len as usize) }),
                _ => {
                    let (content, more) = rest.split_at_checked(len as usize)?;
                    // SAFETY: as above; the plan says that nobody else uses them now.
                    unsafe { here.copy_from_nonoverlapping(content.as_ptr(), content.len()) };
                    rest = more;
                }
            }
        }
        if kind == PUT {
            answer.push(u8::from(all));
        }
        Some(answer)
    }

    /// Puts an answer where it belongs.
    fn answered(&self, kind: u8, bytes: &[u8]) -> Option<()> {
        let (number, mut content) = word(bytes)?;
        let message = lock(&self.desk).asked.remove(&number)?;
        let mut left = lock(&message.of.state);
        left.bytes = left.bytes.saturating_sub(message.content_bytes);
        let needed = if kind == DATA { message.content_bytes } else { 1 };
        left.failed |= content.len() as u64 != needed || kind == STORED && content != [1];
        if kind == DATA && !left.failed && !left.over {
            for piece in message.pieces() {
                let (bytes, rest) = content.split_at(piece.bytes as usize);
                // SAFETY: whoever began the transfer vouches for these bytes, which nobody else uses, until it is over; it is not, since
                // this holds the lock.
                unsafe { piece.place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
                content = rest;
            }
        }
        drop(left);
        message.of.changed.notify_all();
        Some(())
    }
}
