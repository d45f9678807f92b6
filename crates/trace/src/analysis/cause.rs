//! What a stall came from, and what would have avoided it: derived from what the edge and the other workers did at the
//! time, and from who held the place that the block needed.

use super::timeline::{Moved, Timeline};
use crate::record::{Flow, Idleness, Kind, NO_SUBJECT, NO_TRANSFER, Record, Taken};
use crate::units::{bytes, rate, time};

/// What a stall came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The edge was busy all the time: its bandwidth is the limit.
    Bandwidth,
    /// The transfer took the edge's latency rather than its bandwidth.
    Latency,
    /// The transfer could have been issued earlier: its place was free and the edge had time.
    LateIssue,
    /// The place that the block needed was in use until the transfer was issued.
    SlotBusy,
    /// The driver of the edge copies while the worker waits.
    Synchronous,
    /// Nothing had been computed yet that the transfer could have hidden behind.
    StartUp,
    /// Nothing was left to be computed that the transfer could have hidden behind.
    Drain,
    /// Another worker had more or longer leaves.
    Imbalance,
    /// The operating system put others before a worker that could have gone on.
    SetAside,
    /// Another worker waited by itself in the middle of a leaf: it was stopped, or a page or a lock was not there.
    Stopped,
    /// A leaf of another worker took far longer than such leaves usually take.
    Slow,
    /// Another worker waited in turn.
    OtherWaited,
    /// The runtime handed work over or brought workers together.
    Handover,
    /// There was work for fewer workers.
    Serial,
    /// The trace does not say.
    Unknown,
}

impl Cause {
    /// A stable name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Bandwidth => "bandwidth",
            Cause::Latency => "latency",
            Cause::LateIssue => "late issue",
            Cause::SlotBusy => "slot busy",
            Cause::Synchronous => "synchronous",
            Cause::StartUp => "start-up",
            Cause::Drain => "drain",
            Cause::Imbalance => "imbalance",
            Cause::SetAside => "set aside",
            Cause::Stopped => "stopped",
            Cause::Slow => "slow leaf",
            Cause::OtherWaited => "other waited",
            Cause::Handover => "handover",
            Cause::Serial => "serial",
            Cause::Unknown => "unknown",
        }
    }
}

/// A transfer that was waited for.
#[derive(Clone, Debug, PartialEq)]
pub struct StallTransfer {
    /// Its times, its edge and its issuer.
    pub moved: Moved,
    /// The block, if the trace knows it.
    pub block: Option<String>,
    /// Its bytes; 0 if the trace does not know them.
    pub bytes: u64,
}

/// A cause with the reasons for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The cause.
    pub cause: Cause,
    /// What the trace shows.
    pub shown: String,
    /// What would have avoided it.
    pub remedy: String,
}

fn because(cause: Cause, shown: String, remedy: impl Into<String>) -> Explanation {
    Explanation { cause, shown, remedy: remedy.into() }
}

/// Part of a stall that must have been avoidable in one way for that way to be named.
const WORTH_NAMING: f64 = 0.5;
/// Part of the time from which on an edge counts as busy all the time.
const BUSY: f64 = 0.9;

/// A leaf that takes more than so many times the median is slow for another reason than its size.
const SLOW_FROM: u64 = 2;

/// Explains a stall of `worker` from `from` to `to`.
pub(super) fn explain(
    timeline: &Timeline<'_>,
    record: &Record,
    worker: u32,
    (from, to): (u64, u64),
    transfer: Option<&StallTransfer>,
) -> Explanation {
    let about = About { timeline, worker, from, to };
    if let Some(explanation) = about.set_aside(worker, "this worker") {
        return explanation;
    }
    match (record.kind, transfer) {
        (Kind::Wait, Some(transfer)) => about.transfer(transfer),
        (Kind::Wait, None) if record.number == NO_TRANSFER => because(
            Cause::Synchronous,
            "a block that one child had fetched was broadcast among its siblings, each of which waits for it".into(),
            "larger blocks, each used longer while it is there",
        ),
        (Kind::Wait, None) => because(
            Cause::Unknown,
            "the trace does not have the transfer that was waited for".into(),
            "trace the run again; records may have been dropped",
        ),
        _ => about.idle(record),
    }
}

struct About<'t, 'a> {
    timeline: &'t Timeline<'a>,
    worker: u32,
    from: u64,
    to: u64,
}

impl About<'_, '_> {
    fn seconds(&self, ticks: u64) -> f64 {
        self.timeline.trace.seconds(ticks)
    }

    fn time(&self, ticks: u64) -> String {
        time(self.seconds(ticks))
    }

