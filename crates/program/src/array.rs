//! Programs: declared arrays and the sequence of calls on their regions.

use crate::task::Erased;
use crate::{Access, CallShape, DynTask, Element, ElementType, ParamList, Region, Scalars, Shape, Task};
use smallvec::SmallVec;
use std::marker::PhantomData;
use std::sync::Arc;

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
    /// Bytes of the whole array.
    pub fn bytes(&self) -> u64 {
        self.shape.elements() * self.element.size_bytes()
    }
}

/// A handle of a declared array: elements `T`, `R` dimensions.
#[derive(Debug)]
pub struct Array<T, const R: usize> {
    index: u32,
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
        Block { arg: Arg { array: self.index, region: Region::new(&start, &len) }, element: PhantomData }
    }
}

/// A region of an array, to be passed to a call.
#[derive(Clone, Copy, Debug)]
pub struct Block<T, const R: usize> {
    arg: Arg,
    element: PhantomData<T>,
}

impl<T, const R: usize> From<Block<T, R>> for Arg {
    fn from(block: Block<T, R>) -> Arg {
        block.arg
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
pub type Args = SmallVec<[Arg; 3]>;

/// A task applied to regions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Number of the task in its scope.
    pub task: u32,
    /// Regions, in the order of the task's parameters.
    pub args: Args,
    /// Scalar arguments.
    pub scalars: Scalars,
}

impl Call {
    /// Shapes and scalars of the call.
    pub fn shape(&self) -> CallShape {
        CallShape { shapes: self.args.iter().map(|a| a.region.shape()).collect(), scalars: self.scalars.clone() }
    }
}

/// A task that has been added to a program.
pub struct TaskHandle<T: Task> {
    index: u32,
    task: PhantomData<fn() -> T>,
}

impl<T: Task> Clone for TaskHandle<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Task> Copy for TaskHandle<T> {}

/// Why a program was refused while it was being written.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ProgramError {
    /// A dimension of length zero.
    #[error(
        "array {array} has shape {shape}: a dimension of length zero holds nothing to compute; leave the array out"
    )]
    ZeroLength {
        /// The array.
        array: String,
        /// Its shape.
        shape: Shape,
    },
    /// More bytes than an address can count.
    #[error("array {array} of shape {shape} has more bytes than 2^63; split it")]
    TooLarge {
        /// The array.
        array: String,
        /// Its shape.
        shape: Shape,
    },
    /// A block outside its array.
    #[error("call {call} of {task}: {param} is given {region} of array {array}, which has shape {shape}")]
    OutOfBounds {
        /// Number of the call.
        call: usize,
        /// Task called.
        task: &'static str,
        /// Parameter.
        param: &'static str,
        /// Region asked for.
        region: Region,
        /// Array it is taken from.
        array: String,
        /// Shape of the array.
        shape: Shape,
    },
    /// An input array is written.
    #[error("call {call} of {task}: {param} is written, but array {array} is an input; declare it as inout")]
    WritesInput {
        /// Number of the call.
        call: usize,
        /// Task called.
        task: &'static str,
        /// Parameter.
        param: &'static str,
        /// The array.
        array: String,
    },
    /// Arguments that do not belong together, by the notation of the task.
    #[error("call {call} of {task}: {why}")]
    Shapes {
        /// Number of the call.
        call: usize,
        /// Task called.
        task: &'static str,
        /// Which arguments, and what is wrong with them.
        why: String,
    },
    /// Two arguments share elements and one is written.
    #[error(
        "call {call} of {task}: {first} and {second} overlap in array {array} and one of them is written; \
             pass disjoint blocks"
    )]
    Aliased {
        /// Number of the call.
        call: usize,
        /// Task called.
        task: &'static str,
        /// First parameter.
        first: &'static str,
        /// Second parameter.
        second: &'static str,
        /// The array.
        array: String,
    },
}

/// A sequence of calls on regions of declared arrays. Its meaning is to execute them one after the other.
#[derive(Clone, Default)]
pub struct Program {
    arrays: Vec<ArrayDecl>,
    tasks: Vec<Arc<dyn DynTask>>,
    calls: Vec<Call>,
}

