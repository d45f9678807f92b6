//! What players get: transport streams over HTTP, taken apart here, and real players where they are installed.

use crate::support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use support::{Camera, Manners, PATIENCE, Playing, Proxy, VIDEO, picture, rtp};

#[test]
fn transport_streams_begin_with_a_key() {
    for placement in ["spread", "pipelined"] {
        let camera = Camera::new(Manners::of(VIDEO));
        let source = format!("front=rtsp://{}/", camera.address);
        let proxy = Proxy::start(&["-s", &source, "--transport", "tcp", "--workers", "2", "--placement", placement]);
        let mut playing = camera.playing();
        proxy.serves("front");
        assert!(proxy.get("/nobody.ts").starts_with("HTTP/1.1 404 "));
        assert!(proxy.get("/").contains("What is flowing"));
        let mut readers: Vec<_> = (0..3)
            .map(|_| {
                let mut socket = TcpStream::connect(("127.0.0.1", proxy.http)).unwrap();
                socket.set_read_timeout(Some(PATIENCE)).unwrap();
                socket.write_all(b"GET /front.ts HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
                let (mut reader, mut head) = (BufReader::new(socket), String::new());
                while !head.ends_with("\r\n\r\n") {
                    assert!(reader.read_line(&mut head).unwrap() > 0);
                }
                assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("video/mp2t"), "{head}");
                reader
            })
            .collect();
        // Each is a picture as soon as the next begins.
        for number in 0..7 {
            playing.send(0, &picture(number, number % 3 == 0, 500));
        }
        for reader in &mut readers {
            let mut packets = vec![0; 188 * (2 + 3 + 3)];
            reader.read_exact(&mut packets).unwrap();
            let ids: Vec<u16> =
                packets.chunks(188).map(|packet| u16::from_be_bytes([packet[1], packet[2]]) & 0x1fff).collect();
            assert_eq!(ids, [0, 0x1000, 0x100, 0x100, 0x100, 0x100, 0x100, 0x100]);
            let key = packets[2 * 188..].windows(6).position(|bytes| bytes == [0, 0, 0, 1, 0x65, 0x83]);
            assert!(key.is_some_and(|at| at < 188), "{key:?}");
        }
        // One that leaves takes nothing from the others.
        drop(readers.pop());
        for number in 7..40 {
            playing.send(0, &picture(number, number % 3 == 0, 500));
        }
        for reader in &mut readers {
            reader.read_exact(&mut vec![0; 188 * 3 * 30]).unwrap();
        }
        drop(readers);
        proxy.until("lets viewers go", || proxy.metric("viewers ") == 0);
    }
}

fn there_is(program: &str) -> bool {
    let there = Command::new(program).arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !there {
        eprintln!("skipped: there is no {program} here");
    }
    there
}

/// Sums of the pictures that ffmpeg decodes.
fn decoded(arguments: &[&str]) -> Vec<String> {
    let all =
        [&["-v", "error", "-nostdin"], arguments, &["-vsync", "0", "-map", "0:v", "-f", "framemd5", "-"]].concat();
    let output = Command::new("ffmpeg").args(&all).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let sums =
        text.lines().filter(|line| !line.starts_with('#')).map(|line| line.rsplit(' ').next().unwrap().to_owned());
    let sums: Vec<String> = sums.collect();
    assert!(!sums.is_empty(), "{all:?}: {}", String::from_utf8_lossy(&output.stderr));
    sums
}

