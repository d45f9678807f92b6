//! What sequences and domains must reach to be reported, or to count as significant.

/// What a sequence or domain must reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// An E-value of at most this.
    Evalue(f64),
    /// A score of at least this, in bits.
    Score(f64),
}

impl Threshold {
    /// Whether a score whose probability has this logarithm reaches it among so many.
    pub(crate) fn passes(self, score: f32, log_p: f64, targets: f64) -> bool {
        match self {
            Threshold::Evalue(most) => probability(log_p) * targets <= most,
            Threshold::Score(least) => f64::from(score) >= least,
        }
    }
}

/// What is reported, and what counts as significant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// Number of sequences that E-values refer to.
    pub targets: f64,
    /// Number of sequences that E-values of domains refer to; that of the reported ones if not given.
    pub domain_targets: Option<f64>,
    /// For sequences to be reported.
    pub report: Threshold,
    /// For domains of reported sequences to be reported.
    pub report_domains: Threshold,
    /// For sequences to be significant.
    pub include: Threshold,
    /// For domains of significant sequences to be significant.
    pub include_domains: Threshold,
}

impl Thresholds {
    /// hmmsearch's: an E-value of 10 to be reported, of 0.01 to be included.
    pub fn new(targets: f64) -> Self {
        let (report, include) = (Threshold::Evalue(10.0), Threshold::Evalue(0.01));
        let (report_domains, include_domains) = (report, include);
        Self { targets, domain_targets: None, report, report_domains, include, include_domains }
    }
}

/// The number whose logarithm this is, 0 where it has not all its digits, as in HMMER.
pub(crate) fn probability(log_p: f64) -> f64 {
    let p = log_p.exp();
    if p < f64::MIN_POSITIVE { 0.0 } else { p }
}
