//! Wrong requests, hostile connections, lying and absent sources: a line with the way out, and everybody else undisturbed.

use crate::support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use support::{Camera, Manners, PATIENCE, Proxy, VIDEO, Viewer, picture, program};

fn refused(options: &[&str], status: i32, words: &[&str]) {
    let output = program().args(options).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(status), "{options:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{options:?} should say {word:?}: {said}");
    }
    assert!(!said.contains("topsecret"), "{said}");
}

#[test]
fn wrong_requests_are_refused_at_once() {
    refused(&[], 2, &["nothing to serve", "--source"]);
    refused(&["-s", "http://u:topsecret@h/"], 2, &["begins with neither rtsp:// nor rtsps://"]);
    refused(&["-s", "rtsp://h/", "--listen", "here"], 2, &["--listen here", ":PORT"]);
    refused(&["-c", "/nowhere.toml"], 2, &["/nowhere.toml", "TOML"]);
    refused(&["-s", "rtsp://h/", "--drain-s", "999999"], 2, &["--drain-s 999999", "3600"]);
    refused(&["-s", "rtsp://h/", "--placement", "somewhere"], 2, &["run-to-completion"]);
    // An address without its option, or with a blank in it.
    refused(&["rtsp://u:topsecret@h/"], 2, &["unexpected argument 'rtsp://...' found"]);
    refused(&["-s", "rtsp://u:a", "topsecret@h/"], 2, &["unexpected argument '...' found"]);
    refused(&["-s", "rtsp://h/", "--transport", "rtsp://u:topsecret@h/"], 2, &["multicast"]);
    refused(&["-s", "rtsp://h/", "--listen", "rtsp://u:topsecret@h/"], 2, &["--listen an address is no place"]);
    // What belongs to one option stands behind another, or behind none.
    refused(&["u:topsecret"], 2, &["unexpected argument '...' found"]);
    refused(&["-s", "rtsp://h/", "--workers", "u:topsecret"], 2, &["invalid value '...' for '--workers"]);
    refused(&["-c", "rtsp://u:topsecret@h/"], 2, &["cannot read an address", "TOML"]);
    refused(&["-s", "rtsp://h/", "--trust", "rtsp://u:topsecret@h/"], 1, &["certificates of an address"]);
    refused(&["-s", "rtsp://10.0.0.1/", "--transparent", "rtsp://u:topsecret@h/"], 1, &["is no name of a device"]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = taken.local_addr().unwrap().to_string();
    refused(&["-s", "rtsp://h/", "--listen", &place], 1, &["taken by another program", "--listen"]);
    refused(&["-s", "rtsp://h/", "--listen", "127.0.0.1:0", "--http", &place], 1, &["--http"]);
}

/// What comes back for bytes on a new connection, up to its end.
fn answer(port: u16, bytes: &[u8]) -> String {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let _ = socket.write_all(bytes);
    let mut text = Vec::new();
    let _ = socket.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn hostile_connections_disturb_nobody() {
    let camera = Camera::new(Manners::of(VIDEO));
    let source = format!("front=rtsp://{}/", camera.address);
    let proxy = Proxy::start(&["-s", &source, "--connections-an-address", "8", "--viewers", "2"]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let mut viewer = Viewer::play(&proxy, "front", 1);
    for port in [proxy.rtsp, proxy.http] {
        assert!(answer(port, b"\x16\x03\x01\x02\x00").starts_with("HTTP/1.1 400 "));
        assert!(answer(port, b"nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
        let long = format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}", "x".repeat(40_000));
        let said = answer(port, long.as_bytes());
        // Where the rest of what was sent is still under way, the answer may be cut off by the end of the connection.
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 431 "), "{said}");
        let twice =
            b"POST /metrics HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nGET /streams HTTP/1.1\r\nHost: h\r\n\r\n";
        let said = answer(port, twice);
        assert!(said.starts_with("HTTP/1.1 400 ") && said.matches("HTTP/1.1").count() == 1, "{said}");
        let said = answer(port, b"OPTIONS * RTSP/1.0\r\nCSeq : 1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n");
        assert!(said.starts_with("RTSP/1.0 400 ") && said.contains("malformed"), "{said}");
        assert!(answer(port, b"GET HTTP://h:80/streams?a HTTP/1.1\r\nHost: h\r\n\r\n").starts_with("HTTP/1.1 200 "));
        assert!(answer(port, b"GET /../etc/passwd HTTP/1.1\r\nHost: h\r\n\r\n").starts_with("HTTP/1.1 404 "));
    }
    // Frames of data that are larger than any report end the connection, as do requests that never end.
    assert_eq!(answer(proxy.rtsp, &[&b"$\0\xff\xff"[..], &[0; 40_000]].concat()), "");
    // Viewers beyond the limit, connections beyond theirs.
    let second = Viewer::play(&proxy, "front", 1);
    let mut third = Viewer::connect(&proxy);
    third.ask("SETUP", "rtsp://h/front/trackID=0", "Transport: RTP/AVP/TCP;interleaved=0-1\r\n");
    assert!(third.ask("PLAY", "rtsp://h/front", "").0.contains(" 503 "));
    let many: Vec<TcpStream> = (0..12).map(|_| TcpStream::connect(("127.0.0.1", proxy.rtsp)).unwrap()).collect();
    proxy.says("is refused");
    drop((second, many));
    proxy.until("takes connections again", || {
        let mut one = Viewer::connect(&proxy);
        one.reader.get_mut().write_all(b"OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n").is_ok()
            && matches!(support::hear(&mut one.reader), support::Heard::Text(..))
    });
    playing.send(0, &picture(3, true, 10));
    assert_eq!(viewer.sequences(1), [3]);
}

#[test]
fn sources_that_cannot_be_pulled_are_told_with_the_way_out() {
    let unheard = support::unheard();
    let closed = unheard.local_addr().unwrap();
    let liar = TcpListener::bind("127.0.0.1:0").unwrap();
    let lies = liar.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut socket, _)) = liar.accept() {
            let _ = socket.write_all(b"SSH-2.0-OpenSSH\r\n\r\n");
        }
    });
    let locked = Camera::new(Manners { challenge: Some("Basic realm=\"x\"".to_owned()), ..Manners::of(VIDEO) });
    let empty = Camera::new(Manners::of("v=0\r\n"));
    let good = Camera::new(Manners::of(VIDEO));
    let proxy = Proxy::start(&[
        "-s",
        &format!("off=rtsp://u:topsecret@{closed}/"),
        "-s",
        &format!("liar=rtsp://u:topsecret@{lies}/"),
        "-s",
        &format!("locked=rtsp://{}/", locked.address),
        "-s",
        &format!("empty=rtsp://{}/", empty.address),
        "-s",
        &format!("good=rtsp://{}/", good.address),
    ]);
    proxy.says("off: nothing listens at");
    proxy.says("liar: it sends what is no message of RTSP");
    proxy.says("locked: ");
    proxy.says("give the address as rtsp://USER:PASSWORD@");
    proxy.says("empty: its description cannot be used");
    let mut playing = good.playing();
    proxy.serves("good");
    assert!(Viewer::connect(&proxy).ask("DESCRIBE", "rtsp://h/off", "").0.contains(" 503 "));
    let mut viewer = Viewer::play(&proxy, "good", 1);
    playing.send(0, b"no packet at all");
    playing.send(0, &picture(3, true, 10));
    assert_eq!(viewer.sequences(1), [3]);
    assert!(proxy.get("/streams").contains("nothing listens at"));
    assert!(!(proxy.log() + &proxy.get("/streams")).contains("topsecret"));
}

