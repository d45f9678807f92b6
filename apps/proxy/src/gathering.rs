//! How long packets wait for others, so that they go out in one call a viewer.
//!
//! A worker that sends to all viewers for a time S sends what has come meanwhile together, so the more it has to do, the more packets share a
//! call, without anybody waiting for that. Who comes just too late for one round waits for its end, and is sent by the end of the next: 2 S.
//! What is left of the time within which packets should be on their way is waited for others, and a part of S at least, which with a
//! hundred viewers takes a third off the processor time for little of the latency; and where the next of a picture come one close behind the
//! other, as a camera sends them, these.

use std::time::{Duration, Instant};

/// The part of the time of a round that others are waited for at least.
const ROUND_PART: (u32, u32) = (3, 4);
/// The part of the time of a round that a packet is waited for: most of a round is saved if it comes, and little lost if not.
const NEXT_PART: u32 = 8;
/// Times of rounds, and between packets, are means of so many.
const LATELY: u32 = 8;

/// The mean of late, with one more time.
pub fn lately(mean: Duration, time: Duration) -> Duration {
    ((LATELY - 1) * mean + time) / LATELY
}

/// What is gathered of a source.
#[derive(Debug)]
pub struct Gathering {
    /// When the first packet of the batch under way came.
    first: Option<Instant>,
    /// When the last came, of whatever batch, and the mean time between two.
    last: Instant,
    gap: Duration,
    /// A picture ends in the batch.
    is_complete: bool,
}

impl Gathering {
    /// Nothing so far.
    pub fn new(now: Instant) -> Gathering {
        Gathering { first: None, last: now, gap: Duration::ZERO, is_complete: false }
    }

    /// A packet has come, and perhaps its picture's end.
    pub fn came(&mut self, is_end: bool, now: Instant) {
        self.gap = lately(self.gap, now.saturating_duration_since(self.last));
        self.last = now;
        self.first.get_or_insert(now);
        self.is_complete |= is_end;
    }

    /// Something else has come that goes with the packets.
    pub fn came_beside(&mut self, now: Instant) {
        self.first.get_or_insert(now);
    }

    /// When to send what there is, if there is something, where sending it to all viewers takes so long, and it should be on its way within
    /// such a time.
    pub fn due(&self, sending: Duration, within: Duration) -> Option<Instant> {
        let first = self.first?;
        if self.is_complete {
            return Some(first);
        }
        // Where others do not come in that time they are not waited for.
        let room = within.saturating_sub(2 * sending).max(sending * ROUND_PART.0 / ROUND_PART.1).min(within);
        let room = if self.gap > room { Duration::ZERO } else { room };
        let next = (self.last + sending / NEXT_PART).saturating_duration_since(first);
        Some(first + room.max(next.min(within)))
    }

    /// It is sent.
    pub fn sent(&mut self) {
        (self.first, self.is_complete) = (None, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets so many microseconds apart that gather until they are sent; how many go together, and how long the first waited.
    fn together(apart: u64, sending: u64, within: u64) -> (u64, u64) {
        let (began, us) = (Instant::now(), Duration::from_micros);
        let mut gathering = Gathering::new(began);
        // So that it is known how far apart they are.
        for number in 1..=100 {
            gathering.came(false, began + us(number * apart));
        }
        gathering.sent();
        let first = began + us(101 * apart);
        for number in 0.. {
            gathering.came(false, first + us(number * apart));
            let due = gathering.due(us(sending), us(within)).unwrap();
            if due < first + us((number + 1) * apart) {
                return (number + 1, (due - first).as_micros() as u64);
            }
        }
        unreachable!()
    }

    #[test]
    fn what_sending_leaves_of_the_time_is_waited() {
        // Ten viewers: 50 us, so 400 are left, in which the next but one comes.
        assert_eq!(together(150, 50, 500), (3, 400));
        // A hundred: nothing is left but the part of a round; or the next is away for longer than that.
        assert_eq!(together(200, 400, 500), (2, 300));
        assert_eq!(together(310, 400, 500), (1, 50));
        // It comes sooner: a burst, whose end may be away for long.
        assert_eq!(together(10, 450, 500), (51, 500));
        // Nobody else comes in time.
        assert_eq!(together(1000, 50, 500), (1, 6));
        // Nothing is waited for.
        assert_eq!(together(10, 450, 0), (1, 0));
    }

    #[test]
    fn who_waits_is_sent_with_the_end_of_a_picture() {
        let now = Instant::now();
        let mut gathering = Gathering::new(now);
        assert_eq!(gathering.due(Duration::ZERO, Duration::from_secs(1)), None);
        gathering.came(false, now);
        gathering.came(true, now + Duration::from_millis(1));
        assert_eq!(gathering.due(Duration::ZERO, Duration::from_secs(1)), Some(now));
        gathering.sent();
        assert_eq!(gathering.due(Duration::ZERO, Duration::from_secs(1)), None);
    }
}
