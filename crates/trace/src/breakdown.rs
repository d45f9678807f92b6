//! Where the time of a run went.

use std::fmt;

use crate::clock::ticks_per_second;
use crate::record::Kind;
use crate::totals::Totals;

/// The worker time of a run, which is its wall time multiplied by its workers, in three parts: leaf work, waiting for
/// transfers at each edge, and what remains, the runtime's overhead (with it, the time in which a worker had nothing
/// to do).
///
/// All seconds but `wall_seconds` are seconds of worker time, summed over the workers: two workers that both compute
/// for 3 s have `leaf_seconds` of 6.
#[derive(Clone, Debug, PartialEq)]
pub struct Breakdown {
    /// From the start of the run to its end.
    pub wall_seconds: f64,
    /// How many workers took part.
    pub workers: usize,
    /// Worker time inside leaf variants.
    pub leaf_seconds: f64,
    /// Worker time spent waiting for transfers, by the name of the edge, from the root down.
    pub wait_seconds: Vec<(String, f64)>,
    /// The worker time that remains; zero if clock noise would make it negative.
    pub overhead_seconds: f64,
}

impl Breakdown {
    /// The breakdown of a run on this process's clock. `edge_names` are by edge index.
    pub fn new(wall_seconds: f64, workers: usize, totals: &Totals, edge_names: &[String]) -> Breakdown {
        Breakdown::with_rate(wall_seconds, workers, totals, edge_names, ticks_per_second())
    }

    /// The breakdown of a run whose ticks came at another rate: one read from a file, or a simulated one.
    ///
    /// Waits at an edge that has no name are shown under `edge N`, those at no edge at all under `other`.
    pub fn with_rate(
        wall_seconds: f64,
        workers: usize,
        totals: &Totals,
        edge_names: &[String],
        ticks_per_second: f64,
    ) -> Breakdown {
        let seconds = |ticks: u64| if ticks_per_second > 0.0 { ticks as f64 / ticks_per_second } else { 0.0 };
        let mut wait_seconds = Vec::new();
        let mut named_ticks = 0_u64;
        for edge in 0..edge_names.len().max(totals.edges()) {
            let sum = totals.at(Kind::Wait, edge);
            named_ticks = named_ticks.wrapping_add(sum.ticks);
            match edge_names.get(edge) {
                Some(name) => wait_seconds.push((name.clone(), seconds(sum.ticks))),
                None if sum.count > 0 => wait_seconds.push((format!("edge {edge}"), seconds(sum.ticks))),
                None => {}
            }
        }
        let unnamed_ticks = totals.of(Kind::Wait).ticks.wrapping_sub(named_ticks);
        if unnamed_ticks > 0 {
            wait_seconds.push(("other".to_string(), seconds(unnamed_ticks)));
        }
        let leaf_seconds = seconds(totals.of(Kind::Leaf).ticks);
        let waited: f64 = wait_seconds.iter().map(|(_, seconds)| seconds).sum();
        let overhead_seconds = (wall_seconds * workers as f64 - leaf_seconds - waited).max(0.0);
        Breakdown { wall_seconds, workers, leaf_seconds, wait_seconds, overhead_seconds }
    }

    /// Wall time multiplied by workers: what the three parts add up to, but for clock noise.
    pub fn worker_seconds(&self) -> f64 {
        self.wall_seconds * self.workers as f64
    }

    /// Waiting at all edges together, in seconds of worker time.
    pub fn waited_seconds(&self) -> f64 {
        self.wait_seconds.iter().map(|(_, seconds)| seconds).sum()
    }

    /// A share of the worker time, 0 to 1.
    fn fraction(&self, seconds: f64) -> f64 {
        let all = self.worker_seconds();
        if all > 0.0 { (seconds / all).clamp(0.0, 1.0) } else { 0.0 }
    }
}

impl fmt::Display for Breakdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |name: &str, seconds: f64| {
            writeln!(f, "{name:<28} {seconds:>12.6} s {:>6.1} %", 100.0 * self.fraction(seconds))
        };
        row("leaf work", self.leaf_seconds)?;
        for (edge, seconds) in &self.wait_seconds {
            row(&format!("wait on {edge}"), *seconds)?;
        }
        row("overhead", self.overhead_seconds)?;
        write!(f, "{:<28} {:>12.6} s x {} workers", "wall", self.wall_seconds, self.workers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::NO_INDEX;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_parts_add_up_to_the_worker_time() {
        let mut totals = Totals::new(2);
        totals.add(Kind::Leaf, NO_INDEX, 3_000);
        totals.add(Kind::Wait, 0, 500);
        totals.add(Kind::Wait, 1, 250);
        totals.add(Kind::Transfer, 1, 1_000_000); // overlaps: no part of a worker's time
        let breakdown = Breakdown::with_rate(2.0, 2, &totals, &names(&["disk", "local"]), 1000.0);
        assert_eq!(breakdown.leaf_seconds, 3.0);
        assert_eq!(breakdown.wait_seconds, [("disk".into(), 0.5), ("local".into(), 0.25)]);
        assert_eq!(breakdown.overhead_seconds, 0.25);
        let parts = [breakdown.leaf_seconds, breakdown.waited_seconds(), breakdown.overhead_seconds];
        assert_eq!(parts.iter().sum::<f64>(), breakdown.worker_seconds());
        assert!(breakdown.to_string().contains("wait on disk"));
    }

    #[test]
    fn clock_noise_never_makes_overhead_negative() {
        let mut totals = Totals::new(0);
        totals.add(Kind::Leaf, NO_INDEX, 1_001);
        let breakdown = Breakdown::with_rate(1.0, 1, &totals, &[], 1000.0);
        assert_eq!(breakdown.overhead_seconds, 0.0);
        assert_eq!(breakdown.fraction(breakdown.leaf_seconds), 1.0);
    }

    #[test]
    fn waits_without_a_name_are_shown_too() {
        let mut totals = Totals::new(2);
        totals.add(Kind::Wait, 1, 10);
        totals.add(Kind::Wait, NO_INDEX, 20);
        let breakdown = Breakdown::with_rate(1.0, 1, &totals, &names(&["disk"]), 10.0);
        assert_eq!(breakdown.wait_seconds, [("disk".into(), 0.0), ("edge 1".into(), 1.0), ("other".into(), 2.0)]);
    }

    #[test]
    fn an_empty_run_has_no_fractions_out_of_range() {
        let breakdown = Breakdown::with_rate(0.0, 0, &Totals::new(0), &[], 0.0);
        assert_eq!(
            (breakdown.fraction(breakdown.leaf_seconds), breakdown.fraction(breakdown.overhead_seconds)),
            (0.0, 0.0)
        );
    }
}
