//! Parameters that are known when a program is written, and not before: for tasks that are put together at run time.

use crate::{Access, AnyBlock, Element, ElementType, Operator, Param, ParamList, RawView, Reduction, Shape};
use smallvec::SmallVec;
use std::marker::PhantomData;

/// Parameters of a [`Task`](crate::Task) that says by [`Task::parameters`](crate::Task::parameters) which it has. Its leaf
/// variant receives [`AnyViews`], where types are checked as each is taken.
#[derive(Clone, Default)]
pub struct AnyParams {
    params: Vec<Param>,
    reductions: Vec<Option<Reduction>>,
}

impl AnyParams {
    /// The next parameter, with its type and number of dimensions; not one that is reduced.
    pub fn push(&mut self, access: Access, element: ElementType, rank: usize) {
        assert!(access != Access::Reduce, "a parameter that is reduced has an operator");
        self.params.push(Param { name: "", access, element, rank });
        self.reductions.push(None);
    }

    /// The next parameter, which is reduced by `O`.
    pub fn push_reduced<T: Element, O: Operator<T>>(&mut self, rank: usize) {
        self.params.push(Param { name: "", access: Access::Reduce, element: T::TYPE, rank });
        self.reductions.push(Some(Reduction::of_rank::<T, O>(rank)));
    }
}

// SAFETY: the views are made from the parameters that it holds, and check type and rank where they are typed.
unsafe impl ParamList for AnyParams {
    type Views<'a> = AnyViews<'a>;
    type Blocks = Vec<AnyBlock>;

    fn params(&self) -> Vec<Param> {
        self.params.clone()
    }

    fn reductions(&self) -> Vec<Option<Reduction>> {
        self.reductions.clone()
    }

    fn blocks(blocks: Vec<AnyBlock>) -> SmallVec<[AnyBlock; 3]> {
        blocks.into()
    }

    unsafe fn views<'a>(&'a self, raw: &[RawView]) -> AnyViews<'a> {
        AnyViews { params: &self.params, blocks: raw.iter().copied().map(Some).collect() }
    }
}

/// The blocks that a leaf variant receives, each to be taken once.
pub struct AnyViews<'a> {
    params: &'a [Param],
    blocks: SmallVec<[Option<RawView>; 6]>,
}

impl<'a> AnyViews<'a> {
    fn take(&mut self, param: usize, writes: bool) -> AnyView<'a> {
        let declared = &self.params[param];
        assert_eq!(declared.access.writes(), writes, "what a leaf does with parameter {param}");
        match self.blocks[param].take() {
            Some(block) => AnyView { block, shape: block.shape(), borrow: PhantomData },
            None => panic!("parameter {param} was taken before"),
        }
    }

    /// A parameter that is read.
    ///
    /// # Panics
    /// When there is none of this number, it was taken before, or is written. So does [`AnyViews::written`].
    pub fn read(&mut self, param: usize) -> AnyView<'a> {
        self.take(param, false)
    }

    /// A parameter that is written, updated or reduced; of the last, the leaf's own contribution, identities at first.
    pub fn written(&mut self, param: usize) -> AnyViewMut<'a> {
        AnyViewMut(self.take(param, true))
    }
}

/// A block that a leaf may read: a [`View`](crate::View) whose type is asked for.
pub struct AnyView<'a> {
    block: RawView,
    shape: Shape,
    borrow: PhantomData<&'a [u8]>,
}

/// A block that a leaf may read and write.
pub struct AnyViewMut<'a>(AnyView<'a>);

impl AnyView<'_> {
    /// Length along each dimension.
    pub fn dims(&self) -> &[u64] {
        self.shape.dims()
    }

    /// The contiguous run of the last dimension at the given indices of the dimensions before it.
    ///
    /// # Panics
    /// When the elements are no `T`, or an index is out of bounds.
    pub fn row<T: Element>(&self, index: &[usize]) -> &[T] {
        let (pointer, len) = self.locate::<T>(index);
        // SAFETY: `locate` checked type and indices; who made the views vouches that every row inside the block is
        // readable while they live, and written by nobody else.
        unsafe { std::slice::from_raw_parts(pointer, len) }
    }

    fn locate<T: Element>(&self, index: &[usize]) -> (*mut T, usize) {
        assert_eq!(T::TYPE, self.block.element(), "elements of a block");
        assert!(self.block.pointer().cast::<T>().is_aligned(), "a block of {}", self.block.element());
        let (dims, strides) = (self.dims(), self.block.strides());
        assert_eq!(index.len() + 1, dims.len(), "one index for each dimension but the last");
        let mut offset = 0;
        for (d, &i) in index.iter().enumerate() {
            assert!((i as u64) < dims[d], "row {i} of {}", dims[d]);
            offset += i * strides[d];
        }
        (self.block.pointer().cast::<T>().wrapping_add(offset), dims[dims.len() - 1] as usize)
    }
}

impl AnyViewMut<'_> {
    /// Length along each dimension.
    pub fn dims(&self) -> &[u64] {
        self.0.dims()
    }

    /// As [`AnyView::row`], to be written.
    ///
    /// # Panics
    /// As [`AnyView::row`].
    pub fn row_mut<T: Element>(&mut self, index: &[usize]) -> &mut [T] {
        let (pointer, len) = self.0.locate::<T>(index);
        // SAFETY: as in `AnyView::row`; the block was taken once and is written by this call alone, and `&mut self` makes
        // the row unique.
        unsafe { std::slice::from_raw_parts_mut(pointer, len) }
    }
}
