//! The loop of one worker: wait for sockets, receive, hand on, send.
//!
//! Each worker owns its sockets, its sources and its viewers, and has logs of its own of all streams that its viewers may ask for;
//! between workers go batches (shared, never changed), and connections that are played elsewhere than they were accepted.
//! Worker 0 accepts. Nobody waits for another worker: who has no room for a batch misses it, and its viewers go on at the next key.
//! That a stream has become another one is told with every batch and looked for in every round, so no message can be missed.

mod answers;
#[cfg(test)]
mod tests;
mod viewers;

use crate::config::Placement;
use crate::connection::Connection;
use crate::feed::{Batch, FRAME, Feed};
use crate::form::{FORMS, Form, Maker};
use crate::gathering::lately;
use crate::instants::Instants;
use crate::lines::Lines;
use crate::lines::say;
use crate::net::{Poll, Ready, canonical};
use crate::pull::{Brought, Pull};
use crate::receive::Receiver;
use crate::shared::{Post, Reporter, Shared};
use crate::stream::Stream;
use crate::tfrc::Report;
use crate::viewer::Flow;
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often everything is looked over.
const ROUND: Duration = Duration::from_millis(250);

const WAKE: u64 = 0;
const LISTENER: u64 = 1;
const PULL: u64 = 2;
const CONNECTION: u64 = 3;
const REPORTS: u64 = 4;

fn token(kind: u64, index: usize) -> u64 {
    kind << 56 | (index as u64) << 8
}

/// A log that this worker's viewers read: packets of a stream, or what is made of them.
struct Local {
    feed: Feed,
    viewers: Vec<usize>,
    has_news: bool,
    /// Makes another form of the packets while somebody views it.
    maker: Option<Maker>,
}

impl Local {
    /// What was made goes to the end of the log.
    fn add(&mut self, pieces: Batch) {
        if !pieces.entries.is_empty() {
            self.feed.push(self.feed.end().batch, Arc::new(pieces));
            self.has_news = true;
        }
    }
}

/// Where others connect.
pub struct Listening {
    /// Never blocks.
    pub socket: TcpListener,
    /// They speak TLS.
    pub is_secure: bool,
}

/// One worker.
pub struct Worker {
    index: usize,
    shared: Arc<Shared>,
    poll: Poll,
    listeners: Vec<Listening>,
    pulls: Vec<Pull>,
    streams: Vec<Arc<Stream>>,
    /// The state of the list of streams that is known here.
    version: u64,
    /// Each stream in each form ([`Form::feed`]).
    feeds: Vec<Local>,
    /// By stream: what its viewers here were told that it sends.
    generations: Vec<u64>,
    /// By stream: what its sender told of its clock.
    instants: Vec<Instants>,
    /// Viewers of RTSP over HTTP, by their cookies.
    tunnels: HashMap<String, usize>,
    connections: Vec<Option<Box<Connection>>>,
    free: Vec<usize>,
    /// Who reports from where.
    reporters: HashMap<SocketAddr, Vec<usize>>,
    /// Who was not heard to the end of what TLS has read, and whether that came on the way back of a tunnel.
    again: Vec<(usize, bool)>,
    looked_over: Instant,
    /// Connections within TLS that were let in.
    greeted: usize,
    draining: Option<Instant>,
    /// Nobody is let in until the next round.
    is_full: bool,
    /// About viewers, and about those who are refused, by why they are: no flood of one kind hides another.
    lines: Lines,
    refusals: [Lines; 3],
}

/// Too many are connected, too many play, or the system lets nobody in.
const CONNECTED: usize = 0;
const PLAYING: usize = 1;
const SYSTEM: usize = 2;

