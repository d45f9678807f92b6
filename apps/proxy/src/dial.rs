//! Connecting to a source, which takes as long as names and hosts take, so it is not for a worker.

use crate::address::Address;
use crate::text;
use crate::tls::Trust;
use crate::wire::Wire;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// How long a source has to connect, and to greet within TLS.
pub const CONNECT: Duration = Duration::from_secs(5);

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
    for address in (host, port).to_socket_addrs().map_err(unknown)? {
        match TcpStream::connect_timeout(&address, CONNECT) {
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

/// Whether a source answers: anything that is RTSP will do, since who it lets in is asked when it is pulled.
pub fn answers(address: &Address, trust: &Trust) -> bool {
    let Ok(mut wire) = dial(address, trust) else { return false };
    let within = Some(CONNECT);
    if wire.socket().set_read_timeout(within).and_then(|()| wire.socket().set_write_timeout(within)).is_err() {
        return false;
    }
    let words = text::write(&format!("OPTIONS {} RTSP/1.0", address.url()), &[("CSeq", "1")], &[]);
    if wire.write_all(&words).is_err() {
        return false;
    }
    let (mut head, begun) = ([0; 9], Instant::now());
    let mut had = 0;
    while had < head.len() && begun.elapsed() < CONNECT {
        match wire.read(&mut head[had..]) {
            Ok(count) if count > 0 => had += count,
            _ => return false,
        }
    }
    head.starts_with(b"RTSP/1.0 ")
}
