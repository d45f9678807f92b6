//! The order in which a reduction combines.

use crate::step::{Area, Step};

/// A node of the canonical tree: the ranks `first..end`.
///
/// The canonical tree over `n` ranks cuts a span of more than one rank after the largest power of two that is smaller
/// than its length, and combines what the left part gives with what the right part gives. For six participants that is
/// ((0 1) (2 3)) (4 5). It is the tree of pairwise summation, whose error grows with log n (Higham, "The accuracy of
/// floating point summation", SIAM J. Sci. Comput. 14, 1993), and it depends on `n` only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// First rank.
    pub first: u32,
    /// One more than the last.
    pub end: u32,
}

impl Span {
    /// All ranks of a group of `n`.
    pub const fn whole(n: u32) -> Span {
        Span { first: 0, end: n }
    }

    /// One rank.
    pub const fn of(rank: u32) -> Span {
        Span { first: rank, end: rank + 1 }
    }

    /// How many ranks.
    pub const fn ranks(self) -> u32 {
        self.end - self.first
    }

    /// Left and right part; `None` for one rank.
    pub fn parts(self) -> Option<(Span, Span)> {
        (self.ranks() > 1).then(|| {
            let cut = self.first + largest_power_below(self.ranks());
            (Span { first: self.first, end: cut }, Span { first: cut, end: self.end })
        })
    }

    /// The node of the canonical tree over `n` ranks whose parts these are, if there is one.
    fn joined(n: u32, left: Span, right: Span) -> Option<Span> {
        if left.end != right.first {
            return None;
        }
        let mut node = Span::whole(n);
        while let Some((a, b)) = node.parts() {
            if (a, b) == (left, right) {
                return Some(node);
            }
            node = if left.end <= a.end { a } else { b };
        }
        None
    }
}

/// The largest power of two that is smaller than `n`, which is at least 2.
pub(crate) const fn largest_power_below(n: u32) -> u32 {
    1 << (31 - (n - 1).leading_zeros())
}

/// Partial results that a participant holds: nodes of the canonical tree that cannot be combined further, in the order
/// of their ranks; or, if the order is free, one partial result.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    n: u32,
    free: bool,
    items: Vec<(Span, Area)>,
}

impl Terms {
    pub(crate) fn new(n: u32, free: bool, own: (u32, Area)) -> Terms {
        Terms { n, free, items: vec![(Span::of(own.0), own.1)] }
    }

    pub(crate) fn items(&self) -> &[(Span, Area)] {
        &self.items
    }

    /// Takes in terms, combining whatever can be. `into` says where the result of two areas goes.
    pub(crate) fn take(
        &mut self,
        terms: &[(Span, Area)],
        steps: &mut Vec<Step>,
        mut into: impl FnMut(Area, Area) -> Area,
    ) {
        for &term in terms {
            if self.free {
                let (span, left) = self.items[0];
                let area = into(left, term.1);
                steps.push(Step::Combine { into: area, left, right: term.1 });
                self.items[0] = (span, area);
                continue;
            }
            let mut at = self.items.partition_point(|(span, _)| span.first < term.0.first);
            self.items.insert(at, term);
            loop {
                let pair = |i: usize| match self.items.get(i..i + 2) {
                    Some([a, b]) => Span::joined(self.n, a.0, b.0),
                    _ => None,
                };
                let (left, node) = match (pair(at), at.checked_sub(1).and_then(|before| Some((before, pair(before)?))))
                {
                    (Some(node), _) => (at, node),
                    (None, Some((before, node))) => (before, node),
                    (None, None) => break,
                };
                let (a, b) = (self.items[left].1, self.items[left + 1].1);
                let area = into(a, b);
                steps.push(Step::Combine { into: area, left: a, right: b });
                self.items[left] = (node, area);
                self.items.remove(left + 1);
                at = left;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::Copies;

    fn text(span: Span) -> String {
        span.parts().map_or(span.first.to_string(), |(a, b)| format!("({} {})", text(a), text(b)))
    }

    #[test]
    fn the_canonical_tree_is_that_of_pairwise_summation() {
        assert_eq!(text(Span::whole(6)), "(((0 1) (2 3)) (4 5))");
        assert_eq!(text(Span::whole(7)), "(((0 1) (2 3)) ((4 5) 6))");
        assert_eq!(text(Span::whole(1)), "0");
    }

    #[test]
    fn terms_in_any_order_end_as_the_whole() {
        for n in 1..=33u32 {
            for stride in [1, 5, 7, 11] {
                if (1..=n).any(|d| d > 1 && n % d == 0 && stride % d == 0) {
                    continue;
                }
                let order: Vec<u32> = (0..n).map(|i| (i * stride + 3) % n).collect();
                let area = |rank| Area { index: rank, copies: Copies::One };
                let mut steps = Vec::new();
                let mut terms = Terms::new(n, false, (order[0], area(order[0])));
                for &rank in &order[1..] {
                    terms.take(&[(Span::of(rank), area(rank))], &mut steps, |left, _| left);
                }
                assert_eq!(terms.items(), [(Span::whole(n), area(0))], "{n} ranks, stride {stride}");
                assert_eq!(steps.len() as u32, n - 1);
            }
        }
    }
}