/// When so many pictures are shown and decoded, as ffprobe is told, in ticks.
fn times(from: &str, count: usize) -> Vec<(i64, i64)> {
    let most = format!("%+#{count}");
    let asked = ["-v", "error", "-select_streams", "v", "-show_entries", "packet=pts,dts", "-of", "csv=p=0"];
    let output = Command::new("ffprobe").args(asked).args(["-read_intervals", &most, from]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let pair = |line: &str| {
        let mut numbers = line.split(',').filter_map(|number| number.parse().ok());
        Some((numbers.next()?, numbers.next()?))
    };
    let lines = text.lines().filter(|line| !line.is_empty());
    let times: Vec<_> = lines.map(|line| pair(line).unwrap_or_else(|| panic!("{text}"))).collect();
    assert_eq!(times.len(), count, "{text}{}", String::from_utf8_lossy(&output.stderr));
    times
}

/// Sends a clip again and again, a picture every few milliseconds, with every tenth packet behind the one after it. Of each picture
/// it is told when it is shown, and its units.
fn send(playing: &mut Playing, clip: &[(usize, Vec<Vec<u8>>)], ends: &AtomicBool) {
    let (mut sequence, mut held): (u16, Option<Vec<u8>>) = (0, None);
    for (number, (shown, units)) in clip.iter().cycle().enumerate() {
        let shown = number / clip.len() * clip.len() + shown;
        for (index, unit) in units.iter().enumerate() {
            let is_last = index + 1 == units.len();
            let pieces: Vec<Vec<u8>> = match unit.len() <= 1000 {
                true => vec![unit.clone()],
                false => {
                    let parts = unit[1..].chunks(1000).count();
                    let part = |(i, bytes): (usize, &[u8])| {
                        let bits = if i == 0 { 0x80 } else { 0 } | if i + 1 == parts { 0x40 } else { 0 };
                        [&[unit[0] & 0xe0 | 28, bits | unit[0] & 0x1f], bytes].concat()
                    };
                    unit[1..].chunks(1000).enumerate().map(part).collect()
                }
            };
            for (i, piece) in pieces.iter().enumerate() {
                let marker = if is_last && i + 1 == pieces.len() { 0x80 } else { 0 };
                let packet = rtp(96 | marker, sequence, shown as u32 * 3600, 7, piece);
                match held.take() {
                    None if sequence % 10 == 3 && playing.is_udp() => held = Some(packet),
                    before => {
                        playing.send(0, &packet);
                        before.iter().for_each(|before| playing.send(0, before));
                    }
                }
                sequence = sequence.wrapping_add(1);
            }
        }
        if ends.load(Ordering::Relaxed) {
            return;
        }
        std::thread::sleep(Duration::from_millis(4));
    }
}

#[test]
fn ffmpeg_sees_every_picture_as_it_was_sent() {
    if !there_is("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some((sent, pictures)) = clip(folder.path()) else { return };
    let camera = Camera::new(Manners::of(VIDEO));
    let proxy = Proxy::start(&["-s", &format!("front=rtsp://{}/", camera.address)]);
    let mut playing = camera.playing();
    assert!(playing.is_udp());
    proxy.serves("front");
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| send(&mut playing, &pictures, &ends));
        let rtsp = format!("rtsp://127.0.0.1:{}/front", proxy.rtsp);
        let http = |kind: &str| format!("http://127.0.0.1:{}/front.{kind}", proxy.http);
        let (ts, mp4) = (http("ts"), http("mp4"));
        let ways: [&[&str]; 5] = [
            &["-rtsp_transport", "tcp", "-i", &rtsp, "-frames:v", "50"],
            &["-rtsp_transport", "udp", "-i", &rtsp, "-frames:v", "50"],
            &["-rtsp_transport", "http", "-i", &rtsp, "-frames:v", "50"],
            &["-i", &ts, "-frames:v", "50"],
            &["-i", &mp4, "-frames:v", "50"],
        ];
        let seen: Vec<_> = ways.iter().map(|way| std::panic::catch_unwind(|| decoded(way))).collect();
        let told = [&ts, &mp4].map(|from| std::panic::catch_unwind(|| (from, times(from, 50))));
        ends.store(true, Ordering::Relaxed);
        for told in told {
            let (from, told) = told.unwrap_or_else(|_| panic!("no times are told; {}", proxy.log()));
            assert!(told.iter().all(|(shown, decoded)| decoded <= shown), "{from}: {told:?}");
            assert!(told.is_sorted_by(|a, b| a.1 < b.1), "{from}: {told:?}");
            // From the key on, which is the first of the clip, around and around.
            let turn = pictures.len();
            let expected =
                (0..told.len()).map(|i| (i / turn * turn + pictures[i % turn].0 - pictures[0].0) as i64 * 3600);
            let shown: Vec<i64> = told.iter().map(|(shown, _)| shown - told[0].0).collect();
            assert_eq!(shown, expected.collect::<Vec<_>>(), "{from}");
        }
        for (way, seen) in ways.iter().zip(seen) {
            let seen = seen.unwrap_or_else(|_| panic!("{way:?} sees nothing; {}", proxy.log()));
            // Some picture of the clip, then all that follow, around and around.
            let first = sent.iter().position(|sum| *sum == seen[0]);
            let first = first.unwrap_or_else(|| panic!("{way:?} begins with a picture that was not sent"));
            let expected: Vec<&String> = sent.iter().cycle().skip(first).take(50).collect();
            assert_eq!(seen.iter().collect::<Vec<_>>(), expected, "{way:?}");
        }
    });
    assert_eq!((proxy.metric("packets_lost"), proxy.metric("packets_late")), (0, 0));
}

