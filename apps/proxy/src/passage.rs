//! Which packets of a video are passed on: what lost something as far as it came, and of the others those that can be shown as they were sent.
//!
//! A picture of which a packet is missing is damaged, and every player shows what it makes of that. What refers to it would be damaged for as
//! long as the next key is away, though nothing of it was lost, so it is left out ([`References`]), for viewers by any protocol.

use crate::gaps::Gaps;
use crate::picture::Numbering;
use crate::references::{Picture, References};
use crate::rtp::{self, Codec, Header};
use crate::sdp::Track;
use crate::units::{SET_BYTES_MAX, parameters};

/// Bytes of a slice that tell its picture's number.
const SLICE_BYTES: usize = 32;
/// Sequence parameter sets of one picture at most.
const SETS_MAX: usize = 16;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// It is passed on.
    pub goes: bool,
    /// Nothing of its picture is missing so far.
    pub is_whole: bool,
    /// No other picture refers to its own.
    pub is_spare: bool,
}

impl Passed {
    /// Of what is no video.
    pub const AS_IT_IS: Passed = Passed { goes: true, is_whole: true, is_spare: false };
}

/// The packets of one track, as they come in order.
#[derive(Debug)]
pub struct Passage {
    codec: Codec,
    gaps: Gaps,
    references: References,
    /// The highest sub-layer so far.
    layers: u8,
    /// What packets of the picture under way told of it, and what became of it.
    picture: Option<Picture>,
    goes: bool,
    is_damaged: bool,
    is_behind_gap: bool,
    /// Nothing came since the beginning.
    is_first: bool,
    /// Its sequence parameter sets.
    sets: Vec<Vec<u8>>,
    /// The sender gives such with its keys.
    gives_sets: bool,
}

/// How pictures are numbered, if all go by one set.
fn numbering(sets: &[Vec<u8>]) -> Option<Numbering> {
    let (first, others) = sets.split_first()?;
    others.iter().all(|set| set == first).then(|| Numbering::of_set(first))?
}

/// The units that a payload holds whole, or of which it holds the beginning; that as if it were whole.
fn units(codec: Codec, payload: &[u8], mut take: impl FnMut(&[u8])) {
    match (codec, payload) {
        (Codec::H264, [first, rest @ ..]) if first & 0x1f == 24 => rtp::aggregated(rest).for_each(take),
        (Codec::H264, [first, fragment, rest @ ..]) if first & 0x1f == 28 => {
            let head = first & 0xe0 | fragment & 0x1f;
            take(&[&[head], &rest[..rest.len().min(SLICE_BYTES)]].concat());
        }
        (Codec::H265, [first, _, rest @ ..]) if first >> 1 & 0x3f == 48 => rtp::aggregated(rest).for_each(take),
        (Codec::H265, [first, second, fragment, rest @ ..]) if first >> 1 & 0x3f == 49 => {
            let head = [first & 0x81 | (fragment & 0x3f) << 1, *second];
            take(&[&head, &rest[..rest.len().min(SLICE_BYTES)]].concat());
        }
        _ => take(payload),
    }
}

/// Whether it holds for later pictures, too: a parameter set of any kind.
fn is_parameters(codec: Codec, unit: &[u8]) -> bool {
    unit.first().is_some_and(|first| match codec {
        Codec::H264 => matches!(first & 0x1f, 7 | 8),
        _ => matches!(first >> 1 & 0x3f, 32..=34),
    })
}

/// Whether it is a sequence parameter set.
fn is_set(codec: Codec, unit: &[u8]) -> bool {
    unit.first().is_some_and(|first| match codec {
        Codec::H264 => first & 0x1f == 7,
        _ => first >> 1 & 0x3f == 33,
    })
}

