//! Translation between two ends that know nothing of each other: packet by packet, as the network processor of the thesis did it
//! (Espeland 2011, chapter 3).
//!
//! The host is a router between clients and servers, and hands the packets between them to this program by a device. A client
//! that connects to a server by TCP is answered in the server's name, and asks the server in the client's: RTSP and RTP
//! over UDP towards the server become RTSP within the connection, or HTTP, towards the client. Text goes the slow path ([`session`]); packets of
//! media the fast one, on which nothing but headers is written ([`packet`]). Of TCP there is what that needs ([`half`]). TFRC says how much
//! a client gets; the rest is left out by groups of pictures. Clients of a source with several servers are spread over them.
//! Everything else passes as it came.

pub mod half;
pub mod packet;
pub mod session;
pub mod tun;

use crate::address::Address;
use crate::choice::Choice;
use crate::config::{Config, Source};
use crate::lines::Lines;
use half::{Half, Heard};
use multigrain::Abort;
use packet::{Ends, Kind, Told, bare_segment, kind, segment};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use session::{End, Session};
use smoltcp::wire::TcpControl;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tun::Tun;

/// How often everything is looked over.
const ROUND: Duration = Duration::from_millis(100);
/// Packets that are taken before others have their turn.
const ROUND_PACKETS: usize = 256;
/// The port of HTTP unless another is told.
const HTTP_PORT: u16 = 80;

/// Servers that have the same, as clients address them.
struct Cluster {
    source: Source,
    places: Vec<SocketAddrV4>,
}

/// A session that is known by what the client sends.
type Key = Ends;

/// All of it.
pub struct Translator {
    tun: Tun,
    config: Config,
    http_port: u16,
    clusters: Vec<Cluster>,
    /// Which servers answer, over all clusters.
    down: HashMap<SocketAddrV4, Instant>,
    sessions: HashMap<Key, Box<Session>>,
    /// Who was answered and has not shown that the answer came: nothing else is done for an address that may be forged.
    opening: Opening,
    far: HashMap<Ends, Key>,
    /// By the server's address and the client's port: whose, which track, and whether reports.
    datagrams: HashMap<(Ipv4Addr, SocketAddrV4), (Key, usize, bool)>,
    random: RandomState,
    abort: Arc<Abort>,
    /// About clients.
    lines: Lines,
}

/// How long a server that did not answer is left out.
const DOWN: Duration = Duration::from_secs(15);

/// Connections that may be opening at a time, the first make room; and for how long.
const OPENING_MAX: usize = 1024;
const OPENING: Duration = Duration::from_secs(10);

/// Connections that are opening, and since when.
#[derive(Default)]
struct Opening(HashMap<Key, (Half, Instant)>);

impl Opening {
    fn add(&mut self, ends: Key, near: Half, now: Instant) {
        if self.0.len() >= OPENING_MAX {
            let first = self.0.iter().min_by_key(|(_, (_, since))| *since).map(|(ends, _)| *ends);
            first.and_then(|first| self.0.remove(&first));
        }
        self.0.insert(ends, (near, now));
    }
}

fn place(address: &Address) -> Result<SocketAddrV4, String> {
    if address.is_secure {
        return Err(format!("{address} is within TLS, which nobody can translate in between; give rtsp://"));
    }
    let found = (address.host.as_str(), address.port).to_socket_addrs();
    let mut found = found.map_err(|e| format!("{} cannot be found: {e}; give its IPv4 address", address.host))?;
    let place = found.find_map(|place| match place.ip() {
        IpAddr::V4(ip) => Some(SocketAddrV4::new(ip, place.port())),
        IpAddr::V6(_) => None,
    });
    place.ok_or_else(|| format!("{} has no IPv4 address, and nothing else is translated; give one", address.host))
}

impl Translator {
    /// Takes the device.
    ///
    /// # Errors
    /// In words, with the way out.
    pub fn open(device: &str, config: Config, abort: Arc<Abort>) -> Result<Translator, String> {
        let clusters = config.sources.iter().map(|source| {
            let places = source.addresses.iter().map(place).collect::<Result<_, _>>()?;
            Ok(Cluster { source: source.clone(), places })
        });
        let clusters = clusters.collect::<Result<Vec<_>, String>>()?;
        Ok(Translator {
            tun: Tun::open(device)?,
            http_port: config.http.map_or(HTTP_PORT, |place| place.port()),
            clusters,
            config,
            down: HashMap::new(),
            sessions: HashMap::new(),
            opening: Opening::default(),
            far: HashMap::new(),
            datagrams: HashMap::new(),
            random: RandomState::new(),
            abort,
            lines: Lines::new(Instant::now()),
        })
    }

