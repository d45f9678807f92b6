//! The loop of one worker: wait for sockets, receive, hand on, send.
//!
//! Each worker owns its sockets, its sources and its viewers, and has logs of its own of all streams that its viewers may ask for;
//! between workers go batches (shared, never changed), and connections that are played elsewhere than they were accepted.
//! Worker 0 accepts. Nobody waits for another worker: who has no room for a batch misses it, and its viewers go on at the next key.

mod viewers;

use crate::config::Placement;
use crate::connection::Connection;
use crate::feed::{Batch, Feed};
use crate::net::{Poll, Ready, canonical};
use crate::pull::Pull;
use crate::shared::{Post, Shared};
use crate::stream::Stream;
use crate::tfrc::Report;
use crate::ts::Mux;
use multigrain_console::say;
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
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
