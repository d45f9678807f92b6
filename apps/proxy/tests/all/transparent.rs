//! Translation in place, between ends in name spaces of their own: a client that speaks TCP, a server that sends UDP, and a router
//! between them that hands their packets to the program.

use crate::support;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use support::{Camera, Manners, PATIENCE, VIDEO, Viewer, picture, program, rtp};

/// Three name spaces in a row, which are gone when it is dropped.
struct Network {
    name: String,
}

const SERVER: &str = "10.77.2.2";

impl Network {
    /// Nothing where this may not be done.
    fn new(name: &str) -> Option<Network> {
        let network = Network { name: format!("mg{}{name}", std::process::id()) };
        let [client, router, server] = ["c", "r", "s"].map(|end| network.space(end));
        let at = |space: &str, words: &str| format!("ip -n {space} {words}");
        let lines = [
            format!("ip netns add {client}"),
            format!("ip netns add {router}"),
            format!("ip netns add {server}"),
            format!("ip link add near netns {client} type veth peer name near netns {router}"),
            format!("ip link add far netns {server} type veth peer name far netns {router}"),
            at(&client, "addr add 10.77.1.2/24 dev near"),
            at(&router, "addr add 10.77.1.1/24 dev near"),
            at(&router, "addr add 10.77.2.1/24 dev far"),
            at(&server, &format!("addr add {SERVER}/24 dev far")),
            at(&client, "link set near up"),
            at(&router, "link set near up"),
            at(&router, "link set far up"),
            at(&server, "link set far up"),
            at(&client, "route add default via 10.77.1.1"),
            at(&server, "route add default via 10.77.2.1"),
            // What comes by either link goes to the device; what comes from the device, where it always went.
            at(&router, "tuntap add dev grain mode tun"),
            at(&router, "link set grain up"),
            at(&router, "route add default dev grain table 77"),
            at(&router, "rule add iif near lookup 77"),
            at(&router, "rule add iif far lookup 77"),
            format!(
                "ip netns exec {router} sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.grain.rp_filter=0"
            ),
        ];
        for line in lines {
            let mut words = line.split(' ');
            let done = Command::new(words.next()?).args(words).stderr(Stdio::null()).status();
            if !done.is_ok_and(|status| status.success()) {
                eprintln!("skipped: no name spaces can be made here ({line})");
                return None;
            }
        }
        Some(network)
    }

    fn space(&self, end: &str) -> String {
        format!("{}{end}", self.name)
    }

    /// Does something in a name space.
    fn within<T: Send>(&self, end: &str, work: impl FnOnce() -> T + Send) -> T {
        let space = File::open(format!("/run/netns/{}", self.space(end))).unwrap();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                move_into_link_name_space(std::os::fd::AsFd::as_fd(&space), Some(LinkNameSpaceType::Network)).unwrap();
                work()
            });
            thread.join().unwrap()
        })
    }

    fn connect(&self, port: u16) -> TcpStream {
        let socket = self.within("c", || TcpStream::connect((SERVER, port))).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    /// The program in the router, once it translates.
    fn translator(&self, options: &[&str]) -> Translator {
        let mut child = Command::new("ip")
            .args(["netns", "exec", &self.space("r")])
            .arg(program().get_program())
            .args(["--transparent", "grain", "--json"])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("\"transparent\":\"grain\""), "{line}");
        Translator(child)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for end in ["c", "r", "s"] {
            let _ = Command::new("ip").args(["netns", "del", &self.space(end)]).stderr(Stdio::null()).status();
        }
    }
}

struct Translator(Child);

