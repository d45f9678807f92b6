//! Packets in the order in which they were sent.
//!
//! A packet that comes in its turn passes at once and is not copied. One that comes early is kept until those before it have
//! come, until it has waited as long as allowed, or until there is no room: then what is missing is given up. What comes
//! twice or too late is dropped. A sender that begins anew is believed when two of its packets follow each other (RFC 3550,
//! appendix A.1).

use std::time::{Duration, Instant};

/// Packets kept at most; a power of two.
pub const ROOM: usize = 512;

/// A step beyond this is another beginning, not a loss (RFC 3550's MAX_DROPOUT).
const STEP_MAX: u16 = 3000;

/// What is to be done with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is its turn.
    Pass,
    /// It is early: [`Reorder::keep`] it.
    Keep,
    /// It came before, is too late, or may be another beginning that nothing has confirmed.
    Drop,
}

/// The state of one track.
#[derive(Debug)]
pub struct Reorder {
    patience: Duration,
    /// The sequence number whose turn it is.
    next: Option<u16>,
    /// Where another beginning would go on.
    other: Option<u16>,
    /// By sequence number modulo [`ROOM`].
    kept: Vec<Option<Kept>>,
    count: usize,
    /// Packets that were given up.
    pub lost: u64,
}

#[derive(Debug)]
struct Kept {
    sequence: u16,
    since: Instant,
    bytes: Vec<u8>,
}

impl Reorder {
    /// Early packets wait at most so long.
    pub fn new(patience: Duration) -> Reorder {
        let kept = std::iter::repeat_with(|| None).take(ROOM).collect();
        Reorder { patience, next: None, other: None, kept, count: 0, lost: 0 }
    }

    /// What is to be done with the packet of that number.
    pub fn judge(&mut self, sequence: u16) -> Verdict {
        let Some(next) = self.next else {
            self.next = Some(sequence.wrapping_add(1));
            return Verdict::Pass;
        };
        let ahead = sequence.wrapping_sub(next);
        if ahead == 0 {
            self.next = Some(sequence.wrapping_add(1));
            self.other = None;
            return Verdict::Pass;
        }
        if ahead < STEP_MAX {
            let twice = self.slot(sequence).as_ref().is_some_and(|kept| kept.sequence == sequence);
            return if twice { Verdict::Drop } else { Verdict::Keep };
        }
        if ahead > u16::MAX - STEP_MAX {
            return Verdict::Drop;
        }
        if self.other == Some(sequence) {
            self.kept.iter_mut().for_each(|kept| *kept = None);
            (self.count, self.other, self.next) = (0, None, Some(sequence.wrapping_add(1)));
            return Verdict::Pass;
        }
        self.other = Some(sequence.wrapping_add(1));
        Verdict::Drop
    }

    /// What comes next is another sender's: nothing of before is waited for.
    pub fn restart(&mut self) {
        self.lost += self.count as u64;
        self.kept.iter_mut().for_each(|kept| *kept = None);
        (self.count, self.other, self.next) = (0, None, None);
    }

    fn slot(&mut self, sequence: u16) -> &mut Option<Kept> {
        &mut self.kept[usize::from(sequence) % ROOM]
    }

    /// Keeps a packet that is early.
    pub fn keep(&mut self, sequence: u16, bytes: Vec<u8>, now: Instant) {
        // Another in its place is a lap behind: so much is missing that waiting has no use. It is lost, and counted when it is given up.
        self.count += usize::from(self.slot(sequence).is_none());
        *self.slot(sequence) = Some(Kept { sequence, since: now, bytes });
    }

    /// The next kept packet whose turn has come; to be asked until there is none.
    pub fn release(&mut self, now: Instant) -> Option<Vec<u8>> {
        let next = self.next.filter(|_| self.count > 0)?;
        if let Some(kept) = self.slot(next).take_if(|kept| kept.sequence == next) {
            self.count -= 1;
            self.next = Some(next.wrapping_add(1));
            return Some(kept.bytes);
        }
        let overdue = self.count >= ROOM / 2 || self.oldest().is_some_and(|since| now >= since + self.patience);
        if !overdue {
            return None;
        }
        // What is missing is given up, up to the first that is there.
        let first = self.kept.iter().flatten().map(|kept| kept.sequence).min_by_key(|s| s.wrapping_sub(next))?;
        self.lost += u64::from(first.wrapping_sub(next));
        self.next = Some(first);
        self.release(now)
    }

    fn oldest(&self) -> Option<Instant> {
        self.kept.iter().flatten().map(|kept| kept.since).min()
    }

