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
//! alone or with others; so of all pictures that are under way, the rows of the first are done without waiting for another, then
//! those of the second, and nothing can wait for itself, whatever worker claims what, and however few there are.
//!
//! The model checks at the end of this file execute this code on loom's threads:
//! `RUSTFLAGS="--cfg loom" cargo test -p multigrain-encode --release --lib order`.

#[cfg(loom)]
use loom::sync::atomic::{AtomicUsize, Ordering};
use multigrain::Abort;
use multigrain::rooms::team::{Aborted, Progress, SpinLimit};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicUsize, Ordering};

/// The rows of a picture.
#[derive(Debug)]
pub(super) struct Order {
    columns: usize,
    next: AtomicUsize,
    done: AtomicUsize,
    /// By row: macroblocks coded.
    coded: Vec<Progress>,
    /// Rows written.
    written: Progress,
}

/// What a job needs of another picture.
pub(super) struct Before<'a> {
    /// Its rows that others may be predicted from.
    pub(super) complete: &'a Progress,
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

impl Order {
    /// None claimed.
    pub(super) fn new(rows: usize, columns: usize, spin: SpinLimit) -> Order {
        Order {
            columns,
            next: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            coded: std::iter::repeat_with(|| Progress::new(spin)).take(rows).collect(),
            written: Progress::new(spin),
        }
    }

    /// How many there are.
    pub(super) fn rows(&self) -> usize {
        self.coded.len()
    }

    /// The row that is claimed next; none if all have been claimed. Others may claim it meanwhile.
    pub(super) fn unclaimed(&self) -> Option<usize> {
        let row = self.next.load(Ordering::Relaxed);
        (row < self.rows()).then_some(row)
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
        complete: &Progress,
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
