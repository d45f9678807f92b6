//! Sockets, and how a worker waits for them.

use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::sockopt;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Sockets that are told of at once.
const EVENTS: usize = 256;

/// Which socket is ready, and for what.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// As it was registered.
    pub token: u64,
    /// There is something to read, or an end.
    pub can_read: bool,
    /// There is room to write.
    pub can_write: bool,
    /// It has ended both ways, which is told again and again, whatever is waited for.
    pub is_over: bool,
}

impl Ready {
    /// There may be something to read that the system will not tell of.
    pub const SOME: Ready = Ready { token: 0, can_read: true, can_write: false, is_over: false };
}

/// What a worker waits with.
#[derive(Debug)]
pub struct Poll {
    epoll: OwnedFd,
    /// Ready at the end of a time that is no whole number of milliseconds: waiting itself is in these, and longer rather than shorter
    /// (only newer systems have epoll_pwait2).
    alarm: OwnedFd,
}

/// Its token, and for how long a time it is worth a call.
const ALARM: u64 = u64::MAX;
const ALARM_NANOSECONDS: i64 = 20_000_000;

impl Poll {
    /// Waits for nothing yet.
    ///
    /// # Errors
    /// The system's.
    pub fn new() -> io::Result<Poll> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let alarm = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &alarm, epoll::EventData::new_u64(ALARM), epoll::EventFlags::IN)?;
        Ok(Poll { epoll, alarm })
    }

    /// Waits for a socket too, until it is closed.
    ///
    /// # Errors
    /// The system's.
    pub fn add(&self, socket: &impl AsFd, token: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, epoll::EventData::new_u64(token), epoll::EventFlags::IN)?)
    }

    /// Waits for what is to be waited for of a socket from now on.
    pub fn wants(&self, socket: &impl AsFd, token: u64, read: bool, write: bool) {
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN, read);
        flags.set(epoll::EventFlags::OUT, write);
        // It fails for sockets that were never added, which nobody waits for.
        let _ = epoll::modify(&self.epoll, socket, epoll::EventData::new_u64(token), flags);
    }

    /// No longer waits for a socket that goes elsewhere.
    pub fn remove(&self, socket: &impl AsFd) {
        let _ = epoll::delete(&self.epoll, socket);
    }

    /// Waits until something is ready or the time is over.
    ///
    /// # Errors
    /// The system's.
    pub fn wait(&self, timeout: Duration, ready: &mut Vec<Ready>) -> io::Result<()> {
        ready.clear();
        let mut events = [const { MaybeUninit::uninit() }; EVENTS];
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        if timeout.tv_sec == 0 && timeout.tv_nsec < ALARM_NANOSECONDS && timeout.tv_nsec % 1_000_000 > 0 {
            let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: timeout };
            timerfd_settime(&self.alarm, TimerfdTimerFlags::empty(), &once)?;
        }
        let events = loop {
            match epoll::wait(&self.epoll, &mut events, Some(&timeout)) {
                Ok((events, _)) => break events,
                // Such as by being suspended: what came meanwhile is looked at before anybody is said to be silent.
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        };
        ready.extend(events.iter().filter_map(|event| {
            if event.data.u64() == ALARM {
                let _ = rustix::io::read(&self.alarm, &mut [0_u8; 8]);
                return None;
            }
            let flags = event.flags;
            let end = flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR);
            Some(Ready {
                token: event.data.u64(),
                can_read: flags.contains(epoll::EventFlags::IN) || end,
                can_write: flags.contains(epoll::EventFlags::OUT) || end,
                is_over: end,
            })
        }));
        Ok(())
    }
}

/// The IPv4 address where a computer that speaks both wraps it in an IPv6 one.
pub fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn without_ipv6(place: SocketAddr) -> Option<SocketAddr> {
    (place.is_ipv6() && place.ip().is_unspecified()).then(|| SocketAddr::from((Ipv4Addr::UNSPECIFIED, place.port())))
}

/// Listens for connections.
///
/// # Errors
/// In words, with the way out.
pub fn listen(place: SocketAddr, option: &str) -> Result<TcpListener, String> {
    let bound = TcpListener::bind(place);
    let bound = bound.or_else(|e| without_ipv6(place).map_or(Err(e), TcpListener::bind));
    let refused = |e: io::Error| match e.kind() {
        io::ErrorKind::AddrInUse => {
            format!("port {} is taken by another program; end that, or give another place with {option}", place.port())
        }
        io::ErrorKind::PermissionDenied => {
            format!("port {} is not for everybody to take; give a port from 1024 on with {option}", place.port())
        }
        io::ErrorKind::AddrNotAvailable => {
            format!("{} is no address of this computer; leave it out of {option}, or correct it", place.ip())
        }
        _ => format!("cannot listen at {place}: {e}; give another place with {option}"),
    };
    let listener = bound.map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    Ok(listener)
}

