//! Which pictures can still be shown as they were sent after one is missing.
//!
//! A picture is made of others, so one that is missing damages all that refer to it, and those that refer to these. Nobody has to decode
//! to know whom that cannot be:
//!
//! - To a picture that is marked so nobody refers: H.264's `nal_ref_idc` of 0 (ITU-T H.264, section 7.4.1); H.265's types that are no
//!   reference within their sub-layer, and no sub-layer below refers to one above (H.265, section 7.4.2.2).
//! - Whether a picture of which nothing came was a reference, H.264 counts: each picture's `frame_num` is the last reference's plus
//!   one (section 7.4.3). H.265 does not count these, and such a picture is taken for a reference of all.
//!
//! Nothing else is shown until the next key, and of H.265's keys that are none to what comes before them (CRA) not the pictures that are shown
//! before them and refer across them (RASL).

use crate::picture::Numbering;
use crate::rtp::Codec;

/// How long a key is waited for, seconds, beside the longest time that has passed between two: some cameras never send one.
const PATIENCE_S: u32 = 10;
/// References of which none came may be so many: more of them could be as many as the numbers have.
const VANISHED_MAX: u16 = 15;
/// Nothing is missing.
const ALL: u8 = u8::MAX;

/// What a packet of a picture tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Decoding can begin here.
    pub is_key: bool,
    /// It is shown before the key that it follows, and refers to what was before that.
    pub is_leading: bool,
    /// Those of its own sub-layer may refer to it.
    pub is_reference: bool,
    /// Its temporal sub-layer.
    pub layer: u8,
}

impl Picture {
    /// By the first bytes of a slice's header; nothing if it is none.
    fn of(codec: Codec, kind: u8, header: [u8; 2]) -> Option<Picture> {
        match (codec, kind) {
            (Codec::H264, 1..=5) => {
                Some(Picture { is_key: kind == 5, is_leading: false, is_reference: header[0] & 0x60 != 0, layer: 0 })
            }
            (Codec::H265, 0..=31) => Some(Picture {
                is_key: (16..=21).contains(&kind),
                is_leading: matches!(kind, 8 | 9),
                is_reference: kind > 15 || kind % 2 == 1,
                layer: (header[1] & 7).saturating_sub(1),
            }),
            _ => None,
        }
    }

    /// Whether no picture at all refers to it, where `layers` is the highest sub-layer that there is.
    pub fn is_spare(&self, layers: u8) -> bool {
        !self.is_reference && self.layer >= layers
    }

    /// Of the picture to which a payload belongs, whichever part of it that is.
    pub fn glimpse(codec: Codec, payload: &[u8]) -> Option<Picture> {
        let header = [*payload.first()?, payload.get(1).copied().unwrap_or(0)];
        match (codec, header[0] & 0x1f, header[0] >> 1 & 0x3f) {
            (Codec::H264, 24, _) => {
                crate::rtp::aggregated(&payload[1..]).find_map(|unit| Picture::of(codec, unit[0] & 0x1f, [unit[0], 0]))
            }
            (Codec::H264, 28, _) => Picture::of(codec, header[1] & 0x1f, header),
            (Codec::H264, kind, _) => Picture::of(codec, kind, header),
            (Codec::H265, _, 48) => crate::rtp::aggregated(payload.get(2..)?)
                .find_map(|unit| Picture::of(codec, unit[0] >> 1 & 0x3f, [unit[0], *unit.get(1)?])),
            (Codec::H265, _, 49) => Picture::of(codec, payload.get(2)? & 0x3f, header),
            (Codec::H265, _, kind) => Picture::of(codec, kind, header),
            _ => None,
        }
    }
}

/// What is missing of the pictures since the last key.
#[derive(Debug)]
pub struct References {
    codec: Codec,
    clock_rate: u32,
    numbering: Option<Numbering>,
    /// The number of the last reference that is there.
    last: Option<u32>,
    /// Something may be missing of which only numbers tell.
    is_suspect: bool,
    /// From which sub-layer on pictures may refer to what is missing.
    broken: u8,
    /// When that was first looked at, and the last key.
    since: Option<u32>,
    key: Option<u32>,
    /// The longest time between two keys.
    longest: u32,
    /// What leads the last key refers to what is missing.
    skips_leading: bool,
}

impl References {
    /// Nothing is missing.
    pub fn new(codec: Codec, clock_rate: u32) -> References {
        References {
            codec,
            clock_rate,
            numbering: None,
            last: None,
            is_suspect: false,
            broken: ALL,
            since: None,
            key: None,
            longest: 0,
            skips_leading: false,
        }
    }

    /// How H.264's pictures are numbered from here on.
    pub fn number_by(&mut self, numbering: Option<Numbering>) {
        self.numbering = numbering;
    }

    /// Another beginning: all that was before is missing.
    pub fn restart(&mut self) {
        (self.broken, self.is_suspect, self.since) = (0, false, None);
        (self.last, self.key) = (None, None);
    }

    /// Whether some picture may be shown before the next key.
    pub fn may_go_on(&self) -> bool {
        self.broken > 0
    }

    /// Whether a picture that is damaged itself refers to nothing that is missing.
    pub fn may_show(&self, picture: Picture) -> bool {
        picture.is_key || picture.layer < self.broken
    }

    /// A picture is missing that was seen.
    pub fn lost(&mut self, picture: Picture) {
        self.is_suspect = true;
        self.broken = self.broken.min(picture.layer + u8::from(!picture.is_reference));
    }

    /// So many packets are missing between two pictures, of which nobody knows what they were.
    pub fn vanished(&mut self, packets: u16) {
        self.is_suspect = true;
        if self.codec != Codec::H264 || self.numbering.is_none() || self.last.is_none() || packets > VANISHED_MAX {
            self.broken = 0;
        }
    }

