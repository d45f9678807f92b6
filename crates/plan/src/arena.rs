//! Static addresses in a child's staging memory, handed out while a plan is made.
//!
//! Free memory is a list of segments. A segment whose last content is still being stored remembers that transfer:
//! whoever takes the segment must await it first. Clean segments are preferred, then those stored longest ago.

use crate::plan::Slot;

/// Free segments of a staging memory of fixed size.
#[derive(Clone, Debug)]
pub(crate) struct Arena {
    /// Sorted by offset; neighbours with the same state are merged.
    free: Vec<Segment>,
    align: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    offset: u64,
    len: u64,
    draining: Option<u32>,
}

/// Memory handed out: where, and the stores that must have completed before it is overwritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) offset: u64,
    pub(crate) draining: Vec<u32>,
}

impl Arena {
    pub(crate) fn new(capacity: u64, align: u64) -> Arena {
        let len = capacity / align * align;
        let free = if len > 0 { vec![Segment { offset: 0, len, draining: None }] } else { Vec::new() };
        Arena { free, align }
    }

    pub(crate) fn free_bytes(&self) -> u64 {
        self.free.iter().map(|s| s.len).sum()
    }

    fn rounded(&self, bytes: u64) -> u64 {
        bytes.max(1).div_ceil(self.align) * self.align
    }

    /// Takes `bytes`, from the upper end for blocks that stay long, from the lower end for those that stream through,
    /// so that the two do not fragment each other.
    pub(crate) fn take(&mut self, bytes: u64, from_top: bool) -> Option<Granted> {
        let need = self.rounded(bytes);
        // A candidate is a run of adjacent segments; its price is the youngest store in it, then its length.
        let mut best: Option<(u32, u64, usize, usize)> = None;
        for first in 0..self.free.len() {
            let mut len = 0;
            let mut youngest = 0;
            let mut end = self.free[first].offset;
            for last in first..self.free.len() {
                let s = self.free[last];
                if s.offset != end {
                    break;
                }
                end += s.len;
                len += s.len;
                youngest = youngest.max(s.draining.map_or(0, |t| t + 1));
                if len >= need {
                    let better = match best {
                        None => true,
                        Some((y, l, ..)) if from_top => (youngest, len) <= (y, l),
                        Some((y, l, ..)) => (youngest, len) < (y, l),
                    };
                    if better {
                        best = Some((youngest, len, first, last));
                    }
                    break;
                }
            }
        }
        let (_, len, first, last) = best?;
        let start = self.free[first].offset;
        let offset = if from_top { start + len - need } else { start };
        let (end, mut draining) = (offset + need, Vec::new());
        let mut rest = Vec::new();
        for s in self.free.drain(first..=last) {
            if s.offset < offset {
                rest.push(Segment { len: s.len.min(offset - s.offset), ..s });
            }
            if s.offset + s.len > end {
                let from = s.offset.max(end);
                rest.push(Segment { offset: from, len: s.offset + s.len - from, ..s });
            }
            if s.offset < end && s.offset + s.len > offset {
                draining.extend(s.draining);
            }
        }
        draining.dedup();
        self.free.splice(first..first, rest);
        Some(Granted { offset, draining })
    }

    /// Returns memory; `draining` is the store that still reads it.
    pub(crate) fn give(&mut self, offset: u64, bytes: u64, draining: Option<u32>) {
        let len = self.rounded(bytes);
        let at = self.free.partition_point(|s| s.offset < offset);
        self.free.insert(at, Segment { offset, len, draining });
        self.merge();
    }

    /// A store is complete.
    pub(crate) fn awaited(&mut self, transfer: u32) {
        for s in &mut self.free {
            if s.draining == Some(transfer) {
                s.draining = None;
            }
        }
        self.merge();
    }

    fn merge(&mut self) {
        self.free.dedup_by(|next, previous| {
            let joined = previous.offset + previous.len == next.offset && previous.draining == next.draining;
            if joined {
                previous.len += next.len;
            }
            joined
        });
    }
}

/// Moves slots down over the addresses that no slot ever owns, and returns the largest end of what one owns. The arena
/// gives out both of its ends, so what is never used lies in between: without this, a plan of small blocks would reserve
/// all there is. Slots that share addresses move together; everything moves by multiples of `align`.
pub(crate) fn close_gaps(slots: &mut [Slot], align: u64) -> u64 {
    let mut order: Vec<usize> = (0..slots.len()).collect();
    order.sort_unstable_by_key(|&i| slots[i].offset_bytes);
    let (mut end, mut unused) = (0, 0);
    for i in order {
        let slot = &mut slots[i];
        let owned = slot.owned_bytes(align);
        unused += owned.start.saturating_sub(end);
        end = end.max(owned.end);
        slot.offset_bytes -= unused;
    }
    end - unused
}

#[cfg(test)]
mod tests {
    use super::*;
    use multigrain_program::{Arg, Region};

    #[test]
    fn gaps_close_and_shared_addresses_stay_shared() {
        let block = Arg { array: 0, region: Region::new(&[0], &[1]) };
        let slot = |offset_bytes, bytes| Slot { offset_bytes, bytes, block };
        let mut slots = [slot(900, 100), slot(0, 90), slot(800, 100), slot(800, 150), slot(100, 10)];
        assert_eq!(close_gaps(&mut slots, 100), 400);
        assert_eq!(slots.map(|s| s.offset_bytes), [300, 0, 200, 200, 100]);
        assert_eq!(close_gaps(&mut [], 100), 0);
    }

    #[test]
    fn takes_clean_before_draining_and_names_what_to_await() {
        let mut a = Arena::new(300, 100);
        assert_eq!(a.take(100, false).unwrap().offset, 0);
        assert_eq!(a.take(90, true).unwrap().offset, 200);
        a.give(0, 100, Some(7));
        assert_eq!(a.take(100, false).unwrap(), Granted { offset: 100, draining: vec![] });
        assert_eq!(a.take(10, false).unwrap(), Granted { offset: 0, draining: vec![7] });
        assert_eq!(a.take(10, false), None);
        a.give(0, 10, None);
        a.give(100, 100, Some(8));
        a.give(200, 90, Some(9));
        assert_eq!(a.take(300, false).unwrap(), Granted { offset: 0, draining: vec![8, 9] });
    }

    #[test]
    fn awaited_segments_merge() {
        let mut a = Arena::new(200, 100);
        a.take(100, false).unwrap();
        a.take(100, false).unwrap();
        a.give(100, 100, Some(1));
        a.give(0, 100, None);
        a.awaited(1);
        assert_eq!(a.take(200, true).unwrap(), Granted { offset: 0, draining: vec![] });
    }
}
