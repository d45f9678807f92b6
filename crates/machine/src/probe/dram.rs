//! The bandwidth and latency of memory.
//!
//! Reading is a sum over a buffer that no cache holds, writing a copy between its halves, both by all workers at once.
//! The copy counts the bytes of both directions, as STREAM does, because both use the same bus.

use super::{EdgeFigures, failure, threads};
use crate::error::MachineError;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;
/// Steps between two looks at the clock when latency is measured.
const CHASE_STEPS: usize = 10_000;
/// A worker's buffer has at least this.
const WORKER_BYTES_MIN: usize = 64 << 10;

/// An edge whose children read their parent in place.
pub(crate) fn shared(cpus: &[usize], bytes: u64, time: Duration) -> Result<EdgeFigures, MachineError> {
    let words = worker_words(cpus, bytes);
    let per_worker = threads::run(
        cpus,
        || filled(words),
        |mut buffer, barrier| {
            let read = typical(barrier, time, words * 8, || sum(&buffer));
            let (from, to) = buffer.split_at_mut(words / 2);
            let copy = typical(barrier, time, words / 2 * 16, || to[..from.len()].copy_from_slice(from));
            (read, copy)
        },
    )?;
    Ok(figures(&per_worker, latency_ns(bytes, time)?))
}

/// An edge whose children fetch blocks into a store of `store_bytes` and store them back.
pub(crate) fn local(cpus: &[usize], bytes: u64, store_bytes: u64, time: Duration) -> Result<EdgeFigures, MachineError> {
    let words = worker_words(cpus, bytes);
    let store_words = (store_bytes as usize / 8).clamp(1, words);
    let prepare = || Some((filled(words)?, filled(store_words)?));
    let per_worker = threads::run(cpus, prepare, |(mut parent, mut store), barrier| {
        let read = typical(barrier, time, words * 8, || {
            for block in parent.chunks(store_words) {
                store[..block.len()].copy_from_slice(block);
                black_box(&mut store);
            }
        });
        let write = typical(barrier, time, words * 8, || {
            for block in parent.chunks_mut(store_words) {
                block.copy_from_slice(&store[..block.len()]);
            }
            black_box(&mut parent);
        });
        (read, write)
    })?;
    Ok(figures(&per_worker, latency_ns(bytes, time)?))
}

fn worker_words(cpus: &[usize], bytes: u64) -> usize {
    (bytes as usize / cpus.len().max(1)).max(WORKER_BYTES_MIN) / 8
}

/// Adds up the workers' bandwidths.
fn figures(per_worker: &[(f64, f64)], latency_ns: f64) -> EdgeFigures {
    EdgeFigures {
        read_bytes_per_second: per_worker.iter().map(|(read, _)| read).sum(),
        write_bytes_per_second: per_worker.iter().map(|(_, write)| write).sum(),
        latency_ns,
        fragment_ns: None,
    }
}

/// A buffer whose pages are all there, or `None` if there is no memory for it.
fn filled(words: usize) -> Option<Vec<u64>> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(words).ok()?;
    buffer.extend((0..words as u64).map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    Some(buffer)
}

fn sum(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
}

/// Bytes per second within `time`, all workers starting together: the first quartile of the passes' times. Disturbance
/// only slows a pass, so the median is too slow on a busy computer; the very fastest passes are those during which
/// another worker was held up.
fn typical<R>(barrier: &std::sync::Barrier, time: Duration, bytes: usize, mut pass: impl FnMut() -> R) -> f64 {
    barrier.wait();
    let start = Instant::now();
    let mut passes: Vec<f64> = Vec::new();
    while passes.len() < 3 || start.elapsed() < time {
        let before = Instant::now();
        black_box(pass());
        passes.push(before.elapsed().as_secs_f64());
    }
    bytes as f64 / first_quartile(&mut passes).max(1e-9)
}

/// The quarter of a list that is not empty below which the rest lies.
fn first_quartile(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 4]
}

/// The middle of a list that is not empty.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Nanoseconds from one line to the next along a random cycle through all lines of a buffer, so that neither cache nor
/// prefetcher can help. What the translation of addresses costs is part of it, as it is part of a run.
fn latency_ns(bytes: u64, time: Duration) -> Result<f64, MachineError> {
    let lines = (bytes as usize / LINE_BYTES).clamp(64, 1 << 22);
    let mut next = filled(lines * LINE_BYTES / 8).ok_or_else(|| failure("memory", "the buffer cannot be allocated"))?;
    let mut order: Vec<u32> = (0..lines as u32).collect();
    shuffle(&mut order);
    for (index, &line) in order.iter().enumerate() {
        next[line as usize * LINE_BYTES / 8] = u64::from(order[(index + 1) % lines]);
    }
    let (start, mut at, mut rounds_ns) = (Instant::now(), 0usize, Vec::new());
    while rounds_ns.is_empty() || start.elapsed() < time {
        let before = Instant::now();
        for _ in 0..CHASE_STEPS {
            at = next[at * LINE_BYTES / 8] as usize;
        }
        rounds_ns.push(before.elapsed().as_secs_f64() * 1e9 / CHASE_STEPS as f64);
    }
    black_box(at);
    Ok(first_quartile(&mut rounds_ns))
}

/// Fisher and Yates, with a xorshift generator: the order must be irregular, not unpredictable.
fn shuffle(order: &mut [u32]) {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    for last in (1..order.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        order.swap(last, (state % (last as u64 + 1)) as usize);
    }
}
