//! Starting trees by parsimony: randomised stepwise addition, then subtrees pruned and regrafted.
//!
//! Fitch's (1971) sets are bit vectors, one plane a state, in which every site that can cost anything has its own bit (a
//! pattern as many as its weight). A tree under construction has a vector for each half-edge, which holds the set at its
//! node as seen over its branch; where a taxon is put into a branch, the sites whose sets it shares nothing with cost one.

#[cfg(test)]
mod tests;

use crate::alignment::Patterns;
use crate::constraint::{Constraint, Growing};
use crate::random::Random;
use crate::tree::{HalfEdge, Tree};
use std::sync::Arc;

/// Lengths of all branches of a starting tree, expected substitutions a site (RAxML-NG's).
pub const START_LENGTH: f64 = 0.1;
/// At most so many rounds of pruning and regrafting.
const ROUNDS: usize = 8;

/// Sites of one alphabet as bit planes.
#[derive(Debug)]
struct Planes {
    states: usize,
    words: usize,
    /// Where they begin in a vector.
    first: usize,
}

/// Alignments as bit vectors.
#[derive(Debug)]
pub struct Parsimony {
    planes: Vec<Planes>,
    /// Words of a vector.
    len: usize,
    /// `[half-edge][plane][word]`: for tips their letters; for inner half-edges the set behind them.
    vectors: Vec<u64>,
    taxa: usize,
    constraint: Option<Arc<Constraint>>,
}

impl Parsimony {
    /// The patterns of all partitions, with their weights.
    pub fn new(data: &[&Patterns]) -> Parsimony {
        let taxa = data.first().map_or(0, |p| p.taxa());
        let mut planes = Vec::new();
        let mut len = 0;
        let mut sites_of = Vec::new();
        for patterns in data {
            let invariant = patterns.invariant_masks();
            // Where all taxa may have one state, no tree costs anything.
            let costly = (0..patterns.len()).filter(|&p| invariant[p] == 0);
            let sites: Vec<usize> = costly.flat_map(|p| std::iter::repeat_n(p, patterns.weights[p] as usize)).collect();
            let part = Planes { states: patterns.data_type.states(), words: sites.len().div_ceil(64), first: len };
            len += part.states * part.words;
            planes.push(part);
            sites_of.push(sites);
        }
        let halves = Tree::new(taxa, 0).halves();
        let mut vectors = vec![0; halves * len];
        for ((patterns, part), sites) in data.iter().zip(&planes).zip(&sites_of) {
            let masks = patterns.data_type.masks();
            for taxon in 0..taxa {
                for bit in 0..part.words * 64 {
                    // Bits that are no site allow everything.
                    let mask = sites.get(bit).map_or(u32::MAX, |&p| masks[patterns.tips[taxon][p] as usize]);
                    for state in (0..part.states).filter(|s| mask >> s & 1 == 1) {
                        vectors[taxon * len + part.first + state * part.words + bit / 64] |= 1 << (bit % 64);
                    }
                }
            }
        }
        Parsimony { planes, len, vectors, taxa, constraint: None }
    }

    /// Bytes of the vectors.
    pub fn bytes(data: &[&Patterns]) -> u64 {
        let taxa = data.first().map_or(0, |p| p.taxa());
        let words = |patterns: &&Patterns| {
            let costs = patterns.invariant_masks().into_iter().map(|mask| mask == 0);
            let sites: u64 =
                costs.zip(&patterns.weights).map(|(costs, &weight)| u64::from(costs) * u64::from(weight)).sum();
            patterns.data_type.states() as u64 * sites.div_ceil(64)
        };
        Tree::new(taxa, 0).halves() as u64 * size_of::<u64>() as u64 * data.iter().map(words).sum::<u64>()
    }

    /// With trees alone that display this.
    pub fn within(self, constraint: Option<Arc<Constraint>>) -> Parsimony {
        Parsimony { constraint, ..self }
    }

