//! Collective operations in virtual time against what can be worked out by hand.

use multigrain_schedule::{Algorithm, Kind, Operation, Order, Request, Schedules, Step, Topology, schedules};
use multigrain_sim::collective::{CollectiveError, Costs, Fabric, Tier, collectives};
use multigrain_sim::{Dma, Time};

fn ns(ns: f64) -> Time {
    Time::from_ns(ns)
}

fn tier(signal: f64, transfer: f64, bytes_per_second: u64) -> Tier {
    Tier {
        signal: ns(signal),
        transfer: ns(transfer),
        signal_command: Time::ZERO,
        transfer_command: Time::ZERO,
        bytes_per_second: Some(bytes_per_second),
    }
}

/// Two chips: signals take 80 and 310 ns, processors 1 ns for a signal, 2 to read, nothing for the rest.
fn blade() -> Fabric {
    Fabric {
        tiers: vec![tier(80.0, 90.0, 204_800_000_000), tier(310.0, 300.0, 20_000_000_000)],
        packet_bytes: None,
        port_bytes_per_second: 25_600_000_000,
        dma: Dma { depth: 16, issue: Time::ZERO },
        costs: Costs { send: ns(1.0), read: ns(2.0), combine_bytes_per_second: f64::INFINITY, ..Costs::default() },
    }
}

fn make(name: &str, topology: &Topology, bytes: u64) -> Schedules {
    let (kind, algorithm) = Algorithm::parse(name).unwrap();
    let order = Order::Fixed;
    let operation = match kind {
        Kind::Barrier => Operation::Barrier,
        Kind::Broadcast => Operation::Broadcast { root: 0, bytes },
        Kind::Reduce => Operation::Reduce { root: 0, bytes, element_bytes: 4, order },
        Kind::Allreduce => Operation::Allreduce { bytes, element_bytes: 4, order },
    };
    schedules(&Request { operation, algorithm, topology: topology.clone(), buffer_bytes: 16 << 10, ring: 4 }).unwrap()
}

#[test]
fn two_meet_after_one_signal_each_way() {
    let two = Topology::flat(2).unwrap();
    // Everybody to one and back: 1 to send, 80 on the way, 2 to read, twice.
    let outcome = collectives(&[&make("ATOBar", &two, 0)], &blade()).unwrap();
    assert_eq!(outcome.left[0], [ns(84.0), ns(166.0)]);
    assert_eq!(outcome.signals, 2);
    // As equals: both send, both read.
    let outcome = collectives(&[&make("PEBar", &two, 0)], &blade()).unwrap();
    assert_eq!(outcome.left[0], [ns(83.0), ns(83.0)]);
    // In a loop one meeting overlaps with nothing of the next.
    let barrier = make("PEBar", &two, 0);
    let outcome = collectives(&[&barrier; 100], &blade()).unwrap();
    assert_eq!((outcome.end(99), outcome.mean(10)), (ns(8300.0), ns(83.0)));
}

#[test]
fn what_crosses_chips_takes_longer_and_the_blade_variant_crosses_less() {
    let sixteen = Topology::packed(16, &[2, 8]).unwrap();
    let time = |name: &str| collectives(&[&make(name, &sixteen, 0); 20], &blade()).unwrap().mean(5);
    assert!(time("ATOBar") > ns(2.0 * 310.0) && time("ATOBarB") < time("ATOBar"));
    // Ready and go within a chip, one crossing between: little more than 80 + 310 + 80.
    assert!(time("ATOBarB") >= ns(470.0 + 9.0), "{}", time("ATOBarB"));
    assert!(time("ATOBarB") <= ns(470.0 + 40.0), "{}", time("ATOBarB"));
    // A signal a round: three within the chip, one across.
    assert_eq!(time("PEBar"), ns(3.0 * 83.0 + 313.0));
}

#[test]
fn bytes_share_ports_and_the_link_between_chips() {
    // One to three others: its port is shared, 3 x 16 KiB at 25.6 GB/s, after the signals of ready and 90 ns of latency;
    // then go.
    let four = Topology::flat(4).unwrap();
    let outcome = collectives(&[&make("ATOBcast", &four, 16 << 10)], &blade()).unwrap();
    let moving = 3.0 * 16384.0 / 25.6;
    let last = outcome.end(0).ns();
    assert!(last > 83.0 + 90.0 + moving + 83.0 && last < 83.0 + 90.0 + moving + 83.0 + 20.0, "{last}");
    assert_eq!(outcome.moved_bytes, [3 << 14]);
    // Across chips: one message of the blade variant, at 20 GB/s.
    let two = Topology::packed(2, &[2, 1]).unwrap();
    let outcome = collectives(&[&make("ATOBcastB", &two, 16 << 10)], &blade()).unwrap();
    let expected = 313.0 + 300.0 + 16384.0 / 20.0 + 313.0;
    assert!((outcome.end(0).ns() - expected).abs() < 5.0, "{} instead of {expected}", outcome.end(0));
    assert_eq!(outcome.moved_bytes, [0, 1 << 14]);
}

