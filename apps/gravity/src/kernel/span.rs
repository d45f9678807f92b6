//! Spans of sources against groups of targets, for one instruction set at a time.
//!
//! Every function here is unsafe for the same reasons: pointers are as the caller of [`run`] promises, and the processor
//! supports the instruction set of the vector. The order of arithmetic stands in the module above.

use super::{Accelerations, Points, ROUND, SPAN, by_polynomial};
use multigrain_simd::{Isa, Lanes, dispatch};

/// First guess of the reciprocal square root: these bits less half of the argument's (Lomont, "Fast inverse square
/// root", 2003).
const GUESS: u32 = 0x5f37_5a86;
/// Leading coefficient of the polynomial; sources that take it carry it in their mass.
const LEAD: f32 = 2.475_991_5;
/// The polynomial over its leading coefficient is (u + h + Q2) u + Q3 with u = h (h + Q0) + Q1.
const Q0: f32 = -0.054_939_86;
const Q1: f32 = 0.650_266_7;
const Q2: f32 = -0.491_342_9;
const Q3: f32 = 0.300_535_74;

/// Runs a job.
///
/// # Safety
/// As for [`super::accelerate_raw`].
pub(super) unsafe fn run(isa: Isa, job: &Job) {
    // SAFETY: as the caller promises.
    unsafe {
        dispatch!(isa, (job: &Job) => {
            Scalar: spans::<f32, 4>,
            Neon: spans::<std::arch::aarch64::float32x4_t, 4>,
            Avx2: spans::<std::arch::x86_64::__m256, 2>,
            Avx512: spans::<std::arch::x86_64::__m512, 2>,
        });
    }
}

/// What the kernel is asked for; see [`super::accelerate_raw`].
pub(super) struct Job {
    pub(super) softening2: f32,
    pub(super) masses: *const f32,
    pub(super) sources: Points,
    pub(super) targets: Points,
    pub(super) accelerations: Accelerations,
}

/// Consecutive sources of a span as the inner loop reads them; the mass of those that go by the polynomial carries [`LEAD`].
#[derive(Clone, Copy)]
struct Bodies {
    /// x, y and z.
    place: [*const f32; 3],
    mass: *const f32,
}

impl Bodies {
    /// Those from the `k`th on.
    ///
    /// # Safety
    /// There are so many.
    #[inline(always)]
    unsafe fn from(self, k: usize) -> Bodies {
        // SAFETY: as the caller promises.
        unsafe { Bodies { place: self.place.map(|row| row.add(k)), mass: self.mass.add(k) } }
    }
}

/// All spans of sources, one after the other; in each, all targets, `G` vectors of them at a time.
#[inline(always)]
unsafe fn spans<V: Lanes, const G: usize>(job: &Job) {
    let mut masses = [0.0; SPAN];
    let mut first = 0;
    while first < job.sources.len {
        let count = SPAN.min(job.sources.len - first);
        for (k, mass) in masses[..count].iter_mut().enumerate() {
            // SAFETY: `first + k` is one of the sources.
            let own = unsafe { *job.masses.add(first + k) };
            *mass = if by_polynomial(k) { own * LEAD } else { own };
        }
        // SAFETY: each row holds all sources.
        let place = [0, 1, 2].map(|d| unsafe { job.sources.data.add(d * job.sources.pitch + first) });
        let bodies = Bodies { place, mass: masses.as_ptr() };
        // SAFETY: as the caller promises.
        unsafe {
            if job.softening2 > 0.0 {
                targets::<V, G, true>(job, bodies, count);
            } else {
                targets::<V, G, false>(job, bodies, count);
            }
        }
        first += count;
    }
}

