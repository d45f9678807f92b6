//! Schedules with every bit and area found, made once for each algorithm and root that is used.

use super::buffer::LINE_BYTES;
use super::register::{Found, Mark, RegisterFile};
use multigrain_schedule::choice::{Table, Way};
use multigrain_schedule::{
    Algorithm, Area, Kind, Operation, Order, Request, Ring, Schedule, ScheduleError, Step, Topology, schedules,
};
use std::collections::HashMap;
use std::sync::OnceLock;

/// The rings of eager operations.
pub(super) const RING: Ring = if cfg!(loom) { Ring(2) } else { Ring::USUAL };
/// Their places.
pub(super) const PLACES: usize = RING.0 as usize;

/// Where an area begins: whose, and at which line.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) rank: u32,
    first: u32,
    /// Lines from one of its copies to the next; 0 if there is one only.
    stride: u32,
}

impl At {
    /// The first line of the copy that serves a round.
    #[inline]
    pub(super) fn line(self, copy: u32) -> u32 {
        self.first + self.stride * copy
    }
}

/// A step of a participant.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    Signal {
        bit: Found,
    },
    Await {
        from: u32,
        bit: Found,
    },
    Copy {
        source: At,
        target: At,
    },
    Combine {
        into: At,
        left: At,
        right: At,
    },
    /// Combines the caller's data with what lies elsewhere, on its right or left.
    Fold {
        with: At,
        right: bool,
    },
    Offer,
    Expect {
        from: u32,
    },
}

/// What one participant does.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) kind: Kind,
    pub(super) acts: Box<[Act]>,
    /// Bytes of a full round; 0 for a barrier.
    pub(super) segment_bytes: u64,
    pub(super) contribution: Option<At>,
    pub(super) result: Option<At>,
    /// Tells operation, algorithm, root and order apart.
    pub(super) mark: Mark,
    /// Whether the rounds are eager.
    pub(super) eager: bool,
    /// Whether eager rounds begin with waiting for room, and end with telling what was taken.
    pub(super) reserves: bool,
    pub(super) takes: bool,
    /// Who expects something from this participant in eager rounds.
    pub(super) readers: Box<[u32]>,
    /// Under which number [`Plans::numbered`] finds the plans of all participants.
    pub(super) number: u32,
}

/// How an operation of some size is executed: positions in [`Plans`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Chosen {
    Direct(Roots),
    Allreduce(Roots),
    ReduceBroadcast(Roots, Roots),
}

/// The plans of one algorithm, for each root.
#[derive(Clone, Copy, Debug)]
pub(super) struct Roots {
    kind: Kind,
    algorithm: Algorithm,
    first: usize,
}

/// The plans of a participant group, made once.
type Made = OnceLock<Box<[Plan]>>;

/// The plans of a group: those of the table, made when they are first used.
#[derive(Debug)]
pub(super) struct Plans {
    topology: Topology,
    buffer_bytes: u64,
    /// The most senders of a participant.
    bits: u32,
    barrier: Box<[Plan]>,
    /// For broadcast, reduce and allreduce the most bytes that each choice serves, ascending.
    chosen: [Vec<(u64, Chosen)>; 3],
    /// For each algorithm and each root, in fixed and in free order.
    made: Box<[[Made; 2]]>,
}

