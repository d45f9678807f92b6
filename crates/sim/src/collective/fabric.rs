//! What lies between the participants of a group.

use crate::dma::{Dma, DmaId, Transfer};
use crate::network::LinkId;
use crate::simulation::Simulation;
use crate::time::Time;
use multigrain_schedule::{Domain, Topology};
use smallvec::SmallVec;

/// What participants are like, and what lies between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Fabric {
    /// By distance (see [`Topology::distance`]): the first within an innermost domain, the next between neighbouring
    /// domains, and so on outwards.
    pub tiers: Vec<Tier>,
    /// What each participant can send and, at once, receive, in bytes per second.
    pub port_bytes_per_second: u64,
    /// Whatever crosses does so in packets of this size, and a signal is one of them. None: signals take no bandwidth,
    /// and transfers their own bytes.
    pub packet_bytes: Option<u64>,
    /// The DMA engine of each participant.
    pub dma: Dma,
    /// What steps cost the processor that executes them.
    pub costs: Costs,
}

/// What lies between participants that are so far apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tier {
    /// From when a signal has left its sender until it can be read, its packet's crossing not counted.
    pub signal: Time,
    /// From when a transfer has begun until its first byte has arrived.
    pub transfer: Time,
    /// For how long a signal keeps its sender's engine from beginning anything else.
    pub signal_command: Time,
    /// For how long a transfer keeps the engine from beginning anything else.
    pub transfer_command: Time,
    /// For the innermost tier what the members of a domain can transfer together, for the others what a domain can send
    /// to its neighbours and, at once, receive from them, in bytes per second; `None` if the ports are the only limit.
    pub bytes_per_second: Option<u64>,
}

/// What steps cost the processor that executes them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    /// Before the first step of an operation.
    pub enter: Time,
    /// Sending a signal.
    pub send: Time,
    /// Reading the register once a bit is set.
    pub read: Time,
    /// Looking at bits that were read before.
    pub test: Time,
    /// Giving a transfer to the DMA engine.
    pub start: Time,
    /// Finding that transfers are complete.
    pub flush: Time,
    /// Combining operands, whatever their size.
    pub combine: Time,
    /// Bytes of an operand that are combined in a second.
    pub combine_bytes_per_second: f64,
}

/// One more than the largest distance in a group.
pub(super) fn distances(topology: &Topology) -> usize {
    levels(topology.root())
}

fn levels(domain: &Domain) -> usize {
    match domain {
        Domain::Members(_) => 1,
        Domain::Domains(inner) => 1 + inner.iter().map(levels).max().unwrap_or(0),
    }
}

/// The links of one domain: its bus if it is an innermost one, and what leads out of it and into it.
#[derive(Clone, Copy, Default)]
struct Wiring {
    bus: Option<LinkId>,
    out: Option<LinkId>,
    into: Option<LinkId>,
}

/// Links and engines between the participants of a group.
pub(super) struct Wires {
    /// For each participant its domains from the outermost inwards, as indices of `domains`.
    inside: Vec<SmallVec<[u32; 4]>>,
    /// Each domain's links and the distance of those in it that are farthest apart.
    domains: Vec<(Wiring, usize)>,
    ports: Vec<(LinkId, LinkId)>,
    engines: Vec<DmaId>,
    /// When each engine can begin something else.
    free: Vec<Time>,
}

impl Wires {
    pub(super) fn build<E>(sim: &mut Simulation<E>, topology: &Topology, fabric: &Fabric) -> Wires {
        let (inside, domains, ports, engines) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut wires = Wires { inside, domains, ports, engines, free: Vec::new() };
        wires.domain(sim, topology.root(), &SmallVec::new(), None, fabric);
        for _ in 0..wires.inside.len() {
            let port = |sim: &mut Simulation<E>| sim.link(fabric.port_bytes_per_second, Time::ZERO);
            wires.ports.push((port(sim), port(sim)));
            wires.engines.push(sim.dma(fabric.dma));
            wires.free.push(Time::ZERO);
        }
        wires
    }

