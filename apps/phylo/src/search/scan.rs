//! Places for a pruned subtree: found by walking outwards, scored in one batch, refined one by one.

use crate::constraint::Bounds;
use crate::kernel::{Operand, Source, Step};
use crate::likelihood::{HELD, Likelihood, Precision};
use crate::tree::{HalfEdge, Pruned};

/// At most so many places are fitted at once: the vector of each is held, and that of the subtree.
pub(super) const FITS: usize = HELD - 1;

/// A branch into which a pruned subtree may be inserted.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The branch: this half-edge looks back to where the subtree came from.
    pub(super) far: HalfEdge,
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
    /// All places within a radius, and within bounds, of where the subtree was (the joined branch itself, at distance 0, is none of them),
    /// with their scores. The focus is the joined branch, all vectors look at it and stay as they are. Vectors at places
    /// are needed no longer than what lies behind them is walked through, so two for each distance are enough.
    pub(super) fn scan(&mut self, pruned: &Pruned, radius: usize, bounds: Option<&Bounds<'_>>) -> Vec<Place> {
        let subtree = self.tree().back(pruned.root);
        let propagated = self.spare_slot();
        self.begin();
        let from = self.hold(subtree);
        let lengths = self.tree().lengths(pruned.root).to_vec();
        let from = self.branch(from, &lengths);
        self.push(Step::Propagate { from, to: propagated });
        self.release(subtree);
        let mut places = Vec::new();
        // (half-edge that looks back, what is at its back, distance of the branches behind it)
        let mut stack: Vec<(HalfEdge, Source, usize)> = Vec::new();
        for [to, from] in [[pruned.ends[1], pruned.ends[0]], [pruned.ends[0], pruned.ends[1]]] {
            stack.push((to, self.hold(from), 1));
        }
        while let Some((half, above, distance)) = stack.pop() {
            let is_end = |bounds: &Bounds<'_>| bounds.is_end(self.tree(), subtree, half);
            if self.tree().is_tip(half) || distance > radius || bounds.is_some_and(is_end) {
                continue;
            }
            let sides = self.tree().others(half);
            let sources = sides.map(|side| self.hold(self.tree().back(side)));
            self.go_on_if_long();
            let lengths = self.tree().lengths(half).to_vec();
            let above = self.branch(above, &lengths);
            let behind = [0, 1].map(|i| {
                let lengths = self.tree().lengths(sides[i]).to_vec();
                self.branch(sources[i], &lengths)
            });
            for (i, side) in sides.into_iter().enumerate() {
                let far = self.tree().back(side);
                let slot = propagated + (2 * distance - 1 + i) as u32;
                let near = Source::Slot(slot);
                self.push(Step::Combine { left: above, right: behind[1 - i], to: slot });
                let lengths: Vec<f64> = self.tree().lengths(side).iter().map(|l| l / 2.0).collect();
                let far_operand = self.branch(behind[i].source, &lengths);
                let half = Operand { source: near, branch: far_operand.branch };
                let result = places.len() as u32;
                self.push(Step::Insert { near: half, far: far_operand, subtree: propagated, result });
                places.push(Place { far, score: 0.0 });
                stack.push((far, near, distance + 1));
            }
            sides.into_iter().for_each(|side| self.release(self.tree().back(side)));
        }
        pruned.ends.into_iter().for_each(|end| self.release(end));
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
        let root = self.tree().back(pruned.root);
        let length = self.tree().lengths(pruned.root).to_vec();
        let first = self.spare_slot();
        self.begin();
        let subtree = self.hold(root);
        let mut ends: Vec<[Source; 3]> = Vec::with_capacity(places.len());
        for (place, slot) in places.iter().zip(first..) {
            self.push_near(pruned, place.far, slot);
            ends.push([Source::Slot(slot), self.hold(place.far), subtree]);
        }
        self.run();
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
                    let center = first + (FITS + i) as u32;
                    let left = self.branch(ends[a], &lengths[a]);
                    let right = self.branch(ends[b], &lengths[b]);
                    self.push(Step::Combine { left, right, to: center });
                    branches.push((Source::Slot(center), ends[which]));
                }
                let mut optimised: Vec<Vec<f64>> = lengths.iter().map(|l| l[which].clone()).collect();
                self.newton(&branches, &mut optimised, branches.len(), precision);
                lengths.iter_mut().zip(optimised).for_each(|(lengths, new)| lengths[which] = new);
            }
        }
        let values = self.at_lengths(lengths.iter().map(|l| l[1].as_slice()));
        self.release(root);
        places.iter().for_each(|place| self.release(place.far));
        let fitted = places.iter().zip(lengths).zip(values);
        fitted.map(|((place, lengths), log_likelihood)| Fitted { log_likelihood, far: place.far, lengths }).collect()
    }

    /// Adds the steps after which a slot has the vector at the near end of `far`'s branch, looking over it.
    fn push_near(&mut self, pruned: &Pruned, far: HalfEdge, slot: u32) {
        // The branches between the joined one and this one, the nearest last.
        let mut way = vec![far];
        let joined = loop {
            let towards = self.towards_focus(self.tree().back(way[way.len() - 1]));
            if pruned.ends.contains(&towards) {
                break towards;
            }
            way.push(towards);
        };
        let beyond = if joined == pruned.ends[0] { pruned.ends[1] } else { pruned.ends[0] };
        let (mut above, mut lengths) = (self.hold(beyond), self.tree().lengths(joined).to_vec());
        let mut towards = joined;
        // What one step reads the next may not write: the last one writes where it is asked to, those before it in turns.
        let spare = self.spare_slot() + 2 * FITS as u32;
        for (left, &far) in (0..way.len() as u32).rev().zip(way.iter().rev()) {
            let side = self.tree().back(far);
            let others = self.tree().others(side);
            let sibling = if others[0] == towards { others[1] } else { others[0] };
            let beside = self.tree().back(sibling);
            let (source, to) = (self.hold(beside), if left == 0 { slot } else { spare + left % 2 });
            let near = self.branch(above, &lengths);
            lengths = self.tree().lengths(sibling).to_vec();
            let right = self.branch(source, &lengths);
            self.push(Step::Combine { left: near, right, to });
            self.release(beside);
            (above, lengths) = (Source::Slot(to), self.tree().lengths(far).to_vec());
            towards = far;
        }
        self.release(beyond);
    }

    /// Puts the subtree into a fitted place; the focus is the joined branch before, the subtree's branch after.
    pub(super) fn accept(&mut self, pruned: &Pruned, fitted: &Fitted) {
        let near = self.tree().back(fitted.far);
        self.move_focus(fitted.far);
        let [a, b, c] = &fitted.lengths;
        self.regraft(pruned.root, [near, fitted.far], [a, b, c]);
    }
}
