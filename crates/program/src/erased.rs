//! A task without its types: what plans hold to is asked of it once, and what it returns is checked.

use crate::argument::check_calls;
use crate::reduce::{OneSpan, Spans};
use crate::{
    Access, CallShape, Callee, DynTask, IoBound, LeafContext, Notation, Param, ParamList, RawView, Reduction,
    SplitError, SplitProblem, SubCall, Task, Tunable, Tunables, Work,
};
use smallvec::SmallVec;
use std::any::TypeId;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// What an address space has: no plan has room for a leaf that asks for as much, and sums of what several ask for are numbers still.
pub(crate) const SCRATCH_BYTES_MAX: u64 = 1 << 48;

/// What a plan holds to is asked of the task once and kept, so that a task that says another thing each time is one task all the
/// same. Calls that it makes, and scratch memory, are checked wherever they are used.
///
/// What does not depend on the task's type is outside of what is compiled for each.
pub(crate) struct Erased<T: Task> {
    task: Arc<T>,
    parameters: T::Params,
    declared: Declared,
    /// For a task with folded axes: the calls behind the first along them, which update what that has written.
    later: Option<Arc<dyn DynTask>>,
}

/// What a task has said of itself.
struct Declared {
    name: &'static str,
    version: u64,
    params: Vec<Param>,
    notation: Option<Notation>,
    /// Axes of the notation along which written blocks are folded.
    folded: SmallVec<[usize; 2]>,
    /// Whether these are the calls behind the first along them.
    is_later: bool,
    reduced_axis: Option<&'static str>,
    /// For each parameter, how it is reduced; empty when none is.
    reductions: Vec<Option<Reduction>>,
    merges: Vec<Option<Arc<dyn DynTask>>>,
}

/// Names of parameters to which a task gives none.
const NAMELESS: [&str; 10] = [
    "parameter 0",
    "parameter 1",
    "parameter 2",
    "parameter 3",
    "parameter 4",
    "parameter 5",
    "parameter 6",
    "parameter 7",
    "parameter 8",
    "parameter 9",
];

impl Declared {
    /// What a task without notation says of names and of its reduced axis counts only there.
    fn new(
        (name, version): (&'static str, u64),
        mut params: Vec<Param>,
        mut reductions: Vec<Option<Reduction>>,
        notation: Option<Notation>,
        named: &[&'static str],
        reduced_axis: Option<&'static str>,
    ) -> Declared {
        let names: Vec<&'static str> = match &notation {
            Some(notation) => notation.param_names().collect(),
            None => named.to_vec(),
        };
        let named = names.len();
        for (param, name) in params.iter_mut().zip(names.into_iter().chain(NAMELESS.into_iter().skip(named))) {
            param.name = name;
        }
        if let Some(fault) =
            notation.as_ref().and_then(|notation| notation.fault(&params, &|p| reductions[p].is_none_or(|r| r.exact)))
        {
            panic!("task {name}: {fault}");
        }
        let merges = reductions.iter().map(|r| r.map(|r| r.merge())).collect();
        let reduces = reductions.iter().any(Option::is_some);
        let reduced_axis = match &notation {
            Some(notation) => notation.reduced(&params),
            None => reduced_axis,
        };
        assert!(
            reduces == reduced_axis.is_some(),
            "task {name}: with `Reduce` parameters, and only then, `reduced_axis` names the tunable along which they are \
             reduced"
        );
        if !reduces {
            reductions.clear();
        }
        let folded = notation.as_ref().map(|notation| notation.folded(&params)).unwrap_or_default();
        Declared { name, version, params, notation, folded, is_later: false, reduced_axis, reductions, merges }
    }

    /// What the calls behind the first along folded axes say, if the first writes from nothing what they update.
    fn of_later(&self) -> Option<Declared> {
        let notation = self.notation.as_ref().filter(|notation| notation.writes_first(&self.params))?;
        let mut params = self.params.clone();
        for (_, param) in params.iter_mut().enumerate().filter(|(n, _)| notation.is_folded(&self.params, *n)) {
            param.access = Access::Update;
        }
        Some(Declared {
            name: self.name,
            version: self.version,
            merges: params.iter().map(|_| None).collect(),
            params,
            notation: Some(notation.clone()),
            folded: self.folded.clone(),
            is_later: true,
            reduced_axis: None,
            reductions: Vec::new(),
        })
    }
}

/// Refuses axes without extent of a call that has elements: of which blocks would its search be?
fn check_axes(task: &dyn DynTask, call: &CallShape, axes: &[Tunable]) -> Result<(), SplitError> {
    let is_empty = call.shapes.iter().any(|shape| shape.elements() == 0);
    match axes.iter().find(|axis| axis.extent == 0 && !is_empty) {
        Some(axis) => Err(SplitError::of(task, call, SplitProblem::NoExtent { axis: axis.name })),
        None => Ok(()),
    }
}

/// Refuses a split of which a part is all that there was to be done: to search among the splits of parts has no end.
fn check_progress(task: &dyn DynTask, call: &CallShape, subs: &[SubCall]) -> Result<(), SplitError> {
    let is_again = |sub: &SubCall| matches!(sub.callee, Callee::Itself) && sub.shape() == *call;
    match subs.iter().position(is_again) {
        Some(number) if subs.len() > 1 => {
            Err(SplitError::of(task, call, SplitProblem::Again { call: number, calls: subs.len() }))
        }
        _ => Ok(()),
    }
}

/// A split, if it is one.
fn checked(task: &dyn DynTask, call: &CallShape, calls: Vec<SubCall>) -> Result<Vec<SubCall>, SplitError> {
    if calls.is_empty() {
        return Err(SplitError::of(task, call, SplitProblem::Empty));
    }
    // What follows from the notation is right by construction.
    if task.notation().is_none() || cfg!(debug_assertions) {
        check_calls(task, call, &calls, "split")?;
        check_progress(task, call, &calls)?;
    }
    Ok(calls)
}

/// What is compulsory: every argument that is read goes down once, every one that is written goes up once.
fn compulsory(params: &[Param], call: &CallShape) -> IoBound {
    let mut bound = IoBound::default();
    for (param, shape) in params.iter().zip(&call.shapes) {
        let bytes = shape.elements() * param.element.size_bytes();
        bound.bytes_down += if param.access.reads() { bytes } else { 0 };
        bound.bytes_up += if param.access.writes() { bytes } else { 0 };
    }
    bound
}

impl<T: Task> Erased<T> {
    pub(crate) fn new(task: T) -> Erased<T> {
        // With what its type is: tasks of one name may be of different modules.
        let mut hasher = DefaultHasher::new();
        (task.version(), TypeId::of::<T>()).hash(&mut hasher);
        let parameters = task.parameters();
        let declared = Declared::new(
            (task.name(), hasher.finish()),
            parameters.params(),
            parameters.reductions(),
            task.notation(),
            task.param_names(),
            task.reduced_axis(),
        );
        let task = Arc::new(task);
        let later = declared.of_later().map(|declared| {
            let (task, parameters) = (task.clone(), parameters.clone());
            let later: Arc<dyn DynTask> = Arc::new(Erased { task, parameters, declared, later: None });
            later
        });
        Erased { task, parameters, declared, later }
    }

