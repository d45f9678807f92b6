//! The algorithms and their names.

use crate::{Kind, ScheduleError};
use std::fmt;
use std::str::FromStr;

/// Who signals whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shape {
    /// Everybody and the root (ATO).
    AllToOne,
    /// A balanced tree whose nodes have up to so many children (TT).
    Tree(u32),
    /// The binomial tree that the canonical order of a reduction draws (BT): each message of a reduction in fixed
    /// order is one partial result.
    Binomial,
    /// Pairs, in rounds of doubling distance (PE).
    Exchange,
}

/// An algorithm: its shape and its variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Algorithm {
    /// Who signals whom.
    pub shape: Shape,
    /// The variant for blades: one participant of each domain speaks for it, so that only few signals and one message
    /// cross between domains.
    pub blade: bool,
    /// Transfers overlap with the ready and go phases.
    pub optimised: bool,
    /// There are no such phases: who contributes or sends leaves what it has in a ring of its own and goes on, and
    /// waits only when the ring is full.
    pub eager: bool,
}

/// The largest degree of a tree that is of any use: above it, all to one is the same.
pub(crate) const DEGREE_MAX: u32 = 1 << 16;

impl Algorithm {
    /// The plain variant of a shape.
    pub const fn plain(shape: Shape) -> Algorithm {
        Algorithm { shape, blade: false, optimised: false, eager: false }
    }

    /// The algorithms that perform an operation, with trees of these degrees.
    pub fn all(kind: Kind, degrees: &[u32]) -> Vec<Algorithm> {
        let mut shapes = vec![Shape::AllToOne];
        shapes.extend(degrees.iter().map(|&degree| Shape::Tree(degree)));
        shapes.extend([Shape::Binomial, Shape::Exchange]);
        let mut found = Vec::new();
        for shape in shapes {
            let variants = [(false, false), (true, false), (false, true)];
            for ((optimised, eager), blade) in variants.into_iter().flat_map(|v| [(v, false), (v, true)]) {
                let algorithm = Algorithm { shape, blade, optimised, eager };
                if algorithm.performs(kind).is_ok() {
                    found.push(algorithm);
                }
            }
        }
        found
    }

    /// Whether it performs an operation.
    ///
    /// # Errors
    /// [`ScheduleError::WrongAlgorithm`] or [`ScheduleError::Degree`].
    pub fn performs(self, kind: Kind) -> Result<(), ScheduleError> {
        let refuse =
            |why| Err(ScheduleError::WrongAlgorithm { algorithm: self.name(kind), operation: kind.name(), why });
        match self.shape {
            Shape::Tree(degree) if !(1..=DEGREE_MAX).contains(&degree) => {
                Err(ScheduleError::Degree { degree, limit: DEGREE_MAX })
            }
            Shape::Exchange if matches!(kind, Kind::Broadcast | Kind::Reduce) => {
                refuse("pairwise exchange ends at everybody, so its ready and go phases cannot be told apart")
            }
            Shape::Exchange if self.blade || self.optimised || self.eager => {
                refuse("pairwise exchange has one variant only")
            }
            _ if self.eager && self.optimised => refuse("a variant is optimised or eager, not both"),
            _ if self.eager && matches!(kind, Kind::Barrier | Kind::Allreduce) => {
                refuse("nobody may leave it before everybody has entered, so everybody has to wait")
            }
            _ if self.optimised && kind == Kind::Barrier => {
                refuse("a barrier moves no bytes, so there is no transfer to overlap")
            }
            _ => Ok(()),
        }
    }

    /// Its name for one kind of operation, after Gaona, Fernandez and Acacio (Euro-Par 2009): `ATOBar`,
    /// `TTBcastB_Opt(2)`, `PEBar`; the eager variants are `ATORed_Eager` and so on.
    pub fn name(self, kind: Kind) -> String {
        let (shape, degree) = match self.shape {
            Shape::AllToOne => ("ATO", None),
            Shape::Tree(degree) => ("TT", Some(degree)),
            Shape::Binomial => ("BT", None),
            Shape::Exchange => ("PE", None),
        };
        let blade = if self.blade { "B" } else { "" };
        let variant = match (self.optimised, self.eager) {
            (true, _) => "_Opt",
            (_, true) => "_Eager",
            _ => "",
        };
        let degree = degree.map_or(String::new(), |degree| format!("({degree})"));
        format!("{shape}{}{blade}{variant}{degree}", stem(kind))
    }

