//! Model checks of the wavefront. Each hunts what its comment says; the cells are what the order is about, and the checker itself
//! reports an access that is not ordered behind the write before it, a wait that nobody ends, and jobs that wait for each other.

use super::{Before, Job, Order, Turn, instead};
use crate::wave::RaisedOnPanic;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use multigrain::Abort;
use multigrain::rooms::team::{Aborted, SpinLimit, Steps};

/// Explores with at most so many involuntary switches of threads in one execution, or with as many as the environment variable
/// `LOOM_MAX_PREEMPTIONS` says.
fn check(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(preemptions));
    model.check(body);
}

/// A picture of some rows: what its jobs write.
struct Picture {
    order: Order,
    complete: Steps,
    /// By row and column: macroblocks that have been coded.
    coded: Vec<Vec<UnsafeCell<u32>>>,
    /// By row: samples that others are predicted from, but for those at the bottom, which are the next row's to smooth.
    samples: Vec<UnsafeCell<u32>>,
    bottoms: Vec<UnsafeCell<u32>>,
    /// Rows in the order in which they were written, where each is written behind the one above it.
    written: UnsafeCell<Vec<usize>>,
    /// By row: how often it was written, where each is written by itself.
    apart: Vec<UnsafeCell<u32>>,
}

struct Shared {
    pictures: Vec<Picture>,
    abort: Abort,
    /// Whether rows are written behind each other: by arithmetic codes.
    is_in_order: bool,
    /// How many pictures before it a picture may be predicted from.
    references: usize,
    /// Whether rows of pictures before are done instead of waiting for them.
    helps: bool,
    /// At this row of the first picture somebody gives up.
    fails_at: Option<usize>,
}

// SAFETY: the cells are what the tests are about; the checker itself reports unordered accesses.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

fn shared(pictures: usize, rows: usize, columns: usize, fails_at: Option<usize>) -> Shared {
    let cells = |count: usize| (0..count).map(|_| UnsafeCell::new(0)).collect::<Vec<_>>();
    let spin = SpinLimit::from_polls(0);
    let picture = |_| Picture {
        order: Order::new(rows, columns, spin),
        complete: Steps::new(spin),
        coded: (0..rows).map(|_| cells(columns)).collect(),
        samples: cells(rows),
        bottoms: cells(rows),
        written: UnsafeCell::new(Vec::new()),
        apart: cells(rows),
    };
    let pictures = (0..pictures).map(picture).collect();
    Shared { pictures, abort: Abort::new(), is_in_order: true, references: 1, helps: false, fails_at }
}

struct RowJob<'a> {
    shared: &'a Shared,
    picture: usize,
    row: usize,
}

fn read(cell: &UnsafeCell<u32>) -> u32 {
    // SAFETY: what this is about.
    cell.with(|value| unsafe { *value })
}

fn add(cell: &UnsafeCell<u32>) {
    // SAFETY: what this is about.
    cell.with_mut(|value| unsafe { *value += 1 });
}

impl Job for RowJob<'_> {
    fn code(&mut self, turn: &Turn<'_>) -> Result<(), Aborted> {
        let Shared { pictures, abort, fails_at, .. } = self.shared;
        let now = &pictures[self.picture];
        for before in self.shared.before(self.picture) {
            // Of the last row that is complete, what the next one smooths may still change.
            let needed = needed(self.row, before.samples.len());
            let settled = if needed == before.samples.len() { needed } else { needed - 1 };
            before.samples[..needed].iter().for_each(|cell| assert_eq!(read(cell), 1));
            before.bottoms[..settled].iter().for_each(|cell| assert_eq!(read(cell), 1));
        }
        if self.picture == 0 && *fails_at == Some(self.row) {
            // What unwinding does.
            drop(RaisedOnPanic(abort));
            return Err(Aborted);
        }
        let columns = now.coded[self.row].len();
        for x in 0..columns {
            turn.column(x, || {
                if let Some(above) = self.row.checked_sub(1) {
                    now.coded[above][..(x + 2).min(columns)].iter().for_each(|cell| assert_eq!(read(cell), 1));
                }
                add(&now.coded[self.row][x]);
            })?;
        }
        Ok(())
    }

    fn smooth(&mut self) {
        let now = &self.shared.pictures[self.picture];
        now.coded[self.row].iter().for_each(|cell| assert_eq!(read(cell), 1));
        add(&now.samples[self.row]);
        if let Some(above) = self.row.checked_sub(1) {
            assert_eq!(read(&now.samples[above]), 1, "row {above} is not smoothed before the one below it");
            add(&now.bottoms[above]);
        }
        // The last one has none below.
        if self.row + 1 == now.samples.len() {
            add(&now.bottoms[self.row]);
        }
    }

    fn is_written_in_order(&self) -> bool {
        self.shared.is_in_order
    }

    fn write(self) {
        let now = &self.shared.pictures[self.picture];
        match self.shared.is_in_order {
            // SAFETY: what this is about.
            true => now.written.with_mut(|rows| unsafe { (*rows).push(self.row) }),
            false => add(&now.apart[self.row]),
        }
    }
}

/// Rows of a picture, of so many, that the next one needs for a row.
fn needed(row: usize, rows: usize) -> usize {
    (row + 2).min(rows)
}

