//! The program: what it writes, what it refuses, and that nothing half written stays.

use crate::support;

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use support::pictures::planes;
use support::{PROGRAM, has_ffmpeg, run, shown, video};

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[track_caller]
fn told(output: &Output, status: i32, words: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    words.iter().for_each(|word| assert!(text.contains(word), "{word}: {text}"));
}

#[test]
fn threads_policies_and_ways_in_do_not_change_the_stream() {
    let folder = tempfile::tempdir().unwrap();
    let (input, size) = (video(98, 66, 20), (98, 66));
    let file = folder.path().join("in.y4m");
    std::fs::write(&file, &input).unwrap();
    let file = file.to_str().unwrap();
    let expected = run(&["-", "-o", "-", "--qp", "30", "--threads", "1"], &input);
    assert_eq!(expected.status.code(), Some(0), "{}", String::from_utf8_lossy(&expected.stderr));
    for policy in ["static", "edtlp", "hybrid:1", "llp:1", "mgps", "marginal"] {
        for threads in ["1", "2", "5"] {
            let args = [file, "-o", "-", "--qp", "30", "--threads", threads, "--policy", policy];
            let found = run(&args, &[]);
            assert!(found.stdout == expected.stdout, "{policy}, {threads}: {}", String::from_utf8_lossy(&found.stderr));
        }
    }
    // Of pictures with more rows several are under way at once.
    let tall = video(34, 274, 14);
    let expected_tall = run(&["-", "-o", "-", "--threads", "1", "--profile", "main", "--keyint", "9"], &tall).stdout;
    for (threads, policy) in [("2", "marginal"), ("2", "static"), ("3", "mgps"), ("4", "hybrid:2"), ("7", "marginal")] {
        let args = ["-", "-o", "-", "--threads", threads, "--policy", policy, "--profile", "main", "--keyint", "9"];
        let found = run(&args, &tall);
        assert!(found.stdout == expected_tall, "{policy}, {threads}: {}", String::from_utf8_lossy(&found.stderr));
    }
    // Nor does what is off-loaded.
    for cut in ["1", "3", "1000"] {
        let found = run(&[file, "-o", "-", "--qp", "30", "--threads", "2", "--cut", cut], &[]);
        assert!(found.stdout == expected.stdout, "{cut}: {}", String::from_utf8_lossy(&found.stderr));
    }
    // Nor where motion is searched in the serial part.
    let expected_fast = run(&[file, "-o", "-", "--preset", "fast", "--refs", "2", "--threads", "1"], &[]).stdout;
    assert!(expected_fast != run(&[file, "-o", "-", "--refs", "2", "--threads", "1"], &[]).stdout);
    for (threads, cut) in [("1", "1"), ("2", "1"), ("2", "3"), ("2", "1000"), ("3", "rows")] {
        let found = run(&[file, "-o", "-", "--preset", "fast", "--refs", "2", "--threads", threads, "--cut", cut], &[]);
        assert!(found.stdout == expected_fast, "fast, {threads}, {cut}: {}", String::from_utf8_lossy(&found.stderr));
    }
    // The same without header has other properties, but the same pictures: all units but the parameter sets.
    let raw: Vec<u8> = (0..20).flat_map(|number| planes(size.0, size.1, number)).collect();
    let found = run(&["-", "-o", "-", "--qp", "30", "--size", "98x66"], &raw).stdout;
    let slices = |stream: &[u8]| {
        let at = stream.windows(5).position(|w| w[..4] == [0, 0, 0, 1] && w[4] & 31 == 5).unwrap();
        stream[at..].to_vec()
    };
    assert!(slices(&found) == slices(&expected.stdout));
}

