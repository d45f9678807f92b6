//! Operators without their types.

use super::operator::Operator;
use super::view::ReduceMut;
use crate::{DynTask, Element, RawView};
use std::sync::Arc;

/// An operator without its types, for blocks that lie in memory.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    /// Name of the operator.
    pub name: &'static str,
    /// Whether contributions may be combined in any order.
    pub exact: bool,
    fill: unsafe fn(&RawView),
    combine: unsafe fn(&RawView, &RawView),
    merge: fn() -> Arc<dyn DynTask>,
}

impl Reduction {
    /// Of blocks of `R` dimensions; `merge` makes the task that combines one into another.
    pub(crate) const fn new<T: Element, const R: usize, O: Operator<T>>(merge: fn() -> Arc<dyn DynTask>) -> Reduction {
        Reduction { name: O::NAME, exact: O::EXACT, fill: fill::<T, R, O>, combine: combine::<T, R, O>, merge }
    }

    /// The task that combines a block into another.
    pub(crate) fn merge(&self) -> Arc<dyn DynTask> {
        (self.merge)()
    }

    /// Sets every element of a block to the identity.
    ///
    /// # Safety
    /// As for [`ReduceMut::from_raw`], except that the block need not be initialised.
    pub(crate) unsafe fn fill(&self, block: &RawView) {
        // SAFETY: passed on to the caller; `new` chose the function for the element type and rank.
        unsafe { (self.fill)(block) }
    }

    /// Combines `right` into `left`, which is the left operand.
    ///
    /// # Safety
    /// As for [`ReduceMut::from_raw`] for `left`, and for [`crate::View::from_raw`] for `right`, of one shape.
    pub(crate) unsafe fn combine(&self, left: &RawView, right: &RawView) {
        // SAFETY: as above.
        unsafe { (self.combine)(left, right) }
    }
}

unsafe fn fill<T: Element, const R: usize, O: Operator<T>>(block: &RawView) {
    // SAFETY: passed on to the caller; nothing is read.
    unsafe { ReduceMut::<T, R, O>::from_raw(block) }.clear();
}

unsafe fn combine<T: Element, const R: usize, O: Operator<T>>(left: &RawView, right: &RawView) {
    // SAFETY: passed on to the caller.
    let (mut left, right) = unsafe { (ReduceMut::<T, R, O>::from_raw(left), crate::View::<T, R>::from_raw(right)) };
    left.combine_all(&right);
}
