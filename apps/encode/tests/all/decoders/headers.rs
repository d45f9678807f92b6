//! Parameter sets and slice headers as ffmpeg reads them: what was asked for.

use crate::support::{has_ffmpeg, run, video};
use std::collections::HashMap;
use std::process::Command;

/// The fields of a unit and their values.
type Fields = HashMap<String, i64>;

/// The units of a stream, in order.
fn units(stream: &[u8]) -> Vec<(String, Fields)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.h264");
    std::fs::write(&path, stream).unwrap();
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-nostats", "-i"])
        .arg(&path)
        .args(["-c", "copy", "-bsf:v", "trace_headers", "-f", "null", "-"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let mut units: Vec<(String, Fields)> = Vec::new();
    // Before the first packet the first parameter sets are told once more.
    let lines = text.lines().filter_map(|line| Some(line.strip_prefix("[trace_headers @ ")?.split_once("] ")?.1));
    for line in lines.skip_while(|line| !line.starts_with("Packet:")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            // Where it is, what it is, its bits, and what they say.
            [_, name, _, "=", value] => {
                let fields = &mut units.last_mut().unwrap().1;
                fields.insert(name.to_owned(), value.parse().unwrap());
            }
            [.., "Set" | "Header"] => units.push((line.to_owned(), Fields::new())),
            _ => assert_eq!(words[0], "Packet:", "{line}"),
        }
    }
    units
}

#[track_caller]
fn holds(fields: &Fields, expected: &[(&str, i64)]) {
    for (name, value) in expected {
        assert_eq!(fields.get(*name), Some(value), "{name}: {fields:?}");
    }
}

/// What is asked of an encoder, and what follows for its headers.
struct Asked<'a> {
    size: (usize, usize),
    options: &'a [&'a str],
    profile: i64,
    level: i64,
    keyint: i64,
    bidirectional: i64,
    /// Pictures that one may be predicted from, and that a decoder keeps.
    references: i64,
    kept: i64,
    sequence: &'a [(&'a str, i64)],
}

const QP: i64 = 40;
const PICTURES: i64 = 11;

impl Asked<'_> {
    fn sets(&self, sequence: &Fields, pictures: &Fields) {
        let &Asked { size: (width, height), profile, level, bidirectional, kept, .. } = self;
        let (columns, rows) = (width.div_ceil(16), height.div_ceil(16));
        let (right, bottom) = (16 * columns - width, 16 * rows - height);
        holds(
            sequence,
            &[
                ("profile_idc", profile),
                ("constraint_set0_flag", i64::from(profile == 66)),
                ("constraint_set1_flag", 1),
                ("level_idc", level),
                ("max_num_ref_frames", kept),
                ("max_dec_frame_buffering", kept),
                ("max_num_reorder_frames", i64::from(bidirectional > 0)),
                ("pic_width_in_mbs_minus1", columns as i64 - 1),
                ("pic_height_in_map_units_minus1", rows as i64 - 1),
                ("frame_mbs_only_flag", 1),
                ("frame_cropping_flag", i64::from(right + bottom > 0)),
                ("fixed_frame_rate_flag", 1),
            ],
        );
        if right + bottom > 0 {
            holds(
                sequence,
                &[
                    ("frame_crop_left_offset", 0),
                    ("frame_crop_right_offset", right as i64 / 2),
                    ("frame_crop_top_offset", 0),
                    ("frame_crop_bottom_offset", bottom as i64 / 2),
                ],
            );
        }
        holds(sequence, self.sequence);
        holds(pictures, &[("entropy_coding_mode_flag", i64::from(profile == 77)), ("weighted_pred_flag", 0)]);
    }

    /// What each slice says, in the order of decoding.
    fn slices(&self) -> Vec<Vec<(&'static str, i64)>> {
        let mut slices = Vec::new();
        for (index, key) in (0..PICTURES).step_by(self.keyint as usize).enumerate() {
            let end = PICTURES.min(key + self.keyint);
            let order = |number: i64| (self.bidirectional > 0).then_some(("pic_order_cnt_lsb", 2 * (number - key)));
            let mut say = |kind, count, number, rest: &[(&'static str, i64)]| {
                let common = [("slice_type", kind), ("frame_num", count), ("first_mb_in_slice", 0)];
                slices.push(common.into_iter().chain(rest.iter().copied()).chain(order(number)).collect::<Vec<_>>());
            };
            // Keys that follow one another have different numbers.
            let id = (index as i64 + 1) % 2;
            say(7, 0, key, &[("nal_unit_type", 5), ("idr_pic_id", id), ("slice_qp_delta", QP - 3 - 26)]);
            let (mut at, mut count) = (key + 1, 1);
            while at < end {
                let last = (at + self.bidirectional).min(end - 1);
                let from = self.references.min(count);
                let mut rest = vec![("nal_unit_type", 1), ("slice_qp_delta", QP - 26)];
                rest.push(("num_ref_idx_active_override_flag", i64::from(from > 1)));
                rest.extend((from > 1).then_some(("num_ref_idx_l0_active_minus1", from - 1)));
                say(5, count, last, &rest);
                count += 1;
                for number in at..last {
                    let rest = [("nal_unit_type", 1), ("nal_ref_idc", 0), ("direct_spatial_mv_pred_flag", 1)];
                    say(6, count, number, &rest);
                }
                at = last + 1;
            }
        }
        slices
    }

    #[track_caller]
    fn is_written(&self) {
        let (width, height) = self.size;
        let (qp, keyint) = (QP.to_string(), self.keyint.to_string());
        let args = ["-", "-o", "-", "--no-scenecut", "--qp", &qp, "--keyint", &keyint];
        let output = run(&[&args, self.options].concat(), &video(width, height, PICTURES as usize));
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let mut expected = self.slices().into_iter();
        let mut found = units(&output.stdout).into_iter();
        let mut keys = 0;
        while let Some((name, fields)) = found.next() {
            let slice = match name.as_str() {
                "Sequence Parameter Set" => {
                    let [pictures, slice] = [(); 2].map(|()| found.next().unwrap());
                    assert_eq!([&pictures.0, &slice.0], ["Picture Parameter Set", "Slice Header"]);
                    self.sets(&fields, &pictures.1);
                    assert_eq!(slice.1["nal_unit_type"], 5);
                    keys += 1;
                    slice.1
                }
                _ => fields,
            };
            holds(&slice, &expected.next().unwrap());
        }
        assert_eq!((expected.next(), keys), (None, (PICTURES + self.keyint - 1) / self.keyint));
    }
}