    /// Translates until the abort flag is raised.
    ///
    /// # Errors
    /// What the system refused.
    pub fn run(mut self) -> Result<(), String> {
        let mut looked_over = Instant::now();
        while !self.abort.is_raised() {
            let now = Instant::now();
            let due = self.sessions.values().filter_map(|session| session.deadline()).min();
            let wait =
                due.map_or(ROUND, |due| due.saturating_duration_since(now)).clamp(Duration::from_millis(1), ROUND);
            let timeout = Timespec { tv_sec: 0, tv_nsec: wait.as_nanos() as i64 };
            let mut waits = [PollFd::new(self.tun.descriptor(), PollFlags::IN)];
            match poll(&mut waits, Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(format!("cannot wait for packets: {e}")),
            }
            let now = Instant::now();
            for _ in 0..ROUND_PACKETS {
                let Some(packet) = self.tun.take() else { break };
                self.packet(packet, now);
            }
            if due.is_some_and(|due| due <= now) || now.saturating_duration_since(looked_over) >= ROUND {
                looked_over = now;
                self.look_over(now);
            }
        }
        let tun = &self.tun;
        self.sessions.values_mut().for_each(|session| session.break_off(&mut |packet| tun.give(packet)));
        Ok(())
    }

    /// A packet that somebody sends.
    fn packet(&mut self, bytes: Vec<u8>, now: Instant) {
        match kind(&bytes) {
            Kind::Tcp(ends, range) => {
                let key = if self.sessions.contains_key(&ends) { Some((ends, true)) } else { None };
                let key = key.or_else(|| self.far.get(&ends).map(|key| (*key, false)));
                let is_ours = key.is_some() || self.cluster(ends.to).is_some();
                if !is_ours {
                    return self.tun.give(&bytes[packet::ROOM..]);
                }
                let Some(repr) = segment(&bytes, ends, &range) else { return };
                let tun = &self.tun;
                let sink = &mut |packet: &[u8]| tun.give(packet);
                if key.is_none() && self.opening.0.contains_key(&ends) && repr.control != TcpControl::Syn {
                    return self.opened(ends, &repr, now);
                }
                let ended = match key.and_then(|(key, is_near)| Some((self.sessions.get_mut(&key)?, key, is_near))) {
                    Some((session, key, is_near)) => {
                        let heard = match is_near {
                            true => session.near_heard(&repr, now, sink),
                            false => session.far_heard(&repr, now, sink),
                        };
                        heard.err().map(|why| (key, why))
                    }
                    None if repr.control == TcpControl::Syn && repr.ack_number.is_none() => {
                        return self.begin(ends, &repr, now);
                    }
                    None if repr.control != TcpControl::Rst => {
                        // Of a connection that nobody knows any more.
                        let after = (repr.seq_number.0 as u32).wrapping_add(repr.segment_len() as u32);
                        let sequence = repr.ack_number.map_or(0, |told| told.0 as u32);
                        let told = Told { ends: ends.back(), sequence, expects: after, window: 0 };
                        return tun.give(&bare_segment(told, TcpControl::Rst, repr.ack_number.is_none(), None));
                    }
                    None => None,
                };
                if let Some((key, why)) = ended {
                    self.end(key, why, now);
                }
            }
            Kind::Udp(ends, range) => match self.datagrams.get(&(*ends.from.ip(), ends.to)) {
                None => self.tun.give(&bytes[packet::ROOM..]),
                Some((key, track, is_report)) => {
                    let tun = &self.tun;
                    if let Some(session) = self.sessions.get_mut(key) {
                        let track = (*track, *is_report);
                        session.datagram(track, bytes, ends, &range, now, &mut |packet| tun.give(packet));
                    }
                }
            },
            Kind::Other => self.tun.give(&bytes[packet::ROOM..]),
        }
    }

    /// The servers that are meant by a place: where one of them listens, or where it would by HTTP.
    fn cluster(&self, to: SocketAddrV4) -> Option<&Cluster> {
        let is_http = to.port() == self.http_port;
        self.clusters
            .iter()
            .find(|cluster| cluster.places.iter().any(|place| *place == to || (is_http && place.ip() == to.ip())))
    }

    /// A client connects: it is answered, and nothing else, until it has shown that it is where it says.
    fn begin(&mut self, ends: Ends, syn: &smoltcp::wire::TcpRepr<'_>, now: Instant) {
        if self.is_full(ends) {
            let expects = (syn.seq_number.0 as u32).wrapping_add(1);
            let told = Told { ends: ends.back(), sequence: 0, expects, window: 0 };
            return self.tun.give(&bare_segment(told, TcpControl::Rst, true, None));
        }
        let first = self.random.hash_one((ends, 0_u8, syn.seq_number.0)) as u32;
        let tun = &self.tun;
        let near = Half::answering(ends.back(), syn, first, now, &mut |packet| tun.give(packet));
        self.opening.add(ends, near, now);
    }

    fn is_full(&self, ends: Ends) -> bool {
        let limits = self.config.limits;
        let own = self.sessions.keys().filter(|key| key.from.ip() == ends.from.ip()).count();
        self.sessions.len() >= limits.viewers || own >= limits.connections_an_address
    }

