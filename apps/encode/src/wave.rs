//! Rows of several pictures on their way at once, and who waits for whom.
//!
//! ```text
//! picture n    row 0  search -> code -> smooth -> halves
//!              row 1            search -> code -> smooth -> halves        two macroblocks behind row 0
//! picture n+1  row 0                    search -> ...                     when row 5 of picture n is complete
//! ```
//!
//! A job is a row of a picture, from motion search to half samples. Jobs are claimed in one order, picture by picture and row
//! by row, and wait only for jobs before them:
//!
//! - search of row r: rows of the pictures that it may be predicted from, as far down as vectors lead ([`rows_needed`]), and all
//!   that use the memory that the picture is written to;
//! - code at column x: the row above up to column x + 1;
//! - smooth and halves: the row above, complete;
//! - write, by arithmetic codes: the row above, written. (Variable-length codes are written as macroblocks are coded.)
//!
//! Whoever claims a job is executing it, so what a job waits for is either done or under way on another worker, whatever
//! worker claims what, and however few there are: nothing can wait for itself. A worker that panics raises the wave's
//! abort, which ends all waits.

use crate::bits::Bits;
use crate::coder::{Link, Row, RowBits, RowCoder, Shot, Slice};
use crate::headers::SliceType;
use crate::motion::rows_needed;
use crate::picture::Picture;
use crate::plane::Grid;
use multigrain::Abort;
use multigrain::rooms::team::{Aborted, Progress};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Off-loads parts of rows, for comparison: as long as what was off-loaded before wavefronts of rows were.
pub trait Calls {
    /// Has something done by another worker.
    fn call(&self, body: &(dyn Fn() + Sync));

    /// Has one thing done, and another beside it, if anybody is free for that.
    fn pair(&self, first: &(dyn Fn() + Sync), second: &(dyn Fn() + Sync));

    /// Macroblocks that are searched in a call. One: whoever codes waits for the search. More: they are coded while the next are
    /// searched.
    fn macroblocks(&self) -> usize;
}

/// What a picture waits for.
#[derive(Clone, Debug, Default)]
struct Waits {
    /// Pictures under way from which it is predicted.
    references: Vec<usize>,
    /// Pictures that use the memory to which it is written, as theirs or as what they are predicted from.
    memory: Vec<usize>,
}

impl Waits {
    /// Of a picture behind these.
    fn of(shot: &Shot<'_>, before: &[Shot<'_>]) -> Waits {
        let is_same = |a: &Picture, b: &Picture| std::ptr::eq(a, b);
        let made = |link: &Link<'_>| before.iter().rposition(|other| is_same(other.picture, link.picture));
        let uses = |other: &Shot<'_>| {
            is_same(other.picture, shot.picture) || other.links().any(|link| is_same(link.picture, shot.picture))
        };
        Waits {
            references: shot.links().filter_map(made).collect(),
            memory: (0..before.len()).filter(|i| uses(&before[*i])).collect(),
        }
    }
}

/// Pictures to be encoded, in this order.
#[derive(Debug)]
pub struct Wave<'a> {
    shots: Vec<Shot<'a>>,
    /// By picture.
    waits: Vec<Waits>,
    rows: usize,
    next: AtomicUsize,
    /// By row of each picture: macroblocks coded.
    coded: Vec<Progress>,
    /// By picture: rows complete.
    complete: Vec<Progress>,
    /// By picture: rows written.
    written: Vec<Progress>,
    coded_rows: Grid<Row>,
    slices: Grid<Option<Slice>>,
    abort: Abort,
}

