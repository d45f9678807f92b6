//! Whether blocks cover an array, and whether what is read of it was written before.

use crate::{RANK_MAX, Region, Shape};

/// What a call does with a block of an array that holds nothing yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    /// The block: within the array, and not empty.
    pub(crate) region: Region,
    /// Whether it is read, or else written whole.
    pub(crate) reads: bool,
}

/// Number of the first touch that reads what those before have not written whole; as many as there are when some element is
/// written by none. The blocks of a grid in order, as most lists are, take no memory when none is read.
pub(crate) fn unwritten(shape: Shape, touches: impl Iterator<Item = Touch> + Clone) -> Option<usize> {
    if touches.clone().all(|touch| !touch.reads) && in_order(shape, touches.clone().map(|touch| touch.region)) {
        return None;
    }
    let whole = Region::whole(shape);
    let end = Touch { region: whole, reads: true };
    let touches: Vec<Touch> = touches.chain([end]).collect();
    (shape.elements() > 0).then(|| found(whole, &touches, 0..touches.len()))?
}

/// The same within a part of the array, of those touches that may concern it.
///
/// Behind one that touches all of the part nothing is to be found: once all is written all may be read, and where all is
/// read, what could not be is found there. Those before it touch some of the part. So the part is cut where blocks that are
/// written begin or end, in the middle of these places, until each piece is written as a whole or not at all: the calls on
/// tiles of a grid take as long as sorting them.
fn found(part: Region, touches: &[Touch], some: impl Iterator<Item = usize>) -> Option<usize> {
    let mut here = Vec::new();
    for number in some {
        let region = &touches[number].region;
        if region.intersects(&part) {
            here.push(number);
        }
        if region.contains(&part) {
            break;
        }
    }
    let last = here.iter().rposition(|&number| touches[number].reads)?;
    here.truncate(last + 1);
    let first = here[0];
    if touches[first].reads {
        return Some(first);
    }
    let written = || here.iter().map(|&number| &touches[number]).filter(|touch| !touch.reads);
    let ends = |d: usize| -> Vec<u64> {
        let inner = |at: &u64| part.start()[d] < *at && *at < part.end(d);
        written().flat_map(|touch| [touch.region.start()[d], touch.region.end(d)]).filter(inner).collect()
    };
    let (d, mut ends) = (0..part.rank()).map(|d| (d, ends(d))).max_by_key(|(_, ends)| ends.len())?;
    let middle = ends.len() / 2;
    let (_, &mut at, _) = ends.select_nth_unstable(middle);
    let (low, high) = part.cut(d, at);
    let found = |part| found(part, touches, here.iter().copied());
    found(low).into_iter().chain(found(high)).min()
}

