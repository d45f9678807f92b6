//! A source as it is pulled: connected, asked, received from, put in order, and pulled again when it ends.
//!
//! ```text
//! Resting --its time--> Dialling --connected--> Talking --PLAY--> Playing          Gone: no longer asked for
//!    ^                     |                       |                 |
//!    +------- trouble: told once, then tried again, later each time -+
//! ```
//! Of several servers the first that is healthy in the order of the stream's name is pulled (`choice.rs`); another's turn comes without a
//! rest, and a better one that would play takes over.
//! Receive, reorder and translate happen here, once for each packet: a datagram is received in the batch under way, behind room
//! for its frame (`receive.rs`), and its numbers are changed there. Nothing here knows of viewers.

mod media;
mod talk;
#[cfg(test)]
mod tests;

use crate::address::Address;
use crate::choice::Choice;
use crate::config::{Limits, Source, Transport};
use crate::continuity::Continuity;
use crate::dial::{CONNECT, DATAGRAMS, Dialled, dial, rehearse};
use crate::dialogue::{Dialogue, Setup, Trouble, Way};
use crate::feed::Batch;
use crate::gathering::Gathering;
use crate::lines::say;
use crate::net::send_to;
use crate::origin::Origin;
use crate::passage::Passage;
use crate::receive::Expected;
use crate::reorder::Reorder;
use crate::report::Report;
use crate::rtp;
use crate::stream::{NOTHING_YET, Stream};
use crate::tls::Trust;
use crate::wire::Wire;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::net::{IpAddr, UdpSocket};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a source has to answer, and to send something.
const ANSWER: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(10);
/// For how long a server that sent none is asked for nothing else: it may have been starting.
const WITHIN: Duration = Duration::from_secs(600);
/// The first and the longest time between two tries.
const REST: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(30);
/// How long a server that has refused the password is left alone: cameras shut out who comes with a wrong one again and again.
const REFUSED: Duration = Duration::from_secs(300);
/// What went wrong in different ways is told so often before it plays again.
const TOLD_MAX: usize = 8;
/// How long a source has played before it is healthy, and how often better ones are looked for.
const HEALTHY: Duration = Duration::from_secs(10);
const CHECK: Duration = Duration::from_secs(30);
/// How often the source is told how much arrives (RFC 3550, section 6.2).
const REPORT: Duration = Duration::from_secs(5);

/// Bytes that are read of a connection before others have their turn.
const ROUND_BYTES: usize = 256 << 10;
/// How often a socket is read before others have their turn.
const ROUND_CALLS: usize = 8;

/// Bytes of a batch that is no longer gathered.
const GATHER_BYTES: usize = 64 << 10;
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
    datagrams: BTreeMap<usize, (UdpSocket, UdpSocket)>,
    peers: Vec<IpAddr>,
    /// Somebody else who sends here.
    stranger: Option<IpAddr>,
    /// Track and whether it is reports, by channel.
    channels: Vec<Option<(usize, bool)>>,
    is_playing: bool,
    asked: Instant,
    heard: Instant,
    played: Instant,
    kept_alive: Instant,
    reported: Instant,
    /// What is said when media come.
    playing: Option<String>,
    /// What had come before that was none.
    malformed: u64,
}

/// A track as it comes in.
struct Incoming {
    codec: rtp::Codec,
    /// Others are not of this track.
    payload_type: u8,
    reorder: Reorder,
    continuity: Continuity,
    timestamp: Option<u32>,
    key_timestamp: Option<u32>,
    /// Of video: which packets are passed on.
    passage: Option<Passage>,
    report: Report,
    expected: Expected,
    /// From where its packets come, and the number of whom they come from.
    origin: Origin,
    source: Option<u32>,
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
    /// The server that was found to send nothing over UDP, and when.
    within: Option<(usize, Instant)>,
    rest: Duration,
    /// The servers that have refused the password.
    refused: Vec<usize>,
    /// What was told of what went wrong since it played last.
    told: Vec<String>,
    attempts: u64,
    tracks: Vec<Incoming>,
    /// The track whose pictures count.
    lead: Option<usize>,
    batch: Batch,
    gathering: Gathering,
    /// How long sending a batch takes.
    sending: Duration,
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
    /// Of that list, the place of a server, and whether it would play.
    Checked(Arc<Source>, usize, Result<(), Trouble>),
}

