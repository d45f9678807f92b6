//! The rate of a core: chains of fused multiply-adds in registers, with the widest vectors that the core has.

use super::{dram::median, threads};
use crate::error::MachineError;
use multigrain_simd::{Isa, Lanes, dispatch};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Multiply-adds a chain in one call of a kernel.
const STEPS: u32 = 100_000;

/// Two multipliers with a latency of four or five cycles are busy with ten chains; twelve leave some slack and fit
/// the sixteen registers of AVX2.
const CHAINS: usize = 12;

/// Single-precision operations per second of one core while the others are busy as well: the best call of each core, as
/// other programs only slow it, and the median over the cores.
pub(crate) fn measure(cpus: &[usize], time: Duration) -> Result<f64, MachineError> {
    let isa = Isa::detect();
    // The first call brings the core to its clock.
    let mut rates = threads::run(
        cpus,
        || Some(kernel(isa)),
        |_, barrier| {
            barrier.wait();
            let (start, mut best) = (Instant::now(), 0.0_f64);
            while best == 0.0 || start.elapsed() < time {
                let before = Instant::now();
                let operations = kernel(isa);
                best = best.max(operations as f64 / before.elapsed().as_secs_f64().max(1e-9));
            }
            best
        },
    )?;
    Ok(median(&mut rates))
}

/// Runs [`STEPS`] steps of chains, and returns their operations.
fn kernel(isa: Isa) -> u64 {
    // SAFETY: the processor supports what was detected.
    unsafe {
        dispatch!(isa, () -> u64 => {
            Scalar: portable,
            Neon: chains::<std::arch::aarch64::float32x4_t>,
            Avx2: chains::<std::arch::x86_64::__m256>,
            Avx512: chains::<std::arch::x86_64::__m512>,
        })
    }
}

/// Fused multiply-adds in registers.
///
/// # Safety
/// The processor supports the instruction set of `V`.
#[inline(always)]
unsafe fn chains<V: Lanes>() -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        let factor = V::splat(black_box(0.999));
        let mut sums = [V::splat(1.0); CHAINS];
        for _ in 0..STEPS {
            for sum in &mut sums {
                *sum = sum.fma(factor, factor);
            }
        }
        black_box(sums);
    }
    u64::from(STEPS) * (CHAINS * V::LANES) as u64 * 2
}

/// Multiply and add on arrays that the compiler turns into whatever vectors the target surely has.
fn portable() -> u64 {
    const LANES: usize = 32;
    let factor = black_box(0.999_f32);
    let mut sums = [1.0_f32; LANES];
    for _ in 0..STEPS {
        for sum in &mut sums {
            *sum = *sum * factor + factor;
        }
    }
    black_box(sums);
    u64::from(STEPS) * LANES as u64 * 2
}
