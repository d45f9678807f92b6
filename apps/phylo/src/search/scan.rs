//! Places for a pruned subtree: found by walking outwards, scored in one batch, refined one by one.

use crate::kernel::{Operand, Source, Step};
use crate::likelihood::{Likelihood, Precision};
use crate::tree::{HalfEdge, Pruned};

/// At most so many places are fitted at once.
pub(super) const FITS: usize = 8;

/// A branch into which a pruned subtree may be inserted.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The branch: this half-edge looks back to where the subtree came from.
    pub(super) far: HalfEdge,
    /// The vector at the near end, looking over the branch.
    pub(super) near: Source,
    /// The log-likelihood with the subtree in the middle of the branch, nothing optimised.
    pub(super) score: f64,
}

/// An insertion with its three branches optimised.
#[derive(Debug, Clone)]
pub(super) struct Fitted {
    /// The log-likelihood.
    pub(super) log_likelihood: f64,
    /// The branch, as in [`Place`].
    pub(super) far: HalfEdge,
    /// Lengths towards the near end, the far end and the subtree, one a set each.
    pub(super) lengths: [Vec<f64>; 3],
}

impl Likelihood<'_> {
    /// All places within a radius of where the subtree was (the joined branch itself, at distance 0, is none of them),
    /// with their scores. The focus is the joined branch, all vectors look at it; they stay as they are, and those of the
    /// places lie in spare slots until the next scan.
    pub(super) fn scan(&mut self, pruned: &Pruned, radius: std::ops::RangeInclusive<usize>) -> Vec<Place> {
        let subtree = self.tree().back(pruned.root);
        let propagated = self.spare_slot();
        // The slots that follow are for `fit`.
        let mut next_slot = self.spare_slot() + 1 + FITS as u32;
        self.begin();
        let from = self.source(subtree);
        let lengths = self.tree().lengths(pruned.root).to_vec();
        let from = self.branch(from, &lengths);
        self.push(Step::Propagate { from, to: propagated });
        let mut places = Vec::new();
        // (half-edge that looks back, what is behind its back, distance of the branches behind it)
        let mut stack: Vec<(HalfEdge, Operand, usize)> = Vec::new();
        let joined = self.tree().lengths(pruned.ends[0]).to_vec();
        for [to, from] in [[pruned.ends[1], pruned.ends[0]], [pruned.ends[0], pruned.ends[1]]] {
            let source = self.source(from);
            let operand = self.branch(source, &joined);
            stack.push((to, operand, 1));
        }
        while let Some((half, above, distance)) = stack.pop() {
            if self.tree().is_tip(half) || distance > *radius.end() {
                continue;
            }
            let sides = self.tree().others(half);
            let behind = sides.map(|side| {
                let (source, lengths) = (self.source(self.tree().back(side)), self.tree().lengths(side).to_vec());
                self.branch(source, &lengths)
            });
            for (i, side) in sides.into_iter().enumerate() {
                let far = self.tree().back(side);
                let near = Source::Slot(next_slot);
                self.push(Step::Combine { left: above, right: behind[1 - i], to: next_slot });
                next_slot += 1;
                if distance >= *radius.start() {
                    let lengths: Vec<f64> = self.tree().lengths(side).iter().map(|l| l / 2.0).collect();
                    let far_operand = self.branch(behind[i].source, &lengths);
                    let near = Operand { source: near, branch: far_operand.branch };
                    let result = places.len() as u32;
                    self.push(Step::Insert { near, far: far_operand, subtree: propagated, result });
                    places.push(Place { far, near: near.source, score: 0.0 });
                }
                // Over the whole branch: needed where the walk goes on.
                let on = Operand { source: near, branch: behind[i].branch };
                stack.push((far, on, distance + 1));
            }
        }
        self.run();
        for (i, place) in places.iter_mut().enumerate() {
            place.score = self.value(i);
        }
        places
    }

    /// Optimises the three branches around each of some insertions, at most [`FITS`], each in turn, `passes` times. The
    /// places are independent of each other, so that the same step of all of them is one batch.
    pub(super) fn fit(
        &mut self,
        pruned: &Pruned,
        places: &[Place],
        passes: usize,
        precision: Precision,
    ) -> Vec<Fitted> {
        assert!(places.len() <= FITS);
        if places.is_empty() {
            return vec![];
        }
        let subtree = self.source(self.tree().back(pruned.root));
        let length = self.tree().lengths(pruned.root).to_vec();
        let ends: Vec<[Source; 3]> = places.iter().map(|p| [p.near, self.source(p.far), subtree]).collect();
        let start = |place: &Place| {
            let half: Vec<f64> = self.tree().lengths(place.far).iter().map(|l| l / 2.0).collect();
            [half.clone(), half, length.clone()]
        };
        let mut lengths: Vec<[Vec<f64>; 3]> = places.iter().map(start).collect();
        for _ in 0..passes {
            for which in [2, 0, 1] {
                let [a, b] = [(which + 1) % 3, (which + 2) % 3];
                self.begin();
                let mut branches = Vec::with_capacity(places.len());
                for (i, (ends, lengths)) in ends.iter().zip(&lengths).enumerate() {
                    let center = self.spare_slot() + 1 + i as u32;
                    let left = self.branch(ends[a], &lengths[a]);
                    let right = self.branch(ends[b], &lengths[b]);
                    self.push(Step::Combine { left, right, to: center });
                    branches.push((Source::Slot(center), ends[which]));
                }
                let mut optimised: Vec<Vec<f64>> = lengths.iter().map(|l| l[which].clone()).collect();
                self.newton(&branches, &mut optimised, precision);
                lengths.iter_mut().zip(optimised).for_each(|(lengths, new)| lengths[which] = new);
            }
        }
        let values = self.at_lengths(lengths.iter().map(|l| l[1].as_slice()));
        let fitted = places.iter().zip(lengths).zip(values);
        fitted.map(|((place, lengths), log_likelihood)| Fitted { log_likelihood, far: place.far, lengths }).collect()
    }

    /// Puts the subtree into a fitted place; the focus is the joined branch before, the subtree's branch after.
    pub(super) fn accept(&mut self, pruned: &Pruned, fitted: &Fitted) {
        let near = self.tree().back(fitted.far);
        self.move_focus(fitted.far);
        let [a, b, c] = &fitted.lengths;
        self.regraft(pruned.root, [near, fitted.far], [a, b, c]);
    }
}
