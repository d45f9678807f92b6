//! Every script that this crate makes is proved, for all numbers of ranks up to 70 and all roots; small ones in every
//! interleaving; and what is broken is found.

use multigrain_schedule::check::{self, Wrong};
use multigrain_schedule::message::{
    Algorithm, Costs, Local, Operation, Payload, Request, Scripts, Tier, choose, scripts,
};
use multigrain_schedule::{Domain, Laws, Order, ScheduleError, Topology};

fn free() -> Order {
    Laws { associative: true, commutative: true }.reordered("sum of integers").unwrap()
}

fn operations(roots: impl Iterator<Item = u32>) -> Vec<Operation> {
    let mut all = vec![Operation::Barrier, Operation::Allgather, Operation::Alltoall];
    all.extend([Order::Fixed, free()].map(|order| Operation::Allreduce { order }));
    for root in roots {
        all.push(Operation::Broadcast { root });
        all.extend([Order::Fixed, free()].map(|order| Operation::Reduce { root, order }));
    }
    all
}

/// All on one node, nodes of two, three and eight ranks, and nodes of which none is as large as another.
fn topologies(n: u32) -> Vec<Topology> {
    let mut found = vec![Topology::flat(n).unwrap()];
    for size in [2, 3, 8] {
        found.extend(Topology::packed(n, &[n.div_ceil(size), size]).ok().filter(|_| n > size));
    }
    let (mut rest, mut sizes) = (n, Vec::new());
    while rest > 0 {
        let size = (sizes.len() as u32 + 1).min(rest);
        sizes.push(Domain::Members(size));
        rest -= size;
    }
    found.extend(Topology::new(Domain::Domains(sizes)).ok().filter(|_| n > 1));
    found
}

fn make(operation: Operation, algorithm: Algorithm, topology: &Topology) -> Scripts {
    scripts(&Request { operation, algorithm, topology: topology.clone() }).unwrap()
}

/// Everything that there is for a group, by-node algorithms on all topologies, the others on one.
fn each(n: u32, roots: impl Iterator<Item = u32> + Clone, mut with: impl FnMut(&Scripts)) {
    for (t, topology) in topologies(n).iter().enumerate() {
        for operation in operations(roots.clone()) {
            for algorithm in Algorithm::performing(operation, topology) {
                if t == 0 || algorithm == Algorithm::ByNode {
                    with(&make(operation, algorithm, topology));
                }
            }
        }
    }
}

fn prove(scripts: &Scripts) {
    check::messages::happens_before(scripts).unwrap_or_else(|fault| panic!("{:?}: {fault}", scripts.request));
}

#[test]
fn every_number_of_ranks_up_to_70_and_every_root_is_proved() {
    let mut proved = 0;
    for n in 1..=70 {
        let all = n <= 16;
        each(n, if all { 0..n } else { n / 3..n / 3 + 1 }, |scripts| {
            // Partial results in free order are fewer, so nothing new is met in larger groups but the ring.
            let Request { operation, algorithm, .. } = scripts.request;
            if all || n % 8 == 5 || algorithm == Algorithm::Ring || operation.order().is_none_or(|o| o == Order::Fixed)
            {
                prove(scripts);
                proved += 1;
            }
        });
        // Trees from a root are each other's but for the names of the ranks, on one node; all are proved even so.
        let flat = Topology::flat(n).unwrap();
        for root in (0..n).filter(|_| !all) {
            prove(&make(Operation::Broadcast { root }, Algorithm::Binomial, &flat));
            prove(&make(Operation::Reduce { root, order: Order::Fixed }, Algorithm::Binomial, &flat));
            proved += 2;
        }
    }
    println!("{proved} scripts proved");
    assert!(proved > 9_000);
}

