//! A scripted camera, a scripted viewer, and the program between them, on the loopback.
//!
//! Nothing is timed: whoever waits, waits for what it expects, and gives up after [`PATIENCE`], which only a fault reaches.
#![allow(dead_code)] // each test file uses its part

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// What only a fault reaches.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// H.264 with parameters, and a second track of audio where it is wanted.
pub(crate) const VIDEO: &str =
    "v=0\r\ns=x\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1\r\na=control:v\r\n";
pub(crate) const AUDIO: &str = "m=audio 0 RTP/AVP 8\r\na=control:a\r\n";

/// A packet of RTP.
pub(crate) fn rtp(payload_type: u8, sequence: u16, timestamp: u32, source: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x80, payload_type];
    bytes.extend(sequence.to_be_bytes());
    bytes.extend(timestamp.to_be_bytes());
    bytes.extend(source.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A packet that is a picture of its own: a key or not.
pub(crate) fn picture(number: u16, is_key: bool, bytes: usize) -> Vec<u8> {
    let mut payload = vec![if is_key { 0x65 } else { 0x41 }];
    payload.resize(bytes.max(1), number as u8);
    // Its slice begins with the first macroblock.
    payload.iter_mut().skip(1).take(1).for_each(|byte| *byte |= 0x80);
    rtp(96, number, u32::from(number) * 3600, 7, &payload)
}

/// A certificate for `localhost` and its key as files.
pub(crate) fn certificate(folder: &Path, name: &str) -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.join(format!("{name}.pem")), folder.join(format!("{name}.key")));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    (cert.to_str().unwrap().to_owned(), key.to_str().unwrap().to_owned())
}

/// A message of RTSP or HTTP, or a frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Text(String, Vec<u8>),
    Frame(u8, Vec<u8>),
    End,
}

