//! What is said and heard on the connection of a source: connecting, the dialogue, and packets within it.

use super::{CONNECTION, Incoming, Phase, Place, Pull, REST, ROUND_BYTES, TOLD_MAX, Talk};
use crate::continuity::Continuity;
use crate::dial::{BOUNDS, Dialled};
use crate::dialogue::{Dialogue, Next, Setup, Trouble, Way};
use crate::net::{Poll, canonical, datagrams, group, is_later, open_way};
use crate::origin::Origin;
use crate::passage::Passage;
use crate::receive::{Expected, Receiver};
use crate::reorder::Reorder;
use crate::report::Report;
use crate::rtp;
use crate::sdp::Description;
use crate::stream::add;
use crate::text::{self, Message};
use crate::wire::Wire;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

impl Pull {
    /// A connecting thread is back.
    pub fn dialled(&mut self, dialled: Dialled, poll: &Poll, now: Instant) {
        if !matches!(self.phase, Phase::Dialling(attempt, _) if attempt == dialled.attempt) {
            return;
        }
        let begun = dialled.result.and_then(|wire| {
            let failed = |e: io::Error| format!("cannot talk to it: {e}");
            let socket = wire.socket();
            socket.set_nonblocking(true).map_err(failed)?;
            let _ = socket.set_nodelay(true);
            let peer = canonical(socket.peer_addr().map_err(failed)?).ip();
            poll.add(&wire, self.token).map_err(failed)?;
            let mut talk = Talk::new(wire, Dialogue::new(self.address(), self.way), peer, now);
            talk.output = talk.dialogue.begin();
            Ok(Box::new(talk))
        });
        match begun {
            Ok(mut talk) => {
                let said = talk.flush();
                self.phase = Phase::Talking(talk);
                if let Err(trouble) = said {
                    self.trouble(trouble, now);
                }
            }
            Err(text) => self.trouble(Trouble::Other(text), now),
        }
    }

    /// One of its sockets is ready.
    pub fn ready(&mut self, which: u8, poll: &Poll, receiver: &mut Receiver, now: Instant) {
        let result = match which {
            CONNECTION => self.read_connection(poll, now),
            _ => {
                let (track, is_reports) = (usize::from((which - 1) / 2), which.is_multiple_of(2));
                self.read_datagrams(track, is_reports, receiver, now);
                Ok(())
            }
        };
        if let Err(trouble) = result {
            self.trouble(trouble, now);
        }
    }

    pub(super) fn read_connection(&mut self, poll: &Poll, now: Instant) -> Result<(), Trouble> {
        let Phase::Talking(talk) = &mut self.phase else { return Ok(()) };
        let mut input = std::mem::take(&mut talk.input);
        let mut has_ended = false;
        let mut read = 0;
        // What TLS has read already, the system does not tell of again.
        while read < ROUND_BYTES || talk.wire.holds_input() {
            match talk.wire.read(&mut self.scratch) {
                Ok(0) => {
                    has_ended = true;
                    break;
                }
                Ok(count) => {
                    input.extend_from_slice(&self.scratch[..count]);
                    read += count;
                    if count < self.scratch.len() && !talk.wire.is_secure() {
                        break;
                    }
                }
                Err(e) if is_later(&e) => break,
                Err(e) => {
                    let is_other = !talk.is_playing && !talk.wire.is_secure();
                    let way = if is_other { "; look whether rtsps:// is meant" } else { "" };
                    return Err(Trouble::Other(format!("the connection has broken: {e}{way}")));
                }
            }
        }
        let mut at = 0;
        loop {
            let taken = text::take(&input[at..], BOUNDS).map_err(|why| {
                let is_other =
                    matches!(&self.phase, Phase::Talking(talk) if !talk.is_playing && !talk.wire.is_secure());
                let way =
                    if is_other { "; look whether it speaks RTSP at this port, or rtsps:// is meant" } else { "" };
                Trouble::Other(format!("it sends what is no message of RTSP: {why}{way}"))
            })?;
            let Some((message, length)) = taken else { break };
            match message {
                Message::Data { channel, range } => {
                    let Phase::Talking(talk) = &mut self.phase else { return Ok(()) };
                    let place = talk.channels[usize::from(channel)].filter(|_| talk.is_playing);
                    if let Some((track, is_reports)) = place {
                        let packet = &input[at + range.start..at + range.end];
                        // Nobody else speaks here, but a camera may send more than it has told of.
                        let from = SocketAddr::new(talk.peers[0], 0);
                        match rtp::parse(packet) {
                            _ if is_reports => self.reports(track, packet, now),
                            Some((header, _)) => {
                                if self.is_own(track, &header, from, now) {
                                    let missing = self.tracks[track].report.missing_before(&header);
                                    add(&self.stream.counts.packets_lost, missing);
                                    self.pass(track, Place::Out(packet), now);
                                }
                            }
                            None => add(&self.stream.counts.packets_malformed, 1),
                        }
                    }
                }
                Message::Response { status, headers, body } => {
                    self.answered(status, &headers, &body, poll, now)?;
                }
                Message::Request { method, headers, .. } => {
                    let Phase::Talking(talk) = &mut self.phase else { return Ok(()) };
                    let sequence = headers.get("cseq").unwrap_or("0");
                    let status = if matches!(method.as_str(), "OPTIONS" | "GET_PARAMETER" | "SET_PARAMETER") {
                        200
                    } else {
                        405
                    };
                    let line = format!("RTSP/1.0 {status} {}", text::reason(status));
                    talk.output.extend(text::write(&line, &[("CSeq", sequence)], &[]));
                }
            }
            at += length;
        }
        input.drain(..at);
        let Phase::Talking(talk) = &mut self.phase else { return Ok(()) };
        talk.input = input;
        match has_ended {
            true if talk.is_playing => Err(Trouble::Other("it has ended the connection".to_owned())),
            true => Err(Trouble::Other(
                "it has ended the connection without a stream; look whether it speaks RTSP at this port, or rtsps:// is meant"
                    .to_owned(),
            )),
            false => talk.flush(),
        }
    }

