//! Ways in which a viewer is served beside plain RTSP: within TLS, with a password, over HTTP and WebSocket; and what is read again.

use crate::support;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use support::{
    Camera, Heard, Manners, PATIENCE, Playing, Proxy, VIDEO, Viewer, certificate, hear, picture, program, rtp, sequence,
};

/// Parameters of x264's, 1280 x 720, as a description tells them.
const PARAMETERS: &str = "sprop-parameter-sets=Z2QAH6zZQFAFuwEQAAADABAAAAMDIPGDGWA=,aOvjyyLA";

fn described() -> Manners {
    Manners::of(&VIDEO.replace("packetization-mode=1", &format!("packetization-mode=1; {PARAMETERS}")))
}

/// A proxy with everything in a file.
fn start(folder: &Path, text: &str) -> Proxy {
    let file = folder.join("proxy.toml");
    std::fs::write(&file, text).unwrap();
    Proxy::start(&["--config", file.to_str().unwrap()])
}

/// Asks by HTTP; the head of the response, and what is behind it.
fn ask(proxy: &Proxy, request: &str) -> (String, BufReader<TcpStream>) {
    let mut socket = TcpStream::connect(("127.0.0.1", proxy.http)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    answered(socket)
}

/// The head of a response, and what is behind it.
fn answered(socket: TcpStream) -> (String, BufReader<TcpStream>) {
    let (mut reader, mut head) = (BufReader::new(socket), String::new());
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
    (head, reader)
}

/// Boxes of MP4 until one of that kind, with their kinds.
fn boxes(reader: &mut impl Read, until: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    loop {
        let mut head = [0; 8];
        reader.read_exact(&mut head).unwrap();
        let mut bytes = vec![0; u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize - 8];
        reader.read_exact(&mut bytes).unwrap();
        found.push((String::from_utf8_lossy(&head[4..]).into_owned(), bytes));
        if &head[4..] == until {
            return found;
        }
    }
}

#[test]
fn browsers_get_fragments_that_begin_with_a_key() {
    for workers in ["1", "3"] {
        let camera = Camera::new(described());
        let source = format!("front=rtsp://{}/", camera.address);
        let proxy = Proxy::start(&["-s", &source, "--transport", "tcp", "--workers", workers]);
        let mut playing = camera.playing();
        proxy.serves("front");
        let (head, mut plain) = ask(&proxy, "GET /front.mp4 HTTP/1.1\r\nHost: h\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("video/mp4"), "{head}");
        let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
            Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        let (head, mut socket) = ask(&proxy, &format!("GET /front.ws HTTP/1.1\r\nHost: h\r\n{upgrade}"));
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        let (head, _) = ask(&proxy, &format!("GET /front.ws HTTP/1.1\r\nHost: h\r\nOrigin: http://evil\r\n{upgrade}"));
        assert!(head.starts_with("HTTP/1.1 400 "), "{head}");
        let mut message = |expected: u8| {
            let mut head = [0; 2];
            socket.read_exact(&mut head).unwrap();
            assert_eq!(head[0], 0x80 | expected);
            let mut length = usize::from(head[1]);
            if length == 126 {
                let mut more = [0; 2];
                socket.read_exact(&mut more).unwrap();
                length = usize::from(u16::from_be_bytes(more));
            }
            let mut bytes = vec![0; length];
            socket.read_exact(&mut bytes).unwrap();
            bytes
        };
        for number in 3..6 {
            playing.send(0, &picture(number, number == 3, 300));
        }
        let found = boxes(&mut plain, b"mdat");
        let kinds: Vec<&str> = found.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(kinds, ["ftyp", "moov", "moof", "mdat"]);
        assert!(found[1].1.windows(4).any(|bytes| bytes == [5, 0, 2, 0xd0]), "its size is not told");
        // The key, behind its length.
        assert_eq!((&found[3].1[..5], found[3].1.len()), (&[0, 0, 1, 44, 0x65][..], 304));
        assert_eq!(boxes(&mut plain, b"mdat")[1].1[4], 0x41);
        assert_eq!(String::from_utf8(message(1)).unwrap(), "video/mp4; codecs=\"avc1.64001f\"");
        assert_eq!(&message(2)[4..8], b"ftyp");
        let fragment = message(2);
        assert_eq!((&fragment[4..8], fragment[fragment.len() - 300]), (&b"moof"[..], 0x65));
        // Parameters that come with a key and are others: a file has one description, so it ends behind the last picture of before, and
        // who asks again gets another one. Within WebSocket they are told before the key.
        let mut wide = STANDARD.decode("Z2QAH6zZQFAFuwEQAAADABAAAAMDIPGDGWA=").unwrap();
        wide[3] = 0x20;
        playing.send(0, &rtp(96, 6, 6 * 3600, 7, &wide));
        playing.send(0, &rtp(96, 7, 6 * 3600, 7, &STANDARD.decode("aOvjyyLA").unwrap()));
        playing.send(0, &rtp(96 | 0x80, 8, 6 * 3600, 7, &[0x65; 9]));
        assert_eq!(boxes(&mut plain, b"mdat")[1].1[4], 0x41);
        assert_eq!(plain.read(&mut [0; 9]).unwrap(), 0, "the file goes on");
        assert_eq!(&message(2)[4..8], b"moof");
        assert_eq!(&message(2)[4..8], b"moof");
        assert_eq!(String::from_utf8(message(1)).unwrap(), "video/mp4; codecs=\"avc1.640020\"");
        assert!(message(2).windows(4).any(|name| name == b"moov"));
        let fragment = message(2);
        assert_eq!((&fragment[4..8], fragment[fragment.len() - 9]), (&b"moof"[..], 0x65));
        let (_, mut anew) = ask(&proxy, "GET /front.mp4 HTTP/1.1\r\nHost: h\r\n\r\n");
        let found = boxes(&mut anew, b"mdat");
        assert!(found[1].1.windows(4).any(|bytes| bytes == [0x67, 0x64, 0, 0x20]));
        assert_eq!(found[3].1[..], [&[0, 0, 0, 9][..], &[0x65; 9]].concat());
    }
}

#[test]
fn a_tunnel_is_one_viewer() {
    for workers in ["1", "3"] {
        let camera = Camera::new(described());
        let source = format!("front=rtsp://{}/", camera.address);
        let proxy = Proxy::start(&["-s", &source, "--transport", "tcp", "--workers", workers]);
        let mut playing: Playing = camera.playing();
        proxy.serves("front");
        let (refused, _) = answered(proxy.tunnel("POST"));
        assert!(refused.starts_with("HTTP/1.1 400 "), "{refused}");
        let (head, mut down) = answered(proxy.tunnel("GET"));
        assert!(head.contains("application/x-rtsp-tunnelled"), "{head}");
        let mut up = proxy.tunnel("POST");
        let mut say = |down: &mut BufReader<TcpStream>, text: &str| {
            up.write_all(STANDARD.encode(text).as_bytes()).unwrap();
            let Heard::Text(told, _) = hear(down) else { panic!("no answer") };
            assert!(told.starts_with("RTSP/1.0 200 "), "{told}");
            told.split("Session: ").nth(1).map(|text| text.split(';').next().unwrap().to_owned())
        };
        let set_up =
            "SETUP rtsp://h/front/trackID=0 RTSP/1.0\r\nCSeq: 1\r\nTransport: RTP/AVP/TCP;interleaved=0-1\r\n\r\n";
        let session = say(&mut down, set_up).unwrap();
        say(&mut down, &format!("PLAY rtsp://h/front RTSP/1.0\r\nCSeq: 2\r\nSession: {session}\r\n\r\n"));
        playing.send(0, &picture(7, true, 50));
        let Heard::Frame(0, packet) = hear(&mut down) else { panic!("no packet") };
        assert_eq!(sequence(&packet), 7);
        // While it plays it is still heard.
        say(&mut down, &format!("GET_PARAMETER rtsp://h/front RTSP/1.0\r\nCSeq: 3\r\nSession: {session}\r\n\r\n"));
        drop(down);
        proxy.until("lets the viewer go", || proxy.metric("viewers ") == 0);
    }
}

#[test]
fn who_has_no_password_sees_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let camera = Camera::new(described());
    let text = format!(
        "[[source]]\nname = \"front\"\nurl = \"rtsp://cam:topsecret@{}/\"\n[[user]]\nname = \"eve\"\npassword = \"hush:hush\"\n",
        camera.address
    );
    let proxy = start(folder.path(), &text);
    let mut playing = camera.playing();
    playing.send(0, &picture(2, false, 10));
    proxy.says("playing");
    let (told, _) = Viewer::connect(&proxy).ask("DESCRIBE", "rtsp://h/front", "");
    assert!(told.contains(" 401 ") && told.contains("WWW-Authenticate: Digest realm="), "{told}");
    assert!(!told.contains("Basic"), "a password would be sent in the clear: {told}");
    for path in ["/", "/metrics", "/streams", "/front.ts", "/front.mp4", "/front.ws"] {
        assert!(proxy.get(path).starts_with("HTTP/1.1 401 "), "{path}");
    }
    // Three wrong answers end the connection; the right one is asked for once.
    let mut wrong = Viewer::connect(&proxy);
    let basic = |text: &str| format!("Authorization: Basic {}\r\n", STANDARD.encode(text));
    for _ in 0..3 {
        assert!(wrong.ask("DESCRIBE", "rtsp://h/front", &basic("eve:guess-hush")).0.contains(" 401 "));
    }
    assert_eq!(hear(&mut wrong.reader), Heard::End);
    let mut viewer = Viewer::connect(&proxy);
    let (told, _) = viewer.ask("DESCRIBE", "rtsp://h/front", "");
    let challenge = told.split("WWW-Authenticate: ").nth(1).unwrap().lines().next().unwrap();
    let mut client = http_auth::PasswordClient::try_from(challenge).unwrap();
    let params = http_auth::PasswordParams {
        username: "eve",
        password: "hush:hush",
        uri: "rtsp://h/front",
        method: "DESCRIBE",
        body: Some(&[]),
    };
    let answer = format!("Authorization: {}\r\n", client.respond(&params).unwrap());
    assert!(viewer.ask("DESCRIBE", "rtsp://h/front", &answer).0.contains(" 200 "));
    let transport = "Transport: RTP/AVP/TCP;interleaved=0-1\r\n";
    assert!(viewer.ask("SETUP", "rtsp://h/front/trackID=0", transport).0.contains(" 200 "));
    assert!(viewer.ask("PLAY", "rtsp://h/front", "").0.contains(" 200 "));
    playing.send(0, &picture(3, true, 10));
    assert_eq!(viewer.sequences(1), [3]);
    let (metrics, _) = ask(&proxy, &format!("GET /metrics HTTP/1.1\r\nHost: h\r\n{}\r\n", basic("eve:hush:hush")));
    assert!(metrics.starts_with("HTTP/1.1 200 "), "{metrics}");
    // What somebody typed instead of a password is none of the log's business, either.
    proxy.says("wrong name or password");
    let log = proxy.log();
    assert!(!["hush", "topsecret", "eve"].iter().any(|word| log.contains(word)), "{log}");
}

#[test]
fn who_may_watch_one_stream_knows_of_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let camera = Camera::new(described());
    let source = |name: &str| format!("[[source]]\nname = \"{name}\"\nurl = \"rtsp://{}/\"\n", camera.address);
    let user = |name: &str, more: &str| format!("[[user]]\nname = \"{name}\"\npassword = \"hush\"\n{more}");
    let text = source("door") + &source("yard") + &user("eve", "streams = [\"door\"]\n") + &user("adam", "");
    let proxy = start(folder.path(), &text);
    let _playing = [camera.playing(), camera.playing()];
    let basic = |name: &str| format!("Authorization: Basic {}\r\n", STANDARD.encode(format!("{name}:hush")));
    for stream in ["door", "yard"] {
        let url = format!("rtsp://h/{stream}");
        proxy.until("lets adam see all", || {
            Viewer::connect(&proxy).ask("DESCRIBE", &url, &basic("adam")).0.contains(" 200 ")
        });
        let seen = if stream == "door" { " 200 " } else { " 404 " };
        let mut eve = Viewer::connect(&proxy);
        assert!(eve.ask("DESCRIBE", &url, &basic("eve")).0.contains(seen));
        // What is known of her connection holds for what she asks later.
        let transport = "Transport: RTP/AVP/TCP;interleaved=0-1\r\n";
        assert!(eve.ask("SETUP", &format!("{url}/trackID=0"), transport).0.contains(seen));
        let (told, _) = ask(&proxy, &format!("GET /{stream}.ws HTTP/1.1\r\nHost: h\r\n{}\r\n", basic("eve")));
        assert_eq!(told.contains(" 404 "), stream == "yard", "{told}");
    }
    for path in ["/streams", "/metrics"] {
        let [eve, adam] = ["eve", "adam"].map(|name| {
            let (_, mut body) = ask(&proxy, &format!("GET {path} HTTP/1.1\r\nHost: h\r\n{}\r\n", basic(name)));
            let mut text = String::new();
            body.read_to_string(&mut text).unwrap();
            text
        });
        assert!(eve.contains("door") && !eve.contains("yard"), "{eve}");
        assert!(adam.contains("door") && adam.contains("yard"), "{adam}");
    }
}