    /// A moment, counted from the start of the run.
    fn at(&self, tick: u64) -> String {
        self.time(tick.saturating_sub(self.timeline.trace.start()))
    }

    /// If a worker could have gone on for most of the stall and the operating system let others run: who.
    fn set_aside(&self, worker: u32, name: &str) -> Option<Explanation> {
        let (ticks, by) = self.timeline.set_aside(worker, self.from, self.to);
        if ticks == 0 || (ticks as f64) < WORTH_NAMING * (self.to - self.from) as f64 {
            return None;
        }
        let by = self.timeline.trace.end.observed.name(by);
        let shown =
            format!("for {} of it {name} could have run, and the operating system let {by} run", self.time(ticks));
        Some(because(Cause::SetAside, shown, "a processor that nothing else uses, or fewer workers"))
    }

    fn leaf_before(&self, t: u64) -> bool {
        self.timeline.trace.records.iter().take_while(|r| r.start < t).any(|r| r.kind == Kind::Leaf)
    }

    fn leaf_after(&self, t: u64) -> bool {
        self.timeline.trace.records.iter().rev().any(|r| r.kind == Kind::Leaf && r.end > t)
    }

    fn transfer(&self, transfer: &StallTransfer) -> Explanation {
        let (moved, length) = (&transfer.moved, (self.to - self.from) as f64);
        let what = moved.flow.name();
        let service = self.seconds(moved.ended - moved.started);
        let speed = |seconds: f64| rate(transfer.bytes as f64 / seconds.max(1e-12));
        if moved.issued >= self.from && moved.started == moved.issued && moved.ended.abs_diff(self.to) <= 1 {
            let shown =
                format!("the {what} of {} copies while its worker waits: {}", bytes(transfer.bytes), speed(service));
            return because(Cause::Synchronous, shown, "larger blocks, each used longer while it is there");
        }
        if !self.leaf_before(self.from) {
            let shown = format!("nothing had been computed yet; {} came at {}", bytes(transfer.bytes), speed(service));
            return because(Cause::StartUp, shown, "a smaller first block");
        }
        if !self.leaf_after(self.to) {
            let shown = format!("nothing was left to compute; {} went at {}", bytes(transfer.bytes), speed(service));
            return because(Cause::Drain, shown, "a smaller last block");
        }
        if let Some(explanation) = self.latency(transfer, service) {
            return explanation;
        }
        // What could have run earlier: the time in which the edge stood still before the transfer was issued.
        let still = |from: u64, to: u64| {
            let busy = self.timeline.busy(moved.edge).map_or(0, |busy| busy.between(from, to));
            (to.saturating_sub(from)).saturating_sub(busy)
        };
        let free = self.place_free_at(moved);
        let earliest = free.as_ref().map_or(self.timeline.trace.start(), |(t, _)| *t);
        let unused = still(earliest, moved.issued);
        if moved.flow == Flow::Down && unused as f64 >= WORTH_NAMING * length {
            let since = match &free {
                Some((t, _)) => format!("its place was free at {}", self.at(*t)),
                None => "its place was never in use before".into(),
            };
            let shown = format!(
                "{since}, the {what} was issued at {}, and the edge stood still for {} in between",
                self.at(moved.issued),
                self.time(unused)
            );
            let saved = self.time(unused.min(self.to - self.from));
            return because(Cause::LateIssue, shown, format!("fetching further ahead would have hidden {saved}"));
        }
        let window = self.last_stall_on(moved.edge).unwrap_or(self.timeline.trace.start());
        let idle = still(window, moved.issued);
        let busy_share = |from: u64, to: u64| 1.0 - still(from, to) as f64 / to.saturating_sub(from).max(1) as f64;
        if idle as f64 >= WORTH_NAMING * length && busy_share(window, self.to) < BUSY {
            return self.slot_busy(transfer, free, idle);
        }
        let busy = 100.0 * busy_share(window.min(moved.issued), self.to);
        let nominal = self.timeline.trace.header.edges.get(usize::from(moved.edge)).and_then(|edge| match moved.flow {
            Flow::Down => edge.read_bytes_per_second,
            Flow::Up => edge.write_bytes_per_second,
        });
        let (volume, seconds) = self.volume(moved.edge, window.min(moved.issued), self.to);
        let says = nominal.map_or(String::new(), |n| format!("; the machine file says {}", rate(n)));
        let shown = format!(
            "the edge was busy for {busy:.0} % of the {} before the wait ended, at {}{says}",
            self.time(self.to - window.min(moved.issued)),
            rate(volume / seconds.max(1e-12)),
        );
        because(Cause::Bandwidth, shown, "fewer bytes (more memory, larger blocks) or a faster edge")
    }

