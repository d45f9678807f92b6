//! A sequence of schedules as one list of actions for each participant, on numbered areas and bits.

use super::value::{Value, Values};
use super::{Fault, Wrong};
use crate::order::Span;
use crate::{Area, Bit, Copies, Operation, Order, Ring, Schedules, Step};
use std::collections::HashMap;

/// How whoever executes the steps moves bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfers {
    /// Started by put and get, going on by themselves until waited for: DMA engines, networks.
    Asynchronous,
    /// Shared memory: a put copies at once, and a combination reads what was got where it lies, at its owner's.
    InPlace,
}

/// An area of a participant, of the even or odd rounds where these differ.
pub(super) type Place = u32;

/// A bit of a participant.
pub(super) type Slot = u32;

/// A count that one participant raises and others wait for.
pub(super) type Count = u32;

/// One more than the last eager round in which a participant offered.
fn offered(rank: u32) -> Count {
    2 * rank
}

/// How many eager rounds a participant has told to be taken.
fn taken(rank: u32) -> Count {
    2 * rank + 1
}

/// A transfer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) other: u32,
    pub(super) source: Place,
    pub(super) target: Place,
}

/// What a participant does next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// Waits until a count is at least so large.
    Reach {
        count: Count,
        least: u32,
    },
    /// Raises a count of one's own.
    Raise {
        count: Count,
        to: u32,
    },
    /// Enters a round; its contribution then lies in the place.
    Enter(Option<Place>),
    Signal {
        to: u32,
        slot: Slot,
    },
    Await {
        from: u32,
        slot: Slot,
    },
    /// Starts a transfer.
    Start(Move),
    /// Copies.
    Copy(Move),
    Flush,
    Combine {
        into: Place,
        left: Place,
        right: Place,
    },
    /// Waits for the transfers with a participant.
    Complete {
        with: u32,
    },
    /// Leaves a round; the result then lies in the place.
    Leave(Option<Place>),
}

/// How a place of a ring was used last.
#[derive(Clone, Debug)]
struct Used {
    /// In which eager round.
    round: u32,
    /// Who expected what was offered.
    readers: Vec<u32>,
}

/// What a round has to leave. Contributions are numbered as rounds are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Leaves {
    Nothing,
    /// What a participant contributed.
    Contribution {
        round: u32,
        rank: u32,
    },
    /// All contributions, combined.
    Combined {
        round: u32,
        order: Order,
    },
}

/// A sequence of operations as a group executes it.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) n: u32,
    /// For each rank its actions with the round and the step that each belongs to.
    pub(super) actions: Vec<Vec<(u32, u32, Action)>>,
    /// For each round what its result has to be, and whether nobody leaves it before everybody has entered.
    pub(super) rounds: Vec<(Leaves, bool)>,
    /// How many rounds of them synchronise, and how many are eager.
    synchronising: u32,
    eager: u32,
    /// For each rank and place of its ring the last eager round that used it, and who expected something from it.
    used: Vec<Vec<Option<Used>>>,
    /// For each place whose it is.
    pub(super) owners: Vec<u32>,
    /// For each slot whose register it lies in.
    pub(super) receivers: Vec<u32>,
}

impl Program {
    pub(super) fn empty(n: u32) -> Program {
        Program {
            n,
            actions: vec![Vec::new(); n as usize],
            rounds: Vec::new(),
            synchronising: 0,
            eager: 0,
            used: vec![Vec::new(); n as usize],
            owners: Vec::new(),
            receivers: Vec::new(),
        }
    }

    pub(super) fn new(sequence: &[Schedules], transfers: Transfers) -> Result<Program, Fault> {
        let n = sequence.first().map_or(0, |first| first.participants.len() as u32);
        let mut program = Program::empty(n);
        let mut names = Names { places: HashMap::new(), slots: HashMap::new() };
        for schedules in sequence {
            let round = program.rounds.len() as u32;
            let rounds = schedules.participants.first().map_or(0, |p| p.segments.rounds());
            let odd_one = schedules.participants.iter().position(|p| p.segments.rounds() != rounds);
            let rank = odd_one.or((schedules.participants.len() as u32 != n).then_some(0));
            if let Some(rank) = rank {
                return Err(Fault { rank: rank as u32, round, step: 0, what: Wrong::OtherRounds });
            }
            for _ in 0..rounds {
                program.push_round(schedules, transfers, &mut names);
            }
        }
        Ok(program)
    }