    pub(super) fn answered(
        &mut self,
        status: u16,
        headers: &text::Headers,
        body: &[u8],
        poll: &Poll,
        now: Instant,
    ) -> Result<(), Trouble> {
        let Phase::Talking(talk) = &mut self.phase else { return Ok(()) };
        let (sockets, token) = (&mut talk.datagrams, self.token);
        let mut open = |track: usize| {
            let failed = |e: io::Error| format!("cannot receive datagrams: {e}; give it transport tcp");
            if let Some((socket, _)) = sockets.get(&track) {
                return Ok(socket.local_addr().map_err(failed)?.port());
            }
            let (first, second) = datagrams(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0).map_err(failed)?;
            poll.add(&first, token + 1 + 2 * track as u64).map_err(failed)?;
            poll.add(&second, token + 2 + 2 * track as u64).map_err(failed)?;
            let port = first.local_addr().map_err(failed)?.port();
            sockets.insert(track, (first, second));
            Ok(port)
        };
        match talk.dialogue.heard(status, headers, body, &mut open)? {
            Next::Nothing => {}
            Next::Say(words) => {
                talk.asked = now;
                talk.output.extend(words);
            }
            Next::Play => self.begin(poll, now)?,
        }
        Ok(())
    }

    /// It plays.
    pub(super) fn begin(&mut self, poll: &Poll, now: Instant) -> Result<(), Trouble> {
        let Phase::Talking(talk) = &mut self.phase else { return Ok(()) };
        (talk.is_playing, talk.played, talk.heard, talk.kept_alive) = (true, now, now, now);
        for (track, setup) in talk.dialogue.setups.iter().enumerate() {
            match setup {
                Setup::Group(address, (a, b), host) => {
                    talk.peers.extend(host.map(|host| host.to_canonical()));
                    let failed = |e: io::Error| {
                        let why = match e.kind() {
                            io::ErrorKind::AddrInUse => {
                                "another program on this computer has that port and does not share it".to_owned()
                            }
                            _ => e.to_string(),
                        };
                        Trouble::Other(format!(
                            "cannot join the group {address} at port {a}: {why}; give it transport udp or tcp"
                        ))
                    };
                    // On the network on which the source is.
                    let own = talk.wire.socket().local_addr().map_err(failed)?.ip();
                    let pair = (group(*address, *a, own).map_err(failed)?, group(*address, *b, own).map_err(failed)?);
                    let token = self.token + 1 + 2 * track as u64;
                    poll.add(&pair.0, token).and_then(|()| poll.add(&pair.1, token + 1)).map_err(failed)?;
                    talk.datagrams.insert(track, pair);
                }
                Setup::Channels(packets, reports) => {
                    talk.channels[usize::from(*packets)] = Some((track, false));
                    talk.channels[usize::from(*reports)] = Some((track, true));
                }
                Setup::Ports(ports, host) => {
                    talk.peers.extend(host.map(|host| host.to_canonical()));
                    if let (Some(ports), Some(sockets)) = (ports, talk.datagrams.get(&track)) {
                        open_way(sockets, talk.peers[0], *ports);
                    }
                }
            }
        }
        let description = talk.dialogue.description.clone();
        let way = match talk.dialogue.way() {
            Way::Udp => "UDP",
            Way::Tcp => "TCP",
            Way::Multicast => "multicast",
        };
        let what: Vec<&str> = description.tracks.iter().map(|track| track.encoding.as_str()).collect();
        let text = format!("playing {} over {way}", what.join(" and "));
        let told = talk.dialogue.setups.iter().map(|setup| match setup {
            Setup::Ports(ports, _) => ports.map(|(first, _)| first),
            _ => None,
        });
        let told: Vec<Option<u16>> = told.collect();
        self.set_tracks(&description, &told);
        if let Phase::Talking(talk) = &mut self.phase {
            talk.playing = Some(text);
            talk.malformed = self.stream.counts.packets_malformed.load(Ordering::Relaxed);
        }
        add(&self.stream.counts.connections, 1);
        let mut told = self.stream.told();
        let goes_on = told.description.as_ref().is_none_or(|before| description.goes_on_from(before));
        if !goes_on {
            self.tell_viewers("it sends something else now; its viewers have to ask again");
            told.generation += 1;
        }
        self.generation = told.generation;
        told.description = Some(Arc::new(description));
        Ok(())
    }

