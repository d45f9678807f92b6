//! Links, and the flows through them.
//!
//! A flow is a number of bytes on its way through one link or several. All flows share every link max-min fairly: no
//! flow could be faster without making a slower or equal one slower still. That is what progressive filling gives
//! (Bertsekas and Gallager, *Data Networks*, 1992, section 6.5.2): all rates grow together; where a link is full, its
//! flows have their rates; the others go on growing.
//!
//! A link may carry a part of a flow's bytes only, where these take several ways: then it is full when the parts are as much as
//! it has.
//!
//! Flows that cross the same links and have the same limit have the same rate for as long as they live. So they are a
//! class with one clock, which counts the bytes that each of its flows has moved: a flow that begins is given the count
//! at which it will have ended, and nothing has to be done for it until then, however often the rate changes.
//!
//! Rates are computed once for each instant at which flows came or went, and only for the classes that can feel it: those
//! that are connected to the change through links that can be full. A link that all its flows together cannot fill (a
//! switch with room for every port) connects nobody. Capacities are whole numbers, so this is decided exactly.

use crate::queue::{Alarms, Key};
use crate::time::Time;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// All bytes of a flow, in the parts in which is said what a link carries of it: as fine as machines are known, and exact for
/// halves.
pub const WHOLE: u32 = 1 << 20;

/// A link of a [`crate::Simulation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkId(pub(crate) u32);

/// A number that is not negative, in the order of its value: the bits of such numbers are ordered as the numbers are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Magnitude(u64);

impl Magnitude {
    fn of(value: f64) -> Magnitude {
        debug_assert!(value.is_sign_positive() && !value.is_nan());
        Magnitude(value.to_bits())
    }

    fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

struct Link {
    bytes_per_second: u64,
    latency: Time,
    /// Classes that have flows on their way, in the order in which they came, but for the gaps that leaving ones closed
    /// by the last.
    classes: Vec<u32>,
    /// Flows on their way, each by the part of it that crosses here.
    flow_parts: u64,
    /// The sum of what its flows could use at most, in parts of a byte.
    demand_parts_per_second: u128,
    /// Whether they could use more than there is.
    can_be_full: bool,
    bytes: u64,
    left: f64,
    unfixed_parts: u64,
}

impl Link {
    /// One more flow, or one less, that could use so much.
    fn change(&mut self, comes: bool, bytes_per_second: u64, share: u32) {
        let demand = u128::from(bytes_per_second) * u128::from(share);
        if comes {
            self.flow_parts += u64::from(share);
            self.demand_parts_per_second += demand;
        } else {
            self.flow_parts -= u64::from(share);
            self.demand_parts_per_second -= demand;
        }
        self.can_be_full = self.demand_parts_per_second > u128::from(self.bytes_per_second) * u128::from(WHOLE);
    }

    /// What each flow without a rate gets if nothing else limits it.
    fn share(&self) -> Magnitude {
        Magnitude::of(self.left / wholes(self.unfixed_parts))
    }

    /// What a flow could use if it were alone and so much of it crossed here.
    fn alone(&self, share: u32) -> u64 {
        // Nearly all flows cross their links whole, and a division of that width takes as long as all else here.
        if share == WHOLE {
            return self.bytes_per_second;
        }
        let parts = u128::from(self.bytes_per_second) * u128::from(WHOLE);
        u64::try_from(parts / u128::from(share)).unwrap_or(u64::MAX)
    }
}

/// How many whole flows so many parts are.
fn wholes(parts: u64) -> f64 {
    parts as f64 / f64::from(WHOLE)
}

/// Links, and what each carries of a flow.
type Path = SmallVec<[(u32, u32); 4]>;

/// A flow of a class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Flow {
    /// It has ended when its class has moved so many bytes for each of its flows.
    end_bytes: Magnitude,
    /// Its number among all that was planned: flows that end together end in the order in which they began.
    sequence: u64,
    id: u32,
}

/// Flows that cross the same links and could use the same alone.
struct Class {
    /// Links, each once, in the order of their numbers.
    path: Path,
    /// Where it stands in the list of each link of its path; empty while it has no flows.
    places: SmallVec<[u32; 4]>,
    /// The slowest link of the path, or a limit of the flows: what one of them could use alone.
    alone_bytes_per_second: u64,
    /// The one that ends first on top.
    flows: BinaryHeap<Reverse<Flow>>,
    /// Bytes that were moved for each flow that was there from the beginning on, up to `since`.
    moved_bytes: f64,
    since: Time,
    /// Bytes per picosecond, since then.
    rate: f64,
    /// It got flows in this instant.
    fresh: bool,
    /// Number of the search that saw it last.
    seen: u64,
    /// Number of the search in which it got its rate last.
    fixed: u64,
}

