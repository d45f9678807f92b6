//! What goes to one viewer: responses, and packets from a place in a feed on.
//!
//! ```text
//! Idle --PLAY--> Waiting for a key --> At a place in the feed --too far behind--> Waiting for a key
//! ```
//! A connection takes what it has room for; the rest of a packet that was cut is kept, nothing else. Who is too far behind gets
//! the rest of the picture under way and goes on with the latest key.

use crate::feed::{Cursor, Entry, FRAME, Feed};
use crate::sdp::TRACKS_MAX;
use crate::session::Way;
use std::io::{self, IoSlice, Write};
use std::time::{Duration, Instant};

/// Channels of a batch: two for each track.
pub const CHANNELS: usize = 2 * TRACKS_MAX;

/// Pieces of memory given to the system at once; it takes up to 1024.
const SLICES: usize = 512;

/// How much of a log a viewer may be behind: a batch that comes pushes nothing out that somebody still needs.
pub fn behind_max(log_bytes: usize) -> u64 {
    log_bytes as u64 / 2
}

/// Where no key comes for so long, a viewer begins anywhere: some cameras never send one.
pub const KEY_PATIENCE: Duration = Duration::from_secs(10);

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
    /// What comes first: responses, and what is left of a packet.
    pending: Vec<u8>,
    begun: usize,
    /// What comes then.
    pub flow: Flow,
    /// As what.
    pub channels: Channels,
    /// Whether the connection had no room.
    pub is_blocked: bool,
    /// Where it goes on after it was too far behind, as long as nothing was sent from there.
    resumes: Option<Cursor>,
    /// When it last took something.
    pub moved: Instant,
}

/// A piece of what is sent next.
enum Piece<'a> {
    /// A frame for another channel than the one in the batch.
    Frame([u8; FRAME]),
    /// Bytes of a batch, and which of them.
    Bytes(&'a [u8], std::ops::Range<usize>),
}

impl Outgoing {
    /// Nothing to send yet.
    pub fn new(now: Instant) -> Outgoing {
        Outgoing {
            pending: Vec::new(),
            begun: 0,
            flow: Flow::Idle,
            channels: Channels::ALL,
            is_blocked: false,
            resumes: None,
            moved: now,
        }
    }

