//! From a sequence to its domains.

use super::accuracy::{Accuracy, Aligned};
use super::cluster::clusters;
use super::matrix::{Cell, Lengths, Matrix, Occupancy};
use super::model::Model;
use super::null2::Use;
use super::sample::Sample;
use crate::filter::ForwardFilter;
use crate::profile::Profile;
use crate::random::{Random, SEED};
use multigrain_simd::QUAD;
use std::ops::RangeInclusive;

/// A region must have a residue that lies in a domain with this probability.
const INSIDE_MIN: f32 = 0.25;
/// A region ends where a residue lies in a domain, other than one that begins or ends there, with less than this.
const EDGE: f32 = 0.10;
/// A region has several domains if somewhere in it this many are expected to end before and begin after.
const SEVERAL: f32 = 0.20;
/// Alignments sampled for such a region.
const SAMPLES: u32 = 200;
/// At least what a residue takes beside the matrices: states outside of the nodes, probabilities, null2.
const RESIDUE_BYTES: u64 = 128;

/// Domains of a sequence take more working memory than there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    /// With so much, in bytes, the region that met this is resolved.
    pub needed_bytes: u64,
}

/// An envelope and its scores, in nats.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Envelope {
    /// First residue, counted from 1.
    pub(super) from: usize,
    /// Last residue.
    pub(super) to: usize,
    /// Forward score of its residues as one domain.
    pub(super) score: f32,
    /// What null2 says is due to composition.
    pub(super) correction: f32,
    /// Its alignment; known only where it was asked for, or envelopes overlap.
    pub(super) aligned: Option<Aligned>,
}

/// What was found in a sequence.
#[derive(Default)]
pub(super) struct Found {
    /// Forward score of the sequence, in nats.
    pub(super) forward: f32,
    /// Expected number of domains.
    pub(super) expected: f32,
    pub(super) regions: u32,
    pub(super) clustered: u32,
    pub(super) overlaps: u32,
    pub(super) envelopes: u32,
    pub(super) domains: Vec<Envelope>,
    /// Log odds of null2 for each residue; entry 0 is before the first.
    pub(super) null2: Vec<f32>,
}

/// Finds the domains of one sequence after another in a profile. Holds all working memory: matrices of the largest region
/// met so far, 12 bytes a node and residue each ([`working_bytes`](Self::working_bytes)), and no more than its limit.
pub struct Finder {
    pub(super) model: Model,
    pub(super) statistics: crate::profile::Exponential,
    filter: Option<ForwardFilter>,
    align: bool,
    limit_bytes: u64,
    pub(super) found: Found,
    forward: Matrix,
    backward: Matrix,
    using: Use,
    sample: Sample,
    accuracy: Accuracy,
}

impl Finder {
    /// The most working memory for a region of so many residues in a sequence of `length`, in bytes: three matrices, one of
    /// them only where envelopes overlap, and some numbers a residue.
    pub fn working_bytes(profile: &Profile, region: u64, length: u64) -> u64 {
        Self::bytes_of((profile.nodes() as u64).div_ceil(QUAD as u64), region, length)
    }

    fn bytes_of(quads: u64, region: u64, length: u64) -> u64 {
        let cells = quads.saturating_mul(region.saturating_add(1));
        let residues = RESIDUE_BYTES.saturating_mul(length.saturating_add(1));
        (3 * size_of::<Cell>() as u64).saturating_mul(cells).saturating_add(residues)
    }

    /// Whether there is room for a region of so many residues.
    fn check_room(&self, region: usize, length: usize) -> Result<(), Short> {
        let needed_bytes = Self::bytes_of(self.model.quads() as u64, region as u64, length as u64);
        if needed_bytes <= self.limit_bytes { Ok(()) } else { Err(Short { needed_bytes }) }
    }

