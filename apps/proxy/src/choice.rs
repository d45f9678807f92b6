//! Which of several servers a stream is pulled from: consistent hashing with health.
//!
//! Every name has an order of the servers of its own, by the hash of both (rendezvous hashing; Thaler and Ravishankar 1998): names
//! spread evenly, a server that is gone moves only its own names, and every proxy with the same list chooses alike. A server that
//! failed is left out for a while that doubles each time; the first in the order that is not left out is the choice.

use std::time::{Duration, Instant};

/// For how long a server is left out after the first failure, and at most.
const OUT: Duration = Duration::from_secs(15);
const OUT_MAX: Duration = Duration::from_secs(600);

/// The servers of one stream.
#[derive(Debug)]
pub struct Choice {
    /// Their places in the list, the favourite first.
    order: Vec<usize>,
    /// By place in the list: failures in a row, and until when it is left out.
    out: Vec<(u32, Option<Instant>)>,
}

/// A hash that is the same everywhere (FNV-1a, 64 bits), and its bits mixed (the end of MurmurHash3).
fn hash(parts: [&str; 2]) -> u64 {
    let bytes = parts[0].bytes().chain([0]).chain(parts[1].bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

impl Choice {
    /// Among servers, for a name.
    pub fn new(name: &str, servers: &[String]) -> Choice {
        let mut order: Vec<usize> = (0..servers.len()).collect();
        order.sort_by_key(|place| std::cmp::Reverse(hash([name, &servers[*place]])));
        Choice { order, out: vec![(0, None); servers.len()] }
    }

    fn is_out(&self, place: usize, now: Instant) -> bool {
        self.out[place].1.is_some_and(|until| now < until)
    }

    /// The favourite of those that are not left out; where all are, the one that has been for longest.
    pub fn best(&self, now: Instant) -> usize {
        let healthy = self.order.iter().find(|place| !self.is_out(**place, now));
        let longest = || self.order.iter().min_by_key(|place| self.out[**place].1);
        healthy.or_else(longest).copied().unwrap_or(0)
    }

    /// It does not serve; whether there is another one to try now.
    pub fn failed(&mut self, place: usize, now: Instant) -> bool {
        let (failures, until) = &mut self.out[place];
        *failures = (*failures + 1).min(16);
        *until = Some(now + (OUT * (1 << (*failures - 1).min(8))).min(OUT_MAX));
        self.order.iter().any(|place| !self.is_out(*place, now))
    }

    /// It is not to be asked for so long, whatever others do.
    pub fn rests(&mut self, place: usize, time: Duration, now: Instant) {
        self.out[place].1 = self.out[place].1.max(Some(now + time));
    }

    /// It serves.
    pub fn serves(&mut self, place: usize) {
        self.out[place] = (0, None);
    }

    /// Who would be better than this one, if it serves again: a favourite whose time is over.
    pub fn better_than(&self, place: usize, now: Instant) -> Option<usize> {
        self.order.iter().copied().take_while(|other| *other != place).find(|other| !self.is_out(*other, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(count: usize) -> Vec<String> {
        (0..count).map(|i| format!("rtsp://server{i}/live")).collect()
    }

    #[test]
    fn names_spread_and_stay() {
        let now = Instant::now();
        let (five, six) = (servers(5), servers(6));
        let (mut counts, mut moved) = ([0; 5], 0);
        for number in 0..1000 {
            let name = format!("camera{number}");
            let before = Choice::new(&name, &five).best(now);
            counts[before] += 1;
            let after = Choice::new(&name, &six).best(now);
            assert!(after == before || after == 5);
            moved += u32::from(after != before);
        }
        assert!(counts.iter().all(|count| (150..250).contains(count)), "{counts:?}");
        assert!((120..220).contains(&moved), "{moved}");
    }

    #[test]
    fn who_fails_is_left_out_for_a_while() {
        let now = Instant::now();
        let mut choice = Choice::new("door", &servers(3));
        let first = choice.best(now);
        assert!(choice.failed(first, now));
        let second = choice.best(now);
        assert!(second != first && choice.better_than(second, now).is_none());
        let later = now + OUT;
        assert_eq!(choice.better_than(second, later), Some(first));
        // Again: for longer.
        choice.failed(first, later);
        assert_eq!(choice.better_than(second, later + OUT), None);
        choice.serves(first);
        assert_eq!(choice.best(later), first);
        // All are out: the one whose time is over first.
        let mut choice = Choice::new("door", &servers(2));
        assert!(choice.failed(1, now) && !choice.failed(0, now + Duration::from_secs(1)));
        assert_eq!(choice.best(now + Duration::from_secs(2)), 1);
    }
}