impl Passage {
    /// A video of which nothing came so far; nothing for other tracks.
    pub fn new(track: &Track) -> Option<Passage> {
        let codec = track.codec;
        let mut sets = parameters(track);
        sets.retain(|set| is_set(codec, set));
        let mut references = References::new(codec, track.clock_rate);
        references.number_by(numbering(&sets).filter(|_| codec == Codec::H264));
        codec.is_video().then_some(Passage {
            codec,
            gaps: Gaps::default(),
            references,
            layers: 0,
            picture: None,
            goes: true,
            is_damaged: false,
            is_behind_gap: false,
            is_first: true,
            // Where the description has none, only keys that bring theirs are of use.
            gives_sets: sets.is_empty(),
            sets: Vec::new(),
        })
    }

    /// What comes next is another beginning: what refers to anything before is for nobody.
    pub fn restart(&mut self) {
        (self.gaps, self.picture, self.is_damaged, self.is_first) = (Gaps::default(), None, false, true);
        self.references.restart();
    }

    /// What becomes of the next packet.
    pub fn take(&mut self, header: &Header, payload: &[u8]) -> Passed {
        let seen = self.gaps.see(self.codec, header, payload);
        match seen.begins {
            Some(begins) => {
                if begins.was_open {
                    self.is_damaged |= begins.lost_end;
                    self.end();
                }
                if begins.vanished > 0 {
                    self.references.vanished(begins.vanished);
                }
                (self.is_damaged, self.is_behind_gap) =
                    (!begins.is_whole, seen.is_gap && !std::mem::take(&mut self.is_first));
                self.picture = None;
                self.sets.clear();
            }
            None => self.is_damaged |= seen.is_gap,
        }
        if self.picture.is_none() {
            self.begin(header.timestamp, payload);
        }
        let is_spare = self.picture.is_some_and(|picture| picture.is_spare(self.layers));
        let passed = Passed { goes: self.goes, is_whole: !self.is_damaged, is_spare };
        if seen.ends {
            self.end();
        }
        passed
    }

    /// A packet of a picture of which no slice was seen before it.
    fn begin(&mut self, timestamp: u32, payload: &[u8]) {
        let (codec, mut slice, mut has_parameters) = (self.codec, None, false);
        let sets = &mut self.sets;
        units(codec, payload, |unit| {
            has_parameters |= is_parameters(codec, unit);
            if is_set(codec, unit) {
                if sets.len() < SETS_MAX && unit.len() <= SET_BYTES_MAX {
                    sets.push(unit.to_vec());
                }
            } else if slice.is_none() && Picture::glimpse(codec, unit).is_some() {
                slice = Some(unit[..unit.len().min(SLICE_BYTES)].to_vec());
            }
        });
        let Some(picture) = Picture::glimpse(codec, payload) else {
            // Delimiters and messages of pictures that do not go say nothing to anybody; parameters hold for later ones.
            self.goes = has_parameters || self.references.may_go_on();
            return;
        };
        self.picture = Some(picture);
        self.layers = self.layers.max(picture.layer);
        // A key without parameters behind a gap has lost them, if its sender gives others with its keys.
        self.is_damaged |= picture.is_key && self.sets.is_empty() && self.is_behind_gap && self.gives_sets;
        if picture.is_key && !self.sets.is_empty() && !self.is_damaged {
            self.gives_sets = true;
            self.references.number_by(numbering(&self.sets).filter(|_| codec == Codec::H264));
        }
        self.goes = match self.is_damaged {
            true => self.references.may_show(picture),
            false => self.references.allow(picture, &slice.unwrap_or_default(), timestamp),
        };
    }

