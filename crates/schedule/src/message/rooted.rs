//! Barriers and broadcasts.

use super::build::{Build, Sent};
use super::{Piece, gathers};
use crate::order::largest_power_below;
use std::ops::Range;

/// Signals at distances 1, 2, 4 ... among some ranks.
pub(super) fn dissemination(build: &mut Build, ranks: &[u32]) {
    let n = ranks.len();
    let distances = std::iter::successors(Some(1), |d| Some(2 * d)).take_while(|&d| d < n);
    for distance in distances {
        build.exchange((0..n).map(|i| Sent::signal(ranks[i], ranks[(i + distance) % n])));
    }
}

/// Ranks in the order of a ring that begins at the root.
pub(super) fn from_root(ranks: Range<u32>, root: u32) -> Vec<u32> {
    (root..ranks.end).chain(ranks.start..root).collect()
}

/// Pairs (parent, child) of a binomial tree over `n` positions with its root at 0, from the root down; those of one list are
/// served at the same time, but by a parent one after the other.
pub(super) fn binomial(n: usize) -> Vec<Vec<(usize, usize)>> {
    let top = n.next_power_of_two() / 2;
    let distances = std::iter::successors(Some(top), |d| Some(d / 2)).take_while(|&d| d > 0);
    distances.map(|d| (0..n).step_by(2 * d).filter(|at| at + d < n).map(|at| (at, at + d)).collect()).collect()
}

/// All blocks of an area go down from the first of some ranks; a signal if there are no blocks.
pub(super) fn down(build: &mut Build, ranks: &[u32], area: u32) {
    let all = build.all(area);
    let pieces = || if all.blocks() == 0 { Vec::new() } else { vec![all] };
    for level in binomial(ranks.len()) {
        let message = |(parent, child): (usize, usize)| Sent {
            from: ranks[parent],
            to: ranks[child],
            out: pieces(),
            into: pieces(),
        };
        build.exchange(level.into_iter().map(message));
    }
}

/// The blocks go down a binomial tree, to each the part of its subtree, and then round.
pub(super) fn scatter_ring(build: &mut Build, root: u32) {
    let ranks = from_root(0..build.n, root);
    let mut spans: Vec<Range<u32>> = std::iter::once(0..build.n).collect();
    // Block b is that of the b-th behind the root. All spans of one depth at the same time.
    while spans.iter().any(|span| span.len() > 1) {
        let (mut messages, mut next) = (Vec::new(), Vec::new());
        for span in spans {
            if span.len() < 2 {
                next.push(span);
                continue;
            }
            let cut = span.start + largest_power_below(span.len() as u32);
            let piece = Piece { area: 0, first: cut, end: span.end };
            messages.push(Sent::one(ranks[span.start as usize], ranks[cut as usize], piece, piece));
            next.extend([span.start..cut, cut..span.end]);
        }
        build.exchange(messages);
        spans = next;
    }
    let blocks: Vec<Range<u32>> = (0..build.n).map(|b| b..b + 1).collect();
    gathers::ring(build, 0, &blocks, &ranks);
}
