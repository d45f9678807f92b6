//! Somebody who connected: what he said, what he is owed, and how datagrams go to him.

use crate::auth::Known;
use crate::bundle::Bundle;
use crate::counts::Counted;
use crate::feed::{Batch, FRAME, Feed};
use crate::instants::Instants;
use crate::net::{bound_not_sent, reached};
use crate::session::{Server, Way};
use crate::tfrc::{Numbers, Rate, Share};
use crate::tunnel::Tunnel;
use crate::viewer::{Flow, Outgoing, Sent};
use crate::wire::Wire;
use bytes::BytesMut;
use rustix::net::sockopt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// How long a message may take to be complete, the first from the beginning of the connection on.
const FIRST: Duration = Duration::from_secs(10);
/// How long somebody may be connected without playing.
const IDLE: Duration = Duration::from_secs(90);
/// How long what decoders have to know may not come.
const HEAD: Duration = Duration::from_secs(20);
/// How long a viewer may take nothing.
const STALL: Duration = Duration::from_secs(30);

/// Somebody who connected.
pub struct Connection {
    /// Never blocks.
    pub wire: Wire,
    /// Who.
    pub peer: IpAddr,
    /// What was said and is no whole message yet.
    pub input: BytesMut,
    /// What is owed.
    pub out: Outgoing,
    /// The state of the RTSP session.
    pub server: Server,
    /// The log that is played.
    pub feed: Option<usize>,
    /// The log that was asked for by HTTP.
    pub wants: Option<usize>,
    /// What decoders have to know comes before anything of the log, when it is known.
    pub awaits_head: bool,
    /// It speaks WebSocket.
    pub is_socket: bool,
    /// It speaks RTSP over HTTP.
    pub tunnel: Option<Tunnel>,
    /// Who it is, when it has said so.
    pub known: Option<Known>,
    /// Wrong answers so far.
    pub wrongs: u32,
    /// Packets go as datagrams, to the ports of each track.
    pub is_udp: bool,
    /// Of the first track that goes as datagrams: its rate, its number, its sender.
    pub paced: Option<Paced>,
    /// Whether a message has come.
    pub has_asked: bool,
    /// Whether it has played, though it may pause.
    pub has_played: bool,
    /// Since when it is connected.
    pub since: Instant,
    /// When a message was last complete, or since when it is connected.
    pub heard: Instant,
    /// Since when a message is not complete.
    pub partial: Option<Instant>,
    /// When what is owed is sent, it ends.
    pub ends: bool,
    /// What is waited for, as it was registered.
    pub waits: (bool, bool),
    /// Counts it while it lives.
    pub counted: Counted,
}

impl Connection {
    /// One that has just been made.
    pub fn new(wire: Wire, counted: Counted, peer: IpAddr, now: Instant) -> Connection {
        Connection {
            wire,
            peer,
            input: BytesMut::new(),
            out: Outgoing::new(now),
            server: Server::default(),
            feed: None,
            wants: None,
            awaits_head: false,
            is_socket: false,
            tunnel: None,
            known: None,
            wrongs: 0,
            is_udp: false,
            paced: None,
            has_asked: false,
            has_played: false,
            since: now,
            heard: now,
            partial: None,
            ends: false,
            waits: (true, false),
            counted,
        }
    }

    /// Why its time is over, if it is.
    pub fn overdue(&self, now: Instant) -> Option<&'static str> {
        let passed = |since: Instant| now.saturating_duration_since(since);
        match self.feed {
            _ if self.out.is_blocked && passed(self.out.moved) > STALL => {
                Some("has taken nothing for 30 s and is cut off")
            }
            _ if self.partial.is_some_and(|since| passed(since) > FIRST) => {
                Some("has not said to its end what it began 10 s ago, and is cut off")
            }
            Some(_) if self.awaits_head && passed(self.out.moved) > HEAD => {
                Some("is cut off: the video tells no parameters, without which it is for RTSP and MPEG-TS only")
            }
            None if !self.has_asked && passed(self.heard) > FIRST => Some("asked for nothing and is cut off"),
            // Who asks again and again does not stay for that; who has played and pauses does, as long as it is heard of.
            None if passed(self.heard) > IDLE || (!self.has_played && passed(self.since) > IDLE) => {
                Some("has not played for 90 s and is cut off")
            }
            _ => None,
        }
    }
}

