//! Tasks: a name, declared parameters, an inner variant that splits and a leaf variant that computes.

use crate::argument::SplitError;
use crate::{Notation, Param, ParamList, RawView, Region, Scalars, Shape};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// The shapes and scalars of a call: all that splitting, costing and caching may depend on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallShape {
    /// Shape of each argument, in declared order.
    pub shapes: SmallVec<[Shape; 3]>,
    /// Scalar arguments.
    pub scalars: Scalars,
}

/// What a call costs, whatever the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes of arguments touched at least once.
    pub bytes: f64,
}

/// A lower bound on the bytes that must cross the edge above a memory of a given capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoBound {
    /// Bytes from the parent to the child.
    pub bytes_down: u64,
    /// Bytes from the child to the parent.
    pub bytes_up: u64,
}

/// A named number by which an inner variant splits: block length along one axis of the iteration space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunable {
    /// Name, as it stands in a mapping.
    pub name: &'static str,
    /// Length of the axis: the largest useful value.
    pub extent: u64,
    /// Values are multiples of this, or the extent itself. What fixes places in the iteration space (where partial
    /// sums end) is stated here, so that no mapping can move it.
    pub multiple: u64,
}

/// The loops of a split, from the outermost to the innermost: the axis, and the length of its blocks there. An axis may
/// stand twice (blocks of blocks); one that is missing is whole. For a task without [notation](Task::notation) they are
/// values of its tunables, and their order means nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tunables {
    loops: SmallVec<[(&'static str, u64); 5]>,
    /// Whether all tunables of a task are there, so that another name is none.
    complete: bool,
}

impl Tunables {
    /// No values: every tunable takes its extent.
    pub fn new() -> Tunables {
        Tunables::default()
    }

    /// Sets the value of a tunable: that of its innermost loop, or of a new one inside all others.
    pub fn set(&mut self, name: &'static str, value: u64) {
        match self.loops.iter_mut().rev().find(|(n, _)| *n == name) {
            Some(entry) => entry.1 = value,
            None => self.loops.push((name, value)),
        }
    }

    /// Adds a loop inside all others.
    pub fn push(&mut self, name: &'static str, value: u64) {
        self.loops.push((name, value));
    }

    /// The value of a tunable, or `extent` when none was chosen: the length of the blocks in its innermost loop.
    ///
    /// # Panics
    /// When a [`Task::split`] asks for a tunable that its task does not have: a mistake in the task, not in its input.
    pub fn get(&self, name: &str, extent: u64) -> u64 {
        match self.loops.iter().rev().find(|(n, _)| *n == name) {
            Some(&(_, value)) => value.clamp(1, extent.max(1)),
            None if self.complete => {
                let names: Vec<&str> = self.loops.iter().map(|(name, _)| *name).collect();
                panic!("a split asks for the tunable {name}; its task has {}", names.join(", "))
            }
            None => extent,
        }
    }

    /// The same with the extents of all tunables that have no value.
    pub(crate) fn completed(&self, tunables: &[Tunable]) -> Tunables {
        let mut all = self.clone();
        let missing = tunables.iter().filter(|tunable| self.loops.iter().all(|(name, _)| *name != tunable.name));
        all.loops.extend(missing.map(|tunable| (tunable.name, tunable.extent)));
        all.complete = true;
        all
    }

    /// The loops.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'static str, u64)> + '_ {
        self.loops.iter().copied()
    }
}

impl FromIterator<(&'static str, u64)> for Tunables {
    fn from_iter<I: IntoIterator<Item = (&'static str, u64)>>(loops: I) -> Tunables {
        Tunables { loops: loops.into_iter().collect(), complete: false }
    }
}

/// The task that a sub-call names.
#[derive(Clone)]
pub enum Callee {
    /// The task whose inner variant is splitting.
    Itself,
    /// Another task.
    Task(Arc<dyn DynTask>),
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
        write!(f, "{name} {:?} {:?}", self.args.as_slice(), self.scalars.bits())
    }
}

/// The blocks of an axis of length `extent`: start and length of each, `step` long but for the last.
pub fn blocks(extent: u64, step: u64) -> impl Iterator<Item = (u64, u64)> + Clone {
    let step = step.max(1);
    (0..extent.div_ceil(step)).map(move |i| (i * step, step.min(extent - i * step)))
}

