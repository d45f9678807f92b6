//! One client and the server that it believes to talk to, and what is translated between them.
//!
//! A client that speaks RTSP asks for packets within its connection; the server is asked for datagrams, and everything else goes
//! through as it was said. A client that speaks HTTP gets the payload of an MPEG transport stream, which the server is asked for by RTSP.

#[cfg(test)]
mod tests;

use super::half::{Half, Heard, Sink};
use super::packet::{Ends, Kind, Packet, datagram, is_whole, kind};
use crate::address::Address;
use crate::dialogue::{Dialogue, Next, Setup, Trouble, Way};
use crate::reorder::{Reorder, Verdict};
use crate::rtp::{self, Codec};
use crate::sdp::{Description, TRACKS_MAX};
use crate::text::{self, Bounds, Headers, Message, Protocol, reason, write};
use crate::tfrc::{Rate, Report, Share};
use crate::transport::{Transport, alternatives};
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
            let within = alternatives(headers.get("transport").unwrap_or("")).find(Transport::is_within);
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
                channels: within.pair("interleaved").unwrap_or(usual),
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
        let told = alternatives(headers.get("transport").unwrap_or("")).next();
        if status != 200 {
            // The request may come again, with an answer to a challenge. Others keep their places, by which datagrams are told apart.
            let track = &mut self.tracks[number];
            (track.asked, track.from, track.codec, track.is_refused) = (None, None, Codec::Other, true);
            return None;
        }
        let track = &mut self.tracks[number];
        track.asked = None;
        track.from = told.and_then(|told| told.pair("server_port"));
        let source =
            told.and_then(|told| told.value("ssrc")).map_or_else(String::new, |source| format!(";ssrc={source}"));
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