impl Worker {
    /// A worker with its sources; worker 0 with the listeners, too.
    ///
    /// # Errors
    /// In words.
    pub fn new(index: usize, shared: Arc<Shared>, listeners: Vec<Listening>) -> Result<Worker, String> {
        let failed = |e: io::Error| format!("cannot wait for sockets: {e}; raise the limit on open files (ulimit -n)");
        let (poll, now) = (Poll::new().map_err(failed)?, Instant::now());
        poll.add(&shared.inboxes[index].wake, token(WAKE, 0)).map_err(failed)?;
        for (number, listener) in listeners.iter().enumerate() {
            poll.add(&listener.socket, token(LISTENER, number)).map_err(failed)?;
        }
        if index == 0 {
            poll.add(&shared.udp.0, token(REPORTS, 0)).map_err(failed)?;
            poll.add(&shared.udp.1, token(REPORTS, 1)).map_err(failed)?;
        }
        let mut worker = Worker {
            index,
            poll,
            listeners,
            pulls: Vec::new(),
            streams: Vec::new(),
            version: 0,
            feeds: Vec::new(),
            generations: Vec::new(),
            instants: Vec::new(),
            tunnels: HashMap::new(),
            connections: Vec::new(),
            free: Vec::new(),
            reporters: HashMap::new(),
            again: Vec::new(),
            looked_over: now,
            greeted: 0,
            draining: None,
            is_full: false,
            lines: Lines::new(now),
            refusals: std::array::from_fn(|_| Lines::new(now)),
            shared,
        };
        worker.follow(now);
        Ok(worker)
    }

    /// Begins with streams that are new, and looks whether others have changed.
    fn follow(&mut self, now: Instant) {
        // Acquire: the list is what it was when this was counted, or later.
        self.version = self.shared.version.load(Ordering::Acquire);
        let (all, limits) = (self.shared.streams(), self.shared.config.limits);
        self.pulls.iter_mut().for_each(|pull| pull.follow(now));
        for stream in &all[self.streams.len()..] {
            if self.shared.home(stream.index) == self.index {
                self.pulls.push(Pull::new(stream.clone(), limits, token(PULL, self.pulls.len()), now));
            }
            let local =
                || Local { feed: Feed::new(limits.queue_bytes), viewers: Vec::new(), has_news: false, maker: None };
            self.feeds.extend((0..FORMS).map(|_| local()));
            self.generations.push(stream.told().generation);
            self.instants.push(Instants::default());
        }
        self.streams = all;
        for slot in 0..self.connections.len() {
            self.know_again(slot);
        }
    }

