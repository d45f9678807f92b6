//! What video says of itself in its parameter sets: its size, and how far the order of decoding is from that of show.
//!
//! The crate `h264-reader` reads those of H.264, and the bits of H.265's, of which the beginning is enough.

use crate::rtp::Codec;
use h264_reader::nal::sps::{ChromaFormat, FrameMbsFlags, SeqParameterSet};
use h264_reader::rbsp::{BitRead, BitReader, decode_nal};

/// What is known of a video.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Pixels in a line, as shown.
    pub width: u16,
    /// Lines, as shown.
    pub height: u16,
    /// Pictures that come before one which is shown earlier, at most, if that is told.
    pub depth: Option<usize>,
    /// How colours are sampled, and bits of luma and chroma less eight.
    pub format: (u8, u8, u8),
    /// Of H.265: profile, tier and level as they stand in the set: 12 bytes.
    pub profile: [u8; 12],
}

/// Reads a sequence parameter set of H.264 (ITU-T H.264, section 7.3.2.1), with the byte that tells its type.
pub fn h264(set: &[u8]) -> Option<Facts> {
    let bytes = decode_nal(set).ok()?;
    let sps = SeqParameterSet::from_bits(BitReader::new(bytes.as_ref())).ok()?;
    let (width, height) = sps.pixel_dimensions().ok()?;
    let told = sps.vui_parameters.as_ref().and_then(|vui| vui.bitstream_restrictions.as_ref());
    let told = told.map(|restrictions| restrictions.max_num_reorder_frames as usize);
    // The baseline profile has no such pictures.
    let depth = told.or((sps.profile().profile_idc() == 66).then_some(0));
    let chroma = &sps.chroma_info;
    let colours = match chroma.chroma_format {
        ChromaFormat::Monochrome => 0,
        ChromaFormat::YUV422 => 2,
        ChromaFormat::YUV444 => 3,
        _ => 1,
    };
    Some(Facts {
        width: width.try_into().ok()?,
        height: height.try_into().ok()?,
        depth,
        format: (colours, chroma.bit_depth_luma_minus8, chroma.bit_depth_chroma_minus8),
        ..Facts::default()
    })
}

/// How H.264 numbers its pictures, where each is a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbering {
    bits: u32,
    has_planes: bool,
}

/// Bytes of a slice in which its number stands, with whatever escapes there are.
const NUMBER_BYTES: usize = 24;

impl Numbering {
    /// As a sequence parameter set tells it; nothing where pictures may be fields, of which two have one number.
    pub fn of_set(set: &[u8]) -> Option<Numbering> {
        let bytes = decode_nal(set).ok()?;
        let sps = SeqParameterSet::from_bits(BitReader::new(bytes.as_ref())).ok()?;
        let has_planes = sps.chroma_info.separate_colour_plane_flag;
        let bits = u32::from(sps.log2_max_frame_num());
        matches!(sps.frame_mbs_flags, FrameMbsFlags::Frames).then_some(Numbering { bits, has_planes })
    }

    /// The number of the picture to which a slice belongs (section 7.3.3).
    pub fn of(self, slice: &[u8]) -> Option<u32> {
        let bytes = decode_nal(slice.get(..NUMBER_BYTES).unwrap_or(slice)).ok()?;
        let mut bits = BitReader::new(bytes.as_ref());
        for name in ["first macroblock", "type", "parameters"] {
            bits.read_ue(name).ok()?;
        }
        if self.has_planes {
            bits.skip(2, "plane").ok()?;
        }
        (0..self.bits).try_fold(0, |number, _| Some(number << 1 | u32::from(bits.read_bit("number").ok()?)))
    }

    /// Whether a picture's number is the one behind that of a reference.
    pub fn follows(self, reference: u32, number: u32) -> bool {
        number == (reference + 1) & ((1 << self.bits) - 1)
    }
}