impl<'a> Wave<'a> {
    /// What pictures are predicted from comes before them or is complete. Several may be written to the same memory, one after
    /// the other.
    pub fn new(shots: Vec<Shot<'a>>) -> Wave<'a> {
        let rows = shots.first().map_or(0, |shot| shot.picture.size.rows());
        let progress = |count: usize| std::iter::repeat_with(Progress::default).take(count).collect();
        Wave {
            rows,
            next: AtomicUsize::new(0),
            coded: progress(rows * shots.len()),
            complete: progress(shots.len()),
            written: progress(shots.len()),
            coded_rows: Grid::new(rows * shots.len()),
            slices: Grid::new(shots.len()),
            abort: Abort::new(),
            waits: (0..shots.len()).map(|i| Waits::of(&shots[i], &shots[..i])).collect(),
            shots,
        }
    }

    /// How many jobs there are.
    pub fn jobs(&self) -> usize {
        self.rows * self.shots.len()
    }

    /// Claims the next job and does it.
    pub fn step(&self) {
        self.step_by(None);
    }

    /// The same; parts of it may be off-loaded.
    pub fn step_by(&self, calls: Option<&dyn Calls>) {
        let job = self.next.fetch_add(1, Ordering::Relaxed);
        if job >= self.jobs() {
            return;
        }
        let guard = RaisedOnPanic(&self.abort);
        // An abort is a panic elsewhere, which is told there.
        let _ = self.row(job / self.rows, job % self.rows, calls);
        std::mem::forget(guard);
    }

    fn row(&self, picture: usize, row: usize, calls: Option<&dyn Calls>) -> Result<(), Aborted> {
        let shot = &self.shots[picture];
        for reference in &self.waits[picture].references {
            self.complete[*reference].wait_for(rows_needed(row, self.rows) as u64, &self.abort)?;
        }
        for user in &self.waits[picture].memory {
            self.complete[*user].wait_for(self.rows as u64, &self.abort)?;
        }
        let columns = shot.picture.size.columns();
        let mut coder = RowCoder::new(shot, row);
        // SAFETY: of this and the following: the job is claimed once, and what it reads of others is waited for.
        let search = |range: Range<usize>| unsafe { shot.search(row, range) };
        let mut code = |x: usize| -> Result<(), Aborted> {
            if row > 0 {
                self.coded[picture * self.rows + row - 1].wait_for((x + 2).min(columns) as u64, &self.abort)?;
            }
            // SAFETY: as above.
            unsafe { coder.code(x) };
            self.coded[picture * self.rows + row].signal();
            Ok(())
        };
        match calls {
            None => {
                search(0..columns);
                (0..columns).try_for_each(&mut code)?;
            }
            Some(calls) => in_parts(calls, columns, &search, &mut code)?,
        }
        let coded = coder.finish();
        self.complete[picture].wait_for(row as u64, &self.abort)?;
        let kernels = shot.settings.kernels;
        // SAFETY: as above.
        unsafe {
            crate::smooth::smooth_row(shot.picture, row, kernels);
            let complete = || shot.picture.complete_row(row, kernels, &mut Vec::new());
            match calls {
                _ if !shot.is_reference => {}
                None => complete(),
                Some(calls) => calls.call(&complete),
            }
        }
        self.complete[picture].signal();
        match coded {
            // SAFETY: as above; this row's alone.
            Row::Codes(_) => unsafe { *self.coded_rows.get_mut(picture * self.rows + row) = coded },
            Row::Syntax(syntax) => {
                self.written[picture].wait_for(row as u64, &self.abort)?;
                // SAFETY: used by one row after the other.
                let slice = unsafe { self.slices.get_mut(picture) };
                let begin = || Slice::new(shot.picture.size, shot.settings.qp, shot.slice_type(), shot.lists[0].len());
                slice.get_or_insert_with(begin).row(&syntax);
                self.written[picture].signal();
            }
        }
        Ok(())
    }

    /// All macroblocks of each picture, behind what `headers` has before them, when all jobs are done.
    pub fn finish(self, headers: Vec<Bits>) -> Vec<Vec<u8>> {
        let may_skip: Vec<bool> = self.shots.iter().map(|shot| shot.slice_type() != SliceType::I).collect();
        let (mut rows, slices) = (self.coded_rows.into_values(), self.slices.into_values());
        let joined = |((mut bits, may_skip), slice): ((Bits, bool), Option<Slice>)| {
            let rows: Vec<Row> = rows.by_ref().take(self.rows).collect();
            match slice {
                Some(slice) => {
                    bits.align_with_ones();
                    bits.append(&slice.into_bits());
                    bits.finish_ended()
                }
                None => {
                    let codes =
                        rows.iter().filter_map(|row| if let Row::Codes(bits) = row { Some(bits) } else { None });
                    RowBits::join(&mut bits, codes, may_skip);
                    bits.finish()
                }
            }
        };
        headers.into_iter().zip(may_skip).zip(slices).map(joined).collect()
    }
}

/// Searches and codes so many macroblocks, the former off-loaded.
fn in_parts(
    calls: &dyn Calls,
    columns: usize,
    search: &(dyn Fn(Range<usize>) + Sync),
    code: &mut (dyn FnMut(usize) -> Result<(), Aborted> + Send),
) -> Result<(), Aborted> {
    let count = calls.macroblocks();
    if count == 1 {
        return (0..columns).try_for_each(|x| {
            calls.call(&|| search(x..x + 1));
            code(x)
        });
    }
    let part = |i: usize| i * count..((i + 1) * count).min(columns);
    let parts = columns.div_ceil(count);
    search(part(0));
    let code = Mutex::new(code);
    let aborted = AtomicBool::new(false);
    for i in 0..parts {
        let coding = || {
            let mut code = code.lock().unwrap_or_else(PoisonError::into_inner);
            if part(i).try_for_each(&mut **code).is_err() {
                aborted.store(true, Ordering::Relaxed);
            }
        };
        match i + 1 < parts {
            true => calls.pair(&coding, &|| search(part(i + 1))),
            false => coding(),
        }
    }
    if aborted.into_inner() { Err(Aborted) } else { Ok(()) }
}

/// Raises an abort unless it is forgotten.
struct RaisedOnPanic<'a>(&'a Abort);

impl Drop for RaisedOnPanic<'_> {
    fn drop(&mut self) {
        self.0.raise();
    }
}
