//! Arrays that lie somewhere while a program runs, and what they are made of.

use super::output::Output;
use crate::job::Source;
use multigrain_program::{AnyArray, ElementType, Program, ProgramError, Shape};
use std::cell::RefCell;
use std::sync::Arc;

/// Adds a task and its calls, each from one array to another.
pub(super) type Step = dyn Fn(&mut Program, &[(AnyArray, AnyArray)]) -> Result<(), ProgramError> + Send + Sync;

/// An array that lies somewhere while the program runs.
pub(super) struct Base {
    pub(super) element: ElementType,
    pub(super) shape: Shape,
    pub(super) made: Made,
}

thread_local! {
    /// What arrays that are being dropped were made of, while one is.
    static DROPPED: RefCell<Option<Vec<Made>>> = const { RefCell::new(None) };
}

/// One after the other, since chains of arrays are as long as a program makes them, and a stack is not.
impl Drop for Base {
    fn drop(&mut self) {
        let mut made = Some(std::mem::replace(&mut self.made, Made::Given(Source::Generated { seed: 0 })));
        let is_first = DROPPED.try_with(|dropped| match &mut *dropped.borrow_mut() {
            Some(waiting) => {
                waiting.extend(made.take());
                false
            }
            none => none.insert(Vec::new()).is_empty(),
        });
        if is_first.is_ok_and(|first| first) {
            while let Some(next) = made.take() {
                drop(next);
                made = DROPPED.with_borrow_mut(|waiting| waiting.as_mut().and_then(Vec::pop));
            }
            DROPPED.set(None);
        }
    }
}

/// Where an array comes from.
pub(super) enum Made {
    Given(Source),
    /// One result of a pass over arrays of this shape.
    Pass {
        output: Arc<dyn Output>,
        from: Vec<Arc<Base>>,
        over: Shape,
    },
    /// Steps of a task, each from what the one before has made.
    Iterated {
        from: Arc<Base>,
        steps: u64,
        step: Arc<Step>,
        /// Whether another run can know the task: it holds nothing, or says its version.
        told: bool,
    },
}

impl Made {
    /// The arrays that it is made of.
    pub(super) fn from(&self) -> &[Arc<Base>] {
        match self {
            Made::Given(_) => &[],
            Made::Pass { from, .. } => from,
            Made::Iterated { from, .. } => std::slice::from_ref(from),
        }
    }
}
