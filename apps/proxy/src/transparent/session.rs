//! One client and the server that it believes to talk to, and what is translated between them.
//!
//! A client that speaks RTSP asks for packets within its connection; the server is asked for datagrams, and everything else goes
//! through as it was said. A client that speaks HTTP gets the payload of an MPEG transport stream, which the server is asked for by RTSP.

use super::half::{Half, Heard, Sink};
use super::packet::{Ends, Kind, Packet, datagram, is_whole, kind};
use crate::address::Address;
use crate::dialogue::{Dialogue, Next, Setup, Trouble, Way};
use crate::reorder::{Reorder, Verdict};
use crate::rtp::{self, Codec};
use crate::sdp::{Description, TRACKS_MAX};
use crate::text::{self, Bounds, Headers, Message, Protocol, reason, write};
use crate::tfrc::{Rate, Report, Share};
use bytes::{Buf, BytesMut};
use smoltcp::wire::TcpRepr;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::Range;
use std::time::{Duration, Instant};

/// What either end may say at once.
const BOUNDS: Bounds = Bounds { head_bytes: 16 << 10, body_bytes: 64 << 10 };
const INPUT_MAX: usize = BOUNDS.head_bytes + BOUNDS.body_bytes;
/// Bytes that may wait for room, of one picture: beyond them even its rest is left out.
const WAITING_MAX: usize = 2 << 20;
/// Bytes of what was said that are kept for an end that does not take them, before nothing more is taken from the other.
const SAID_MAX: usize = 128 << 10;
/// How long a client may be connected without anything being played, and how long nothing may be heard of anybody.
const FIRST: Duration = Duration::from_secs(20);
const SILENCE: Duration = Duration::from_secs(90);

/// A medium that the server was asked to send as datagrams.
struct Track {
    /// The request that set it up, until it is answered.
    asked: Option<String>,
    /// The server has refused it: its ports are free for another.
    is_refused: bool,
    /// As the client has it.
    channels: (u8, u8),
    /// To which of the client's ports it goes: this one, and reports to the next.
    port: u16,
    /// From which of the server's.
    from: Option<(u16, u16)>,
    codec: Codec,
    reorder: Reorder,
    timestamp: Option<u32>,
}

/// What the client speaks.
enum Speech {
    /// Nothing yet.
    Nothing,
    Rtsp,
    /// HTTP: we talk to the server. The track that is sent, once it plays.
    Http(Box<Dialogue>, Option<usize>, Instant),
}

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Packets of media that were sent on.
    pub passed: u64,
    /// Packets that were left out.
    pub left_out: u64,
}

/// A client and its server.
pub struct Session {
    /// Towards the client, as the server.
    pub near: Half,
    /// Towards the server, as the client.
    pub far: Half,
    /// How the server is asked by HTTP's clients; its path comes from these.
    address: Address,
    near_input: BytesMut,
    far_input: BytesMut,
    speech: Speech,
    tracks: Vec<Track>,
    description: Description,
    /// The first of the client's ports that are used.
    pub port: u16,
    patience: Duration,
    rate: Rate,
    rate_at: Instant,
    /// Pictures are left out until a key.
    is_behind: bool,
    /// What went through.
    pub done: Done,
    begun: Instant,
    heard: Instant,
}

/// Why a session ends, for people; nothing where an end has ended it in order.
pub type End = Option<String>;

/// The first message of what an end has said, if it is all there, and its length.
fn said(input: &[u8], who: &str) -> Result<Option<(Message, usize)>, End> {
    let taken = text::take(input, BOUNDS);
    let taken = taken.map_err(|why| Some(format!("the {who} sends what is no message: {why}")))?;
    match taken.is_none() && input.len() >= INPUT_MAX {
        true => Err(Some(format!("the {who} sends a message without an end"))),
        false => Ok(taken),
    }
}

impl Session {
    /// A client that connects, and the server that is to be its.
    pub fn new(near: Half, far: Half, address: Address, port: u16, patience: Duration, now: Instant) -> Session {
        Session {
            near,
            far,
            address,
            near_input: BytesMut::new(),
            far_input: BytesMut::new(),
            speech: Speech::Nothing,
            tracks: Vec::new(),
            description: Description::default(),
            port,
            patience,
            rate: Rate::new(now),
            rate_at: now,
            is_behind: false,
            done: Done::default(),
            begun: now,
            heard: now,
        }
    }