    /// Who was answered says something.
    fn opened(&mut self, ends: Ends, segment: &smoltcp::wire::TcpRepr<'_>, now: Instant) {
        let Some((mut near, since)) = self.opening.0.remove(&ends) else { return };
        let tun = &self.tun;
        let heard = near.heard(segment, now, &mut |packet| tun.give(packet));
        if heard == Heard::Broken || self.is_full(ends) {
            near.reset(&mut |packet| tun.give(packet));
        } else if !near.is_open() {
            self.opening.add(ends, near, since);
        } else {
            self.join(ends, near, now);
            let tun = &self.tun;
            let session = self.sessions.get_mut(&ends);
            let said =
                session.map(|session| session.near_did(heard, segment.payload, now, &mut |packet| tun.give(packet)));
            if let Some(Err(why)) = said {
                self.end(ends, why, now);
            }
        }
    }

    /// A client is there: its server is asked in its name.
    fn join(&mut self, ends: Ends, mut near: Half, now: Instant) {
        let tun = &self.tun;
        let Some(cluster) = self.cluster(ends.to) else { return near.reset(&mut |packet| tun.give(packet)) };
        let (client, servers) = (ends.from.ip().to_string(), &cluster.places);
        let names: Vec<String> = cluster.source.addresses.iter().map(Address::to_string).collect();
        let mut choice = Choice::new(&client, &names);
        for (number, server) in servers.iter().enumerate() {
            if self.down.get(server).is_some_and(|until| now < *until) {
                choice.failed(number, now);
            }
        }
        let number = choice.best(now);
        let (server, address) = (servers[number], cluster.source.addresses[number].clone());
        let name = cluster.source.name.clone();
        // Ports of the client's that no other of its sessions with that server uses.
        let free = |port: &u16| {
            let place = |port| (*server.ip(), SocketAddrV4::new(*ends.from.ip(), port));
            Session::places(*port).all(|(port, ..)| !self.datagrams.contains_key(&place(port)))
        };
        let Some(port) = (0..2500).map(|i| 16_384 + (ends.from.port() % 2500 + i) % 2500 * 16).find(free) else {
            return near.reset(&mut |packet| tun.give(packet));
        };
        let first = self.random.hash_one((ends, 1_u8, self.sessions.len())) as u32;
        let far = Half::opening(Ends { from: ends.from, to: server }, first, now, &mut |packet| tun.give(packet));
        let session = Session::new(near, far, address, port, self.config.limits.reorder, now);
        self.far.insert(Ends { from: server, to: ends.from }, ends);
        for (port, track, is_report) in Session::places(port) {
            let place = (*server.ip(), SocketAddrV4::new(*ends.from.ip(), port));
            self.datagrams.insert(place, (ends, track, is_report));
        }
        self.sessions.insert(ends, Box::new(session));
        self.lines.tell(&format!("{name}: {} is translated to {server}", ends.from));
    }

    fn look_over(&mut self, now: Instant) {
        self.opening.0.retain(|_, (_, since)| now.saturating_duration_since(*since) < OPENING);
        let tun = &self.tun;
        let mut over: Vec<(Key, End)> = Vec::new();
        for (key, session) in &mut self.sessions {
            if let Err(why) = session.tick(now, &mut |packet| tun.give(packet)) {
                over.push((*key, why));
            }
        }
        over.into_iter().for_each(|(key, why)| self.end(key, why, now));
    }

    /// A session is over.
    fn end(&mut self, key: Key, why: End, now: Instant) {
        let Some(mut session) = self.sessions.remove(&key) else { return };
        let tun = &self.tun;
        let (far, opened) = (session.far.ends(), session.far.sent > 0);
        if why.is_some() && !opened {
            // Others go to another server for a while.
            self.down.insert(far.to, now + DOWN);
        }
        session.break_off(&mut |packet| tun.give(packet));
        self.far.remove(&far.back());
        for (port, ..) in Session::places(session.port) {
            self.datagrams.remove(&(*far.to.ip(), SocketAddrV4::new(*key.from.ip(), port)));
        }
        let done = session.done;
        let why = why.unwrap_or_else(|| "it has ended".to_owned());
        self.lines.tell(&format!(
            "{} and {}: {why}; {} packets passed, {} were left out, {} sent again",
            key.from, far.to, done.passed, done.left_out, session.near.lost
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who connects from addresses that are not its own makes room for who comes then.
    #[test]
    fn who_never_opens_keeps_nobody_out() {
        let (mut opening, began) = (Opening::default(), Instant::now());
        let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 554);
        let ends = |number: u16| Ends { from: SocketAddrV4::new(Ipv4Addr::LOCALHOST, number), to };
        for number in 0..3000 {
            let half = Half::opening(ends(number), 1, began, &mut |_| {});
            opening.add(ends(number), half, began + Duration::from_millis(number.into()));
        }
        assert_eq!(opening.0.len(), OPENING_MAX);
        assert!(opening.0.contains_key(&ends(2999)) && !opening.0.contains_key(&ends(0)));
    }
}
