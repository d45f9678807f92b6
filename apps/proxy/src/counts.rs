//! How many are connected, from which addresses, and how many play, each counted as long as it lasts.

use std::collections::{BTreeMap, HashMap};
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

/// Connections of one place.
#[derive(Default)]
struct Own {
    all: usize,
    /// Those that do not play, by their numbers, which grow, with their workers.
    waiting: BTreeMap<u64, usize>,
}

/// What all workers count.
pub struct Counts {
    /// Viewers that play, by worker.
    playing: Vec<AtomicUsize>,
    refused: AtomicU64,
    wrongs: Mutex<Wrongs>,
    addresses: Mutex<HashMap<IpAddr, Own>>,
    connections: AtomicUsize,
    entered: AtomicU64,
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
            entered: AtomicU64::new(0),
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

    /// Counts one who is refused because there are too many.
    pub fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
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
        let mut addresses = self.addresses();
        let own = addresses.entry(peer).or_default();
        own.all += 1;
        let number = self.entered.fetch_add(1, Ordering::Relaxed);
        (Counted { counts: self.clone(), peer, number, plays: None }, own.all, all)
    }

    fn addresses(&self) -> MutexGuard<'_, HashMap<IpAddr, Own>> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who has to make room for somebody else: of the place from which most wait, on whichever workers, the one that came first. Its worker and
    /// its number; each is named once.
    pub fn first_to_go(&self) -> Option<(usize, u64)> {
        let mut addresses = self.addresses();
        let most = addresses
            .values_mut()
            .max_by_key(|own| (own.waiting.len(), own.waiting.keys().next().map(|n| u64::MAX - n)));
        most?.waiting.pop_first().map(|(number, worker)| (worker, number))
    }
}

/// Counts a connection as long as it lives.
pub struct Counted {
    counts: Arc<Counts>,
    peer: IpAddr,
    /// It has the number of no other.
    pub number: u64,
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
        self.stays();
    }

    /// It makes room for nobody.
    pub fn stays(&self) {
        if let Some(own) = self.counts.addresses().get_mut(&self.peer) {
            own.waiting.remove(&self.number);
        }
    }

    /// It waits on a worker, and makes room for others where there is none.
    pub fn waits_on(&mut self, worker: usize) {
        if let Some(before) = self.plays.take() {
            self.counts.playing[before].fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(own) = self.counts.addresses().get_mut(&self.peer) {
            own.waiting.insert(self.number, worker);
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut addresses = self.counts.addresses();
        if let Some(own) = addresses.get_mut(&self.peer) {
            own.waiting.remove(&self.number);
            own.all -= 1;
            if own.all == 0 {
                addresses.remove(&self.peer);
            }
        }
        drop(addresses);
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
    fn who_has_most_that_wait_makes_room() {
        let counts = Arc::new(Counts::new(3));
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut all: Vec<Counted> =
            ["10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.2"].iter().map(|peer| counts.enter(at(peer)).0).collect();
        assert_eq!(counts.first_to_go(), None);
        all.iter_mut().enumerate().for_each(|(i, one)| one.waits_on(i % 3));
        // The first of the second, which plays, is none of them; one that pauses is.
        all[1].plays_on(2);
        assert_eq!((counts.viewers(), counts.first_to_go()), (1, Some((2, 2))));
        all[1].waits_on(2);
        all.pop();
        assert_eq!((counts.viewers(), counts.first_to_go(), counts.first_to_go()), (0, Some((0, 0)), Some((2, 1))));
        assert_eq!(counts.first_to_go(), None);
    }

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
