//! A source as it is pulled: connected, asked, received from, put in order, and pulled again when it ends.
//!
//! ```text
//! Resting --its time--> Dialling --connected--> Talking --PLAY--> Playing          Gone: no longer asked for
//!    ^                     |                       |                 |
//!    +------- trouble: told once, then tried again, later each time -+
//! ```
//! Of several servers the first that is healthy in the order of the stream's name is pulled (`choice.rs`); another's turn comes without a
//! rest, and a better one that answers again takes over.
//! Receive, reorder and translate happen here, once for each packet: a datagram is received in the batch under way, behind room
//! for its frame (`receive.rs`), and its numbers are changed there. Nothing here knows of viewers.

use crate::address::Address;
use crate::choice::Choice;
use crate::config::{Limits, Source, Transport};
use crate::continuity::Continuity;
use crate::dial::{CONNECT, Dialled, answers, dial};
use crate::dialogue::{Dialogue, Next, Setup, Trouble, Way};
use crate::feed::Batch;
use crate::net::{Poll, canonical, datagrams, group, is_later, send_to};
use crate::receive::{Expected, Receiver};
use crate::reorder::{Reorder, Verdict};
use crate::report::Report;
use crate::rtp;
use crate::sdp::Description;
use crate::stream::{Stream, add};
use crate::text::{self, Bounds, Message};
use crate::tls::Trust;
use crate::wire::Wire;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv6Addr, UdpSocket};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a source has to answer, and to send something.
const ANSWER: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(10);
/// How long datagrams are waited for before they are asked for within the connection.
const DATAGRAMS: Duration = Duration::from_secs(4);
/// The first and the longest time between two tries.
const REST: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(30);
/// How long a source has played before it is healthy, and how often better ones are looked for.
const HEALTHY: Duration = Duration::from_secs(10);
const CHECK: Duration = Duration::from_secs(30);
/// How often the source is told how much arrives (RFC 3550, section 6.2).
const REPORT: Duration = Duration::from_secs(5);

/// What a source may say at once.
const BOUNDS: Bounds = Bounds { head_bytes: 16 << 10, body_bytes: 64 << 10 };
/// Bytes that are read of a connection before others have their turn.
const ROUND_BYTES: usize = 256 << 10;
/// How often a socket is read before others have their turn.
const ROUND_CALLS: usize = 8;

/// Bytes of a batch that is no longer gathered.
const GATHER_BYTES: usize = 64 << 10;
/// Packets of a batch that is no longer gathered: most of what a system call costs is shared by then.
const GATHER_PACKETS: usize = 6;
/// A worker that is busy for less of its time than this sends each packet as it comes. Sending one takes a system call a viewer, of
/// which 90 % is TCP's work and the rest the call (measured by `perf`, so calls in common, by io_uring, would save little).
const EASY: f64 = 0.75;

/// Tokens of its sockets, as offsets: the connection, then two for each track.
pub const CONNECTION: u8 = 0;

enum Phase {
    Resting(Instant),
    Dialling(u64, Instant),
    Talking(Box<Talk>),
    Gone,
}

/// A connection.
struct Talk {
    wire: Wire,
    dialogue: Dialogue,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Where datagrams come, by track.
    datagrams: Vec<(UdpSocket, UdpSocket)>,
    peers: Vec<IpAddr>,
    /// Track and whether it is reports, by channel.
    channels: Vec<Option<(usize, bool)>>,
    is_playing: bool,
    asked: Instant,
    heard: Instant,
    played: Instant,
    kept_alive: Instant,
    reported: Instant,
    has_come: bool,
}

/// A track as it comes in.
struct Incoming {
    codec: rtp::Codec,
    reorder: Reorder,
    continuity: Continuity,
    timestamp: Option<u32>,
    key_timestamp: Option<u32>,
    report: Report,
    expected: Expected,
}

/// A packet, and where it is.
enum Place<'a> {
    /// In the batch under way.
    In(Range<usize>),
    /// Elsewhere.
    Out(&'a [u8]),
}