#[test]
fn headers_say_what_was_asked_for() {
    if !has_ffmpeg() {
        return;
    }
    let of_input = [
        ("aspect_ratio_idc", 255),
        ("sar_width", 128),
        ("sar_height", 117),
        ("video_full_range_flag", 0),
        ("colour_description_present_flag", 0),
        ("chroma_sample_loc_type_top_field", 1),
        ("num_units_in_tick", 1001),
        ("time_scale", 60000),
    ];
    let asked =
        "--sar 4:3 --rate 25 --range full --primaries bt2020 --transfer smpte2084 --matrix bt2020nc --preset fast";
    let plain = Asked {
        size: (176, 144),
        options: &[],
        profile: 66,
        level: 11,
        keyint: 250,
        bidirectional: 0,
        references: 1,
        kept: 1,
        sequence: &of_input,
    };
    plain.is_written();
    Asked {
        size: (98, 66),
        options: &asked.split(' ').collect::<Vec<_>>(),
        keyint: 4,
        sequence: &[
            ("aspect_ratio_idc", 14),
            ("video_full_range_flag", 1),
            ("colour_primaries", 9),
            ("transfer_characteristics", 16),
            ("matrix_coefficients", 9),
            ("num_units_in_tick", 1),
            ("time_scale", 50),
        ],
        ..plain
    }
    .is_written();
    // CIF at 30 a second, and what is a row wider.
    Asked { size: (352, 288), level: 13, keyint: 1, ..plain }.is_written();
    Asked { size: (354, 288), level: 21, keyint: 2, options: &["--preset", "slow"], references: 3, kept: 3, ..plain }
        .is_written();
    let main = Asked { options: &["--profile", "main"], profile: 77, bidirectional: 2, kept: 2, ..plain };
    main.is_written();
    let options = ["--profile", "main", "--preset", "slow"];
    let slow = Asked { size: (640, 352), level: 30, keyint: 5, options: &options, references: 3, kept: 3, ..main };
    slow.is_written();
    let options = ["--profile", "main", "--bframes", "3", "--refs", "4"];
    Asked { size: (1280, 720), level: 31, options: &options, references: 4, kept: 4, bidirectional: 3, ..main }
        .is_written();
    // Too many for the memory of level 3.2.
    let options = ["--refs", "6", "--preset", "fast"];
    Asked { size: (1280, 720), level: 40, options: &options, references: 6, kept: 6, ..plain }.is_written();
    // And some that stay.
    let options = ["--long", "2", "--refs", "2", "--preset", "fast"];
    Asked { options: &options, references: 2, kept: 4, ..plain }.is_written();
    Asked { size: (1920, 1080), level: 40, keyint: 3, options: &["--preset", "fast"], ..plain }.is_written();
}
