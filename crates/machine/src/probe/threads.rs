//! Threads bound to cores that start measuring together, or not at all.

use super::failure;
use crate::error::MachineError;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::sync::{Barrier, mpsc};

/// The CPUs for `workers` threads: one each, no more than there are.
pub(crate) fn bound(cpus: &[usize], workers: usize) -> Vec<usize> {
    cpus.iter().copied().take(workers.max(1)).collect()
}

/// On a thread for each CPU, runs `prepare` and then, once all have something prepared, `work` with it and a barrier
/// that all of them share. The results are in the order of the CPUs. `work` must not panic: the others would wait for
/// it at the barrier.
///
/// # Errors
/// A thread that cannot be started, or one that cannot prepare: then no `work` is run.
pub(crate) fn run<P, R: Send>(
    cpus: &[usize],
    prepare: impl Fn() -> Option<P> + Sync,
    work: impl Fn(P, &Barrier) -> R + Sync,
) -> Result<Vec<R>, MachineError> {
    let barrier = Barrier::new(cpus.len());
    let (prepare, work, barrier) = (&prepare, &work, &barrier);
    std::thread::scope(|scope| {
        let (ready, is_ready) = mpsc::channel();
        // A gate that is dropped unopened sends its thread home; so an early return here leaves nobody waiting.
        let (mut gates, mut threads) = (Vec::new(), Vec::new());
        for &cpu in cpus {
            let ready = ready.clone();
            let (gate, opened) = mpsc::channel::<()>();
            let thread = std::thread::Builder::new().spawn_scoped(scope, move || {
                bind(cpu);
                let prepared = prepare();
                let _ = ready.send(prepared.is_some());
                drop(ready);
                opened.recv().ok()?;
                Some(work(prepared?, barrier))
            });
            threads.push(thread.map_err(|error| failure("with several threads", error))?);
            gates.push(gate);
        }
        drop(ready);
        if is_ready.iter().filter(|ready| *ready).count() < cpus.len() {
            return Err(failure("memory", "the buffers cannot be allocated"));
        }
        for gate in gates {
            let _ = gate.send(());
        }
        let results: Option<Vec<R>> = threads.into_iter().map(|thread| thread.join().ok().flatten()).collect();
        results.ok_or_else(|| failure("with several threads", "a measuring thread failed"))
    })
}

fn bind(cpu: usize) {
    let mut set = CpuSet::new();
    if cpu < CpuSet::MAX_CPU {
        set.set(cpu);
        // Unbound threads measure less steadily, but they measure.
        let _ = sched_setaffinity(None, &set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn all_work_with_what_they_prepared() {
        let next = AtomicUsize::new(0);
        let mut found = run(
            &[0, 0, 0],
            || Some(next.fetch_add(1, Ordering::Relaxed)),
            |mine, barrier| {
                barrier.wait();
                mine
            },
        )
        .unwrap();
        found.sort_unstable();
        assert_eq!(found, [0, 1, 2]);
    }

    #[test]
    fn one_that_cannot_prepare_stops_all_and_hangs_none() {
        let next = AtomicUsize::new(0);
        let prepare = || (next.fetch_add(1, Ordering::Relaxed) != 1).then_some(());
        let error = run(&[0, 0, 0], prepare, |(), _| panic!("no work may start")).unwrap_err();
        assert!(error.to_string().contains("allocated"), "{error}");
    }
}
