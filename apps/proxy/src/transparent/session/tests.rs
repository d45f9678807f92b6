//! A session between ends that are played here, without a device.

use super::super::packet::{ROOM, Told, bare_segment, segment};
use super::*;
use proptest::prelude::*;
use smoltcp::wire::TcpControl;

/// Ends as the other side of a half would number its segments.
struct Peer {
    ends: Ends,
    sequence: u32,
    expects: u32,
}

impl Peer {
    fn told(&self) -> Told {
        Told { ends: self.ends, sequence: self.sequence, expects: self.expects, window: 60_000 }
    }
}

fn heard(packet: &[u8], mut take: impl FnMut(&TcpRepr<'_>)) {
    let bytes = [&[0; ROOM], packet].concat();
    let Kind::Tcp(ends, range) = kind(&bytes) else { panic!("no segment") };
    take(&segment(&bytes, ends, &range).unwrap());
}

/// A session of a client and a server that both have answered.
fn begun(now: Instant) -> (Session, Peer, Peer) {
    let ends = Ends { from: "10.0.0.1:4000".parse().unwrap(), to: "10.0.0.7:554".parse().unwrap() };
    let mut client = Peer { ends, sequence: 0, expects: 11 };
    let mut server = Peer { ends: ends.back(), sequence: 0, expects: 21 };
    let mut near = None;
    heard(&bare_segment(client.told(), TcpControl::Syn, false, None), |syn| {
        near = Some(Half::answering(ends.back(), syn, 10, now, &mut |_| {}));
    });
    let far = Half::opening(ends, 20, now, &mut |_| {});
    let address = Address::parse("rtsp://u:topsecret@10.0.0.7/").unwrap();
    let mut session = Session::new(near.unwrap(), far, address, 16_384, Duration::ZERO, now);
    heard(&bare_segment(server.told(), TcpControl::Syn, true, None), |answer| {
        session.far_heard(answer, now, &mut |_| {}).unwrap();
    });
    (client.sequence, server.sequence) = (1, 1);
    (session, client, server)
}

/// A datagram that was damaged on the way would become a segment that its client never takes, and that is sent again and again.
#[test]
fn what_was_damaged_on_the_way_is_not_passed_on() {
    let now = Instant::now();
    let (mut session, client, server) = begun(now);
    let setup = "SETUP rtsp://h/v RTSP/1.0\r\nCSeq: 1\r\nTransport: RTP/AVP/TCP;interleaved=0-1\r\n\r\n";
    let answer = "RTSP/1.0 200 OK\r\nCSeq: 1\r\nTransport: RTP/AVP;server_port=9-10\r\n\r\n";
    heard(Packet::of(setup.as_bytes()).seal(client.told()), |said| {
        session.near_heard(said, now, &mut |_| {}).unwrap();
    });
    heard(Packet::of(answer.as_bytes()).seal(server.told()), |said| {
        session.far_heard(said, now, &mut |_| {}).unwrap();
    });
    let ends = Ends { from: "10.0.0.7:9".parse().unwrap(), to: "10.0.0.1:16384".parse().unwrap() };
    let mut passed = |is_report, sequence, damages: &dyn Fn(&mut [u8])| {
        let rtp = [&[0x80, 33, 0, sequence, 0, 0, 0, 1, 0, 0, 0, 2][..], &[7; 101]].concat();
        let mut bytes = [&[0; ROOM][..], &datagram(ends, &rtp)].concat();
        damages(&mut bytes[ROOM + 20..]);
        let Kind::Udp(ends, range) = kind(&bytes) else { panic!("no datagram") };
        let mut count = 0;
        // Whatever comes out is a segment whose sum is right.
        let sink = &mut |packet: &[u8]| heard(packet, |_| count += 1);
        session.datagram((0, is_report), bytes, ends, &range, now, sink);
        count
    };
    assert_eq!([passed(false, 1, &|_| {}), passed(true, 1, &|_| {})], [1, 1]);
    for at in [0, 6, 8, 11, 40, 120] {
        assert_eq!([false, true].map(|is_report| passed(is_report, 2, &|udp| udp[at] ^= 4)), [0, 0], "{at}");
    }
    // The numbers of what was damaged are not believed either. Without a sum nothing can be told.
    assert_eq!([passed(false, 2, &|_| {}), passed(false, 3, &|udp| udp[6..8].fill(0))], [1, 1]);
}

/// A client that asks for what it is refused, again and again, and takes none of the answers.
#[test]
fn who_does_not_listen_is_not_answered_without_an_end() {
    let now = Instant::now();
    let (mut session, mut client, _) = begun(now);
    let text = "SETUP rtsp://h/v RTSP/1.0\r\nCSeq: 1\r\nTransport: RTP/AVP\r\n\r\n".repeat(22);
    for _ in 0..4000 {
        let (out, mut acknowledged) = (Packet::of(text.as_bytes()).seal(client.told()).to_vec(), client.sequence);
        let sink = &mut |packet: &[u8]| {
            heard(packet, |repr| acknowledged = repr.ack_number.map_or(0, |number| number.0 as u32));
        };
        heard(&out, |repr| session.near_heard(repr, now, sink).unwrap());
        client.sequence = acknowledged;
    }
    assert!(session.near.kept() < WAITING_MAX + 2 * SAID_MAX, "{}", session.near.kept());
}

/// A server that accepts and takes nothing; its client asks again and again. What is kept is bounded, and goes on when it takes again.
#[test]
fn who_talks_to_the_deaf_keeps_it() {
    let now = Instant::now();
    let (mut session, mut client, mut server) = begun(now);
    let text = format!("GET_PARAMETER rtsp://h/ RTSP/1.0\r\nCSeq: 1\r\nX: {}\r\n\r\n", "x".repeat(1200));
    let mut taken = 0;
    for _ in 0..2000 {
        let (out, mut acknowledged) = (Packet::of(text.as_bytes()).seal(client.told()).to_vec(), 0);
        let sink = &mut |packet: &[u8]| {
            heard(packet, |repr| {
                if repr.dst_port == 4000 {
                    acknowledged = repr.ack_number.map_or(0, |number| number.0 as u32);
                }
            });
        };
        heard(&out, |repr| session.near_heard(repr, now, sink).unwrap());
        let went = acknowledged.wrapping_sub(client.sequence) as usize;
        assert!(went == 0 || went == text.len(), "{went}");
        client.sequence = client.sequence.wrapping_add(went as u32);
        taken += went;
    }
    assert!((SAID_MAX / 2..SAID_MAX + 2 * INPUT_MAX).contains(&taken), "{taken}");
    assert!(session.far.kept() < SAID_MAX + 2 * INPUT_MAX, "{}", session.far.kept());
    // The server takes all of it by and by: the client is told that there is room.
    let mut is_told = false;
    for _ in 0..1000 {
        if session.far.kept() == 0 {
            break;
        }
        let acknowledgement = bare_segment(server.told(), TcpControl::None, true, None);
        let sink = &mut |packet: &[u8]| {
            heard(packet, |repr| {
                is_told |= repr.dst_port == 4000 && repr.window_len > 0;
                if repr.dst_port == 554 {
                    server.expects = (repr.seq_number.0 as u32).wrapping_add(repr.payload.len() as u32);
                }
            });
        };
        heard(&acknowledgement, |repr| session.far_heard(repr, now, sink).unwrap());
    }
    assert!(is_told && session.far.kept() == 0, "{}", session.far.kept());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(200)) })]

    /// Whatever both ends say and send, nothing breaks but their own session.
    #[test]
    fn lying_ends_do_no_harm(
        words in prop::collection::vec((0..3_u8, prop_oneof![
            Just("SETUP rtsp://h/v RTSP/1.0\r\nCSeq: 1\r\nTransport: RTP/AVP/TCP;interleaved=0-1\r\n\r\n".to_owned()),
            Just("RTSP/1.0 200 OK\r\nCSeq: 1\r\nTransport: RTP/AVP;server_port=9-10;ssrc=7\r\n\r\n".to_owned()),
            Just("RTSP/1.0 200 OK\r\nCSeq: 2\r\nContent-Type: application/sdp\r\nContent-Length: 23\r\n\r\nm=video 0 RTP/AVP 33\r\n\r\n".to_owned()),
            Just("GET /x HTTP/1.1\r\nHost: h\r\n\r\n".to_owned()), Just("$\u{0}\u{0}\u{2}ab".to_owned()),
            "(GET|SETUP|RTSP/1.0) [ -~]{0,20}\r\n(CSeq: [0-9]\r\n)?(Transport: [ -~]{0,40}\r\n)?\r\n", "[ -~\r\n]{0,40}",
        ], any::<u8>()), 0..24),
    ) {
        let now = Instant::now();
        let (mut session, client, server) = begun(now);
        let mut peers = [client, server];
        for (who, text, number) in words {
            let mut said = Vec::new();
            let sink = &mut |packet: &[u8]| said.extend_from_slice(packet);
            if who == 2 {
                let ends = Ends { from: "10.0.0.7:9".parse().unwrap(), to: "10.0.0.1:16384".parse().unwrap() };
                let rtp = [&[0x80, 33, 0, number, 0, 0, 0, 1, 0, 0, 0, 2][..], text.as_bytes()].concat();
                let bytes = [&[0; ROOM][..], &datagram(ends, &rtp)].concat();
                let Kind::Udp(ends, range) = kind(&bytes) else { panic!("no datagram") };
                session.datagram((usize::from(number % 3), number > 250), bytes, ends, &range, now, sink);
                continue;
            }
            let mut packet = Packet::of(text.as_bytes());
            let peer = &mut peers[usize::from(who)];
            let out = packet.seal(peer.told()).to_vec();
            peer.sequence = peer.sequence.wrapping_add(text.len() as u32);
            let mut ended = false;
            heard(&out, |repr| {
                let went = if who == 0 { session.near_heard(repr, now, sink) } else { session.far_heard(repr, now, sink) };
                ended = went.is_err();
            });
            prop_assert!(!said.windows(9).any(|bytes| bytes == b"topsecret"));
            prop_assert!(session.near_input.len() <= INPUT_MAX + 1500 && session.tracks.len() <= 2 * TRACKS_MAX);
            if ended {
                break;
            }
        }
    }
}
