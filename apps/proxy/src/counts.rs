//! How many are connected, from which addresses, and how many play, each counted as long as it lasts.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Wrong passwords of one place in a minute, after which nothing that is said from there is looked at until it is over.
const WRONGS_MAX: u32 = 20;
const WRONGS_FOR: Duration = Duration::from_secs(60);

/// Whom an address belongs to: of IPv6 a computer has 2^64.
pub fn site(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        v4 => v4,
    }
}

/// Wrong passwords lately, by place.
#[derive(Default)]
struct Wrongs {
    since: Option<Instant>,
    by: HashMap<IpAddr, u32>,
}

/// What all workers count.
pub struct Counts {
    /// Viewers that play, by worker.
    playing: Vec<AtomicUsize>,
    refused: AtomicU64,
    wrongs: Mutex<Wrongs>,
    addresses: Mutex<HashMap<IpAddr, usize>>,
    connections: AtomicUsize,
}

impl Counts {
    /// Of so many workers; nobody is there.
    pub fn new(workers: usize) -> Counts {
        Counts {
            playing: (0..workers).map(|_| AtomicUsize::new(0)).collect(),
            refused: AtomicU64::new(0),
            wrongs: Mutex::default(),
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

    fn wrongs(&self, now: Instant) -> MutexGuard<'_, Wrongs> {
        let mut wrongs = self.wrongs.lock().unwrap_or_else(PoisonError::into_inner);
        if wrongs.since.is_none_or(|since| now.saturating_duration_since(since) >= WRONGS_FOR) {
            *wrongs = Wrongs { since: Some(now), by: HashMap::new() };
        }
        wrongs
    }

    /// Counts a wrong password from somewhere; how many came from there within this minute.
    pub fn wrong(&self, peer: IpAddr, now: Instant) -> u32 {
        let mut wrongs = self.wrongs(now);
        let count = wrongs.by.entry(site(peer)).or_insert(0);
        *count = count.saturating_add(1);
        *count
    }

    /// Whether so many came from there that nothing more is looked at.
    pub fn is_barred(&self, peer: IpAddr, now: Instant) -> bool {
        self.wrongs(now).by.get(&site(peer)).is_some_and(|count| *count >= WRONGS_MAX)
    }

    /// Counts a connection from `peer` as long as what is returned lives; the connections from there, and all, with it.
    pub fn enter(self: &Arc<Counts>, peer: IpAddr) -> (Counted, usize, usize) {
        let peer = site(peer);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_guesses_is_barred_for_a_while_and_nobody_else() {
        let (counts, now) = (Counts::new(1), Instant::now());
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        for number in 1..=WRONGS_MAX {
            assert!(!counts.is_barred(at("2001:db8::1"), now));
            // Any address of the same computer counts.
            assert_eq!(counts.wrong(at(&format!("2001:db8::{number}")), now), number);
        }
        assert!(counts.is_barred(at("2001:db8::ffff"), now) && !counts.is_barred(at("2001:db8:1::1"), now));
        assert!(!counts.is_barred(at("10.0.0.1"), now) && !counts.is_barred(at("2001:db8::1"), now + WRONGS_FOR));
    }
}
