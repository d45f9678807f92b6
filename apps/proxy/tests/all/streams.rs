//! From a scripted camera through the program to scripted viewers: what passes, what is left out, what goes on.

use crate::support;

use multigrain_proxy::choice::Choice;
use std::net::UdpSocket;
use support::{AUDIO, Camera, Heard, Manners, PATIENCE, Proxy, VIDEO, Viewer, hear, picture, rtp, sequence};

fn source(camera: &Camera) -> String {
    format!("front=rtsp://{}/live", camera.address)
}

#[test]
fn datagrams_are_put_in_order_for_all_viewers() {
    for placement in ["spread", "run-to-completion", "pipelined"] {
        let camera = Camera::new(Manners::of(VIDEO));
        let proxy =
            Proxy::start(&["-s", &source(&camera), "--workers", "2", "--placement", placement, "--reorder-ms", "2000"]);
        let mut playing = camera.playing();
        assert!(playing.is_udp());
        // Nothing names the host that the camera says it is.
        assert!(playing.requests.iter().all(|request| !request.contains("192.0.2.1")), "{:?}", playing.requests);
        proxy.serves("front");
        let mut viewers: Vec<Viewer> = (0..4).map(|_| Viewer::play(&proxy, "front", 1)).collect();
        // A picture that is no key is for nobody; then everything, in the order in which it was sent.
        for number in [65533, 65534, 0, 65535, 2, 1, 1, 3] {
            playing.send(0, &picture(number, number == 65534, 100));
        }
        for viewer in &mut viewers {
            assert_eq!(viewer.sequences(6), [65534, 65535, 0, 1, 2, 3], "{placement}");
        }
        // Who comes later begins with the key, and is told so.
        let mut late = Viewer::connect(&proxy);
        late.ask("SETUP", "rtsp://h/front/trackID=0", "Transport: RTP/AVP/TCP;interleaved=8-9\r\n");
        let (told, _) = late.ask("PLAY", "rtsp://h/front", "");
        assert!(told.contains("seq=65534;rtptime="), "{told}");
        assert_eq!(late.frame(), (8, picture(65534, true, 100)));
        drop(viewers);
        drop(late);
        proxy.until("lets viewers go", || proxy.metric("viewers ") == 0);
        assert_eq!((proxy.metric("packets_received"), proxy.metric("packets_late")), (7, 1));
    }
}

#[test]
fn a_source_within_its_connection_is_served_as_datagrams() {
    let mut manners = Manners::of(&(VIDEO.to_owned() + AUDIO));
    manners.challenge = Some("Digest realm=\"cam\", nonce=\"abc\", algorithm=SHA-256, qop=\"auth\"".to_owned());
    (manners.only_tcp, manners.refuses_keep_alive) = (true, true);
    let camera = Camera::new(manners);
    let proxy =
        Proxy::start(&["-s", &format!("yard=rtsp://me:topsecret@{}/user=me&password=topsecret", camera.address)]);
    let mut playing = camera.playing();
    assert!(!playing.is_udp() && playing.requests.last().unwrap().contains("Authorization: Digest username=\"me\""));
    proxy.serves("yard");
    // The sender's reports, of which a viewer that comes later is told the last, since they tell what goes together.
    let mut early = Viewer::play(&proxy, "yard", 2);
    let report = |track: u8, told: u8| -> Vec<u8> {
        let source = if track == 0 { 7 } else { 9 };
        [&[0x80, 200, 0, 6, 0, 0, 0, source, 0, 0, 0, told][..], &[0; 16]].concat()
    };
    playing.send(0, &picture(4, true, 1000));
    playing.send(1, &rtp(8, 76, 0, 9, b"sound"));
    for told in 1..=2 {
        (0..2).for_each(|track| playing.report(track, &report(track as u8, told)));
    }
    (0..6).for_each(|_| drop(early.frame()));
    let mut viewer = Viewer::connect(&proxy);
    let sockets: Vec<UdpSocket> = (0..4).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    let port = |i: usize| sockets[i].local_addr().unwrap().port();
    for track in 0..2 {
        let transport =
            format!("Transport: RTP/AVP;unicast;client_port={}-{}\r\n", port(2 * track), port(2 * track + 1));
        let (text, _) = viewer.ask("SETUP", &format!("rtsp://h/yard/trackID={track}"), &transport);
        assert!(text.contains("server_port="), "{text}");
    }
    assert!(viewer.ask("PLAY", "rtsp://h/yard", "").0.contains(" 200 "));
    let mut bytes = [0; 2000];
    let told = [(1, report(0, 2)), (3, report(1, 2))];
    for (socket, packet) in told.into_iter().chain([(0, picture(5, true, 1000)), (2, rtp(8, 77, 160, 9, b"sound"))]) {
        if socket == 0 {
            playing.send(0, &picture(5, true, 1000));
            playing.send(1, &rtp(8, 77, 160, 9, b"sound"));
        }
        sockets[socket].set_read_timeout(Some(PATIENCE)).unwrap();
        let (length, _) = sockets[socket].recv_from(&mut bytes).unwrap();
        assert_eq!(bytes[..length], packet);
    }
    let told = proxy.get("/streams") + &proxy.get("/metrics") + &proxy.log();
    assert!(told.contains("H264/90000") && !told.contains("topsecret"), "{told}");
    assert!(proxy.log().contains("within the connection"));
}

