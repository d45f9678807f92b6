//! Sums of intervals: for each kind and each edge, how many and how long. Fixed size, so a recorder that keeps only
//! these never allocates after it was made.

use crate::record::{Kind, Record};

/// How often something happened and how long it took together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Number of intervals.
    pub count: u64,
    /// Their length together, in ticks.
    pub ticks: u64,
}

/// Sums by kind and edge, of what workers record themselves ([`Kind::SUMMED`]). Intervals with an index that is no edge share one further column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals {
    edges: usize,
    /// Row-major, `Kind::SUMMED` rows of `edges + 1`.
    sums: Box<[Sum]>,
}

impl Totals {
    /// Zero sums for a machine with `edges` edges (at most 65535 are told apart).
    pub fn new(edges: usize) -> Totals {
        let edges = edges.min(usize::from(u16::MAX));
        Totals { edges, sums: vec![Sum::default(); Kind::SUMMED * (edges + 1)].into_boxed_slice() }
    }

    /// The number of edges that are told apart.
    pub fn edges(&self) -> usize {
        self.edges
    }

    /// Adds one interval of `ticks`. Leaves and calls are summed over all tasks: their index is not looked at.
    #[inline]
    pub fn add(&mut self, kind: Kind, index: u16, ticks: u64) {
        let column = match kind {
            Kind::Leaf | Kind::Call => self.edges,
            _ => usize::from(index).min(self.edges),
        };
        // The bounds hold by construction; `get_mut` keeps the fast path free of a call to the panic machinery.
        if let Some(sum) = self.sums.get_mut(kind as usize * (self.edges + 1) + column) {
            sum.count += 1;
            sum.ticks = sum.ticks.wrapping_add(ticks);
        }
    }

    /// Adds a record's interval.
    pub fn add_record(&mut self, record: &Record) {
        self.add(record.kind, record.index, record.ticks());
    }

    /// Adds the sums of another worker; the wider of the two tables of edges is kept.
    pub fn merge(&mut self, other: &Totals) {
        if other.edges > self.edges {
            let mut wide = Totals::new(other.edges);
            wide.merge(self);
            *self = wide;
        }
        for kind in &Kind::ALL[..Kind::SUMMED] {
            let kind = *kind;
            for edge in 0..=other.edges {
                let from = other.sums[kind as usize * (other.edges + 1) + edge];
                let column = if edge == other.edges { self.edges } else { edge };
                let into = &mut self.sums[kind as usize * (self.edges + 1) + column];
                into.count += from.count;
                into.ticks = into.ticks.wrapping_add(from.ticks);
            }
        }
    }

    /// The sum of one kind at one edge; zero for an edge that is not in the table.
    pub fn at(&self, kind: Kind, edge: usize) -> Sum {
        if edge >= self.edges { Sum::default() } else { self.column(kind, edge) }
    }

    /// One kind and edge; the column after the last edge is everything else.
    pub(crate) fn column(&self, kind: Kind, column: usize) -> Sum {
        self.sums.get(kind as usize * (self.edges + 1) + column).copied().unwrap_or_default()
    }

    /// Sets what [`column`](Self::column) gives; `None` if there is no such column.
    pub(crate) fn set_column(&mut self, kind: Kind, column: usize, sum: Sum) -> Option<()> {
        let at = kind as usize * (self.edges + 1) + column;
        (column <= self.edges).then_some(())?;
        *self.sums.get_mut(at)? = sum;
        Some(())
    }

    /// The same intervals in ticks of another length.
    pub(crate) fn scaled(&self, ticks: impl Fn(u64) -> u64) -> Totals {
        let sums = self.sums.iter().map(|sum| Sum { count: sum.count, ticks: ticks(sum.ticks) }).collect();
        Totals { edges: self.edges, sums }
    }

    /// The sum of one kind over all edges and none.
    pub fn of(&self, kind: Kind) -> Sum {
        (0..=self.edges).map(|column| self.column(kind, column)).fold(Sum::default(), |sum, part| Sum {
            count: sum.count + part.count,
            ticks: sum.ticks.wrapping_add(part.ticks),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::NO_INDEX;

    #[test]
    fn sums_by_kind_and_edge() {
        let mut totals = Totals::new(2);
        totals.add(Kind::Wait, 0, 5);
        totals.add(Kind::Wait, 1, 7);
        totals.add(Kind::Wait, 1, 7);
        totals.add(Kind::Wait, NO_INDEX, 100);
        totals.add(Kind::Leaf, 0, 1);
        assert_eq!(totals.at(Kind::Wait, 0), Sum { count: 1, ticks: 5 });
        assert_eq!(totals.at(Kind::Wait, 1), Sum { count: 2, ticks: 14 });
        assert_eq!(totals.of(Kind::Wait), Sum { count: 4, ticks: 119 });
        assert_eq!(totals.of(Kind::Leaf), Sum { count: 1, ticks: 1 });
        assert_eq!(totals.at(Kind::Wait, 2), Sum::default());
    }

    #[test]
    fn merging_keeps_every_interval_whatever_the_widths() {
        let mut narrow = Totals::new(1);
        narrow.add(Kind::Wait, 0, 5);
        narrow.add(Kind::Wait, 9, 11);
        let mut wide = Totals::new(3);
        wide.add(Kind::Wait, 2, 3);
        let mut one = narrow.clone();
        one.merge(&wide);
        let mut other = wide.clone();
        other.merge(&narrow);
        assert_eq!(one, other);
        assert_eq!(one.at(Kind::Wait, 0).ticks, 5);
        assert_eq!(one.at(Kind::Wait, 2).ticks, 3);
        assert_eq!(one.of(Kind::Wait).ticks, 19);
    }
}
