//! Somebody who connected: what he said, what he is owed, and how datagrams go to him.

use crate::counts::Counted;
use crate::feed::{Cursor, FRAME, Feed};
use crate::net::send_to;
use crate::session::{Server, Way};
use crate::tfrc::Rate;
use crate::viewer::{Flow, Outgoing, Sent};
use rustix::net::sockopt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// Somebody who connected.
pub struct Connection {
    /// Never blocks.
    pub socket: TcpStream,
    /// Who.
    pub peer: IpAddr,
    /// What was said and is no whole message yet.
    pub input: Vec<u8>,
    /// What is owed.
    pub out: Outgoing,
    /// The state of the RTSP session.
    pub server: Server,
    /// The log that is played.
    pub feed: Option<usize>,
    /// The log that was asked for by HTTP.
    pub wants: Option<usize>,
    /// Packets go as datagrams, to the ports of each track.
    pub is_udp: bool,
    /// Of the first track that goes as datagrams: its rate, its number, its sender.
    pub paced: Option<Paced>,
    /// Whether a message has come.
    pub has_asked: bool,
    /// When something last came.
    pub heard: Instant,
    /// When what is owed is sent, it ends.
    pub ends: bool,
    /// What is waited for, as it was registered.
    pub waits: (bool, bool),
    /// Counts it while it lives.
    pub counted: Counted,
}

impl Connection {
    /// One that has just been made.
    pub fn new(socket: TcpStream, counted: Counted, peer: IpAddr, now: Instant) -> Connection {
        Connection {
            socket,
            peer,
            input: Vec::new(),
            out: Outgoing::new(now),
            server: Server::default(),
            feed: None,
            wants: None,
            is_udp: false,
            paced: None,
            has_asked: false,
            heard: now,
            ends: false,
            waits: (true, false),
            counted,
        }
    }
}

/// How much of a track a viewer gets.
pub struct Paced {
    /// What TFRC allows.
    pub rate: Rate,
    /// The number of the track.
    pub track: usize,
    /// As the viewer sees it.
    pub source: u32,
    /// From where reports come.
    pub from: SocketAddr,
}

/// The next who wants to connect.
pub fn accepted(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (socket, peer) = listener.accept()?;
    socket.set_nonblocking(true)?;
    let _ = socket.set_nodelay(true);
    // Who vanishes without a word is found out.
    let _ = sockopt::set_socket_keepalive(&socket, true);
    let _ = sockopt::set_tcp_keepidle(&socket, Duration::from_secs(30));
    let _ = sockopt::set_tcp_keepintvl(&socket, Duration::from_secs(10));
    let _ = sockopt::set_tcp_keepcnt(&socket, 3);
    Ok((socket, peer))
}

/// Everything that has come goes out as datagrams, as far as the viewer's rate allows another picture; what the system has no
/// room for is lost, as on any network.
pub fn send_datagrams(connection: &mut Connection, feed: &Feed, udp: &(UdpSocket, UdpSocket), now: Instant) -> Sent {
    let (mut sent, Flow::At(from)) = (Sent::default(), connection.out.flow) else { return Sent::default() };
    let Some(session) = &connection.server.session else { return sent };
    for (number, batch) in feed.from(from) {
        let first = if number == from.batch { from.entry } else { 0 };
        for (index, entry) in batch.entries.iter().enumerate().skip(first) {
            let (track, is_report) = (usize::from(entry.channel / 2), entry.channel % 2 == 1);
            let Some(Way::Ports(packets, reports)) = session.ways.get(track).copied().flatten() else { continue };
            let bytes = &batch.bytes[entry.range()][FRAME..];
            if let Some(paced) = connection.paced.as_mut().filter(|paced| paced.track == track) {
                if entry.is_start && !paced.rate.allows(now) {
                    connection.out.flow = Flow::Waiting(Cursor { batch: number, entry: index + 1 }, now);
                    return sent;
                }
                match (is_report, bytes) {
                    (false, [_, _, _, _, _, _, _, _, a, b, c, d, ..]) => {
                        paced.source = u32::from_be_bytes([*a, *b, *c, *d]);
                        paced.rate.went(bytes.len());
                    }
                    (true, [_, 200, _, _, _, _, _, _, _, _, a, b, c, d, ..]) => {
                        paced.rate.reported(u32::from_be_bytes([*a, *b, *c, *d]), now);
                    }
                    _ => {}
                }
            }
            let (socket, port) = if is_report { (&udp.1, reports) } else { (&udp.0, packets) };
            if send_to(socket, bytes, connection.peer, port).is_ok() {
                sent.packets += 1;
                sent.bytes += bytes.len() as u64;
            }
        }
    }
    connection.out.flow = Flow::At(feed.end());
    sent
}