    /// A finder of domains of this profile.
    pub fn new(profile: &Profile) -> Self {
        Self {
            model: Model::new(profile),
            statistics: profile.forward,
            filter: None,
            align: false,
            limit_bytes: u64::MAX,
            found: Found::default(),
            forward: Matrix::default(),
            backward: Matrix::default(),
            using: Use::default(),
            sample: Sample::default(),
            accuracy: Accuracy::default(),
        }
    }

    /// One that finds none where a sequence's Forward score does not pass this filter, if any.
    #[must_use]
    pub fn with_filter(self, filter: Option<ForwardFilter>) -> Self {
        Self { filter, ..self }
    }

    /// One that tells the alignment of every domain, if `align`.
    #[must_use]
    pub fn with_alignments(self, align: bool) -> Self {
        Self { align, ..self }
    }

    /// One that takes no more than so many bytes.
    #[must_use]
    pub fn with_limit(self, limit_bytes: u64) -> Self {
        Self { limit_bytes, ..self }
    }

    /// As [`with_limit`](Self::with_limit), from now on. What it holds it keeps.
    pub fn set_limit(&mut self, limit_bytes: u64) {
        self.limit_bytes = limit_bytes;
    }

    /// What its matrices hold, in bytes.
    pub fn held_bytes(&self) -> u64 {
        (self.forward.held_bytes() + self.backward.held_bytes() + self.accuracy.held_bytes()) as u64
    }

    /// Finds the domains of a sequence of at least one residue. False when there are none, or when `hopeless` says so,
    /// asked with the sequence's Forward score in nats and the number of residues in regions if each of these seems to
    /// hold one domain.
    pub(super) fn define(
        &mut self,
        residues: &[u8],
        hopeless: impl FnOnce(f32, Option<usize>) -> bool,
    ) -> Result<bool, Short> {
        let length = residues.len();
        self.check_room(1, length)?;
        let multihit = Lengths::multihit(length);
        let score = self.forward.forward(&self.model, multihit, residues, false);
        if self.filter.as_ref().is_some_and(|filter| !filter.passes(score, residues)) {
            return Ok(false);
        }
        self.backward.backward(&self.model, multihit, residues, &self.forward, false);
        self.found = Found { forward: score, null2: vec![0.0; length + 1], ..Found::default() };
        let Some(occupancy) = self.backward.occupancy(multihit, &self.forward) else { return Ok(false) };
        self.found.expected = occupancy.begins[length];
        let regions = regions(&occupancy);
        let several: Vec<bool> = regions.iter().map(|region| several(&occupancy, region)).collect();
        let covered = regions.iter().map(|region| region.end() - region.start() + 1).sum();
        if hopeless(score, (!several.contains(&true)).then_some(covered)) {
            return Ok(false);
        }
        let longest = regions.iter().map(|region| region.end() - region.start() + 1).max().unwrap_or(0);
        self.check_room(longest, length)?;
        for (region, several) in regions.into_iter().zip(several) {
            self.found.regions += 1;
            if several {
                self.found.clustered += 1;
                self.resolve(residues, region);
            } else {
                self.found.envelopes += 1;
                self.rescore(residues, region, false, false);
            }
        }
        Ok(!self.found.domains.is_empty())
    }

