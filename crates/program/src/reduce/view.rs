//! What a leaf receives for a parameter that it contributes to.

use super::operator::Operator;
use crate::{Element, RawView, View, ViewMut};
use std::marker::PhantomData;

/// A block that a leaf contributes to: elements `T`, `R` dimensions, combined by `O`.
///
/// Every element begins as the operator's identity; what the leaf combines into it is its contribution. Other
/// contributions are not in sight, so there is nothing to read.
#[derive(Debug)]
pub struct ReduceMut<'a, T, const R: usize, O> {
    block: ViewMut<'a, T, R>,
    operator: PhantomData<fn() -> O>,
}

impl<T: Element, const R: usize, O: Operator<T>> ReduceMut<'_, T, R, O> {
    /// A view of a raw block.
    ///
    /// # Safety
    /// As for [`ViewMut::from_raw`].
    pub unsafe fn from_raw(raw: &RawView) -> Self {
        // SAFETY: passed on to the caller.
        ReduceMut { block: unsafe { ViewMut::from_raw(raw) }, operator: PhantomData }
    }

    /// Length along each dimension.
    pub fn shape(&self) -> [usize; R] {
        self.block.shape()
    }

    /// Length along dimension `d`.
    pub fn len(&self, d: usize) -> usize {
        self.block.len(d)
    }

    /// Whether the view holds no element.
    pub fn is_empty(&self) -> bool {
        self.block.is_empty()
    }

    /// Distance in elements between neighbours along each dimension.
    pub fn strides(&self) -> [usize; R] {
        self.block.strides()
    }

    /// Distance in elements between two rows (for one dimension: its length).
    pub fn pitch(&self) -> usize {
        self.block.pitch()
    }

    /// Address of the first element, for kernels that do their own addressing. The elements are this leaf's own
    /// contribution, identities at first.
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.block.as_mut_ptr()
    }

    /// Combines a value into one element, as the right operand.
    ///
    /// # Panics
    /// When an index is out of bounds.
    pub fn combine(&mut self, index: [usize; R], value: T) {
        let (&last, before) = match index.split_last() {
            Some(parts) => parts,
            None => return,
        };
        let element = &mut self.block.row_mut(before)[last];
        *element = O::combine(*element, value);
    }

    /// Combines values into the contiguous run of the last dimension at the given indices of the dimensions before it.
    ///
    /// # Panics
    /// When an index is out of bounds, or there are not as many values as elements in the run.
    pub fn combine_row(&mut self, index: &[usize], values: &[T]) {
        let row = self.block.row_mut(index);
        assert_eq!(row.len(), values.len(), "values for a row");
        for (element, &value) in row.iter_mut().zip(values) {
            *element = O::combine(*element, value);
        }
    }

    /// Sets every element to the identity.
    pub(crate) fn clear(&mut self) {
        let mut index = [0; R];
        loop {
            self.block.row_mut(&index[..R - 1]).fill(O::identity());
            if !next(&mut index[..R - 1], &self.block.shape()) {
                return;
            }
        }
    }

    /// Combines a block of the same shape into this one.
    pub(crate) fn combine_all(&mut self, right: &View<'_, T, R>) {
        assert_eq!(self.shape(), right.shape(), "blocks that are combined");
        let mut index = [0; R];
        loop {
            self.combine_row(&index[..R - 1], right.row(&index[..R - 1]));
            if !next(&mut index[..R - 1], &right.shape()) {
                return;
            }
        }
    }
}

/// The next index, row-major; `false` after the last.
fn next(index: &mut [usize], shape: &[usize]) -> bool {
    for d in (0..index.len()).rev() {
        index[d] += 1;
        if index[d] < shape[d] {
            return true;
        }
        index[d] = 0;
    }
    false
}

impl<'a, T: Element, const R: usize, O: Operator<T>> From<ViewMut<'a, T, R>> for ReduceMut<'a, T, R, O> {
    /// To combine into a block as it is.
    fn from(block: ViewMut<'a, T, R>) -> Self {
        ReduceMut { block, operator: PhantomData }
    }
}
