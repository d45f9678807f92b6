//! Statistics of a profile's scores, measured on random sequences: what hmmbuild writes into its STATS lines, for profiles
//! that have none.
//!
//! S. R. Eddy, "A probabilistic model of local sequence alignment that simplifies statistical significance estimation",
//! PLoS Computational Biology 4:e1000069 (2008): lambda is ln 2 and an edge effect that the profile's length and information
//! decide; locations are those of 200 scores. Lengths, numbers and the seed are HMMER 3's, so that E-values are its own.

use crate::domain::forward_bits;
use crate::filter::{self, Filters};
use crate::profile::alphabet::BACKGROUND;
use crate::profile::{Exponential, Gumbel, Profile, null1_single};
use crate::random::{Random, SEED};
use multigrain_simd::Isa;
use std::f64::consts::LN_2;

/// Sequences that are scored for each distribution.
const SEQUENCES: usize = 200;
/// Residues of each, for the Gumbel distributions and for Forward's tail.
const LENGTHS: [usize; 2] = [200, 100];
/// The part of Forward's scores that is its tail.
const TAIL: f64 = 0.04;
/// The edge effect: so many bits, shared by all the information of a profile.
const EDGE: f64 = 1.44;

/// Measures the statistics of a profile that has the rest.
pub(crate) fn calibrate(profile: &mut Profile) {
    let lambda = LN_2 + EDGE / (profile.nodes() as f64 * information(profile));
    let mut random = Random::new(SEED);
    let mut sequences =
        |length: usize| -> Vec<u8> { (0..SEQUENCES * length).map(|_| random.pick(&BACKGROUND) as u8).collect() };
    let (isa, [long, short]) = (Isa::detect(), LENGTHS);
    let tables = filter::pack(isa, profile, &Filters::default());
    let nodes = profile.nodes();
    let mut filter_bits = |kind: filter::Kind| -> Vec<f64> {
        let nats = filter::scores(isa, &tables, nodes, &sequences(long), long, kind);
        nats.into_iter().map(|nats| f64::from(nats - null1_single(long)) / LN_2).collect()
    };
    let located = |bits: Vec<f64>| Gumbel::located(&bits, lambda);
    profile.msv = located(filter_bits(filter::Kind::Msv));
    profile.viterbi = located(filter_bits(filter::Kind::Viterbi));
    let bits = forward_bits(profile, &sequences(short), short);
    let tau = Gumbel::fitted(&bits).score(TAIL) + TAIL.ln() / lambda;
    profile.forward = Exponential { tau, lambda };
}

/// Mean relative entropy of the match states' emissions, in bits.
fn information(profile: &Profile) -> f64 {
    let of = |p: f64, background: f32| if p > 0.0 { p * (p / f64::from(background)).log2() } else { 0.0 };
    let all = profile.matches.iter().flat_map(|emissions| emissions.iter().zip(BACKGROUND).map(|(&p, b)| of(p, b)));
    all.sum::<f64>() / profile.nodes() as f64
}