#[test]
fn tls_is_spoken_on_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = certificate(folder.path(), "own");
    let (other, other_key) = certificate(folder.path(), "other");
    let [encrypted, legacy] =
        ["encrypted.key", "legacy.key"].map(|name| folder.path().join(name).display().to_string());
    std::fs::write(&encrypted, "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")
        .unwrap();
    let head = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n";
    std::fs::write(&legacy, format!("{head}-----END RSA PRIVATE KEY-----\n")).unwrap();
    // Files that do not fit are refused with a way out.
    for (cert, key, told) in [
        (&cert, &other_key, "do not fit"),
        (&key, &key, "no certificate"),
        (&cert, &cert, "there is none in it"),
        (&cert, &encrypted, "it is encrypted"),
        (&cert, &legacy, "it is encrypted"),
        (&other, &folder.path().display().to_string(), "--key"),
    ] {
        let options = ["-s", "rtsp://127.0.0.1:9/", "--rtsps", "127.0.0.1:0", "--cert", cert, "--key", key];
        let output = program().args(options).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(told), "{said}");
    }
    let camera = Camera::new(described());
    let source = format!("front=rtsp://{}/", camera.address);
    let secure = [
        "-s",
        &source,
        "--transport",
        "tcp",
        "--rtsps",
        "127.0.0.1:0",
        "--https",
        "127.0.0.1:0",
        "--cert",
        &cert,
        "--key",
        &key,
    ];
    let first = Proxy::start(&secure);
    let mut playing = camera.playing();
    first.serves("front");
    // A second one pulls from the first, within TLS, and believes only its certificate.
    let upstream = format!("front=rtsps://localhost:{}/front", first.port("rtsps"));
    let trusting =
        |file: &str| Proxy::start(&["-s", &upstream, "--transport", "tcp", "--trust", file, "--workers", "2"]);
    let doubting = trusting(&other);
    doubting.says("its certificate is not believed");
    doubting.says("--trust FILE");
    drop(doubting);
    let second = trusting(&cert);
    second.serves("front");
    let mut viewer = Viewer::play(&second, "front", 1);
    first.says("within TLS");
    for number in 0..200 {
        playing.send(0, &picture(number, number == 0, 9000));
    }
    assert_eq!(viewer.sequences(200), (0..200).collect::<Vec<_>>());
    // Who does not speak it is no harm to others.
    let mut plain = TcpStream::connect(("127.0.0.1", first.port("rtsps"))).unwrap();
    plain.write_all(b"OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n").unwrap();
    plain.set_read_timeout(Some(PATIENCE)).unwrap();
    let _ = plain.read_to_end(&mut Vec::new());
    let wrong = Proxy::start(&["-s", &format!("x=rtsps://127.0.0.1:{}/front", first.rtsp)]);
    wrong.says("look whether rtsp:// is meant");
    playing.send(0, &picture(200, false, 10));
    assert_eq!(viewer.sequences(1), [200]);
}

