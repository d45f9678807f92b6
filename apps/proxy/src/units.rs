//! Packets put together: access units of video, frames of audio (RFC 6184, RFC 7798, RFC 3640, RFC 7587).
//!
//! A unit of which a packet is missing ([`Gaps`]) is left out, whole, and no other: what refers to it does not come here
//! ([`passage`](crate::passage)). A key without parameters behind a gap has lost them, if its sender has given others with their keys, or
//! none in the description.
//!
//! Units are as MPEG transport streams hold them: video with start codes
//! and, at a key, with its parameters; AAC with ADTS headers.

use crate::gaps::Gaps;
use crate::rtp::{self, Codec, aggregated};
use crate::sdp::Track;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Bytes of a unit at most; what is larger is left out.
const UNIT_MAX: usize = 8 << 20;

/// What is decoded at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// In ticks of the track's clock.
    pub timestamp: u32,
    /// Decoding can begin here.
    pub is_key: bool,
    /// It refers to what was before the key that it follows.
    pub is_leading: bool,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Of video: where start codes are.
    pub starts: Vec<u32>,
}

impl Unit {
    fn new(timestamp: u32, is_key: bool, bytes: Vec<u8>) -> Unit {
        Unit { timestamp, is_key, is_leading: false, bytes, starts: Vec::new() }
    }

    /// What video is made of, without start codes.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.starts.iter().enumerate().filter_map(|(i, start)| {
            let end = self.starts.get(i + 1).map_or(self.bytes.len(), |end| *end as usize);
            self.bytes.get(*start as usize + START.len()..end)
        })
    }
}

/// The packets of one track, as they come in order.
#[derive(Debug)]
pub struct Assembly {
    codec: Codec,
    /// Parameters of the video as the description told them, or the last key.
    parameters: Vec<Vec<u8>>,
    /// Of AAC: profile, index of the sampling rate, channels.
    adts: (u8, u8, u8),
    /// Of AAC: all that decoders have to know.
    config: Vec<u8>,
    clock_rate: u32,
    gaps: Gaps,
    unit: Unit,
    is_damaged: bool,
    has_parameters: bool,
    /// Something is missing before the unit.
    is_behind_gap: bool,
    /// The last key had lost its parameters.
    awaits_key: bool,
    /// The sender was seen to give parameters with keys.
    gives_parameters: bool,
}

/// Parameter sets of a description at most.
const SETS_MAX: usize = 48;
/// Bytes of one at most: more than any encoder makes.
pub const SET_BYTES_MAX: usize = 4096;

const START: [u8; 4] = [0, 0, 0, 1];

/// Sampling rates by their index (ISO/IEC 14496-3, table 1.18).
const RATES: [u32; 13] = [96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350];

/// What the description says of parameters.
pub fn parameters(track: &Track) -> Vec<Vec<u8>> {
    let names = ["sprop-parameter-sets", "sprop-vps", "sprop-sps", "sprop-pps"];
    let sets = names.iter().filter_map(|name| track.parameter(name)).flat_map(|sets| sets.split(','));
    let decoded = sets.take(SETS_MAX).filter_map(|set| STANDARD.decode(set.trim()).ok());
    decoded.filter(|set| !set.is_empty() && set.len() <= SET_BYTES_MAX).collect()
}

/// What the description says of AAC (ISO/IEC 14496-3, AudioSpecificConfig).
fn audio(track: &Track) -> Option<(u8, u8, u8)> {
    let config = track.parameter("config")?;
    let config = u16::from_str_radix(config.get(..4)?, 16).ok()?;
    let (object, rate, channels) = ((config >> 11) as u8, (config >> 7 & 15) as u8, (config >> 3 & 15) as u8);
    ((1..=4).contains(&object) && usize::from(rate) < RATES.len() && (1..=7).contains(&channels))
        .then(|| (object - 1, rate, channels))
}

