//! Parameter sets and slice headers (7.3.2.1, 7.3.2.2, 7.3.3, E.1.1 of the standard).

use crate::bits::{Bits, Unit, unit};
use crate::picture::Size;

/// A fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// Above.
    pub over: u32,
    /// Below.
    pub under: u32,
}

impl Ratio {
    /// The same with the least numbers, or nearly the same with such from 1 to `most`.
    pub fn within(self, most: u32) -> Ratio {
        let (mut common, mut rest) = (self.over, self.under);
        while rest > 0 {
            (common, rest) = (rest, common % rest);
        }
        let (over, under) = (self.over / common.max(1), self.under / common.max(1));
        let large = over.max(under);
        let scaled = |value: u32| (u64::from(value) * u64::from(most) / u64::from(large)).max(1) as u32;
        if large <= most { Ratio { over, under } } else { Ratio { over: scaled(over), under: scaled(under) } }
    }
}

/// What is known of the pictures besides their samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// How large they are.
    pub size: Size,
    /// Pictures a second, in numbers less than 2^31.
    pub rate: Ratio,
    /// Width of a sample over its height; none if it is not known.
    pub aspect: Option<Ratio>,
    /// Whether samples use all 256 values instead of 16 to 235; none if it is not known.
    pub is_full_range: Option<bool>,
    /// What samples mean.
    pub colour: Colour,
    /// Where samples of chroma lie (figure E-1): 0 at the left, 1 in the middle, 2 at the top on the left; none if it is not known.
    pub chroma_place: Option<u8>,
}

impl Properties {
    /// Of pictures of which nothing but this is known.
    pub const fn plain(size: Size, rate: Ratio) -> Properties {
        Properties { size, rate, aspect: None, is_full_range: None, colour: Colour::UNKNOWN, chroma_place: None }
    }
}

/// What samples mean, by the numbers of tables E-3 to E-5, which are those of ITU-T H.273.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour {
    /// Which colours the primaries are.
    pub primaries: u8,
    /// How values follow light.
    pub transfer: u8,
    /// How luma and chroma are made of red, green and blue.
    pub matrix: u8,
}

/// Names, as other programs have them, and numbers.
pub type Names = [(&'static str, u8)];

impl Colour {
    /// It is not known.
    pub const UNKNOWN: Colour = Colour { primaries: 2, transfer: 2, matrix: 2 };

    /// Table E-3.
    pub const PRIMARIES: &'static Names = &[
        ("bt709", 1),
        ("bt470m", 4),
        ("bt470bg", 5),
        ("smpte170m", 6),
        ("smpte240m", 7),
        ("film", 8),
        ("bt2020", 9),
        ("smpte428", 10),
        ("smpte431", 11),
        ("smpte432", 12),
    ];

    /// Table E-4.
    pub const TRANSFER: &'static Names = &[
        ("bt709", 1),
        ("bt470m", 4),
        ("bt470bg", 5),
        ("smpte170m", 6),
        ("smpte240m", 7),
        ("linear", 8),
        ("log100", 9),
        ("log316", 10),
        ("iec61966-2-4", 11),
        ("bt1361e", 12),
        ("iec61966-2-1", 13),
        ("bt2020-10", 14),
        ("bt2020-12", 15),
        ("smpte2084", 16),
        ("smpte428", 17),
        ("arib-std-b67", 18),
    ];

    /// Table E-5, but those that 4:2:0 cannot have.
    pub const MATRIX: &'static Names = &[
        ("bt709", 1),
        ("fcc", 4),
        ("bt470bg", 5),
        ("smpte170m", 6),
        ("smpte240m", 7),
        ("ycgco", 8),
        ("bt2020nc", 9),
        ("bt2020c", 10),
        ("smpte2085", 11),
    ];
}

/// What a decoder has to be able to do (A.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Constrained baseline: variable-length codes.
    Baseline,
    /// Main: arithmetic codes, which take fewer bits.
    Main,
}

/// What pictures may be predicted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structure {
    /// So many pictures before one, at most.
    pub references: usize,
    /// So many more, each the last of a scene, which stay until as many scenes have followed (long-term references).
    pub long: usize,
    /// So many pictures in a row that are predicted from one before and one behind them, and that none is predicted from.
    pub bidirectional: usize,
}

impl Structure {
    /// Each picture from the one before it.
    pub const PLAIN: Structure = Structure { references: 1, long: 0, bidirectional: 0 };

    /// Pictures that a decoder keeps.
    pub fn kept(&self) -> usize {
        self.references.max(if self.bidirectional > 0 { 2 } else { 1 }) + self.long
    }
}

/// Bits of `frame_num`.
const NUMBER_BITS: u32 = 8;

/// Bits of `pic_order_cnt_lsb`, which counts fields.
const ORDER_BITS: u32 = 10;

/// Where the number of the level is in the unit of a sequence's parameters.
pub const LEVEL_PLACE: usize = 3;

