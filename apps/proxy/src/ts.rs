//! MPEG transport streams (ISO/IEC 13818-1): what players take over plain HTTP.
//!
//! Units become packets of 188 bytes, with tables before every key, so a viewer can begin at any of them.

use crate::clock::{Beside, Clock, DecodeOrder};
use crate::feed::{Batch, Cursor, FRAME, Feed};
use crate::instants::Instants;
use crate::picture;
use crate::rtp::Codec;
use crate::sdp::Description;
use crate::seam::END;
use crate::units::{Assembly, Unit};
use std::time::Instant;

/// Ticks a second of its clock.
const CLOCK: u64 = 90_000;
/// How long after it arrives a unit is to be shown: what a player may buffer.
const DELAY: u64 = CLOCK / 2;
/// Tables come at least so often, units.
const TABLES_EVERY: u32 = 40;
const PACKET: usize = 188;
const TABLES: u16 = 0x1000;
const FIRST: u16 = 0x100;

struct Part {
    codec: Codec,
    assembly: Assembly,
    channels: u8,
    clock: Clock,
    order: DecodeOrder,
    counter: u8,
    /// When its last unit was shown, and how late that came.
    last: Option<u64>,
    late: u64,
}

/// A stream that is being made.
pub struct Mux {
    /// By the number of the track.
    parts: Vec<Option<Part>>,
    /// Whose clock all go by, and whose keys count.
    lead: usize,
    counters: [u8; 2],
    since_tables: u32,
    units: Vec<Unit>,
    /// What players were told last of what time it is.
    told: u64,
}

/// Whether something of a source can be put into a transport stream, or fragmented MP4.
pub fn can_hold(description: &Description) -> bool {
    description.tracks.iter().any(|track| Assembly::new(track).is_some())
}

impl Mux {
    /// A stream of the tracks that it can hold.
    pub fn new(description: &Description, now: Instant) -> Mux {
        let part = |track: &crate::sdp::Track| {
            Some(Part {
                codec: track.codec,
                assembly: Assembly::new(track)?,
                channels: track.channels(),
                clock: Clock::new(track.clock_rate, now),
                order: DecodeOrder::new(CLOCK as u32),
                counter: 0,
                last: None,
                late: 0,
            })
        };
        let parts: Vec<Option<Part>> = description.tracks.iter().map(part).collect();
        let is_video = |part: &Option<Part>| part.as_ref().is_some_and(|part| part.codec.is_video());
        let lead = parts.iter().position(is_video).or_else(|| parts.iter().position(Option::is_some)).unwrap_or(0);
        Mux { parts, lead, counters: [0; 2], since_tables: 0, units: Vec::new(), told: 0 }
    }

    /// Takes packets as they came, of a sender that has told this; gives what is complete by now.
    pub fn take(&mut self, batch: &Batch, instants: &Instants, now: Instant) -> Batch {
        let mut out = Batch::default();
        for entry in batch.entries.iter().filter(|entry| entry.channel % 2 == 0) {
            let track = usize::from(entry.channel / 2);
            let mut units = std::mem::take(&mut self.units);
            if let Some(part) = self.parts.get_mut(track).and_then(Option::as_mut) {
                part.assembly.take(&batch.bytes[entry.range()][FRAME..], &mut units);
            }
            for unit in units.drain(..) {
                self.write(track, &unit, instants, now, &mut out);
            }
            self.units = units;
        }
        out
    }