    /// Adds a domain and what is in it; `way` is the bandwidth between it and its neighbours.
    fn domain<E>(
        &mut self,
        sim: &mut Simulation<E>,
        domain: &Domain,
        outer: &SmallVec<[u32; 4]>,
        way: Option<u64>,
        fabric: &Fabric,
    ) {
        let distance = levels(domain) - 1;
        let mut link = |rate: Option<u64>| rate.map(|rate| sim.link(rate, Time::ZERO));
        let innermost = matches!(domain, Domain::Members(_));
        let bus = link(if innermost { fabric.tiers[0].bytes_per_second } else { None });
        let wiring = Wiring { bus, out: link(way), into: link(way) };
        let mut inside = outer.clone();
        inside.push(self.domains.len() as u32);
        self.domains.push((wiring, distance));
        match domain {
            Domain::Members(members) => self.inside.extend((0..*members).map(|_| inside.clone())),
            Domain::Domains(inner) => {
                for domain in inner {
                    self.domain(sim, domain, &inside, fabric.tiers[distance].bytes_per_second, fabric);
                }
            }
        }
    }

    /// The number of domains that two participants have in common.
    fn common(&self, a: u32, b: u32) -> usize {
        let (a, b) = (&self.inside[a as usize], &self.inside[b as usize]);
        a.iter().zip(b).take_while(|(a, b)| a == b).count()
    }

    /// See [`Topology::distance`].
    pub(super) fn distance(&self, a: u32, b: u32) -> usize {
        let domain = self.inside[a as usize][self.common(a, b) - 1];
        self.domains[domain as usize].1
    }

    fn path(&self, from: u32, to: u32) -> SmallVec<[LinkId; 8]> {
        let common = self.common(from, to);
        let wiring = |domain: &u32| self.domains[*domain as usize].0;
        let (source, target) = (&self.inside[from as usize], &self.inside[to as usize]);
        let mut path = SmallVec::new();
        path.push(self.ports[from as usize].0);
        path.extend(source.last().and_then(|d| wiring(d).bus));
        path.extend(source[common..].iter().rev().filter_map(|d| wiring(d).out));
        path.extend(target[common..].iter().filter_map(|d| wiring(d).into));
        if common < target.len() {
            path.extend(target.last().and_then(|d| wiring(d).bus));
        }
        path.push(self.ports[to as usize].1);
        path
    }

    /// When a participant's engine begins a command given at `given`, which keeps it busy for so long.
    fn begin(&mut self, by: u32, given: Time, command: Time) -> Time {
        let begun = self.free[by as usize].max(given);
        self.free[by as usize] = begun + command;
        begun
    }

    /// Sends a signal that its sender gives to its engine after `before`.
    pub(super) fn signal<E>(
        &mut self,
        sim: &mut Simulation<E>,
        fabric: &Fabric,
        (from, to): (u32, u32),
        before: Time,
        done: E,
    ) {
        let tier = fabric.tiers[self.distance(from, to)];
        let begun = self.begin(from, sim.now() + before, tier.signal_command);
        let latency = begun - sim.now() + tier.signal;
        let path = self.path(from, to);
        sim.transfer(Transfer { latency, ..Transfer::new(&path, fabric.packet_bytes.unwrap_or(0)) }, done);
    }

    pub(super) fn transfer<E>(
        &mut self,
        sim: &mut Simulation<E>,
        fabric: &Fabric,
        by: u32,
        (from, to): (u32, u32),
        bytes: u64,
        done: E,
    ) {
        let tier = fabric.tiers[self.distance(from, to)];
        let begun = self.begin(by, sim.now() + fabric.costs.start, tier.transfer_command);
        let latency = begun - sim.now() + tier.transfer;
        let path = self.path(from, to);
        let bytes = fabric.packet_bytes.map_or(bytes, |packet| bytes.next_multiple_of(packet.max(1)));
        let transfer = Transfer { latency, ..Transfer::new(&path, bytes) };
        sim.issue(self.engines[by as usize], transfer, done);
    }
}
