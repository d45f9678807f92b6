//! What executes plans: what the run has given it, the state of one child, and the ways in which a child comes to its end.

use crate::error::{CallName, Ended, EngineError, Fault, block_name};
use crate::home::{Sides, StoreLog};
use crate::meetings::Meetings;
use crate::memory::Memories;
use crate::ranks::OnRanks;
use multigrain_driver::ranks::Progress;
use multigrain_driver::{Opaque, Receipt, StoreError};
use multigrain_plan::names::{Names, PlanNumbers};
use multigrain_plan::{ChildPlan, Plan, Slot};
use multigrain_team::{Abort, Team};
use multigrain_trace::{Flow, Recorder, Tick};
use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

pub(crate) type Log<'a> = Mutex<&'a mut (dyn StoreLog + 'a)>;

/// Executes plans of all depths.
pub(crate) struct Interpreter<'a, 'l> {
    pub(crate) team: &'a Team,
    /// The plan of the run: stores of its calls are what the log is told of.
    pub(crate) root: &'a Plan,
    pub(crate) memories: &'a Memories,
    /// Where children meet at barriers and broadcasts.
    pub(crate) meetings: &'a Meetings,
    pub(crate) abort: &'a Abort,
    /// Where other processes execute the other children of the root.
    pub(crate) ranks: Option<OnRanks<'a>>,
    pub(crate) log: Option<Log<'l>>,
    pub(crate) sides: Option<&'a dyn Sides>,
    pub(crate) recorders: Vec<RecorderCell>,
    /// If every record is kept: what they call things.
    pub(crate) names: Option<Names>,
    pub(crate) fault: Mutex<Option<Fault>>,
    pub(crate) progress: Option<&'a (dyn Fn(Progress) + Sync)>,
    /// What is done of the root's calls, for `progress`: whole operations.
    pub(crate) flops_done: AtomicU64,
    /// What the root's calls add up to, for `progress`.
    pub(crate) flops_total: f64,
}

/// One child of an execution: its number, its memory, its leading worker.
#[derive(Clone, Copy)]
pub(crate) struct ChildAt {
    pub(crate) child: usize,
    /// Which memory of its kind the child is.
    pub(crate) instance: usize,
    pub(crate) worker: usize,
    /// The memory above, and the worker that leads all children.
    pub(crate) parent: usize,
    pub(crate) leader: usize,
}

/// One child's state during one execution of a plan.
pub(crate) struct ChildState<'p> {
    pub(crate) plan: &'p Plan,
    /// If every record is kept: the plan in the records' numbers.
    pub(crate) numbers: Option<&'p PlanNumbers>,
    pub(crate) steps: &'p ChildPlan,
    pub(crate) at: ChildAt,
    pub(crate) pending: Vec<Pending<'p>>,
    /// For each slot, who wrote its content: call and argument. Kept for the log and for arrays in two files.
    pub(crate) writers: Vec<(u32, u32)>,
    /// For each slot, who uses its content first: call and argument. Kept for arrays in two files.
    pub(crate) readers: Vec<(u32, u32)>,
    pub(crate) current: Cell<u32>,
    pub(crate) signals: u32,
    /// Barriers and broadcasts that it has left.
    pub(crate) barriers: u32,
    pub(crate) broadcasts: u32,
}

/// A store that the log is told about.
pub(crate) struct Logged<'p> {
    pub(crate) call: u32,
    pub(crate) argument: u32,
    pub(crate) array: &'p dyn Opaque,
}

pub(crate) enum Pending<'p> {
    Done,
    /// A transfer of the slot; for a store, whether the log wants to know when it is complete.
    UnderWay {
        receipt: Box<dyn Receipt>,
        issued: Issued,
        slot: Slot,
        logged: Option<Logged<'p>>,
    },
}

/// A worker's recorder: used by the worker, or by its leader while the worker is idle.
pub(crate) struct RecorderCell(pub(crate) UnsafeCell<Recorder>);