    /// Where datagrams are expected, with the track's number and whether they are reports.
    pub fn places(port: u16) -> impl Iterator<Item = (u16, usize, bool)> {
        (0..2 * TRACKS_MAX).map(move |i| (port + i as u16, i / 2, i % 2 == 1))
    }

    fn server(&self) -> Ipv4Addr {
        *self.far.ends().to.ip()
    }

    fn client(&self) -> Ipv4Addr {
        *self.near.ends().to.ip()
    }

    /// The client says something.
    ///
    /// # Errors
    /// Why it ends.
    pub fn near_heard(&mut self, segment: &TcpRepr<'_>, now: Instant, sink: Sink<'_>) -> Result<(), End> {
        let heard = self.near.heard(segment, now, sink);
        self.near_did(heard, segment.payload, now, sink)
    }

    /// The client has done that.
    ///
    /// # Errors
    /// Why it ends.
    pub fn near_did(&mut self, heard: Heard, payload: &[u8], now: Instant, sink: Sink<'_>) -> Result<(), End> {
        match heard {
            Heard::Broken => return Err(None),
            Heard::Nothing => {}
            Heard::Content => {
                self.heard = now;
                self.near_input.extend_from_slice(payload);
                self.near_said(now, sink)?;
            }
        }
        self.feed_back(now);
        if self.near.is_ended {
            self.far.finish(now, sink);
        }
        self.bound(sink);
        Ok(())
    }

    /// Who talks faster than the other end listens keeps the rest itself.
    fn bound(&mut self, sink: Sink<'_>) {
        // So does a client that is told more than it listens to: much is answered here.
        let near_has_room = self.near.kept() <= WAITING_MAX + SAID_MAX;
        self.near.takes(near_has_room && self.far.kept() <= SAID_MAX, sink);
        self.far.takes(near_has_room, sink);
    }

    /// The server says something.
    ///
    /// # Errors
    /// Why it ends.
    pub fn far_heard(&mut self, segment: &TcpRepr<'_>, now: Instant, sink: Sink<'_>) -> Result<(), End> {
        match self.far.heard(segment, now, sink) {
            Heard::Broken => return Err(Some("the server refuses, or has broken off".to_owned())),
            Heard::Nothing => {}
            Heard::Content => {
                self.heard = now;
                self.far_input.extend_from_slice(segment.payload);
                self.far_said(now, sink)?;
            }
        }
        if self.far.is_ended {
            self.near.finish(now, sink);
        }
        self.bound(sink);
        Ok(())
    }

    fn near_said(&mut self, now: Instant, sink: Sink<'_>) -> Result<(), End> {
        loop {
            let Some((message, length)) = said(&self.near_input, "client")? else { return Ok(()) };
            match message {
                Message::Request { protocol: Protocol::Rtsp, method, target, headers, body } => {
                    self.speech = Speech::Rtsp;
                    self.ask(&method, &target, &headers, &body, now, sink);
                }
                Message::Request { protocol: Protocol::Http, method, target, .. } => {
                    if !matches!(self.speech, Speech::Nothing) || method != "GET" {
                        let line = format!("HTTP/1.1 405 {}", reason(405));
                        self.near.say(&write(&line, &[("Connection", "close")], &[]), now, sink);
                        self.near.finish(now, sink);
                        return Ok(());
                    }
                    self.address.path = target;
                    let mut dialogue = Dialogue::new(self.address.clone(), Way::Udp);
                    let words = dialogue.begin();
                    self.far.say(&words, now, sink);
                    self.speech = Speech::Http(Box::new(dialogue), None, now);
                }
                Message::Response { status, headers, body } => {
                    let words = again(&format!("RTSP/1.0 {status} {}", reason(status)), &headers, None, &body);
                    self.far.say(&words, now, sink);
                }
                Message::Data { channel, range } => self.report(channel, range, sink),
            }
            self.near_input.advance(length);
        }
    }

