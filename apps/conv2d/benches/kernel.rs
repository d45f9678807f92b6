//! The speed of the leaf kernel, two threads, each instruction set and several sizes of weights:
//! medians, in GFLOP/s (two operations a tap).

use multigrain::testing::median_seconds;
use multigrain_conv2d::kernel::{Block, BlockMut, Filling, conv2d};
use multigrain_simd::Isa;
use std::thread;

const ROWS: usize = 8192;
const COLS: usize = 4096;
const RUNS: usize = 5;

fn main() {
    let input: Vec<f32> = (0..ROWS * COLS).map(|i| (i % 1013) as f32 * 1e-3).collect();
    let mut output = vec![0.0_f32; ROWS * COLS];
    let half = ROWS / 2;
    println!("conv2d, {ROWS} x {COLS}, 2 threads");
    for size in [3, 9, 21] {
        let weights: Vec<f32> = (0..size * size).map(|i| (i % 7) as f32 * 0.1).collect();
        // Without vectors a run takes minutes; its speed is no aim.
        for isa in [Isa::Avx2, Isa::Avx512].into_iter().filter(|isa| isa.is_supported()) {
            let seconds = median_seconds(RUNS, || {
                thread::scope(|scope| {
                    for (part, output) in output.chunks_mut(half * COLS).enumerate() {
                        let (input, weights) = (&input, &weights);
                        scope.spawn(move || {
                            let y = part * half;
                            let first = y.saturating_sub(size / 2);
                            let end = (y + half + size / 2).min(ROWS);
                            let source = Block::new(&input[first * COLS..], end - first, COLS, COLS);
                            let target = BlockMut::new(output, half, COLS, COLS);
                            conv2d(
                                isa,
                                source.expect("rows of the input"),
                                y - first,
                                0,
                                weights,
                                size,
                                size,
                                Filling::default(),
                                &mut target.expect("half of the output"),
                            )
                            .expect("the halo fits");
                        });
                    }
                });
            });
            let rate = (2 * size * size * ROWS * COLS) as f64 / seconds / 1e9;
            println!("  {size:2} x {size:<2} {:7} {:9.3} ms  {rate:7.2} GFLOP/s", isa.name(), seconds * 1e3);
        }
    }
}
