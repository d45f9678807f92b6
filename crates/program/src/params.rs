//! Parameters of tasks, declared as types, so that a leaf that writes what it declared to read does not compile.

use crate::{Access, AnyBlock, Block, Element, Param, RawView, Reduction, View, ViewMut};
use smallvec::SmallVec;
use std::marker::PhantomData;

/// A parameter that is read: elements `T`, `R` dimensions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Read<T, const R: usize>(PhantomData<T>);
/// A parameter of which every element is written. What a leaf leaves out holds whatever the memory held before, so that the result
/// depends on the plan: what keeps some of its elements is an [`Update`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Write<T, const R: usize>(PhantomData<T>);
/// A parameter that is read and written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Update<T, const R: usize>(PhantomData<T>);

/// One parameter as a type: [`Read`], [`Write`], [`Update`] or [`Reduce`](crate::Reduce).
///
/// # Safety
/// `PARAM` and `REDUCTION` say what the view does: it reads and writes elements of that type and rank only as that access
/// allows, since blocks that are only read are shared between threads.
pub unsafe trait ParamKind: Clone + Default + Send + Sync + 'static {
    /// Access, element type and rank; the name is filled in by the task.
    const PARAM: Param;
    /// How contributions are combined, for a parameter that is reduced.
    const REDUCTION: Option<Reduction> = None;
    /// What the leaf receives.
    type View<'a>;
    /// What a call is given.
    type Block: Into<AnyBlock>;
    /// # Safety
    /// The block satisfies the contract of [`View::from_raw`] or [`ViewMut::from_raw`].
    unsafe fn view<'a>(raw: &RawView) -> Self::View<'a>;
}

macro_rules! kind {
    ($kind:ident, $access:ident, $view:ident) => {
        // SAFETY: the view is made for this access, type and rank.
        unsafe impl<T: Element, const R: usize> ParamKind for $kind<T, R> {
            const PARAM: Param = Param { name: "", access: Access::$access, element: T::TYPE, rank: R };
            type View<'a> = $view<'a, T, R>;
            type Block = Block<T, R>;
            unsafe fn view<'a>(raw: &RawView) -> Self::View<'a> {
                // SAFETY: passed on to the caller.
                unsafe { $view::from_raw(raw) }
            }
        }
    };
}
kind!(Read, Read, View);
kind!(Write, Write, ViewMut);
kind!(Update, Update, ViewMut);

/// The parameters of a task: a tuple of [`ParamKind`]s, or [`AnyParams`](crate::AnyParams).
///
/// # Safety
/// As for [`ParamKind`]: the views do what `params` and `reductions` say, which say the same whenever they are asked.
pub unsafe trait ParamList: Clone + Default + Send + Sync + 'static {
    /// What the leaf receives, in declared order.
    type Views<'a>;
    /// What a call is given, in declared order.
    type Blocks;
    /// The parameters, without names.
    fn params(&self) -> Vec<Param>;
    /// For each parameter, how its contributions are combined.
    fn reductions(&self) -> Vec<Option<Reduction>>;
    /// What a call is given, without types.
    fn blocks(blocks: Self::Blocks) -> SmallVec<[AnyBlock; 3]>;
    /// # Safety
    /// As for [`ParamKind::view`], for every block; there are as many as parameters.
    unsafe fn views<'a>(&'a self, raw: &[RawView]) -> Self::Views<'a>;
}

macro_rules! list {
    ($($p:ident $i:tt),+) => {
        // SAFETY: each view is that of its parameter.
        unsafe impl<$($p: ParamKind),+> ParamList for ($($p,)+) {
            type Views<'a> = ($($p::View<'a>,)+);
            type Blocks = ($($p::Block,)+);
            fn params(&self) -> Vec<Param> {
                vec![$($p::PARAM),+]
            }
            fn reductions(&self) -> Vec<Option<Reduction>> {
                vec![$($p::REDUCTION),+]
            }
            fn blocks(blocks: Self::Blocks) -> SmallVec<[AnyBlock; 3]> {
                let mut all = SmallVec::new();
                $(all.push(blocks.$i.into());)+
                all
            }
            unsafe fn views<'a>(&'a self, raw: &[RawView]) -> Self::Views<'a> {
                // SAFETY: passed on to the caller.
                unsafe { ($($p::view(&raw[$i]),)+) }
            }
        }
    };
}
list!(A 0);
list!(A 0, B 1);
list!(A 0, B 1, C 2);
list!(A 0, B 1, C 2, D 3);
list!(A 0, B 1, C 2, D 3, E 4);
list!(A 0, B 1, C 2, D 3, E 4, F 5);
list!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
list!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
list!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
list!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