    /// A request goes to the server; packets within the connection become datagrams.
    fn ask(&mut self, method: &str, target: &str, headers: &Headers, body: &[u8], now: Instant, sink: Sink<'_>) {
        let mut transport = None;
        if method == "SETUP" {
            let sequence = headers.get("cseq").unwrap_or("");
            let asked = headers.get("transport").unwrap_or("").split(',');
            let within = asked.map(str::trim).find(|one| one.to_ascii_uppercase().starts_with("RTP/AVP/TCP"));
            let free = self.tracks.iter().position(|track| track.is_refused);
            let number = free.unwrap_or(self.tracks.len());
            let Some(within) = within.filter(|_| number < TRACKS_MAX) else {
                // Datagrams do not reach this client, or it would not need us.
                let line = format!("RTSP/1.0 461 {}", reason(461));
                return self.near.say(&write(&line, &[("CSeq", sequence)], &[]), now, sink);
            };
            let usual = (2 * number as u8, 2 * number as u8 + 1);
            let port = self.port + 2 * number as u16;
            let described = self.description.tracks.iter().enumerate();
            let mut fits = described.filter(|(_, track)| !track.control.is_empty() && target.ends_with(&track.control));
            let described = fits.next().map(|(_, track)| track).or_else(|| self.description.tracks.get(number));
            let track = Track {
                asked: Some(sequence.to_owned()),
                is_refused: false,
                channels: value(within, "interleaved").and_then(pair).unwrap_or(usual),
                port,
                from: None,
                codec: described.map_or(Codec::Other, |track| track.codec),
                reorder: Reorder::new(self.patience),
                timestamp: None,
            };
            match free {
                Some(number) => self.tracks[number] = track,
                None => self.tracks.push(track),
            }
            transport = Some(format!("RTP/AVP;unicast;client_port={port}-{}", port + 1));
        }
        let words = again(&format!("{method} {target} RTSP/1.0"), headers, transport.as_deref(), body);
        self.far.say(&words, now, sink);
    }

    fn far_said(&mut self, now: Instant, sink: Sink<'_>) -> Result<(), End> {
        loop {
            let Some((message, length)) = said(&self.far_input, "server")? else { return Ok(()) };
            self.far_input.advance(length);
            match message {
                Message::Response { status, headers, body } => match &mut self.speech {
                    Speech::Http(..) => self.answered(status, &headers, &body, now, sink)?,
                    _ => {
                        let transport = self.is_set_up(status, &headers);
                        if headers.get("content-type").is_some_and(|kind| kind.starts_with("application/sdp")) {
                            self.description = Description::parse(&body).unwrap_or_default();
                        }
                        let line = format!("RTSP/1.0 {status} {}", reason(status));
                        self.near.say(&again(&line, &headers, transport.as_deref(), &body), now, sink);
                    }
                },
                Message::Request { method, target, headers, body, .. } => {
                    if matches!(self.speech, Speech::Rtsp) {
                        let words = again(&format!("{method} {target} RTSP/1.0"), &headers, None, &body);
                        self.near.say(&words, now, sink);
                    }
                }
                // It was asked for datagrams.
                Message::Data { .. } => {}
            }
        }
    }

    /// What the client is told of a track that the server has set up, if that is what it answers.
    fn is_set_up(&mut self, status: u16, headers: &Headers) -> Option<String> {
        let sequence = headers.get("cseq")?;
        let number = self.tracks.iter().position(|track| track.asked.as_deref() == Some(sequence))?;
        let told = headers.get("transport").unwrap_or("");
        if status != 200 {
            // The request may come again, with an answer to a challenge. Others keep their places, by which datagrams are told apart.
            let track = &mut self.tracks[number];
            (track.asked, track.from, track.codec, track.is_refused) = (None, None, Codec::Other, true);
            return None;
        }
        let track = &mut self.tracks[number];
        track.asked = None;
        track.from = value(told, "server_port").and_then(pair);
        let source = value(told, "ssrc").map_or_else(String::new, |source| format!(";ssrc={source}"));
        Some(format!("RTP/AVP/TCP;unicast;interleaved={}-{}{source}", track.channels.0, track.channels.1))
    }

