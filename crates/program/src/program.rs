//! Programs: declared arrays and the sequence of calls on their regions.

use crate::argument::{self, Given};
use crate::array::Declaration;
use crate::cover::{Touch, unwritten};
use crate::erased::Erased;
use crate::{
    Access, AnyArray, AnyBlock, Args, ArgumentError, Array, ArrayDecl, Call, Declared, DynTask, Element, ElementType,
    ParamList, RANK_MAX, Role, Scalars, Shape, Task,
};
use std::marker::PhantomData;
use std::sync::Arc;

/// A task that has been added to a program; good for that program, and for clones made of it since.
pub struct TaskHandle<T: Task> {
    index: u32,
    declaration: Declaration,
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
    /// No dimension at all.
    #[error(
        "array {array} has no dimensions, and blocks have one at least; declare one element as an array of length 1"
    )]
    NoDimensions {
        /// The array.
        array: String,
    },
    /// A dimension of length zero.
    #[error(
        "array {array} has shape {shape}: a dimension of length zero holds nothing to compute; give each a length of at least 1"
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
    /// The task was added to another program.
    #[error("call {call} of {task}: the task was added to another program; add it to this one")]
    ForeignTask {
        /// Number of the call.
        call: usize,
        /// Task called.
        task: &'static str,
    },
    /// An array was declared in another program.
    #[error("call {call} of {task}: {param} is given an array of another program; declare it in this one")]
    ForeignArray {
        /// Number of the call.
        call: usize,
        /// Task called.
        task: &'static str,
        /// Parameter.
        param: &'static str,
    },
    /// A call cannot be given these arguments.
    #[error("call {call} of {task}: {source}")]
    Call {
        /// Number of the call.
        call: usize,
        /// Task called.
        task: &'static str,
        /// What is wrong with them.
        source: ArgumentError,
    },
}

/// A sequence of calls on regions of declared arrays. Its meaning is to execute them one after the other.
#[derive(Clone, Default)]
pub struct Program {
    arrays: Vec<ArrayDecl>,
    tasks: Vec<Arc<dyn DynTask>>,
    /// Shared by clones until one of them goes on: lists of calls are long.
    calls: Arc<Vec<Call>>,
    declared: Declared,
    task_declarations: Vec<Declaration>,
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

    /// The arrays that it has declared.
    pub fn declared(&self) -> &Declared {
        &self.declared
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
        const { assert!(R >= 1 && R <= RANK_MAX, "arrays have one to RANK_MAX dimensions") };
        Ok(self.any_array(name, T::TYPE, Shape::new(&shape), role)?.typed(shape))
    }

    /// Declares an array whose type and number of dimensions are known at run time.
    ///
    /// # Errors
    /// As [`Program::array`], or no dimension.
    pub fn any_array(
        &mut self,
        name: &str,
        element: ElementType,
        shape: Shape,
        role: Role,
    ) -> Result<AnyArray, ProgramError> {
        let array = name.to_owned();
        if shape.rank() == 0 {
            return Err(ProgramError::NoDimensions { array });
        }
        if shape.dims().contains(&0) {
            return Err(ProgramError::ZeroLength { array, shape });
        }
        let bytes = shape.dims().iter().try_fold(element.size_bytes(), |n, &d| n.checked_mul(d));
        if bytes.is_none_or(|b| b > i64::MAX as u64) {
            return Err(ProgramError::TooLarge { array, shape });
        }
        self.arrays.push(ArrayDecl { name: array, element, shape, role });
        Ok(self.declared.add(shape))
    }

    /// Adds a task, to be called any number of times.
    ///
    /// # Panics
    /// When [`Task::reduced_axis`] does not go with the parameters: a mistake in the task, not in its input.
    pub fn task<T: Task>(&mut self, task: T) -> TaskHandle<T> {
        self.any_task(Program::erase(task))
    }