/// To another path of its own a camera is followed. To another host it is not, since it would be asked there with a password: that is told,
/// and that nobody is asked there.
#[test]
fn a_camera_that_has_moved_is_followed_at_its_own_host_only() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let place = elsewhere.local_addr().unwrap();
    let away = Manners { moved: Some(format!("rtsp://a:topsecret@{place}/topsecret")), ..Manners::of(VIDEO) };
    let away = Camera::new(away);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap();
    let near = Manners { moved: Some(format!("rtsp://{own}/live?topsecret")), ..Manners::of(VIDEO) };
    let near = Camera::on(listener, near);
    let proxy = Proxy::start(&[
        "-s",
        &format!("away=rtsp://me:topsecret@{}/", away.address),
        "-s",
        &format!("near=rtsp://me:topsecret@{}/", near.address),
    ]);
    let mut playing = near.playing();
    assert!(playing.requests.iter().any(|text| text.starts_with(&format!("DESCRIBE rtsp://{own}/live?topsecret "))));
    proxy.serves("near");
    let mut viewer = Viewer::play(&proxy, "near", 1);
    playing.send(0, &picture(3, true, 10));
    assert_eq!(viewer.sequences(1), [3]);
    proxy.says(&format!("away: it has moved to rtsp://{place}; give that address"));
    assert!(elsewhere.accept().is_err(), "it was asked");
    assert!(!(proxy.log() + &proxy.get("/streams")).contains("topsecret"));
}