/// Whatever the quantisers follow, the stream is the same for all numbers of threads; a rate of bits is met, and a better
/// quality takes more.
#[test]
fn rates_are_followed_by_any_number_of_threads() {
    let input = video(96, 64, 150);
    let mut bytes = Vec::new();
    let (one, both) = (["--profile", "baseline"], ["--profile", "main"]);
    let asked = [["--crf", "20"], ["--crf", "30"], ["--bitrate", "300k"], ["--bitrate", "0.6M"], ["--bitrate", "300k"]];
    for (rate, profile) in asked.into_iter().zip([one, one, one, one, both]) {
        let of = |threads: &str| {
            let found = run(&[&["-", "-o", "-", "--threads", threads], &rate[..], &profile].concat(), &input);
            assert_eq!(found.status.code(), Some(0), "{rate:?}: {}", String::from_utf8_lossy(&found.stderr));
            found.stdout
        };
        let stream = of("1");
        assert!(stream == of("3"), "{rate:?}");
        bytes.push(stream.len());
    }
    assert!(bytes[0] > bytes[1], "{bytes:?}");
    // 150 pictures at 30000/1001 a second.
    let seconds = 150.0 * 1001.0 / 30000.0;
    for (bytes, wanted) in bytes[2..].iter().zip([300e3, 600e3, 300e3]) {
        let rate = *bytes as f64 * 8.0 / seconds;
        assert!((rate / wanted - 1.0).abs() < 0.1, "{rate} instead of {wanted}");
    }
    for args in [["--crf", "52"], ["--bitrate", "12"], ["--bitrate", "much"]] {
        assert_eq!(run(&[&["-", "-o", "-"], &args[..]].concat(), &input).status.code(), Some(2), "{args:?}");
    }
    assert_eq!(run(&["-", "-o", "-", "--crf", "20", "--qp", "20"], &input).status.code(), Some(2));
}

/// What a quiet stretch did not take is not spent on the busy one behind it.
#[test]
fn a_rate_holds_behind_a_quiet_stretch() {
    let (width, height, quiet) = (96, 64, 900);
    let busy = video(width, height, 150);
    let begin = busy.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let black = [b"FRAME\n".to_vec(), vec![16; width * height], vec![128; width * height / 2]].concat();
    let input = [&busy[..begin], &black.repeat(quiet), &busy[begin..]].concat();
    for profile in ["baseline", "main"] {
        let stream = run(&["-", "-o", "-", "--bitrate", "150k", "--profile", profile], &input).stdout;
        let rate = stream.len() as f64 * 8.0 / (150.0 * 1001.0 / 30000.0);
        // With a second's worth of what was left, and the quiet stretch itself.
        assert!(rate < 1.4 * 150e3, "{profile}: {rate}");
    }
}

#[test]
fn a_report_says_what_was_done() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.mp4");
    let output = run(&["-", "-o", out.to_str().unwrap(), "--json"], &video(32, 32, 5));
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["pictures"], 5);
    assert_eq!(object["bytes"], std::fs::metadata(&out).unwrap().len());
    assert_eq!(names(folder.path()), ["out.mp4"]);
}

/// Where it is known how many pictures come, the header of a file lies before them, for players over a network; else behind them.
#[test]
fn the_header_lies_before_the_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("in.y4m"), folder.path().join("out.mp4"));
    let whole = video(34, 34, 400);
    std::fs::write(&file, &whole).unwrap();
    let (from, to) = (file.to_str().unwrap(), out.to_str().unwrap());
    let boxes = || {
        let bytes = std::fs::read(&out).unwrap();
        let (mut names, mut at) = (Vec::new(), 0);
        while at < bytes.len() {
            let number =
                |at: usize, count: usize| bytes[at..at + count].iter().fold(0, |sum, byte| sum << 8 | *byte as usize);
            names.push(String::from_utf8(bytes[at + 4..at + 8].to_vec()).unwrap());
            at += if number(at, 4) == 1 { number(at + 8, 8) } else { number(at, 4) };
        }
        assert_eq!(at, bytes.len());
        names
    };
    let stream = folder.path().join("out.h264");
    let encode = |input: &str, options: &[&str]| {
        for to in [to, stream.to_str().unwrap()] {
            let output = run(&[&[input, "-o", to], options].concat(), &whole);
            assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        }
        if has_ffmpeg() {
            assert!(shown(&out) == shown(&stream), "{input}, {options:?}");
        }
        boxes()
    };
    for options in ["", "--keyint 1", "--keyint 7", "--profile main --bframes 2"] {
        let options: Vec<&str> = options.split_whitespace().chain(["--no-scenecut"]).collect();
        assert_eq!(encode(from, &options), ["ftyp", "moov", "free", "mdat"], "{options:?}");
    }
    assert_eq!(encode("-", &[]), ["ftyp", "mdat", "moov"]);
}

/// Bits are those of pictures: the same in whatever they lie.
#[test]
fn bits_do_not_depend_on_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let input = video(66, 50, 15);
    let found = ["a.h264", "a.mp4"].map(|name| {
        let out = folder.path().join(name);
        let args = ["-", "-o", out.to_str().unwrap(), "--bitrate", "2k", "--json"];
        let output = run(&args, &input);
        let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(object["bits_per_second_asked"], 2000.0);
        (object["bits_per_second"].clone(), object["bytes"].clone(), String::from_utf8(output.stderr).unwrap())
    });
    let [stream, file] = &found;
    assert_eq!((&stream.0, &stream.2), (&file.0, &file.2));
    assert!(stream.2.contains("kb/s instead of 2;"), "{}", stream.2);
    assert_ne!(stream.1, file.1);
}

