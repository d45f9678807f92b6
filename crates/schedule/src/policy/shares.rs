//! How a loop's iterations are shared out among those who execute it together.
//!
//! Equal shares would make the leader wait: a helper begins late, by as long as the hand-over takes, and its
//! processor may be slower or busy with something else. The paper lets the leader execute "a slightly larger portion of
//! the loop" and tunes it by "timing idle periods across multiple invocations of the same loop" (section 5.3.1). Here as
//! well: for each participant is measured how long it was idle before it began, how long it computed, and how much it
//! did. All would have ended at one moment T if participant i had done s_i (T - b_i), where s_i is its speed and b_i its
//! idle time at the beginning; these are the shares of the next time, smoothed.

/// The weight of a new measurement is 1/SMOOTHING.
const SMOOTHING: f64 = 8.0;

/// No share is smaller than this part of an equal one: who never takes part is never measured.
const SHARE_MIN: f64 = 1.0 / 16.0;

/// What one participant did in one execution of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Part {
    /// From the beginning of the loop until it began; any unit.
    pub idle_before: f64,
    /// How long it computed, in the same unit.
    pub busy: f64,
    /// Chunks that it executed, those of others included; 0 if it came too late to do anything.
    pub chunks: u32,
}

/// The shares of one loop's participants; the leader is the first.
#[derive(Clone, Debug)]
pub struct Shares {
    /// They add up to 1.
    weights: Vec<f64>,
}

impl Shares {
    /// Equal shares.
    ///
    /// # Panics
    /// If there are no participants.
    pub fn new(participants: usize) -> Shares {
        assert!(participants > 0, "a loop without participants");
        Shares { weights: vec![1.0 / participants as f64; participants] }
    }

    /// The share of each, adding up to 1.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The ends of the participants' ranges of `chunks` chunks, into `ends`: participant `i` has those from
    /// `ends[i - 1]` (0 for the first) to less than `ends[i]`.
    pub fn ends(&self, chunks: u32, ends: &mut Vec<u32>) {
        ends.clear();
        let mut sum = 0.0;
        for weight in &self.weights {
            sum += weight;
            // To the nearest; `round` is a call of a function.
            let end = (sum * f64::from(chunks) + 0.5) as u32;
            ends.push(end.min(chunks));
        }
        if let Some(last) = ends.last_mut() {
            *last = chunks;
        }
    }

    /// Learns from one execution. A measurement that says nothing (no time passed) changes nothing.
    pub fn learn(&mut self, parts: &[Part]) {
        assert_eq!(parts.len(), self.weights.len(), "one measurement for each participant");
        let least = SHARE_MIN / parts.len() as f64;
        // Short loops, of which the helpers, who have the least already, did nothing: it would change next to nothing.
        let mut helpers = self.weights.iter().zip(parts).skip(1);
        if helpers.all(|(&weight, part)| part.chunks == 0 && weight <= least) {
            return;
        }
        let speed =
            |part: &Part| if part.chunks > 0 && part.busy > 0.0 { f64::from(part.chunks) / part.busy } else { 0.0 };
        let speeds: f64 = parts.iter().map(speed).sum();
        let chunks: f64 = parts.iter().map(|part| f64::from(part.chunks)).sum();
        let late: f64 = parts.iter().map(|part| speed(part) * part.idle_before).sum();
        let end = (chunks + late) / speeds;
        if !end.is_finite() || chunks == 0.0 {
            return;
        }
        for (weight, part) in self.weights.iter_mut().zip(parts) {
            let share = (speed(part) * (end - part.idle_before) / chunks).max(0.0);
            *weight = (*weight + (share - *weight) / SMOOTHING).max(least);
        }
        let sum: f64 = self.weights.iter().sum();
        self.weights.iter_mut().for_each(|weight| *weight /= sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_chunk_has_one_owner(parts in prop::collection::vec((0.0..1e9f64, 0.0..1e9f64, 0..1000u32), 1..9), chunks in 0..5_000u32) {
            let mut shares = Shares::new(parts.len());
            let mut ends = Vec::new();
            let parts: Vec<Part> =
                parts.into_iter().map(|(idle_before, busy, chunks)| Part { idle_before, busy, chunks }).collect();
            for _ in 0..20 {
                shares.learn(&parts);
                shares.ends(chunks, &mut ends);
                prop_assert!(ends.is_sorted() && ends.last() == Some(&chunks));
                prop_assert!((shares.weights().iter().sum::<f64>() - 1.0).abs() < 1e-9);
                prop_assert!(shares.weights().iter().all(|weight| *weight > 0.0));
            }
        }

        /// Helpers that come late and have speeds of their own: in the end all finish together.
        #[test]
        fn shares_settle_where_all_end_together(late in prop::collection::vec(0.0..20.0f64, 1..6), slow in 1.0..3.0f64) {
            let (chunks, chunk_ns) = (1_000, 1.0);
            let speeds: Vec<f64> = (0..=late.len()).map(|i| if i == 1 { chunk_ns * slow } else { chunk_ns }).collect();
            let before: Vec<f64> = std::iter::once(0.0).chain(late).collect();
            let (mut shares, mut ends) = (Shares::new(before.len()), Vec::new());
            let mut spans = Vec::new();
            for _ in 0..200 {
                shares.ends(chunks, &mut ends);
                let counts = (0..ends.len()).map(|i| ends[i] - if i == 0 { 0 } else { ends[i - 1] });
                let parts: Vec<Part> = counts
                    .zip(before.iter().zip(&speeds))
                    .map(|(chunks, (&idle_before, ns))| Part { idle_before, busy: f64::from(chunks) * ns, chunks })
                    .collect();
                let ends_at = parts.iter().map(|part| part.idle_before + part.busy);
                spans = ends_at.collect();
                shares.learn(&parts);
            }
            let (first, last) = (spans.iter().copied().fold(f64::MAX, f64::min), spans.iter().copied().fold(0.0, f64::max));
            prop_assert!(last - first <= 2.0 * slow + 0.01 * last, "{spans:?}");
        }
    }
}
