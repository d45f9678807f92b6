//! The leaf kernel alone: GFLOP/s at 20 operations an interaction, for every instruction set, and its error.
//!
//! `cargo bench -p multigrain-gravity --bench kernel [-- PARTICLES]` (default 8192).

use multigrain_gravity::kernel::{accelerate, reference};
use multigrain_simd::Isa;
use std::time::Instant;

/// For so long an instruction set is measured, seconds; the best round is shown: the machine's other work only ever adds.
const MEASURED_SECONDS: f64 = 1.0;

fn main() {
    let n = std::env::args().skip(1).find_map(|arg| arg.parse::<usize>().ok()).unwrap_or(8192);
    let uniform = |i: usize| multigrain::generate::f32_at(1, i as u64);
    let masses = vec![1.0 / n as f32; n];
    // Denser towards the middle, as clusters are.
    let places: Vec<f32> = (0..3 * n).map(|i| uniform(i).powi(3) * 2.0).collect();
    let softening2 = 1e-4f32;
    for isa in Isa::ALL.into_iter().rev().filter(|isa| isa.is_supported()) {
        // The scalar path is there for correctness: a small part of the targets tells its speed.
        let targets: Vec<f32> = match isa {
            Isa::Scalar => (0..3).flat_map(|d| places[d * n..][..n.min(64)].to_vec()).collect(),
            _ => places.clone(),
        };
        let mut best = f64::INFINITY;
        let mut found = Vec::new();
        let start = Instant::now();
        while found.is_empty() || start.elapsed().as_secs_f64() < MEASURED_SECONDS {
            found = vec![0.0; targets.len()];
            let begin = Instant::now();
            accelerate(isa, softening2, &masses, &places, &targets, &mut found).expect("lengths are right");
            best = best.min(begin.elapsed().as_secs_f64());
        }
        let m = targets.len() / 3;
        let worst = (0..m).step_by(m.div_ceil(1024)).map(|i| {
            let (exact, _) = reference(f64::from(softening2), &masses, &places, &targets, i);
            let norm = |v: [f64; 3]| v.iter().map(|c| c * c).sum::<f64>().sqrt();
            norm(std::array::from_fn(|d| found[d * m + i] - exact[d])) / norm(exact)
        });
        let worst = worst.fold(0.0, f64::max);
        println!("{isa:<8} {:>6.1} GFLOP/s, largest relative error {worst:.1e}", 20e-9 * (m * n) as f64 / best);
    }
}
