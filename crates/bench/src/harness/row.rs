//! A row: figures of both sides, the bar, the verdict.

/// What figures mean. Both sides measure a cost (seconds, nanoseconds, a multiple); people read some of them as rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unit {
    /// Seconds for so many floating-point operations.
    Gflops(f64),
    /// Seconds for so many bytes.
    GigabytesPerSecond(f64),
    /// Seconds.
    Seconds,
    /// Nanoseconds.
    Nanoseconds,
    /// A multiple of what is least.
    Multiple,
}

impl Unit {
    /// What is shown for a cost.
    pub(crate) fn value(self, cost: f64) -> f64 {
        match self {
            Unit::Gflops(flops) => flops / cost / 1e9,
            Unit::GigabytesPerSecond(bytes) => bytes / cost / 1e9,
            Unit::Seconds | Unit::Nanoseconds | Unit::Multiple => cost,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Unit::Gflops(_) => "GFLOP/s",
            Unit::GigabytesPerSecond(_) => "GB/s",
            Unit::Seconds => "s",
            Unit::Nanoseconds => "ns",
            Unit::Multiple => "x",
        }
    }
}

/// What a row is held against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bar {
    /// The ratio to the fastest peer is at least this.
    RatioAtLeast(f64),
    /// Our own figure is at most this.
    AtMost(f64),
    /// Nothing is asked.
    None,
}

/// What somebody measured.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    /// Costs, one a turn; none if it is missing.
    pub(crate) samples: Vec<f64>,
    /// Why there are none.
    pub(crate) missing: Option<String>,
}

impl Figure {
    /// The median cost.
    pub(crate) fn median(&self) -> Option<f64> {
        median(&self.samples)
    }
}

/// One row of the table.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) unit: Unit,
    /// Our costs, one a turn.
    pub(crate) ours: Vec<f64>,
    pub(crate) peers: Vec<Figure>,
    pub(crate) bar: Bar,
    /// What else is to be known: the work, what a figure includes.
    pub(crate) notes: Vec<String>,
    /// Why there is no figure of ours, or why it counts for nothing.
    pub(crate) failed: Option<String>,
}

impl Row {
    /// A row of figures beside those of its peers.
    pub(crate) fn new(
        name: impl Into<String>,
        unit: Unit,
        ours: Vec<f64>,
        peers: impl IntoIterator<Item = impl Into<Figure>>,
        bar: Bar,
        notes: Vec<String>,
    ) -> Row {
        let peers = peers.into_iter().map(Into::into).collect();
        Row { name: name.into(), unit, ours, peers, bar, notes, failed: None }
    }

    /// A row that could not be measured.
    pub(crate) fn failed(name: &str, why: String) -> Row {
        Row {
            name: name.to_owned(),
            unit: Unit::Seconds,
            ours: Vec::new(),
            peers: Vec::new(),
            bar: Bar::None,
            notes: Vec::new(),
            failed: Some(why),
        }
    }

    /// Our median cost.
    pub(crate) fn median(&self) -> Option<f64> {
        median(&self.ours)
    }

    /// The peer that a ratio is taken to: the one with the lowest median.
    pub(crate) fn fastest(&self) -> Option<&Figure> {
        let measured = self.peers.iter().filter(|p| p.median().is_some());
        measured.min_by(|a, b| f64::total_cmp(&a.median().unwrap_or(f64::NAN), &b.median().unwrap_or(f64::NAN)))
    }

    /// A peer's cost over ours, from the medians: above 1 we are faster.
    pub(crate) fn ratio_to(&self, peer: &Figure) -> Option<f64> {
        Some(peer.median()? / self.median()?)
    }

    /// The same turn by turn: the least, the median, the greatest.
    pub(crate) fn ratios_of_turns(&self, peer: &Figure) -> Option<[f64; 3]> {
        let mut ratios: Vec<f64> = peer.samples.iter().zip(&self.ours).map(|(peer, ours)| peer / ours).collect();
        ratios.sort_by(f64::total_cmp);
        Some([*ratios.first()?, median(&ratios)?, *ratios.last()?])
    }

    /// Whether the bar holds; `None` where there is none, or nobody to be held against.
    pub(crate) fn holds(&self) -> Option<bool> {
        match self.bar {
            Bar::RatioAtLeast(_) | Bar::AtMost(_) if self.failed.is_some() => Some(false),
            Bar::RatioAtLeast(bar) => Some(self.ratio_to(self.fastest()?)? >= bar),
            Bar::AtMost(bar) => Some(self.median()? <= bar),
            Bar::None => None,
        }
    }
}

/// The middle of the samples; of an even number, the mean of the two.
pub(crate) fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some((low + high) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(name: &str, samples: &[f64]) -> Figure {
        Figure { name: name.into(), version: None, samples: samples.to_vec(), missing: None }
    }

    #[test]
    fn the_ratio_is_taken_to_the_fastest_peer_by_medians() {
        let row = Row {
            ours: vec![2.0, 4.0, 3.0],
            peers: vec![figure("slow", &[9.0]), figure("fast", &[3.0, 3.0, 2.7]), figure("gone", &[])],
            bar: Bar::RatioAtLeast(1.0),
            failed: None,
            ..Row::failed("row", String::new())
        };
        let fastest = row.fastest().unwrap();
        assert_eq!((fastest.name.as_str(), row.ratio_to(fastest)), ("fast", Some(1.0)));
        assert_eq!(row.ratios_of_turns(fastest), Some([0.75, 0.9, 1.5]));
        assert_eq!(row.holds(), Some(true));
        assert_eq!(Row { bar: Bar::AtMost(2.9), ..row }.holds(), Some(false));
    }

    #[test]
    fn a_figure_that_counts_for_nothing_holds_no_bar() {
        let row = Row { ours: vec![1.0], peers: vec![figure("slow", &[9.0])], ..Row::failed("row", "why".into()) };
        assert_eq!(row.holds(), None);
        assert_eq!(Row { bar: Bar::RatioAtLeast(1.2), ..row }.holds(), Some(false));
    }

    #[test]
    fn without_samples_there_is_no_median_and_no_bar_is_held() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
        let row = Row { ours: vec![1.0], bar: Bar::RatioAtLeast(1.0), ..Row::failed("row", String::new()) };
        assert_eq!(row.holds(), Some(false));
    }
}
