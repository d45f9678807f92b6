//! The network between the nodes of a cluster, as links, and which of these bytes cross from node to node.
//!
//! ```text
//! crossbar    out of a node, into a node
//! fat tree    out, up from its leaf, down to the other leaf, in; within a leaf out and in
//! torus       out, along each dimension in turn the shorter way, in
//! dragonfly   out, to the router with the link to the other group, that link, to the node's router, in
//! ```
//!
//! Where several ways are as short, each carries an equal part, as adaptive or hashed routing does on the average. What comes
//! evenly from all others is one flow, of which each link carries the share that its routes put on it. The ports of those
//! others are loaded alike, so they are counted together, as one link; all other links are counted each.

use crate::network::{LinkId, WHOLE};
use crate::simulation::Simulation;
use crate::time::Time;
use multigrain_machine::{Network, Shape};
use smallvec::SmallVec;

/// A path of a [`crate::Transfer`]: links, and what each carries of the bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// The links, each once, of which the first is the port of the node that was asked about.
    pub links: Vec<LinkId>,
    /// For each link its share, in parts of [`WHOLE`].
    pub shares: Vec<u32>,
}

/// Which way bytes go through a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Into the node.
    Into,
    /// Out of it.
    OutOf,
}

/// The links of one network.
pub struct Routes {
    shape: Shape,
    nodes: usize,
    /// For each node the port into it and the port out of it.
    ports: Vec<[LinkId; 2]>,
    /// All ports into nodes together, and all out of them.
    all: [LinkId; 2],
    /// Between switches, in an order that follows from the shape.
    inner: Vec<LinkId>,
    /// For each node what comes evenly from all others, and what goes to them, once it was asked for.
    even: Vec<[Option<Path>; 2]>,
}

/// Links between switches, and the share of the bytes that each carries.
type Crossed = SmallVec<[(usize, f64); 8]>;

impl Routes {
    /// The links of a network of so many nodes, whose ports have so many bytes per second, into and out of each.
    ///
    /// # Panics
    /// If the shape does not fit the nodes, or a rate rounds to nothing: a checked machine has no such network.
    pub fn build<E>(sim: &mut Simulation<E>, network: &Network, nodes: usize, ports: [u64; 2]) -> Routes {
        let mut link = |rate: u64| sim.link(rate, Time::ZERO);
        let of_nodes = (0..nodes).map(|_| ports.map(&mut link)).collect();
        let all = ports.map(|rate| link(rate.saturating_mul(nodes as u64)));
        let rate = network.shape.link_bytes_per_second().map_or(0, |rate| (rate.round() as u64).max(1));
        let (count, width) = match &network.shape {
            Shape::Crossbar => (0, 1),
            Shape::FatTree { leaf, up, .. } => (2 * nodes.div_ceil(*leaf), *up as u64),
            Shape::Torus { sizes, .. } => (2 * nodes * sizes.len(), 1),
            Shape::Dragonfly { router, group, global, .. } => (nodes / router * (group + global), 1),
        };
        let inner = (0..count).map(|_| link(rate.saturating_mul(width))).collect();
        let even = vec![[None, None]; nodes];
        Routes { shape: network.shape.clone(), nodes, ports: of_nodes, all, inner, even }
    }

    /// What a message from one node to another crosses; nothing if they are the same.
    pub fn between(&self, from: usize, to: usize) -> Path {
        if from == to {
            return Path::default();
        }
        let mut path = self.path(from, Way::OutOf, self.crossed(from, to).into_iter());
        path.links.push(self.ports[to][0]);
        path.shares.push(WHOLE);
        path
    }

