//! A scope: the arrays that lie in one memory and the calls on them, whether of a program or of a single call.

use crate::plan::{Body, CallClass, PassReport, temporary_bytes};
use multigrain_machine::readable_bytes;
use multigrain_program::{
    Access, Arg, ArrayDecl, Call, CallShape, DynTask, Parts, Program, Region, Role, Scalars, Shape, SplitError,
    SubCall, Tunables,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Arrays of one memory and the calls on them.
#[derive(Clone)]
pub(crate) struct Scope {
    pub(crate) arrays: Vec<ArrayDecl>,
    pub(crate) tasks: Vec<Arc<dyn DynTask>>,
    /// Those of a whole program are the program's own: they may be many.
    pub(crate) calls: Arc<Vec<Call>>,
    pub(crate) lying: Lying,
}

/// Where the arrays of a scope lie, as far as the cost of moving blocks of them goes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lying {
    /// For a part: the shapes of the arrays of which these are regions.
    pub(crate) hosts: Vec<Shape>,
    /// At which byte of its file each begins; empty where they lie in no files.
    pub(crate) offsets_bytes: Vec<u64>,
}

/// A task and the shape it is called with.
pub(crate) type Key = (usize, CallShape);

/// Identity of a task: the address of its object, which lives as long as the plans that name it.
pub(crate) fn identity(task: &Arc<dyn DynTask>) -> usize {
    Arc::as_ptr(task).cast::<()>() as usize
}

impl Scope {
    pub(crate) fn of_program(program: &Program) -> Scope {
        Scope {
            arrays: program.arrays().to_vec(),
            tasks: program.tasks().to_vec(),
            calls: program.shared_calls(),
            lying: Lying::default(),
        }
    }

    /// The scope of one call: its arguments are the arrays.
    pub(crate) fn of_call(task: &Arc<dyn DynTask>, shape: &CallShape) -> Scope {
        let arrays: Vec<ArrayDecl> = task
            .params()
            .iter()
            .zip(&shape.shapes)
            .map(|(param, &shape)| ArrayDecl {
                name: param.name.to_owned(),
                element: param.element,
                shape,
                role: match param.access {
                    Access::Read => Role::Input,
                    Access::Write | Access::Reduce => Role::Output,
                    Access::Update => Role::InOut,
                },
            })
            .collect();
        let args = arrays.iter().zip(0..).map(|(a, array)| Arg { array, region: Region::whole(a.shape) }).collect();
        let call = Call { task: 0, args, scalars: shape.scalars.clone() };
        Scope { arrays, tasks: vec![task.clone()], calls: Arc::new(vec![call]), lying: Lying::default() }
    }
}

/// The calls of a scope after splitting, with their classes.
#[derive(Clone)]
pub(crate) struct Split {
    /// The arrays of the scope, and behind them the temporary arrays of reductions.
    pub(crate) arrays: Vec<ArrayDecl>,
    pub(crate) tasks: Vec<Arc<dyn DynTask>>,
    pub(crate) calls: Vec<Call>,
    pub(crate) class_of: Vec<u32>,
    /// Task number and shape of each class.
    pub(crate) classes: Vec<(u32, CallShape)>,
    /// Contributions to reductions that are combined here.
    pub(crate) contributions: u64,
    /// Blocks that they end in.
    pub(crate) targets: u64,
}

impl Split {
    /// Its classes of calls, with how those of each are executed.
    pub(crate) fn with_bodies(&self, bodies: Vec<Option<Body>>) -> Vec<CallClass> {
        let of = |((task, shape), body): (&(u32, CallShape), Option<Body>)| {
            Some(CallClass { task: *task, shape: shape.clone(), body: body? })
        };
        self.classes.iter().zip(bodies).filter_map(of).collect()
    }

    /// The same with these of its calls, which may be many: no others are copied on the way.
    pub(crate) fn with(&self, calls: Vec<Call>, class_of: Vec<u32>) -> Split {
        let (arrays, tasks, classes) = (self.arrays.clone(), self.tasks.clone(), self.classes.clone());
        Split { arrays, tasks, calls, class_of, classes, contributions: self.contributions, targets: self.targets }
    }

    /// Without the classes of which no call is left.
    pub(crate) fn of_used_classes(mut self) -> Split {
        let mut numbers: Vec<Option<u32>> = vec![None; self.classes.len()];
        let mut used = Vec::new();
        for class in &mut self.class_of {
            let known = &mut numbers[*class as usize];
            let number = *known.get_or_insert(used.len() as u32);
            if number as usize == used.len() {
                used.push(self.classes[*class as usize].clone());
            }
            *class = number;
        }
        Split { classes: used, ..self }
    }

    /// Bytes of the temporary arrays of reductions, each beginning at a cache line.
    pub(crate) fn temporary_bytes(&self, scope: &Scope) -> u64 {
        temporary_bytes(&self.arrays[scope.arrays.len()..])
    }

    /// What splitting did about reductions, if there are any.
    pub(crate) fn reduction_report(&self, scope: &Scope) -> Option<PassReport> {
        let (contributions, targets) = (self.contributions, self.targets);
        let bytes = readable_bytes(self.temporary_bytes(scope));
        let merges = contributions - targets;
        let summary = format!(
            "{contributions} contributions to {targets} blocks, a fixed tree of {merges} merges, {bytes} of partial results"
        );
        (contributions > 0).then_some(PassReport { pass: "reduction", summary })
    }
}

