//! Who waits for whom: the protocol of the wavefront, without what is done in it.
//!
//! A job, which is a row, waits for
//!
//! - everything: rows of the pictures that it may be predicted from, as far down as vectors lead;
//! - code at column x: the row above up to column x + 1;
//! - smooth and halves: the row above, complete;
//! - write, by arithmetic codes: the row above, written. (Variable-length codes are written as macroblocks are coded.)
//!
//! So it waits for rows above and for pictures before. Whoever begins a picture goes on with it until all of its rows are claimed,
//! alone or with others, but for rows of pictures before it, which it does instead of a row that would wait ([`instead`]). Of all
//! pictures that are not complete take the first. Its rows wait for those above them only, and these were claimed before them. None of
//! its workers is kept elsewhere: of it none is helped for, since it waits for no picture, and rows of pictures before are done. So
//! its rows are done without waiting for another picture, then those of the next one, and nothing can wait for itself, whatever
//! worker claims what, and however few there are. Between a look and a claim somebody else may claim a row, and the next one may
//! wait: as any row that is claimed, for pictures before its own, about which the same holds.
//!
//! The model checks at the end of this file execute this code on loom's threads:
//! `RUSTFLAGS="--cfg loom" cargo test -p multigrain-encode --release --lib order`.

#[cfg(loom)]
use loom::sync::atomic::{AtomicUsize, Ordering};
use multigrain::Abort;
use multigrain::rooms::team::{Aborted, SpinLimit, Steps};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicUsize, Ordering};

/// The rows of a picture.
#[derive(Debug)]
pub(super) struct Order {
    columns: usize,
    next: AtomicUsize,
    done: AtomicUsize,
    /// By row: macroblocks coded.
    coded: Vec<Steps>,
    /// Rows written.
    written: Steps,
}

/// What a job needs of another picture.
pub(super) struct Before<'a> {
    /// Its rows that others may be predicted from.
    pub(super) complete: &'a Steps,
    /// How many of them.
    pub(super) rows: u64,
}

/// What is done for a row.
pub(super) trait Job {
    /// Codes all columns, each by [`Turn::column`].
    fn code(&mut self, turn: &Turn<'_>) -> Result<(), Aborted>;

    /// Smooths the row and its edge to the row above, and makes of it what others are predicted from.
    fn smooth(&mut self);

    /// Whether the row is written behind the one above it.
    fn is_written_in_order(&self) -> bool;

    /// Writes the row.
    fn write(self);
}

/// A row among those that are being coded.
pub(super) struct Turn<'a> {
    order: &'a Order,
    row: usize,
    abort: &'a Abort,
}

impl Turn<'_> {
    /// Codes a column when the row above is so far, and tells the row below. Columns are coded in order.
    pub(super) fn column(&self, x: usize, code: impl FnOnce()) -> Result<(), Aborted> {
        let Order { columns, coded, .. } = self.order;
        if let Some(above) = self.row.checked_sub(1) {
            coded[above].wait_for((x + 2).min(*columns) as u64, self.abort)?;
        }
        code();
        coded[self.row].signal();
        Ok(())
    }
}

/// What is done instead of a row of a picture that would wait for pictures before: a row of the first of these whose own would not
/// wait; none if there is nothing to wait for, or nothing else to do. `before` are the pictures on their way that were begun before,
/// in that order; `waits` says whether a picture's next row would wait, and nothing where all have been claimed.
pub(crate) fn instead<P>(
    now: &P,
    before: impl IntoIterator<Item = P>,
    waits: impl Fn(&P) -> Option<bool>,
) -> Option<P> {
    if waits(now) != Some(true) {
        return None;
    }
    before.into_iter().find(|other| waits(other) == Some(false))
}

impl Order {
    /// None claimed.
    pub(super) fn new(rows: usize, columns: usize, spin: SpinLimit) -> Order {
        Order {
            columns,
            next: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            coded: std::iter::repeat_with(|| Steps::new(spin)).take(rows).collect(),
            written: Steps::new(spin),
        }
    }

    /// How many there are.
    pub(super) fn rows(&self) -> usize {
        self.coded.len()
    }

    /// Whether the row that is claimed next would wait for pictures before, of each of which it needs so many rows; none if all have
    /// been claimed. Others may claim it meanwhile, so this says only what is likely.
    pub(super) fn waits<'a, B: Iterator<Item = Before<'a>>>(&self, before: impl FnOnce(usize) -> B) -> Option<bool> {
        let row = self.next.load(Ordering::Relaxed);
        (row < self.rows()).then(|| before(row).any(|before| before.complete.count() < before.rows))
    }

    /// A row that nobody else has; none if all have been claimed.
    pub(super) fn claim(&self) -> Option<usize> {
        let row = self.next.fetch_add(1, Ordering::Relaxed);
        (row < self.rows()).then_some(row)
    }

    /// Does a row that was claimed, and tells it in `complete`; true if by that all are done. What others have done is seen by
    /// whoever is the last.
    pub(super) fn done<'a>(
        &self,
        row: usize,
        before: impl Iterator<Item = Before<'a>>,
        complete: &Steps,
        abort: &Abort,
        mut job: impl Job,
    ) -> Result<bool, Aborted> {
        for before in before {
            before.complete.wait_for(before.rows, abort)?;
        }
        job.code(&Turn { order: self, row, abort })?;
        complete.wait_for(row as u64, abort)?;
        job.smooth();
        complete.signal();
        if job.is_written_in_order() {
            self.written.wait_for(row as u64, abort)?;
        }
        job.write();
        self.written.signal();
        Ok(self.done.fetch_add(1, Ordering::AcqRel) + 1 == self.rows())
    }
}

#[cfg(all(test, loom))]
mod model;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::instead;

    /// Whether the next row of each of four pictures would wait, and which of those before the last does one instead.
    #[test]
    fn the_first_picture_that_does_not_wait_is_helped() {
        let (waits, goes, claimed) = (Some(true), Some(false), None);
        for (pictures, expected) in [
            ([goes, goes, goes, goes], None),
            ([goes, goes, goes, claimed], None),
            ([goes, goes, waits, waits], Some(0)),
            ([claimed, goes, goes, waits], Some(1)),
            ([claimed, waits, goes, waits], Some(2)),
            ([claimed, claimed, claimed, waits], None),
            ([claimed, waits, waits, waits], None),
        ] {
            assert_eq!(instead(&3, 0..3, |picture: &usize| pictures[*picture]), expected, "{pictures:?}");
        }
    }
}
