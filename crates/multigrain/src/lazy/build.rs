//! From what is wanted to a program: which arrays there are, and which passes make them.

use super::base::{Base, Made, Step};
use super::output::{Output, Reduced};
use super::pass::Pass;
use crate::error::Error;
use crate::job::{Job, Sink, Source};
use multigrain_program::{AnyArray, Program, Role, Scalars, Shape};
use std::collections::HashMap;
use std::sync::Arc;

/// A result of a pass, the arrays of the pass that it is made of, and its own.
type Target<'a> = (Arc<dyn Output>, Vec<usize>, &'a Arc<Base>);

/// Passes that have become one.
struct Group<'a> {
    over: Shape,
    from: Vec<&'a Arc<Base>>,
    outputs: Vec<Target<'a>>,
    reduced: Reduced,
}

/// The program that makes some arrays, and where each goes.
pub(super) struct Builder<'a> {
    program: Program,
    wanted: HashMap<*const Base, Option<Sink>>,
    arrays: HashMap<*const Base, AnyArray>,
    /// All arrays that are needed, with the number of passes before each: in the end by it, and so each behind those that it
    /// is made of.
    order: Vec<(&'a Arc<Base>, usize)>,
    levels: HashMap<*const Base, usize>,
    /// For each array of the program.
    sources: Vec<Option<Source>>,
    sinks: Vec<Option<Sink>>,
    /// Whether every function is told from others.
    told: bool,
}

/// What is to be run.
pub(super) struct Built {
    pub(super) job: Job,
    /// The arrays that were wanted.
    pub(super) arrays: Vec<AnyArray>,
    /// Whether another run can know it: no function holds values of its own.
    pub(super) told: bool,
}

/// The job that makes these arrays; `check` refuses, before they are listed, so many calls.
///
/// # Errors
/// An array that is wanted twice, or has more bytes than can be addressed; what `check` says.
pub(super) fn job(
    wanted: &[(Arc<Base>, Option<Sink>)],
    check: impl Fn(u64) -> Result<(), Error>,
) -> Result<Built, Error> {
    let mut builder = Builder {
        program: Program::new(),
        wanted: HashMap::new(),
        arrays: HashMap::new(),
        order: Vec::new(),
        levels: HashMap::new(),
        sources: Vec::new(),
        sinks: Vec::new(),
        told: true,
    };
    for (base, sink) in wanted {
        if builder.wanted.insert(Arc::as_ptr(base), sink.clone()).is_some() {
            let name = sink.as_ref().map_or_else(String::new, |sink| sink.path().display().to_string());
            return Err(Error::Request(format!("one result is saved twice; copy the file instead of saving {name}")));
        }
    }
    for (base, _) in wanted {
        builder.visit(base);
    }
    builder.order.sort_by_key(|(_, level)| *level);
    check(builder.calls_in_all())?;
    builder.declare()?;
    builder.calls()?;
    let Builder { program, arrays, sources, sinks, told, .. } = builder;
    let arrays = wanted.iter().map(|(base, _)| arrays[&Arc::as_ptr(base)]).collect();
    let mut job = Job::new("compute", program);
    (job.sources, job.sinks) = (sources, sinks);
    Ok(Built { job, arrays, told })
}

impl<'a> Builder<'a> {
    /// Puts an array behind those that it is made of.
    fn visit(&mut self, wanted: &'a Arc<Base>) {
        let mut path = vec![wanted];
        while let Some(&base) = path.last() {
            let level = |base: &Arc<Base>| self.levels.get(&Arc::as_ptr(base)).copied();
            if level(base).is_none() {
                let from = base.made.from();
                if let Some(before) = from.iter().find(|base| level(base).is_none()) {
                    path.push(before);
                    continue;
                }
                let level = from.iter().filter_map(level).max().map_or(0, |last| last + 1);
                self.levels.insert(Arc::as_ptr(base), level);
                self.order.push((base, level));
            }
            path.pop();
        }
    }

    fn array(
        &mut self,
        name: &str,
        base: &Base,
        role: Role,
        source: Option<Source>,
        sink: Option<Sink>,
    ) -> Result<AnyArray, Error> {
        let array = self.program.any_array(name, base.element, base.shape, role)?;
        self.sources.push(source);
        self.sinks.push(sink);
        Ok(array)
    }

