//! The speed of the leaf kernel on arrays larger than the caches, two threads, each instruction
//! set: medians, in GB/s of what a program must move (x and y read, the output written).

use multigrain::testing::median_seconds;
use multigrain_saxpy::kernel;
use multigrain_simd::Isa;
use std::thread;

const ELEMENTS: usize = 32 << 20;
const RUNS: usize = 11;

fn main() {
    let x: Vec<f32> = (0..ELEMENTS).map(|i| (i % 1013) as f32 * 1e-3).collect();
    let mut y: Vec<f32> = (0..ELEMENTS).map(|i| (i % 911) as f32 * 1e-3).collect();
    let mut out = vec![0.0_f32; ELEMENTS];
    let half = ELEMENTS / 2;
    let moved_bytes = (3 * ELEMENTS * size_of::<f32>()) as f64;
    println!("saxpy, {ELEMENTS} elements, 2 threads");
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
        let update = median_seconds(RUNS, || {
            thread::scope(|scope| {
                for (x, y) in x.chunks(half).zip(y.chunks_mut(half)) {
                    scope.spawn(move || kernel::update(isa, 1e-3, x, y).expect("equal lengths"));
                }
            });
        });
        let write = median_seconds(RUNS, || {
            thread::scope(|scope| {
                for ((x, y), out) in x.chunks(half).zip(y.chunks(half)).zip(out.chunks_mut(half)) {
                    scope.spawn(move || kernel::write(isa, 1e-3, x, y, out).expect("equal lengths"));
                }
            });
        });
        for (name, seconds) in [("update", update), ("write", write)] {
            let rate = moved_bytes / seconds / 1e9;
            println!("  {:7} {name:7} {:8.3} ms  {rate:7.2} GB/s", isa.name(), seconds * 1e3);
        }
    }
}
