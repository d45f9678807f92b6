//! How many are connected, from which addresses, and how many play, each counted as long as it lasts.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What all workers count.
pub struct Counts {
    /// Viewers that play, by worker.
    playing: Vec<AtomicUsize>,
    refused: AtomicU64,
    addresses: Mutex<HashMap<IpAddr, usize>>,
    connections: AtomicUsize,
}

impl Counts {
    /// Of so many workers; nobody is there.
    pub fn new(workers: usize) -> Counts {
        Counts {
            playing: (0..workers).map(|_| AtomicUsize::new(0)).collect(),
            refused: AtomicU64::new(0),
            addresses: Mutex::default(),
            connections: AtomicUsize::new(0),
        }
    }

    /// All viewers that play.
    pub fn viewers(&self) -> usize {
        (0..self.playing.len()).map(|worker| self.viewers_of(worker)).sum()
    }

    /// Those that a worker plays to.
    pub fn viewers_of(&self, worker: usize) -> usize {
        self.playing[worker].load(Ordering::Relaxed)
    }

    /// Counts one who is refused because there are too many, and says how many were before.
    pub fn refuse(&self) -> u64 {
        self.refused.fetch_add(1, Ordering::Relaxed)
    }

    /// Who was refused so far.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Counts a connection from `peer` as long as what is returned lives; the connections from there, and all, with it.
    pub fn enter(self: &Arc<Counts>, peer: IpAddr) -> (Counted, usize, usize) {
        let all = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let own = addresses.entry(peer).or_insert(0);
        *own += 1;
        (Counted { counts: self.clone(), peer, plays: None }, *own, all)
    }
}

/// Counts a connection as long as it lives.
pub struct Counted {
    counts: Arc<Counts>,
    peer: IpAddr,
    /// The worker on which it plays, if it does.
    plays: Option<usize>,
}

impl Counted {
    /// Counts it among the viewers of a worker, too.
    pub fn plays_on(&mut self, worker: usize) {
        self.counts.playing[worker].fetch_add(1, Ordering::Relaxed);
        if let Some(before) = self.plays.replace(worker) {
            self.counts.playing[before].fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut addresses = self.counts.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = addresses.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                addresses.remove(&self.peer);
            }
        }
        self.counts.connections.fetch_sub(1, Ordering::Relaxed);
        if let Some(worker) = self.plays {
            self.counts.playing[worker].fetch_sub(1, Ordering::Relaxed);
        }
    }
}
