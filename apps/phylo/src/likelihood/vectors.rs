//! Where vectors of inner nodes lie.
//!
//! With room for all of them each node has its own slot. With less, a slot is taken from the vector that is made again with
//! the fewest steps, and whoever needs that has it made again, from the same numbers in the same order: to the same bits
//! (Izquierdo-Carrasco, Gagneur and Stamatakis 2012, "Trading memory for running time in phylogenetic likelihood
//! computations"). Vectors that steps of a batch still to come will read are **held**: they stay.

use crate::tree::{HalfEdge, Tree};

/// A vector that is not there.
const NONE: u32 = u32::MAX;

/// Which nodes have vectors, which way these look, and where they are.
#[derive(Debug)]
pub(super) struct Vectors {
    /// For each inner node the half-edge that its vector looks along, where it is known, be it there or not.
    along: Vec<Option<HalfEdge>>,
    /// For each inner node the slot that it has, or [`NONE`].
    slots: Vec<u32>,
    /// For each inner node the steps that make the vector that it had last, from tips.
    steps: Vec<u32>,
    /// For each slot the node that has it, or [`NONE`], and how often that is held.
    owners: Vec<(u32, u32)>,
}

impl Vectors {
    /// Room for at most so many vectors of the inner nodes of a tree of so many taxa; for fewer than
    /// [`fewest`](Self::fewest), or for more than there are, for as many.
    pub(super) fn new(taxa: usize, most: usize) -> Vectors {
        let nodes = taxa - 2;
        let slots = most.clamp(fewest(taxa), nodes);
        Vectors {
            along: vec![None; nodes],
            slots: vec![NONE; nodes],
            steps: vec![0; nodes],
            owners: vec![(NONE, 0); slots],
        }
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
            self.owners[slot as usize] = (NONE, 0);
            self.slots[node] = NONE;
        }
    }

    /// None has.
    pub(super) fn forget_all(&mut self) {
        self.along.fill(None);
        self.slots.fill(NONE);
        self.owners.fill((NONE, 0));
    }

    /// A slot for a new vector of a node, along `half`, from those of `sides`, which are there.
    ///
    /// # Panics
    /// Where all slots are held: more are than [`fewest`] says.
    pub(super) fn place(&mut self, node: usize, half: HalfEdge, sides: [Option<usize>; 2]) -> u32 {
        let of_sides = sides.into_iter().flatten().map(|side| self.steps[side]);
        self.steps[node] = of_sides.fold(1, u32::saturating_add);
        self.along[node] = Some(half);
        if let Some(slot) = self.slot(node) {
            return slot;
        }
        let slot = match self.is_short() {
            false => node,
            true => self.cheapest(),
        };
        let before = self.owners[slot].0;
        if before != NONE {
            self.slots[before as usize] = NONE;
        }
        self.owners[slot] = (node as u32, 0);
        self.slots[node] = slot as u32;
        slot as u32
    }

    /// A slot that nobody has, or else the one whose vector takes the fewest steps.
    fn cheapest(&self) -> usize {
        let price = |&(owner, _): &(u32, u32)| if owner == NONE { 0 } else { self.steps[owner as usize] };
        let free = self.owners.iter().enumerate().filter(|(_, (_, held))| *held == 0);
        let cheapest = free.min_by_key(|(_, owner)| price(owner)).map(|(slot, _)| slot);
        cheapest.unwrap_or_else(|| panic!("all of {} vectors are held", self.owners.len()))
    }

    /// The vector of a node, which is there, stays until it is released.
    pub(super) fn hold(&mut self, node: usize) {
        self.owners[self.slots[node] as usize].1 += 1;
    }

    /// It may go.
    pub(super) fn release(&mut self, node: usize) {
        self.owners[self.slots[node] as usize].1 -= 1;
    }
}

/// At most so many vectors are held while another one is made.
pub(crate) const HELD: usize = 9;

/// With so many vectors any tree of so many taxa can be searched.
pub(crate) fn fewest(taxa: usize) -> usize {
    // A vector that needs k to be made has at least 2^(k - 1) taxa behind it (`demands`).
    (HELD + taxa.ilog2() as usize + 1).min(taxa - 2)
}

/// For each half-edge behind `half`, and itself, how many vectors there must be room for to make the one that looks along it,
/// where the more demanding side is made first (Sethi and Ullman 1970); 0 for tips and elsewhere.
pub(super) fn demands(tree: &Tree, half: HalfEdge) -> Vec<u8> {
    let mut demands = vec![0u8; tree.halves()];
    for &half in tree.behind(half).iter().rev().filter(|&&half| !tree.is_tip(half)) {
        let [a, b] = tree.others(half).map(|side| demands[tree.back(side).index()]);
        let [more, less] = [a.max(b), a.min(b)];
        demands[half.index()] = match [more, less] {
            [0, 0] => 1,
            [more, 0] => more.max(2),
            [more, less] => more.max(less + 1).max(3),
        };
    }
    demands
}
