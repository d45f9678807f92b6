//! The leaf kernel against the machine's own limit: GFLOP/s and the share of the measured peak of fused
//! multiply-adds, for every instruction set on one thread and for the best one on all threads.
//!
//! `cargo bench -p multigrain-sgemm --bench kernel [-- SIZE]` with SIZE = n (default 4096).

use std::hint::black_box;

use multigrain::testing::median_seconds;
use multigrain_sgemm::kernel::{scratch_elements, sgemm_checked};
use multigrain_simd::Isa;

/// Measurements of which the median is shown.
const ROUNDS: usize = 5;

fn main() {
    let size = std::env::args().skip(1).find_map(|arg| arg.parse::<usize>().ok()).unwrap_or(4096);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut inputs = Inputs::new(size);
    println!("C = A B, n = {size}, medians of {ROUNDS}");
    println!("{:<8} {:>7} {:>10} {:>10} {:>7}", "isa", "threads", "GFLOP/s", "FMA peak", "ratio");
    for isa in Isa::ALL.into_iter().rev().filter(|isa| isa.is_supported()) {
        // The scalar path is there for correctness: a small part of the rows tells its speed.
        let rows = if isa == Isa::Scalar { size.div_ceil(64) } else { size };
        show(isa, 1, rows, &mut inputs);
    }
    if threads > 1 {
        show(Isa::detect(), threads, size, &mut inputs);
    }
    for (m, n, k) in [(64, 64, 256), (128, 128, 128), (128, 128, 256), (256, 256, 256), (512, 512, 512)] {
        let isa = Isa::detect();
        let repeats = (2_000_000_000 / (2 * m * n * k)).max(1);
        let (a, b, mut c) = (vec![1.0f32; m * k], vec![1.0f32; k * n], vec![0.0f32; m * n]);
        for limit in [None, Some(16 << 10)] {
            let mut scratch = vec![0.0f32; scratch_elements(isa, m, n, k, limit)];
            let seconds = median_seconds(ROUNDS, || {
                for _ in 0..repeats {
                    sgemm_checked(isa, false, (m, n, k), (&a, k), (&b, n), (&mut c, n), &mut scratch).expect("valid");
                }
            });
            let gflops = 2e-9 * (m * n * k * repeats) as f64 / seconds;
            println!("{m} x {n} x {k}, scratch {:>4} KiB: {gflops:.1} GFLOP/s", scratch.len() / 256);
        }
    }
}

struct Inputs {
    size: usize,
    a: Vec<f32>,
    b: Vec<f32>,
    c: Vec<f32>,
}

impl Inputs {
    fn new(size: usize) -> Inputs {
        let fill = |seed: usize| (0..size * size).map(|i| ((i * 7 + seed) % 13) as f32 / 13.0 - 0.5).collect();
        Inputs { size, a: fill(1), b: fill(2), c: vec![0.0; size * size] }
    }

    /// Multiplies the first `rows` rows, each thread a band of them.
    fn product(&mut self, isa: Isa, threads: usize, rows: usize, scratch: &mut [Vec<f32>]) {
        let n = self.size;
        let band = rows.div_ceil(threads);
        std::thread::scope(|scope| {
            let bands = self.a[..rows * n].chunks(band * n).zip(self.c[..rows * n].chunks_mut(band * n)).zip(scratch);
            for ((a, c), scratch) in bands {
                let b = &self.b;
                scope.spawn(move || {
                    sgemm_checked(isa, true, (a.len() / n, n, n), (a, n), (b, n), (c, n), scratch)
                        .expect("valid shapes");
                });
            }
        });
    }
}

fn show(isa: Isa, threads: usize, rows: usize, inputs: &mut Inputs) {
    let n = inputs.size;
    let mut scratch: Vec<Vec<f32>> =
        (0..threads).map(|_| vec![0.0; scratch_elements(isa, rows.div_ceil(threads), n, n, None)]).collect();
    let seconds = median_seconds(ROUNDS, || inputs.product(isa, threads, rows, &mut scratch));
    let peak = fma_peak_gflops(isa, threads);
    let gflops = 2e-9 * (rows * n * n) as f64 / seconds;
    println!("{:<8} {threads:>7} {gflops:>10.1} {peak:>10.1} {:>7.3}", isa.to_string(), gflops / peak);
}

/// What the multiply-add units give when nothing else is asked of them, summed over `threads`.
fn fma_peak_gflops(isa: Isa, threads: usize) -> f64 {
    const STEPS: usize = 20_000_000;
    let flops_a_step = match isa {
        Isa::Scalar | Isa::Neon => 24.0,
        Isa::Avx2 => 12.0 * 16.0,
        Isa::Avx512 => 12.0 * 32.0,
    };
    let seconds = median_seconds(ROUNDS, || {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| match isa {
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: only instruction sets that are available are asked for.
                    Isa::Avx2 => unsafe { peak::avx2(STEPS) },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: the same.
                    Isa::Avx512 => unsafe { peak::avx512(STEPS) },
                    _ => peak::scalar(STEPS),
                });
            }
        });
    });
    threads as f64 * STEPS as f64 * flops_a_step * 1e-9 / seconds
}

/// Twelve independent chains of multiply-adds, more than latency times units of any processor here.
mod peak {
    use super::black_box;
    #[cfg(target_arch = "x86_64")]
    use std::arch::x86_64::*;

    pub(super) fn scalar(steps: usize) {
        let (x, y) = black_box((0.999_f32, 0.001_f32));
        let mut t = [1.0f32; 12];
        for _ in 0..steps {
            for t in &mut t {
                *t = x.mul_add(*t, y);
            }
        }
        black_box(t);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn avx2(steps: usize) {
        let (x, y) = black_box((_mm256_set1_ps(0.999), _mm256_set1_ps(0.001)));
        let mut t = [_mm256_set1_ps(1.0); 12];
        for _ in 0..steps {
            for t in &mut t {
                *t = _mm256_fmadd_ps(x, *t, y);
            }
        }
        black_box(t);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    pub(super) fn avx512(steps: usize) {
        let (x, y) = black_box((_mm512_set1_ps(0.999), _mm512_set1_ps(0.001)));
        let mut t = [_mm512_set1_ps(1.0); 12];
        for _ in 0..steps {
            for t in &mut t {
                *t = _mm512_fmadd_ps(x, *t, y);
            }
        }
        black_box(t);
    }
}
