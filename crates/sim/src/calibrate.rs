//! How fast leaves are, from the traces of real runs.
//!
//! The simulator takes a leaf to cost what starting it costs, its arithmetic at one rate and what it touches at another
//! ([`multigrain_machine::LeafRate`]). Here these are chosen so that the leaves of a trace would have taken what they
//! took: least squares of relative errors, none of the three negative.

use multigrain_machine::LeafRate;
use multigrain_plan::Plan;
use multigrain_trace::{Kind, Trace};
use std::collections::BTreeMap;

/// Calls of one task and one shape: what they are and what one of them took.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Name of the task.
    pub task: String,
    /// Floating-point operations of a call.
    pub flops: f64,
    /// Bytes that a call touches.
    pub bytes: f64,
    /// Mean time of a call, seconds, without calls that the operating system interrupted, which say nothing of the leaf.
    pub seconds: f64,
    /// How many calls.
    pub calls: u64,
}

/// The leaves of a run of a plan, by shape. A trace of another plan gives none, or nonsense.
pub fn samples(plan: &Plan, trace: &Trace) -> Vec<Sample> {
    let plans = plan.all();
    let mut times: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
    for record in trace.records.iter().filter(|record| record.kind == Kind::Leaf) {
        let Some(plan) = plans.get(record.subject as usize) else { continue };
        let Some(&class) = plan.class_of.get(record.number as usize) else { continue };
        times.entry((record.subject, class)).or_default().push(record.ticks());
    }
    let sample = |((plan, class), mut ticks): ((u32, u32), Vec<u64>)| {
        let (mean, calls) = mean(&mut ticks);
        let plan = plans[plan as usize];
        let class = &plan.classes[class as usize];
        let task = &plan.tasks[class.task as usize];
        let work = task.work(&class.shape);
        Sample {
            task: task.name().to_owned(),
            flops: work.flops,
            bytes: work.bytes,
            seconds: trace.seconds(mean),
            calls,
        }
    };
    times.into_iter().map(sample).collect()
}

/// Of the leaves of several runs of one plan, those of the run in the middle, for each shape: a run from which the computer took
/// its processors says nothing of the leaf.
pub fn typical(runs: Vec<Vec<Sample>>) -> Vec<Sample> {
    let shapes = runs.iter().map(Vec::len).min().unwrap_or(0);
    let of_shape = |shape: usize| {
        let mut samples: Vec<&Sample> = runs.iter().map(|run| &run[shape]).collect();
        samples.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        samples[samples.len() / 2].clone()
    };
    (0..shapes).map(of_shape).collect()
}

/// A call that took so many times the median was interrupted.
const INTERRUPTED: u64 = 2;

/// The mean of times, and of how many: not the median, since a run takes the sum of its calls, of which some are slower (caches
/// and memory are shared) and none much faster.
fn mean(ticks: &mut [u64]) -> (u64, u64) {
    ticks.sort_unstable();
    let most = ticks[ticks.len() / 2].saturating_mul(INTERRUPTED);
    let counted = &ticks[..ticks.partition_point(|&t| t <= most)];
    (counted.iter().sum::<u64>() / counted.len() as u64, counted.len() as u64)
}

/// The leaf rates that explain samples best, one for each task in them.
pub fn fit(samples: &[Sample], source: &str) -> Vec<LeafRate> {
    let mut by_task: BTreeMap<&str, Vec<&Sample>> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.seconds > 0.0) {
        by_task.entry(&sample.task).or_default().push(sample);
    }
    let rate = |(task, samples): (&str, Vec<&Sample>)| {
        let [start, flop, byte] = coefficients(&samples);
        LeafRate {
            task: task.to_owned(),
            flops_per_second: Some(per_second(flop)),
            bytes_per_second: Some(per_second(byte)),
            call_overhead_ns: Some(start * 1e9),
            source: Some(source.to_owned()),
        }
    };
    by_task.into_iter().map(rate).collect()
}

/// A rate that is out of reach: what costs nothing beside the rest.
const FREE_PER_SECOND: f64 = 1e18;

/// The rate of what takes so many seconds.
fn per_second(seconds: f64) -> f64 {
    if seconds > 1.0 / FREE_PER_SECOND { 1.0 / seconds } else { FREE_PER_SECOND }
}

/// Seconds a start, a flop, a byte: of all sets of these that may differ from zero, the one with the least sum of squared
/// relative errors, weighted by time, among those where none is negative.
fn coefficients(samples: &[&Sample]) -> [f64; 3] {
    let mut best = ([0.0; 3], f64::INFINITY);
    // With few columns it is simplest to try every set of them.
    for set in 1..8u8 {
        let columns: Vec<usize> = (0..3).filter(|column| set >> column & 1 == 1).collect();
        let Some(solution) = least_squares(samples, &columns) else { continue };
        let mut coefficients = [0.0; 3];
        columns.iter().zip(solution).for_each(|(column, value)| coefficients[*column] = value);
        if coefficients.iter().any(|c| *c < 0.0) {
            continue;
        }
        let error: f64 = samples
            .iter()
            .map(|s| {
                let predicted: f64 = row(s).iter().zip(coefficients).map(|(x, c)| x * c).sum();
                weight(s) * (predicted / s.seconds - 1.0).powi(2)
            })
            .sum();
        if error < best.1 {
            best = (coefficients, error);
        }
    }
    best.0
}

