//! What serves one request after the other: processors, disks.

use crate::time::Time;

/// A serial server of a [`crate::Simulation`]: a processor, a bus that is held, a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ServerId(pub(crate) u32);

/// A disk of a [`crate::Simulation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DiskId(pub(crate) u32);

/// What a disk is like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disk {
    /// Bytes per second, from its surface or cells.
    pub read_bytes_per_second: f64,
    /// Bytes per second, to them.
    pub write_bytes_per_second: f64,
    /// What a request costs that does not begin where the last one ended: the seek and the turn of a disk with heads.
    pub seek: Time,
    /// What every request costs.
    pub request: Time,
}

/// First come, first served: when the last request so far will have been served, and what was done in all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Serial {
    pub(crate) free: Time,
    pub(crate) busy: Time,
}

impl Serial {
    /// When a request that comes now has been served.
    pub(crate) fn serve(&mut self, now: Time, time: Time) -> Time {
        self.free = self.free.max(now) + time;
        self.busy += time;
        self.free
    }
}

pub(crate) struct DiskState {
    pub(crate) disk: Disk,
    pub(crate) serial: Serial,
    /// The byte behind the last request's last.
    head: u64,
}

impl DiskState {
    pub(crate) fn new(disk: Disk) -> DiskState {
        DiskState { disk, serial: Serial::default(), head: 0 }
    }

    /// How long a request takes once the disk begins with it.
    pub(crate) fn request(&mut self, from: u64, bytes: u64, writes: bool) -> Time {
        let disk = &self.disk;
        let rate = if writes { disk.write_bytes_per_second } else { disk.read_bytes_per_second };
        let seek = if from == self.head { Time::ZERO } else { disk.seek };
        self.head = from + bytes;
        disk.request + seek + Time::at_rate(bytes as f64, rate)
    }
}
