//! The records of perf's ring buffers (perf_event_open(2), "The mmap values"): bytes in, events out.
//!
//! The events are opened with `sample_type = TID | TIME | CPU (| RAW)` and `sample_id_all`, so a record that is no sample ends
//! with 24 bytes: process, thread (4 each), time (8), processor, nothing (4 each). A sample begins with the same.

use crate::tracepoint::Layout;

/// `PERF_RECORD_LOST`, `_SAMPLE`, `_LOST_SAMPLES`, `_SWITCH`, `_SWITCH_CPU_WIDE`.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;
const SWITCH: u32 = 14;
const SWITCH_CPU_WIDE: u32 = 15;
/// `PERF_RECORD_MISC_SWITCH_OUT` and `_PREEMPT`.
const OUT: u16 = 1 << 13;
const PREEMPTED: u16 = 1 << 14;
/// Type (4 bytes), misc, size (2 each).
const HEADER_BYTES: usize = 8;
/// What every record has of who, when and where.
const IDENTITY_BYTES: usize = 24;
/// `TRACE_FLAG_HARDIRQ`, `TRACE_FLAG_SOFTIRQ`: the event came within an interrupt.
const IN_INTERRUPT: u64 = 0x08 | 0x10;

/// Something that the operating system did; times in nanoseconds of the clock that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A thread got a processor.
    In { at: u64, processor: u32, thread: u32 },
    /// A thread had to leave its processor, though it could have gone on, or because it waited; who was next, if known.
    Out { at: u64, processor: u32, thread: u32, preempted: bool, next: Option<u32> },
    /// A thread that waited was woken by another, or by an interrupt in the middle of that other.
    Woken { at: u64, thread: u32, by: u32, interrupt: bool },
    /// A thread, or the system for it, issued a request to a disk.
    Issued { at: u64, by: u32, request: Request, sectors: u32, writes: bool },
    /// The request was completed.
    Completed { at: u64, request: Request },
    /// Some events before found no room.
    Lost { at: u64, count: u64 },
}

/// A request to a disk: device and sector.
pub(crate) type Request = (u32, u64);

impl Event {
    /// When.
    pub(crate) fn at(&self) -> u64 {
        match *self {
            Event::In { at, .. }
            | Event::Out { at, .. }
            | Event::Woken { at, .. }
            | Event::Issued { at, .. }
            | Event::Completed { at, .. }
            | Event::Lost { at, .. } => at,
        }
    }
}

/// The tracepoints that samples come from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracepoints {
    /// `sched_waking`, with the fields of [`Tracepoints::WAKING`].
    pub(crate) waking: Option<Layout>,
    /// `block_rq_issue`, with those of [`Tracepoints::ISSUE`].
    pub(crate) issue: Option<Layout>,
    /// `block_rq_complete`, with those of [`Tracepoints::COMPLETE`].
    pub(crate) complete: Option<Layout>,
}

