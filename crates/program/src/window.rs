//! Blocks with a halo, and elements by their indices.

use crate::{Element, View, ViewMut};
use std::ops::{Index, IndexMut};

/// A block that is read, with what a window reaches around it; it knows where the array ends.
///
/// Indices count from the first element that belongs to the block itself, as they do in what is written; offsets say how
/// far from there. An offset beyond what the task has declared is refused, since it would find the end of a block there
/// and not that of the array.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a, T, const R: usize> {
    view: View<'a, T, R>,
    before: [usize; R],
    reach: [(usize, usize); R],
}

impl<'a, T: Element, const R: usize> Window<'a, T, R> {
    /// A view of which `before` elements lie before the block itself along each dimension, for windows that reach so far
    /// before and after.
    pub fn new(view: View<'a, T, R>, before: [usize; R], reach: [(usize, usize); R]) -> Window<'a, T, R> {
        Window { view, before, reach }
    }

    /// The block with its halo.
    pub fn view(&self) -> &View<'a, T, R> {
        &self.view
    }

    /// Elements along each dimension that lie before the block itself.
    pub fn before(&self) -> [usize; R] {
        self.before
    }

    /// Where along dimension `d` an index lies with its offset, as an index of the view: negative, or its length or more,
    /// beyond the end of the array.
    #[inline]
    fn place(&self, d: usize, index: usize, offset: isize) -> isize {
        let (before, after) = self.reach[d];
        assert!(
            offset >= -(before as isize) && offset <= after as isize,
            "offset {offset} along dimension {d} of a window that reaches {before} before and {after} after"
        );
        (self.before[d] + index) as isize + offset
    }

    /// The element at an index and an offset from it; `None` beyond the ends of the array.
    ///
    /// # Panics
    /// When an offset is beyond what the task has declared. So do the other methods.
    #[inline]
    pub fn get(&self, index: [usize; R], offset: [isize; R]) -> Option<T> {
        let mut at = [0; R];
        for d in 0..R {
            at[d] = usize::try_from(self.place(d, index[d], offset[d])).ok().filter(|&i| i < self.view.len(d))?;
        }
        Some(self.view[at])
    }

    /// The element at an index and an offset from it, or the nearest one where that is beyond the ends of the array.
    #[inline]
    pub fn near(&self, index: [usize; R], offset: [isize; R]) -> T {
        let mut at = [0; R];
        for d in 0..R {
            at[d] = self.place(d, index[d], offset[d]).clamp(0, self.view.len(d) as isize - 1) as usize;
        }
        self.view[at]
    }
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