    fn write(&mut self, track: usize, unit: &Unit, instants: &Instants, now: Instant, out: &mut Batch) {
        let (lead, is_lead) = (self.lead, track == self.lead);
        let is_key = unit.is_key && is_lead;
        let other = self.parts[lead].as_ref().map(|part| Beside::of(instants, track, (lead, &part.clock)));
        let Some(part) = self.parts.get_mut(track).and_then(Option::as_mut) else { return };
        let rate = u64::from(part.clock.rate);
        let passed = (u128::from(part.clock.passed(now)) * u128::from(CLOCK) / u128::from(rate)) as u64;
        let Some(time) = part.clock.time(unit.timestamp, now, other.unwrap_or(Beside::Untold)) else { return };
        let time = (u128::from(time) * u128::from(CLOCK) / u128::from(rate)) as u64;
        part.late = passed.saturating_sub(time);
        let mut decoded = time;
        if part.codec.is_video() {
            if unit.is_key && part.codec == Codec::H264 {
                let set = unit.pieces().find(|piece| piece.first().is_some_and(|first| first & 0x1f == 7));
                part.order.deepen(set.and_then(picture::h264).and_then(|facts| facts.depth).unwrap_or(0));
            } else if unit.is_key {
                let set = unit.pieces().find(|piece| piece.first().is_some_and(|first| first >> 1 & 0x3f == 33));
                part.order.deepen(set.and_then(picture::h265).and_then(|facts| facts.depth).unwrap_or(0));
            }
            decoded = part.order.time(time);
        } else if part.last.is_some_and(|last| time <= last && last - time < CLOCK) {
            // Where reports move sound back, what would be heard twice is left out.
            return;
        }
        part.last = Some(time);
        self.since_tables += 1;
        if is_key || self.since_tables > TABLES_EVERY {
            self.since_tables = 0;
            self.tables(&mut out.bytes);
        }
        // No unit comes when players think that its time is over, however late its track is.
        let others = self.parts.iter().enumerate().filter(|(number, _)| *number != lead);
        let late = others.filter_map(|(_, part)| Some(part.as_ref()?.late)).max().unwrap_or(0);
        self.told = self.told.max(passed.saturating_sub(late)).min(decoded);
        let clock = is_lead.then_some(self.told);
        let Some(part) = self.parts.get_mut(track).and_then(Option::as_mut) else { return };
        packets(FIRST + track as u16, part, unit, (time.max(decoded) + DELAY, decoded + DELAY), clock, &mut out.bytes);
        out.piece(is_key, false);
    }

    /// What comes before what was made and lies at a place, where something was left out before it: of each kind of packets it is told that their
    /// counter jumps (section 2.4.3.4), and of H.265 that a sequence has ended.
    pub fn seam(&self, feed: &Feed, place: Cursor) -> Batch {
        let mut kinds: Vec<(u16, u8, bool)> = vec![(0, self.counters[0], false), (TABLES, self.counters[1], false)];
        for (number, part) in self.parts.iter().enumerate() {
            let Some(part) = part else { continue };
            let ends = part.codec == Codec::H265 && number == self.lead && feed.key_from(place) == Some(place);
            kinds.push((FIRST + number as u16, part.counter, ends));
        }
        let mut is_found = vec![false; kinds.len()];
        'all: for (number, batch) in feed.from(place) {
            let from = if number == place.batch { place.entry } else { 0 };
            let start = batch.entries.get(from).map_or(batch.bytes.len(), |entry| entry.start as usize);
            for packet in batch.bytes[start..].chunks_exact(PACKET) {
                let id = u16::from_be_bytes([packet[1], packet[2]]) & 0x1fff;
                if let Some(which) = kinds.iter().position(|kind| kind.0 == id).filter(|which| !is_found[*which]) {
                    (kinds[which].1, is_found[which]) = (packet[3] & 15, true);
                }
                if is_found.iter().all(|is_found| *is_found) {
                    break 'all;
                }
            }
        }
        let mut out = Batch::default();
        for (id, counter, ends) in kinds {
            let payload: &[u8] = if ends { &[0, 0, 0, 1, END[0], END[1]] } else { &[] };
            let field = PACKET - 5 - payload.len();
            out.bytes.push(0x47);
            out.bytes.extend(id.to_be_bytes());
            out.bytes.extend([if ends { 0x30 } else { 0x20 } | (counter.wrapping_sub(1) & 15), field as u8, 0x80]);
            out.bytes.resize(out.bytes.len() + field - 1, 0xff);
            out.bytes.extend(payload);
        }
        out.piece(false, false);
        out
    }

    /// Which programs there are, and what the one of them is made of.
    fn tables(&mut self, out: &mut Vec<u8>) {
        let mut programs = vec![0x00, 0xb0, 13, 0, 1, 0xc1, 0, 0, 0, 1];
        programs.extend((0xe000 | TABLES).to_be_bytes());
        section(0, &mut self.counters[0], programs, out);
        let mut streams = Vec::new();
        for (number, part) in self.parts.iter().enumerate() {
            let Some(part) = part else { continue };
            let (kind, descriptors): (u8, &[u8]) = match part.codec {
                Codec::H264 => (0x1b, &[]),
                Codec::H265 => (0x24, &[]),
                Codec::Aac => (0x0f, &[]),
                // ETSI TS 103 491 takes it over: registered as Opus, with its channels.
                _ => (0x06, &[5, 4, b'O', b'p', b'u', b's', 0x7f, 2, 0x80, part.channels]),
            };
            streams.push(kind);
            streams.extend((0xe000 | (FIRST + number as u16)).to_be_bytes());
            streams.extend((0xf000 | descriptors.len() as u16).to_be_bytes());
            streams.extend_from_slice(descriptors);
        }
        let mut map = vec![0x02];
        map.extend((0xb000 | (13 + streams.len() as u16)).to_be_bytes());
        map.extend([0, 1, 0xc1, 0, 0]);
        map.extend((0xe000 | (FIRST + self.lead as u16)).to_be_bytes());
        map.extend([0xf0, 0]);
        map.extend(streams);
        section(TABLES, &mut self.counters[1], map, out);
    }
}

