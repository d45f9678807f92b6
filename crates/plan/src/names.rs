//! What the numbers in the records of a run stand for: plans and slots, numbered once before the run. Measured and
//! simulated runs have the same.

use crate::plan::{Op, Places, Plan};
use multigrain_machine::{Branch, Layout, Machine};
use multigrain_trace::{ArrayInfo, ClockInfo, EdgeInfo, Header, PlanInfo, SlotInfo, Use};
use std::collections::HashMap;

/// The numbers in the records of one plan.
pub struct PlanNumbers {
    /// Of the plan.
    pub plan: u32,
    /// For each child, of its first slot.
    first_slots: Vec<u32>,
    /// For each task of the plan, of its name.
    tasks: Vec<u16>,
}

impl PlanNumbers {
    /// The number of a child's slot.
    pub fn slot(&self, child: usize, slot: u32) -> u32 {
        self.first_slots.get(child).map_or(multigrain_trace::NO_SUBJECT, |first| first + slot)
    }

    /// The number of the name of the plan's task.
    pub fn task(&self, task: u32) -> u16 {
        self.tasks.get(task as usize).copied().unwrap_or(multigrain_trace::NO_INDEX)
    }
}

/// The numbers of plans and slots in the records of one run.
pub struct Names {
    /// For each plan, by its address.
    plans: HashMap<usize, PlanNumbers>,
    /// The numbers of tasks are those of the names in the header.
    tasks: HashMap<String, u16>,
    header: Header,
    slots: Vec<SlotInfo>,
    uses: Vec<Use>,
}

fn address(plan: &Plan) -> usize {
    std::ptr::from_ref(plan).addr()
}

impl Names {
    /// Numbers everything in `plan` and the plans below it.
    pub fn of(program: &str, machine: &Machine, layout: &Layout, plan: &Plan) -> Names {
        let edge = |branch: &Branch| {
            let child = branch.child.map(|id| machine.memory(id));
            let edge = child.and_then(|child| child.edge.as_ref());
            let known = |number: f64| (number.is_finite() && number > 0.0).then_some(number);
            EdgeInfo {
                name: branch.name(machine),
                driver: edge.map_or("", |e| e.driver.name).to_owned(),
                children: u32::try_from(branch.children).unwrap_or(u32::MAX),
                capacity_bytes: child.unwrap_or(machine.memory(branch.parent)).capacity_bytes,
                read_bytes_per_second: edge.and_then(|e| known(e.read_bytes_per_second)),
                write_bytes_per_second: edge.and_then(|e| known(e.write_bytes_per_second)),
                latency_ns: edge.and_then(|e| known(e.latency_ns)),
            }
        };
        let header = Header {
            program: program.to_owned(),
            machine: machine.name.clone(),
            workers: (0..machine.workers()).map(|w| format!("worker {w}")).collect(),
            edges: layout.branches().iter().map(edge).collect(),
            ..Header::default()
        };
        let mut names =
            Names { plans: HashMap::new(), tasks: HashMap::new(), header, slots: Vec::new(), uses: Vec::new() };
        plan.all().into_iter().for_each(|plan| names.add(plan));
        names.uses.sort_unstable();
        names
    }

    fn add(&mut self, plan: &Plan) {
        let number = self.header.plans.len() as u32;
        let array = |a: &multigrain_program::ArrayDecl| ArrayInfo {
            name: a.name.clone(),
            element: a.element.name().to_owned(),
            shape: a.shape.dims().to_vec(),
        };
        self.header.plans.push(PlanInfo {
            edge: plan.edge as u16,
            arrays: plan.arrays.iter().map(array).collect(),
            calls: plan.calls.len() as u32,
        });
        let tasks = plan.tasks.iter().map(|task| self.task(task.name())).collect();
        let mut first_slots = Vec::with_capacity(plan.children.len());
        for (child, steps) in plan.children.iter().enumerate() {
            let first = self.slots.len() as u32;
            first_slots.push(first);
            self.slots.extend(steps.slots.iter().map(|slot| SlotInfo {
                plan: number,
                child: child as u32,
                array: slot.block.array,
                offset_bytes: slot.offset_bytes,
                bytes: slot.bytes,
                start: slot.block.region.start().to_vec(),
                len: slot.block.region.len().to_vec(),
            }));
            for op in &steps.ops {
                if let Op::Run { call, places: Places::Slots { first: place } } = *op {
                    let arguments = plan.calls[call as usize].args.len();
                    let places = &steps.places[place as usize..place as usize + arguments];
                    self.uses.extend(places.iter().map(|slot| Use { slot: first + slot, call }));
                }
            }
        }
        self.plans.insert(address(plan), PlanNumbers { plan: number, first_slots, tasks });
    }

    /// The names for the trace of a run that is about to begin, with the clock that its records will be timed by.
    pub fn header(&self, clock: ClockInfo) -> Header {
        Header { clock, ..self.header.clone() }
    }

    /// The slots, by number.
    pub fn slots(&self) -> &[SlotInfo] {
        &self.slots
    }

    /// Which calls work on which slots, sorted.
    pub fn uses(&self) -> &[Use] {
        &self.uses
    }

    /// The numbers of a plan that is part of the run.
    pub fn of_plan(&self, plan: &Plan) -> Option<&PlanNumbers> {
        self.plans.get(&address(plan))
    }

    /// The number of a task's name.
    fn task(&mut self, name: &str) -> u16 {
        if let Some(&number) = self.tasks.get(name) {
            return number;
        }
        let number = u16::try_from(self.header.tasks.len()).unwrap_or(multigrain_trace::NO_INDEX);
        self.header.tasks.push(name.to_owned());
        self.tasks.insert(name.to_owned(), number);
        number
    }
}