    fn spans(&self) -> Option<Spans<'_>> {
        let reductions = &self.declared.reductions;
        (!reductions.is_empty()).then_some(Spans { task: self, reductions })
    }
}

impl<T: Task> OneSpan for Erased<T> {
    fn one_scratch_bytes(&self, call: &CallShape, capacity_bytes: u64) -> u64 {
        self.task.scratch_bytes(call, capacity_bytes)
    }

    unsafe fn one(&self, blocks: &[RawView], context: &mut LeafContext<'_>) {
        // SAFETY: passed on to the caller.
        let views = unsafe { self.parameters.views(blocks) };
        context.first = !self.declared.is_later;
        self.task.leaf(views, context);
    }
}

// SAFETY: parameters are those of the types and kept; `leaf` makes the views of them; `split` checks what the task returns.
unsafe impl<T: Task> DynTask for Erased<T> {
    fn name(&self) -> &'static str {
        self.declared.name
    }

    fn version(&self) -> u64 {
        self.declared.version
    }

    fn params(&self) -> &[Param] {
        &self.declared.params
    }

    fn notation(&self) -> Option<&Notation> {
        self.declared.notation.as_ref()
    }

    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        match &self.declared.notation {
            Some(notation) => notation.extents(call).map_or_else(|_| Vec::new(), |extents| notation.tunables(&extents)),
            None => {
                let mut tunables = self.task.tunables(call);
                tunables.iter_mut().for_each(|t| (t.extent, t.multiple) = (t.extent.max(1), t.multiple.max(1)));
                tunables
            }
        }
    }

    fn split(&self, call: &CallShape, tunables: &Tunables) -> Result<Vec<SubCall>, SplitError> {
        let calls = match &self.declared.notation {
            Some(notation) => notation.split(call, tunables, &self.declared.folded, self.later.as_ref()),
            None => {
                check_axes(self, call, &self.task.tunables(call))?;
                self.task.split(call, &tunables.completed(&self.tunables(call)))
            }
        };
        checked(self, call, calls)
    }

    fn stages(&self, call: &CallShape) -> Result<Vec<SubCall>, SplitError> {
        let calls = self.task.stages(call);
        check_calls(self, call, &calls, "stages")?;
        Ok(calls)
    }

    fn check_leaf(&self, call: &CallShape) -> Result<(), SplitError> {
        self.spans().map_or(Ok(()), |spans| spans.check(call))
    }

    fn reduced_axis(&self) -> Option<&'static str> {
        self.declared.reduced_axis
    }

    fn later(&self) -> Option<&Arc<dyn DynTask>> {
        self.later.as_ref()
    }

    fn merge(&self, param: usize) -> Option<&Arc<dyn DynTask>> {
        self.declared.merges.get(param)?.as_ref()
    }

    fn scratch_bytes(&self, call: &CallShape, capacity_bytes: u64) -> u64 {
        let asked = match self.spans() {
            None => self.task.scratch_bytes(call, capacity_bytes),
            Some(spans) => spans.scratch_bytes(call, capacity_bytes),
        };
        asked.min(SCRATCH_BYTES_MAX)
    }

    fn work(&self, call: &CallShape) -> Work {
        self.task.work(call)
    }

    fn parallel_io_lower_bound(&self, call: &CallShape, memories: u64, capacity_bytes: u64) -> Option<u64> {
        self.task.parallel_io_lower_bound(call, memories, capacity_bytes)
    }

    fn io_lower_bound(&self, call: &CallShape, capacity_bytes: u64) -> IoBound {
        self.task.io_lower_bound(call, capacity_bytes).unwrap_or_else(|| compulsory(&self.declared.params, call))
    }

    unsafe fn leaf(&self, blocks: &[RawView], context: &mut LeafContext<'_>) {
        assert_eq!(blocks.len(), self.declared.params.len(), "blocks of a call of {}", self.name());
        match self.spans() {
            // SAFETY: passed on to the caller; the number of blocks was checked.
            None => unsafe { self.one(blocks, context) },
            // SAFETY: as above.
            Some(spans) => unsafe { spans.leaf(blocks, context) },
        }
    }
}
