//! One event: 32 bytes, little-endian, the same in memory, in a file and in the simulator.
//!
//! | byte | bits | field |
//! |---|---|---|
//! | 0 | 64 | start, in ticks |
//! | 8 | 64 | end, in ticks |
//! | 16 | 32 | number: of the call, the transfer, the signal |
//! | 20 | 32 | subject: the plan of a call, the block of a transfer, the worker that a wait depends on, another thread |
//! | 24 | 32 | worker |
//! | 28 | 16 | index: the task of a call, the edge of everything else that a worker records; FFFFh for none |
//! | 30 | 8 | kind |
//! | 31 | 8 | detail: the direction of a transfer, the cause of an idle time, the activity of overhead, the reason of a decision |
//!
//! [`Kind`] says for each kind what the fields mean.

/// Size of a record in memory and in a file.
pub const RECORD_BYTES: usize = 32;

/// The index of an event that belongs to no edge and to no task.
pub const NO_INDEX: u16 = u16::MAX;
/// The number of the signal that a child gives by coming to a barrier, or to a broadcast of which it is the root.
pub const BARRIER_SIGNAL: u32 = u32::MAX;
/// The number of a wait's transfer if that is part of a broadcast among children, and has no record of its own.
pub const NO_TRANSFER: u32 = u32::MAX;

/// The number of a task that a strand called, without asking the policy.
pub const NO_TASK: u32 = u32::MAX;

/// The subject of an event that has none.
pub const NO_SUBJECT: u32 = u32::MAX;

/// What a worker, or an edge, did in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A worker executed a leaf variant. The index is the task, the number the call in the plan that is the subject. Of a task
    /// that a strand off-loaded: the index is its kind, the number the task ([`NO_TASK`] of a call), the subject the chunks.
    Leaf = 0,
    /// A worker could not go on before a transfer. The index is the edge, the number the transfer, the subject the
    /// worker that issued it; in a broadcast the number is [`NO_TRANSFER`] and the subject the root.
    Wait = 1,
    /// A transfer was under way, from issue to completion. The index is the edge, the worker the one that issued it,
    /// the number counts the transfers of that worker, the subject is the slot whose block moved, the detail a
    /// [`Flow`]. Transfers overlap with each other and with leaves, so they are no part of a worker's time.
    Transfer = 2,
    /// A worker was in the runtime itself. The breakdown computes overhead as what remains, so these records only
    /// show *where* it arose: the detail is an [`Activity`].
    Overhead = 3,
    /// A worker had nothing to do. The index is the edge whose plan it served, the detail an [`Idleness`], the subject
    /// the worker that it depended on, the number the signals that it awaited.
    Idle = 4,
    /// A moment worth a name (start equals end): a phase of the run began.
    Mark = 5,
    /// The time of a transfer, the same otherwise, before its first byte could move, because the edge moved others.
    Queue = 6,
    /// A worker executed its part of a plan, which is the subject; the index is the plan's edge, the number the child.
    /// Everything that the plan made it do lies inside. Those that it leads have the same record.
    Scope = 7,
    /// A worker led the inner variant of a call, fields as for a leaf. Its scope lies inside. Those that it leads have
    /// the same record.
    Call = 8,
    /// A worker told the other children of its plan how far it is (a moment). The index is the edge, the number counts
    /// the signals of this child in this execution of the plan.
    Signal = 9,
    /// A policy decided about a task that a strand off-loaded (a moment). The index is the kind of task, the number the
    /// task, the subject the strand in bits 0 to 23 and the number of workers it starts on in bits 24 to 31 (0 if it
    /// waits, 255 also for more), the detail the reason, an index into the header's.
    Decision = 10,
    /// The operating system did not let a worker's thread run (a thread that is observed by `--observe`). The detail is a
    /// [`Taken`], the subject who had its processor, an index into [`Observed::others`](crate::Observed), the number the
    /// processor. Where it was preempted, each who had that in turn has a record, and those of one time touch.
    Away = 11,
    /// The end of such a time, in which the thread had been woken and was not given a processor yet. The subject is who had
    /// that processor longest meanwhile, the number who woke it, the detail 1 if an interrupt did, in whose middle that one was.
    Ready = 12,
    /// A worker's thread went on on another processor (a moment), which is the number; the subject is the one before.
    Migration = 13,
    /// Pages that a worker's thread touched and that had no memory yet: the number says how many in this interval, the
    /// detail is 1 if they had to be read from a disk.
    Faults = 14,
    /// What the operating system did with a worker's thread in an interval, where only sums are known: the number says how
    /// often others were put before it, the index how often it waited by itself (65535 also for more), the subject how many
    /// microseconds it could have run and had no processor.
    Held = 15,
    /// A request to a disk while the run went on, whoever's, from its issue to its completion: the number is its length in
    /// units of 512 bytes, the subject who issued it, the detail 1 if it wrote. The worker is that one, or the first.
    Request = 16,
    /// A strand was in progress on a host, from its beginning to its end; the subject is the strand.
    Strand = 17,
    /// A strand off-loaded a task, or called it: from when it asked to when it went on. The index is the kind of task, the number
    /// the task (of a call [`NO_TASK`]), the subject the iterations of a chunk. A decision in this time has the strand.
    Offload = 18,
}