    /// Tracks go on from before where they are the same; ports from which they come, as far as they were told.
    pub(super) fn set_tracks(&mut self, description: &Description, told: &[Option<u16>]) {
        let before = self.stream.told().description.clone();
        let goes_on = before.is_some_and(|before| description.goes_on_from(&before));
        let mut old = std::mem::take(&mut self.tracks).into_iter().filter(|_| goes_on);
        for track in &description.tracks {
            let mut continuity = old.next().map_or_else(|| Continuity::new(track.clock_rate), |old| old.continuity);
            continuity.restart();
            self.tracks.push(Incoming {
                codec: track.codec,
                payload_type: track.payload_type,
                reorder: Reorder::new(self.limits.reorder),
                continuity,
                timestamp: None,
                key_timestamp: None,
                passage: Passage::new(track),
                report: Report::default(),
                expected: Expected::default(),
                source: None,
                origin: Origin::new(told.get(self.tracks.len()).copied().flatten()),
            });
        }
        self.lead = description.lead();
    }
}

impl Talk {
    /// Nothing was said.
    pub(super) fn new(wire: Wire, dialogue: Dialogue, peer: IpAddr, now: Instant) -> Talk {
        Talk {
            wire,
            dialogue,
            input: Vec::new(),
            output: Vec::new(),
            datagrams: BTreeMap::new(),
            peers: vec![peer],
            stranger: None,
            channels: vec![None; 256],
            is_playing: false,
            asked: now,
            heard: now,
            played: now,
            kept_alive: now,
            reported: now,
            playing: None,
            malformed: 0,
        }
    }

    /// What is said as soon as media come. Who plays again and again and ends at once fills no log: it is said when that is healthy.
    pub(super) fn says_at_once(&mut self, told: &mut Vec<String>, rest: Duration) -> Option<String> {
        let is_new = |playing: &String| told.len() < TOLD_MAX && !told.contains(playing);
        let playing = self.playing.take_if(|playing| rest <= 2 * REST || is_new(playing))?;
        if is_new(&playing) {
            told.push(playing.clone());
        }
        Some(playing)
    }

    pub(super) fn flush(&mut self) -> Result<(), Trouble> {
        self.wire.push().map_err(|e| Trouble::Other(format!("the connection has broken: {e}")))?;
        while !self.output.is_empty() {
            match self.wire.write(&self.output) {
                Ok(count) => drop(self.output.drain(..count)),
                // It is tried again when the source is next looked after; what is said is little.
                Err(e) if is_later(&e) && self.output.len() < 64 << 10 => break,
                Err(e) if is_later(&e) => return Err(Trouble::Other("it takes nothing any more".to_owned())),
                Err(e) => return Err(Trouble::Other(format!("the connection has broken: {e}"))),
            }
        }
        Ok(())
    }
}