    /// What bytes cross that come to a node evenly from all others, or go to them.
    pub fn even(&mut self, node: usize, way: Way) -> &Path {
        let place = usize::from(way == Way::OutOf);
        if self.even[node][place].is_none() {
            let mut shares = vec![0.0; self.inner.len()];
            for other in (0..self.nodes).filter(|other| *other != node) {
                let (from, to) = if way == Way::Into { (other, node) } else { (node, other) };
                for (link, share) in self.crossed(from, to) {
                    shares[link] += share;
                }
            }
            let others = (self.nodes - 1).max(1) as f64;
            let crossed = shares.iter().enumerate().filter(|(_, share)| **share > 0.0);
            let path = self.path(node, way, crossed.map(|(link, share)| (link, share / others)));
            self.even[node][place] = Some(path);
        }
        self.even[node][place].get_or_insert_default()
    }

    /// The port of a node, the links between switches, and the ports at the other ends, all together.
    fn path(&self, node: usize, way: Way, crossed: impl Iterator<Item = (usize, f64)>) -> Path {
        let (near, far) = if way == Way::Into { (0, 1) } else { (1, 0) };
        let mut path = Path { links: vec![self.ports[node][near]], shares: vec![WHOLE] };
        for all in [near, far] {
            path.links.push(self.all[all]);
            path.shares.push(WHOLE);
        }
        for (link, share) in crossed {
            path.links.push(self.inner[link]);
            path.shares.push((share * f64::from(WHOLE)).round() as u32);
        }
        path
    }

    /// The links between switches from one node to another one.
    fn crossed(&self, from: usize, to: usize) -> Crossed {
        match &self.shape {
            Shape::Crossbar => Crossed::new(),
            Shape::FatTree { leaf, .. } if from / leaf == to / leaf => Crossed::new(),
            Shape::FatTree { leaf, .. } => [(2 * (from / leaf), 1.0), (2 * (to / leaf) + 1, 1.0)].into_iter().collect(),
            Shape::Torus { sizes, .. } => torus(sizes, from, to),
            Shape::Dragonfly { router, group, global, .. } => {
                dragonfly(*group, *global, self.nodes / (router * group), from / router, to / router)
            }
        }
    }
}

/// Links of a torus: of each node along each dimension the one to the next node, and the one to the node before.
fn torus(sizes: &[usize], from: usize, to: usize) -> Crossed {
    let mut crossed = Crossed::new();
    let mut at = from;
    let mut stride: usize = sizes.iter().product();
    for (dimension, &size) in sizes.iter().enumerate() {
        stride /= size;
        let (here, there) = (at / stride % size, to / stride % size);
        let line = at - here * stride;
        let ahead = (there + size - here) % size;
        let both = if 2 * ahead == size { 0.5 } else { 1.0 };
        let mut go = |back: usize, steps: usize| {
            for step in 0..steps {
                let place = if back == 0 { (here + step) % size } else { (here + size - step) % size };
                crossed.push((2 * ((line + place * stride) * sizes.len() + dimension) + back, both));
            }
        };
        if 2 * ahead <= size {
            go(0, ahead);
        }
        if 2 * ahead >= size && ahead > 0 {
            go(1, size - ahead);
        }
        at = line + there * stride;
    }
    crossed
}

