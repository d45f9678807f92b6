//! Declared arrays, their handles and blocks.

use crate::{Element, ElementType, Region, Shape};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

/// The identity of one declaration of an array or a task: no two of a process have the same. A handle carries it, so a
/// program knows its own handles, and so do its clones, which have the same declarations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Declaration(u64);

impl Declaration {
    pub(crate) fn new() -> Declaration {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Relaxed: numbers differ, and say nothing else.
        Declaration(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What an array is for the program: where its content comes from and whether anybody looks at it afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Given, and never written.
    Input,
    /// Starts as zeros; its final content is a result.
    Output,
    /// Given; its final content is a result.
    InOut,
    /// Starts as zeros; its final content is of no interest.
    Temporary,
}

/// A declared array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArrayDecl {
    /// Name, for messages.
    pub name: String,
    /// Type of the elements.
    pub element: ElementType,
    /// Lengths, slowest dimension first.
    pub shape: Shape,
    /// Where its content comes from and goes to.
    pub role: Role,
}

impl ArrayDecl {
    /// Bytes of the whole array; at most [`u64::MAX`].
    pub fn bytes(&self) -> u64 {
        self.shape.elements().saturating_mul(self.element.size_bytes())
    }
}

/// A handle of a declared array: elements `T`, `R` dimensions. It is good for the program that declared the array, and
/// for clones made of that program since.
#[derive(Debug)]
pub struct Array<T, const R: usize> {
    index: u32,
    declaration: Declaration,
    shape: [u64; R],
    element: PhantomData<T>,
}

impl<T, const R: usize> Clone for Array<T, R> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, const R: usize> Copy for Array<T, R> {}

impl<T: Element, const R: usize> Array<T, R> {
    /// Its number among the arrays of its program.
    pub fn index(&self) -> usize {
        self.index as usize
    }

    /// The whole array.
    pub fn all(&self) -> Block<T, R> {
        self.block([0; R], self.shape)
    }

    /// The block with the given first index and lengths. Bounds are checked where the block is passed to a call.
    pub fn block(&self, start: [u64; R], len: [u64; R]) -> Block<T, R> {
        let arg = Arg { array: self.index, region: Region::new(&start, &len) };
        Block { block: AnyBlock { declaration: self.declaration, arg }, element: PhantomData }
    }
}

impl<T, const R: usize> Block<T, R> {
    /// The array's number in its program, and which part of it.
    pub fn arg(&self) -> Arg {
        self.block.arg
    }
}

/// A region of an array, to be passed to a call.
#[derive(Clone, Copy, Debug)]
pub struct Block<T, const R: usize> {
    block: AnyBlock,
    element: PhantomData<T>,
}

/// A [`Block`] without its types.
#[derive(Clone, Copy, Debug)]
pub struct AnyBlock {
    pub(crate) declaration: Declaration,
    pub(crate) arg: Arg,
}

impl<T, const R: usize> From<Block<T, R>> for AnyBlock {
    fn from(block: Block<T, R>) -> AnyBlock {
        block.block
    }
}

/// A handle of a declared array without its types.
#[derive(Clone, Copy, Debug)]
pub struct AnyArray {
    index: u32,
    declaration: Declaration,
    shape: Shape,
}

impl AnyArray {
    /// The same with its types, which are those that it was declared with.
    pub(crate) fn typed<T, const R: usize>(self, shape: [u64; R]) -> Array<T, R> {
        Array { index: self.index, declaration: self.declaration, shape, element: PhantomData }
    }

    /// Its number among the arrays of its program.
    pub fn index(&self) -> usize {
        self.index as usize
    }

    /// The whole array.
    pub fn all(&self) -> AnyBlock {
        let arg = Arg { array: self.index, region: Region::whole(self.shape) };
        AnyBlock { declaration: self.declaration, arg }
    }

    /// A block, by start and length along each dimension.
    ///
    /// # Panics
    /// When these are not as many: ranks are fixed where a program is written, not by its input.
    pub fn block(&self, start: &[u64], len: &[u64]) -> AnyBlock {
        AnyBlock { declaration: self.declaration, arg: Arg { array: self.index, region: Region::new(start, len) } }
    }
}

/// What tells an array of a program: a handle, or its number.
pub trait ArrayNumber {
    /// Its number among the arrays of a program; none where this has no such array, or the handle is another program's.
    fn number(&self, declared: &Declared) -> Option<usize>;
}

impl ArrayNumber for AnyArray {
    fn number(&self, declared: &Declared) -> Option<usize> {
        declared.has(self.index, self.declaration).then_some(self.index())
    }
}

impl<T: Element, const R: usize> ArrayNumber for Array<T, R> {
    fn number(&self, declared: &Declared) -> Option<usize> {
        declared.has(self.index, self.declaration).then_some(self.index())
    }
}

impl<T: Element, const R: usize> ArrayNumber for Block<T, R> {
    fn number(&self, declared: &Declared) -> Option<usize> {
        let AnyBlock { declaration, arg } = self.block;
        declared.has(arg.array, declaration).then_some(arg.array as usize)
    }
}

impl ArrayNumber for usize {
    fn number(&self, declared: &Declared) -> Option<usize> {
        (*self < declared.0.len()).then_some(*self)
    }
}

/// Which arrays a program has declared: what tells its handles from those of others.
#[derive(Clone, Default)]
pub struct Declared(Vec<Declaration>);

impl Declared {
    /// The next array.
    pub(crate) fn add(&mut self, shape: Shape) -> AnyArray {
        let (index, declaration) = (self.0.len() as u32, Declaration::new());
        self.0.push(declaration);
        AnyArray { index, declaration, shape }
    }

    pub(crate) fn has(&self, array: u32, declaration: Declaration) -> bool {
        self.0.get(array as usize) == Some(&declaration)
    }
}

impl<T: Element, const R: usize> From<Array<T, R>> for Block<T, R> {
    fn from(array: Array<T, R>) -> Block<T, R> {
        array.all()
    }
}

impl<T: Element, const R: usize> From<Array<T, R>> for AnyArray {
    fn from(array: Array<T, R>) -> AnyArray {
        AnyArray { index: array.index, declaration: array.declaration, shape: Shape::new(&array.shape) }
    }
}

/// An argument of a call: a region of an array of the enclosing scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Arg {
    /// Number of the array in its scope.
    pub array: u32,
    /// Which part of it.
    pub region: Region,
}

/// The arguments of a call.
pub type Args = Vec<Arg>;
