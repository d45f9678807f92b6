//! Operations by node: one rank of each node, its leader, speaks for it.

use super::build::{Build, Partial, Sent, hand_on};
use super::exchanges::runs;
use super::{Local, Piece, gathers, reductions, rooted};
use crate::Order;
use std::ops::Range;

type Nodes = [Range<u32>];

fn firsts(nodes: &Nodes) -> Vec<u32> {
    nodes.iter().map(|node| node.start).collect()
}

/// The ranks of a node, its leader first: the root, where it is one of them.
fn members(node: &Range<u32>, root: u32) -> Vec<u32> {
    let leader = if node.contains(&root) { root } else { node.start };
    rooted::from_root(node.clone(), leader)
}

/// Leaders, the root first.
fn leaders(nodes: &Nodes, root: u32) -> Vec<u32> {
    let leaders: Vec<u32> = nodes.iter().map(|node| members(node, root)[0]).collect();
    let at = leaders.iter().position(|&leader| leader == root).unwrap_or(0);
    leaders[at..].iter().chain(&leaders[..at]).copied().collect()
}

pub(super) fn barrier(build: &mut Build, nodes: &Nodes) {
    for node in nodes {
        for level in rooted::binomial(node.len()).into_iter().rev() {
            let rank = |at: usize| node.start + at as u32;
            build.exchange(level.into_iter().map(|(parent, child)| Sent::signal(rank(child), rank(parent))));
        }
    }
    rooted::dissemination(build, &firsts(nodes));
    for node in nodes {
        rooted::down(build, &node.clone().collect::<Vec<_>>(), 0);
    }
}

pub(super) fn broadcast(build: &mut Build, nodes: &Nodes, root: u32) {
    rooted::down(build, &leaders(nodes, root), 0);
    for node in nodes {
        rooted::down(build, &members(node, root), 0);
    }
}

/// What all have contributed goes up in each node.
fn up(build: &mut Build, nodes: &Nodes, root: u32, order: Order) -> Vec<Partial> {
    let mut leaders = Vec::new();
    for node in nodes {
        let own = |&rank: &u32| Partial::own(build, rank, order, 0..build.blocks);
        let mut partials: Vec<Partial> = members(node, root).iter().map(own).collect();
        fold(build, &mut partials);
        leaders.push(partials.swap_remove(0));
    }
    leaders
}

/// Up a binomial tree to the first.
fn fold(build: &mut Build, partials: &mut [Partial]) {
    for level in rooted::binomial(partials.len()).into_iter().rev() {
        let pairs: Vec<(usize, usize)> = level.into_iter().map(|(parent, child)| (child, parent)).collect();
        hand_on(build, partials, &pairs);
    }
}

pub(super) fn reduce(build: &mut Build, nodes: &Nodes, root: u32, order: Order) {
    let mut partials = up(build, nodes, root, order);
    let at = nodes.iter().position(|node| node.contains(&root)).unwrap_or(0);
    partials.rotate_left(at);
    fold(build, &mut partials);
    partials[0].settle(build);
}

pub(super) fn allreduce(build: &mut Build, nodes: &Nodes, order: Order) {
    let mut partials = up(build, nodes, 0, order);
    reductions::doubling_among(build, &mut partials, &firsts(nodes));
    for node in nodes {
        rooted::down(build, &node.clone().collect::<Vec<_>>(), 1);
    }
}

pub(super) fn allgather(build: &mut Build, nodes: &Nodes) {
    for node in nodes {
        for level in rooted::binomial(node.len()).into_iter().rev() {
            let message = |(parent, child): (usize, usize)| {
                // The child's subtree: it and those behind it, as far as its parent is before it.
                let (first, end) = (node.start + child as u32, node.start + (2 * child - parent) as u32);
                let piece = Piece { area: 0, first, end: end.min(node.end) };
                Sent::one(first, node.start + parent as u32, piece, piece)
            };
            build.exchange(level.into_iter().map(message));
        }
    }
    gathers::ring(build, 0, nodes, &firsts(nodes));
    for node in nodes {
        rooted::down(build, &node.clone().collect::<Vec<_>>(), 0);
    }
}

pub(super) fn alltoall(build: &mut Build, nodes: &Nodes) {
    let n = build.n;
    // At its leader: what a rank sends, and what it receives.
    let mut copies: Vec<[u32; 2]> = vec![[0, 1]; n as usize];
    for node in nodes {
        let others = node.start + 1..node.end;
        for rank in others.clone() {
            copies[rank as usize] = [0; 2].map(|_| build.area(node.start, 0..n));
        }
        let whole = |area| Piece { area, first: 0, end: n };
        let message = |rank: u32| Sent::one(rank, node.start, whole(0), whole(copies[rank as usize][0]));
        build.exchange(others.map(message));
    }
    // Blocks for the ranks of `to` from each of `from`.
    let out = |from: &Range<u32>, to: &Range<u32>| {
        runs(from.clone().map(|r| Piece { area: copies[r as usize][0], first: to.start, end: to.end }))
    };
    let into = |from: &Range<u32>, to: &Range<u32>| {
        let each = from.clone().flat_map(|r| to.clone().map(move |d| (r, d)));
        let pieces: Vec<Piece> =
            each.map(|(r, d)| Piece { area: copies[d as usize][1], first: r, end: r + 1 }).collect();
        pieces
    };
    for node in nodes {
        for rank in node.clone() {
            for d in node.clone() {
                let from = Piece { area: copies[rank as usize][0], first: d, end: d + 1 };
                let into = Piece { area: copies[d as usize][1], first: rank, end: rank + 1 };
                build.then(node.start, Local::Copy { into, from });
            }
        }
    }
    for step in 1..nodes.len() {
        let message = |i: usize| {
            let (from, to) = (&nodes[i], &nodes[(i + step) % nodes.len()]);
            Sent { from: from.start, to: to.start, out: out(from, to), into: into(from, to) }
        };
        build.exchange((0..nodes.len()).map(message));
    }
    for node in nodes {
        let whole = |area| Piece { area, first: 0, end: n };
        let message = |rank: u32| Sent::one(node.start, rank, whole(copies[rank as usize][1]), whole(1));
        build.exchange((node.start + 1..node.end).map(message));
    }
}
