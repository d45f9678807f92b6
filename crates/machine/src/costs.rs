//! What moving costs besides bytes and latency: constants of an edge that a machine file may give, and else its driver has.

use crate::units::{UnitError, format_bandwidth, format_bytes, format_time, parse_bandwidth, parse_bytes, parse_time};
use serde::Serialize;

/// What moving over an edge costs besides bytes and latency.
///
/// [`Costs::DISK`] were measured on virtual disks; a measured machine has its own fragment. An edge has those of
/// its driver unless its file says so.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Costs {
    /// What one more fragment of a transfer costs the edge, nanoseconds: the seek of a disk with heads, the command of an
    /// entry of a list (which the simulator alone counts). 40 000 to 60 000 a second were measured for rows of 4 to 32 KiB.
    pub fragment_ns: f64,
    /// Processor time that one more fragment costs, nanoseconds, taken from the workers: 3.3 to 6.3 us were measured.
    pub fragment_processor_ns: f64,
    /// What a transfer costs besides, nanoseconds, however many are in flight. Measured with blocks of 2 to 8 MiB that stream
    /// through a virtual disk, as the time that fewer and larger transfers save: 70 to 190 us.
    pub transfer_ns: f64,
    /// What it costs besides that the edge's queue runs empty, nanoseconds: from the last completion to the next operation.
    /// Measured on a virtual disk: 30 us from one thread to the device, 70 to 120 us with a worker woken in between. A disk
    /// may answer everything in flight at once, so this is shared by the transfers that are.
    pub queue_ns: f64,
    /// What it costs to hand work to workers that sleep because all wait for the edge, nanoseconds, until the last of them
    /// is done: a message between processors there, and one back, while nobody starts the next operation. Measured with
    /// calls on 3 MiB: 300 to 390 us more than on one worker.
    pub wake_ns: f64,
    /// Slots of this many bytes in all stay in the last cache between the edge and the processors: each transfer then
    /// overwrites what is cached.
    pub cached_bytes: f64,
    /// At what rate bytes move whose slot has left that cache, beside the edge's, bytes per second. Measured with direct
    /// reads into 4, 16 and 32 MiB of buffers: 2.72, 2.54 and 2.38 GB/s where the disk gave its best, no difference where
    /// not.
    pub uncached_bytes_per_second: f64,
    /// How fast untouched memory becomes usable, bytes per second: the system clears every page.
    pub first_touch_bytes_per_second: f64,
}

impl Costs {
    /// No such costs.
    pub const NONE: Costs = Costs {
        fragment_ns: 0.0,
        fragment_processor_ns: 0.0,
        transfer_ns: 0.0,
        queue_ns: 0.0,
        wake_ns: 0.0,
        cached_bytes: 0.0,
        uncached_bytes_per_second: f64::INFINITY,
        first_touch_bytes_per_second: f64::INFINITY,
    };

    /// Those of a disk whose file says nothing.
    pub const DISK: Costs = Costs {
        fragment_ns: 12e3,
        fragment_processor_ns: 5e3,
        transfer_ns: 1e5,
        queue_ns: 1e5,
        wake_ns: 3e5,
        cached_bytes: 4.0 * 1048576.0,
        uncached_bytes_per_second: 40e9,
        first_touch_bytes_per_second: 2e9,
    };

    /// All of them, in the order of [`KEYS`].
    pub(crate) fn values(&self) -> [f64; KEYS.len()] {
        let Costs { fragment_ns, fragment_processor_ns, transfer_ns, queue_ns, wake_ns, cached_bytes, .. } = *self;
        let rates = [self.uncached_bytes_per_second, self.first_touch_bytes_per_second];
        [fragment_ns, fragment_processor_ns, transfer_ns, queue_ns, wake_ns, cached_bytes, rates[0], rates[1]]
    }

    /// From their values.
    pub(crate) fn from_values(values: [f64; KEYS.len()]) -> Costs {
        let [fragment_ns, fragment_processor_ns, transfer_ns, queue_ns, wake_ns, cached_bytes, rest @ ..] = values;
        let [uncached_bytes_per_second, first_touch_bytes_per_second] = rest;
        Costs {
            fragment_ns,
            fragment_processor_ns,
            transfer_ns,
            queue_ns,
            wake_ns,
            cached_bytes,
            uncached_bytes_per_second,
            first_touch_bytes_per_second,
        }
    }
}

/// What a cost is measured in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Unit {
    Time,
    Size,
    Rate,
}

impl Unit {
    pub(crate) fn example(self) -> &'static str {
        match self {
            Unit::Time => "a time such as \"12 us\"",
            Unit::Size => "a size such as \"4 MiB\"",
            Unit::Rate => "a bandwidth such as \"40 GB/s\"",
        }
    }

    pub(crate) fn parse(self, text: &str) -> Result<f64, UnitError> {
        match self {
            Unit::Time => parse_time(text),
            Unit::Size => parse_bytes(text).map(|bytes| bytes as f64),
            Unit::Rate => parse_bandwidth(text),
        }
    }

    pub(crate) fn format(self, value: f64) -> String {
        match self {
            Unit::Time => format_time(value),
            Unit::Size => format_bytes(value as u64),
            Unit::Rate => format_bandwidth(value),
        }
    }
}

/// The keys of a machine file, with their table, in the order of the fields.
pub(crate) const KEYS: [(&str, Unit); 8] = [
    ("edge.fragment", Unit::Time),
    ("edge.fragment_cpu", Unit::Time),
    ("edge.transfer", Unit::Time),
    ("edge.queue", Unit::Time),
    ("edge.wake", Unit::Time),
    ("edge.cached", Unit::Size),
    ("edge.uncached", Unit::Rate),
    ("edge.first_touch", Unit::Rate),
];

/// A key as it stands in its table.
pub(crate) fn in_table(key: &str) -> &str {
    key.split_once('.').map_or(key, |(_, key)| key)
}