#[test]
fn what_is_asked_for_is_read_again_and_nobody_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let cameras = [Camera::new(described()), Camera::new(described()), Camera::new(described())];
    let source = |name: &str, camera: usize| {
        format!("[[source]]\nname = \"{name}\"\nurl = \"rtsp://{}/\"\ntransport = \"tcp\"\n", cameras[camera].address)
    };
    let file = folder.path().join("proxy.toml");
    let proxy = start(folder.path(), &format!("workers = 2\n{}{}", source("stays", 0), source("goes", 1)));
    let (mut stays, _goes) = (cameras[0].playing(), cameras[1].playing());
    proxy.serves("stays");
    proxy.serves("goes");
    let (mut viewer, mut leaving) = (Viewer::play(&proxy, "stays", 1), Viewer::play(&proxy, "goes", 1));
    let again =
        || assert!(Command::new("kill").args(["-HUP", &proxy.process().to_string()]).status().unwrap().success());
    // What is wrong changes nothing.
    std::fs::write(&file, "viewers = true\n").unwrap();
    again();
    proxy.says("nothing is changed: ");
    std::fs::write(&file, source("stays", 0) + &source("comes", 2)).unwrap();
    again();
    proxy.says("read again: 2 streams");
    let mut comes = cameras[2].playing();
    proxy.serves("comes");
    assert_eq!(hear(&mut leaving.reader), Heard::End);
    assert!(Viewer::connect(&proxy).ask("DESCRIBE", "rtsp://h/goes", "").0.contains(" 404 "));
    stays.send(0, &picture(5, true, 50));
    assert_eq!(viewer.sequences(1), [5]);
    let mut new = Viewer::play(&proxy, "comes", 1);
    comes.send(0, &picture(9, true, 50));
    assert_eq!(new.sequences(1), [9]);
    // Another camera under the same name: its viewers go on.
    std::fs::write(&file, source("stays", 1) + &source("comes", 2)).unwrap();
    again();
    let mut other = cameras[1].playing();
    other.send(0, &rtp(96, 7000, 1, 99, &[0x65, 1]));
    assert_eq!(viewer.sequences(1), [8]);
}

