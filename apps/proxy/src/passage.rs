//! Which packets of a video are passed on: what lost something as far as it came, and of the others those that can be shown as they were sent.
//!
//! A picture of which a packet is missing is damaged, and every player shows what it makes of that. What refers to it would be damaged for as
//! long as the next key is away, though nothing of it was lost, so it is left out ([`References`]), for viewers by any protocol.

use crate::gaps::Gaps;
use crate::picture::Numbering;
use crate::references::{Picture, References};
use crate::rtp::{self, Codec, Header};
use crate::sdp::Track;
use crate::units::parameters;

/// Bytes of a slice that tell its picture's number.
const SLICE_BYTES: usize = 32;
/// Sequence parameter sets of one picture at most, and bytes of one.
const SETS_MAX: usize = 16;
const SET_MAX: usize = 4096;

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
        let (codec, mut slice, mut has_sets) = (self.codec, None, false);
        let sets = &mut self.sets;
        units(codec, payload, |unit| {
            if is_set(codec, unit) {
                has_sets = true;
                if sets.len() < SETS_MAX && unit.len() < SET_MAX {
                    sets.push(unit.to_vec());
                }
            } else if slice.is_none() && Picture::glimpse(codec, unit).is_some() {
                slice = Some(unit[..unit.len().min(SLICE_BYTES)].to_vec());
            }
        });
        let Some(picture) = Picture::glimpse(codec, payload) else {
            // Delimiters and messages of pictures that do not go say nothing to anybody; parameters hold for later ones.
            self.goes = has_sets || self.references.may_go_on();
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
