//! Why a run ended before its time.

use multigrain_driver::StoreError;
use multigrain_kernel::KernelError;
use multigrain_plan::{Plan, Slot};
use multigrain_team::collective::CollectiveError;
use multigrain_trace::TraceError;
use std::fmt;

/// A call, for messages: its task, its number and its blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallName {
    /// Task.
    pub task: String,
    /// Number of the call in the plan of its edge.
    pub call: u32,
    /// Blocks, as `array [region]`.
    pub blocks: Vec<String>,
}

impl CallName {
    pub(crate) fn of(plan: &Plan, call: u32) -> CallName {
        let c = &plan.calls[call as usize];
        let blocks = c.args.iter().map(|a| format!("{} {}", plan.arrays[a.array as usize].name, a.region)).collect();
        CallName { task: plan.tasks[c.task as usize].name().to_owned(), call, blocks }
    }
}

impl fmt::Display for CallName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call {} of {} on {}", self.call, self.task, self.blocks.join(", "))
    }
}

/// The run is over before its end; the interpreter's fault says why.
#[derive(Debug)]
pub(crate) struct Ended;

/// The first fault of a run. The others were told to end, and all transfers under way have ended.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A transfer failed.
    #[error("{what}: {source}")]
    Store {
        /// Which block was on its way.
        what: String,
        /// The fault.
        source: StoreError,
    },
    /// A file or memory operation outside any transfer failed.
    #[error(transparent)]
    Setup(#[from] StoreError),
    /// A leaf variant panicked.
    #[error("{call} panicked: {message}; the run was ended")]
    LeafPanicked {
        /// The call.
        call: Box<CallName>,
        /// Text of the panic.
        message: String,
    },
    /// The trace of the run cannot be written.
    #[error(transparent)]
    Trace(TraceError),
    /// The operating system cannot be observed.
    #[error(transparent)]
    Kernel(KernelError),
    /// The machine's root has not a child for each rank.
    #[error("{ranks} ranks cannot execute the plan of a machine whose root has {children} children of one kind")]
    Ranks {
        /// Ranks.
        ranks: usize,
        /// Children of the root.
        children: usize,
    },
    /// The run was interrupted from outside.
    #[error("interrupted")]
    Interrupted,
    /// The homes do not match the program.
    #[error("array {array}: {problem}")]
    Home {
        /// Array.
        array: String,
        /// What is wrong.
        problem: String,
    },
    /// The children of a memory cannot meet.
    #[error("the barrier or broadcast of the children of edge {edge}: {source}")]
    Barrier {
        /// Number of the edge; that below the root is 0.
        edge: usize,
        /// What is wrong.
        source: CollectiveError,
    },
    /// A plan with barriers or broadcasts is run with what was set up for another.
    #[error("the children of edge {edge} have a barrier or broadcast, and none was set up for them")]
    NoBarrier {
        /// Number of the edge; that below the root is 0.
        edge: usize,
    },
    /// A plan that is no plan of these arrays and memories.
    #[error("{what} does not lie where the plan says: the plan is not one of this program and machine")]
    Misplaced {
        /// The call, or the block on its way.
        what: String,
    },
    /// Nobody here moves bytes along an edge.
    #[error("the edge above memory {memory} is of kind {driver}, and no such driver is registered here to execute it")]
    NoDriver {
        /// Child memory of the edge.
        memory: String,
        /// The driver's name.
        driver: String,
    },
    /// The memory that was reserved is too small for the plan, or that of another machine.
    #[error("the memory that was reserved does not serve the plan: reserve it for this plan and machine")]
    Reserved,
    /// The plan needs more workers than the team has.
    #[error("the plan is for {planned} workers, the team has {given}")]
    Workers {
        /// Workers of the plan's machine.
        planned: usize,
        /// Workers of the team.
        given: usize,
    },
}

/// A block on its way, for messages.
pub(crate) fn block_name(plan: &Plan, slot: &Slot) -> String {
    format!("block {} of {}", slot.block.region, plan.arrays[slot.block.array as usize].name)
}
