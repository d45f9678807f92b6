//! What all workers know: the streams, who is there, and what one has for another.

use crate::config::{Config, Placement};
use crate::connection::Connection;
use crate::counts::Counts;
use crate::dial::Dialled;
use crate::feed::Batch;
use crate::net::Inbox;
use crate::session::Found;
use crate::stream::Stream;
use multigrain::Abort;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Messages between two workers.
const INBOX: usize = 1024;

/// What all workers share.
pub struct Shared {
    /// What was asked for.
    pub config: Config,
    /// By their index.
    pub streams: Vec<Arc<Stream>>,
    /// Who is there.
    pub counts: Arc<Counts>,
    /// What others have for each worker.
    pub inboxes: Vec<Inbox<Post>>,
    /// Raised when it is to end.
    pub abort: Arc<Abort>,
    /// From which datagrams go to viewers.
    pub udp: (UdpSocket, UdpSocket),
    random: RandomState,
    sessions: AtomicU64,
}

/// What goes from worker to worker.
pub enum Post {
    /// Of a stream: its number, and packets.
    Batch(usize, u64, Arc<Batch>),
    /// Who is to be played to.
    Adopt(Box<Connection>),
    /// Of a stream: what connecting came to.
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
            counts: Arc::new(Counts::new(config.workers)),
            inboxes: (0..config.workers).map(|_| Inbox::new(INBOX)).collect::<io::Result<_>>().map_err(failed)?,
            abort,
            udp,
            random: RandomState::new(),
            sessions: AtomicU64::new(0),
            config,
        })
    }

    /// The worker that pulls a stream.
    pub fn home(&self, stream: usize) -> usize {
        match self.config.placement {
            Placement::Pipelined => 0,
            Placement::Spread | Placement::RunToCompletion => stream % self.config.workers,
        }
    }

    /// The worker that is to serve a new viewer.
    pub fn place(&self, stream: usize) -> usize {
        let workers = self.config.workers;
        let candidates = match self.config.placement {
            Placement::RunToCompletion => return self.home(stream),
            Placement::Pipelined if workers > 1 => 1..workers,
            Placement::Pipelined | Placement::Spread => 0..workers,
        };
        candidates.min_by_key(|worker| self.counts.viewers_of(*worker)).unwrap_or(0)
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

    /// From which ports datagrams and reports go to viewers.
    pub fn ports(&self) -> Option<(u16, u16)> {
        Some((self.udp.0.local_addr().ok()?.port(), self.udp.1.local_addr().ok()?.port()))
    }

    /// A name for a session that nobody guesses.
    pub fn session(&self) -> String {
        format!("{:016x}", self.random.hash_one(self.sessions.fetch_add(1, Ordering::Relaxed)))
    }
}
