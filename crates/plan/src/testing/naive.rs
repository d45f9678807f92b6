//! Plans without any cleverness, right by their simplicity: a second opinion beside the passes.

use super::rng::Rng;
use crate::plan::{Body, CallClass, ChildPlan, Op, Places, Plan, Slot, Traffic};
use multigrain_machine::Driver;
use multigrain_program::{ArrayDecl, Call, DynTask, Program};
use std::sync::Arc;

/// What a naive plan is to look like.
#[derive(Clone, Copy, Debug)]
pub struct Naive {
    /// Number of children.
    pub children: usize,
    /// Runs on views of the parent memory instead of slots.
    pub views: bool,
    /// Seed of the choice of a child for each call.
    pub seed: u64,
}

/// A plan of a program's own calls, unsplit, in their order: each waits for the one before, fetches what it reads, runs
/// as a leaf, and stores what it writes.
pub fn naive_plan(program: &Program, naive: Naive) -> Plan {
    plan_of(program.arrays(), program.tasks(), program.calls(), naive)
}

fn plan_of(arrays: &[ArrayDecl], tasks: &[Arc<dyn DynTask>], calls: &[Call], naive: Naive) -> Plan {
    let mut rng = Rng::new(naive.seed);
    let mut steps = vec![Steps::default(); naive.children];
    let mut traffic = Traffic::default();
    let mut before: Option<(usize, u32)> = None;
    let (mut class_of, mut classes) = (Vec::new(), Vec::<CallClass>::new());
    let mut scratch = 0;
    for (number, call) in calls.iter().enumerate() {
        let (task, shape) = (&tasks[call.task as usize], call.shape());
        let scratch_bytes = task.scratch_bytes(&shape, u64::MAX);
        scratch = scratch.max(scratch_bytes);
        let known = classes.iter().position(|c| c.task == call.task && c.shape == shape);
        class_of.push(known.unwrap_or(classes.len()) as u32);
        if known.is_none() {
            classes.push(CallClass { task: call.task, shape, body: Body::Leaf { scratch_bytes } });
        }

        let child = rng.below(naive.children as u64) as usize;
        let mine = &mut steps[child];
        if let Some((other, signals)) = before
            && other != child
        {
            mine.plan.ops.push(Op::Wait { child: other as u32, signals });
        }
        let run = number as u32;
        if naive.views {
            mine.plan.ops.push(Op::Run { call: run, places: Places::Views });
        } else {
            let first_slot = mine.plan.slots.len() as u32;
            let first = mine.plan.places.len() as u32;
            let mut offset_bytes = 0;
            for arg in &call.args {
                let bytes = arg.region.elements() * arrays[arg.array as usize].element.size_bytes();
                mine.plan.places.push(mine.plan.slots.len() as u32);
                mine.plan.slots.push(Slot { offset_bytes, bytes, block: *arg });
                mine.plan.staging_bytes = mine.plan.staging_bytes.max(offset_bytes + bytes);
                offset_bytes = (offset_bytes + bytes).next_multiple_of(128);
            }
            let slots = || (first_slot..).zip(task.params());
            for (slot, _) in slots().filter(|(_, param)| param.access.reads()) {
                mine.transfer(|transfer| Op::Fetch { transfer, slot });
                traffic.bytes_down += mine.plan.slots[slot as usize].bytes;
            }
            mine.await_all();
            mine.plan.ops.push(Op::Run { call: run, places: Places::Slots { first } });
            for (slot, _) in slots().filter(|(_, param)| param.access.writes()) {
                mine.transfer(|transfer| Op::Store { transfer, slot });
                traffic.bytes_up += mine.plan.slots[slot as usize].bytes;
            }
            mine.await_all();
        }
        mine.plan.ops.push(Op::Signal);
        mine.signals += 1;
        before = Some((child, mine.signals));
    }
    traffic.transfers = steps.iter().map(|s| u64::from(s.issued)).sum();
    let children: Vec<ChildPlan> = steps.into_iter().map(|s| s.plan).collect();
    let capacity_bytes = children.iter().map(|c| c.staging_bytes).max().unwrap_or(0);
    Plan {
        edge: 0,
        is_division: false,
        parent: "parent".into(),
        child: "child".into(),
        driver: if naive.views { Driver::SHARED } else { Driver::LOCAL },
        capacity_bytes,
        slot_unit_bytes: 1,
        scratch_bytes: scratch,
        fixed_bytes: 0,
        total_bytes: capacity_bytes + scratch,
        arrays: arrays.to_vec(),
        tasks: tasks.to_vec(),
        calls: calls.to_vec(),
        numbers: Vec::new(),
        sources: Arc::default(),
        class_of,
        classes,
        children,
        balanced: false,
        passes: Vec::new(),
        traffic,
        tunables: Vec::new(),
        ways: crate::Ways::default(),
        seconds: 0.0,
    }
}

/// The steps of one child while they are written down.
#[derive(Clone, Default)]
struct Steps {
    plan: ChildPlan,
    issued: u32,
    awaited: u32,
    signals: u32,
}

impl Steps {
    fn transfer(&mut self, op: impl FnOnce(u32) -> Op) {
        self.plan.ops.push(op(self.issued));
        self.issued += 1;
    }

    fn await_all(&mut self) {
        self.plan.ops.extend((self.awaited..self.issued).map(|transfer| Op::Await { transfer }));
        self.awaited = self.issued;
    }
}