    fn latency(&self, transfer: &StallTransfer, service: f64) -> Option<Explanation> {
        let edge = self.timeline.trace.header.edges.get(usize::from(transfer.moved.edge))?;
        let latency = edge.latency_ns? / 1e9;
        let moving = transfer.bytes as f64 / edge.read_bytes_per_second?;
        (transfer.bytes > 0 && moving < latency && service < 4.0 * latency).then(|| {
            let shown = format!(
                "{} take {} at the edge's bandwidth, its latency is {}",
                bytes(transfer.bytes),
                time(moving),
                time(latency)
            );
            because(Cause::Latency, shown, "fewer, larger transfers, or more of them under way at once")
        })
    }

    fn slot_busy(&self, transfer: &StallTransfer, free: Option<(u64, String)>, idle: u64) -> Explanation {
        let moved = &transfer.moved;
        let idle = self.time(idle);
        let more = bytes(transfer.bytes);
        match (moved.flow, free) {
            (Flow::Down, Some((t, holder))) => because(
                Cause::SlotBusy,
                format!("its place held {holder} until {}; the edge stood still for {idle} before", self.at(t)),
                format!("{more} more memory, so that it can be fetched while the other is in use"),
            ),
            (Flow::Down, None) => because(
                Cause::SlotBusy,
                format!("it was issued at {}; the edge stood still for {idle} before", self.at(moved.issued)),
                format!("fetching further ahead, with {more} more memory"),
            ),
            (Flow::Up, _) => because(
                Cause::SlotBusy,
                format!(
                    "the block was complete at {}, and its place, or its bytes, were needed before the store had ended; \
                     the edge stood still for {idle} before",
                    self.at(moved.issued)
                ),
                format!("{more} more memory, so that others need not wait for this store"),
            ),
        }
    }

    /// When the addresses of a transfer's slot were last used for another block before it was issued, and by what.
    fn place_free_at(&self, moved: &Moved) -> Option<(u64, String)> {
        let trace = self.timeline.trace;
        let slot = trace.slots.get(moved.slot as usize)?;
        let others = |number: &u32| {
            *number != moved.slot && trace.slots.get(*number as usize).is_some_and(|other| other.overlaps(slot))
        };
        let mut users: Vec<(u32, u32)> =
            trace.uses.iter().filter(|u| others(&u.slot)).map(|u| (u.call, u.slot)).collect();
        users.sort_unstable();
        let mut last: Option<(u64, u32, String)> = None;
        let mut later = |end: u64, slot: u32, by: String| {
            if end <= moved.issued && last.as_ref().is_none_or(|(t, ..)| end > *t) {
                last = Some((end, slot, by));
            }
        };
        for record in trace.records.iter().filter(|r| r.worker == moved.worker && r.end <= moved.issued) {
            match record.kind {
                Kind::Leaf | Kind::Call if record.subject == slot.plan => {
                    let from = users.partition_point(|(call, _)| *call < record.number);
                    if let Some(&(_, slot)) = users.get(from).filter(|(call, _)| *call == record.number) {
                        let task = trace.header.task(record.index);
                        later(record.end, slot, format!("call {} of {task}", record.number));
                    }
                }
                Kind::Transfer if others(&record.subject) => {
                    later(record.end, record.subject, format!("its {}", Flow::of(record.detail).name()));
                }
                _ => {}
            }
        }
        let (t, slot, by) = last?;
        let block = trace.block_name(slot).unwrap_or_else(|| "another block".into());
        Some((t, format!("{block} for {by}")))
    }

    /// The end of the last wait of this worker on the edge before this one.
    fn last_stall_on(&self, edge: u16) -> Option<u64> {
        let lane = self.timeline.lanes.get(self.worker as usize)?;
        let before = lane.iter().rev().filter(|span| span.end <= self.from);
        let mut waits = before.filter(|span| {
            let record = self.timeline.record(span);
            record.kind == Kind::Wait && record.index == edge
        });
        waits.next().map(|span| span.end)
    }

    /// Bytes that an edge moved between two moments (transfers that were under way only in part count by time), and
    /// the seconds in which it did.
    fn volume(&self, edge: u16, from: u64, to: u64) -> (f64, f64) {
        let trace = self.timeline.trace;
        let part = |moved: &Moved| {
            let inside = moved.ended.min(to).saturating_sub(moved.started.max(from)) as f64;
            let whole = (moved.ended - moved.started).max(1) as f64;
            trace.slots.get(moved.slot as usize).map_or(0.0, |slot| slot.bytes as f64 * inside / whole)
        };
        let volume = self.timeline.moved.iter().filter(|moved| moved.edge == edge).map(part).sum();
        (volume, self.seconds(self.timeline.busy(edge).map_or(0, |busy| busy.between(from, to))))
    }