/// Reads a sequence parameter set of H.265 (ITU-T H.265, section 7.3.2.2), with the two bytes that tell its type.
pub fn h265(set: &[u8]) -> Option<Facts> {
    // One byte is left out as the header, the other is read.
    let bytes = decode_nal(set).ok()?;
    let bytes = bytes.get(1..)?;
    let profile = bytes.get(1..13)?.try_into().ok()?;
    let mut bits = BitReader::new(bytes);
    let layers = (*bytes.first()? >> 1) & 7;
    bits.skip(8 + 96, "the beginning").ok()?;
    if layers > 0 {
        let (mut profiles, mut levels) = (0_u32, 0_u32);
        for layer in 0..8 {
            let both: (bool, bool) = (bits.read_bit("profile").ok()?, bits.read_bit("level").ok()?);
            if layer < layers {
                profiles += u32::from(both.0);
                levels += u32::from(both.1);
            }
        }
        bits.skip(88 * profiles + 8 * levels, "sub-layers").ok()?;
    }
    let mut number = |name: &'static str| bits.read_ue(name).ok();
    let _id = number("id")?;
    let chroma = number("chroma")?;
    if chroma == 3 {
        bits.skip(1, "planes").ok()?;
    }
    let (width, height) = (bits.read_ue("width").ok()?, bits.read_ue("height").ok()?);
    let mut cut = [0; 4];
    if bits.read_bit("window").ok()? {
        for side in &mut cut {
            *side = bits.read_ue("side").ok()?;
        }
    }
    let (luma, colour) = (bits.read_ue("luma").ok()?, bits.read_ue("colour").ok()?);
    bits.read_ue("order").ok()?;
    let is_each = bits.read_bit("each layer").ok()?;
    let mut depth = 0;
    for _ in if is_each { 0 } else { layers }..=layers {
        bits.read_ue("buffer").ok()?;
        depth = bits.read_ue("reorder").ok()?;
        bits.read_ue("latency").ok()?;
    }
    let (wide, high) = match chroma {
        1 => (2, 2),
        2 => (2, 1),
        _ => (1, 1),
    };
    let less = |all: u32, unit: u32, a: u32, b: u32| {
        let cut = unit.checked_mul(a.checked_add(b)?)?;
        u16::try_from(all.checked_sub(cut)?).ok().filter(|left| *left > 0)
    };
    Some(Facts {
        width: less(width, wide, cut[0], cut[1])?,
        height: less(height, high, cut[2], cut[3])?,
        depth: Some(depth as usize),
        format: (chroma.try_into().ok()?, luma.try_into().ok()?, colour.try_into().ok()?),
        profile,
    })
}

/// The number of a picture parameter set (ITU-T H.264, section 7.3.2.2; H.265, section 7.3.2.3).
pub fn parameters_id(codec: Codec, set: &[u8]) -> Option<u32> {
    let bytes = decode_nal(set).ok()?;
    let rest = if codec == Codec::H264 { &bytes[..] } else { bytes.get(1..)? };
    BitReader::new(rest).read_ue("id").ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    // Of x264 (High, 1280 x 720) and x265 (4:4:4, 320 x 240), both with B pictures, as they stand in descriptions.
    const H264: &str = "Z2QAH6zZQFAFuwEQAAADABAAAAMDIPGDGWA=";
    const H265: &str = "QgEBBAgAAAMAnggAAAMAADyQAUEB4ssrNJJleAtwICAAQAAAAwBAAAAGQg==";

    #[test]
    fn sizes_are_those_of_the_encoders() {
        let found = h264(&STANDARD.decode(H264).unwrap()).unwrap();
        assert_eq!((found.width, found.height), (1280, 720));
        let found = h265(&STANDARD.decode(H265).unwrap()).unwrap();
        assert_eq!((found.width, found.height, found.format), (320, 240, (3, 0, 0)));
        assert_eq!(found.depth, Some(2));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(300)) })]

        #[test]
        fn damaged_sets_do_no_harm(at in 0..40_usize, with in prop::collection::vec(any::<u8>(), 0..6), cut in 0..60_usize) {
            for (text, read) in [(H264, h264 as fn(&[u8]) -> Option<Facts>), (H265, h265)] {
                let mut bytes = STANDARD.decode(text).unwrap();
                let at = at.min(bytes.len());
                let end = (at + with.len()).min(bytes.len());
                bytes.splice(at..end, with.iter().copied());
                bytes.truncate(cut.max(1));
                let _ = read(&bytes);
            }
        }
    }
}