impl Class {
    /// Brings the clock up to the present.
    fn pass(&mut self, now: Time) {
        self.moved_bytes += (now - self.since).ps() as f64 * self.rate;
        self.since = now;
    }

    /// When the next of its flows ends; the clock stands at the present.
    fn end(&self) -> Key {
        match self.flows.peek() {
            Some(Reverse(flow)) => {
                let left_ps = (flow.end_bytes.value() - self.moved_bytes) / self.rate;
                (self.since + Time::from_ps(rounded_up(left_ps - SLACK_PS)), flow.sequence)
            }
            None => (Time::from_ps(u64::MAX), u64::MAX),
        }
    }
}

/// The least whole number that is not below a number and not below 0. A processor of which nothing is known rounds up by a
/// call, and cuts off by an instruction.
#[inline]
fn rounded_up(x: f64) -> u64 {
    let below = x as u64;
    below.saturating_add(u64::from((below as f64) < x))
}

/// What [`Network::settle`] works on, kept for the next time.
#[derive(Default)]
struct Work {
    /// Links and classes that were reached.
    links: Vec<u32>,
    classes: Vec<u32>,
    /// Classes whose flows could be slower than their links let them, with what they could use.
    limited: Vec<(u64, u32)>,
    /// Links that are not full, the least share first.
    shares: BinaryHeap<Reverse<(Magnitude, u32)>>,
    /// Links that became full in a round.
    full: Vec<u32>,
    /// When classes have their next ends.
    ends: Vec<(Key, u32)>,
}

/// Ends are rounded up to picoseconds, but for so little of one: what is left by rounding of a clock is not a picosecond.
/// Flows that would end together must, since who begins a picosecond earlier than fifteen others has a link for itself
/// for that time, and gains sixteen.
const SLACK_PS: f64 = 1e-3;

/// Classes without flows that are kept at least, in case that flows of theirs come again.
const IDLE_CLASSES: usize = 4096;

/// All links and flows.
#[derive(Default)]
pub(crate) struct Network {
    links: Vec<Link>,
    /// For each link the number of the search that saw it last.
    link_seen: Vec<u64>,
    classes: Vec<Class>,
    /// Path and limit of each class.
    class_of: FxHashMap<(Path, u64), u32>,
    /// Classes with flows.
    busy: usize,
    /// Numbers of classes that are free.
    free_classes: Vec<u32>,
    /// Numbers of flows that are free, and the least that was never used.
    free: Vec<u32>,
    unused: u32,
    /// When the next flow of each class ends.
    ends: Alarms,
    /// Links whose flows may have other rates from now on.
    changed: Vec<u32>,
    /// Classes that got flows in this instant.
    begun: Vec<u32>,
    search: u64,
    work: Work,
}

impl Network {
    pub(crate) fn link(&mut self, bytes_per_second: u64, latency: Time) -> LinkId {
        assert!(bytes_per_second > 0, "a link without bandwidth: whoever builds a machine refuses it before");
        self.links.push(Link {
            bytes_per_second,
            latency,
            classes: Vec::new(),
            flow_parts: 0,
            demand_parts_per_second: 0,
            can_be_full: false,
            bytes: 0,
            left: 0.0,
            unfixed_parts: 0,
        });
        self.link_seen.push(0);
        LinkId((self.links.len() - 1) as u32)
    }

    /// The latencies of the links of a path together.
    pub(crate) fn latency(&self, path: &[(LinkId, u32)]) -> Time {
        path.iter().map(|(link, _)| self.links[link.0 as usize].latency).sum()
    }

    /// Bytes that a link carried or carries.
    pub(crate) fn bytes(&self, link: LinkId) -> u64 {
        self.links[link.0 as usize].bytes
    }

