//! A worker that nobody runs: what it does with who connects, step by step.

use super::*;
use crate::config::Args;
use crate::net::datagrams;
use crate::shared::Again;
use clap::Parser;
use multigrain::Abort;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::AsFd;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, TcpStream, UdpSocket};

const NEAR: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// The first of so many as the options say, with a place to connect with.
fn worker(options: &[&str]) -> Worker {
    let arguments = ["proxy", "-s", "rtsp://127.0.0.1:9/", "--listen", "127.0.0.1:0"];
    let config = Args::parse_from(arguments.iter().chain(options)).config().unwrap();
    let again = Again {
        is_wanted: Arc::default(),
        is_being_read: false.into(),
        is_told: false.into(),
        read: Box::new(|| Err(String::new())),
    };
    let udp = datagrams(NEAR, 0).unwrap();
    let shared = Arc::new(Shared::new(config, again, udp, Arc::new(Abort::new())).unwrap());
    let socket = TcpListener::bind((NEAR, 0)).unwrap();
    socket.set_nonblocking(true).unwrap();
    Worker::new(0, shared, vec![Listening { socket, is_secure: false }]).unwrap()
}

/// Waits until there is something to read, or somebody to let in.
fn comes(socket: &impl AsFd) {
    poll(&mut [PollFd::new(socket, PollFlags::IN)], None).unwrap();
}

/// Somebody who is connected from an address: the other end, and the place.
fn connected(worker: &mut Worker, peer: IpAddr) -> (TcpStream, usize) {
    let listener = TcpListener::bind((NEAR, 0)).unwrap();
    let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let socket = listener.accept().unwrap().0;
    socket.set_nonblocking(true).unwrap();
    let counted = worker.shared.counts.enter(peer).0;
    let slot = worker.keep(Box::new(Connection::new(socket.into(), counted, peer, Instant::now())));
    assert!(worker.register(slot));
    (far, slot)
}

/// Who is at a place.
fn at(worker: &Worker, slot: usize) -> &Connection {
    worker.connections[slot].as_ref().unwrap()
}

fn says(worker: &mut Worker, slot: usize, far: &mut TcpStream, text: &str) {
    far.write_all(text.as_bytes()).unwrap();
    comes(&at(worker, slot).wire);
    worker.connection_is_ready(slot, Ready::SOME, Instant::now());
}

/// The two requests of a tunnel.
const GET: &str = "GET /x HTTP/1.0\r\nx-sessioncookie: abc\r\n\r\n";
const POST: &str = "POST /x HTTP/1.0\r\nx-sessioncookie: abc\r\nContent-Length: 32767\r\n\r\n";

/// Others are let in beside the viewers that there may be, and then somebody has to go, or nobody comes, from whichever addresses they are.
#[test]
fn all_connections_have_an_end() {
    let mut worker = worker(&["--viewers", "1"]);
    let shared = worker.shared.clone();
    // None of them waits, so none can go.
    let others = (0..=255).map(|n| shared.counts.enter([10, 0, 0, n].into()).0);
    let _others: Vec<_> = others.collect();
    let place = worker.listeners[0].socket.local_addr().unwrap();
    let connect = |worker: &mut Worker| {
        let far = TcpStream::connect(place).unwrap();
        comes(&worker.listeners[0].socket);
        worker.accept(0, Instant::now());
        let numbers = worker.connections.iter().flatten().map(|connection| connection.counted.number);
        (far, numbers.collect::<Vec<_>>(), shared.counts.refused())
    };
    let (_first, numbers, refused) = connect(&mut worker);
    assert_eq!((numbers, refused), (vec![256], 0));
    // It waits, and goes for the next.
    let (_second, numbers, refused) = connect(&mut worker);
    assert_eq!((numbers, refused), (vec![257], 0));
    at(&worker, 0).counted.stays();
    let (_third, numbers, refused) = connect(&mut worker);
    assert_eq!((numbers, refused), (vec![257], 1));
}

/// Who knows the name of another's tunnel says nothing in it.
#[test]
fn the_ways_of_a_tunnel_are_of_one_address() {
    let mut worker = worker(&["--workers", "1"]);
    let (mut down, first) = connected(&mut worker, NEAR);
    says(&mut worker, first, &mut down, GET);
    for (peer, is_own) in [(OTHER, false), (NEAR, true)] {
        let (mut up, slot) = connected(&mut worker, peer);
        says(&mut worker, slot, &mut up, POST);
        assert_eq!(at(&worker, first).tunnel.as_ref().unwrap().back.is_some(), is_own, "{peer}");
    }
}

/// Who never stops to talk where nothing is heard leaves others their turn.
#[test]
fn what_is_said_on_the_way_to_a_viewer_is_ignored_in_turns() {
    let mut worker = worker(&["--workers", "1"]);
    let (mut far, slot) = connected(&mut worker, NEAR);
    says(&mut worker, slot, &mut far, GET);
    let mut said = vec![0; 2 * answers::INPUT_MAX + 8192];
    far.write_all(&said).unwrap();
    let socket = at(&worker, slot).wire.socket().try_clone().unwrap();
    while socket.peek(&mut said).unwrap_or(0) < said.len() {
        std::thread::yield_now();
    }
    assert!(worker.read(slot));
    assert!(socket.peek(&mut said).is_ok(), "all of it was read at once");
    assert!(worker.read(slot) && worker.read(slot));
    assert!(socket.peek(&mut said).is_err(), "it is not read");
}

/// While viewers have their time to finish, nobody else begins.
#[test]
fn nobody_begins_while_others_finish() {
    let mut worker = worker(&["--workers", "1"]);
    for drains in [false, true] {
        let now = Instant::now();
        worker.draining = drains.then_some(now);
        let (_far, slot) = connected(&mut worker, NEAR);
        worker.connections[slot].as_mut().unwrap().wants = Some(Form::Transport.feed(0));
        assert!(worker.play(slot, now));
        let connection = at(&worker, slot);
        assert_eq!((connection.feed.is_none(), connection.ends), (drains, drains));
    }
}

/// A worker is so far behind that there is no room for a report: it hears the next one.
#[test]
fn a_report_that_found_no_room_keeps_none_away() {
    let mut worker = worker(&["--workers", "2"]);
    let viewer = UdpSocket::bind((NEAR, 0)).unwrap();
    let (from, shared) = (viewer.local_addr().unwrap(), worker.shared.clone());
    shared.reporters().insert(from, vec![Reporter { worker: 1, latest: None }]);
    let mut is_under_way = || {
        viewer.send_to(&[0x81, 201, 0, 7], shared.udp.1.local_addr().unwrap()).unwrap();
        comes(&shared.udp.1);
        worker.read_reports(1, Instant::now());
        shared.reporters().get_mut(&from).unwrap()[0].latest.take().is_some()
    };
    assert!(is_under_way());
    while shared.inboxes[1].post(Post::MakeRoom(0)).is_ok() {}
    assert!(!is_under_way());
}