    /// Adds a task that was [erased](Program::erase) of its type, which several programs may have.
    pub fn any_task<T: Task>(&mut self, task: Arc<dyn DynTask>) -> TaskHandle<T> {
        let (index, declaration) = (self.tasks.len() as u32, Declaration::new());
        self.tasks.push(task);
        self.task_declarations.push(declaration);
        TaskHandle { index, declaration, task: PhantomData }
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
    /// A handle of another program, a block outside its array, a written input, or overlapping arguments of which one is
    /// written.
    pub fn call<T: Task>(
        &mut self,
        task: TaskHandle<T>,
        blocks: <T::Params as ParamList>::Blocks,
        scalars: Scalars,
    ) -> Result<(), ProgramError> {
        self.any_call(task, &T::Params::blocks(blocks), scalars)
    }

    /// Appends a call on blocks whose types are looked at only now.
    ///
    /// # Errors
    /// As [`Program::call`].
    pub fn any_call<T: Task>(
        &mut self,
        task: TaskHandle<T>,
        blocks: &[AnyBlock],
        scalars: Scalars,
    ) -> Result<(), ProgramError> {
        let number = self.calls.len();
        if self.task_declarations.get(task.index as usize) != Some(&task.declaration) {
            return Err(ProgramError::ForeignTask { call: number, task: std::any::type_name::<T>() });
        }
        self.call_of(task.index, blocks, scalars)
    }

    /// Appends a call of the task of this number.
    fn call_of(&mut self, task: u32, blocks: &[AnyBlock], scalars: Scalars) -> Result<(), ProgramError> {
        let number = self.calls.len();
        let called = &self.tasks[task as usize];
        let (name, params) = (called.name(), called.params());
        let is_foreign = |block: &AnyBlock| !self.declared.has(block.arg.array, block.declaration);
        if let Some(at) = blocks.iter().position(is_foreign) {
            let param = params.get(at).map_or("an argument", |param| param.name);
            return Err(ProgramError::ForeignArray { call: number, task: name, param });
        }
        let args: Args = blocks.iter().map(|block| block.arg).collect();
        let given = |array: usize| {
            let ArrayDecl { name, element, shape, role } = self.arrays.get(array)?;
            let access = if *role == Role::Input { Access::Read } else { Access::Update };
            Some(Given { name, element: *element, shape: *shape, access })
        };
        let numbered = args.iter().map(|arg| (arg.array as usize, arg.region));
        argument::check(params, numbered, self.arrays.len(), given).map_err(|source| ProgramError::Call {
            call: number,
            task: name,
            source,
        })?;
        let call = Call { task, args, scalars };
        if let Some(why) = called.refuses(&call.shape()) {
            return Err(ProgramError::Call { call: number, task: name, source: ArgumentError::Shapes { why } });
        }
        Arc::make_mut(&mut self.calls).push(call);
        Ok(())
    }

    /// The declared arrays.
    pub fn arrays(&self) -> &[ArrayDecl] {
        &self.arrays
    }

    /// How many elements of array number `array` the calls read for certain, or write: all where their blocks cover it, otherwise
    /// those of the largest block. What they write before some of them reads it need not be read.
    pub fn touched_elements(&self, array: u32, writes: bool) -> u64 {
        let shape = self.arrays()[array as usize].shape;
        let uses =
            || self.calls().iter().flat_map(|call| call.args.iter().zip(self.tasks()[call.task as usize].params()));
        let uses = || uses().filter(|(arg, _)| arg.array == array);
        if !writes && uses().any(|(_, param)| !param.access.reads()) {
            return 0;
        }
        let is_meant = |access: Access| if writes { access.writes() } else { access.reads() };
        let blocks = || uses().filter(|(_, param)| is_meant(param.access)).map(|(arg, _)| arg.region);
        match unwritten(shape, blocks().map(|region| Touch { region, reads: false })) {
            None => shape.elements(),
            Some(_) => blocks().map(|region| region.elements()).max().unwrap_or(0),
        }
    }

    /// The tasks, as numbered in [`Call::task`].
    pub fn tasks(&self) -> &[Arc<dyn DynTask>] {
        &self.tasks
    }

    /// The calls, in sequential order.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The calls, as they are shared with clones.
    pub fn shared_calls(&self) -> Arc<Vec<Call>> {
        self.calls.clone()
    }
}
