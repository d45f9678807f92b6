//! Constraints of topology: groups of taxa that every tree must keep together.
//!
//! A constraint is a tree, perhaps with nodes of many branches, perhaps of some of the taxa only. A tree **displays** it if each
//! of its splits is made by a branch: all its taxa on one side here, all others of the constraint there; where taxa stand that
//! it lacks does not matter. Trees are grown within a constraint, and moves lead from one tree that displays it to another, so
//! none is ever looked at that does not:
//!
//! - Into which branches may a subtree be put whose taxa are on side A of a split A|B? The branches that divide the other taxa of
//!   A from B are a path; the subtree may stand anywhere but beyond its end towards B. That holds for every split by itself. A
//!   split whose one side is within the subtree goes with it.
//! - Neighbours may be exchanged over a branch unless it alone makes a split.
//! - To take over a region of another tree that displays the constraint ([fusing](crate::search)) needs no look: a split is
//!   made inside the region in both trees, or outside in both.
//!
//! What lies behind a half-edge is told by a sum, bit by bit, of random numbers of the constraint's taxa; with 128 bits two sets
//! of taxa share one in fewer than one of 10^30 pairs.

#[cfg(test)]
mod tests;

use crate::copies::only;
use crate::random::{Purpose, Random};
use crate::tree::{HalfEdge, Newick, Taxa, Tree, TreeError};
use std::collections::HashSet;

/// Fewer taxa than this have one tree.
const TAXA_MIN: usize = 4;

/// A tree that is no constraint of these taxa. Places are line and column in its text.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConstraintError {
    /// A tip that is no taxon, or is there twice.
    #[error(transparent)]
    Tip(#[from] TreeError),
    /// Too few taxa for any split.
    #[error("a constraint of {taxa} taxa leaves every tree possible: give at least four")]
    Few {
        /// How many there are.
        taxa: usize,
    },
}

/// What every tree of some taxa must display.
#[derive(Debug, Clone, PartialEq)]
pub struct Constraint {
    /// A random number for each taxon; 0 for those that it lacks.
    numbers: Vec<u128>,
    all: u128,
    /// For each split the taxa on its one side, taxon t being bit t % 64 of word t / 64.
    splits: Vec<Vec<u64>>,
    /// The sums of both sides of all splits.
    sides: HashSet<u128>,
    /// For each taxon the node of the constraint that it hangs at.
    node_of: Vec<Option<usize>>,
    /// For each node the one above and how many hang at it.
    nodes: Vec<(Option<usize>, usize)>,
}

impl Constraint {
    /// The constraint of a tree; lengths and labels of inner nodes mean nothing. Taxon t is `names[t]`.
    ///
    /// # Errors
    /// Tips that are none of the taxa or are there twice, and fewer than four of them.
    pub fn new(newick: &Newick, names: &[String]) -> Result<Constraint, ConstraintError> {
        // Nodes with a single branch below them say nothing.
        let nodes = only(newick, &|_| true).nodes;
        let mut node_of = vec![None; names.len()];
        // For each node the taxa below it.
        let mut below = vec![vec![0u64; names.len().div_ceil(64)]; nodes.len()];
        let mut taxa_of = Taxa::new(names);
        for (i, node) in nodes.iter().enumerate().filter(|(_, node)| node.children.is_empty()) {
            let taxon = taxa_of.taxon(node)?;
            [0, i].iter().for_each(|&node| below[node][taxon / 64] |= 1 << (taxon % 64));
            node_of[taxon] = node.parent;
        }
        let taxa = size(&below[0]);
        if taxa < TAXA_MIN {
            return Err(ConstraintError::Few { taxa });
        }
        for i in (1..nodes.len()).rev() {
            let own = std::mem::take(&mut below[i]);
            if let Some(parent) = nodes[i].parent {
                below[parent].iter_mut().zip(&own).for_each(|(all, here)| *all |= here);
            }
            below[i] = own;
        }
        let mut random = Random::new(0, Purpose::Search, 0);
        let mut number = |taxon: usize| match has(&below[0], taxon) {
            true => u128::from(random.bits()) << 64 | u128::from(random.bits()),
            false => 0,
        };
        let numbers: Vec<u128> = (0..names.len()).map(&mut number).collect();
        let all = sum(&numbers, &below[0]);
        let mut sides = HashSet::new();
        let mut splits = Vec::new();
        for set in below.into_iter().skip(1) {
            let side = sum(&numbers, &set);
            // Two branches at a root make one split.
            if size(&set) >= 2 && taxa - size(&set) >= 2 && sides.insert(side) {
                sides.insert(all ^ side);
                splits.push(set);
            }
        }
        let nodes = nodes.iter().map(|node| (node.parent, node.children.len())).collect();
        Ok(Constraint { numbers, all, splits, sides, node_of, nodes })
    }

