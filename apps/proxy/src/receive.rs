//! Datagrams are received where they stay: many in one system call, each into the memory of the batch, behind room for its frame.
//!
//! How long each will be is not known, but packets of one picture have one length and the last is shorter: each gets as much room as the
//! longest so far, so those of a picture lie one behind the other without gaps. What is longer still is put together from two places
//! behind all others, the only copy, and the next get more room. The crate `nix` calls the system (recvmmsg).

use crate::feed::FRAME;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrLike, SockaddrStorage, recvmmsg};
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::os::fd::AsRawFd;

/// Datagrams of one call at most.
const COUNT_MAX: usize = 32;
/// Bytes that one call reserves at most.
const BYTES_MAX: usize = 256 << 10;
/// Bytes that a datagram is taken to have at least.
const SIZE_MIN: usize = 1200;
/// What is longer than expected has this much more room: as much as any datagram needs, however few are that long. Memory that was
/// never written to is not there.
const MORE: usize = (1 << 16) - SIZE_MIN;

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Came {
    /// Where it lies.
    pub range: Range<usize>,
    /// Who sent it.
    pub from: SocketAddr,
}

/// What is expected of a socket.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Bytes of a datagram: the most of late. It falls again by an eighth each time, so that one that is long, from whomever,
    /// does not make all that follow take its room.
    size: usize,
    /// How many at once.
    count: usize,
}

impl Default for Expected {
    fn default() -> Expected {
        Expected { size: SIZE_MIN, count: 2 }
    }
}

/// What receiving needs beside the memory of the batch; used again each time, by one thread.
pub struct Receiver {
    headers: MultiHeaders<SockaddrStorage>,
    more: Box<[u8]>,
    /// What came last.
    pub came: Vec<Came>,
}

impl Default for Receiver {
    fn default() -> Receiver {
        Receiver {
            headers: MultiHeaders::preallocate(COUNT_MAX, None),
            more: vec![0; COUNT_MAX * MORE].into_boxed_slice(),
            came: Vec::new(),
        }
    }
}

impl Receiver {
    /// Receives what there is behind the end of `bytes`; whether there may be more. Memory
    /// that was not needed stays behind the last.
    ///
    /// # Errors
    /// The system's.
    pub fn receive(&mut self, socket: &UdpSocket, expected: &mut Expected, bytes: &mut Vec<u8>) -> io::Result<bool> {
        self.came.clear();
        let count = expected.count.min(BYTES_MAX / expected.size).max(1);
        let (start, slot) = (bytes.len(), FRAME + expected.size);
        bytes.resize(start + count * slot, 0);
        let mut long: Vec<(usize, usize)> = Vec::new();
        {
            let slots = bytes[start..].chunks_exact_mut(slot).zip(self.more.chunks_exact_mut(MORE));
            let mut places: Vec<[IoSliceMut<'_>; 2]> =
                slots.map(|(slot, more)| [IoSliceMut::new(&mut slot[FRAME..]), IoSliceMut::new(more)]).collect();
            let got = recvmmsg(socket.as_raw_fd(), &mut self.headers, places.iter_mut(), MsgFlags::MSG_DONTWAIT, None);
            for (number, message) in got?.enumerate() {
                let from = message.address.filter(|address| address.len() > 0);
                let v4 = from.as_ref().and_then(|address| address.as_sockaddr_in());
                let v4 = v4.map(|address| SocketAddr::from((address.ip(), address.port())));
                let v6 = || from.as_ref()?.as_sockaddr_in6().map(|address| (address.ip(), address.port()).into());
                let Some(from) = v4.or_else(v6) else { continue };
                let place = start + number * slot + FRAME;
                if message.bytes > expected.size {
                    long.push((self.came.len(), number));
                }
                self.came.push(Came { range: place..place + message.bytes, from });
            }
        }
        let is_full = self.came.len() == count;
        let size = expected.size;
        if let Some(longest) = self.came.iter().map(|came| came.range.len()).max() {
            expected.size = longest.max(size - size / 8).max(SIZE_MIN);
        }
        for (index, number) in long {
            let came = &mut self.came[index];
            let (head, rest) = (came.range.start..came.range.start + size, came.range.len() - size);
            let at = bytes.len() + FRAME;
            bytes.resize(at, 0);
            bytes.extend_from_within(head);
            bytes.extend_from_slice(&self.more[number * MORE..number * MORE + rest]);
            came.range = at..bytes.len();
        }
        expected.count = if is_full { (4 * count).min(COUNT_MAX) } else { (self.came.len() + 1).clamp(2, COUNT_MAX) };
        Ok(is_full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    #[test]
    fn one_long_datagram_is_soon_forgotten() {
        let (socket, sender) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let to = socket.local_addr().unwrap();
        let (mut receiver, mut expected) = (Receiver::default(), Expected::default());
        let mut sizes = Vec::new();
        for size in std::iter::once(60_000).chain(std::iter::repeat_n(1000, 60)) {
            sender.send_to(&vec![1; size], to).unwrap();
            socket.peek_from(&mut [0]).unwrap();
            receiver.receive(&socket, &mut expected, &mut Vec::new()).unwrap();
            assert_eq!(receiver.came.len(), 1);
            sizes.push(expected.size);
        }
        assert_eq!((sizes[0], sizes[60]), (60_000, SIZE_MIN), "{sizes:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(30)) })]

        /// Whatever the sizes, what is received is what was sent, each with room for its frame before it, and nothing overlaps.
        #[test]
        fn datagrams_lie_where_they_were_received(sizes in prop::collection::vec(prop_oneof![8 => Just(1100_usize), 2 => 0..1472_usize, 2 => 1199..1202_usize, 2 => 1400..3300_usize, 1 => prop_oneof![Just(9000_usize), Just(65_507)]], 1..60)) {
            let [sender, socket] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
            let to = socket.local_addr().unwrap();
            let (mut receiver, mut expected) = (Receiver::default(), Expected::default());
            let (mut bytes, mut got): (Vec<u8>, Vec<Range<usize>>) = (vec![7; 5], Vec::new());
            let mut later = &sizes[..];
            while !later.is_empty() {
                // Several wait at once, but no more than a socket has room for by default: what is beyond is thrown away.
                let mut waiting = 0;
                let fits = later.iter().take(10).take_while(|size| {
                    waiting += **size;
                    waiting <= 80_000
                });
                let (some, others) = later.split_at(fits.count());
                later = others;
                for (i, size) in some.iter().enumerate() {
                    sender.send_to(&vec![i as u8; *size], to).unwrap();
                }
                socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
                let first = got.len();
                while got.len() < first + some.len() {
                    socket.peek(&mut [0]).unwrap();
                    let _ = receiver.receive(&socket, &mut expected, &mut bytes);
                    for came in &receiver.came {
                        prop_assert!(came.from == sender.local_addr().unwrap());
                        got.push(came.range.clone());
                    }
                }
                for (i, (range, size)) in got[first..].iter().zip(some).enumerate() {
                    prop_assert_eq!(&bytes[range.clone()], vec![i as u8; *size]);
                }
            }
            got.sort_by_key(|range| range.start);
            prop_assert!(got[0].start >= 5 + FRAME && got.windows(2).all(|two| two[0].end + FRAME <= two[1].start));
        }
    }
}
