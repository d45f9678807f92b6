//! Packets of IPv4 as they come from the wire, and the header of TCP in the place of those of UDP and RTP.
//!
//! ```text
//! as a server sends it    IP 20 | UDP 8 | RTP 12 | payload         as it comes, with 16 bytes of room before it
//! for HTTP                IP 20 | TCP 20         | payload         the same bytes in the same place
//! for RTSP            IP 20 | TCP 20 | $ 4 | RTP 12 | payload      the headers begin in the room
//! ```
//! What is sent on is not moved, and the sum of what stays is not reckoned again but taken from UDP's (RFC 1624). The crate
//! `smoltcp` reads and writes the headers.

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{IpProtocol, Ipv4Packet, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber, UdpPacket};
use std::net::SocketAddrV4;
use std::ops::Range;

/// Bytes before a packet that comes: what the headers of TCP and a frame take more than that of UDP.
pub const ROOM: usize = 16;
/// A header of IPv4 without options.
const IP: usize = 20;
/// A header of TCP without options.
const TCP: usize = 20;
/// A header of UDP.
const UDP: usize = 8;
/// Segments that somebody else may cut into do not go further than this.
const HOPS: u8 = 64;

/// Two ends of a flow: from where it comes, to where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ends {
    /// From where.
    pub from: SocketAddrV4,
    /// To where.
    pub to: SocketAddrV4,
}

impl Ends {
    /// The way back.
    pub fn back(self) -> Ends {
        Ends { from: self.to, to: self.from }
    }
}

/// What a packet is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TCP, and where its segment lies.
    Tcp(Ends, Range<usize>),
    /// UDP, and where its content lies.
    Udp(Ends, Range<usize>),
    /// Anything else, pieces of cut packets included.
    Other,
}

/// Looks at what lies behind [`ROOM`] bytes.
pub fn kind(bytes: &[u8]) -> Kind {
    let Some(ip) = bytes.get(ROOM..).and_then(|bytes| Ipv4Packet::new_checked(bytes).ok()) else { return Kind::Other };
    if ip.version() != 4 || usize::from(ip.header_len()) < IP || ip.more_frags() || ip.frag_offset() != 0 {
        return Kind::Other;
    }
    let start = ROOM + usize::from(ip.header_len());
    let end = ROOM + usize::from(ip.total_len());
    let ends = |from: u16, to: u16| Ends {
        from: SocketAddrV4::new(ip.src_addr(), from),
        to: SocketAddrV4::new(ip.dst_addr(), to),
    };
    match ip.next_header() {
        IpProtocol::Tcp => match TcpPacket::new_checked(&bytes[start..end]) {
            Ok(tcp) => Kind::Tcp(ends(tcp.src_port(), tcp.dst_port()), start..end),
            Err(_) => Kind::Other,
        },
        IpProtocol::Udp => match UdpPacket::new_checked(&bytes[start..end]) {
            Ok(udp) => Kind::Udp(ends(udp.src_port(), udp.dst_port()), start + UDP..start + usize::from(udp.len())),
            Err(_) => Kind::Other,
        },
        _ => Kind::Other,
    }
}

/// The segment that [`kind`] found; nothing if its sum is wrong.
pub fn segment<'a>(bytes: &'a [u8], ends: Ends, range: &Range<usize>) -> Option<TcpRepr<'a>> {
    let packet = TcpPacket::new_checked(&bytes[range.clone()]).ok()?;
    let (from, to) = ((*ends.from.ip()).into(), (*ends.to.ip()).into());
    TcpRepr::parse(&packet, &from, &to, &ChecksumCapabilities::default()).ok()
}

/// Whether a datagram that [`kind`] found came as it was sent, as far as its sum tells.
pub fn is_whole(bytes: &[u8], ends: Ends, content: &Range<usize>) -> bool {
    let udp = UdpPacket::new_checked(&bytes[content.start - UDP..content.end]);
    udp.is_ok_and(|udp| udp.verify_checksum(&(*ends.from.ip()).into(), &(*ends.to.ip()).into()))
}