#[test]
fn a_source_that_sends_to_a_group_is_joined() {
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port() & !1;
    let group = std::net::SocketAddr::from(([239, 255, 77, 22], free));
    let camera = Camera::new(Manners { group: Some(group), ..Manners::of(&(VIDEO.to_owned() + AUDIO)) });
    let proxy = Proxy::start(&["-s", &source(&camera), "--transport", "multicast"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let mut viewers = [Viewer::play(&proxy, "front", 2), Viewer::play(&proxy, "front", 2)];
    for number in [0, 1, 3, 2] {
        playing.send(0, &picture(number, number == 0, 1000));
    }
    playing.send(1, &rtp(8, 77, 160, 9, b"sound"));
    for viewer in &mut viewers {
        for number in 0..4 {
            assert_eq!(viewer.frame(), (0, picture(number, number == 0, 1000)));
        }
        assert_eq!(viewer.frame(), (2, rtp(8, 77, 160, 9, b"sound")));
    }
    proxy.says("over multicast");
    // Who sends to no group is asked for one in vain, and the log says what to do.
    let camera = Camera::new(Manners::of(VIDEO));
    let proxy = Proxy::start(&["-s", &source(&camera), "--transport", "multicast"]);
    proxy.says("it sends to no group; give it transport auto");
}

#[test]
fn a_slow_viewer_misses_groups_of_pictures_and_disturbs_nobody() {
    let camera = Camera::new(Manners { only_tcp: true, ..Manners::of(VIDEO) });
    let proxy = Proxy::start(&["-s", &source(&camera), "--queue", "256KiB", "--transport", "tcp"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let mut slow = Viewer::play(&proxy, "front", 1);
    let mut quick = Viewer::play(&proxy, "front", 1);
    // More than any socket holds; the quick viewer reads along, the slow one does not.
    let mut number = 0_u16;
    while number == 0 || proxy.metric("viewers_behind") == 0 {
        for _ in 0..200 {
            playing.send(0, &picture(number, number.is_multiple_of(10), 20_000));
            assert_eq!(quick.sequences(1), [number]);
            number += 1;
        }
    }
    // The last is a key, so there is one behind the gap, wherever the slow viewer stands.
    playing.send(0, &picture(number, true, 20_000));
    assert_eq!(quick.sequences(1), [number]);
    // The slow one gets whole packets, then a gap, and behind the gap a key.
    let mut last = None;
    loop {
        let (_, packet) = slow.frame();
        assert_eq!(packet.len(), 20_012);
        let now = sequence(&packet);
        if last.is_some_and(|last| now != last + 1) {
            assert_eq!((now % 10, packet[12]), (0, 0x65), "after {last:?} comes {now}");
            break;
        }
        last = Some(now);
    }
}

/// Who goes on at a key after a gap goes on like one who begins there: of H.265, whose keys may be led by pictures that refer to what was before
/// them, its decoder is told that by the end of a sequence.
#[test]
fn who_goes_on_at_a_key_is_told_that_a_sequence_has_ended() {
    let camera = Camera::new(Manners { only_tcp: true, ..Manners::of(&VIDEO.replace("H264", "H265")) });
    let proxy = Proxy::start(&["-s", &source(&camera), "--queue", "256KiB", "--transport", "tcp"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    // A key of the kind CRA, one that leads it (RASL) unless it is the first, and others.
    let picture = |number: u16| {
        let kind = match number % 10 {
            0 => 21,
            1 if number > 10 => 8,
            _ => 1,
        };
        rtp(96 | 0x80, number, u32::from(number) * 3600, 7, &[&[kind << 1, 1, 0x80][..], &[7; 20_000]].concat())
    };
    let mut slow = Viewer::play(&proxy, "front", 1);
    let mut quick = Viewer::play(&proxy, "front", 1);
    let mut number = 0_u16;
    while number == 0 || proxy.metric("viewers_behind") == 0 {
        for _ in 0..200 {
            playing.send(0, &picture(number));
            assert_eq!(quick.frame().1, picture(number));
            number += 1;
        }
    }
    playing.send(0, &picture(number));
    let mut last = slow.frame().1;
    loop {
        let packet = slow.frame().1;
        if sequence(&packet) != sequence(&last) + 1 {
            // The end has the last number that was left out.
            let key = slow.frame().1;
            let ends = [96, 1, 0, 2, 72, 1, 0, 2, 74, 1];
            let end = rtp(96 | 0x80, sequence(&key) - 1, u32::from(sequence(&key)) * 3600 - 1, 7, &ends);
            assert_eq!((packet, sequence(&key) % 10), (end, 0));
            assert_eq!(key, picture(sequence(&key)));
            break;
        }
        assert_eq!(packet, picture(sequence(&packet)));
        last = packet;
    }
}

/// What a viewer does not take lies here, where it can be left out, and not in the system, which would take megabytes.
#[test]
fn a_viewer_that_never_reads_is_soon_behind() {
    let camera = Camera::new(Manners { only_tcp: true, ..Manners::of(VIDEO) });
    let proxy = Proxy::start(&["-s", &source(&camera), "--queue", "64KiB", "--transport", "tcp"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let mut quick = Viewer::play(&proxy, "front", 1);
    let slow = Viewer::play(&proxy, "front", 1);
    rustix::net::sockopt::set_socket_recv_buffer_size(slow.reader.get_ref(), 4096).unwrap();
    for number in 0..600 {
        playing.send(0, &picture(number, number.is_multiple_of(10), 1000));
        assert_eq!(quick.sequences(1), [number]);
    }
    proxy.until("leaves out what it does not take", || proxy.metric("viewers_behind") > 0);
}

/// Who pauses makes room, and who plays a second time goes on where it is.
#[test]
fn who_pauses_takes_no_place_from_others() {
    let camera = Camera::new(Manners::of(VIDEO));
    let proxy = Proxy::start(&["-s", &source(&camera), "--transport", "tcp", "--viewers", "1", "--workers", "2"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let mut first = Viewer::play(&proxy, "front", 1);
    playing.send(0, &picture(1, true, 50));
    assert_eq!(first.sequences(1), [1]);
    assert!(first.ask("PLAY", "rtsp://h/front", "").0.contains(" 200 "));
    playing.send(0, &picture(2, false, 50));
    assert_eq!(first.sequences(1), [2]);
    assert!(first.ask("PAUSE", "rtsp://h/front", "").0.contains(" 200 "));
    assert_eq!(proxy.metric("viewers "), 0);
    let mut second = Viewer::play(&proxy, "front", 1);
    assert_eq!(second.sequences(2), [1, 2]);
    assert!(first.ask("PLAY", "rtsp://h/front", "").0.contains(" 503 "));
    drop(second);
    proxy.until("lets it go", || proxy.metric("viewers ") == 0);
}

#[test]
fn a_source_that_restarts_goes_on_for_its_viewers() {
    let manners = Manners::of(VIDEO);
    let sdp = manners.sdp.clone();
    let camera = Camera::new(manners);
    let proxy = Proxy::start(&["-s", &source(&camera), "--transport", "tcp"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let mut viewer = Viewer::play(&proxy, "front", 1);
    playing.send(0, &picture(10, true, 50));
    playing.send(0, &picture(11, false, 50));
    assert_eq!(viewer.sequences(2), [10, 11]);
    playing.hang_up();
    // Another sender with other numbers: for viewers it is the same, which has lost something. What comes before its first key
    // refers to pictures that nobody has.
    let mut playing = camera.playing();
    playing.send(0, &rtp(96, 8998, 3, 4711, &[0x41, 1]));
    playing.send(0, &rtp(96, 8999, 4, 4711, &[0x41, 1]));
    playing.send(0, &rtp(96, 9000, 5, 4711, &[0x65, 1]));
    let (_, packet) = viewer.frame();
    assert_eq!((sequence(&packet), &packet[8..12]), (14, &[0, 0, 0, 7][..]));
    let timestamp = u32::from_be_bytes([packet[4], packet[5], packet[6], packet[7]]);
    assert!(timestamp.wrapping_sub(11 * 3600) < 90_000 * 60, "{timestamp}");
    // Another format: viewers have to ask again.
    *sdp.lock().unwrap() = VIDEO.replace("H264", "H265");
    playing.hang_up();
    let mut playing = camera.playing();
    assert_eq!(hear(&mut viewer.reader), Heard::End);
    proxy.says("it sends something else now");
    let (_, told) = Viewer::connect(&proxy).ask("DESCRIBE", "rtsp://h/front", "");
    assert!(String::from_utf8(told).unwrap().contains("H265/90000"));
    let mut viewer = Viewer::play(&proxy, "front", 1);
    playing.send(0, &rtp(96, 1, 5, 4711, &[19 << 1, 1, 0x80]));
    assert_eq!(viewer.frame().1[12..], [19 << 1, 1, 0x80]);
}

/// A computer that sleeps, or is moved to another one.
#[test]
fn who_was_suspended_goes_on() {
    let camera = Camera::new(Manners::of(VIDEO));
    let proxy = Proxy::start(&["-s", &source(&camera), "--transport", "udp"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let mut viewer = Viewer::play(&proxy, "front", 1);
    playing.send(0, &picture(1, true, 50));
    assert_eq!(viewer.sequences(1), [1]);
    proxy.send("STOP");
    // For longer than a source may be silent; it was not.
    for number in 2..26 {
        playing.send(0, &picture(number, true, 50));
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    proxy.send("CONT");
    assert_eq!(viewer.sequences(24), (2..26).collect::<Vec<_>>());
    assert!(!proxy.log().contains("has come for"), "{}", proxy.log());
}

#[test]
fn sigterm_lets_viewers_finish() {
    let camera = Camera::new(Manners::of(VIDEO));
    let mut proxy = Proxy::start(&["-s", &source(&camera)]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let mut viewer = Viewer::play(&proxy, "front", 1);
    playing.send(0, &picture(1, true, 50));
    assert_eq!(viewer.sequences(1), [1]);
    proxy.signal();
    proxy.says("viewers have");
    playing.send(0, &picture(2, false, 50));
    assert_eq!(viewer.sequences(1), [2]);
    drop(viewer);
    assert_eq!(proxy.ended(), Some(0));
}

#[test]
fn who_reports_loss_gets_fewer_pictures() {
    let audio_first = VIDEO.replacen("m=video", &(AUDIO.to_owned() + "m=video"), 1);
    for (workers, description, lead) in [("1", VIDEO, 0), ("3", VIDEO, 0), ("1", audio_first.as_str(), 1)] {
        let camera = Camera::new(Manners { only_tcp: true, ..Manners::of(description) });
        let proxy = Proxy::start(&["-s", &source(&camera), "--transport", "tcp", "--workers", workers]);
        let mut playing = camera.playing();
        proxy.serves("front");
        let mut careful = Viewer::play(&proxy, "front", lead + 1);
        let mut viewer = Viewer::connect(&proxy);
        for track in 0..lead {
            let transport = "Transport: RTP/AVP;unicast;client_port=40000-40001\r\n";
            assert!(viewer.ask("SETUP", &format!("rtsp://h/front/trackID={track}"), transport).0.contains(" 200 "));
        }
        let sockets = [UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap()];
        let ports = sockets.each_ref().map(|socket| socket.local_addr().unwrap().port());
        let transport = format!("Transport: RTP/AVP;unicast;client_port={}-{}\r\n", ports[0], ports[1]);
        let (told, _) = viewer.ask("SETUP", &format!("rtsp://h/front/trackID={lead}"), &transport);
        let server = told.split("server_port=").nth(1).unwrap().split(['-', '\r']).nth(1).unwrap();
        let server: u16 = server.parse().unwrap();
        assert!(viewer.ask("PLAY", "rtsp://h/front", "").0.contains(" 200 "));
        playing.send(lead, &picture(0, true, 500));
        sockets[0].set_read_timeout(Some(PATIENCE)).unwrap();
        assert!(sockets[0].recv_from(&mut [0; 2000]).is_ok());
        assert_eq!(proxy.metric("viewers_behind"), 0);
        // All that was expected is lost, again and again.
        let (mut number, mut told) = (1_u16, 0_u32);
        proxy.until("limits the viewer", || {
            proxy.metric("viewers_behind") > 0 || {
                told += 1;
                let mut report = vec![0x81, 201, 0, 7, 0, 0, 0, 1, 0, 0, 0, 7];
                [told, told - 1, 0, 0, 0].iter().for_each(|word| report.extend(word.to_be_bytes()));
                sockets[1].send_to(&report, ("127.0.0.1", server)).unwrap();
                playing.send(lead, &picture(number, number.is_multiple_of(4), 500));
                number += 1;
                false
            }
        });
        // Nobody else is.
        assert_eq!(careful.sequences(usize::from(number)), (0..number).collect::<Vec<_>>());
        // The sender's reports come whatever is left out: from their echoes the round trip is known, and so what a viewer may get.
        for told in 0..20_u32 {
            playing.send(lead, &picture(number, true, 500));
            let mut report = vec![0x80, 200, 0, 6, 0, 0, 0, 7];
            [told + 1, 0, 0, 0, 0].iter().for_each(|word| report.extend(word.to_be_bytes()));
            playing.report(lead, &report);
            playing.send(lead, &picture(number + 1, true, 500));
            number += 2;
            let mut bytes = [0; 2000];
            sockets[1].set_read_timeout(Some(PATIENCE)).unwrap();
            let (length, _) = sockets[1].recv_from(&mut bytes).expect("the sender's report comes");
            assert_eq!((length, bytes[1], bytes[11]), (28, 200, told as u8 + 1));
        }
    }
}

/// A camera that forgets who says nothing for four seconds.
#[test]
fn a_camera_is_told_that_somebody_is_there() {
    let manners = Manners::of(VIDEO);
    let camera = Camera::new(manners.clone());
    let proxy = Proxy::start(&["-s", &source(&camera), "--transport", "tcp"]);
    let _playing = camera.playing();
    proxy.until("says so", || {
        let asked = manners.asked.lock().unwrap();
        asked.iter().skip_while(|method| *method != "PLAY").any(|method| method == "GET_PARAMETER")
    });
}

/// An encoder that hangs, of a camera that goes on to send reports and what is of no track.
#[test]
fn a_camera_of_which_no_media_come_is_asked_again() {
    let camera = Camera::new(Manners::of(VIDEO));
    let proxy = Proxy::start(&["-s", &source(&camera), "--transport", "tcp"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    playing.send(0, &picture(1, true, 50));
    let began = std::time::Instant::now();
    while !proxy.log().contains("no packet of its pictures has come for 10 s") {
        assert!(began.elapsed() < PATIENCE, "{}", proxy.log());
        playing
            .try_report(0, &[0x80, 200, 0, 6, 0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2]);
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(proxy.metric("flowing"), 0);
    drop(camera.playing());
}

/// A camera that plays and ends at once is asked more and more seldom, and is told of once.
#[test]
fn who_ends_again_and_again_fills_no_log() {
    let camera = Camera::new(Manners::of(VIDEO));
    let proxy = Proxy::start(&["-s", &source(&camera), "--transport", "tcp"]);
    let mut times = Vec::new();
    for _ in 0..4 {
        let playing = camera.playing();
        times.push(std::time::Instant::now());
        playing.hang_up();
    }
    assert!(times[3] - times[2] > times[1] - times[0] + std::time::Duration::from_secs(1), "{times:?}");
    let log = proxy.log();
    assert_eq!(log.matches("has ended the connection").count(), 1, "{log}");
}

/// One server that sends nothing over UDP says nothing of another.
#[test]
fn each_server_is_asked_for_datagrams() {
    let (first, second) =
        (Camera::new(Manners { only_tcp: true, ..Manners::of(VIDEO) }), Camera::new(Manners::of(VIDEO)));
    let urls = [&first, &second].map(|camera| format!("rtsp://{}/", camera.address));
    // Of a name of which the first is the favourite.
    let is_first = |name: &String| Choice::new(name, &urls).best(std::time::Instant::now()) == 0;
    let name = (0..).map(|number| format!("front{number}")).find(is_first).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two.toml");
    std::fs::write(&file, format!("[[source]]\nname = \"{name}\"\nurls = {urls:?}\n")).unwrap();
    let proxy = Proxy::start(&["--config", file.to_str().unwrap()]);
    let playing = first.playing();
    assert!(!playing.is_udp(), "{}", proxy.log());
    playing.hang_up();
    assert!(second.playing().is_udp(), "{}", proxy.log());
}

/// Who is first to ask for a form gets what there is since the last key, though none comes.
#[test]
fn who_asks_first_waits_for_no_key() {
    let camera = Camera::new(Manners::of(
        &VIDEO.replace("mode=1", "mode=1;sprop-parameter-sets=Z2QAH6zZQFAFuwEQAAADABAAAAMDIPGDGWA=,aOvjyyLA"),
    ));
    let proxy = Proxy::start(&["-s", &source(&camera), "--transport", "tcp"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    // The packets are there when somebody else has got them.
    let mut viewer = Viewer::play(&proxy, "front", 1);
    for number in 1..20 {
        playing.send(0, &picture(number, number == 1, 300));
    }
    assert_eq!(viewer.sequences(19).len(), 19);
    for form in ["ts", "mp4"] {
        let mut socket = std::net::TcpStream::connect(("127.0.0.1", proxy.http)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        std::io::Write::write_all(&mut socket, format!("GET /front.{form} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes())
            .unwrap();
        let (mut all, mut bytes) = (Vec::new(), [0; 4096]);
        // The key, and one behind it.
        while ![[0x65, 0x81], [0x41, 0x92]].iter().all(|begin| all.windows(2).any(|found| found == begin)) {
            let count = std::io::Read::read(&mut socket, &mut bytes).unwrap_or(0);
            assert!(count > 0, "{form}: {} bytes came", all.len());
            all.extend_from_slice(&bytes[..count]);
        }
    }
}

/// Where numbers are missing, packets are, though none is lost within a connection: the camera, or a proxy before it, left them out.
#[test]
fn what_a_camera_leaves_out_within_its_connection_is_lost() {
    let camera = Camera::new(Manners::of(VIDEO));
    let proxy = Proxy::start(&["-s", &source(&camera), "--transport", "tcp"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let mut viewer = Viewer::play(&proxy, "front", 1);
    for number in (65_530..=65_535).chain([0, 1, 5, 6]) {
        playing.send(0, &picture(number, true, 50));
    }
    assert_eq!(viewer.sequences(10).len(), 10);
    assert_eq!(proxy.metric("packets_lost"), 3);
}

/// A camera from which only reports come by datagrams, since those of its media are too large for the way, is told to end that and asked within
/// the connection at once, and if it ends that, as seldom as any other.
#[test]
fn who_sends_no_datagrams_is_not_asked_again_and_again() {
    let manners = Manners::of(VIDEO);
    let camera = Camera::new(manners.clone());
    let proxy = Proxy::start(&["-s", &source(&camera)]);
    let mut silent = camera.playing();
    assert!(silent.is_udp(), "{}", proxy.log());
    silent.report(0, &[[0x80, 200, 0, 6].as_slice(), &[0; 24]].concat());
    let within = camera.playing();
    assert!(!within.is_udp(), "{}", proxy.log());
    proxy.until("ends the session", || manners.asked.lock().unwrap().iter().any(|method| method == "TEARDOWN"));
    within.hang_up();
    let began = std::time::Instant::now();
    let mut tries = 0;
    while began.elapsed() < std::time::Duration::from_secs(4) {
        std::thread::sleep(std::time::Duration::from_millis(20));
        while let Some(playing) = camera.now() {
            tries += 1;
            playing.hang_up();
        }
    }
    assert!((1..=3).contains(&tries), "{tries}");
}