impl Plans {
    pub(super) fn new(topology: &Topology, table: &Table, buffer_bytes: u64) -> Result<Plans, ScheduleError> {
        let mut plans = Plans {
            topology: topology.clone(),
            buffer_bytes,
            bits: 0,
            barrier: Box::default(),
            chosen: Default::default(),
            made: Box::default(),
        };
        let size = topology.size();
        let (mut known, mut slots): (Vec<Roots>, usize) = (Vec::new(), 0);
        for (i, kind) in [Kind::Broadcast, Kind::Reduce, Kind::Allreduce].into_iter().enumerate() {
            for row in table.lines(kind, size) {
                for (kind, algorithm) in row.way.parts(kind) {
                    if known.iter().any(|roots| (roots.kind, roots.algorithm) == (kind, algorithm)) {
                        continue;
                    }
                    known.push(Roots { kind, algorithm, first: slots });
                    let roots = if kind == Kind::Allreduce { 1 } else { size };
                    // How many senders there are, and how much room they need, depends on where the root is.
                    for root in 0..roots {
                        let all = schedules(&plans.request(kind, algorithm, root, Order::Fixed))?;
                        plans.bits = plans.bits.max(all.bits);
                    }
                    slots += roots as usize;
                }
                let roots = |kind, algorithm| Roots {
                    first: known
                        .iter()
                        .find(|roots| (roots.kind, roots.algorithm) == (kind, algorithm))
                        .map_or(0, |roots| roots.first),
                    kind,
                    algorithm,
                };
                let chosen = match row.way {
                    Way::Direct(algorithm) => Chosen::Direct(roots(kind, algorithm)),
                    Way::Allreduce(algorithm) => Chosen::Allreduce(roots(Kind::Allreduce, algorithm)),
                    Way::ReduceBroadcast(up, down) => {
                        Chosen::ReduceBroadcast(roots(Kind::Reduce, up), roots(Kind::Broadcast, down))
                    }
                };
                plans.chosen[i].push((row.bytes_max, chosen));
            }
        }
        plans.made = (0..slots).map(|_| Default::default()).collect();
        let barrier = match table.pick(Kind::Barrier, size, 0).way {
            Way::Direct(algorithm) => algorithm,
            Way::Allreduce(algorithm) | Way::ReduceBroadcast(algorithm, _) => {
                Algorithm { optimised: false, eager: false, ..algorithm }
            }
        };
        let all = schedules(&plans.request(Kind::Barrier, barrier, 0, Order::Fixed))?;
        plans.bits = plans.bits.max(all.bits);
        plans.barrier = plans.make(Kind::Barrier, barrier, 0, Order::Fixed, 0)?;
        Ok(plans)
    }

    /// The most senders of a participant.
    pub(super) fn bits(&self) -> u32 {
        self.bits
    }

    /// The barrier of a participant; `None` outside the group.
    #[inline]
    pub(super) fn barrier(&self, rank: u32) -> Option<&Plan> {
        self.barrier.get(rank as usize)
    }

    /// What serves an operation of so many bytes.
    #[inline]
    pub(super) fn choose(&self, kind: Kind, bytes: u64) -> Option<Chosen> {
        let chosen = match kind {
            Kind::Barrier => return None,
            Kind::Broadcast => &self.chosen[0],
            Kind::Reduce => &self.chosen[1],
            Kind::Allreduce => &self.chosen[2],
        };
        let found = chosen.iter().find(|(bytes_max, _)| bytes <= *bytes_max).or(chosen.last());
        found.map(|(_, chosen)| *chosen)
    }

    /// The plans of all participants.
    #[inline]
    pub(super) fn get(&self, roots: Roots, root: u32, order: Order) -> Result<&[Plan], ScheduleError> {
        let (slot, free) = (roots.first + root as usize, usize::from(order != Order::Fixed));
        match self.made[slot][free].get() {
            Some(made) => Ok(made),
            None => self.make_once((slot, free), roots, root, order),
        }
    }

    /// The plan of a participant by its number, if it was made.
    #[inline]
    pub(super) fn numbered(&self, number: u32, rank: u32) -> Option<&Plan> {
        self.made[number as usize / 2][number as usize % 2].get().map(|plans| &plans[rank as usize])
    }

    #[cold]
    fn make_once(
        &self,
        (slot, free): (usize, usize),
        roots: Roots,
        root: u32,
        order: Order,
    ) -> Result<&[Plan], ScheduleError> {
        let made = self.make(roots.kind, roots.algorithm, root, order, (2 * slot + free) as u32)?;
        Ok(self.made[slot][free].get_or_init(|| made))
    }

