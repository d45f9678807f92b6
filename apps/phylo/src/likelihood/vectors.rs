//! Where vectors of inner nodes lie.
//!
//! With room for all of them each node has its own slot. With less, a slot is taken from the vector that is made again with
//! the fewest steps, and whoever needs that has it made again, from the same numbers in the same order: to the same bits
//! (Izquierdo-Carrasco, Gagneur and Stamatakis 2012, "Trading memory for running time in phylogenetic likelihood
//! computations"). Vectors that steps of a batch still to come will read are **held**: they stay.

use crate::tree::{HalfEdge, Tree};
use std::collections::BTreeSet;

/// A vector that is not there.
const NONE: u32 = u32::MAX;

/// A slot, and what it costs to take it from whoever has it.
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// The node that has it, or [`NONE`].
    owner: u32,
    /// How often that is held.
    held: u32,
    /// The steps that make its vector, from tips; 0 where nobody has it.
    steps: u32,
}

const FREE: Slot = Slot { owner: NONE, held: 0, steps: 0 };

/// Which nodes have vectors, which way these look, and where they are.
#[derive(Debug)]
pub(super) struct Vectors {
    /// For each inner node the half-edge that its vector looks along, where it is known, be it there or not.
    along: Vec<Option<HalfEdge>>,
    /// For each inner node the slot that it has, or [`NONE`].
    slots: Vec<u32>,
    /// For each inner node the steps that make the vector that it had last, from tips.
    steps: Vec<u32>,
    owners: Vec<Slot>,
    /// Where there is not room for all: the slots that nobody holds, by their steps, so that the next to be taken is the first.
    takable: BTreeSet<(u32, u32)>,
    /// Likewise, for each half-edge the [`demand`] of its vector; of those that vectors look along, be they there or not,
    /// it is known.
    demands: Vec<u8>,
}

impl Vectors {
    /// Room for at most so many vectors of the inner nodes of a tree of so many taxa; for fewer than
    /// [`fewest`](Self::fewest), or for more than there are, for as many.
    pub(super) fn new(taxa: usize, most: usize) -> Vectors {
        let nodes = taxa - 2;
        let slots = most.clamp(fewest(taxa), nodes);
        let mut vectors = Vectors {
            along: vec![None; nodes],
            slots: vec![NONE; nodes],
            steps: vec![0; nodes],
            owners: vec![FREE; slots],
            takable: BTreeSet::new(),
            demands: Vec::new(),
        };
        vectors.forget_all();
        vectors
    }

    /// How many there is room for.
    pub(super) fn len(&self) -> usize {
        self.owners.len()
    }

    /// Whether there is not room for all.
    pub(super) fn is_short(&self) -> bool {
        self.owners.len() < self.along.len()
    }

    /// The half-edge along which the vector of a node looks.
    pub(super) fn along(&self, node: usize) -> Option<HalfEdge> {
        self.along[node]
    }

    /// The slot of a node's vector, if that is there.
    pub(super) fn slot(&self, node: usize) -> Option<u32> {
        Some(self.slots[node]).filter(|&slot| slot != NONE)
    }

    /// Whether the vector of a node is there and looks along `half`.
    pub(super) fn has(&self, node: usize, half: HalfEdge) -> bool {
        self.along[node] == Some(half) && self.slots[node] != NONE
    }

    /// A node has no vector any more.
    pub(super) fn forget(&mut self, node: usize) {
        self.along[node] = None;
        if let Some(slot) = self.slot(node) {
            self.set(slot, FREE);
            self.slots[node] = NONE;
        }
    }

    /// None has.
    pub(super) fn forget_all(&mut self) {
        self.along.fill(None);
        self.slots.fill(NONE);
        self.owners.fill(FREE);
        if self.is_short() {
            self.takable = (0..self.owners.len() as u32).map(|slot| (FREE.steps, slot)).collect();
        }
    }

