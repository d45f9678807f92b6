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
//! so none is used. Sources of even and odd place in their span take two ways, both made of correctly rounded
//! operations and therefore the same everywhere; the one keeps the multipliers busy while the other waits for the
//! divider:
//!
//! - odd: `m / (r2 sqrt(r2))`, by the square root and the division of the processor;
//! - even: y ~ r2^(-1/2) from the bits of r2 (halving the exponent; Lomont 2003), wrong by up to 3.5 %; with
//!   h = 1 - r2 y^2, r2^(-3/2) = y^3 (1 - h)^(-3/2), and the last factor is a polynomial of degree 5 for |h| < 0.0695, the
//!   best there in the relative error (Remez; 1.0e-8). It is evaluated as its leading coefficient times a monic
//!   polynomial, whose quartic part takes two multiplications after Knuth (The Art of Computer Programming, 2, 4.6.4).
//!
//! Without softening a pair at distance zero exerts no force, and so a particle none on itself.

mod vector;

use multigrain_simd::Isa;
use vector::Vector;

/// Sources of a chain in single precision: 64 keep the error of a force below 1e-6 where what pulls from all sides
/// cancels to 1/60 (8192 particles of a Plummer sphere), and the additions in double precision cost 1 %.
pub const SPAN: usize = 64;

