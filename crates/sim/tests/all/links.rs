//! Links, flows and DMA engines against what can be worked out by hand, and against a plain reference.

use multigrain_sim::{Dma, LinkId, Random, Simulation, Time, Transfer, WHOLE};
use proptest::prelude::*;

const GB: u64 = 1_000_000_000;

/// When each of the transfers, all begun at zero, has arrived, in nanoseconds.
fn arrivals(capacities: &[u64], flows: &[(&[usize], u64)]) -> Vec<f64> {
    let mut sim = Simulation::new();
    let links: Vec<LinkId> = capacities.iter().map(|c| sim.link(*c, Time::ZERO)).collect();
    for (flow, (path, bytes)) in flows.iter().enumerate() {
        let path: Vec<LinkId> = path.iter().map(|l| links[*l]).collect();
        sim.transfer(Transfer::new(&path, *bytes), flow);
    }
    let mut ends = vec![f64::NAN; flows.len()];
    while let Some(flow) = sim.next() {
        ends[flow] = sim.now().ns();
    }
    ends
}

fn about(found: f64, expected: f64) {
    assert!((found - expected).abs() < 0.01, "{found} ns instead of {expected} ns");
}

#[test]
fn two_flows_share_a_link() {
    // 1000 bytes each at half a byte a nanosecond; the longer one has the link alone for its last 500.
    let ends = arrivals(&[GB], &[(&[0], 1000), (&[0], 1500)]);
    about(ends[0], 2000.0);
    about(ends[1], 2500.0);
}

#[test]
fn latency_passes_before_bytes_flow() {
    let mut sim = Simulation::new();
    let link = sim.link(GB, Time::from_ns(100.0));
    let back = sim.link(2 * GB, Time::from_ns(20.0));
    sim.transfer(Transfer::new(&[link, back], 300), 0);
    sim.transfer(Transfer { latency: Time::from_ns(5.0), ..Transfer::new(&[back], 0) }, 1);
    assert_eq!(sim.next(), Some(1));
    assert_eq!(sim.now(), Time::from_ns(25.0));
    assert_eq!(sim.next(), Some(0));
    assert_eq!(sim.now(), Time::from_ns(420.0));
    assert_eq!((sim.carried_bytes(link), sim.next()), (300, None));
}

#[test]
fn three_links_are_shared_max_min_fairly() {
    // The textbook's picture: a through A and B, b through B and C, c through C, d through A. A has 1, B 2, C 3 bytes a
    // nanosecond: A gives a and d 0.5 each, B leaves b 1.5, C leaves c 1.5.
    let flows: &[(&[usize], u64)] = &[(&[0, 1], 500), (&[1, 2], 1500), (&[2], 3000), (&[0], 1000)];
    let ends = arrivals(&[GB, 2 * GB, 3 * GB], flows);
    about(ends[0], 1000.0);
    about(ends[1], 1000.0);
    // From then on c and d are alone: c has moved 1500 and goes on with 3, d has moved 500 and goes on with 1.
    about(ends[2], 1500.0);
    about(ends[3], 1500.0);
}

#[test]
fn a_flow_that_takes_two_ways_loads_each_by_half() {
    // One flow of 2000 bytes takes two links of one byte a nanosecond, half each; another one the first of them alone. Both
    // move at the same rate r, with r / 2 + r = 1; when 500 bytes of the second are over, the first has 1500 left, at 2 a
    // nanosecond.
    let mut sim = Simulation::new();
    let links = [sim.link(GB, Time::ZERO), sim.link(GB, Time::ZERO)];
    sim.transfer(Transfer { shares: &[WHOLE / 2; 2], ..Transfer::new(&links, 2000) }, 0);
    sim.transfer(Transfer::new(&links[..1], 500), 1);
    assert_eq!(sim.next(), Some(1));
    about(sim.now().ns(), 750.0);
    assert_eq!(sim.next(), Some(0));
    about(sim.now().ns(), 1500.0);
    assert_eq!(links.map(|link| sim.carried_bytes(link)), [1500, 1000]);
}

#[test]
fn a_limit_leaves_room_for_others() {
    let mut sim = Simulation::new();
    let link = sim.link(10 * GB, Time::ZERO);
    sim.transfer(Transfer { bytes_per_second_max: Some(2 * GB), ..Transfer::new(&[link], 2000) }, 0);
    sim.transfer(Transfer::new(&[link], 8000), 1);
    assert_eq!((sim.next(), sim.now()), (Some(0), Time::from_ns(1000.0)));
    assert_eq!((sim.next(), sim.now()), (Some(1), Time::from_ns(1000.0)));
}