/// A source.
pub struct Pull {
    /// What everybody knows of it.
    pub stream: Arc<Stream>,
    /// The generation of what it sends.
    pub generation: u64,
    source: Arc<Source>,
    choice: Choice,
    /// The place of the server in the list.
    place: usize,
    checked: Instant,
    limits: Limits,
    phase: Phase,
    way: Way,
    rest: Duration,
    told: String,
    attempts: u64,
    tracks: Vec<Incoming>,
    /// The track whose pictures count.
    lead: Option<usize>,
    batch: Batch,
    /// When the first packet of the batch came, and whether a picture ends in it.
    gathered: Option<Instant>,
    is_complete: bool,
    /// How long that waits.
    waits: Duration,
    /// Mean time between packets, and when the last came.
    gap: Duration,
    passed: Instant,
    /// The number of the next batch.
    pub number: u64,
    /// Reused for what comes within the connection.
    scratch: Box<[u8]>,
    /// The first token of its sockets.
    token: u64,
}

/// What a thread brings back.
pub enum Brought {
    /// What connecting came to.
    Dialled(Dialled),
    /// The place of a server, and whether it answers.
    Checked(usize, bool),
}

fn choice(source: &Source) -> Choice {
    let servers: Vec<String> = source.addresses.iter().map(Address::to_string).collect();
    Choice::new(&source.name, &servers)
}

fn way(transport: Transport) -> Way {
    match transport {
        Transport::Auto | Transport::Udp => Way::Udp,
        Transport::Tcp => Way::Tcp,
        Transport::Multicast => Way::Multicast,
    }
}

impl Pull {
    /// A source that will be pulled when it is next looked after.
    pub fn new(stream: Arc<Stream>, limits: Limits, token: u64, now: Instant) -> Pull {
        let (source, generation) = (stream.source(), stream.told().generation);
        Pull {
            generation,
            choice: choice(&source),
            place: 0,
            checked: now,
            way: way(source.transport),
            source,
            stream,
            limits,
            phase: Phase::Resting(now),
            rest: REST,
            told: String::new(),
            attempts: 0,
            tracks: Vec::new(),
            lead: None,
            batch: Batch::default(),
            gathered: None,
            is_complete: false,
            waits: Duration::ZERO,
            gap: Duration::ZERO,
            passed: now,
            number: 0,
            scratch: vec![0; 1 << 16].into_boxed_slice(),
            token,
        }
    }

    fn log(&self, text: &str) {
        multigrain_console::say(&format!("{}: {text}", self.stream.name()));
    }

    /// How long packets wait for others of their picture where the worker is busy for such a part of its time: not at all as long
    /// as it keeps up easily, or where others do not come in time.
    fn gather(&self, busy: f64) -> Duration {
        let most = self.limits.gather;
        if self.gap > most { Duration::ZERO } else { most.mul_f64(((busy - EASY) / (1.0 - EASY)).clamp(0.0, 1.0)) }
    }

    /// The packets that came since the last time, with their number; nothing while more of a picture is gathered.
    pub fn take_batch(&mut self, busy: f64, now: Instant) -> Option<(u64, Arc<Batch>)> {
        let gather = self.gather(busy);
        self.waits = gather;
        let is_due = self.is_complete || self.gathered.is_some_and(|since| now >= since + gather);
        let is_enough = self.batch.bytes.len() > GATHER_BYTES || self.batch.entries.len() >= GATHER_PACKETS;
        if self.batch.entries.is_empty() || !(is_due || is_enough) {
            return None;
        }
        (self.gathered, self.is_complete) = (None, false);
        let room = (self.batch.bytes.len(), self.batch.entries.len());
        // The next will be of that size, more or less.
        let next = Batch { bytes: Vec::with_capacity(room.0), entries: Vec::with_capacity(room.1) };
        let batch = std::mem::replace(&mut self.batch, next);
        self.number += 1;
        Some((self.number - 1, Arc::new(batch)))
    }

    /// Ends in order.
    pub fn close(&mut self) {
        if let Phase::Talking(talk) = &mut self.phase {
            let words = talk.dialogue.end();
            let _ = talk.wire.write(&words);
        }
        self.stream.is_flowing.store(false, Ordering::Relaxed);
    }

    /// Looks whether something else is asked for by now, and begins with that.
    pub fn follow(&mut self, now: Instant) {
        let source = self.stream.source();
        let (is_gone, was_gone) = (self.stream.is_gone.load(Ordering::Relaxed), matches!(self.phase, Phase::Gone));
        if is_gone && !was_gone {
            self.close();
            self.phase = Phase::Gone;
            let mut told = self.stream.told();
            (told.description, told.trouble) = (None, None);
            told.generation += 1;
            self.generation = told.generation;
        } else if !is_gone && (was_gone || !Arc::ptr_eq(&source, &self.source)) {
            self.close();
            (self.choice, self.way, self.rest) = (choice(&source), way(source.transport), REST);
            (self.source, self.phase) = (source, Phase::Resting(now));
            self.told.clear();
        }
    }