    /// A tree by [stepwise addition](Parsimony::stepwise_tree), then improved by moving subtrees until nothing is gained.
    pub fn start_tree(&mut self, random: &mut Random, sets: usize) -> Tree {
        let mut tree = self.stepwise_tree(random, sets);
        self.improve(&mut tree, random);
        for half in tree.branches().collect::<Vec<_>>() {
            (0..sets).for_each(|set| tree.set_length(half, set, START_LENGTH));
        }
        tree
    }

    /// A tree by stepwise addition in random order, each taxon at one of the places that cost least. Its branches have
    /// [`START_LENGTH`] in each of `sets` sets.
    pub fn stepwise_tree(&mut self, random: &mut Random, sets: usize) -> Tree {
        let mut order: Vec<usize> = (0..self.taxa).collect();
        random.shuffle(&mut order);
        let lengths = vec![START_LENGTH; sets];
        let mut tree = Tree::new(self.taxa, sets);
        let mut ring = tree.inner(0);
        let constraint = self.constraint.clone();
        let mut growing = constraint.as_deref().map(Growing::new);
        let add = |taxon: usize, growing: &mut Option<Growing<'_>>| {
            growing.iter_mut().for_each(|growing| growing.add(taxon));
        };
        for &taxon in &order[..3] {
            add(taxon, &mut growing);
            tree.join(ring, tree.tip(taxon), &lengths);
            ring = tree.next(ring);
        }
        for (i, &taxon) in order.iter().enumerate().skip(3) {
            let root = tree.inner(i - 2);
            let start = tree.tip(order[0]);
            self.fill(&tree, start);
            let places = match &growing {
                Some(growing) => growing.places(&tree, start, taxon),
                None => tree.behind(tree.back(start)),
            };
            add(taxon, &mut growing);
            let (place, _) = self.cheapest(&tree, tree.tip(taxon), &places, random);
            tree.join(root, tree.tip(taxon), &lengths);
            tree.regraft(root, [place, tree.back(place)], [&lengths, &lengths]);
        }
        tree
    }

    /// The least number of changes that the tree needs.
    pub fn cost(&mut self, tree: &Tree) -> u64 {
        let tip = tree.tip(0);
        let behind = tree.behind(tree.back(tip));
        let inner = behind.iter().rev().filter(|&&half| !tree.is_tip(half));
        let cost: u64 = inner.map(|&half| self.combine(tree, half)).sum();
        cost + self.missed(tip, tree.back(tip))
    }

    /// Moves subtrees to cheaper places until a round gains nothing.
    fn improve(&mut self, tree: &mut Tree, random: &mut Random) {
        if tree.taxa() < 4 {
            return;
        }
        let constraint = self.constraint.clone();
        let mut roots: Vec<HalfEdge> = (tree.taxa() as u32..tree.halves() as u32).map(HalfEdge).collect();
        for _ in 0..ROUNDS {
            let mut moved = false;
            random.shuffle(&mut roots);
            for &root in &roots {
                let subtree = tree.back(root);
                // The subtree's own set does not depend on where it stands.
                let inside = tree.behind(subtree);
                inside.iter().rev().filter(|&&half| !tree.is_tip(half)).for_each(|&half| {
                    self.combine(tree, half);
                });
                let bounds = constraint.as_ref().map(|constraint| constraint.bounds(tree));
                let pruned = tree.prune(root);
                self.fill_both(tree, pruned.ends);
                let places = match &bounds {
                    Some(bounds) => bounds.places(tree, pruned.ends, subtree),
                    None => {
                        let mut places = tree.behind(pruned.ends[0]);
                        places.extend(tree.behind(pruned.ends[1]).into_iter().skip(1));
                        places
                    }
                };
                let here = self.insertion_cost(tree, subtree, pruned.ends[0]);
                let (place, cost) = self.cheapest(tree, subtree, &places, random);
                if cost < here {
                    let lengths = vec![START_LENGTH; tree.sets()];
                    tree.regraft(root, [place, tree.back(place)], [&lengths, &lengths]);
                    moved = true;
                } else {
                    tree.put_back(&pruned);
                }
            }
            if !moved {
                break;
            }
        }
    }

    /// One of the cheapest places for a subtree, each with the same probability, and its cost.
    fn cheapest(&self, tree: &Tree, subtree: HalfEdge, places: &[HalfEdge], random: &mut Random) -> (HalfEdge, u64) {
        let mut best = (places[0], u64::MAX);
        let mut ties = 0;
        for &place in places {
            let cost = self.insertion_cost(tree, subtree, place);
            if cost < best.1 {
                (best, ties) = ((place, cost), 1);
            } else if cost == best.1 {
                ties += 1;
                if random.below(ties) == 0 {
                    best = (place, cost);
                }
            }
        }
        best
    }

    /// Vectors of all half-edges, in both directions, of the tree that `tip` belongs to.
    fn fill(&mut self, tree: &Tree, tip: HalfEdge) {
        self.fill_both(tree, [tip, tree.back(tip)]);
    }

    /// Vectors of all half-edges, in both directions, of the tree that the branch between `ends` belongs to.
    fn fill_both(&mut self, tree: &Tree, ends: [HalfEdge; 2]) {
        let mut order = tree.behind(ends[0]);
        order.extend(tree.behind(ends[1]));
        for &half in order.iter().rev().filter(|&&half| !tree.is_tip(half)) {
            self.combine(tree, half);
        }
        // Outwards: what is seen from a node's other branches.
        for &half in order.iter().filter(|&&half| !tree.is_tip(half)) {
            for side in tree.others(half) {
                self.combine(tree, side);
            }
        }
    }

    fn at(&self, half: HalfEdge) -> &[u64] {
        &self.vectors[half.index() * self.len..][..self.len]
    }

    /// Fitch's set at the node of `half` from those behind its other two branches; gives the number of unions.
    fn combine(&mut self, tree: &Tree, half: HalfEdge) -> u64 {
        let [a, b] = tree.others(half).map(|side| tree.back(side));
        let mut out = std::mem::take(&mut self.vectors);
        let (len, to) = (self.len, half.index() * self.len);
        let mut unions = 0;
        for part in &self.planes {
            for w in 0..part.words {
                let mut shared = 0;
                for s in 0..part.states {
                    let at = part.first + s * part.words + w;
                    let both = out[a.index() * len + at] & out[b.index() * len + at];
                    shared |= both;
                    out[to + at] = both;
                }
                if shared != u64::MAX {
                    unions += u64::from((!shared).count_ones());
                    for s in 0..part.states {
                        let at = part.first + s * part.words + w;
                        let either = out[a.index() * len + at] | out[b.index() * len + at];
                        out[to + at] |= either & !shared;
                    }
                }
            }
        }
        self.vectors = out;
        unions
    }

    /// How many sites have nothing in common at two half-edges.
    fn missed(&self, a: HalfEdge, b: HalfEdge) -> u64 {
        let (a, b) = (self.at(a), self.at(b));
        let mut cost = 0;
        for part in &self.planes {
            for w in 0..part.words {
                let index = |s: usize| part.first + s * part.words + w;
                let shared = (0..part.states).fold(0, |shared, s| shared | a[index(s)] & b[index(s)]);
                cost += u64::from((!shared).count_ones());
            }
        }
        cost
    }

    /// What it costs to put a subtree into the branch of `place`.
    fn insertion_cost(&self, tree: &Tree, subtree: HalfEdge, place: HalfEdge) -> u64 {
        let (a, b, t) = (self.at(place), self.at(tree.back(place)), self.at(subtree));
        let mut cost = 0;
        for part in &self.planes {
            for w in 0..part.words {
                let (mut shared, mut kept, mut either) = (0, 0, 0);
                for s in 0..part.states {
                    let at = part.first + s * part.words + w;
                    shared |= a[at] & b[at];
                    kept |= a[at] & b[at] & t[at];
                    either |= (a[at] | b[at]) & t[at];
                }
                cost += u64::from((!(kept | (either & !shared))).count_ones());
            }
        }
        cost
    }
}
