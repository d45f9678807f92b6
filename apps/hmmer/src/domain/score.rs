//! Scores and P-values of a sequence and of its domains.

use super::accuracy::Aligned;
use super::bound::Bound;
use super::define::{Envelope, Finder, Short};
use super::matrix::{Lengths, Matrix};
use super::model::Model;
use crate::kernel::reference_domain;
use crate::profile::{LocalNode, Profile, null1_single};
use crate::random::sum;
use std::f64::consts::LN_2;

/// Prior probability that a stretch is biased.
const OMEGA: f64 = 1.0 / 256.0;

/// A domain of a hit.
#[derive(Clone, Debug, PartialEq)]
pub struct Domain {
    /// First residue of its envelope, counted from 1.
    pub from: usize,
    /// Last residue of its envelope.
    pub to: usize,
    /// Score in bits, corrected for bias.
    pub score: f32,
    /// What was subtracted for bias, in bits.
    pub bias: f64,
    /// Natural logarithm of the probability of its score.
    pub log_p: f64,
    /// Its alignment; known only where it was asked for, or envelopes of the sequence overlap.
    pub aligned: Option<Aligned>,
}

/// What a search says of one sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Score in bits, corrected for bias.
    pub score: f32,
    /// What was subtracted for bias, in bits.
    pub bias: f32,
    /// Natural logarithm of the probability of its score.
    pub log_p: f64,
    /// Expected number of domains.
    pub expected: f32,
    /// Regions that probably hold domains.
    pub regions: u32,
    /// Regions with several domains, resolved by clustering.
    pub clustered: u32,
    /// Envelopes that overlap the one before.
    pub overlaps: u32,
    /// Envelopes.
    pub envelopes: u32,
    /// Domains, in the order of their regions; at least one.
    pub domains: Vec<Domain>,
}

impl Hit {
    /// The domain with the highest score.
    pub fn best(&self) -> &Domain {
        let first = &self.domains[0];
        self.domains.iter().fold(first, |best, domain| if domain.score > best.score { domain } else { best })
    }
}

impl Finder {
    /// Scores a sequence of residue codes in full. None if it has no domains, or if `bound` says before the end that it
    /// cannot be reported. `correct_bias` is false to leave null2 out.
    ///
    /// # Errors
    /// [`Short`] when that takes more than the limit, if there is one.
    pub fn hit(&mut self, residues: &[u8], correct_bias: bool, bound: &Bound) -> Result<Option<Hit>, Short> {
        let length = residues.len();
        let hopeless = |forward: f32, covered: Option<usize>| {
            covered.is_some_and(|covered| !bound.without_overlaps(forward.into(), length, covered))
        };
        if length == 0 || !self.define(residues, hopeless)? {
            return Ok(None);
        }
        let null1 = null1_single(length);
        let corrected = |nats: f32| if correct_bias { bias(nats) } else { 0.0 };
        let found = &self.found;
        let before = bits(found.forward - null1);
        let after = bits(found.forward - (null1 + corrected(sum(&found.null2))));
        let (mut score, mut uncorrected) = (after, before);

        // The reconstruction: domains that are good by themselves, and the rest of the sequence at null1's price.
        let good = |e: &&Envelope| (if correct_bias { e.score - e.correction } else { e.score }) > 0.0;
        let (mut total, mut correction, mut covered) = (0.0f32, 0.0f32, 0usize);
        for envelope in found.domains.iter().filter(good) {
            total += envelope.score;
            correction += envelope.correction;
            covered += envelope.to - envelope.from + 1;
        }
        total = (f64::from(total) + outside(length, covered)) as f32;
        let rebuilt = bits(total - (null1 + corrected(correction)));
        if covered > 0 && rebuilt > score {
            (score, uncorrected) = (rebuilt, bits(total - null1));
        }

        let tail = self.statistics.single();
        let domain = |envelope: &Envelope| {
            let bias = corrected(envelope.correction);
            let covered = envelope.to - envelope.from + 1;
            let nats = (f64::from(envelope.score) + outside(length, covered)) as f32;
            let score = bits(nats - (null1 + bias));
            Domain {
                from: envelope.from,
                to: envelope.to,
                score,
                bias: f64::from(bias) / LN_2,
                log_p: tail.log_survival(f64::from(score)),
                aligned: envelope.aligned.clone(),
            }
        };
        Ok(Some(Hit {
            score,
            bias: uncorrected - score,
            log_p: tail.log_survival(f64::from(score)),
            expected: found.expected,
            regions: found.regions,
            clustered: found.clustered,
            overlaps: found.overlaps,
            envelopes: found.envelopes,
            domains: found.domains.iter().map(domain).collect(),
        }))
    }
}

/// Forward scores in bits of sequences of `length` residues each, one after the other.
pub(crate) fn forward_bits(profile: &Profile, residues: &[u8], length: usize) -> Vec<f64> {
    let (model, mut matrix) = (Model::new(profile), Matrix::default());
    let null1 = null1_single(length);
    let nats = residues.chunks(length).map(|one| matrix.forward(&model, Lengths::multihit(length), one, false));
    nats.map(|nats| f64::from(nats - null1) / LN_2).collect()
}

fn bits(nats: f32) -> f32 {
    (f64::from(nats) / LN_2) as f32
}

impl Domain {
    /// How far its score before the correction for bias is from that in double precision, in bits: Forward over its envelope
    /// as one domain, and the price of the other residues.
    pub fn error_bits(&self, nodes: &[LocalNode], residues: &[u8]) -> f64 {
        let length = residues.len();
        let inside = residues.get(self.from - 1..self.to).unwrap_or_default();
        let nats = reference_domain(nodes, inside, length) + outside(length, inside.len());
        let exact = (nats - crate::profile::null1(length)) / LN_2;
        (f64::from(self.score) + self.bias - exact).abs()
    }
}

/// The price of the residues of a sequence that no domain covers, in nats; a gain if envelopes overlap so much that they
/// have more residues than the sequence.
fn outside(length: usize, covered: usize) -> f64 {
    let residues = length as i64 - covered as i64;
    residues as f64 * f64::from(length as f32 / (length + 3) as f32).ln()
}

/// ln(1 + omega e^correction): what a correction by null2 takes away, given that bias is rare. The second term is looked
/// up in steps of a thousandth, as HMMER does.
fn bias(correction: f32) -> f32 {
    /// From this difference on, one term is nothing beside the other.
    const FAR: f32 = 15.7;
    let biased = (OMEGA.ln() + f64::from(correction)) as f32;
    let (low, high) = (biased.min(0.0), biased.max(0.0));
    if low == f32::NEG_INFINITY || high - low >= FAR {
        return high;
    }
    let step = ((high - low) * 1000.0).floor();
    high + (-f64::from(step) / 1000.0).exp().ln_1p() as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bias_is_never_negative_and_near_its_formula() {
        for correction in [-30.0f32, -3.0, 0.0, 2.0, 5.545, 6.0, 20.0, 100.0] {
            let exact = (OMEGA * f64::from(correction).exp()).ln_1p();
            let found = bias(correction);
            assert!(found >= 0.0 && (f64::from(found) - exact).abs() < 1.0e-3, "{correction}: {found} {exact}");
        }
    }
}
