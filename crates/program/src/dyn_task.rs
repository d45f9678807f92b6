//! Tasks as planners and engines see them, and the calls that these make of a call.

use crate::{
    CallShape, IoBound, Notation, Param, RawView, Region, Scalars, SplitError, SplitProblem, Tunable, Tunables, Work,
};
use std::fmt;
use std::sync::Arc;

/// The task that a sub-call names.
#[derive(Clone)]
pub enum Callee {
    /// The task whose inner variant is splitting.
    Itself,
    /// Another task.
    Task(Arc<dyn DynTask>),
}

impl Callee {
    /// The task called, by a sub-call of `task`.
    pub(crate) fn of<'a>(&'a self, task: &'a dyn DynTask) -> &'a dyn DynTask {
        match self {
            Callee::Itself => task,
            Callee::Task(other) => &**other,
        }
    }
}

/// A call on blocks, made by an inner variant. Regions are relative to the arguments being split.
#[derive(Clone)]
pub struct SubCall {
    /// What is called.
    pub callee: Callee,
    /// For each argument of the callee: which parameter of the splitting task it is a block of, and which block.
    pub args: Vec<(usize, Region)>,
    /// Scalar arguments.
    pub scalars: Scalars,
}

impl SubCall {
    /// The call itself, not split.
    pub fn whole(call: &CallShape) -> SubCall {
        SubCall::itself(call.shapes.iter().map(|&shape| Region::whole(shape)).enumerate(), &call.scalars)
    }

    /// This sub-call of a call of `task` on the arguments `params` of another call, as a sub-call of that one.
    #[must_use]
    pub fn within(mut self, task: &Arc<dyn DynTask>, params: &[usize]) -> SubCall {
        if let Callee::Itself = self.callee {
            self.callee = Callee::Task(task.clone());
        }
        self.args.iter_mut().for_each(|(param, _)| *param = params[*param]);
        self
    }

    /// A call of the task whose inner variant is splitting.
    pub fn itself(args: impl IntoIterator<Item = (usize, Region)>, scalars: &Scalars) -> SubCall {
        SubCall { callee: Callee::Itself, args: args.into_iter().collect(), scalars: scalars.clone() }
    }

    /// A call of another task.
    pub fn of(task: &Arc<dyn DynTask>, args: impl IntoIterator<Item = (usize, Region)>, scalars: &Scalars) -> SubCall {
        SubCall { callee: Callee::Task(task.clone()), args: args.into_iter().collect(), scalars: scalars.clone() }
    }

    /// Shapes and scalars of the call.
    pub fn shape(&self) -> CallShape {
        let shapes = self.args.iter().map(|(_, region)| region.shape()).collect();
        CallShape { shapes, scalars: self.scalars.clone() }
    }

    /// The task called, by a sub-call of `task`.
    pub fn callee<'a>(&'a self, task: &'a Arc<dyn DynTask>) -> &'a Arc<dyn DynTask> {
        match &self.callee {
            Callee::Itself => task,
            Callee::Task(other) => other,
        }
    }
}

impl fmt::Debug for SubCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match &self.callee {
            Callee::Itself => "itself",
            Callee::Task(task) => task.name(),
        };
        write!(f, "{name} {:?} {:?}", self.args.as_slice(), self.scalars)
    }
}

/// What a leaf variant may use besides its views.
pub struct LeafContext<'a> {
    /// Scalar arguments of the call.
    pub scalars: &'a Scalars,
    /// Scratch memory in the leaf's own memory, of at least the size that [its task](crate::Task::scratch_bytes) asked for,
    /// aligned to 64 bytes; its content is left from earlier calls.
    pub scratch: &'a mut [u8],
    pub(crate) first: bool,
    processor: &'static str,
}

/// The kind of processor that executes leaf variants where nothing else is said: a core of this computer.
pub(crate) const CPU: &str = "cpu";

impl<'a> LeafContext<'a> {
    /// What a call with these scalars may use.
    pub fn new(scalars: &'a Scalars, scratch: &'a mut [u8]) -> LeafContext<'a> {
        LeafContext { scalars, scratch, first: true, processor: CPU }
    }

    /// The same on a processor of this kind, by the name that it has in machine files.
    #[must_use]
    pub fn on(self, processor: &'static str) -> LeafContext<'a> {
        LeafContext { processor, ..self }
    }

    /// The kind of processor that executes the leaf: `cpu`, `gpu`, `spe`. A task may have a leaf variant for each; the results of
    /// all have the same bits.
    pub fn processor(&self) -> &'static str {
        self.processor
    }

    /// Whether this is the first call along the folded axes of the task's notation: then what is written is written from
    /// nothing, otherwise the block holds what the calls before have made.
    pub fn first(&self) -> bool {
        self.first
    }

    /// Elements of the block of a window of the task's notation that lie before the first of its axis: 0 where the array
    /// begins. Windows are counted in the order of parameters and dimensions.
    pub fn before(&self, window: usize) -> usize {
        self.scalars.before(window) as usize
    }
}

