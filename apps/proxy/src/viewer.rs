//! What goes to one viewer: responses, and packets from a place in a feed on.
//!
//! ```text
//! Idle --PLAY--> Waiting for a key --> At a place in the feed --too far behind--> Waiting for a key
//! ```
//! A connection takes what it has room for. Who is too far behind gets the rest of the picture under way, from the batches that all share,
//! and goes on with the latest key.

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A connection with room for what it is told.
    #[derive(Default)]
    struct Narrow {
        room: usize,
        got: Vec<u8>,
    }

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.write_vectored(&[IoSlice::new(bytes)])
        }
        fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
            let before = self.got.len();
            for slice in slices {
                let taken = slice.len().min(self.room);
                self.got.extend_from_slice(&slice[..taken]);
                self.room -= taken;
            }
            if self.got.len() == before { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(self.got.len() - before) }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Frames of what a viewer got: channel and payload.
    fn frames(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
        let mut found = Vec::new();
        while let [b'$', channel, high, low, rest @ ..] = bytes {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            found.push((*channel, rest[..length].to_vec()));
            bytes = &rest[length..];
        }
        assert!(bytes.is_empty(), "what is left is no frame: {bytes:?}");
        found
    }

    /// A camera with keys a quarter of a minute apart, and one without any.
    #[test]
    fn who_waits_begins_at_a_key_where_there_are_such() {
        let now = Instant::now();
        for has_keys in [true, false] {
            let mut feed = Feed::new(1 << 10);
            for number in 0..100 {
                let mut batch = Batch::default();
                batch.frame(0, &[1; 40], number == 0 && has_keys, true);
                feed.push(number, Arc::new(batch));
            }
            let mut out = Outgoing::new(now);
            out.begin(&feed, now, true);
            let at = |out: &mut Outgoing, seconds| {
                out.keep_up(&feed, 1 << 20, now + Duration::from_secs(seconds));
                matches!(out.flow, Flow::At(_))
            };
            assert_eq!([9, 11, 59, 61].map(|seconds| at(&mut out, seconds)), [false, !has_keys, !has_keys, true]);
        }
    }

    /// Who takes nothing is too far behind again and again: of where it went on nothing was sent, so nothing of that has to come.
    #[test]
    fn who_takes_nothing_keeps_nothing() {
        let (mut feed, now) = (Feed::new(4 << 10), Instant::now());
        let (mut out, mut narrow) = (Outgoing::new(now), Narrow { room: 10, got: Vec::new() });
        out.begin(&feed, now, true);
        for number in 0..200 {
            let mut batch = Batch::default();
            // A delimiter comes before what can be decoded.
            batch.frame(0, &[1; 10], false, true);
            batch.frame(0, &[1; 90], true, false);
            batch.fit();
            feed.push(number, Arc::new(batch));
            out.keep_up(&feed, 400, now);
            out.send(&mut narrow, Some(&feed), now).unwrap();
            assert!(out.rest.len() <= 2, "{number}: {}", out.rest.len());
        }
        assert!(out.cut == 10 && matches!(out.flow, Flow::At(cursor) if cursor.batch > 190));
    }

    /// Who asks on while something is always owed costs no memory but that of what is owed.
    #[test]
    fn what_was_said_takes_no_memory() {
        let (mut out, mut narrow, now) = (Outgoing::new(Instant::now()), Narrow::default(), Instant::now());
        out.say(&[0; 100]);
        for _ in 0..20_000 {
            out.say(&[1; 1000]);
            narrow.room = 1000;
            out.send(&mut narrow, None, now).unwrap();
            narrow.got.clear();
            assert_eq!(out.owed(), 100);
        }
        assert!(out.pending.capacity() < 8 << 10, "{}", out.pending.capacity());
    }

    /// A packet or piece that is cut, and the rest of a picture that has to come, take no memory of each viewer.
    #[test]
    fn what_is_begun_is_not_copied() {
        let (mut feed, now) = (Feed::new(4 << 20), Instant::now());
        for (number, is_start) in [true, false, false].into_iter().enumerate() {
            let mut batch = Batch { bytes: vec![number as u8; 1 << 20], entries: Vec::new() };
            batch.piece(false, false);
            batch.entries[0].is_start = is_start;
            feed.push(number as u64, Arc::new(batch));
        }
        let mut out = Outgoing::new(now);
        out.flow = Flow::At(Cursor { batch: 1, entry: 0 });
        let mut narrow = Narrow { room: 1, got: Vec::new() };
        out.send(&mut narrow, Some(&feed), now).unwrap();
        for number in 3..5 {
            let mut batch = Batch { bytes: vec![number as u8; 1 << 10], entries: Vec::new() };
            batch.piece(number == 4, false);
            feed.push(number, Arc::new(batch));
        }
        assert!(out.keep_up(&feed, 1 << 19, now));
        out.say(b"said");
        assert!(out.pending.capacity() < 100 && out.owed() == 4 && !out.is_done());
        narrow.room = usize::MAX;
        out.send(&mut narrow, Some(&feed), now).unwrap();
        assert!(out.is_done());
        let expected = [&vec![1; 1 << 20][..], b"said", &vec![2; 1 << 20], &vec![4; 1 << 10]].concat();
        assert!(narrow.got == expected, "{} {}", narrow.got.len(), expected.len());
    }

    /// The rest of a picture that has to come may be sound between packets, which the viewer does not take.
    #[test]
    fn what_is_for_others_is_no_reason_to_stay() {
        let now = Instant::now();
        for words in [&b"said"[..], b""] {
            let mut batch = Batch::default();
            batch.frame(2, &[1; 4], false, false);
            let mut out = Outgoing::new(now);
            out.channels = Channels::of(&[Some(Way::Channels(0, 1)), None, None, None, None, None, None, None], 2);
            out.rest.push_back((Arc::new(batch), 0..1));
            out.say(words);
            let mut wide = Narrow { room: 1 << 20, got: Vec::new() };
            out.send(&mut wide, None, now).unwrap();
            assert!(wide.got == words && out.is_done(), "{:?}", out.rest);
        }
    }

    /// Who is in the last picture before the key at which it would go on misses nothing.
    #[test]
    fn who_misses_nothing_is_told_of_no_gap() {
        let now = Instant::now();
        for missing in [false, true] {
            let mut feed = Feed::new(1 << 20);
            let kinds = [(true, true), (false, true), (false, false), (false, missing), (true, true)];
            for (number, (is_key, is_start)) in kinds.into_iter().enumerate() {
                let mut batch = Batch::default();
                batch.frame(0, &[number as u8; 1000], is_key, is_start);
                feed.push(number as u64, Arc::new(batch));
            }
            let mut out = Outgoing::new(now);
            out.flow = Flow::At(Cursor { batch: 2, entry: 0 });
            assert_eq!((out.keep_up(&feed, 500, now), out.is_behind_gap), (missing, missing));
            let mut wide = Narrow { room: 1 << 20, got: Vec::new() };
            out.send(&mut wide, Some(&feed), now).unwrap();
            let got: Vec<u8> = frames(&wide.got).iter().map(|(_, bytes)| bytes[0]).collect();
            assert_eq!(got, if missing { vec![2, 4] } else { vec![2, 3, 4] });
        }
    }

    /// Pictures that lead a key refer to what was before it; the first time of each viewer is 0, however narrow its connection.
    #[test]
    fn who_begins_at_a_key_gets_what_can_be_shown() {
        let now = Instant::now();
        // Keys, what leads each, and what trails, each with its time; sound from before the key, and from behind it.
        let fragments = |first: u64| -> Vec<(u8, u32, u64)> {
            (0..3)
                .flat_map(|n| {
                    [0, 1, 2, 3, 4].map(|kind| {
                        (kind, u32::from(kind > 2) + 1, first + 100 * n + u64::from(kind) - 4 * u64::from(kind == 3))
                    })
                })
                .collect()
        };
        let bytes = |(kind, id, time): &(u8, u32, u64), shift: u64| {
            let mut bytes = vec![*kind; 100];
            bytes[44..48].copy_from_slice(&id.to_be_bytes());
            bytes[60..68].copy_from_slice(&(time - shift).to_be_bytes());
            bytes
        };
        let mut feed = Feed::new(1 << 20);
        for (number, fragment) in fragments(1000).iter().enumerate() {
            let mut batch = Batch { bytes: bytes(fragment, 0), entries: Vec::new() };
            batch.piece(fragment.0 == 0, fragment.0 == 1);
            feed.push(number as u64, Arc::new(batch));
        }
        for room in [1, 7, 60, 68, 99, 1 << 20] {
            let mut out = Outgoing::new(now);
            let key = Cursor { batch: 5, entry: 0 };
            (out.flow, out.begins, out.shift) = (Flow::At(key), Some(key), Some([1100, 1100]));
            let mut narrow = Narrow::default();
            while !out.is_done() || out.flow != Flow::At(feed.end()) {
                narrow.room = room;
                out.send(&mut narrow, Some(&feed), now).unwrap();
            }
            // Neither what leads the first nor earlier sound; of the next all.
            let expected = fragments(1000)
                .into_iter()
                .skip(5)
                .filter(|(kind, _, time)| !(*kind == 1 && *time < 1200) && *time >= 1100);
            let expected: Vec<u8> = expected.flat_map(|fragment| bytes(&fragment, 1100)).collect();
            assert!(narrow.got == expected, "{room}: {} {}", narrow.got.len(), expected.len());
        }
    }

    /// A viewer stands at the end of a batch, or takes nothing of most, and many more have come.
    #[test]
    fn batches_of_which_nothing_is_sent_are_passed_over() {
        for (entry, channels) in [(1, Channels::ALL), (0, Channels { to: [None; CHANNELS], is_identity: false })] {
            let (mut feed, now) = (Feed::new(1 << 20), Instant::now());
            for number in 0..3 * SLICES as u64 {
                let mut batch = Batch::default();
                batch.frame(0, &[1; 4], true, true);
                feed.push(number, Arc::new(batch));
            }
            let mut out = Outgoing::new(now);
            (out.flow, out.channels) = (Flow::At(Cursor { batch: 0, entry }), channels);
            let mut wide = Narrow { room: 1 << 20, got: Vec::new() };
            let sent = out.send(&mut wide, Some(&feed), now).unwrap();
            let expected = if entry == 1 { 3 * SLICES - 1 } else { 0 };
            assert_eq!((sent.packets as usize, frames(&wide.got).len()), (expected, expected));
            assert_eq!(out.flow, Flow::At(feed.end()));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(300)) })]

        /// However narrow the connection: a viewer gets whole packets in order, and pictures are left out only from one picture's
        /// beginning to a key.
        #[test]
        fn pictures_are_whole_and_left_out_up_to_keys(
            // Packets of each picture, whether it is a key, and room that the connection gets afterwards.
            pictures in prop::collection::vec((1..5_usize, 0..4_u8, 0..300_usize), 1..60),
            swapped in any::<bool>(), with_audio in any::<bool>(), max in 150..600_u64,
        ) {
            let mut ways = [None; TRACKS_MAX];
            ways[0] = Some(if swapped { Way::Channels(6, 7) } else { Way::Channels(0, 1) });
            ways[1] = with_audio.then_some(Way::Channels(2, 3));
            let (mut feed, now) = (Feed::new(20 * max as usize), Instant::now());
            let mut outgoing = Outgoing::new(now);
            outgoing.channels = Channels::of(&ways, 2);
            outgoing.begin(&feed, now, true);
            let mut connection = Narrow::default();
            let mut all = Vec::new();
            for (number, (packets, kind, room)) in pictures.iter().enumerate() {
                let is_key = *kind == 0;
                // A picture may come in two batches.
                for half in [0..packets / 2, packets / 2..*packets] {
                    let mut batch = Batch::default();
                    for packet in half {
                        batch.frame(0, &[number as u8, packet as u8, 1, 2, 3, 4, 5, 6, 7, 8], is_key && packet == 0, packet == 0);
                        batch.frame(2, &[9; 4], false, false);
                    }
                    let end = feed.end().batch;
                    feed.push(end, Arc::new(batch));
                    outgoing.keep_up(&feed, max, now);
                }
                connection.room += room;
                outgoing.send(&mut connection, Some(&feed), now).unwrap();
                all.push((number as u8, *packets, is_key));
            }
            // In the end there is room for everything; a response comes between packets.
            connection.room = usize::MAX;
            outgoing.say(&[b'$', 99, 0, 0]);
            outgoing.send(&mut connection, Some(&feed), now).unwrap();
            prop_assert!(!outgoing.is_blocked && outgoing.is_done());
            let got = frames(&connection.got);
            prop_assert_eq!(got.iter().filter(|frame| frame.0 == 99).count(), 1);
            prop_assert!(with_audio || got.iter().all(|frame| frame.0 != 2));
            let video: Vec<_> = got.iter().filter(|frame| frame.0 == if swapped { 6 } else { 0 }).map(|f| &f.1).collect();
            let mut expected_next: Option<usize> = None;
            let mut i = 0;
            while i < video.len() {
                let number = usize::from(video[i][0]);
                let (_, packets, is_key) = all[number];
                // Either the next picture, or a key behind a gap.
                prop_assert!(expected_next == Some(number) || is_key, "picture {} comes unexpectedly", number);
                for packet in 0..packets {
                    prop_assert_eq!((video[i + packet][0], video[i + packet][1]), (number as u8, packet as u8));
                }
                i += packets;
                expected_next = Some(number + 1);
            }
        }
    }
}
