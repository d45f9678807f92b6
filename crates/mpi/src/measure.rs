//! What messages cost here, measured by all ranks together.

use crate::{Choice, Collectives, Comm, MpiError, Row, Way};
use multigrain_schedule::Topology;
use multigrain_schedule::message::{Algorithm, Costs, Operation, Tier};
use multigrain_team::collective::{Operator, Sum};
use std::time::Instant;

/// Bytes of a long message.
const LONG_BYTES: usize = 1 << 20;

/// Messages of a burst.
const BURST: usize = 16;

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(0.0)
}

/// Time of one call, in nanoseconds: the median of so many turns of so many calls each.
fn turns(turns: usize, calls: usize, mut call: impl FnMut() -> Result<(), MpiError>) -> Result<f64, MpiError> {
    let mut times = Vec::with_capacity(turns);
    for _ in 0..turns {
        let begin = Instant::now();
        for _ in 0..calls {
            call()?;
        }
        times.push(begin.elapsed().as_nanos() as f64 / calls as f64);
    }
    Ok(median(times))
}

/// What messages cost between ranks of each distance, and what a rank combines and copies, as rank 0 found it. Collective;
/// takes some milliseconds a distance. Pairs are measured one after the other, so nothing is known of contention.
///
/// # Errors
/// What MPI refuses.
pub fn costs(comm: &Comm<'_>, topology: &Topology) -> Result<Costs, MpiError> {
    let comm = comm.again()?;
    let mut tiers = Vec::new();
    let mut message_ns = 0f64;
    // Rank 0 and the nearest of each distance.
    let farthest = (1..comm.size()).map(|rank| topology.distance(0, rank)).max();
    for distance in 0..=farthest.unwrap_or(0) {
        let partner = (1..comm.size()).find(|&rank| topology.distance(0, rank) >= distance);
        let Some(partner) = partner else { break };
        let (latency_ns, long_ns, burst_ns) = pair(&comm, partner)?;
        let bytes_per_ns = LONG_BYTES as f64 / (long_ns - latency_ns).max(1.0);
        tiers.push(Tier { latency_ns, bytes_per_ns });
        message_ns = message_ns.max((burst_ns - latency_ns).max(0.0) / (BURST - 1) as f64);
    }
    // What a processor does alone, on what a second level cache does not hold.
    let elements = 1 << 19;
    let (a, b, mut c) = (vec![1f64; elements], vec![2f64; elements], vec![0f64; elements]);
    let bytes = (8 * elements) as f64;
    let combine_ns = turns(5, 1, || {
        for ((c, a), b) in c.iter_mut().zip(&a).zip(&b) {
            *c = a + b;
        }
        std::hint::black_box(&mut c);
        Ok(())
    })?;
    let copy_ns = turns(5, 1, || {
        c.copy_from_slice(&a);
        std::hint::black_box(&mut c);
        Ok(())
    })?;
    // Everybody has to decide by the same numbers.
    let mut told: Vec<f64> = tiers.iter().flat_map(|tier| [tier.latency_ns, tier.bytes_per_ns]).collect();
    told.extend([message_ns, bytes / combine_ns, bytes / copy_ns]);
    comm.broadcast(0, &mut told)?;
    let (by_tier, rest) = told.split_at(told.len() - 3);
    let tier = |pair: &[f64]| Tier { latency_ns: pair[0], bytes_per_ns: pair[1] };
    let tiers = by_tier.chunks_exact(2).map(tier).collect();
    Ok(Costs { tiers, message_ns: rest[0], combine_bytes_per_ns: rest[1], copy_bytes_per_ns: rest[2] })
}