/// How much of a track a viewer gets.
pub struct Paced {
    /// What TFRC allows.
    pub rate: Rate,
    /// What went out.
    pub numbers: Numbers,
    /// The number of the track.
    pub track: usize,
    /// The picture under way is left out.
    pub skips: bool,
    /// As the viewer sees it.
    pub source: u32,
    /// From where reports come.
    pub from: SocketAddr,
}

/// The part of what a viewer may be behind that may lie in the system, and what is enough for any of them: what a hundred megabits a second
/// take in ten milliseconds, after which there is more.
const NOT_SENT_PART: usize = 16;
const NOT_SENT_MAX: usize = 128 << 10;

/// The next who wants to connect, who may be behind by so much.
pub fn accepted(listener: &TcpListener, queue_bytes: usize) -> io::Result<(TcpStream, SocketAddr)> {
    let (socket, peer) = listener.accept()?;
    socket.set_nonblocking(true)?;
    let _ = socket.set_nodelay(true);
    // Otherwise it takes megabytes, which nobody could leave out any more.
    let not_sent = (queue_bytes / NOT_SENT_PART).min(NOT_SENT_MAX) as u32;
    bound_not_sent(&socket, not_sent);
    // Who vanishes without a word is found out.
    let _ = sockopt::set_socket_keepalive(&socket, true);
    let _ = sockopt::set_tcp_keepidle(&socket, Duration::from_secs(30));
    let _ = sockopt::set_tcp_keepintvl(&socket, Duration::from_secs(10));
    let _ = sockopt::set_tcp_keepcnt(&socket, 3);
    Ok((socket, peer))
}

/// Who begins gets the sender's last reports at once, as of the instant at which it begins: they tell which sound goes with which picture (RFC
/// 6051, section 3.1), and the next may be seconds away.
pub fn send_reports(
    connection: &mut Connection,
    instants: &Instants,
    instant: Option<u64>,
    udp: &(UdpSocket, UdpSocket),
    now: Instant,
) {
    let Some(session) = &connection.server.session else { return };
    let peer = reached(&udp.1, connection.peer);
    for (track, way) in session.ways.iter().enumerate() {
        let Some((way, report)) = way.zip(instants.report(track, instant)) else { continue };
        let port = match way {
            Way::Ports(_, port) => port,
            Way::Channels(_, channel) => {
                let mut frame = Batch::default();
                frame.frame(channel, &report, false, false);
                connection.out.say(&frame.bytes);
                continue;
            }
        };
        if let Some(paced) = connection.paced.as_mut().filter(|paced| paced.track == track) {
            paced.rate.reported(u32::from_be_bytes([report[10], report[11], report[12], report[13]]), now);
        }
        let mut bundle = Bundle::default();
        bundle.push(&udp.1, SocketAddr::new(peer, port), &report);
        bundle.flush();
    }
}

/// A packet that is no other viewer's goes out as a datagram.
pub fn send_beside(connection: &mut Connection, own: &Batch, udp: &(UdpSocket, UdpSocket), now: Instant) {
    let Some(session) = &connection.server.session else { return };
    let peer = reached(&udp.0, connection.peer);
    let mut bundle = Bundle::default();
    for entry in &own.entries {
        let track = usize::from(entry.channel / 2);
        let Some(Way::Ports(port, _)) = session.ways.get(track).copied().flatten() else { continue };
        let bytes = &own.bytes[entry.range()][FRAME..];
        if let (Some(paced), [_, _, high, low, ..]) = (connection.paced.as_mut().filter(|p| p.track == track), bytes) {
            paced.numbers.went(u16::from_be_bytes([*high, *low]));
            paced.rate.went(bytes.len(), now);
        }
        bundle.push(&udp.0, SocketAddr::new(peer, port), bytes);
    }
    bundle.flush();
}