/// What a source has said, as far as it may stand in a log: one line, and not too long.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(400).collect()
}

fn choice(source: &Source) -> Choice {
    let servers: Vec<String> = source.addresses.iter().map(Address::url).collect();
    Choice::new(&source.name, &servers)
}

/// Datagrams go in the clear: whoever asks within TLS wants that of nothing.
fn way(transport: Transport, address: &Address) -> Way {
    match transport {
        Transport::Auto if address.is_secure => Way::Tcp,
        Transport::Auto | Transport::Udp => Way::Udp,
        Transport::Tcp => Way::Tcp,
        Transport::Multicast => Way::Multicast,
    }
}

/// How much longer than a time is waited, up to half of it: sources that went away together, as those of one recorder, are not asked all at
/// once.
fn more_than(time: Duration) -> Duration {
    time.mul_f64(RandomState::new().hash_one(()) as f64 / u64::MAX as f64 / 2.0)
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
            way: way(source.transport, &source.addresses[0]),
            within: None,
            source,
            stream,
            limits,
            phase: Phase::Resting(now),
            rest: REST,
            refused: Vec::new(),
            told: Vec::new(),
            attempts: 0,
            tracks: Vec::new(),
            lead: None,
            batch: Batch::default(),
            gathering: Gathering::new(now),
            sending: Duration::ZERO,
            number: 0,
            scratch: vec![0; 1 << 16].into_boxed_slice(),
            token,
        }
    }

    fn log(&self, text: &str) {
        say(&format!("{}: {text}", self.stream.name()));
    }

    /// Says what becomes of those who view it on all workers, if there are such.
    fn tell_viewers(&self, what: &str) {
        match self.stream.viewers.load(Ordering::Relaxed) {
            0 => {}
            viewers => self.log(&format!("{what}: {viewers}")),
        }
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
            self.tell_viewers("it is served no more; its viewers are sent away");
            let mut told = self.stream.told();
            (told.description, told.trouble) = (None, None);
            told.generation += 1;
            self.generation = told.generation;
        } else if !is_gone && (was_gone || !Arc::ptr_eq(&source, &self.source)) {
            self.close();
            (self.choice, self.within, self.rest) = (choice(&source), None, REST);
            (self.source, self.phase) = (source, Phase::Resting(now));
            self.stream.told().trouble = Some(NOTHING_YET.to_owned());
            self.told.clear();
            self.refused.clear();
        }
    }

    fn address(&self) -> Address {
        self.source.addresses[self.place].clone()
    }

    /// Another server would play that is better: it takes over. Of a list of before nothing is known any more.
    pub fn checked(&mut self, of: &Arc<Source>, place: usize, plays: Result<(), Trouble>, now: Instant) {
        if !Arc::ptr_eq(of, &self.source) {
            return;
        }
        if let Err(why) = plays {
            self.choice.failed(place, now);
            if matches!(why, Trouble::Refused(_)) {
                self.choice.rests(place, REFUSED, now);
            }
        } else if matches!(self.phase, Phase::Talking(_)) && self.choice.better_than(self.place, now) == Some(place) {
            self.log(&format!("{} serves again", self.source.addresses[place]));
            self.close();
            self.phase = Phase::Resting(now);
        }
    }

    fn trouble(&mut self, trouble: Trouble, now: Instant) {
        self.close();
        let (text, rest) = match trouble {
            Trouble::NoUdp if self.source.transport == Transport::Auto => {
                self.within = Some((self.place, now));
                ("it does not send over UDP; asking within the connection".to_owned(), Duration::ZERO)
            }
            Trouble::NoUdp => ("it does not send over UDP; give it transport tcp or auto".to_owned(), self.rest),
            Trouble::Refused(text) => {
                if !self.refused.contains(&self.place) {
                    self.refused.push(self.place);
                }
                self.failed(&text, now)
            }
            Trouble::Other(text) => {
                self.refused.retain(|place| *place != self.place);
                self.failed(&text, now)
            }
        };
        if !self.told.contains(&text) && self.told.len() < TOLD_MAX {
            self.log(&match rest.as_secs() {
                0 => text.clone(),
                _ if rest >= REFUSED => format!("{text} (trying again every {} to 8 minutes)", REFUSED.as_secs() / 60),
                _ => format!("{text} (trying again from time to time)"),
            });
            self.told.push(text.clone());
        }
        self.stream.told().trouble = Some(text);
        self.phase = Phase::Resting(now + rest + more_than(rest));
        if !rest.is_zero() {
            self.rest = (2 * self.rest).min(REST_MAX);
        }
    }

    /// A server does not serve: what is told of it, and how long the next try is waited for.
    fn failed(&mut self, text: &str, now: Instant) -> (String, Duration) {
        let others = self.choice.failed(self.place, now);
        if self.refused.contains(&self.place) {
            self.choice.rests(self.place, REFUSED, now);
        }
        // Where all have refused, the next in turn has.
        let rest = if self.refused.contains(&self.choice.best(now)) { REFUSED } else { self.rest };
        match self.source.addresses.len() {
            1 => (plain(text), rest),
            // The next without a rest, as long as there is one.
            _ => (
                format!("{}: {}", self.source.addresses[self.place], plain(text)),
                if others { Duration::ZERO } else { rest },
            ),
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
                let gather = self.gathering.due(self.sending, self.limits.gather);
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
                self.way = match self.within {
                    Some((place, since)) if place == self.place && now.saturating_duration_since(since) < WITHIN => {
                        Way::Tcp
                    }
                    _ => way(self.source.transport, &self.source.addresses[self.place]),
                };
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
                    self.checked = now + more_than(CHECK);
                    let (address, trust) = (self.source.addresses[place].clone(), trust());
                    let source = self.source.clone();
                    let way = way(source.transport, &address);
                    let work = move || {
                        let plays = match rehearse(&address, way, &trust) {
                            Err(Trouble::NoUdp) if source.transport == Transport::Auto => {
                                rehearse(&address, Way::Tcp, &trust)
                            }
                            plays => plays,
                        };
                        bring(Brought::Checked(source, place, plays));
                    };
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
            let text =
                format!("it does not answer within {} s; look whether it speaks RTSP at this port", ANSWER.as_secs());
            return Err(Trouble::Other(text));
        }
        if !talk.is_playing {
            return Ok(());
        }
        // Who lets in and sends nothing is not.
        if waited(talk.played) > HEALTHY && talk.heard > talk.played {
            self.choice.serves(self.place);
            self.refused.retain(|place| *place != self.place);
            (self.rest, self.told) = (REST, Vec::new());
            if let Some(playing) = talk.playing.take() {
                say(&format!("{}: {playing}", self.stream.name()));
            }
        }
        let may_change = self.source.transport == Transport::Auto && talk.dialogue.way() == Way::Udp;
        if talk.heard <= talk.played && may_change && waited(talk.played) > DATAGRAMS {
            self.within = Some((self.place, now));
            self.close();
            self.log("no datagrams of its media arrive, as where a firewall is between; asking within the connection");
            self.phase = Phase::Resting(now);
            return Ok(());
        }
        if waited(talk.heard) > SILENCE {
            let others = talk.stranger.map_or_else(String::new, |other| {
                format!("; packets come from {other}, which is not the camera: if it is, give that address")
            });
            let malformed = self.stream.counts.packets_malformed.load(Ordering::Relaxed) - talk.malformed;
            let rubbish = match malformed {
                0 => String::new(),
                count => format!(
                    "; {count} packets came that are none of what it describes: look at its format, or at its firmware"
                ),
            };
            // Sound may have.
            let what = if self.lead.is_some() { "pictures" } else { "media" };
            let text = format!("no packet of its {what} has come for {} s{others}{rubbish}", SILENCE.as_secs());
            return Err(Trouble::Other(text));
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
                        if let Some((_, socket)) = talk.datagrams.get(&number) {
                            let _ = send_to(socket, &report, talk.peers[0], *port);
                        }
                    }
                    _ => {}
                }
            }
        }
        talk.flush()
    }
}