/// What is complete is said to be, where the report of it cannot be written.
#[test]
fn a_report_that_cannot_be_written_says_that_the_file_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let (input, whole, out) =
        (folder.path().join("in.y4m"), folder.path().join("whole.mp4"), folder.path().join("out.mp4"));
    std::fs::write(&input, video(32, 32, 3)).unwrap();
    let (from, to) = (input.to_str().unwrap(), out.to_str().unwrap());
    assert_eq!(run(&[from, "-o", whole.to_str().unwrap()], &[]).status.code(), Some(0));
    for rest in ["> /dev/full", "--json > /dev/full", ">&-"] {
        let command = format!("exec {PROGRAM} {from} -o {to} {rest}");
        let found = Command::new("bash").args(["-c", &command]).output().unwrap();
        told(&found, 1, &["out.mp4 is complete, but cannot write to standard output"]);
        assert!(std::fs::read(&out).unwrap() == std::fs::read(&whole).unwrap(), "{rest}");
        std::fs::remove_file(&out).unwrap();
    }
}

/// What a user can compare a decoder with, and how near it is to the source.
#[test]
fn pictures_are_written_as_players_show_them() {
    let folder = tempfile::tempdir().unwrap();
    let (out, recon) = (folder.path().join("out.h264"), folder.path().join("out.yuv"));
    let [to, shows] = [&out, &recon].map(|path| path.to_str().unwrap());
    let input = video(70, 54, 14);
    for options in [["--preset", "fast"], ["--profile", "main"], ["--bitrate", "200k"]] {
        let args = [&["-", "-o", to, "--recon", shows, "--json", "--threads", "3"], &options[..]].concat();
        let output = run(&args, &input);
        let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let pictures = std::fs::read(&recon).unwrap();
        let source: Vec<u8> = (0..14).flat_map(|number| planes(70, 54, number)).collect();
        assert_eq!(pictures.len(), source.len());
        let squares: f64 = pictures.iter().zip(&source).map(|(a, b)| f64::from(a.abs_diff(*b)).powi(2)).sum();
        let psnr = 10.0 * (255.0 * 255.0 * source.len() as f64 / squares).log10();
        assert!((object["psnr"].as_f64().unwrap() - psnr).abs() < 1e-9, "{psnr}, {object}");
        if has_ffmpeg() {
            assert!(shown(&out) == pictures, "{options:?}");
        }
        // The stream is the same without.
        let with = std::fs::read(&out).unwrap();
        run(&[&["-", "-o", to], &options[..]].concat(), &input);
        assert!(std::fs::read(&out).unwrap() == with, "{options:?}");
    }
    std::fs::remove_file(&out).unwrap();
    std::fs::remove_file(&recon).unwrap();
    told(&run(&["-", "-o", to, "--recon", to], &input), 2, &["is the output", "--recon"]);
    told(&run(&["-", "-o", to, "--recon", shows], &input[..input.len() - 1]), 1, &["cut off"]);
    told(&run(&["-", "-o", to, "--recon", "/dev/full"], &input), 2, &["/dev/full", "device"]);
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_trace_is_written_beside_the_same_stream() {
    let folder = tempfile::tempdir().unwrap();
    let (out, trace) = (folder.path().join("out.h264"), folder.path().join("out.trace"));
    let (input, out) = (video(64, 64, 9), out.to_str().unwrap());
    let plain = run(&["-", "-o", "-", "--threads", "2"], &input);
    let traced = run(&["-", "-o", out, "--threads", "2", "--trace", trace.to_str().unwrap()], &input);
    assert_eq!(traced.status.code(), Some(0), "{}", String::from_utf8_lossy(&traced.stderr));
    assert!(std::fs::read(out).unwrap() == plain.stdout);
    assert!(std::fs::metadata(&trace).unwrap().len() > 0);
    told(&run(&["-", "-o", out, "--trace", out], &input), 2, &["out.h264", "--trace"]);
}

#[test]
fn what_is_wrong_is_told_in_one_line_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.mp4");
    let out = out.to_str().unwrap();
    let whole = video(32, 32, 12);
    told(&run(&["-", "-o", out], &whole[..whole.len() - 1]), 1, &["cut off", "picture 12", "1535 of 1536"]);
    told(&run(&["-", "-o", out], &video(33, 32, 1)), 2, &["33 x 32", "even"]);
    told(&run(&["-", "-o", out], b"RIFF"), 2, &["YUV4MPEG2", "ffmpeg -i FILE -pix_fmt yuv420p -f yuv4mpegpipe -"]);
    let other = b"YUV4MPEG2 W32 H32 C422\n";
    told(&run(&["-", "-o", out], other), 2, &["422", "ffmpeg -i FILE -pix_fmt yuv420p -f yuv4mpegpipe -"]);
    told(&run(&["-", "-o", out], &video(32, 32, 0)), 2, &["standard input has no pictures"]);
    // Larger than any level: that is not told of what fails.
    told(&run(&["-", "-o", out], b"YUV4MPEG2 W16384 H16384\nFRAME\n"), 1, &["cut off"]);
    let mut damaged = whole.clone();
    let place = damaged.len() - 1537;
    damaged[place] = b'x';
    told(&run(&["-", "-o", out], &damaged), 2, &["picture 12", "damaged"]);
    told(&run(&["no such.y4m", "-o", out], b""), 2, &["no such.y4m"]);
    told(&run(&["-", "-o", out, "--bframes", "2"], &whole), 2, &["--bframes 2", "--profile main"]);
    let shared = run(&["-", "-o", out, "--threads", "2", "--policy", "llp:3"], &whole);
    told(&shared, 2, &["--policy llp:3", "there are 2", "--threads 3"]);
    // Options of which one does nothing beside the other.
    for (options, word) in [
        (["--keyint", "1", "--bframes", "2"], "--bframes 2"),
        (["--keyint", "2", "--bframes", "1"], "--bframes 1"),
        (["--keyint", "1", "--refs", "16"], "--refs 16"),
        (["--keyint", "2", "--long", "3"], "--long 3"),
    ] {
        let found = run(&[&["-", "-o", out, "--profile", "main"], &options[..]].concat(), &whole);
        told(&found, 2, &[word, "does nothing with --keyint", "or more"]);
    }
    told(&run(&["-", "-o", "mp4"], &whole), 2, &["mp4 ends neither"]);
    told(&run(&["-", "-o", "out.avi"], &whole), 2, &["out.avi", ".mp4"]);
    // What cannot be understood, too.
    for (options, words) in [
        (["--size", "3x4"], ["3x4", "even"]),
        (["--bitrate", "800"], ["800", "from 1k to 1000G"]),
        (["--policy", "nope"], ["nope", "marginal"]),
        (["--preset", "fst"], ["fst", "tip: a similar value exists: 'fast'"]),
        (["--qpp", "3"], ["--qpp", "--qp"]),
        (["--crf", "-1"], ["-1", "from 0 to 51"]),
        (["--sar", "101:1"], ["--sar asks for samples of 101:1", "1:100 to 100:1"]),
        (["--size", "1x1"], [": 1 x 1; H.264", "even"]),
    ] {
        told(&run(&[&["-", "-o", out], &options[..]].concat(), &whole), 2, &words);
    }
    told(&run(&["-", "-o", out, "--qp", "3", "--crf", "3"], &whole), 2, &["--qp", "cannot be used with", "--crf"]);
    told(&run(&["-", "-o", out, "--qp", "3", "--qp", "4"], &whole), 2, &["--qp", "cannot be used multiple times"]);
    told(&run(&["-"], &whole), 2, &["required", "--output"]);
    let pipe = folder.path().join("out.h264");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let shell = format!("-o - > {}", pipe.display());
    told(&run(&["-", "-o", pipe.to_str().unwrap()], &whole), 2, &["device or a pipe", &shell]);
    std::fs::remove_file(&pipe).unwrap();
    told(&run(&["-", "-o", out, "--size", "32x32"], &whole), 2, &["leave out --size", "has a header"]);
    let short = run(&["-", "-o", out, "--size", "320x320"], &whole[100..]);
    told(&short, 1, &["cut off", "correct --size"]);
    assert!(!String::from_utf8_lossy(&short.stderr).contains("picture 0"));
    let long = folder.path().join(format!("{}.mp4", "a".repeat(252)));
    told(&run(&["-", "-o", long.to_str().unwrap()], b"RIFF"), 2, &["too long", "shorter"]);
    told(&run(&["-", "-o", "/no such folder/out.mp4"], &whole), 2, &["no such folder"]);
    assert!(names(folder.path()).is_empty());
}

