//! Sound and picture go together as their sender's reports tell, whenever each of them came.

use crate::support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use support::{Camera, Manners, PATIENCE, Playing, Proxy, VIDEO, Viewer, picture, rtp};

/// Parameters of x264's, 1280 x 720, as a description tells them.
const PARAMETERS: &str = "packetization-mode=1; sprop-parameter-sets=Z2QAH6zZQFAFuwEQAAADABAAAAMDIPGDGWA=,aOvjyyLA";
const SOUND: &str = "m=audio 0 RTP/AVP 97\r\na=rtpmap:97 opus/48000/2\r\na=control:a\r\n";

/// Timestamps of sound and of pictures that are of the instant at which the sender's clock said the same.
const SOUND_AT: u32 = 1_000_000;
const PICTURE_AT: u32 = 0;

/// Sound comes 0.7 s after the picture that was taken when it was heard.
const BEHIND_MS: u32 = 700;

fn sound(number: u16) -> Vec<u8> {
    let at = SOUND_AT + u32::from(number) * 1920;
    rtp(97, number, at.wrapping_sub(BEHIND_MS * 48), 9, &[7; 20])
}

/// A sender's report.
fn report(source: u32, seconds: u32, stamp: u32) -> Vec<u8> {
    let mut bytes = vec![0x80, 200, 0, 6];
    [source, seconds, 0, stamp, 0, 0].iter().for_each(|word| bytes.extend(word.to_be_bytes()));
    bytes
}

fn send(playing: &mut Playing, numbers: std::ops::Range<u16>) {
    for number in numbers {
        playing.send(0, &picture(number, number % 50 == 0, 100));
        playing.send(1, &sound(number));
    }
}