    /// How many splits it asks for.
    pub fn splits(&self) -> usize {
        self.splits.len()
    }

    /// The taxa that it has, in order.
    pub fn taxa(&self) -> Vec<usize> {
        (0..self.numbers.len()).filter(|&taxon| self.numbers[taxon] != 0).collect()
    }

    /// The taxa on the smaller side of a split that the tree does not display, if there is one.
    pub fn missing(&self, tree: &Tree) -> Option<Vec<usize>> {
        let made: HashSet<u128> = tree.sums(tree.tip(0), &self.numbers).into_iter().collect();
        let split = self.splits.iter().find(|split| !made.contains(&sum(&self.numbers, split)))?;
        let [inside, outside]: [Vec<usize>; 2] =
            [true, false].map(|side| self.taxa().into_iter().filter(|&taxon| has(split, taxon) == side).collect());
        Some(if outside.len() < inside.len() { outside } else { inside })
    }

    /// Bytes that differ where constraints of the same taxa do.
    pub fn bytes(&self) -> Vec<u8> {
        let mut sides: Vec<u128> = self.sides.iter().copied().collect();
        sides.sort_unstable();
        sides.iter().chain(&self.numbers).flat_map(|number| number.to_le_bytes()).collect()
    }

    /// Where a tree that displays it may be changed.
    pub fn bounds(&self, tree: &Tree) -> Bounds<'_> {
        Bounds { constraint: self, sums: tree.sums(tree.tip(0), &self.numbers) }
    }
}

fn has(set: &[u64], taxon: usize) -> bool {
    set[taxon / 64] >> (taxon % 64) & 1 == 1
}

fn size(set: &[u64]) -> usize {
    set.iter().map(|word| word.count_ones() as usize).sum()
}

/// The sum of the numbers of some taxa.
fn sum(numbers: &[u128], set: &[u64]) -> u128 {
    numbers.iter().enumerate().filter(|(taxon, _)| has(set, *taxon)).fold(0, |sum, (_, number)| sum ^ number)
}

/// Whether one of the two branches behind the node of `half` divides the same taxa.
fn goes_on(tree: &Tree, sums: &[u128], half: HalfEdge) -> bool {
    !tree.is_tip(half) && tree.others(half).iter().any(|&side| sums[tree.back(side).index()] == sums[half.index()])
}

/// What may be changed in a tree without leaving its constraint.
pub struct Bounds<'c> {
    constraint: &'c Constraint,
    /// For each half-edge the sum of the taxa behind it.
    sums: Vec<u128>,
}

impl Bounds<'_> {
    /// Whether the subtree behind `subtree`, which was pruned from the tree, may not be put beyond the node of `half`. That looks
    /// back to where it was, and its branch is a place for it.
    pub fn is_end(&self, tree: &Tree, subtree: HalfEdge, half: HalfEdge) -> bool {
        let (own, side) = (self.sums[subtree.index()], self.sums[half.index()]);
        let is_divided = own != 0 && own ^ side != self.constraint.all && self.constraint.sides.contains(&side);
        is_divided && !goes_on(tree, &self.sums, half)
    }

    /// The places of a subtree that was pruned from between `ends`.
    pub fn places(&self, tree: &Tree, ends: [HalfEdge; 2], subtree: HalfEdge) -> Vec<HalfEdge> {
        let [mut near, far] = ends.map(|end| reached(tree, end, |half| self.is_end(tree, subtree, half)));
        // Both have the branch between them.
        near.extend(far.into_iter().skip(1));
        near
    }

    /// Whether the branch of `half`, which is an inner one, alone makes a split, so that neighbours stay on their sides.
    pub fn is_needed(&self, tree: &Tree, half: HalfEdge) -> bool {
        let ends = [half, tree.back(half)];
        self.constraint.sides.contains(&self.sums[half.index()])
            && !ends.iter().any(|&end| goes_on(tree, &self.sums, end))
    }

    /// Neighbours were exchanged over the branch of `half`.
    pub fn exchanged(&mut self, tree: &Tree, half: HalfEdge) {
        let back = tree.back(half);
        for end in [half, back] {
            let sides = tree.others(end);
            self.sums[end.index()] = sides.iter().fold(0, |sum, &side| sum ^ self.sums[tree.back(side).index()]);
            for side in sides {
                self.sums[side.index()] = self.constraint.all ^ self.sums[tree.back(side).index()];
            }
        }
    }
}