    /// When [`Reorder::release`] has to be asked again, if nothing comes.
    pub fn deadline(&self) -> Option<Instant> {
        let since = if self.count > 0 { self.oldest() } else { None };
        since.map(|since| since + self.patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PATIENCE: Duration = Duration::from_millis(50);

    /// Everything that comes out for packets that come at given milliseconds.
    fn through(packets: &[(u16, u64)]) -> (Vec<u16>, Reorder) {
        let (out, reorder, _) = with_late(packets);
        (out, reorder)
    }

    /// The same, and how many came twice or too late.
    fn with_late(packets: &[(u16, u64)]) -> (Vec<u16>, Reorder, u64) {
        let (mut reorder, start, mut out, mut late) = (Reorder::new(PATIENCE), Instant::now(), Vec::new(), 0);
        for &(sequence, at) in packets {
            let now = start + Duration::from_millis(at);
            match reorder.judge(sequence) {
                Verdict::Pass => out.push(sequence),
                Verdict::Keep => reorder.keep(sequence, sequence.to_be_bytes().to_vec(), now),
                Verdict::Drop => late += 1,
            }
            while let Some(bytes) = reorder.release(now) {
                out.push(u16::from_be_bytes([bytes[0], bytes[1]]));
            }
        }
        (out, reorder, late)
    }

    #[test]
    fn order_is_restored_and_loss_is_waited_for_no_longer_than_allowed() {
        assert_eq!(through(&[(65534, 0), (0, 1), (65535, 2), (1, 3)]).0, [65534, 65535, 0, 1]);
        assert_eq!(through(&[(5, 0), (7, 1), (8, 2), (7, 3), (6, 4), (6, 5)]).0, [5, 6, 7, 8]);
        let (out, reorder, late) = with_late(&[(5, 0), (7, 1), (8, 40), (9, 51), (6, 52)]);
        assert_eq!((out, reorder.lost, late), (vec![5, 7, 8, 9], 1, 1));
        assert_eq!(reorder.deadline(), None);
        // What comes again is waited for no longer.
        let (out, _, late) = with_late(&[(5, 0), (7, 1), (7, 40), (8, 52)]);
        assert_eq!((out, late), (vec![5, 7, 8], 1));
        // Where so much is there, nothing is waited for.
        let early: Vec<_> = (2..).map(|sequence| (sequence, 0)).take(ROOM / 2).collect();
        assert_eq!(through(&[&[(0, 0)], &early[1..]].concat()).0, [0]);
        assert_eq!(through(&[&[(0, 0)], &early[..]].concat()).0.len(), 1 + ROOM / 2);
    }

    #[test]
    fn another_beginning_is_believed_when_it_is_confirmed() {
        let (out, _) = through(&[(10, 0), (30000, 1), (11, 2), (40000, 3), (40001, 4), (40002, 5)]);
        assert_eq!(out, [10, 11, 40001, 40002]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(200)) })]

        /// With packets lost, doubled and late by less than the room: what comes out is in order, once, and all that came
        /// within the patience.
        #[test]
        fn what_comes_out_is_in_order_and_complete(
            start in any::<u16>(),
            fates in prop::collection::vec((0..20_u8, 0..30_u64), 1..400),
        ) {
            let mut arrivals = vec![(0_u64, 0_usize)];
            for (i, (fate, delay)) in fates.iter().enumerate() {
                let at = 1 + i as u64;
                match fate {
                    0 => {}
                    1 => arrivals.extend([(at, i + 1), (at + delay, i + 1)]),
                    2..=6 => arrivals.push((at + delay, i + 1)),
                    _ => arrivals.push((at, i + 1)),
                }
            }
            arrivals.sort();
            let packets: Vec<_> = arrivals.iter().map(|(at, i)| (start.wrapping_add(*i as u16), *at)).collect();
            let end = arrivals.last().unwrap().0;
            let (mut out, mut reorder) = through(&packets);
            let later = Instant::now() + Duration::from_millis(end) + 2 * PATIENCE;
            while let Some(bytes) = reorder.release(later) {
                out.push(u16::from_be_bytes([bytes[0], bytes[1]]));
            }
            let mut came: Vec<u16> = arrivals.iter().map(|(_, i)| start.wrapping_add(*i as u16)).collect();
            came.sort_by_key(|s| s.wrapping_sub(start));
            came.dedup();
            prop_assert_eq!(out, came);
        }

        #[test]
        fn any_numbers_leave_it_bounded(numbers in prop::collection::vec((any::<u16>(), 0..5_u64), 0..800)) {
            let mut at = 0;
            let packets: Vec<_> = numbers.iter().map(|(n, step)| { at += step; (*n, at) }).collect();
            let (out, reorder) = through(&packets);
            prop_assert!(out.len() <= packets.len());
            prop_assert!(reorder.count <= ROOM && reorder.kept.iter().flatten().count() == reorder.count);
        }
    }
}
