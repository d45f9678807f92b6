//! A loop that several workers share.

use super::Task;
use crate::time::Time;
use multigrain_schedule::claim;
use multigrain_schedule::policy::Part;
use multigrain_schedule::strands::Tally;
use std::ops::Range;

/// How a loop went.
pub(super) struct Shared {
    /// When the last chunk was done.
    pub(super) end: Time,
    /// How long all computed.
    pub(super) busy: Time,
    /// Whether the leader did everything.
    pub(super) unaided: bool,
    /// Of each helper when it came, and when it had nothing more to do, if it did anything.
    pub(super) helped: Vec<(Time, Option<Time>)>,
}

/// Executes the loop of a task by participants that come at `begins`, the leader first. Its time counts from `called` on.
pub(super) fn shared(tally: &mut Tally, begins: &[Time], called: Time, task: &Task) -> Shared {
    let mut ends = Vec::new();
    tally.ends(begins.len(), task.chunks, &mut ends);
    let mut first = 0;
    let mut lists: Vec<Range<u32>> = ends.iter().map(|&end| std::mem::replace(&mut first, end)..end).collect();
    let mut free: Vec<(Time, u32)> = begins.iter().map(|begin| (*begin, 0)).collect();
    // Who is free first claims; of several the first.
    let first = |free: &[(Time, u32)]| (0..free.len()).min_by_key(|participant| free[*participant].0);
    while let Some(me) = first(&free)
        && claim(me, lists.len(), |owner, end| end.take(&mut lists[owner])).is_some()
    {
        let met = task.met.get(me).filter(|met| met.chunks > 0);
        free[me].0 += met.map_or(task.chunk, |met| met.chunk);
        free[me].1 += 1;
        if let Some(met) = met.filter(|met| met.chunks == free[me].1) {
            free[me].0 += met.stalled;
        }
    }
    for ((free, done), met) in free.iter_mut().zip(&task.met) {
        if (1..met.chunks).contains(done) {
            *free += met.stalled;
        }
    }
    let end = free.iter().filter(|(_, done)| *done > 0).map(|(free, _)| *free).max().unwrap_or(begins[0]);
    let part = |(begin, (free, done)): (&Time, &(Time, u32))| match done {
        0 => Part { idle_before: (end - called).ns(), busy: 0.0, chunks: 0 },
        _ => Part { idle_before: (*begin - called).ns(), busy: (*free - *begin).ns(), chunks: *done },
    };
    let mut parts: Vec<Part> = begins.iter().zip(&free).map(part).collect();
    if parts[0].chunks > 0 {
        // The leader's time is that of the off-load, too.
        (parts[0].idle_before, parts[0].busy) = (0.0, (free[0].0 - called).ns());
    }
    let (busy_ns, unaided) = tally.learn(&parts);
    let helped = begins.iter().zip(&free).skip(1).map(|(begin, (free, done))| (*begin, (*done > 0).then_some(*free)));
    Shared { end, busy: Time::from_ns(busy_ns), unaided, helped: helped.collect() }
}