    fn address(&self) -> Address {
        self.source.addresses[self.place].clone()
    }

    /// Another server answers that is better: it takes over.
    pub fn checked(&mut self, place: usize, answers: bool, now: Instant) {
        if !answers {
            self.choice.failed(place, now);
        } else if matches!(self.phase, Phase::Talking(_)) && self.choice.better_than(self.place, now) == Some(place) {
            self.log(&format!("{} answers again", self.source.addresses[place]));
            self.close();
            self.phase = Phase::Resting(now);
        }
    }

    fn trouble(&mut self, trouble: Trouble, now: Instant) {
        let rest = self.rest;
        self.stream.is_flowing.store(false, Ordering::Relaxed);
        let (text, rest) = match trouble {
            Trouble::NoUdp if self.source.transport == Transport::Auto => {
                self.way = Way::Tcp;
                ("it does not send over UDP; asking within the connection".to_owned(), Duration::ZERO)
            }
            Trouble::NoUdp => ("it does not send over UDP; give it transport tcp or auto".to_owned(), rest),
            Trouble::Other(text) => {
                let others = self.choice.failed(self.place, now);
                let place = &self.source.addresses[self.place];
                match self.source.addresses.len() {
                    1 => (text, rest),
                    // The next without a rest, as long as there is one.
                    _ => (format!("{place}: {text}"), if others { Duration::ZERO } else { rest }),
                }
            }
        };
        if self.told != text {
            match rest.is_zero() {
                true => self.log(&text),
                false => self.log(&format!("{text} (trying again from time to time)")),
            }
            self.told = text.clone();
        }
        self.stream.told().trouble = Some(text);
        self.phase = Phase::Resting(now + rest);
        if !rest.is_zero() {
            self.rest = (2 * rest).min(REST_MAX);
        }
    }

    /// When it has to be looked after, if nothing comes.
    pub fn deadline(&self, now: Instant) -> Instant {
        let second = now + Duration::from_secs(1);
        match &self.phase {
            Phase::Gone => second,
            Phase::Resting(until) => *until,
            Phase::Dialling(_, until) => (*until).min(second),
            Phase::Talking(_) => {
                let reorder = self.tracks.iter().filter_map(|track| track.reorder.deadline());
                let gather = self.gathered.map(|since| since + self.waits);
                reorder.chain(gather).min().map_or(second, |at| at.min(second))
            }
        }
    }

    /// Looks after what is due. `bring` takes what a connecting thread brings back.
    pub fn tick(
        &mut self,
        now: Instant,
        trust: impl FnOnce() -> Arc<Trust>,
        bring: impl FnOnce(Brought) + Send + 'static,
    ) {
        match &self.phase {
            Phase::Resting(until) if now >= *until => {
                self.attempts += 1;
                self.place = self.choice.best(now);
                let (attempt, address, trust) = (self.attempts, self.address(), trust());
                self.stream.told().server = address.to_string();
                self.phase = Phase::Dialling(attempt, now + 2 * CONNECT + ANSWER);
                let work = move || bring(Brought::Dialled(Dialled { attempt, result: dial(&address, &trust) }));
                if let Err(e) = std::thread::Builder::new().name("dial".to_owned()).spawn(work) {
                    self.trouble(Trouble::Other(format!("cannot start a thread to connect with: {e}")), now);
                }
            }
            Phase::Dialling(_, until) if now >= *until => {
                self.trouble(
                    Trouble::Other("its name is not resolved in time; look at the name server".to_owned()),
                    now,
                );
            }
            Phase::Talking(_) => {
                if let Err(trouble) = self.look_after(now) {
                    return self.trouble(trouble, now);
                }
                let better = self.choice.better_than(self.place, now);
                if let Some(place) = better.filter(|_| now.saturating_duration_since(self.checked) > CHECK) {
                    self.checked = now;
                    let (address, trust) = (self.source.addresses[place].clone(), trust());
                    let work = move || bring(Brought::Checked(place, answers(&address, &trust)));
                    // Who cannot be looked after now is looked after next time.
                    let _ = std::thread::Builder::new().name("check".to_owned()).spawn(work);
                }
            }
            _ => {}
        }
    }