#[test]
fn small_groups_are_proved_in_every_interleaving() {
    let (mut proved, mut beyond) = (0, 0);
    for n in 1..=4 {
        each(n, 0..n, |scripts| match check::messages::every_interleaving(scripts, 20_000) {
            Ok(_) => proved += 1,
            Err(fault) if fault.what == Wrong::TooManyStates => beyond += 1,
            Err(fault) => panic!("{:?}: {fault}", scripts.request),
        });
    }
    println!("{proved} visited whole, {beyond} as far as 20,000 states");
    assert!(proved > 100 && beyond < proved);
}

/// What an alteration does to the scripts of a group.
fn broken(scripts: &Scripts) -> Vec<(String, Scripts)> {
    let mut found = Vec::new();
    let mut push = |what: String, alter: &dyn Fn(&mut Scripts)| {
        let mut altered = scripts.clone();
        alter(&mut altered);
        if altered != *scripts {
            found.push((what, altered));
        }
    };
    for (r, script) in scripts.ranks.iter().enumerate() {
        for (i, round) in script.rounds.iter().enumerate() {
            for k in 0..round.sends.len() {
                push(format!("send {k} of round {i} of {r} dropped"), &|s| {
                    s.ranks[r].rounds[i].sends.remove(k);
                });
                push(format!("send {k} of round {i} of {r} to another"), &|s| {
                    let ranks = s.ranks.len() as u32;
                    let send = &mut s.ranks[r].rounds[i].sends[k];
                    send.with = (send.with + 1) % ranks;
                });
                for p in 0..round.sends[k].pieces.len() {
                    push(format!("piece {p} of send {k} of round {i} of {r} elsewhere"), &|s| {
                        let blocks = s.blocks;
                        let piece = &mut s.ranks[r].rounds[i].sends[k].pieces[p];
                        (piece.first, piece.end) =
                            if piece.end < blocks { (piece.first + 1, piece.end + 1) } else { (0, piece.blocks()) };
                    });
                }
            }
            for k in 0..round.receives.len() {
                push(format!("receive {k} of round {i} of {r} dropped"), &|s| {
                    s.ranks[r].rounds[i].receives.remove(k);
                });
                push(format!("receive {k} of round {i} of {r} in a round of its own"), &|s| {
                    let receive = s.ranks[r].rounds[i].receives.remove(k);
                    let mut alone = s.ranks[r].rounds[i].clone();
                    (alone.receives, alone.sends) = (vec![receive], Vec::new());
                    s.ranks[r].rounds[i].then.clear();
                    s.ranks[r].rounds.insert(i + 1, alone);
                });
            }
            for k in 0..round.then.len() {
                push(format!("local {k} of round {i} of {r} dropped"), &|s| {
                    s.ranks[r].rounds[i].then.remove(k);
                });
                push(format!("local {k} of round {i} of {r} twice"), &|s| {
                    let local = s.ranks[r].rounds[i].then[k];
                    s.ranks[r].rounds[i].then.insert(k, local);
                });
                push(format!("operands {k} of round {i} of {r} changed about"), &|s| {
                    if let Local::Combine { left, right, .. } = &mut s.ranks[r].rounds[i].then[k] {
                        std::mem::swap(left, right);
                    }
                });
            }
        }
    }
    found
}

/// Why an alteration that passes is no fault, if there is a reason.
fn harmless(scripts: &Scripts, what: &str) -> bool {
    // A copy made again is the same copy; a message that is received later than it could be is received.
    let copied = what.ends_with("twice");
    let later = what.ends_with("in a round of its own");
    // In free order nobody minds which operand is the left one.
    let free = matches!(scripts.request.operation.order(), Some(Order::Free(_)));
    copied || later || (free && what.ends_with("changed about"))
}

#[test]
fn what_is_broken_is_found() {
    let (mut altered, mut found) = (0, 0);
    for n in [3, 4, 6] {
        each(n, [1].into_iter(), |scripts| {
            for (what, broken) in broken(scripts) {
                altered += 1;
                match check::messages::happens_before(&broken) {
                    Err(_) => found += 1,
                    Ok(()) => {
                        assert!(harmless(scripts, &what), "{:?}: {what} is not found", scripts.request);
                        // If the proof from one interleaving passes it, so does that of all.
                        if n == 3 {
                            match check::messages::every_interleaving(&broken, 20_000) {
                                Ok(_) | Err(check::Fault { what: Wrong::TooManyStates, .. }) => {}
                                Err(fault) => panic!("{:?}: {what}: {fault}", scripts.request),
                            }
                        }
                    }
                }
            }
        });
    }
    println!("{found} of {altered} found");
    assert!(found > 2000, "{found}");
}

