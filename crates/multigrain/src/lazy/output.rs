//! What a pass gives: what each of its results needs of the task that makes it.

use multigrain_program::notation::Index;
use multigrain_program::{AnyParams, AnyView, AnyViewMut};

/// What a leaf does for one result: called for every row of the arrays, with its index.
pub(super) type Sink<'a> = Box<dyn FnMut(&[usize], &[AnyView<'_>]) + 'a>;

/// The axes along which results are reduced: one, or all of them, which only exact operators can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reduced {
    No,
    Along(usize),
    All,
}

impl Reduced {
    /// For results of one pass: reduced results are reduced along the same axis, whatever else they are reduced along.
    pub(super) fn and(self, other: Reduced) -> Option<Reduced> {
        match (self, other) {
            (Reduced::Along(a), Reduced::Along(b)) => (a == b).then_some(self),
            (Reduced::Along(_), _) | (Reduced::All, Reduced::No | Reduced::All) => Some(self),
            (Reduced::No, _) | (Reduced::All, Reduced::Along(_)) => Some(other),
        }
    }
}

/// A result of a pass.
pub(super) trait Output: Send + Sync {
    /// The parameter that holds it, among the others of the task.
    fn declare(&self, params: &mut AnyParams);
    /// What cuts its dimensions.
    fn index(&self, axes: &[&'static str]) -> Vec<Index>;
    /// The axes along which it is reduced.
    fn reduced(&self) -> Reduced {
        Reduced::No
    }
    /// What tells it from others that have its type and shape; `None` where a function in it holds values of its own.
    fn told(&self) -> Option<u64>;
    /// Begins a block; `of` says which blocks are those of its expression.
    fn open<'a>(&'a self, block: AnyViewMut<'a>, of: &'a [usize]) -> Sink<'a>;
}