/// Reads one message or frame.
pub(crate) fn hear(reader: &mut impl BufRead) -> Heard {
    let Ok(buffer) = reader.fill_buf() else { return Heard::End };
    match buffer.first() {
        None => Heard::End,
        Some(b'$') => {
            let mut head = [0; 4];
            reader.read_exact(&mut head).unwrap();
            let mut bytes = vec![0; usize::from(u16::from_be_bytes([head[2], head[3]]))];
            match reader.read_exact(&mut bytes) {
                Ok(()) => Heard::Frame(head[1], bytes),
                Err(_) => Heard::End,
            }
        }
        Some(_) => {
            let (mut text, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 {
                    return Heard::End;
                }
                if let Some(told) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = told.trim().parse().unwrap();
                }
                text.push_str(&line);
                if line == "\r\n" {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            Heard::Text(text, body)
        }
    }
}

/// What a camera is like.
#[derive(Clone, Default)]
pub(crate) struct Manners {
    /// The description it gives, which may be changed between connections.
    pub(crate) sdp: Arc<Mutex<String>>,
    /// What it answers who does not say who they are: a WWW-Authenticate header.
    pub(crate) challenge: Option<String>,
    /// Datagrams are refused.
    pub(crate) only_tcp: bool,
    /// GET_PARAMETER and OPTIONS are answered so.
    pub(crate) refuses_keep_alive: bool,
    /// It tells ports that it does not send from.
    pub(crate) lies_about_ports: bool,
    /// Who asks for a group is told this one, and a port of each track from there on.
    pub(crate) group: Option<SocketAddr>,
    /// It is switched on, and has nothing.
    pub(crate) has_nothing: bool,
    /// Who asks for another path is told this place.
    pub(crate) moved: Option<String>,
    /// The methods of all requests.
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
    /// Its first track comes within the connection, whatever is asked for.
    pub(crate) first_within: bool,
}

impl Manners {
    pub(crate) fn of(sdp: &str) -> Manners {
        Manners { sdp: Arc::new(Mutex::new(sdp.to_owned())), ..Manners::default() }
    }
}

/// A connection of a camera that plays.
pub(crate) struct Playing {
    stream: TcpStream,
    /// Where datagrams go, by track; empty within the connection.
    ports: Vec<SocketAddr>,
    udp: UdpSocket,
    /// Who it believes to play to.
    pub(crate) peer: SocketAddr,
    /// All requests up to PLAY.
    pub(crate) requests: Vec<String>,
}

impl Playing {
    /// Sends a packet of a track.
    pub(crate) fn send(&mut self, track: usize, packet: &[u8]) {
        match self.ports.get(track) {
            Some(port) => {
                self.udp.send_to(packet, port).unwrap();
            }
            None => self.send_within(track, packet),
        }
    }

    /// Sends a packet of a track within the connection.
    pub(crate) fn send_within(&mut self, track: usize, packet: &[u8]) {
        let mut frame = vec![b'$', 2 * track as u8];
        frame.extend((packet.len() as u16).to_be_bytes());
        frame.extend(packet);
        self.stream.write_all(&frame).unwrap();
    }

    /// Sends a report about a track, unless nobody hears it any more.
    pub(crate) fn try_report(&mut self, track: usize, packet: &[u8]) {
        let mut frame = vec![b'$', 2 * track as u8 + 1];
        frame.extend((packet.len() as u16).to_be_bytes());
        frame.extend(packet);
        let _ = self.stream.write_all(&frame);
    }

    /// Sends a report about a track.
    pub(crate) fn report(&mut self, track: usize, packet: &[u8]) {
        match self.ports.get(track) {
            Some(port) => {
                self.udp.send_to(packet, (port.ip(), port.port() + 1)).unwrap();
            }
            None => {
                let mut frame = vec![b'$', 2 * track as u8 + 1];
                frame.extend((packet.len() as u16).to_be_bytes());
                frame.extend(packet);
                self.stream.write_all(&frame).unwrap();
            }
        }
    }

    /// From which port datagrams come.
    pub(crate) fn port(&self) -> u16 {
        self.udp.local_addr().unwrap().port()
    }

    /// Where datagrams of a track go.
    pub(crate) fn place(&self, track: usize) -> SocketAddr {
        self.ports[track]
    }

    pub(crate) fn is_udp(&self) -> bool {
        !self.ports.is_empty()
    }

    /// Ends the connection.
    pub(crate) fn hang_up(self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// A place at which nobody listens as long as this is held: the near end of a connection, whose port is given to no other listener.
pub(crate) fn unheard() -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    TcpStream::connect(listener.local_addr().unwrap()).unwrap()
}

/// A camera: each connection that plays comes out of [`Camera::playing`].
pub(crate) struct Camera {
    pub(crate) address: SocketAddr,
    playing: mpsc::Receiver<Playing>,
}

impl Camera {
    pub(crate) fn new(manners: Manners) -> Camera {
        Camera::at("127.0.0.1:0", manners)
    }

    pub(crate) fn at(place: &str, manners: Manners) -> Camera {
        Camera::on(TcpListener::bind(place).unwrap(), manners)
    }

    /// Where a listener listens: for a camera whose manners name its own address.
    pub(crate) fn on(listener: TcpListener, manners: Manners) -> Camera {
        let (address, (tell, playing)) = (listener.local_addr().unwrap(), mpsc::channel());
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let (manners, tell) = (manners.clone(), tell.clone());
                std::thread::spawn(move || serve(stream, &manners, &tell));
            }
        });
        Camera { address, playing }
    }

    /// A connection that plays by now.
    pub(crate) fn now(&self) -> Option<Playing> {
        self.playing.try_recv().ok()
    }

    /// The next connection that plays.
    pub(crate) fn playing(&self) -> Playing {
        self.playing.recv_timeout(PATIENCE).expect("nobody pulls")
    }
}

