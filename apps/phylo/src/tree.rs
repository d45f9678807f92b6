//! Unrooted binary trees: an arena of half-edges, Newick in and out, pruning and regrafting, splits.
//!
//! A node is the ring of its half-edges: a tip has one, an inner node three. [`Tree::back`] leads over a branch to the
//! half-edge at its other end, [`Tree::next`] around the ring of a node. A half-edge also stands for the subtree behind
//! it: what is seen from the branch when one looks at the node.
//!
//! ```text
//!            b = next(a)
//!     a     /
//!  x --- --*        back(a) = x, back(x) = a
//!           \
//!            c = next(b), next(c) = a
//! ```

mod convert;
mod newick;
mod splits;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use convert::Taxa;
pub use convert::TreeError;
pub use newick::{Newick, NewickError, NewickNode};
pub use splits::Splits;

use std::collections::VecDeque;

/// One end of a branch. Of a tree with n taxa, tip t has half-edge t, and inner node i (from 0) has n + 3 i and the two
/// that follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HalfEdge(pub u32);

impl HalfEdge {
    /// As an index.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// No half-edge: an end that is not attached.
const NONE: HalfEdge = HalfEdge(u32::MAX);

/// An unrooted binary tree, or one under construction, with one or several sets of branch lengths (several where
/// partitions have their own).
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    taxa: usize,
    sets: usize,
    back: Vec<HalfEdge>,
    /// `[half-edge][set]`, equal at both ends.
    lengths: Vec<f64>,
}

/// What [`Tree::prune`] took apart: enough to put it back.
#[derive(Debug, Clone, PartialEq)]
pub struct Pruned {
    /// The half-edge of the freed node that leads to the pruned subtree.
    pub root: HalfEdge,
    /// The ends that were at `next(root)` and `next(next(root))`; they are joined now.
    pub ends: [HalfEdge; 2],
    /// The lengths, one a set, that the branches to them had.
    pub lengths: [Vec<f64>; 2],
}

impl Tree {
    /// A tree of unattached nodes: `taxa` tips, `taxa - 2` inner nodes, `sets` sets of branch lengths.
    pub fn new(taxa: usize, sets: usize) -> Tree {
        let halves = taxa + 3 * taxa.saturating_sub(2);
        Tree { taxa, sets, back: vec![NONE; halves], lengths: vec![0.0; halves * sets] }
    }

    /// Number of tips.
    pub fn taxa(&self) -> usize {
        self.taxa
    }

    /// Number of sets of branch lengths.
    pub fn sets(&self) -> usize {
        self.sets
    }

    /// Number of half-edges.
    pub fn halves(&self) -> usize {
        self.back.len()
    }

    /// The half-edge of a tip.
    #[inline]
    pub fn tip(&self, taxon: usize) -> HalfEdge {
        HalfEdge(taxon as u32)
    }

    /// The first half-edge of inner node `i`, `i < taxa - 2`.
    #[inline]
    pub fn inner(&self, i: usize) -> HalfEdge {
        HalfEdge((self.taxa + 3 * i) as u32)
    }

    /// Whether it belongs to a tip; its index then is the taxon.
    #[inline]
    pub fn is_tip(&self, half: HalfEdge) -> bool {
        half.index() < self.taxa
    }

    /// The inner node, from 0, of a half-edge that is no tip's.
    #[inline]
    pub fn inner_node(&self, half: HalfEdge) -> usize {
        (half.index() - self.taxa) / 3
    }

    /// The next half-edge around the node; a tip's own.
    #[inline]
    pub fn next(&self, half: HalfEdge) -> HalfEdge {
        if self.is_tip(half) {
            return half;
        }
        let first = self.taxa + self.inner_node(half) * 3;
        HalfEdge((first + (half.index() - first + 1) % 3) as u32)
    }

    /// The other two half-edges of an inner node.
    #[inline]
    pub fn others(&self, half: HalfEdge) -> [HalfEdge; 2] {
        let next = self.next(half);
        [next, self.next(next)]
    }

