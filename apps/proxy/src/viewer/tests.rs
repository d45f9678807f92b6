//! A viewer over logs, without sockets.

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
