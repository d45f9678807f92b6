//! Which algorithm serves which operation, group size and number of bytes best: tables made from measurements.
//!
//! A table is repaired before it is used: where an operation was measured slower than a dearer one that contains it, it
//! is executed as the dearer one. So, by the table's own figures, more bytes, a dearer operation, or two operations
//! instead of one never pay.

mod repair;

use crate::{Algorithm, Kind, Shape};
use std::fmt;

/// One measurement, or one figure of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Operation.
    pub kind: Kind,
    /// Algorithm.
    pub algorithm: Algorithm,
    /// Participants.
    pub size: u32,
    /// Bytes of a contribution or message; 0 for a barrier.
    pub bytes: u64,
    /// Time of the whole operation.
    pub latency_ns: f64,
}

/// How an operation is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By an algorithm of its own.
    Direct(Algorithm),
    /// As an allreduce: a broadcast by combining the root's bits with zeros, a reduce by keeping the result at the root
    /// only, a barrier with nothing.
    Allreduce(Algorithm),
    /// An allreduce as a reduce and then a broadcast.
    ReduceBroadcast(Algorithm, Algorithm),
}

/// One line of a table: for groups of `size_max` and fewer, down to the line before, and so many bytes and fewer.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Operation.
    pub kind: Kind,
    /// The largest group that the line is for.
    pub size_max: u32,
    /// The most bytes that the line is for.
    pub bytes_max: u64,
    /// What to do.
    pub way: Way,
    /// Predicted time at `size_max` and `bytes_max`; none if nothing was measured.
    pub latency_ns: Option<f64>,
    /// Why.
    pub reason: String,
}

/// Up to so many bytes what a message costs besides its bytes is assumed to count for more than they do.
const SHORT_BYTES: u64 = 4 << 10;

/// A table for one kind of machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// By kind, then size, then bytes, ascending; the last size and bytes of a kind serve everything above.
    rows: Vec<Row>,
}

impl Table {
    /// What is sensible without any measurement: all to one for few participants, then exchange and binomial trees. A long
    /// message goes down a tree of degree two: each participant then hands on no more than twice what it gets, whatever the
    /// size of the group, and rounds follow each other.
    pub fn assumed() -> Table {
        let up_to = |bytes_max, kind, size_max, shape, why: &str| Row {
            kind,
            size_max,
            bytes_max,
            way: Way::Direct(Algorithm {
                shape,
                blade: false,
                optimised: kind == Kind::Allreduce && shape != Shape::Exchange,
                eager: matches!(kind, Kind::Broadcast | Kind::Reduce),
            }),
            latency_ns: None,
            reason: format!("nothing measured; {why}"),
        };
        let plain = |kind, size_max, shape, why| up_to(u64::MAX, kind, size_max, shape, why);
        let all = u32::MAX;
        let (few, short) = ("few participants, and nobody waits for the others", SHORT_BYTES);
        let long = "a long message: nobody hands it on more than twice";
        let rows = vec![
            plain(Kind::Barrier, all, Shape::Exchange, "log2 n signals, one after the other, and no go phase"),
            plain(Kind::Broadcast, 3, Shape::AllToOne, few),
            up_to(short, Kind::Broadcast, 8, Shape::AllToOne, few),
            plain(Kind::Broadcast, 8, Shape::Tree(2), long),
            up_to(short, Kind::Broadcast, all, Shape::Binomial, "log2 n messages, one after the other"),
            plain(Kind::Broadcast, all, Shape::Tree(2), long),
            plain(Kind::Reduce, 8, Shape::AllToOne, few),
            plain(Kind::Reduce, all, Shape::Binomial, "partial results in canonical order without extra messages"),
            plain(Kind::Allreduce, 2, Shape::Exchange, "one exchange"),
            plain(Kind::Allreduce, all, Shape::Binomial, "partial results in canonical order without extra messages"),
        ];
        Table { rows }
    }