    fn declare(&mut self) -> Result<(), Error> {
        for (base, _) in self.order.clone() {
            let number = self.arrays.len();
            let array = match (&base.made, self.wanted.get(&Arc::as_ptr(base)).cloned()) {
                (Made::Given(source), _) => {
                    let name = match source {
                        Source::Npy(path) | Source::Raw(path) => path.display().to_string(),
                        Source::Generated { .. } | Source::Bytes(_) => format!("given {number}"),
                    };
                    self.array(&name, base, Role::Input, Some(source.clone()), None)?
                }
                (_, Some(sink)) => {
                    let name = sink.as_ref().map_or_else(|| "result".to_owned(), |s| s.path().display().to_string());
                    self.array(&name, base, Role::Output, None, sink)?
                }
                (_, None) => self.array(&format!("between {number}"), base, Role::Temporary, None, None)?,
            };
            self.arrays.insert(Arc::as_ptr(base), array);
        }
        Ok(())
    }

    /// How many calls there are at most.
    fn calls_in_all(&self) -> u64 {
        let calls = |base: &Base| match base.made {
            Made::Given(_) => 0,
            Made::Pass { .. } => 1,
            Made::Iterated { steps, .. } => steps,
        };
        self.order.iter().map(|(base, _)| calls(base)).fold(0, u64::saturating_add)
    }

    fn calls(&mut self) -> Result<(), Error> {
        let order = std::mem::take(&mut self.order);
        for level in order.chunk_by(|(_, a), (_, b)| a == b) {
            let mut groups: Vec<Group<'a>> = Vec::new();
            for &(base, _) in level {
                match &base.made {
                    Made::Given(_) => {}
                    Made::Pass { output, from, over } => Group::enter(&mut groups, base, output, from, *over),
                    Made::Iterated { from, steps, step, told } => {
                        self.told &= told;
                        self.iterate(base, from, *steps, &**step)?;
                    }
                }
            }
            for group in groups {
                self.pass(group)?;
            }
        }
        Ok(())
    }

    fn pass(&mut self, group: Group<'a>) -> Result<(), Error> {
        self.told &= group.outputs.iter().all(|(output, ..)| output.told().is_some());
        let targets = group.outputs.iter().map(|(_, _, base)| *base);
        let blocks: Vec<_> =
            group.from.iter().copied().chain(targets).map(|base| self.arrays[&Arc::as_ptr(base)].all()).collect();
        let task = self.program.task(Pass {
            inputs: group.from.iter().map(|base| base.element).collect(),
            rank: group.over.rank(),
            outputs: group.outputs.iter().map(|(output, of, _)| (output.clone(), of.clone())).collect(),
            reduced: group.reduced,
        });
        Ok(self.program.any_call(task, &blocks, Scalars::new())?)
    }

    /// From array to array in turns, so that the last step makes the result.
    fn iterate(&mut self, base: &'a Arc<Base>, from: &'a Arc<Base>, steps: u64, step: &Step) -> Result<(), Error> {
        let (first, result) = (self.arrays[&Arc::as_ptr(from)], self.arrays[&Arc::as_ptr(base)]);
        let turns = match steps {
            0 | 1 => [result; 2],
            _ => [result, self.array("in turns", base, Role::Temporary, None, None)?],
        };
        let to = |step: u64| turns[((steps - step) % 2) as usize];
        let pairs: Vec<(AnyArray, AnyArray)> =
            (1..=steps).map(|step| (if step == 1 { first } else { to(step - 1) }, to(step))).collect();
        Ok(step(&mut self.program, &pairs)?)
    }
}

impl<'a> Group<'a> {
    /// Adds a pass to the first group that shares an array with it and can take it, or begins one.
    fn enter(
        groups: &mut Vec<Group<'a>>,
        base: &'a Arc<Base>,
        output: &Arc<dyn Output>,
        from: &'a [Arc<Base>],
        over: Shape,
    ) {
        let is_new = |group: &Group<'a>, input: &Arc<Base>| !group.from.iter().any(|known| Arc::ptr_eq(known, input));
        let takes = |group: &Group<'a>| {
            let new = from.iter().filter(|input| is_new(group, input)).count();
            group.over == over
                && new < from.len()
                && group.from.len() + new <= Pass::INPUTS_MAX
                && group.outputs.len() < Pass::OUTPUTS_MAX
                && group.reduced.and(output.reduced()).is_some()
        };
        let found = groups.iter().position(takes);
        let at = found.unwrap_or_else(|| {
            groups.push(Group { over, from: Vec::new(), outputs: Vec::new(), reduced: Reduced::No });
            groups.len() - 1
        });
        let group = &mut groups[at];
        for input in from {
            if is_new(group, input) {
                group.from.push(input);
            }
        }
        let number = |input: &Arc<Base>| group.from.iter().position(|known| Arc::ptr_eq(known, input)).unwrap_or(0);
        let of = from.iter().map(number).collect();
        group.reduced = group.reduced.and(output.reduced()).unwrap_or(group.reduced);
        group.outputs.push((output.clone(), of, base));
    }
}