    /// The server answers what we have asked for a client that speaks HTTP.
    fn answered(
        &mut self,
        status: u16,
        headers: &Headers,
        body: &[u8],
        now: Instant,
        sink: Sink<'_>,
    ) -> Result<(), End> {
        let Speech::Http(dialogue, track, _) = &mut self.speech else { return Ok(()) };
        let port = self.port;
        let mut open = |track: usize| match track < TRACKS_MAX {
            true => Ok(port + 2 * track as u16),
            false => Err("it has too many media".to_owned()),
        };
        let trouble = match dialogue.heard(status, headers, body, &mut open) {
            Ok(Next::Nothing) => None,
            Ok(Next::Say(words)) => {
                self.far.say(&words, now, sink);
                None
            }
            Ok(Next::Play) => {
                let tracks = &dialogue.description.tracks;
                *track = tracks.iter().position(|track| track.encoding.to_ascii_uppercase().starts_with("MP2T/"));
                match track {
                    None => Some("it sends no MPEG transport stream; ask by RTSP, which takes any media".to_owned()),
                    Some(_) => {
                        for (number, setup) in dialogue.setups.iter().enumerate() {
                            self.tracks.push(Track {
                                asked: None,
                                is_refused: false,
                                channels: (0, 1),
                                port: self.port + 2 * number as u16,
                                from: if let Setup::Ports(from, _) = setup { *from } else { None },
                                codec: Codec::Other,
                                reorder: Reorder::new(self.patience),
                                timestamp: None,
                            });
                        }
                        let kind =
                            [("Content-Type", "video/mp2t"), ("Connection", "close"), ("Cache-Control", "no-store")];
                        self.near.say(&write("HTTP/1.1 200 OK", &kind, &[]), now, sink);
                        None
                    }
                }
            }
            Err(Trouble::NoUdp) => Some("it does not send over UDP".to_owned()),
            Err(Trouble::Other(text) | Trouble::Refused(text)) => Some(text),
        };
        let Some(why) = trouble else { return Ok(()) };
        let line = format!("HTTP/1.1 503 {}", reason(503));
        let kind = [("Content-Type", "text/plain"), ("Connection", "close")];
        self.near.say(&write(&line, &kind, format!("{why}\n").as_bytes()), now, sink);
        self.near.finish(now, sink);
        self.far.finish(now, sink);
        Ok(())
    }

    /// What the client reports goes to the server as a datagram.
    fn report(&mut self, channel: u8, range: Range<usize>, sink: Sink<'_>) {
        let (client, server) = (self.client(), self.server());
        let ports = self.tracks.iter().find_map(|track| match track.from? {
            (packets, _) if channel == track.channels.0 => Some((track.port, packets)),
            (_, reports) if channel == track.channels.1 => Some((track.port + 1, reports)),
            _ => None,
        });
        if let (Some((own, to)), Some(content)) = (ports, self.near_input.get(range)) {
            let ends = Ends { from: SocketAddrV4::new(client, own), to: SocketAddrV4::new(server, to) };
            sink(&datagram(ends, content));
        }
    }

    /// A datagram of the server's.
    pub fn datagram(
        &mut self,
        (track, is_report): (usize, bool),
        bytes: Vec<u8>,
        ends: Ends,
        range: &Range<usize>,
        now: Instant,
        sink: Sink<'_>,
    ) {
        let Some(known) = self.tracks.get_mut(track).filter(|track| !track.is_refused) else { return };
        // What was damaged on the way would be a segment that the client never takes, and that is sent to it again and again.
        if !is_whole(&bytes, ends, range) {
            return;
        }
        self.heard = now;
        if is_report {
            if matches!(self.speech, Speech::Rtsp) && self.near.waiting() == 0 {
                let packet = Packet::framed(bytes, ends, range, known.channels.1);
                self.near.pass(packet, now, sink);
            }
            return;
        }
        let Some((header, _)) = rtp::parse(&bytes[range.clone()]) else { return };
        match known.reorder.judge(header.sequence) {
            Verdict::Pass => self.pass(track, bytes, ends, range, now, sink),
            // The packet itself is kept.
            Verdict::Keep => known.reorder.keep(header.sequence, bytes, now),
            Verdict::Drop => {}
        }
        self.release(track, now, sink);
    }

    fn release(&mut self, track: usize, now: Instant, sink: Sink<'_>) {
        while let Some(bytes) = self.tracks.get_mut(track).and_then(|track| track.reorder.release(now)) {
            if let Kind::Udp(ends, range) = kind(&bytes) {
                self.pass(track, bytes, ends, &range, now, sink);
            }
        }
    }