/// Bytes of hexadecimal digits; those before what is none.
fn unhexed(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().map_while(|c| c.to_digit(16)).map(|digit| digit as u8).take(128).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

impl Assembly {
    /// A track that can be put together; nothing if it cannot.
    pub fn new(track: &Track) -> Option<Assembly> {
        let adts = match track.codec {
            Codec::Aac => {
                let is_plain =
                    track.parameter("sizelength") == Some("13") && track.parameter("indexlength") == Some("3");
                audio(track).filter(|_| is_plain)?
            }
            Codec::Other => return None,
            _ => (0, 0, 0),
        };
        let parameters = parameters(track);
        Some(Assembly {
            codec: track.codec,
            parameters,
            adts,
            config: track.parameter("config").map(unhexed).unwrap_or_default(),
            clock_rate: track.clock_rate,
            gaps: Gaps::default(),
            unit: Unit::new(0, false, Vec::new()),
            is_damaged: false,
            has_parameters: false,
            is_behind_gap: false,
            awaits_key: false,
            gives_parameters: false,
        })
    }

    /// Parameters of the video as the description told them.
    pub fn parameters(&self) -> &[Vec<u8>] {
        &self.parameters
    }

    /// Of AAC: channels, as they are encoded.
    pub fn channels(&self) -> Option<u8> {
        (self.codec == Codec::Aac).then_some(if self.adts.2 == 7 { 8 } else { self.adts.2 })
    }

    /// Of AAC: all that decoders have to know (AudioSpecificConfig).
    pub fn config(&self) -> &[u8] {
        &self.config
    }

    /// Takes a packet; gives the units that are complete.
    pub fn take(&mut self, packet: &[u8], units: &mut Vec<Unit>) {
        let Some((header, payload)) = rtp::parse(packet) else { return };
        match self.codec {
            Codec::H264 | Codec::H265 => {
                let seen = self.gaps.see(self.codec, &header, payload);
                match seen.begins {
                    Some(begins) => {
                        if begins.was_open {
                            self.is_damaged |= begins.lost_end;
                            self.finish(units);
                        }
                        self.unit = Unit::new(header.timestamp, false, Vec::new());
                        (self.is_damaged, self.has_parameters) = (!begins.is_whole, false);
                        self.is_behind_gap = seen.is_gap;
                    }
                    None => self.is_damaged |= seen.is_gap,
                }
                if self.codec == Codec::H264 {
                    self.h264(payload)
                } else {
                    self.h265(payload)
                }
                if seen.ends {
                    self.finish(units);
                }
            }
            Codec::Aac => self.aac(header.timestamp, payload, units),
            Codec::Opus if !payload.is_empty() => {
                units.push(Unit::new(header.timestamp, true, payload.to_vec()));
            }
            _ => {}
        }
    }

    fn finish(&mut self, units: &mut Vec<Unit>) {
        let gives_parameters = self.gives_parameters || self.parameters.is_empty();
        let lost_parameters = self.unit.is_key && !self.has_parameters && self.is_behind_gap && gives_parameters;
        // The first key of all is passed on without parameters, which a player of RTSP may have from elsewhere.
        self.awaits_key = lost_parameters || (self.awaits_key && !self.unit.is_key);
        if !self.is_damaged && !self.awaits_key && !self.unit.bytes.is_empty() {
            if self.unit.is_key && self.has_parameters {
                self.remember();
            }
            self.gives_parameters |= self.unit.is_key && self.has_parameters;
            let mut unit = std::mem::replace(&mut self.unit, Unit::new(0, false, Vec::new()));
            if unit.is_key && !self.has_parameters {
                let mut all = Unit::new(unit.timestamp, true, Vec::new());
                for set in &self.parameters {
                    all.starts.push(all.bytes.len() as u32);
                    all.bytes.extend(START.iter().chain(set));
                }
                let before = all.bytes.len() as u32;
                all.starts.extend(unit.starts.iter().map(|start| start + before));
                all.bytes.extend(unit.bytes);
                unit = all;
            }
            units.push(unit);
        }
    }

    /// What came with a key holds from then on, whatever the description tells.
    fn remember(&mut self) {
        let kind = |set: &[u8]| if self.codec == Codec::H264 { set[0] & 0x1f } else { set[0] >> 1 & 0x3f };
        let is_set = |set: &&[u8]| !matches!((self.codec, kind(set)), (Codec::H264, 9) | (Codec::H265, 35));
        let sets = self.unit.pieces().filter(|piece| self.codec.is_parameter(piece) && piece.len() <= SET_BYTES_MAX);
        let told: Vec<&[u8]> = sets.filter(is_set).take(SETS_MAX).collect();
        let kept = self.parameters.iter().filter(|known| !told.iter().any(|set| kind(set) == kind(known)));
        let mut all: Vec<Vec<u8>> = kept.cloned().chain(told.iter().map(|set| set.to_vec())).collect();
        all.sort_by_key(|set| kind(set));
        self.parameters = all;
    }

    /// A whole unit of the codec's network layer.
    fn nal(&mut self, nal: &[u8]) {
        let Some(&first) = nal.first().filter(|_| !self.is_damaged) else { return };
        let (is_parameter, is_key) = match self.codec {
            Codec::H264 => (first & 0x1f == 7, first & 0x1f == 5),
            _ => (matches!(first >> 1 & 0x3f, 32 | 33), matches!(first >> 1 & 0x3f, 16..=21)),
        };
        self.has_parameters |= is_parameter;
        self.unit.is_key |= is_key;
        self.unit.is_leading |= self.codec == Codec::H265 && matches!(first >> 1 & 0x3f, 8 | 9);
        self.unit.starts.push(self.unit.bytes.len() as u32);
        self.append(&START);
        self.append(nal);
    }

    fn append(&mut self, bytes: &[u8]) {
        match self.unit.bytes.len() + bytes.len() <= UNIT_MAX {
            true => self.unit.bytes.extend_from_slice(bytes),
            false => self.is_damaged = true,
        }
    }

    fn h264(&mut self, payload: &[u8]) {
        match payload {
            [first, rest @ ..] if first & 0x1f == 24 => aggregated(rest).for_each(|nal| self.nal(nal)),
            [first, fragment, rest @ ..] if first & 0x1f == 28 => match fragment & 0x80 != 0 {
                true => {
                    self.nal(&[first & 0xe0 | fragment & 0x1f]);
                    self.append(rest);
                }
                false => self.append(rest),
            },
            [first, ..] if (1..24).contains(&(first & 0x1f)) => self.nal(payload),
            _ => self.is_damaged = true,
        }
    }

    fn h265(&mut self, payload: &[u8]) {
        match payload {
            [first, _, rest @ ..] if first >> 1 & 0x3f == 48 => aggregated(rest).for_each(|nal| self.nal(nal)),
            [first, second, fragment, rest @ ..] if first >> 1 & 0x3f == 49 => match fragment & 0x80 != 0 {
                true => {
                    self.nal(&[first & 0x81 | (fragment & 0x3f) << 1, *second]);
                    self.append(rest);
                }
                false => self.append(rest),
            },
            [first, _, ..] if first >> 1 & 0x3f < 48 => self.nal(payload),
            _ => self.is_damaged = true,
        }
    }

    /// Frames with sizes of 13 bits and indices of 3 before them (RFC 3640, section 3.3.6).
    fn aac(&mut self, timestamp: u32, payload: &[u8], units: &mut Vec<Unit>) {
        let Some((&[high, low], rest)) = payload.split_first_chunk::<2>() else { return };
        let bytes = usize::from(u16::from_be_bytes([high, low])).div_ceil(8);
        let (Some(sizes), Some(mut data)) = (rest.get(..bytes), rest.get(bytes..)) else { return };
        let samples = 1024 * (u64::from(self.clock_rate) * 1000 / u64::from(RATES[usize::from(self.adts.1)])) / 1000;
        for (number, size) in sizes.chunks_exact(2).enumerate() {
            let size = usize::from(u16::from_be_bytes([size[0], size[1]]) >> 3);
            let Some(frame) = data.get(..size).filter(|frame| !frame.is_empty()) else { return };
            data = &data[size..];
            let (profile, rate, channels) = self.adts;
            let length = (size + 7) as u32;
            let mut bytes = vec![0xff, 0xf1, profile << 6 | rate << 2 | channels >> 2];
            bytes.extend([
                (channels & 3) << 6 | (length >> 11) as u8,
                (length >> 3) as u8,
                (length << 5) as u8 | 0x1f,
                0xfc,
            ]);
            bytes.extend_from_slice(frame);
            let timestamp = timestamp.wrapping_add((number as u64 * samples) as u32);
            units.push(Unit::new(timestamp, true, bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::continuity::Continuity;
    use crate::passage::Passage;
    use crate::sdp::Description;
    use proptest::prelude::*;

    fn track(lines: &str) -> Track {
        Description::parse(lines.as_bytes()).unwrap().tracks[0].clone()
    }

    fn packet(sequence: u16, timestamp: u32, marker: bool, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x80, if marker { 0x80 | 96 } else { 96 }];
        bytes.extend(sequence.to_be_bytes());
        bytes.extend(timestamp.to_be_bytes());
        bytes.extend([0, 0, 0, 1]);
        bytes.extend(payload);
        bytes
    }

    /// What comes of packets as they are passed on.
    fn units_of<'a>(track: &Track, packets: impl Iterator<Item = &'a [u8]>) -> Vec<Unit> {
        let (mut assembly, mut passage) = (Assembly::new(track).unwrap(), Passage::new(track).unwrap());
        let (mut continuity, now) = (Continuity::new(track.clock_rate), std::time::Instant::now());
        let mut units = Vec::new();
        for packet in packets {
            let (header, payload) = rtp::parse(packet).unwrap();
            if !passage.take(&header, payload).goes {
                continuity.leave_out();
                continue;
            }
            let (sequence, timestamp, source) = continuity.translate(&header, now);
            let mut packet = packet.to_vec();
            rtp::rewrite(&mut packet, sequence, timestamp, source);
            assembly.take(&packet, &mut units);
        }
        units
    }

    fn h264() -> Track {
        let text = "m=video 0 RTP/AVP 96\na=rtpmap:96 H264/90000\na=fmtp:96 sprop-parameter-sets=ZwE=,aAI=\n";
        track(text)
    }

    /// A picture that never ends, of which a packet is as large as may be or as small.
    #[test]
    fn what_is_larger_than_a_picture_may_be_is_left_out() {
        for size in [60_000, 4] {
            let mut assembly = Assembly::new(&h264()).unwrap();
            let (mut units, mut payload) = (Vec::new(), vec![0x88; size]);
            payload[0] = 0x65;
            let count = 3 * UNIT_MAX / size.max(8);
            for number in 0..count {
                assembly.take(&packet(number as u16, 10, false, &payload), &mut units);
            }
            let (bytes, starts) = (assembly.unit.bytes.len(), assembly.unit.starts.len());
            assert!((UNIT_MAX / 2..=UNIT_MAX).contains(&bytes) && starts <= UNIT_MAX / 8 + 1, "{bytes}, {starts}");
            // The next one is there again.
            assembly.take(&packet(count as u16, 20, true, &[0x65, 0x88]), &mut units);
            assert_eq!(units.iter().map(|unit| unit.timestamp).collect::<Vec<_>>(), [20]);
        }
    }

    #[test]
    fn pictures_are_put_together_and_damaged_ones_left_out() {
        let packets = [
            packet(1, 10, false, &[28, 0x85, 0x81, 2]),
            packet(2, 10, true, &[28, 0x45, 3]),
            packet(3, 20, false, &[0x41, 0x89]),
            // No marker: the next timestamp ends it.
            packet(4, 30, true, &[24, 0, 2, 0x67, 7, 0, 2, 0x65, 0x88]),
            packet(6, 40, true, &[0x41, 1]),
            // It refers to the one that has lost its beginning.
            packet(7, 50, true, &[0x41, 0x82]),
            packet(8, 60, true, &[24, 0, 2, 0x67, 7, 0, 2, 0x65, 0x89]),
        ];
        let units = units_of(&h264(), packets.iter().map(Vec::as_slice));
        let found: Vec<_> = units.iter().map(|unit| (unit.timestamp, unit.is_key, unit.bytes.as_slice())).collect();
        let first = [0, 0, 0, 1, 0x67, 1, 0, 0, 0, 1, 0x68, 2, 0, 0, 0, 1, 5, 0x81, 2, 3];
        let second = [0, 0, 0, 1, 0x67, 7, 0, 0, 0, 1, 0x65, 0x88];
        assert_eq!(
            found,
            [
                (10, true, &first[..]),
                (20, false, &[0, 0, 0, 1, 0x41, 0x89][..]),
                (30, true, &second[..]),
                (60, true, &[0, 0, 0, 1, 0x67, 7, 0, 0, 0, 1, 0x65, 0x89][..]),
            ]
        );
    }

    #[test]
    fn audio_has_headers() {
        let text = "m=audio 0 RTP/AVP 96\na=rtpmap:96 mpeg4-generic/48000/2\n\
            a=fmtp:96 mode=AAC-hbr; sizelength=13; indexlength=3; indexdeltalength=3; config=1190\n";
        let (mut assembly, mut units) = (Assembly::new(&track(text)).unwrap(), Vec::new());
        assembly.take(&packet(1, 1000, true, &[0, 32, 0, 16, 0, 8, 1, 2, 3]), &mut units);
        assert_eq!(units.iter().map(|u| u.timestamp).collect::<Vec<_>>(), [1000, 2024]);
        assert_eq!(units[0].bytes, [0xff, 0xf1, 0x4c, 0x80, 1, 0x3f, 0xfc, 1, 2]);
    }

    /// What a packet of a picture holds.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Part {
        Delimiter,
        Parameters,
        Slice,
        Fragment,
    }

    /// The packets of pictures: each whether it is a key, how many slices it has, fragments of each, whether it begins with a delimiter.
    fn packets_of(pictures: &[(bool, usize, usize, bool)], is_h264: bool, marks: bool) -> Vec<(usize, Part, Vec<u8>)> {
        let mut packets = Vec::new();
        for (number, (is_key, slices, fragments, delimited)) in pictures.iter().enumerate() {
            let mut parts = Vec::new();
            let (kind, parameters, delimiter) = match (is_h264, is_key) {
                (true, true) => (5_u8, vec![0x67, 7], vec![9, 0xf0]),
                (true, false) => (1, vec![0x67, 7], vec![9, 0xf0]),
                (false, true) => (19, vec![33 << 1, 1, 7], vec![35 << 1, 1, 0x50]),
                (false, false) => (1, vec![33 << 1, 1, 7], vec![35 << 1, 1, 0x50]),
            };
            parts.extend(delimited.then_some((Part::Delimiter, delimiter)));
            parts.extend(is_key.then_some((Part::Parameters, parameters)));
            for slice in 0..*slices {
                for fragment in 0..*fragments {
                    let bits = if fragment == 0 { 0x80 } else { 0 } | if fragment + 1 == *fragments { 0x40 } else { 0 };
                    let place = if slice == 0 { 0x80 } else { 0x40 };
                    let whole = *fragments == 1;
                    let mut bytes = match (is_h264, whole) {
                        (true, true) => vec![0x40 | kind],
                        (true, false) => vec![0x40 | 28, bits | kind],
                        (false, true) => vec![kind << 1, 1],
                        (false, false) => vec![49 << 1, 1, bits | kind],
                    };
                    bytes.extend([if fragment == 0 { place } else { 0xff }, number as u8, slice as u8, fragment as u8]);
                    parts.push((if slice == 0 && fragment == 0 { Part::Slice } else { Part::Fragment }, bytes));
                }
            }
            let last = parts.len() - 1;
            for (place, (part, payload)) in parts.into_iter().enumerate() {
                let sequence = (packets.len() as u16).wrapping_add(65_500);
                packets.push((number, part, packet(sequence, number as u32, marks && place == last, &payload)));
            }
        }
        packets
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(2000)) })]

        /// Exactly the pictures that lost something are missing, and those behind them to the next key, whatever is lost, and what is there is
        /// as it was sent, but for delimiters behind a loss. Two things no rule
        /// can tell: whether a delimiter was lost or a picture before it, so a picture without its delimiter may be there; and where a
        /// sender marks no ends, whether what is missing behind a picture was its own.
        #[test]
        fn a_picture_that_lost_nothing_is_there(
            pictures in prop::collection::vec((any::<bool>(), 1..4_usize, 1..4_usize, any::<bool>()), 3..30),
            losses in prop::collection::vec(0..10_u8, 300), rate in 1..5_u8, is_h264 in any::<bool>(), marks in prop_oneof![9 => Just(true), 1 => Just(false)],
        ) {
            let text = if is_h264 { "H264" } else { "H265" };
            let text = format!("m=video 0 RTP/AVP 96\na=rtpmap:96 {text}/90000\n");
            let track = track(&text);
            let packets = packets_of(&pictures, is_h264, marks);
            let is_lost = |i: usize| losses[i % losses.len()] < rate;
            let whole = units_of(&track, packets.iter().map(|packet| packet.2.as_slice()));
            let arrive = packets.iter().enumerate().filter(|(i, _)| !is_lost(*i));
            let units = units_of(&track, arrive.map(|(_, packet)| packet.2.as_slice()));
            let first = (0..packets.len()).find(|i| !is_lost(*i)).unwrap_or(0);
            for (number, _) in pictures.iter().enumerate() {
                let from = (0..=number).rev().find(|n| pictures[*n].0).unwrap_or(0);
                let group: Vec<usize> = (0..packets.len()).filter(|i| (from..=number).contains(&packets[*i].0)).collect();
                // Who begins knows nothing of what was before.
                let is_known = |i: usize| packets[i].0 >= packets[first].0 || packets[i].0 == number;
                let lost: Vec<Part> =
                    group.iter().filter(|i| is_lost(**i) && is_known(**i)).map(|i| packets[*i].1).collect();
                let found: Vec<&Unit> = units.iter().filter(|unit| unit.timestamp == number as u32).collect();
                prop_assert!(found.len() <= 1);
                let sent = whole.iter().find(|unit| unit.timestamp == number as u32);
                if lost.is_empty() {
                    let last = *group.last().unwrap();
                    let is_told = marks || (last + 1 < packets.len() && !is_lost(last + 1));
                    prop_assert!(!found.is_empty() || !is_told, "picture {} lost nothing and is missing", number);
                    // While a key is awaited delimiters are left out, also that of the key.
                    let pieces = |unit: &&Unit| {
                        let is_delimiter = |piece: &[u8]| piece[0] == 9 || piece[0] == 35 << 1;
                        unit.pieces().filter(|piece| !is_delimiter(piece)).map(<[u8]>::to_vec).collect::<Vec<_>>()
                    };
                    prop_assert!(found.is_empty() || found.first().map(pieces) == sent.as_ref().map(pieces), "picture {}", number);
                } else if lost.iter().any(|part| *part != Part::Delimiter) {
                    prop_assert!(found.is_empty(), "picture {} or one before it lost {:?} and it is there", number, lost);
                }
            }
        }

        /// Who begins in the middle of a picture does not take the rest of it for one.
        #[test]
        fn what_begins_in_the_middle_is_no_picture(slices in 2..5_usize, fragments in 1..4_usize, is_h264 in any::<bool>()) {
            let text = if is_h264 { "H264" } else { "H265" };
            let text = format!("m=video 0 RTP/AVP 96\na=rtpmap:96 {text}/90000\n");
            let packets = packets_of(&[(true, slices, fragments, true), (true, 1, 2, false)], is_h264, true);
            let first = packets.iter().filter(|packet| packet.0 == 0).count();
            for from in 3..first {
                let (mut assembly, mut units) = (Assembly::new(&track(&text)).unwrap(), Vec::new());
                packets[from..].iter().for_each(|packet| assembly.take(&packet.2, &mut units));
                prop_assert_eq!(units.iter().map(|unit| unit.timestamp).collect::<Vec<_>>(), [1]);
            }
        }

        #[test]
        fn random_payloads_do_no_harm(payloads in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..40), any::<bool>(), 0..3_u32), 0..30), kind in 0..4) {
            let text = ["H264/90000", "H265/90000", "mpeg4-generic/16000/1", "opus/48000/2"][kind as usize];
            let text = format!("m=video 0 RTP/AVP 96\na=rtpmap:96 {text}\na=fmtp:96 sizelength=13;indexlength=3;config=1408\n");
            let mut assembly = Assembly::new(&track(&text)).unwrap();
            let mut units = Vec::new();
            for (number, (payload, marker, timestamp)) in payloads.iter().enumerate() {
                assembly.take(&packet(number as u16, *timestamp, *marker, payload), &mut units);
            }
            prop_assert!(units.iter().all(|unit| !unit.bytes.is_empty()));
        }
    }
}