/// The parameter sets of a stream of a level (its number), as units: of the sequence and of its pictures.
pub fn parameter_sets(properties: &Properties, profile: Profile, structure: Structure, level: u8) -> [Vec<u8>; 2] {
    let (size, kept) = (properties.size, structure.kept());
    let mut bits = Bits::default();
    // `profile_idc` and constraints: constrained baseline is within main.
    let (number, constraints) = if profile == Profile::Main { (77, 0b0100_0000) } else { (66, 0b1100_0000) };
    bits.put(8, number);
    bits.put(8, constraints);
    bits.put(8, level.into());
    bits.ue(0); // seq_parameter_set_id
    bits.ue(NUMBER_BITS - 4); // log2_max_frame_num_minus4
    if structure.bidirectional > 0 {
        bits.ue(0); // pic_order_cnt_type: each picture says when it is shown
        bits.ue(ORDER_BITS - 4); // log2_max_pic_order_cnt_lsb_minus4
    } else {
        bits.ue(2); // pic_order_cnt_type: pictures are shown in the order in which they come
    }
    bits.ue(kept as u32); // max_num_ref_frames
    bits.flag(false); // gaps_in_frame_num_value_allowed_flag
    bits.ue(size.columns() as u32 - 1);
    bits.ue(size.rows() as u32 - 1);
    bits.flag(true); // frame_mbs_only_flag
    bits.flag(true); // direct_8x8_inference_flag
    let (right, bottom) = (16 * size.columns() - size.width, 16 * size.rows() - size.height);
    bits.flag(right + bottom > 0);
    if right + bottom > 0 {
        // In units of two samples.
        [0, right / 2, 0, bottom / 2].into_iter().for_each(|crop| bits.ue(crop as u32));
    }
    bits.flag(true); // vui_parameters_present_flag
    aspect(&mut bits, properties.aspect);
    bits.flag(false); // overscan_info_present_flag
    let has_colour = properties.colour != Colour::UNKNOWN;
    bits.flag(properties.is_full_range.is_some() || has_colour); // video_signal_type_present_flag
    if properties.is_full_range.is_some() || has_colour {
        bits.put(3, 5); // video_format: unspecified
        bits.flag(properties.is_full_range == Some(true));
        bits.flag(has_colour); // colour_description_present_flag
        if has_colour {
            let Colour { primaries, transfer, matrix } = properties.colour;
            [primaries, transfer, matrix].into_iter().for_each(|number| bits.put(8, number.into()));
        }
    }
    bits.flag(properties.chroma_place.is_some()); // chroma_loc_info_present_flag
    if let Some(place) = properties.chroma_place {
        bits.ue(place.into()); // chroma_sample_loc_type_top_field
        bits.ue(place.into()); // chroma_sample_loc_type_bottom_field
    }
    bits.flag(true); // timing_info_present_flag
    bits.put(32, properties.rate.under);
    bits.put(32, 2 * properties.rate.over); // in fields
    bits.flag(true); // fixed_frame_rate_flag
    bits.flag(false); // nal_hrd_parameters_present_flag
    bits.flag(false); // vcl_hrd_parameters_present_flag
    bits.flag(false); // pic_struct_present_flag
    bits.flag(true); // bitstream_restriction_flag
    bits.flag(true); // motion_vectors_over_pic_boundaries_flag
    bits.ue(0); // max_bytes_per_pic_denom: no limit
    bits.ue(0); // max_bits_per_mb_denom: no limit
    bits.ue(13); // log2_max_mv_length_horizontal
    bits.ue(9); // log2_max_mv_length_vertical
    bits.ue((structure.bidirectional > 0).into()); // max_num_reorder_frames
    bits.ue(kept as u32); // max_dec_frame_buffering
    let sequence = unit(Unit::Sequence, &bits.finish());

    let mut bits = Bits::default();
    bits.ue(0); // pic_parameter_set_id
    bits.ue(0); // seq_parameter_set_id
    bits.flag(profile == Profile::Main); // entropy_coding_mode_flag: arithmetic codes
    bits.flag(false); // bottom_field_pic_order_in_frame_present_flag
    bits.ue(0); // num_slice_groups_minus1
    bits.ue(0); // num_ref_idx_l0_default_active_minus1
    bits.ue(0); // num_ref_idx_l1_default_active_minus1
    bits.flag(false); // weighted_pred_flag
    bits.put(2, 0); // weighted_bipred_idc
    bits.se(0); // pic_init_qp_minus26
    bits.se(0); // pic_init_qs_minus26
    bits.se(0); // chroma_qp_index_offset
    bits.flag(false); // deblocking_filter_control_present_flag
    bits.flag(false); // constrained_intra_pred_flag
    bits.flag(false); // redundant_pic_cnt_present_flag
    [sequence, unit(Unit::Picture, &bits.finish())]
}

