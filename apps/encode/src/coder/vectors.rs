//! What vectors are predicted to be, by those of neighbours (8.4.1.3 of the standard).

use super::{Here, median};
use crate::motion::Part;
use crate::picture::{Macroblock, Motion, Vector};

/// A quarter of a macroblock beside the one that is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Neighbour {
    /// Outside, or not coded yet.
    Missing,
    /// Predicted without this list.
    Without,
    /// With a vector, from a picture of this list.
    Moved(Vector, i8),
}

impl Neighbour {
    fn of(motion: &Motion, list: usize) -> Neighbour {
        match motion.uses(list) {
            true => Neighbour::Moved(motion.vectors[list], motion.references[list]),
            false => Neighbour::Without,
        }
    }

    /// Zero where there is none.
    fn vector(self) -> Vector {
        match self {
            Neighbour::Moved(vector, _) => vector,
            _ => Vector::default(),
        }
    }

    /// Which picture of the list.
    pub(super) fn reference(self) -> Option<i8> {
        match self {
            Neighbour::Moved(_, reference) => Some(reference),
            _ => None,
        }
    }
}

/// For one list, quarters of this macroblock and those around: two rows of quarters below one of others, one column on each side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vectors {
    all: [Neighbour; 12],
    list: usize,
}

impl Vectors {
    pub(super) fn new(here: &Here<'_>, list: usize) -> Vectors {
        let of = |other: Option<&Macroblock>, quarter: usize| {
            other.map_or(Neighbour::Missing, |other| Neighbour::of(&other.motion[quarter], list))
        };
        let mut all = [Neighbour::Missing; 12];
        all[0] = of(here.above_left, 3);
        all[1] = of(here.above, 2);
        all[2] = of(here.above, 3);
        all[3] = of(here.above_right, 2);
        all[4] = of(here.left, 1);
        all[8] = of(here.left, 3);
        Vectors { all, list }
    }

    /// Enters what a part is predicted from.
    pub(super) fn set(&mut self, part: Part, motion: &Motion) {
        for quarter in part.quarters() {
            self.all[5 + quarter % 2 + 4 * (quarter / 2)] = Neighbour::of(motion, self.list);
        }
    }

    /// On the left, above, and above on the right (else on the left) of a part.
    pub(super) fn around(&self, part: Part) -> [Neighbour; 3] {
        let at = 5 + part.x / 8 + 4 * (part.y / 8);
        let right = match self.all[at - 4 + part.width / 8] {
            Neighbour::Missing => self.all[at - 5],
            other => other,
        };
        [self.all[at - 1], self.all[at - 4], right]
    }

    /// What a part's vector is predicted to be, if it leads to a picture of the list.
    pub(super) fn predicted(&self, part: Part, reference: i8) -> Vector {
        let [left, above, right] = self.around(part);
        let preferred = match (part.width, part.height) {
            (16, 8) => Some(if part.y == 0 { above } else { left }),
            (8, 16) => Some(if part.x == 0 { left } else { right }),
            _ => None,
        };
        if let Some(Neighbour::Moved(vector, which)) = preferred
            && which == reference
        {
            return vector;
        }
        if above == Neighbour::Missing && right == Neighbour::Missing && left != Neighbour::Missing {
            return left.vector();
        }
        let is_same = |n: &Neighbour| matches!(n, Neighbour::Moved(_, which) if *which == reference);
        let mut same = [left, above, right].into_iter().filter(is_same);
        if let (Some(only), None) = (same.next(), same.next()) {
            return only.vector();
        }
        median(left.vector(), above.vector(), right.vector())
    }

    /// The vector of a macroblock that is skipped in a picture with one list (8.4.1.1).
    pub(super) fn skipped(&self) -> Vector {
        let [left, above, _] = self.around(Part::WHOLE);
        let still = Neighbour::Moved(Vector::default(), 0);
        match left == Neighbour::Missing || above == Neighbour::Missing || left == still || above == still {
            true => Vector::default(),
            false => self.predicted(Part::WHOLE, 0),
        }
    }
}
