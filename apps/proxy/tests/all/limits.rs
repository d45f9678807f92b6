//! What one source, one viewer or one file can take of the program: memory, processor time, lines, others' time.

use crate::support;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use multigrain_proxy::address::Address;
use multigrain_proxy::dial;
use multigrain_proxy::dialogue::{Trouble, Way};
use rustix::net::sockopt;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc;
use std::time::Duration;
use support::{AUDIO, Camera, Manners, PATIENCE, Playing, Proxy, VIDEO, Viewer, certificate, picture, rtp};

/// That nobody works when nothing is to be done: a tenth of a processor's time at most, which only somebody who turns round and round needs.
fn rests(proxy: &Proxy) {
    let ticks = || {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", proxy.process())).unwrap();
        let fields: Vec<&str> = text.rsplit(") ").next().unwrap().split(' ').collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let before = ticks();
    std::thread::sleep(Duration::from_secs(2));
    let taken = ticks() - before;
    assert!(taken < 20, "{taken} of some 200 ticks are taken by nothing");
}

/// A source that was asked to send to a group, and tells of the first track that it comes within the connection.
#[test]
fn a_source_that_mixes_ways_is_heard_by_both() {
    let group = "239.255.77.23:47200".parse().unwrap();
    let camera =
        Camera::new(Manners { group: Some(group), first_within: true, ..Manners::of(&format!("{VIDEO}{AUDIO}")) });
    let source = format!("front=rtsp://{}/", camera.address);
    let proxy = Proxy::start(&["-s", &source, "--transport", "multicast", "--workers", "1"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let mut viewer = Viewer::play(&proxy, "front", 2);
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sockopt::set_ip_multicast_if(&sender, &Ipv4Addr::LOCALHOST).unwrap();
    playing.send_within(0, &picture(1, true, 50));
    assert_eq!(viewer.frame().0, 0);
    sender.send_to(&rtp(8, 7, 0, 5, &[0; 80]), group).unwrap();
    assert_eq!(viewer.frame().0, 2);
    rests(&proxy);
}

/// The way back of a tunnel is reset while nothing of what is answered is read.
#[test]
fn a_way_back_that_is_reset_is_let_go() {
    let camera = Camera::new(Manners::of(VIDEO));
    let proxy = Proxy::start(&["-s", &format!("front=rtsp://{}/", camera.address), "--workers", "1"]);
    let down = proxy.tunnel("GET");
    proxy.until("knows the tunnel", || down.peek(&mut [0; 20]).unwrap() > 0);
    let mut up = proxy.tunnel("POST");
    up.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let said = STANDARD.encode("OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n".repeat(3)).repeat(100_000);
    assert!(up.write_all(said.as_bytes()).is_err(), "everything was taken");
    sockopt::set_socket_linger(&up, Some(Duration::ZERO)).unwrap();
    drop(up);
    rests(&proxy);
}

/// More than may be on their way between workers at a time.
#[test]
fn who_come_and_go_leave_room_between_workers() {
    let camera = Camera::new(Manners::of(VIDEO));
    let proxy = Proxy::start(&["-s", &format!("front=rtsp://{}/", camera.address), "--workers", "2"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    playing.send(0, &picture(0, true, 50));
    (0..600).for_each(|_| drop(Viewer::play(&proxy, "front", 1)));
}

#[test]
fn the_largest_number_of_viewers_is_one() {
    let camera = Camera::new(Manners::of(VIDEO));
    let most = usize::MAX.to_string();
    let source = format!("front=rtsp://{}/", camera.address);
    let proxy = Proxy::start(&["-s", &source, "--connections-an-address", &most, "--viewers", &most]);
    assert!(Viewer::connect(&proxy).ask("OPTIONS", "*", "").0.contains(" 200 "), "{}", proxy.log());
}

#[test]
fn the_first_who_is_refused_is_told_and_so_is_each_kind() {
    let camera = Camera::new(Manners::of(VIDEO));
    let source = format!("front=rtsp://{}/", camera.address);
    let proxy = Proxy::start(&["-s", &source, "--connections-an-address", "3", "--viewers", "1"]);
    let _playing = camera.playing();
    proxy.serves("front");
    let mut viewers = [Viewer::play(&proxy, "front", 1), Viewer::connect(&proxy)];
    viewers[1].ask("SETUP", "rtsp://h/front/trackID=0", "Transport: RTP/AVP/TCP;interleaved=0-1\r\n");
    assert!(viewers[1].ask("PLAY", "rtsp://h/front", "").0.contains(" 503 "));
    proxy.says("--viewers");
    let _more: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(("127.0.0.1", proxy.rtsp)).unwrap()).collect();
    proxy.says("--connections-an-address");
}

/// In the place of the file lies something that cannot be read to its end.
#[test]
fn a_file_that_hangs_keeps_nobody_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let camera = Camera::new(Manners::of(VIDEO));
    let path = folder.path().join("proxy.toml");
    let text = format!("[[source]]\nname = \"front\"\nurl = \"rtsp://{}/\"\n", camera.address);
    std::fs::write(&path, &text).unwrap();
    let proxy = Proxy::start(&["-c", path.to_str().unwrap(), "--workers", "1"]);
    let _playing = camera.playing();
    proxy.serves("front");
    std::fs::remove_file(&path).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    // The second finds the first at it, which is told.
    for _ in 0..2 {
        proxy.send("HUP");
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(300));
            assert!(Viewer::connect(&proxy).ask("OPTIONS", "*", "").0.contains(" 200 "));
        }
    }
    proxy.says("the file is still being read");
    // Somebody writes it after all.
    std::fs::write(&path, &text).unwrap();
    proxy.says("read again: 1 streams");
}

/// A server of which something comes before it is asked to play, and which ends then.
#[test]
fn what_comes_before_a_server_plays_is_not_what_it_plays() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::parse(&format!("rtsp://{}/", listener.local_addr().unwrap())).unwrap();
    let server = std::thread::spawn(move || {
        let mut reader = std::io::BufReader::new(listener.accept().unwrap().0);
        while let support::Heard::Text(text, _) = support::hear(&mut reader) {
            let sequence = text.split("CSeq: ").nth(1).unwrap().split('\r').next().unwrap();
            let head = format!("RTSP/1.0 200 OK\r\nCSeq: {sequence}\r\n");
            let mut said = match text.split(' ').next().unwrap() {
                "DESCRIBE" => format!("{head}Content-Length: {}\r\n\r\n{VIDEO}", VIDEO.len()),
                "SETUP" => format!("{head}Session: 1\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n\r\n"),
                "PLAY" => return,
                _ => format!("{head}\r\n"),
            }
            .into_bytes();
            if text.starts_with("SETUP") {
                let early = picture(0, true, 50);
                said.extend([b'$', 0, 0, early.len() as u8]);
                said.extend(early);
            }
            reader.get_mut().write_all(&said).unwrap();
        }
        panic!("it was not asked to play")
    });
    let trust = multigrain_proxy::tls::Trust::new(None).unwrap();
    let tried = dial::rehearse(&address, Way::Tcp, &trust);
    assert!(matches!(&tried, Err(Trouble::Other(why)) if why.contains("ended")), "{tried:?}");
    server.join().unwrap();
}