/// A file that is read again and has no certificate takes nothing of TLS away: no port begins to speak in the clear.
#[test]
fn tls_stays_tls_when_the_file_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = certificate(folder.path(), "own");
    let camera = Camera::new(described());
    let source = format!("[[source]]\nname = \"front\"\nurl = \"rtsp://{}/\"\n", camera.address);
    let tls = format!("rtsps = \"127.0.0.1:0\"\nhttps = \"127.0.0.1:0\"\ncert = \"{cert}\"\nkey = \"{key}\"\n");
    let proxy = start(folder.path(), &(tls + &source));
    let _playing = camera.playing();
    proxy.serves("front");
    std::fs::write(folder.path().join("proxy.toml"), source).unwrap();
    proxy.send("HUP");
    proxy.says("there is no certificate any more");
    for (way, asked) in
        [("https", "GET / HTTP/1.1\r\nHost: h\r\n\r\n"), ("rtsps", "OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n")]
    {
        let mut socket = TcpStream::connect(("127.0.0.1", proxy.port(way))).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.write_all(asked.as_bytes()).unwrap();
        let mut told = Vec::new();
        let _ = socket.read_to_end(&mut told);
        // An alert, if anything: record type 21.
        assert!(told.first().is_none_or(|first| *first == 21), "{way}: {}", String::from_utf8_lossy(&told));
    }
}

