//! What goes to one viewer: responses, and packets from a place in a feed on.
//!
//! ```text
//! Idle --PLAY--> Waiting for a key --> At a place in the feed --too far behind--> Waiting for a key
//! ```
//! A connection takes what it has room for. Who is too far behind gets the rest of the picture under way, from the batches that all share,
//! and goes on with the latest key.

#[cfg(test)]
mod tests;

use crate::feed::{Batch, Cursor, Entry, FRAME, Feed, Packets};
use crate::mp4::{self, PARTS, TIME, TIME_BYTES};
use crate::sdp::TRACKS_MAX;
use crate::session::Way;
use bytes::{Buf, BytesMut};
use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Channels of a batch: two for each track.
pub const CHANNELS: usize = 2 * TRACKS_MAX;

/// Pieces of memory given to the system at once; it takes up to 1024.
const SLICES: usize = 512;

/// How much of a log a viewer may be behind: a batch that comes pushes nothing out that somebody still needs.
pub fn behind_max(log_bytes: usize) -> u64 {
    log_bytes as u64 / 2
}

/// Where no key comes for so long, a viewer begins anywhere: some cameras never send one. Of those that have, the next may be away for longer.
pub const KEY_PATIENCE: Duration = Duration::from_secs(10);
const NEXT_KEY_PATIENCE: Duration = Duration::from_secs(60);

/// Which channel of a batch goes out as which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    to: [Option<u8>; CHANNELS],
    is_identity: bool,
}

impl Channels {
    /// All as they are.
    pub const ALL: Channels = Channels { to: [None; CHANNELS], is_identity: true };

    /// As a viewer has set them up, of a stream with so many tracks.
    pub fn of(ways: &[Option<Way>; TRACKS_MAX], tracks: usize) -> Channels {
        let mut to = [None; CHANNELS];
        for (track, way) in ways.iter().enumerate() {
            (to[2 * track], to[2 * track + 1]) = match way {
                Some(Way::Channels(a, b)) => (Some(*a), Some(*b)),
                // Each track's own, so that one can tell them apart.
                Some(Way::Ports(..)) => (Some(2 * track as u8), Some(2 * track as u8 + 1)),
                None => (None, None),
            };
        }
        let is_identity = to.iter().take(2 * tracks).enumerate().all(|(from, to)| *to == Some(from as u8));
        Channels { to, is_identity }
    }

    /// Where a packet goes, if it does.
    pub fn get(&self, entry: &Entry) -> Option<u8> {
        if self.is_identity { Some(entry.channel) } else { self.to.get(usize::from(entry.channel)).copied().flatten() }
    }
}

/// What a viewer gets of its feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Nothing.
    Idle,
    /// Nothing until there is a key at this place or later.
    Waiting(Cursor, Instant),
    /// Everything from here on.
    At(Cursor),
}

/// Numbers of what was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets that were begun.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// What goes out on one connection.
#[derive(Debug)]
pub struct Outgoing {
    /// What comes first: responses.
    pending: BytesMut,
    /// What comes then, whatever is left out: packets of batches, of the first of which so many bytes are sent, which before anything
    /// else goes on.
    rest: VecDeque<Packets>,
    cut: usize,
    /// What comes then.
    pub flow: Flow,
    /// As what.
    pub channels: Channels,
    /// Whether the connection had no room.
    pub is_blocked: bool,
    /// The key at which it began, or went on after it was too far behind.
    begins: Option<Cursor>,
    /// What is taken from the times of fragments, by track: for each viewer they begin at 0.
    pub shift: Option<[u64; PARTS]>,
    /// What comes next does not follow what came.
    pub is_behind_gap: bool,
    /// What tells that, of the last gap.
    seam: Option<Arc<Batch>>,
    /// When it last took something.
    pub moved: Instant,
}