/// A server that greets within TLS and then sends a record byte by byte, none of which is an answer.
#[test]
fn a_server_that_drips_does_not_answer() {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = certificate(folder.path(), "own");
    let config = multigrain_proxy::tls::server(cert.as_ref(), key.as_ref()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("rtsps://localhost:{}/", listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut tls = rustls::ServerConnection::new(config).unwrap();
        tls.complete_io(&mut socket).unwrap();
        let mut said = socket.write_all(&[23, 3, 3, 0x40, 0]);
        while said.is_ok() {
            std::thread::sleep(Duration::from_millis(200));
            said = socket.write_all(&[0]);
        }
    });
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let trust = multigrain_proxy::tls::Trust::new(Some(cert.as_ref())).unwrap();
        tell.send(dial::rehearse(&Address::parse(&url).unwrap(), Way::Udp, &trust))
    });
    assert!(matches!(told.recv_timeout(PATIENCE), Ok(Err(Trouble::Other(_)))));
}

/// One that is switched on and has nothing at the path of its address, or sends nothing, is not better than one that serves.
#[test]
fn only_a_server_that_would_play_is_better() {
    let trust = multigrain_proxy::tls::Trust::new(None).unwrap();
    let address = |camera: &Camera| Address::parse(&format!("rtsp://a:b@{}/", camera.address)).unwrap();
    let sends = |manners, way, what: fn(&mut Playing)| {
        let camera = Camera::new(manners);
        let address = address(&camera);
        std::thread::scope(|scope| {
            let tried = scope.spawn(|| dial::rehearse(&address, way, &trust));
            while !tried.is_finished() {
                let playing = camera.now();
                playing.into_iter().for_each(|mut playing| what(&mut playing));
                std::thread::sleep(Duration::from_millis(1));
            }
            tried.join().unwrap()
        })
    };
    let tried = |manners, way| sends(manners, way, |playing| playing.send(0, &picture(0, true, 50)));
    for way in [Way::Udp, Way::Tcp] {
        // Reports, also at the place of packets, are no media.
        let reports = sends(Manners::of(VIDEO), way, |playing| {
            let report = [[0x80, 200, 0, 6].as_slice(), &[0; 24]].concat();
            playing.report(0, &report);
            playing.send(0, &report);
        });
        assert!(reports.is_err(), "{way:?}");
        assert_eq!(tried(Manners::of(VIDEO), way), Ok(()));
        let silent = Camera::new(Manners::of(VIDEO));
        match (way, dial::rehearse(&address(&silent), way, &trust)) {
            (Way::Udp, Err(Trouble::NoUdp)) => {}
            (_, Err(Trouble::Other(why))) => assert!(why.contains("nothing of its media")),
            (_, other) => panic!("{way:?}: {other:?}"),
        }
        let empty = Manners { has_nothing: true, ..Manners::of(VIDEO) };
        assert!(matches!(tried(empty, way), Err(Trouble::Other(why)) if why.contains("nothing at the path")));
    }
    let challenge = Some("Basic realm=\"x\"".to_owned());
    assert_eq!(tried(Manners { challenge, ..Manners::of(VIDEO) }, Way::Tcp), Ok(()));
    assert_eq!(tried(Manners { only_tcp: true, ..Manners::of(VIDEO) }, Way::Udp), Err(Trouble::NoUdp));
}