    fn idle(&self, record: &Record) -> Explanation {
        let other = record.subject;
        let name = match other {
            NO_SUBJECT => "another worker".to_owned(),
            worker => self.timeline.trace.header.worker(worker),
        };
        match Idleness::of(record.detail) {
            Idleness::Start => because(
                Cause::Handover,
                format!("{name} had handed out work, and this worker took {} to begin", self.time(self.to - self.from)),
                "larger parts, so that workers are woken less often",
            ),
            Idleness::Spare => because(
                Cause::Serial,
                format!("there was one part of work, and {name} did it"),
                "smaller blocks, so that there is work for every worker",
            ),
            Idleness::Join | Idleness::Signal => self.other(other, &name),
        }
    }

    /// The median length of the leaves of a task in a plan.
    fn median_leaf(&self, like: &Record) -> u64 {
        let same = |r: &&Record| (r.kind, r.index, r.subject) == (Kind::Leaf, like.index, like.subject);
        let mut lengths: Vec<u64> = self.timeline.trace.records.iter().filter(same).map(Record::ticks).collect();
        let middle = lengths.len() / 2;
        if lengths.is_empty() { 0 } else { *lengths.select_nth_unstable(middle).1 }
    }

    /// What the worker did that was waited for.
    fn other(&self, other: u32, name: &str) -> Explanation {
        let timeline = self.timeline;
        let lane = timeline.lanes.get(other as usize).map_or(&[][..], Vec::as_slice);
        let first = lane.partition_point(|span| span.end <= self.from);
        let is_asleep =
            |r: &&Record| r.kind == Kind::Away && r.worker == other && Taken::of(r.detail) == Taken::Blocked;
        let within = |r: &&Record| r.start < self.to && r.end > self.from;
        let asleep: Vec<&Record> = timeline.trace.records.iter().filter(within).filter(is_asleep).collect();
        let mut stopped = 0;
        let mut sums = [0_u64; 3];
        let mut longest: Option<(u64, &Record)> = None;
        let mut leaves = 0;
        for span in lane[first..].iter().take_while(|span| span.start < self.to) {
            let inside = span.end.min(self.to) - span.start.max(self.from);
            let record = timeline.record(span);
            let sum = match record.kind {
                Kind::Leaf => 0,
                Kind::Wait => 1,
                _ => 2,
            };
            sums[sum] += inside;
            if record.kind == Kind::Leaf {
                let (from, to) = (span.start.max(self.from), span.end.min(self.to));
                stopped += asleep.iter().map(|r| r.end.min(to).saturating_sub(r.start.max(from))).sum::<u64>();
            }
            leaves += usize::from(sum == 0);
            if longest.is_none_or(|(ticks, _)| inside > ticks) {
                longest = Some((inside, record));
            }
        }
        if let Some(explanation) = self.set_aside(other, name) {
            return explanation;
        }
        let length = self.to - self.from;
        if stopped as f64 >= WORTH_NAMING * length as f64 {
            let shown = format!("{name} did not run for {} of it, in the middle of a leaf", self.time(stopped));
            return because(Cause::Stopped, shown, "what it waited for there: to be continued, a page, a lock");
        }
        let [leaf, waited, _] = sums;
        if leaf as f64 >= WORTH_NAMING * length as f64 {
            let plural = if leaves == 1 { "leaf" } else { "leaves" };
            let shown = format!("{name} still computed for {}: {leaves} {plural}", self.time(leaf));
            let remedy = "smaller blocks, so that the work divides evenly".to_owned();
            let Some((_, longest)) = longest.filter(|(_, r)| r.kind == Kind::Leaf) else {
                return because(Cause::Imbalance, shown, remedy);
            };
            let task = timeline.trace.header.task(longest.index);
            let took = self.time(longest.ticks());
            let median = self.median_leaf(longest);
            let shown = format!("{shown}, call {} of {task} for {took}", longest.number);
            if longest.ticks() > SLOW_FROM * median {
                let slow = format!("{shown}, while such leaves take {} in the median", self.time(median));
                return because(Cause::Slow, slow, "a processor that nothing else uses; or smaller blocks");
            }
            return because(Cause::Imbalance, shown, remedy);
        }
        if waited as f64 >= WORTH_NAMING * length as f64 {
            let shown = format!("{name} itself waited for transfers for {}", self.time(waited));
            return because(Cause::OtherWaited, shown, "what avoids that wait avoids this one");
        }
        let runtime = length.saturating_sub(leaf + waited);
        let shown = format!("{name} was in the runtime for {} of it", self.time(runtime));
        because(Cause::Handover, shown, "larger blocks, so that workers come together less often")
    }
}
