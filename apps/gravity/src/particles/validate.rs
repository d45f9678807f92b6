//! What cannot be simulated is refused before anything starts.

use super::{NAMES, Name, Particles, ParticlesError};
use std::path::Path;

/// Distances are cubed in single precision: from this on their cubes come near its largest numbers.
const EXTENT_MAX: f64 = 1e12;
/// The same for a mass over the cube of the softening length.
const PULL_MAX: f64 = 1e37;
/// All masses over the cube of the extent must stay far from the least normal numbers.
const PULL_MIN: f64 = 1e-30;

/// Refuses wrong particles, and particles as a whole that single precision cannot hold.
pub(super) fn validate(
    particles: &Particles,
    softening: f64,
    path: &Path,
    name: &dyn Fn(usize) -> Name,
) -> Result<(), ParticlesError> {
    let refuse =
        |row: usize, problem: String| Err(ParticlesError::Particle { path: path.to_owned(), name: name(row), problem });
    for (row, particle) in particles.rows.iter().enumerate() {
        if let Some(column) = particle.iter().position(|value| !value.is_finite()) {
            let value = particle[column];
            return refuse(row, format!("{} = {value}; a finite number is needed", NAMES[column]));
        }
        let mass = particle[0];
        if mass < 0.0 {
            return refuse(row, format!("mass = {mass}; a mass is not negative"));
        }
        if mass > f64::from(f32::MAX) {
            return refuse(row, format!("mass = {mass:e} is beyond single precision; choose a larger unit of mass"));
        }
        if let Some(column) = (1..4).find(|&c| particle[c].abs() > EXTENT_MAX) {
            let (name, value) = (NAMES[column], particle[column]);
            return refuse(
                row,
                format!(
                    "{name} = {value:e}; forces are computed in single precision, which takes up to {EXTENT_MAX:e}: \
                         choose a larger unit of length"
                ),
            );
        }
    }
    scale(particles, softening).map_err(|problem| ParticlesError::Scale { path: path.to_owned(), problem })?;
    if softening == 0.0
        && let Some((first, second)) = coincident(particles)
    {
        let problem = format!(
            "it lies where {} does, as the forces see it (in single precision), and without softening two such \
             particles attract each other infinitely; move one of them or give --softening",
            name(first)
        );
        return refuse(second, problem);
    }
    Ok(())
}

fn scale(particles: &Particles, softening: f64) -> Result<(), String> {
    let largest = particles.rows.iter().map(|row| row[0]).fold(0.0, f64::max);
    if softening > 0.0 && largest / (softening * softening * softening) > PULL_MAX {
        return Err(format!(
            "a mass of {largest:e} with a softening length of {softening:e} gives forces beyond single precision; \
             choose a larger --softening, or other units"
        ));
    }
    let total: f64 = particles.rows.iter().map(|row| row[0]).sum();
    let extent = (1..4)
        .map(|c| {
            let (low, high) = particles
                .rows
                .iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), row| (low.min(row[c]), high.max(row[c])));
            (high - low) * (high - low)
        })
        .sum::<f64>()
        .sqrt();
    if total > 0.0 && extent > 0.0 && total / (extent * extent * extent) < PULL_MIN {
        return Err(format!(
            "masses of {total:e} in all over distances of {extent:e} give forces too small for single precision; \
             choose a larger unit of length, or a smaller one of mass"
        ));
    }
    Ok(())
}

/// Two particles at one place in single precision, the later one second.
fn coincident(particles: &Particles) -> Option<(usize, usize)> {
    // Adding zero makes the two zeros one.
    let place =
        |row: usize| -> [u32; 3] { std::array::from_fn(|d| (particles.rows[row][1 + d] as f32 + 0.0).to_bits()) };
    let mut order: Vec<usize> = (0..particles.rows.len()).collect();
    order.sort_by_key(|&row| (place(row), row));
    let pairs = order.windows(2).filter(|pair| place(pair[0]) == place(pair[1]));
    pairs.map(|pair| (pair[0], pair[1])).min_by_key(|&(first, second)| (second, first))
}
