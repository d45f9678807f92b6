//! Reductions, to a root or for all.

use super::build::{Build, Partial, Sent, hand_on};
use super::{Local, Piece, gathers};
use crate::exchange::{Exchange, Meeting};
use crate::{Order, Span};
use std::ops::Range;

/// The canonical tree, each node at a rank of its own span: at the root, where the root is one of them.
pub(super) fn tree(build: &mut Build, root: u32) {
    let mut scratch = vec![None; build.n as usize];
    let at = node(build, Span::whole(build.n), root, &mut scratch);
    if at == (root, 0) {
        let (into, from) = (build.all(1), build.all(0));
        build.then(root, Local::Copy { into, from });
    }
}

/// Makes a node of the tree; who has it, in which area.
fn node(build: &mut Build, span: Span, root: u32, scratch: &mut [Option<u32>]) -> (u32, u32) {
    let Some((left, right)) = span.parts() else { return (span.first, 0) };
    let (left, right) = (node(build, left, root, scratch), node(build, right, root, scratch));
    let (to, from) = if right.0 == root { (right, left) } else { (left, right) };
    let blocks = build.blocks;
    let area = *scratch[to.0 as usize].get_or_insert_with(|| build.area(to.0, 0..blocks));
    let come = build.all(area);
    build.exchange([Sent::one(from.0, to.0, build.all(from.1), come)]);
    let mine = build.all(to.1);
    let (left, right) = if to == left { (mine, come) } else { (come, mine) };
    build.then(to.0, Local::Combine { into: build.all(1), left, right });
    (to.0, 1)
}

/// Pairs at distances 1, 2, 4 ..., those above the largest power of two doubled up; any number of ranks.
pub(super) fn doubling(build: &mut Build, order: Order) {
    let ranks: Vec<u32> = (0..build.n).collect();
    let mut partials: Vec<Partial> = ranks.iter().map(|&r| Partial::own(build, r, order, 0..build.blocks)).collect();
    doubling_among(build, &mut partials, &ranks);
}

/// As [`doubling`], among those who hold these partial results; whoever takes part ends with the result.
pub(super) fn doubling_among(build: &mut Build, partials: &mut [Partial], ranks: &[u32]) {
    let exchange = Exchange::among(ranks.len());
    let meetings: Vec<Vec<Meeting>> = (0..ranks.len() as u32).map(|i| exchange.meetings(i)).collect();
    let pairs = |found: &dyn Fn(&Meeting) -> Option<u32>| -> Vec<(usize, usize)> {
        let each = meetings.iter().enumerate();
        each.flat_map(|(i, m)| m.iter().filter_map(move |m| Some((i, found(m)? as usize)))).collect()
    };
    let enter = pairs(&|m| if let Meeting::Enter(inside) = m { Some(*inside) } else { None });
    hand_on(build, partials, &enter);
    let distances = meetings[0].iter().filter(|m| matches!(m, Meeting::Swap(_))).count();
    for distance in 0..distances {
        let swaps = pairs(&|m| match m {
            Meeting::Swap(partner) => Some(*partner),
            _ => None,
        });
        let now: Vec<(usize, usize)> = swaps.into_iter().filter(|(a, b)| a ^ b == 1 << distance).collect();
        hand_on(build, partials, &now);
    }
    for partial in partials.iter().take(1 << ranks.len().ilog2()) {
        partial.settle(build);
    }
    // Outside of the core area 1 was never used.
    let all = build.all(1);
    build.exchange(enter.iter().map(|&(outside, inside)| Sent::one(ranks[inside], ranks[outside], all, all)));
}

/// The ranges of blocks that rank `rank` has left to combine after each distance.
fn halves(n: u32, rank: u32) -> Vec<(Range<u32>, Range<u32>)> {
    let mut mine = 0..n;
    let half = |level: u32| {
        let middle = mine.start + mine.len() as u32 / 2;
        let (low, high) = (mine.start..middle, middle..mine.end);
        let (keep, give) = if rank & (1 << level) == 0 { (low, high) } else { (high, low) };
        mine = keep.clone();
        (keep, give)
    };
    (0..n.ilog2()).map(half).collect()
}