impl Shared {
    /// What a picture may be predicted from.
    fn before(&self, picture: usize) -> &[Picture] {
        &self.pictures[picture.saturating_sub(self.references)..picture]
    }

    /// What a row of a picture needs of them.
    fn rows_before(&self, picture: usize, row: usize) -> impl Iterator<Item = Before<'_>> {
        let rows = needed(row, self.pictures[picture].order.rows()) as u64;
        self.before(picture).iter().map(move |before| Before { complete: &before.complete, rows })
    }

    /// Does rows of pictures before while one of this would wait, as `run` does.
    fn help(&self, picture: usize) {
        let waits = |picture: &usize| self.pictures[*picture].order.waits(|row| self.rows_before(*picture, row));
        while let Some(other) = instead(&picture, 0..picture, waits) {
            self.step(other);
        }
    }

    /// Claims a row of a picture and does it: whether there was any.
    fn step(&self, picture: usize) -> bool {
        let Picture { order, complete, written, apart, .. } = &self.pictures[picture];
        let Some(row) = order.claim() else { return false };
        let job = RowJob { shared: self, picture, row };
        if order.done(row, self.rows_before(picture, row), complete, &self.abort, job) == Ok(true) {
            // Whoever is the last sees what all have written.
            match self.is_in_order {
                // SAFETY: what this is about.
                true => written.with(|rows| assert!(unsafe { (*rows).iter().copied().eq(0..order.rows()) })),
                false => apart.iter().for_each(|cell| assert_eq!(read(cell), 1)),
            }
        }
        true
    }

    /// All rows of these pictures that nobody else claims.
    fn work(&self, pictures: std::ops::Range<usize>) {
        pictures.for_each(|picture| {
            while {
                if self.helps {
                    self.help(picture);
                }
                self.step(picture)
            } {}
        });
    }
}

/// Two workers, each of which does all rows that the other does not claim of these pictures.
fn two(shared: Shared, [first, second]: [std::ops::Range<usize>; 2]) {
    let shared = Arc::new(shared);
    let other = thread::spawn({
        let shared = shared.clone();
        move || shared.work(second)
    });
    shared.work(first);
    other.join().unwrap();
}

/// Hunts a macroblock that is coded before its neighbour above on the right, a row that is smoothed before the one above it, or
/// written before it, and a last one that does not see what the other wrote: two workers share the rows of a picture.
#[test]
fn two_workers_share_rows() {
    check(2, || two(shared(1, 3, 2, None), [0..1, 0..1]));
}

/// Hunts samples that the next picture is predicted from before they are complete, and pictures that wait for each other: each of
/// two workers has a picture of its own.
#[test]
fn two_workers_have_pictures() {
    check(2, || two(shared(2, 3, 1, None), [0..1, 1..2]));
}

/// Hunts a worker that waits for rows which nobody has claimed, where all claim rows of the first picture, then of the second; with
/// four rows the second picture is under way while the first is.
#[test]
fn two_workers_share_two_pictures() {
    check(2, || two(shared(2, 2, 1, None), [0..2, 0..2]));
    check(1, || two(shared(2, 4, 1, None), [0..2, 0..2]));
}

/// Hunts a last one that does not see what the other wrote, where rows are written by themselves, as variable-length codes are.
#[test]
fn rows_are_written_by_themselves() {
    check(2, || two(Shared { is_in_order: false, ..shared(1, 3, 1, None) }, [0..1, 0..1]));
}

/// Hunts samples of either of two pictures that a third is predicted from before they are complete.
#[test]
fn a_picture_waits_for_two() {
    check(2, || two(Shared { references: 2, ..shared(3, 1, 1, None) }, [0..3, 0..3]));
}

/// Hunts pictures that wait for each other, rows that are done twice or not at all, and samples that are read before they are complete,
/// where whoever would wait for the picture before does rows of it first: one of two workers has the picture, the other the next one;
/// and where each has a picture, behind one that both helped with.
#[test]
fn who_would_wait_helps() {
    check(2, || two(Shared { helps: true, ..shared(2, 3, 1, None) }, [0..1, 1..2]));
    check(1, || two(Shared { helps: true, ..shared(3, 2, 1, None) }, [0..2, 2..3]));
}

/// Hunts a helper who has nobody to wait for: alone, it does all that its picture waits for.
#[test]
fn one_who_helps_needs_nobody() {
    check(2, || {
        let shared = Shared { helps: true, ..shared(3, 3, 1, None) };
        shared.work(2..3);
        shared.pictures[2].samples.iter().for_each(|cell| assert_eq!(read(cell), 1));
        // All rows of those before: each row waits for one further down in the picture before, or for its last.
        let done = |picture: usize| shared.pictures[picture].samples.iter().filter(|cell| read(cell) == 1).count();
        assert_eq!([done(0), done(1)], [3, 3]);
    });
}

/// Hunts a wait that a failure does not end: whoever fails raises the abort and does no more, as a panic has it.
#[test]
fn a_failure_ends_all_waits() {
    for fails_at in [0, 1] {
        check(2, move || two(shared(2, 2, 2, Some(fails_at)), [0..2, 0..2]));
    }
}
