//! The rate of a core: chains of fused multiply-adds in registers, with the widest vectors that the core has.

use super::{dram::median, threads};
use crate::error::MachineError;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Multiply-adds a chain in one call of a kernel.
const STEPS: u32 = 100_000;

/// A kernel: runs [`STEPS`] steps of its chains and returns the operations of one call.
type Kernel = fn() -> u64;

/// Single-precision operations per second of one core while the others are busy as well: the best call of each core, as
/// other programs only slow it, and the median over the cores.
pub(crate) fn measure(cpus: &[usize], time: Duration) -> Result<f64, MachineError> {
    let kernel = kernel();
    // The first call brings the core to its clock.
    let mut rates = threads::run(
        cpus,
        || Some(kernel()),
        |_, barrier| {
            barrier.wait();
            let (start, mut best) = (Instant::now(), 0.0_f64);
            while best == 0.0 || start.elapsed() < time {
                let before = Instant::now();
                let operations = kernel();
                best = best.max(operations as f64 / before.elapsed().as_secs_f64().max(1e-9));
            }
            best
        },
    )?;
    Ok(median(&mut rates))
}

fn kernel() -> Kernel {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has AVX-512F, as was just asked.
            return || unsafe { x86::avx512() };
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            // SAFETY: the processor has AVX2 and FMA, as was just asked.
            return || unsafe { x86::avx2() };
        }
    }
    portable
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

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::STEPS;
    use std::arch::x86_64::*;
    use std::hint::black_box;

    /// Two multipliers with a latency of four or five cycles are busy with ten chains; twelve leave some slack and fit
    /// the sixteen registers of AVX2.
    const CHAINS: usize = 12;

    #[target_feature(enable = "avx512f")]
    pub(super) fn avx512() -> u64 {
        let factor = _mm512_set1_ps(black_box(0.999));
        let mut sums = [_mm512_set1_ps(1.0); CHAINS];
        for _ in 0..STEPS {
            for sum in &mut sums {
                *sum = _mm512_fmadd_ps(*sum, factor, factor);
            }
        }
        black_box(sums);
        u64::from(STEPS) * CHAINS as u64 * 16 * 2
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn avx2() -> u64 {
        let factor = _mm256_set1_ps(black_box(0.999));
        let mut sums = [_mm256_set1_ps(1.0); CHAINS];
        for _ in 0..STEPS {
            for sum in &mut sums {
                *sum = _mm256_fmadd_ps(*sum, factor, factor);
            }
        }
        black_box(sums);
        u64::from(STEPS) * CHAINS as u64 * 8 * 2
    }
}
