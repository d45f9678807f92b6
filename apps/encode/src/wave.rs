//! Rows of pictures on their way, and who waits for whom.
//!
//! ```text
//! picture n    row 0  search -> code -> smooth -> halves
//!              row 1            search -> code -> smooth -> halves        two macroblocks behind row 0
//! picture n+1  row 0                    search -> ...                     when row 5 of picture n is complete
//! ```
//!
//! A job is a row of a picture, from motion search to half samples. Pictures are begun in the order of decoding, and the jobs of
//! each claimed in the order of rows; a job waits for
//!
//! - search of row r: rows of the pictures that it may be predicted from, as far down as vectors lead ([`rows_needed`]);
//! - code at column x: the row above up to column x + 1;
//! - smooth and halves: the row above, complete;
//! - write, by arithmetic codes: the row above, written. (Variable-length codes are written as macroblocks are coded.)
//!
//! So it waits for rows above and for pictures before. Whoever begins a picture goes on with it until all of its rows are claimed,
//! alone or with others; so of all pictures that are under way, the rows of the first are done without waiting for another, then
//! those of the second, and nothing can wait for itself, whatever worker claims what, and however few there are. A worker that
//! panics raises an abort, which ends all waits.

use crate::bits::Bits;
use crate::coder::{Row, RowBits, RowCoder, Shot, Slice};
use crate::headers::{SliceType, Structure};
use crate::motion::rows_needed;
use crate::picture::Source;
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

/// Rows that pictures may fall behind each other without waiting, beyond those that they have to.
const SLACK: usize = 3;

/// How many pictures of so many rows can be under way at once, each by one worker, without waiting much for each other: one where
/// the next begins when the one before is nearly complete, else so many as fit below each other, and as many again for each that
/// is predicted from two of them.
pub fn pictures_at_once(rows: usize, structure: Structure, all_keys: bool) -> usize {
    let lag = rows_needed(0, usize::MAX);
    match 1 + rows.saturating_sub(lag + SLACK) / lag {
        _ if all_keys => usize::MAX,
        1 => 1,
        below => below * (1 + structure.bidirectional),
    }
}

/// A picture whose rows are being encoded.
#[derive(Debug)]
pub struct Wave<'a> {
    shot: Shot<'a>,
    next: AtomicUsize,
    done: AtomicUsize,
    /// By row: macroblocks coded.
    coded: Vec<Progress>,
    /// Rows written.
    written: Progress,
    /// Variable-length codes of each row.
    codes: Mutex<Vec<Row>>,
    /// Arithmetic codes.
    slice: Mutex<Option<Slice>>,
}

impl<'a> Wave<'a> {
    /// What the picture is predicted from was made a wave before it.
    pub fn new(shot: Shot<'a>) -> Wave<'a> {
        let rows = shot.picture.size.rows();
        let mut codes = Vec::new();
        codes.resize_with(rows, Row::default);
        Wave {
            next: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            coded: std::iter::repeat_with(Progress::default).take(rows).collect(),
            written: Progress::default(),
            codes: Mutex::new(codes),
            slice: Mutex::new(None),
            shot,
        }
    }

    /// The picture.
    pub fn shot(&self) -> &Shot<'a> {
        &self.shot
    }

    /// What was encoded can be filled again.
    pub fn into_source(self) -> Source {
        self.shot.source
    }

    /// How many jobs there are: rows.
    pub fn jobs(&self) -> usize {
        self.coded.len()
    }

    /// Claims the next job and does it, unless there is none; true if by that all are done. Whoever panics raises the abort
    /// (`RaisedOnPanic`).
    pub fn step(&self, abort: &Abort) -> bool {
        self.step_by(abort, None)
    }

    /// The same; parts of it may be off-loaded.
    pub fn step_by(&self, abort: &Abort, calls: Option<&dyn Calls>) -> bool {
        let row = self.next.fetch_add(1, Ordering::Relaxed);
        // An abort is a failure elsewhere, which is told there. What others have done is seen by whoever is the last.
        row < self.jobs()
            && self.row(row, abort, calls).is_ok()
            && self.done.fetch_add(1, Ordering::AcqRel) + 1 == self.jobs()
    }

    fn row(&self, row: usize, abort: &Abort, calls: Option<&dyn Calls>) -> Result<(), Aborted> {
        let (shot, columns) = (&self.shot, self.shot.picture.size.columns());
        let needed = rows_needed(row, self.jobs()) as u64;
        shot.links().try_for_each(|link| link.picture.complete.wait_for(needed, abort))?;
        let mut coder = RowCoder::new(shot, row);
        // SAFETY: of this and the following: the job is claimed once, and what it reads of others is waited for. The memory of
        // the picture is nobody else's.
        let search = |range: Range<usize>| unsafe { shot.search(row, range) };
        let mut code = |x: usize| -> Result<(), Aborted> {
            if row > 0 {
                self.coded[row - 1].wait_for((x + 2).min(columns) as u64, abort)?;
            }
            // SAFETY: as above.
            unsafe { coder.code(x) };
            self.coded[row].signal();
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
        let complete = &shot.picture.complete;
        complete.wait_for(row as u64, abort)?;
        let kernels = shot.settings.kernels;
        // SAFETY: as above.
        unsafe {
            crate::smooth::smooth_row(&shot.picture, row, kernels);
            let halves = || shot.picture.complete_row(row, kernels, &mut Vec::new());
            match calls {
                _ if !shot.is_reference => {}
                None => halves(),
                Some(calls) => calls.call(&halves),
            }
        }
        complete.signal();
        match coded {
            Row::Codes(_) => lock(&self.codes)[row] = coded,
            Row::Syntax(syntax) => {
                self.written.wait_for(row as u64, abort)?;
                let begin = || Slice::new(shot.picture.size, shot.settings.qp, shot.slice_type(), shot.lists[0].len());
                lock(&self.slice).get_or_insert_with(begin).row(&syntax);
                self.written.signal();
            }
        }
        Ok(())
    }

    /// All macroblocks behind what the header has before them; once, when all jobs are done.
    pub fn finish(&self, mut bits: Bits) -> Vec<u8> {
        if let Some(slice) = lock(&self.slice).take() {
            bits.align_with_ones();
            bits.append(&slice.into_bits());
            return bits.finish_ended();
        }
        let rows = std::mem::take(&mut *lock(&self.codes));
        let codes = rows.iter().filter_map(|row| if let Row::Codes(bits) = row { Some(bits) } else { None });
        RowBits::join(&mut bits, codes, self.shot.slice_type() != SliceType::I);
        bits.finish()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
pub(crate) struct RaisedOnPanic<'a>(pub(crate) &'a Abort);

impl Drop for RaisedOnPanic<'_> {
    fn drop(&mut self) {
        self.0.raise();
    }
}