/// Whether regions are the blocks of a grid one after the other, the last dimension fastest.
fn in_order(shape: Shape, mut regions: impl Iterator<Item = Region>) -> bool {
    // Where the next block begins, and how long those are, along each dimension, that have begun with it.
    let (mut next, mut lengths) = ([0; RANK_MAX], [0; RANK_MAX]);
    let mut is_whole = shape.elements() == 0;
    let is_next = |region: Region| {
        let mut begins = true;
        for d in (0..shape.rank()).rev() {
            lengths[d] = if begins { region.len()[d] } else { lengths[d] };
            if region.start()[d] != next[d] || region.len()[d] != lengths[d] {
                return false;
            }
            begins &= next[d] == 0;
        }
        is_whole = (0..shape.rank()).rev().all(|d| {
            let ends = region.end(d) == shape.dims()[d];
            next[d] = if ends { 0 } else { region.end(d) };
            ends
        });
        true
    };
    regions.all(is_next) && is_whole
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
        let (low, high) = region.cut(d, region.start()[d] + 1 + next(length - 1));
        cut(low, depth - 1, next, parts);
        cut(high, depth - 1, next, parts);
    }

    /// Cuts a region into slabs along a dimension, and each of these along the next.
    fn grid(region: Region, d: usize, next: &mut impl FnMut(u64) -> u64, parts: &mut Vec<Region>) {
        if d == region.rank() {
            return parts.push(region);
        }
        let mut rest = region;
        while next(3) > 0 && rest.len()[d] > 1 {
            let (slab, left) = rest.cut(d, rest.start()[d] + 1 + next(rest.len()[d] - 1));
            grid(slab, d + 1, next, parts);
            rest = left;
        }
        grid(rest, d + 1, next, parts);
    }

    #[test]
    fn blocks_of_a_grid_are_known_in_order() {
        for seed in 0..200 {
            let mut next = numbers(seed);
            let lengths: Vec<u64> = (0..1 + next(3)).map(|_| 2 + next(5)).collect();
            let shape = Shape::new(&lengths);
            let mut parts = Vec::new();
            grid(Region::whole(shape), 0, &mut next, &mut parts);
            assert!(in_order(shape, parts.iter().copied()), "seed {seed}: {parts:?} of {shape}");
            let lost = next(parts.len() as u64) as usize;
            let others = parts.iter().enumerate().filter(|(number, _)| *number != lost).map(|(_, region)| *region);
            assert!(!in_order(shape, others), "seed {seed}: {parts:?} of {shape} without {lost}");
        }
    }

    /// Every list of up to three or four blocks: none that leaves a hole is taken for a grid in order.
    #[test]
    #[cfg_attr(miri, ignore = "hundreds of thousands of lists")]
    fn no_list_with_a_hole_is_a_grid() {
        for (lengths, longest) in [(&[2, 2][..], 4), (&[2, 3], 3), (&[2, 1, 3], 4)] {
            let shape = Shape::new(lengths);
            let elements: Vec<Region> = Region::whole(shape).pieces(1).collect();
            // Blocks begin at an element and end at one that is not before it along any dimension.
            let starts = || elements.iter().map(|element| element.start().to_vec());
            let blocks: Vec<Region> = starts()
                .flat_map(|low| starts().map(move |high| (low.clone(), high)))
                .filter(|(low, high)| low.iter().zip(high).all(|(low, high)| low <= high))
                .map(|(low, high)| {
                    let len: Vec<u64> = low.iter().zip(&high).map(|(low, high)| high - low + 1).collect();
                    Region::new(&low, &len)
                })
                .collect();
            let mut taken = 0;
            let mut lists: Vec<Vec<Region>> = vec![Vec::new()];
            for _ in 0..longest {
                lists = lists.iter().flat_map(|list| blocks.iter().map(|b| [&list[..], &[*b]].concat())).collect();
                for list in lists.iter().filter(|list| in_order(shape, list.iter().copied())) {
                    let covers = elements.iter().all(|element| list.iter().any(|block| block.contains(element)));
                    assert!(covers, "{list:?} of {shape}");
                    taken += 1;
                }
            }
            assert!(taken > 0, "{shape}");
        }
    }

    #[test]
    fn what_is_not_written_is_found_where_it_is_read_first() {
        let (mut right, mut holes, mut early) = (0, 0, 0);
        // Under Miri each takes a thousand times as long.
        let seeds = if cfg!(miri) { 30 } else { 600 };
        for seed in 0..seeds {
            let mut next = numbers(seed);
            let lengths: Vec<u64> = (0..1 + next(3)).map(|_| 1 + next(6)).collect();
            let shape = Shape::new(&lengths);
            let mut parts = Vec::new();
            match next(3) {
                0 => grid(Region::whole(shape), 0, &mut next, &mut parts),
                _ => cut(Region::whole(shape), next(5) as u32, &mut next, &mut parts),
            }
            for _ in 0..next(3) {
                // Something else in the place of a part: another part, or any block.
                let place = next(parts.len() as u64) as usize;
                let start: Vec<u64> = lengths.iter().map(|&length| next(length)).collect();
                let len: Vec<u64> = lengths.iter().zip(&start).map(|(&l, &s)| 1 + next(l - s)).collect();
                parts[place] = Region::new(&start, &len);
                let (a, b) = (next(parts.len() as u64), next(parts.len() as u64));
                parts.swap(a as usize, b as usize);
            }
            // Some are read, of which most were written before.
            let mut touches: Vec<Touch> = parts.iter().map(|&region| Touch { region, reads: next(16) == 0 }).collect();
            for _ in 0..next(4) {
                let region = touches[next(touches.len() as u64) as usize].region;
                touches.push(Touch { region, reads: next(2) == 0 });
            }
            let elements: Vec<Region> = Region::whole(shape).pieces(1).collect();
            let mut written = vec![false; elements.len()];
            let mut expected = None;
            for (number, touch) in touches.iter().enumerate() {
                let inside = || (0..).zip(&elements).filter(|(_, element)| touch.region.contains(element));
                match touch.reads {
                    true if inside().any(|(at, _): (usize, _)| !written[at]) => expected = expected.or(Some(number)),
                    true => {}
                    false => inside().for_each(|(at, _)| written[at] = true),
                }
            }
            let end = (!written.iter().all(|&written| written)).then_some(touches.len());
            let expected = expected.or(end);
            assert_eq!(unwritten(shape, touches.iter().copied()), expected, "seed {seed}: {touches:?} of {shape}");
            match expected {
                None => right += 1,
                Some(number) if number == touches.len() => holes += 1,
                Some(_) => early += 1,
            }
        }
        let least = seeds / 8;
        assert!(right > least && holes > least && early > least, "{right}, {holes} and {early}");
        assert_eq!(unwritten(Shape::new(&[3]), std::iter::empty()), Some(0));
        assert_eq!(unwritten(Shape::new(&[0]), std::iter::empty()), None);
    }
}
