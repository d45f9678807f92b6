//! null2: the odds of residues as the states of one domain emit them on average, which tells how much of a domain's
//! score is composition.

use super::matrix::Matrix;
use super::model::Model;
use crate::profile::alphabet::{ANY, CODES, GAP, RESIDUES, members};
use multigrain_simd::{QUAD, Quad};

/// Residues whose odds are summed at the same time.
const SUMS: usize = 5;
const _: () = assert!(RESIDUES.is_multiple_of(SUMS));

/// Odds of all codes.
pub(super) type Odds = [f32; CODES];

/// Space for the use of states.
#[derive(Default)]
pub(super) struct Use {
    /// Of match states, and of insert states.
    states: Vec<(Quad, Quad)>,
    /// Quads of states that are used at all.
    used: Vec<usize>,
}

impl Use {
    /// From the probabilities that each state emitted each residue.
    pub(super) fn by_expectation(&mut self, model: &Model, posterior: &Matrix) -> Odds {
        self.states.clear();
        self.states.extend(posterior.row(1).iter().map(|cell| (cell.m, cell.i)));
        self.used.clear();
        self.used.extend(0..self.states.len());
        let first = posterior.special[1];
        let (mut n, mut c, mut j) = (first.n, first.c, first.j);
        for i in 2..=posterior.length() {
            for (state, cell) in self.states.iter_mut().zip(posterior.row(i)) {
                state.0 = cell.m + state.0;
                state.1 = cell.i + state.1;
            }
            let x = posterior.special[i];
            n += x.n;
            c += x.c;
            j += x.j;
        }
        let norm = 1.0 / posterior.length() as f32;
        (n, c, j) = (n * norm, c * norm, j * norm);
        self.odds(model, norm, n + c + j)
    }

    /// From the nodes (counted from 1) that emitted the residues of one sampled domain. As in HMMER, a residue of an
    /// insert state counts for its node's match state.
    pub(super) fn by_sample(&mut self, model: &Model, nodes: &[u32]) -> Odds {
        let quads = model.quads();
        self.states.clear();
        self.states.resize(quads, Default::default());
        for &node in nodes {
            let k = node as usize - 1;
            debug_assert!(k < QUAD * quads);
            let mut counts = self.states[k % quads].0.to_array();
            counts[k / quads] += 1.0;
            self.states[k % quads].0 = Quad::new(counts);
        }
        // A sample uses few states of a long profile; what is not used would add zeros.
        self.used.clear();
        self.used.extend(nodes.iter().map(|&node| (node as usize - 1) % quads));
        self.used.sort_unstable();
        self.used.dedup();
        self.odds(model, 1.0 / nodes.len() as f32, 0.0)
    }

    /// The mean of the emission odds of all states, weighted by their use times `norm`; `outside` is the weight of
    /// states that emit as the background does.
    fn odds(&mut self, model: &Model, norm: f32, outside: f32) -> Odds {
        let norm = Quad::splat(norm);
        for &q in &self.used {
            let state = &mut self.states[q];
            *state = (state.0 * norm, state.1 * norm);
        }
        let mut odds = [1.0; CODES];
        // Several sums at once, for each waits for its own last addition.
        for x in (0..RESIDUES).step_by(SUMS) {
            let mut sums = [Quad::ZERO; SUMS];
            let emissions: [&[Quad]; SUMS] = std::array::from_fn(|s| &model.odds((x + s) as u8)[..self.states.len()]);
            for &q in &self.used {
                let state = self.states[q];
                for (sum, emissions) in sums.iter_mut().zip(&emissions) {
                    *sum += state.0 * emissions[q];
                    *sum += state.1;
                }
            }
            for (s, sum) in sums.iter().enumerate() {
                odds[x + s] = sum.sum() + outside;
            }
        }
        for x in GAP + 1..=ANY {
            let set = members(x);
            let mut sum = 0.0;
            for i in (0..RESIDUES).filter(|i| set >> i & 1 == 1) {
                sum += odds[i];
            }
            odds[usize::from(x)] = sum / set.count_ones() as f32;
        }
        odds
    }
}