    /// The other end of the branch.
    ///
    /// # Panics
    /// Where the half-edge is not attached.
    #[inline]
    pub fn back(&self, half: HalfEdge) -> HalfEdge {
        let back = self.back[half.index()];
        assert!(back != NONE, "half-edge {} is not attached", half.0);
        back
    }

    /// Whether the half-edge is part of a branch.
    #[inline]
    pub fn is_attached(&self, half: HalfEdge) -> bool {
        self.back[half.index()] != NONE
    }

    /// The lengths of the branch, one a set.
    #[inline]
    pub fn lengths(&self, half: HalfEdge) -> &[f64] {
        &self.lengths[half.index() * self.sets..][..self.sets]
    }

    /// The length of the branch in one set.
    #[inline]
    pub fn length(&self, half: HalfEdge, set: usize) -> f64 {
        self.lengths[half.index() * self.sets + set]
    }

    /// Changes the length of the branch in one set, at both ends.
    #[inline]
    pub fn set_length(&mut self, half: HalfEdge, set: usize, length: f64) {
        let back = self.back(half);
        self.lengths[half.index() * self.sets + set] = length;
        self.lengths[back.index() * self.sets + set] = length;
    }

    /// Makes a branch between two ends. What they were attached to before is not told.
    pub fn join(&mut self, a: HalfEdge, b: HalfEdge, lengths: &[f64]) {
        self.back[a.index()] = b;
        self.back[b.index()] = a;
        for (set, &length) in lengths.iter().enumerate() {
            self.set_length(a, set, length);
        }
    }

