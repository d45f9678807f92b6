//! From a machine to things that take time: what a transfer along each edge needs of them.

use crate::dma::{Dma, DmaId, Transfer};
use crate::network::LinkId;
use crate::routes::{Path, Routes, Way};
use crate::server::ServerId;
use crate::simulation::Simulation;
use crate::time::Time;
use multigrain_machine::{Edge, Layout, Machine, MemoryId, Wire};
use multigrain_plan::cost;
use multigrain_program::{ArrayDecl, Region};
use std::collections::HashMap;

/// How bytes get from a parent memory to its children and back.
enum Route {
    /// One bus a parent, which all children and both directions share fairly. Stores take as many bytes of it as they
    /// would take time.
    Bus(Vec<LinkId>),
    /// One device a parent, which serves one transfer after the other.
    Device(Vec<ServerId>),
    /// For each child a link down and a link up.
    Links(Vec<(LinkId, LinkId)>),
    /// One network a parent, between its children, whose memories together are the parent.
    Network(Vec<Routes>),
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Down,
    Up,
}

/// The edges of one number: those of all parents to their children of a kind.
pub(super) struct EdgeHardware {
    edge: Edge,
    /// What software takes for a message of a network.
    message_seconds: f64,
    /// Children of each parent.
    count: usize,
    route: Route,
    /// For each child a link out of it and one into it, to siblings, where children reach each other.
    ports: Vec<(LinkId, LinkId)>,
    /// The DMA engine of each child, where the edge has them.
    engines: Vec<DmaId>,
    pub(super) latency: Time,
    /// For each child, how far up its staging memory has been touched, in bytes.
    touched_bytes: Vec<u64>,
    /// Bytes that crossed the wires, down and up.
    crossed_bytes: [f64; 2],
}

/// What a transfer takes whose bytes lie in the node's own memory: one thread hands the request to another and is handed the
/// answer ("communication between the execution and communication threads", Houston et al. 2008, section 3.4), so two
/// switches between threads, of 1.5 us each (Blagojevic et al. 2007, section 5.2).
const HAND_OVER: Time = Time::from_ps(3_000_000);

/// What a transfer needs, in the units of its edge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Bytes that the wire carries, with what fragments cost besides in bytes of the same time.
    bytes: u64,
    /// Bytes of the block that cross the wire.
    crossing_bytes: f64,
    /// How much of what the child's port carries crosses the network behind it.
    behind: f64,
    /// For a device, its time.
    time: Time,
    /// Processor time that it takes from each worker below.
    pub(super) stolen: Time,
    /// Its bytes are there already.
    here: bool,
}

/// All edges of a machine.
pub(super) struct Hardware {
    /// In the order of the layout; divisions move nothing.
    edges: Vec<Option<EdgeHardware>>,
}

fn whole(bytes_per_second: f64) -> u64 {
    (bytes_per_second.round() as u64).max(1)
}

impl Hardware {
    pub(super) fn build<E>(sim: &mut Simulation<E>, machine: &Machine, layout: &Layout) -> Hardware {
        let mut edges = Vec::with_capacity(layout.branches().len());
        // Of each memory above, whatever kinds of children it has.
        let mut devices: HashMap<MemoryId, Vec<ServerId>> = HashMap::new();
        for branch in layout.branches() {
            if branch.is_division() {
                edges.push(None);
                continue;
            }
            let edge = *branch.edge(machine);
            let network = branch.child.and_then(|child| machine.memory(child).network.as_ref());
            let (parents, count) = (branch.parents, branch.children);
            let children = parents * count;
            let route = match edge.driver.wire {
                Wire::Device => {
                    let servers = devices.entry(branch.parent);
                    Route::Device(servers.or_insert_with(|| (0..parents).map(|_| sim.server()).collect()).clone())
                }
                Wire::Bus => {
                    let rate = whole(edge.read_bytes_per_second);
                    Route::Bus((0..parents).map(|_| sim.link(rate, Time::ZERO)).collect())
                }
                Wire::Links | Wire::Aggregate => {
                    let each = |rate: f64| whole(rate / count as f64);
                    let (down, up) = (each(edge.read_bytes_per_second), each(edge.write_bytes_per_second));
                    let links = |_| (sim.link(down, Time::ZERO), sim.link(up, Time::ZERO));
                    match network {
                        None => Route::Links((0..children).map(links).collect()),
                        Some(network) => {
                            let routes = |_| Routes::build(sim, network, count, [down, up]);
                            Route::Network((0..parents).map(routes).collect())
                        }
                    }
                }
            };
            let ports = edge.sibling_bytes_per_second.map(whole).map_or(Vec::new(), |rate| {
                (0..children).map(|_| (sim.link(rate, Time::ZERO), sim.link(rate, Time::ZERO))).collect()
            });
            let depth = edge.rules.in_flight_max.map(|depth| usize::try_from(depth).unwrap_or(usize::MAX));
            let engine = |depth| sim.dma(Dma { depth, issue: Time::ZERO });
            let engines = depth.map_or(Vec::new(), |depth| std::iter::repeat_n(depth, children).map(engine).collect());
            edges.push(Some(EdgeHardware {
                edge,
                message_seconds: network.map_or(0.0, |network| network.message_ns * 1e-9),
                count,
                route,
                ports,
                engines,
                latency: Time::from_ns(edge.latency_ns),
                touched_bytes: vec![0; children],
                crossed_bytes: [0.0; 2],
            }));
        }
        Hardware { edges }
    }