/// Inputs that are damaged anywhere: done, or told in one line, and then nothing is left.
#[test]
fn damaged_inputs_are_encoded_or_told() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.mp4");
    let whole = video(18, 18, 3);
    let header = whole.iter().position(|byte| *byte == b'\n').unwrap();
    let first = std::env::var("MULTIGRAIN_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1_u64);
    for seed in first..first + 60 {
        let mut number = seed;
        let mut random = |most: usize| {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (number >> 33) as usize % most
        };
        let mut bytes = whole.clone();
        for _ in 0..=random(3) {
            let at = if random(2) > 0 { random(header) } else { random(bytes.len()) };
            match random(4) {
                0 => bytes.truncate(at.max(1)),
                1 => drop(bytes.remove(at.min(bytes.len() - 1))),
                2 => bytes.insert(at.min(bytes.len()), b"0 9\x1b\nF"[random(6)]),
                _ => bytes[at.min(whole.len() - 1) % whole.len().min(header)] = b"0918 :\xffWH"[random(9)],
            }
            if bytes.len() <= header {
                break;
            }
        }
        let output = run(&["-", "-o", out.to_str().unwrap(), "--threads", "2"], &bytes);
        let text = String::from_utf8_lossy(&output.stderr);
        let context = format!("MULTIGRAIN_SEED={seed}: {text}");
        match output.status.code() {
            Some(0) => std::fs::remove_file(&out).unwrap_or_else(|e| panic!("{context}: {e}")),
            Some(1 | 2) => assert!(text.lines().count() == 1 && !text.contains('\x1b'), "{context}"),
            _ => panic!("{context}"),
        }
        assert!(names(folder.path()).is_empty(), "{context}");
    }
}