/// First guess of the reciprocal square root: these bits less half of the argument's (Lomont, "Fast inverse square
/// root", 2003).
const GUESS: u32 = 0x5f37_5a86;
/// Leading coefficient of the polynomial; sources of even place carry it in their mass.
const LEAD: f32 = 2.726_867_85;
/// The polynomial over its leading coefficient is h q(h) + CONSTANT with the monic quartic
/// q = (u + h + Q2) u + Q3, u = h (h + Q0) + Q1.
const CONSTANT: f32 = 0.366_721_11;
const Q0: f32 = -0.044_842_19;
const Q1: f32 = 0.725_480_65;
const Q2: f32 = -0.605_935_96;
const Q3: f32 = 0.463_354_3;

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
    let job = Job { softening2, masses, sources, targets, accelerations };
    match isa {
        // SAFETY: as the caller promises, here and below.
        Isa::Scalar => unsafe { spans::<f32, 4>(&job) },
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { avx2(&job) },
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { avx512(&job) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => unsafe { spans::<f32, 4>(&job) },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2(job: &Job) {
    // SAFETY: the caller's promises; the features are enabled here.
    unsafe { spans::<std::arch::x86_64::__m256, 2>(job) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma")]
unsafe fn avx512(job: &Job) {
    // SAFETY: the caller's promises; the features are enabled here.
    unsafe { spans::<std::arch::x86_64::__m512, 3>(job) }
}

struct Job {
    softening2: f32,
    masses: *const f32,
    sources: Points,
    targets: Points,
    accelerations: Accelerations,
}

/// A source as the inner loop reads it; in an even place the mass carries [`LEAD`].
#[derive(Clone, Copy, Default)]
#[repr(C, align(16))]
struct Body {
    x: f32,
    y: f32,
    z: f32,
    mass: f32,
}

/// All spans of sources, one after the other; in each, all targets, `G` vectors of them at a time.
#[inline(always)]
unsafe fn spans<V: Vector, const G: usize>(job: &Job) {
    let mut bodies = [Body::default(); SPAN];
    let mut first = 0;
    while first < job.sources.len {
        let count = SPAN.min(job.sources.len - first);
        for (k, body) in bodies[..count].iter_mut().enumerate() {
            let (at, pitch) = (first + k, job.sources.pitch);
            // SAFETY: `at` is one of the sources.
            unsafe {
                let mass = *job.masses.add(at);
                *body = Body {
                    x: *job.sources.data.add(at),
                    y: *job.sources.data.add(pitch + at),
                    z: *job.sources.data.add(2 * pitch + at),
                    mass: if k % 2 == 0 { mass * LEAD } else { mass },
                };
            }
        }
        // SAFETY: as the caller promises.
        unsafe {
            if job.softening2 > 0.0 {
                targets::<V, G, true>(job, &bodies[..count]);
            } else {
                targets::<V, G, false>(job, &bodies[..count]);
            }
        }
        first += count;
    }
}

#[inline(always)]
unsafe fn targets<V: Vector, const G: usize, const SOFT: bool>(job: &Job, bodies: &[Body]) {
    let Points { data, pitch, len } = job.targets;
    let Accelerations { data: to, pitch: to_pitch } = job.accelerations;
    let mut at = 0;
    // SAFETY: `at` and the lanes after it are targets; the features are the caller's.
    unsafe {
        while at + G * V::LANES <= len {
            group::<V, G, SOFT>(job.softening2, bodies, data.add(at), pitch, to.add(at), to_pitch);
            at += G * V::LANES;
        }
        while at + V::LANES <= len {
            group::<V, 1, SOFT>(job.softening2, bodies, data.add(at), pitch, to.add(at), to_pitch);
            at += V::LANES;
        }
    }
    if at < len {
        // The last targets with copies of the last one, in memory of full vectors.
        let mut points = [0.0; 3 * WIDEST];
        let mut sums = [0.0; 3 * WIDEST];
        for d in 0..3 {
            for lane in 0..V::LANES {
                // SAFETY: the index is that of a target.
                points[d * WIDEST + lane] = unsafe { *data.add(d * pitch + (at + lane).min(len - 1)) };
            }
            for lane in 0..len - at {
                // SAFETY: as above.
                sums[d * WIDEST + lane] = unsafe { *to.add(d * to_pitch + at + lane) };
            }
        }
        // SAFETY: both arrays hold three rows of the widest vector.
        unsafe { group::<V, 1, SOFT>(job.softening2, bodies, points.as_ptr(), WIDEST, sums.as_mut_ptr(), WIDEST) };
        for d in 0..3 {
            for lane in 0..len - at {
                // SAFETY: as above.
                unsafe { *to.add(d * to_pitch + at + lane) = sums[d * WIDEST + lane] };
            }
        }
    }
}

/// Lanes of the widest vector.
const WIDEST: usize = 16;

/// `G` vectors of targets from `points` on against one span.
#[inline(always)]
unsafe fn group<V: Vector, const G: usize, const SOFT: bool>(
    softening2: f32,
    bodies: &[Body],
    points: *const f32,
    pitch: usize,
    to: *mut f64,
    to_pitch: usize,
) {
    // SAFETY: the caller's promises.
    unsafe {
        let softening2 = V::splat(softening2);
        let mut place = [[V::splat(0.0); 3]; G];
        for (k, place) in place.iter_mut().enumerate() {
            for (d, row) in place.iter_mut().enumerate() {
                *row = V::load(points.add(d * pitch + k * V::LANES));
            }
        }
        let mut sum = [[V::splat(0.0); 3]; G];
        let pairs = bodies.chunks_exact(2);
        if let [last] = pairs.remainder() {
            // Chains end with it, so it comes after the pairs.
            pair_loop::<V, G, SOFT>(softening2, bodies, &place, &mut sum);
            pull::<V, G, SOFT, true>(softening2, last, &place, &mut sum);
        } else {
            pair_loop::<V, G, SOFT>(softening2, bodies, &place, &mut sum);
        }
        for (k, sum) in sum.iter().enumerate() {
            for (d, row) in sum.iter().enumerate() {
                row.add_to(to.add(d * to_pitch + k * V::LANES));
            }
        }
    }
}

#[inline(always)]
unsafe fn pair_loop<V: Vector, const G: usize, const SOFT: bool>(
    softening2: V,
    bodies: &[Body],
    place: &[[V; 3]; G],
    sum: &mut [[V; 3]; G],
) {
    for pair in bodies.chunks_exact(2) {
        // SAFETY: the caller's promises.
        unsafe {
            pull::<V, G, SOFT, true>(softening2, &pair[0], place, sum);
            pull::<V, G, SOFT, false>(softening2, &pair[1], place, sum);
        }
    }
}

/// What one source does to the targets.
#[inline(always)]
unsafe fn pull<V: Vector, const G: usize, const SOFT: bool, const EVEN: bool>(
    softening2: V,
    body: &Body,
    place: &[[V; 3]; G],
    sum: &mut [[V; 3]; G],
) {
    // SAFETY: the caller's promises.
    unsafe {
        let (x, y, z) = (V::splat(body.x), V::splat(body.y), V::splat(body.z));
        let mass = V::splat(body.mass);
        for (place, sum) in place.iter().zip(sum) {
            let (dx, dy, dz) = (x.sub(place[0]), y.sub(place[1]), z.sub(place[2]));
            let mut r2 = dx.fma(dx, dy.fma(dy, dz.fma(dz, softening2)));
            if !SOFT {
                r2 = r2.one_for_zero();
            }
            let scale = if EVEN { by_polynomial(mass, r2) } else { mass.div(r2.mul(r2.sqrt())) };
            sum[0] = scale.fma(dx, sum[0]);
            sum[1] = scale.fma(dy, sum[1]);
            sum[2] = scale.fma(dz, sum[2]);
        }
    }
}

/// mass / LEAD * r2^(-3/2).
#[inline(always)]
unsafe fn by_polynomial<V: Vector>(mass: V, r2: V) -> V {
    // SAFETY: the caller's promises.
    unsafe {
        let y = r2.halved_from(GUESS);
        let y2 = y.mul(y);
        let h = r2.fnma(y2, V::splat(1.0));
        let y3 = mass.mul(y).mul(y2);
        let u = h.fma(h.add(V::splat(Q0)), V::splat(Q1));
        let quartic = u.add(h.add(V::splat(Q2))).fma(u, V::splat(Q3));
        y3.mul(h.fma(quartic, V::splat(CONSTANT)))
    }
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
