//! What something takes, from measurements of which a few are wildly off.

/// The weight of a new measurement, after the first.
const WEIGHT: f64 = 1.0 / 8.0;

/// The weight of one below the average: what disturbs a measurement makes it longer, nothing makes it shorter.
const WEIGHT_DOWN: f64 = 1.0 / 4.0;

/// A measurement counts as at most so many times what was expected: a thread that loses its processor takes
/// milliseconds.
const OUTLIER: f64 = 2.0;

/// A moving average that no single outlier carries away.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimate {
    value: f64,
    measured: u32,
}

impl Estimate {
    /// The average; 0 if nothing was measured.
    pub(super) fn value(self) -> f64 {
        self.value
    }

    pub(super) fn is_known(self) -> bool {
        self.measured > 0
    }

    pub(super) fn add(&mut self, measurement: f64) {
        self.measured = self.measured.saturating_add(1);
        if self.measured == 1 {
            self.value = measurement;
        } else {
            let weight = if measurement < self.value { WEIGHT_DOWN } else { WEIGHT };
            self.value += (measurement.min(OUTLIER * self.value) - self.value) * weight;
        }
    }

    /// How many times as slow as another: 1 at least.
    pub(super) fn slower_than(self, other: Estimate) -> f64 {
        (self.value / other.value.max(f64::MIN_POSITIVE)).clamp(1.0, 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_and_forgets_outliers() {
        let mut estimate = Estimate::default();
        estimate.add(10.0);
        estimate.add(1e9);
        assert!(estimate.value() <= 11.25, "{estimate:?}");
        (0..100).for_each(|_| estimate.add(20.0));
        assert!((estimate.value() - 20.0).abs() < 0.01, "{estimate:?}");
    }
}
