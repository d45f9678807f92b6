//! Connecting to a source, which takes as long as names and hosts take.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long a source has to connect.
pub const CONNECT: Duration = Duration::from_secs(5);

/// What a thread that connects brings back.
pub struct Dialled {
    /// Which try.
    pub attempt: u64,
    /// The connection, or what is wrong.
    pub result: Result<TcpStream, String>,
}

/// Connects; takes as long as names and hosts take, so not on a worker.
pub fn dial(host: &str, port: u16) -> Result<TcpStream, String> {
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
