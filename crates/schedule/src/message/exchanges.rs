//! All-to-alls.

use super::build::{Build, Sent};
use super::{Local, Piece};

fn block(area: u32, block: u32) -> Piece {
    Piece { area, first: block, end: block + 1 }
}

fn message(from: u32, to: u32) -> Sent {
    Sent::one(from, to, block(0, to), block(1, from))
}

fn own(build: &mut Build) {
    for rank in 0..build.n {
        build.then(rank, Local::Copy { into: block(1, rank), from: block(0, rank) });
    }
}

/// One partner after the other: of a power of two both of a pair exchange.
pub(super) fn pairwise(build: &mut Build) {
    let n = build.n;
    own(build);
    for step in 1..n {
        let to = |rank: u32| if n.is_power_of_two() { rank ^ step } else { (rank + step) % n };
        build.exchange((0..n).map(|rank| message(rank, to(rank))));
    }
}

/// All partners at once, each rank beginning with the next.
pub(super) fn linear(build: &mut Build) {
    let n = build.n;
    own(build);
    build.exchange((0..n).flat_map(|rank| (1..n).map(move |step| message(rank, (rank + step) % n))));
}

/// What is to go d ranks further goes there by the ones of d's binary digits.
pub(super) fn bruck(build: &mut Build) {
    let n = build.n;
    // Position i of a rank: what is to go i ranks further than whoever sent it. It lies in the one or the other area.
    let areas: Vec<[u32; 2]> = (0..n).map(|rank| [0; 2].map(|_| build.area(rank, 0..n))).collect();
    let place = |rank: u32, position: u32, moves: u32| block(areas[rank as usize][moves as usize % 2], position);
    for rank in 0..n {
        for (first, from, blocks) in [(0, rank, n - rank), (n - rank, 0, rank)] {
            if blocks > 0 {
                let into = Piece { area: areas[rank as usize][0], first, end: first + blocks };
                build.then(rank, Local::Copy { into, from: Piece { area: 0, first: from, end: from + blocks } });
            }
        }
    }
    let mut distance = 1;
    while distance < n {
        let positions: Vec<u32> = (0..n).filter(|i| i & distance != 0).collect();
        let moves = |position: u32| (position & (distance - 1)).count_ones();
        let message = |from: u32| {
            let to = (from + distance) % n;
            let ends = |rank, more| runs(positions.iter().map(|&i| place(rank, i, moves(i) + more)));
            Sent { from, to, out: ends(from, 0), into: ends(to, 1) }
        };
        build.exchange((0..n).map(message));
        distance *= 2;
    }
    for rank in 0..n {
        for i in 0..n {
            let (into, from) = (block(1, (rank + n - i) % n), place(rank, i, i.count_ones()));
            build.then(rank, Local::Copy { into, from });
        }
    }
}

/// Pieces that follow each other become one.
pub(super) fn runs(pieces: impl Iterator<Item = Piece>) -> Vec<Piece> {
    let mut found: Vec<Piece> = Vec::new();
    for piece in pieces {
        match found.last_mut() {
            Some(last) if last.area == piece.area && last.end == piece.first => last.end = piece.end,
            _ => found.push(piece),
        }
    }
    found
}