fn aspect(bits: &mut Bits, ratio: Option<Ratio>) {
    bits.flag(ratio.is_some());
    let Some(ratio) = ratio.map(|ratio| ratio.within(65535)) else { return };
    // Table E-1.
    const KNOWN: [(u32, u32); 16] = [
        (1, 1),
        (12, 11),
        (10, 11),
        (16, 11),
        (40, 33),
        (24, 11),
        (20, 11),
        (32, 11),
        (80, 33),
        (18, 11),
        (15, 11),
        (64, 33),
        (160, 99),
        (4, 3),
        (3, 2),
        (2, 1),
    ];
    match KNOWN.iter().position(|&known| known == (ratio.over, ratio.under)) {
        Some(i) => bits.put(8, i as u32 + 1),
        None => {
            bits.put(8, 255);
            bits.put(16, ratio.over);
            bits.put(16, ratio.under);
        }
    }
}

/// What a slice, here a picture, may be predicted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceType {
    /// Itself alone; decoding can begin there.
    I,
    /// Pictures before it.
    P,
    /// One before it and one behind it.
    B,
}

/// What becomes of the pictures that a decoder keeps, when one more comes that others are predicted from (8.2.5). Pictures are
/// counted back from the new one: 0 is the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marking {
    /// The oldest goes, if there is no room for the new one; those that stay do not.
    Sliding,
    /// One stays as a long-term reference.
    Long {
        /// Which.
        back: usize,
        /// Its number among those that stay; the one that has it goes.
        index: usize,
        /// How many may stay, told with the first of them.
        most: Option<usize>,
        /// One goes.
        gone: Option<usize>,
    },
}

/// What differs between the headers of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it is predicted from.
    pub slice_type: SliceType,
    /// Pictures since the last one at which decoding can begin that others are predicted from, in the order of coding.
    pub number: u64,
    /// Pictures since the last one at which decoding can begin, in the order in which they are shown.
    pub order: u64,
    /// Which key picture the last one was: those that follow one another have different numbers.
    pub key: u64,
    /// From how many pictures before it it may be predicted.
    pub references: usize,
    /// Which of the long-term references is the first of its list, if one is.
    pub first: Option<usize>,
    /// What becomes of those that are kept.
    pub marking: Marking,
    /// The quantiser.
    pub qp: u8,
}

fn marking(bits: &mut Bits, marking: Marking) {
    bits.flag(marking != Marking::Sliding); // adaptive_ref_pic_marking_mode_flag
    let Marking::Long { back, index, most, gone } = marking else { return };
    let mut operation = |number: u32, operands: &[usize]| {
        bits.ue(number); // memory_management_control_operation
        operands.iter().for_each(|operand| bits.ue(*operand as u32));
    };
    if let Some(most) = most {
        operation(4, &[most]); // max_long_term_frame_idx_plus1
    }
    operation(3, &[back, index]); // difference_of_pic_nums_minus1, long_term_frame_idx
    if let Some(gone) = gone {
        operation(1, &[gone]); // difference_of_pic_nums_minus1
    }
    operation(0, &[]);
}

/// The bits of a slice before its first macroblock.
pub fn slice_header(header: &Header, profile: Profile, structure: Structure) -> Bits {
    let mut bits = Bits::default();
    let slice_type = header.slice_type;
    bits.ue(0); // first_mb_in_slice
    // slice_type: all slices of the picture are such
    bits.ue(match slice_type {
        SliceType::P => 5,
        SliceType::B => 6,
        SliceType::I => 7,
    });
    bits.ue(0); // pic_parameter_set_id
    bits.put(NUMBER_BITS, (header.number % (1 << NUMBER_BITS)) as u32); // frame_num
    if slice_type == SliceType::I {
        bits.ue((header.key % 2) as u32); // idr_pic_id
    }
    if structure.bidirectional > 0 {
        bits.put(ORDER_BITS, (2 * header.order % (1 << ORDER_BITS)) as u32); // pic_order_cnt_lsb
    }
    match slice_type {
        SliceType::I => {
            bits.flag(false); // no_output_of_prior_pics_flag
            bits.flag(false); // long_term_reference_flag
        }
        SliceType::P => {
            bits.flag(header.references > 1); // num_ref_idx_active_override_flag
            if header.references > 1 {
                bits.ue(header.references as u32 - 1); // num_ref_idx_l0_active_minus1
            }
            bits.flag(header.first.is_some()); // ref_pic_list_modification_flag_l0
            if let Some(index) = header.first {
                bits.ue(2); // modification_of_pic_nums_idc: a long-term reference
                bits.ue(index as u32); // long_term_pic_num
                bits.ue(3); // modification_of_pic_nums_idc: no other
            }
            marking(&mut bits, header.marking);
        }
        SliceType::B => {
            bits.flag(true); // direct_spatial_mv_pred_flag
            bits.flag(false); // num_ref_idx_active_override_flag
            bits.flag(false); // ref_pic_list_modification_flag_l0
            bits.flag(false); // ref_pic_list_modification_flag_l1
        }
    }
    if profile == Profile::Main && slice_type != SliceType::I {
        bits.ue(0); // cabac_init_idc
    }
    bits.se(i32::from(header.qp) - 26); // slice_qp_delta
    bits
}
