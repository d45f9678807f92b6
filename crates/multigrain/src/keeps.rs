//! What a run keeps in the main memory, in bytes: its plan, workers, tables, blocks and buffers; how much of that a memory has room
//! for, and what is told where it has not.

use crate::choose;
use crate::error::Error;
use crate::job::Job;
use crate::ledger::Need;
use crate::limits::root_is_disk;
use crate::means::BUFFERS_SHARE;
use multigrain_engine::{Memories, MemoryBytes, Part};
use multigrain_machine::{Driver, Machine, Memory, readable_bytes};
use multigrain_plan::{Enough, Plan, PlanOptions};
use multigrain_program::ArrayDecl;

/// What a plan takes while it is made and run, for each of its calls: its lists of steps and slots, and what the passes
/// find on the way to them. Measured: 2.2 KiB.
pub(crate) const PLAN_CALL_BYTES: u64 = 2304;

/// So much of the plan, of local stores beside a disk, and of an application's tables is part of what the process takes for
/// itself, as its code and its stacks are: with those, 10 to 12 MiB, it is what runs take beside their budget.
pub(crate) const OWN_BYTES: u64 = 4 << 20;

/// What a worker takes besides scratch memory: the touched pages of its stack and signal stack, its queues and lists. Measured
/// with 1000 workers: 19 KiB.
const WORKER_BYTES: u64 = 20 << 10;

/// The part of the main memory that a plan may take beyond that.
pub(crate) const PLAN_SHARE: u64 = 2;

/// The part of the main memory that lists of calls may take beyond that.
const LISTED_SHARE: u64 = 64;
/// So many plans of such lists are expected: of parts of full size, and of those at the ends of axes.
const PLANS_LISTED: u64 = 2;
/// Shorter ones are no list.
pub(crate) const LISTED_MIN: u64 = 16;

/// A memory that has so many bytes left when its plan and its transfer buffers take all that they may.
pub(crate) fn leaves(bytes: u64) -> u64 {
    let parts = PLAN_SHARE * BUFFERS_SHARE;
    bytes.saturating_mul(parts).div_ceil(parts - PLAN_SHARE - BUFFERS_SHARE)
}

/// Refuses work before a run that takes more of a main memory than there can be, which is what a process takes for itself, too.
pub(crate) fn check_reading(app: &str, what: &str, bytes: u64, main: &Memory) -> Result<(), Error> {
    if bytes <= main.capacity_bytes.saturating_add(OWN_BYTES) {
        return Ok(());
    }
    Err(Error::DoesNotFit {
        what: format!(
            "{app} does not fit: {what} takes {}; memory {} holds {}",
            readable_bytes(bytes),
            main.name,
            readable_bytes(main.capacity_bytes)
        ),
        memory: main.name.clone(),
        enough: Enough::from_need(bytes.saturating_sub(OWN_BYTES)),
        instead: "",
    })
}

/// The most bytes of tables that leave a plan room in a main memory.
pub(crate) fn kept_bytes_max(main: &Memory) -> u64 {
    OWN_BYTES.saturating_add(main.capacity_bytes / PLAN_SHARE)
}

/// Refuses tables that leave a plan no room in a main memory; `others` is what is known to be needed beside them.
pub(crate) fn check_kept(app: &str, what: &str, kept_bytes: u64, others: u64, main: &Memory) -> Result<(), Error> {
    if kept_bytes <= kept_bytes_max(main) {
        return Ok(());
    }
    let own = kept_bytes.saturating_sub(OWN_BYTES);
    let needed = own.saturating_mul(PLAN_SHARE);
    Err(Error::DoesNotFit {
        what: format!(
            "{app} does not fit: {what} take {}, of which {} count and may fill half of memory {}, which holds {}",
            readable_bytes(kept_bytes),
            readable_bytes(own),
            main.name,
            readable_bytes(main.capacity_bytes)
        ),
        memory: main.name.clone(),
        enough: Enough::from_need(needed.max(own.saturating_add(others))),
        instead: "",
    })
}

pub(crate) fn workers_bytes(machine: &Machine) -> u64 {
    (machine.workers() as u64).saturating_mul(WORKER_BYTES)
}