/// The sum of 16-bit words with the carry put back (RFC 1071).
fn sum(bytes: &[u8]) -> u16 {
    let pairs = bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u64::from(*low)));
    fold(pairs.sum())
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The sum of what a checksum covers beside the packet: addresses, protocol and length.
fn pseudo(ends: Ends, protocol: IpProtocol, length: usize) -> u16 {
    let (from, to) = (sum(&ends.from.ip().octets()), sum(&ends.to.ip().octets()));
    fold(u64::from(from) + u64::from(to) + u64::from(u8::from(protocol)) + length as u64)
}

/// Content of TCP with room for its headers before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    bytes: Vec<u8>,
    content: Range<usize>,
    /// Of the content.
    sum: u16,
}

/// What a segment tells beside its content.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// Between whom.
    pub ends: Ends,
    /// Where its content stands.
    pub sequence: u32,
    /// What is expected next of the other end.
    pub expects: u32,
    /// How much of it there is room for.
    pub window: u16,
}

impl Packet {
    /// Bytes that did not come in a packet.
    pub fn of(content: &[u8]) -> Packet {
        let mut bytes = vec![0; IP + TCP];
        bytes.extend_from_slice(content);
        let end = bytes.len();
        Packet { bytes, content: IP + TCP..end, sum: sum(content) }
    }

    /// The sum of the content of a datagram, taken from that of the whole.
    fn sum_of(bytes: &[u8], ends: Ends, content: &Range<usize>) -> u16 {
        let head = &bytes[content.start - UDP..content.start];
        let told = u16::from_be_bytes([head[6], head[7]]);
        if told == 0 {
            return sum(&bytes[content.clone()]);
        }
        // Everything but the content is taken off: adding the complement subtracts.
        let length = UDP + content.len();
        let rest = u64::from(pseudo(ends, IpProtocol::Udp, length)) + u64::from(sum(&head[..6]));
        fold(u64::from(!told) + u64::from(!fold(rest)))
    }

    /// A datagram as a frame of interleaved data, where it lies.
    pub fn framed(mut bytes: Vec<u8>, ends: Ends, datagram: &Range<usize>, channel: u8) -> Packet {
        let before = Packet::sum_of(&bytes, ends, datagram);
        let start = datagram.start - 4;
        let length = (datagram.len() as u16).to_be_bytes();
        let frame = [b'$', channel, length[0], length[1]];
        bytes[start..datagram.start].copy_from_slice(&frame);
        bytes.truncate(datagram.end);
        Packet { bytes, content: start..datagram.end, sum: fold(u64::from(before) + u64::from(sum(&frame))) }
    }

    /// The payload of a packet of RTP, where it lies.
    pub fn bare(mut bytes: Vec<u8>, ends: Ends, datagram: &Range<usize>, payload: &Range<usize>) -> Packet {
        let all = Packet::sum_of(&bytes, ends, datagram);
        let header = &bytes[datagram.start..payload.start];
        let sum = match payload.end == datagram.end && header.len().is_multiple_of(2) {
            true => fold(u64::from(all) + u64::from(!sum(header))),
            false => sum(&bytes[payload.clone()]),
        };
        bytes.truncate(payload.end);
        Packet { bytes, content: payload.clone(), sum }
    }

    /// Bytes of its content.
    pub fn len(&self) -> usize {
        self.content.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.content.is_empty()
    }

    /// What is more than so many bytes becomes a packet of its own.
    pub fn split(&mut self, most: usize) -> Option<Packet> {
        let at = self.content.start + most;
        let tail = Packet::of(self.bytes.get(at..self.content.end).filter(|tail| !tail.is_empty())?);
        self.bytes.truncate(at);
        self.content.end = at;
        self.sum = sum(&self.bytes[self.content.clone()]);
        Some(tail)
    }

