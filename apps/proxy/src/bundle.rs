//! Datagrams that go to one place, many in one system call.
//!
//! The system cuts what it is given into datagrams of one size, of which the last may be shorter (UDP GSO), so packets of a picture go
//! through its layers as one, from where they lie. The crate `nix` calls it.

use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
use std::io::IoSlice;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// Datagrams at once (UDP_MAX_SEGMENTS), and bytes: what one datagram could have.
const PACKETS_MAX: usize = 64;
const BYTES_MAX: usize = 65_000;
/// What surely goes through as one frame: larger ones are cut by the protocol below, which segmentation does not do.
const SIZE_MAX: usize = 1400;

/// Datagrams that are gathered.
#[derive(Default)]
pub struct Bundle<'a> {
    place: Option<(&'a UdpSocket, SocketAddr)>,
    packets: Vec<IoSlice<'a>>,
    bytes: usize,
    /// How many were sent, and their bytes.
    pub sent: (u64, u64),
}

impl<'a> Bundle<'a> {
    /// Puts a datagram behind those before, for a place; sends these first where it does not fit to them.
    pub fn push(&mut self, socket: &'a UdpSocket, to: SocketAddr, packet: &'a [u8]) {
        let size = self.packets.first().map_or(0, |first| first.len());
        let is_last = self.packets.last().is_some_and(|last| last.len() < size);
        let is_full = self.packets.len() == PACKETS_MAX || self.bytes + packet.len() > BYTES_MAX;
        let is_other = self.place.is_none_or(|(_, before)| before != to) || packet.len() > size || size > SIZE_MAX;
        if is_last || is_full || is_other {
            self.flush();
        }
        self.place = Some((socket, to));
        self.bytes += packet.len();
        self.packets.push(IoSlice::new(packet));
    }

    /// Sends what there is; what the system has no room for is lost, as on any network.
    pub fn flush(&mut self) {
        let (packets, bytes) = (std::mem::take(&mut self.packets), std::mem::take(&mut self.bytes));
        let Some((socket, to)) = self.place.take() else { return };
        if packets.len() > 1 {
            let size = packets[0].len() as u16;
            let (cut, to) = ([ControlMessage::UdpGsoSegments(&size)], SockaddrStorage::from(to));
            match sendmsg(socket.as_raw_fd(), &packets, &cut, MsgFlags::empty(), Some(&to)) {
                Ok(_) => return self.count(packets.len(), bytes),
                Err(nix::Error::EAGAIN | nix::Error::ENOBUFS) => return,
                // Some devices and systems do not cut.
                Err(_) => {}
            }
        }
        for packet in packets {
            if socket.send_to(&packet, to).is_ok() {
                self.count(1, packet.len());
            }
        }
    }

    fn count(&mut self, packets: usize, bytes: usize) {
        self.sent.0 += packets as u64;
        self.sent.1 += bytes as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(60)) })]

        /// Whatever their sizes and places, datagrams come as they are and in their order.
        #[test]
        fn datagrams_come_as_they_are(sizes in prop::collection::vec((prop_oneof![Just(1200_usize), 1..1500_usize], any::<bool>()), 1..90)) {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let viewers = [UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap()];
            let places = viewers.each_ref().map(|viewer| viewer.local_addr().unwrap());
            let packets: Vec<(usize, Vec<u8>)> = sizes.iter().enumerate().map(|(i, (size, other))| {
                (usize::from(*other), vec![i as u8; *size])
            }).collect();
            let mut bundle = Bundle::default();
            let mut bytes = [0; 2000];
            // A few at a time, so that nothing is lost where a socket holds little.
            for group in packets.chunks(30) {
                group.iter().for_each(|(to, packet)| bundle.push(&socket, places[*to], packet));
                bundle.flush();
                for (viewer, place) in viewers.iter().zip(0..) {
                    viewer.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
                    for (_, packet) in group.iter().filter(|(to, _)| *to == place) {
                        let length = viewer.recv(&mut bytes).unwrap();
                        prop_assert_eq!(&bytes[..length], packet);
                    }
                }
            }
            prop_assert_eq!(bundle.sent.0, packets.len() as u64);
        }
    }
}