impl Drop for Translator {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn packets_over_udp_arrive_within_the_connection() {
    let Some(network) = Network::new("a") else { return };
    let manners = Manners { challenge: Some("Basic realm=\"x\"".to_owned()), ..Manners::of(VIDEO) };
    let camera = network.within("s", || Camera::at(&format!("{SERVER}:554"), manners));
    let other = network.within("s", || TcpListener::bind((SERVER, 9)).unwrap());
    let _translator = network.translator(&["-s", &format!("rtsp://{SERVER}/")]);
    // What is not for a source passes as it came.
    let mut passing = network.connect(9);
    let (mut at_server, from) = other.accept().unwrap();
    assert_eq!(from.ip().to_string(), "10.77.1.2");
    passing.write_all(b"hello").unwrap();
    let mut five = [0; 5];
    at_server.read_exact(&mut five).unwrap();
    assert_eq!(&five, b"hello");
    // The server asks who it is, and the client answers: nobody in between has to know.
    let url = format!("rtsp://{SERVER}/live");
    let mut viewer = Viewer::new(network.connect(554));
    assert!(viewer.ask("OPTIONS", &url, "Authorization: Basic eDp5\r\n").0.contains("GET_PARAMETER"));
    assert!(viewer.ask("DESCRIBE", &url, "").0.contains(" 401 "));
    let (_, sdp) = viewer.ask("DESCRIBE", &url, "Authorization: Basic eDp5\r\n");
    assert_eq!(String::from_utf8(sdp).unwrap(), VIDEO);
    let ports = "Authorization: Basic eDp5\r\nTransport: RTP/AVP;unicast;client_port=7000-7001\r\n";
    assert!(viewer.ask("SETUP", &format!("{url}/v"), ports).0.contains(" 461 "));
    let within = "Authorization: Basic eDp5\r\nTransport: RTP/AVP/TCP;unicast;interleaved=2-3\r\n";
    let (told, _) = viewer.ask("SETUP", &format!("{url}/v"), within);
    assert!(told.contains("RTP/AVP/TCP;unicast;interleaved=2-3\r\n"), "{told}");
    assert!(viewer.ask("PLAY", &url, "Authorization: Basic eDp5\r\n").0.contains(" 200 "));
    let mut playing = camera.playing();
    assert!(playing.is_udp() && playing.peer.ip().to_string() == "10.77.1.2");
    assert!(playing.requests.iter().any(|request| request.contains("RTP/AVP;unicast;client_port=")));
    // Sizes up to what a datagram has room for, odd ones too; one before the one before it.
    let pictures: Vec<Vec<u8>> = (0..400).map(|n| picture(n, n % 10 == 0, 1 + 37 * usize::from(n) % 1460)).collect();
    for some in pictures.chunks(10) {
        for number in [0, 1, 3, 2, 4, 6, 5, 7, 9, 8] {
            playing.send(0, &some[number]);
        }
        for packet in some {
            assert_eq!(viewer.frame(), (2, packet.clone()));
        }
    }
    assert!(viewer.ask("TEARDOWN", &url, "Authorization: Basic eDp5\r\n").0.contains(" 200 "));
    // The client goes, and so does its connection at the server.
    drop(viewer);
}

#[test]
fn a_transport_stream_arrives_by_http() {
    let Some(network) = Network::new("b") else { return };
    let sdp = "v=0\r\ns=x\r\nm=video 0 RTP/AVP 33\r\na=control:v\r\n";
    let camera = network.within("s", || Camera::at(&format!("{SERVER}:554"), Manners::of(sdp)));
    let _translator = network.translator(&["-s", &format!("rtsp://{SERVER}/")]);
    let mut client = BufReader::new(network.connect(80));
    client.get_mut().write_all(b"GET /film HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut playing = camera.playing();
    assert!(playing.is_udp() && playing.requests.iter().any(|text| text.contains(&format!("rtsp://{SERVER}/film"))));
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(client.read_line(&mut head).unwrap() > 0);
    }
    assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("video/mp2t"), "{head}");
    for number in 0..300_u16 {
        let payload: Vec<u8> = (0..7 * 188).map(|i| (i + usize::from(number)) as u8).collect();
        playing.send(0, &rtp(33, number, u32::from(number) * 100, 7, &payload));
        let mut got = vec![0; payload.len()];
        client.read_exact(&mut got).unwrap();
        assert_eq!(got, payload);
    }
    // The server ends, and so does what the client gets.
    playing.hang_up();
    assert_eq!(client.read(&mut [0; 16]).unwrap_or(0), 0);
}

#[test]
fn whoever_cannot_be_served_is_told_so() {
    let Some(network) = Network::new("d") else { return };
    // Nobody listens: the client's connection ends, and what it asked for hangs nowhere.
    let _translator = network.translator(&["-s", &format!("rtsp://{SERVER}/")]);
    if let Ok(mut client) = network.within("c", || TcpStream::connect((SERVER, 554))) {
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let _ = client.write_all(b"OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n");
        let ended = client.read(&mut [0; 16]);
        assert!(!ended.as_ref().is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock), "{ended:?}");
    }
    let camera = network.within("s", || Camera::at(&format!("{SERVER}:554"), Manners::of(VIDEO)));
    let mut client = network.connect(80);
    client.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    let mut said = String::new();
    client.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 503 ") && said.contains("ask by RTSP"), "{said}");
    let mut client = network.connect(554);
    client.write_all(b"nonsense\r\n\r\n").unwrap();
    assert!(client.read(&mut [0; 16]).is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset));
    drop(camera);
}

#[test]
fn a_device_that_is_not_there_is_told_with_the_way_out() {
    for (device, word) in [("nowhere7", "ip tuntap add dev nowhere7"), ("../x", "no name of a device")] {
        let output = program().args(["-s", "rtsp://127.0.0.1/", "--transparent", device]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(word), "{said}");
    }
}