    fn make(
        &self,
        kind: Kind,
        algorithm: Algorithm,
        root: u32,
        order: Order,
        number: u32,
    ) -> Result<Box<[Plan]>, ScheduleError> {
        let all = schedules(&self.request(kind, algorithm, root, order))?.participants;
        let text = format!("{} {root} {order:?}", algorithm.name(kind));
        // Fowler, Noll and Vo's hash, 1a, of 32 bits.
        let mark = text.bytes().fold(0x811c_9dc5u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        Ok(all.iter().map(|schedule| compile(schedule, &all, self.bits, kind, (mark, number))).collect())
    }

    /// A request for one line of bytes; what is made for it serves any number of them. Elements are lines, so segments
    /// are whole lines.
    fn request(&self, kind: Kind, algorithm: Algorithm, root: u32, order: Order) -> Request {
        let (bytes, element_bytes) = (LINE_BYTES, LINE_BYTES);
        let operation = match kind {
            Kind::Barrier => Operation::Barrier,
            Kind::Broadcast => Operation::Broadcast { root, bytes },
            Kind::Reduce => Operation::Reduce { root, bytes, element_bytes, order },
            Kind::Allreduce => Operation::Allreduce { bytes, element_bytes, order },
        };
        Request { operation, algorithm, topology: self.topology.clone(), buffer_bytes: self.buffer_bytes, ring: RING.0 }
    }
}

fn compile(schedule: &Schedule, all: &[Schedule], bits: u32, kind: Kind, (mark, number): (Mark, u32)) -> Plan {
    let at = |rank: u32, area: Area| {
        let of = &all[rank as usize];
        let [first, second] = [0, 1].map(|copy| (of.offset_bytes(area, copy) / LINE_BYTES) as u32);
        At { rank, first, stride: second - first }
    };
    let own = |area| at(schedule.rank, area);
    // In eager rounds nobody else touches the payload of the one who gets the result: it stays where the caller has it.
    let in_data = |area| schedule.eager && area == Area::PAYLOAD && schedule.contribution == Some(area);
    // What is got and only combined is read at its owner's.
    let mut got: HashMap<Area, At> = HashMap::new();
    let (mut reserves, mut takes) = (false, false);
    let mut acts = Vec::with_capacity(schedule.steps.len());
    for step in &schedule.steps {
        match *step {
            Step::Signal { to, bit } | Step::Release { to, bit } => {
                acts.push(Act::Signal { bit: RegisterFile::find(to, bit, bits) });
            }
            Step::Await { from, bit } => {
                acts.push(Act::Await { from, bit: RegisterFile::find(schedule.rank, bit, bits) });
            }
            Step::Put { to, source, target } => acts.push(Act::Copy { source: own(source), target: at(to, target) }),
            Step::Get { from, source, target } if schedule.reads_in_place(target) => {
                got.insert(target, at(from, source));
            }
            Step::Get { from, source, target } => {
                acts.push(Act::Copy { source: at(from, source), target: own(target) });
            }
            // Copies are complete when they have been executed.
            Step::Flush => {}
            Step::Combine { into, left, right } => {
                let operand = |area| got.get(&area).copied().unwrap_or_else(|| own(area));
                match (in_data(left), in_data(right)) {
                    (true, _) => acts.push(Act::Fold { with: operand(right), right: true }),
                    (_, true) => acts.push(Act::Fold { with: operand(left), right: false }),
                    _ => acts.push(Act::Combine { into: own(into), left: operand(left), right: operand(right) }),
                }
                got.remove(&into);
            }
            Step::Reserve => reserves = true,
            Step::Offer => acts.push(Act::Offer),
            Step::Expect { from } => acts.push(Act::Expect { from }),
            Step::Taken => takes = true,
        }
    }
    let where_it_lies = |area: Option<Area>| {
        let area = area.filter(|&area| !in_data(area))?;
        Some(got.get(&area).copied().unwrap_or_else(|| own(area)))
    };
    Plan {
        kind,
        acts: acts.into(),
        segment_bytes: schedule.segments.segment_bytes(),
        contribution: schedule.contribution.filter(|&area| !in_data(area)).map(own),
        result: where_it_lies(schedule.result),
        mark,
        eager: schedule.eager,
        reserves,
        takes,
        readers: schedule.readers.clone().into(),
        number,
    }
}
