//! The loop of one worker: wait for sockets, receive, hand on, send.
//!
//! Each worker owns its sockets, its sources and its viewers, and has logs of its own of all streams that its viewers may ask for;
//! between workers go batches (shared, never changed), and connections that are played elsewhere than they were accepted.
//! Worker 0 accepts. Nobody waits for another worker: who has no room for a batch misses it, and its viewers go on at the next key.

use crate::config::{Config, Placement};
use crate::feed::{Batch, Cursor, FRAME, Feed};
use crate::http;
use crate::net::{Inbox, Poll, Ready, canonical, is_later};
use crate::pull::{Dialled, Pull, send_to};
use crate::session::{Effect, Found, Request, Server, Way};
use crate::stream::{Stream, add};
use crate::text::{self, Bounds, Message, Protocol};
use crate::tfrc::{Rate, Report};
use crate::ts::Mux;
use crate::viewer::{Channels, Flow, Outgoing, Sent, behind_max};
use multigrain::Abort;
use multigrain_console::say;
use rustix::net::sockopt;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a viewer may say at once.
const BOUNDS: Bounds = Bounds { head_bytes: 16 << 10, body_bytes: 4 << 10 };
/// Bytes of a connection that are kept until they are a message.
const INPUT_MAX: usize = BOUNDS.head_bytes + BOUNDS.body_bytes;
/// Responses that wait for room before nothing more is read of a connection.
const OWED_MAX: usize = 64 << 10;
/// How long somebody who connected may take to ask for something.
const FIRST: Duration = Duration::from_secs(10);
/// How long somebody may be connected without playing.
const IDLE: Duration = Duration::from_secs(90);
/// How long a viewer may take nothing.
const STALL: Duration = Duration::from_secs(30);
/// How often everything is looked over.
const ROUND: Duration = Duration::from_millis(250);
/// Messages between two workers.
const INBOX: usize = 1024;
/// Connections beside those of viewers.
const OTHERS_MAX: usize = 256;

const WAKE: u64 = 0;
const LISTENER: u64 = 1;
const PULL: u64 = 2;
const CONNECTION: u64 = 3;
const REPORTS: u64 = 4;

fn token(kind: u64, index: usize) -> u64 {
    kind << 56 | (index as u64) << 8
}

/// What all workers share.
pub struct Shared {
    /// What was asked for.
    pub config: Config,
    /// By their index.
    pub streams: Vec<Arc<Stream>>,
    /// Viewers that play, by worker.
    pub playing: Vec<AtomicUsize>,
    /// Connections that were refused because there were too many.
    pub refused: AtomicU64,
    addresses: Mutex<HashMap<IpAddr, usize>>,
    connections: AtomicUsize,
    inboxes: Vec<Inbox<Post>>,
    /// Raised when it is to end.
    pub abort: Arc<Abort>,
    /// From which datagrams go to viewers.
    udp: (UdpSocket, UdpSocket),
    random: RandomState,
    sessions: AtomicU64,
}

/// What goes from worker to worker.
enum Post {
    Batch(usize, u64, Arc<Batch>),
    Adopt(Box<Connection>),
    Dialled(usize, Dialled),
    /// The stream is another one now.
    Other(usize),
    /// What somebody reports of datagrams.
    Report(SocketAddr, Vec<u8>),
}

impl Shared {
    /// What workers need, nothing running yet.
    ///
    /// # Errors
    /// In words.
    pub fn new(config: Config, udp: (UdpSocket, UdpSocket), abort: Arc<Abort>) -> Result<Shared, String> {
        let failed =
            |e: io::Error| format!("cannot make queues between {} workers: {e}; use fewer --workers", config.workers);
        let streams = config.sources.iter().cloned().enumerate().map(|(i, source)| Arc::new(Stream::new(i, source)));
        Ok(Shared {
            streams: streams.collect(),
            playing: (0..config.workers).map(|_| AtomicUsize::new(0)).collect(),
            refused: AtomicU64::new(0),
            addresses: Mutex::default(),
            connections: AtomicUsize::new(0),
            inboxes: (0..config.workers).map(|_| Inbox::new(INBOX)).collect::<io::Result<_>>().map_err(failed)?,
            abort,
            udp,
            random: RandomState::new(),
            sessions: AtomicU64::new(0),
            config,
        })
    }