#[test]
fn a_queue_of_sixteen_hides_the_latency() {
    // One transfer of 128 bytes has 100 ns of latency and 5 ns of bytes at 25.6 GB/s. Sixteen at once move 2 KiB every
    // 180 ns or so: their latencies pass together, their bytes share the link.
    for (depth, per_round) in [(1, 105.0), (16, 180.0)] {
        let mut sim = Simulation::new();
        let link = sim.link(25_600_000_000, Time::from_ns(100.0));
        let engine = sim.dma(Dma { depth, issue: Time::ZERO });
        let rounds = 10;
        for transfer in 0..depth * rounds {
            sim.issue(engine, Transfer::new(&[link], 128), transfer);
        }
        assert_eq!(sim.queued(engine), depth * rounds);
        let mut last = 0;
        while let Some(transfer) = sim.next() {
            last = transfer;
        }
        assert_eq!(last, depth * rounds - 1);
        about(sim.now().ns(), per_round * rounds as f64);
    }
}

#[test]
fn issuing_takes_turns() {
    let mut sim = Simulation::new();
    let link = sim.link(1000 * GB, Time::from_ns(100.0));
    let engine = sim.dma(Dma { depth: 16, issue: Time::from_ns(30.0) });
    for transfer in 0..4 {
        sim.issue(engine, Transfer::new(&[link], 1000), transfer);
    }
    let mut ends = Vec::new();
    while sim.next().is_some() {
        ends.push(sim.now().ns());
    }
    assert_eq!(ends, [131.0, 161.0, 191.0, 221.0]);
}

/// A transfer as the reference sees it: when it begins, its links with their shares, its bytes, what it could use at most (bytes a
/// nanosecond).
struct Asked {
    begin: f64,
    /// Links, and what each carries of the bytes.
    path: Vec<(usize, f64)>,
    bytes: f64,
    limit: f64,
}

/// When each has ended, by filling everything anew whenever anything changes: no classes, no clocks, no search for what
/// is connected.
fn reference(capacities: &[f64], asked: &[Asked]) -> Vec<f64> {
    let mut left: Vec<f64> = asked.iter().map(|a| a.bytes).collect();
    let mut ends = vec![f64::NAN; asked.len()];
    let mut now = 0.0;
    while left.iter().any(|l| *l > 0.0) {
        let flows: Vec<usize> = (0..asked.len()).filter(|f| left[*f] > 0.0 && asked[*f].begin <= now).collect();
        let mut rate = vec![0.0; asked.len()];
        let mut open = flows.clone();
        while !open.is_empty() {
            let share = |f: usize, link: usize| {
                asked[f].path.iter().find(|(at, _)| *at == link).map_or(0.0, |(_, share)| *share)
            };
            let used = |link: usize, rate: &[f64]| -> f64 { flows.iter().map(|f| rate[*f] * share(*f, link)).sum() };
            // The largest step by which all open flows can grow.
            let mut step = open.iter().map(|f| asked[*f].limit - rate[*f]).fold(f64::INFINITY, f64::min);
            for (link, capacity) in capacities.iter().enumerate() {
                let through: f64 = open.iter().map(|f| share(*f, link)).sum();
                if through > 0.0 {
                    step = step.min((capacity - used(link, &rate)) / through);
                }
            }
            open.iter().for_each(|f| rate[*f] += step.max(0.0));
            open.retain(|f| {
                rate[*f] < asked[*f].limit * (1.0 - 1e-12)
                    && asked[*f].path.iter().all(|(link, _)| used(*link, &rate) < capacities[*link] * (1.0 - 1e-12))
            });
        }
        let next_end = flows.iter().map(|f| left[*f] / rate[*f]).fold(f64::INFINITY, f64::min);
        let next_begin = asked.iter().map(|a| a.begin - now).filter(|wait| *wait > 0.0).fold(f64::INFINITY, f64::min);
        let step = next_end.min(next_begin);
        now = if next_begin <= next_end {
            asked.iter().map(|a| a.begin).filter(|begin| *begin > now).fold(f64::INFINITY, f64::min)
        } else {
            now + step
        };
        for flow in flows {
            left[flow] -= step * rate[flow];
            if left[flow] < 1e-6 {
                left[flow] = 0.0;
                ends[flow] = now;
            }
        }
    }
    ends
}

/// Transfers along few paths, so that many share one, with few limits, that begin at zero, or at times of which some are
/// the same.
fn asked(random: &mut Random, links: usize, together: bool) -> Vec<Asked> {
    let paths: Vec<Vec<(usize, f64)>> = (0..1 + random.below(6))
        .map(|_| {
            let mut path: Vec<usize> = (0..links).filter(|_| random.below(3) == 0).collect();
            if path.is_empty() {
                path.push(random.below(links as u64) as usize);
            }
            let parts = random.below(2) == 0;
            let mut share = || if parts { (1 + random.below(4)) as f64 / 4.0 } else { 1.0 };
            path.into_iter().map(|link| (link, share())).collect()
        })
        .collect();
    (0..1 + random.below(24))
        .map(|_| Asked {
            begin: if together { 0.0 } else { 500.0 * random.below(20) as f64 },
            path: paths[random.below(paths.len() as u64) as usize].clone(),
            bytes: 1000.0 * (1 + random.below(20)) as f64,
            limit: if random.below(3) == 0 { (1 + random.below(3)) as f64 } else { f64::INFINITY },
        })
        .collect()
}