    /// Domains of a region that seems to have several.
    fn resolve(&mut self, residues: &[u8], region: RangeInclusive<usize>) {
        let lengths = Lengths::multihit(residues.len());
        let (first, inside) = (*region.start(), &residues[*region.start() - 1..*region.end()]);
        self.forward.forward(&self.model, lengths, inside, true);
        let mut random = Random::new(SEED);
        let mut segments = Vec::new();
        let null2 = &mut self.found.null2[region.clone()];
        for number in 0..SAMPLES {
            if !self.sample.draw(&mut random, &self.model, lengths, &self.forward) {
                return;
            }
            // What lies in no domain counts 1; so does, as in HMMER, the first residue of each domain.
            let mut done = 0;
            for (mut segment, nodes) in self.sample.domains() {
                let odds = self.using.by_sample(&self.model, nodes);
                let (from, to) = (segment.from as usize, segment.to as usize);
                for value in &mut null2[done..from] {
                    *value += 1.0;
                }
                for i in from.max(done)..to {
                    null2[i] += odds[usize::from(inside[i])];
                }
                done = to.max(from);
                segment.sample = number;
                segment.from += first as u32 - 1;
                segment.to += first as u32 - 1;
                segments.push(segment);
            }
            for value in &mut null2[done..] {
                *value += 1.0;
            }
        }
        for value in null2 {
            *value = f64::from(*value / SAMPLES as f32).ln() as f32;
        }
        let clusters = clusters(&segments, SAMPLES as usize);
        let overlapping = clusters.iter().enumerate().any(|(i, b)| clusters[..i].iter().any(|a| a.to >= b.from));
        let mut last = 0;
        for cluster in clusters {
            let (from, to) = (cluster.from as usize, cluster.to as usize);
            self.found.overlaps += u32::from(from <= last);
            self.found.envelopes += 1;
            if self.rescore(residues, from..=to, true, overlapping) {
                last = to;
            }
        }
    }

    /// Scores an envelope as one domain. False if its numbers overflow: then it holds several copies of the profile that
    /// clustering did not part, which HMMER leaves out too.
    fn rescore(&mut self, residues: &[u8], envelope: RangeInclusive<usize>, sampled: bool, align: bool) -> bool {
        let lengths = Lengths::unihit(residues.len());
        let (from, to) = (*envelope.start(), *envelope.end());
        let inside = &residues[from - 1..to];
        let score = self.forward.forward(&self.model, lengths, inside, true);
        self.backward.backward(&self.model, lengths, inside, &self.forward, true);
        if !self.backward.decode(lengths, &self.forward) {
            return false;
        }
        let aligned = match align || self.align {
            true => self.accuracy.align(&self.model, lengths, inside, &self.backward),
            false => None,
        };
        if !sampled {
            let odds = self.using.by_expectation(&self.model, &self.backward);
            for (value, &x) in self.found.null2[envelope.clone()].iter_mut().zip(inside) {
                *value = f64::from(odds[usize::from(x)]).ln() as f32;
            }
        }
        let correction = self.found.null2[envelope].iter().fold(0.0f32, |sum, value| sum + value);
        let whole = |(first, last): (usize, usize)| (first + from - 1, last + from - 1);
        let aligned = aligned.map(|aligned| Aligned { residues: whole(aligned.residues), ..aligned });
        self.found.domains.push(Envelope { from, to, score, correction, aligned });
        true
    }
}

/// Stretches of residues that probably lie in domains.
fn regions(occupancy: &Occupancy) -> Vec<RangeInclusive<usize>> {
    let Occupancy { begins, ends, inside } = occupancy;
    let mut found = Vec::new();
    let mut start: Option<usize> = None;
    let mut probable = false;
    for j in 1..inside.len() {
        if !probable {
            if inside[j] - (begins[j] - begins[j - 1]) < EDGE || start.is_none() {
                start = Some(j);
            }
            probable = inside[j] >= INSIDE_MIN;
        } else if inside[j] - (ends[j] - ends[j - 1]) < EDGE {
            found.push(start.unwrap_or(j)..=j);
            start = None;
            probable = false;
        }
    }
    found
}

/// Whether somewhere in a region a domain is expected to have ended before another begins.
fn several(occupancy: &Occupancy, region: &RangeInclusive<usize>) -> bool {
    let Occupancy { begins, ends, .. } = occupancy;
    let (i, j) = (*region.start(), *region.end());
    let parted = |z: usize| (ends[z] - ends[i - 1]).min(begins[j] - begins[z - 1]);
    region.clone().any(|z| parted(z) >= SEVERAL)
}
