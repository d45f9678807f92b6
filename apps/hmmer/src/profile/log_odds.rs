//! A profile's parameters as logarithms in single precision, by the way that HMMER 3 takes, rounding by rounding:
//! probabilities become single, then their logarithms do. Scores and filters that must decide as its own do start from
//! these.

use super::alphabet::{ANY, BACKGROUND, CODES, GAP, RESIDUES, members};
use super::{Profile, Transitions};

/// Natural logarithms of probabilities and of odds ratios.
pub(crate) struct LogOdds {
    /// B to M, for each node.
    pub(crate) entry: Vec<f32>,
    /// What leaves node 0 and each node, in the file's order: MM, MI, MD, IM, II, DM, DD.
    pub(crate) transitions: Vec<[f32; 7]>,
    /// Odds of all codes at each match state; minus infinity for the gap, `*` and missing data.
    pub(crate) matches: Vec<[f32; CODES]>,
}

impl LogOdds {
    pub(crate) fn new(profile: &Profile) -> LogOdds {
        let transitions: Vec<[f32; 7]> = profile.transitions.iter().map(single).collect();
        LogOdds {
            entry: entries(&transitions),
            transitions: transitions.iter().map(|leave| leave.map(ln)).collect(),
            matches: profile.matches.iter().map(odds).collect(),
        }
    }
}

/// null1 as [`null1`](super::null1) has it, in single precision as HMMER rounds it.
pub(crate) fn null1_single(length: usize) -> f32 {
    let stay = length as f32 / (length + 1) as f32;
    (f64::from(length as f32) * f64::from(stay).ln() + (1.0 - f64::from(stay)).ln()) as f32
}

/// Transitions of a node in the file's order, in single precision.
fn single(t: &Transitions) -> [f32; 7] {
    [t.mm, t.mi, t.md, t.im, t.ii, t.dm, t.dd].map(|p| p as f32)
}

fn ln(p: f32) -> f32 {
    f64::from(p).ln() as f32
}

/// Logarithms of the probabilities B -> M_k, see [`Profile::local`].
fn entries(transitions: &[[f32; 7]]) -> Vec<f32> {
    let nodes = transitions.len() - 1;
    let mut occupancy = Vec::with_capacity(nodes);
    let mut occ = transitions[0][1] + transitions[0][0];
    for leave in &transitions[1..] {
        occupancy.push(occ);
        let stays = f64::from(occ * (leave[0] + leave[1]));
        occ = (stays + (1.0 - f64::from(occ)) * f64::from(leave[5])) as f32;
    }
    let mut total = 0.0f32;
    for (k, occ) in occupancy.iter().enumerate() {
        total += occ * (nodes - k) as f32;
    }
    occupancy.iter().map(|occ| ln(occ / total)).collect()
}

/// Log odds of all codes at a match state.
fn odds(probabilities: &[f64; RESIDUES]) -> [f32; CODES] {
    let mut scores = [f32::NEG_INFINITY; CODES];
    for i in 0..RESIDUES {
        scores[i] = (f64::from(probabilities[i] as f32) / f64::from(BACKGROUND[i])).ln() as f32;
    }
    for x in GAP + 1..=ANY {
        let set = members(x);
        let (mut weighted, mut weight) = (0.0f32, 0.0f32);
        for i in (0..RESIDUES).filter(|i| set >> i & 1 == 1) {
            weighted += scores[i] * BACKGROUND[i];
            weight += BACKGROUND[i];
        }
        scores[usize::from(x)] = weighted / weight;
    }
    scores
}

#[cfg(test)]
mod tests {
    use super::null1_single;

    #[test]
    fn null1_in_single_precision_is_near() {
        for length in [1, 10, 153, 400, 35_000] {
            let exact = crate::profile::null1(length);
            assert!((f64::from(null1_single(length)) - exact).abs() < 1.0e-4 * length as f64);
        }
    }
}