    /// The operation and algorithm that a name says.
    ///
    /// # Errors
    /// [`ScheduleError::UnknownAlgorithm`], and those of [`Algorithm::performs`].
    pub fn parse(text: &str) -> Result<(Kind, Algorithm), ScheduleError> {
        let (kind, algorithm) = split(text).ok_or_else(|| ScheduleError::UnknownAlgorithm { text: text.to_owned() })?;
        algorithm.performs(kind)?;
        Ok((kind, algorithm))
    }
}

const fn stem(kind: Kind) -> &'static str {
    match kind {
        Kind::Barrier => "Bar",
        Kind::Broadcast => "Bcast",
        Kind::Reduce => "Red",
        Kind::Allreduce => "Allred",
    }
}

fn split(text: &str) -> Option<(Kind, Algorithm)> {
    let (head, degree) = match text.strip_suffix(')') {
        Some(open) => {
            let (head, degree) = open.split_once('(')?;
            (head, Some(degree.parse().ok()?))
        }
        None => (text, None),
    };
    let (shape, rest) = head
        .split_at_checked(2)
        .filter(|(shape, _)| matches!(*shape, "TT" | "BT" | "PE"))
        .or_else(|| head.strip_prefix("ATO").map(|rest| ("ATO", rest)))?;
    let shape = match (shape, degree) {
        ("ATO", None) => Shape::AllToOne,
        ("BT", None) => Shape::Binomial,
        ("PE", None) => Shape::Exchange,
        // The papers write TTBar where the degree is not at issue; theirs is mostly 2.
        ("TT", degree) => Shape::Tree(degree.unwrap_or(2)),
        _ => return None,
    };
    let (rest, optimised, eager) = match (rest.strip_suffix("_Opt"), rest.strip_suffix("_Eager")) {
        (Some(rest), _) => (rest, true, false),
        (_, Some(rest)) => (rest, false, true),
        _ => (rest, false, false),
    };
    Kind::ALL.into_iter().find_map(|kind| {
        let blade = match rest.strip_prefix(stem(kind))? {
            "" => false,
            "B" => true,
            _ => return None,
        };
        Some((kind, Algorithm { shape, blade, optimised, eager }))
    })
}

impl FromStr for Algorithm {
    type Err = ScheduleError;

    /// As [`Algorithm::parse`], without the operation.
    fn from_str(text: &str) -> Result<Algorithm, ScheduleError> {
        Algorithm::parse(text).map(|(_, algorithm)| algorithm)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::AllToOne => f.write_str("all to one"),
            Shape::Tree(degree) => write!(f, "tree of degree {degree}"),
            Shape::Binomial => f.write_str("binomial tree"),
            Shape::Exchange => f.write_str("pairwise exchange"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back() {
        for kind in Kind::ALL {
            let all = Algorithm::all(kind, &[1, 2, 3, 10]);
            assert!(all.len() >= 11, "{kind}: {}", all.len());
            for algorithm in all {
                assert_eq!(Algorithm::parse(&algorithm.name(kind)), Ok((kind, algorithm)));
            }
        }
        for (name, shape) in
            [("TTBarB", Shape::Tree(2)), ("ATOBcastB_Opt", Shape::AllToOne), ("PEBar", Shape::Exchange)]
        {
            assert_eq!(name.parse::<Algorithm>().unwrap().shape, shape);
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for name in ["", "T", "TTBar(", "TTBar(x)", "TTBar(2)x", "ATOBar(2)", "ATOBarBB", "XYBar", "é", "TT"] {
            assert!(matches!(Algorithm::parse(name), Err(ScheduleError::UnknownAlgorithm { .. })), "{name}");
        }
        for name in ["PEBcast", "PERed", "PEBarB", "ATOBar_Opt", "PEAllred_Opt", "ATOBar_Eager", "BTAllred_Eager"] {
            assert!(matches!(Algorithm::parse(name), Err(ScheduleError::WrongAlgorithm { .. })), "{name}");
        }
        assert!(matches!(Algorithm::parse("TTBar(0)"), Err(ScheduleError::Degree { degree: 0, .. })));
    }
}
