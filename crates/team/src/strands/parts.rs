//! Arrays that a loop writes, handed out in rows: each chunk gets the rows of its own iterations, so that the workers
//! of a loop can write one array without a lock and without `unsafe` in the program. One of the modules of this crate
//! with `unsafe` in it.

use std::marker::PhantomData;
use std::ops::Range;

/// What can be handed out by iterations: nothing (`()`), the rows of an array ([`Rows`]), or several of these (tuples).
///
/// # Safety
/// Several threads may ask for parts at once, and use those of disjoint ranges at once.
pub unsafe trait Parts {
    /// What belongs to a range of iterations.
    type Part: Send;

    /// How many iterations there is something for; `None` if for any number.
    fn iterations(&self) -> Option<usize>;

    /// What belongs to these iterations.
    ///
    /// # Safety
    /// The iterations are within [`Parts::iterations`], and no part that was handed out before overlaps them.
    unsafe fn part(&self, iterations: Range<usize>) -> Self::Part;
}

/// An array of rows of equal length, one for each iteration.
#[derive(Debug)]
pub struct Rows<'a, T> {
    data: *mut T,
    rows: usize,
    row: usize,
    borrowed: PhantomData<&'a mut [T]>,
}

// SAFETY: it is a slice that is borrowed for writing.
unsafe impl<T: Send> Send for Rows<'_, T> {}

impl<'a, T> Rows<'a, T> {
    /// The rows of `row` elements each that `data` consists of.
    ///
    /// # Panics
    /// If the length of the array is not a multiple of `row`, or `row` is zero.
    pub fn new(data: &'a mut [T], row: usize) -> Rows<'a, T> {
        let elements = data.len();
        assert!(row > 0 && elements.is_multiple_of(row), "{elements} elements are not rows of {row}");
        Rows { data: data.as_mut_ptr(), rows: elements / row, row, borrowed: PhantomData }
    }
}

// SAFETY: rows of disjoint ranges do not overlap in memory, and `T` can be sent.
unsafe impl<'a, T: Send> Parts for Rows<'a, T> {
    type Part = &'a mut [T];

    fn iterations(&self) -> Option<usize> {
        Some(self.rows)
    }

    unsafe fn part(&self, iterations: Range<usize>) -> &'a mut [T] {
        assert!(iterations.start <= iterations.end && iterations.end <= self.rows, "{iterations:?} of {}", self.rows);
        let elements = (iterations.end - iterations.start) * self.row;
        // SAFETY: within the array, as just checked, which is borrowed for `'a`; that no other part overlaps is the caller's.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(iterations.start * self.row), elements) }
    }
}

// SAFETY: there is nothing to share.
unsafe impl Parts for () {
    type Part = ();

    fn iterations(&self) -> Option<usize> {
        None
    }

    unsafe fn part(&self, _iterations: Range<usize>) {}
}

macro_rules! tuple {
    ($($name:ident $index:tt),+) => {
        // SAFETY: each of them keeps its promise, and they borrow different arrays.
        unsafe impl<$($name: Parts),+> Parts for ($($name,)+) {
            type Part = ($($name::Part,)+);

            fn iterations(&self) -> Option<usize> {
                [$(self.$index.iterations()),+].into_iter().flatten().min()
            }

            unsafe fn part(&self, iterations: Range<usize>) -> Self::Part {
                // SAFETY: by the caller, for each of them.
                ($(unsafe { self.$index.part(iterations.clone()) },)+)
            }
        }
    };
}

tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn rows_are_handed_out() {
        let (mut wide, mut narrow) = (vec![0; 12], vec![0; 4]);
        let parts = (Rows::new(&mut wide, 3), Rows::new(&mut narrow, 1));
        assert_eq!(parts.iterations(), Some(4));
        // SAFETY: disjoint, within the four rows.
        let ((a, b), (c, d)) = unsafe { (parts.part(0..1), parts.part(1..4)) };
        assert_eq!((a.len(), b.len(), c.len(), d.len()), (3, 1, 9, 3));
        a.fill(1);
        c.fill(2);
        assert_eq!((b, d), (&mut [0][..], &mut [0; 3][..]));
        assert_eq!(wide, [1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
    }

    #[test]
    #[should_panic(expected = "7 elements are not rows of 2")]
    fn broken_rows_are_refused() {
        Rows::new(&mut [0; 7], 2);
    }
}