#[test]
fn two_who_send_first_never_end() {
    // A ring whose ranks send, and only then receive: with buffers it ends, by rendezvous it does not.
    let topology = Topology::flat(3).unwrap();
    let mut scripts = make(Operation::Allgather, Algorithm::Ring, &topology);
    for script in &mut scripts.ranks {
        let mut sends = script.rounds[0].clone();
        script.rounds[0].sends.clear();
        sends.receives.clear();
        script.rounds.insert(0, sends);
    }
    assert_eq!(check::messages::happens_before(&scripts).unwrap_err().what, Wrong::Stuck);
    let payload = Payload { elements: 3, element_bytes: 8 };
    assert_eq!(costs().time_ns(&scripts, payload), f64::INFINITY);
}

/// A wire of 1 us and 1 byte a nanosecond, processors that take no time.
fn costs() -> Costs {
    let tiers = vec![Tier { latency_ns: 1000.0, bytes_per_ns: 1.0 }];
    Costs { tiers, message_ns: 0.0, combine_bytes_per_ns: f64::INFINITY, copy_bytes_per_ns: f64::INFINITY }
}

#[test]
fn prices_are_those_of_the_textbook() {
    // Thakur, Rabenseifner, Gropp 2005, tables of section 3: p ranks, n bytes, a = 1000, b = 1.
    let bytes = 1_441_440.0;
    for p in [4u32, 6, 8, 10, 16, 64] {
        let (levels, n) = (f64::from(p).log2().ceil(), f64::from(p));
        let power = p.is_power_of_two();
        let topology = Topology::flat(p).unwrap();
        let payload = Payload { elements: 1_441_440 / 8, element_bytes: 8 };
        let price = |operation, algorithm| costs().time_ns(&make(operation, algorithm, &topology), payload);
        let is = |operation, algorithm, expected: f64| {
            let price = price(operation, algorithm);
            let near = (price / expected - 1.0).abs() < 1e-3;
            assert!(near, "{algorithm} {operation} of {p}: {price} is not {expected}");
        };
        let rest = bytes * (n - 1.0) / n;
        is(Operation::Barrier, Algorithm::Dissemination, 1000.0 * levels);
        is(Operation::Broadcast { root: 1 }, Algorithm::Binomial, (1000.0 + bytes) * levels);
        is(Operation::Allgather, Algorithm::Ring, 1000.0 * (n - 1.0) + rest);
        is(Operation::Allgather, Algorithm::Bruck, 1000.0 * levels + rest);
        is(Operation::Alltoall, Algorithm::Pairwise, 1000.0 * (n - 1.0) + rest);
        is(Operation::Allreduce { order: free() }, Algorithm::Ring, 2000.0 * (n - 1.0) + 2.0 * rest);
        is(Operation::Allreduce { order: Order::Fixed }, Algorithm::Direct, 2000.0 * (n - 1.0) + 2.0 * rest);
        is(Operation::Reduce { root: 0, order: Order::Fixed }, Algorithm::Binomial, (1000.0 + bytes) * levels);
        if power {
            is(Operation::Allreduce { order: Order::Fixed }, Algorithm::Doubling, (1000.0 + bytes) * levels);
            is(Operation::Allreduce { order: Order::Fixed }, Algorithm::Halving, 2000.0 * levels + 2.0 * rest);
            is(Operation::Allgather, Algorithm::Doubling, 1000.0 * levels + rest);
            is(Operation::Alltoall, Algorithm::Bruck, (1000.0 + bytes / 2.0) * levels);
        }
    }
}

