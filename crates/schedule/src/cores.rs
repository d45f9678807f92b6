//! How programs that know of each other divide processors: a function of what each wants, its weight, and the time.
//!
//! Think of the processors' time as one strip, a unit long for each core, that repeats every turn. Each program has a piece of
//! it as long as its share; the place `core + phase` says whose a core is at a moment of the turn (McNaughton, "Scheduling
//! with deadlines and loss functions", 1959). So nothing has to be remembered or agreed on: who knows the members and the
//! time knows who has what. Where shares are whole cores nobody ever moves; where they are not, as many cores change
//! hands within a turn as there are pieces that end within a core.
//!
//! ```
//! use multigrain_schedule::cores::{Division, Member, TURN};
//!
//! // Three that want all they can get of two cores: two thirds of a core each.
//! let all = [Member { weight: 1, wanted: 2 }; 3];
//! let division = Division::new(2, &all);
//! assert_eq!(division.share(0), 2 * TURN / 3);
//! assert_eq!([0, 1].map(|core| division.owner(core, 0)), [Some(0), Some(1)]);
//! assert_eq!([0, 1].map(|core| division.owner(core, TURN - 1)), [Some(1), Some(2)]);
//! // One of them ends, and the others have a core each all the time.
//! assert_eq!(Division::new(2, &all[..2]).next_change(0), None);
//! ```

use std::ops::Range;

/// Parts of a turn: what shares and phases are counted in. Many numbers of programs divide it.
pub const TURN: u32 = 5040;

/// A program among others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Of two that want more than they get, one of twice the weight gets twice as much. Zero counts as one.
    pub weight: u32,
    /// How many cores it could use.
    pub wanted: u32,
}

/// Who has which core at which phase of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Division {
    /// The strip's piece of each member, in parts of a turn.
    pieces: Vec<Range<u32>>,
    cores: u32,
}

impl Division {
    /// Divides `cores` among members. Whoever wants less than its weight's part gets what it wants and leaves the rest to the
    /// others by their weights; no core is without an owner while anybody wants it.
    pub fn new(cores: u32, members: &[Member]) -> Division {
        let shares = shares(cores, members);
        let mut pieces = vec![0..0; members.len()];
        let mut end = 0;
        // Whole cores first, so that they do not begin within one.
        for whole in [true, false] {
            for (piece, &share) in pieces.iter_mut().zip(&shares).filter(|(_, share)| (*share % TURN == 0) == whole) {
                *piece = end..end + share;
                end += share;
            }
        }
        Division { pieces, cores }
    }

    /// What a member gets, in parts of a turn: [`TURN`] is one core all the time.
    pub fn share(&self, member: usize) -> u32 {
        self.pieces[member].len() as u32
    }

    /// Who has a core at a phase, if anybody wants it. A phase is less than [`TURN`].
    pub fn owner(&self, core: u32, phase: u32) -> Option<usize> {
        self.pieces.iter().position(|piece| piece.contains(&(core * TURN + phase)))
    }

    /// The cores that a member has at a phase, in ascending order.
    pub fn of(&self, member: usize, phase: u32) -> impl Iterator<Item = u32> + '_ {
        (0..self.cores).filter(move |core| self.pieces[member].contains(&(core * TURN + phase)))
    }

    /// The core on which a member's piece begins: the next that it has, where it has none at the moment. None if it wants none.
    pub fn next_of(&self, member: usize) -> Option<u32> {
        let piece = &self.pieces[member];
        (!piece.is_empty()).then_some(piece.start / TURN)
    }

    /// The first phase after this one at which any core changes hands within the turn.
    pub fn next_change(&self, phase: u32) -> Option<u32> {
        let ends = self.pieces.iter().flat_map(|piece| [piece.start % TURN, piece.end % TURN]);
        ends.filter(|&end| end > phase).min()
    }
}

/// The strip's length of each: raised for all by weight until they have what they want, or nothing is left.
fn shares(cores: u32, members: &[Member]) -> Vec<u32> {
    let weight = |member: usize| u64::from(members[member].weight.max(1));
    let wanted = |member: usize| u64::from(members[member].wanted.min(cores)) * u64::from(TURN);
    let mut left = u64::from(cores) * u64::from(TURN);
    let mut shares = vec![0; members.len()];
    let mut open: Vec<usize> = (0..members.len()).filter(|&member| wanted(member) > 0).collect();
    loop {
        let weights: u64 = open.iter().map(|&member| weight(member)).sum();
        let Some(place) = open.iter().position(|&member| wanted(member) * weights <= weight(member) * left) else {
            break;
        };
        let satisfied = open.remove(place);
        shares[satisfied] = wanted(satisfied) as u32;
        left -= wanted(satisfied);
    }
    // Each rounds what is left for it and those behind it, so that all of it is given.
    let mut weights: u64 = open.iter().map(|&member| weight(member)).sum();
    for member in open {
        let share = (left * weight(member)).div_ceil(weights.max(1));
        shares[member] = share as u32;
        left -= share;
        weights -= weight(member);
    }
    shares
}