/// What ffmpeg sends of a file by RTP, and how it describes that.
fn packets(file: &str, folder: &std::path::Path) -> (Vec<Vec<u8>>, String) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (port, sdp) = (socket.local_addr().unwrap().port(), folder.join("sdp"));
    let to = format!("rtp://127.0.0.1:{port}?rtcpport={port}&pkt_size=1200");
    let mut sender = Command::new("ffmpeg")
        .args([
            "-v",
            "error",
            "-nostdin",
            "-i",
            file,
            "-c",
            "copy",
            "-f",
            "rtp",
            "-sdp_file",
            sdp.to_str().unwrap(),
            &to,
        ])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let (mut all, mut bytes) = (Vec::new(), [0; 2000]);
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    loop {
        match socket.recv(&mut bytes) {
            // Its reports come here, too.
            Ok(count) if !(72..77).contains(&(bytes[1] & 0x7f)) => all.push(bytes[..count].to_vec()),
            Ok(_) => {}
            Err(_) if sender.try_wait().unwrap().is_some() => break,
            Err(_) => {}
        }
    }
    (all, std::fs::read_to_string(sdp).unwrap())
}

#[test]
fn every_codec_is_decoded_as_it_was_sent() {
    if !there_is("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let video: &[&str] =
        &["-f", "lavfi", "-i", "testsrc=size=320x240:rate=25", "-frames:v", "40", "-pix_fmt", "yuv420p"];
    let audio: &[&str] =
        &["-f", "lavfi", "-i", "sine=frequency=440:beep_factor=3", "-t", "2", "-ac", "2", "-ar", "48000"];
    let codecs: [(&str, &[&str], &[&str]); 5] = [
        ("clip.h264", video, &["-c:v", "libx264", "-bf", "2", "-g", "10"]),
        ("clip.hevc", video, &["-c:v", "libx265", "-x265-params", "log-level=none:keyint=10:bframes=3"]),
        ("clip.m4a", audio, &["-c:a", "aac", "-aac_pns", "0"]),
        ("mono.m4a", audio, &["-ac", "1", "-ar", "16000", "-c:a", "aac", "-aac_pns", "0"]),
        ("clip.ogg", audio, &["-c:a", "libopus"]),
    ];
    for (name, input, codec) in codecs {
        let raw = folder.path().join(name).to_str().unwrap().to_owned();
        let made = [&["-v", "error", "-y"], input, codec, &[&raw]].concat();
        if !Command::new("ffmpeg").args(made).status().unwrap().success() {
            eprintln!("skipped: this ffmpeg makes no {name}");
            continue;
        }
        // Timestamps of raw video tell nothing of its order.
        let file = match input == video {
            false => raw,
            true => {
                let file = format!("{raw}.mp4");
                let made = [&["-v", "error", "-y"], input, codec, &[&file]].concat();
                assert!(Command::new("ffmpeg").args(made).status().unwrap().success());
                file
            }
        };
        let kind = if input == video { "0:v" } else { "0:a" };
        let sums = |from: &str| {
            let mut all = vec!["-v", "error", "-nostdin", "-i", from, "-map", kind];
            all.extend(if input == video { ["-vsync", "0"].as_slice() } else { &[] });
            let mut player = Command::new("ffmpeg")
                .args(all)
                .args(["-f", "framemd5", "-"])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let (mut output, mut errors) = (player.stdout.take().unwrap(), player.stderr.take().unwrap());
            std::thread::spawn(move || {
                let (mut text, mut said) = (String::new(), String::new());
                output.read_to_string(&mut text).unwrap();
                errors.read_to_string(&mut said).unwrap();
                player.wait().unwrap();
                let lines = text.lines().filter(|line| !line.starts_with('#'));
                (lines.map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect::<Vec<String>>(), said)
            })
        };
        let (packets, sdp) = packets(&file, folder.path());
        let (sent, _) = sums(&file).join().unwrap();
        let manners = Manners::of(&sdp);
        let describes = manners.sdp.clone();
        let camera = Camera::new(manners);
        let proxy = Proxy::start(&["-s", &format!("front=rtsp://{}/", camera.address), "--transport", "tcp"]);
        let mut playing = camera.playing();
        proxy.serves("front");
        let place = |kind: &str| format!("http://127.0.0.1:{}/front.{kind}", proxy.http);
        let players = [place("ts"), place("mp4")].map(|from| (sums(&from), from));
        proxy.until("has both players", || proxy.metric("viewers ") == 2);
        for packet in &packets {
            playing.send(0, packet);
            std::thread::sleep(Duration::from_millis(1));
        }
        // What was sent is sent on, and then the camera comes back with something else, which ends all that view it.
        *describes.lock().unwrap() = VIDEO.replace("H264", "JPEG");
        playing.hang_up();
        for (player, from) in players {
            let (seen, said) = player.join().unwrap();
            let at = || seen.iter().map(|sum| sent.iter().position(|s| s == sum)).collect::<Vec<_>>();
            let shown = || format!("{name} from {from}: {:?} of {}: {said}", at(), sent.len());
            if input == video {
                assert_eq!(seen, sent, "{}", shown());
            } else {
                // Files tell which samples at the beginning and the end are for decoders only; streams do not.
                let middle = &sent[2..sent.len() - 2];
                assert!(seen.windows(middle.len()).any(|part| part == middle), "{}", shown());
            }
            // That the connection ends is all that it complains of.
            let is_end =
                |line: &str| ["prematurely", "Input/output", "repeated"].iter().any(|word| line.contains(word));
            assert!(said.lines().all(|line| line.trim().is_empty() || is_end(line)), "{}", shown());
        }
    }
}

/// A camera that comes back with pictures of another size, told by nothing but its parameter sets, in the middle of a group: nobody
/// sees a damaged picture, and who cannot be told of the size within what it gets has an end and asks again.
#[test]
fn a_camera_that_comes_back_with_another_size_damages_nothing() {
    if !there_is("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let clips = ["320x240", "640x480"].map(|size| {
        let file = folder.path().join(format!("{size}.mp4")).to_str().unwrap().to_owned();
        let source = format!("testsrc=size={size}:rate=25");
        let made = ["-v", "error", "-f", "lavfi", "-i", &source, "-frames:v", "60", "-c:v", "libx264", "-g", "20"];
        let made = Command::new("ffmpeg").args(made).args(["-pix_fmt", "yuv420p", "-bf", "0", &file]).status();
        // Parameters come with keys, as cameras send them.
        let told = folder.path().join(format!("{size}.ts")).to_str().unwrap().to_owned();
        let copied = Command::new("ffmpeg").args(["-v", "error", "-i", &file, "-c", "copy", &told]).status();
        (made.unwrap().success() && copied.unwrap().success()).then(|| packets(&told, folder.path()).0)
    });
    let [Some(small), Some(large)] = clips else {
        return eprintln!("skipped: this ffmpeg does not encode H.264");
    };
    let manners = Manners::of(VIDEO);
    let describes = manners.sdp.clone();
    let camera = Camera::new(manners);
    let proxy = Proxy::start(&["-s", &format!("front=rtsp://{}/", camera.address), "--transport", "tcp"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let http = |kind: &str| format!("http://127.0.0.1:{}/front.{kind}", proxy.http);
    let rtsp = format!("rtsp://127.0.0.1:{}/front", proxy.rtsp);
    let player = |from: &str| {
        let way: &[&str] = if from == rtsp { &["-rtsp_transport", "tcp"] } else { &[] };
        let all = [&["-v", "error", "-nostdin"], way, &["-i", from, "-f", "null", "-"]].concat();
        Command::new("ffmpeg").args(all).stderr(Stdio::piped()).spawn().unwrap()
    };
    let [ts, mut mp4, rtsp] = [http("ts"), http("mp4"), rtsp.clone()].map(|from| player(&from));
    let (mut number, mut rounds) = (0_u16, 0_u32);
    let mut send = |playing: &mut Playing, clip: &[Vec<u8>]| {
        rounds += 1;
        for packet in clip {
            let mut packet = packet.clone();
            packet[2..4].copy_from_slice(&number.to_be_bytes());
            let time = u32::from_be_bytes(packet[4..8].try_into().unwrap());
            packet[4..8].copy_from_slice(&time.wrapping_add(rounds * 60 * 3600).to_be_bytes());
            number = number.wrapping_add(1);
            playing.send(0, &packet);
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    proxy.until("has all players", || {
        send(&mut playing, &small);
        proxy.metric("viewers ") == 3
    });
    (0..3).for_each(|_| send(&mut playing, &small));
    playing.hang_up();
    let mut playing = camera.playing();
    send(&mut playing, &large[large.len() / 6..]);
    (0..3).for_each(|_| send(&mut playing, &large));
    // The file has ended; the others go on.
    proxy.until("ends the file", || proxy.metric("viewers ") == 2);
    assert!(mp4.wait().is_ok());
    *describes.lock().unwrap() = VIDEO.replace("H264", "JPEG");
    playing.hang_up();
    for (what, mut player) in [("MP4", mp4), ("MPEG-TS", ts), ("RTSP", rtsp)] {
        let mut said = String::new();
        player.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        player.wait().unwrap();
        let is_end = |line: &str| ["prematurely", "Input/output", "repeated"].iter().any(|word| line.contains(word));
        let is_time = |line: &str| line.contains("monotonic");
        assert!(said.lines().all(|line| line.trim().is_empty() || is_end(line) || is_time(line)), "{what}: {said}");
    }
}

/// Sums of the pictures of a clip in the order in which they are shown, and the pictures in that of decoding: two of three are
/// shown before one that comes before them.
#[allow(clippy::type_complexity)]
fn clip(folder: &std::path::Path) -> Option<(Vec<String>, Vec<(usize, Vec<Vec<u8>>)>)> {
    let (file, clip) = (folder.join("clip.mp4"), folder.join("clip.h264"));
    let (file, clip) = (file.to_str().unwrap(), clip.to_str().unwrap());
    let made =
        ["-v", "error", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=25", "-frames:v", "20", "-c:v", "libx264"];
    let made = Command::new("ffmpeg").args(made).args(["-pix_fmt", "yuv420p", "-bf", "2", "-g", "20", file]).status();
    if !made.unwrap().success() {
        eprintln!("skipped: this ffmpeg does not encode H.264");
        return None;
    }
    let taken = Command::new("ffmpeg").args(["-v", "error", "-i", file, "-c", "copy", clip]).status();
    assert!(taken.unwrap().success());
    let told = ["-v", "error", "-show_entries", "packet=pts", "-of", "csv=p=0", file];
    let told = String::from_utf8(Command::new("ffprobe").args(told).output().unwrap().stdout).unwrap();
    let times: Vec<i64> = told.lines().map(|line| line.trim_end_matches(',').parse().unwrap()).collect();
    let mut order = times.clone();
    order.sort_unstable();
    assert!(order != times, "there are no pictures to be put in order");
    let shown = |i: usize| order.binary_search(&times[i]).unwrap();
    let sent = decoded(&["-i", clip]);
    // Units between start codes; a picture ends with its slice.
    let bytes = std::fs::read(clip).unwrap();
    let starts: Vec<usize> = (0..bytes.len() - 2).filter(|i| bytes[*i..*i + 3] == [0, 0, 1]).collect();
    let mut pictures: Vec<Vec<Vec<u8>>> = vec![Vec::new()];
    for (i, start) in starts.iter().enumerate() {
        let end = starts.get(i + 1).copied().unwrap_or(bytes.len());
        let mut unit = bytes[start + 3..end].to_vec();
        while i + 1 < starts.len() && unit.last() == Some(&0) {
            unit.pop();
        }
        let is_slice = matches!(unit[0] & 0x1f, 1 | 5);
        pictures.last_mut().unwrap().push(unit);
        if is_slice {
            pictures.push(Vec::new());
        }
    }
    pictures.pop();
    assert_eq!(pictures.len(), sent.len());
    Some((sent, pictures.into_iter().enumerate().map(|(i, units)| (shown(i), units)).collect()))
}

#[test]
fn a_browser_shows_what_is_flowing() {
    let named = std::env::var("MULTIGRAIN_CHROMIUM").unwrap_or_else(|_| "chromium".to_owned());
    let there = Command::new(&named).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !there {
        return eprintln!("skipped: there is no {named} here");
    }
    let camera = Camera::new(Manners::of(VIDEO));
    let still = Camera::new(Manners::of("m=video 0 RTP/AVP 26\r\na=control:v\r\n"));
    let proxy = Proxy::start(&[
        "-s",
        &format!("front=rtsp://u:topsecret@{}/", camera.address),
        "-s",
        &format!("still=rtsp://{}/", still.address),
        "-s",
        "off=rtsp://127.0.0.1:1/",
    ]);
    let (mut playing, _silent) = (camera.playing(), still.playing());
    playing.send(0, &picture(0, true, 50));
    proxy.says("front: playing");
    proxy.serves("still");
    proxy.says("off: nothing listens at");
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(named)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.path().display()))
        .arg(format!("http://127.0.0.1:{}/", proxy.http))
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let seen = String::from_utf8_lossy(&output.stdout);
    for word in [
        "<td>front</td>",
        "H264/90000",
        "<td>off</td>",
        "nothing listens at",
        "0 viewers",
        "/front.ts",
        "by RTSP only",
        "nothing is known of it yet",
        "nothing has come of it so far",
    ] {
        assert!(seen.contains(word), "{word} is not in {seen}");
    }
    assert!(!seen.contains("topsecret") && !seen.contains("/still.ts"), "{seen}");
}

#[test]
fn a_browser_plays_what_comes_by_websocket() {
    let named = std::env::var("MULTIGRAIN_CHROMIUM").unwrap_or_else(|_| "chromium".to_owned());
    if !there_is("ffmpeg") || !there_is(&named) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some((_, pictures)) = clip(folder.path()) else { return };
    let camera = Camera::new(Manners::of(VIDEO));
    let proxy = Proxy::start(&["-s", &format!("front=rtsp://{}/", camera.address), "--transport", "tcp"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| send(&mut playing, &pictures, &ends));
        let mut browser = Command::new(named)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--autoplay-policy=no-user-gesture-required"])
            .arg(format!("--user-data-dir={}", folder.path().display()))
            .args(["--enable-logging=stderr", &format!("http://127.0.0.1:{}/#front", proxy.http)])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The page says when it shows the first pictures, and when it cannot.
        let lines = BufReader::new(browser.stderr.take().unwrap()).lines().map_while(Result::ok);
        let (tell, says) = mpsc::channel();
        std::thread::spawn(move || lines.for_each(|line| drop(tell.send(line))));
        let told = std::iter::from_fn(|| says.recv_timeout(PATIENCE).ok()).find(|line| line.contains("proxy: "));
        let _ = browser.kill();
        let _ = browser.wait();
        ends.store(true, Ordering::Relaxed);
        let told = told.unwrap_or_default();
        assert!(told.contains("proxy: shows front 320x240"), "{told}; {}", proxy.log());
    });
}