impl Kind {
    /// How many kinds there are.
    pub const COUNT: usize = 19;

    /// How many of them are summed up: the first. The others are what the operating system did, and what lies around tasks.
    pub const SUMMED: usize = 11;

    /// Every kind, in the order of its number.
    pub const ALL: [Kind; Kind::COUNT] = [
        Kind::Leaf,
        Kind::Wait,
        Kind::Transfer,
        Kind::Overhead,
        Kind::Idle,
        Kind::Mark,
        Kind::Queue,
        Kind::Scope,
        Kind::Call,
        Kind::Signal,
        Kind::Decision,
        Kind::Away,
        Kind::Ready,
        Kind::Migration,
        Kind::Faults,
        Kind::Held,
        Kind::Request,
        Kind::Strand,
        Kind::Offload,
    ];

    /// The kind with this number, if there is one.
    pub fn from_number(number: u8) -> Option<Kind> {
        Kind::ALL.get(usize::from(number)).copied()
    }

    /// Whether intervals of this kind are parts of a worker's time that do not overlap each other: what it did, not
    /// within what, nor what an edge did meanwhile.
    pub fn is_activity(self) -> bool {
        matches!(self, Kind::Leaf | Kind::Wait | Kind::Overhead | Kind::Idle)
    }

    /// A name for people.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Leaf => "leaf",
            Kind::Wait => "wait",
            Kind::Transfer => "transfer",
            Kind::Overhead => "overhead",
            Kind::Idle => "idle",
            Kind::Mark => "mark",
            Kind::Queue => "queue",
            Kind::Scope => "scope",
            Kind::Call => "call",
            Kind::Signal => "signal",
            Kind::Decision => "decision",
            Kind::Away => "away",
            Kind::Ready => "ready",
            Kind::Migration => "migration",
            Kind::Faults => "page faults",
            Kind::Held => "held",
            Kind::Request => "disk request",
            Kind::Strand => "strand",
            Kind::Offload => "off-load",
        }
    }
}

/// The detail of a transfer: which way its bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Flow {
    /// From the parent memory to the child: a fetch.
    Down = 0,
    /// From the child to the parent memory: a store.
    Up = 1,
}

impl Flow {
    /// The direction with this number; unknown numbers are taken as down.
    pub fn of(detail: u8) -> Flow {
        if detail == Flow::Up as u8 { Flow::Up } else { Flow::Down }
    }

    /// `fetch` or `store`.
    pub fn name(self) -> &'static str {
        match self {
            Flow::Down => "fetch",
            Flow::Up => "store",
        }
    }
}

/// The detail of an idle time: why there was nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Idleness {
    /// Another child had to come to a point first; it is the subject.
    Signal = 0,
    /// Work had been handed out by the subject, but the worker was not awake yet.
    Start = 1,
    /// The worker's part was done, others were not; the subject was the last of them.
    Join = 2,
    /// There was work for fewer workers than there are; the subject was one that had some.
    Spare = 3,
}

impl Idleness {
    /// Every cause, in the order of its number.
    pub const ALL: [Idleness; 4] = [Idleness::Signal, Idleness::Start, Idleness::Join, Idleness::Spare];

    /// The cause with this number; unknown numbers are taken as the first.
    pub fn of(detail: u8) -> Idleness {
        Idleness::ALL.get(usize::from(detail)).copied().unwrap_or(Idleness::Signal)
    }

    /// A name for people.
    pub fn name(self) -> &'static str {
        match self {
            Idleness::Signal => "a signal of another worker",
            Idleness::Start => "itself to wake up",
            Idleness::Join => "the others to finish",
            Idleness::Spare => "work",
        }
    }
}

/// The detail of a time in which a worker's thread did not run: why it did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Taken {
    /// It could have gone on, and another was put before it.
    Preempted = 0,
    /// It waited by itself, until it was woken.
    Blocked = 1,
    /// Nobody saw why: observation began later.
    Unseen = 2,
}

