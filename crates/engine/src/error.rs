//! Why a run ended before its time.

use multigrain_driver::StoreError;
use multigrain_kernel::KernelError;
use multigrain_plan::{Body, Plan, Slot};
use multigrain_program::Arg;
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
        let blocks = c.args.iter().map(|block| block_of(plan, block)).collect();
        CallName { task: plan.tasks[c.task as usize].name().to_owned(), call, blocks }
    }
}

fn block_of(plan: &Plan, block: &Arg) -> String {
    format!("{} {}", plan.arrays[block.array as usize].name, block.region)
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

/// The first fault of a run, while it goes up to where the run began.
pub(crate) struct Fault {
    pub(crate) error: EngineError,
    /// Of a leaf that panicked, the blocks of its call.
    told: Option<Told>,
}

/// Blocks that a message names, in the arrays of a plan.
struct Told {
    /// The plan's address, and the instance that executes it: one call at a time.
    by: (usize, usize),
    /// `None`: in an array of a plan below, which those above do not know.
    blocks: Vec<Option<Arg>>,
}

impl From<EngineError> for Fault {
    fn from(error: EngineError) -> Fault {
        Fault { error, told: None }
    }
}

/// An execution of a plan.
fn execution(plan: &Plan, instance: usize) -> (usize, usize) {
    (std::ptr::from_ref(plan).addr(), instance)
}

impl Fault {
    pub(crate) fn of_leaf(plan: &Plan, instance: usize, call: u32, message: String) -> Fault {
        let blocks = plan.calls[call as usize].args.iter().copied().map(Some).collect();
        let call = Box::new(CallName::of(plan, call));
        let told = Some(Told { by: execution(plan, instance), blocks });
        Fault { error: EngineError::LeafPanicked { call, message }, told }
    }

    /// Names blocks in the arrays of a plan, if it is those of one of its calls, executed by the instance `below`, in which they
    /// were named until now.
    pub(crate) fn seen_from(&mut self, plan: &Plan, instance: usize, call: u32, below: usize) {
        let class = plan.class_of[call as usize];
        let (Some(told), Body::Inner(inner)) = (&mut self.told, &plan.classes[class as usize].body) else { return };
        let EngineError::LeafPanicked { call: name, .. } = &mut self.error else { return };
        if told.by != execution(inner, below) {
            return;
        }
        told.by = execution(plan, instance);
        let args = &plan.calls[call as usize].args;
        for (block, text) in told.blocks.iter_mut().zip(&mut name.blocks) {
            let outer = block.and_then(|block| args.get(block.array as usize).map(|outer| (block, outer)));
            *block = outer.map(|(block, outer)| Arg { array: outer.array, region: block.region.within(&outer.region) });
            if let Some(block) = block {
                *text = block_of(plan, block);
            }
        }
    }
}

/// A block on its way, for messages.
pub(crate) fn block_name(plan: &Plan, slot: &Slot) -> String {
    format!("block {} of {}", slot.block.region, plan.arrays[slot.block.array as usize].name)
}