impl From<Recorder> for RecorderCell {
    fn from(recorder: Recorder) -> RecorderCell {
        RecorderCell(UnsafeCell::new(recorder))
    }
}

// SAFETY: at any time one thread uses a recorder: its worker, or the leader that the idle worker will be called by.
// Calling and returning (fork and join) order the two.
unsafe impl Sync for RecorderCell {}

/// A transfer for the records.
#[derive(Clone, Copy)]
pub(crate) struct Issued {
    /// When.
    pub(crate) at: Tick,
    /// Which of its worker's transfers.
    pub(crate) number: u32,
    /// The slot in the numbers of the trace.
    pub(crate) slot: u32,
    /// Which way.
    pub(crate) flow: Flow,
}

impl<'a> Interpreter<'a, '_> {
    /// What is left after the run: recorders, names and the first fault.
    pub(crate) fn finish(self) -> (Vec<Recorder>, Option<Names>, Option<EngineError>) {
        let recorders = self.recorders.into_iter().map(|r| r.0.into_inner()).collect();
        let fault = self.fault.into_inner().unwrap_or_else(PoisonError::into_inner);
        (recorders, self.names, fault.map(|fault| fault.error))
    }

    #[allow(clippy::mut_from_ref)]
    pub(crate) fn recorder(&self, worker: usize) -> &mut Recorder {
        // SAFETY: see `RecorderCell`: called by the worker itself, or by its leader while it is idle; no reference is
        // kept across a call that could make another.
        unsafe { &mut *self.recorders[worker].0.get() }
    }

    pub(crate) fn is_root(&self, plan: &Plan) -> bool {
        std::ptr::eq(plan, self.root)
    }

    /// The ranks, for a plan whose children are theirs.
    pub(crate) fn ranks_of(&self, plan: &Plan) -> Option<&OnRanks<'a>> {
        self.ranks.as_ref().filter(|_| plan.edge == 0)
    }

    /// The leading worker of another child of the same execution.
    pub(crate) fn sibling(&self, state: &ChildState<'_>, child: usize) -> usize {
        match self.ranks_of(state.plan) {
            // Its number in all, less that of this rank's first: whoever puts the ranks' records together adds that.
            Some(ranks) => child.wrapping_sub(ranks.all.rank()).wrapping_mul(self.recorders.len()),
            None => self.memories.branch(state.plan).first_worker(state.at.leader, child),
        }
    }

    pub(crate) fn fail(&self, error: EngineError) -> Ended {
        self.fail_with(error.into())
    }

    fn fail_with(&self, first: Fault) -> Ended {
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        fault.get_or_insert(first);
        drop(fault);
        self.abort.raise();
        Ended
    }

    /// A leaf has panicked, by a call of the plan that an instance executes.
    pub(crate) fn leaf_panicked(&self, plan: &Plan, instance: usize, call: u32, message: String) -> Ended {
        self.fail_with(Fault::of_leaf(plan, instance, call, message))
    }

    /// The plan of a call's own, executed by the instance `below`, has ended early: blocks that the fault names are parts of the
    /// call's.
    pub(crate) fn ended_within(&self, plan: &Plan, instance: usize, call: u32, below: usize) -> Ended {
        if let Some(fault) = &mut *self.fault.lock().unwrap_or_else(PoisonError::into_inner) {
            fault.seen_from(plan, instance, call, below);
        }
        Ended
    }

    /// The fault of a plan whose call or block does not lie where it should.
    pub(crate) fn misplaced(&self, plan: &Plan, call: u32) -> Ended {
        self.fail(EngineError::Misplaced { what: CallName::of(plan, call).to_string() })
    }

    pub(crate) fn store_fault(&self, plan: &Plan, slot: &Slot, source: impl Into<StoreError>) -> Ended {
        self.fail(EngineError::Store { what: block_name(plan, slot), source: source.into() })
    }
}

/// A call's number in the whole program.
pub(crate) fn in_program(plan: &Plan, call: u32) -> u32 {
    plan.numbers.get(call as usize).copied().unwrap_or(call)
}
