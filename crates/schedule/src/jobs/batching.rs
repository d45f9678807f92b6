//! How many jobs are handed over at once.

/// How long a batch of adaptive size is meant to take, in nanoseconds: a hundred times what a hand-over costs between
/// workers that are awake, and as long as the batches of calls that plans make.
pub const BATCH_NS: u64 = 20_000;

/// Jobs handed over at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Batching {
    /// Always so many, where the source has them: at least one, at most as many as may be in flight.
    Fixed(u32),
    /// As many as take [`BATCH_NS`], by measurement: of how long jobs take, and of how long the source takes to make
    /// them, so that no job waits long for others to fill a batch.
    #[default]
    Adaptive,
}

/// The present size of batches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    batch: Batching,
    max: u32,
    size: u32,
    job_ns: Mean,
    source_ns: Mean,
}

/// A mean that forgets: of every new value a quarter.
#[derive(Clone, Copy, Debug, Default)]
struct Mean(Option<f64>);

impl Mean {
    fn add(&mut self, value: f64) {
        self.0 = Some(self.0.map_or(value, |mean| mean + (value - mean) / 4.0));
    }
}

impl Size {
    /// `max` is for adaptive sizes.
    pub(super) fn new(batch: Batching, max: u32, in_flight: u32) -> Size {
        let size = match batch {
            Batching::Fixed(jobs) => jobs.clamp(1, in_flight),
            Batching::Adaptive => 1,
        };
        Size { batch, max, size, job_ns: Mean::default(), source_ns: Mean::default() }
    }

    pub(super) fn jobs(&self) -> u32 {
        self.size
    }

    /// Whether the size is that asked for, or has been found by measurement.
    pub(super) fn is_known(&self) -> bool {
        self.batch != Batching::Adaptive || self.job_ns.0.is_some()
    }

    /// The source took so long for so many jobs.
    pub(super) fn filled(&mut self, jobs: u32, span_ns: u64) {
        if jobs > 0 {
            self.source_ns.add(span_ns as f64 / f64::from(jobs));
            self.adapt();
        }
    }

    /// A worker took so long for so many jobs.
    pub(super) fn completed(&mut self, jobs: u32, span_ns: u64) {
        if jobs > 0 {
            self.job_ns.add(span_ns as f64 / f64::from(jobs));
            self.adapt();
        }
    }

    fn adapt(&mut self) {
        if let (Batching::Adaptive, Some(job_ns)) = (self.batch, self.job_ns.0) {
            let each_ns = job_ns.max(self.source_ns.0.unwrap_or(0.0)).max(1.0);
            // Twice as many at most, since one short batch may be a matter of luck; fewer at once.
            let wanted = (BATCH_NS as f64 / each_ns).min(f64::from(self.max)) as u32;
            self.size = wanted.clamp(1, self.size.saturating_mul(2).min(self.max));
        }
    }
}