#[test]
fn choices_follow_sizes() {
    let topology = Topology::flat(16).unwrap();
    let costs = Costs { message_ns: 500.0, ..costs() };
    let best = |operation, elements| {
        let payload = Payload { elements, element_bytes: 8 };
        choose(operation, &topology, payload, &costs).unwrap()[0].algorithm
    };
    let fixed = Operation::Allreduce { order: Order::Fixed };
    assert_eq!(best(fixed, 1), Algorithm::Doubling);
    assert_eq!(best(fixed, 1 << 20), Algorithm::Halving);
    assert_eq!(best(Operation::Broadcast { root: 3 }, 1), Algorithm::Binomial);
    assert_eq!(best(Operation::Broadcast { root: 3 }, 1 << 20), Algorithm::ScatterRing);
    assert_eq!(best(Operation::Alltoall, 16), Algorithm::Bruck);
    assert_ne!(best(Operation::Alltoall, 1 << 20), Algorithm::Bruck);
    // A dear wire between nodes: one message crosses instead of eight.
    let nodes = Topology::packed(16, &[2, 8]).unwrap();
    let tiers = [(100.0, 10.0), (50_000.0, 0.1)].map(|(latency_ns, bytes_per_ns)| Tier { latency_ns, bytes_per_ns });
    let costs = Costs { tiers: tiers.to_vec(), message_ns: 5_000.0, ..costs };
    let payload = Payload { elements: 16, element_bytes: 8 };
    let all = choose(Operation::Alltoall, &nodes, payload, &costs).unwrap();
    assert_eq!(all[0].algorithm, Algorithm::ByNode, "{all:?}");
}

#[test]
fn bytes_sent_are_the_fewest() {
    // What a rank receives: of an all-gather all but its own block; of Rabenseifner's and the direct allreduce twice that.
    for p in [2u32, 4, 8, 16] {
        let topology = Topology::flat(p).unwrap();
        let received = |operation, algorithm| {
            let scripts = make(operation, algorithm, &topology);
            let of = |rank: usize| -> u32 {
                let rounds = scripts.ranks[rank].rounds.iter();
                rounds.flat_map(|r| &r.receives).flat_map(|m| &m.pieces).map(|piece| piece.blocks()).sum()
            };
            (0..p as usize).map(of).max().unwrap()
        };
        for algorithm in [Algorithm::Ring, Algorithm::Doubling, Algorithm::Bruck] {
            assert_eq!(received(Operation::Allgather, algorithm), p - 1);
        }
        for algorithm in [Algorithm::Halving, Algorithm::Direct] {
            assert_eq!(received(Operation::Allreduce { order: Order::Fixed }, algorithm), 2 * (p - 1));
        }
        assert_eq!(received(Operation::Alltoall, Algorithm::Pairwise), p - 1);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let six = Topology::flat(6).unwrap();
    let refused = |operation, algorithm| {
        scripts(&Request { operation, algorithm, topology: six.clone() }).map(|_| ()).unwrap_err()
    };
    let fixed = Operation::Allreduce { order: Order::Fixed };
    for (operation, algorithm) in [
        (fixed, Algorithm::Ring),
        (fixed, Algorithm::Halving),
        (fixed, Algorithm::ByNode),
        (Operation::Allgather, Algorithm::Doubling),
        (Operation::Barrier, Algorithm::Ring),
    ] {
        let refusal = refused(operation, algorithm);
        assert!(matches!(refusal, ScheduleError::WrongAlgorithm { .. }), "{algorithm} {operation}: {refusal}");
    }
    let outside = refused(Operation::Broadcast { root: 6 }, Algorithm::Binomial);
    assert!(matches!(outside, ScheduleError::OutsideGroup { rank: 6, last: 5, .. }));
    for algorithm in Algorithm::ALL {
        assert_eq!(algorithm.name().parse(), Ok(algorithm));
    }
    let unknown = "butterfly".parse::<Algorithm>().unwrap_err().to_string();
    assert!(unknown.contains("butterfly") && unknown.contains("bruck"), "{unknown}");
}
