//! Networks of clusters against what can be worked out by hand.

use multigrain_machine::{Network, Shape};
use multigrain_sim::{Routes, Simulation, Time, Transfer, Way};

const GB: u64 = 1_000_000_000;
const LINK: f64 = 1e9;

fn network(shape: Shape) -> Network {
    Network { shape, message_ns: 0.0, source: None }
}

/// When all of these messages, begun at once, have arrived, in nanoseconds.
fn messages(shape: &Shape, nodes: usize, port: u64, pairs: &[(usize, usize)], bytes: u64) -> f64 {
    let mut sim = Simulation::new();
    let routes = Routes::build(&mut sim, &network(shape.clone()), nodes, [port; 2]);
    for (from, to) in pairs {
        let path = routes.between(*from, *to);
        sim.transfer(Transfer { shares: &path.shares, ..Transfer::new(&path.links, bytes) }, ());
    }
    while sim.next().is_some() {}
    sim.now().ns()
}

/// When every node has had so many bytes evenly from all others, in nanoseconds.
fn evenly(shape: &Shape, nodes: usize, port: u64, bytes: u64, ways: &[Way]) -> f64 {
    let mut sim = Simulation::new();
    let mut routes = Routes::build(&mut sim, &network(shape.clone()), nodes, [port; 2]);
    for node in 0..nodes {
        for way in ways {
            let path = routes.even(node, *way).clone();
            sim.transfer(Transfer { shares: &path.shares, ..Transfer::new(&path.links, bytes) }, ());
        }
    }
    while sim.next().is_some() {}
    sim.now().ns()
}

fn all_to_all(nodes: usize) -> Vec<(usize, usize)> {
    (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))).filter(|(from, to)| from != to).collect()
}

fn about(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-4, "{found} ns instead of {expected} ns");
}

#[test]
fn two_messages_over_one_link_take_twice_as_long() {
    let tree = Shape::FatTree { leaf: 2, up: 1, link_bytes_per_second: LINK };
    about(messages(&tree, 4, GB, &[(0, 2)], 1000), 1000.0);
    about(messages(&tree, 4, GB, &[(0, 2), (1, 3)], 1000), 2000.0);
    // Against each other they do not meet, nor within a leaf, nor by a crossbar.
    about(messages(&tree, 4, GB, &[(0, 2), (3, 1)], 1000), 1000.0);
    about(messages(&tree, 4, GB, &[(0, 1), (2, 3)], 1000), 1000.0);
    about(messages(&Shape::Crossbar, 4, GB, &[(0, 2), (1, 3)], 1000), 1000.0);
    // Two into one node share its port.
    about(messages(&Shape::Crossbar, 4, GB, &[(0, 2), (1, 2)], 1000), 2000.0);
}

#[test]
fn half_the_links_upwards_halve_the_bisection() {
    let across: Vec<(usize, usize)> = (0..8).map(|node| (node, node + 8)).collect();
    let tree = |up| Shape::FatTree { leaf: 8, up, link_bytes_per_second: LINK };
    about(messages(&tree(8), 16, GB, &across, 8000), 8000.0);
    about(messages(&tree(4), 16, GB, &across, 8000), 16_000.0);
    // All to all: 8 of 15 others are in the other leaf, 8 x 8 messages over 4 links.
    about(messages(&tree(4), 16, GB, &all_to_all(16), 1000), 16_000.0);
    about(evenly(&tree(4), 16, GB, 15_000, &[Way::Into]), 16_000.0);
    // With as many links as nodes ports are the limit.
    about(evenly(&tree(8), 16, GB, 15_000, &[Way::Into]), 15_000.0);
}

#[test]
fn an_all_to_all_on_a_torus_takes_what_its_links_allow() {
    // In a ring of k a byte of a pair crosses k / 4 links on the mean if k is even, (k - 1/k) / 4 if it is odd, and each node
    // has two links along it: n messages of b bytes from each of n nodes put n b k / 8, or n b (k - 1/k) / 8, on each link.
    for (sizes, longest) in
        [(vec![8], 8.0 / 8.0), (vec![5], (5.0 - 0.2) / 8.0), (vec![4, 4], 0.5), (vec![2, 3, 4], 0.5)]
    {
        let nodes: usize = sizes.iter().product();
        let torus = Shape::Torus { sizes, link_bytes_per_second: LINK };
        let expected = nodes as f64 * 1000.0 * longest;
        about(messages(&torus, nodes, 100 * GB, &all_to_all(nodes), 1000), expected);
        about(evenly(&torus, nodes, 100 * GB, 1000 * (nodes as u64 - 1), &[Way::OutOf]), expected);
    }
}

#[test]
fn two_groups_of_a_dragonfly_share_the_link_between_them() {
    // Three groups of two routers with two nodes; a link from each group to each other one.
    let dragonfly = |global| Shape::Dragonfly { router: 2, group: 2, global, link_bytes_per_second: LINK };
    let across: Vec<(usize, usize)> = (0..4).map(|node| (node, node + 4)).collect();
    about(messages(&dragonfly(1), 12, GB, &across[..1], 1000), 1000.0);
    about(messages(&dragonfly(1), 12, GB, &across, 1000), 4000.0);
    about(messages(&dragonfly(2), 12, GB, &across, 1000), 2000.0);
    // All in a group to all of it: router to router four pairs of nodes share a link, and the ports have three messages each.
    let group: Vec<(usize, usize)> = all_to_all(12).into_iter().filter(|(from, to)| from / 4 == to / 4).collect();
    about(messages(&dragonfly(1), 12, 100 * GB, &group, 1000), 4000.0);
}

#[test]
fn what_all_fetch_and_store_at_once_shares_every_port() {
    // What one fetches the others send, so ports carry twice as much each way as one way alone would put on them.
    about(evenly(&Shape::Crossbar, 10, GB, 9000, &[Way::Into]), 9000.0);
    about(evenly(&Shape::Crossbar, 10, GB, 9000, &[Way::Into, Way::OutOf]), 18_000.0);
}

#[test]
fn one_node_has_nothing_to_cross() {
    let mut sim = Simulation::<()>::new();
    let routes = Routes::build(&mut sim, &network(Shape::Crossbar), 1, [GB; 2]);
    assert!(routes.between(0, 0).links.is_empty());
    assert_eq!(sim.next(), None);
    assert_eq!(sim.now(), Time::ZERO);
}
