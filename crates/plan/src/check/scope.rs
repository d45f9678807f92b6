//! The meaning of a plan: which version of each cell every call must see, found from its calls alone.

use super::cells::{Blocks, Cells, Lists};
use super::error::CheckError;
use super::problem::{BlockName, Problem};
use crate::plan::Plan;
use multigrain_program::{Access, Arg, CallShape, Param, Region, Role};

/// A plan with its cells.
pub(super) struct Scope<'a> {
    pub(super) plan: &'a Plan,
    pub(super) cells: Cells,
    /// Blocks of the arguments of all calls, one call after the other.
    args: Vec<u32>,
    first_arg: Vec<u32>,
    /// For each child, the blocks of its slots.
    pub(super) slot_blocks: Vec<Vec<u32>>,
    /// For each array that holds a result, the block that is the whole array.
    pub(super) results: Vec<(usize, u32)>,
    /// For each cell, the calls that write it, ascending.
    writers: Lists,
}

impl<'a> Scope<'a> {
    /// For a plan of which [`calls`] and the slots' blocks have been checked.
    pub(super) fn new(plan: &'a Plan) -> Scope<'a> {
        let mut blocks = Blocks::default();
        let mut args = Vec::with_capacity(plan.calls.len() * 3);
        let mut first_arg = Vec::with_capacity(plan.calls.len() + 1);
        for call in &plan.calls {
            first_arg.push(args.len() as u32);
            args.extend(call.args.iter().map(|arg| blocks.number(*arg)));
        }
        first_arg.push(args.len() as u32);
        let slot_blocks =
            plan.children.iter().map(|c| c.slots.iter().map(|s| blocks.number(s.block)).collect()).collect();
        let mut results = Vec::new();
        for (number, array) in plan.arrays.iter().enumerate() {
            if matches!(array.role, Role::Output | Role::InOut) {
                let whole = Arg { array: number as u32, region: Region::whole(array.shape) };
                results.push((number, blocks.number(whole)));
            }
        }
        let cells = blocks.divide(&plan.arrays);
        let mut scope =
            Scope { plan, cells, args, first_arg, slot_blocks, results, writers: Lists::new(0, Vec::new()) };
        let mut writes = Vec::new();
        for call in 0..plan.calls.len() {
            for (block, param) in scope.uses(call).filter(|(_, param)| param.access.writes()) {
                debug_assert!(param.access != Access::Read);
                writes.extend(scope.cells.of(block).iter().map(|&cell| (cell, call as u32)));
            }
        }
        scope.writers = Lists::new(scope.cells.len(), writes);
        scope
    }

    /// The blocks of a call's arguments, with its parameters.
    pub(super) fn uses(&self, call: usize) -> impl Iterator<Item = (u32, &'a Param)> + use<'_, 'a> {
        let blocks = &self.args[self.first_arg[call] as usize..self.first_arg[call + 1] as usize];
        let params = self.plan.tasks[self.plan.calls[call].task as usize].params();
        blocks.iter().copied().zip(params)
    }

    /// The version of a cell that sequential execution shows to a call: 0 is initial, `n + 1` was written by call `n`.
    pub(super) fn version_for(&self, cell: u32, call: u32) -> u32 {
        let writers = self.writers.get(cell);
        writers[..writers.partition_point(|&w| w < call)].last().map_or(0, |w| w + 1)
    }

    /// The version of a cell after all calls.
    pub(super) fn final_version(&self, cell: u32) -> u32 {
        self.writers.get(cell).last().map_or(0, |w| w + 1)
    }

    pub(super) fn is_written(&self, cell: u32) -> bool {
        !self.writers.get(cell).is_empty()
    }

    /// For the plan of a call: what the caller does not give is written before it is read, and results are complete.
    pub(super) fn check_defined(&self) -> Result<(), CheckError> {
        let undefined = |block: &Arg| !matches!(self.plan.arrays[block.array as usize].role, Role::Input | Role::InOut);
        for (number, call) in self.plan.calls.iter().enumerate() {
            for ((block, param), arg) in self.uses(number).zip(&call.args) {
                if !param.access.reads() || !undefined(arg) {
                    continue;
                }
                if let Some(&cell) = self.cells.of(block).iter().find(|&&c| self.version_for(c, number as u32) == 0) {
                    let error = CheckError::new(self.plan, Problem::ReadsUndefined);
                    return Err(error.of_call(self.plan, number).on(self.plan, self.cells.part(cell)));
                }
            }
        }
        for &(array, whole) in &self.results {
            let unwritten = self.cells.of(whole).iter().find(|&&c| !self.is_written(c));
            if let (Role::Output, Some(&cell)) = (self.plan.arrays[array].role, unwritten) {
                return Err(CheckError::new(self.plan, Problem::NeverWritten).on(self.plan, self.cells.part(cell)));
            }
        }
        Ok(())
    }
}

/// Checks that calls and classes are well-formed: everything they name exists and fits.
pub(super) fn calls(plan: &Plan) -> Result<(), CheckError> {
    let fail = |problem| CheckError::new(plan, problem);
    let index = |what, index: u64, count: usize| {
        if index < count as u64 { Ok(()) } else { Err(Problem::BadIndex { what, index, count: count as u64 }) }
    };
    if plan.class_of.len() != plan.calls.len() {
        let (expected, found) = (plan.calls.len().to_string(), plan.class_of.len().to_string());
        return Err(fail(Problem::Differs { what: "number of calls with a class", expected, found }));
    }
    if !plan.numbers.is_empty() && plan.numbers.len() != plan.calls.len() {
        let (expected, found) = (plan.calls.len().to_string(), plan.numbers.len().to_string());
        return Err(fail(Problem::Differs { what: "number of calls with a number", expected, found }));
    }
    for class in &plan.classes {
        index("task", class.task.into(), plan.tasks.len()).map_err(fail)?;
    }
    for (number, call) in plan.calls.iter().enumerate() {
        let fail = |problem| CheckError::new(plan, problem).of_call(plan, number);
        index("task", call.task.into(), plan.tasks.len()).map_err(fail)?;
        let params = plan.tasks[call.task as usize].params();
        if params.len() != call.args.len() {
            let (expected, found) = (params.len().to_string(), call.args.len().to_string());
            return Err(fail(Problem::Differs { what: "number of arguments", expected, found }));
        }
        for (i, (arg, param)) in call.args.iter().zip(params).enumerate() {
            index("array", arg.array.into(), plan.arrays.len()).map_err(fail)?;
            let fail = |problem| fail(problem).on(plan, arg);
            block(plan, arg).map_err(fail)?;
            let array = &plan.arrays[arg.array as usize];
            if (array.element, array.shape.rank()) != (param.element, param.rank) {
                let expected = format!("{} of rank {}", param.element, param.rank);
                let found = format!("{} of rank {}", array.element, array.shape.rank());
                return Err(fail(Problem::Differs { what: "type of an argument", expected, found }));
            }
            if array.role == Role::Input && param.access.writes() {
                return Err(fail(Problem::WritesInput));
            }
            for (other, second) in call.args.iter().zip(params).skip(i + 1) {
                let written = param.access.writes() || second.access.writes();
                if written && other.array == arg.array && other.region.intersects(&arg.region) {
                    return Err(fail(Problem::Aliased { other: BlockName::new(&plan.arrays, other) }));
                }
            }
        }
        index("class", plan.class_of[number].into(), plan.classes.len()).map_err(fail)?;
        let class = &plan.classes[plan.class_of[number] as usize];
        let shapes = call.args.iter().map(|arg| arg.region.shape());
        if class.task != call.task
            || class.shape.scalars != call.scalars
            || !shapes.eq(class.shape.shapes.iter().copied())
        {
            let expected = describe(call.task, &call.shape());
            let found = describe(class.task, &class.shape);
            return Err(fail(Problem::Differs { what: "class of the call", expected, found }));
        }
    }
    Ok(())
}

/// Whether a block lies in its array, which exists.
pub(super) fn block(plan: &Plan, arg: &Arg) -> Result<(), Problem> {
    let shape = plan.arrays[arg.array as usize].shape;
    let fits = arg.region.rank() == shape.rank()
        && !arg.region.is_empty()
        && (0..shape.rank())
            .all(|d| arg.region.start()[d].checked_add(arg.region.len()[d]).is_some_and(|end| end <= shape.dims()[d]));
    if fits { Ok(()) } else { Err(Problem::OutOfBounds { shape }) }
}

fn describe(task: u32, shape: &CallShape) -> String {
    format!("task {task} on {:?} with scalars {:?}", shape.shapes.as_slice(), shape.scalars)
}
