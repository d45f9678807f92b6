//! Everything between ranks, by as many as `mpirun` starts: this program starts itself again as 1 to 5 ranks.

use multigrain_mpi::{Choice, Collectives, Comm, MPIRUN, Mpi, MpiError, Row, Threads, Way, Window, costs, rows};
use multigrain_schedule::message::{Algorithm, Costs, Operation, Tier};
use multigrain_schedule::{Order, Span, Topology};
use multigrain_team::collective::{Max, Operator, Sum};
use std::process::{Command, Output};

const PART: &str = "MULTIGRAIN_MPI_TEST";

fn main() {
    match std::env::var(PART).as_deref() {
        Ok("all") => all(),
        Ok("panic") => ends(|_, rank, _| assert!(rank != 1, "as was asked for")),
        Ok("longer") => ends(|comm, rank, size| {
            // The receiver has room for less: MPI fails while buffers are in its hands.
            if rank == 0 {
                comm.send(size - 1, &[7u64; 100]).unwrap();
            } else if rank == size - 1 {
                comm.receive(0, &mut [0u64; 10]).unwrap();
            }
        }),
        Ok("fails") => {
            let mpi = Mpi::start(Threads::Funneled).unwrap();
            let world = mpi.world().unwrap();
            if world.rank() == 0 {
                mpi.fail("rank 0 cannot go on");
            }
            world.barrier().unwrap();
        }
        _ => launcher(),
    }
}

/// Starts ranks of this program, without a launcher if there are none.
fn started(ranks: Option<u32>, part: &str) -> Output {
    let this = std::env::current_exe().unwrap();
    let command = match ranks {
        None => Command::new(&this),
        Some(ranks) => {
            let mut mpirun = Command::new(MPIRUN);
            mpirun.args(["-n", &ranks.to_string()]);
            let version = Command::new(MPIRUN).arg("--version").output();
            let version = version.unwrap_or_else(|e| panic!("{MPIRUN} cannot be started: {e}"));
            if String::from_utf8_lossy(&version.stdout).contains("open-mpi.org") {
                mpirun.args(["--oversubscribe", "--allow-run-as-root", "--mca", "mpi_yield_when_idle", "1"]);
            }
            mpirun.arg(&this);
            mpirun
        }
    };
    // Whoever hangs has failed: launchers and ranks are a group of processes, which `timeout` ends as a whole.
    let mut limited = Command::new("timeout");
    limited.args(["--kill-after=5", "240"]).arg(command.get_program()).args(command.get_args());
    limited.env(PART, part).output().unwrap()
}

fn launcher() {
    let mut passed = 0;
    for ranks in [None, Some(1), Some(2), Some(3), Some(4), Some(5)] {
        let output = started(ranks, "all");
        let said = String::from_utf8_lossy(&output.stdout);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{ranks:?} ranks: {}\n{said}\n{told}", output.status);
        let done = said.matches("all done").count();
        assert_eq!(done, ranks.unwrap_or(1) as usize, "{said}\n{told}");
        println!("{} ranks by {MPIRUN}: ok", ranks.map_or("no".to_owned(), |n| n.to_string()));
        passed += 1;
    }
    for (part, said) in [("panic", "a panic on node"), ("longer", "rank 2 on node"), ("fails", "rank 0 cannot go on")] {
        let output = started(Some(3), part);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{part}: {told}");
        assert!(told.contains(said) && told.contains("the run ends on all ranks"), "{part}: {told}");
        assert!(!String::from_utf8_lossy(&output.stdout).contains("went on"), "{part}: {told}");
        println!("{part}: ends everywhere: ok");
        passed += 1;
    }
    println!("{passed} passed, 0 failed");
}