/// Rabenseifner's allreduce; the number of ranks is a power of two.
pub(super) fn halving(build: &mut Build) {
    let n = build.n;
    let piece = |area, blocks: &Range<u32>| Piece { area, first: blocks.start, end: blocks.end };
    let halves: Vec<_> = (0..n).map(|rank| halves(n, rank)).collect();
    if n == 1 {
        return build.then(0, Local::Copy { into: piece(1, &(0..1)), from: piece(0, &(0..1)) });
    }
    let scratch: Vec<u32> = (0..n).map(|rank| build.area(rank, halves[rank as usize][0].0.clone())).collect();
    for level in 0..n.ilog2() {
        let at = |rank: u32| &halves[rank as usize][level as usize];
        let mine = u32::from(level > 0);
        let message = |from: u32| {
            let to = from ^ (1 << level);
            let (out, into) = (piece(mine, &at(from).1), piece(scratch[to as usize], &at(to).0));
            Sent::one(from, to, out, into)
        };
        build.exchange((0..n).map(message));
        for rank in 0..n {
            let (own, come) = (piece(mine, &at(rank).0), piece(scratch[rank as usize], &at(rank).0));
            let (left, right) = if rank & (1 << level) == 0 { (own, come) } else { (come, own) };
            build.then(rank, Local::Combine { into: piece(1, &at(rank).0), left, right });
        }
    }
    for level in (0..n.ilog2()).rev() {
        let message = |from: u32| {
            let keep = piece(1, &halves[from as usize][level as usize].0);
            Sent::one(from, from ^ (1 << level), keep, keep)
        };
        build.exchange((0..n).map(message));
    }
}

/// Each block goes round once to be combined, and once to be told.
pub(super) fn ring(build: &mut Build) {
    let n = build.n;
    let piece = |area, block: u32| Piece { area, first: block, end: block + 1 };
    if n == 1 {
        return build.then(0, Local::Copy { into: piece(1, 0), from: piece(0, 0) });
    }
    for step in 0..n - 1 {
        let sent = |rank: u32| (rank + n - step) % n;
        let from = u32::from(step > 0);
        let message = |rank: u32| Sent::one(rank, (rank + 1) % n, piece(from, sent(rank)), piece(1, sent(rank)));
        build.exchange((0..n).map(message));
        for rank in 0..n {
            let come = (sent(rank) + n - 1) % n;
            let into = piece(1, come);
            build.then(rank, Local::Combine { into, left: into, right: piece(0, come) });
        }
    }
    let complete: Vec<Range<u32>> = (0..n).map(|rank| (rank + 1) % n).map(|b| b..b + 1).collect();
    gathers::ring(build, 1, &complete, &(0..n).collect::<Vec<_>>());
}

/// Each rank combines its own block of all contributions, which come one after the other.
fn direct(build: &mut Build) {
    let n = build.n;
    let own = |build: &Build, rank| Partial::own(build, rank, Order::Fixed, rank..rank + 1);
    let mut partials: Vec<Partial> = (0..n).map(|rank| own(build, rank)).collect();
    for step in 1..n {
        let (mut messages, mut come) = (Vec::new(), Vec::new());
        for rank in 0..n {
            let to = (rank + step) % n;
            let (sent, terms) = own(build, rank).handed_to(build, &mut partials[to as usize]);
            messages.push(sent);
            come.push((to, terms));
        }
        build.exchange(messages);
        for (to, terms) in come {
            partials[to as usize].take(build, &terms);
        }
    }
    partials.iter().for_each(|partial| partial.settle(build));
}

/// [`direct`], then blocks go round.
pub(super) fn direct_allreduce(build: &mut Build) {
    direct(build);
    let blocks: Vec<Range<u32>> = (0..build.n).map(|b| b..b + 1).collect();
    gathers::ring(build, 1, &blocks, &(0..build.n).collect::<Vec<_>>());
}

/// [`direct`], then blocks go to the root.
pub(super) fn direct_reduce(build: &mut Build, root: u32) {
    direct(build);
    let others = (0..build.n).filter(|&rank| rank != root);
    build.exchange(others.map(|rank| {
        let piece = Piece { area: 1, first: rank, end: rank + 1 };
        Sent::one(rank, root, piece, piece)
    }));
}
