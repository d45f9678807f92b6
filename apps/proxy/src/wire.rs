//! A connection as bytes, plain or within TLS.
//!
//! Nothing here waits: what TLS has to send and the system has no room for is kept by it, bounded, and sent by [`Wire::push`].

use rustix::fd::{AsFd, BorrowedFd};
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};

/// Bytes that TLS keeps of what is to be sent, before it takes no more.
const KEPT_MAX: usize = 64 << 10;

/// How often is read of a connection until something comes out of TLS: tickets of sessions may come without an end.
const TURN_READS: usize = 16;

/// A connection that never blocks.
pub struct Wire {
    socket: TcpStream,
    tls: Option<Box<rustls::Connection>>,
}

impl From<TcpStream> for Wire {
    fn from(socket: TcpStream) -> Wire {
        Wire { socket, tls: None }
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn broken(e: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, e)
}

impl Wire {
    /// What is said within TLS from now on.
    pub fn secure(socket: TcpStream, tls: impl Into<rustls::Connection>) -> Wire {
        let mut tls = tls.into();
        tls.set_buffer_limit(Some(KEPT_MAX));
        Wire { socket, tls: Some(Box::new(tls)) }
    }

    /// The connection below.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Whether what is said on it cannot be read by others.
    pub fn is_secure(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether something has come that the system will not tell of again.
    pub fn holds_input(&mut self) -> bool {
        let state = self.tls.as_mut().map(|tls| tls.process_new_packets());
        state.is_some_and(|state| state.is_ok_and(|state| state.plaintext_bytes_to_read() > 0))
    }

    /// Whether something waits for room to be sent.
    pub fn owes(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Sends what waits as far as there is room; how much was sent.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn push(&mut self) -> io::Result<usize> {
        let mut sent = 0;
        while let Some(tls) = self.tls.as_mut().filter(|tls| tls.wants_write()) {
            match tls.write_tls(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => sent += count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => return Err(e),
            }
        }
        Ok(sent)
    }

    /// Says that nothing more comes.
    pub fn finish(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            let _ = self.push();
        }
        let _ = self.socket.shutdown(Shutdown::Write);
    }
}

impl Read for Wire {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.socket.read(bytes) };
        for _ in 0..TURN_READS {
            match tls.reader().read(bytes) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                // An end without a word: what came before is whole, since messages tell their lengths.
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                done => return done,
            }
            if tls.read_tls(&mut self.socket)? == 0 {
                return Ok(0);
            }
            let state = tls.process_new_packets();
            // Answers of the handshake, and alerts.
            while tls.wants_write() && tls.write_tls(&mut self.socket).is_ok() {}
            state.map_err(broken)?;
        }
        // Others have their turn: the system tells of the rest again.
        Err(io::ErrorKind::WouldBlock.into())
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.tls.is_some() {
            self.push()?;
        }
        let Some(tls) = &mut self.tls else { return self.socket.write_vectored(slices) };
        let taken = if tls.wants_write() { 0 } else { tls.writer().write_vectored(slices)? };
        self.push()?;
        if taken == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
    use std::net::TcpListener;
    use std::sync::Arc;

    /// Two ends that have greeted each other, of which the far one sent so many tickets of sessions.
    fn greeted(tickets: usize) -> (Wire, TcpStream) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (certificate, key) = (CertificateDer::from(made.cert), made.signing_key.serialize_der());
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let versions = &[&rustls::version::TLS13];
        let client = ClientConfig::builder_with_provider(provider.clone()).with_protocol_versions(versions).unwrap();
        let client = Arc::new(client.with_root_certificates(roots).with_no_client_auth());
        let server = ServerConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
        let key = PrivateKeyDer::try_from(key).unwrap();
        let mut server = server.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
        server.send_tls13_tickets = tickets;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        let mut tls = ClientConnection::new(client, ServerName::try_from("localhost").unwrap()).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| ServerConnection::new(Arc::new(server)).unwrap().complete_io(&mut far).unwrap());
            while tls.is_handshaking() {
                tls.complete_io(&mut near).unwrap();
            }
        });
        near.set_nonblocking(true).unwrap();
        (Wire::secure(near, tls), far)
    }

    /// A source that sends tickets of sessions without an end: reading ends before they do, though nothing was read.
    #[test]
    fn who_says_nothing_within_tls_holds_nobody() {
        let (mut wire, _far) = greeted(3000);
        let mut bytes = [0; 64];
        let read = wire.read(&mut bytes).map_err(|e| e.kind());
        assert_eq!(read, Err(io::ErrorKind::WouldBlock));
        assert!(wire.socket().peek(&mut bytes).is_ok(), "all of it was taken at once");
    }

    /// Of what is given at once TLS takes a part, and of the rest nothing while it owes that to somebody who never reads.
    #[test]
    fn little_is_kept_for_who_never_reads() {
        let (mut wire, _far) = greeted(0);
        let given = vec![0; 4 * KEPT_MAX];
        while let Ok(taken) = wire.write(&given) {
            assert!(taken <= KEPT_MAX, "{taken} bytes are taken at once");
        }
        assert!(wire.owes());
    }
}
