//! The speed of the leaf kernel on a matrix larger than the caches, two threads, each instruction
//! set: medians, in GB/s of the matrix.

use multigrain::testing::median_seconds;
use multigrain_sgemv::kernel::{self, Matrix};
use multigrain_simd::Isa;
use std::thread;

const ROWS: usize = 8192;
const COLS: usize = 4096;
const RUNS: usize = 11;

fn main() {
    let a: Vec<f32> = (0..ROWS * COLS).map(|i| (i % 1013) as f32 * 1e-3).collect();
    let x: Vec<f32> = (0..COLS).map(|i| (i % 911) as f32 * 1e-3).collect();
    let mut y = vec![0.0_f32; ROWS];
    let half = ROWS / 2;
    println!("sgemv, {ROWS} x {COLS}, 2 threads");
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
        let seconds = median_seconds(RUNS, || {
            thread::scope(|scope| {
                for (a, y) in a.chunks(half * COLS).zip(y.chunks_mut(half)) {
                    let x = &x;
                    scope.spawn(move || {
                        let a = Matrix::new(a, half, COLS, COLS).expect("half of the rows");
                        kernel::write(isa, a, x, y).expect("the shapes fit");
                    });
                }
            });
        });
        let rate = (ROWS * COLS * size_of::<f32>()) as f64 / seconds / 1e9;
        println!("  {:7} {:8.3} ms  {rate:7.2} GB/s", isa.name(), seconds * 1e3);
    }
}