/// Who may watch no more is sent away when that is read, by whatever way and on whichever worker; others go on.
#[test]
fn who_may_watch_no_more_is_sent_away() {
    let folder = tempfile::tempdir().unwrap();
    let camera = Camera::new(described());
    let source = |name: &str| format!("[[source]]\nname = \"{name}\"\nurl = \"rtsp://{}/\"\n", camera.address);
    let user = |name: &str, password: &str, more: &str| {
        format!("[[user]]\nname = \"{name}\"\npassword = \"{password}\"\n{more}")
    };
    let head = format!("workers = 2\nplacement = \"spread\"\n{}{}", source("door"), source("yard"));
    let both = "streams = [\"door\", \"yard\"]\n";
    let file = folder.path().join("proxy.toml");
    let before =
        [user("adam", "hush", ""), user("eve", "hush", ""), user("cain", "hush", ""), user("abel", "hush", both)];
    let proxy = start(folder.path(), &(head.clone() + &before.concat()));
    let _playing = [camera.playing(), camera.playing()];
    let basic = |name: &str| format!("Authorization: Basic {}\r\n", STANDARD.encode(format!("{name}:hush")));
    let by_rtsp = |name: &str, stream: &str| {
        let (mut viewer, url) = (Viewer::connect(&proxy), format!("rtsp://h/{stream}"));
        proxy.until("lets somebody in", || viewer.ask("DESCRIBE", &url, &basic(name)).0.contains(" 200 "));
        let transport = "Transport: RTP/AVP/TCP;interleaved=0-1\r\n";
        assert!(viewer.ask("SETUP", &format!("{url}/trackID=0"), transport).0.contains(" 200 "));
        assert!(viewer.ask("PLAY", &url, "").0.contains(" 200 "));
        viewer
    };
    let by_http = |name: &str| {
        let (told, reader) = ask(&proxy, &format!("GET /yard.ts HTTP/1.1\r\nHost: h\r\n{}\r\n", basic(name)));
        assert!(told.contains(" 200 "), "{told}");
        reader
    };
    let mut stays = [by_rtsp("adam", "yard"), by_rtsp("abel", "door")];
    let mut leave = [by_rtsp("eve", "door"), by_rtsp("cain", "yard"), by_rtsp("abel", "yard")];
    let (mut http, mut asked) = (by_http("eve"), Viewer::connect(&proxy));
    assert!(asked.ask("DESCRIBE", "rtsp://h/door", &basic("eve")).0.contains(" 200 "));
    proxy.until("has its viewers", || {
        let (_, mut body) = ask(&proxy, &format!("GET /streams HTTP/1.1\r\nHost: h\r\n{}\r\n", basic("adam")));
        let mut text = String::new();
        body.read_to_string(&mut text).unwrap();
        text.contains("\"viewers\":6}")
    });
    // One is gone, one has another password, one may watch the other stream only.
    let after = [user("adam", "hush", ""), user("cain", "other", ""), user("abel", "hush", "streams = [\"door\"]\n")];
    std::fs::write(&file, head.clone() + &after.concat()).unwrap();
    proxy.send("HUP");
    proxy.says("read again: 2 streams");
    for viewer in &mut leave {
        assert_eq!(hear(&mut viewer.reader), Heard::End);
    }
    assert_eq!(http.read(&mut [0]).unwrap(), 0);
    // Who does not play has to say again who it is.
    assert!(asked.ask("DESCRIBE", "rtsp://h/door", "").0.contains(" 401 "));
    for viewer in &mut stays {
        assert!(viewer.ask("GET_PARAMETER", "rtsp://h/", "").0.contains(" 200 "));
    }
    // A file that names nobody, as one that is half written, opens nothing.
    std::fs::write(&file, head).unwrap();
    proxy.send("HUP");
    proxy.says("everybody would be let in");
    assert!(asked.ask("DESCRIBE", "rtsp://h/door", "").0.contains(" 401 "));
}

