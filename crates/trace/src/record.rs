//! One event: 32 bytes, little-endian, the same in memory, in a file and in the simulator.
//!
//! | byte | bits | field |
//! |---|---|---|
//! | 0 | 64 | start, in ticks |
//! | 8 | 64 | end, in ticks |
//! | 16 | 64 | id: the call of a leaf, the transfer of a wait or a transfer |
//! | 24 | 32 | worker |
//! | 28 | 16 | index: the task of a leaf, the edge of a wait or a transfer; FFFFh for none |
//! | 30 | 8 | kind |
//! | 31 | 8 | reserved, zero |

/// Size of a record in memory and in a file.
pub const RECORD_BYTES: usize = 32;

/// The index of an event that belongs to no edge and to no task.
pub const NO_INDEX: u16 = u16::MAX;

/// What a worker, or an edge, did in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A worker executed a leaf variant. The index is the task, the id is the call.
    Leaf = 0,
    /// A worker could not go on before a transfer. The index is the edge, the id is the transfer.
    Wait = 1,
    /// A transfer was under way, from issue to completion. The index is the edge. Transfers overlap with each other
    /// and with leaves, so they are no part of a worker's time.
    Transfer = 2,
    /// A worker was in the runtime itself. The breakdown computes overhead as what remains, so these records only
    /// show *where* it arose.
    Overhead = 3,
    /// A worker had nothing to do: no chain was left to claim, or another worker had to finish first. The index is
    /// the edge whose plan it served.
    Idle = 4,
    /// A moment worth a name (start equals end): a phase of the run began.
    Mark = 5,
}

impl Kind {
    /// How many kinds there are.
    pub const COUNT: usize = 6;

    /// Every kind, in the order of its number.
    pub const ALL: [Kind; Kind::COUNT] =
        [Kind::Leaf, Kind::Wait, Kind::Transfer, Kind::Overhead, Kind::Idle, Kind::Mark];

    /// The kind with this number, if there is one.
    pub fn from_number(number: u8) -> Option<Kind> {
        Kind::ALL.get(usize::from(number)).copied()
    }
}

/// One event. The module's table gives its bytes in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it began, in ticks.
    pub start: u64,
    /// When it ended, in ticks; never before `start` in what a recorder writes.
    pub end: u64,
    /// The call of a leaf, the transfer of a wait or a transfer.
    pub id: u64,
    /// The worker whose time it is.
    pub worker: u32,
    /// The task of a leaf, the edge of the others, or [`NO_INDEX`].
    pub index: u16,
    /// What happened.
    pub kind: Kind,
}

const _: () = assert!(size_of::<Record>() == RECORD_BYTES);

impl Record {
    /// Ticks from start to end; zero for a record that ends before it starts.
    #[inline]
    pub fn ticks(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// The bytes of this record in a file.
    pub fn to_bytes(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[0..8].copy_from_slice(&self.start.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.end.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.id.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.worker.to_le_bytes());
        bytes[28..30].copy_from_slice(&self.index.to_le_bytes());
        bytes[30] = self.kind as u8;
        bytes
    }

    /// The record with these bytes; `None` if the kind has an unknown number.
    pub fn from_bytes(bytes: &[u8; RECORD_BYTES]) -> Option<Record> {
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        Some(Record {
            start: u64_at(0),
            end: u64_at(8),
            id: u64_at(16),
            worker: u32::from_le_bytes(std::array::from_fn(|i| bytes[24 + i])),
            index: u16::from_le_bytes([bytes[28], bytes[29]]),
            kind: Kind::from_number(bytes[30])?,
        })
    }
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
    }

    #[test]
    fn the_layout_is_the_one_in_the_table() {
        let record = Record {
            start: 0x0102_0304_0506_0708,
            end: 0x1112_1314_1516_1718,
            id: 0x2122_2324_2526_2728,
            worker: 0x3132_3334,
            index: 0x4142,
            kind: Kind::Idle,
        };
        let bytes = record.to_bytes();
        assert_eq!(bytes[0], 0x08);
        assert_eq!(bytes[8], 0x18);
        assert_eq!(bytes[16], 0x28);
        assert_eq!(bytes[24], 0x34);
        assert_eq!(bytes[28..32], [0x42, 0x41, 4, 0]);
        assert_eq!(Record::from_bytes(&bytes), Some(record));
    }
}