#[test]
fn an_engine_begins_one_command_after_the_other() {
    let four = Topology::flat(4).unwrap();
    let mut fabric = blade();
    let alone = collectives(&[&make("ATOBar", &four, 0)], &fabric).unwrap().end(0);
    fabric.tiers[0].signal_command = ns(25.0);
    let one_by_one = collectives(&[&make("ATOBar", &four, 0)], &fabric).unwrap().end(0);
    // The root's three signals: 25 ns apart instead of the 1 that each costs its processor.
    assert_eq!(one_by_one - alone, ns(2.0 * 24.0));
    // Three packets come at one port of 25.6 GB/s at once.
    fabric.packet_bytes = Some(256);
    let in_packets = collectives(&[&make("ATOBar", &four, 0)], &fabric).unwrap().end(0);
    // A third of the port is rounded to whole picoseconds.
    let longer_ns = (in_packets - one_by_one).ns();
    assert!((longer_ns - (3.0 * 10.0 + 10.0)).abs() < 0.002, "{longer_ns}");
}

/// Whoever offers goes on until its ring is full; then the reader's rhythm is the group's.
#[test]
fn eager_rounds_run_ahead_by_a_ring() {
    let two = Topology::flat(2).unwrap();
    let reduce = make("ATORed_Eager", &two, 128);
    let outcome = collectives(&[&reduce; 12], &blade()).unwrap();
    let left = |operation: usize| outcome.left[operation][1];
    // Four places, each filled with a signal of 1 ns.
    assert_eq!((left(0), left(3)), (ns(1.0), ns(4.0)));
    // The first is told to be free with the second: after 81 ns to the root, 2 to read, 90 and 5 for each message, 1 to
    // tell and 80 back.
    assert!(left(4) > outcome.left[1][0] + ns(80.0) && left(4) < outcome.left[1][0] + ns(90.0), "{}", left(4));
    assert!(outcome.mean(4) < collectives(&[&make("ATORed_Opt", &two, 128); 12], &blade()).unwrap().mean(4));
}

#[test]
fn large_payloads_take_rounds() {
    let two = Topology::flat(2).unwrap();
    let once = collectives(&[&make("ATORed", &two, 16 << 10)], &blade()).unwrap();
    let thrice = collectives(&[&make("ATORed", &two, 48 << 10)], &blade()).unwrap();
    assert_eq!(thrice.moved_bytes, [48 << 10]);
    assert!(thrice.end(0) > once.end(0) * 2 && thrice.end(0) <= once.end(0) * 3);
}

/// Every algorithm at every size ends, twice alike, and moves at least what the operation needs.
#[test]
fn every_algorithm_ends() {
    for n in 1..=17 {
        let topology = Topology::packed(n, &[3, 6]).unwrap();
        for kind in Kind::ALL {
            for algorithm in Algorithm::all(kind, &[2, 3]) {
                let schedules = make(&algorithm.name(kind), &topology, 4000);
                let run = || collectives(&[&schedules; 3], &blade()).unwrap();
                let outcome = run();
                assert_eq!(run(), outcome);
                let least = if kind == Kind::Barrier { 0 } else { 3 * 4000 * u64::from(n - 1) };
                assert!(outcome.moved_bytes.iter().sum::<u64>() >= least, "{} of {n}", algorithm.name(kind));
                assert!(outcome.left.is_sorted_by_key(|left| left.iter().copied().max()));
            }
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let sixteen = Topology::packed(16, &[2, 8]).unwrap();
    let flat = Fabric { tiers: blade().tiers[..1].to_vec(), ..blade() };
    let barrier = make("ATOBar", &sixteen, 0);
    assert_eq!(collectives(&[&barrier], &flat), Err(CollectiveError::Tiers { depth: 2, tiers: 1 }));
    let other = make("ATOBar", &Topology::flat(3).unwrap(), 0);
    let error = Err(CollectiveError::Group { operation: 1, found: 3, expected: 16 });
    assert_eq!(collectives(&[&barrier, &other], &blade()), error);
    // A signal that nobody sends.
    let mut broken = make("ATOBar", &Topology::flat(3).unwrap(), 0);
    broken.participants[2].steps.retain(|step| !matches!(step, Step::Signal { .. }));
    let error = collectives(&[&broken], &blade()).unwrap_err();
    assert!(matches!(error, CollectiveError::Stuck { rank: 0, operation: 0, .. }), "{error}");
    assert_eq!(collectives(&[], &blade()).unwrap().mean(0), Time::ZERO);
}
