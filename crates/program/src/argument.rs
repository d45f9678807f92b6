//! What is asked of the arguments of a call, whether a program makes it or the split of another call.

use crate::cover::{Touch, unwritten};
use crate::{
    Access, ArgumentError, CallShape, DynTask, ElementType, Param, Region, Shape, SplitError, SplitProblem, SubCall,
};
use std::collections::BTreeSet;

/// An array that blocks are taken from.
pub(crate) struct Given<'a> {
    pub(crate) name: &'a str,
    pub(crate) element: ElementType,
    pub(crate) shape: Shape,
    /// What a call may do with it.
    pub(crate) access: Access,
}

/// Checks the arguments of a call of a task with these parameters: their number, and for each its type, rank and bounds,
/// that what is only read is not written, and that what is written is given once. `count` arrays exist.
pub(crate) fn check<'a>(
    params: &[Param],
    args: impl ExactSizeIterator<Item = (usize, Region)> + Clone,
    count: usize,
    array: impl Fn(usize) -> Option<Given<'a>>,
) -> Result<(), ArgumentError> {
    let (given, declared) = (args.len(), params.len());
    if given != declared {
        return Err(ArgumentError::Count { given, declared });
    }
    for (i, ((number, region), param)) in args.clone().zip(params).enumerate() {
        let Some(from) = array(number) else {
            return Err(ArgumentError::NoSuch { param: param.name, number, count });
        };
        let name = || from.name.to_owned();
        if (param.element, param.rank) != (from.element, from.shape.rank()) {
            return Err(ArgumentError::Type {
                param: param.name,
                declared: param.element,
                rank: param.rank,
                array: name(),
                element: from.element,
                shape: from.shape,
            });
        }
        if region.is_empty() || !Region::whole(from.shape).contains(&region) {
            return Err(ArgumentError::OutOfBounds { param: param.name, region, array: name(), shape: from.shape });
        }
        if from.access == Access::Read && param.access.writes() {
            return Err(ArgumentError::WritesInput { param: param.name, array: name() });
        }
        if from.access == Access::Reduce && param.access.reads() {
            return Err(ArgumentError::ReadsReduced { param: param.name, array: name() });
        }
        for ((other, part), second) in args.clone().zip(params).skip(i + 1) {
            let one_writes = param.access.writes() || second.access.writes();
            if one_writes && other == number && part.intersects(&region) {
                return Err(ArgumentError::Aliased { first: param.name, second: second.name, array: name() });
            }
        }
    }
    Ok(())
}

/// Checks the calls that `task` makes of a call: each is one that its callee can be given, on blocks of the arguments, and
/// they write all that the task writes, each block before one of them reads it. Calls may share what they write, since they
/// have an order.
pub(crate) fn check_calls(
    task: &dyn DynTask,
    call: &CallShape,
    subs: &[SubCall],
    of: &'static str,
) -> Result<(), SplitError> {
    let params = task.params();
    let given = |i: usize| {
        let (param, &shape) = (params.get(i)?, call.shapes.get(i)?);
        // A stage may read what a stage before it has reduced.
        let access = if of == "stages" && param.access == Access::Reduce { Access::Write } else { param.access };
        Some(Given { name: param.name, element: param.element, shape, access })
    };
    for (number, sub) in subs.iter().enumerate() {
        let callee = sub.callee.of(task);
        let misfit = || callee.notation().and_then(|_| callee.refuses(&sub.shape()));
        check(callee.params(), sub.args.iter().copied(), params.len(), given)
            .and_then(|()| misfit().map_or(Ok(()), |why| Err(ArgumentError::Shapes { why })))
            .map_err(|source| {
                SplitError::of(task, call, SplitProblem::Call { call: number, of, callee: callee.name(), source })
            })?;
    }
    if subs.is_empty() {
        return Ok(());
    }
    for (i, (param, &shape)) in params.iter().zip(&call.shapes).enumerate() {
        if !matches!(param.access, Access::Write | Access::Reduce) {
            continue;
        }
        // Of each argument that is a block of it: the number of the call, what is declared, and the block.
        let uses = || {
            subs.iter().enumerate().flat_map(move |(number, sub)| {
                let declared = sub.args.iter().zip(sub.callee.of(task).params());
                declared.filter(move |((given, _), _)| *given == i).map(move |(&(_, region), by)| (number, by, region))
            })
        };
        let touches = uses().map(|(_, by, region)| Touch { region, reads: by.access.reads() });
        if let Some(first) = unwritten(shape, touches) {
            let problem = match uses().nth(first) {
                Some((number, by, region)) => SplitProblem::Call {
                    call: number,
                    of,
                    callee: subs[number].callee.of(task).name(),
                    source: ArgumentError::ReadsUnwritten { param: by.name, region, array: param.name.to_owned() },
                },
                None => SplitProblem::Unwritten { param: param.name, of, shape },
            };
            return Err(SplitError::of(task, call, problem));
        }
        // Contributions are added up block by block: what two blocks share in part would be lost by one of them.
        if param.access == Access::Reduce && of == "split" {
            let blocks: BTreeSet<Region> = uses().map(|(_, _, region)| region).collect();
            let all = blocks.iter().map(Region::elements).fold(0, u64::saturating_add);
            if all > shape.elements() {
                return Err(SplitError::of(task, call, SplitProblem::Crossing { param: param.name }));
            }
        }
    }
    Ok(())
}