/// Everything that has come goes out as datagrams, as far as the viewer's rate allows another picture; what the system has no
/// room for is lost, as on any network. Other tracks go out before any picture: sound is little, and its gaps are heard. Of what is
/// left out the sender's reports go out all the same: without their echoes nothing would be known of the round trip, and who gets
/// little would get little for ever.
pub fn send_datagrams(connection: &mut Connection, feed: &Feed, udp: &(UdpSocket, UdpSocket), now: Instant) -> Sent {
    let Some(session) = &connection.server.session else { return Sent::default() };
    let (from, to, mut next) = match connection.out.flow {
        Flow::Idle => return Sent::default(),
        Flow::At(from) => (from, feed.end(), Flow::At(feed.end())),
        Flow::Waiting(from, since) => {
            let to = feed.key_from(from).unwrap_or(feed.end());
            (from, to, Flow::Waiting(to, since))
        }
    };
    let mut bundle = Bundle::default();
    let is_limited = connection.paced.as_ref().is_some_and(|paced| paced.rate.limit().is_some());
    let peer = reached(&udp.0, connection.peer);
    for (number, batch) in feed.from(from).take_while(|(number, _)| *number <= to.batch) {
        let first = if number == from.batch { from.entry } else { 0 };
        let last = if number == to.batch { to.entry } else { batch.entries.len() };
        for entry in batch.entries.get(first..last).unwrap_or_default() {
            let (track, is_report) = (usize::from(entry.channel / 2), entry.channel % 2 == 1);
            let Some(Way::Ports(packets, reports)) = session.ways.get(track).copied().flatten() else { continue };
            let bytes = &batch.bytes[entry.range()][FRAME..];
            let paced = connection.paced.as_mut();
            if let Some(paced) = paced.filter(|paced| paced.track == track && matches!(next, Flow::At(_)))
                && entry.is_start
            {
                let share = paced.rate.picture(entry.is_spare, now);
                paced.skips = share == Share::Without;
                if share == Share::AtKey {
                    (next, connection.out.is_behind_gap) = (Flow::Waiting(to, now), true);
                }
            }
            let (is_own, skips) = connection.paced.as_ref().map_or((false, false), |p| (p.track == track, p.skips));
            let waits = matches!(next, Flow::Waiting(..)) && (is_own || !is_limited);
            if !is_report && (waits || is_own && skips) {
                continue;
            }
            if let Some(paced) = &mut connection.paced {
                match (is_own, is_report, bytes) {
                    (true, false, [_, _, high, low, _, _, _, _, a, b, c, d, ..]) => {
                        paced.numbers.went(u16::from_be_bytes([*high, *low]));
                        paced.source = u32::from_be_bytes([*a, *b, *c, *d]);
                        paced.rate.went(bytes.len(), now);
                    }
                    (true, true, [_, 200, _, _, _, _, _, _, _, _, a, b, c, d, ..]) => {
                        paced.rate.reported(u32::from_be_bytes([*a, *b, *c, *d]), now);
                    }
                    (false, false, _) => paced.rate.went_beside(bytes.len()),
                    _ => {}
                }
            }
            let (socket, port) = if is_report { (&udp.1, reports) } else { (&udp.0, packets) };
            bundle.push(socket, SocketAddr::new(peer, port), bytes);
        }
    }
    bundle.flush();
    connection.out.flow = next;
    Sent { packets: bundle.sent.0, bytes: bundle.sent.1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Counts;
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    /// Every wait for somebody else has an end.
    #[test]
    fn nobody_is_waited_for_without_an_end() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let began = Instant::now();
        // When it is over: the second after which it is cut off.
        let over = |change: &dyn Fn(&mut Connection)| {
            let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let peer = Ipv4Addr::LOCALHOST.into();
            let counted = Arc::new(Counts::new(1)).enter(peer).0;
            let mut connection = Connection::new(socket.into(), counted, peer, began);
            change(&mut connection);
            (0..200).find(|second| connection.overdue(began + Duration::from_millis(1000 * second + 1)).is_some())
        };
        let at = |second| began + Duration::from_secs(second);
        assert_eq!(over(&|_| {}), Some(10), "it asks for nothing");
        assert_eq!(over(&|c| (c.has_asked, c.partial) = (true, Some(at(5)))), Some(15), "its message has no end");
        assert_eq!(over(&|c| c.has_asked = true), Some(90), "it has asked once");
        assert_eq!(over(&|c| (c.has_asked, c.heard) = (true, at(80))), Some(90), "it asks again and again");
        let pauses = |c: &mut Connection| (c.has_asked, c.has_played, c.heard) = (true, true, at(80));
        assert_eq!(over(&pauses), Some(170), "it has played and pauses");
        let plays = |c: &mut Connection| (c.has_asked, c.has_played, c.feed) = (true, true, Some(0));
        assert_eq!(over(&plays), None);
        assert_eq!(over(&|c| (plays(c), c.out.is_blocked = true).0), Some(30), "it takes nothing");
        assert_eq!(over(&|c| (plays(c), c.awaits_head = true).0), Some(20), "there are no parameters for it");
    }
}
