//! Which sequences can be reported at all, told from their Forward score.
//!
//! A reported score is the better of two, less biases that are never negative: the sequence's Forward score F, and its
//! reconstruction, the sum of its envelopes' scores with the rest of the sequence at null1's price. With n residues, all
//! in nats:
//!
//! *One envelope* of r residues. Every alignment of it as one domain is one of the whole sequence. As one domain, N and C
//! stay with n/(n+2) and leave with 2/(n+2), and E leads to C with 1; in the sequence's model it is n/(n+3), 3/(n+3), 1/2.
//! The ratio of the two products is at most 2 (2/(n+2))^2 / (3/(n+3))^2 = 8/9 ((n+3)/(n+2))^2, times (n+3)/(n+2) for each
//! of at most r residues outside of the nodes. Since ln((n+3)/(n+2)) < 1/(n+2), the reconstruction is at most
//! F + ln(8/9) + (r+2)/(n+2), and this at most F + ln(8/9) + 1 = F + 0.8822.
//!
//! *Several envelopes, apart*, of r residues together. Their alignments one after the other are one of the sequence, with
//! one more J -> B and E -> J instead of C -> T, N -> B and E -> C for each: each more envelope multiplies the ratio by
//! 8/3 (n+3)/(n+2)^2, which is less than 1 for n >= 2, and the bound is that of one envelope.
//!
//! *Overlapping envelopes* count residues twice. For each of them alone, its score and 3' = n ln(1 + 3/n) <= 3 times its
//! share of the sequence are together at most F + 0.8822 + 3'. The reconstruction is the sum of these, less 3'; so if
//! F <= -3.8822, more envelopes only make it smaller. If F is larger, it may be larger than F by any amount; but
//! envelopes overlap only in regions with several domains, which shows before the expensive part begins.
//!
//! So only two kinds of sequences need domains: those with F + 0.8822 at the threshold, and those with F > -3.8822, of
//! which most end when it turns out that no region has several domains. One in a hundred random sequences is of the
//! second kind.

use crate::profile::{Exponential, null1};
use crate::thresholds::{Threshold, Thresholds};

/// ln(8/9): how much a reconstruction of envelopes that do not overlap can exceed Forward, but for their length.
const GAIN: f64 = -0.117_783_035_656_383_46;
/// Below this Forward score, overlapping envelopes cannot gain either.
const OVERLAP_FROM: f64 = -3.0 - (GAIN + 1.0);
/// For the rounding of Forward scores in single precision, here and where the score comes from: of the numbers near the
/// threshold, and of the probability to stay in N, J and C, which a sequence meets once a residue (2^-22 is four roundings
/// of a number below 1).
fn margin(length: usize) -> f64 {
    0.002 + length as f64 / f64::from(1 << 22)
}

/// What a score must reach to be reported.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Bits.
    score_min: f64,
}

impl Bound {
    /// What the sequences that these thresholds report have reached.
    pub fn new(statistics: Exponential, thresholds: &Thresholds) -> Self {
        let score_min = match thresholds.report {
            Threshold::Evalue(evalue) => statistics.score(evalue / thresholds.targets),
            Threshold::Score(score) => score,
        };
        Self { score_min }
    }

    /// Whether a sequence of `length` residues with this Forward score, in nats, could be reported; if not, its domains
    /// need not be looked for.
    pub fn may_be_reported(&self, forward: f64, length: usize) -> bool {
        length > 0 && (self.without_overlaps(forward, length, length) || forward + margin(length) > OVERLAP_FROM)
    }

    /// The same for a sequence whose envelopes do not overlap and have at most `covered` residues.
    pub(super) fn without_overlaps(&self, forward: f64, length: usize, covered: usize) -> bool {
        let threshold = self.score_min * std::f64::consts::LN_2 + null1(length);
        let gain = GAIN + (covered as f64 + 2.0) / (length as f64 + 2.0);
        forward + gain.max(0.0) + margin(length) >= threshold
    }
}