/// Another viewer of the same computer says that it is where somebody is, and leaves.
#[test]
fn who_plays_to_the_ports_of_another_takes_no_reports_from_it() {
    let camera = Camera::new(Manners::of(VIDEO));
    let source = format!("front=rtsp://{}/", camera.address);
    let proxy = Proxy::start(&["-s", &source, "--transport", "tcp", "--workers", "2"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let own = [UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap()];
    let ports = own.each_ref().map(|socket| socket.local_addr().unwrap().port());
    let play = || {
        let mut viewer = Viewer::connect(&proxy);
        let transport = format!("Transport: RTP/AVP;unicast;client_port={}-{}\r\n", ports[0], ports[1]);
        assert!(viewer.ask("SETUP", "rtsp://h/front/trackID=0", &transport).0.contains(" 200 "));
        assert!(viewer.ask("PLAY", "rtsp://h/front", "").0.contains(" 200 "));
        viewer
    };
    let _viewer = play();
    // One on each worker.
    let others = [play(), play()];
    proxy.until("plays to all", || proxy.metric("viewers ") == 3);
    drop(others);
    proxy.until("lets them go", || proxy.metric("viewers ") == 1);
    let mut number = 0;
    proxy.until("hears that half of all is lost", || {
        number += 1;
        playing.send(0, &picture(number, number % 10 == 0, 500));
        let mut report = vec![0x81, 201, 0, 7, 0, 0, 0, 1, 0, 0, 0, 7];
        let words = [128 << 24 | u32::from(number / 2), u32::from(number), 0, 0, 0];
        words.iter().for_each(|word| report.extend(word.to_be_bytes()));
        own[1].send_to(&report, ("127.0.0.1", proxy.udp_port() + 1)).unwrap();
        proxy.metric("viewers_behind") > 0
    });
}

/// Who asks within TLS and says in the same breath that it says no more is answered.
#[test]
fn who_asks_and_says_no_more_is_answered_within_tls() {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = certificate(folder.path(), "own");
    let camera = Camera::new(Manners::of(VIDEO));
    let source = format!("front=rtsp://{}/", camera.address);
    let proxy = Proxy::start(&["-s", &source, "--https", "127.0.0.1:0", "--cert", &cert, "--key", &key]);
    let trust = multigrain_proxy::tls::Trust::new(Some(cert.as_ref())).unwrap();
    let mut socket = TcpStream::connect(("127.0.0.1", proxy.port("https"))).unwrap();
    let mut tls = trust.greet(&socket, "localhost", PATIENCE).unwrap();
    tls.writer().write_all(b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    tls.send_close_notify();
    let mut said = Vec::new();
    while tls.wants_write() {
        tls.write_tls(&mut said).unwrap();
    }
    socket.write_all(&said).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut text = Vec::new();
    while tls.read_tls(&mut socket).unwrap() > 0 {
        tls.process_new_packets().unwrap();
        let _ = tls.reader().read_to_end(&mut text);
    }
    let text = String::from_utf8(text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 ") && text.contains("multigrain_proxy_refused_total"), "{text}");
}
