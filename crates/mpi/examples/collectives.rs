//! What collective operations between ranks take beside MPI's own, in turns in one run:
//! `mpirun -n 2 target/release/examples/collectives`.
//!
//! Sums are of f64 in the fixed order, whose bits MPI's own does not promise, and of u64 in any order.

use multigrain_mpi::{Choice, Collectives, Mpi, MpiError, Row, Threads, Way, Window, costs};
use multigrain_schedule::message::{Algorithm, Operation};
use multigrain_schedule::{Order, Topology};
use multigrain_team::collective::{Operator, Sum};
use std::time::Instant;

const TURNS: usize = 21;

fn main() {
    let mpi = Mpi::start(Threads::Funneled).unwrap_or_else(|error| {
        eprintln!("error: {error}");
        std::process::exit(2);
    });
    if let Err(error) = measure(&mpi) {
        mpi.fail(&error.to_string());
    }
}

fn measure(mpi: &Mpi) -> Result<(), MpiError> {
    let world = mpi.world()?;
    let topology = world.topology()?;
    let costs = costs(&world, &topology)?;
    let first = world.rank() == 0;
    if first {
        println!("{}\n{} ranks on {topology}; {costs:?}", mpi.version().lines().next().unwrap_or(""), world.size());
        println!("{TURNS} turns each; median us (lowest) of rank 0\n");
    }
    let size = u64::from(world.size());
    let free = Operator::<u64>::order(&Sum);
    let allgather_bytes = (1 << 20) / size / 8 * 8 * size;
    for (name, operation, bytes) in [
        ("barrier", Operation::Barrier, 0),
        ("allreduce f64 8 B", Operation::Allreduce { order: Order::Fixed }, 8),
        ("allreduce f64 1 MiB", Operation::Allreduce { order: Order::Fixed }, 1 << 20),
        ("allreduce u64 8 B", Operation::Allreduce { order: free }, 8),
        ("allreduce u64 1 MiB", Operation::Allreduce { order: free }, 1 << 20),
        ("all-to-all 1 MiB a rank", Operation::Alltoall, allgather_bytes),
        ("all-gather 1 MiB", Operation::Allgather, allgather_bytes),
        ("broadcast 1 MiB", Operation::Broadcast { root: 0 }, 1 << 20),
    ] {
        let elements = bytes as usize / 8;
        let floats = matches!(operation, Operation::Allreduce { order: Order::Fixed });
        let mut ways = vec![Way::Mpi];
        ways.extend(Algorithm::performing(operation, &topology).map(Way::Script));
        let mut groups: Vec<Collectives<'_>> = Vec::new();
        for way in &ways {
            groups.push(Collectives::new(&world, topology.clone(), Choice::only(*way, costs.clone()))?);
        }
        let (mut a, mut b) = (vec![1u64; elements], vec![0u64; elements]);
        let (mut c, mut d) = (vec![1f64; elements], vec![0f64; elements]);
        let calls = if bytes <= 4096 { 300 } else { 10 };
        let mut times = vec![Vec::new(); ways.len()];
        for turn in 0..=TURNS {
            for ((way, group), times) in ways.iter().zip(&mut groups).zip(&mut times) {
                world.barrier()?;
                let begin = Instant::now();
                for _ in 0..calls {
                    match operation {
                        Operation::Barrier => group.barrier()?,
                        Operation::Alltoall => group.alltoall(&a, &mut b)?,
                        Operation::Allgather => group.allgather(&mut b)?,
                        Operation::Broadcast { root } => group.broadcast(root, &mut b)?,
                        _ if floats && *way == Way::Mpi => world.sum(&c, &mut d)?,
                        _ if floats => group.allreduce(&c, &mut d, &Sum)?,
                        _ => group.allreduce(&a, &mut b, &Sum)?,
                    }
                    // What is sent again unaltered flatters caches.
                    if let (Some(x), Some(y)) = (a.first_mut(), c.first_mut()) {
                        (*x, *y) = (x.wrapping_add(1), *y + 1.0);
                    }
                }
                if turn > 0 {
                    times.push(begin.elapsed().as_nanos() as f64 / 1000.0 / calls as f64);
                }
            }
        }
        if first {
            let of = |mut times: Vec<f64>| {
                times.sort_by(f64::total_cmp);
                (times[times.len() / 2], times[0])
            };
            let found: Vec<(f64, f64)> = times.into_iter().map(of).collect();
            let words = ways.iter().zip(&found).map(|(way, (median, least))| {
                format!("{way} {median:.2} ({least:.2}, ratio {:.2})", found[0].0 / median)
            });
            println!("{name}: {}", words.collect::<Vec<_>>().join("; "));
        }
    }
    window(&world, first)?;
    chosen(&world, &topology, &costs, first)
}

/// One-sided and two-sided transfers of as many bytes.
fn window(world: &multigrain_mpi::Comm<'_>, first: bool) -> Result<(), MpiError> {
    let window = Window::new(world, 1 << 20)?;
    for elements in [1usize, 2048, 1 << 17] {
        let mut found = vec![0u64; elements];
        let calls = if elements < 10_000 { 300 } else { 10 };
        let mut times = Vec::new();
        for _ in 0..TURNS {
            world.barrier()?;
            let begin = Instant::now();
            for _ in 0..calls {
                if first {
                    window.get(world.size() - 1, 0, &mut found)?;
                }
            }
            times.push(begin.elapsed().as_nanos() as f64 / 1000.0 / calls as f64);
        }
        times.sort_by(f64::total_cmp);
        if first {
            println!("get of {} B: {:.2} us", elements * 8, times[TURNS / 2]);
        }
    }
    Ok(())
}

/// The table that `rows` makes.
fn chosen(
    world: &multigrain_mpi::Comm<'_>,
    topology: &Topology,
    costs: &multigrain_schedule::message::Costs,
    first: bool,
) -> Result<(), MpiError> {
    let rows: Vec<Row> = multigrain_mpi::rows(world, topology, costs, &[8, 1024, 32 << 10, 1 << 20])?;
    for row in rows.iter().filter(|_| first) {
        println!("{} up to {} B: {}, {}", row.operation, row.bytes_max, row.way, row.reason);
    }
    Ok(())
}