    fn look_after(&mut self, now: Instant) -> Result<(), Trouble> {
        self.release(now);
        let Phase::Talking(talk) = &mut self.phase else { return Ok(()) };
        let waited = |since: Instant| now.saturating_duration_since(since);
        if talk.dialogue.waits() && waited(talk.asked) > ANSWER && !talk.is_playing {
            return Err(Trouble::Other(format!("it does not answer within {} s", ANSWER.as_secs())));
        }
        if !talk.is_playing {
            return Ok(());
        }
        if waited(talk.played) > HEALTHY {
            self.choice.serves(self.place);
        }
        let may_change = self.source.transport == Transport::Auto && talk.dialogue.way() == Way::Udp;
        if !talk.has_come && may_change && waited(talk.played) > DATAGRAMS {
            self.way = Way::Tcp;
            self.log("no datagrams arrive, as where a firewall is between; asking within the connection");
            self.rest = Duration::ZERO;
            self.phase = Phase::Resting(now);
            return Ok(());
        }
        if waited(talk.heard) > SILENCE {
            return Err(Trouble::Other(format!("nothing has come for {} s", SILENCE.as_secs())));
        }
        if waited(talk.kept_alive) > talk.dialogue.keep_alive_every() {
            (talk.kept_alive, talk.asked) = (now, now);
            let words = talk.dialogue.still_there();
            talk.output.extend(words);
        }
        if waited(talk.reported) > REPORT {
            talk.reported = now;
            for (number, track) in self.tracks.iter_mut().enumerate() {
                let Some(report) = track.report.write(now) else { continue };
                match talk.dialogue.setups.get(number) {
                    Some(Setup::Channels(_, channel)) => {
                        talk.output.extend_from_slice(&[b'$', *channel, 0, report.len() as u8]);
                        talk.output.extend_from_slice(&report);
                    }
                    Some(Setup::Ports(Some((_, port)), _)) => {
                        if let Some((_, socket)) = talk.datagrams.get(number) {
                            let _ = send_to(socket, &report, talk.peers[0], *port);
                        }
                    }
                    _ => {}
                }
            }
        }
        talk.flush()
    }

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
            let mut dialogue = Dialogue::new(self.address(), self.way);
            let output = dialogue.begin();
            Ok(Box::new(Talk {
                wire,
                dialogue,
                input: Vec::new(),
                output,
                datagrams: Vec::new(),
                peers: vec![peer],
                channels: vec![None; 256],
                is_playing: false,
                asked: now,
                heard: now,
                played: now,
                kept_alive: now,
                reported: now,
                has_come: false,
            }))
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

