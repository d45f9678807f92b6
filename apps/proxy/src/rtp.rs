//! What the proxy has to know of a packet of RTP (RFC 3550): where it stands, and whether decoding can begin with it.
//!
//! The crate `rtp-types` reads the header; what lies behind it is looked at for H.264 (RFC 6184) and H.265 (RFC 7798) only.

use rtp_types::RtpPacket;

/// How a track's payload is cut into packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    /// RFC 6184
    H264,
    /// RFC 7798
    H265,
    /// RFC 3640
    Aac,
    /// RFC 7587
    Opus,
    /// Anything else: passed on, not looked into
    Other,
}

impl Codec {
    /// By the name in `a=rtpmap`.
    pub fn named(encoding: &str) -> Codec {
        match encoding.to_ascii_uppercase().as_str() {
            "H264" => Codec::H264,
            "H265" | "HEVC" => Codec::H265,
            "MPEG4-GENERIC" => Codec::Aac,
            "OPUS" => Codec::Opus,
            _ => Codec::Other,
        }
    }

    /// Whether a unit of video only says how others are to be read, or where they begin.
    pub fn is_parameter(self, unit: &[u8]) -> bool {
        match (self, unit.first()) {
            (Codec::H264, Some(first)) => matches!(first & 0x1f, 7..=9),
            (Codec::H265, Some(first)) => matches!(first >> 1 & 0x3f, 32..=35),
            _ => false,
        }
    }

    /// Whether it is video that is cut into units.
    pub fn is_video(self) -> bool {
        matches!(self, Codec::H264 | Codec::H265)
    }
}

/// The parts of a header that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Counts packets.
    pub sequence: u16,
    /// When it was sampled, in ticks of the track's clock.
    pub timestamp: u32,
    /// Who sent it.
    pub source: u32,
    /// What it holds.
    pub payload_type: u8,
    /// The last packet of a picture.
    pub marker: bool,
}

/// The header of a packet, and its payload; nothing if it is none.
pub fn parse(packet: &[u8]) -> Option<(Header, &[u8])> {
    let parsed = RtpPacket::parse(packet).ok()?;
    let header = Header {
        sequence: parsed.sequence_number(),
        timestamp: parsed.timestamp(),
        source: parsed.ssrc(),
        payload_type: parsed.payload_type(),
        marker: parsed.marker_bit(),
    };
    let (start, length) = (parsed.payload_offset(), parsed.payload_len());
    Some((header, packet.get(start..start + length)?))
}

/// Puts other numbers into the header of a packet that [`parse`] has read.
pub fn rewrite(packet: &mut [u8], sequence: u16, timestamp: u32, source: u32) {
    if let Some(header) = packet.get_mut(..12) {
        header[2..4].copy_from_slice(&sequence.to_be_bytes());
        header[4..8].copy_from_slice(&timestamp.to_be_bytes());
        header[8..12].copy_from_slice(&source.to_be_bytes());
    }
}

/// Whether a type of H.264's units is where decoding can begin: an instantaneous refresh, or the parameters before it.
pub fn starts_h264(unit: u8) -> bool {
    matches!(unit & 0x1f, 5 | 7)
}

/// The same of H.265's types: pictures of random access, or the parameters before them.
pub fn starts_h265(unit: u8) -> bool {
    matches!((unit >> 1) & 0x3f, 16..=21 | 32 | 33)
}

/// The units of an aggregation packet: lengths of 16 bits, each with its unit.
pub fn aggregated(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (&[high, low], rest) = bytes.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let unit = rest.get(..length).filter(|unit| !unit.is_empty())?;
        bytes = &rest[length..];
        Some(unit)
    })
}

/// Whether decoding can begin with this payload.
pub fn is_key(codec: Codec, payload: &[u8]) -> bool {
    match (codec, payload) {
        // STAP-A, FU-A, single units.
        (Codec::H264, [first, rest @ ..]) => match first & 0x1f {
            24 => aggregated(rest).any(|unit| starts_h264(unit[0])),
            28 => rest.first().is_some_and(|fu| fu & 0x80 != 0 && starts_h264(*fu)),
            _ => starts_h264(*first),
        },
        // Aggregations, fragments, single units; without decoding order numbers.
        (Codec::H265, [first, _, rest @ ..]) => match (first >> 1) & 0x3f {
            48 => aggregated(rest).any(|unit| starts_h265(unit[0])),
            49 => rest.first().is_some_and(|fu| fu & 0x80 != 0 && starts_h265(fu << 1)),
            _ => starts_h265(*first),
        },
        (Codec::H264 | Codec::H265, _) => false,
        _ => true,
    }
}

