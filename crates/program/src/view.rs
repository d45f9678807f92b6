//! What a leaf variant receives: typed views of blocks that already lie in its memory.
//!
//! A view is a pointer, a shape and the distance between rows; the last dimension is always contiguous. Views borrow
//! for the duration of the leaf, so they cannot be kept, and a [`View`] cannot be written through.

use crate::{Element, ElementType, Region, Shape, region::RANK_MAX};
use std::marker::PhantomData;

/// An untyped block in memory, as engines hand it to a leaf.
///
/// The address is computed, never accessed. Whoever makes one of a whole array vouches for its memory where it becomes a
/// [`View`]; parts of it are inside by construction.
#[derive(Clone, Copy, Debug)]
pub struct RawView {
    pointer: *mut u8,
    element: ElementType,
    shape: Shape,
    strides: [usize; RANK_MAX],
}

impl RawView {
    /// A dense row-major block that begins at `pointer`.
    pub fn dense(pointer: *mut u8, element: ElementType, shape: Shape) -> RawView {
        let mut strides = [1usize; RANK_MAX];
        for d in (0..shape.rank().saturating_sub(1)).rev() {
            strides[d] = strides[d + 1].saturating_mul(shape.dims()[d + 1] as usize);
        }
        RawView { pointer, element, shape, strides }
    }

    /// A region of this block, relative to its first element; `None` where it is not inside.
    #[inline]
    pub fn part(&self, region: &Region) -> Option<RawView> {
        // Once a call of every stream: nothing is made that is only looked at.
        let (extents, starts) = (self.shape.dims(), region.start());
        if starts.len() != extents.len() || (0..extents.len()).any(|d| region.end(d) > extents[d]) {
            return None;
        }
        let offset: usize = starts.iter().zip(self.strides).map(|(&s, stride)| s as usize * stride).sum();
        let pointer = self.pointer.wrapping_add(offset * self.element.size_bytes() as usize);
        Some(RawView { pointer, shape: region.shape(), ..*self })
    }

    /// Address of the first element.
    pub fn pointer(&self) -> *mut u8 {
        self.pointer
    }

    /// Type of the elements.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// Lengths along each dimension.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Distance in elements between neighbours along each dimension; 1 along the last.
    pub fn strides(&self) -> &[usize] {
        &self.strides[..self.shape.rank()]
    }
}

macro_rules! common {
    ($name:ident) => {
        impl<'a, T: Element, const R: usize> $name<'a, T, R> {
            /// Length along each dimension.
            pub fn shape(&self) -> [usize; R] {
                self.shape
            }

            /// Length along dimension `d`.
            pub fn len(&self, d: usize) -> usize {
                self.shape[d]
            }

            /// Whether the view holds no element.
            pub fn is_empty(&self) -> bool {
                self.shape.contains(&0)
            }

            /// Distance in elements between neighbours along each dimension.
            pub fn strides(&self) -> [usize; R] {
                self.strides
            }

            /// Distance in elements between two rows (for one dimension: its length).
            pub fn pitch(&self) -> usize {
                if R >= 2 { self.strides[R - 2] } else { self.shape[R - 1] }
            }

            /// Address of the first element, for kernels that do their own addressing.
            pub fn as_ptr(&self) -> *const T {
                self.pointer
            }

            /// The contiguous run of the last dimension at the given indices of the dimensions before it.
            ///
            /// # Panics
            /// When an index is out of bounds.
            pub fn row(&self, index: &[usize]) -> &[T] {
                let offset = self.row_offset(index);
                // SAFETY: `row_offset` checked the indices; the maker of the view vouches that every row inside the
                // shape is readable for the view's lifetime.
                unsafe { std::slice::from_raw_parts(self.pointer.add(offset), self.shape[R - 1]) }
            }

            fn row_offset(&self, index: &[usize]) -> usize {
                assert_eq!(index.len(), R - 1, "one index for each dimension but the last");
                let mut offset = 0;
                for (d, &i) in index.iter().enumerate() {
                    assert!(i < self.shape[d], "row {i} of {}", self.shape[d]);
                    offset += i * self.strides[d];
                }
                offset
            }
        }
    };
}