/// What a leaf variant may use besides its views.
pub struct LeafContext<'a> {
    /// Scalar arguments of the call.
    pub scalars: &'a Scalars,
    /// Scratch memory in the leaf's own memory, of at least the size that [`Task::scratch_bytes`] asked for, aligned
    /// to 64 bytes; its content is left from earlier calls.
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

/// A named function on blocks. This is what people write; engines see it as a [`DynTask`].
///
/// The order of every accumulation belongs to the task: splitting a call must not change a bit of its result. Where
/// partial sums end is stated by [`Tunable::multiple`].
pub trait Task: Send + Sync + 'static {
    /// The parameters: a tuple of `Read`, `Write`, `Update` and `Reduce`.
    type Params: ParamList;

    /// Name of the task.
    fn name(&self) -> &'static str;

    /// The parameters as a value: for [`AnyParams`](crate::AnyParams), which are not told by their type.
    fn parameters(&self) -> Self::Params {
        Self::Params::default()
    }

    /// A number that is another whenever the leaf variant gives other results for the same blocks and scalars: the bits of
    /// constants that the task holds, and a count of changes of its code. A run that was interrupted is not continued
    /// with another version.
    fn version(&self) -> u64 {
        0
    }

    /// Which axes the task has and how they cut its parameters. From it follow the names of the parameters, the tunables
    /// and the split; only a task whose blocks do not follow axes (sequences of different lengths, say) has none, and
    /// says these itself.
    fn notation(&self) -> Option<Notation> {
        None
    }

    /// Names of the parameters, in declared order, for a task without notation.
    fn param_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// The axes along which the inner variant can split a call of these shapes, for a task without notation.
    fn tunables(&self, _call: &CallShape) -> Vec<Tunable> {
        Vec::new()
    }

    /// Inner variant of a task without notation: calls on blocks, in sequential order, that together do what the call
    /// does. Of several, none is the whole call again.
    fn split(&self, call: &CallShape, _tunables: &Tunables) -> Vec<SubCall> {
        vec![SubCall::whole(call)]
    }

    /// For a task without notation that has [`Reduce`](crate::Reduce) parameters, and only then: the name of the tunable along whose axis the
    /// contributions lie. Its [`Tunable::multiple`] is a span.
    ///
    /// A block of the axis is a power of two of spans, or what is left at its end. Sub-calls that are given one block
    /// of the parameter are its contributions, and stand in the order of the axis; blocks of the parameter that differ
    /// do not overlap. When only this axis is split, every sub-call is given the whole parameter.
    fn reduced_axis(&self) -> Option<&'static str> {
        None
    }

    /// The call as a short sequence of calls on its arguments, each of which is then split by its own tunables, with
    /// other block shapes than its neighbours; empty when the task is no such sequence. A planner takes a call apart
    /// like this where no block of it fits, or where its blocks are fewer than the workers.
    fn stages(&self, _call: &CallShape) -> Vec<SubCall> {
        Vec::new()
    }

    /// Leaf variant for a processor with vector units: computes the call on blocks in its memory. For a task that
    /// reduces, the contribution of one span, or of a shorter rest.
    fn leaf(&self, views: <Self::Params as ParamList>::Views<'_>, context: &mut LeafContext<'_>);

    /// Bytes of scratch memory the leaf variant needs; `capacity_bytes` is what the leaf's memory holds in all
    /// (`u64::MAX` in a memory without staging), so that a leaf in a small local store can ask for less.
    fn scratch_bytes(&self, _call: &CallShape, _capacity_bytes: u64) -> u64 {
        0
    }

    /// Floating-point operations and bytes; without a word, what the notation says and the bytes of all arguments.
    fn work(&self, call: &CallShape) -> Work {
        self.notation().map_or_else(Work::default, |notation| notation.work(call, &self.parameters().params()))
    }

    /// Lower bound on the bytes moved when the child memory holds `capacity_bytes`. `None`: what is compulsory, every
    /// read argument down once and every written one up once.
    fn io_lower_bound(&self, _call: &CallShape, _capacity_bytes: u64) -> Option<IoBound> {
        None
    }

    /// Lower bound on the bytes that go down and up at the busiest of so many memories of `capacity_bytes`, however the call is divided
    /// among them. `None`: none is known.
    fn parallel_io_lower_bound(&self, _call: &CallShape, _memories: u64, _capacity_bytes: u64) -> Option<u64> {
        None
    }
}

