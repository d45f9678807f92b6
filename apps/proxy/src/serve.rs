//! The proxy as a whole: sockets opened, workers started, everything ended in order.

use crate::config::Config;
use crate::net::{datagrams, listen};
use crate::shared::{Again, Shared};
use crate::worker::{Listening, Worker};
use multigrain::Abort;
use multigrain::jobs::{SpinLimit, Team, TeamOptions};
use multigrain_console::Failure;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

/// A proxy that has its ports and has not begun.
pub struct Proxy {
    workers: Vec<Mutex<Option<Worker>>>,
    abort: Arc<Abort>,
    /// Where it is served: each way by its option's name.
    pub places: Vec<(&'static str, SocketAddr)>,
    /// The first of the ports from which datagrams go out.
    pub udp_port: u16,
}

/// As many open files as the system grants without asking: each viewer is one.
fn allow_files() {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    // Where it is refused, connections beyond the limit are.
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, limit);
}

/// Ends the others if a worker panics.
struct Alarm<'a>(&'a Abort);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        self.0.raise();
    }
}

impl Proxy {
    /// Takes all ports.
    ///
    /// # Errors
    /// In words, with the way out.
    pub fn open(config: Config, again: Again, abort: Arc<Abort>) -> Result<Proxy, String> {
        allow_files();
        let local = |result: std::io::Result<SocketAddr>| result.map_err(|e| format!("a socket has no address: {e}"));
        let (mut listeners, mut places) = (Vec::new(), Vec::new());
        for (option, place, is_secure) in [
            ("listen", config.listen, false),
            ("http", config.http, false),
            ("rtsps", config.rtsps, true),
            ("https", config.https, true),
        ] {
            let Some(place) = place else { continue };
            let socket = listen(place, &format!("--{option}"))?;
            places.push((option, local(socket.local_addr())?));
            listeners.push(Listening { socket, is_secure });
        }
        let host = config.listen.or(config.rtsps).map_or(Ipv6Addr::UNSPECIFIED.into(), |place| place.ip());
        let udp = datagrams(host, config.udp_port).map_err(|e| match config.udp_port {
            0 => format!("cannot send datagrams: {e}"),
            port => format!("the UDP ports {port} and {} cannot be taken: {e}; give others with --udp-port", port + 1),
        })?;
        let udp_port = local(udp.0.local_addr())?.port();
        let count = config.workers;
        let shared = Arc::new(Shared::new(config, again, udp, abort.clone())?);
        let mut workers = Vec::new();
        for index in 0..count {
            let own = if index == 0 { std::mem::take(&mut listeners) } else { Vec::new() };
            workers.push(Mutex::new(Some(Worker::new(index, shared.clone(), own)?)));
        }
        Ok(Proxy { workers, abort, places, udp_port })
    }

    /// Serves until the abort flag is raised and viewers had their time.
    ///
    /// # Errors
    /// What the system refused, or a fault of the program, with the place where it is.
    pub fn serve(self) -> Result<(), Failure> {
        let count = self.workers.len();
        // Workers wait for sockets, not for each other.
        let team = Team::new(TeamOptions { workers: count, bind: false, spin: SpinLimit::SHORT });
        let team = team.map_err(|e| Failure::Run(format!("cannot start {count} threads: {e}; use fewer --workers")))?;
        let first = Mutex::new(Ok(()));
        let done = team.fork(0..count, &|worker| {
            let _alarm = Alarm(&self.abort);
            let own = self.workers[worker].lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(Err(why)) = own.map(Worker::run) {
                let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
                if first.is_ok() {
                    *first = Err(why);
                }
            }
        });
        // The hook of panics has seen where it was.
        done.map_err(|_| Failure::panicked())?;
        first.into_inner().unwrap_or_else(PoisonError::into_inner).map_err(Failure::Run)
    }
}