/// Half the time of a message and its answer: empty, long; and the time of a burst of short ones and one answer.
fn pair(comm: &Comm<'_>, partner: u32) -> Result<(f64, f64, f64), MpiError> {
    let mut found = [0f64; 3];
    comm.barrier()?;
    if comm.rank() == 0 || comm.rank() == partner {
        let first = comm.rank() == 0;
        let other = if first { partner } else { 0 };
        let mut buffer = vec![0u64; LONG_BYTES / 8];
        let mut answer = |elements: usize| {
            if first {
                comm.send(other, &buffer[..elements])?;
                comm.receive(other, &mut buffer[..elements])
            } else {
                comm.receive(other, &mut buffer[..elements])?;
                comm.send(other, &buffer[..elements])
            }
        };
        // As many as take a tenth of a millisecond, by the first rank's watch.
        let mut calls = [turns(3, 1, || answer(0))?];
        calls[0] = (1e5 / calls[0]).clamp(1.0, 100.0).floor();
        if first {
            comm.send(other, &calls)?
        } else {
            comm.receive(other, &mut calls)?
        }
        let calls = calls[0] as usize;
        found[0] = turns(15, calls, || answer(0))? / 2.0;
        found[1] = turns(9, calls.min(4), || answer(LONG_BYTES / 8))? / 2.0;
        let none: &[u64] = &[];
        let burst = vec![(other, none); BURST];
        found[2] = turns(15, calls.div_ceil(5), || {
            let mut places: Vec<(u32, &mut [u64])> = (0..BURST).map(|_| (other, &mut [] as &mut [u64])).collect();
            if first {
                comm.exchange(&burst, &mut [])?;
                comm.receive::<u64>(other, &mut [])
            } else {
                comm.exchange(&[], &mut places)?;
                comm.send::<u64>(other, &[])
            }
        })? - found[0];
    }
    comm.barrier()?;
    Ok((found[0], found[1], found[2]))
}

/// Which way is the fastest for each operation and size, scripts and MPI's own in turns, as rank 0 found it: lines for
/// [`Choice::rows`]. Sums are of `u64`, since MPI's own of floats promise no order. Collective.
///
/// # Errors
/// What MPI refuses.
pub fn rows(comm: &Comm<'_>, topology: &Topology, costs: &Costs, sizes: &[u64]) -> Result<Vec<Row>, MpiError> {
    let comm = comm.again()?;
    let mut found = Vec::new();
    let any = Operator::<u64>::order(&Sum);
    let operations = [
        Operation::Barrier,
        Operation::Broadcast { root: 0 },
        Operation::Allreduce { order: any },
        Operation::Allgather,
        Operation::Alltoall,
    ];
    for operation in operations {
        let one = [0];
        for &bytes in if operation == Operation::Barrier { &one } else { sizes } {
            let mut ways = vec![Way::Mpi];
            ways.extend(Algorithm::performing(operation, topology).map(Way::Script));
            // Each in turn, several times: what else the machine does meets all alike.
            let mut times = vec![Vec::new(); ways.len()];
            let mut groups = Vec::new();
            for way in &ways {
                groups.push(Collectives::new(&comm, topology.clone(), Choice::only(*way, costs.clone()))?);
            }
            let per_rank = (bytes as usize / 8).div_ceil(comm.size() as usize).max(1);
            let elements = match operation {
                Operation::Allgather | Operation::Alltoall => per_rank * comm.size() as usize,
                _ => bytes as usize / 8,
            };
            let (mut a, mut b) = (vec![comm.rank().into(); elements], vec![0u64; elements]);
            let mut calls = vec![1f64; ways.len()];
            for turn in 0..9 {
                for ((group, times), calls) in groups.iter_mut().zip(&mut times).zip(&calls) {
                    comm.barrier()?;
                    let time = turns(1, *calls as usize, || match operation {
                        Operation::Barrier => group.barrier(),
                        Operation::Broadcast { root } => group.broadcast(root, &mut b),
                        Operation::Allgather => group.allgather(&mut b),
                        Operation::Alltoall => group.alltoall(&a, &mut b),
                        _ => group.allreduce(&a, &mut b, &Sum),
                    })?;
                    times.push(time);
                    // What is sent again unaltered flatters caches.
                    a.iter_mut().for_each(|x| *x = x.wrapping_add(1));
                }
                // The first turn prepares, and the second says how many calls take a tenth of a millisecond: where ranks
                // share processors, one does.
                if turn < 2 {
                    calls = times.iter().map(|times| (1e5 / times[turn]).clamp(1.0, 50.0).floor()).collect();
                    comm.broadcast(0, &mut calls)?;
                }
            }
            let mut medians: Vec<f64> = times.into_iter().map(|times| median(times[2..].to_vec())).collect();
            comm.broadcast(0, &mut medians)?;
            let best = (0..ways.len()).min_by(|&i, &j| medians[i].total_cmp(&medians[j])).unwrap_or(0);
            let others = (0..ways.len()).filter(|&i| i != best);
            let others: Vec<String> = others.map(|i| format!("{} {:.2} us", ways[i], medians[i] / 1000.0)).collect();
            let reason = format!("measured {:.2} us; {}", medians[best] / 1000.0, others.join(", "));
            found.push(Row { operation: operation.name(), bytes_max: bytes, way: ways[best], reason });
        }
    }
    Ok(found)
}