    /// The edge of this number, which is no division.
    pub(super) fn edge(&mut self, number: usize) -> &mut EdgeHardware {
        self.edges[number].as_mut().expect("nothing is moved at a division")
    }

    /// How long what one worker tells another takes across an edge.
    pub(super) fn latency(&self, number: usize) -> Time {
        self.edges[number].as_ref().map_or(Time::ZERO, |edge| edge.latency)
    }

    /// See [`Report::crossed_bytes`](super::Report::crossed_bytes).
    pub(super) fn crossed_bytes(&self) -> Vec<[u64; 2]> {
        let crossed = |edge: &EdgeHardware| edge.crossed_bytes.map(|bytes| bytes.round() as u64);
        self.edges.iter().map(|edge| edge.as_ref().map_or([0; 2], crossed)).collect()
    }

    /// The buses that the bytes of a leaf's arguments cross which is executed in a memory below the edge of this number: those
    /// of the edges from there up to the nearest memory that holds copies.
    pub(super) fn buses(&self, layout: &Layout, number: usize, mut instance: usize) -> Vec<LinkId> {
        let mut path = Vec::new();
        for &number in std::iter::once(&number).chain(layout.branch(number).above.iter().rev()) {
            // What is below a division lies above it.
            let Some(edge) = &self.edges[number] else { continue };
            let Route::Bus(buses) = &edge.route else { break };
            if !edge.edge.driver.views {
                break;
            }
            instance /= edge.count;
            path.push(buses[instance]);
        }
        path
    }
}

impl EdgeHardware {
    /// Whether whoever issues a transfer has to wait for it: copies by the processor itself.
    pub(super) fn is_synchronous(&self) -> bool {
        self.edge.driver.synchronous && self.engines.is_empty()
    }

    /// What moving a block needs, in a child whose staging memory is that large, to be shared by `workers`. `divided`:
    /// no element of the array is used by two children.
    pub(super) fn load(
        &self,
        region: &Region,
        array: &ArrayDecl,
        divided: bool,
        way: Direction,
        staging: u64,
        workers: usize,
    ) -> Load {
        let edge = &self.edge;
        let (fragments, elements) = region.fragments(array.shape);
        let run_bytes = elements * array.element.size_bytes();
        let bytes = fragments * run_bytes;
        let rate = match way {
            Direction::Down => edge.read_bytes_per_second,
            Direction::Up => edge.write_bytes_per_second,
        };
        let pieces = match edge.rules.transfer_bytes_max {
            Some(max) => fragments * run_bytes.div_ceil(max),
            None => fragments,
        };
        let fragments_seconds = pieces as f64 * edge.costs.fragment_ns * 1e-9;
        match &self.route {
            Route::Device(_) => {
                let seconds = bytes as f64 / rate
                    + fragments_seconds
                    // A queue of two, shared by both.
                    + cost::transfer_seconds(edge, 2.0)
                    + cost::uncached_seconds(edge, bytes, staging);
                let stolen = cost::stolen_seconds(edge, region, array, workers);
                let (time, stolen) = (Time::from_seconds(seconds), Time::from_seconds(stolen));
                Load { bytes, crossing_bytes: bytes as f64, behind: 1.0, time, stolen, here: false }
            }
            Route::Bus(_) => {
                // The bus counts in bytes of fetches.
                let scale = edge.read_bytes_per_second / rate;
                let seconds = match self.is_synchronous() {
                    true => cost::moving_seconds(edge, region, array, rate),
                    false => bytes as f64 / rate,
                };
                let carried = ((seconds + fragments_seconds) * rate * scale).ceil() as u64;
                let crossing_bytes = bytes as f64;
                let (time, stolen) = (Time::ZERO, Time::ZERO);
                Load { bytes: carried, crossing_bytes, behind: 1.0, time, stolen, here: false }
            }
            Route::Links(_) | Route::Network(_) => {
                // An array of a cluster's aggregate memory lies where it is used, if every element is used by one node
                // only, else in equal parts on all nodes, so that much is here already.
                let share = match edge.driver.wire {
                    Wire::Aggregate if divided => 0.0,
                    Wire::Aggregate => 1.0 - 1.0 / self.count as f64,
                    _ => 1.0,
                };
                let here = edge.driver.wire == Wire::Aggregate && divided;
                // Each of the others that has a piece is sent one message.
                let messages = if here { 0 } else { pieces.min(self.count as u64 - 1) };
                let software_seconds = fragments_seconds * share + messages as f64 * self.message_seconds;
                let crossing_bytes = bytes as f64 * share;
                let carried = (crossing_bytes + software_seconds * rate / self.count as f64).ceil();
                let behind = if carried > 0.0 { crossing_bytes / carried } else { 1.0 };
                Load { bytes: carried as u64, crossing_bytes, behind, time: Time::ZERO, stolen: Time::ZERO, here }
            }
        }
    }

