//! Tasks: a name, declared parameters, an inner variant that splits and a leaf variant that computes.

use crate::{CallShape, IoBound, LeafContext, Notation, ParamList, SubCall, Tunable, Tunables, Work};

/// A named function on blocks. This is what people write; engines see it as a [`DynTask`](crate::DynTask).
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
    /// like this where no block of it fits, or where its blocks are fewer than the workers and those of the part with most work are more.
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