/// How long a list may be of a plan that takes so many bytes with `others`.
pub(crate) fn calls_beside(bytes: u64, others: u64) -> u64 {
    held_beside(bytes, others).min(1 << 20)
}

/// How many calls such a plan may have in all.
pub(crate) fn held_beside(bytes: u64, others: u64) -> u64 {
    OWN_BYTES.saturating_add(bytes).saturating_sub(others) / PLAN_CALL_BYTES
}

/// The capacity with which a plan that may take this share of it has room for its calls beside others, when there are `calls` of
/// them with `capacity_bytes` and fewer by as much as blocks are larger.
pub(crate) fn enough_for(calls: u64, capacity_bytes: u64, share: u64, others: u64) -> u64 {
    // calls * capacity / enough * PLAN_CALL_BYTES = OWN_BYTES + enough / share - others
    let product = calls as f64 * PLAN_CALL_BYTES as f64 * capacity_bytes as f64 * share as f64;
    let half = (others as f64 - OWN_BYTES as f64) * share as f64 / 2.0;
    (half + half.hypot(product.sqrt())).max(capacity_bytes as f64) as u64
}

/// How long lists of calls are beside so much memory, where calls can be parts instead: so that plans of several shapes
/// take no more than the process takes for itself.
pub(crate) fn listed_max(capacity_bytes: u64) -> u64 {
    ((OWN_BYTES + capacity_bytes / LISTED_SHARE) / PLANS_LISTED / PLAN_CALL_BYTES)
        .min(PlanOptions::default().listed_max)
}

/// What every run of a job keeps, whatever its plan, with so many bytes of transfer buffers for files.
pub(crate) fn known_bytes(machine: &Machine, job: &Job, buffers: u64) -> u64 {
    let on_disk = root_is_disk(machine);
    let arrays = if on_disk { 0 } else { job.arrays().iter().map(ArrayDecl::bytes).fold(0, u64::saturating_add) };
    let buffers = if on_disk || job.is_in_files() { buffers } else { 0 };
    let known = [arrays, buffers, job.kept_bytes(), workers_bytes(machine)];
    known.into_iter().fold(0, u64::saturating_add)
}

/// What a run keeps in the main memory, in bytes.
pub(crate) struct Keeps {
    /// The arrays, where they lie in memory, with the partial results of the program's reductions.
    pub(crate) arrays: u64,
    pub(crate) memories: MemoryBytes,
    /// Transfer buffers, where files are read or written.
    buffers: u64,
    /// What the plan, workers, local stores and the application's own tables take beyond [`OWN_BYTES`].
    pub(crate) own: u64,
    /// What they leave of these.
    own_left: u64,
    /// What work on the results takes.
    work: u64,
}

impl Keeps {
    /// What runs of a plan keep on a machine; disks have so many bytes of transfer buffers.
    pub(crate) fn of(machine: &Machine, plan: &Plan, job: &Job, buffers: u64, part: Part) -> Result<Keeps, Error> {
        let on_disk = plan.driver.files;
        let memories = Memories::bytes(machine, plan, part);
        let own = [plan_bytes(plan), workers_bytes(machine), memories.local, job.kept_bytes()];
        let own = own.into_iter().fold(0, u64::saturating_add);
        Ok(Keeps {
            arrays: if on_disk { 0 } else { plan.arrays.iter().fold(0, |sum: u64, a| sum.saturating_add(a.bytes())) },
            memories,
            buffers: if on_disk || job.is_in_files() { buffers } else { 0 },
            own: own.saturating_sub(OWN_BYTES),
            own_left: OWN_BYTES.saturating_sub(own),
            work: job.work_bytes(),
        })
    }

    /// All of it.
    pub(crate) fn bytes(&self) -> u64 {
        let MemoryBytes { staging, partials, scratch, .. } = self.memories;
        [self.arrays, staging, partials, scratch, self.buffers, self.own].into_iter().fold(0, u64::saturating_add)
    }

    /// Of work on the results, what does not lie in what a process takes for itself.
    fn work_beside(&self) -> u64 {
        self.work.saturating_sub(self.own_left)
    }

