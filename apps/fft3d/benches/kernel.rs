//! The leaf kernels on a volume in memory: milliseconds of the passes over it, on one thread and on two.
//!
//! `cargo bench -p multigrain-fft3d --bench kernel [-- N]` with N = length of each axis (default 256).

use std::time::Instant;

use multigrain_fft3d::kernel::{Axis, Block, Dft, scratch_bytes, transform};
use multigrain_simd::Isa;

/// Measurements of which the least is shown: other programs disturb only upwards.
const ROUNDS: usize = 15;

/// A volume that threads share, each its own part.
#[derive(Clone, Copy)]
struct Volume(*mut f32);
// SAFETY: the threads below work on disjoint parts.
unsafe impl Send for Volume {}
// SAFETY: as above.
unsafe impl Sync for Volume {}

fn main() {
    let n = std::env::args().skip(1).find_map(|arg| arg.parse::<usize>().ok()).unwrap_or(256);
    let Some(dft) = Dft::new(n as u64) else {
        println!("{n} has other factors than 2, 3, 5 and 7");
        return;
    };
    let layout = std::alloc::Layout::from_size_align(8 * n * n * n, 2 << 20).expect("a volume");
    // SAFETY: the layout has a size; The volume lives until the process ends.
    let base = unsafe { std::alloc::alloc(layout) }.cast::<f32>();
    // SAFETY: a hint about memory that was just allocated.
    unsafe { madvise(base.cast(), 8 * n * n * n, 14) };
    for i in 0..2 * n * n * n {
        // SAFETY: within the volume.
        unsafe { base.add(i).write((i % 17) as f32 / 17.0 - 0.5) };
    }
    let volume = Volume(base);
    println!("{n}^3, in place, least of {ROUNDS}, milliseconds");
    for isa in Isa::ALL.into_iter().rev().filter(|isa| isa.is_supported() && *isa != Isa::Scalar) {
        for threads in [1, 2] {
            let planes = least(|| run(isa, &dft, n, volume, threads, 0));
            let rows = least(|| run(isa, &dft, n, volume, threads, 1));
            let columns = least(|| run(isa, &dft, n, volume, threads, 2));
            let x = least(|| run(isa, &dft, n, volume, threads, 3));
            println!(
                "{isa:<7} {threads} threads: planes {planes:6.1} (rows {rows:6.1}, columns {columns:6.1}), x {x:6.1}, \
                 all {:6.1}",
                planes + x
            );
        }
    }
}

unsafe extern "C" {
    fn madvise(at: *mut u8, bytes: usize, advice: i32) -> i32;
}

fn run(isa: Isa, dft: &Dft, n: usize, volume: Volume, threads: usize, what: usize) {
    let strides = [n * n, n];
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let volume = volume;
                let part = |i: usize| i * n / threads;
                let (first, end) = (part(thread), part(thread + 1));
                let need = [Axis::X, Axis::Y, Axis::Z].map(|axis| scratch_bytes(isa, dft, axis, [n, n, n]));
                let mut memory = vec![0u8; need.iter().max().unwrap_or(&0) + (1 << 20)];
                let skip = memory.as_ptr().align_offset(64);
                let scratch = &mut memory[skip..];
                let block = |first: [usize; 3], shape: [usize; 3]| {
                    let at = volume.0.wrapping_add(2 * (first[0] * n * n + first[1] * n + first[2]));
                    Block { from: at, to: at, shape, from_strides: strides, to_strides: strides }
                };
                // SAFETY: each thread has its own planes, or its own y.
                unsafe {
                    if what < 3 {
                        for x in first..end {
                            let plane = block([x, 0, 0], [1, n, n]);
                            if what != 2 {
                                transform(isa, dft, Axis::Z, &plane, false, None, scratch);
                            }
                            if what != 1 {
                                transform(isa, dft, Axis::Y, &plane, false, None, scratch);
                            }
                        }
                    } else {
                        for y in (first..end).step_by(4) {
                            let columns = block([0, y, 0], [n, 4, n]);
                            transform(isa, dft, Axis::X, &columns, false, Some(1.0 / n as f32), scratch);
                        }
                    }
                }
            });
        }
    });
}

fn least(mut run: impl FnMut()) -> f64 {
    run();
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[0]
}