/// Whatever rate an input says, a file has it, or it is refused before anything is encoded.
#[test]
fn unusual_rates_are_written_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.mp4");
    let all = video(32, 32, 12);
    let frames = all.windows(6).position(|w| w == b"FRAME\n").unwrap();
    let args = ["-", "-o", out.to_str().unwrap(), "--profile", "main", "--bframes", "16"];
    for (rate, is_fine) in [
        ("1:2000000000", false),
        ("4294967295:1", false),
        ("4000000000:1001", false),
        ("1:100000", true),
        ("42951:4294967291", true),
        ("4294967291:42951", true),
    ] {
        let input = [format!("YUV4MPEG2 W32 H32 F{rate}\n").as_bytes(), &all[frames..]].concat();
        let output = run(&args, &input);
        if is_fine {
            assert_eq!(output.status.code(), Some(0), "{rate}: {}", String::from_utf8_lossy(&output.stderr));
            if has_ffmpeg() {
                let entries = ["-v", "error", "-show_entries", "stream=time_base,duration_ts", "-of", "csv=p=0"];
                let said = Command::new("ffprobe").args(entries).arg(&out).output().unwrap().stdout;
                // Ticks a second, and ticks of all.
                let said = String::from_utf8(said).unwrap();
                let (ticks, lasts) = said.trim().split_once(',').unwrap();
                let ticks: f64 = ticks.strip_prefix("1/").unwrap().parse().unwrap();
                let found = 12.0 * ticks / lasts.parse::<f64>().unwrap();
                let (over, under) = rate.split_once(':').unwrap();
                let expected = over.parse::<f64>().unwrap() / under.parse::<f64>().unwrap();
                assert!((found / expected - 1.0).abs() < 0.001, "{rate}: {said}");
            }
        } else {
            told(&output, 2, &[rate, "pictures a second", "--rate"]);
            assert!(names(folder.path()).is_empty());
            let corrected = run(&["-", "-o", "-", "--rate", "25"], &input);
            assert_eq!(corrected.status.code(), Some(0), "{}", String::from_utf8_lossy(&corrected.stderr));
        }
    }
    std::fs::remove_file(&out).unwrap();
    // So are shapes of samples that stop players.
    for aspect in ["65535:1", "1:3000000000", "3000000000:1"] {
        let input = [format!("YUV4MPEG2 W32 H32 F25:1 A{aspect}\n").as_bytes(), &all[frames..]].concat();
        told(&run(&args, &input), 2, &[aspect, "--sar"]);
        assert_eq!(run(&[&args[..], &["--sar", "4:3"]].concat(), &input).status.code(), Some(0), "{aspect}");
        std::fs::remove_file(&out).unwrap();
    }
    told(&run(&["-", "-o", "-", "--size", "32x32", "--rate", "1:2000000000"], &[]), 2, &["1:2000000000"]);
    // However a rate is written, as others write it, too, it is the same stream.
    let stream = |rate: &str| {
        let output = run(&["-", "-o", "-", "--size", "32x32", "--rate", rate], &all[frames + 6..][..1536]);
        assert_eq!(output.status.code(), Some(0), "{rate}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    for [a, b] in [["30000:1001", "30000/1001"], ["30000:1001", "29.97"], ["30", "30/1"], ["25:2", "12.5"]] {
        assert!(stream(a) == stream(b), "{a} {b}");
    }
    assert!(stream("29.97") != stream("30"));
    // What a header says is corrected, too.
    let told_by_header = run(&["-", "-o", "-"], &video(32, 32, 2)).stdout;
    let corrected = run(&["-", "-o", "-", "--rate", "25"], &video(32, 32, 2)).stdout;
    assert!(corrected != told_by_header);
    assert!(run(&["-", "-o", "-", "--rate", "29.97"], &video(32, 32, 2)).stdout == told_by_header);
    for rate in ["29,97", "0.0", "1/0", "1.00000000000", "fast"] {
        told(&run(&["-", "-o", "-", "--size", "32x32", "--rate", rate], &[]), 2, &[rate, "30000/1001"]);
    }
}

