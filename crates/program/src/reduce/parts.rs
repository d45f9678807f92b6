//! A split with its reductions spelled out: contributions to blocks of their own, and the calls that combine them.

use crate::{Access, ArrayDecl, CallShape, DynTask, Region, Role, Shape, SplitError, SplitProblem, SubCall, Tunables};
use multigrain_schedule::contributions::merges;
use std::collections::HashMap;
use std::sync::Arc;

/// The calls that a split makes, as ordinary calls: each writes what it declares to write, and reductions are calls of
/// [`Merge`](crate::Merge) between them.
///
/// Sub-calls that are given the same block of a parameter with [`Access::Reduce`] are its contributions, in the order
/// of the reduced axis. The first is made in the block itself, every other in a block of a temporary array, and as soon
/// as a node of the fixed tree is complete its two halves are combined. So contributions depend on nobody, two children
/// may make them at once, and what is between them is found like any other dependence.
#[derive(Clone)]
pub struct Parts {
    /// Calls, in sequential order. Arguments are numbered as the task's parameters; from their number on they name
    /// temporary arrays.
    pub calls: Vec<SubCall>,
    /// Temporary arrays. Layer `i` along the first dimension, as long as the parameter, holds contributions `i + 1`
    /// of its blocks.
    pub temporaries: Vec<ArrayDecl>,
    /// How many contributions are combined: each but the first of a block is merged into another once.
    pub contributions: u64,
    /// Into how many blocks.
    pub targets: u64,
}

/// A block that is reduced into: parameter and region.
type Target = (usize, Region);

impl Parts {
    /// Splits a call.
    ///
    /// # Errors
    /// As for [`DynTask::split`], and when partial results have more bytes than can be addressed.
    pub fn of(task: &Arc<dyn DynTask>, call: &CallShape, tunables: &Tunables) -> Result<Parts, SplitError> {
        let calls = task.split(call, tunables)?;
        if task.reduced_axis().is_none() || calls.len() == 1 {
            return Ok(Parts { calls, temporaries: Vec::new(), contributions: 0, targets: 0 });
        }
        let params = task.params();
        // For each sub-call, its contributions: which of its arguments, to which block, as which.
        let mut counts: HashMap<Target, u64> = HashMap::new();
        let mut contributions: Vec<Vec<(usize, Target, u64)>> = Vec::with_capacity(calls.len());
        for sub in &calls {
            let mut mine = Vec::new();
            for (argument, &(param, region)) in sub.args.iter().enumerate() {
                if params[param].access == Access::Reduce {
                    let count = counts.entry((param, region)).or_default();
                    mine.push((argument, (param, region), *count));
                    *count += 1;
                }
            }
            contributions.push(mine);
        }
        let several = || counts.values().filter(|&&count| count > 1);
        let mut parts = Parts {
            calls: Vec::with_capacity(2 * calls.len()),
            temporaries: Vec::new(),
            contributions: several().sum(),
            targets: several().count() as u64,
        };
        let mut temporary_of = vec![0; params.len()];
        for (param, declared) in params.iter().enumerate() {
            let most = counts.iter().filter(|((p, _), _)| *p == param).map(|(_, &count)| count).max().unwrap_or(0);
            if most > 1 {
                temporary_of[param] = params.len() + parts.temporaries.len();
                let mut dims = call.shapes[param].dims().to_vec();
                let too_large = SplitProblem::TooLarge { param: declared.name, count: most };
                dims[0] = dims[0].saturating_mul(most - 1);
                if Shape::new(&dims).elements().saturating_mul(declared.element.size_bytes()) > i64::MAX as u64 {
                    return Err(SplitError::of(&**task, call, too_large));
                }
                parts.temporaries.push(ArrayDecl {
                    name: format!("partial {}", declared.name),
                    element: declared.element,
                    shape: Shape::new(&dims),
                    role: Role::Temporary,
                });
            }
        }
        let place = |(param, region): Target, i: u64| match i {
            0 => (param, region),
            i => {
                let mut start = region.start().to_vec();
                start[0] += (i - 1) * call.shapes[param].dims()[0];
                (temporary_of[param], Region::new(&start, region.len()))
            }
        };
        for (mut sub, mine) in calls.into_iter().zip(contributions) {
            for &(argument, target, i) in &mine {
                sub.args[argument] = place(target, i);
            }
            parts.calls.push(sub);
            for (_, target, i) in mine {
                let Some(merge) = task.merge(target.0) else { continue };
                for (left, right) in merges(i, counts[&target]) {
                    let args = [place(target, left), place(target, right)];
                    parts.calls.push(SubCall::of(merge, args, &crate::Scalars::new()));
                }
            }
        }
        Ok(parts)
    }

    /// Bytes of all temporary arrays.
    pub fn temporary_bytes(&self) -> u64 {
        self.temporaries.iter().map(ArrayDecl::bytes).fold(0, u64::saturating_add)
    }
}
