//! Which ways of choosing tunables are looked at where not all can be: some that are spread over every axis, then neighbours
//! of the best, first far ones and then near ones (a pattern search: Hooke and Jeeves, "Direct search", J. ACM 8, 1961).

use crate::candidates::{Candidate, LEANEST};
use multigrain_program::Tunables;
use std::cmp::{Ordering, Reverse};
use std::ops::Range;

/// A way of choosing tunables.
pub(crate) struct Way {
    /// About how many sub-calls it stands for.
    pub(crate) calls: u64,
    pub(crate) tunables: Tunables,
    /// Which of the combinations of the lists it is, as [`crate::candidates::combinations`] counts them; none of another search's.
    pub(crate) number: Option<usize>,
}

/// Ways in the order of their calls, and what is known of them.
pub(crate) struct Looks<'w> {
    ways: &'w [Way],
    /// For each axis, how many lengths there are of it, and by how much the next one's combination is numbered higher.
    axes: Vec<(usize, usize)>,
    /// Where each combination is among the ways.
    places: Vec<Option<u32>>,
    found: Vec<Option<Box<Candidate>>>,
    /// How many calls were looked at.
    pub(crate) calls: u64,
}

impl<'w> Looks<'w> {
    pub(crate) fn new(ways: &'w [Way], lengths: &[usize]) -> Looks<'w> {
        let mut places = vec![None; lengths.iter().product()];
        let strides = lengths.iter().scan(1, |stride, length| Some(std::mem::replace(stride, *stride * length)));
        let axes = lengths.iter().copied().zip(strides).collect();
        for (place, number) in ways.iter().enumerate().filter_map(|(place, way)| Some((place, way.number?))) {
            places[number] = Some(place as u32);
        }
        Looks { ways, axes, places, found: vec![None; ways.len()], calls: 0 }
    }

    /// Looks at those of these that were not looked at.
    pub(crate) fn look<E>(
        &mut self,
        places: impl IntoIterator<Item = usize>,
        look: &impl Fn(&[&Way]) -> Result<Vec<Candidate>, E>,
    ) -> Result<(), E> {
        let mut unknown: Vec<usize> = places.into_iter().filter(|&place| self.found[place].is_none()).collect();
        unknown.sort_unstable();
        unknown.dedup();
        let ways: Vec<&Way> = unknown.iter().map(|&place| &self.ways[place]).collect();
        self.calls = ways.iter().fold(self.calls, |sum, way| sum.saturating_add(way.calls));
        for (place, candidate) in unknown.into_iter().zip(look(&ways)?) {
            self.found[place] = Some(Box::new(candidate));
        }
        Ok(())
    }

    /// What is known of these.
    pub(crate) fn of(&self, places: Range<usize>) -> impl Iterator<Item = &Candidate> {
        self.found[places].iter().flatten().map(Box::as_ref)
    }

    /// The calls of these, in all.
    pub(crate) fn in_all(&self, places: Range<usize>) -> u64 {
        self.ways[places].iter().fold(0, |sum, way| sum.saturating_add(way.calls))
    }

    /// Ways of a class, spread over every axis alike, that have so many calls together, and one in any case. And how far
    /// apart they are: by how many lengths along each axis.
    pub(crate) fn spread(&self, class: Range<usize>, calls_max: u64) -> (Vec<usize>, usize) {
        let mut ordered: Vec<(usize, usize)> = class.map(|place| (self.apart(place), place)).collect();
        ordered.sort_by_key(|&(apart, _)| Reverse(apart));
        let (mut chosen, mut left) = (Vec::new(), calls_max);
        for alike in ordered.chunk_by(|a, b| a.0 == b.0) {
            let calls = alike.iter().fold(0, |sum: u64, &(_, place)| sum.saturating_add(self.ways[place].calls));
            let every = calls.div_ceil(left.max(1)).min(usize::MAX as u64) as usize;
            for &(_, place) in alike.iter().step_by(every.max(1)) {
                if self.ways[place].calls <= left || chosen.is_empty() {
                    chosen.push(place);
                    left = left.saturating_sub(self.ways[place].calls);
                }
            }
            if every > 1 {
                return (chosen, alike[0].0);
            }
        }
        (chosen, 1)
    }

    /// Looks at neighbours of the best that are known of a class, until so many calls have been looked at as the best of all is
    /// worth: first of a few, and of more once these have no unknown ones.
    pub(crate) fn climb<E>(
        &mut self,
        class: Range<usize>,
        apart: usize,
        calls_max: impl Fn(&Candidate) -> u64,
        better: impl Fn(&Candidate, &Candidate) -> Ordering,
        look: &impl Fn(&[&Way]) -> Result<Vec<Candidate>, E>,
    ) -> Result<(), E> {
        let start = self.calls;
        let farthest = apart.min(self.axes.iter().map(|&(length, _)| length).max().unwrap_or(0));
        let (mut wide, mut apart) = (LEANEST, farthest);
        loop {
            let mut best: Vec<usize> = class.clone().filter(|&place| self.found[place].is_some()).collect();
            let known = |place: usize| self.found[place].as_deref();
            best.sort_by(|&a, &b| known(a).zip(known(b)).map_or(Ordering::Equal, |(a, b)| better(a, b)));
            let are_more = best.len() > wide;
            best.truncate(wide);
            let around = best.iter().flat_map(|&place| self.around(place, apart));
            let unknown: Vec<usize> =
                around.filter(|place| class.contains(place) && self.found[*place].is_none()).collect();
            let most = best.first().and_then(|&place| known(place)).map_or(0, &calls_max);
            let mut left = most.saturating_sub(self.calls - start);
            let affordable = unknown.iter().take_while(|&&place| {
                let calls = self.ways[place].calls;
                let is_affordable = calls <= left;
                left = left.saturating_sub(calls);
                is_affordable
            });
            let next: Vec<usize> = affordable.copied().collect();
            if !next.is_empty() {
                self.look(next, look)?;
            } else if !unknown.is_empty() {
                return Ok(());
            } else if apart > 1 {
                apart /= 2;
            } else if are_more {
                (wide, apart) = (wide * 2, farthest);
            } else {
                return Ok(());
            }
        }
    }

    /// How far apart ways may be along every axis, by a power of two of lengths, so that this is still one of them; the ends of
    /// an axis always are.
    fn apart(&self, place: usize) -> usize {
        let Some(number) = self.ways[place].number else { return usize::MAX };
        let along = |&(length, stride): &(usize, usize)| {
            let at = number / stride % length;
            if at == 0 || at + 1 == length { usize::MAX } else { 1 << at.trailing_zeros() }
        };
        self.axes.iter().map(along).min().unwrap_or(usize::MAX)
    }

    /// Ways that differ from this one by so many lengths along one axis, or along two in opposite directions, so that blocks
    /// stay about as large.
    fn around(&self, place: usize, apart: usize) -> Vec<usize> {
        let Some(number) = self.ways[place].number else { return Vec::new() };
        // Towards shorter blocks and towards longer ones, from which ends are not left.
        let moved = |number: usize, axis: usize, shorter: bool| {
            let (length, stride) = self.axes[axis];
            let at = number / stride % length;
            let to = if shorter { (at + apart).min(length - 1) } else { at.saturating_sub(apart) };
            (to != at).then(|| number - at * stride + to * stride)
        };
        let mut numbers: Vec<usize> = Vec::new();
        for axis in 0..self.axes.len() {
            numbers.extend([true, false].into_iter().filter_map(|shorter| moved(number, axis, shorter)));
            let others = (0..self.axes.len()).filter(|&other| other != axis);
            numbers.extend(others.filter_map(|other| moved(moved(number, axis, true)?, other, false)));
        }
        numbers.into_iter().filter_map(|number| Some(self.places[number]? as usize)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Movable;
    use std::convert::Infallible;

    /// Ways of cutting axes that have so many lengths each: the number-th length makes one piece more than that.
    fn ways(lengths: &[usize]) -> Vec<Way> {
        let total: usize = lengths.iter().product();
        let way = |number: usize| {
            let mut rest = number;
            let pieces: Vec<u64> = lengths.iter().map(|l| (rest % l + 1, rest /= l).0 as u64).collect();
            let names = ["a", "b", "c", "d"];
            let tunables = names.into_iter().zip(pieces.iter().copied()).collect();
            Way { calls: pieces.iter().product(), tunables, number: Some(number) }
        };
        let mut ways: Vec<Way> = (0..total).map(way).collect();
        ways.sort_by_key(|way| way.calls);
        ways
    }

    fn candidate(way: &Way, price: f64, footprint: u64) -> Candidate {
        let (tunables, calls) = (way.tunables.clone(), way.calls);
        let movable = Movable::Aligned;
        Candidate { tunables, calls, footprint, reserved: 0, partials: 0, guess: price, price, movable }
    }

    #[test]
    fn a_sample_is_spread_and_no_larger_than_asked() {
        for lengths in [&[1][..], &[28], &[2, 30], &[17, 23], &[9, 8, 13], &[5, 6, 7, 8]] {
            let ways = ways(lengths);
            let looks = Looks::new(&ways, lengths);
            for calls_max in [0, 1, 5, 100, 3000, 20_000, u64::MAX] {
                let (spread, apart) = looks.spread(0..ways.len(), calls_max);
                let calls: u64 = spread.iter().map(|&place| ways[place].calls).sum();
                assert!(calls <= calls_max || spread.len() == 1, "{lengths:?} {calls_max}: {calls}");
                assert!(!spread.is_empty() && apart > 0);
                if looks.in_all(0..ways.len()) <= calls_max {
                    assert_eq!(spread.len(), ways.len());
                }
            }
            // Every second of each axis is in it before any other is.
            let coarse: Vec<usize> = (0..ways.len()).filter(|&place| looks.apart(place) > 1).collect();
            let calls = coarse.iter().map(|&place| ways[place].calls).sum();
            let (mut spread, _) = looks.spread(0..ways.len(), calls);
            spread.sort_unstable();
            assert_eq!(spread, coarse, "{lengths:?}");
        }
    }

    #[test]
    fn climbing_finds_what_is_best_without_looking_at_everything() {
        let lengths = [24, 21, 19];
        let ways = ways(&lengths);
        for (x, y, z) in [(3, 17, 5), (24, 1, 1), (1, 1, 19), (12, 11, 10), (7, 20, 2)] {
            // A valley across the axes, whose walls are so steep that a step along one axis only leads up.
            let price = |way: &Way| {
                let at = |name| way.tunables.get(name, 1) as f64;
                let (a, b, c) = (at("a") - f64::from(x), at("b") - f64::from(y), at("c") - f64::from(z));
                a * a + b * b + c * c + 1e3 * (a + b + c).abs()
            };
            let look = |ways: &[&Way]| {
                let look = |way: &&Way| candidate(way, price(way), u64::from(way.calls < 6));
                Ok::<_, Infallible>(ways.iter().map(look).collect())
            };
            let better = |a: &Candidate, b: &Candidate| a.footprint.cmp(&b.footprint).then(a.price.total_cmp(&b.price));
            let mut looks = Looks::new(&ways, &lengths);
            let most = looks.in_all(0..ways.len()) / 8;
            let (spread, apart) = looks.spread(0..ways.len(), most / 2);
            looks.look(spread, &look).unwrap();
            looks.climb(0..ways.len(), apart, |_| most / 2, better, &look).unwrap();
            assert!(looks.calls <= most, "{} of {most}", looks.calls);
            let found = looks.of(0..ways.len()).min_by(|a, b| better(a, b)).unwrap();
            let best = look(&ways.iter().collect::<Vec<_>>()).unwrap().into_iter().min_by(better).unwrap();
            assert_eq!(found.tunables, best.tunables, "{x} {y} {z}");
        }
    }
}
