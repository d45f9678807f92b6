//! Links, and the flows through them.
//!
//! A flow is a number of bytes on its way through one link or several. All flows share every link max-min fairly: no
//! flow could be faster without making a slower or equal one slower still. That is what progressive filling gives
//! (Bertsekas and Gallager, *Data Networks*, 1992, section 6.5.2): all rates grow together; where a link is full, its
//! flows have their rates; the others go on growing.
//!
//! Rates are computed once for each instant at which flows came or went, and only for the flows that can feel it: those
//! that are connected to the change through links that can be full. A link that all its flows together cannot fill (a
//! switch with room for every port) connects nobody. Capacities are whole numbers, so this is decided exactly.

use crate::queue::{Alarms, Key};
use crate::time::Time;
use smallvec::SmallVec;

/// A link of a [`crate::Simulation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkId(pub(crate) u32);

struct Link {
    bytes_per_second: u64,
    latency: Time,
    /// Flows on their way, in the order in which they came, but for the gaps that leaving flows closed by the last.
    flows: Vec<u32>,
    /// The sum of what its flows could use at most.
    demand_bytes_per_second: u128,
    bytes: u64,
    /// Number of the search that saw this link last.
    seen: u64,
    left: f64,
    unfixed: u32,
}

impl Link {
    fn can_be_full(&self) -> bool {
        self.demand_bytes_per_second > u128::from(self.bytes_per_second)
    }
}

#[derive(Default)]
struct Flow {
    path: SmallVec<[u32; 4]>,
    /// Where it stands in the list of each link of its path.
    places: SmallVec<[u32; 4]>,
    /// The slowest link of its path, or its own limit: what it could use alone.
    alone_bytes_per_second: u64,
    left_bytes: f64,
    /// Bytes per picosecond, since when.
    rate: f64,
    since: Time,
    /// Its number among all that was planned: flows that end together end in the order in which they began.
    sequence: u64,
    seen: u64,
    fixed: bool,
}

/// All links and flows.
#[derive(Default)]
pub(crate) struct Network {
    links: Vec<Link>,
    flows: Vec<Flow>,
    free: Vec<u32>,
    ends: Alarms,
    /// Links whose flows may have other rates from now on.
    changed: Vec<u32>,
    /// Flows that began in this instant and cross no link that can be full.
    begun: Vec<u32>,
    search: u64,
}

impl Network {
    pub(crate) fn link(&mut self, bytes_per_second: u64, latency: Time) -> LinkId {
        assert!(bytes_per_second > 0, "a link without bandwidth: whoever builds a machine refuses it before");
        self.links.push(Link {
            bytes_per_second,
            latency,
            flows: Vec::new(),
            demand_bytes_per_second: 0,
            bytes: 0,
            seen: 0,
            left: 0.0,
            unfixed: 0,
        });
        LinkId((self.links.len() - 1) as u32)
    }

    /// The latencies of the links of a path together.
    pub(crate) fn latency(&self, path: &[LinkId]) -> Time {
        path.iter().map(|link| self.links[link.0 as usize].latency).sum()
    }

    /// Bytes that a link carried or carries.
    pub(crate) fn bytes(&self, link: LinkId) -> u64 {
        self.links[link.0 as usize].bytes
    }

