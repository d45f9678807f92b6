//! Why there is no plan.

use multigrain_machine::readable_bytes;
use multigrain_program::SplitError;

/// A refusal: nothing has been started.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The work does not fit, whatever the tile.
    #[error(
        "{task} does not fit: memory {memory} offers {capacity} for blocks ({total} less {reserved} for buffers and \
         scratch memory), and the smallest tile, {tile}, needs {need}; give {memory} at least {enough}"
    )]
    DoesNotFit {
        /// Memory that is too small.
        memory: String,
        /// Task.
        task: String,
        /// Bytes for blocks.
        capacity: String,
        /// Bytes of the memory.
        total: String,
        /// Bytes taken by transfer buffers and scratch memory.
        reserved: String,
        /// Tunables of the smallest tile.
        tile: String,
        /// Bytes that it needs.
        need: String,
        /// Capacity that would be enough.
        enough: Enough,
    },
    /// A plan would have more calls than there is room for.
    #[error(
        "{task} is split into {calls} calls for memory {memory} {tile}, and the plan has room for {most}; choose larger \
         tiles, or give {}",
        more(enough)
    )]
    TooManyCalls {
        /// Task.
        task: String,
        /// Memory whose blocks they are for.
        memory: String,
        /// By which tile.
        tile: &'static str,
        /// The fewest calls that it can be.
        calls: u64,
        /// The most.
        most: u64,
        /// The memory that plans lie in, and its capacity with which a plan will have room for fewer calls of larger tiles, where
        /// that is known.
        enough: Option<(String, Enough)>,
    },
    /// The lists of a plan and of all that it holds would be longer together than there is room for.
    #[error("the plan of {task} has about {calls} calls in all, and there is room for {most}; give {}", more(enough))]
    TooLong {
        /// Task.
        task: String,
        /// About how many they would be: planning has ended when there was no room for more.
        calls: u64,
        /// The most.
        most: u64,
        /// As for [`PlanError::TooManyCalls`].
        enough: Option<(String, Enough)>,
    },
    /// Whatever the blocks, some begin elsewhere within a unit than in a slot, on an edge that moves aligned units, and there are
    /// more of them than are worth planning to show which.
    #[error(
        "{task} cannot be split for memory {memory}, whose transfers have to be aligned: of all blocks that fit, such as \
         {tile}, some have rows that begin elsewhere within {alignment_bytes} bytes than they would in {memory}; choose \
         lengths whose rows take a multiple of {alignment_bytes} bytes"
    )]
    Unmovable {
        /// Task.
        task: String,
        /// Memory whose blocks they are for.
        memory: String,
        /// Tunables of the largest that fit.
        tile: String,
        /// The unit, in bytes.
        alignment_bytes: u64,
    },
    /// The tile that the mapping asks for does not fit.
    #[error(
        "{task} does not fit with the mapping's tile: {tile} needs {need} in memory {memory}, which offers {capacity} \
         for blocks; the largest tile that fits is {largest}"
    )]
    MappingDoesNotFit {
        /// Memory that is too small.
        memory: String,
        /// Task.
        task: String,
        /// Bytes for blocks.
        capacity: String,
        /// Tunables asked for.
        tile: String,
        /// Bytes that they need.
        need: String,
        /// The largest tile that fits.
        largest: String,
    },
    /// A value in the mapping that the task cannot take.
    #[error("mapping: {task}.{tunable} = {value} for memory {memory} is not possible: {why}")]
    Mapping {
        /// Task.
        task: String,
        /// Memory.
        memory: String,
        /// Tunable.
        tunable: String,
        /// Value asked for.
        value: u64,
        /// What would be right.
        why: String,
    },
    /// A task takes a call apart into calls that cannot be.
    #[error(transparent)]
    Split(#[from] SplitError),
    /// The mapping names a task that is not in the program, or a memory that is not in the machine.
    #[error("mapping: there is no {entry} here; this plan splits {known}")]
    MappingUnused {
        /// Task and memory, as they stand in the mapping.
        entry: String,
        /// What could stand there.
        known: String,
    },
    /// The mapping file cannot be read.
    #[error(
        "mapping {file}: {message}; a mapping says lengths for a task and a memory, such as m = 4096 below [sgemm.dram]"
    )]
    MappingFile {
        /// File.
        file: String,
        /// What is wrong, with the line where there is one.
        message: String,
    },
    /// An edge for which there is no driver on this computer.
    #[error("machine {machine}: the edge above memory {memory} is of kind {driver}, which cannot be executed here")]
    Driver {
        /// Machine.
        machine: String,
        /// Child memory of the edge.
        memory: String,
        /// Driver named.
        driver: String,
    },
    /// A machine without an edge.
    #[error("machine {machine} has one memory only, {memory}; a plan needs a memory and a child that computes")]
    OneMemory {
        /// Machine.
        machine: String,
        /// Its memory.
        memory: String,
    },
    /// Nothing to do.
    #[error("the program has no call")]
    Empty,
}

impl PlanError {
    /// Whether there was no room for what was planned already: another way to go on would be planned beside it.
    pub(crate) fn is_too_long(&self) -> bool {
        matches!(self, PlanError::TooLong { .. })
    }

    /// Of a refusal for want of room that came when so many of the classes of a list had been planned, and `before` calls were held
    /// before the first: with about how many there are in all.
    #[must_use]
    pub(crate) fn in_all(mut self, before: u64, planned: usize, classes: usize) -> PlanError {
        if let PlanError::TooLong { calls, .. } = &mut self {
            let each = calls.saturating_sub(before).div_ceil(planned as u64 + 1);
            *calls = (*calls).max(before.saturating_add(each.saturating_mul(classes as u64)));
        }
        self
    }
}

/// What is to be given where plans have too little room.
fn more(enough: &Option<(String, Enough)>) -> String {
    enough.as_ref().map_or_else(|| "more memory".to_owned(), |(memory, enough)| format!("{memory} at least {enough}"))
}

/// A capacity that is enough, as a number to be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enough {
    bytes: u64,
}

impl Enough {
    /// By what is known of one refusal: buffers grow with the memory, so an eighth more than is needed now, in whole units.
    pub fn from_need(bytes: u64) -> Enough {
        let bytes = bytes.saturating_add(bytes / 8);
        let unit = if bytes >= 64 << 20 { 1 << 20 } else { 1 << 10 };
        Enough { bytes: bytes.checked_next_multiple_of(unit).unwrap_or(bytes) }
    }

    /// With so much set aside besides.
    pub fn beside(self, bytes: u64) -> Enough {
        Enough { bytes: self.bytes.saturating_add(Enough::from_need(bytes).bytes) }
    }

    /// The bytes to be given.
    pub fn bytes(self) -> u64 {
        self.bytes
    }
}

impl std::fmt::Display for Enough {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&readable_bytes(self.bytes))
    }
}
