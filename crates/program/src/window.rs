//! Blocks with a halo, and elements by their indices.

use crate::{Element, View, ViewMut};
use std::ops::{Index, IndexMut};

/// A block that is read, with what a window reaches around it; it knows where the array ends.
///
/// Indices count from the first element that belongs to the block itself, as they do in what is written; offsets say how
/// far from there. An index that is not of the block, and an offset beyond what the task has declared, are refused, since
/// they would find the end of a block there and not that of the array.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a, T, const R: usize> {
    view: View<'a, T, R>,
    len: [usize; R],
    before: [usize; R],
    reach: [(usize, usize); R],
}

impl<'a, T: Element, const R: usize> Window<'a, T, R> {
    /// A view of a block of `len` elements along each dimension, of which `before` lie before it, for windows that reach so
    /// far before and after.
    ///
    /// # Panics
    /// When the view holds fewer.
    pub fn new(
        view: View<'a, T, R>,
        len: [usize; R],
        before: [usize; R],
        reach: [(usize, usize); R],
    ) -> Window<'a, T, R> {
        let is_held = |d: usize| before[d].checked_add(len[d]).is_some_and(|end| end <= view.len(d));
        assert!((0..R).all(is_held), "{len:?} elements after {before:?} of {:?}", view.shape());
        Window { view, len, before, reach }
    }

    /// The block with its halo.
    pub fn view(&self) -> &View<'a, T, R> {
        &self.view
    }

    /// Length of the block itself along dimension `d`.
    pub fn len(&self, d: usize) -> usize {
        self.len[d]
    }

    /// Elements along each dimension that lie before the block itself.
    pub fn before(&self) -> [usize; R] {
        self.before
    }

    /// Where along dimension `d` an index lies with its offset, as an index of the view: negative, or its length or more,
    /// beyond the end of the array.
    #[inline]
    fn place(&self, d: usize, index: usize, offset: isize) -> isize {
        let ((before, after), len) = (self.reach[d], self.len[d]);
        if index >= len {
            beyond_block(d, index, len);
        }
        if offset < -(before as isize) || offset > after as isize {
            beyond_reach(d, offset, before, after);
        }
        (self.before[d] + index) as isize + offset
    }

    /// The element at an index and an offset from it; `None` beyond the ends of the array.
    ///
    /// # Panics
    /// When an index is not of the block, or an offset beyond what the task has declared. So does [`Window::near`].
    #[inline]
    pub fn get(&self, index: [usize; R], offset: [isize; R]) -> Option<T> {
        let mut at = [0; R];
        for d in 0..R {
            at[d] = usize::try_from(self.place(d, index[d], offset[d])).ok().filter(|&i| i < self.view.len(d))?;
        }
        // SAFETY: each index is less than the length.
        Some(unsafe { self.element(at) })
    }

    /// The element at an index and an offset from it, or the nearest one where that is beyond the ends of the array.
    #[inline]
    pub fn near(&self, index: [usize; R], offset: [isize; R]) -> T {
        let mut at = [0; R];
        for d in 0..R {
            at[d] = self.place(d, index[d], offset[d]).clamp(0, self.view.len(d) as isize - 1) as usize;
        }
        // SAFETY: each index is less than the length: none is 0, since the block itself has the index.
        unsafe { self.element(at) }
    }

    /// The element at an index of the view, which is not looked at again: windows are asked in innermost loops.
    ///
    /// # Safety
    /// Along each dimension the index is less than the view's length.
    #[inline]
    unsafe fn element(&self, at: [usize; R]) -> T {
        let strides = self.view.strides();
        let row: usize = (0..R - 1).map(|d| at[d] * strides[d]).sum();
        // SAFETY: an element of the view, all of which may be read as long as it is there.
        unsafe { *self.view.as_ptr().add(row + at[R - 1]) }
    }
}

// Not in line: windows are asked in innermost loops.

#[cold]
#[inline(never)]
fn beyond_block(d: usize, index: usize, len: usize) -> ! {
    panic!("index {index} along dimension {d} of a block of {len}")
}

#[cold]
#[inline(never)]
fn beyond_reach(d: usize, offset: isize, before: usize, after: usize) -> ! {
    panic!("offset {offset} along dimension {d} of a window that reaches {before} before and {after} after")
}

macro_rules! index {
    ($view:ident) => {
        impl<T: Element, const R: usize> Index<[usize; R]> for $view<'_, T, R> {
            type Output = T;
            #[inline]
            fn index(&self, index: [usize; R]) -> &T {
                &self.row(&index[..R - 1])[index[R - 1]]
            }
        }
    };
}
index!(View);
index!(ViewMut);

impl<T: Element, const R: usize> IndexMut<[usize; R]> for ViewMut<'_, T, R> {
    #[inline]
    fn index_mut(&mut self, index: [usize; R]) -> &mut T {
        &mut self.row_mut(&index[..R - 1])[index[R - 1]]
    }
}
