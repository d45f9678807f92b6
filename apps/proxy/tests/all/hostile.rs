//! Who does not have to be known to do harm, and does none.

use crate::support;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use multigrain_proxy::address::Address;
use multigrain_proxy::dial;
use multigrain_proxy::tls::Trust;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::{Camera, Heard, Manners, PATIENCE, Proxy, VIDEO, Viewer, certificate, hear, picture, sequence};

/// Does something again and again, on two threads, while something else is done.
fn meanwhile<T>(again: impl Fn() + Sync, work: impl FnOnce() -> T) -> T {
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    again();
                }
            });
        }
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        ends.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[test]
fn who_never_stops_talking_keeps_nobody_waiting() {
    let camera = Camera::new(Manners::of(VIDEO));
    let source = format!("front=rtsp://{}/", camera.address);
    let proxy = Proxy::start(&["-s", &source, "--transport", "tcp", "--workers", "1", "--user", "a:b"]);
    let mut down = proxy.tunnel("GET");
    assert!(down.read(&mut [0; 20]).unwrap() > 0);
    let up = proxy.tunnel("POST");
    // Empty frames, to which nothing is answered.
    let frames = STANDARD.encode([b'$', 0, 0, 0].repeat(30_000));
    up.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let answered = meanwhile(
        || drop((&up).write_all(frames.as_bytes())),
        || (0..3).all(|_| Viewer::connect(&proxy).ask("OPTIONS", "*", "").0.contains(" 200 ")),
    );
    assert!(answered);
}

/// What is said in the clear is not said within TLS because the answers are.
#[test]
fn a_way_back_is_as_private_as_the_way_there() {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = certificate(folder.path(), "own");
    let camera = Camera::new(Manners::of(VIDEO));
    let source = format!("front=rtsp://{}/", camera.address);
    let proxy = Proxy::start(&["-s", &source, "--https", "127.0.0.1:0", "--cert", &cert, "--key", &key]);
    let trust = Trust::new(Some(cert.as_ref())).unwrap();
    let place = Address::parse(&format!("rtsps://localhost:{}/", proxy.port("https"))).unwrap();
    let mut down = dial::dial(&place, &trust).unwrap();
    down.write_all(b"GET /front HTTP/1.0\r\nx-sessioncookie: abc\r\n\r\n").unwrap();
    assert!(down.read(&mut [0; 20]).unwrap() > 0);
    let mut up = proxy.tunnel("POST");
    let asked = up.write_all(STANDARD.encode("OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n").as_bytes());
    let is_open = asked.is_ok() && up.read(&mut [0]).is_err_and(|e| e.kind() == ErrorKind::WouldBlock);
    assert!(!is_open, "it is a way back");
}

/// Whoever reads the log has stopped, and goes on later.
#[test]
fn a_log_that_nobody_reads_keeps_nobody_waiting() {
    let camera = Camera::new(Manners::of(VIDEO));
    let source = format!("front=rtsp://{}/", camera.address);
    let (mut log, mut full) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&full, true).unwrap();
    let mut size = 0;
    while let Ok(count) = full.write(&[b'-'; 512]) {
        size += count;
    }
    rustix::io::ioctl_fionbio(&full, false).unwrap();
    let options = ["-s", &source, "--transport", "tcp", "--workers", "2"];
    let mut proxy = Proxy::telling(full, "127.0.0.1:0", &options);
    let mut playing = camera.playing();
    proxy.serves("front");
    let mut viewer = Viewer::play(&proxy, "front", 1);
    for _ in 0..20 {
        drop(Viewer::play(&proxy, "front", 1));
    }
    playing.send(0, &picture(9, true, 50));
    assert_eq!(viewer.sequences(1).len(), 1);
    log.read_exact(&mut vec![0; size]).unwrap();
    proxy.signal();
    drop(viewer);
    assert_eq!(proxy.ended(), Some(0));
    drop(proxy);
    let mut said = String::new();
    log.read_to_string(&mut said).unwrap();
    assert!(said.contains("lines were left out here"), "{said}");
}