/// The sub-calls of one distinct call.
struct Known {
    calls: Vec<SubCall>,
    /// Their tasks and classes.
    numbers: Vec<(u32, u32)>,
    /// Numbers of the temporary arrays that they use.
    temporaries: Vec<u32>,
    contributions: u64,
    targets: u64,
}

/// Splits every call of a scope; `tunables` gives the values for a task and shape.
///
/// Calls whose temporary arrays are alike share them: what keeps one call's partial results from another's is found by
/// the dependence pass, as for every array.
///
/// # Errors
/// Those of `tunables`, and what a task makes of a call that cannot be.
pub(crate) fn split<E: From<SplitError>>(
    scope: &Scope,
    mut tunables: impl FnMut(&Arc<dyn DynTask>, &CallShape) -> Result<Tunables, E>,
) -> Result<Split, E> {
    let mut result = Split {
        arrays: scope.arrays.clone(),
        tasks: Vec::new(),
        calls: Vec::with_capacity(scope.calls.len()),
        class_of: Vec::with_capacity(scope.calls.len()),
        classes: Vec::new(),
        contributions: 0,
        targets: 0,
    };
    let mut class_numbers: FxHashMap<Key, u32> = FxHashMap::default();
    let mut known: FxHashMap<Key, Known> = FxHashMap::default();
    let mut shared: FxHashMap<(usize, ArrayDecl), u32> = FxHashMap::default();
    let mut last: Option<Key> = None;
    for call in scope.calls.iter() {
        let task = &scope.tasks[call.task as usize];
        let key = match last.take() {
            Some(key) if key.0 == identity(task) && same_shape(&key.1, call) => key,
            _ => (identity(task), call.shape()),
        };
        if !known.contains_key(&key) {
            let values = tunables(task, &key.1)?;
            let parts = Parts::of(task, &key.1, &values)?;
            let (contributions, targets) = (parts.contributions, parts.targets);
            let mut numbers = Vec::with_capacity(parts.calls.len());
            for sub in &parts.calls {
                let (callee, shape) = (sub.callee(task), sub.shape());
                let task_number = number_of(&mut result.tasks, callee);
                let class = *class_numbers.entry((identity(callee), shape.clone())).or_insert_with(|| {
                    result.classes.push((task_number, shape));
                    result.classes.len() as u32 - 1
                });
                numbers.push((task_number, class));
            }
            let number = |(ordinal, decl): (usize, ArrayDecl)| {
                *shared.entry((ordinal, decl)).or_insert_with_key(|(_, decl)| {
                    result.arrays.push(decl.clone());
                    result.arrays.len() as u32 - 1
                })
            };
            let temporaries = parts.temporaries.into_iter().enumerate().map(number).collect();
            let calls = parts.calls;
            known.insert(key.clone(), Known { calls, numbers, temporaries, contributions, targets });
        }
        let one = &known[&key];
        result.contributions += one.contributions;
        result.targets += one.targets;
        result.class_of.extend(one.numbers.iter().map(|&(_, class)| class));
        // Lists are long: one that no other call needs is given away, not copied.
        match if scope.calls.len() == 1 { known.remove(&key) } else { None } {
            Some(Known { calls, numbers, temporaries, .. }) => {
                let placed =
                    |(at, sub): (usize, SubCall)| in_scope(call, &temporaries, numbers[at].0, &sub.args, sub.scalars);
                result.calls = calls.into_iter().enumerate().map(placed).collect();
            }
            None => {
                let Known { calls, numbers, temporaries, .. } = &known[&key];
                let subs = calls.iter().zip(numbers);
                let placed = |(sub, number): (&SubCall, &(u32, u32))| {
                    in_scope(call, temporaries, number.0, &sub.args, sub.scalars.clone())
                };
                result.calls.extend(subs.map(placed));
            }
        }
        last = Some(key);
    }
    Ok(result)
}

/// A sub-call of a call as a call of its scope; `temporaries` are the numbers of the temporary arrays that it names.
fn in_scope(call: &Call, temporaries: &[u32], task: u32, args: &[(usize, Region)], scalars: Scalars) -> Call {
    let place = |&(array, region): &(usize, Region)| match call.args.get(array) {
        Some(outer) => Arg { array: outer.array, region: region.within(&outer.region) },
        None => Arg { array: temporaries[array - call.args.len()], region },
    };
    Call { task, args: args.iter().map(place).collect(), scalars }
}

fn same_shape(shape: &CallShape, call: &Call) -> bool {
    shape.scalars == call.scalars
        && shape.shapes.len() == call.args.len()
        && shape.shapes.iter().zip(&call.args).all(|(s, a)| *s == a.region.shape())
}

fn number_of(tasks: &mut Vec<Arc<dyn DynTask>>, task: &Arc<dyn DynTask>) -> u32 {
    match tasks.iter().position(|t| identity(t) == identity(task)) {
        Some(number) => number as u32,
        None => {
            tasks.push(task.clone());
            tasks.len() as u32 - 1
        }
    }
}