    /// Begins a transfer between two children of one parent.
    pub(super) fn pass<E>(&mut self, sim: &mut Simulation<E>, (from, to): (usize, usize), bytes: u64, done: E) {
        let path = match (&self.route, self.ports.get(from).zip(self.ports.get(to))) {
            (Route::Network(routes), _) => routes[to / self.count].between(from % self.count, to % self.count),
            (_, Some((from, to))) => Path { links: vec![from.0, to.1], shares: Vec::new() },
            // A plan of a machine whose children reach each other, run on one that does not say how fast.
            _ => return self.begin(sim, to, Transfer { latency: self.latency, ..Transfer::new(&[], 0) }, done),
        };
        let transfer = Transfer { latency: self.latency, shares: &path.shares, ..Transfer::new(&path.links, bytes) };
        self.begin(sim, to, transfer, done);
    }

    /// Issues a transfer of a child; gives when it begins to move if that is known now.
    pub(super) fn issue<E>(
        &mut self,
        sim: &mut Simulation<E>,
        child: usize,
        load: Load,
        way: Direction,
        slot_end: u64,
        done: E,
    ) -> Option<Time> {
        self.crossed_bytes[usize::from(way == Direction::Up)] += load.crossing_bytes;
        let latency = if load.here { HAND_OVER.min(self.latency) } else { self.latency };
        let link = match &mut self.route {
            Route::Device(devices) => {
                let fresh = slot_end.saturating_sub(self.touched_bytes[child]);
                self.touched_bytes[child] = self.touched_bytes[child].max(slot_end);
                let time = load.time + Time::from_seconds(cost::first_touch_seconds(&self.edge, fresh));
                return Some(sim.request(devices[child / self.count], time, self.latency, done));
            }
            Route::Network(routes) => {
                let way = if way == Direction::Down { Way::Into } else { Way::OutOf };
                let path = routes[child / self.count].even(child % self.count, way).clone();
                let (port, inner) = path.shares.split_at(1);
                // Software keeps the port alone.
                let behind = inner.iter().map(|share| (f64::from(*share) * load.behind).round() as u32);
                let shares: Vec<u32> = port.iter().copied().chain(behind).collect();
                let transfer = Transfer { latency, shares: &shares, ..Transfer::new(&path.links, load.bytes) };
                self.begin(sim, child, transfer, done);
                return None;
            }
            Route::Bus(buses) => buses[child / self.count],
            Route::Links(links) if way == Direction::Down => links[child].0,
            Route::Links(links) => links[child].1,
        };
        self.begin(sim, child, Transfer { latency, ..Transfer::new(&[link], load.bytes) }, done);
        None
    }

    /// Gives a transfer to the engine of a child, or to the wires.
    fn begin<E>(&self, sim: &mut Simulation<E>, child: usize, transfer: Transfer<'_>, done: E) {
        match self.engines.get(child) {
            Some(engine) => sim.issue(*engine, transfer, done),
            None => sim.transfer(transfer, done),
        }
    }
}