fn serve(stream: TcpStream, manners: &Manners, tell: &mpsc::Sender<Playing>) {
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut ports, mut requests, mut set_up) = (Vec::new(), Vec::new(), 0);
    let sender = UdpSocket::bind((stream.local_addr().unwrap().ip(), 0)).unwrap();
    loop {
        let text = match hear(&mut reader) {
            Heard::Text(text, _) => text,
            Heard::Frame(..) => continue,
            Heard::End => return,
        };
        let header = |name: &str| {
            let prefix = format!("{name}: ");
            text.lines().find_map(|line| line.strip_prefix(prefix.as_str())).map(str::to_owned)
        };
        requests.push(text.clone());
        let method = text.split(' ').next().unwrap();
        manners.asked.lock().unwrap().push(method.to_owned());
        let sequence = header("CSeq").unwrap();
        let mut headers = format!("CSeq: {sequence}\r\n");
        let (mut status, mut body) = ("200 OK", String::new());
        match method {
            _ if manners.challenge.is_some() && header("Authorization").is_none() => {
                status = "401 Unauthorized";
                headers.push_str(&format!("WWW-Authenticate: {}\r\n", manners.challenge.as_ref().unwrap()));
            }
            "OPTIONS" => headers.push_str("Public: OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER\r\n"),
            "GET_PARAMETER" if manners.refuses_keep_alive => status = "405 Method Not Allowed",
            "DESCRIBE" if manners.has_nothing => status = "404 Not Found",
            "DESCRIBE" if manners.moved.as_ref().is_some_and(|place| text.split(' ').nth(1) != Some(place)) => {
                status = "302 Found";
                headers.push_str(&format!("Location: {}\r\n", manners.moved.as_ref().unwrap()));
            }
            "DESCRIBE" => {
                body = manners.sdp.lock().unwrap().clone();
                headers.push_str("Content-Base: rtsp://192.0.2.1/elsewhere/\r\n");
            }
            "SETUP" => {
                let mut transport = header("Transport").unwrap();
                if manners.first_within && set_up == 0 {
                    transport = "RTP/AVP/TCP;unicast;interleaved=0-1".to_owned();
                }
                let port = transport.split("client_port=").nth(1).map(|ports| ports.split('-').next().unwrap());
                match port {
                    None if transport.contains("multicast") => match manners.group {
                        None => status = "461 Unsupported Transport",
                        Some(mut group) => {
                            let port = group.port() + 2 * ports.len() as u16;
                            group.set_port(port);
                            ports.push(group);
                            let told = format!("destination={};port={port}-{};ttl=1", group.ip(), port + 1);
                            headers.push_str(&format!("Session: 12345\r\nTransport: RTP/AVP;multicast;{told}\r\n"));
                        }
                    },
                    Some(_) if manners.only_tcp => status = "461 Unsupported Transport",
                    Some(port) => {
                        ports.push(SocketAddr::new(stream.peer_addr().unwrap().ip(), port.parse().unwrap()));
                        let own = if manners.lies_about_ports { 6 } else { sender.local_addr().unwrap().port() };
                        let told = format!("{transport};server_port={own}-{}", own + 1);
                        headers.push_str(&format!("Session: 12345;timeout=4\r\nTransport: {told}\r\n"));
                    }
                    None => headers.push_str(&format!("Session: 12345;timeout=4\r\nTransport: {transport}\r\n")),
                }
                set_up += usize::from(status == "200 OK");
            }
            _ => {}
        }
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let response = format!("RTSP/1.0 {status}\r\n{headers}{length}\r\n{body}");
        let mut writer = &stream;
        if writer.write_all(response.as_bytes()).is_err() {
            return;
        }
        if method == "PLAY" && set_up > 0 {
            let stream = stream.try_clone().unwrap();
            let udp = sender.try_clone().unwrap();
            let _ = tell.send(Playing {
                peer: stream.peer_addr().unwrap(),
                stream,
                ports: std::mem::take(&mut ports),
                udp,
                requests: std::mem::take(&mut requests),
            });
        }
    }
}

/// The program, serving; ended when it is dropped.
pub(crate) struct Proxy {
    child: Child,
    log: Arc<Mutex<String>>,
    pub(crate) rtsp: u16,
    pub(crate) http: u16,
    told: serde_json::Value,
}

pub(crate) fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_multigrain-proxy"))
}

impl Proxy {
    /// Starts it with these options beside its ports.
    pub(crate) fn start(options: &[&str]) -> Proxy {
        Proxy::listening("127.0.0.1:0", options)
    }

    /// The same, with RTSP at another address than the loopback's.
    pub(crate) fn listening(place: &str, options: &[&str]) -> Proxy {
        Proxy::telling(Stdio::piped(), place, options)
    }

