//! What other decoders show of the streams, beside the encoder's own pictures; each where it is installed.

#[path = "decoders/headers.rs"]
mod headers;
use crate::support;

use multigrain::Abort;
use multigrain_encode::encoder::{Encoder, Next, Options, with_start_codes};
use multigrain_encode::headers::{Profile, Properties, Ratio, Structure};
use multigrain_encode::kernel::Kernels;
use multigrain_encode::picture::Size;
use multigrain_encode::rate::{Keys, Rate};
use multigrain_encode::search::Effort;
use multigrain_encode::source::Source;
use multigrain_simd::Isa;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::pictures::planes;
use support::{has_ffmpeg, has_program, is_there, run, shown, video};

/// The driver of openh264 that `bench/install-peers.sh` builds.
fn openh264() -> Option<PathBuf> {
    let peers = std::env::var_os("MULTIGRAIN_PEERS").map(PathBuf::from);
    let peers = peers.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers"));
    let program = peers.join("bin/openh264");
    is_there(program.exists(), "openh264; bench/install-peers.sh builds its driver").then_some(program)
}

/// What openh264 shows of a stream.
fn shown_by(openh264: &Path, path: &Path) -> Vec<u8> {
    let out = path.with_extension("yuv");
    let done = Command::new(openh264).arg("decode").args([path, &out]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    std::fs::read(&out).unwrap()
}

const SIZE: Size = Size { width: 70, height: 54 };

/// Streams for all quantisers, one behind the other, with macroblocks whose samples are stored; and their pictures as the encoder
/// has them.
fn all_quantisers(path: &Path, profile: Profile, structure: Structure, effort: Effort) -> Vec<Vec<u8>> {
    let properties = Properties::plain(SIZE, Ratio { over: 25, under: 1 });
    let (mut stream, mut expected) = (Vec::new(), Vec::new());
    let (kernels, abort) = (Kernels::new(Isa::detect()), Abort::new());
    for qp in 0..52 {
        // Key pictures beside each other have different numbers, for each stream has two.
        let keys = Keys { interval: if structure.kept() > 1 { 11 } else { 6 }, at_cuts: false };
        let options = Options { rate: Rate::Constant(qp), keys, effort, profile, structure };
        let mut encoder = Encoder::new(properties, options, &kernels);
        let mut pictures = vec![Vec::new(); 12];
        for number in 0..12 {
            let mut bytes = planes(SIZE.width, SIZE.height, number);
            // Another scene, and back.
            if structure.long > 0 && matches!(number, 3..5 | 8..10) {
                bytes.iter_mut().for_each(|sample| *sample = 255 - *sample / 2);
            }
            // Black and white noise in a part of the picture cannot be coded in as few bits as a macroblock may have.
            let mut noise = 12345_u32 + number as u32;
            for sample in &mut bytes[..SIZE.width * SIZE.height / 2] {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *sample = if noise >> 30 == 0 { 255 } else { 0 };
            }
            let mut source = Source::default();
            source.fill(SIZE, &bytes);
            encoder.push(source);
        }
        encoder.end();
        while let Next::Picture(flight) = encoder.advance() {
            for _ in 0..flight.wave.jobs() {
                flight.wave.step(&abort);
            }
            let picture = flight.encoded();
            stream.extend(with_start_codes(&picture.units));
            pictures[picture.number as usize] = flight.shown();
        }
        expected.extend(pictures);
    }
    std::fs::write(path, &stream).unwrap();
    expected
}

/// Compares so many pictures of each quantiser's twelve.
fn compare(shown: &[u8], expected: &[Vec<u8>], count: usize, context: &str) {
    assert_eq!(shown.len(), expected.len() * SIZE.bytes(), "{context}");
    let both = shown.chunks(SIZE.bytes()).zip(expected).enumerate();
    for (number, (shown, expected)) in both.filter(|(number, _)| number % 12 < count) {
        let differs = (0..expected.len()).find(|at| shown[*at] != expected[*at]);
        assert_eq!(differs, None, "qp {}, picture {}, {context}", number / 12, number % 12);
    }
}

/// Other decoders, for all quantisers and all that pictures may be predicted from.
#[test]
fn other_decoders_show_the_pictures_of_the_encoder() {
    let (has_ffmpeg, openh264) = (has_ffmpeg(), openh264());
    if !has_ffmpeg && openh264.is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h264");
    let effort = Effort { steps: 8, fine: 2, enough: 8, intra: 8, has_parts: true, skips_first: false };
    for (profile, references, long, bidirectional, has_parts) in [
        (Profile::Baseline, 1, 0, 0, true),
        (Profile::Baseline, 1, 0, 0, false),
        (Profile::Baseline, 11, 0, 0, true),
        (Profile::Baseline, 1, 2, 0, true),
        (Profile::Main, 1, 0, 0, true),
        (Profile::Main, 1, 1, 2, false),
        (Profile::Main, 3, 0, 3, true),
    ] {
        let structure = Structure { references, long, bidirectional };
        let context = format!("{profile:?}, {structure:?}");
        let expected =
            all_quantisers(&path, profile, structure, Effort { has_parts, skips_first: !has_parts, ..effort });
        if has_ffmpeg {
            compare(&shown(&path), &expected, 12, &context);
        }
        // Parts that are predicted from two sides openh264 does not show as they are (the next test); ffmpeg and the decoder of
        // `decoded.rs` do.
        if let Some(program) = &openh264
            && (bidirectional == 0 || !has_parts)
        {
            // Nor does it show the pictures around a key one, the last of the twelve, in their order where any are predicted from
            // two sides: of x264's streams, too.
            let count = if bidirectional > 0 { 10 } else { 12 };
            compare(&shown_by(program, &path), &expected, count, &format!("openh264, {context}"));
        }
    }
}

/// Streams by the program itself, with its presets, as ffmpeg and openh264 show them: 4K, sizes that are no multiple of a
/// macroblock, scenes that are cut, quantisers that differ from picture to picture.
#[test]
fn other_decoders_show_what_the_program_writes() {
    let (has_ffmpeg, openh264) = (has_ffmpeg(), openh264());
    let folder = tempfile::tempdir().unwrap();
    let (out, recon) = (folder.path().join("out.h264"), folder.path().join("out.yuv"));
    let [to, shows] = [&out, &recon].map(|path| path.to_str().unwrap());
    for (size, count, options) in [
        ((3840, 2160), 3, "--preset fast --qp 28"),
        ((3840, 2160), 3, "--profile main --qp 32"),
        ((2, 2), 3, "--preset slow"),
        ((18, 34), 8, "--preset slow --qp 20"),
        ((350, 18), 8, "--preset medium --crf 24"),
        ((130, 98), 40, "--preset fast --crf 30"),
        ((130, 98), 40, "--preset medium --bitrate 300k"),
        ((130, 98), 40, "--preset slow --bitrate 200k --keyint 9"),
        ((130, 98), 40, "--preset medium --crf 22 --profile main --bframes 0"),
        ((130, 98), 40, "--preset slow --bitrate 200k --profile main"),
        ((130, 98), 40, "--preset fast --crf 26 --profile main --bframes 3"),
    ] {
        let (width, height) = size;
        let mut input = format!("YUV4MPEG2 W{width} H{height} F25:1\n").into_bytes();
        for number in 0..count {
            input.extend(b"FRAME\n");
            let begin = input.len();
            input.extend(planes(width, height, number));
            // Other scenes from 13 and from 26 on.
            if (13..26).contains(&number) {
                input[begin..].iter_mut().for_each(|sample| *sample = 255 - *sample);
            }
        }
        let mut args = vec!["-", "-o", to, "--recon", shows];
        args.extend(options.split(' '));
        let output = run(&args, &input);
        assert_eq!(output.status.code(), Some(0), "{options}: {}", String::from_utf8_lossy(&output.stderr));
        let (stream, expected) = (std::fs::read(&out).unwrap(), std::fs::read(&recon).unwrap());
        if count > 26 && !options.contains("keyint") {
            let keys = stream.windows(5).filter(|w| w[..4] == [0, 0, 0, 1] && w[4] & 31 == 5).count();
            assert_eq!(keys, 3, "{options}: scenes begin with pictures at which decoding can begin");
        }
        let context = format!("{width} x {height} {options}");
        if has_ffmpeg {
            assert!(shown(&out) == expected, "ffmpeg, {context}");
        }
        // See below as to pictures that are predicted from two sides, which are shown in another order around keys, too.
        if let Some(program) = &openh264
            && (!options.contains("main") || options.contains("bframes 0"))
        {
            assert!(shown_by(program, &out) == expected, "openh264, {context}");
        }
    }
}

/// How often each kind of macroblock is in a stream, as ffmpeg reads it: how it is predicted (`I` as a whole from its picture, `i` block by
/// block, `P` stored, `S` and `d` skipped, `D` direct, `>` from before, `<` from behind, `X` both), and how it is cut (`-` in halves one
/// above the other, `|` beside each other, `+` in quarters).
fn kinds(path: &Path) -> std::collections::BTreeMap<String, usize> {
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-threads", "1", "-debug", "mb_type", "-i"])
        .arg(path)
        .args(["-f", "null", "-"])
        .output()
        .unwrap();
    let mut kinds = std::collections::BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        let row = line.strip_prefix("[h264 @ ").and_then(|rest| rest.split_once("] ")).map_or("", |(_, row)| row);
        // Three characters each.
        let row = row.as_bytes();
        let known = |kind: &[u8]| b"IiPSdD><X".contains(&kind[0]) && b" -|+".contains(&kind[1]) && kind[2] == b' ';
        if !row.is_empty() && row.len().is_multiple_of(3) && row.chunks(3).all(known) {
            for kind in row.chunks(3) {
                *kinds.entry(String::from_utf8_lossy(&kind[..2]).trim_end().to_owned()).or_default() += 1;
            }
        }
    }
    kinds
}