/// A [`Task`](crate::Task) without its types, as planners and engines see it.
///
/// # Safety
/// Its parameters, reductions and reduced axis are the same whenever they are asked for; a leaf touches its views as the
/// parameters say; what `split` returns lies within the call's blocks, is of their types, and writes disjoint parts or in
/// order.
pub unsafe trait DynTask: Send + Sync {
    /// Name of the task.
    fn name(&self) -> &'static str;
    /// See [`Task::version`](crate::Task::version).
    fn version(&self) -> u64;
    /// Declared parameters.
    fn params(&self) -> &[Param];
    /// See [`Task::notation`](crate::Task::notation).
    fn notation(&self) -> Option<&Notation> {
        None
    }
    /// What is wrong with a call of these shapes, for a task whose notation says how its parameters belong together.
    fn refuses(&self, call: &CallShape) -> Option<String> {
        self.notation().and_then(|notation| notation.extents(call).err())
    }
    /// See [`Task::tunables`](crate::Task::tunables).
    fn tunables(&self, call: &CallShape) -> Vec<Tunable>;
    /// See [`Task::split`](crate::Task::split).
    ///
    /// # Errors
    /// When a call that it makes is none that its callee can be given on blocks of these arguments.
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Result<Vec<SubCall>, SplitError>;
    /// See [`Task::stages`](crate::Task::stages).
    ///
    /// # Errors
    /// As for [`DynTask::split`].
    fn stages(&self, call: &CallShape) -> Result<Vec<SubCall>, SplitError>;
    /// Checks what the leaf variant makes of a call before it computes: for a task that reduces, the spans that it splits
    /// into.
    ///
    /// # Errors
    /// When a leaf that is given this call would find that it cannot be executed.
    fn check_leaf(&self, call: &CallShape) -> Result<(), SplitError>;
    /// See [`Task::reduced_axis`](crate::Task::reduced_axis).
    fn reduced_axis(&self) -> Option<&'static str> {
        None
    }
    /// The task that combines two contributions to a parameter: the second argument into the first. `None` for a
    /// parameter that is not reduced.
    fn merge(&self, _param: usize) -> Option<&Arc<dyn DynTask>> {
        None
    }
    /// For a task with folded axes that writes: the task of the calls behind the first along them, which updates.
    fn later(&self) -> Option<&Arc<dyn DynTask>> {
        None
    }
    /// Whether blocks of this length along an axis keep every partial result where it belongs: the whole axis, or a
    /// multiple of [`Tunable::multiple`]; along the reduced axis, a power of two of them.
    fn allows(&self, axis: &Tunable, length: u64) -> bool {
        let multiples = length / axis.multiple.max(1);
        let whole = length >= axis.extent;
        let reduced = self.reduced_axis() == Some(axis.name);
        whole || length > 0 && length.is_multiple_of(axis.multiple.max(1)) && (!reduced || multiples.is_power_of_two())
    }
    /// Scratch memory of the leaf variant, in bytes: see [`Task::scratch_bytes`](crate::Task::scratch_bytes); for a
    /// task that reduces, that of one span and of the contributions that wait to be combined.
    fn scratch_bytes(&self, call: &CallShape, capacity_bytes: u64) -> u64;
    /// See [`Task::work`](crate::Task::work).
    fn work(&self, call: &CallShape) -> Work;
    /// See [`Task::io_lower_bound`](crate::Task::io_lower_bound); never `None`.
    fn io_lower_bound(&self, call: &CallShape, capacity_bytes: u64) -> IoBound;
    /// See [`Task::parallel_io_lower_bound`](crate::Task::parallel_io_lower_bound).
    fn parallel_io_lower_bound(&self, _call: &CallShape, _memories: u64, _capacity_bytes: u64) -> Option<u64> {
        None
    }
    /// Runs the leaf variant.
    ///
    /// # Panics
    /// When there is not one block for each parameter, of its element type and rank; or as [`DynTask::check_leaf`] says;
    /// or when the task's own leaf variant does.
    ///
    /// # Safety
    /// Each block is initialised memory; one that is written is accessed by nobody else during the call, and one that is
    /// read is written by nobody.
    unsafe fn leaf(&self, blocks: &[RawView], context: &mut LeafContext<'_>);
}

impl SplitError {
    /// What is wrong with what a task makes of a call.
    pub fn of(task: &dyn DynTask, call: &CallShape, problem: SplitProblem) -> SplitError {
        let name = |i: usize| task.params().get(i).map_or("", |param| param.name);
        let on: Vec<String> = (0..).zip(&call.shapes).map(|(i, shape)| format!("{} {shape}", name(i))).collect();
        SplitError { task: task.name(), on: on.join(", "), problem }
    }
}
