//! The interpreter: what one child does, step by step.

use crate::error::{CallName, Ended, EngineError, block_name};
use crate::home::Place;
use crate::interpreter::{ChildAt, ChildState, Interpreter, Logged, Pending, in_program};
use crate::memory::Reserved;
use crate::phase::Phase;
use multigrain_driver::{Direction, Location, Slack, Span, Transfer};
use multigrain_plan::{Body, ChildPlan, Op, Places, Plan, Slot};
use multigrain_program::{Arg, DynTask, LeafContext, RawView, Scalars};
use multigrain_team::{Steps, panic_message};
use multigrain_trace::{Activity, Idleness, Kind, Tick};
use smallvec::SmallVec;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// What the children of one execution of a plan share.
struct Shared<'p> {
    plan: &'p Plan,
    steps: Vec<Steps>,
    /// Where batches are claimed. Empty if every child keeps to its own steps.
    phases: Vec<Phase>,
}

impl Interpreter<'_, '_> {
    /// Executes a plan in memory `instance` of those above its edge, where its arrays lie at `places`.
    pub(crate) fn execute(
        &self,
        plan: &Plan,
        instance: usize,
        worker: usize,
        places: &[Place<'_>],
    ) -> Result<(), Ended> {
        if plan.is_in_parts() {
            return self.parts(plan, instance, worker, places);
        }
        let children = plan.children.len();
        let signals = plan.children.iter().any(|c| c.ops.iter().any(|op| matches!(op, Op::Signal)));
        let shared = Shared {
            plan,
            steps: if signals { (0..children).map(|_| Steps::new(self.team.spin())).collect() } else { Vec::new() },
            phases: match plan.claims() {
                true => (0..plan.phases()).map(|phase| Phase::new(plan, phase, self.team.spin())).collect(),
                false => Vec::new(),
            },
        };
        let branch = self.memories.branch(plan);
        let since = self.moment();
        let one = |child: usize, by: usize| {
            let instance_below = branch.instance(instance, child);
            let at = ChildAt { child, instance: instance_below, worker: by, parent: instance, leader: worker };
            self.child(&shared, at, since, places)
        };
        if let Some(ranks) = self.ranks_of(plan) {
            return one(ranks.all.rank(), worker).and_then(|()| ranks.leave(plan, self.abort));
        }
        if let Some(only) = plan.alone() {
            let result = one(only, worker);
            self.record_spare(plan, worker, only, since);
            return result;
        }
        let ended = if branch.all(worker).len() == children {
            let job = |w: usize| {
                // What ended it stands in `fault`; the others notice the raised flag.
                let _ = one(w - worker, w);
            };
            self.team.fork(worker..worker + children, &job)
        } else {
            let groups: Vec<_> = (0..children).map(|child| branch.led(worker, child)).collect();
            self.team.fork_groups(&groups, &|child| {
                let _ = one(child, groups[child].start);
            })
        };
        self.record_join(plan, worker);
        if let Err(panic) = ended {
            self.fail(EngineError::LeafPanicked { call: Box::new(CallName::of(plan, 0)), message: panic.to_string() });
        }
        if self.abort.is_raised() { Err(Ended) } else { Ok(()) }
    }

    /// Executes one child, whose part was handed out at `since`, and keeps panics of leaves from leaving it.
    fn child<'p>(&self, shared: &Shared<'p>, at: ChildAt, since: Tick, places: &[Place<'p>]) -> Result<(), Ended> {
        let steps = &shared.plan.children[at.child];
        let begun = self.record_begin(shared.plan, at, since);
        let mut state = ChildState {
            plan: shared.plan,
            numbers: self.names.as_ref().and_then(|names| names.of_plan(shared.plan)),
            steps,
            at,
            pending: Vec::new(),
            writers: if self.logs(shared.plan) { vec![(0, 0); steps.slots.len()] } else { Vec::new() },
            readers: if self.sides.is_some() && self.is_root(shared.plan) {
                first_uses(shared.plan, steps)
            } else {
                Vec::new()
            },
            current: Cell::new(0),
            signals: 0,
            barriers: 0,
            broadcasts: 0,
        };
        let result = catch_unwind(AssertUnwindSafe(|| self.steps(shared, &mut state, places)));
        let result = result.unwrap_or_else(|panic| {
            let message = panic_message(panic);
            Err(self.leaf_panicked(shared.plan, at.parent, state.current.get(), message))
        });
        // Whatever happened, no transfer may outlive the memory it works on.
        for pending in std::mem::take(&mut state.pending) {
            if let Pending::UnderWay { receipt, issued, .. } = pending {
                let _ = receipt.wait();
                self.record_transfer(&state, issued, &*receipt);
            }
        }
        self.record_scope(shared.plan, at, begun);
        result
    }

    fn steps<'p>(&self, shared: &Shared<'p>, state: &mut ChildState<'p>, places: &[Place<'p>]) -> Result<(), Ended> {
        if shared.phases.is_empty() {
            let all = 0..state.steps.ops.len();
            return self.range(shared, state, all, places);
        }
        // Nobody waits for a child that claims nothing, and others claim what lies in its list. Workers are counted from the
        // first of all that share this memory, so that there is always one who claims.
        if state.at.worker - state.at.leader >= self.team.at_once() {
            return Ok(());
        }
        for (number, phase) in shared.phases.iter().enumerate() {
            while let Some((owner, batch)) = phase.claim(state.at.child) {
                let steps = &shared.plan.children[owner];
                state.steps = steps;
                let range = steps.batches[steps.phase(number).start as usize + batch].clone();
                self.range(shared, state, range.start as usize..range.end as usize, places)?;
                // Nobody waits for the end of the last phase but in the join.
                if phase.finished_one(state.at.child) && number + 1 < shared.phases.len() {
                    self.record_signal(state, number as u32 + 1);
                    phase.over.signal();
                }
            }
            // Who is done with the last phase has nothing to wait for but the join.
            if number + 1 < shared.phases.len() {
                let t = self.recorder(state.at.worker).start();
                phase.over.wait_for(1, self.abort).map_err(|_| Ended)?;
                let last = phase.last_child();
                if last != state.at.child {
                    let (other, edge) = (self.sibling(state, last), state.plan.edge as u16);
                    self.recorder(state.at.worker).idle(t, edge, Idleness::Signal, other as u32, number as u32 + 1);
                }
            }
        }
        Ok(())
    }

    fn range<'p>(
        &self,
        shared: &Shared<'p>,
        state: &mut ChildState<'p>,
        range: std::ops::Range<usize>,
        places: &[Place<'p>],
    ) -> Result<(), Ended> {
        for op in &state.steps.ops[range] {
            match *op {
                Op::Run { call, places: at } => self.run_call(state, call, at, places)?,
                Op::Fetch { transfer, slot } => self.transfer(state, transfer, slot, Direction::Read, places)?,
                Op::Store { transfer, slot } => self.transfer(state, transfer, slot, Direction::Write, places)?,
                Op::Await { transfer } => self.wait_for(state, transfer)?,
                Op::Signal => {
                    state.signals += 1;
                    self.record_signal(state, state.signals);
                    match self.ranks_of(state.plan) {
                        Some(ranks) => ranks.all.signal(),
                        None => drop(shared.steps[state.at.child].signal()),
                    }
                }
                Op::Barrier => self.meet(state)?,
                Op::Broadcast { root, slot } => self.broadcast(state, root as usize, slot)?,
                Op::Wait { child, signals } => {
                    let t = self.recorder(state.at.worker).start();
                    match self.ranks_of(state.plan) {
                        Some(ranks) => ranks.wait(child as usize, signals, self.abort)?,
                        None => {
                            let steps = &shared.steps[child as usize];
                            steps.wait_for(u64::from(signals), self.abort).map_err(|_| Ended)?;
                        }
                    }
                    let (other, edge) = (self.sibling(state, child as usize), state.plan.edge as u16);
                    self.recorder(state.at.worker).idle(t, edge, Idleness::Signal, other as u32, signals);
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn run_call(&self, state: &mut ChildState<'_>, number: u32, at: Places, places: &[Place<'_>]) -> Result<(), Ended> {
        if self.abort.is_raised() {
            return Err(Ended);
        }
        let plan = state.plan;
        if matches!(at, Places::Views) && plan.driver.files {
            state.current.set(number);
            let (at, led) = (state.at, self.led(plan, state.at));
            self.part(plan, number, at.instance, led, places)
                .map_err(|Ended| self.ended_within(plan, at.parent, number, at.instance))?;
            self.done(plan, number);
            return Ok(());
        }
        let call = &plan.calls[number as usize];
        let class = &plan.classes[plan.class_of[number as usize] as usize];
        let task = &*plan.tasks[call.task as usize];
        // Every block is found to lie where it must, so no plan leads outside of its memory; that those which are written
        // are nobody else's is what the plan says.
        let views: SmallVec<[RawView; 4]> = match at {
            Places::Views => {
                let view = |arg: &Arg| match places.get(arg.array as usize) {
                    Some(Place::Memory(home)) => home.part(&arg.region),
                    _ => None,
                };
                call.args.iter().filter_map(view).collect()
            }
            Places::Slots { first } => {
                let mut views = SmallVec::new();
                for (i, arg) in call.args.iter().enumerate() {
                    let index = state.steps.places[first as usize + i];
                    let slot = &state.steps.slots[index as usize];
                    if slot.block == *arg {
                        views.extend(self.slot(state, slot));
                    }
                    if self.logs(plan) && task.params()[i].access.writes() {
                        state.writers[index as usize] = (in_program(plan, number), i as u32);
                    }
                }
                views
            }
        };
        if views.len() != call.args.len() {
            return Err(self.misplaced(plan, number));
        }
        match &class.body {
            Body::Inner(inner) => {
                let partials = self.memories.temporaries(inner, state.at.instance);
                let inner_places: SmallVec<[Place<'_>; 4]> =
                    views.into_iter().chain(partials).map(Place::Memory).collect();
                state.current.set(number);
                let t = self.moment();
                let executed = self.execute(inner, state.at.instance, state.at.worker, &inner_places);
                self.record_call(plan, self.led(plan, state.at), number, t);
                executed.map_err(|Ended| self.ended_within(plan, state.at.parent, number, state.at.instance))?;
            }
            Body::Leaf { scratch_bytes } => {
                state.current.set(number);
                let own = self.memories.child(plan, state.at.instance);
                let scratch = match own {
                    Some(own) => own.scratch(*scratch_bytes),
                    None => self.memories.scratch(state.at.worker, *scratch_bytes),
                };
                let processor = self.memories.processor(plan);
                let leaf = Leaf { task, views: &views, scalars: &call.scalars, scratch, processor };
                let t = self.recorder(state.at.worker).start();
                match own.filter(|own| own.executes) {
                    // SAFETY: each block lies in its array or slot, as was just seen, and these are initialised; that a block
                    // which is written is used by this call alone is the plan's, whose caller vouches for it (`run`). The
                    // scratch memory is this worker's, or the upper end of the child that it executes.
                    None => unsafe { leaf.execute() },
                    Some(own) => execute_there(own, &leaf).unwrap_or_else(|panic| resume_unwind(panic)),
                }
                let (plan_number, task_number) = state.numbers.map_or((0, 0), |n| (n.plan, n.task(call.task)));
                self.recorder(state.at.worker).leaf(t, task_number, plan_number, number);
            }
        }
        self.done(plan, number);
        Ok(())
    }

    /// Tells how far the run is, after a call of the root edge.
    #[inline]
    fn done(&self, plan: &Plan, number: u32) {
        if plan.edge == 0
            && let Some(progress) = self.progress
        {
            let class = &plan.classes[plan.class_of[number as usize] as usize];
            let flops = plan.tasks[class.task as usize].work(&class.shape).flops.max(1.0) as u64;
            // Relaxed: a sum that is only shown.
            let done = self.flops_done.fetch_add(flops, Ordering::Relaxed) + flops;
            progress(multigrain_driver::ranks::Progress { done: done as f64, total: self.flops_total });
        }
    }

    /// Where the slot's block lies in the child's memory; `None` where what the slot owns is not inside.
    pub(crate) fn slot(&self, state: &ChildState<'_>, slot: &Slot) -> Option<RawView> {
        let plan = state.plan;
        let Span { start, len_bytes } = self.memories.child(plan, state.at.instance)?.span;
        let array = plan.arrays.get(slot.block.array as usize)?;
        let shape = slot.block.region.shape();
        let is_whole = slot.bytes == shape.elements().checked_mul(array.element.size_bytes())?;
        let end = slot.offset_bytes.checked_add(slot.bytes)?.checked_next_multiple_of(plan.slot_unit_bytes.max(1))?;
        let view = || RawView::dense(start.wrapping_add(slot.offset_bytes as usize), array.element, shape);
        (is_whole && end <= len_bytes).then(view)
    }

    fn transfer<'p>(
        &self,
        state: &mut ChildState<'p>,
        transfer: u32,
        index: u32,
        direction: Direction,
        places: &[Place<'p>],
    ) -> Result<(), Ended> {
        debug_assert_eq!(state.pending.len(), transfer as usize, "transfers are numbered in the order of issue");
        let slot = state.steps.slots[index as usize];
        let plan = state.plan;
        let own = self.memories.child(plan, state.at.instance);
        let side = self.side(state, index, direction);
        let location = places[slot.block.array as usize].location(&slot.block.region, side);
        let (Some(own), Some(_), Some(location)) = (own, self.slot(state, &slot), location) else {
            return Err(self.fail(EngineError::Misplaced { what: block_name(plan, &slot) }));
        };
        let mut logged = None;
        if direction == Direction::Write
            && let Location::Opaque(array, _) = location
            && let Some(log) = self.log.as_ref().filter(|_| self.logs(plan))
        {
            let begun = self.moment();
            let (call, argument) = state.writers[index as usize];
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.begin(call, argument).map_err(|e| self.store_fault(plan, &slot, e))?;
            logged = Some(Logged { call, argument, array });
            self.record_overhead(plan, state.at.worker, Activity::Journal, begun);
        }
        let owned = slot.owned_bytes(plan.slot_unit_bytes);
        let slack = Slack {
            before_bytes: slot.offset_bytes - owned.start,
            after_bytes: owned.end - slot.offset_bytes - slot.bytes,
        };
        let (timed, name) = (self.traces(), || block_name(plan, &slot));
        let block = Transfer { direction, location, offset_bytes: slot.offset_bytes, slack, timed, name: &name };
        let t = self.recorder(state.at.worker).start();
        let issued = self.issued(state, index, direction, t);
        // SAFETY: what the slot owns lies in the child's memory (`slot`), which outlives the run's transfers (`child` waits for
        // them), as do the places; the plan says that nobody uses that, or the block in the parent, until the transfer is
        // awaited.
        let receipt = unsafe { own.child.issue(&block) };
        state.pending.push(match receipt {
            Ok(Some(receipt)) => Pending::UnderWay { receipt, issued, slot, logged },
            moved => {
                let edge = plan.edge as u16;
                let end = self.recorder(state.at.worker).wait(t, edge, state.at.worker as u32, issued.number);
                if timed {
                    self.recorder(state.at.worker).transfer([t, t, end], edge, issued.number, issued.slot, issued.flow);
                }
                moved.map_err(|e| self.store_fault(plan, &slot, e))?;
                self.log_done(state, &slot, logged, end)?;
                Pending::Done
            }
        });
        Ok(())
    }

    /// What was logged as begun is stored, since a moment.
    fn log_done(
        &self,
        state: &ChildState<'_>,
        slot: &Slot,
        logged: Option<Logged<'_>>,
        since: Tick,
    ) -> Result<(), Ended> {
        if let (Some(Logged { call, argument, array }), Some(log)) = (logged, &self.log) {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.done(call, argument, array).map_err(|e| self.store_fault(state.plan, slot, e))?;
            self.record_overhead(state.plan, state.at.worker, Activity::Journal, since);
        }
        Ok(())
    }

    /// Whether somebody wants to know who wrote what a slot of the plan holds.
    fn logs(&self, plan: &Plan) -> bool {
        self.is_root(plan) && (self.log.is_some() || self.sides.is_some())
    }

    /// In which of an array's two places a slot's block lies, or into which it goes.
    fn side(&self, state: &ChildState<'_>, index: u32, direction: Direction) -> usize {
        let users = match direction {
            Direction::Read => &state.readers,
            Direction::Write => &state.writers,
        };
        match (self.sides, users.get(index as usize)) {
            (Some(sides), Some(&(call, argument))) => match direction {
                Direction::Read => sides.reads(call, argument),
                Direction::Write => sides.writes(call, argument),
            },
            _ => 0,
        }
    }

    fn wait_for(&self, state: &mut ChildState<'_>, transfer: u32) -> Result<(), Ended> {
        let pending = std::mem::replace(&mut state.pending[transfer as usize], Pending::Done);
        let Pending::UnderWay { receipt, issued, slot, logged } = pending else { return Ok(()) };
        let edge = state.plan.edge as u16;
        let t = self.recorder(state.at.worker).start();
        let result = receipt.wait();
        let (issuer, number) = (state.at.worker as u32, issued.number);
        let end = self.recorder(state.at.worker).wait(t, edge, issuer, number);
        // The workers below wait as well: they have nothing to do until their leader goes on.
        for worker in self.led(state.plan, state.at).skip(1) {
            self.recorder(worker).interval(Kind::Wait, t, end, edge, issuer, number, 0);
        }
        self.record_transfer(state, issued, &*receipt);
        result.map_err(|e| self.store_fault(state.plan, &slot, e))?;
        self.log_done(state, &slot, logged, end)?;
        if self.abort.is_raised() { Err(Ended) } else { Ok(()) }
    }
}

/// A leaf variant and all that it is given, to be executed by any thread.
struct Leaf<'a> {
    task: &'a dyn DynTask,
    views: &'a [RawView],
    scalars: &'a Scalars,
    scratch: (*mut u8, usize),
    processor: &'static str,
}

// SAFETY: addresses may be known to any thread; who executes it vouches for what lies there.
unsafe impl Send for Leaf<'_> {}
// SAFETY: as above.
unsafe impl Sync for Leaf<'_> {}

impl Leaf<'_> {
    /// Executes it, once.
    ///
    /// # Safety
    /// The blocks are initialised and lie where this thread can use them, those that are written nobody else's; so does the
    /// scratch memory.
    #[inline]
    unsafe fn execute(&self) {
        // SAFETY: the caller vouches for it.
        let scratch = unsafe { std::slice::from_raw_parts_mut(self.scratch.0, self.scratch.1) };
        let mut context = LeafContext::new(self.scalars, scratch).on(self.processor);
        // SAFETY: as above.
        unsafe { self.task.leaf(self.views, &mut context) };
    }
}

/// Has the processor of a child's driver execute a leaf.
#[cold]
fn execute_there(own: &Reserved, leaf: &Leaf<'_>) -> std::thread::Result<()> {
    // SAFETY: the plan has awaited all transfers of what the leaf uses; for the leaf, see where it is made.
    unsafe { own.child.run(&mut || leaf.execute()) }
}

/// For each slot of a child, the call, as the whole program numbers it, that uses its content first, and by which argument.
fn first_uses(plan: &Plan, steps: &ChildPlan) -> Vec<(u32, u32)> {
    let mut first = vec![None; steps.slots.len()];
    for op in &steps.ops {
        if let Op::Run { call, places: Places::Slots { first: at } } = *op {
            for argument in 0..plan.calls[call as usize].args.len() as u32 {
                let slot = steps.places[(at + argument) as usize];
                first[slot as usize].get_or_insert((in_program(plan, call), argument));
            }
        }
    }
    first.into_iter().map(Option::unwrap_or_default).collect()
}
