//! Energies and momentum of a state, by plain sums in double precision.

use super::{ROWS, State, Worst, norm};
use crate::simulation::Simulation;
use crate::task::SUMS;
use multigrain::prelude::{Error, Outcome, Region, blocks};

/// Sum of the momenta, and of their absolute values.
pub(super) fn momentum(state: &State<'_>) -> Result<([f64; 3], f64), Error> {
    let (mut sum, mut all) = ([0.0; 3], 0.0);
    state.in_pieces(|_, rows| {
        for row in &rows {
            (0..3).for_each(|d| sum[d] += row[0] * row[4 + d]);
            all += row[0] * norm([row[4], row[5], row[6]]);
        }
    })?;
    Ok((sum, all))
}

/// The row of sums of snapshot `number`.
pub(super) fn row(outcome: &Outcome, sums: usize, number: u64) -> Result<Vec<f64>, Error> {
    let bytes = outcome.read(sums, &Region::new(&[number, 0], &[1, SUMS]))?;
    Ok(bytes.chunks_exact(8).map(|b| f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])).collect())
}

/// Judges the row of sums of a state whose energies are known.
pub(super) fn compare_sums(
    found: &[f64],
    state: &State<'_>,
    energies: [f64; 2],
    worst: &mut Worst,
) -> Result<(), Error> {
    let (momentum, all) = momentum(state)?;
    // All masses have one sign, so energies are sums of terms of one sign. Either side makes at most so many roundings.
    let roundings = 2.0 * (state.n as f64 + 96.0) * f64::EPSILON;
    let expected = energies.map(|energy| (energy, energy.abs())).into_iter().chain(momentum.map(|p| (p, all)));
    for (&found, (expected, scale)) in found.iter().zip(expected.chain([(all, all)])) {
        let error = if found == expected || (found.is_nan() && expected.is_nan()) { 0.0 } else { found - expected };
        worst.add(error.abs(), roundings * scale, || {
            format!("the sums of a snapshot hold {found}, {expected} was expected")
        });
    }
    Ok(())
}

/// Kinetic and potential energy.
pub(crate) fn energies(state: &State<'_>, simulation: &Simulation) -> Result<[f64; 2], Error> {
    let softening2 = f64::from(simulation.step.softening2);
    let (mut kinetic, mut potential) = (0.0, 0.0);
    for (first, count) in blocks(state.n, ROWS) {
        let these = state.rows(first, count)?;
        kinetic += these.iter().map(|row| 0.5 * row[0] * (4..7).map(|c| row[c] * row[c]).sum::<f64>()).sum::<f64>();
        let mut sums = vec![0.0; these.len()];
        for (other, count) in blocks(state.n, ROWS).skip_while(|(other, _)| *other < first) {
            let others = state.rows(other, count)?;
            for (i, (a, sum)) in these.iter().zip(&mut sums).enumerate() {
                // Each pair once.
                for b in &others[if other == first { i + 1 } else { 0 }..] {
                    let r2: f64 = (1..4).map(|c| (a[c] - b[c]) * (a[c] - b[c])).sum();
                    *sum += if r2 + softening2 > 0.0 { b[0] / (r2 + softening2).sqrt() } else { 0.0 };
                }
            }
        }
        potential -= these.iter().zip(sums).map(|(a, sum)| a[0] * sum).sum::<f64>();
    }
    Ok([kinetic, simulation.step.gravity * potential])
}
