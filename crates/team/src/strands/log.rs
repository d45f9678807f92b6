//! What one thread writes down for the trace: decisions, and who computed what when.

use multigrain_schedule::policy::{Reason, Start};
use multigrain_schedule::strands::LinesOptions;
use multigrain_trace::{ClockInfo, End, Header, Kind, NO_INDEX, NO_TASK, Record, StrandsInfo, Trace};

use super::task::{Chunks, Task, TaskKind};

/// Records that one thread keeps at most: 64 MiB.
const RECORDS_MAX: usize = (64 << 20) / multigrain_trace::RECORD_BYTES;

/// The reason's number for a task executed as a plain call, after those of policies.
const CALL: u8 = Reason::NAMES.len() as u8;
/// The same for a task for which off-loading does not pay, or that measures it.
const ON_HOST: u8 = CALL + 1;

/// One thread's records; the first so many, the others are counted.
#[derive(Debug, Default)]
pub(super) struct Log {
    records: Vec<Record>,
    dropped: u64,
    /// Names of kinds of tasks, by number.
    names: Vec<&'static str>,
}

impl Log {
    fn push(&mut self, record: Record) {
        if self.records.len() < RECORDS_MAX {
            self.records.push(record);
        } else {
            self.dropped += 1;
        }
    }

    fn name(&mut self, kind: TaskKind) {
        let place = usize::from(kind.number);
        if self.names.len() <= place {
            self.names.resize(place + 1, "");
        }
        self.names[place] = kind.name;
    }

    #[allow(clippy::too_many_arguments)]
    fn decision(&mut self, at: u64, thread: usize, kind: TaskKind, task: u64, strand: u32, workers: u32, detail: u8) {
        self.name(kind);
        let subject = strand & 0x00ff_ffff | workers.min(255) << 24;
        let (number, worker, index) = (task as u32, thread as u32, kind.number);
        self.push(Record { start: at, end: at, number, subject, worker, index, kind: Kind::Decision, detail });
    }

    pub(super) fn start(&mut self, at: u64, thread: usize, kind: TaskKind, start: &Start) {
        let workers = start.workers.len();
        self.decision(at, thread, kind, start.task, start.strand, workers, start.reason.code());
    }

    pub(super) fn wait(&mut self, at: u64, thread: usize, kind: TaskKind, task: u64, strand: u32, reason: Reason) {
        self.decision(at, thread, kind, task, strand, 0, reason.code());
    }

    fn interval(&mut self, kind: Kind, [start, end]: [u64; 2], worker: u32, index: u16, number: u32, subject: u32) {
        self.push(Record { start, end: end.max(start), number, subject, worker, index, kind, detail: 0 });
    }

    /// A worker executed so many chunks of a task.
    pub(super) fn computed(&mut self, times: [u64; 2], worker: u32, kind: TaskKind, task: u64, chunks: u32) {
        self.interval(Kind::Leaf, times, worker, kind.number, task as u32, chunks);
    }

    /// A strand off-loaded a task, of chunks of so many iterations, and goes on.
    pub(super) fn offloaded(&mut self, times: [u64; 2], thread: usize, kind: TaskKind, task: u64, iterations: u64) {
        let iterations = u32::try_from(iterations).unwrap_or(u32::MAX);
        self.interval(Kind::Offload, times, thread as u32, kind.number, task as u32, iterations);
    }

    /// A task executed on the strand's own thread without asking the policy: when it began and ended, and the strand went on.
    pub(super) fn call<T: Task>(&mut self, times: [u64; 3], thread: usize, task: &T, strand: u32, pays: bool) {
        let [begin, end, goes_on] = times;
        let detail = if pays { CALL } else { ON_HOST };
        let (kind, none, chunks) = (task.kind(), u64::from(NO_TASK), Chunks::of(task));
        self.decision(begin, thread, kind, none, strand, 1, detail);
        self.computed([begin, end], thread as u32, kind, none, chunks.count());
        self.offloaded([begin, goes_on], thread, kind, none, chunks.iterations());
    }

    /// A strand has ended.
    pub(super) fn ended(&mut self, times: [u64; 2], thread: usize, strand: u32) {
        self.interval(Kind::Strand, times, thread as u32, NO_INDEX, 0, strand);
    }
}

/// The trace of a run from the records of its threads.
pub(super) fn trace(logs: Vec<Log>, options: &LinesOptions, clock: ClockInfo, times: [u64; 2]) -> Trace {
    let (threads, workers) = (logs.len(), options.workers as usize);
    let mut tasks = Vec::new();
    let mut records: Vec<Record> = Vec::new();
    let mut dropped = 0;
    for log in logs {
        for (number, name) in log.names.into_iter().enumerate() {
            if tasks.len() <= number {
                tasks.resize(number + 1, String::new());
            }
            if !name.is_empty() {
                tasks[number] = name.to_owned();
            }
        }
        records.extend(log.records);
        dropped += log.dropped;
    }
    records.sort_by_key(|record| (record.start, record.worker, u64::MAX - record.end));
    let name = |thread: usize| match thread < workers {
        true => format!("worker {thread}"),
        false => format!("host {}", thread - workers),
    };
    let own = ["a call: no other worker could help", "off-loading does not pay, or is measured"];
    let strands = StrandsInfo {
        policy: options.policy.to_string(),
        dispatch: options.dispatch.to_string(),
        workers: options.workers,
        own_hosts: options.own_hosts,
        strands: options.strands,
        strands_max: options.strands_max.map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
        throttle: options.throttle,
    };
    let header = Header {
        program: format!("strands under {}", options.policy),
        strands: Some(strands),
        machine: format!("{workers} workers"),
        clock,
        workers: (0..threads).map(name).collect(),
        tasks,
        reasons: Reason::NAMES.into_iter().chain(own).map(str::to_owned).collect(),
        ..Header::default()
    };
    let end = End { start: times[0], tick: times[1], dropped, ..End::default() };
    Trace { header, records, end, ..Trace::default() }
}