/// The type of the first unit that begins in a payload, and what lies behind its header.
fn first_unit(codec: Codec, payload: &[u8]) -> Option<(u8, Option<u8>)> {
    match (codec, payload) {
        (Codec::H264, [first, rest @ ..]) => match first & 0x1f {
            24 => aggregated(rest).next().map(|unit| (unit[0] & 0x1f, unit.get(1).copied())),
            28 => rest.first().filter(|fu| **fu & 0x80 != 0).map(|fu| (fu & 0x1f, rest.get(1).copied())),
            kind => Some((kind, rest.first().copied())),
        },
        (Codec::H265, [first, _, rest @ ..]) => match first >> 1 & 0x3f {
            48 => aggregated(rest).next().map(|unit| (unit[0] >> 1 & 0x3f, unit.get(2).copied())),
            49 => rest.first().filter(|fu| **fu & 0x80 != 0).map(|fu| (fu & 0x3f, rest.get(1).copied())),
            kind => Some((kind, rest.first().copied())),
        },
        _ => None,
    }
}

/// Whether no part of a picture can lie before this payload: it begins with the slice of the first macroblock (ITU-T H.264, section
/// 7.4.3; H.265, section 7.4.7.1), or with what comes before all slices only (section 7.4.1.2.3; 7.4.2.4.4). Orders of slices that are
/// arbitrary, which only the extended and baseline profiles of H.264 have, are taken for damage.
pub fn begins_picture(codec: Codec, payload: &[u8]) -> bool {
    let Some((kind, behind)) = first_unit(codec, payload) else { return false };
    let is_first = behind.is_some_and(|byte| byte & 0x80 != 0);
    match (codec, kind) {
        (Codec::H264, 1 | 2 | 5) | (Codec::H265, 0..=31) => is_first,
        (Codec::H264, kind) => matches!(kind, 6..=9 | 14..=18),
        (_, kind) => matches!(kind, 32..=35 | 39 | 41..=44 | 48..=55),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_are_found_in_every_form() {
        let h264: [(&[u8], bool); 9] = [
            (&[0x65, 1], true),
            (&[0x67, 1], true),
            (&[0x41, 1], false),
            (&[24, 0, 1, 0x41, 0, 1, 0x65], true),
            (&[24, 0, 1, 0x41, 0, 9, 0x65], false),
            (&[28, 0x85, 1], true),
            (&[28, 0x05, 1], false),
            (&[28], false),
            (&[], false),
        ];
        h264.iter().for_each(|(payload, key)| assert_eq!(is_key(Codec::H264, payload), *key, "{payload:?}"));
        let h265: [(&[u8], bool); 6] = [
            (&[32 << 1, 1], true),
            (&[19 << 1, 1], true),
            (&[1 << 1, 1], false),
            (&[48 << 1, 1, 0, 2, 33 << 1, 1], true),
            (&[49 << 1, 1, 0x80 | 19], true),
            (&[49 << 1, 1, 19], false),
        ];
        h265.iter().for_each(|(payload, key)| assert_eq!(is_key(Codec::H265, payload), *key, "{payload:?}"));
    }

    #[test]
    fn beginnings_of_pictures_are_found_in_every_form() {
        let h264: [(&[u8], bool); 9] = [
            (&[0x65, 0x88], true),
            (&[0x41, 0x40], false),
            (&[0x41], false),
            (&[9, 0xf0], true),
            (&[24, 0, 2, 0x67, 1, 0, 2, 0x41, 0x40], true),
            (&[24, 0, 2, 0x41, 0x40, 0, 2, 0x67, 1], false),
            (&[28, 0x85, 0x88], true),
            (&[28, 0x85, 0x08], false),
            (&[28, 0x05, 0x88], false),
        ];
        h264.iter()
            .for_each(|(payload, begins)| assert_eq!(begins_picture(Codec::H264, payload), *begins, "{payload:?}"));
        let h265: [(&[u8], bool); 6] = [
            (&[19 << 1, 1, 0x80], true),
            (&[1 << 1, 1, 0x40], false),
            (&[35 << 1, 1], true),
            (&[40 << 1, 1], false),
            (&[49 << 1, 1, 0x80 | 19, 0xa0], true),
            (&[48 << 1, 1, 0, 3, 33 << 1, 1, 0], true),
        ];
        h265.iter()
            .for_each(|(payload, begins)| assert_eq!(begins_picture(Codec::H265, payload), *begins, "{payload:?}"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(500)) })]

        #[test]
        fn random_packets_do_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..80), version in any::<bool>()) {
            if let Some(first) = bytes.first_mut().filter(|_| version) {
                *first = *first & 0x3f | 0x80;
            }
            if let Some((header, payload)) = parse(&bytes) {
                for codec in [Codec::H264, Codec::H265, Codec::Aac, Codec::Other] {
                    let _ = (is_key(codec, payload), begins_picture(codec, payload));
                }
                let length = payload.len();
                rewrite(&mut bytes, header.sequence.wrapping_add(7), 5, 6);
                let (again, payload) = parse(&bytes).unwrap();
                prop_assert_eq!((again.sequence, again.timestamp, again.source), (header.sequence.wrapping_add(7), 5, 6));
                prop_assert_eq!((again.payload_type, again.marker, payload.len()), (header.payload_type, header.marker, length));
            }
        }
    }
}
