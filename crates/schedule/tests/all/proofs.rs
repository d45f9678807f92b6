//! Every schedule that this crate makes is proved: for all sizes up to 64 by happens-before, for small groups in every
//! interleaving.

use multigrain_schedule::check::{Transfers, every_interleaving, happens_before};
use multigrain_schedule::{Algorithm, Kind, Laws, Operation, Order, Request, Schedules, Topology, schedules};
use proptest::prelude::*;

const BUFFER_BYTES: u64 = 4096;

fn orders() -> [Order; 2] {
    [Order::Fixed, Laws { associative: true, commutative: true }.reordered("sum of integers").unwrap()]
}

/// Every operation of a kind in a group of `n`, with the given root where it has one.
fn operations(kind: Kind, bytes: u64, root: u32) -> Vec<Operation> {
    let orders = orders().into_iter();
    match kind {
        Kind::Barrier => vec![Operation::Barrier],
        Kind::Broadcast => vec![Operation::Broadcast { root, bytes }],
        Kind::Reduce => orders.map(|order| Operation::Reduce { root, bytes, element_bytes: 4, order }).collect(),
        Kind::Allreduce => orders.map(|order| Operation::Allreduce { bytes, element_bytes: 4, order }).collect(),
    }
}

fn topologies(n: u32) -> Vec<Topology> {
    let places: [&[u32]; 5] = [&[64], &[2, 8], &[3, 3], &[2, 2, 16], &[16, 4]];
    let all = places.into_iter().filter_map(|counts| Topology::packed(n, counts).ok());
    all.fold(Vec::new(), |mut found, topology| {
        if !found.contains(&topology) {
            found.push(topology);
        }
        found
    })
}

fn make(operation: Operation, algorithm: Algorithm, topology: &Topology, ring: u32) -> Schedules {
    let (topology, buffer_bytes) = (topology.clone(), BUFFER_BYTES * u64::from(ring));
    let request = Request { operation, algorithm, topology, buffer_bytes, ring };
    schedules(&request).unwrap_or_else(|e| panic!("{request:?}: {e}"))
}

#[test]
fn every_size_up_to_64_is_proved_by_happens_before() {
    let mut proved = 0;
    for n in 1..=64 {
        for (t, topology) in topologies(n).iter().enumerate() {
            for kind in Kind::ALL {
                for (a, algorithm) in Algorithm::all(kind, &[1, 2, 3]).into_iter().enumerate() {
                    // The root wanders over the group: first, last and inner ranks of domains all have their turn.
                    let root = (n / 2 + (t * 5 + a * 7) as u32) % n;
                    for operation in operations(kind, 64, root) {
                        // Three in a row: the third uses the same half as the first. Eager ones often enough that the
                        // places of the ring are used again after what was told, and again.
                        let ring = if n > 16 { 1 } else { 1 + (n + a as u32) % 4 };
                        let one = make(operation, algorithm, topology, ring);
                        let sequence = vec![one; if algorithm.eager { 2 * ring as usize + 1 } else { 3 }];
                        for transfers in [Transfers::Asynchronous, Transfers::InPlace] {
                            happens_before(&sequence, transfers).unwrap_or_else(|fault| {
                                let name = algorithm.name(kind);
                                panic!("{name} of {topology}, {operation:?}, {transfers:?}: {fault}")
                            });
                            proved += 1;
                        }
                    }
                }
            }
        }
    }
    println!("{proved} sequences proved");
}

#[test]
fn small_groups_are_proved_in_every_interleaving() {
    let (mut sequences, mut states) = (0, 0);
    for n in 1..=5 {
        let mut topologies = vec![Topology::flat(n).unwrap()];
        topologies.extend(Topology::packed(n, &[3, 2]).ok().filter(|_| n > 2));
        for topology in topologies {
            for kind in Kind::ALL {
                for operation in operations(kind, 64, n / 2) {
                    for algorithm in Algorithm::all(kind, &[2]) {
                        let ring = 1 + n % 2;
                        let one = make(operation, algorithm, &topology, ring);
                        for transfers in [Transfers::Asynchronous, Transfers::InPlace] {
                            let sequence: Vec<Schedules> = vec![
                                one.clone();
                                if n < 4 {
                                    2 + ring as usize
                                } else if n == 4 || kind == Kind::Barrier {
                                    2
                                } else {
                                    1
                                }
                            ];
                            let explored = every_interleaving(&sequence, transfers, 2_000_000);
                            let explored = explored.unwrap_or_else(|fault| {
                                panic!("{} of {topology}, {operation:?}, {transfers:?}: {fault}", algorithm.name(kind))
                            });
                            sequences += 1;
                            states += explored.states;
                        }
                    }
                }
            }
        }
    }
    println!("{sequences} sequences, {states} states");
}

/// A sequence of operations of any kinds, sizes and roots on one group.
fn any_sequence(sizes: std::ops::RangeInclusive<u32>) -> impl Strategy<Value = Vec<Schedules>> {
    let operation = (0..4usize, any::<u32>(), 0..4u64, any::<proptest::sample::Index>(), any::<bool>());
    let counts = prop::sample::select(vec![vec![64u32], vec![2, 32], vec![8, 8], vec![2, 4, 8], vec![16, 2, 2]]);
    (sizes, counts, 1..4u32, prop::collection::vec(operation, 2..=4)).prop_map(|(n, counts, ring, operations)| {
        let topology = Topology::packed(n, &counts).unwrap();
        let make = |(kind, root, rounds, algorithm, free): (usize, u32, u64, proptest::sample::Index, bool)| {
            let (kind, order) = (Kind::ALL[kind], orders()[usize::from(free)]);
            let (root, algorithms) = (root % n, Algorithm::all(kind, &[2, 3]));
            let algorithm = algorithms[algorithm.index(algorithms.len())];
            let at = |bytes| match kind {
                Kind::Barrier => Operation::Barrier,
                Kind::Broadcast => Operation::Broadcast { root, bytes },
                Kind::Reduce => Operation::Reduce { root, bytes, element_bytes: 4, order },
                Kind::Allreduce => Operation::Allreduce { bytes, element_bytes: 4, order },
            };
            // Zero bytes, or so many that one to three rounds are needed, the last not full.
            let segment = make(at(64), algorithm, &topology, ring).participants[0].segments.segment_bytes();
            make(at((rounds * segment).saturating_sub(12)), algorithm, &topology, ring)
        };
        operations.into_iter().map(make).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn operations_of_all_kinds_follow_each_other(sequence in any_sequence(1..=64)) {
        for transfers in [Transfers::Asynchronous, Transfers::InPlace] {
            prop_assert_eq!(happens_before(&sequence, transfers), Ok(()));
        }
    }

    #[test]
    fn operations_of_all_kinds_follow_each_other_in_every_interleaving(sequence in any_sequence(2..=3)) {
        for transfers in [Transfers::Asynchronous, Transfers::InPlace] {
            prop_assert!(every_interleaving(&sequence, transfers, 2_000_000).is_ok());
        }
    }
}
