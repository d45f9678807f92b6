//! Samples of pictures in memory that several workers use at once. One of the modules of this crate with `unsafe` in it.
//!
//! Which worker may touch what, and when, is said by the wave (`crate::wave`): a row of macroblocks is written by the one
//! job that has claimed it, and read by others after that job has told its progress.

use std::cell::UnsafeCell;
use std::ptr::NonNull;

/// How far the samples of a picture go on beyond its edges.
pub const PAD: usize = 32;

/// Samples with a border of [`PAD`] on all sides.
pub struct Plane {
    /// All of them, of which nobody makes a reference: what Miri keeps of one, it keeps for each sample.
    samples: NonNull<[u8]>,
    /// Samples in a row, without the border.
    pub width: usize,
    /// Rows, without the border.
    pub height: usize,
    /// Distance of rows in bytes.
    pub stride: usize,
}

// SAFETY: the samples are the plane's own, as a box's are.
unsafe impl Send for Plane {}
// SAFETY: they are reached through pointers only, whose users are the ones to keep order.
unsafe impl Sync for Plane {}

impl Drop for Plane {
    fn drop(&mut self) {
        // SAFETY: from a box, by `new`.
        drop(unsafe { Box::from_raw(self.samples.as_ptr()) });
    }
}

impl std::fmt::Debug for Plane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "plane of {} x {}", self.width, self.height)
    }
}

impl Plane {
    /// Zeros.
    pub fn new(width: usize, height: usize) -> Plane {
        let stride = width + 2 * PAD;
        let samples = Box::leak(vec![0; stride * (height + 2 * PAD)].into_boxed_slice()).into();
        Plane { samples, width, height, stride }
    }

    /// Bytes of one.
    pub fn bytes(width: usize, height: usize) -> usize {
        (width + 2 * PAD) * (height + 2 * PAD)
    }

    /// Where a sample is; within the border, too.
    #[inline]
    pub fn at(&self, x: isize, y: isize) -> *mut u8 {
        self.at_offset(self.offset(x, y))
    }

    /// How far behind the first sample of the border one is: as far as in all planes of this size.
    #[inline]
    pub fn offset(&self, x: isize, y: isize) -> usize {
        let pad = PAD as isize;
        debug_assert!((-pad..self.width as isize + pad).contains(&x), "column {x} of {self:?}");
        debug_assert!((-pad..self.height as isize + pad).contains(&y), "row {y} of {self:?}");
        ((y + pad) * self.stride as isize + x + pad) as usize
    }

    /// What is so far behind the first sample of the border.
    #[inline]
    pub fn at_offset(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.samples.len(), "sample {offset} of {self:?}");
        // Of the whole memory, not of one sample: who has it reaches neighbours, too.
        // SAFETY: within the memory, as was just seen.
        unsafe { self.samples.cast::<u8>().as_ptr().add(offset) }
    }

    /// Repeats what lies at columns `-keep` and `width + keep - 1` of rows up to the ends of the rows.
    ///
    /// # Safety
    /// Nobody else uses these rows.
    pub unsafe fn pad_sides(&self, rows: std::ops::Range<isize>, keep: usize) {
        let (keep, width) = (keep as isize, self.width as isize);
        let count = PAD - keep as usize;
        for y in rows {
            // SAFETY: within the row, which nobody else uses.
            unsafe {
                self.at(-(PAD as isize), y).write_bytes(self.at(-keep, y).read(), count);
                self.at(width + keep, y).write_bytes(self.at(width + keep - 1, y).read(), count);
            }
        }
    }

    /// Repeats row `from`, with its border, in other rows.
    ///
    /// # Safety
    /// Nobody else uses these rows, and nobody writes `from`.
    pub unsafe fn repeat_row(&self, from: isize, to: std::ops::Range<isize>) {
        let first = -(PAD as isize);
        for y in to {
            // SAFETY: whole rows, which do not overlap.
            unsafe { self.at(first, y).copy_from_nonoverlapping(self.at(first, from), self.stride) };
        }
    }
}

/// Values of which each is used by one worker at a time, or read by several.
pub struct Grid<T> {
    cells: Box<[UnsafeCell<T>]>,
}

// SAFETY: whoever calls `get` and `get_mut` keeps the order.
unsafe impl<T: Send + Sync> Sync for Grid<T> {}

impl<T> std::fmt::Debug for Grid<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "grid of {}", self.cells.len())
    }
}

impl<T: Default> Grid<T> {
    /// So many.
    pub fn new(count: usize) -> Grid<T> {
        Grid { cells: std::iter::repeat_with(UnsafeCell::default).take(count).collect() }
    }

    /// All of them.
    pub fn into_values(self) -> impl Iterator<Item = T> {
        self.cells.into_vec().into_iter().map(UnsafeCell::into_inner)
    }

    /// One of them.
    ///
    /// # Safety
    /// Nobody writes it while the reference lives.
    #[inline]
    pub unsafe fn get(&self, index: usize) -> &T {
        // SAFETY: by the caller.
        unsafe { &*self.cells[index].get() }
    }

    /// One of them, to be written.
    ///
    /// # Safety
    /// Nobody else uses it while the reference lives.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn get_mut(&self, index: usize) -> &mut T {
        // SAFETY: by the caller.
        unsafe { &mut *self.cells[index].get() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever has a place reaches its neighbours: in the border all samples are those at the edge.
    #[test]
    fn borders_repeat_edges() {
        let plane = Plane::new(5, 3);
        for y in 0..3 {
            let row: [u8; 5] = std::array::from_fn(|x| (10 * y + x as isize) as u8);
            // SAFETY: five samples of a row; nobody else is there.
            unsafe { plane.at(0, y).copy_from_nonoverlapping(row.as_ptr(), 5) };
        }
        let pad = PAD as isize;
        // SAFETY: nobody else is there.
        unsafe {
            plane.pad_sides(0..3, 0);
            plane.repeat_row(0, -pad..0);
            plane.repeat_row(2, 3..3 + pad);
        }
        for y in -pad..3 + pad {
            // SAFETY: a whole row; nobody writes it.
            let row = unsafe { std::slice::from_raw_parts(plane.at(-pad, y), plane.stride) };
            let expected = (-pad..5 + pad).map(|x| (10 * y.clamp(0, 2) + x.clamp(0, 4)) as u8);
            assert!(row.iter().copied().eq(expected), "row {y}");
        }
    }

    /// Rows that belong to several threads.
    #[test]
    fn rows_are_written_beside_each_other() {
        let plane = Plane::new(4, 4);
        std::thread::scope(|scope| {
            for y in 0..4 {
                let plane = &plane;
                // SAFETY: each thread has rows of its own.
                scope.spawn(move || unsafe {
                    plane.at(0, y).write_bytes(y as u8, 4);
                    plane.pad_sides(y..y + 1, 0);
                });
            }
        });
        // SAFETY: nobody writes any more.
        assert!((0..4).all(|y| (-3..7).all(|x| unsafe { plane.at(x, y).read() } == y as u8)));
    }
}