    fn push_round(&mut self, schedules: &Schedules, transfers: Transfers, names: &mut Names) {
        let round = self.rounds.len() as u32;
        let eager = schedules.participants.iter().any(|p| p.eager);
        let result = match schedules.request.operation {
            Operation::Barrier => Leaves::Nothing,
            Operation::Broadcast { root: rank, .. } => Leaves::Contribution { round, rank },
            Operation::Reduce { order, .. } | Operation::Allreduce { order, .. } => Leaves::Combined { round, order },
        };
        self.rounds.push((result, !eager));
        let ring = schedules.request.ring.max(1);
        let number = if eager { self.eager } else { self.synchronising };
        // Which of the copies that areas and bits have.
        let copy = if eager { number % ring } else { number % 2 };
        for (rank, schedule) in (0..self.n).zip(&schedules.participants) {
            let mut actions = Vec::new();
            let mut steps = schedule.steps.iter().zip(1..).peekable();
            if let Some((Step::Reserve, step)) = steps.peek() {
                if let Some(Some(Used { round: last, readers })) = self.used[rank as usize].get(copy as usize) {
                    let reach = |&reader| (round, *step, Action::Reach { count: taken(reader), least: last + 1 });
                    actions.extend(readers.iter().map(reach));
                }
                steps.next();
            }
            let entry = schedule.contribution.map(|area| names.place(&mut self.owners, rank, area, copy));
            actions.push((round, 0, Action::Enter(entry)));
            let mut tells = false;
            // In shared memory: where what was got really lies, while nothing was written over it.
            let mut aliases: HashMap<Area, Place> = HashMap::new();
            for (step, at) in steps {
                let mut place = |rank, area| names.place(&mut self.owners, rank, area, copy);
                let mut act = |action| actions.push((round, at, action));
                match *step {
                    // Only as the first step it comes before the contribution.
                    Step::Reserve => {}
                    Step::Offer => {
                        act(Action::Raise { count: offered(rank), to: number + 1 });
                        let places = &mut self.used[rank as usize];
                        places.resize(ring as usize, None);
                        places[copy as usize] = Some(Used { round: number, readers: schedule.readers.clone() });
                    }
                    Step::Expect { from } => act(Action::Reach { count: offered(from), least: number + 1 }),
                    Step::Taken => tells = true,
                    Step::Signal { to, bit } => {
                        act(Action::Signal { to, slot: names.slot(&mut self.receivers, to, bit, copy.into()) });
                    }
                    Step::Release { to, bit } => {
                        act(Action::Complete { with: to });
                        act(Action::Signal { to, slot: names.slot(&mut self.receivers, to, bit, copy.into()) });
                    }
                    Step::Await { from, bit } => {
                        act(Action::Await { from, slot: names.slot(&mut self.receivers, rank, bit, copy.into()) });
                    }
                    Step::Put { to, source, target } => {
                        let put = Move { other: to, source: place(rank, source), target: place(to, target) };
                        act(if transfers == Transfers::InPlace { Action::Copy(put) } else { Action::Start(put) });
                    }
                    Step::Get { from, source, target } => {
                        let (source, into) = (place(from, source), place(rank, target));
                        let get = Move { other: from, source, target: into };
                        match transfers {
                            Transfers::Asynchronous => act(Action::Start(get)),
                            Transfers::InPlace if schedule.reads_in_place(target) => {
                                aliases.insert(target, source);
                            }
                            Transfers::InPlace => act(Action::Copy(get)),
                        }
                    }
                    Step::Flush => act(Action::Flush),
                    Step::Combine { into, left, right } => {
                        let mut operand = |area| match aliases.get(&area) {
                            Some(&remote) => remote,
                            None => place(rank, area),
                        };
                        let (left, right) = (operand(left), operand(right));
                        aliases.remove(&into);
                        act(Action::Combine { into: place(rank, into), left, right });
                    }
                }
            }
            let exit = schedule.result.map(|area| match aliases.get(&area) {
                Some(&remote) => remote,
                None => names.place(&mut self.owners, rank, area, copy),
            });
            let end = schedule.steps.len() as u32 + 1;
            actions.push((round, end, Action::Leave(exit)));
            if tells && Ring(ring).tells(number.into()) {
                actions.push((round, end, Action::Raise { count: taken(rank), to: number + 1 }));
            }
            self.actions[rank as usize].extend(actions);
        }
        *(if eager { &mut self.eager } else { &mut self.synchronising }) += 1;
    }

    /// Whether nobody leaves a round before everybody has entered it.
    pub(super) fn synchronises(&self, round: u32) -> bool {
        self.rounds[round as usize].1
    }

    /// How many counts there are.
    pub(super) fn counts(&self) -> usize {
        2 * self.n as usize
    }

    /// Whether a value is the result of a round.
    pub(super) fn is_result(&self, values: &mut Values, round: u32, value: Value) -> bool {
        match self.rounds[round as usize].0 {
            Leaves::Nothing => true,
            Leaves::Contribution { round, rank } => value == values.contribution(round, rank),
            Leaves::Combined { round, order: Order::Fixed } => value == values.canonical(round, Span::whole(self.n)),
            Leaves::Combined { round, order: Order::Free(_) } => values.combines_each_once(value, round, self.n),
        }
    }
}

struct Names {
    places: HashMap<(u32, Area, u32), Place>,
    slots: HashMap<(u32, u32, bool), Slot>,
}

impl Names {
    fn place(&mut self, owners: &mut Vec<u32>, rank: u32, area: Area, copy: u32) -> Place {
        let copy = if area.copies == Copies::One { 0 } else { copy };
        *self.places.entry((rank, area, copy)).or_insert_with(|| {
            owners.push(rank);
            owners.len() as Place - 1
        })
    }

    fn slot(&mut self, receivers: &mut Vec<u32>, rank: u32, bit: Bit, round: u64) -> Slot {
        *self.slots.entry((rank, bit.index, bit.is_odd(round))).or_insert_with(|| {
            receivers.push(rank);
            receivers.len() as Slot - 1
        })
    }
}