/// All kinds of macroblocks and cuts are in the streams that decoders are compared by.
#[test]
fn streams_have_all_kinds_of_macroblocks() {
    if !has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h264");
    let effort = Effort { steps: 8, fine: 2, enough: 8, intra: 8, has_parts: true, skips_first: false };
    let predicted = ["I", "i", "P", "S", ">", ">-", ">|", ">+"];
    let both = [&["I", "i", "P", "S", ">", ">-", ">|", ">+"][..], &["d", "D", "<", "<-", "<|", "X", "X-", "X|", "X+"]]
        .concat();
    for (profile, bidirectional, expected) in
        [(Profile::Baseline, 0, &predicted[..]), (Profile::Main, 0, &predicted), (Profile::Main, 3, &both)]
    {
        let structure = Structure { bidirectional, ..Structure::PLAIN };
        all_quantisers(&path, profile, structure, effort);
        let found = kinds(&path);
        for kind in expected {
            assert!(found.get(*kind).is_some_and(|count| *count > 0), "{profile:?} has no {kind}: {found:?}");
        }
    }
}

/// What is left out above: of parts that are predicted from two sides openh264 shows other pictures than ffmpeg, whoever encoded
/// them. When this fails, it has learned it, and the comparison can be made.
#[test]
fn openh264_does_not_show_parts_from_two_sides_of_x264_either() {
    let Some(program) = openh264().filter(|_| has_ffmpeg() && has_program("x264", "--version")) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (input, path) = (folder.path().join("a.y4m"), folder.path().join("b.h264"));
    std::fs::write(&input, video(96, 64, 10)).unwrap();
    let shown_alike = |partitions: &str| {
        let done = Command::new("x264")
            .args([
                "--quiet",
                "--no-progress",
                "--profile",
                "main",
                "--bframes",
                "2",
                "--b-adapt",
                "0",
                "--b-pyramid",
                "none",
            ])
            .args(["--weightp", "0", "--no-weightb", "--ref", "1", "--qp", "24", "--direct", "spatial"])
            .args(["--partitions", partitions, "-o"])
            .args([&path, &input])
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let (expected, found) = (shown(&path), shown_by(&program, &path));
        assert!(expected.len() == found.len() && !found.is_empty());
        expected == found
    };
    assert!(shown_alike("none"), "wholes are shown alike");
    assert!(!shown_alike("b8x8"), "parts are shown alike now, too");
}