fn row(sample: &Sample) -> [f64; 3] {
    [1.0, sample.flops, sample.bytes]
}

/// What all calls of a shape took counts, not how often there were some.
fn weight(sample: &Sample) -> f64 {
    sample.seconds * sample.calls as f64
}

/// Solves the normal equations for some columns by Gaussian elimination; `None` if they do not determine the answer.
fn least_squares(samples: &[&Sample], columns: &[usize]) -> Option<Vec<f64>> {
    let n = columns.len();
    // Columns of very different size are brought to the same one first.
    let scale: Vec<f64> =
        columns.iter().map(|column| samples.iter().map(|s| row(s)[*column] / s.seconds).fold(0.0, f64::max)).collect();
    if scale.contains(&0.0) {
        return None;
    }
    let mut matrix = vec![vec![0.0; n + 1]; n];
    for sample in samples {
        let x: Vec<f64> = columns.iter().zip(&scale).map(|(c, s)| row(sample)[*c] / sample.seconds / s).collect();
        for i in 0..n {
            let row = &mut matrix[i];
            row.iter_mut().zip(&x).for_each(|(value, other)| *value += weight(sample) * x[i] * other);
            row[n] += weight(sample) * x[i];
        }
    }
    for i in 0..n {
        let pivot = (i..n).max_by(|a, b| matrix[*a][i].abs().total_cmp(&matrix[*b][i].abs()))?;
        matrix.swap(i, pivot);
        let pivot = matrix[i].clone();
        if pivot[i].abs() < 1e-9 * weight_sum(samples) {
            return None;
        }
        for row in &mut matrix[i + 1..] {
            let factor = row[i] / pivot[i];
            row.iter_mut().zip(&pivot).skip(i).for_each(|(value, of_pivot)| *value -= factor * of_pivot);
        }
    }
    let mut solution = vec![0.0; n];
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| matrix[i][j] * solution[j]).sum();
        solution[i] = (matrix[i][n] - known) / matrix[i][i];
    }
    solution.iter_mut().zip(&scale).for_each(|(value, scale)| *value /= scale);
    Some(solution)
}

fn weight_sum(samples: &[&Sample]) -> f64 {
    samples.iter().map(|s| weight(s)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(flops: f64, bytes: f64, seconds: f64) -> Sample {
        Sample { task: "t".into(), flops, bytes, seconds, calls: 1 }
    }

    #[test]
    fn rates_that_explain_everything_are_found() {
        let seconds = |flops: f64, bytes: f64| 2e-6 + flops / 5e9 + bytes / 8e9;
        let sizes = [(1e6, 1e5), (1e7, 3e5), (1e5, 1e6), (3e6, 3e6), (1e3, 1e3)];
        let samples: Vec<Sample> = sizes.iter().map(|&(f, b)| sample(f, b, seconds(f, b))).collect();
        let found = fit(&samples, "a test");
        let [rate] = &found[..] else { panic!("{found:?}") };
        let near = |found: Option<f64>, expected: f64| (found.unwrap() / expected - 1.0).abs() < 1e-6;
        assert!(near(rate.flops_per_second, 5e9) && near(rate.bytes_per_second, 8e9), "{rate:?}");
        assert!(near(rate.call_overhead_ns, 2e3), "{rate:?}");
    }

    #[test]
    fn a_disturbed_run_does_not_count() {
        let run = |factor: f64| vec![sample(1e6, 0.0, 1e-3 * factor), sample(2e6, 0.0, 2e-3 * factor)];
        assert_eq!(typical(vec![run(1.01), run(9.0), run(0.99)]), run(1.01));
        assert!(typical(Vec::new()).is_empty());
    }

    #[test]
    fn interrupted_calls_are_left_out() {
        assert_eq!(mean(&mut [10, 30, 20, 60, 10_000]), (30, 4));
        assert_eq!(mean(&mut [7]), (7, 1));
        assert_eq!(mean(&mut [0, 0, 0, 5]), (0, 3));
    }

    #[test]
    fn what_samples_cannot_tell_apart_is_left_out() {
        // One shape: any one column explains it.
        let rate = &fit(&[sample(1e6, 1e6, 1e-3)], "a test")[0];
        let seconds = rate.call_overhead_ns.unwrap() * 1e-9
            + rate.flops_per_second.map_or(0.0, |r| 1e6 / r)
            + rate.bytes_per_second.map_or(0.0, |r| 1e6 / r);
        assert!((seconds - 1e-3).abs() < 1e-9, "{rate:?}");
        // More bytes never make a call faster, whatever noise says.
        let samples = [sample(1e6, 1e6, 1e-3), sample(1e6, 2e6, 0.9e-3), sample(2e6, 1e6, 2e-3)];
        let rate = &fit(&samples, "a test")[0];
        assert!(rate.bytes_per_second.unwrap() >= 1e12 && rate.flops_per_second.unwrap() < 1e12, "{rate:?}");
        assert!(fit(&[], "a test").is_empty());
    }
}