/// A block that a leaf may read.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T, const R: usize> {
    pointer: *const T,
    shape: [usize; R],
    strides: [usize; R],
    borrow: PhantomData<&'a [T]>,
}

/// A block that a leaf may read and write.
#[derive(Debug)]
pub struct ViewMut<'a, T, const R: usize> {
    pointer: *mut T,
    shape: [usize; R],
    strides: [usize; R],
    borrow: PhantomData<&'a mut [T]>,
}

common!(View);
common!(ViewMut);

// SAFETY: a view is a borrowed slice with gaps; it may cross threads exactly when the slice may.
unsafe impl<T: Element, const R: usize> Send for View<'_, T, R> {}
// SAFETY: as above.
unsafe impl<T: Element, const R: usize> Sync for View<'_, T, R> {}
// SAFETY: as above, for `&mut [T]`.
unsafe impl<T: Element, const R: usize> Send for ViewMut<'_, T, R> {}

/// Shape and strides of a block for a view of elements `T` in `R` dimensions.
fn dims<T: Element, const R: usize>(raw: &RawView) -> ([usize; R], [usize; R]) {
    assert_eq!(raw.shape.rank(), R, "rank of a block and of the parameter it is passed to");
    assert_eq!(raw.element, T::TYPE, "elements of a block and of the parameter it is passed to");
    assert!(raw.pointer.cast::<T>().is_aligned(), "a block of {} at {:?}", raw.element, raw.pointer);
    let mut shape = [0; R];
    let mut strides = [0; R];
    for d in 0..R {
        shape[d] = raw.shape.dims()[d] as usize;
        strides[d] = raw.strides[d];
    }
    (shape, strides)
}

impl<T: Element, const R: usize> View<'_, T, R> {
    /// A readable view of a raw block.
    ///
    /// # Safety
    /// For the lifetime of the view, every element of the block is initialised memory, and not written by anybody.
    ///
    /// # Panics
    /// When the block is of another type or rank, or not aligned.
    pub unsafe fn from_raw(raw: &RawView) -> Self {
        let (shape, strides) = dims::<T, R>(raw);
        View { pointer: raw.pointer.cast(), shape, strides, borrow: PhantomData }
    }

    /// All elements, when the block is dense.
    pub fn as_slice(&self) -> Option<&[T]> {
        let elements: usize = self.shape.iter().product();
        // SAFETY: dense, so all elements of the block lie between the first and the last row.
        is_dense(&self.shape, &self.strides).then(|| unsafe { std::slice::from_raw_parts(self.pointer, elements) })
    }
}

impl<T: Element, const R: usize> ViewMut<'_, T, R> {
    /// A writable view of a raw block.
    ///
    /// # Safety
    /// For the lifetime of the view, every element of the block is initialised memory, and accessed through this view
    /// alone.
    ///
    /// # Panics
    /// When the block is of another type or rank, or not aligned.
    pub unsafe fn from_raw(raw: &RawView) -> Self {
        let (shape, strides) = dims::<T, R>(raw);
        ViewMut { pointer: raw.pointer.cast(), shape, strides, borrow: PhantomData }
    }

    /// Address of the first element, for kernels that do their own addressing.
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.pointer
    }

    /// The contiguous run of the last dimension at the given indices of the dimensions before it.
    ///
    /// # Panics
    /// When an index is out of bounds.
    pub fn row_mut(&mut self, index: &[usize]) -> &mut [T] {
        let offset = self.row_offset(index);
        // SAFETY: `row_offset` checked the indices; the view is the only access, and `&mut self` makes the row unique.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.add(offset), self.shape[R - 1]) }
    }

    /// All elements, when the block is dense.
    pub fn as_mut_slice(&mut self) -> Option<&mut [T]> {
        let elements: usize = self.shape.iter().product();
        // SAFETY: dense, so all elements of the block lie between the first and the last row.
        is_dense(&self.shape, &self.strides).then(|| unsafe { std::slice::from_raw_parts_mut(self.pointer, elements) })
    }
}

fn is_dense(shape: &[usize], strides: &[usize]) -> bool {
    let mut expected = 1;
    for d in (0..shape.len()).rev() {
        if shape[d] != 1 && strides[d] != expected {
            return false;
        }
        expected *= shape[d];
    }
    true
}