    /// A packet of media in its turn: headers change places, unless the client gets no more for the time being.
    fn pass(&mut self, track: usize, bytes: Vec<u8>, ends: Ends, range: &Range<usize>, now: Instant, sink: Sink<'_>) {
        let lead = self.tracks.iter().position(|track| track.codec.is_video());
        let Some((header, payload)) = rtp::parse(&bytes[range.clone()]) else { return };
        let (offset, length) = (payload.as_ptr() as usize - bytes.as_ptr() as usize, payload.len());
        let known = &mut self.tracks[track];
        let is_new = known.timestamp.replace(header.timestamp) != Some(header.timestamp);
        // Where nobody knows of pictures, each packet may be left out.
        let (is_start, is_key) = match lead {
            Some(lead) if lead == track => (is_new, rtp::is_key(known.codec, payload)),
            Some(_) => (false, false),
            None => (true, true),
        };
        if is_start && (is_key || !self.is_behind) {
            self.is_behind = self.rate.picture(false, now) != Share::Goes || self.near.waiting() > 0;
        }
        let is_left_out = self.is_behind && lead.is_none_or(|lead| lead == track);
        if is_left_out || self.near.kept() > WAITING_MAX || !self.near.is_open() {
            self.is_behind |= lead == Some(track);
            self.done.left_out += 1;
            return;
        }
        let packet = match self.speech {
            Speech::Http(_, wanted, _) => match wanted == Some(track) {
                true => Packet::bare(bytes, ends, range, &(offset..offset + length)),
                false => return,
            },
            _ => Packet::framed(bytes, ends, range, known.channels.0),
        };
        self.rate.went(packet.len(), now);
        self.done.passed += 1;
        self.near.pass(packet, now, sink);
    }

    /// Once a round trip TFRC is told what was lost.
    fn feed_back(&mut self, now: Instant) {
        let Some(trip) = self.near.trip() else { return };
        if now.saturating_duration_since(self.rate_at) < trip.max(Duration::from_millis(10)) {
            return;
        }
        self.rate_at = now;
        self.rate.took(trip);
        self.rate
            .heard(Report { highest: self.near.sent, lost: self.near.lost, fraction: 0, sender: 0, delay: 0 }, now);
    }

    /// When it has to be looked after.
    pub fn deadline(&self) -> Option<Instant> {
        let halves = [self.near.deadline(), self.far.deadline()];
        let kept = self.tracks.iter().filter_map(|track| track.reorder.deadline());
        halves.into_iter().flatten().chain(kept).min()
    }

    /// Looks after it.
    ///
    /// # Errors
    /// Why it ends.
    pub fn tick(&mut self, now: Instant, sink: Sink<'_>) -> Result<(), End> {
        (0..self.tracks.len()).for_each(|track| self.release(track, now, sink));
        if !self.near.tick(now, sink) {
            return Err(Some("the client takes nothing any more".to_owned()));
        }
        if !self.far.tick(now, sink) {
            return Err(Some("the server does not answer".to_owned()));
        }
        if self.near.is_over() && self.far.is_over() {
            return Err(None);
        }
        let passed = |since: Instant| now.saturating_duration_since(since);
        if let Speech::Http(dialogue, Some(_), kept_alive) = &mut self.speech
            && passed(*kept_alive) > dialogue.keep_alive_every()
        {
            *kept_alive = now;
            let words = dialogue.still_there();
            self.far.say(&words, now, sink);
        }
        if passed(self.begun) > FIRST && matches!(self.speech, Speech::Nothing) {
            return Err(Some("the client asks for nothing".to_owned()));
        }
        match passed(self.heard) > SILENCE {
            true => Err(Some(format!("nobody has said anything for {} s", SILENCE.as_secs()))),
            false => Ok(()),
        }
    }

    /// Ends it, whatever is under way.
    pub fn break_off(&mut self, sink: Sink<'_>) {
        self.near.reset(sink);
        self.far.reset(sink);
    }
}

/// A message as it came, with another transport where one is given.
fn again(first: &str, headers: &Headers, transport: Option<&str>, body: &[u8]) -> Vec<u8> {
    let kept = headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("content-length"));
    let kept: Vec<(&str, &str)> = kept
        .map(|(name, value)| match transport.filter(|_| name.eq_ignore_ascii_case("transport")) {
            Some(transport) => (name, transport),
            None => (name, value),
        })
        .collect();
    write(first, &kept, body)
}

/// The value of a parameter of a transport.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.split(';').filter_map(|part| part.trim().split_once('=')).find(|(n, _)| *n == name).map(|(_, value)| value)
}

/// Two numbers, or one and the next.
fn pair<T: std::str::FromStr + Copy + TryFrom<u32> + Into<u32>>(text: &str) -> Option<(T, T)> {
    let (first, second) = text.split_once('-').map_or((text, None), |(a, b)| (a, Some(b)));
    let first: T = first.trim().parse().ok()?;
    let second = second.and_then(|second| second.trim().parse().ok());
    Some((first, second.or_else(|| T::try_from(first.into() + 1).ok())?))
}

#[cfg(test)]
mod tests {
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
}
