//! A scope: the arrays that lie in one memory and the calls on them, whether of a program or of a single call.

use multigrain_program::{
    Access, Arg, ArrayDecl, Call, CallShape, Callee, DynTask, Program, Region, Role, SubCall, Tunables,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Arrays of one memory and the calls on them.
#[derive(Clone)]
pub(crate) struct Scope {
    pub(crate) arrays: Vec<ArrayDecl>,
    pub(crate) tasks: Vec<Arc<dyn DynTask>>,
    pub(crate) calls: Vec<Call>,
}

/// A task and the shape it is called with.
pub(crate) type Key = (usize, CallShape);

/// Identity of a task: the address of its object, which lives as long as the plans that name it.
pub(crate) fn identity(task: &Arc<dyn DynTask>) -> usize {
    Arc::as_ptr(task).cast::<()>() as usize
}

impl Scope {
    pub(crate) fn of_program(program: &Program) -> Scope {
        Scope { arrays: program.arrays().to_vec(), tasks: program.tasks().to_vec(), calls: program.calls().to_vec() }
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
                    Access::Write => Role::Output,
                    Access::Update => Role::InOut,
                },
            })
            .collect();
        let args = arrays.iter().zip(0..).map(|(a, array)| Arg { array, region: Region::whole(a.shape) }).collect();
        let call = Call { task: 0, args, scalars: shape.scalars.clone() };
        Scope { arrays, tasks: vec![task.clone()], calls: vec![call] }
    }
}

/// The calls of a scope after splitting, with their classes.
pub(crate) struct Split {
    pub(crate) tasks: Vec<Arc<dyn DynTask>>,
    pub(crate) calls: Vec<Call>,
    pub(crate) class_of: Vec<u32>,
    /// Task number and shape of each class.
    pub(crate) classes: Vec<(u32, CallShape)>,
}

/// Splits every call of a scope; `tunables` gives the values for a task and shape.
pub(crate) fn split<E>(
    scope: &Scope,
    mut tunables: impl FnMut(&Arc<dyn DynTask>, &CallShape) -> Result<Tunables, E>,
) -> Result<Split, E> {
    let mut result = Split { tasks: Vec::new(), calls: Vec::new(), class_of: Vec::new(), classes: Vec::new() };
    let mut class_numbers: FxHashMap<Key, u32> = FxHashMap::default();
    // The sub-calls of each distinct call, with task and class numbers already found.
    let mut known: FxHashMap<Key, Vec<(SubCall, u32, u32)>> = FxHashMap::default();
    let mut last: Option<Key> = None;
    for call in &scope.calls {
        let task = &scope.tasks[call.task as usize];
        let key = match last.take() {
            Some(key) if key.0 == identity(task) && same_shape(&key.1, call) => key,
            _ => (identity(task), call.shape()),
        };
        if !known.contains_key(&key) {
            let values = tunables(task, &key.1)?;
            let subcalls = task.split(&key.1, &values);
            let mut list = Vec::with_capacity(subcalls.len());
            for sub in subcalls {
                let callee = match &sub.callee {
                    Callee::Itself => task,
                    Callee::Task(other) => other,
                };
                let task_number = number_of(&mut result.tasks, callee);
                let shape = CallShape {
                    shapes: sub.args.iter().map(|(_, region)| region.shape()).collect(),
                    scalars: sub.scalars.clone(),
                };
                let class = *class_numbers.entry((identity(callee), shape.clone())).or_insert_with(|| {
                    result.classes.push((task_number, shape));
                    result.classes.len() as u32 - 1
                });
                list.push((sub, task_number, class));
            }
            known.insert(key.clone(), list);
        }
        for (sub, task, class) in &known[&key] {
            let args = sub
                .args
                .iter()
                .map(|(param, region)| {
                    let outer = &call.args[*param];
                    Arg { array: outer.array, region: region.within(&outer.region) }
                })
                .collect();
            result.calls.push(Call { task: *task, args, scalars: sub.scalars.clone() });
            result.class_of.push(*class);
        }
        last = Some(key);
    }
    Ok(result)
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
