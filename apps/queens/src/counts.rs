//! The classes of symmetry, and what must hold between them.

use crate::Error;

/// Solutions of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Counts {
    /// All solutions.
    pub solutions: u128,
    /// Solutions no two of which are images of each other under turns and mirrors.
    pub fundamental: u128,
    /// Solutions that are their own image under half a turn, those of [`Counts::rotation_symmetric`] among them.
    pub point_symmetric: u128,
    /// Solutions that are their own image under a quarter turn.
    pub rotation_symmetric: u128,
}

impl Counts {
    /// From the three classes of n > 1, which are counted by searches that know nothing of each other.
    ///
    /// No solution is its own mirror image (two queens would stand in one line), so an orbit of the square's eight
    /// symmetries has 8 solutions, 4 if they are point-symmetric, or 2 if also a quarter turn leaves them as they are:
    /// solutions = 8 a + 4 b + 2 c, point = 4 b + 2 c, rotation = 2 c, fundamental = a + b + c. By Burnside's lemma the
    /// last is (solutions + point + 2 rotation) / 8, which relates OEIS A002562 to A000170, A032522 and A033148. The one
    /// queen of n = 1 is also its own image under each of the four mirrors.
    ///
    /// # Errors
    /// [`Error::Classes`] where they do not come out even: one of the searches is wrong.
    pub fn new(n: u32, solutions: u128, point: u128, rotation: u128) -> Result<Counts, Error> {
        let wrong = |what| Error::Classes { solutions, point, rotation, what };
        let mirrors = u128::from(n == 1);
        let others = solutions.checked_sub(point).ok_or_else(|| wrong("more are point-symmetric than there are"))?;
        let turned = point.checked_sub(rotation).ok_or_else(|| wrong("a quarter turn twice is half a turn"))?;
        if n > 1 {
            let classes = [
                (others % 8, "those without symmetry come in eights"),
                (turned % 4, "those with only point symmetry come in fours"),
                (rotation % 2, "those that a quarter turn leaves as they are come in pairs"),
            ];
            if let Some((_, what)) = classes.into_iter().find(|(rest, _)| *rest != 0) {
                return Err(wrong(what));
            }
        }
        let eight = solutions + point + 2 * rotation + 4 * mirrors;
        if !eight.is_multiple_of(8) {
            return Err(wrong("the number of orbits is not whole"));
        }
        Ok(Counts { solutions, fundamental: eight / 8, point_symmetric: point, rotation_symmetric: rotation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_that_cannot_be_are_told() {
        assert_eq!(Counts::new(1, 1, 1, 1).unwrap().fundamental, 1);
        assert_eq!(Counts::new(8, 92, 4, 0).unwrap().fundamental, 12);
        // One solution too many or too few, in each class.
        for (solutions, point, rotation) in
            [(93, 4, 0), (91, 4, 0), (92, 5, 0), (92, 8, 0), (92, 4, 1), (92, 4, 5), (3, 4, 0)]
        {
            let error = Counts::new(8, solutions, point, rotation).unwrap_err();
            assert!(error.to_string().contains("internal error"), "{error}");
            assert_eq!(error.exit_status(), 1);
        }
    }
}
