//! Connecting to a source, which takes as long as names and hosts take, so it is not for a worker.

use crate::address::Address;
use crate::dialogue::{Dialogue, Next, Trouble, Way};
use crate::net::{datagrams, is_later};
use crate::pull::BOUNDS;
use crate::text::{self, Message};
use crate::tls::Trust;
use crate::wire::Wire;
use bytes::{Buf, BytesMut};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv6Addr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// How long a source has to connect, and to greet within TLS.
pub const CONNECT: Duration = Duration::from_secs(5);

/// How long a source has for all that it is asked before it would play.
const REHEARSAL: Duration = Duration::from_secs(10);

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

/// Asks a source as if it were pulled, up to the answer to PLAY, and leaves it again: only that tells one that is switched on from one that
/// serves.
///
/// # Errors
/// Why it would not play.
pub fn rehearse(address: &Address, way: Way, trust: &Trust) -> Result<(), Trouble> {
    let failed = |e: io::Error| Trouble::Other(format!("the connection has broken: {e}"));
    let mut wire = dial(address, trust).map_err(Trouble::Other)?;
    wire.socket().set_nonblocking(true).map_err(failed)?;
    let (mut dialogue, mut ports) = (Dialogue::new(address.clone(), way), Vec::new());
    let (mut input, mut bytes, end) = (BytesMut::new(), [0; 8192], Instant::now() + REHEARSAL);
    // What is said is little, so that there is room for it.
    wire.write_all(&dialogue.begin()).map_err(failed)?;
    loop {
        let taken = text::take(&input, BOUNDS);
        let taken = taken.map_err(|why| Trouble::Other(format!("it sends what is no message of RTSP: {why}")))?;
        if let Some((message, length)) = taken {
            input.advance(length);
            let Message::Response { status, headers, body } = message else { continue };
            let mut open = |_: usize| {
                let both = datagrams(IpAddr::from(Ipv6Addr::UNSPECIFIED), 0).map_err(|e| e.to_string())?;
                let port = both.0.local_addr().map_err(|e| e.to_string())?.port();
                ports.push(both);
                Ok(port)
            };
            match dialogue.heard(status, &headers, &body, &mut open)? {
                Next::Nothing => {}
                Next::Say(words) => wire.write_all(&words).map_err(failed)?,
                Next::Play => return wire.write_all(&dialogue.end()).map_err(failed),
            }
        }
        let slow = || Trouble::Other(format!("it is not ready to play within {} s", REHEARSAL.as_secs()));
        let left = end.checked_duration_since(Instant::now()).ok_or_else(slow)?;
        match wire.read(&mut bytes) {
            Ok(0) => return Err(Trouble::Other("it has ended the connection".to_owned())),
            Ok(count) => input.extend_from_slice(&bytes[..count]),
            Err(e) if is_later(&e) => {
                let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
                poll(&mut [PollFd::new(&wire, PollFlags::IN)], Some(&left)).map_err(|e| failed(e.into()))?;
            }
            Err(e) => return Err(failed(e)),
        }
    }
}