    /// Works until it is told to end.
    ///
    /// # Errors
    /// In words.
    pub fn run(mut self) -> Result<(), String> {
        let (mut ready, mut receiver): (Vec<Ready>, _) = (Vec::new(), Receiver::default());
        let mut sending = Duration::ZERO;
        loop {
            let now = Instant::now();
            let due = self.pulls.iter().map(|pull| pull.deadline(now)).min().unwrap_or(now + ROUND);
            let timeout =
                if self.again.is_empty() { due.saturating_duration_since(now).min(ROUND) } else { Duration::ZERO };
            self.poll.wait(timeout, &mut ready).map_err(|e| format!("cannot wait for sockets: {e}"))?;
            let (now, mut is_woken) = (Instant::now(), false);
            for event in &ready {
                let (kind, index) = (event.token >> 56, (event.token >> 8) as usize & 0xffff_ffff);
                match kind {
                    WAKE => is_woken = true,
                    LISTENER => self.accept(index, now),
                    PULL => {
                        if let Some(pull) = self.pulls.get_mut(index) {
                            pull.ready(event.token as u8, &self.poll, &mut receiver, now);
                        }
                    }
                    CONNECTION if event.token & 1 == 1 => self.back_is_ready(index, event.is_over, now),
                    CONNECTION => self.connection_is_ready(index, *event, now),
                    _ => self.read_reports(index, now),
                }
            }
            self.hear_again(now);
            // Whoever wakes it up has changed before what is looked at behind this.
            let shared = self.shared.clone();
            let posts = shared.inboxes[self.index].come(is_woken);
            if self.version != self.shared.version.load(Ordering::Relaxed) {
                self.follow(now);
            }
            for post in posts {
                self.receive(post, now);
            }
            let longest = self.shared.sending();
            for number in 0..self.pulls.len() {
                let (shared, home) = (self.shared.clone(), self.index);
                let pull = &mut self.pulls[number];
                let (stream, generation) = (pull.stream.index, pull.generation);
                let bring = move |brought| {
                    let mut post = match brought {
                        Brought::Dialled(dialled) => Post::Dialled(stream, dialled),
                        Brought::Checked(of, place, plays) => Post::Checked(stream, of, place, plays),
                    };
                    // This thread may wait until there is room; the worker waits for the post.
                    while let Err(back) = shared.inboxes[home].post(post) {
                        post = back;
                        std::thread::sleep(Duration::from_millis(10));
                        if shared.abort.is_raised() {
                            return;
                        }
                    }
                };
                let live = &self.shared;
                pull.tick(now, || live.live().trust.clone(), bring);
                if let Some((number, batch)) = pull.take_batch(longest, now) {
                    self.hand_on((stream, generation), number, &batch, now);
                }
            }
            if self.send(now) {
                sending = lately(sending, now.elapsed());
                self.shared.sends_for(self.index, sending);
            } else if !sending.is_zero() && self.shared.counts.viewers_of(self.index) == 0 {
                // Nobody waits for those who have gone.
                sending = Duration::ZERO;
                self.shared.sends_for(self.index, sending);
            }
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
                let viewers = self.shared.counts.viewers();
                if self.index == 0 && viewers > 0 {
                    say(&format!("ending: {viewers} viewers have {} s to leave", self.shared.config.drain.as_secs()));
                }
                *self.draining.insert(now)
            }
        };
        self.shared.counts.viewers() == 0 || now.saturating_duration_since(since) >= self.shared.config.drain
    }

    /// A batch goes to this worker's log and to those of others who may have viewers of it.
    fn hand_on(&mut self, (stream, generation): (usize, u64), number: u64, batch: &Arc<Batch>, now: Instant) {
        if self.shared.config.placement != Placement::RunToCompletion {
            for (worker, inbox) in self.shared.inboxes.iter().enumerate() {
                if worker != self.index {
                    // Who is so far behind misses it, and knows by the number.
                    let _ = inbox.post(Post::Batch { stream, generation, number, batch: batch.clone() });
                }
            }
        }
        self.log((stream, generation), number, batch, now);
    }

    /// A batch goes into the log, and into what is made of it.
    fn log(&mut self, (stream, generation): (usize, u64), number: u64, batch: &Arc<Batch>, now: Instant) {
        if stream >= self.streams.len() {
            self.follow(now);
        }
        if !self.is_of(stream, generation) {
            return;
        }
        for entry in batch.entries.iter().filter(|entry| entry.channel % 2 == 1) {
            if let Some(description) = &self.streams[stream].told().description {
                let report = &batch.bytes[entry.range()][FRAME..];
                self.instants[stream].hear(usize::from(entry.channel / 2), description, report);
            }
        }
        for form in [Form::Transport, Form::Fragments, Form::Messages] {
            let local = &mut self.feeds[form.feed(stream)];
            let Some(maker) = &mut local.maker else { continue };
            let mut pieces = maker.take(batch, &self.instants[stream], now);
            if let Some(at) = maker.anew() {
                let others = pieces.split_off(at);
                local.add(pieces);
                self.begin_anew(form.feed(stream), now);
                pieces = others;
            }
            self.feeds[form.feed(stream)].add(pieces);
        }
        let local = &mut self.feeds[Form::Packets.feed(stream)];
        local.feed.push(number, batch.clone());
        local.has_news = true;
    }

    /// The head of a form is another one from here on: who can be told in between is, and others have to ask again.
    fn begin_anew(&mut self, number: usize, now: Instant) {
        for slot in self.feeds[number].viewers.clone() {
            self.flush(slot, now);
        }
        let name = self.stream_of(number).name().to_owned();
        let queue_bytes = self.shared.config.limits.queue_bytes;
        let local = &mut self.feeds[number];
        local.feed = Feed::new(queue_bytes);
        let viewers = local.viewers.clone();
        for slot in viewers {
            let Some(connection) = self.connections[slot].as_mut() else { continue };
            if connection.is_socket {
                connection.awaits_head = true;
                connection.out.begin(&self.feeds[number].feed, now, true);
            } else {
                (connection.out.flow, connection.ends) = (Flow::Idle, true);
                self.tell(&format!("{name}: the video has other parameters; viewers of its file have to ask again"));
                self.flush(slot, now);
            }
        }
    }

    /// Whether what has a generation is for the viewers that are here; ends these if it is newer than what they were told.
    fn is_of(&mut self, stream: usize, generation: u64) -> bool {
        let known = self.generations[stream];
        if generation > known {
            self.generations[stream] = generation;
            self.end_viewers(stream);
        }
        generation >= known
    }

    /// The stream of which a log is made.
    fn stream_of(&self, feed: usize) -> &Arc<Stream> {
        &self.streams[Form::of(feed).1]
    }

    fn receive(&mut self, post: Post, now: Instant) {
        match post {
            Post::Batch { stream, generation, number, batch } => self.log((stream, generation), number, &batch, now),
            Post::Adopt(connection) => {
                self.shared.handed_over(self.index);
                let slot = self.keep(connection);
                if self.register(slot) && self.begin(slot, now) {
                    // It may hold what came before.
                    self.connection_is_ready(slot, Ready::SOME, now);
                }
            }
            Post::MakeRoom(number) => self.make_room(number),
            Post::Back(cookie, back) => self.join(&cookie, back, now),
            Post::Checked(stream, of, place, plays) => {
                if let Some(pull) = self.pulls.iter_mut().find(|pull| pull.stream.index == stream) {
                    pull.checked(&of, place, plays, now);
                }
            }
            Post::Dialled(stream, dialled) => {
                if let Some(pull) = self.pulls.iter_mut().find(|pull| pull.stream.index == stream) {
                    pull.dialled(dialled, &self.poll, now);
                }
            }
            Post::Report(from) => {
                let mut reporters = self.shared.reporters();
                let own = reporters.get_mut(&from).and_then(|all| all.iter_mut().find(|one| one.worker == self.index));
                let latest = own.and_then(|reporter| reporter.latest.take());
                drop(reporters);
                if let Some(bytes) = latest {
                    self.heard_of(from, &bytes, now);
                }
            }
        }
    }

    /// Says something about a viewer, unless too much is said.
    fn tell(&mut self, text: &str) {
        self.lines.tell(text);
    }

    /// What a stream's viewers were told about it holds no more.
    fn end_viewers(&mut self, stream: usize) {
        let feeds = Form::Packets.feed(stream)..Form::Packets.feed(stream + 1);
        let mut viewers = Vec::new();
        self.instants[stream] = Instants::default();
        for local in &mut self.feeds[feeds] {
            viewers.append(&mut local.viewers);
            local.feed = Feed::new(self.shared.config.limits.queue_bytes);
            local.maker = None;
        }
        for slot in viewers {
            self.close(slot, None);
        }
    }

    /// What viewers report about datagrams goes to the worker that serves them. Anybody may send here; what strangers send costs nobody
    /// else anything, and of somebody's reports one at a time is under way.
    fn read_reports(&mut self, which: usize, now: Instant) {
        let mut bytes = [0; 2048];
        for _ in 0..64 {
            let socket = if which == 0 { &self.shared.udp.0 } else { &self.shared.udp.1 };
            let Ok((length, from)) = socket.recv_from(&mut bytes) else { return };
            // To the first port come only packets that open the way through a firewall.
            if which == 0 {
                continue;
            }
            let (from, bytes) = (canonical(from), &bytes[..length]);
            for reporter in self.shared.reporters().get_mut(&from).into_iter().flatten() {
                if reporter.worker != self.index
                    && reporter.latest.replace(bytes.to_vec()).is_none()
                    && self.shared.inboxes[reporter.worker].post(Post::Report(from)).is_err()
                {
                    reporter.latest = None;
                }
            }
            self.heard_of(from, bytes, now);
        }
    }

    /// Somebody's reports come from there.
    fn listen_to(&mut self, from: SocketAddr, slot: usize) {
        let own = self.reporters.entry(from).or_default();
        own.push(slot);
        if own.len() == 1 {
            let own = Reporter { worker: self.index, latest: None };
            self.shared.reporters().entry(from).or_default().push(own);
        }
    }

    /// They are not for that one any more.
    fn forget(&mut self, from: SocketAddr, slot: usize) {
        let Some(own) = self.reporters.get_mut(&from) else { return };
        own.retain(|other| *other != slot);
        if own.is_empty() {
            self.reporters.remove(&from);
            let mut reporters = self.shared.reporters();
            if let Some(all) = reporters.get_mut(&from) {
                all.retain(|one| one.worker != self.index);
                if all.is_empty() {
                    reporters.remove(&from);
                }
            }
        }
    }

    /// Whoever said that it is there is told: what one has not asked for tells it nothing.
    fn heard_of(&mut self, from: SocketAddr, bytes: &[u8], now: Instant) {
        for slot in self.reporters.get(&from).into_iter().flatten() {
            let connection = self.connections[*slot].as_mut();
            let paced = connection.and_then(|connection| connection.paced.as_mut());
            if let Some(paced) = paced.filter(|paced| paced.from == from)
                && let Some(report) = Report::of(bytes, paced.source)
                && let Some(report) = paced.numbers.only(report)
            {
                paced.rate.heard(report, now);
            }
        }
    }
}
