//! Rows of pictures on their way, and who waits for whom.
//!
//! ```text
//! picture n    row 0  search -> code -> smooth -> halves
//!              row 1            search -> code -> smooth -> halves        two macroblocks behind row 0
//! picture n+1  row 0                    search -> ...                     when row 5 of picture n is complete
//! ```
//!
//! A job is a row of a picture, from motion search to half samples. Pictures are begun in the order of decoding, and the jobs of
//! each claimed in the order of rows. Who would have to wait for a picture before does rows of pictures before first
//! ([`Wave::waits`]), so that nobody waits for somebody slower while there are rows to be claimed. What a job waits for, and why nothing
//! waits for itself, is said and model-checked in `order`; here is what it does. A worker that panics raises an abort, which ends all
//! waits.

mod order;

use crate::bits::Bits;
use crate::coder::{Row, RowBits, RowCoder, Shot, Slice};
use crate::headers::{SliceType, Structure};
use crate::motion::rows_needed;
use crate::source::Source;
use multigrain::Abort;
use multigrain::rooms::team::{Aborted, SpinLimit};
#[cfg(not(loom))]
pub(crate) use order::instead;
use order::{Before, Job, Order, Turn};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    order: Order,
    /// Variable-length codes of each row.
    codes: Mutex<Vec<Row>>,
    /// Arithmetic codes.
    slice: Mutex<Option<Slice>>,
}

impl<'a> Wave<'a> {
    /// What the picture is predicted from was made a wave before it.
    ///
    /// # Safety
    /// Until all rows are done nobody else writes the memory of the picture, nor of those that it is predicted from but the
    /// waves that make them, and these were begun before; all are of one size.
    pub unsafe fn new(shot: Shot<'a>) -> Wave<'a> {
        let size = shot.picture.size;
        let mut codes = Vec::new();
        codes.resize_with(size.rows(), Row::default);
        Wave {
            order: Order::new(size.rows(), size.columns(), SpinLimit::default()),
            codes: Mutex::new(codes),
            slice: Mutex::new(None),
            shot,
        }
    }

    /// The picture.
    pub(crate) fn shot(&self) -> &Shot<'a> {
        &self.shot
    }

    /// What was encoded can be filled again.
    pub fn into_source(self) -> Source {
        self.shot.source
    }

    /// How many jobs there are: rows.
    pub fn jobs(&self) -> usize {
        self.order.rows()
    }

    /// Whether a job is left to be claimed, and whether it would wait for pictures before. Others may claim it meanwhile, so this
    /// says only what is likely.
    pub fn waits(&self) -> Option<bool> {
        self.order.waits(|row| self.before(row))
    }

    /// What a row needs of pictures before.
    fn before(&self, row: usize) -> impl Iterator<Item = Before<'_>> {
        let rows = rows_needed(row, self.jobs()) as u64;
        self.shot.links().map(move |link| Before { complete: &link.picture.complete, rows })
    }

    /// Claims the next job and does it, unless there is none; true if by that all are done. Whoever panics raises the abort
    /// (`RaisedOnPanic`).
    pub fn step(&self, abort: &Abort) -> bool {
        self.step_by(abort, None)
    }

    /// The same; parts of it may be off-loaded.
    pub fn step_by(&self, abort: &Abort, calls: Option<&dyn Calls>) -> bool {
        let Some(row) = self.order.claim() else { return false };
        let searches = calls.is_none() && self.shot.skips_first();
        let job = RowJob { wave: self, row, coder: RowCoder::new(&self.shot, row, searches), calls };
        // An abort is a failure elsewhere, which is told there.
        self.order.done(row, self.before(row), &self.shot.picture.complete, abort, job).unwrap_or(false)
    }

    /// All macroblocks behind what the header has before them, and how many bins of arithmetic codes these are; once, when all
    /// jobs are done.
    pub fn finish(&self, mut bits: Bits) -> (Vec<u8>, u64) {
        if let Some(slice) = lock(&self.slice).take() {
            let bins = slice.bins();
            bits.align_with_ones();
            bits.append(&slice.into_bits());
            return (bits.finish_ended(), bins);
        }
        let rows = std::mem::take(&mut *lock(&self.codes));
        let codes = rows.iter().filter_map(|row| if let Row::Codes(bits) = row { Some(bits) } else { None });
        RowBits::join(&mut bits, codes, self.shot.slice_type() != SliceType::I);
        (bits.finish(), 0)
    }
}

/// A job that has been claimed.
struct RowJob<'w, 'a> {
    wave: &'w Wave<'a>,
    row: usize,
    coder: RowCoder<'w>,
    calls: Option<&'w dyn Calls>,
}

impl Job for RowJob<'_, '_> {
    fn code(&mut self, turn: &Turn<'_>) -> Result<(), Aborted> {
        let (shot, row, coder) = (&self.wave.shot, self.row, &mut self.coder);
        let columns = shot.picture.size.columns();
        // SAFETY: of this and the following: the job is claimed once, and what it reads of others is waited for. The memory of
        // the picture is nobody else's.
        let search = |range: Range<usize>| unsafe { shot.search(row, range) };
        // SAFETY: as above.
        let mut code = |x: usize| turn.column(x, || unsafe { coder.code(x) });
        match self.calls {
            None => {
                if !shot.skips_first() {
                    search(0..columns);
                }
                (0..columns).try_for_each(code)
            }
            // What is searched next to a macroblock that is skipped begins with its vector.
            Some(calls) if shot.skips_first() => in_parts((calls, 1), columns, &search, &mut code),
            Some(calls) => in_parts((calls, calls.macroblocks()), columns, &search, &mut code),
        }
    }

    fn smooth(&mut self) {
        let shot = &self.wave.shot;
        let kernels = shot.settings.kernels;
        // SAFETY: as above.
        unsafe {
            crate::smooth::smooth_row(&shot.picture, self.row, kernels);
            let halves = || shot.picture.complete_row(self.row, kernels, &mut Vec::new());
            match self.calls {
                _ if !shot.is_reference => {}
                None => halves(),
                Some(calls) => calls.call(&halves),
            }
        }
    }

    fn is_written_in_order(&self) -> bool {
        self.wave.shot.settings.is_arithmetic
    }

    fn write(self) {
        let (shot, wave) = (&self.wave.shot, self.wave);
        match self.coder.finish() {
            Row::Syntax(syntax) => {
                let begin = || Slice::new(shot.picture.size, shot.settings.qp, shot.slice_type(), shot.lists[0].len());
                lock(&wave.slice).get_or_insert_with(begin).row(&syntax);
            }
            codes => lock(&wave.codes)[self.row] = codes,
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Searches and codes so many macroblocks, the former off-loaded.
fn in_parts(
    (calls, count): (&dyn Calls, usize),
    columns: usize,
    search: &(dyn Fn(Range<usize>) + Sync),
    code: &mut (dyn FnMut(usize) -> Result<(), Aborted> + Send),
) -> Result<(), Aborted> {
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
            let mut code = lock(&code);
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
