//! The model of local alignments in single precision, striped: quad `q` holds nodes `q`, `q + Q`, `q + 2Q`, `q + 3Q`.
//!
//! M. Farrar, "Striped Smith-Waterman speeds database searches six times over other SIMD implementations",
//! Bioinformatics 23:156 (2007). The parameters take the way of HMMER 3, rounding by rounding: the logarithms
//! in single precision ([`LogOdds`]) become odds and probabilities again by a polynomial in single precision.

use crate::profile::alphabet::CODES;
use crate::profile::{LogOdds, Profile};
use multigrain_simd::{QUAD, Quad};

/// Probabilities that lead into or out of one quad of nodes, from the same or the preceding node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steps {
    /// B to these match states.
    pub(super) begin: Quad,
    /// Preceding match states to these match states.
    pub(super) mm: Quad,
    /// Preceding insert states to these match states.
    pub(super) im: Quad,
    /// Preceding delete states to these match states.
    pub(super) dm: Quad,
    /// These match states to the delete states that follow.
    pub(super) md: Quad,
    /// These match states to their insert states.
    pub(super) mi: Quad,
    /// These insert states to themselves.
    pub(super) ii: Quad,
    /// These delete states to the delete states that follow.
    pub(super) dd: Quad,
}

/// A profile as this room computes with it.
pub(super) struct Model {
    /// Nodes.
    pub(super) nodes: usize,
    /// Transitions, a quad of nodes each.
    pub(super) steps: Vec<Steps>,
    /// Odds ratios of all codes: `quads()` quads for code 0, then for code 1, and so on.
    odds: Vec<Quad>,
}

impl Model {
    pub(super) fn new(profile: &Profile) -> Self {
        let nodes = profile.nodes();
        // One quad would have no neighbour to shift from.
        let quads = nodes.div_ceil(QUAD).max(2);
        let LogOdds { entry, transitions, matches } = LogOdds::new(profile);
        // Values of node k = 1..=M; 0 where there is no such node or nothing leads on.
        let stripe =
            |q: usize, value: &dyn Fn(usize) -> f32| Quad::new(std::array::from_fn(|lane| value(q + lane * quads + 1)));
        let leave = |k: usize, which: usize| {
            if (1..nodes).contains(&k) { exp(transitions[k][which]) } else { 0.0 }
        };
        let steps = (0..quads).map(|q| Steps {
            begin: stripe(q, &|k| if k <= nodes { exp(entry[k - 1]) } else { 0.0 }),
            mm: stripe(q, &|k| leave(k - 1, 0)),
            im: stripe(q, &|k| leave(k - 1, 3)),
            dm: stripe(q, &|k| leave(k - 1, 5)),
            md: stripe(q, &|k| leave(k, 2)),
            mi: stripe(q, &|k| leave(k, 1)),
            ii: stripe(q, &|k| leave(k, 4)),
            dd: stripe(q, &|k| leave(k, 6)),
        });
        let emissions: Vec<[f32; CODES]> = matches.iter().map(|scores| scores.map(exp)).collect();
        let of = |x: usize| {
            let emissions = &emissions;
            (0..quads).map(move |q| stripe(q, &|k| if k <= nodes { emissions[k - 1][x] } else { 0.0 }))
        };
        Self { nodes, steps: steps.collect(), odds: (0..CODES).flat_map(of).collect() }
    }

    /// Quads of nodes.
    pub(super) fn quads(&self) -> usize {
        self.steps.len()
    }

    /// Odds ratios of a residue code at all match states.
    pub(super) fn odds(&self, code: u8) -> &[Quad] {
        &self.odds[usize::from(code) * self.quads()..][..self.quads()]
    }
}

/// e^x in single precision by the polynomial of the Cephes library (S. L. Moshier, `expf`), which is not always the
/// nearest number; scores that must agree to the last bit need these.
fn exp(x: f32) -> f32 {
    /// Beyond this the exponent of the result has no representation (127.5 ln 2).
    const LIMIT: f32 = 88.376_26;
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    const POLYNOMIAL: [f32; 6] = [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_6e-1, 5e-1];
    if x > LIMIT {
        return f32::INFINITY;
    }
    if x <= -LIMIT {
        return 0.0;
    }
    let power = (x * std::f32::consts::LOG2_E + 0.5).floor();
    let f = x - power * LN2_HIGH - power * LN2_LOW;
    let mut y = POLYNOMIAL[0];
    for coefficient in &POLYNOMIAL[1..] {
        y = y * f + coefficient;
    }
    let y = y * (f * f) + f + 1.0;
    y * f32::from_bits(((power as i32 + 127) as u32) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_is_accurate() {
        let mut x = -80.0f32;
        while x < 80.0 {
            let exact = f64::from(x).exp();
            assert!((f64::from(exp(x)) / exact - 1.0).abs() < 3e-7, "{x}");
            x += 0.0137;
        }
        assert_eq!((exp(f32::NEG_INFINITY), exp(-100.0), exp(100.0)), (0.0, 0.0, f32::INFINITY));
        assert_eq!(exp(0.0), 1.0);
    }
}
