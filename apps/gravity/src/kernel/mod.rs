//! The leaf kernel: accelerations of target particles by source particles, in one fixed order.
//!
//! For target `i` the kernel adds, over the sources `j` in order,
//!
//! ```text
//! m[j] d / (|d|^2 + eps^2)^(3/2),   d = x[j] - x[i]
//! ```
//!
//! (Plummer softening; Aarseth 1963). Lanes are targets, so every target has a chain of its own and the width of the
//! vectors shows nowhere. A chain runs in single precision over a span of [`SPAN`] sources; its end is added to an
//! accumulator in double precision. Spans begin at multiples of [`SPAN`] of the block of sources, so blocks of sources
//! must be cut there.
//!
//! **The inverse cube.** Instructions that approximate the reciprocal square root give other bits on other processors,
//! so none is used. Sources take two ways, both made of correctly rounded operations and therefore the same everywhere;
//! the one keeps the multipliers busy while the other waits for the divider. Of every [`ROUND`] sources of a span, the
//! first goes
//!
//! - by a polynomial: y ~ r2^(-1/2) from the bits of r2 (halving the exponent; Lomont 2003), wrong by up to 3.5 %; with
//!   h = 1 - r2 y^2, r2^(-3/2) = y^3 (1 - h)^(-3/2), and the last factor is the quartic in h that is best for
//!   |h| < 0.0695 in the relative error (Remez; 2.8e-7). It is evaluated as its leading coefficient times a monic one in
//!   two multiplications (Knuth, The Art of Computer Programming, volume 2, section 4.6.4),
//!
//! and the others
//!
//! - by the divider: `m / (r2 sqrt(r2))`, with the square root and the division of the processor.
//!
//! Without softening a pair at distance zero exerts no force, and so a particle none on itself.

pub mod potential;
mod span;

use multigrain_simd::Isa;

/// Sources of a chain in single precision: 64 keep the error of a force below 1e-6 where what pulls from all sides
/// cancels to 1/60 (8192 particles of a Plummer sphere), and the additions in double precision cost 1 %.
pub const SPAN: usize = 64;

/// Sources among which the two ways alternate in a fixed manner: one by the polynomial to two by the divider, so few
/// that all of a round stays in registers (rounds of eight, three to five, spill and take 6 % longer).
pub const ROUND: usize = 3;

/// Whether the source at a place of a span goes by the polynomial.
const fn by_polynomial(place: usize) -> bool {
    place.is_multiple_of(ROUND)
}

/// Particles as the kernel reads them: `len` of them, the three coordinates in rows that begin `pitch` elements after
/// one another.
#[derive(Clone, Copy, Debug)]
pub struct Points {
    /// The first x.
    pub data: *const f32,
    /// Elements from x to y, and from y to z, of one particle.
    pub pitch: usize,
    /// Particles.
    pub len: usize,
}

/// Accelerations in double precision, three rows as in [`Points`], as many as there are targets.
#[derive(Clone, Copy, Debug)]
pub struct Accelerations {
    /// The first.
    pub data: *mut f64,
    /// Elements from row to row.
    pub pitch: usize,
}

/// A request that the kernel refuses; nothing has been written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GravityError {
    /// Slices whose lengths do not go together.
    #[error("gravity: {what} has {found} elements, {needed} are needed")]
    Length {
        /// Which slice.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The length it must have.
        needed: usize,
    },
    /// The processor does not execute the instruction set that was asked for.
    #[error("this processor does not execute {0}; use Isa::detect()")]
    Isa(Isa),
}

/// Adds to `accelerations` (three rows of as many numbers as there are targets) what `sources` do to `targets` (three
/// rows each: x, y, z). `masses` has one mass a source; `softening2` is the square of the softening length.
///
/// # Errors
/// [`GravityError`] when lengths do not go together or the processor lacks `isa`.
pub fn accelerate(
    isa: Isa,
    softening2: f32,
    masses: &[f32],
    sources: &[f32],
    targets: &[f32],
    accelerations: &mut [f64],
) -> Result<(), GravityError> {
    if !isa.is_supported() {
        return Err(GravityError::Isa(isa));
    }
    let check = |what, found, needed| match found == needed {
        true => Ok(()),
        false => Err(GravityError::Length { what, found, needed }),
    };
    check("sources", sources.len(), 3 * masses.len())?;
    check("targets", targets.len(), targets.len() / 3 * 3)?;
    check("accelerations", accelerations.len(), targets.len())?;
    let points = |rows: &[f32]| Points { data: rows.as_ptr(), pitch: rows.len() / 3, len: rows.len() / 3 };
    let to = Accelerations { data: accelerations.as_mut_ptr(), pitch: targets.len() / 3 };
    // SAFETY: lengths and instruction set are checked, and the borrows keep the accelerations apart from the rest.
    unsafe { accelerate_raw(isa, softening2, masses.as_ptr(), points(sources), points(targets), to) };
    Ok(())
}

/// [`accelerate`] on pointers. No memory is allocated.
///
/// # Safety
/// `masses` (one a source), `sources` and `targets` are valid for reads and `accelerations` for reads and writes; the
/// accelerations overlap none of the others, and no other thread accesses them. The processor supports `isa`.
pub unsafe fn accelerate_raw(
    isa: Isa,
    softening2: f32,
    masses: *const f32,
    sources: Points,
    targets: Points,
    accelerations: Accelerations,
) {
    let job = span::Job { softening2, masses, sources, targets, accelerations };
    // SAFETY: as the caller promises.
    unsafe { span::run(isa, &job) };
}

/// The same accelerations in double precision, summed in double precision: what [`accelerate`] is compared with.
/// Returns, for target `i`, its acceleration and the sum of the absolute values of its terms.
#[must_use]
pub fn reference(softening2: f64, masses: &[f32], sources: &[f32], targets: &[f32], i: usize) -> ([f64; 3], f64) {
    let (n, m) = (masses.len(), targets.len() / 3);
    let (mut sum, mut all) = ([0.0; 3], 0.0);
    for j in 0..n {
        let d: [f64; 3] = std::array::from_fn(|k| f64::from(sources[k * n + j]) - f64::from(targets[k * m + i]));
        let r2 = d.iter().map(|d| d * d).sum::<f64>();
        if r2 > 0.0 {
            let scale = f64::from(masses[j]) / ((r2 + softening2) * (r2 + softening2).sqrt());
            sum.iter_mut().zip(d).for_each(|(sum, d)| *sum += scale * d);
            all += scale * r2.sqrt();
        }
    }
    (sum, all)
}