/// A table in a packet of its own.
fn section(id: u16, counter: &mut u8, mut table: Vec<u8>, out: &mut Vec<u8>) {
    table.extend(crc(&table).to_be_bytes());
    let start = out.len();
    out.push(0x47);
    out.extend((0x4000 | id).to_be_bytes());
    out.extend([0x10 | *counter, 0]);
    *counter = (*counter + 1) & 15;
    out.extend(table);
    out.resize(start + PACKET, 0xff);
}

/// The check sum of tables (ISO/IEC 13818-1, annex A).
fn crc(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8)
            .fold(crc ^ u32::from(*byte) << 24, |crc, _| if crc >> 31 == 1 { crc << 1 ^ 0x04c1_1db7 } else { crc << 1 })
    })
}

/// A time of 33 bits in five bytes, with marker bits and what it is.
fn stamp(kind: u8, time: u64) -> [u8; 5] {
    let bits = |from: u32, count: u32| (time >> from & ((1 << count) - 1)) as u8;
    [kind << 4 | 1 | bits(30, 3) << 1, bits(22, 8), 1 | bits(15, 7) << 1, bits(7, 8), 1 | bits(0, 7) << 1]
}

/// One unit as packets.
fn packets(id: u16, part: &mut Part, unit: &Unit, (shown, decoded): (u64, u64), clock: Option<u64>, out: &mut Vec<u8>) {
    let is_video = part.codec.is_video();
    let mut before = Vec::new();
    match part.codec {
        // Access unit delimiters, which transport streams must have.
        Codec::H264 => before.extend([0, 0, 0, 1, 9, 0xf0]),
        Codec::H265 => before.extend([0, 0, 0, 1, 35 << 1, 1, 0x50]),
        Codec::Opus => {
            before.extend([0x7f, 0xe0]);
            before.extend(std::iter::repeat_n(0xff, unit.bytes.len() / 255));
            before.push((unit.bytes.len() % 255) as u8);
        }
        _ => {}
    }
    let kind = match part.codec {
        Codec::H264 | Codec::H265 => 0xe0,
        Codec::Aac => 0xc0,
        _ => 0xbd,
    };
    let stamps = match shown == decoded {
        true => stamp(2, shown).to_vec(),
        false => [stamp(3, shown), stamp(1, decoded)].concat(),
    };
    let length = before.len() + unit.bytes.len() + 3 + stamps.len();
    let length = u16::try_from(length).ok().filter(|_| !is_video).unwrap_or(0);
    let mut head = vec![0, 0, 1, kind];
    head.extend(length.to_be_bytes());
    head.extend([0x84, if shown == decoded { 0x80 } else { 0xc0 }, stamps.len() as u8]);
    head.extend(stamps);
    head.extend(before);
    let mut rest = head.iter().chain(&unit.bytes).copied();
    let mut left = head.len() + unit.bytes.len();
    let mut is_first = true;
    while left > 0 {
        // The first has the clock and says whether decoding can begin; the last is filled up.
        let mut field = Vec::new();
        if is_first && (clock.is_some() || unit.is_key) {
            field.push(if unit.is_key { 0x40 } else { 0 } | if clock.is_some() { 0x10 } else { 0 });
            if let Some(clock) = clock {
                field.extend(((clock & 0x1_ffff_ffff) << 15 | 0x7e00).to_be_bytes()[2..].iter());
            }
        }
        let mut room = PACKET - 4 - if field.is_empty() { 0 } else { 1 + field.len() };
        let mut has_field = !field.is_empty();
        if left < room {
            let missing = room - left;
            if !has_field {
                has_field = true;
                if missing > 1 {
                    field.push(0);
                    field.resize(missing - 1, 0xff);
                }
            } else {
                field.resize(field.len() + missing, 0xff);
            }
            room = left;
        }
        out.push(0x47);
        out.extend((if is_first { 0x4000 } else { 0 } | id).to_be_bytes());
        out.push(if has_field { 0x30 } else { 0x10 } | part.counter);
        part.counter = (part.counter + 1) & 15;
        if has_field {
            out.push(field.len() as u8);
            out.extend(field);
        }
        out.extend(rest.by_ref().take(room));
        left -= room;
        is_first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn check_sums_are_those_of_the_standard() {
        // The program association table that is printed in many books.
        assert_eq!(crc(&[0x00, 0xb0, 0x0d, 0x00, 0x01, 0xc1, 0x00, 0x00, 0x00, 0x01, 0xf0, 0x00]), 0x2ab1_04b2);
        assert_eq!(stamp(2, 0x1_ffff_ffff), [0x2f, 0xff, 0xff, 0xff, 0xff]);
    }

    /// Sound that comes 0.7 s after its picture is told early enough all the same, and no player's clock goes back.
    #[test]
    fn nothing_comes_when_its_time_is_over() {
        let text = "m=video 0 RTP/AVP 96\na=rtpmap:96 H264/90000\nm=audio 0 RTP/AVP 97\na=rtpmap:97 opus/48000/2\n";
        let description = Description::parse(text.as_bytes()).unwrap();
        let (begun, mut instants) = (Instant::now(), Instants::default());
        let mut mux = Mux::new(&description, begun);
        let (mut clock, mut shown) = (0, 0);
        for number in 0..200_u32 {
            let now = begun + std::time::Duration::from_millis(u64::from(number) * 40);
            if number == 50 {
                for track in 0..2 {
                    let report = [&[0x80, 200, 0, 6, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 0][..], &[0; 12]].concat();
                    instants.hear(track, &description, &report);
                }
            }
            let mut out = Batch::default();
            let unit =
                |timestamp| Unit { timestamp, is_key: true, is_leading: false, bytes: vec![7; 50], starts: Vec::new() };
            mux.write(0, &unit(number * 3600), &instants, now, &mut out);
            mux.write(1, &unit((number * 1920).wrapping_sub(33_600)), &instants, now, &mut out);
            for packet in out.bytes.chunks(PACKET) {
                let bits = |at: usize| u64::from_be_bytes(packet[at..at + 8].try_into().unwrap());
                let has_field = packet[3] & 0x20 != 0 && packet[4] > 0;
                if has_field && packet[5] & 0x10 != 0 {
                    let told = bits(6) >> 31;
                    assert!(told >= clock, "it goes from {clock} to {told}");
                    clock = told;
                }
                let start = if packet[3] & 0x20 != 0 { 5 + usize::from(packet[4]) } else { 4 };
                if packet[1] & 0x40 != 0 && packet[start..start + 3] == [0, 0, 1] {
                    let stamp = bits(start + 9) >> 24;
                    let time = (stamp >> 33 & 7) << 30 | (stamp >> 17 & 0x7fff) << 15 | stamp >> 1 & 0x7fff;
                    assert!(time >= clock, "{time} of {number} at {clock}");
                    shown += 1;
                }
            }
        }
        assert!((370..400).contains(&shown), "{shown}");
    }

    /// Of each kind of packets: its counters go on, or it is told that they do not.
    #[test]
    fn who_goes_on_elsewhere_is_told_of_the_gap() {
        for codec in ["H264", "H265"] {
            let text = format!(
                "m=video 0 RTP/AVP 96\na=rtpmap:96 {codec}/90000\nm=audio 0 RTP/AVP 97\na=rtpmap:97 opus/48000/2\n"
            );
            let (now, mut feed) = (Instant::now(), Feed::new(1 << 20));
            let mut mux = Mux::new(&Description::parse(text.as_bytes()).unwrap(), now);
            for number in 0..40_u32 {
                let mut out = Batch::default();
                let unit = |is_key, size, timestamp| Unit {
                    timestamp,
                    is_key,
                    is_leading: false,
                    bytes: vec![7; size],
                    starts: Vec::new(),
                };
                let none = Instants::default();
                mux.write(0, &unit(number % 10 == 0, 100 + number as usize * 37, number * 3600), &none, now, &mut out);
                // No sound comes behind the last key.
                if number < 30 {
                    mux.write(1, &unit(true, 20, number * 1920), &none, now, &mut out);
                }
                feed.push(u64::from(number), std::sync::Arc::new(out));
            }
            for (left, key) in [(3, 10), (3, 20), (15, 30), (29, 30)] {
                let place = Cursor { batch: key, entry: 0 };
                let seam = mux.seam(&feed, place);
                let upto = |number: u64| number < left || number >= key;
                let sent = feed.from(Cursor { batch: 0, entry: 0 }).filter(|(number, _)| upto(*number));
                let sent =
                    sent.flat_map(|(number, batch)| [(number == key).then_some(&seam.bytes), Some(&batch.bytes)]);
                let (mut counters, mut gaps, mut ends) = ([None; 0x2000], 0, 0);
                for packet in sent.flatten().flat_map(|bytes| bytes.chunks(PACKET)) {
                    assert_eq!((packet.len(), packet[0]), (PACKET, 0x47));
                    let id = usize::from(u16::from_be_bytes([packet[1], packet[2]]) & 0x1fff);
                    let is_told = packet[3] & 0x20 != 0 && packet[4] > 0 && packet[5] & 0x80 != 0;
                    let counts = packet[3] & 0x10 != 0;
                    let next = counters[id].replace(packet[3] & 15).map(|before: u8| (before + u8::from(counts)) & 15);
                    assert!(is_told || next.is_none_or(|next| next == packet[3] & 15), "{id:x} behind {left} at {key}");
                    gaps += u32::from(is_told);
                    if is_told && counts {
                        assert_eq!((packet[1] & 0x40, &packet[182..]), (0, &[0, 0, 0, 1, 72, 1][..]));
                        ends += 1;
                    }
                }
                assert_eq!((gaps, ends), (4, u32::from(codec == "H265")));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(200)) })]

        /// Every packet has 188 bytes, counters go on, and what is taken apart again is what was put in.
        #[test]
        fn units_survive(sizes in prop::collection::vec((1..2000_usize, any::<bool>()), 1..20)) {
            let text = "m=video 0 RTP/AVP 96\na=rtpmap:96 H264/90000\n";
            let description = Description::parse(text.as_bytes()).unwrap();
            let now = Instant::now();
            let mut mux = Mux::new(&description, now);
            let mut out = Batch::default();
            let units: Vec<Unit> = sizes.iter().enumerate().map(|(i, (size, is_key))| {
                Unit { timestamp: i as u32 * 3600, is_key: *is_key, is_leading: false, bytes: vec![i as u8 + 1; *size], starts: Vec::new() }
            }).collect();
            units.iter().for_each(|unit| mux.write(0, unit, &Instants::default(), now, &mut out));
            prop_assert_eq!(out.entries.len(), units.len());
            let (mut found, mut counter): (Vec<Vec<u8>>, u8) = (Vec::new(), 0);
            for packet in out.bytes.chunks(PACKET) {
                prop_assert_eq!((packet.len(), packet[0]), (PACKET, 0x47));
                if u16::from_be_bytes([packet[1], packet[2]]) & 0x1fff != FIRST { continue }
                prop_assert_eq!(packet[3] & 15, counter);
                counter = (counter + 1) & 15;
                let start = if packet[3] & 0x20 != 0 { 5 + usize::from(packet[4]) } else { 4 };
                if packet[1] & 0x40 != 0 {
                    prop_assert_eq!(&packet[start..start + 4], &[0, 0, 1, 0xe0]);
                    found.push(packet[start + 14 + 6..].to_vec());
                } else {
                    found.last_mut().unwrap().extend_from_slice(&packet[start..]);
                }
            }
            prop_assert_eq!(found, units.iter().map(|unit| unit.bytes.clone()).collect::<Vec<_>>());
        }
    }
}