/// The half-edges that point away from `from`, itself first, up to those at whose node is an end.
fn reached(tree: &Tree, from: HalfEdge, is_end: impl Fn(HalfEdge) -> bool) -> Vec<HalfEdge> {
    let mut found = vec![from];
    let mut i = 0;
    while i < found.len() {
        let half = found[i];
        if !tree.is_tip(half) && !is_end(half) {
            found.extend(tree.others(half).map(|side| tree.back(side)));
        }
        i += 1;
    }
    found
}

/// A tree that is grown taxon by taxon within a constraint.
pub struct Growing<'c> {
    constraint: &'c Constraint,
    /// For each split the sums of the taxa that are there by now, on its one side and on the other.
    there: Vec<[u128; 2]>,
}

impl<'c> Growing<'c> {
    /// Without a taxon.
    pub fn new(constraint: &'c Constraint) -> Growing<'c> {
        Growing { constraint, there: vec![[0; 2]; constraint.splits.len()] }
    }

    /// A taxon was put into the tree.
    pub fn add(&mut self, taxon: usize) {
        let number = self.constraint.numbers[taxon];
        for (there, split) in self.there.iter_mut().zip(&self.constraint.splits) {
            there[usize::from(!has(split, taxon))] ^= number;
        }
    }

    /// The branches that a taxon may be put into; of the tree so far, `tip` is the half-edge of one of its tips. There is always
    /// one: where two splits keep the taxon from different parts of the tree, these parts do not make up the whole, and so it is
    /// for any number of parts of a tree that pairwise leave a common rest (Helly).
    pub fn places(&self, tree: &Tree, tip: HalfEdge, taxon: usize) -> Vec<HalfEdge> {
        let order = tree.behind(tree.back(tip));
        if self.constraint.numbers[taxon] == 0 {
            return order;
        }
        let sides = self.there.iter().zip(&self.constraint.splits).filter_map(|(there, split)| {
            let (own, other) = if has(split, taxon) { (there[0], there[1]) } else { (there[1], there[0]) };
            (own != 0 && other != 0).then_some(other)
        });
        let sides: HashSet<u128> = sides.collect();
        let sums = tree.sums(tip, &self.constraint.numbers);
        let is_end = |half: HalfEdge| sides.contains(&sums[half.index()]) && !goes_on(tree, &sums, half);
        // Ends on the way to the tip are one behind the other: it is begun at the last.
        let first = order.iter().rev().find(|&&half| is_end(tree.back(half)));
        reached(tree, *first.unwrap_or(&order[0]), is_end)
    }
}

/// Subtrees that are joined within a constraint, from tips on: of those that hang at one node of the constraint any two, and any
/// one with taxa that it lacks. What hangs at a node alone hangs at the one above.
pub struct Joining<'c> {
    constraint: &'c Constraint,
    /// The node of each subtree; none of taxa that the constraint lacks.
    node_of: Vec<Option<usize>>,
    /// How many subtrees hang at each node.
    left: Vec<usize>,
}

impl<'c> Joining<'c> {
    /// All tips.
    pub fn new(constraint: &'c Constraint) -> Joining<'c> {
        let left = constraint.nodes.iter().map(|(_, count)| *count).collect();
        Joining { constraint, node_of: constraint.node_of.clone(), left }
    }

    /// Whether two subtrees may be joined. Of more than three there are two that may.
    pub fn may_join(&self, i: usize, j: usize) -> bool {
        match (self.node_of[i], self.node_of[j]) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        }
    }

    /// Two subtrees were joined: the new one has the number `i`.
    pub fn join(&mut self, i: usize, j: usize) {
        let (a, b) = (self.node_of[i], self.node_of[j]);
        self.node_of[i] = a.or(b);
        if let (Some(mut node), Some(_)) = (a, b) {
            self.left[node] -= 1;
            while let (1, Some(above)) = (self.left[node], self.constraint.nodes[node].0) {
                node = above;
            }
            self.node_of[i] = Some(node);
        }
    }
}