#[test]
fn paths_that_are_not_used_again_are_forgotten_without_harm() {
    // Many thousand limits, one after the other, and a transfer that lasts all the while; then the first limit again.
    let mut sim = Simulation::new();
    let link = sim.link(100 * GB, Time::ZERO);
    sim.transfer(Transfer { bytes_per_second_max: Some(GB), ..Transfer::new(&[link], 1_000_000) }, 0);
    let limited = |limit: u64| Transfer { bytes_per_second_max: Some(GB + limit), bytes: 10, ..Transfer::new(&[], 0) };
    sim.transfer(Transfer { path: &[link], ..limited(1) }, 1);
    let mut last = Time::ZERO;
    while let Some(number) = sim.next() {
        if number == 0 {
            assert_eq!(sim.now(), Time::from_ns(1e6));
            continue;
        }
        assert!((sim.now() - last).ns() <= 10.0, "{number}");
        last = sim.now();
        if number < 20_000 {
            let limit = if number % 100 == 0 { 1 } else { number + 1 };
            sim.transfer(Transfer { path: &[link], ..limited(limit) }, number + 1);
        }
    }
    assert!(last > Time::from_ns(199_000.0) && last < Time::from_ns(200_001.0), "{last}");
}

proptest! {
    /// Ends may differ by what rounding does to a clock: a hundredth of a nanosecond, and a billionth.
    #[test]
    fn random_networks_agree_with_the_reference(seed in any::<u64>(), together in any::<bool>()) {
        let mut random = Random::new(seed);
        let capacities: Vec<u64> = (0..1 + random.below(6)).map(|_| GB * (1 + random.below(8))).collect();
        let asked = asked(&mut random, capacities.len(), together);
        let plain: Vec<f64> = capacities.iter().map(|c| *c as f64 * 1e-9).collect();
        let expected = reference(&plain, &asked);
        let mut sim = Simulation::new();
        let links: Vec<LinkId> = capacities.iter().map(|c| sim.link(*c, Time::ZERO)).collect();
        for (flow, a) in asked.iter().enumerate() {
            sim.at(Time::from_ns(a.begin), (flow, false));
        }
        let mut found = vec![f64::NAN; asked.len()];
        while let Some((flow, ended)) = sim.next() {
            if ended {
                found[flow] = sim.now().ns();
                continue;
            }
            let path: Vec<LinkId> = asked[flow].path.iter().map(|(link, _)| links[*link]).collect();
            let part = |share: f64| (share * f64::from(WHOLE)) as u32;
            let shares: Vec<u32> = asked[flow].path.iter().map(|(_, share)| part(*share)).collect();
            let limit = asked[flow].limit;
            let bytes_per_second_max = limit.is_finite().then_some((limit * 1e9) as u64);
            let bytes = asked[flow].bytes as u64;
            let transfer = Transfer { bytes_per_second_max, shares: &shares, ..Transfer::new(&path, bytes) };
            sim.transfer(transfer, (flow, true));
        }
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert!((found - expected).abs() < 0.01 + expected * 1e-9, "{found} {expected}");
        }
    }

    /// Transfers that come at random times and follow each other: the same twice, and every byte is carried once.
    #[test]
    fn the_same_twice(seed in any::<u64>()) {
        let run = || {
            let mut random = Random::new(seed);
            let mut sim = Simulation::new();
            let links: Vec<LinkId> =
                (0..4).map(|_| sim.link(GB + random.below(GB), Time::from_ps(random.below(1000)))).collect();
            let mut log = Vec::new();
            let mut asked = 0;
            for flow in 0..20u32 {
                sim.at(Time::from_ns(random.uniform() * 100.0), flow);
            }
            while let Some(flow) = sim.next() {
                log.push((sim.now(), flow));
                if log.len() < 200 {
                    let link = random.below(4) as usize;
                    let bytes = random.below(1000);
                    asked += bytes;
                    sim.transfer(Transfer::new(&[links[link]], bytes), flow);
                }
            }
            assert_eq!(links.iter().map(|l| sim.carried_bytes(*l)).sum::<u64>(), asked);
            log
        };
        let log = run();
        prop_assert!(log.is_sorted_by_key(|(time, _)| *time));
        prop_assert_eq!(run(), log);
    }
}