#[test]
fn another_server_takes_over() {
    let folder = tempfile::tempdir().unwrap();
    let cameras = [Camera::new(described()), Camera::new(described())];
    let unheard = support::unheard();
    let off = unheard.local_addr().unwrap();
    let urls: Vec<String> =
        [cameras[0].address, off, cameras[1].address].iter().map(|place| format!("\"rtsp://{place}/\"")).collect();
    let proxy = start(
        folder.path(),
        &format!("transport = \"tcp\"\n[[source]]\nname = \"front\"\nurls = [{}]\n", urls.join(", ")),
    );
    // Whichever it is.
    let playing = |proxy: &Proxy| loop {
        if let Some(playing) = cameras.iter().find_map(Camera::now) {
            return playing;
        }
        proxy.until("pulls", || proxy.metric("connections_total") > 0);
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    let mut first = playing(&proxy);
    proxy.serves("front");
    let mut viewer = Viewer::play(&proxy, "front", 1);
    first.send(0, &picture(5, true, 50));
    assert_eq!(viewer.sequences(1), [5]);
    first.hang_up();
    let mut second = playing(&proxy);
    second.send(0, &picture(900, true, 50));
    assert_eq!(viewer.sequences(1), [8]);
}

/// What is said behind a request that plays is no other viewer: the connection is cut, and who watches is counted right.
#[test]
fn who_plays_asks_for_nothing_else() {
    for workers in ["1", "2"] {
        let camera = Camera::new(described());
        let sources = ["door", "yard"].map(|name| format!("{name}=rtsp://{}/", camera.address));
        let proxy = Proxy::start(&["-s", &sources[0], "-s", &sources[1], "--transport", "tcp", "--workers", workers]);
        let _playing = [camera.playing(), camera.playing()];
        proxy.serves("door");
        proxy.serves("yard");
        for second in [
            "GET /yard.ts HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n",
            "OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n",
        ] {
            let (head, mut rest) = ask(&proxy, "GET /door.ts HTTP/1.1\r\nHost: h\r\n\r\n");
            assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
            rest.get_mut().write_all(second.as_bytes()).unwrap();
            let mut more = Vec::new();
            let _ = rest.read_to_end(&mut more);
            assert!(!more.windows(5).any(|bytes| bytes == b"HTTP/" || bytes == b"RTSP/"), "{more:?}");
        }
        let mut viewer = Viewer::play(&proxy, "door", 1);
        viewer.reader.get_mut().write_all(b"GET /yard.mp4 HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        assert_eq!(hear(&mut viewer.reader), Heard::End);
        proxy.until("has nobody left", || proxy.metric("viewers ") == 0);
        let told = proxy.get("/streams");
        // Of each stream, and of all.
        assert_eq!(told.matches("\"viewers\":0").count(), 3, "{told}");
    }
}
