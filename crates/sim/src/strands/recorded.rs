//! What strands did, from the trace of a run.

use super::{Costs, Met, Program, Task};
use crate::time::Time;
use multigrain_schedule::jobs::UnknownDispatch;
use multigrain_schedule::policy::PolicyError;
use multigrain_schedule::strands::LinesOptions;
use multigrain_trace::{Kind, NO_TASK, Record, Trace};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Why strands cannot be taken from a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotStrands {
    /// It is of something else, or of an earlier version.
    #[error("the trace is of {program}, which has no strands, or was written by an earlier version")]
    None {
        /// What it is of.
        program: String,
    },
    /// Some records were dropped.
    #[error("the trace lacks {dropped} records, for which there was no room: trace a shorter run")]
    Dropped {
        /// How many.
        dropped: u64,
    },
    /// A record is missing.
    #[error("the trace is not whole: strand {strand} {what}")]
    NotWhole {
        /// Whose.
        strand: usize,
        /// What is missing.
        what: &'static str,
    },
    /// The policy of the run is none that is known.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// So is the way in which it handed out tasks.
    #[error(transparent)]
    Dispatch(#[from] UnknownDispatch),
}

/// Strands as they were recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// How they were executed.
    pub options: LinesOptions,
    /// What threads took: [`Costs::USUAL`], with medians of what can be seen in the trace.
    pub costs: Costs,
    /// What each did.
    pub programs: Vec<Program>,
}

/// What was computed for a task.
#[derive(Clone, Default)]
struct Computed {
    end: u64,
    strand: Option<u32>,
    /// How many workers it started on.
    workers: u32,
    /// Of those who executed chunks.
    parts: SmallVec<[Part; 2]>,
}

#[derive(Clone, Copy)]
struct Part {
    begin: u64,
    end: u64,
    worker: u32,
    chunks: u32,
}

/// A task, by its number; a call, which has none, by its thread and beginning.
fn key(record: &Record) -> (u64, u32) {
    match record.number {
        NO_TASK => (record.start, record.worker),
        number => (u64::from(number), u32::MAX),
    }
}

fn median(mut of: Vec<Time>) -> Option<Time> {
    of.sort_unstable();
    of.get(of.len() / 2).copied()
}