    /// Begins a flow; its number is free again when it has ended.
    pub(crate) fn begin(&mut self, path: &[LinkId], bytes: u64, limit: Option<u64>, key: Key) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.flows.push(Flow::default());
            (self.flows.len() - 1) as u32
        });
        let slowest = path.iter().map(|link| self.links[link.0 as usize].bytes_per_second).min();
        let alone = slowest.unwrap_or(u64::MAX).min(limit.unwrap_or(u64::MAX)).max(1);
        let flow = &mut self.flows[id as usize];
        flow.path.clear();
        flow.places.clear();
        flow.alone_bytes_per_second = alone;
        flow.left_bytes = bytes as f64;
        flow.rate = 0.0;
        (flow.since, flow.sequence) = key;
        for (i, link) in path.iter().enumerate() {
            debug_assert!(!path[..i].contains(link), "a path crosses a link once");
            let at = &mut self.links[link.0 as usize];
            flow.path.push(link.0);
            flow.places.push(at.flows.len() as u32);
            at.flows.push(id);
            at.bytes += bytes;
            at.demand_bytes_per_second += u128::from(alone);
            if at.can_be_full() {
                self.changed.push(link.0);
            }
        }
        self.begun.push(id);
        id
    }

    /// When the next flow ends; only valid once [`Network::settle`] was called for this instant.
    pub(crate) fn first(&self) -> Option<Key> {
        self.ends.first()
    }

    /// Ends the flow whose end is due.
    pub(crate) fn pop(&mut self) -> Option<u32> {
        let id = self.ends.pop()?;
        let flow = std::mem::take(&mut self.flows[id as usize]);
        for (&link, &place) in flow.path.iter().zip(&flow.places) {
            let at = &mut self.links[link as usize];
            if at.can_be_full() {
                self.changed.push(link);
            }
            at.demand_bytes_per_second -= u128::from(flow.alone_bytes_per_second);
            at.flows.swap_remove(place as usize);
            if let Some(&moved) = at.flows.get(place as usize) {
                let moved = &mut self.flows[moved as usize];
                let i = moved.path.iter().position(|l| *l == link).expect("it stands in the list of this link");
                moved.places[i] = place;
            }
        }
        self.free.push(id);
        Some(id)
    }

    /// Whether rates have to be computed before time goes on.
    pub(crate) fn is_unsettled(&self) -> bool {
        !self.changed.is_empty() || !self.begun.is_empty()
    }

    /// Computes the rates of all flows that feel what changed in this instant.
    pub(crate) fn settle(&mut self, now: Time) {
        self.search += 1;
        let search = self.search;
        let mut links: Vec<u32> = Vec::new();
        let mut flows: Vec<u32> = Vec::new();
        for link in std::mem::take(&mut self.changed) {
            if self.links[link as usize].seen != search {
                self.links[link as usize].seen = search;
                links.push(link);
            }
        }
        for id in std::mem::take(&mut self.begun) {
            // One that was begun and has ended in this instant has an empty path, and no bytes.
            let flow = &mut self.flows[id as usize];
            if flow.seen != search {
                flow.seen = search;
                flows.push(id);
            }
        }
        let mut next = 0;
        while next < links.len() {
            let link = links[next] as usize;
            next += 1;
            for i in 0..self.links[link].flows.len() {
                let id = self.links[link].flows[i];
                if self.flows[id as usize].seen == search {
                    continue;
                }
                self.flows[id as usize].seen = search;
                flows.push(id);
                for &other in &self.flows[id as usize].path {
                    let other_link = &mut self.links[other as usize];
                    if other_link.seen != search && other_link.can_be_full() {
                        other_link.seen = search;
                        links.push(other);
                    }
                }
            }
        }
        self.fill(&links, &flows, now);
    }

    /// Progressive filling of these links by these flows. Links that are not among them cannot be full.
    fn fill(&mut self, links: &[u32], flows: &[u32], now: Time) {
        for &link in links {
            let link = &mut self.links[link as usize];
            link.left = link.bytes_per_second as f64;
            link.unfixed = link.flows.len() as u32;
        }
        for &id in flows {
            self.flows[id as usize].fixed = false;
        }
        let mut open_links: Vec<u32> = links.iter().copied().filter(|l| self.links[*l as usize].unfixed > 0).collect();
        let mut open: Vec<u32> = flows.to_vec();
        while !open.is_empty() {
            let share = |link: &Link| link.left / f64::from(link.unfixed);
            let mut least = open_links.iter().map(|l| share(&self.links[*l as usize])).fold(f64::INFINITY, f64::min);
            for &id in &open {
                least = least.min(self.flows[id as usize].alone_bytes_per_second as f64);
            }
            let full: Vec<u32> =
                open_links.iter().copied().filter(|l| share(&self.links[*l as usize]) <= least).collect();
            let mut fixed: Vec<u32> = Vec::new();
            for &link in &full {
                for &id in &self.links[link as usize].flows {
                    let flow = &mut self.flows[id as usize];
                    if !flow.fixed {
                        flow.fixed = true;
                        fixed.push(id);
                    }
                }
            }
            for &id in &open {
                let flow = &mut self.flows[id as usize];
                if !flow.fixed && flow.alone_bytes_per_second as f64 <= least {
                    flow.fixed = true;
                    fixed.push(id);
                }
            }
            let rate = least.max(1e-6);
            for &id in &fixed {
                for &link in &self.flows[id as usize].path {
                    let link = &mut self.links[link as usize];
                    link.left = (link.left - rate).max(0.0);
                    link.unfixed = link.unfixed.saturating_sub(1);
                }
                self.set_rate(id, rate * 1e-12, now);
            }
            open.retain(|id| !self.flows[*id as usize].fixed);
            open_links.retain(|l| self.links[*l as usize].unfixed > 0);
        }
    }

    fn set_rate(&mut self, id: u32, rate: f64, now: Time) {
        let flow = &mut self.flows[id as usize];
        if flow.rate == rate {
            return;
        }
        let passed = (now - flow.since).ps() as f64;
        flow.left_bytes = (flow.left_bytes - passed * flow.rate).max(0.0);
        flow.since = now;
        flow.rate = rate;
        let end = now + Time::from_ps((flow.left_bytes / rate).ceil() as u64);
        self.ends.set(id, (end, flow.sequence));
    }
}
