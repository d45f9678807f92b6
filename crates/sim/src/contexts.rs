//! More contexts than processors on a described machine, in virtual time: an interpreter of [`multigrain_schedule::contexts`].
//!
//! A program has tasks, each of which computes on an accelerator's processor. For each it makes a *control thread* on the
//! host, which asks for a processor, sleeps while its context runs or waits, and looks again when it is woken. At every tick of a
//! timer a thread of the kernel looks at the processors, while somebody waits. Which context has which processor is decided by the
//! very [`Contexts`] that decides elsewhere; which of these threads runs when is decided by the host's scheduler. What comes of both
//! together is the subject: two schedulers that know nothing of each other.
//!
//! The list of processors has a lock, as in Linux 2.6.24 (`list_mutex`): who finds it taken sleeps, the first that sleeps is woken when
//! it is given back, and whoever comes first then has it. It is held while processors are looked at, bound and taken away.
//!
//! [`Contexts`]: multigrain_schedule::contexts::Contexts

mod machine;
mod model;
mod record;

pub use machine::{Costs, Load, Machine, Policy, Problem, Work};
pub use record::trace;

use crate::Time;

/// What a run did.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// From the first step of the program to the end of its last task.
    pub wall: Time,
    /// How often a context was bound to a processor.
    pub switches: u64,
    /// What binding and taking away took, all together.
    pub switching: Time,
    /// For each task, in the order of making.
    pub tasks: Vec<Task>,
    /// Time for which control threads, and the kernel's, had hardware threads of the host.
    pub host: Time,
    /// What contexts and threads did, in order of ends.
    pub intervals: Vec<Interval>,
}

impl Outcome {
    /// Jain's index of the shares that tasks had of processors until their ends: 1 if all had the same, 1/n if one had all.
    pub fn fairness(&self) -> f64 {
        let shares: Vec<f64> = self.tasks.iter().map(|task| task.ran.seconds() / task.end.seconds()).collect();
        let (sum, squares) = (shares.iter().sum::<f64>(), shares.iter().map(|share| share * share).sum::<f64>());
        sum * sum / (shares.len() as f64 * squares)
    }
}

/// What became of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Task {
    /// When it had a processor first.
    pub first: Time,
    /// When it was done.
    pub end: Time,
    /// For how long it had processors.
    pub ran: Time,
    /// The longest that it waited for one.
    pub starved: Time,
}

/// Something that took time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The task.
    pub task: u32,
    /// What.
    pub what: Did,
    /// From when.
    pub from: Time,
    /// Until when.
    pub to: Time,
}

/// What took time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Did {
    /// The context had this processor.
    Ran(u32),
    /// The context waited for a processor.
    Waited,
    /// The control thread had a hardware thread of the host.
    Controlled,
}

/// Executes a load on a machine.
///
/// # Errors
/// The two do not go together: no processors, no tasks, gangs larger than the machine.
pub fn run(machine: &Machine, load: &Load) -> Result<Outcome, Problem> {
    machine.check(load)?;
    Ok(model::Model::new(machine, load).run())
}