/// How the strands of a traced run were executed, and what each did. Chunks take as long as they took there, on whomever, and
/// helpers come as late.
///
/// # Errors
/// [`NotStrands`].
pub fn recorded(trace: &Trace) -> Result<Recorded, NotStrands> {
    let header = &trace.header;
    let Some(info) = &header.strands else { return Err(NotStrands::None { program: header.program.clone() }) };
    if trace.end.dropped > 0 {
        return Err(NotStrands::Dropped { dropped: trace.end.dropped });
    }
    let options = LinesOptions {
        policy: info.policy.parse()?,
        workers: info.workers,
        own_hosts: info.own_hosts,
        strands: info.strands,
        strands_max: info.strands_max.map(|most| most as usize),
        throttle: info.throttle,
        dispatch: info.dispatch.parse()?,
    };
    let (computed, spans) = seen(trace);
    let ns_per_tick = 1e9 / header.clock.ticks_per_second;
    let time = |from: u64, to: u64| Time::from_ns(to.saturating_sub(from) as f64 * ns_per_tick);
    let mut costs = Costs::USUAL;
    let mut programs = vec![Program::default(); spans.len()];
    let mut reached: Vec<u64> = spans.iter().map(|span| span.map_or(0, |[begin, _]| begin)).collect();
    let (mut afters, mut lates) = (Vec::new(), Vec::new());
    let asked = asked(trace, &computed);
    for record in trace.records.iter().filter(|record| record.kind == Kind::Offload) {
        let Some(of) = computed.get(&key(record)) else { continue };
        let Some(strand) = of.strand.map(|strand| strand as usize).filter(|strand| *strand < programs.len()) else {
            continue;
        };
        // Its own thread executed it at once, so that is where the time of the off-load is, too.
        let own = |part: &Part| record.number != NO_TASK && (part.begin, part.worker) == (record.start, record.worker);
        let took = |part: &Part| time(part.begin, part.end) - if own(part) { costs.offload[0] } else { Time::ZERO };
        let each = |part: &Part| Time::from_ps(took(part).ps() / u64::from(part.chunks.max(1)));
        let chunk = of.parts.iter().map(each).min().unwrap_or(Time::ZERO);
        let mut met: Vec<Met> = Vec::new();
        if of.workers > 1 {
            // The leader begins when it is asked, or, if its task waited for it, before its helpers.
            let mut parts = of.parts.clone();
            parts.sort_unstable_by_key(|part| (!own(part), part.begin));
            let leads = parts.first().map_or(record.start, |part| part.begin);
            met.extend(parts.iter().map(|part| {
                // What is not twice as slow is slower all along; what is was set aside.
                let own = Some(each(part)).filter(|own| *own <= chunk * 2).unwrap_or(chunk);
                let stalled = took(part) - own * u64::from(part.chunks);
                Met { late: time(leads, part.begin) - costs.offload[0], chunks: part.chunks, chunk: own, stalled }
            }));
            lates.extend(met.iter().skip(1).map(|met| met.late));
            met.resize(of.workers as usize, Met { late: Time::MAX, ..Met::default() });
        }
        let mut waited = Time::ZERO;
        let gave_way = others(&asked, record, of.end, strand as u32);
        if of.parts.iter().any(own) && !gave_way {
            let after = time(of.end, record.end);
            afters.push(after);
            waited = if of.workers > 1 { after } else { Time::ZERO };
        }
        let chunks = of.parts.iter().map(|part| part.chunks).sum();
        programs[strand].tasks.push(Task {
            before: time(reached[strand], record.start),
            kind: record.index,
            iterations: u64::from(chunks) * u64::from(record.subject),
            chunks,
            chunk,
            met,
            waited,
        });
        reached[strand] = record.end;
    }
    costs.offload[1] = median(afters).unwrap_or(costs.offload[1]);
    costs.hand_over = median(lates).unwrap_or(costs.hand_over);
    for (strand, (program, span)) in programs.iter_mut().zip(spans).enumerate() {
        let Some([_, end]) = span else { return Err(NotStrands::NotWhole { strand, what: "has no end" }) };
        if program.tasks.iter().any(|task| task.chunks == 0) {
            return Err(NotStrands::NotWhole { strand, what: "has tasks that nobody executed" });
        }
        program.after = time(reached[strand], end);
        // What is usual is the off-load's.
        program.tasks.iter_mut().for_each(|task| task.waited = task.waited - costs.offload[1]);
    }
    Ok(Recorded { options, costs, programs })
}

/// Of each thread, when its strands asked for tasks, in order.
fn asked(trace: &Trace, computed: &FxHashMap<(u64, u32), Computed>) -> Vec<Vec<(u64, u32)>> {
    let mut asked = vec![Vec::new(); trace.header.workers.len()];
    for record in trace.records.iter().filter(|record| record.kind == Kind::Offload) {
        let strand = computed.get(&key(record)).and_then(|of| of.strand);
        if let (Some(strand), Some(thread)) = (strand, asked.get_mut(record.worker as usize)) {
            thread.push((record.start, strand));
        }
    }
    asked
}

/// Whether another strand had its turn on the thread of an off-load between the end of the task and when its strand went on.
fn others(asked: &[Vec<(u64, u32)>], offload: &Record, end: u64, strand: u32) -> bool {
    let Some(thread) = asked.get(offload.worker as usize) else { return false };
    let after = thread.partition_point(|(at, _)| *at < end);
    thread[after..].iter().take_while(|(at, _)| *at < offload.end).any(|(_, other)| *other != strand)
}

/// What was computed for each task, and when each strand began and ended.
type Seen = (FxHashMap<(u64, u32), Computed>, Vec<Option<[u64; 2]>>);

fn seen(trace: &Trace) -> Seen {
    let strands = trace.header.strands.as_ref().map_or(0, |info| info.strands as usize);
    let (mut computed, mut spans) = (FxHashMap::<(u64, u32), Computed>::default(), vec![None; strands]);
    for record in &trace.records {
        match record.kind {
            Kind::Leaf => {
                let of = computed.entry(key(record)).or_default();
                of.end = of.end.max(record.end);
                let Record { start: begin, end, worker, subject: chunks, .. } = *record;
                of.parts.push(Part { begin, end, worker, chunks });
            }
            Kind::Decision if record.decided().workers > 0 => {
                let of = computed.entry(key(record)).or_default();
                (of.strand, of.workers) = (Some(record.decided().strand), record.decided().workers);
            }
            Kind::Strand => {
                if let Some(span) = spans.get_mut(record.subject as usize) {
                    *span = Some([record.start, record.end]);
                }
            }
            _ => {}
        }
    }
    (computed, spans)
}