    /// All viewers that play.
    pub fn viewers(&self) -> usize {
        self.playing.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// The worker that pulls a stream.
    fn home(&self, stream: usize) -> usize {
        match self.config.placement {
            Placement::Pipelined => 0,
            Placement::Spread | Placement::RunToCompletion => stream % self.config.workers,
        }
    }

    /// The worker that is to serve a new viewer.
    fn place(&self, stream: usize) -> usize {
        let workers = self.config.workers;
        let candidates = match self.config.placement {
            Placement::RunToCompletion => return self.home(stream),
            Placement::Pipelined if workers > 1 => 1..workers,
            Placement::Pipelined | Placement::Spread => 0..workers,
        };
        candidates.min_by_key(|worker| self.playing[*worker].load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Looks a stream up by its name.
    pub fn find(&self, name: &str) -> Found {
        let Some(stream) = self.streams.iter().find(|stream| stream.name() == name) else { return Found::Nothing };
        let told = stream.told();
        match &told.description {
            None => Found::NotYet,
            Some(description) => {
                Found::Stream { index: stream.index, description: description.clone(), generation: told.generation }
            }
        }
    }

    fn ports(&self) -> Option<(u16, u16)> {
        Some((self.udp.0.local_addr().ok()?.port(), self.udp.1.local_addr().ok()?.port()))
    }

    /// A name for a session that nobody guesses.
    fn session(&self) -> String {
        format!("{:016x}", self.random.hash_one(self.sessions.fetch_add(1, Ordering::Relaxed)))
    }
}

/// Counts a connection as long as it lives.
struct Counted {
    shared: Arc<Shared>,
    peer: IpAddr,
    /// The worker on which it plays, if it does.
    plays: Option<usize>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut addresses = self.shared.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = addresses.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                addresses.remove(&self.peer);
            }
        }
        self.shared.connections.fetch_sub(1, Ordering::Relaxed);
        if let Some(worker) = self.plays {
            self.shared.playing[worker].fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Somebody who connected.
struct Connection {
    socket: TcpStream,
    peer: IpAddr,
    input: Vec<u8>,
    out: Outgoing,
    server: Server,
    /// The log that is played.
    feed: Option<usize>,
    /// The log that was asked for by HTTP.
    wants: Option<usize>,
    /// Packets go as datagrams, to the ports of each track.
    is_udp: bool,
    /// Of the first track that goes as datagrams: its rate, its number, its sender.
    paced: Option<Paced>,
    has_asked: bool,
    heard: Instant,
    /// When what is owed is sent, it ends.
    ends: bool,
    /// What is waited for, as it was registered.
    waits: (bool, bool),
    counted: Counted,
}

/// How much of a track a viewer gets.
struct Paced {
    rate: Rate,
    track: usize,
    /// As the viewer sees it.
    source: u32,
    /// From where reports come.
    from: SocketAddr,
}

/// A log that this worker's viewers read: packets of a stream, or what is made of them.
struct Local {
    feed: Feed,
    viewers: Vec<usize>,
    has_news: bool,
    /// Makes a transport stream of the packets while somebody views it.
    mux: Option<Mux>,
}

/// One worker.
pub struct Worker {
    index: usize,
    shared: Arc<Shared>,
    poll: Poll,
    listeners: Vec<TcpListener>,
    pulls: Vec<Pull>,
    /// Packets of each stream, then the transport stream of each.
    feeds: Vec<Local>,
    connections: Vec<Option<Box<Connection>>>,
    free: Vec<usize>,
    /// Who reports from where.
    reporters: HashMap<SocketAddr, usize>,
    looked_over: Instant,
    draining: Option<Instant>,
    /// Nobody is let in until the next round.
    is_full: bool,
}

impl Worker {
    /// A worker with its sources; worker 0 with the listeners, too.
    ///
    /// # Errors
    /// In words.
    pub fn new(index: usize, shared: Arc<Shared>, listeners: Vec<TcpListener>) -> Result<Worker, String> {
        let failed = |e: io::Error| format!("cannot wait for sockets: {e}; raise the limit on open files (ulimit -n)");
        let (poll, now) = (Poll::new().map_err(failed)?, Instant::now());
        poll.add(&shared.inboxes[index].wake, token(WAKE, 0)).map_err(failed)?;
        for (number, listener) in listeners.iter().enumerate() {
            poll.add(listener, token(LISTENER, number)).map_err(failed)?;
        }
        if index == 0 {
            poll.add(&shared.udp.0, token(REPORTS, 0)).map_err(failed)?;
            poll.add(&shared.udp.1, token(REPORTS, 1)).map_err(failed)?;
        }
        let own = shared.streams.iter().filter(|stream| shared.home(stream.index) == index);
        let limits = shared.config.limits;
        let pulls = own.enumerate().map(|(n, stream)| Pull::new(stream.clone(), limits, token(PULL, n), now)).collect();
        let local = || Local { feed: Feed::new(limits.queue_bytes), viewers: Vec::new(), has_news: false, mux: None };
        Ok(Worker {
            index,
            poll,
            listeners,
            pulls,
            feeds: (0..2 * shared.streams.len()).map(|_| local()).collect(),
            connections: Vec::new(),
            free: Vec::new(),
            reporters: HashMap::new(),
            looked_over: now,
            draining: None,
            is_full: false,
            shared,
        })
    }

    /// Works until it is told to end.
    ///
    /// # Errors
    /// In words.
    pub fn run(mut self) -> Result<(), String> {
        let mut ready: Vec<Ready> = Vec::new();
        loop {
            let now = Instant::now();
            let due = self.pulls.iter().map(|pull| pull.deadline(now)).min().unwrap_or(now + ROUND);
            let timeout = due.saturating_duration_since(now).clamp(Duration::from_micros(100), ROUND);
            self.poll.wait(timeout, &mut ready).map_err(|e| format!("cannot wait for sockets: {e}"))?;
            let now = Instant::now();
            for event in &ready {
                let (kind, index) = (event.token >> 56, (event.token >> 8) as usize & 0xffff_ffff);
                match kind {
                    WAKE => self.shared.inboxes[self.index].woken(),
                    LISTENER => self.accept(index, now),
                    PULL => self.pull_is_ready(index, event.token as u8, now),
                    CONNECTION => self.connection_is_ready(index, *event, now),
                    _ => self.read_reports(index, now),
                }
            }
            while let Some(post) = self.shared.inboxes[self.index].take() {
                self.receive(post, now);
            }
            for number in 0..self.pulls.len() {
                let (shared, home) = (self.shared.clone(), self.index);
                let pull = &mut self.pulls[number];
                let stream = pull.stream.index;
                pull.tick(now, move |dialled| {
                    shared.inboxes[home].post(Post::Dialled(stream, dialled));
                });
                if let Some((number, batch)) = pull.take_batch(now) {
                    self.hand_on(stream, number, &batch, now);
                }
            }
            self.send(now);
            if now.saturating_duration_since(self.looked_over) >= ROUND {
                self.looked_over = now;
                self.look_over(now);
            }
            if self.is_over(now) {
                self.pulls.iter_mut().for_each(Pull::close);
                return Ok(());
            }
        }
    }

    fn is_over(&mut self, now: Instant) -> bool {
        if !self.shared.abort.is_raised() {
            return false;
        }
        let since = match self.draining {
            Some(since) => since,
            None => {
                self.listeners.clear();
                let viewers = self.shared.viewers();
                if self.index == 0 && viewers > 0 {
                    say(&format!("ending: {viewers} viewers have {} s to leave", self.shared.config.drain.as_secs()));
                }
                *self.draining.insert(now)
            }
        };
        self.shared.viewers() == 0 || now.saturating_duration_since(since) >= self.shared.config.drain
    }

    /// A batch goes to this worker's log and to those of others who may have viewers of it.
    fn hand_on(&mut self, stream: usize, number: u64, batch: &Arc<Batch>, now: Instant) {
        if self.shared.config.placement != Placement::RunToCompletion {
            for (worker, inbox) in self.shared.inboxes.iter().enumerate() {
                if worker != self.index {
                    inbox.post(Post::Batch(stream, number, batch.clone()));
                }
            }
        }
        self.log(stream, number, batch, now);
    }

    /// A batch goes into the log, and into what is made of it.
    fn log(&mut self, stream: usize, number: u64, batch: &Arc<Batch>, now: Instant) {
        let made = stream + self.shared.streams.len();
        if let Some(mux) = &mut self.feeds[made].mux {
            let pieces = mux.take(batch, now);
            if !pieces.entries.is_empty() {
                let local = &mut self.feeds[made];
                local.feed.push(local.feed.end().batch, Arc::new(pieces));
                local.has_news = true;
            }
        }
        let local = &mut self.feeds[stream];
        local.feed.push(number, batch.clone());
        local.has_news = true;
    }

    /// The stream of which a log is made.
    fn stream_of(&self, feed: usize) -> &Arc<Stream> {
        &self.shared.streams[feed % self.shared.streams.len()]
    }

    fn receive(&mut self, post: Post, now: Instant) {
        match post {
            Post::Batch(stream, number, batch) => self.log(stream, number, &batch, now),
            Post::Adopt(connection) => {
                let slot = self.keep(connection);
                if self.register(slot) {
                    self.begin(slot, now);
                    self.serve(slot, now);
                }
            }
            Post::Dialled(stream, dialled) => {
                if let Some(pull) = self.pulls.iter_mut().find(|pull| pull.stream.index == stream) {
                    pull.dialled(dialled, &self.poll, now);
                }
            }
            Post::Other(stream) => self.end_viewers(stream),
            Post::Report(from, bytes) => self.heard_of(from, &bytes, now),
        }
    }

    fn pull_is_ready(&mut self, index: usize, which: u8, now: Instant) {
        let Some(pull) = self.pulls.get_mut(index) else { return };
        let stream = pull.stream.index;
        if pull.ready(which, &self.poll, now).is_other {
            for (worker, inbox) in self.shared.inboxes.iter().enumerate() {
                if worker != self.index {
                    inbox.post(Post::Other(stream));
                }
            }
            self.end_viewers(stream);
        }
    }

    /// What a stream's viewers were told about it holds no more.
    fn end_viewers(&mut self, stream: usize) {
        let name = self.shared.streams[stream].name();
        let feeds = [stream, stream + self.shared.streams.len()];
        let mut viewers = std::mem::take(&mut self.feeds[feeds[0]].viewers);
        viewers.append(&mut self.feeds[feeds[1]].viewers);
        if !viewers.is_empty() {
            say(&format!("{name}: it sends something else now; its {} viewers have to ask again", viewers.len()));
        }
        for feed in feeds {
            self.feeds[feed].feed = Feed::new(self.shared.config.limits.queue_bytes);
            self.feeds[feed].mux = None;
        }
        for slot in viewers {
            self.close(slot, None);
        }
    }

    fn accept(&mut self, listener: usize, now: Instant) {
        loop {
            let Some(waiting) = self.listeners.get(listener) else { return };
            let (socket, peer) = match accepted(waiting) {
                Ok(connected) => connected,
                Err(e) if is_later(&e) || e.kind() == io::ErrorKind::ConnectionAborted => return,
                Err(e) => {
                    // Such as no more files: others are let in when some have gone.
                    say(&format!("cannot let anybody in: {e}; raise the limit on open files (ulimit -n)"));
                    self.is_full = true;
                    return self.listeners.iter().for_each(|listener| self.poll.remove(listener));
                }
            };
            let limits = &self.shared.config.limits;
            let peer = canonical(peer).ip();
            let all = self.shared.connections.fetch_add(1, Ordering::Relaxed);
            let mut addresses = self.shared.addresses.lock().unwrap_or_else(PoisonError::into_inner);
            let own = addresses.entry(peer).or_insert(0);
            *own += 1;
            let (own, most) = (*own, limits.connections_an_address);
            drop(addresses);
            let counted = Counted { shared: self.shared.clone(), peer, plays: None };
            if own > most || all >= limits.viewers + OTHERS_MAX {
                if self.shared.refused.fetch_add(1, Ordering::Relaxed).is_power_of_two() {
                    say(&format!(
                        "{peer} is refused: it has {own} connections (--connections-an-address {most}), all have {}",
                        all + 1
                    ));
                }
                continue;
            }
            let connection = Connection {
                socket,
                peer,
                input: Vec::new(),
                out: Outgoing::new(now),
                server: Server::default(),
                feed: None,
                wants: None,
                is_udp: false,
                paced: None,
                has_asked: false,
                heard: now,
                ends: false,
                waits: (true, false),
                counted,
            };
            let slot = self.keep(Box::new(connection));
            self.register(slot);
        }
    }

    fn keep(&mut self, connection: Box<Connection>) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        self.connections[slot] = Some(connection);
        slot
    }

    fn register(&mut self, slot: usize) -> bool {
        let Some(connection) = self.connections[slot].as_mut() else { return false };
        connection.waits = (true, false);
        let added = self.poll.add(&connection.socket, token(CONNECTION, slot)).is_ok();
        if !added {
            self.close(slot, None);
        }
        added
    }

    /// Takes a connection out of everything.
    fn take(&mut self, slot: usize) -> Option<Box<Connection>> {
        let connection = self.connections.get_mut(slot)?.take()?;
        self.free.push(slot);
        if let Some(paced) = &connection.paced {
            self.reporters.remove(&paced.from);
        }
        if let Some(local) = connection.feed.and_then(|feed| self.feeds.get_mut(feed)) {
            local.viewers.retain(|viewer| *viewer != slot);
        }
        Some(connection)
    }

    fn close(&mut self, slot: usize, why: Option<&str>) {
        let Some(connection) = self.take(slot) else { return };
        let peer = connection.peer;
        match (connection.feed, why) {
            (Some(feed), why) => {
                say(&format!("{}: viewer {peer} {}", self.stream_of(feed).name(), why.unwrap_or("is gone")));
            }
            (None, Some(why)) => say(&format!("{peer} {why}")),
            (None, None) => {}
        }
    }

    fn connection_is_ready(&mut self, slot: usize, event: Ready, now: Instant) {
        let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut) else { return };
        if event.can_write {
            connection.out.is_blocked = false;
        }
        if event.can_read && !self.read(slot, now) {
            return self.close(slot, None);
        }
        self.serve(slot, now);
    }

    /// Reads what a viewer says; false at the end.
    fn read(&mut self, slot: usize, now: Instant) -> bool {
        let Some(connection) = self.connections[slot].as_mut() else { return true };
        let mut bytes = [0; 8192];
        while connection.input.len() < INPUT_MAX {
            match connection.socket.read(&mut bytes) {
                Ok(0) => return false,
                Ok(count) => {
                    connection.input.extend_from_slice(&bytes[..count]);
                    connection.heard = now;
                    if count < bytes.len() {
                        break;
                    }
                }
                Err(e) if is_later(&e) => break,
                Err(_) => return false,
            }
        }
        true
    }

    /// Answers what was asked as far as responses have room, and sends.
    fn serve(&mut self, slot: usize, now: Instant) {
        while let Some(connection) = self.connections[slot].as_mut().filter(|c| !c.ends && c.out.owed() < OWED_MAX) {
            match text::take(&connection.input, BOUNDS) {
                Ok(None) if connection.input.len() < INPUT_MAX => break,
                // A frame of data that is larger than any report.
                Ok(None) => return self.close(slot, None),
                Ok(Some((message, length))) => {
                    connection.input.drain(..length);
                    if !self.answer(slot, message, now) {
                        return;
                    }
                }
                Err(why) => {
                    connection.ends = true;
                    let protocol = if connection.input.first() == Some(&b'R') { "RTSP/1.0" } else { "HTTP/1.1" };
                    let status = if matches!(why, text::Malformed::Head(_)) { 431 } else { 400 };
                    let line = format!("{protocol} {status} {}", text::reason(status));
                    connection.out.say(&text::write(&line, &[("Connection", "close")], &[]));
                }
            }
        }
        self.flush(slot, now);
    }

    /// Answers one message; false if the connection is no longer this worker's.
    fn answer(&mut self, slot: usize, message: Message, now: Instant) -> bool {
        let Some(connection) = self.connections[slot].as_mut() else { return false };
        let Message::Request { protocol, method, target, headers, .. } = message else { return true };
        connection.has_asked = true;
        if protocol == Protocol::Http {
            match http::answer(&self.shared, &method, &target) {
                http::Answer::Whole(response) => {
                    connection.out.say(&response);
                    connection.ends = true;
                    return true;
                }
                http::Answer::Stream(stream) => {
                    connection.wants = Some(stream + self.shared.streams.len());
                    return self.play(slot, now);
                }
            }
        }
        let shared = &self.shared;
        let request = Request { method: &method, target: &target, headers: &headers };
        let (response, effect) =
            connection.server.answer(request, &|name| shared.find(name), shared.ports(), || shared.session());
        connection.out.say(&response);
        match effect {
            Effect::None => {}
            Effect::End => connection.ends = true,
            Effect::Pause => connection.out.flow = Flow::Idle,
            Effect::Play => return self.play(slot, now),
        }
        true
    }

    /// Lets a viewer play where it is to be played.
    fn play(&mut self, slot: usize, now: Instant) -> bool {
        let shared = self.shared.clone();
        let Some(connection) = self.connections[slot].as_mut() else { return false };
        let session = connection.server.session.as_ref();
        let Some(feed) = connection.wants.or(session.map(|session| session.stream)) else { return true };
        let stream = feed % shared.streams.len();
        let is_outdated = connection.server.is_outdated(shared.streams[stream].told().generation);
        let is_full =
            connection.feed.is_none() && (shared.viewers() >= shared.config.limits.viewers || self.draining.is_some());
        if is_outdated || is_full {
            shared.refused.fetch_add(1, Ordering::Relaxed);
            let response = match connection.wants {
                Some(_) => http::full(),
                None => connection.server.plain(if is_outdated { 454 } else { 503 }),
            };
            connection.out.say(&response);
            connection.ends = true;
            return true;
        }
        if connection.feed.is_none() {
            let target = shared.place(stream);
            connection.counted.plays = Some(target);
            shared.playing[target].fetch_add(1, Ordering::Relaxed);
            if target != self.index {
                self.poll.remove(&connection.socket);
                if let Some(connection) = self.take(slot) {
                    shared.inboxes[target].post(Post::Adopt(connection));
                }
                return false;
            }
        }
        self.begin(slot, now);
        true
    }

    /// Plays to a viewer from now on, here.
    fn begin(&mut self, slot: usize, now: Instant) {
        let Some(connection) = self.connections[slot].as_mut() else { return };
        let session = connection.server.session.as_ref();
        let Some(feed) = connection.wants.or(session.map(|session| session.stream)) else { return };
        let stream = &self.shared.streams[feed % self.shared.streams.len()];
        let local = &mut self.feeds[feed];
        let way = if let Some(session) = session.filter(|_| connection.wants.is_none()) {
            let tracks = connection.server.description().map_or(0, |description| description.tracks.len());
            connection.is_udp = session.ways.iter().flatten().any(|way| matches!(way, Way::Ports(..)));
            connection.out.channels = Channels::of(&session.ways, tracks);
            // A burst of old pictures is what a connection can take; datagrams begin with what comes.
            connection.out.begin(&local.feed, now, !connection.is_udp);
            let from = match connection.out.flow {
                Flow::At(cursor) => Some(cursor),
                _ => None,
            };
            let response = connection.server.playing(&|track| local.feed.first_of(from?, 2 * track as u8));
            connection.out.say(&response);
            let track = session.ways.iter().position(|way| matches!(way, Some(Way::Ports(..))));
            if let Some((track, Some(Way::Ports(_, port)))) = track.map(|track| (track, session.ways[track])) {
                let from = SocketAddr::new(connection.peer, port);
                self.reporters.insert(from, slot);
                connection.paced = Some(Paced { rate: Rate::new(now), track, source: 0, from });
            }
            if connection.is_udp { "RTSP and UDP" } else { "RTSP" }
        } else {
            if local.mux.is_none() {
                local.mux = stream.told().description.as_ref().map(|description| Mux::new(description, now));
            }
            connection.out.begin(&local.feed, now, true);
            connection.out.say(&http::stream_head());
            "HTTP"
        };
        if connection.feed.replace(feed).is_none() {
            local.viewers.push(slot);
            add(&stream.counts.viewers_served, 1);
            say(&format!("{}: viewer {} plays by {way}", stream.name(), connection.peer));
        }
    }

    /// Sends to the viewers of streams that have news.
    fn send(&mut self, now: Instant) {
        for stream in 0..self.feeds.len() {
            if !std::mem::take(&mut self.feeds[stream].has_news) {
                continue;
            }
            let viewers = std::mem::take(&mut self.feeds[stream].viewers);
            for slot in &viewers {
                if self.connections[*slot].as_ref().is_some_and(|c| !c.out.is_blocked || c.out.flow != Flow::Idle) {
                    self.flush(*slot, now);
                }
            }
            let connections = &self.connections;
            let gone = |slot: &usize| connections[*slot].as_ref().is_none_or(|c| c.feed != Some(stream));
            self.feeds[stream].viewers = viewers.into_iter().filter(|slot| !gone(slot)).collect();
        }
    }

    /// Sends what there is for one connection.
    fn flush(&mut self, slot: usize, now: Instant) {
        let Some(connection) = self.connections[slot].as_mut() else { return };
        let feed = connection.feed.map(|feed| &self.feeds[feed].feed);
        let stream = connection.feed.map(|feed| feed % self.shared.streams.len());
        let mut sent = Sent::default();
        if let Some((feed, stream)) = feed.zip(stream) {
            if connection.out.keep_up(feed, behind_max(self.shared.config.limits.queue_bytes), now) {
                add(&self.shared.streams[stream].counts.viewers_behind, 1);
            }
            if connection.is_udp {
                let before = connection.out.flow;
                sent = send_datagrams(connection, feed, &self.shared.udp, now);
                if let (Flow::At(_), Flow::Waiting(..)) = (before, connection.out.flow) {
                    add(&self.shared.streams[stream].counts.viewers_behind, 1);
                }
            }
        }
        let feed = feed.filter(|_| !connection.is_udp);
        let mut result = Ok(Sent::default());
        if !connection.out.is_blocked {
            result = connection.out.send(&mut connection.socket, feed, now);
        }
        match result {
            Err(_) => return self.close(slot, None),
            Ok(more) => {
                sent.packets += more.packets;
                sent.bytes += more.bytes;
            }
        }
        if let Some(stream) = stream {
            let counts = &self.shared.streams[stream].counts;
            add(&counts.packets_sent, sent.packets);
            add(&counts.bytes_sent, sent.bytes);
        }
        if connection.ends && connection.out.owed() == 0 {
            let _ = connection.socket.shutdown(std::net::Shutdown::Write);
            return self.close(slot, None);
        }
        let has_room = connection.out.owed() < OWED_MAX && !connection.ends;
        let waits = (has_room && connection.input.len() < INPUT_MAX, connection.out.is_blocked);
        if waits != connection.waits {
            connection.waits = waits;
            self.poll.wants(&connection.socket, token(CONNECTION, slot), waits.0, waits.1);
        }
    }

    /// Ends connections whose time is over, and what nobody views any more.
    fn look_over(&mut self, now: Instant) {
        if std::mem::take(&mut self.is_full) {
            for (number, listener) in self.listeners.iter().enumerate() {
                let _ = self.poll.add(listener, token(LISTENER, number));
            }
        }
        for local in &mut self.feeds {
            if local.viewers.is_empty() && local.mux.take().is_some() {
                local.feed = Feed::new(self.shared.config.limits.queue_bytes);
            }
        }
        for slot in 0..self.connections.len() {
            let Some(connection) = self.connections[slot].as_ref() else { continue };
            let silent = now.saturating_duration_since(connection.heard);
            let stuck = connection.out.is_blocked && now.saturating_duration_since(connection.out.moved) > STALL;
            let why = match connection.feed {
                _ if stuck => Some("has taken nothing for 30 s and is cut off"),
                None if !connection.has_asked && silent > FIRST => Some("asked for nothing and is cut off"),
                None if silent > IDLE => Some("has not played for 90 s and is cut off"),
                _ => None,
            };
            if why.is_some() {
                self.close(slot, why);
            }
        }
    }

    /// What viewers report about datagrams goes to the worker that serves them, which only that worker knows.
    fn read_reports(&mut self, which: usize, now: Instant) {
        let mut bytes = [0; 2048];
        for _ in 0..64 {
            let socket = if which == 0 { &self.shared.udp.0 } else { &self.shared.udp.1 };
            let Ok((length, from)) = socket.recv_from(&mut bytes) else { return };
            // To the first port come only packets that open the way through a firewall.
            if which == 1 {
                let (from, bytes) = (canonical(from), &bytes[..length]);
                self.heard_of(from, bytes, now);
                for inbox in self.shared.inboxes.iter().skip(1) {
                    inbox.post(Post::Report(from, bytes.to_vec()));
                }
            }
        }
    }

    fn heard_of(&mut self, from: SocketAddr, bytes: &[u8], now: Instant) {
        let connection = self.reporters.get(&from).and_then(|slot| self.connections[*slot].as_mut());
        if let Some(paced) = connection.and_then(|connection| connection.paced.as_mut())
            && let Some(report) = Report::of(bytes, paced.source)
        {
            paced.rate.heard(report, now);
        }
    }
}

/// The next who wants to connect.
fn accepted(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (socket, peer) = listener.accept()?;
    socket.set_nonblocking(true)?;
    let _ = socket.set_nodelay(true);
    // Who vanishes without a word is found out.
    let _ = sockopt::set_socket_keepalive(&socket, true);
    let _ = sockopt::set_tcp_keepidle(&socket, Duration::from_secs(30));
    let _ = sockopt::set_tcp_keepintvl(&socket, Duration::from_secs(10));
    let _ = sockopt::set_tcp_keepcnt(&socket, 3);
    Ok((socket, peer))
}

/// Everything that has come goes out as datagrams, as far as the viewer's rate allows another picture; what the system has no
/// room for is lost, as on any network.
fn send_datagrams(connection: &mut Connection, feed: &Feed, udp: &(UdpSocket, UdpSocket), now: Instant) -> Sent {
    let (mut sent, Flow::At(from)) = (Sent::default(), connection.out.flow) else { return Sent::default() };
    let Some(session) = &connection.server.session else { return sent };
    for (number, batch) in feed.from(from) {
        let first = if number == from.batch { from.entry } else { 0 };
        for (index, entry) in batch.entries.iter().enumerate().skip(first) {
            let (track, is_report) = (usize::from(entry.channel / 2), entry.channel % 2 == 1);
            let Some(Way::Ports(packets, reports)) = session.ways.get(track).copied().flatten() else { continue };
            let bytes = &batch.bytes[entry.range()][FRAME..];
            if let Some(paced) = connection.paced.as_mut().filter(|paced| paced.track == track) {
                if entry.is_start && !paced.rate.allows(now) {
                    connection.out.flow = Flow::Waiting(Cursor { batch: number, entry: index + 1 }, now);
                    return sent;
                }
                match (is_report, bytes) {
                    (false, [_, _, _, _, _, _, _, _, a, b, c, d, ..]) => {
                        paced.source = u32::from_be_bytes([*a, *b, *c, *d]);
                        paced.rate.went(bytes.len());
                    }
                    (true, [_, 200, _, _, _, _, _, _, _, _, a, b, c, d, ..]) => {
                        paced.rate.reported(u32::from_be_bytes([*a, *b, *c, *d]), now);
                    }
                    _ => {}
                }
            }
            let (socket, port) = if is_report { (&udp.1, reports) } else { (&udp.0, packets) };
            if send_to(socket, bytes, connection.peer, port).is_ok() {
                sent.packets += 1;
                sent.bytes += bytes.len() as u64;
            }
        }
    }
    connection.out.flow = Flow::At(feed.end());
    sent
}