/// A source that has sent a key, and what is of one instant.
fn begun() -> (Proxy, Playing) {
    let text = VIDEO.replace("packetization-mode=1", PARAMETERS) + SOUND;
    let camera = Camera::new(Manners { only_tcp: true, ..Manners::of(&text) });
    let source = format!("front=rtsp://{}/", camera.address);
    let proxy = Proxy::start(&["-s", &source, "--transport", "tcp"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let mut viewer = Viewer::play(&proxy, "front", 2);
    send(&mut playing, 0..1);
    playing.report(0, &report(7, 100, PICTURE_AT));
    playing.report(1, &report(9, 100, SOUND_AT));
    send(&mut playing, 1..3);
    // They are there when somebody else has got them.
    (0..8).for_each(|_| drop(viewer.frame()));
    (proxy, playing)
}

/// What is behind the head of a response.
fn asked(proxy: &Proxy, path: &str) -> BufReader<TcpStream> {
    let mut socket = TcpStream::connect(("127.0.0.1", proxy.http)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(socket, "GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    let (mut reader, mut line) = (BufReader::new(socket), String::new());
    while line != "\r\n" {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0);
    }
    reader
}

/// Times at which units are shown, in ticks of 1/90000 s, from a transport stream until there are so many of both tracks.
fn shown(reader: &mut impl Read, count: usize) -> [Vec<i64>; 2] {
    let mut found = [Vec::new(), Vec::new()];
    while found.iter().any(|times| times.len() < count) {
        let mut packet = [0; 188];
        reader.read_exact(&mut packet).unwrap();
        let track = match u16::from_be_bytes([packet[1], packet[2]]) {
            0x4100 => 0,
            0x4101 => 1,
            _ => continue,
        };
        let start = if packet[3] & 0x20 != 0 { 5 + usize::from(packet[4]) } else { 4 };
        let stamp: Vec<i64> = packet[start + 9..start + 14].iter().map(|byte| i64::from(*byte)).collect();
        found[track]
            .push((stamp[0] >> 1 & 7) << 30 | stamp[1] << 22 | (stamp[2] >> 1) << 15 | stamp[3] << 7 | stamp[4] >> 1);
    }
    found
}

#[test]
fn transport_streams_go_by_the_senders_clock() {
    let (proxy, mut playing) = begun();
    let mut reader = asked(&proxy, "/front.ts");
    send(&mut playing, 3..10);
    let [pictures, sounds] = shown(&mut reader, 5);
    // Each sound goes with the picture that was taken when it was heard, which has come 0.7 s before it.
    for sound in &sounds {
        assert!(goes_with(*sound, &pictures), "{pictures:?} {sounds:?}");
    }
}

/// Whether a sound is of the instant of a picture, of which one is every 3600 ticks.
fn goes_with(sound: i64, pictures: &[i64]) -> bool {
    let behind = (pictures[0] - sound - i64::from(BEHIND_MS) * 90).rem_euclid(3600);
    behind <= 2 || behind >= 3598
}

/// Times of fragments, when they are decoded and when shown, in ticks of 1/90000 s, until there are so many of both tracks.
fn fragments(reader: &mut impl Read, count: usize) -> [Vec<(i64, i64)>; 2] {
    let mut found = [Vec::new(), Vec::new()];
    while found.iter().any(|times: &Vec<(i64, i64)>| times.len() < count) {
        let mut head = [0; 8];
        reader.read_exact(&mut head).unwrap();
        let mut bytes = vec![0; u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize - 8];
        reader.read_exact(&mut bytes).unwrap();
        if &head[4..] != b"moof" {
            continue;
        }
        let word = |name: &[u8], behind: usize| {
            let at = bytes.windows(4).position(|found| found == name).unwrap() + 4 + behind;
            i64::from(u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()))
        };
        let track = word(b"tfhd", 4) as usize - 1;
        let (decoded, offset) = (word(b"tfdt", 4) << 32 | word(b"tfdt", 8), word(b"trun", 24));
        let ticks = |ticks: i64| if track == 0 { ticks } else { ticks * 90 / 48 };
        found[track].push((ticks(decoded), ticks(decoded + offset)));
    }
    found
}

#[test]
fn fragments_go_by_the_senders_clock() {
    let (proxy, mut playing) = begun();
    let mut reader = asked(&proxy, "/front.mp4");
    send(&mut playing, 3..40);
    let early = fragments(&mut reader, 10);
    send(&mut playing, 40..80);
    let late = fragments(&mut asked(&proxy, "/front.mp4"), 10);
    for [pictures, sounds] in [early, late] {
        // VLC plays nothing that begins later, whenever a viewer comes; what was heard before is not told.
        assert_eq!(pictures[0].0, 0);
        assert!((0..3600).contains(&sounds[0].0), "{sounds:?}");
        let shown: Vec<i64> = pictures.iter().map(|(_, shown)| *shown).collect();
        assert!(sounds.iter().all(|(_, heard)| goes_with(*heard, &shown)), "{shown:?} {sounds:?}");
    }
}

/// Who begins by RTSP is told what is of one instant: in the answer, and by reports before anything else.
#[test]
fn who_begins_is_told_what_goes_together() {
    let (proxy, mut playing) = begun();
    let mut viewer = Viewer::connect(&proxy);
    for track in 0..2 {
        let transport = format!("Transport: RTP/AVP/TCP;unicast;interleaved={}-{}\r\n", 2 * track + 4, 2 * track + 5);
        assert!(viewer.ask("SETUP", &format!("rtsp://h/front/trackID={track}"), &transport).0.contains(" 200 "));
    }
    let (told, _) = viewer.ask("PLAY", "rtsp://h/front", "");
    send(&mut playing, 3..4);
    // The first sound is the earliest of what it gets.
    let earliest = SOUND_AT - BEHIND_MS * 48;
    let stamps = [PICTURE_AT.wrapping_sub(BEHIND_MS * 90), earliest];
    for (track, stamp) in stamps.iter().enumerate() {
        assert!(told.contains(&format!("trackID={track};seq=0;rtptime={stamp}")), "{told}");
    }
    for (track, stamp) in stamps.iter().enumerate() {
        let (channel, packet) = viewer.frame();
        assert_eq!((usize::from(channel), packet.len(), packet[1]), (2 * track + 5, 28, 200));
        let word = |at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().unwrap());
        assert_eq!((word(16), word(8)), (*stamp, 99), "{packet:?}");
        // 0.3 s of a second, as far as ticks tell.
        assert!((f64::from(word(12)) / 4_294_967_296.0 - 0.3).abs() < 1e-4);
    }
    assert_eq!(viewer.frame(), (4, picture(0, true, 100)));
}