/// A run that one rank ends while the others wait.
fn ends(fault: impl FnOnce(&Comm<'_>, u32, u32)) {
    let mpi = Mpi::start(Threads::Funneled).unwrap();
    let world = mpi.world().unwrap();
    fault(&world, world.rank(), world.size());
    // Not MPI's own, which may let some go on.
    world.barrier().unwrap();
    let other = (world.rank() + 1) % world.size();
    world.receive(other, &mut [0u8; 1]).unwrap();
    println!("went on");
}

fn all() {
    let mpi = Mpi::start(Threads::Funneled).unwrap();
    assert!(mpi.threads() >= Threads::Funneled);
    assert_eq!(Mpi::start(Threads::Single).err(), Some(MpiError::Again));
    assert!(!mpi.version().is_empty() && !mpi.node_name().is_empty());
    let world = mpi.world().unwrap();
    messages(&world);
    groups(&world);
    windows(&world);
    collectives(&world);
    misuse(&world);
    measured(&world);
    println!("all done");
}

fn messages(world: &Comm<'_>) {
    let (rank, size) = (world.rank(), world.size());
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    // Long ones, all at the same time, in both directions: by rendezvous, which no buffer helps.
    for elements in [0, 1, 100, 300_000] {
        let mine: Vec<u64> = (0..elements).map(|i| u64::from(rank) << 32 | i).collect();
        let (mut a, mut b) = (vec![0u64; elements as usize], vec![0u64; elements as usize]);
        world.exchange(&[(next, &mine), (last, &mine)], &mut [(last, &mut a), (next, &mut b)]).unwrap();
        if size > 2 {
            assert!(a.iter().zip(0..).all(|(x, i)| *x == u64::from(last) << 32 | i));
        }
        assert!(b.iter().zip(0..).all(|(x, i)| *x == u64::from(next) << 32 | i));
    }
    let refused = MpiError::NoSuchRank { rank: size, last: size - 1 };
    assert_eq!(world.send(size, &[1u8]), Err(refused));
    if size > 1 && rank < 2 {
        // Too few elements.
        let found = if rank == 0 { world.send(1, &[1u64; 3]) } else { world.receive(0, &mut [0u64; 4]) };
        let expected = MpiError::OtherLength { from: 0, came: 24, expected: 32 };
        assert_eq!(found, if rank == 0 { Ok(()) } else { Err(expected) });
    }
}

fn groups(world: &Comm<'_>) {
    let node = world.node().unwrap();
    assert_eq!((node.rank(), node.size()), (world.rank(), world.size()), "all ranks are on one node here");
    assert_eq!(world.topology().unwrap(), Topology::flat(world.size()).unwrap());
    let parity = world.split(world.rank() % 2).unwrap();
    assert_eq!(parity.rank(), world.rank() / 2);
    assert_eq!(parity.size(), (world.size() + 1 - world.rank() % 2) / 2);
    let mut sums = vec![0u64; 1];
    parity.sum(&[u64::from(world.rank())], &mut sums).unwrap();
    assert_eq!(sums[0], (0..world.size()).filter(|r| r % 2 == world.rank() % 2).map(u64::from).sum::<u64>());
}

fn windows(world: &Comm<'_>) {
    let (rank, size) = (world.rank(), world.size());
    // Each rank has as many lines as its number, and one.
    let window = Window::new(world, 4096 * u64::from(rank + 1)).unwrap();
    let next = (rank + 1) % size;
    let mine: Vec<u32> = (0..500).map(|i| rank * 1000 + i).collect();
    let mut got = vec![9u32; 500];
    window.get(next, 0, &mut got).unwrap();
    assert_eq!(got, [0; 500], "a window begins with zeros");
    world.barrier().unwrap();
    window.put(next, 64, &mine).unwrap();
    world.barrier().unwrap();
    let last = (rank + size - 1) % size;
    window.get(rank, 64, &mut got).unwrap();
    assert!(got.iter().zip(0..).all(|(x, i)| *x == last * 1000 + i), "{rank}: {:?}", &got[..4]);
    window.get(next, 64, &mut got).unwrap();
    assert_eq!(got, mine);
    let outside = window.get(0, 4000, &mut [0u8; 97]).unwrap_err();
    assert_eq!(outside, MpiError::OutsideWindow { rank: 0, offset: 4000, bytes: 97, has: 4096 });
    assert!(window.put(size, 0, &[0u8]).is_err());
    assert!(window.put(0, u64::MAX, &[0u8]).is_err());
    world.barrier().unwrap();
}

/// Numbers whose sum depends on the order of adding.
fn term(rank: u32, i: usize) -> f32 {
    let mut x = (u64::from(rank) << 40 | i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 29;
    let magnitude = [1e-3f32, 1.0, 1e3, 1e6][(x >> 60) as usize % 4];
    ((x >> 16) as f32 / (1u64 << 48) as f32 - 0.5) * magnitude
}

fn canonical(span: Span, i: usize) -> f32 {
    span.parts().map_or_else(|| term(span.first, i), |(a, b)| canonical(a, i) + canonical(b, i))
}

fn no_costs() -> Costs {
    let tiers = vec![Tier { latency_ns: 500.0, bytes_per_ns: 5.0 }];
    Costs { tiers, message_ns: 100.0, combine_bytes_per_ns: 4.0, copy_bytes_per_ns: 8.0 }
}

fn collectives(world: &Comm<'_>) {
    let size = world.size();
    let mut topologies = vec![Topology::flat(size).unwrap()];
    for node in [1, 2, 3] {
        topologies.extend(Topology::packed(size, &[size.div_ceil(node), node]).ok().filter(|_| size > node));
    }
    for topology in topologies {
        for way in Algorithm::ALL.map(Way::Script).into_iter().chain([Way::Mpi]) {
            let mut group = Collectives::new(world, topology.clone(), Choice::only(way, no_costs())).unwrap();
            for elements in [0usize, 1, 7, 64, 5_000] {
                reductions(&mut group, way, &topology, elements);
                moves(&mut group, elements);
            }
            group.barrier().unwrap();
        }
    }
    barriers(world);
}

/// Whether an algorithm is really the one that is taken.
fn taken(group: &mut Collectives<'_>, way: Way, operation: Operation, topology: &Topology) {
    if let Way::Script(algorithm) = way
        && algorithm.performs(operation, topology).is_ok()
    {
        assert_eq!(group.explain::<f32>(operation, 64).unwrap().0, way);
    }
}

fn reductions(group: &mut Collectives<'_>, way: Way, topology: &Topology, elements: usize) {
    let (rank, size) = (group.rank(), group.size());
    taken(group, way, Operation::Allreduce { order: Order::Fixed }, topology);
    let mine: Vec<f32> = (0..elements).map(|i| term(rank, i)).collect();
    let expected: Vec<f32> = (0..elements).map(|i| canonical(Span::whole(size), i)).collect();
    let same = |found: &[f32]| found.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits());
    let mut sum = vec![f32::NAN; elements];
    group.allreduce(&mine, &mut sum, &Sum).unwrap();
    assert!(same(&sum), "allreduce by {way}, {elements} elements, {size} ranks");
    for root in 0..size {
        let mut sum = vec![f32::NAN; elements];
        group.reduce(root, &mine, &mut sum, &Sum).unwrap();
        assert!(rank != root || same(&sum), "reduce by {way} to {root}, {elements} elements, {size} ranks");
    }
    // In any order.
    let mine: Vec<u64> = (0..elements as u64).map(|i| i * 3 + u64::from(rank)).collect();
    let mut found = vec![0u64; elements];
    group.allreduce(&mine, &mut found, &Sum).unwrap();
    let ranks: u64 = (0..u64::from(size)).sum();
    assert!(found.iter().zip(0..).all(|(x, i)| *x == i * 3 * u64::from(size) + ranks), "sum by {way}");
    group.allreduce(&mine, &mut found, &Max).unwrap();
    assert!(found.iter().zip(0..).all(|(x, i)| *x == i * 3 + u64::from(size) - 1), "maximum by {way}");
}

fn moves(group: &mut Collectives<'_>, elements: usize) {
    let (rank, size) = (group.rank(), group.size());
    for root in 0..size {
        let mut told: Vec<u16> = (0..elements).map(|i| (i as u16) ^ rank as u16).collect();
        group.broadcast(root, &mut told).unwrap();
        assert!(told.iter().zip(0..).all(|(x, i)| *x == i ^ root as u16), "broadcast from {root}");
    }
    let value = |from: u32, to: u32, i: usize| u64::from(from) << 48 | u64::from(to) << 32 | i as u64;
    let of_rank = |from: u32| (0..elements).map(move |i| value(from, from, i));
    let mut gathered = vec![0; elements * size as usize];
    let own = elements * rank as usize;
    gathered[own..own + elements].iter_mut().zip(of_rank(rank)).for_each(|(x, y)| *x = y);
    group.allgather(&mut gathered).unwrap();
    assert!(gathered.into_iter().eq((0..size).flat_map(of_rank)), "all-gather");
    let from: Vec<u64> = (0..size).flat_map(|to| (0..elements).map(move |i| value(rank, to, i))).collect();
    let mut into = vec![0; from.len()];
    group.alltoall(&from, &mut into).unwrap();
    let expected = (0..size).flat_map(|from| (0..elements).map(move |i| value(from, rank, i)));
    assert!(into.into_iter().eq(expected), "all-to-all");
}

/// Nobody leaves early: everybody counts in a window, and sees all counts behind the barrier.
fn barriers(world: &Comm<'_>) {
    let size = world.size();
    let window = Window::new(world, 8 * u64::from(size)).unwrap();
    for topology in [Topology::flat(size), Topology::packed(size, &[size.div_ceil(2), 2])].into_iter().flatten() {
        let choice = Choice { rows: Vec::new(), costs: no_costs() };
        let mut group = Collectives::new(world, topology, choice).unwrap();
        for round in 1..20u64 {
            for rank in 0..size {
                window.put(rank, 8 * u64::from(world.rank()), &[round]).unwrap();
            }
            group.barrier().unwrap();
            let mut seen = vec![0u64; size as usize];
            window.get(world.rank(), 0, &mut seen).unwrap();
            assert!(seen.iter().all(|&x| x == round), "{seen:?} in round {round}");
            group.barrier().unwrap();
        }
    }
}

fn misuse(world: &Comm<'_>) {
    let size = world.size();
    let flat = Topology::flat(size).unwrap();
    let choice = Choice { rows: Vec::new(), costs: no_costs() };
    let other = Topology::flat(size + 1).unwrap();
    assert!(Collectives::new(world, other, choice.clone()).is_err());
    let mut group = Collectives::new(world, flat, choice).unwrap();
    assert!(group.broadcast(size, &mut [0u8]).is_err());
    assert!(group.allreduce(&[1u8, 2], &mut [0u8], &Sum).is_err());
    if size > 1 {
        let odd = group.allgather(&mut vec![0u8; size as usize + 1]).unwrap_err().to_string();
        assert!(odd.contains("not as many for each"), "{odd}");
    }
}

fn measured(world: &Comm<'_>) {
    let topology = world.topology().unwrap();
    let costs = costs(world, &topology).unwrap();
    assert!(costs.tiers.iter().all(|tier| tier.latency_ns > 0.0 && tier.bytes_per_ns > 0.0), "{costs:?}");
    let rows: Vec<Row> = rows(world, &topology, &costs, &[8, 4096]).unwrap();
    assert_eq!(rows.len(), 9);
    // Everybody decides the same.
    let text = format!("{costs:?} {rows:?}");
    let sum = text.bytes().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let mut sums = vec![0; world.size() as usize];
    sums[world.rank() as usize] = sum;
    world.allgather(&mut sums).unwrap();
    assert!(sums.iter().all(|&s| s == sum), "{sums:?}");
    let mut group = Collectives::new(world, topology.clone(), Choice { rows, costs }).unwrap();
    reductions(&mut group, Way::Mpi, &topology, 9);
    let order = Operator::<u64>::order(&Sum);
    let (way, reason) = group.explain::<u64>(Operation::Allreduce { order }, 1).unwrap();
    assert!(reason.contains("measured"), "{way}: {reason}");
}