/// Links of a dragonfly: of each router those to the routers of its group (the one to itself is never used), then those to
/// other groups.
///
/// The links of a group to others are dealt out in turns: the first goes to the group behind it, the next to the one behind
/// that, and so on around. So the t-th link to one group ends at the t-th link of that group back.
fn dragonfly(group: usize, global: usize, groups: usize, from: usize, to: usize) -> Crossed {
    let mut crossed = Crossed::new();
    let width = group + global;
    let mut add = |link: usize, share: f64| match crossed.iter_mut().find(|(known, _)| *known == link) {
        Some((_, known)) => *known += share,
        None => crossed.push((link, share)),
    };
    let (source, target) = (from / group, to / group);
    if source == target {
        if from != to {
            add(from * width + to % group, 1.0);
        }
        return crossed;
    }
    let others = groups - 1;
    let links = group * global / others;
    let share = 1.0 / links as f64;
    for turn in 0..links {
        let leaves = turn * others + (target + groups - source - 1) % groups;
        let arrives = turn * others + (source + groups - target - 1) % groups;
        let (exit, entry) = (source * group + leaves / global, target * group + arrives / global);
        if from != exit {
            add(from * width + exit % group, share);
        }
        add(exit * width + group + leaves % global, share);
        if entry != to {
            add(entry * width + to % group, share);
        }
    }
    crossed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const RATE: f64 = 1e9;

    fn shape() -> impl Strategy<Value = (Shape, usize)> {
        let link_bytes_per_second = RATE;
        let torus = proptest::collection::vec(1usize..6, 1..4).prop_map(move |sizes| {
            let nodes = sizes.iter().product();
            (Shape::Torus { sizes, link_bytes_per_second }, nodes)
        });
        let dragonfly = (1usize..4, 1usize..5, 1usize..4, 1usize..4).prop_map(move |(router, group, others, turns)| {
            // As many links to each other group as make the routers alike.
            let (global, links) = (others * turns, group * others * turns);
            assert!(links.is_multiple_of(others));
            (Shape::Dragonfly { router, group, global, link_bytes_per_second }, router * group * (others + 1))
        });
        let tree = (1usize..6, 1usize..4, 1usize..20)
            .prop_map(move |(leaf, up, nodes)| (Shape::FatTree { leaf, up, link_bytes_per_second }, nodes));
        prop_oneof![torus, dragonfly, tree, (1usize..9).prop_map(|nodes| (Shape::Crossbar, nodes))]
    }

    fn routes(shape: &Shape, nodes: usize) -> Routes {
        let network = Network { shape: shape.clone(), message_ns: 0.0, source: None };
        Routes::build(&mut Simulation::<()>::new(), &network, nodes, [1000, 1000])
    }

    /// The switches at both ends of each link, by its number, worked out from the shape's picture: as names, so that a ring of
    /// two has two links between the same two.
    fn ends(shape: &Shape, nodes: usize) -> Vec<(String, String)> {
        match shape {
            Shape::Crossbar => Vec::new(),
            Shape::FatTree { leaf, .. } => {
                let leaves = 0..nodes.div_ceil(*leaf);
                leaves.flat_map(|l| [(format!("{l}"), "top".into()), ("top".into(), format!("{l}"))]).collect()
            }
            Shape::Torus { sizes, .. } => {
                let mut ends = Vec::new();
                for node in 0..nodes {
                    let mut at: Vec<usize> = Vec::new();
                    let mut rest = node;
                    for size in sizes.iter().rev() {
                        at.insert(0, rest % size);
                        rest /= size;
                    }
                    for (dimension, size) in sizes.iter().enumerate() {
                        for by in [1, size - 1] {
                            let mut next = at.clone();
                            next[dimension] = (at[dimension] + by) % size;
                            let number = next.iter().zip(sizes).fold(0, |number, (x, size)| number * size + x);
                            ends.push((format!("{node}"), format!("{number}")));
                        }
                    }
                }
                ends
            }
            Shape::Dragonfly { router, group, global, .. } => {
                let groups = nodes / router / group;
                // Where the links of each group go, in order, and how many went to each other group before.
                let mut back: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
                let goes = |of: usize, port: usize| (of + 1 + port % (groups - 1)) % groups;
                for of in 0..groups {
                    for port in (0..group * global).filter(|_| groups > 1) {
                        back.entry((of, goes(of, port))).or_default().push(port / global);
                    }
                }
                let mut ends = Vec::new();
                for number in 0..groups * group {
                    let of = number / group;
                    ends.extend((0..*group).map(|other| (format!("{number}"), format!("{}", of * group + other))));
                    for port in (number % group) * global..(number % group + 1) * global {
                        if groups == 1 {
                            ends.push((format!("{number}"), "nowhere".into()));
                            continue;
                        }
                        let to = goes(of, port);
                        let turn = (0..port).filter(|before| goes(of, *before) == to).count();
                        ends.push((format!("{number}"), format!("{}", to * group + back[&(to, of)][turn])));
                    }
                }
                ends
            }
        }
    }

    /// The switch that a node is connected to.
    fn home(shape: &Shape, node: usize) -> String {
        match shape {
            Shape::Crossbar => "top".into(),
            Shape::FatTree { leaf, .. } => format!("{}", node / leaf),
            Shape::Torus { .. } => format!("{node}"),
            Shape::Dragonfly { router, .. } => format!("{}", node / router),
        }
    }

    /// Links on the shortest way, by looking at one ring of switches after the other.
    fn distance(ends: &[(String, String)], from: &str, to: &str) -> usize {
        let (mut seen, mut steps) = (vec![from.to_owned()], 0);
        while !seen.iter().any(|at| at == to) {
            let next = ends.iter().filter(|(a, _)| seen.contains(a)).map(|(_, b)| b.clone());
            let next: Vec<String> = next.filter(|b| !seen.contains(b)).collect();
            assert!(!next.is_empty(), "no way from {from} to {to}");
            seen.extend(next);
            steps += 1;
        }
        steps
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// What comes into a switch leaves it, but at both ends; nothing goes around: in trees and tori each byte crosses as many
        /// links as lie between its ends, in dragonflies three at most, one of them between groups.
        #[test]
        fn every_byte_arrives_by_a_short_way((shape, nodes) in shape()) {
            let (routes, ends) = (routes(&shape, nodes), ends(&shape, nodes));
            prop_assert_eq!(routes.inner.len(), ends.len());
            for (from, to) in (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))) {
                let crossed = routes.crossed(from, to);
                let mut kept: HashMap<&str, f64> = HashMap::new();
                for (link, share) in &crossed {
                    prop_assert!(*share > 0.0 && *share <= 1.0 + 1e-9);
                    *kept.entry(&ends[*link].0).or_default() -= share;
                    *kept.entry(&ends[*link].1).or_default() += share;
                }
                let (source, target) = (home(&shape, from), home(&shape, to));
                *kept.entry(&source).or_default() += 1.0;
                *kept.entry(&target).or_default() -= 1.0;
                prop_assert!(kept.values().all(|left| left.abs() < 1e-9), "{from} to {to}: {crossed:?}");
                let long: f64 = crossed.iter().map(|(_, share)| share).sum();
                match shape {
                    Shape::Crossbar => prop_assert!(crossed.is_empty()),
                    Shape::Dragonfly { router, group, .. } => {
                        let one_group = from / (router * group) == to / (router * group);
                        let most = if source == target { 0.0 } else if one_group { 1.0 } else { 3.0 };
                        prop_assert!(long <= most + 1e-9, "{from} to {to}: {crossed:?}");
                    }
                    _ => prop_assert!((long - distance(&ends, &source, &target) as f64).abs() < 1e-9),
                }
            }
        }

        /// What comes evenly from all others is the mean of the routes from each.
        #[test]
        fn evenly_is_the_mean_of_all((shape, nodes) in shape(), out in any::<bool>()) {
            prop_assume!(nodes > 1);
            let mut routes = routes(&shape, nodes);
            for node in 0..nodes {
                let mut expected = vec![0.0; routes.inner.len()];
                for other in (0..nodes).filter(|other| *other != node) {
                    let (from, to) = if out { (node, other) } else { (other, node) };
                    let path = routes.between(from, to);
                    for (link, share) in path.links.iter().zip(&path.shares) {
                        if let Some(place) = routes.inner.iter().position(|inner| inner == link) {
                            expected[place] += f64::from(*share) / (nodes - 1) as f64;
                        }
                    }
                }
                let path = routes.even(node, if out { Way::OutOf } else { Way::Into }).clone();
                for (inner, expected) in routes.inner.iter().zip(expected) {
                    let place = path.links.iter().position(|link| link == inner);
                    let found = place.map_or(0.0, |place| f64::from(path.shares[place]));
                    prop_assert!((found - expected).abs() < 2.0, "{found} {expected}");
                }
            }
        }
    }
}