    /// Begins a flow; its number is free again when it has ended.
    pub(crate) fn begin(&mut self, path: &[(LinkId, u32)], bytes: u64, limit: Option<u64>, key: Key) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.unused += 1;
            self.unused - 1
        });
        let slowest = path.iter().map(|&(link, share)| self.links[link.0 as usize].alone(share)).min();
        let alone = slowest.unwrap_or(u64::MAX).min(limit.unwrap_or(u64::MAX)).max(1);
        let mut sorted: Path = path.iter().map(|&(link, share)| (link.0, share)).collect();
        sorted.sort_unstable();
        debug_assert!(sorted.windows(2).all(|pair| pair[0].0 < pair[1].0), "a path crosses a link once");
        let number = self.class(sorted, alone);
        let (now, sequence) = key;
        let class = &mut self.classes[number as usize];
        if class.flows.is_empty() {
            self.busy += 1;
            (class.moved_bytes, class.rate) = (0.0, 0.0);
            for &(link, _) in &class.path {
                let classes = &mut self.links[link as usize].classes;
                class.places.push(classes.len() as u32);
                classes.push(number);
            }
        }
        class.pass(now);
        let end_bytes = Magnitude::of(class.moved_bytes + bytes as f64);
        class.flows.push(Reverse(Flow { end_bytes, sequence, id }));
        if !std::mem::replace(&mut class.fresh, true) {
            self.begun.push(number);
        }
        for &(link, share) in &class.path {
            let at = &mut self.links[link as usize];
            at.bytes += (u128::from(bytes) * u128::from(share) / u128::from(WHOLE)) as u64;
            at.change(true, alone, share);
            if at.can_be_full {
                self.changed.push(link);
            }
        }
        id
    }

    /// The number of the class of these flows, which is made if there is none.
    fn class(&mut self, path: Path, alone: u64) -> u32 {
        let key = (path, alone);
        if let Some(&known) = self.class_of.get(&key) {
            return known;
        }
        if self.class_of.len() > 2 * self.busy + IDLE_CLASSES {
            self.forget();
        }
        let class = Class {
            path: key.0.clone(),
            places: SmallVec::new(),
            alone_bytes_per_second: alone,
            flows: BinaryHeap::new(),
            moved_bytes: 0.0,
            since: Time::ZERO,
            rate: 0.0,
            fresh: false,
            seen: 0,
            fixed: 0,
        };
        let number = match self.free_classes.pop() {
            Some(number) => {
                self.classes[number as usize] = class;
                number
            }
            None => {
                self.classes.push(class);
                (self.classes.len() - 1) as u32
            }
        };
        self.class_of.insert(key, number);
        number
    }

    /// Forgets classes without flows.
    fn forget(&mut self) {
        for (number, class) in self.classes.iter_mut().enumerate().filter(|(_, class)| class.flows.is_empty()) {
            let key = (std::mem::take(&mut class.path), class.alone_bytes_per_second);
            // One that was forgotten before has an empty path and may share its key with one that lives.
            if self.class_of.get(&key) == Some(&(number as u32)) {
                self.class_of.remove(&key);
                self.free_classes.push(number as u32);
            }
        }
    }

    /// When the next flow ends; only valid once [`Network::settle`] was called for this instant.
    pub(crate) fn first(&self) -> Option<Key> {
        self.ends.first()
    }

    /// Ends the flow whose end is due.
    pub(crate) fn pop(&mut self) -> Option<u32> {
        let (now, _) = self.ends.first()?;
        let number = self.ends.first_id()?;
        let class = &mut self.classes[number as usize];
        class.pass(now);
        let Reverse(flow) = class.flows.pop()?;
        // It has ended, whatever the clock was rounded to, and so have all with the same end.
        class.moved_bytes = class.moved_bytes.max(flow.end_bytes.value());
        for &(link, share) in &class.path {
            let at = &mut self.links[link as usize];
            if at.can_be_full {
                self.changed.push(link);
            }
            at.change(false, class.alone_bytes_per_second, share);
        }
        self.free.push(flow.id);
        if !class.flows.is_empty() {
            self.ends.set(number, class.end());
            return Some(flow.id);
        }
        self.busy -= 1;
        self.ends.clear(number);
        let (path, places) = (class.path.clone(), std::mem::take(&mut class.places));
        for (&(link, _), &place) in path.iter().zip(&places) {
            let classes = &mut self.links[link as usize].classes;
            classes.swap_remove(place as usize);
            if let Some(&moved) = classes.get(place as usize) {
                let moved = &mut self.classes[moved as usize];
                let i = moved.path.iter().position(|(l, _)| *l == link).expect("it stands in the list of this link");
                moved.places[i] = place;
            }
        }
        Some(flow.id)
    }

    /// Whether rates have to be computed before time goes on.
    pub(crate) fn is_unsettled(&self) -> bool {
        !self.changed.is_empty() || !self.begun.is_empty()
    }

    /// Computes the rates of all flows that feel what changed in this instant.
    pub(crate) fn settle(&mut self, now: Time) {
        self.search += 1;
        let mut work = std::mem::take(&mut self.work);
        self.reach(&mut work);
        self.fill(&mut work, now);
        self.ends.set_all(&mut work.ends);
        self.work = work;
    }

    /// Finds the links and classes that are connected to what changed through links that can be full.
    fn reach(&mut self, work: &mut Work) {
        let search = self.search;
        let Work { links: reached, classes: found, .. } = work;
        let Network { links, link_seen, classes, changed, begun, .. } = self;
        reached.clear();
        found.clear();
        for link in changed.drain(..) {
            if std::mem::replace(&mut link_seen[link as usize], search) != search {
                reached.push(link);
            }
        }
        // The other links of these are among the changed ones, if they can be full.
        for number in begun.drain(..) {
            classes[number as usize].seen = search;
            found.push(number);
        }
        let mut next = 0;
        while let Some(&link) = reached.get(next) {
            next += 1;
            for &number in &links[link as usize].classes {
                let class = &mut classes[number as usize];
                if std::mem::replace(&mut class.seen, search) == search {
                    continue;
                }
                found.push(number);
                for &(other, _) in &class.path {
                    if link_seen[other as usize] != search && links[other as usize].can_be_full {
                        link_seen[other as usize] = search;
                        reached.push(other);
                    }
                }
            }
        }
    }

    /// Progressive filling of the links that were reached by the classes that were. Other links cannot be full.
    ///
    /// The least share of a link that still has flows without a rate grows from round to round, so a heap of shares as
    /// they were when they were last looked at gives the next full link at once: a share that has grown goes back.
    fn fill(&mut self, work: &mut Work, now: Time) {
        let search = self.search;
        let Work { links, classes, limited, shares, full, ends } = work;
        shares.clear();
        for &id in links.iter() {
            let link = &mut self.links[id as usize];
            link.left = link.bytes_per_second as f64;
            link.unfixed_parts = link.flow_parts;
            if link.unfixed_parts > 0 {
                shares.push(Reverse((link.share(), id)));
            }
        }
        limited.clear();
        for &id in classes.iter() {
            let class = &self.classes[id as usize];
            let alone = class.alone_bytes_per_second;
            // A link that was reached never gives more than it has, so only lower limits have to be looked at.
            let mut links = class.path.iter().filter(|(link, _)| self.link_seen[*link as usize] == search);
            if links.all(|&(link, share)| alone < self.links[link as usize].alone(share)) {
                limited.push((alone, id));
            }
        }
        // The smallest limit stands last.
        limited.sort_unstable_by(|a, b| b.cmp(a));
        loop {
            while limited.last().is_some_and(|&(_, id)| self.classes[id as usize].fixed == search) {
                limited.pop();
            }
            let limit = limited.last().map_or(f64::INFINITY, |&(alone, _)| alone as f64);
            let least = self.full_links(shares, full, limit);
            if least == f64::INFINITY {
                return;
            }
            let rate = least.max(1e-6);
            for &link in full.iter() {
                for place in 0..self.links[link as usize].classes.len() {
                    let id = self.links[link as usize].classes[place];
                    self.fix(id, rate, now, ends);
                }
            }
            while let Some(&(alone, id)) = limited.last()
                && alone as f64 <= least
            {
                limited.pop();
                self.fix(id, rate, now, ends);
            }
        }
    }

    /// Takes the links with the least share out of the heap, all that have the same one, if it is at most `limit`. Gives
    /// that share, or `limit` if there are none.
    fn full_links(&self, shares: &mut BinaryHeap<Reverse<(Magnitude, u32)>>, full: &mut Vec<u32>, limit: f64) -> f64 {
        full.clear();
        let mut least = Magnitude::of(limit);
        while let Some(mut top) = shares.peek_mut() {
            let Reverse((known, id)) = *top;
            if known > least {
                break;
            }
            let link = &self.links[id as usize];
            if link.unfixed_parts == 0 {
                PeekMut::pop(top);
                continue;
            }
            let share = link.share();
            if share > known {
                // What changes on top of a heap finds its place when it is let go.
                *top = Reverse((share, id));
                continue;
            }
            PeekMut::pop(top);
            if full.is_empty() {
                least = share;
            }
            full.push(id);
        }
        least.value()
    }

    /// Gives the flows of a class their rate, in bytes per second, if they have none yet in this filling.
    fn fix(&mut self, id: u32, rate: f64, now: Time, ends: &mut Vec<(Key, u32)>) {
        let class = &mut self.classes[id as usize];
        if class.fixed == self.search {
            return;
        }
        class.fixed = self.search;
        let flows = class.flows.len() as u64;
        for &(link, share) in &class.path {
            let link = &mut self.links[link as usize];
            let parts = flows * u64::from(share);
            link.left = (link.left - rate * wholes(parts)).max(0.0);
            link.unfixed_parts = link.unfixed_parts.saturating_sub(parts);
        }
        let rate = rate * 1e-12;
        let fresh = std::mem::take(&mut class.fresh);
        if class.rate == rate && !fresh {
            return;
        }
        class.pass(now);
        class.rate = rate;
        ends.push((class.end(), id));
    }
}

#[cfg(test)]
mod tests {
    use super::rounded_up;

    #[test]
    fn numbers_are_rounded_up() {
        for x in [-1.0, -0.0, 0.0, 0.25, 1.0, 1.000_001, 7.5, 1e9 + 0.5, 9_007_199_254_740_993.0, 1e19, 1e30, f64::MAX]
        {
            assert_eq!(rounded_up(x), x.max(0.0).ceil() as u64, "{x}");
        }
    }
}