/// An MP4 file holds the stream, and says what was known of the pictures.
#[test]
fn ffmpeg_reads_the_file_and_what_it_says() {
    if !has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (film, stream) = (folder.path().join("a.mp4"), folder.path().join("a.h264"));
    let input = video(98, 66, 9);
    for path in [&film, &stream] {
        let output = run(&["-", "-o", path.to_str().unwrap(), "--keyint", "4"], &input);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let found = shown(&film);
    assert_eq!(found.len(), 9 * 98 * 66 * 3 / 2);
    assert!(found == shown(&stream));
    let probe = Command::new("ffmpeg").args(["-nostdin", "-i"]).arg(&film).output().unwrap();
    let text = String::from_utf8_lossy(&probe.stderr).into_owned();
    for word in ["98x66", "SAR 128:117", "29.97 fps", "Constrained Baseline", "tv"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

/// What is said of colours, range and aspect is in the stream and in the file; what the header says of it, otherwise.
#[test]
fn what_is_said_of_the_pictures_is_told() {
    if !has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let colours = ["--primaries", "bt2020", "--transfer", "smpte2084", "--matrix", "bt2020nc", "--range", "full"];
    let wide = ["--primaries", "bt470bg", "--transfer", "bt709", "--matrix", "smpte170m", "--sar", "100000:75000"];
    for (name, options, words) in [
        ("a.mp4", &colours, ["(pc, bt2020nc/bt2020/smpte2084", "SAR 128:117", "29.97 fps"]),
        ("a.h264", &colours, ["(pc, bt2020nc/bt2020/smpte2084", "SAR 128:117", "29.97 fps"]),
        ("b.mp4", &wide, ["yuv420p(tv, smpte170m/bt470bg/bt709", "SAR 4:3", "29.97 fps"]),
        ("b.h264", &wide, ["yuv420p(tv, smpte170m/bt470bg/bt709", "SAR 4:3", "29.97 fps"]),
    ] {
        let path = folder.path().join(name);
        let output = run(&[&["-", "-o", path.to_str().unwrap()], &options[..]].concat(), &video(98, 66, 3));
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let probe = Command::new("ffmpeg").args(["-nostdin", "-i"]).arg(&path).output().unwrap();
        let text = String::from_utf8_lossy(&probe.stderr).into_owned();
        words.iter().for_each(|word| assert!(text.contains(word), "{name}, {word}: {text}"));
    }
    let refused = run(&["-", "-o", "-", "--matrix", "gbr"], &video(98, 66, 1));
    assert_eq!(refused.status.code(), Some(2));
}

/// A file whose pictures are decoded in another order than shown says when they are shown: one after the other, from zero on.
#[test]
fn a_file_says_when_pictures_are_shown() {
    if !has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let film = folder.path().join("a.mp4");
    for (bidirectional, count) in [("0", 9), ("1", 8), ("3", 11), ("16", 5)] {
        let args =
            ["-", "-o", film.to_str().unwrap(), "--keyint", "7", "--profile", "main", "--bframes", bidirectional];
        let output = run(&args, &video(98, 66, count));
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let args = ["-nostdin", "-v", "error", "-copyts", "-i", film.to_str().unwrap(), "-f", "framecrc", "-"];
        let output = Command::new("ffmpeg").args(args).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let field = |line: &str, i: usize| line.split(',').nth(i).unwrap().trim().parse::<usize>().unwrap();
        let times: Vec<usize> = lines.map(|line| field(line, 2)).collect();
        assert!(times.iter().copied().eq(0..count), "--bframes {bidirectional}: {text}");
    }
}