#[test]
fn a_full_disk_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("in.y4m"), folder.path().join("out.h264"));
    std::fs::write(&input, video(128, 128, 12)).unwrap();
    let command = format!("ulimit -f 4; exec {PROGRAM} {} -o {} --qp 1", input.display(), out.display());
    told(&Command::new("bash").args(["-c", &command]).output().unwrap(), 1, &["out.h264", "nothing half written"]);
    let full = format!("exec {PROGRAM} {} -o - > /dev/full", input.display());
    told(&Command::new("bash").args(["-c", &full]).output().unwrap(), 1, &["standard output", "not complete"]);
    assert_eq!(names(folder.path()), ["in.y4m"]);
}

/// Pictures for which there is no memory are refused before the first.
#[test]
fn pictures_without_memory_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.mp4");
    let command =
        format!("ulimit -v 100000; exec {PROGRAM} - -o {} --size 4096x2048 --threads 1 </dev/zero", out.display());
    let output = Command::new("bash").args(["-c", &command]).output().unwrap();
    told(&output, 2, &["4096 x 2048", "MiB", "does not give; give fewer --threads"]);
    assert!(names(folder.path()).is_empty());
}

/// Where it comes to light later that there is too little memory, that is told, too, and nothing half written stays.
#[test]
fn memory_that_ends_on_the_way_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("in.yuv"), folder.path().join("out.mp4"));
    // Three pictures of noise, which is stored: what is written takes memory, too, and is not asked for before.
    let mut state = 1_u32;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    std::fs::write(&input, noise.take(3 * 2048 * 1024 * 3 / 2).collect::<Vec<u8>>()).unwrap();
    for threads in [1, 2] {
        // Some 17 MiB of limits are met on the way. All threads allocate from one arena: what more of them would reserve depends on
        // where the system happens to place them.
        let mut on_the_way = 0;
        let enough = (24..200).step_by(5).find(|mib| {
            let command = format!(
                "ulimit -v {}; exec {PROGRAM} {} -o {} --size 2048x1024 --threads {threads} --preset fast --qp 0",
                mib << 10,
                input.display(),
                out.display()
            );
            let output = Command::new("bash").args(["-c", &command]).env("MALLOC_ARENA_MAX", "1").output().unwrap();
            if output.status.success() {
                return true;
            }
            told(&output, 2, &["memory", "does not give", "give fewer --threads"]);
            on_the_way += u32::from(String::from_utf8_lossy(&output.stderr).contains("more bytes of memory"));
            assert_eq!(names(folder.path()), ["in.yuv"], "{threads} threads, {mib} MiB");
            false
        });
        assert!(
            on_the_way > 1,
            "{on_the_way} limits are met on the way by {threads} threads; {enough:?} MiB are enough"
        );
        std::fs::remove_file(&out).unwrap();
    }
}