    /// The same, with another one's log.
    pub(crate) fn telling(log: impl Into<Stdio>, place: &str, options: &[&str]) -> Proxy {
        let mut child = program()
            .args(["--listen", place, "--http", "127.0.0.1:0", "--json", "--drain-s", "20"])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (errors, to) = (child.stderr.take(), log.clone());
        std::thread::spawn(move || {
            let lines = errors.into_iter().flat_map(|errors| BufReader::new(errors).lines());
            for line in lines.map_while(Result::ok) {
                eprintln!("{line}");
                *to.lock().unwrap() += &(line + "\n");
            }
        });
        let told: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line:?}: {e}"));
        let mut proxy = Proxy { rtsp: 0, http: 0, told, child, log };
        (proxy.rtsp, proxy.http) = (proxy.port("listen"), proxy.port("http"));
        proxy
    }

    /// The port at which it serves in a way.
    pub(crate) fn port(&self, way: &str) -> u16 {
        self.told[way].as_str().unwrap().rsplit(':').next().unwrap().parse().unwrap()
    }

    /// From where datagrams come; reports go to the next port.
    pub(crate) fn udp_port(&self) -> u16 {
        self.told["udp_port"].as_u64().unwrap() as u16
    }

    /// What it has said so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until it has said something.
    pub(crate) fn says(&self, text: &str) {
        self.until(&format!("says {text:?}"), || self.log().contains(text));
    }

    /// Waits until something holds.
    pub(crate) fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        for _ in 0..PATIENCE.as_millis() / 10 {
            if holds() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it never {what}; it said:\n{}", self.log());
    }

    /// Waits until a stream can be asked for.
    pub(crate) fn serves(&self, name: &str) {
        self.until(&format!("serves {name}"), || {
            Viewer::connect(self).ask("DESCRIBE", &format!("rtsp://h/{name}"), "").0.contains(" 200 ")
        });
    }

    /// The answer to a request by HTTP.
    pub(crate) fn get(&self, path: &str) -> String {
        let mut socket = TcpStream::connect(("127.0.0.1", self.http)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.write_all(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes()).unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        text
    }

    /// One of the two connections of a viewer by RTSP over HTTP: GET or POST.
    pub(crate) fn tunnel(&self, method: &str) -> TcpStream {
        let mut socket = TcpStream::connect(("127.0.0.1", self.http)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = if method == "POST" { "Content-Length: 32767\r\n" } else { "" };
        let head = format!("{method} /front HTTP/1.0\r\nx-sessioncookie: abc\r\n{length}\r\n");
        socket.write_all(head.as_bytes()).unwrap();
        socket
    }

    /// The value of a metric.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let text = self.get("/metrics");
        let line = text.lines().find(|line| line.starts_with(&format!("multigrain_proxy_{name}")));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).rsplit(' ').next().unwrap().parse().unwrap()
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self) {
        self.send("TERM");
    }

    /// Sends it a signal.
    pub(crate) fn send(&self, signal: &str) {
        let id = self.process().to_string();
        assert!(Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap().success());
    }

    /// Waits for the end; its exit status.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A viewer, scripted.
pub(crate) struct Viewer {
    pub(crate) reader: BufReader<TcpStream>,
    sequence: u32,
    session: String,
}

impl Viewer {
    pub(crate) fn connect(proxy: &Proxy) -> Viewer {
        Viewer::new(TcpStream::connect(("127.0.0.1", proxy.rtsp)).unwrap())
    }

    pub(crate) fn new(socket: TcpStream) -> Viewer {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Viewer { reader: BufReader::new(socket), sequence: 0, session: String::new() }
    }

    /// Asks, and returns the response; frames before it are left out.
    pub(crate) fn ask(&mut self, method: &str, url: &str, headers: &str) -> (String, Vec<u8>) {
        self.sequence += 1;
        let session = if self.session.is_empty() { String::new() } else { format!("Session: {}\r\n", self.session) };
        let text = format!("{method} {url} RTSP/1.0\r\nCSeq: {}\r\n{session}{headers}\r\n", self.sequence);
        self.reader.get_mut().write_all(text.as_bytes()).unwrap();
        loop {
            match hear(&mut self.reader) {
                Heard::Text(text, body) => {
                    assert!(text.contains(&format!("CSeq: {}\r\n", self.sequence)), "{text}");
                    if let Some(session) = text.split("Session: ").nth(1) {
                        self.session = session.split([';', '\r']).next().unwrap().to_owned();
                    }
                    return (text, body);
                }
                Heard::Frame(..) => {}
                Heard::End => panic!("the connection ended before the answer to {method}"),
            }
        }
    }

    /// Sets up tracks within the connection, on the channels of their numbers, and plays.
    pub(crate) fn play(proxy: &Proxy, name: &str, tracks: usize) -> Viewer {
        let mut viewer = Viewer::connect(proxy);
        for track in 0..tracks {
            let transport = format!("Transport: RTP/AVP/TCP;unicast;interleaved={}-{}\r\n", 2 * track, 2 * track + 1);
            let (text, _) = viewer.ask("SETUP", &format!("rtsp://h/{name}/trackID={track}"), &transport);
            assert!(text.contains(" 200 "), "{text}");
        }
        let (text, _) = viewer.ask("PLAY", &format!("rtsp://h/{name}"), "");
        assert!(text.contains(" 200 ") && text.contains("RTP-Info: "), "{text}");
        viewer
    }

    /// The next frame.
    pub(crate) fn frame(&mut self) -> (u8, Vec<u8>) {
        match hear(&mut self.reader) {
            Heard::Frame(channel, bytes) => (channel, bytes),
            other => panic!("no frame but {other:?}"),
        }
    }

    /// Sequence numbers of so many packets.
    pub(crate) fn sequences(&mut self, count: usize) -> Vec<u16> {
        (0..count).map(|_| sequence(&self.frame().1)).collect()
    }
}

/// A packet's sequence number.
pub(crate) fn sequence(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[2], packet[3]])
}
