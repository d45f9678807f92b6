//! Whether blocks cover an array.

use crate::{Region, Shape};

/// Whether every element of an array of this shape lies in one of the regions, which lie within it and are not empty. They
/// may overlap and come in any order. In order along one dimension that alone is cut, as most lists are, they take no memory.
pub(crate) fn covers(shape: Shape, regions: impl Iterator<Item = Region> + Clone) -> bool {
    in_order(shape, regions.clone()) || swept(shape, 0, regions.collect())
}

/// Whether regions that are cut along one dimension cover it one after the other.
fn in_order(shape: Shape, mut regions: impl Iterator<Item = Region> + Clone) -> bool {
    let lengths = shape.dims();
    let Some(first) = regions.clone().next() else { return shape.elements() == 0 };
    let Some(cut) = (0..shape.rank()).find(|&d| first.len()[d] < lengths[d]) else { return true };
    let is_whole = |region: &Region| (0..shape.rank()).all(|d| d == cut || region.len()[d] == lengths[d]);
    let reach = regions.try_fold(0, |reach: u64, region| {
        (region.start()[cut] <= reach && is_whole(&region)).then(|| reach.max(region.end(cut)))
    });
    reach == Some(lengths[cut])
}

/// The same of any regions: along each dimension from `d` on, a line is moved over those that begin and end there.
fn swept(shape: Shape, d: usize, mut regions: Vec<Region>) -> bool {
    let Some(&length) = shape.dims().get(d) else { return !regions.is_empty() };
    regions.sort_unstable_by_key(|region| region.start()[d]);
    let (mut ahead, mut here, mut at) = (regions.into_iter().peekable(), Vec::new(), 0);
    while at < length {
        here.retain(|region: &Region| region.end(d) > at);
        while let Some(region) = ahead.next_if(|region| region.start()[d] <= at) {
            here.push(region);
        }
        if !swept(shape, d + 1, here.clone()) {
            return false;
        }
        let ends = here.iter().map(|region| region.end(d)).min();
        at = ends.into_iter().chain(ahead.peek().map(|region| region.start()[d])).min().unwrap_or(length);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator of numbers below a bound (SplitMix64).
    fn numbers(mut state: u64) -> impl FnMut(u64) -> u64 {
        move |below| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) % below
        }
    }

    /// Cuts a region at random, again and again.
    fn cut(region: Region, depth: u32, next: &mut impl FnMut(u64) -> u64, parts: &mut Vec<Region>) {
        let d = next(region.rank() as u64) as usize;
        let length = region.len()[d];
        if depth == 0 || length < 2 {
            return parts.push(region);
        }
        let at = 1 + next(length - 1);
        let (mut start, mut low, mut high) = (region.start().to_vec(), region.len().to_vec(), region.len().to_vec());
        (low[d], high[d]) = (at, length - at);
        cut(Region::new(&start, &low), depth - 1, next, parts);
        start[d] += at;
        cut(Region::new(&start, &high), depth - 1, next, parts);
    }

    #[test]
    fn what_covers_is_told_from_what_does_not() {
        let (mut whole, mut holes) = (0, 0);
        // Under Miri each takes a thousand times as long.
        let seeds = if cfg!(miri) { 30 } else { 600 };
        for seed in 0..seeds {
            let mut next = numbers(seed);
            let lengths: Vec<u64> = (0..1 + next(3)).map(|_| 1 + next(6)).collect();
            let shape = Shape::new(&lengths);
            let mut parts = Vec::new();
            cut(Region::whole(shape), next(5) as u32, &mut next, &mut parts);
            for _ in 0..next(3) {
                // Something else in the place of a part: another part, or any block.
                let place = next(parts.len() as u64) as usize;
                let start: Vec<u64> = lengths.iter().map(|&length| next(length)).collect();
                let len: Vec<u64> = lengths.iter().zip(&start).map(|(&l, &s)| 1 + next(l - s)).collect();
                parts[place] = Region::new(&start, &len);
                let (a, b) = (next(parts.len() as u64), next(parts.len() as u64));
                parts.swap(a as usize, b as usize);
            }
            let element = |number: u64| Region::whole(shape).pieces(1).nth(number as usize).unwrap();
            let expected = (0..shape.elements()).all(|number| parts.iter().any(|part| part.contains(&element(number))));
            assert_eq!(covers(shape, parts.iter().copied()), expected, "seed {seed}: {parts:?} of {shape}");
            assert_eq!(swept(shape, 0, parts.clone()), expected, "seed {seed}, swept");
            *(if expected { &mut whole } else { &mut holes }) += 1;
        }
        assert!(whole > seeds / 6 && holes > seeds / 6, "{whole} and {holes}");
        assert!(!covers(Shape::new(&[3]), std::iter::empty()));
    }
}
