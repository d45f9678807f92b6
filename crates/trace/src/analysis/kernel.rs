//! What the operating system did with the workers.

use super::aside::{self, longest_of, shares};
use super::timeline::Timeline;
use crate::observed::KernelSource;
use crate::record::{Kind, Taken};

/// What the operating system did with one worker in a run; times in ticks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelTimes {
    /// In which it could have run and others did.
    pub aside: u64,
    /// Of that, who ran: longest first, `None` for those who are not known.
    pub by: Vec<(Option<u32>, u64)>,
    /// The longest time in which it could have run and did not, at a stretch; 0 where only sums are known.
    pub longest: u64,
    /// How often others were put before it.
    pub preempted: u64,
    /// How often it waited by itself.
    pub blocked: u64,
    /// How often it went on on another processor.
    pub migrations: u64,
    /// Pages that it touched and that had no memory yet.
    pub minor_faults: u64,
    /// Pages that had to be read from a disk.
    pub major_faults: u64,
}

/// For each worker; for none where the operating system was not observed.
pub(super) fn of(timeline: &Timeline<'_>) -> Vec<KernelTimes> {
    let trace = timeline.trace;
    let Some(info) = &trace.end.observed.by else { return Vec::new() };
    let (first, last) = (trace.start(), trace.stop());
    let mut all: Vec<KernelTimes> = vec![KernelTimes::default(); trace.workers()];
    for (times, lane) in all.iter_mut().zip(&timeline.aside) {
        times.by = shares(lane.iter(), first, last);
        times.aside = times.by.iter().map(|(_, ticks)| ticks).sum();
        times.longest = if info.source == KernelSource::Sums { 0 } else { longest_of(lane) };
    }
    let inside = |start: u64, end: u64| end >= first && start <= last;
    for (record, ..) in aside::times(trace).into_iter().filter(|(_, start, end)| inside(*start, *end)) {
        all[trace.records[record].worker as usize].preempted += 1;
    }
    for record in trace.records.iter().filter(|record| inside(record.start, record.end)) {
        let times = &mut all[record.worker as usize];
        match record.kind {
            Kind::Away if Taken::of(record.detail) == Taken::Blocked => times.blocked += 1,
            Kind::Migration => times.migrations += 1,
            Kind::Faults if record.detail == 1 => times.major_faults += u64::from(record.number),
            Kind::Faults => times.minor_faults += u64::from(record.number),
            Kind::Held => {
                times.preempted += u64::from(record.number);
                times.blocked += u64::from(record.index);
            }
            _ => {}
        }
    }
    all
}
