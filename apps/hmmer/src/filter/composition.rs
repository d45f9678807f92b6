//! The bias filter: how probable a sequence is if it may hold stretches of the profile's own composition.
//!
//! A hidden Markov model of two states that emit residues as the background does, and as the profile does on average. Its
//! Forward score takes null1's place, so that a sequence does not pass for its composition. Eddy 2011 (see the module
//! above) describes it; its arithmetic is single precision in this order.

use crate::profile::Profile;
use crate::profile::alphabet::{ANY, BACKGROUND, CODES, GAP, RESIDUES, members};

/// Probabilities to begin in either state.
const BEGIN: [f32; 2] = [0.999, 0.001];
/// A stretch of the profile's composition is expected to be as long as this part of the profile.
const STRETCH: f32 = 1.0 / 8.0;
/// What HMMER takes for the frequency of each residue where a profile's file does not say its composition.
const UNSET: f32 = 0.0;

/// The filter of one profile.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Composition {
    /// Odds of every code in the profile's composition.
    odds: [f32; CODES],
    /// Probability that the composition goes back to the background's, and that it stays.
    back: f32,
    stay: f32,
}

impl Composition {
    pub(crate) fn new(profile: &Profile) -> Composition {
        let frequencies = profile.composition.map_or([UNSET; RESIDUES], |all| all.map(|p| p as f32));
        // Gaps, `*` and missing data tell nothing.
        let mut odds = [1.0; CODES];
        for (odds, (p, background)) in odds.iter_mut().zip(frequencies.iter().zip(BACKGROUND)) {
            *odds = p / background;
        }
        for x in GAP + 1..=ANY {
            let set = members(x);
            let (mut p, mut background) = (0.0f32, 0.0f32);
            for i in (0..RESIDUES).filter(|i| set >> i & 1 == 1) {
                p += frequencies[i];
                background += BACKGROUND[i];
            }
            odds[usize::from(x)] = p / background;
        }
        let length = profile.nodes() as f32 * STRETCH;
        Composition { odds, back: 1.0 / (length + 1.0), stay: length / (length + 1.0) }
    }

    /// Numbers of [`to_numbers`](Self::to_numbers).
    pub(super) const NUMBERS: usize = CODES + 2;

    /// As numbers that [`of_numbers`](Self::of_numbers) takes.
    pub(super) fn to_numbers(&self) -> impl Iterator<Item = f64> {
        self.odds.into_iter().chain([self.back, self.stay]).map(f64::from)
    }

    pub(super) fn of_numbers(numbers: &[f64; Self::NUMBERS]) -> Composition {
        let odds = std::array::from_fn(|x| numbers[x] as f32);
        Composition { odds, back: numbers[CODES] as f32, stay: numbers[CODES + 1] as f32 }
    }

    /// Log probability of a sequence of at least one residue relative to the background's emissions, in nats.
    pub(crate) fn score(&self, residues: &[u8]) -> f32 {
        let length = residues.len() as f32;
        let stay = length / (length + 1.0);
        let leave = 1.0 - stay;
        let mut total = 0.0f32;
        let [mut background, mut biased] = BEGIN;
        for (i, &x) in residues.iter().enumerate() {
            if i > 0 {
                (background, biased) =
                    (background * stay + biased * self.back, background * leave + biased * self.stay);
            }
            biased *= self.odds[usize::from(x)];
            let most = background.max(biased).max(0.0);
            background /= most;
            biased /= most;
            total += f64::from(most).ln() as f32;
        }
        total += f64::from(background + biased).ln() as f32;
        total + length * stay.ln() + (1.0 - stay).ln()
    }
}
