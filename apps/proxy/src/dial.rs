//! Connecting to a source, which takes as long as names and hosts take, so it is not for a worker.

use crate::address::Address;
use crate::dialogue::{Dialogue, Next, Setup, Trouble, Way};
use crate::net::{canonical, datagrams, is_later, open_way};
use crate::rtp;
use crate::text::{self, Bounds, Message};
use crate::tls::Trust;
use crate::wire::Wire;
use bytes::{Buf, BytesMut};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv6Addr, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

/// How long a source has to connect, and to greet within TLS.
pub const CONNECT: Duration = Duration::from_secs(5);

/// How long datagrams are waited for before they are asked for within the connection.
pub const DATAGRAMS: Duration = Duration::from_secs(4);
/// What a source may say at once.
pub const BOUNDS: Bounds = Bounds { head_bytes: 16 << 10, body_bytes: 64 << 10 };

/// How long a source has until media come.
const REHEARSAL: Duration = Duration::from_secs(10);
/// Datagrams that are read of a socket at once.
const DATAGRAMS_MAX: usize = 64;

/// What a thread that connects brings back.
pub struct Dialled {
    /// Which try.
    pub attempt: u64,
    /// The connection, or what is wrong.
    pub result: Result<Wire, String>,
}

fn connect(host: &str, port: u16) -> Result<TcpStream, String> {
    let shown = if port == crate::address::RTSP_PORT { host.to_owned() } else { format!("{host} port {port}") };
    let unknown = |e| format!("{host} cannot be found: {e}; correct the name in its address");
    let mut last = format!("{host} has no address");
    let places = (host, port).to_socket_addrs().map_err(unknown)?;
    let end = Instant::now() + 2 * CONNECT;
    for address in places {
        // A name may have any number of addresses at which nobody is.
        let left = end.saturating_duration_since(Instant::now()).min(CONNECT);
        if left.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(socket) => return Ok(socket),
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
                last = format!("nothing listens at {shown}; look whether it is switched on, and at its port");
            }
            Err(e) if e.kind() == io::ErrorKind::TimedOut => {
                last = format!(
                    "{shown} does not answer within {} s; look whether it can be reached from here",
                    CONNECT.as_secs()
                );
            }
            Err(e) => last = format!("cannot connect to {shown}: {e}"),
        }
    }
    Err(last)
}

/// Connects, and greets where it is to be within TLS.
///
/// # Errors
/// In words, with the way out.
pub fn dial(address: &Address, trust: &Trust) -> Result<Wire, String> {
    let socket = connect(&address.host, address.port)?;
    if !address.is_secure {
        return Ok(socket.into());
    }
    let tls = trust.greet(&socket, &address.host, CONNECT)?;
    Ok(Wire::secure(socket, tls))
}

/// Whether it is a packet of the track by which the others go: reports, sound alone and what strangers send do not show that a source serves.
fn is_media(dialogue: &Dialogue, track: usize, packet: &[u8]) -> bool {
    let description = &dialogue.description;
    let is_lead = description.lead().is_none_or(|lead| lead == track);
    let payload_type = description.tracks.get(track).map(|track| track.payload_type);
    is_lead && rtp::parse(packet).is_some_and(|(header, _)| Some(header.payload_type) == payload_type)
}

/// Asks a source as if it were pulled until media come, and leaves it again: only that tells one that is switched on from one that serves.
///
/// # Errors
/// Why it would not play.
pub fn rehearse(address: &Address, way: Way, trust: &Trust) -> Result<(), Trouble> {
    let failed = |e: io::Error| Trouble::Other(format!("the connection has broken: {e}"));
    let mut wire = dial(address, trust).map_err(Trouble::Other)?;
    wire.socket().set_nonblocking(true).map_err(failed)?;
    let peer = canonical(wire.socket().peer_addr().map_err(failed)?).ip();
    let mut dialogue = Dialogue::new(address.clone(), way);
    let mut sockets: Vec<(UdpSocket, UdpSocket)> = Vec::new();
    let (mut input, mut bytes, mut end) = (BytesMut::new(), [0; 8192], Instant::now() + REHEARSAL);
    let (mut plays, mut has_come) = (false, false);
    // What is said is little, so that there is room for it.
    wire.write_all(&dialogue.begin()).map_err(failed)?;
    while !has_come {
        let late = || match (plays, way) {
            (true, Way::Udp) => Trouble::NoUdp,
            _ => Trouble::Other(format!("nothing of its media has come within {} s", REHEARSAL.as_secs())),
        };
        let left = end.checked_duration_since(Instant::now()).ok_or_else(late)?;
        match wire.read(&mut bytes) {
            Ok(0) => return Err(Trouble::Other("it has ended the connection".to_owned())),
            Ok(count) => input.extend_from_slice(&bytes[..count]),
            Err(e) if is_later(&e) => {
                let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
                let media = sockets.iter().filter(|_| plays).map(|(packets, _)| PollFd::new(packets, PollFlags::IN));
                let mut waits: Vec<PollFd<'_>> = media.chain([PollFd::new(&wire, PollFlags::IN)]).collect();
                poll(&mut waits, Some(&left)).map_err(|e| failed(e.into()))?;
                for (track, (packets, _)) in sockets.iter().enumerate().filter(|_| plays) {
                    let other = dialogue.setups.get(track).and_then(|setup| match setup {
                        Setup::Ports(_, host) => host.map(|host| host.to_canonical()),
                        _ => None,
                    });
                    // Whoever floods it does not keep it from looking at the time.
                    for _ in 0..DATAGRAMS_MAX {
                        let Ok((length, from)) = packets.recv_from(&mut bytes) else { break };
                        let is_own = [Some(peer), other].contains(&Some(canonical(from).ip()));
                        has_come |= is_own && is_media(&dialogue, track, &bytes[..length]);
                    }
                }
            }
            Err(e) => return Err(failed(e)),
        }
        loop {
            let taken = text::take(&input, BOUNDS);
            let taken = taken.map_err(|why| Trouble::Other(format!("it sends what is no message of RTSP: {why}")))?;
            let Some((message, length)) = taken else { break };
            if let Message::Data { channel, range } = &message {
                let is_of = |setup: &Setup| matches!(setup, Setup::Channels(packets, _) if packets == channel);
                let track = dialogue.setups.iter().position(is_of).filter(|_| plays);
                has_come |= track.is_some_and(|track| is_media(&dialogue, track, &input[range.clone()]));
            }
            input.advance(length);
            let Message::Response { status, headers, body } = message else { continue };
            let mut open = |_: usize| {
                let both = datagrams(IpAddr::from(Ipv6Addr::UNSPECIFIED), 0).map_err(|e| e.to_string())?;
                let port = both.0.local_addr().map_err(|e| e.to_string())?.port();
                sockets.push(both);
                Ok(port)
            };
            match dialogue.heard(status, &headers, &body, &mut open)? {
                Next::Nothing => {}
                Next::Say(words) => wire.write_all(&words).map_err(failed)?,
                Next::Play => {
                    // Groups are not joined for that.
                    (plays, has_come) = (true, way == Way::Multicast);
                    if way == Way::Udp {
                        end = end.min(Instant::now() + DATAGRAMS);
                    }
                    for (setup, sockets) in dialogue.setups.iter().zip(&sockets) {
                        if let Setup::Ports(Some(ports), _) = setup {
                            open_way(sockets, peer, *ports);
                        }
                    }
                }
            }
        }
    }
    wire.write_all(&dialogue.end()).map_err(failed)
}