    fn read_connection(&mut self, poll: &Poll, now: Instant) -> Result<(), Trouble> {
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
                Err(e) => return Err(Trouble::Other(format!("the connection has broken: {e}"))),
            }
        }
        let mut at = 0;
        loop {
            let taken = text::take(&input[at..], BOUNDS)
                .map_err(|why| Trouble::Other(format!("it sends what is no message of RTSP: {why}")))?;
            let Some((message, length)) = taken else { break };
            match message {
                Message::Data { channel, range } => {
                    let Phase::Talking(talk) = &mut self.phase else { return Ok(()) };
                    let place = talk.channels[usize::from(channel)].filter(|_| talk.is_playing);
                    (talk.heard, talk.has_come) = (now, true);
                    if let Some((track, is_reports)) = place {
                        let packet = &input[at + range.start..at + range.end];
                        if is_reports { self.reports(track, packet, now) } else { self.pass(track, Place::Out(packet), now) }
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
            true => Err(Trouble::Other("it has ended the connection".to_owned())),
            false => talk.flush(),
        }
    }

    fn answered(
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
            if let Some((socket, _)) = sockets.get(track) {
                return Ok(socket.local_addr().map_err(failed)?.port());
            }
            let (first, second) = datagrams(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0).map_err(failed)?;
            poll.add(&first, token + 1 + 2 * track as u64).map_err(failed)?;
            poll.add(&second, token + 2 + 2 * track as u64).map_err(failed)?;
            let port = first.local_addr().map_err(failed)?.port();
            sockets.push((first, second));
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
    fn begin(&mut self, poll: &Poll, now: Instant) -> Result<(), Trouble> {
        let Phase::Talking(talk) = &mut self.phase else { return Ok(()) };
        (talk.is_playing, talk.played, talk.heard, talk.kept_alive) = (true, now, now, now);
        for (track, setup) in talk.dialogue.setups.iter().enumerate() {
            match setup {
                Setup::Group(address, (a, b)) => {
                    let failed = |e: io::Error| {
                        let text =
                            format!("cannot join the group {address} at port {a}: {e}; give it transport udp or tcp");
                        Trouble::Other(text)
                    };
                    // On the network on which the source is.
                    let own = talk.wire.socket().local_addr().map_err(failed)?.ip();
                    let pair = (group(*address, *a, own).map_err(failed)?, group(*address, *b, own).map_err(failed)?);
                    let token = self.token + 1 + 2 * track as u64;
                    poll.add(&pair.0, token).and_then(|()| poll.add(&pair.1, token + 1)).map_err(failed)?;
                    talk.datagrams.push(pair);
                }
                Setup::Channels(packets, reports) => {
                    talk.channels[usize::from(*packets)] = Some((track, false));
                    talk.channels[usize::from(*reports)] = Some((track, true));
                }
                Setup::Ports(ports, host) => {
                    talk.peers.extend(host.map(|host| host.to_canonical()));
                    if let (Some((a, b)), Some((first, second))) = (ports, talk.datagrams.get(track)) {
                        // Opens the way back where addresses are translated between.
                        let empty = [0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
                        let _ = send_to(first, &empty, talk.peers[0], *a);
                        let _ = send_to(second, &[0x80, 201, 0, 1, 0, 0, 0, 0], talk.peers[0], *b);
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
        self.set_tracks(&description);
        self.log(&text);
        (self.rest, self.told) = (REST, String::new());
        add(&self.stream.counts.connections, 1);
        let mut told = self.stream.told();
        told.trouble = None;
        let goes_on = told.description.as_ref().is_none_or(|before| description.goes_on_from(before));
        if !goes_on {
            told.generation += 1;
        }
        self.generation = told.generation;
        told.description = Some(Arc::new(description));
        Ok(())
    }

    /// Tracks go on from before where they are the same.
    fn set_tracks(&mut self, description: &Description) {
        let before = self.stream.told().description.clone();
        let goes_on = before.is_some_and(|before| description.goes_on_from(&before));
        let mut old = std::mem::take(&mut self.tracks).into_iter().filter(|_| goes_on);
        for track in &description.tracks {
            let mut continuity = old.next().map_or_else(|| Continuity::new(track.clock_rate), |old| old.continuity);
            continuity.restart();
            self.tracks.push(Incoming {
                codec: track.codec,
                reorder: Reorder::new(self.limits.reorder),
                continuity,
                timestamp: None,
                key_timestamp: None,
                report: Report::default(),
                expected: Expected::default(),
            });
        }
        let tracks = &description.tracks;
        let with_keys = tracks.iter().position(|track| track.has_keys());
        self.lead = with_keys.or_else(|| tracks.iter().position(|track| track.media == "video"));
    }

    fn read_datagrams(&mut self, track: usize, is_reports: bool, receiver: &mut Receiver, now: Instant) {
        for _ in 0..ROUND_CALLS {
            let Phase::Talking(talk) = &mut self.phase else { break };
            let Some((first, second)) = talk.datagrams.get(track) else { break };
            let socket = if is_reports { second } else { first };
            let mut usual = Expected::default();
            let expected = self.tracks.get_mut(track).filter(|_| !is_reports).map(|incoming| &mut incoming.expected);
            let start = self.batch.bytes.len();
            let result = receiver.receive(socket, expected.unwrap_or(&mut usual), &mut self.batch.bytes);
            let (end, mut used) = (self.batch.bytes.len(), start);
            for came in &receiver.came {
                let Phase::Talking(talk) = &mut self.phase else { break };
                // Who else sends here is no source.
                if !talk.is_playing || !talk.peers.contains(&came.from.to_canonical()) {
                    continue;
                }
                (talk.heard, talk.has_come) = (now, true);
                if came.is_cut {
                    add(&self.stream.counts.packets_malformed, 1);
                } else if is_reports {
                    let packet = self.batch.bytes[came.range.clone()].to_vec();
                    self.reports(track, &packet, now);
                } else if self.receive(track, came.range.clone(), now) {
                    used = came.range.end;
                }
            }
            // What nobody needs is given back, unless something lies behind it.
            if self.batch.bytes.len() == end {
                self.batch.bytes.truncate(used);
            }
            match result {
                Ok(true) => {}
                // What an earlier datagram of ours met; there may be others.
                Err(e) if !is_later(&e) => {}
                _ => break,
            }
        }
    }

    /// A packet that may be out of order; whether it stays where it lies.
    fn receive(&mut self, track: usize, range: Range<usize>, now: Instant) -> bool {
        let packet = &self.batch.bytes[range.clone()];
        let Some((header, _)) = rtp::parse(packet) else {
            add(&self.stream.counts.packets_malformed, 1);
            return false;
        };
        let Some(incoming) = self.tracks.get_mut(track) else { return false };
        let verdict = incoming.reorder.judge(header.sequence);
        match verdict {
            Verdict::Pass => self.pass(track, Place::In(range), now),
            Verdict::Keep => incoming.reorder.keep(header.sequence, packet.to_vec(), now),
            Verdict::Drop => add(&self.stream.counts.packets_late, 1),
        }
        self.release_track(track, now);
        verdict == Verdict::Pass
    }

    fn release(&mut self, now: Instant) {
        (0..self.tracks.len()).for_each(|track| self.release_track(track, now));
    }

    fn release_track(&mut self, track: usize, now: Instant) {
        loop {
            let Some(incoming) = self.tracks.get_mut(track) else { return };
            let released = incoming.reorder.release(now);
            let lost = std::mem::take(&mut incoming.reorder.lost);
            if lost > 0 {
                add(&self.stream.counts.packets_lost, lost);
            }
            match released {
                Some(packet) => self.pass(track, Place::Out(&packet), now),
                None => return,
            }
        }
    }

    /// A packet in its turn goes into the batch.
    fn pass(&mut self, track: usize, place: Place<'_>, now: Instant) {
        let counts = &self.stream.counts;
        let packet = match &place {
            Place::In(range) => &self.batch.bytes[range.clone()],
            Place::Out(packet) => *packet,
        };
        let Some(incoming) = self.tracks.get_mut(track) else { return };
        let Some((header, payload)) = rtp::parse(packet).filter(|_| packet.len() <= usize::from(u16::MAX)) else {
            return add(&counts.packets_malformed, 1);
        };
        add(&counts.packets_received, 1);
        add(&counts.bytes_received, packet.len() as u64);
        self.stream.is_flowing.store(true, Ordering::Relaxed);
        incoming.report.received(&header);
        let is_new = incoming.timestamp.replace(header.timestamp) != Some(header.timestamp);
        let (is_key, is_start) = match self.lead {
            Some(lead) if lead != track => (false, false),
            None => (true, true),
            // The first packet of a picture at which decoding can begin.
            Some(_) => {
                let has_keys = matches!(incoming.codec, rtp::Codec::H264 | rtp::Codec::H265);
                let begins = if has_keys { rtp::is_key(incoming.codec, payload) } else { is_new };
                let is_key = begins && incoming.key_timestamp != Some(header.timestamp);
                if is_key {
                    incoming.key_timestamp = Some(header.timestamp);
                }
                (is_key, is_new)
            }
        };
        self.gathered.get_or_insert(now);
        self.gap = (7 * self.gap + now.saturating_duration_since(std::mem::replace(&mut self.passed, now))) / 8;
        self.is_complete |= header.marker || self.lead.is_none();
        let (sequence, timestamp, source) = incoming.continuity.translate(&header, now);
        let channel = 2 * track as u8;
        let bytes = match place {
            Place::In(range) => self.batch.enframe(channel, range, is_key, is_start),
            Place::Out(packet) => self.batch.frame(channel, packet, is_key, is_start),
        };
        rtp::rewrite(bytes, sequence, timestamp, source);
    }

    /// Reports of the sender go to viewers with the numbers that they see.
    fn reports(&mut self, track: usize, packet: &[u8], now: Instant) {
        let Some(incoming) = self.tracks.get_mut(track) else { return };
        let mut changed = packet.to_vec();
        if packet.len() > usize::from(u16::MAX) || !incoming.continuity.translate_reports(&mut changed) {
            return;
        }
        if let Some(&[a, b, c, d]) = packet.get(10..14).filter(|_| packet[1] == 200) {
            incoming.report.sender = Some((u32::from_be_bytes([a, b, c, d]), now));
        }
        self.gathered.get_or_insert(now);
        self.batch.frame(2 * track as u8 + 1, &changed, false, false);
    }
}

impl Talk {
    fn flush(&mut self) -> Result<(), Trouble> {
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