    /// Sends this first.
    pub fn say(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// Bytes that come before anything of the feed.
    pub fn owed(&self) -> usize {
        self.pending.len() - self.begun
    }

    /// Begins with the latest key, or the next.
    pub fn begin(&mut self, feed: &Feed, now: Instant, from_the_log: bool) {
        self.flow = match feed.key().filter(|_| from_the_log) {
            Some(key) => Flow::At(key),
            None => Flow::Waiting(feed.end(), now),
        };
    }

    /// Looks whether the viewer is too far behind, and lets it go on later if so; whether it was.
    pub fn keep_up(&mut self, feed: &Feed, bytes_max: u64, now: Instant) -> bool {
        match self.flow {
            Flow::Waiting(from, since) => {
                if let Some(key) = feed.key_from(from) {
                    self.flow = Flow::At(key);
                } else if now.saturating_duration_since(since) > KEY_PATIENCE {
                    self.flow = Flow::At(feed.end());
                }
                false
            }
            Flow::At(cursor) => {
                let behind = feed.behind(cursor);
                if behind.is_some_and(|bytes| bytes <= bytes_max) {
                    return false;
                }
                if behind.is_some() && self.resumes != Some(cursor) {
                    let (before, pending, channels) = (self.pending.len(), &mut self.pending, &self.channels);
                    if !feed.rest_of_picture(cursor, |bytes, entry| append(pending, channels, bytes, entry)) {
                        // One picture that is larger than what is allowed: it is left whole as long as the log has it.
                        pending.truncate(before);
                        return false;
                    }
                }
                self.resumes = feed.key().filter(|key| *key > cursor);
                self.flow = match self.resumes {
                    Some(key) => Flow::At(key),
                    None => Flow::Waiting(feed.end(), now),
                };
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
            let waiting = &self.pending[self.begun..];
            let (head, cursor) = (waiting.len(), if let Flow::At(cursor) = self.flow { Some(cursor) } else { None });
            let mut pieces = Vec::new();
            let mut end = cursor;
            if let Some((feed, cursor)) = feed.zip(cursor) {
                end = Some(self.gather(feed, cursor, &mut pieces));
            }
            if head == 0 && pieces.is_empty() {
                if let Some(end) = end {
                    self.flow = Flow::At(end);
                }
                self.is_blocked = false;
                return Ok(sent);
            }
            let mut slices = Vec::with_capacity(1 + pieces.len());
            if head > 0 {
                slices.push(IoSlice::new(waiting));
            }
            slices.extend(pieces.iter().map(|piece| match piece {
                Piece::Frame(frame) => IoSlice::new(frame),
                Piece::Bytes(batch, range) => IoSlice::new(&batch[range.clone()]),
            }));
            let all: usize = slices.iter().map(|slice| slice.len()).sum();
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
            self.begun += written.min(head);
            if self.begun == self.pending.len() {
                self.pending.clear();
                self.begun = 0;
            }
            if let (Some(feed), Some(from), Some(end)) = (feed, cursor, end) {
                sent.packets += self.advance(feed, from, end, written - written.min(head));
            }
            if written < all {
                self.is_blocked = true;
                return Ok(sent);
            }
        }
    }

    /// What is to be sent from a place on, and the place behind it.
    fn gather<'a>(&self, feed: &'a Feed, cursor: Cursor, pieces: &mut Vec<Piece<'a>>) -> Cursor {
        let mut end = cursor;
        for (number, batch) in feed.from(cursor) {
            let from = if number == cursor.batch { cursor.entry } else { 0 };
            if pieces.len() >= SLICES {
                return end;
            }
            for (index, entry) in batch.entries.iter().enumerate().skip(from) {
                if pieces.len() >= SLICES {
                    return Cursor { batch: number, entry: index };
                }
                match self.channels.get(entry) {
                    None => {}
                    Some(to) if to == entry.channel => match pieces.last_mut() {
                        Some(Piece::Bytes(last, range))
                            if std::ptr::eq(*last, batch.bytes.as_slice()) && range.end == entry.start as usize =>
                        {
                            range.end = entry.end as usize;
                        }
                        _ => pieces.push(Piece::Bytes(&batch.bytes, entry.range())),
                    },
                    Some(to) => {
                        let frame = &batch.bytes[entry.range()][..FRAME];
                        pieces.push(Piece::Frame([b'$', to, frame[2], frame[3]]));
                        pieces.push(Piece::Bytes(&batch.bytes, entry.start as usize + FRAME..entry.end as usize));
                    }
                }
            }
            end = Cursor { batch: number + 1, entry: 0 };
        }
        end
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
                if self.channels.get(entry).is_none() {
                    continue;
                }
                let length = entry.range().len();
                if bytes == 0 {
                    self.flow = Flow::At(Cursor { batch: number, entry: index });
                    return packets;
                }
                packets += 1;
                if bytes < length {
                    let mut wire = Vec::with_capacity(length);
                    append(&mut wire, &self.channels, &batch.bytes[entry.range()], entry);
                    self.pending.extend_from_slice(&wire[bytes..]);
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

/// A packet as a viewer gets it.
fn append(to: &mut Vec<u8>, channels: &Channels, bytes: &[u8], entry: &Entry) {
    let Some(channel) = channels.get(entry) else { return };
    let start = to.len();
    to.extend_from_slice(bytes);
    if !channels.is_identity && bytes.len() >= FRAME {
        to[start + 1] = channel;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::Batch;
    use proptest::prelude::*;
    use std::sync::Arc;

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
            prop_assert!(!outgoing.is_blocked && outgoing.owed() == 0);
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