    /// Whether a picture of which nothing is missing so far can be shown as it was sent; `slice` is its first slice.
    pub fn allow(&mut self, picture: Picture, slice: &[u8], timestamp: u32) -> bool {
        let number = self.numbering.and_then(|numbering| numbering.of(slice));
        if picture.is_key {
            self.skips_leading = self.broken != ALL || self.is_suspect;
            if let Some(before) = self.key.replace(timestamp) {
                let passed = timestamp.wrapping_sub(before);
                self.longest = self.longest.max(if passed > u32::MAX / 4 { 0 } else { passed });
            }
            // A key that is lost later is none: patience does not begin anew with it.
            if self.broken == ALL {
                self.since = None;
            }
            (self.broken, self.is_suspect) = (ALL, false);
        } else if picture.is_leading && self.skips_leading {
            return false;
        } else if self.is_suspect && self.codec == Codec::H264 {
            let goes_on = match (self.numbering, self.last, number) {
                (Some(numbering), Some(last), Some(number)) => numbering.follows(last, number),
                _ => false,
            };
            if !goes_on {
                self.broken = 0;
            }
        }
        if picture.layer >= self.broken {
            let since = *self.since.get_or_insert(timestamp);
            let patience = PATIENCE_S.saturating_mul(self.clock_rate).saturating_add(self.longest);
            if i64::from(timestamp.wrapping_sub(since).cast_signed()) < i64::from(patience) {
                return false;
            }
            (self.broken, self.is_suspect, self.since) = (ALL, false, None);
        } else if !picture.is_key && self.broken == ALL {
            self.since = None;
        }
        if picture.is_reference {
            self.last = number;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    fn h265(kind: u8, layer: u8) -> Picture {
        Picture::glimpse(Codec::H265, &[kind << 1, layer + 1, 0x80]).unwrap()
    }

    #[test]
    fn every_packet_of_a_picture_tells_what_it_is() {
        let key = Picture { is_key: true, is_leading: false, is_reference: true, layer: 0 };
        let plain = Picture { is_key: false, is_reference: false, ..key };
        for (payload, expected) in [
            (&[0x65, 0x88][..], Some(key)),
            (&[0x7c, 0x05, 1], Some(key)),
            (&[0x1c, 0x41, 1], Some(plain)),
            (&[24, 0, 2, 0x67, 1, 0, 2, 0x01, 0x40], Some(plain)),
            (&[0x67, 1], None),
            (&[], None),
        ] {
            assert_eq!(Picture::glimpse(Codec::H264, payload), expected, "{payload:?}");
        }
        assert_eq!(Picture::glimpse(Codec::H265, &[49 << 1, 3, 9]), Some(Picture { layer: 2, ..h265(9, 2) }));
        assert!(h265(21, 0).is_key && h265(8, 0).is_leading && !h265(8, 0).is_reference && h265(1, 0).is_reference);
    }

    /// Sub-layers refer only downwards; a picture of which nothing is known is everybody's; what leads a key refers across it.
    #[test]
    fn what_refers_to_nothing_missing_is_shown() {
        let mut references = References::new(Codec::H265, 90_000);
        let mut time = 0;
        let mut allow = |references: &mut References, picture| {
            time += 3600;
            references.allow(picture, &[], time)
        };
        let (key, open, low, high, none) = (h265(19, 0), h265(21, 0), h265(1, 0), h265(1, 1), h265(0, 1));
        assert!(allow(&mut references, key));
        references.lost(none);
        assert!(allow(&mut references, low) && allow(&mut references, high));
        references.lost(high);
        assert!(allow(&mut references, low) && !allow(&mut references, high) && !allow(&mut references, none));
        references.vanished(1);
        assert!(!allow(&mut references, low));
        // What leads this key is damaged, what leads the next is not.
        assert!(
            allow(&mut references, open) && !allow(&mut references, h265(8, 0)) && allow(&mut references, h265(7, 0))
        );
        assert!(allow(&mut references, low) && allow(&mut references, open) && allow(&mut references, h265(8, 0)));
    }

    /// Numbers tell whether what vanished was referred to, as long as there are more of them than packets that vanished.
    #[test]
    fn numbers_tell_what_vanished_within_their_round() {
        let set = STANDARD.decode("Z0LAHtkDxWhAAAADAEAAAAwDxYuS").unwrap();
        let numbering = Numbering::of_set(&set).unwrap();
        let bits = (4..17).find(|bits| numbering.follows((1 << bits) - 1, 0)).unwrap();
        // First macroblock, type and parameters are 0, which is one bit each.
        let slice = |number: u32| {
            let all = (0b111 << bits | number) << (29 - bits) | ((1 << (29 - bits)) - 1);
            [&[0x41][..], &u32::to_be_bytes(all), &[0x80; 8]].concat()
        };
        let plain = Picture { is_key: false, is_leading: false, is_reference: true, layer: 0 };
        for (vanished, number, goes) in [(1, 1, true), (1, 2, false), (15, 1, true), (16, 1, false)] {
            let mut references = References::new(Codec::H264, 90_000);
            references.number_by(Some(numbering));
            assert!(references.allow(Picture { is_key: true, ..plain }, &slice(0), 0));
            references.vanished(vanished);
            assert_eq!(references.allow(plain, &slice(number), 3600), goes, "{vanished}, {number}");
        }
    }

    /// A camera that sends no key is not dark for ever.
    #[test]
    fn patience_ends() {
        let mut references = References::new(Codec::H265, 90_000);
        references.vanished(1);
        let shown: Vec<u32> = (0..600).filter(|n| references.allow(h265(1, 0), &[], n * 3600)).collect();
        assert_eq!(shown.first(), Some(&250));
    }
}
