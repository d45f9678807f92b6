//! What a stream sent lately, and where each viewer stands in it.
//!
//! Packets that were received together make a [`Batch`]: one piece of memory in which each lies behind its frame of interleaved
//! data, as viewers over TCP get it, so a hundred viewers are served from the same bytes and nothing is copied for any of
//! them. A [`Feed`] is a log of batches that is bounded in bytes. A viewer has no queue but a [`Cursor`] into the log: who is
//! slow costs nothing, and who has fallen too far behind goes on at a later key.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// One packet of a batch, or one piece of another format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it begins in the bytes of its batch, frame included.
    pub start: u32,
    /// Where it ends.
    pub end: u32,
    /// Twice the track's number; one more for RTCP.
    pub channel: u8,
    /// Decoding can begin here.
    pub is_key: bool,
    /// A picture begins here: whoever stops before it stops between pictures.
    pub is_start: bool,
    /// No picture refers to the one that begins here.
    pub is_spare: bool,
    /// It refers to what was before the key that it follows: whoever begins at that key does not get it.
    pub is_leading: bool,
}

impl Entry {
    /// Where it lies.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Bytes of a frame of interleaved data: `$`, the channel, a length of 16 bits.
pub const FRAME: usize = 4;

/// Packets that came together, never changed again.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// All packets, each behind its frame, where they were received: there may be gaps between them.
    pub bytes: Vec<u8>,
    /// Where they lie, in their order.
    pub entries: Vec<Entry>,
}

impl Batch {
    /// Puts a packet at the end, behind a frame of its own; returns its bytes, to be changed in place.
    pub fn frame(&mut self, channel: u8, packet: &[u8], is_key: bool, is_start: bool) -> &mut [u8] {
        let start = self.bytes.len();
        let length = packet.len().min(usize::from(u16::MAX));
        self.bytes.extend_from_slice(&[b'$', channel]);
        self.bytes.extend_from_slice(&(length as u16).to_be_bytes());
        self.bytes.extend_from_slice(&packet[..length]);
        let end = self.bytes.len();
        self.entries.push(Entry {
            start: start as u32,
            end: end as u32,
            channel,
            is_key,
            is_start,
            is_spare: false,
            is_leading: false,
        });
        &mut self.bytes[start + FRAME..]
    }

    /// Takes what lies in the bytes, behind room for its frame; returns its bytes, to be changed in place.
    pub fn enframe(&mut self, channel: u8, range: std::ops::Range<usize>, is_key: bool, is_start: bool) -> &mut [u8] {
        let start = range.start - FRAME;
        let length = (range.len() as u16).to_be_bytes();
        self.bytes[start..range.start].copy_from_slice(&[b'$', channel, length[0], length[1]]);
        self.entries.push(Entry {
            start: start as u32,
            end: range.end as u32,
            channel,
            is_key,
            is_start,
            is_spare: false,
            is_leading: false,
        });
        &mut self.bytes[range]
    }

    /// The last picture that has begun here is one to which none refers.
    pub fn is_spare(&mut self, channel: u8) {
        let begun = self.entries.iter_mut().rev().find(|entry| entry.channel == channel && entry.is_start);
        if let Some(entry) = begun {
            entry.is_spare = true;
        }
    }

    /// Gives back what was reserved and is not needed.
    pub fn fit(&mut self) {
        if self.bytes.capacity() > 2 * self.bytes.len() {
            self.bytes.shrink_to_fit();
        }
        if self.entries.capacity() > 2 * self.entries.len() {
            self.entries.shrink_to_fit();
        }
    }

    /// Bytes of memory that it takes.
    pub fn size(&self) -> u64 {
        let entries = self.entries.capacity() * size_of::<Entry>();
        (self.bytes.capacity() + entries + size_of::<(Batch, [usize; 2], Arc<Batch>, u64)>()) as u64
    }

    /// Sequence number and timestamp of a channel's first packet of RTP.
    pub fn first_of(&self, channel: u8) -> Option<(u16, u32)> {
        let entry = self.entries.iter().find(|entry| entry.channel == channel)?;
        let (header, _) = crate::rtp::parse(&self.bytes[entry.range()][FRAME..])?;
        Some((header.sequence, header.timestamp))
    }

    /// Takes the pieces from that one on.
    pub fn split_off(&mut self, entry: usize) -> Batch {
        let start = self.entries.get(entry).map_or(self.bytes.len(), |first| first.start as usize);
        let mut entries = self.entries.split_off(entry.min(self.entries.len()));
        for entry in &mut entries {
            (entry.start, entry.end) = (entry.start - start as u32, entry.end - start as u32);
        }
        Batch { bytes: self.bytes.split_off(start), entries }
    }

    /// Ends the piece that was written to the end of the bytes.
    pub fn piece(&mut self, is_key: bool, is_leading: bool) {
        let start = self.entries.last().map_or(0, |entry| entry.end);
        let end = self.bytes.len() as u32;
        self.entries.push(Entry { start, end, channel: 0, is_key, is_start: true, is_spare: false, is_leading });
    }
}

