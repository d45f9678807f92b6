//! From the clock of the kernel's events, in nanoseconds, to the ticks of records. Both are read at the same moment again and
//! again; a time lies on the line through the last two of these moments, so it is as exact as they are.

/// One moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) tick: u64,
    pub(crate) ns: u64,
}

/// How the clocks go together.
#[derive(Clone, Debug)]
pub(crate) struct Clocks {
    before: Moment,
    last: Moment,
    /// How many ticks passed at most while both were read.
    width: u64,
}

impl Clocks {
    /// From a first moment, during which so many ticks passed, at so many ticks in a second.
    pub(crate) fn new((first, width): (Moment, u64), ticks_per_second: f64) -> Clocks {
        // A second before it, by the rate that is known: until there is another moment.
        let before = Moment {
            tick: first.tick.saturating_sub(ticks_per_second as u64),
            ns: first.ns.saturating_sub(1_000_000_000),
        };
        Clocks { before, last: first, width }
    }

    /// Both were read once more.
    pub(crate) fn took(&mut self, (moment, width): (Moment, u64)) {
        self.width = self.width.max(width);
        if moment.ns > self.last.ns && moment.tick > self.last.tick {
            (self.before, self.last) = (self.last, moment);
        }
    }

    /// A time of the kernel's in ticks.
    pub(crate) fn tick(&self, ns: u64) -> u64 {
        let (before, last) = (self.before, self.last);
        let rate = (last.tick - before.tick) as f64 / (last.ns - before.ns).max(1) as f64;
        let since = (i128::from(ns) - i128::from(before.ns)) as f64 * rate;
        (i128::from(before.tick) + since.round() as i128).clamp(0, i128::from(u64::MAX)) as u64
    }

    /// The last moment.
    pub(crate) fn last(&self) -> Moment {
        self.last
    }

    /// By so many ticks a time may be another: half of what passed while both clocks were read, at the worst of these moments.
    pub(crate) fn error_ticks(&self) -> u64 {
        self.width.div_ceil(2)
    }
}

/// Both clocks at one moment, and the ticks that passed around it: of several tries the one in which the fewest did.
pub(crate) fn read(tick: impl Fn() -> u64, ns: impl Fn() -> u64) -> (Moment, u64) {
    const TRIES: usize = 8;
    let once = || {
        let before = tick();
        let ns = ns();
        let width = tick().saturating_sub(before);
        (Moment { tick: before + width / 2, ns }, width)
    };
    let first = once();
    (1..TRIES).map(|_| once()).fold(first, |best, next| if next.1 < best.1 { next } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Two clocks that go at even rates: every time between the moments, and shortly before them, is found to a tick.
        #[test]
        fn times_are_found_on_the_other_clock(
            rate in 0.1..6.0_f64, origin in 0..1_u64 << 50, ns in 1 << 40..1_u64 << 55,
            steps in proptest::collection::vec(1_000_000..100_000_000_u64, 1..20), part in -0.1..1.0_f64,
        ) {
            let at = |ns_now: u64| Moment { tick: origin + ((ns_now - ns) as f64 * rate).round() as u64, ns: ns_now };
            let mut clocks = Clocks::new((at(ns), 10), rate * 1e9);
            let mut now = ns;
            for step in steps {
                clocks.took((at(now + step), 11));
                if now > ns || part > 0.0 {
                    let time = (now as i64 + (part * step as f64) as i64) as u64;
                    prop_assert!(clocks.tick(time.max(ns)).abs_diff(at(time.max(ns)).tick) <= 2);
                }
                now += step;
            }
            prop_assert_eq!((clocks.error_ticks(), clocks.last()), (6, at(now)));
        }
    }

    #[test]
    fn a_clock_that_stands_still_divides_by_nothing() {
        let moment = Moment { tick: 5, ns: 7 };
        let mut clocks = Clocks::new((moment, 0), 1e9);
        clocks.took((moment, 0));
        assert_eq!(clocks.tick(7), 5);
    }

    #[test]
    fn of_several_readings_the_closest_is_taken() {
        let ticks = std::cell::Cell::new(0);
        // 5, 4, 3, .. ticks pass around the other clock.
        let step = std::cell::Cell::new(9);
        let tick = || {
            ticks.set(ticks.get() + step.get());
            ticks.get()
        };
        let ns = || {
            step.set(step.get() - 1);
            ticks.get()
        };
        assert_eq!(read(tick, ns).1, 1);
    }
}
