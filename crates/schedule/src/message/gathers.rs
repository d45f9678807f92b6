//! All-gathers.

use super::build::{Build, Sent};
use super::{Local, Piece};
use std::ops::Range;

/// Each of some ranks has blocks of an area; they go round.
pub(super) fn ring(build: &mut Build, area: u32, blocks: &[Range<u32>], ranks: &[u32]) {
    let n = ranks.len();
    for step in 0..n.saturating_sub(1) {
        let message = |i: usize| {
            let Range { start: first, end } = blocks[(i + n - step) % n];
            let piece = Piece { area, first, end };
            Sent::one(ranks[i], ranks[(i + 1) % n], piece, piece)
        };
        build.exchange((0..n).map(message));
    }
}

/// Pairs at distances 1, 2, 4 ...; the number of ranks is a power of two.
pub(super) fn doubling(build: &mut Build) {
    for level in 0..build.n.ilog2() {
        let d = 1 << level;
        let message = |rank: u32| {
            let first = rank & !(d - 1);
            let piece = Piece { area: 0, first, end: first + d };
            Sent::one(rank, rank ^ d, piece, piece)
        };
        build.exchange((0..build.n).map(message));
    }
}

/// Each rank has its own block first, in scratch memory, and then those behind it.
pub(super) fn bruck(build: &mut Build) {
    let n = build.n;
    let piece = |area, first, end| Piece { area, first, end };
    let scratch: Vec<u32> = (0..n).map(|rank| build.area(rank, 0..n)).collect();
    for (rank, &area) in (0..n).zip(&scratch) {
        build.then(rank, Local::Copy { into: piece(area, 0, 1), from: piece(0, rank, rank + 1) });
    }
    let mut have = 1;
    while have < n {
        let more = have.min(n - have);
        let message = |rank: u32| {
            let to = (rank + n - have) % n;
            let out = piece(scratch[rank as usize], 0, more);
            Sent::one(rank, to, out, piece(scratch[to as usize], have, have + more))
        };
        build.exchange((0..n).map(message));
        have += more;
    }
    for (rank, &area) in (0..n).zip(&scratch) {
        for (first, from, blocks) in [(rank + 1, 1, n - rank - 1), (0, n - rank, rank)] {
            if blocks > 0 {
                let into = piece(0, first, first + blocks);
                build.then(rank, Local::Copy { into, from: piece(area, from, from + blocks) });
            }
        }
    }
}