/// Some packets of a batch.
pub type Packets = (Arc<Batch>, Range<usize>);

/// A place between two packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// The number of a batch.
    pub batch: u64,
    /// A packet in it.
    pub entry: usize,
}

/// The log of one stream, as one worker has it.
#[derive(Debug)]
pub struct Feed {
    bytes_max: usize,
    /// Batches, and how many bytes were sent before each.
    batches: VecDeque<(Arc<Batch>, u64)>,
    first: u64,
    bytes: u64,
    /// Bytes of memory that they take.
    size: u64,
    keys: VecDeque<Cursor>,
    has_had_keys: bool,
}

impl Feed {
    /// An empty log that takes at most so many bytes of memory, and keeps the last batch.
    pub fn new(bytes_max: usize) -> Feed {
        Feed {
            bytes_max,
            batches: VecDeque::new(),
            first: 0,
            bytes: 0,
            size: 0,
            keys: VecDeque::new(),
            has_had_keys: false,
        }
    }

    /// Puts the batch of that number at the end. Where numbers are missing, what was before is forgotten.
    pub fn push(&mut self, number: u64, batch: Arc<Batch>) {
        if number != self.end().batch {
            self.batches.clear();
            self.keys.clear();
            self.size = 0;
            self.first = number;
        }
        let keys = batch.entries.iter().enumerate().filter(|(_, entry)| entry.is_key);
        self.keys.extend(keys.map(|(entry, _)| Cursor { batch: number, entry }));
        self.has_had_keys |= !self.keys.is_empty();
        let before = self.bytes;
        self.bytes += batch.bytes.len() as u64;
        self.size += batch.size();
        self.batches.push_back((batch, before));
        while self.batches.len() > 1 && self.size > self.bytes_max as u64 {
            self.size -= self.batches.pop_front().map_or(0, |(batch, _)| batch.size());
            self.first += 1;
        }
        while self.keys.front().is_some_and(|key| key.batch < self.first) {
            self.keys.pop_front();
        }
    }

    /// Behind the last packet.
    pub fn end(&self) -> Cursor {
        Cursor { batch: self.first + self.batches.len() as u64, entry: 0 }
    }

    /// The latest place at which decoding can begin.
    pub fn key(&self) -> Option<Cursor> {
        self.keys.back().copied()
    }

    /// Whether there was ever a place at which decoding can begin.
    pub fn has_had_keys(&self) -> bool {
        self.has_had_keys
    }

    /// The first place from one on at which decoding can begin.
    pub fn key_from(&self, cursor: Cursor) -> Option<Cursor> {
        self.keys.get(self.keys.partition_point(|key| *key < cursor)).copied()
    }

    /// Whether a place lies behind a key and before the next one.
    pub fn follows(&self, place: Cursor, key: Cursor) -> bool {
        key < place && self.key_from(Cursor { entry: key.entry + 1, ..key }).is_none_or(|next| place < next)
    }

    /// What is at a place, or the first behind it.
    pub fn at(&self, cursor: Cursor) -> Option<(&Entry, &[u8])> {
        self.from(cursor).find_map(|(number, batch)| {
            let from = if number == cursor.batch { cursor.entry } else { 0 };
            batch.entries.get(from).map(|entry| (entry, &batch.bytes[entry.range()]))
        })
    }

    /// What there is from the latest key on.
    pub fn group(&self) -> Vec<Arc<Batch>> {
        let Some(key) = self.key() else { return Vec::new() };
        let mut group: Vec<Arc<Batch>> = self.from(key).map(|(_, batch)| batch.clone()).collect();
        if let Some(first) = group.first_mut().filter(|_| key.entry > 0) {
            let entries = first.entries[key.entry..].to_vec();
            *first = Arc::new(Batch { bytes: first.bytes.clone(), entries });
        }
        group
    }

    /// How many bytes lie between a place and the end, gaps included; nothing if the place has left the log.
    pub fn behind(&self, cursor: Cursor) -> Option<u64> {
        if cursor >= self.end() {
            return Some(0);
        }
        let (batch, before) = self.batches.get(cursor.batch.checked_sub(self.first)? as usize)?;
        let within = batch.entries.get(cursor.entry).map_or(batch.bytes.len() as u64, |entry| u64::from(entry.start));
        Some(self.bytes - before - within)
    }

    /// The batches from a place on, with their numbers; the first of them from the entry of the place.
    pub fn from(&self, cursor: Cursor) -> impl Iterator<Item = (u64, &Arc<Batch>)> {
        let skipped = cursor.batch.saturating_sub(self.first);
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        (self.first + skipped as u64..).zip(self.batches.iter().skip(skipped).map(|(batch, _)| batch))
    }