/// Several runs beside each other share all processors: no thread is bound to one.
#[test]
fn runs_beside_each_other_share_processors() {
    let mut child = Command::new(PROGRAM)
        .args(["-", "-o", "-", "--qp", "0", "--threads", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut to = child.stdin.take().unwrap();
    // As much as pipes hold.
    to.write_all(&video(128, 128, 2)).unwrap();
    // What has come out has been encoded, and whoever did that waits for more.
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 100]).unwrap();
    let allowed = |status: &Path| -> Option<String> {
        let text = std::fs::read_to_string(status).unwrap();
        Some(text.lines().find(|line| line.starts_with("Cpus_allowed:"))?.to_owned())
    };
    let all = allowed(Path::new("/proc/self/status"));
    for thread in std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap() {
        assert_eq!(allowed(&thread.unwrap().path().join("status")), all);
    }
    drop(to);
    assert!(child.wait_with_output().unwrap().status.success());
}

/// A stream whose reader has gone is not complete, nor is one that nobody could read.
#[test]
fn a_reader_that_goes_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.y4m");
    std::fs::write(&input, video(128, 128, 60)).unwrap();
    let mut child = Command::new(PROGRAM)
        .args([input.to_str().unwrap(), "-o", "-", "--qp", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut begin = [0; 100];
    child.stdout.take().unwrap().read_exact(&mut begin).unwrap();
    told(&child.wait_with_output().unwrap(), 1, &["standard output", "not complete"]);
    let closed = |rest: &str| {
        let command = format!("exec {PROGRAM} {} {rest} >&-", input.display());
        Command::new("bash").args(["-c", &command]).output().unwrap()
    };
    told(&closed("-o -"), 2, &["standard output is closed"]);
    let out = folder.path().join("out.h264");
    told(&closed(&format!("--json -o {}", out.display())), 1, &["standard output", "closed"]);
    assert!(out.exists(), "it had been written before");
}

/// The first signal ends a run whose input has fallen silent, and nothing stays.
#[test]
fn a_signal_ends_the_wait_for_an_input_that_falls_silent() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.mp4");
    for out in [out.to_str().unwrap(), "-"] {
        let mut child = Command::new(PROGRAM);
        child.args(["-", "-o", out]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // More than a pipe holds: when all is written, it listens for signals, and waits for the rest of a picture.
        let some = video(128, 128, 40);
        stdin.write_all(&some[..some.len() - 1]).unwrap();
        let kill = Command::new("kill").arg("-INT").arg(child.id().to_string()).status().unwrap();
        assert!(kill.success());
        let output = child.wait_with_output().unwrap();
        drop(stdin);
        told(&output, 1, &["interrupted"]);
        assert!(names(folder.path()).is_empty());
    }
}

/// What is read is not written, however it is named.
#[test]
fn the_input_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (file, trace) = (folder.path().join("in.h264"), folder.path().join("link.h264"));
    std::fs::write(&file, video(32, 32, 3)).unwrap();
    std::os::unix::fs::symlink(&file, &trace).unwrap();
    let (file, link) = (file.to_str().unwrap(), trace.to_str().unwrap());
    for (rest, word) in [
        (format!("{file} -o {file}"), "in.h264 is the input"),
        (format!("- -o {file} < {file}"), "in.h264 is the input"),
        (format!("- -o {link} < {file}"), "link.h264 is the input"),
        (format!("{file} -o - >> {file}"), "standard output is the input"),
        (format!("- -o {link}.mp4 --trace {link} < {file}"), "--trace"),
    ] {
        told(&Command::new("bash").args(["-c", &format!("exec {PROGRAM} {rest}")]).output().unwrap(), 2, &[word]);
        assert!(std::fs::read(file).unwrap() == video(32, 32, 3), "{rest}");
        assert_eq!(names(folder.path()), ["in.h264", "link.h264"]);
    }
}

/// Where in a stream with start codes the levels of its sequences are.
fn levels(stream: &[u8]) -> Vec<u8> {
    stream.windows(8).filter(|w| w[..5] == [0, 0, 0, 1, 0x67]).map(|w| w[7]).collect()
}