#[inline(always)]
unsafe fn targets<V: Lanes, const G: usize, const SOFT: bool>(job: &Job, bodies: Bodies, count: usize) {
    let Points { data, pitch, len } = job.targets;
    let Accelerations { data: to, pitch: to_pitch } = job.accelerations;
    let mut at = 0;
    // SAFETY: `at` and the lanes after it are targets; the features are the caller's.
    unsafe {
        while at + G * V::LANES <= len {
            group::<V, G, SOFT>(job.softening2, bodies, count, data.add(at), pitch, to.add(at), to_pitch);
            at += G * V::LANES;
        }
        while at + V::LANES <= len {
            group::<V, 1, SOFT>(job.softening2, bodies, count, data.add(at), pitch, to.add(at), to_pitch);
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
        unsafe {
            group::<V, 1, SOFT>(job.softening2, bodies, count, points.as_ptr(), WIDEST, sums.as_mut_ptr(), WIDEST)
        };
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
unsafe fn group<V: Lanes, const G: usize, const SOFT: bool>(
    softening2: f32,
    bodies: Bodies,
    count: usize,
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
        let whole = count / ROUND * ROUND;
        for k in (0..whole).step_by(ROUND) {
            let round = bodies.from(k);
            pull_two::<V, G, SOFT>(softening2, round, round.from(1), &place, &mut sum);
            pull::<V, G, SOFT, true>(softening2, round.from(2), &place, &mut sum);
        }
        for k in whole..count {
            if by_polynomial(k) {
                pull::<V, G, SOFT, false>(softening2, bodies.from(k), &place, &mut sum);
            } else {
                pull::<V, G, SOFT, true>(softening2, bodies.from(k), &place, &mut sum);
            }
        }
        for (k, sum) in sum.iter().enumerate() {
            for (d, row) in sum.iter().enumerate() {
                row.add_to(to.add(d * to_pitch + k * V::LANES));
            }
        }
    }
}

/// What a source does by the polynomial, and then the one after it by the divider, which begins before.
#[inline(always)]
unsafe fn pull_two<V: Lanes, const G: usize, const SOFT: bool>(
    softening2: V,
    first: Bodies,
    second: Bodies,
    place: &[[V; 3]; G],
    sum: &mut [[V; 3]; G],
) {
    // SAFETY: the caller's promises.
    unsafe {
        let mut d = [[V::splat(0.0); 3]; G];
        let mut scale = [V::splat(0.0); G];
        for k in 0..G {
            let r2;
            (d[k], r2) = apart::<V, SOFT>(softening2, second, &place[k]);
            scale[k] = divided(V::splat(*second.mass), r2);
        }
        pull::<V, G, SOFT, false>(softening2, first, place, sum);
        for k in 0..G {
            add(scale[k], &d[k], &mut sum[k]);
        }
    }
}

/// What a source does, by the divider or by the polynomial.
#[inline(always)]
unsafe fn pull<V: Lanes, const G: usize, const SOFT: bool, const DIVIDE: bool>(
    softening2: V,
    body: Bodies,
    place: &[[V; 3]; G],
    sum: &mut [[V; 3]; G],
) {
    for (place, sum) in place.iter().zip(sum) {
        // SAFETY: the caller's promises.
        unsafe {
            let (d, r2) = apart::<V, SOFT>(softening2, body, place);
            let mass = V::splat(*body.mass);
            add(if DIVIDE { divided(mass, r2) } else { multiplied(mass, r2) }, &d, sum);
        }
    }
}

/// The way from targets to a source, and its length squared, softened.
#[inline(always)]
unsafe fn apart<V: Lanes, const SOFT: bool>(softening2: V, body: Bodies, place: &[V; 3]) -> ([V; 3], V) {
    // SAFETY: the caller's promises.
    unsafe {
        let d = [0, 1, 2].map(|d| V::splat(*body.place[d]).sub(place[d]));
        let r2 = softening2.fma(d[2], d[2]).fma(d[1], d[1]).fma(d[0], d[0]);
        (d, if SOFT { r2 } else { r2.select(r2.equal(V::splat(0.0)), V::splat(1.0)) })
    }
}

#[inline(always)]
unsafe fn add<V: Lanes>(scale: V, d: &[V; 3], sum: &mut [V; 3]) {
    for (sum, d) in sum.iter_mut().zip(d) {
        // SAFETY: the caller's promises.
        *sum = unsafe { sum.fma(scale, *d) };
    }
}

/// mass r2^(-3/2).
#[inline(always)]
unsafe fn divided<V: Lanes>(mass: V, r2: V) -> V {
    // SAFETY: the caller's promises.
    unsafe { mass.div(r2.mul(r2.sqrt())) }
}

/// mass / LEAD r2^(-3/2).
#[inline(always)]
unsafe fn multiplied<V: Lanes>(mass: V, r2: V) -> V {
    // SAFETY: the caller's promises.
    unsafe {
        let y = r2.halved_from(GUESS);
        let y2 = y.mul(y);
        let h = V::splat(1.0).fnma(r2, y2);
        let y3 = mass.mul(y).mul(y2);
        let u = V::splat(Q1).fma(h, h.add(V::splat(Q0)));
        y3.mul(V::splat(Q3).fma(u.add(h.add(V::splat(Q2))), u))
    }
}