/// What receiving and sending sockets ask the system to keep for them, bytes.
const DATAGRAM_BUFFER: usize = 4 << 20;

/// Two sockets for datagrams, the first on an even port, at the given one or anywhere.
///
/// # Errors
/// The system's, or that there is no such pair.
pub fn datagrams(host: IpAddr, port: u16) -> io::Result<(UdpSocket, UdpSocket)> {
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    // Where any will do, the next port may be taken and half of all are odd.
    for _ in 0..if port == 0 { 64 } else { 1 } {
        let at = SocketAddr::new(host, port);
        let first = UdpSocket::bind(at).or_else(|e| without_ipv6(at).map_or(Err(e), UdpSocket::bind))?;
        let local = first.local_addr()?;
        let next = local.port().checked_add(1).filter(|_| local.port() % 2 == 0);
        match next.map(|next| UdpSocket::bind(SocketAddr::new(local.ip(), next))) {
            Some(Ok(second)) => {
                for socket in [&first, &second] {
                    socket.set_nonblocking(true)?;
                    // As much as the system allows; with the right to it, as much as asked.
                    let _ = sockopt::set_socket_recv_buffer_size_force(socket, DATAGRAM_BUFFER)
                        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, DATAGRAM_BUFFER));
                    let _ = sockopt::set_socket_send_buffer_size_force(socket, DATAGRAM_BUFFER)
                        .or_else(|_| sockopt::set_socket_send_buffer_size(socket, DATAGRAM_BUFFER));
                }
                return Ok((first, second));
            }
            Some(Err(e)) => last = e,
            None => {}
        }
    }
    Err(last)
}

/// A socket for what is sent to a group of viewers, joined where this computer has the address `own`.
///
/// # Errors
/// The system's.
pub fn group(address: IpAddr, port: u16, own: IpAddr) -> io::Result<UdpSocket> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    // Others on this computer may be in the group, too.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddr::new(address, port))?;
    let _ = sockopt::set_socket_recv_buffer_size_force(&socket, DATAGRAM_BUFFER)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, DATAGRAM_BUFFER));
    let socket = UdpSocket::from(socket);
    match address {
        IpAddr::V4(address) => {
            let own = if let IpAddr::V4(own) = own.to_canonical() { own } else { Ipv4Addr::UNSPECIFIED };
            socket.join_multicast_v4(&address, &own)?;
        }
        IpAddr::V6(address) => socket.join_multicast_v6(&address, 0)?,
    }
    Ok(socket)
}

/// So many bytes the system takes of a connection beyond what is on its way (TCP_NOTSENT_LOWAT, which rustix does not have).
pub fn bound_not_sent(socket: &TcpStream, bytes: u32) {
    let (level, name) = (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT);
    // SAFETY: the descriptor is open as long as `socket` is borrowed, and the kernel reads the four bytes of `bytes`. Where it refuses, more
    // is taken.
    let _ = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const bytes).cast(), size_of::<u32>() as u32)
    };
}

/// Whether an error only means that there is nothing to be had now.
pub fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// An address as a socket reaches it that may speak both protocols.
pub fn reached(socket: &UdpSocket, to: IpAddr) -> IpAddr {
    match (to, socket.local_addr().is_ok_and(|own| own.is_ipv6())) {
        (IpAddr::V4(v4), true) => IpAddr::V6(v4.to_ipv6_mapped()),
        (to, _) => to,
    }
}

/// Opens the way back to both sockets from a sender's ports, where addresses are translated between.
pub fn open_way((packets, reports): &(UdpSocket, UdpSocket), to: IpAddr, ports: (u16, u16)) {
    let _ = send_to(packets, &[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], to, ports.0);
    let _ = send_to(reports, &[0x80, 201, 0, 1, 0, 0, 0, 0], to, ports.1);
}

/// Sends from a socket that may speak both protocols.
///
/// # Errors
/// The system's.
pub fn send_to(socket: &UdpSocket, bytes: &[u8], to: IpAddr, port: u16) -> io::Result<usize> {
    socket.send_to(bytes, SocketAddr::new(reached(socket, to), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two that are in a group both get what is sent to it.
    #[test]
    fn a_group_gets_what_is_sent_to_it() {
        let (address, own) = ("239.255.77.21".parse().unwrap(), "127.0.0.1".parse().unwrap());
        let sender = UdpSocket::bind((own, 0)).unwrap();
        let port = sender.local_addr().unwrap().port();
        let both = [group(address, port, own).unwrap(), group(address, port, own).unwrap()];
        sender.send_to(b"packet", (address, port)).unwrap();
        for socket in both {
            socket.set_nonblocking(false).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            let mut bytes = [0; 16];
            assert_eq!(socket.recv(&mut bytes).ok(), Some(6));
        }
    }
}