    /// One way for each kind whatever the size, for measurements.
    pub fn constant(ways: &[(Kind, Algorithm)]) -> Table {
        let mut table = Table::assumed();
        for &(kind, algorithm) in ways {
            table.rows.retain(|row| row.kind != kind);
            table.rows.push(Row {
                kind,
                size_max: u32::MAX,
                bytes_max: u64::MAX,
                way: Way::Direct(algorithm),
                latency_ns: None,
                reason: "asked for".into(),
            });
        }
        table.rows.sort_by_key(|row| (row.kind, row.size_max, row.bytes_max));
        table
    }

    /// From measurements: the fastest at each point, repaired. Kinds without a sample keep what is assumed. Points are
    /// best measured as a grid: the same bytes for all data operations, the same sizes for all.
    pub fn measured(samples: &[Sample]) -> Table {
        let mut rows = repair::repair(samples);
        let assumed = Table::assumed().rows.into_iter();
        let missing: Vec<Row> = assumed.filter(|row| rows.iter().all(|known| known.kind != row.kind)).collect();
        rows.extend(missing);
        rows.sort_by_key(|row| (row.kind, row.size_max, row.bytes_max));
        Table { rows }
    }

    /// The lines, by kind, size and bytes.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The lines for groups of `size`: those of the smallest measured size that is not smaller, or of the largest.
    pub fn lines(&self, kind: Kind, size: u32) -> &[Row] {
        let of_kind = between(&self.rows, |row| row.kind.cmp(&kind));
        let size_max = of_kind.iter().map(|row| row.size_max).find(|&max| size <= max);
        let size_max = size_max.or(of_kind.last().map(|row| row.size_max));
        size_max.map_or(&[], |size_max| between(of_kind, |row| row.size_max.cmp(&size_max)))
    }

    /// What to do: of [`Table::lines`] that of the smallest measured bytes that are not fewer, or of the most.
    pub fn pick(&self, kind: Kind, size: u32, bytes: u64) -> &Row {
        let lines = self.lines(kind, size);
        // All constructors give every kind a line.
        lines.iter().find(|row| bytes <= row.bytes_max).or(lines.last()).unwrap_or(&self.rows[0])
    }
}

/// The rows that compare equal, of rows that ascend.
fn between(rows: &[Row], compare: impl Fn(&Row) -> std::cmp::Ordering) -> &[Row] {
    let first = rows.partition_point(|row| compare(row).is_lt());
    let end = rows.partition_point(|row| compare(row).is_le());
    &rows[first..end]
}

impl Way {
    /// The algorithms that execute an operation, with what each performs.
    pub fn parts(self, kind: Kind) -> impl Iterator<Item = (Kind, Algorithm)> {
        let (first, second) = match self {
            Way::Direct(algorithm) => ((kind, algorithm), None),
            Way::Allreduce(algorithm) => ((Kind::Allreduce, algorithm), None),
            Way::ReduceBroadcast(up, down) => ((Kind::Reduce, up), Some((Kind::Broadcast, down))),
        };
        std::iter::once(first).chain(second)
    }

    /// Its name for an operation: `TTRed(2)`, `as PEAllred`, `BTRed, then BTBcast`.
    pub fn name(self, kind: Kind) -> String {
        match self {
            Way::Direct(algorithm) => algorithm.name(kind),
            Way::Allreduce(algorithm) => format!("as {}", algorithm.name(Kind::Allreduce)),
            Way::ReduceBroadcast(up, down) => {
                format!("{}, then {}", up.name(Kind::Reduce), down.name(Kind::Broadcast))
            }
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:10} {:>6} {:>9}  {:28} {:>10}  why", "operation", "size", "bytes", "algorithm", "ns")?;
        for row in &self.rows {
            let size = if row.size_max == u32::MAX { "any".to_owned() } else { row.size_max.to_string() };
            let bytes = if row.bytes_max == u64::MAX { "any".to_owned() } else { row.bytes_max.to_string() };
            let latency = row.latency_ns.map_or("-".to_owned(), |ns| format!("{ns:.0}"));
            let name = row.way.name(row.kind);
            writeln!(f, "{:10} {size:>6} {bytes:>9}  {name:28} {latency:>10}  {}", row.kind, row.reason)?;
        }
        Ok(())
    }
}