/// What pictures take raises the level of a file, which is written when that is known; a stream that says less tells.
#[test]
fn the_level_holds_what_was_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, movie) = (folder.path().join("out.h264"), folder.path().join("out.mp4"));
    let input = video(96, 64, 20);
    let args = |out: &Path| run(&["-", "-o", out.to_str().unwrap(), "--qp", "0", "--keyint", "7", "--json"], &input);
    let report: serde_json::Value = serde_json::from_slice(&args(&plain).stdout).unwrap();
    let stream = std::fs::read(&plain).unwrap();
    let level = levels(&stream)[0];
    assert_eq!(levels(&stream), [level; 3]);
    assert!(level > 11, "{report}");
    assert_eq!(report["level"], f64::from(level) / 10.0);
    args(&movie);
    let movie = std::fs::read(&movie).unwrap();
    let at = movie.windows(4).position(|w| w == b"avcC").unwrap();
    assert_eq!(movie[at + 7], level);
    let output = run(&["-", "-o", "-", "--qp", "0", "--keyint", "7"], &input);
    assert_eq!(levels(&output.stdout), [11; 3]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("says level 1.1"));
    assert_eq!(stream.len(), output.stdout.len());
    // What is asked for is known before.
    let asked = run(&["-", "-o", "-", "--bitrate", "3M"], &input).stdout;
    assert_eq!(levels(&asked), [21]);
}

/// A video with detail of all sizes in luma and chroma, into which the camera moves; with noise of so much.
fn colourful(width: usize, height: usize, count: usize, noise: f64) -> Vec<u8> {
    let hash = |x: i64, y: i64, z: i64| {
        let mut h = (x.wrapping_mul(0x9e37_79b9) ^ y.wrapping_mul(0x85eb_ca6b) ^ z.wrapping_mul(0xc2b2_ae35)) as u64;
        h = (h ^ (h >> 15)).wrapping_mul(0x2545_f491_4f6c_dd1d);
        ((h >> 40) & 0xffff) as f64 / 65536.0
    };
    let smooth = |x: f64, y: f64, z: i64| {
        let (i, j) = (x.floor(), y.floor());
        let (u, v) = (x - i, y - j);
        let at = |di: i64, dj: i64| hash(i as i64 + di, j as i64 + dj, z);
        (at(0, 0) * (1.0 - u) + at(1, 0) * u) * (1.0 - v) + (at(0, 1) * (1.0 - u) + at(1, 1) * u) * v
    };
    let mut bytes = format!("YUV4MPEG2 W{width} H{height} F25:1\n").into_bytes();
    for number in 0..count {
        bytes.extend(b"FRAME\n");
        let scale = 1.0 / (1.0 + number as f64 / 40.0);
        for (plane, part) in [(0, 1), (1, 2), (2, 2)] {
            for y in 0..height / part {
                for x in 0..width / part {
                    let (a, b) = ((x * part) as f64 - width as f64 / 2.0, (y * part) as f64 - height as f64 / 2.0);
                    let octave = |k: u32| {
                        let size = 40.0 / f64::from(1 << k);
                        smooth(a * scale / size, b * scale / size, i64::from(k) + 10 * plane) / f64::from(k + 1)
                    };
                    // Contours of all sizes, more of them in chroma.
                    let value = 128.0 + 100.0 * ((9.0 + 5.0 * plane as f64) * (0..5).map(octave).sum::<f64>()).sin();
                    let grain = noise * (hash(x as i64, y as i64, 1000 + 3 * number as i64 + plane) - 0.5);
                    bytes.push((value + grain).clamp(0.0, 255.0) as u8);
                }
            }
        }
    }
    bytes
}

/// Coarser quantisers do not take more bits: not even where only those of luma become coarser, and chroma is predicted the worse.
#[test]
fn bytes_do_not_grow_with_the_quantiser() {
    let input = colourful(160, 128, 10, 6.0);
    for profile in ["baseline", "main"] {
        let of = |qp: u32| run(&["-", "-o", "-", "--qp", &qp.to_string(), "--profile", profile], &input).stdout.len();
        let all: Vec<usize> = (24..52).step_by(3).map(of).collect();
        assert!(all.windows(2).all(|two| two[1] < two[0]), "{profile}: {all:?}");
    }
}

/// What a short video takes that is harder than a film is near what was asked for, or it is told.
#[test]
fn a_rate_holds_for_a_short_video() {
    let input = colourful(160, 128, 30, 120.0);
    for (profile, bits) in [("baseline", "200k"), ("main", "200k"), ("baseline", "1M")] {
        let output = run(&["-", "-o", "-", "--bitrate", bits, "--profile", profile], &input);
        let rate = output.stdout.len() as f64 * 8.0 / (30.0 / 25.0);
        let asked = if bits == "1M" { 1e6 } else { 200e3 };
        assert!((0.7..1.5).contains(&(rate / asked)), "{profile}: {rate} instead of {bits}");
    }
    let few = run(&["-", "-o", "-", "--bitrate", "5k"], &input);
    assert!(String::from_utf8_lossy(&few.stderr).contains("instead of 5"));
}