impl Taken {
    /// The reason with this number; unknown numbers are not seen.
    pub fn of(detail: u8) -> Taken {
        [Taken::Preempted, Taken::Blocked].get(usize::from(detail)).copied().unwrap_or(Taken::Unseen)
    }
}

/// The detail of overhead: what the runtime did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Activity {
    /// Anything.
    Other = 0,
    /// Made a completed block durable and recorded it, so that a run can be continued.
    Journal = 1,
    /// Handed a transfer to its driver.
    Issue = 2,
}

impl Activity {
    /// The activity with this number; unknown numbers are anything.
    pub fn of(detail: u8) -> Activity {
        [Activity::Other, Activity::Journal, Activity::Issue]
            .get(usize::from(detail))
            .copied()
            .unwrap_or(Activity::Other)
    }

    /// A name for people.
    pub fn name(self) -> &'static str {
        match self {
            Activity::Other => "runtime",
            Activity::Journal => "journal",
            Activity::Issue => "issue of a transfer",
        }
    }
}

/// One event. The module's table gives its bytes in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it began, in ticks.
    pub start: u64,
    /// When it ended, in ticks; never before `start` in what a recorder writes.
    pub end: u64,
    /// The call, the transfer, the signal.
    pub number: u32,
    /// The plan of a call, the slot of a transfer, the worker that a wait depends on, another thread, or [`NO_SUBJECT`].
    pub subject: u32,
    /// The worker whose time it is.
    pub worker: u32,
    /// The task of a call, the edge of the others, or [`NO_INDEX`].
    pub index: u16,
    /// What happened.
    pub kind: Kind,
    /// Direction, cause or activity, by kind; 0 for the others.
    pub detail: u8,
}

/// What the subject of a decision holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The strand that off-loaded the task.
    pub strand: u32,
    /// On how many workers the task starts; 0 if it waits, 255 also for more.
    pub workers: u32,
}

const _: () = assert!(size_of::<Record>() == RECORD_BYTES);

impl Record {
    /// Ticks from start to end; zero for a record that ends before it starts.
    #[inline]
    pub fn ticks(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// What was decided, of a decision.
    pub fn decided(&self) -> Decided {
        Decided { strand: self.subject & 0x00ff_ffff, workers: self.subject >> 24 }
    }

    /// The bytes of this record in a file.
    pub fn to_bytes(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[0..8].copy_from_slice(&self.start.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.end.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.number.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.subject.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.worker.to_le_bytes());
        bytes[28..30].copy_from_slice(&self.index.to_le_bytes());
        bytes[30] = self.kind as u8;
        bytes[31] = self.detail;
        bytes
    }

    /// The record with these bytes; `None` if the kind has an unknown number.
    pub fn from_bytes(bytes: &[u8; RECORD_BYTES]) -> Option<Record> {
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        Some(Record {
            start: u64_at(0),
            end: u64_at(8),
            number: u32_at(16),
            subject: u32_at(20),
            worker: u32_at(24),
            index: u16::from_le_bytes([bytes[28], bytes[29]]),
            kind: Kind::from_number(bytes[30])?,
            detail: bytes[31],
        })
    }
}

/// By start, then worker, the longer of two that begin together first: so that what contains comes before what is
/// contained.
pub(crate) fn sort(records: &mut [Record]) {
    records.sort_by_key(|record| (record.start, record.worker, u64::MAX - record.end));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_numbered_in_order() {
        for (number, kind) in Kind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, number);
        }
        assert_eq!(Kind::from_number(Kind::COUNT as u8), None);
        for (number, cause) in Idleness::ALL.iter().enumerate() {
            assert_eq!(*cause as usize, number);
        }
        assert_eq!(Activity::of(Activity::Issue as u8), Activity::Issue);
    }

    #[test]
    fn the_layout_is_the_one_in_the_table() {
        let record = Record {
            start: 0x0102_0304_0506_0708,
            end: 0x1112_1314_1516_1718,
            number: 0x2122_2324,
            subject: 0x2526_2728,
            worker: 0x3132_3334,
            index: 0x4142,
            kind: Kind::Idle,
            detail: 3,
        };
        let bytes = record.to_bytes();
        assert_eq!(bytes[0], 0x08);
        assert_eq!(bytes[8], 0x18);
        assert_eq!(bytes[16], 0x24);
        assert_eq!(bytes[20], 0x28);
        assert_eq!(bytes[24], 0x34);
        assert_eq!(bytes[28..32], [0x42, 0x41, 4, 3]);
        assert_eq!(Record::from_bytes(&bytes), Some(record));
    }
}