    /// The picture under way has ended.
    fn end(&mut self) {
        match self.picture.take() {
            _ if !self.is_damaged => {}
            Some(picture) => self.references.lost(picture),
            None => self.references.vanished(1),
        }
        self.is_damaged = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sdp::Description;
    use proptest::prelude::*;

    fn passage(encoding: &str) -> Passage {
        let text = format!("m=video 0 RTP/AVP 96\na=rtpmap:96 {encoding}/90000\n");
        Passage::new(&Description::parse(text.as_bytes()).unwrap().tracks[0]).unwrap()
    }

    /// Whether packets go that are pictures of their own: each its number, the number of its picture, and its payload.
    fn goes(passage: &mut Passage, packets: &[(u16, u32, &[u8])]) -> Vec<bool> {
        passed(passage, packets, true)
    }

    fn goes_unmarked(passage: &mut Passage, packets: &[(u16, u32, &[u8])]) -> Vec<bool> {
        passed(passage, packets, false)
    }

    fn passed(passage: &mut Passage, packets: &[(u16, u32, &[u8])], marker: bool) -> Vec<bool> {
        let header =
            |sequence, picture| Header { sequence, timestamp: picture * 3600, source: 7, payload_type: 96, marker };
        packets
            .iter()
            .map(|(number, picture, payload)| passage.take(&header(*number, *picture), payload).goes)
            .collect()
    }

    #[test]
    fn what_refers_to_what_is_missing_waits_for_a_key() {
        let (key, reference, spare, delimiter): (&[u8], &[u8], &[u8], &[u8]) =
            (&[24, 0, 2, 0x67, 7, 0, 2, 0x65, 0x88], &[0x41, 0x88], &[0x01, 0x88], &[9, 0xf0]);
        let mut passage = passage("H264");
        passage.restart();
        assert_eq!(
            goes(&mut passage, &[(1, 1, reference), (2, 2, delimiter)]),
            [false, false],
            "nothing goes before a key"
        );
        assert_eq!(goes(&mut passage, &[(3, 3, key), (4, 4, spare), (5, 5, reference)]), [true; 3]);
        // A picture without its first slice goes as far as it came, and none that may refer to it.
        assert_eq!(
            goes(&mut passage, &[(7, 8, &[0x41, 0x08]), (8, 9, spare), (9, 10, delimiter)]),
            [true, false, false]
        );
        assert_eq!(goes(&mut passage, &[(10, 11, &[0x67, 7]), (11, 12, key), (12, 13, reference)]), [true; 3]);
        // A key that has lost the parameters that its sender gives goes as far as it came, and none that refers to it.
        assert_eq!(goes(&mut passage, &[(14, 14, &[0x65, 0x88]), (15, 15, reference)]), [true, false]);
    }

    /// Each in a packet of its own, before the first key and behind a gap.
    #[test]
    fn all_parameters_of_a_key_go() {
        for (codec, first, key, other) in [("H264", &[7, 8][..], 5, 1), ("H265", &[32, 33, 34][..], 19, 1)] {
            let unit = |kind: u8| if codec == "H264" { vec![0x60 | kind, 0x88, 7] } else { vec![kind << 1, 1, 0x80] };
            let mut passage = passage(codec);
            passage.restart();
            for number in [1, 20] {
                let units: Vec<Vec<u8>> = first.iter().chain([&key, &other]).map(|kind| unit(*kind)).collect();
                let packets: Vec<(u16, u32, &[u8])> = units
                    .iter()
                    .zip(number..)
                    .map(|(unit, at)| {
                        (at, u32::from(number) + u32::from(unit[0] == units.last().unwrap()[0]), unit.as_slice())
                    })
                    .collect();
                // What has more behind it in the same picture ends nothing.
                assert_eq!(goes_unmarked(&mut passage, &packets), vec![true; units.len()], "{codec} from {number}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(300)) })]

        #[test]
        fn random_packets_do_no_harm(
            packets in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..40), 0..4_u16, 0..3_u32, any::<bool>()), 1..40), is_h264 in any::<bool>(),
        ) {
            let mut passage = passage(if is_h264 { "H264" } else { "H265" });
            let (mut sequence, mut timestamp) = (65_530_u16, u32::MAX - 5);
            for (payload, missing, later, marker) in packets {
                sequence = sequence.wrapping_add(1 + missing / 2);
                timestamp = timestamp.wrapping_add(later * later * later * 10_000);
                let header = Header { sequence, timestamp, source: 7, payload_type: 96, marker };
                if missing == 3 {
                    passage.restart();
                }
                let _ = passage.take(&header, &payload);
            }
        }
    }
}