#[test]
fn datagrams_of_strangers_take_nothing_from_viewers() {
    let camera = Camera::new(Manners::of(VIDEO));
    let source = format!("front=rtsp://{}/", camera.address);
    let proxy = Proxy::start(&["-s", &source, "--transport", "tcp", "--workers", "2", "--placement", "pipelined"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let mut viewer = Viewer::play(&proxy, "front", 1);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let place = ("127.0.0.1", proxy.udp_port() + 1);
    meanwhile(
        || drop(stranger.send_to(&[0x80, 201, 0, 4, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0], place)),
        || {
            for number in 0..1000 {
                playing.send(0, &picture(number, number % 10 == 0, 500));
                std::thread::sleep(Duration::from_micros(500));
            }
            assert_eq!(viewer.sequences(1000), (0..1000).collect::<Vec<_>>());
        },
    );
    assert_eq!(proxy.metric("viewers_behind"), 0);
}

#[test]
fn who_is_gone_says_nothing_about_others() {
    let camera = Camera::new(Manners::of(VIDEO));
    let source = format!("front=rtsp://{}/", camera.address);
    let proxy = Proxy::start(&["-s", &source, "--transport", "tcp", "--workers", "1"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let sockets = || {
        let all = [UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap()];
        all[0].set_read_timeout(Some(PATIENCE)).unwrap();
        all
    };
    let play = |viewer: &mut Viewer, sockets: &[UdpSocket; 2]| {
        let ports = sockets.each_ref().map(|socket| socket.local_addr().unwrap().port());
        let transport = format!("Transport: RTP/AVP;unicast;client_port={}-{}\r\n", ports[0], ports[1]);
        assert!(viewer.ask("SETUP", "rtsp://h/front/trackID=0", &transport).0.contains(" 200 "));
        assert!(viewer.ask("PLAY", "rtsp://h/front", "").0.contains(" 200 "));
    };
    // It plays to some ports, then to others, and leaves.
    let (mut gone, first, second) = (Viewer::connect(&proxy), sockets(), sockets());
    play(&mut gone, &first);
    assert!(gone.ask("PAUSE", "rtsp://h/front", "").0.contains(" 200 "));
    play(&mut gone, &second);
    drop(gone);
    proxy.until("lets it go", || proxy.metric("viewers ") == 0);
    // Who comes next gets everything, whatever is reported from the first ports.
    let (mut viewer, own) = (Viewer::connect(&proxy), sockets());
    play(&mut viewer, &own);
    for number in 0..200_u16 {
        let told = u32::from(number);
        let mut report = vec![0x81, 201, 0, 7, 0, 0, 0, 1, 0, 0, 0, 7];
        [told, told, 0, 0, 0].iter().for_each(|word| report.extend(word.to_be_bytes()));
        first[1].send_to(&report, ("127.0.0.1", proxy.udp_port() + 1)).unwrap();
        playing.send(0, &picture(number, number % 10 == 0, 500));
        let mut bytes = [0; 2000];
        assert!(own[0].recv_from(&mut bytes).is_ok());
        assert_eq!(support::sequence(&bytes), number);
        // So that it is some round trips until the last.
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(proxy.metric("viewers_behind"), 0);
}

#[test]
fn who_is_connected_and_does_nothing_keeps_nobody_out() {
    let camera = Camera::new(Manners::of(VIDEO));
    let source = format!("front=rtsp://{}/", camera.address);
    let options = ["-s", &source, "--transport", "tcp", "--workers", "1", "--viewers", "2"];
    let proxy = Proxy::start(&[&options[..], &["--connections-an-address", "2000", "--user", "a:b"]].concat());
    let mut playing = camera.playing();
    playing.send(0, &picture(0, true, 50));
    proxy.says("playing");
    let idle: Vec<Viewer> = (0..300)
        .map(|_| {
            let mut viewer = Viewer::connect(&proxy);
            assert!(viewer.ask("OPTIONS", "*", "").0.contains(" 200 "));
            viewer
        })
        .collect();
    assert!(Viewer::connect(&proxy).ask("OPTIONS", "*", "").0.contains(" 200 "));
    drop(idle);
}

#[test]
fn what_is_no_packet_of_a_track_is_not_passed_on() {
    let camera = Camera::new(Manners::of(VIDEO));
    let proxy = Proxy::start(&["-s", &format!("front=rtsp://{}/", camera.address), "--transport", "udp"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let mut viewer = Viewer::play(&proxy, "front", 1);
    playing.send(0, &picture(7, true, 50));
    for number in 0..3 {
        playing.send(0, &support::rtp(5, 30_000 + number, 0, 0xdead_beef, &[0x65, 0x88, 1]));
    }
    playing.send(0, &picture(8, false, 50));
    assert_eq!(viewer.sequences(2), [7, 8]);
    assert_eq!(proxy.metric("packets_malformed"), 3);
}

/// More connections within TLS that say nothing than there may be, on all workers.
#[test]
fn who_says_nothing_within_tls_shuts_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = certificate(folder.path(), "own");
    let camera = Camera::new(Manners::of(VIDEO));
    let proxy = Proxy::start(&[
        "-s",
        &format!("front=rtsp://{}/", camera.address),
        "--workers",
        "3",
        "--viewers",
        "1",
        "--connections-an-address",
        "1000",
        "--https",
        "127.0.0.1:0",
        "--cert",
        &cert,
        "--key",
        &key,
    ]);
    let place = ("127.0.0.1", proxy.port("https"));
    let mut silent: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(place).unwrap()).collect();
    for _ in 0..20 {
        assert!(proxy.get("/metrics").starts_with("HTTP/1.1 200 "));
        silent.push(TcpStream::connect(place).unwrap());
    }
    assert_eq!(proxy.metric("refused"), 0);
}

/// Ways back of a tunnel, each with what it says before it is one, while nothing of what is answered is read.
#[test]
fn ways_back_take_no_more_room_than_one() {
    let camera = Camera::new(Manners::of(VIDEO));
    let proxy = Proxy::start(&["-s", &format!("front=rtsp://{}/", camera.address), "--workers", "1"]);
    let down = proxy.tunnel("GET");
    proxy.until("knows the tunnel", || down.peek(&mut [0; 20]).unwrap() > 0);
    let said = STANDARD.encode("OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n".repeat(500));
    let held = || {
        let text = std::fs::read_to_string(format!("/proc/{}/status", proxy.process())).unwrap();
        let line = text.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let before = held();
    for _ in 0..1000 {
        let mut up = proxy.tunnel("POST");
        let _ = up.write_all(said.as_bytes());
    }
    assert!(proxy.get("/metrics").starts_with("HTTP/1.1 200 "));
    let more = held().saturating_sub(before);
    assert!(more < 4096, "{more} KiB more are held");
}

/// Whoever knows the camera's address and our port writes it into packets: they come from another port, or tell another source.
#[test]
fn packets_of_strangers_are_not_the_cameras() {
    let camera = Camera::new(Manners::of(VIDEO));
    let proxy = Proxy::start(&["-s", &format!("front=rtsp://{}/", camera.address), "--transport", "udp"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let mut viewer = Viewer::play(&proxy, "front", 1);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    playing.send(0, &picture(7, true, 50));
    // From the camera's port, of another computer.
    let other = UdpSocket::bind(("127.0.0.2", playing.port())).unwrap();
    other.send_to(&picture(8, true, 60), playing.place(0)).unwrap();
    stranger.send_to(&picture(8, true, 60), playing.place(0)).unwrap();
    let mut other = picture(8, true, 70);
    other[11] = 9;
    playing.send(0, &other);
    playing.send(0, &picture(8, false, 50));
    let got = [viewer.frame().1, viewer.frame().1];
    assert_eq!(got.map(|packet| (sequence(&packet), packet.len())), [(7, 62), (8, 62)]);
    assert_eq!(proxy.metric("packets_malformed"), 3);
}

/// The twenty-first guess of a minute is not looked at, whatever it is.
#[test]
fn who_guesses_is_not_told_when_it_is_right() {
    let camera = Camera::new(Manners::of(VIDEO));
    let source = format!("front=rtsp://{}/", camera.address);
    let proxy = Proxy::start(&["-s", &source, "--user", "eve:right"]);
    let _playing = camera.playing();
    let told = |who: &str| {
        let said = format!("Authorization: Basic {}\r\n", STANDARD.encode(who));
        Viewer::connect(&proxy).ask("DESCRIBE", "rtsp://h/front", &said).0
    };
    proxy.until("serves", || told("eve:right").contains(" 200 "));
    (0..20).for_each(|_| assert!(told("eve:wrong").contains(" 401 ")));
    assert!(told("eve:right").contains(" 401 "));
}

/// What comes within a camera's connection and is of another payload type or source is none of the track's; another source is believed when
/// the one before is silent, whatever its numbers.
#[test]
fn what_a_camera_says_beside_its_track_is_left_out() {
    let camera = Camera::new(Manners { only_tcp: true, ..Manners::of(VIDEO) });
    let proxy = Proxy::start(&["-s", &format!("front=rtsp://{}/", camera.address), "--transport", "tcp"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let mut viewer = Viewer::play(&proxy, "front", 1);
    playing.send(0, &picture(7, true, 50));
    let mut retransmitted = picture(9000, true, 60);
    retransmitted[1] = 97;
    playing.send(0, &retransmitted);
    let mut other = picture(6, true, 70);
    other[11] = 9;
    playing.send(0, &other);
    playing.send(0, &picture(8, false, 50));
    let got = [viewer.frame().1, viewer.frame().1];
    assert_eq!(got.map(|packet| (sequence(&packet), packet.len())), [(7, 62), (8, 62)]);
    proxy.until("hears the other", || {
        playing.send(0, &other);
        proxy.metric("packets_received") > 2
    });
    assert_eq!(sequence(&viewer.frame().1), 11);
}

/// The source told a port that it does not send from, as some cameras do; later it sends from yet another one.
#[test]
fn a_camera_that_tells_wrong_ports_is_heard() {
    let camera = Camera::new(Manners { lies_about_ports: true, ..Manners::of(VIDEO) });
    let proxy = Proxy::start(&["-s", &format!("front=rtsp://{}/", camera.address), "--transport", "udp"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let mut viewer = Viewer::play(&proxy, "front", 1);
    playing.send(0, &picture(7, true, 50));
    assert_eq!(viewer.sequences(1), [7]);
    let moved = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut number = 7;
    proxy.until("hears the camera at its new port", || {
        number += 1;
        moved.send_to(&picture(number, true, 50), playing.place(0)).unwrap();
        proxy.metric("packets_received") >= 2
    });
}

/// Datagrams of all lengths that there are, of many in one call: what a viewer gets is what was sent, byte for byte.
#[test]
fn datagrams_of_all_lengths_are_passed_on_whole() {
    const SIZES: [usize; 14] = [1, 60, 1186, 1187, 1188, 1189, 1190, 1300, 1388, 1460, 3200, 3300, 8988, 65_495];
    let camera = Camera::new(Manners::of(VIDEO));
    let source = format!("front=rtsp://{}/", camera.address);
    let proxy = Proxy::start(&["-s", &source, "--transport", "udp", "--workers", "1"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let mut viewer = Viewer::play(&proxy, "front", 1);
    let (mut number, mut state) = (0, 1_u32);
    for round in 0..40 {
        let (mut sent, mut bytes) = (Vec::new(), 0);
        // They lie there together when it looks.
        proxy.send("STOP");
        while bytes < 70_000 && sent.len() < 50 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // The first ones of usual cameras; then any.
            let of = if round < 20 { 10 } else { SIZES.len() };
            let size = SIZES[(state >> 16) as usize % of];
            let packet = picture(number, number % 16 == 0, size);
            playing.send(0, &packet);
            // Neither an empty one nor one without a head is a packet.
            (0..state >> 30).for_each(|size| playing.send(0, &vec![0; 11 * size as usize]));
            (number, bytes) = (number + 1, bytes + size);
            sent.push(packet);
        }
        proxy.send("CONT");
        for packet in &sent {
            let (_, got) = viewer.frame();
            assert_eq!((sequence(&got), got.len()), (sequence(packet), packet.len()));
            assert!(got[12..] == packet[12..], "round {round}: packet {} is another", sequence(packet));
        }
    }
}

#[test]
fn who_asks_for_more_than_there_is_is_told_what_there_is() {
    let camera = Camera::new(Manners::of(VIDEO));
    let proxy = Proxy::start(&["-s", &format!("front=rtsp://{}/", camera.address)]);
    for method in ["HEAD", "GET", "POST", "OPTIONS"] {
        let mut socket = TcpStream::connect(("127.0.0.1", proxy.http)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.write_all(format!("{method} /metrics HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes()).unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        let is_there = matches!(method, "HEAD" | "GET");
        assert_eq!(text.starts_with("HTTP/1.1 200 "), is_there, "{text}");
        assert!(is_there || (text.starts_with("HTTP/1.1 405 ") && text.contains("\r\nAllow: GET, HEAD\r\n")), "{text}");
        // What answers HEAD has no content (RFC 9110, section 9.3.2).
        assert_eq!(text.ends_with("\r\n\r\n"), method == "HEAD", "{text}");
    }
}

/// More requests at once than responses are owed at once, and nothing after them.
#[test]
fn who_asks_much_at_once_is_answered_to_the_end() {
    let camera = Camera::new(Manners::of(VIDEO));
    let proxy = Proxy::start(&["-s", &format!("front=rtsp://{}/", camera.address), "--workers", "1"]);
    let mut viewer = Viewer::connect(&proxy);
    let all: String = (1..=600).map(|number| format!("OPTIONS * RTSP/1.0\r\nCSeq: {number}\r\n\r\n")).collect();
    viewer.reader.get_mut().write_all(all.as_bytes()).unwrap();
    for number in 1..=600 {
        let Heard::Text(text, _) = hear(&mut viewer.reader) else { panic!("no answer to request {number}") };
        assert!(text.contains(&format!("CSeq: {number}\r\n")), "{text}");
    }
}

/// Records of TLS of which something is always left when as much as a message may have has been read, and nothing that is answered.
#[test]
fn who_never_stops_talking_within_tls_keeps_nobody_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = certificate(folder.path(), "own");
    let camera = Camera::new(Manners::of(VIDEO));
    let source = format!("front=rtsp://{}/", camera.address);
    let options = ["--workers", "1", "--rtsps", "127.0.0.1:0", "--cert", &cert, "--key", &key];
    let proxy = Proxy::start(&[&["-s", &source][..], &options].concat());
    let trust = multigrain_proxy::tls::Trust::new(Some(cert.as_ref())).unwrap();
    let response = format!("RTSP/1.0 200 OK\r\n{}\r\n", "a: b\r\n".repeat(60));
    let all = response.repeat(9000).into_bytes();
    let flood = || {
        let socket = TcpStream::connect(("127.0.0.1", proxy.port("rtsps"))).unwrap();
        socket.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
        let Ok(mut tls) = trust.greet(&socket, "localhost", PATIENCE) else { return };
        for record in std::iter::repeat(&all).flat_map(|all| all.chunks(9000)) {
            tls.writer().write_all(record).unwrap();
            while tls.wants_write() {
                if tls.write_tls(&mut &socket).is_err() {
                    return;
                }
            }
        }
    };
    let answered =
        meanwhile(flood, || (0..3).all(|_| Viewer::connect(&proxy).ask("OPTIONS", "*", "").0.contains(" 200 ")));
    assert!(answered);
}

/// Connections that say what a player might, in any order and cut anywhere, to what answers it; as many as MULTIGRAIN_CASES says.
#[test]
fn random_dialogues_do_no_harm() {
    let camera = Camera::new(Manners::of(VIDEO));
    let proxy = Proxy::start(&["-s", &format!("front=rtsp://{}/", camera.address), "--workers", "2"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let mut viewer = Viewer::play(&proxy, "front", 1);
    let cases = std::env::var("MULTIGRAIN_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(300_u64);
    let words: [&[u8]; 24] = [
        b"OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n",
        b"DESCRIBE rtsp://h/front RTSP/1.0\r\nCSeq: 2\r\nAccept: application/sdp\r\n\r\n",
        b"SETUP rtsp://h/front/trackID=0 RTSP/1.0\r\nCSeq: 3\r\nTransport: RTP/AVP/TCP;interleaved=0-1\r\n\r\n",
        b"SETUP rtsp://h/front/trackID=0 RTSP/1.0\r\nCSeq: 3\r\nTransport: RTP/AVP;unicast;client_port=9998-9999\r\n\r\n",
        b"PLAY rtsp://h/front RTSP/1.0\r\nCSeq: 4\r\n\r\n",
        b"PAUSE rtsp://h/front RTSP/1.0\r\nCSeq: 5\r\n\r\n",
        b"TEARDOWN rtsp://h/front RTSP/1.0\r\nCSeq: 6\r\n\r\n",
        b"GET_PARAMETER rtsp://h/front RTSP/1.0\r\nCSeq: 7\r\nContent-Length: 4\r\n\r\nabcd",
        b"GET /front.ts HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET /front.mp4 HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET /front.ws HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        b"GET /streams HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET /front HTTP/1.0\r\nx-sessioncookie: abc\r\n\r\n",
        b"POST /front HTTP/1.0\r\nx-sessioncookie: abc\r\nContent-Length: 32767\r\n\r\n",
        b"T1BUSU9OUyAqIFJUU1AvMS4wDQpDU2VxOiAxDQoNCg==",
        b"RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n",
        b"$\0\0\x04abcd",
        b"$\x01\xff\xff",
        b"\x81\x85abcdefghi",
        b"\x88\x80abcd",
        b"\r\n\r\n",
        b"Authorization: Basic YTpi\r\n",
        b"Session: 1\r\nRange: npt=0-\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
    ];
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % below
    };
    for case in 0..cases {
        let port = if random(2) == 0 { proxy.rtsp } else { proxy.http };
        let mut said = Vec::new();
        for _ in 0..=random(7) {
            let word = words[random(words.len())];
            said.extend_from_slice(&word[..if random(4) == 0 { random(word.len()) } else { word.len() }]);
            if random(6) == 0 {
                let at = random(said.len().max(1)).min(said.len());
                said.insert(at, random(256) as u8);
            }
        }
        let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let _ = socket.write_all(&said);
        if random(8) == 0 {
            socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
            let _ = socket.read(&mut [0; 4096]);
        }
        drop(socket);
        // Who views is undisturbed.
        playing.send(0, &picture(case as u16, true, 300));
        assert_eq!(viewer.sequences(1), [case as u16]);
    }
    proxy.until("is alone with its viewer", || proxy.metric("viewers ") == 1);
}
