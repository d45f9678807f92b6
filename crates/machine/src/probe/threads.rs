//! Threads bound to cores that start measuring together.

use crate::error::MachineError;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::sync::Barrier;

/// The CPUs for `workers` threads: one each, no more than there are.
pub(crate) fn bound(cpus: &[usize], workers: usize) -> Vec<usize> {
    cpus.iter().copied().take(workers.max(1)).collect()
}

/// Runs `work` on a thread for each CPU, given the thread's index and the common barrier; the results are in the order
/// of the CPUs. `work` must not panic: the others would wait at the barrier.
pub(crate) fn run<R: Send>(cpus: &[usize], work: impl Fn(usize, &Barrier) -> R + Sync) -> Result<Vec<R>, MachineError> {
    let barrier = Barrier::new(cpus.len());
    let (work, barrier) = (&work, &barrier);
    std::thread::scope(|scope| {
        let threads: Vec<_> = cpus
            .iter()
            .enumerate()
            .map(|(index, &cpu)| {
                scope.spawn(move || {
                    let mut set = CpuSet::new();
                    if cpu < CpuSet::MAX_CPU {
                        set.set(cpu);
                        // Unbound threads measure less steadily, but they measure.
                        let _ = sched_setaffinity(None, &set);
                    }
                    work(index, barrier)
                })
            })
            .collect();
        let results: Option<Vec<R>> = threads.into_iter().map(|thread| thread.join().ok()).collect();
        results.ok_or_else(|| super::failure("with several threads", "a measuring thread failed"))
    })
}
