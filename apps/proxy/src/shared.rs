//! What all workers know: the streams, who is there, and what one has for another.

use crate::auth::{self, Users};
use crate::config::{Config, Placement, SOURCES_MAX, Source};
use crate::connection::Connection;
use crate::counts::Counts;
use crate::dial::Dialled;
use crate::dialogue::Trouble;
use crate::feed::Batch;
use crate::inbox::Inbox;
use crate::lines::say;
use crate::session::Found;
use crate::stream::Stream;
use crate::tls::{self, Trust};
use crate::tunnel::Back;
use multigrain::Abort;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

/// Messages between two workers.
const INBOX: usize = 1024;
/// Connections that may be on their way to a worker: whoever connects again and again leaves room for packets.
const MOVING_MAX: usize = INBOX / 4;

/// How what was asked for is read again.
pub struct Again {
    /// Set when it is to be.
    pub is_wanted: Arc<AtomicBool>,
    /// Set while it is.
    pub is_being_read: AtomicBool,
    /// Who asked meanwhile was told.
    pub is_told: AtomicBool,
    /// Reads it.
    pub read: Box<dyn Fn() -> Result<Config, String> + Send + Sync>,
}

/// What is read again without losing anybody, beside the streams.
pub struct Live {
    /// Who may watch.
    pub users: Users,
    /// What viewers see who connect by TLS.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Whom we believe that connect by TLS.
    pub trust: Arc<Trust>,
}

impl Live {
    fn new(config: &Config, before: Option<&Users>) -> Result<Live, String> {
        let tls = config.certificate.as_ref().map(|(cert, key)| tls::server(cert, key)).transpose()?;
        let trust = Arc::new(Trust::new(config.trust.as_deref())?);
        let users = config.users.clone();
        Ok(Live {
            users: before.map_or_else(|| Users::new(users.clone()), |before| before.anew(users.clone())),
            tls,
            trust,
        })
    }
}

/// Who reports of datagrams from some address.
pub struct Reporter {
    /// The worker that serves it.
    pub worker: usize,
    /// What that worker has not taken yet: the next report tells the same and more.
    pub latest: Option<Vec<u8>>,
}

/// Where a viewer's tunnel is: its worker, and the address that began it.
pub type Tunnels = HashMap<String, (usize, IpAddr)>;

/// What all workers share.
pub struct Shared {
    /// What was asked for at the beginning.
    pub config: Config,
    /// By their index; none ever leaves its place.
    streams: RwLock<Vec<Arc<Stream>>>,
    live: RwLock<Arc<Live>>,
    again: Again,
    /// How often the streams have changed.
    pub version: AtomicU64,
    tunnels: Mutex<Tunnels>,
    reporters: Mutex<HashMap<SocketAddr, Vec<Reporter>>>,
    /// Who is there.
    pub counts: Arc<Counts>,
    /// How long each takes to send to its viewers, nanoseconds.
    sending: Vec<AtomicU64>,
    /// What others have for each worker.
    pub inboxes: Vec<Inbox<Post>>,
    /// Connections of these.
    moving: Vec<AtomicUsize>,
    /// Raised when it is to end.
    pub abort: Arc<Abort>,
    /// From which datagrams go to viewers.
    pub udp: (UdpSocket, UdpSocket),
    random: RandomState,
    sessions: AtomicU64,
}

/// What goes from worker to worker.
pub enum Post {
    /// Packets of a stream.
    Batch {
        /// Which.
        stream: usize,
        /// The generation of its description.
        generation: u64,
        /// The number of the batch.
        number: u64,
        /// Shared by all.
        batch: Arc<Batch>,
    },
    /// Who is to be played to.
    Adopt(Box<Connection>),
    /// The way back of a viewer with that cookie.
    Back(String, Box<Back>),
    /// Of a stream: what connecting came to.
    Dialled(usize, Dialled),
    /// Of a stream: whether a server would play that would be better.
    Checked(usize, Arc<Source>, usize, Result<(), Trouble>),
    /// The connection of that number makes room for another one.
    MakeRoom(u64),
    /// There is a report of somebody's ([`Reporter::latest`]).
    Report(SocketAddr),
}

