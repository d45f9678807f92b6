//! Virtual time: whole picoseconds.

use multigrain_trace::Tick;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

/// A point in virtual time, counted from the beginning of the simulation, or a length of it: whole picoseconds, so that
/// sums are exact and the order of events never depends on rounding. Counts up to 213 days; sums saturate there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The beginning, or no time at all.
    pub const ZERO: Time = Time(0);
    /// The end of time: what never happens.
    pub const MAX: Time = Time(u64::MAX);

    /// So many picoseconds.
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }

    /// So many nanoseconds, to the nearest picosecond. Negative and undefined times are none, too long ones the longest.
    pub fn from_ns(ns: f64) -> Time {
        Time((ns * 1e3).round() as u64)
    }

    /// So many seconds, to the nearest picosecond; see [`Time::from_ns`].
    pub fn from_seconds(seconds: f64) -> Time {
        Time((seconds * 1e12).round() as u64)
    }

    /// How long `units` take at a rate, rounded up to a picosecond. Nothing takes no time; at the rate 0 all else takes for
    /// ever.
    pub fn at_rate(units: f64, per_second: f64) -> Time {
        if units <= 0.0 { Time::ZERO } else { Time((units / per_second * 1e12).ceil() as u64) }
    }

    /// Picoseconds.
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// Nanoseconds.
    pub fn ns(self) -> f64 {
        self.0 as f64 * 1e-3
    }

    /// Seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-12
    }
}

impl Add for Time {
    type Output = Time;
    fn add(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, other: Time) {
        *self = *self + other;
    }
}

impl Sub for Time {
    type Output = Time;
    /// The time from `other` to `self`; none if `other` is later.
    fn sub(self, other: Time) -> Time {
        Time(self.0.saturating_sub(other.0))
    }
}

impl Mul<u64> for Time {
    type Output = Time;
    fn mul(self, times: u64) -> Time {
        Time(self.0.saturating_mul(times))
    }
}

impl Sum for Time {
    fn sum<I: Iterator<Item = Time>>(times: I) -> Time {
        times.fold(Time::ZERO, Add::add)
    }
}

impl fmt::Display for Time {
    /// With the unit that suits: `3.75 us`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1e12, "s"), (1e9, "ms"), (1e6, "us"), (1e3, "ns"), (1.0, "ps")];
        let ps = self.0 as f64;
        let (scale, unit) = units.into_iter().find(|(scale, _)| ps >= *scale).unwrap_or((1.0, "ps"));
        write!(f, "{} {unit}", ps / scale)
    }
}

/// As traces have it.
pub(crate) fn tick(time: Time) -> Tick {
    Tick(time.ps())
}