impl Tracepoints {
    pub(crate) const WAKING: [&str; 2] = ["pid", "common_flags"];
    pub(crate) const ISSUE: [&str; 4] = ["dev", "sector", "nr_sector", "rwbs"];
    pub(crate) const COMPLETE: [&str; 2] = ["dev", "sector"];
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The events in bytes that were taken from a ring, in their order; unknown records are passed over. Bytes that are no
/// record, as no kernel writes them, end it: what lies behind them is one loss.
pub(crate) fn read(mut bytes: &[u8], tracepoints: &Tracepoints, found: &mut Vec<Event>) {
    while !bytes.is_empty() {
        let size = u16_at(bytes, 6).map_or(0, usize::from);
        let Some(record) = bytes.get(..size).filter(|record| record.len() >= HEADER_BYTES) else {
            found.push(Event::Lost { at: 0, count: 1 });
            return;
        };
        found.extend(event(record, tracepoints));
        bytes = &bytes[size..];
    }
}

/// Who, when and where, at the end of a record.
fn identity(body: &[u8]) -> Option<&[u8]> {
    body.get(body.len().checked_sub(IDENTITY_BYTES)?..)
}

fn event(record: &[u8], tracepoints: &Tracepoints) -> Option<Event> {
    let (kind, misc, body) = (u32_at(record, 0)?, u16_at(record, 4)?, &record[HEADER_BYTES..]);
    match kind {
        LOST | LOST_SAMPLES => {
            // The first says before that whose they were.
            let count = u64_at(body, if kind == LOST { 8 } else { 0 })?;
            Some(Event::Lost { at: u64_at(identity(body)?, 8)?, count })
        }
        SAMPLE => sample(body, tracepoints),
        SWITCH | SWITCH_CPU_WIDE => {
            let identity = identity(body)?;
            let (thread, at, processor) = (u32_at(identity, 4)?, u64_at(identity, 8)?, u32_at(identity, 16)?);
            if misc & OUT == 0 {
                return Some(Event::In { at, processor, thread });
            }
            let preempted = misc & PREEMPTED != 0;
            // -1 is a thread that has ended.
            let next = if kind == SWITCH_CPU_WIDE { Some(u32_at(body, 4)?) } else { None };
            let next = next.filter(|next| *next != u32::MAX);
            Some(Event::Out { at, processor, thread, preempted, next })
        }
        _ => None,
    }
}

fn sample(body: &[u8], tracepoints: &Tracepoints) -> Option<Event> {
    let (by, at) = (u32_at(body, 4)?, u64_at(body, 8)?);
    let length = u32_at(body, IDENTITY_BYTES)? as usize;
    let raw = body.get(IDENTITY_BYTES + 4..)?.get(..length)?;
    let id = u16_at(raw, 0)?;
    let is = |layout: &&Layout| layout.id == id;
    if let Some(waking) = tracepoints.waking.as_ref().filter(is) {
        let thread = waking.number(0, raw)? as u32;
        return Some(Event::Woken { at, thread, by, interrupt: waking.number(1, raw)? & IN_INTERRUPT != 0 });
    }
    let request = |layout: &Layout| Some((layout.number(0, raw)? as u32, layout.number(1, raw)?));
    if let Some(issue) = tracepoints.issue.as_ref().filter(is) {
        let writes = issue.bytes(3, raw)?.contains(&b'W');
        return Some(Event::Issued { at, by, request: request(issue)?, sectors: issue.number(2, raw)? as u32, writes });
    }
    let complete = tracepoints.complete.as_ref().filter(is)?;
    Some(Event::Completed { at, request: request(complete)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let size = (HEADER_BYTES + body.len()) as u16;
        [&kind.to_ne_bytes()[..], &misc.to_ne_bytes(), &size.to_ne_bytes(), body].concat()
    }

    fn identity(thread: u32, at: u64, processor: u32) -> Vec<u8> {
        [&1_u32.to_ne_bytes()[..], &thread.to_ne_bytes(), &at.to_ne_bytes(), &processor.to_ne_bytes(), &[0; 4]].concat()
    }

    fn wide(misc: u16, other: u32, thread: u32, at: u64, processor: u32) -> Vec<u8> {
        let body = [&other.to_ne_bytes()[..], &other.to_ne_bytes(), &identity(thread, at, processor)].concat();
        record(SWITCH_CPU_WIDE, misc, &body)
    }

    fn points() -> Tracepoints {
        Tracepoints {
            waking: Some(Layout { id: 7, fields: vec![24..28, 2..3] }),
            issue: Some(Layout { id: 8, fields: vec![8..12, 16..24, 24..28, 34..44] }),
            complete: Some(Layout { id: 9, fields: vec![8..12, 16..24] }),
        }
    }

    fn sampled(thread: u32, at: u64, raw: &[u8]) -> Vec<u8> {
        record(SAMPLE, 0, &[&identity(thread, at, 0)[..], &(raw.len() as u32).to_ne_bytes(), raw].concat())
    }

    fn all(bytes: &[u8]) -> Vec<Event> {
        let mut found = Vec::new();
        read(bytes, &points(), &mut found);
        found
    }

    #[test]
    fn switches_tell_who_is_next_where_the_record_does() {
        let bytes = [
            record(SWITCH, OUT | PREEMPTED, &identity(11, 100, 1)),
            record(SWITCH, 0, &identity(11, 150, 0)),
            wide(OUT, 0, 11, 200, 0),
            wide(0, 5, 11, 250, 0),
            wide(OUT | PREEMPTED, 99, 11, 300, 0),
            wide(OUT | PREEMPTED, 0, 11, 400, 0),
            wide(OUT, u32::MAX, 11, 500, 0),
        ];
        let out = |at, processor, preempted, next| Event::Out { at, processor, thread: 11, preempted, next };
        let expected = [
            out(100, 1, true, None),
            Event::In { at: 150, processor: 0, thread: 11 },
            out(200, 0, false, Some(0)),
            Event::In { at: 250, processor: 0, thread: 11 },
            out(300, 0, true, Some(99)),
            out(400, 0, true, Some(0)),
            out(500, 0, false, None),
        ];
        assert_eq!(all(&bytes.concat()), expected);
    }

    #[test]
    fn samples_are_told_apart_by_their_tracepoints() {
        let mut waking = [0_u8; 36];
        waking[..2].copy_from_slice(&7_u16.to_ne_bytes());
        waking[2] = 0x08;
        waking[24..28].copy_from_slice(&11_u32.to_ne_bytes());
        let mut issue = [0_u8; 64];
        issue[..2].copy_from_slice(&8_u16.to_ne_bytes());
        issue[8..12].copy_from_slice(&0x0080_0010_u32.to_ne_bytes());
        issue[16..24].copy_from_slice(&4096_u64.to_ne_bytes());
        issue[24..28].copy_from_slice(&8_u32.to_ne_bytes());
        issue[34..36].copy_from_slice(b"WS");
        let mut complete = issue;
        complete[..2].copy_from_slice(&9_u16.to_ne_bytes());
        let mut unknown = issue;
        unknown[..2].copy_from_slice(&10_u16.to_ne_bytes());
        let bytes =
            [sampled(3, 50, &waking), sampled(3, 60, &issue), sampled(0, 90, &complete), sampled(3, 95, &unknown)];
        let request = (0x0080_0010, 4096);
        let expected = [
            Event::Woken { at: 50, thread: 11, by: 3, interrupt: true },
            Event::Issued { at: 60, by: 3, request, sectors: 8, writes: true },
            Event::Completed { at: 90, request },
        ];
        assert_eq!(all(&bytes.concat()), expected);
    }

    #[test]
    fn losses_unknown_records_and_ends_in_the_middle() {
        let lost = record(LOST, 0, &[&1_u64.to_ne_bytes()[..], &5_u64.to_ne_bytes(), &identity(0, 1, 0)].concat());
        let lost_samples = record(LOST_SAMPLES, 0, &[&3_u64.to_ne_bytes()[..], &identity(0, 2, 0)].concat());
        let unknown = record(77, 0, &[1; 40]);
        let switch = record(SWITCH, 0, &identity(11, 150, 0));
        let bytes = [lost, unknown, lost_samples, switch.clone()].concat();
        let inside = Event::In { at: 150, processor: 0, thread: 11 };
        assert_eq!(all(&bytes), [Event::Lost { at: 1, count: 5 }, Event::Lost { at: 2, count: 3 }, inside]);
        // One that ends in the middle, or says so, ends all.
        assert_eq!(all(&[&switch[..], &switch[..20]].concat()), [inside, Event::Lost { at: 0, count: 1 }]);
        let mut short = switch.clone();
        short[6..8].copy_from_slice(&4_u16.to_ne_bytes());
        assert_eq!(all(&[short, switch].concat()), [Event::Lost { at: 0, count: 1 }]);
        // A record that is whole and too short for its kind, is passed over.
        assert_eq!(all(&record(SWITCH, 0, &[0; 8])), []);
    }

    proptest! {
        #[test]
        fn any_bytes_give_events_and_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = all(&bytes);
        }

        /// Records whose sizes are right and whose content is anything.
        #[test]
        fn whole_records_of_anything_are_all_passed(
            records in proptest::collection::vec(
                (0..20_u32, any::<u16>(), proptest::collection::vec(any::<u8>(), 0..80)), 0..12
            ),
            mark in 1..1000_u64,
        ) {
            let mut bytes: Vec<u8> = records.iter().flat_map(|(kind, misc, body)| record(*kind, *misc, body)).collect();
            bytes.extend(record(SWITCH, 0, &identity(11, mark, 0)));
            let last = all(&bytes).pop();
            prop_assert_eq!(last, Some(Event::In { at: mark, processor: 0, thread: 11 }));
        }
    }
}