impl Shared {
    /// What workers need, nothing running yet.
    ///
    /// # Errors
    /// In words.
    pub fn new(config: Config, again: Again, udp: (UdpSocket, UdpSocket), abort: Arc<Abort>) -> Result<Shared, String> {
        let failed =
            |e: io::Error| format!("cannot make queues between {} workers: {e}; use fewer --workers", config.workers);
        let streams = config.sources.iter().cloned().enumerate().map(|(i, source)| Arc::new(Stream::new(i, source)));
        Ok(Shared {
            streams: RwLock::new(streams.collect()),
            live: RwLock::new(Arc::new(Live::new(&config, None)?)),
            again,
            version: AtomicU64::new(0),
            tunnels: Mutex::default(),
            reporters: Mutex::default(),
            counts: Arc::new(Counts::new(config.workers)),
            sending: (0..config.workers).map(|_| AtomicU64::new(0)).collect(),
            moving: (0..config.workers).map(|_| AtomicUsize::new(0)).collect(),
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

    /// How long the slowest worker takes to send to its viewers, of late.
    pub fn sending(&self) -> Duration {
        // Relaxed: a time of a round before is as good.
        Duration::from_nanos(self.sending.iter().map(|time| time.load(Ordering::Relaxed)).max().unwrap_or(0))
    }

    /// A worker takes so long of late.
    pub fn sends_for(&self, worker: usize, time: Duration) {
        self.sending[worker].store(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Hands a connection to a worker; gives it back where too many are on their way there.
    pub fn hand_over(&self, worker: usize, connection: Box<Connection>) -> Result<(), Box<Connection>> {
        // Relaxed: nothing else is told by how many there are.
        let posted = match self.moving[worker].fetch_add(1, Ordering::Relaxed) < MOVING_MAX {
            true => self.inboxes[worker].post(Post::Adopt(connection)),
            false => Err(Post::Adopt(connection)),
        };
        match posted {
            Err(Post::Adopt(connection)) => {
                self.handed_over(worker);
                Err(connection)
            }
            _ => Ok(()),
        }
    }

    /// One that was on its way has come to a worker.
    pub fn handed_over(&self, worker: usize) {
        self.moving[worker].fetch_sub(1, Ordering::Relaxed);
    }

    /// All streams, those included that are served no more.
    pub fn streams(&self) -> Vec<Arc<Stream>> {
        self.streams.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What may change while it runs.
    pub fn live(&self) -> Arc<Live> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where tunnels are. Held for a moment only.
    pub fn tunnels(&self) -> MutexGuard<'_, Tunnels> {
        self.tunnels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who reports of datagrams, by worker: any number of viewers may say that they are there. Held for a moment only.
    pub fn reporters(&self) -> MutexGuard<'_, HashMap<SocketAddr, Vec<Reporter>>> {
        self.reporters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads again what was asked for, if that is wanted: sources that are the same go on, others begin or end. A file may take as long as it
    /// likes, so that is for a thread of its own, one at a time.
    pub fn read_again(self: &Arc<Shared>) {
        if !self.again.is_wanted.load(Ordering::Relaxed) {
            return;
        }
        if self.again.is_being_read.swap(true, Ordering::Acquire) {
            if !self.again.is_told.swap(true, Ordering::Relaxed) {
                say(
                    "the file is still being read, and is read again when it has come to an end; where it never does, such as a pipe into which \
                     nobody writes, restart the proxy",
                );
            }
            return;
        }
        let shared = self.clone();
        let read = move || {
            shared.again.is_wanted.store(false, Ordering::Relaxed);
            shared.again.is_told.store(false, Ordering::Relaxed);
            match (shared.again.read)().and_then(|config| shared.take_over(config)) {
                Ok(told) => say(&told),
                Err(why) => say(&format!("nothing is changed: {why}")),
            }
            shared.again.is_being_read.store(false, Ordering::Release);
        };
        // Who cannot be started now is started in the next round.
        if std::thread::Builder::new().name("read".to_owned()).spawn(read).is_err() {
            self.again.is_being_read.store(false, Ordering::Release);
        }
    }

    fn take_over(&self, config: Config) -> Result<String, String> {
        if self.config.certificate.is_some() && config.certificate.is_none() {
            return Err("viewers ask within TLS, and there is no certificate any more; give cert and key, or restart it without rtsps and \
                 https"
                .to_owned());
        }
        if !self.live().users.is_open() && config.users.is_empty() {
            return Err("viewers are asked who they are, and nobody is named any more: everybody would be let in; name users, or restart it \
                 to let everybody in"
                .to_owned());
        }
        let live = Live::new(&config, Some(&self.live().users))?;
        let mut streams = self.streams.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = |name: &str| !streams.iter().any(|stream| stream.name() == name);
        let new = config.sources.iter().filter(|source| is_new(&source.name)).count();
        if streams.len() + new > SOURCES_MAX {
            return Err(format!("more than {SOURCES_MAX} streams have been served by now; restart the proxy"));
        }
        for stream in streams.iter() {
            if !config.sources.iter().any(|source| source.name == stream.name()) {
                stream.is_gone.store(true, Ordering::Relaxed);
            }
        }
        for source in config.sources {
            match streams.iter().find(|stream| stream.name() == source.name) {
                Some(stream) => stream.set_source(source),
                None => {
                    let index = streams.len();
                    streams.push(Arc::new(Stream::new(index, source)));
                }
            }
        }
        let served = streams.iter().filter(|stream| !stream.is_gone.load(Ordering::Relaxed)).count();
        drop(streams);
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(live);
        self.version.fetch_add(1, Ordering::Release);
        self.inboxes.iter().for_each(Inbox::wake_up);
        Ok(format!("read again: {served} streams; ports, workers and limits stay as they were"))
    }

    /// Looks a stream up by its name, for somebody who may watch these.
    pub fn find(&self, name: &str, may: &auth::Streams) -> Found {
        if !may.has(name) {
            return Found::Nothing;
        }
        let streams = self.streams.read().unwrap_or_else(PoisonError::into_inner);
        let found = streams.iter().find(|stream| stream.name() == name && !stream.is_gone.load(Ordering::Relaxed));
        let Some(stream) = found else { return Found::Nothing };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Args;
    use crate::net::datagrams;
    use clap::Parser;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::time::Instant;

    /// Who connects again and again leaves room for packets on a worker that is busy.
    #[test]
    fn connections_take_a_part_of_the_room_between_workers() {
        let arguments = ["proxy", "-s", "rtsp://127.0.0.1:9/", "--workers", "2", "--listen", "127.0.0.1:0"];
        let config = Args::parse_from(arguments).config().unwrap();
        let again = Again {
            is_wanted: Arc::default(),
            is_being_read: false.into(),
            is_told: false.into(),
            read: Box::new(|| Err(String::new())),
        };
        let udp = datagrams(Ipv4Addr::LOCALHOST.into(), 0).unwrap();
        let shared = Shared::new(config, again, udp, Arc::new(Abort::new())).unwrap();
        let (listener, now) = (TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), Instant::now());
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let next = || {
            let counted = shared.counts.enter(Ipv4Addr::LOCALHOST.into()).0;
            let wire = socket.try_clone().unwrap().into();
            Box::new(Connection::new(wire, counted, Ipv4Addr::LOCALHOST.into(), now))
        };
        assert_eq!((0..INBOX).filter(|_| shared.hand_over(1, next()).is_ok()).count(), MOVING_MAX);
        let batch = Post::Batch { stream: 0, generation: 0, number: 0, batch: Arc::default() };
        assert!(shared.inboxes[1].post(batch).is_ok());
        // One has come: there is room for another one.
        assert!(matches!(shared.inboxes[1].come(false).next(), Some(Post::Adopt(_))));
        shared.handed_over(1);
        assert!(shared.hand_over(1, next()).is_ok() && shared.hand_over(1, next()).is_err());
    }
}
