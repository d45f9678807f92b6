//! What a plan moves between ranks whose memories hold the arrays.

use crate::job::Job;
use crate::limits::main_memory;
use multigrain_driver::spread::owned;
use multigrain_machine::Machine;
use multigrain_plan::{Body, ChildPlan, Op, Plan};
use multigrain_program::{Arg, Region, Shape};
use std::ops::Range;

/// What ranks fetch and store, and from whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Bytes of arrays that the steps of each rank fetch and store.
    pub needed_bytes: Vec<u64>,
    /// Those of them that another rank owns, so that they go from one to the other.
    pub moved_bytes: Vec<u64>,
    /// What the busiest rank has to fetch and store at least, wherever the arrays lie; none where no bound is known.
    pub lower_bound_bytes: Option<u64>,
}

impl Wire {
    /// What a plan moves on a machine whose root is the memories of all ranks.
    pub(crate) fn of(machine: &Machine, plan: &Plan, job: &Job) -> Wire {
        let main = main_memory(machine);
        let mut wire = Wire {
            needed_bytes: vec![0; main.count],
            moved_bytes: vec![0; main.count],
            lower_bound_bytes: match job.program.calls() {
                [call] => {
                    let task = &job.program.tasks()[call.task as usize];
                    task.parallel_io_lower_bound(&call.shape(), main.count as u64, main.capacity_bytes)
                }
                _ => None,
            },
        };
        wire.add(plan, job, &|block| Some(*block));
        wire
    }

    /// Adds what a plan moves, whose blocks lie in the program's arrays where `place` says, if they do.
    fn add(&mut self, plan: &Plan, job: &Job, place: &dyn Fn(&Arg) -> Option<Arg>) {
        if !plan.is_in_parts() {
            plan.children.iter().enumerate().for_each(|(rank, child)| self.add_steps(rank, child, job, place));
            return;
        }
        for (call, &class) in plan.calls.iter().zip(&plan.class_of) {
            let Body::Inner(inner) = &plan.classes[class as usize].body else { continue };
            // What the part's plan adds of its own lies in no argument.
            let within = |block: &Arg| {
                let argument = place(call.args.get(block.array as usize)?)?;
                let start: Vec<u64> =
                    argument.region.start().iter().zip(block.region.start()).map(|(a, b)| a + b).collect();
                Some(Arg { array: argument.array, region: Region::new(&start, block.region.len()) })
            };
            self.add(inner, job, &within);
        }
    }

    fn add_steps(&mut self, rank: usize, child: &ChildPlan, job: &Job, place: &dyn Fn(&Arg) -> Option<Arg>) {
        let ranks = self.moved_bytes.len();
        for op in &child.ops {
            let (Op::Fetch { slot, .. } | Op::Store { slot, .. }) = *op else { continue };
            let Some(block) = place(&child.slots[slot as usize].block) else { continue };
            // What the planner adds lies in files.
            let Some(decl) = job.arrays().get(block.array as usize) else { continue };
            let own = held(&block.region, decl.shape, owned(decl.shape.elements(), rank, ranks));
            let elements = block.region.elements();
            self.needed_bytes[rank] += elements * decl.element.size_bytes();
            self.moved_bytes[rank] += (elements - own) * decl.element.size_bytes();
        }
    }
}

/// How many elements of a region are among some elements of the array, counted row-major.
fn held(region: &Region, shape: Shape, among: Range<u64>) -> u64 {
    before(region, shape, among.end) - before(region, shape, among.start)
}

/// How many elements of a region come before one.
fn before(region: &Region, shape: Shape, element: u64) -> u64 {
    if element >= shape.elements() {
        return region.elements();
    }
    let (mut count, mut left, mut rest) = (0, element, shape.elements());
    let mut inside = region.elements();
    for (d, &extent) in shape.dims().iter().enumerate() {
        rest /= extent;
        inside /= region.len()[d].max(1);
        let (at, start) = (left / rest, region.start()[d]);
        left %= rest;
        count += at.saturating_sub(start).min(region.len()[d]) * inside;
        if at < start || at >= region.end(d) {
            break;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_among_others_are_counted() {
        let shape = Shape::new(&[3, 4, 5]);
        for (start, len) in
            [([0, 0, 0], [3, 4, 5]), ([1, 1, 2], [2, 2, 3]), ([2, 0, 4], [1, 4, 1]), ([0, 3, 0], [2, 1, 5])]
        {
            let region = Region::new(&start, &len);
            let inside: Vec<u64> = (0..region.elements()).map(|n| region.element(n, shape)).collect();
            for from in 0..=60 {
                for to in from..=60 {
                    let expected = inside.iter().filter(|&&element| from <= element && element < to).count() as u64;
                    assert_eq!(held(&region, shape, from..to), expected, "{region} among {from}..{to}");
                }
            }
        }
    }
}
