//! Parameters that are reduced.

use super::merge::Merge;
use super::operator::{Operator, Sum};
use super::reduction::Reduction;
use super::view::ReduceMut;
use crate::erased::Erased;
use crate::{Access, Block, Element, Param, ParamKind, RawView};
use std::marker::PhantomData;
use std::sync::Arc;

/// A parameter that sub-calls contribute to: elements `T`, `R` dimensions, combined element by element by `O`.
///
/// The parameter ends as the combination of all contributions, one of every span of the axis that
/// [`Task::reduced_axis`](crate::Task::reduced_axis) names, by a fixed tree; so it is the same to the last bit however
/// the call is split and whoever computes which part. What the block held before takes no part: to go on from there,
/// reduce into another block and call [`Merge`](crate::Merge).
#[derive(Debug)]
pub struct Reduce<T, const R: usize, O = Sum>(PhantomData<fn() -> (T, O)>);

impl<T, const R: usize, O> Clone for Reduce<T, R, O> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, const R: usize, O> Copy for Reduce<T, R, O> {}
impl<T, const R: usize, O> Default for Reduce<T, R, O> {
    fn default() -> Self {
        Reduce(PhantomData)
    }
}

// SAFETY: the view is made for this access, type and rank.
unsafe impl<T: Element, const R: usize, O: Operator<T>> ParamKind for Reduce<T, R, O> {
    const PARAM: Param = Param { name: "", access: Access::Reduce, element: T::TYPE, rank: R };
    const REDUCTION: Option<Reduction> = Some(Reduction::of::<T, R, O>());
    type View<'a> = ReduceMut<'a, T, R, O>;
    type Block = Block<T, R>;
    unsafe fn view<'a>(raw: &RawView) -> Self::View<'a> {
        // SAFETY: passed on to the caller.
        unsafe { ReduceMut::from_raw(raw) }
    }
}

impl Reduction {
    pub(crate) const fn of<T: Element, const R: usize, O: Operator<T>>() -> Reduction {
        Reduction::new::<T, R, O>(|| Arc::new(Erased::new(Merge::<T, R, O>::default())))
    }

    /// The same for a number of dimensions that is known at run time.
    ///
    /// # Panics
    /// With no dimension, or more than an array may have.
    pub(crate) fn of_rank<T: Element, O: Operator<T>>(rank: usize) -> Reduction {
        match rank {
            1 => Reduction::of::<T, 1, O>(),
            2 => Reduction::of::<T, 2, O>(),
            3 => Reduction::of::<T, 3, O>(),
            4 => Reduction::of::<T, 4, O>(),
            5 => Reduction::of::<T, 5, O>(),
            6 => Reduction::of::<T, 6, O>(),
            _ => panic!("{rank} dimensions, of at most {}", crate::RANK_MAX),
        }
    }
}