impl Program {
    /// Whether both are one program: the same arrays and calls, and the same tasks, not only such of the same name.
    pub fn is_same(&self, other: &Program) -> bool {
        let same = |(a, b): (&Arc<dyn DynTask>, &Arc<dyn DynTask>)| std::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b));
        self.tasks.len() == other.tasks.len()
            && self.tasks.iter().zip(&other.tasks).all(same)
            && self.arrays == other.arrays
            && self.calls == other.calls
    }

    /// An empty program.
    pub fn new() -> Program {
        Program::default()
    }

    /// Declares an array.
    ///
    /// # Errors
    /// A dimension of length zero, or more bytes than can be addressed.
    pub fn array<T: Element, const R: usize>(
        &mut self,
        name: &str,
        shape: [u64; R],
        role: Role,
    ) -> Result<Array<T, R>, ProgramError> {
        let (array, shape_) = (name.to_owned(), Shape::new(&shape));
        if shape.contains(&0) {
            return Err(ProgramError::ZeroLength { array, shape: shape_ });
        }
        let bytes = shape.iter().try_fold(T::TYPE.size_bytes(), |n, &d| n.checked_mul(d));
        if bytes.is_none_or(|b| b > i64::MAX as u64) {
            return Err(ProgramError::TooLarge { array, shape: shape_ });
        }
        let index = self.arrays.len() as u32;
        self.arrays.push(ArrayDecl { name: array, element: T::TYPE, shape: shape_, role });
        Ok(Array { index, shape, element: PhantomData })
    }

    /// Adds a task, to be called any number of times.
    ///
    /// # Panics
    /// When [`Task::reduced_axis`] does not go with the parameters: a mistake in the task, not in its input.
    pub fn task<T: Task>(&mut self, task: T) -> TaskHandle<T> {
        self.tasks.push(Program::erase(task));
        TaskHandle { index: self.tasks.len() as u32 - 1, task: PhantomData }
    }

    /// A task without its types, for inner variants that call another task.
    ///
    /// # Panics
    /// As [`Program::task`].
    pub fn erase<T: Task>(task: T) -> Arc<dyn DynTask> {
        Arc::new(Erased::new(task))
    }

    /// Appends a call.
    ///
    /// # Errors
    /// A block outside its array, a written input, or overlapping arguments of which one is written.
    pub fn call<T: Task>(
        &mut self,
        task: TaskHandle<T>,
        blocks: <T::Params as ParamList>::Blocks,
        scalars: Scalars,
    ) -> Result<(), ProgramError> {
        let call = Call { task: task.index, args: T::Params::args(blocks), scalars };
        self.check(&call)?;
        self.calls.push(call);
        Ok(())
    }

    fn check(&self, call: &Call) -> Result<(), ProgramError> {
        let task = &self.tasks[call.task as usize];
        let (number, name, params) = (self.calls.len(), task.name(), task.params());
        for (i, (arg, param)) in call.args.iter().zip(params).enumerate() {
            let array = &self.arrays[arg.array as usize];
            if arg.region.is_empty() || !Region::whole(array.shape).contains(&arg.region) {
                return Err(ProgramError::OutOfBounds {
                    call: number,
                    task: name,
                    param: param.name,
                    region: arg.region,
                    array: array.name.clone(),
                    shape: array.shape,
                });
            }
            if array.role == Role::Input && param.access.writes() {
                let array = array.name.clone();
                return Err(ProgramError::WritesInput { call: number, task: name, param: param.name, array });
            }
            for (other, second) in call.args.iter().zip(params).skip(i + 1) {
                let one_writes = param.access != Access::Read || second.access != Access::Read;
                if one_writes && other.array == arg.array && other.region.intersects(&arg.region) {
                    return Err(ProgramError::Aliased {
                        call: number,
                        task: name,
                        first: param.name,
                        second: second.name,
                        array: array.name.clone(),
                    });
                }
            }
        }
        match task.refuses(&call.shape()) {
            Some(why) => Err(ProgramError::Shapes { call: number, task: name, why }),
            None => Ok(()),
        }
    }

    /// The declared arrays.
    pub fn arrays(&self) -> &[ArrayDecl] {
        &self.arrays
    }

    /// The tasks, as numbered in [`Call::task`].
    pub fn tasks(&self) -> &[Arc<dyn DynTask>] {
        &self.tasks
    }

    /// The calls, in sequential order.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }
}