    /// Writes the headers in front of the content; the packet as it goes out.
    pub fn seal(&mut self, told: Told) -> &[u8] {
        let (start, length) = (self.content.start - TCP, TCP + self.content.len());
        let header = &mut self.bytes[start..self.content.start];
        let mut tcp = TcpPacket::new_unchecked(&mut *header);
        tcp.set_src_port(told.ends.from.port());
        tcp.set_dst_port(told.ends.to.port());
        tcp.set_seq_number(TcpSeqNumber(told.sequence as i32));
        tcp.set_ack_number(TcpSeqNumber(told.expects as i32));
        tcp.clear_flags();
        tcp.set_header_len(TCP as u8);
        tcp.set_ack(true);
        tcp.set_psh(true);
        tcp.set_window_len(told.window);
        tcp.set_urgent_at(0);
        tcp.set_checksum(0);
        let all = u64::from(pseudo(told.ends, IpProtocol::Tcp, length)) + u64::from(sum(header)) + u64::from(self.sum);
        TcpPacket::new_unchecked(header).set_checksum(!fold(all));
        address(&mut self.bytes[start - IP..self.content.end], told.ends, IpProtocol::Tcp);
        &self.bytes[start - IP..self.content.end]
    }
}

/// Writes a header of IPv4 into the first bytes of a packet.
fn address(packet: &mut [u8], ends: Ends, protocol: IpProtocol) {
    let length = packet.len() as u16;
    let mut ip = Ipv4Packet::new_unchecked(packet);
    ip.set_version(4);
    ip.set_header_len(IP as u8);
    ip.set_dscp(0);
    ip.set_ecn(0);
    ip.set_total_len(length);
    ip.set_ident(0);
    ip.clear_flags();
    ip.set_dont_frag(true);
    ip.set_frag_offset(0);
    ip.set_hop_limit(HOPS);
    ip.set_next_header(protocol);
    ip.set_src_addr(*ends.from.ip());
    ip.set_dst_addr(*ends.to.ip());
    ip.fill_checksum();
}

/// A segment without content: one that opens, acknowledges, ends or breaks off. `options` are the largest segment that is taken, and
/// by how much windows are shifted.
pub fn bare_segment(
    told: Told,
    control: TcpControl,
    acknowledges: bool,
    options: Option<(u16, Option<u8>)>,
) -> Vec<u8> {
    let repr = TcpRepr {
        src_port: told.ends.from.port(),
        dst_port: told.ends.to.port(),
        control,
        seq_number: TcpSeqNumber(told.sequence as i32),
        ack_number: acknowledges.then_some(TcpSeqNumber(told.expects as i32)),
        window_len: told.window,
        window_scale: options.and_then(|(_, scale)| scale),
        max_seg_size: options.map(|(largest, _)| largest),
        sack_permitted: false,
        sack_ranges: [None; 3],
        timestamp: None,
        payload: &[],
    };
    let mut bytes = vec![0; IP + repr.buffer_len()];
    let (from, to) = ((*told.ends.from.ip()).into(), (*told.ends.to.ip()).into());
    let mut packet = TcpPacket::new_unchecked(&mut bytes[IP..]);
    repr.emit(&mut packet, &from, &to, &ChecksumCapabilities::default());
    address(&mut bytes, told.ends, IpProtocol::Tcp);
    bytes
}