    fn set(&mut self, slot: u32, to: Slot) {
        let before = std::mem::replace(&mut self.owners[slot as usize], to);
        if self.is_short() {
            if before.held == 0 {
                self.takable.remove(&(before.steps, slot));
            }
            if to.held == 0 {
                self.takable.insert((to.steps, slot));
            }
        }
    }

    /// A slot for a new vector of a node, along `half`, from those of `sides`, which are there: without room for all the one
    /// that nobody has, or else whose vector takes the fewest steps.
    ///
    /// # Panics
    /// Where all slots are held: more are than [`fewest`] says.
    pub(super) fn place(&mut self, node: usize, half: HalfEdge, sides: [Option<usize>; 2]) -> u32 {
        let of_sides = sides.into_iter().flatten().map(|side| self.steps[side]);
        let steps = of_sides.fold(1, u32::saturating_add);
        self.steps[node] = steps;
        self.along[node] = Some(half);
        if let Some(slot) = self.slot(node) {
            self.set(slot, Slot { steps, ..self.owners[slot as usize] });
            return slot;
        }
        let slot = match (self.is_short(), self.takable.first()) {
            (false, _) => node as u32,
            (true, Some(&(_, slot))) => slot,
            (true, None) => panic!("all of {} vectors are held", self.owners.len()),
        };
        let before = self.owners[slot as usize].owner;
        if before != NONE {
            self.slots[before as usize] = NONE;
        }
        self.set(slot, Slot { owner: node as u32, held: 0, steps });
        self.slots[node] = slot;
        slot
    }

    /// The vector of a node, which is there, stays until it is released.
    pub(super) fn hold(&mut self, node: usize) {
        let slot = self.owners[self.slots[node] as usize];
        self.set(self.slots[node], Slot { held: slot.held + 1, ..slot });
    }

    /// It may go.
    pub(super) fn release(&mut self, node: usize) {
        let slot = self.owners[self.slots[node] as usize];
        self.set(self.slots[node], Slot { held: slot.held - 1, ..slot });
    }

    /// The two sides of a vector, the more demanding one, which is to be made first, last; as they are where there is room for all.
    pub(super) fn by_demand(&self, mut behind: [HalfEdge; 2]) -> [HalfEdge; 2] {
        behind.sort_by_key(|side| self.demands.get(side.index()));
        behind
    }

    /// Finds the demands of all vectors behind `half` that are not known: what lies behind those that are has not changed.
    pub(super) fn look_behind(&mut self, tree: &Tree, half: HalfEdge) {
        if !self.is_short() {
            return;
        }
        self.demands.resize(tree.halves(), 0);
        let mut unknown = Vec::new();
        let mut stack = vec![half];
        while let Some(half) = stack.pop() {
            if !tree.is_tip(half) && self.along[tree.inner_node(half)] != Some(half) {
                unknown.push(half);
                stack.extend(tree.others(half).map(|side| tree.back(side)));
            }
        }
        for half in unknown.into_iter().rev() {
            let sides = tree.others(half).map(|side| self.demands[tree.back(side).index()]);
            self.demands[half.index()] = demand(sides);
        }
    }
}

/// At most so many vectors are held while another one is made.
pub(crate) const HELD: usize = 9;

/// With so many vectors any tree of so many taxa can be searched.
pub(crate) fn fewest(taxa: usize) -> usize {
    // A vector that needs k to be made has at least 2^(k - 1) taxa behind it ([`demand`]).
    (HELD + taxa.ilog2() as usize + 1).min(taxa - 2)
}

/// How many vectors there must be room for to make one from those of its two sides, which demand so many (0: tips), where the
/// more demanding side is made first (Sethi and Ullman 1970).
fn demand([a, b]: [u8; 2]) -> u8 {
    match [a.max(b), a.min(b)] {
        [0, 0] => 1,
        [more, 0] => more.max(2),
        [more, less] => more.max(less + 1).max(3),
    }
}
