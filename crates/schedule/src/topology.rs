//! Where the participants of a group live: domains within domains (chips, sockets, nodes).

use crate::ScheduleError;
use std::fmt;

/// A part of a machine whose participants reach each other more cheaply than those outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Domain {
    /// So many participants, all equally far from each other.
    Members(u32),
    /// Domains, nearest ranks first.
    Domains(Vec<Domain>),
}

/// A group of participants and the tree of domains that they live in. Ranks are numbered from 0 through the domains
/// in their order, so the ranks of every domain are contiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    root: Domain,
    size: u32,
}

/// The largest group: what happens-before is reasoned about in vectors of this length.
const SIZE_MAX: u32 = 1 << 16;

impl Topology {
    /// A group whose members are all equally far from each other.
    ///
    /// # Errors
    /// [`ScheduleError::EmptyDomain`] for no members, [`ScheduleError::GroupTooLarge`] for more than 65,536.
    pub fn flat(members: u32) -> Result<Topology, ScheduleError> {
        Topology::new(Domain::Members(members))
    }

    /// A group that lives in the given domains.
    ///
    /// # Errors
    /// As [`Topology::flat`]; every domain needs a member.
    pub fn new(root: Domain) -> Result<Topology, ScheduleError> {
        fn count(domain: &Domain, index: &mut usize) -> Result<u64, ScheduleError> {
            let here = *index;
            *index += 1;
            let members = match domain {
                Domain::Members(members) => u64::from(*members),
                Domain::Domains(inner) => {
                    let mut sum = 0;
                    for domain in inner {
                        sum += count(domain, index)?;
                    }
                    sum
                }
            };
            if members == 0 { Err(ScheduleError::EmptyDomain { domain: here }) } else { Ok(members) }
        }
        let asked = count(&root, &mut 0)?;
        match u32::try_from(asked) {
            Ok(size) if size <= SIZE_MAX => Ok(Topology { root, size }),
            _ => Err(ScheduleError::GroupTooLarge { asked, limit: SIZE_MAX.into(), what: "a group" }),
        }
    }

    /// The first `members` places of a regular machine, `counts` from the outside in: `packed(9, &[2, 8])` is a full
    /// chip of eight and a chip with one.
    ///
    /// # Errors
    /// [`ScheduleError::GroupTooLarge`] if the machine has fewer places, and as [`Topology::flat`].
    pub fn packed(members: u32, counts: &[u32]) -> Result<Topology, ScheduleError> {
        fn fill(members: u32, counts: &[u32]) -> Domain {
            match counts {
                [] | [_] => Domain::Members(members),
                [_, inner @ ..] => {
                    let each = inner.iter().product::<u32>().max(1);
                    let full = members / each;
                    let rest = members % each;
                    let mut domains: Vec<Domain> = (0..full).map(|_| fill(each, inner)).collect();
                    if rest > 0 {
                        domains.push(fill(rest, inner));
                    }
                    Domain::Domains(domains)
                }
            }
        }
        let places = counts.iter().try_fold(1u32, |places, &count| places.checked_mul(count)).unwrap_or(u32::MAX);
        if members > places {
            let (asked, limit) = (members.into(), places.into());
            return Err(ScheduleError::GroupTooLarge { asked, limit, what: "the machine" });
        }
        match members {
            0 => Err(ScheduleError::EmptyDomain { domain: 0 }),
            _ => Topology::new(fill(members, counts)),
        }
    }

    /// How many participants there are.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The outermost domain.
    pub fn root(&self) -> &Domain {
        &self.root
    }

    /// How many levels of domains end between two ranks: 0 within one innermost domain, 1 between neighbouring chips
    /// and so on outwards. Ranks must be in the group.
    pub fn distance(&self, a: u32, b: u32) -> u32 {
        fn depth(domain: &Domain) -> u32 {
            match domain {
                Domain::Members(_) => 0,
                Domain::Domains(inner) => 1 + inner.iter().map(depth).max().unwrap_or(0),
            }
        }
        let (low, high) = (a.min(b), a.max(b));
        let (mut domain, mut first) = (&self.root, 0);
        'inwards: loop {
            let Domain::Domains(inner) = domain else { return 0 };
            let mut at = first;
            for candidate in inner {
                let size = members(candidate);
                if (at..at + size).contains(&low) {
                    if (at..at + size).contains(&high) {
                        (domain, first) = (candidate, at);
                        continue 'inwards;
                    }
                    return depth(domain);
                }
                at += size;
            }
            return 0;
        }
    }
}

/// Participants of a domain.
pub(crate) fn members(domain: &Domain) -> u32 {
    match domain {
        Domain::Members(members) => *members,
        Domain::Domains(inner) => inner.iter().map(members).sum(),
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.root)
    }
}

impl fmt::Display for Domain {
    /// `16` for sixteen equals, `[8 8]` for two domains of eight.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Domain::Members(members) => write!(f, "{members}"),
            Domain::Domains(inner) => {
                f.write_str("[")?;
                for (i, domain) in inner.iter().enumerate() {
                    write!(f, "{}{domain}", if i == 0 { "" } else { " " })?;
                }
                f.write_str("]")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_fill_domains_in_order() {
        assert_eq!(Topology::packed(9, &[2, 8]).unwrap().to_string(), "[8 1]");
        assert_eq!(Topology::packed(11, &[2, 2, 4]).unwrap().to_string(), "[[4 4] [3]]");
        assert_eq!(Topology::packed(3, &[8]).unwrap().to_string(), "3");
        let blade = Topology::packed(11, &[2, 2, 4]).unwrap();
        assert_eq!((blade.distance(0, 3), blade.distance(3, 4), blade.distance(7, 8)), (0, 1, 2));
        assert_eq!((blade.distance(10, 0), blade.distance(5, 5)), (2, 0));
    }

    #[test]
    fn what_holds_nobody_is_refused() {
        assert_eq!(Topology::flat(0), Err(ScheduleError::EmptyDomain { domain: 0 }));
        let holey = Domain::Domains(vec![Domain::Members(2), Domain::Members(0)]);
        assert_eq!(Topology::new(holey), Err(ScheduleError::EmptyDomain { domain: 2 }));
        assert!(matches!(Topology::packed(17, &[2, 8]), Err(ScheduleError::GroupTooLarge { limit: 16, .. })));
        assert!(matches!(Topology::flat(70_000), Err(ScheduleError::GroupTooLarge { .. })));
        assert!(Topology::packed(5, &[u32::MAX, u32::MAX]).is_ok());
    }
}