    /// Sequence number and timestamp of a channel's first packet of RTP from a place on.
    pub fn first_of(&self, cursor: Cursor, channel: u8) -> Option<(u16, u32)> {
        self.from(cursor).find_map(|(number, batch)| {
            let from = if number == cursor.batch { cursor.entry } else { 0 };
            let entry = batch.entries.iter().skip(from).find(|entry| entry.channel == channel)?;
            let (header, _) = crate::rtp::parse(&batch.bytes[entry.range()][FRAME..])?;
            Some((header.sequence, header.timestamp))
        })
    }

    /// The packets from a place to the next picture, to be sent before somebody leaves out others, and where that begins; nothing if there
    /// is no next picture yet, so these are not all.
    pub fn rest_of_picture(&self, cursor: Cursor) -> Option<(Vec<Packets>, Cursor)> {
        let mut rest = Vec::new();
        for (number, batch) in self.from(cursor) {
            let from = if number == cursor.batch { cursor.entry } else { 0 };
            let next = batch.entries.iter().skip(from).position(|entry| entry.is_start);
            let to = next.map_or(batch.entries.len(), |next| from + next);
            if from < to {
                rest.push((batch.clone(), from..to));
            }
            if next.is_some() {
                return Some((rest, Cursor { batch: number, entry: to }));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_log_is_bounded_and_knows_its_keys() {
        let batch = |key: bool| {
            let mut batch = Batch::default();
            batch.frame(0, &[1; 10], key, true);
            batch.frame(1, &[2; 2], false, false);
            batch.fit();
            Arc::new(batch)
        };
        let mut feed = Feed::new(3 * batch(false).size() as usize);
        assert_eq!((feed.end(), feed.key()), (Cursor { batch: 0, entry: 0 }, None));
        for number in 0..5 {
            feed.push(number, batch(number == 1 || number == 3));
        }
        assert_eq!((feed.first, feed.end().batch), (2, 5));
        assert_eq!(feed.key(), Some(Cursor { batch: 3, entry: 0 }));
        assert_eq!(feed.key_from(Cursor { batch: 1, entry: 1 }), feed.key());
        assert_eq!(feed.key_from(Cursor { batch: 3, entry: 1 }), None);
        assert_eq!(feed.behind(Cursor { batch: 1, entry: 1 }), None);
        assert_eq!(feed.behind(Cursor { batch: 4, entry: 1 }), Some(6));
        assert_eq!(feed.behind(feed.end()), Some(0));
        assert!(feed.rest_of_picture(Cursor { batch: 4, entry: 1 }).is_none());
        let (rest, next) = feed.rest_of_picture(Cursor { batch: 2, entry: 1 }).unwrap();
        assert_eq!((rest.len(), rest[0].1.clone(), next), (1, 1..2, Cursor { batch: 3, entry: 0 }));
        let key = Cursor { batch: 1, entry: 0 };
        let follows = |batch, entry| feed.follows(Cursor { batch, entry }, key);
        assert_eq!(
            [follows(1, 0), follows(1, 1), follows(2, 1), follows(3, 0), follows(4, 0)],
            [false, true, true, false, false]
        );
        // A gap: what was before is no use.
        feed.push(9, batch(false));
        assert_eq!((feed.first, feed.key(), feed.end().batch), (9, None, 10));
    }

    /// Packets that come alone, each where much more had room.
    #[test]
    fn what_is_bounded_is_memory() {
        let mut feed = Feed::new(64 << 10);
        for number in 0..5000 {
            let mut batch = Batch { bytes: Vec::with_capacity(2408), entries: Vec::with_capacity(4) };
            batch.frame(0, &[1; 32], false, true);
            batch.fit();
            feed.push(number, Arc::new(batch));
        }
        let taken: usize =
            feed.batches.iter().map(|(batch, _)| batch.bytes.capacity() + batch.entries.capacity() * 16).sum();
        assert!((20 << 10..=64 << 10).contains(&taken), "{taken}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(100)) })]

        /// From any place that is in the log one reads exactly what was pushed behind it.
        #[test]
        fn what_is_read_is_what_was_pushed(sizes in prop::collection::vec(prop::collection::vec(0..50_usize, 0..5), 1..40), max in 0..2000_usize) {
            let (mut feed, mut all, mut places) = (Feed::new(max), Vec::new(), Vec::new());
            for (number, packets) in sizes.iter().enumerate() {
                let mut batch = Batch::default();
                for (entry, size) in packets.iter().enumerate() {
                    places.push((Cursor { batch: number as u64, entry }, all.len() + batch.bytes.len()));
                    batch.frame(0, &vec![number as u8; *size], false, true);
                }
                all.extend_from_slice(&batch.bytes);
                feed.push(number as u64, Arc::new(batch));
            }
            for (cursor, at) in places {
                let Some(behind) = feed.behind(cursor) else { continue };
                prop_assert_eq!(behind as usize, all.len() - at);
                let mut read = Vec::new();
                for (number, batch) in feed.from(cursor) {
                    let from = if number == cursor.batch { cursor.entry } else { 0 };
                    batch.entries[from..].iter().for_each(|entry| read.extend_from_slice(&batch.bytes[entry.range()]));
                }
                prop_assert_eq!(&read, &all[at..]);
            }
        }
    }
}