    /// What is needed after a run, when there is work on its results.
    pub(crate) fn afterwards(&self) -> u64 {
        let all = [self.arrays, self.buffers, self.own, self.work_beside()];
        all.into_iter().fold(0, u64::saturating_add)
    }

    /// What is set aside for the plan: with less room for blocks there are more calls.
    pub(crate) fn set_aside(&self, capacity_bytes: u64) -> u64 {
        self.own + self.own.min(capacity_bytes.saturating_sub(self.own)) / 4
    }

    /// All that a runtime has to find beside what others hold.
    pub(crate) fn need(&self) -> Need {
        Need { bytes: self.bytes().max(self.afterwards()), own_left_bytes: self.own_left }
    }

    /// Memories and buffers, without what a process takes for itself or a plan holds.
    pub(crate) fn without_own(&self) -> u64 {
        self.bytes() - self.own
    }

    /// What outlives a run besides the arrays, and how much of what a process takes for itself is left.
    pub(crate) fn beside(&self) -> (u64, u64) {
        (self.buffers.saturating_add(self.own), self.own_left)
    }

    pub(crate) fn does_not_fit(&self, job: &Job, memory: &str, capacity_bytes: u64, driver: Driver) -> Error {
        let MemoryBytes { staging, partials, scratch, .. } = self.memories;
        let parts = [(staging, "blocks"), (partials, "partial results"), (scratch, "scratch memory")];
        self.parts_do_not_fit(&parts, self.bytes(), job, memory, capacity_bytes, driver)
    }

    /// That a run would fit, and work on its results would not.
    pub(crate) fn leaves_too_little(&self, job: &Job, memory: &str, capacity_bytes: u64, driver: Driver) -> Error {
        // Some of it may lie in what a process takes for itself.
        let what = job.work().map_or("work on the results", |work| &work.what);
        let what = format!("{what} after the run ({} in all) takes", readable_bytes(self.work));
        let parts = [(self.work_beside(), &what[..])];
        self.parts_do_not_fit(&parts, self.afterwards(), job, memory, capacity_bytes, driver)
    }

    /// With some parts beside those that are always there.
    fn parts_do_not_fit(
        &self,
        parts: &[(u64, &str)],
        bytes: u64,
        job: &Job,
        memory: &str,
        capacity_bytes: u64,
        driver: Driver,
    ) -> Error {
        let always = [(self.buffers, "transfer buffers"), (self.own, "its plan, workers, local stores and tables")];
        let parts: Vec<_> = [(self.arrays, "its arrays")].iter().chain(parts).chain(&always).copied().collect();
        let text = |(bytes, what): &(u64, &str)| match *what {
            "its arrays" => format!("its arrays take {}", readable_bytes(*bytes)),
            what => format!("{what} {}", readable_bytes(*bytes)),
        };
        let parts: Vec<String> = parts.iter().filter(|(bytes, _)| *bytes > 0).map(text).collect();
        Error::DoesNotFit {
            what: format!(
                "{} does not fit: {}; memory {memory} holds {}",
                job.app,
                parts.join(", "),
                readable_bytes(capacity_bytes)
            ),
            memory: memory.to_owned(),
            enough: Enough::from_need(bytes),
            instead: if driver.files { "" } else { choose::OR_A_DISK },
        }
    }
}

/// The longest list that shorter ones would take the place of: of parts, those of their own plans.
pub(crate) fn longest_list(plan: &Plan) -> u64 {
    let own = plan.all().into_iter().filter(|below| !below.is_in_parts()).map(|below| below.calls.len());
    let longest = if plan.is_in_parts() { own.max().unwrap_or(0) } else { plan.calls.len() };
    longest as u64
}

/// What a plan takes as long as somebody has it: for its calls and those of all that it holds. Parts have no steps, slots or
/// hazards, and take as much while they are made.
pub(crate) fn plan_bytes(plan: &Plan) -> u64 {
    plan.all().into_iter().map(Plan::listed_calls).sum::<u64>().saturating_mul(PLAN_CALL_BYTES)
}