/// A piece of what is sent next.
enum Piece<'a> {
    /// What stands for this viewer in the place of bytes of the batch, such as a frame for another channel.
    Own([u8; TIME_BYTES], Range<usize>),
    /// Bytes of a batch, and which of them.
    Bytes(&'a [u8], Range<usize>),
}

impl Piece<'_> {
    fn slice(&self) -> IoSlice<'_> {
        match self {
            Piece::Own(own, range) => IoSlice::new(&own[range.clone()]),
            Piece::Bytes(batch, range) => IoSlice::new(&batch[range.clone()]),
        }
    }
}

impl Outgoing {
    /// Nothing to send yet.
    pub fn new(now: Instant) -> Outgoing {
        Outgoing {
            pending: BytesMut::new(),
            rest: VecDeque::new(),
            cut: 0,
            flow: Flow::Idle,
            channels: Channels::ALL,
            is_blocked: false,
            begins: None,
            shift: None,
            is_behind_gap: false,
            seam: None,
            moved: now,
        }
    }

    /// Sends this first.
    pub fn say(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// Bytes of responses that are not sent.
    pub fn owed(&self) -> usize {
        self.pending.len()
    }

    /// Whether nothing has to come but what is new.
    pub fn is_done(&self) -> bool {
        self.owed() == 0 && self.rest.is_empty()
    }

    /// Begins with the latest key, or the next.
    pub fn begin(&mut self, feed: &Feed, now: Instant, from_the_log: bool) {
        self.begins = feed.key().filter(|_| from_the_log);
        self.flow = self.begins.map_or(Flow::Waiting(feed.end(), now), Flow::At);
    }

    /// What comes next does not follow what came: that is told first, instead of what was to be told of a gap before.
    pub fn join(&mut self, seam: Batch) {
        let is_untold = self.rest.len() > usize::from(self.cut > 0);
        if let (Some((last, _)), Some(before)) = (self.rest.back(), &self.seam)
            && is_untold
            && Arc::ptr_eq(last, before)
        {
            self.rest.pop_back();
        }
        let (all, seam) = (0..seam.entries.len(), Arc::new(seam));
        self.seam = Some(seam.clone());
        self.rest.push_back((seam, all));
    }

    /// Looks whether the viewer is too far behind, and lets it go on later if so; whether it was.
    pub fn keep_up(&mut self, feed: &Feed, bytes_max: u64, now: Instant) -> bool {
        match self.flow {
            Flow::Waiting(from, since) => {
                if let Some(key) = feed.key_from(from) {
                    (self.flow, self.begins) = (Flow::At(key), Some(key));
                } else if now.saturating_duration_since(since)
                    > if feed.has_had_keys() { NEXT_KEY_PATIENCE } else { KEY_PATIENCE }
                {
                    self.flow = Flow::At(feed.end());
                }
                false
            }
            Flow::At(cursor) => {
                let behind = feed.behind(cursor);
                if behind.is_some_and(|bytes| bytes <= bytes_max) {
                    return false;
                }
                let key = feed.key().filter(|key| *key > cursor);
                if behind.is_some() && self.begins != Some(cursor) {
                    // One picture that is larger than what is allowed: it is left whole as long as the log has it.
                    let Some((rest, next)) = feed.rest_of_picture(cursor) else { return false };
                    self.rest.extend(rest);
                    if key == Some(next) {
                        // Nothing is left out.
                        self.flow = Flow::At(next);
                        return false;
                    }
                }
                (self.begins, self.is_behind_gap) = (key, true);
                self.flow = key.map_or(Flow::Waiting(feed.end(), now), Flow::At);
                true
            }
            Flow::Idle => false,
        }
    }

    /// Sends as much as the connection has room for.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn send(&mut self, socket: &mut impl Write, feed: Option<&Feed>, now: Instant) -> io::Result<Sent> {
        let mut sent = Sent::default();
        loop {
            let cursor = if let Flow::At(cursor) = self.flow { Some(cursor) } else { None };
            let (mut first, mut pieces, mut end) = (Vec::new(), Vec::new(), cursor);
            if self.cut > 0
                && let Some((batch, index)) = self.rest.front().map(|(batch, entries)| (batch, entries.start))
            {
                self.pieces(batch, index, self.cut, &mut first);
            }
            let is_all = self.gather_rest(&mut pieces);
            if let Some((feed, cursor)) = feed.zip(cursor).filter(|_| is_all) {
                end = Some(self.gather(feed, cursor, &mut pieces));
            }
            let responses = &self.pending[..];
            if responses.is_empty() && first.is_empty() && pieces.is_empty() {
                (self.flow, self.is_blocked) = (end.map_or(self.flow, Flow::At), false);
                // What may be left is for other viewers.
                self.rest.clear();
                return Ok(sent);
            }
            let mut slices: Vec<IoSlice<'_>> = first.iter().map(Piece::slice).collect();
            let begun: usize = slices.iter().map(|slice| slice.len()).sum();
            slices.extend(Some(responses).filter(|bytes| !bytes.is_empty()).map(IoSlice::new));
            slices.extend(pieces.iter().map(Piece::slice));
            let (all, owed) = (slices.iter().map(|slice| slice.len()).sum::<usize>(), responses.len());
            let written = match socket.write_vectored(&slices) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => written,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.is_blocked = true;
                    return Ok(sent);
                }
                Err(e) => return Err(e),
            };
            self.moved = now;
            sent.bytes += written as u64;
            let mut left = written;
            if begun > 0 {
                self.advance_rest(1, &mut left);
            }
            let said = left.min(owed);
            self.pending.advance(said);
            left -= said;
            if left > 0 {
                sent.packets += self.advance_rest(usize::MAX, &mut left);
            }
            if let (Some(feed), Some(from), Some(end)) = (feed, cursor, end)
                && self.rest.is_empty()
            {
                sent.packets += self.advance(feed, from, end, left);
            }
            if written < all {
                self.is_blocked = true;
                return Ok(sent);
            }
        }
    }

    /// What a packet is sent as, from so many of its bytes on.
    fn pieces<'a>(&self, batch: &'a Batch, index: usize, cut: usize, pieces: &mut Vec<Piece<'a>>) {
        let entry = &batch.entries[index];
        // What was begun is ended.
        let to = self.channels.get(entry).or((cut > 0).then_some(entry.channel));
        let mut start = entry.start as usize + cut;
        let fragment = self.shift.zip(mp4::time(&batch.bytes[entry.range()]));
        if let Some((shift, (track, time))) = fragment.filter(|_| to.is_some() && cut < TIME + TIME_BYTES) {
            let at = entry.start as usize + TIME;
            if start < at {
                pieces.push(Piece::Bytes(&batch.bytes, start..at));
            }
            pieces.push(Piece::Own(
                time.saturating_sub(shift[track]).to_be_bytes(),
                start.saturating_sub(at)..TIME_BYTES,
            ));
            start = at + TIME_BYTES;
        }
        match to {
            None => {}
            Some(to) if to == entry.channel => match pieces.last_mut() {
                Some(Piece::Bytes(last, range))
                    if std::ptr::eq(*last, batch.bytes.as_slice()) && range.end == start =>
                {
                    range.end = entry.end as usize;
                }
                _ => pieces.push(Piece::Bytes(&batch.bytes, start..entry.end as usize)),
            },
            Some(to) => {
                let frame = &batch.bytes[entry.range()][..FRAME];
                if cut < FRAME {
                    pieces.push(Piece::Own([b'$', to, frame[2], frame[3], 0, 0, 0, 0], cut..FRAME));
                }
                pieces.push(Piece::Bytes(&batch.bytes, start.max(entry.start as usize + FRAME)..entry.end as usize));
            }
        }
    }

    /// Whether what lies in the log is left out for this viewer alone: what leads the key at which it began, and sound from before that.
    fn skips(&self, feed: &Feed, place: Cursor, batch: &Batch) -> bool {
        let entry = &batch.entries[place.entry];
        let is_early = || {
            let (shift, (track, time)) = self.shift.zip(mp4::time(&batch.bytes[entry.range()]))?;
            Some(time < shift[track])
        };
        let leads = entry.is_leading && self.begins.is_some_and(|key| feed.follows(place, key));
        leads || is_early().unwrap_or(false)
    }

    /// What has to come, behind what was begun; whether that is all of it.
    fn gather_rest<'a>(&'a self, pieces: &mut Vec<Piece<'a>>) -> bool {
        let mut skipped = usize::from(self.cut > 0);
        for (batch, entries) in &self.rest {
            for index in entries.clone() {
                if std::mem::take(&mut skipped) > 0 {
                    continue;
                }
                if pieces.len() >= SLICES {
                    return false;
                }
                self.pieces(batch, index, 0, pieces);
            }
        }
        true
    }

    /// What is to be sent from a place on, and the place behind it.
    fn gather<'a>(&self, feed: &'a Feed, cursor: Cursor, pieces: &mut Vec<Piece<'a>>) -> Cursor {
        let mut end = cursor;
        for (number, batch) in feed.from(cursor) {
            let from = if number == cursor.batch { cursor.entry } else { 0 };
            if pieces.len() >= SLICES {
                return end;
            }
            for index in from..batch.entries.len() {
                let place = Cursor { batch: number, entry: index };
                if pieces.len() >= SLICES {
                    return place;
                }
                if !self.skips(feed, place, batch) {
                    self.pieces(batch, index, 0, pieces);
                }
            }
            end = Cursor { batch: number + 1, entry: 0 };
        }
        end
    }

    /// Goes on by so many bytes of what has to come, over so many packets at most. Returns how many were begun.
    fn advance_rest(&mut self, most: usize, bytes: &mut usize) -> u64 {
        let mut packets = 0;
        for _ in 0..most {
            let Some((batch, entries)) = self.rest.front_mut() else { break };
            let Some(entry) = batch.entries.get(entries.start).filter(|_| entries.start < entries.end) else {
                self.rest.pop_front();
                continue;
            };
            let is_for = self.cut > 0 || self.channels.get(entry).is_some();
            let length = if is_for { entry.range().len() - self.cut } else { 0 };
            if is_for && *bytes == 0 {
                break;
            }
            packets += u64::from(is_for && self.cut == 0);
            if *bytes < length {
                self.cut += std::mem::take(bytes);
                break;
            }
            *bytes -= length;
            (self.cut, entries.start) = (0, entries.start + 1);
            if entries.start >= entries.end {
                self.rest.pop_front();
            }
        }
        packets
    }

    /// Goes on by so many bytes of what [`Outgoing::gather`] found up to `end`; what is left of a packet that was cut comes first
    /// from now on. Returns how many packets were begun.
    fn advance(&mut self, feed: &Feed, from: Cursor, end: Cursor, mut bytes: usize) -> u64 {
        let mut packets = 0;
        for (number, batch) in feed.from(from) {
            let first = if number == from.batch { from.entry } else { 0 };
            let last = if number == end.batch { end.entry } else { batch.entries.len() };
            if number > end.batch || (number == end.batch && end.entry == 0) {
                break;
            }
            for index in first..last {
                let entry = &batch.entries[index];
                let place = Cursor { batch: number, entry: index };
                if self.channels.get(entry).is_none() || self.skips(feed, place, batch) {
                    continue;
                }
                let length = entry.range().len();
                if bytes == 0 {
                    self.flow = Flow::At(place);
                    return packets;
                }
                packets += 1;
                if bytes < length {
                    self.rest.push_back((batch.clone(), index..index + 1));
                    self.cut = bytes;
                    self.flow = Flow::At(Cursor { batch: number, entry: index + 1 });
                    return packets;
                }
                bytes -= length;
            }
        }
        self.flow = Flow::At(end);
        packets
    }
}