/// A datagram.
pub fn datagram(ends: Ends, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; IP + UDP];
    bytes.extend_from_slice(content);
    let length = (UDP + content.len()) as u16;
    let mut udp = UdpPacket::new_unchecked(&mut bytes[IP..]);
    udp.set_src_port(ends.from.port());
    udp.set_dst_port(ends.to.port());
    udp.set_len(length);
    udp.fill_checksum(&(*ends.from.ip()).into(), &(*ends.to.ip()).into());
    address(&mut bytes, ends, IpProtocol::Udp);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(super) fn ends() -> Ends {
        Ends { from: "10.0.0.7:6970".parse().unwrap(), to: "192.168.1.9:50000".parse().unwrap() }
    }

    /// As it comes from the wire.
    fn came(packet: &[u8]) -> Vec<u8> {
        [&[0; ROOM], packet].concat()
    }

    /// A header that is shorter than one can be would make what follows it begin before the room.
    #[test]
    fn headers_that_are_too_short_are_not_translated() {
        for words in 0..5 {
            let mut bytes = came(&datagram(ends(), &[0; 30_000]));
            bytes[ROOM] = 0x40 | words;
            assert_eq!(kind(&bytes), Kind::Other, "{words}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(500)) })]

        /// However a datagram is sent on, its sums are right, its content is the same, and nothing but headers was written.
        #[test]
        fn headers_take_each_others_place(
            payload in prop::collection::vec(any::<u8>(), 0..1480), with_sum in any::<bool>(), sequence in any::<u32>(),
            most in 1..1500_usize,
        ) {
            let ends = ends();
            let rtp: Vec<u8> = [&[0x80, 33, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3][..], &payload].concat();
            let mut bytes = came(&datagram(ends, &rtp));
            if !with_sum {
                bytes[ROOM + IP + 6..ROOM + IP + 8].fill(0);
            }
            let Kind::Udp(found, range) = kind(&bytes) else { panic!("no datagram") };
            prop_assert_eq!((found, &bytes[range.clone()]), (ends, &rtp[..]));
            let told = Told { ends, sequence, expects: 77, window: 500 };
            let inner = range.start + 12..range.end;
            let frame = [&[b'$', 2][..], &(rtp.len() as u16).to_be_bytes(), &rtp].concat();
            for (mut packet, content) in [
                (Packet::framed(bytes.clone(), ends, &range, 2), frame),
                (Packet::bare(bytes.clone(), ends, &range, &inner), payload.clone()),
                (Packet::of(&payload), payload),
            ] {
                let tail = packet.split(most);
                let mut all = Vec::new();
                for packet in std::iter::once(&mut packet).chain(tail.clone().as_mut()) {
                    let out = came(packet.seal(told));
                    prop_assert!(Ipv4Packet::new_checked(&out[ROOM..]).unwrap().verify_checksum());
                    let Kind::Tcp(found, range) = kind(&out) else { panic!("no segment") };
                    let repr = segment(&out, found, &range).expect("the sum is right");
                    prop_assert_eq!((found, repr.seq_number.0 as u32), (ends, sequence));
                    all.extend_from_slice(repr.payload);
                }
                prop_assert_eq!(all, content);
            }
        }

        #[test]
        fn random_packets_do_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..120), protocol in prop_oneof![Just(6_u8), Just(17), any::<u8>()], sane in any::<bool>(), header in 0..8_u8) {
            if sane && bytes.len() > ROOM + 20 {
                let length = (bytes.len() - ROOM) as u16;
                bytes[ROOM] = 0x40 | header;
                bytes[ROOM + 2..ROOM + 4].copy_from_slice(&length.to_be_bytes());
                bytes[ROOM + 6..ROOM + 8].fill(0);
                bytes[ROOM + 9] = protocol;
            }
            match kind(&bytes) {
                Kind::Udp(ends, range) => {
                    let _ = is_whole(&bytes, ends, &range);
                    let mut packet = Packet::framed(bytes, ends, &range, 0);
                    prop_assert_eq!(packet.len(), range.len() + 4);
                    let told = Told { ends, sequence: 1, expects: 2, window: 3 };
                    prop_assert_eq!(packet.seal(told).len(), IP + TCP + range.len() + 4);
                }
                Kind::Tcp(ends, range) => drop(segment(&bytes, ends, &range)),
                Kind::Other => {}
            }
        }
    }
}