    /// One half-edge of each branch (the one with the smaller index), in order.
    pub fn branches(&self) -> impl Iterator<Item = HalfEdge> + '_ {
        (0..self.back.len() as u32).map(HalfEdge).filter(|&h| self.back[h.index()] != NONE && h < self.back[h.index()])
    }

    /// The half-edges that point away from `from` and lie in the part of the tree behind it, `from` itself first, every
    /// one before those behind it. What they look back at is their branch.
    pub fn behind(&self, from: HalfEdge) -> Vec<HalfEdge> {
        let mut found = vec![from];
        let mut i = 0;
        while i < found.len() {
            if !self.is_tip(found[i]) {
                found.extend(self.others(found[i]).map(|h| self.back(h)));
            }
            i += 1;
        }
        found
    }

    /// For each half-edge the sum, bit by bit, of the numbers of the taxa behind it, in the tree (perhaps one under construction)
    /// that the branch of `start` belongs to; 0 elsewhere.
    pub fn sums(&self, start: HalfEdge, of_taxa: &[u128]) -> Vec<u128> {
        let mut sums = vec![0; self.halves()];
        let mut behind = self.behind(start);
        behind.extend(self.behind(self.back(start)));
        for &half in behind.iter().rev() {
            sums[half.index()] = match self.is_tip(half) {
                true => of_taxa[half.index()],
                false => self.others(half).iter().fold(0, |sum, &side| sum ^ sums[self.back(side).index()]),
            };
        }
        // The other ends of their branches see all the rest.
        let all = sums[start.index()] ^ sums[self.back(start).index()];
        for &half in &behind {
            sums[self.back(half).index()] = all ^ sums[half.index()];
        }
        sums
    }

    /// Takes the node of `root` out of the branch that it divides; the subtree behind `back(root)` stays attached to it.
    /// The ends are joined by a branch of the summed lengths.
    pub fn prune(&mut self, root: HalfEdge) -> Pruned {
        let sides = self.others(root);
        let ends = sides.map(|h| self.back(h));
        let lengths = sides.map(|h| self.lengths(h).to_vec());
        let sum: Vec<f64> = lengths[0].iter().zip(&lengths[1]).map(|(a, b)| a + b).collect();
        self.join(ends[0], ends[1], &sum);
        sides.iter().for_each(|h| self.back[h.index()] = NONE);
        Pruned { root, ends, lengths }
    }

    /// Puts the free node of `root` into the branch between `ends`, which become the ends at `next(root)` and
    /// `next(next(root))`, with these lengths.
    pub fn regraft(&mut self, root: HalfEdge, ends: [HalfEdge; 2], lengths: [&[f64]; 2]) {
        debug_assert_eq!(self.back(ends[0]), ends[1]);
        let sides = self.others(root);
        self.join(sides[0], ends[0], lengths[0]);
        self.join(sides[1], ends[1], lengths[1]);
    }

    /// Undoes [`Tree::prune`]; the node is free again, wherever it was in between.
    pub fn put_back(&mut self, pruned: &Pruned) {
        self.regraft(pruned.root, pruned.ends, [&pruned.lengths[0], &pruned.lengths[1]]);
    }

    /// Whether the half-edges form one unrooted binary tree of all taxa, with equal finite lengths, not negative, at both
    /// ends of each branch.
    pub fn is_valid(&self) -> bool {
        let attached = self.back.iter().enumerate().all(|(h, &b)| {
            b != NONE
                && b.index() < self.back.len()
                && self.back[b.index()].index() == h
                && self.lengths(HalfEdge(h as u32)) == self.lengths(b)
                && self.lengths(b).iter().all(|l| l.is_finite() && *l >= 0.0)
        });
        if !attached || self.taxa < 3 {
            return false;
        }
        let mut seen = vec![false; self.back.len()];
        let mut stack = vec![HalfEdge(0)];
        let mut reached = 0;
        while let Some(h) = stack.pop() {
            if std::mem::replace(&mut seen[h.index()], true) {
                continue;
            }
            reached += 1;
            stack.push(self.back(h));
            stack.push(self.next(h));
        }
        reached == self.back.len()
    }

    /// The half-edges of the inner nodes around the branch of `center`, as far as so many branches away.
    pub fn within(&self, center: HalfEdge, radius: usize) -> Vec<HalfEdge> {
        let mut found = Vec::new();
        // (half-edge that looks back, distance)
        let mut todo = VecDeque::from([(center, 0), (self.back(center), 0)]);
        while let Some((half, distance)) = todo.pop_front() {
            if !self.is_tip(half) && distance < radius {
                found.push(half);
                for side in self.others(half) {
                    found.push(side);
                    todo.push_back((self.back(side), distance + 1));
                }
            }
        }
        found
    }

    /// An inner branch and its four neighbours, those at its own end first.
    pub fn around(&self, half: HalfEdge) -> [HalfEdge; 5] {
        let [near, far] = [half, self.back(half)].map(|end| self.others(end));
        [half, near[0], near[1], far[0], far[1]]
    }

    /// What hangs at two half-edges changes places, with its branches.
    pub fn exchange_sides(&mut self, a: HalfEdge, b: HalfEdge) {
        let [at_a, at_b] = [a, b].map(|side| (self.back(side), self.lengths(side).to_vec()));
        self.join(a, at_b.0, &at_b.1);
        self.join(b, at_a.0, &at_a.1);
    }

    /// The means of the lengths of a branch in all sets, weighted like this.
    pub fn mean_length(&self, half: HalfEdge, weights: &[f64]) -> f64 {
        match self.lengths(half) {
            [one] => *one,
            all => all.iter().zip(weights).map(|(l, w)| l * w).sum::<f64>() / weights.iter().sum::<f64>(),
        }
    }

    /// The tree with one set of lengths, the means of all sets, weighted like this.
    pub fn mean(&self, weights: &[f64]) -> Tree {
        let mut mean = self.with_sets(&[0]);
        self.branches().for_each(|half| mean.set_length(half, 0, self.mean_length(half, weights)));
        mean
    }

    /// The tree with other sets of branch lengths: set `i` of the result has the lengths of set `from[i]`.
    pub fn with_sets(&self, from: &[usize]) -> Tree {
        let mut tree = Tree::new(self.taxa, from.len());
        tree.back.clone_from(&self.back);
        for half in (0..self.back.len() as u32).map(HalfEdge) {
            for (to, &set) in from.iter().enumerate() {
                tree.lengths[half.index() * from.len() + to] = self.length(half, set);
            }
        }
        tree
    }
}