impl<T: Task> Task for Arc<T> {
    type Params = T::Params;

    fn version(&self) -> u64 {
        (**self).version()
    }

    fn name(&self) -> &'static str {
        (**self).name()
    }
    fn parameters(&self) -> Self::Params {
        (**self).parameters()
    }
    fn notation(&self) -> Option<Notation> {
        (**self).notation()
    }
    fn param_names(&self) -> &'static [&'static str] {
        (**self).param_names()
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        (**self).tunables(call)
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        (**self).split(call, tunables)
    }
    fn reduced_axis(&self) -> Option<&'static str> {
        (**self).reduced_axis()
    }
    fn stages(&self, call: &CallShape) -> Vec<SubCall> {
        (**self).stages(call)
    }
    fn leaf(&self, views: <Self::Params as ParamList>::Views<'_>, context: &mut LeafContext<'_>) {
        (**self).leaf(views, context);
    }
    fn scratch_bytes(&self, call: &CallShape, capacity_bytes: u64) -> u64 {
        (**self).scratch_bytes(call, capacity_bytes)
    }
    fn work(&self, call: &CallShape) -> Work {
        (**self).work(call)
    }
    fn io_lower_bound(&self, call: &CallShape, capacity_bytes: u64) -> Option<IoBound> {
        (**self).io_lower_bound(call, capacity_bytes)
    }
    fn parallel_io_lower_bound(&self, call: &CallShape, memories: u64, capacity_bytes: u64) -> Option<u64> {
        (**self).parallel_io_lower_bound(call, memories, capacity_bytes)
    }
}

/// A [`Task`] without its types, as planners and engines see it.
///
/// # Safety
/// Its parameters, reductions and reduced axis are the same whenever they are asked for; a leaf touches its views as the
/// parameters say; what `split` returns lies within the call's blocks, is of their types, and writes disjoint parts or in
/// order.
pub unsafe trait DynTask: Send + Sync {
    /// Name of the task.
    fn name(&self) -> &'static str;
    /// See [`Task::version`].
    fn version(&self) -> u64;
    /// Declared parameters.
    fn params(&self) -> &[Param];
    /// See [`Task::notation`].
    fn notation(&self) -> Option<&Notation> {
        None
    }
    /// What is wrong with a call of these shapes, for a task whose notation says how its parameters belong together.
    fn refuses(&self, call: &CallShape) -> Option<String> {
        self.notation().and_then(|notation| notation.extents(call).err())
    }
    /// See [`Task::tunables`].
    fn tunables(&self, call: &CallShape) -> Vec<Tunable>;
    /// See [`Task::split`].
    ///
    /// # Errors
    /// When a call that it makes is none that its callee can be given on blocks of these arguments.
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Result<Vec<SubCall>, SplitError>;
    /// See [`Task::stages`].
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
    /// See [`Task::reduced_axis`].
    fn reduced_axis(&self) -> Option<&'static str> {
        None
    }
    /// The task that combines two contributions to a parameter: the second argument into the first. `None` for a
    /// parameter that is not reduced.
    fn merge(&self, _param: usize) -> Option<&Arc<dyn DynTask>> {
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
    /// Scratch memory of the leaf variant, in bytes: see [`Task::scratch_bytes`]; for a task that reduces, that of one
    /// span and of the contributions that wait to be combined.
    fn scratch_bytes(&self, call: &CallShape, capacity_bytes: u64) -> u64;
    /// See [`Task::work`].
    fn work(&self, call: &CallShape) -> Work;
    /// See [`Task::io_lower_bound`]; never `None`.
    fn io_lower_bound(&self, call: &CallShape, capacity_bytes: u64) -> IoBound;
    /// See [`Task::parallel_io_lower_bound`].
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
