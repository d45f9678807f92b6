//! Collective operations: scripts, executed by messages.

use crate::choice::{Choice, Way};
use crate::comm::Flight;
use crate::prepared::{Act, Extent, Leg, Memory, Prepared};
use crate::{Comm, MpiError};
use multigrain_schedule::Topology;
use multigrain_schedule::message::{Operation, Payload};
use multigrain_team::collective::{Element, Operator};
use std::rc::Rc;

/// Collective operations of the ranks of a group. Everybody calls the same ones in the same order, on as many elements.
///
/// Reductions combine by the canonical tree over ranks ([`multigrain_schedule::Span`]), or, where the operator's laws allow
/// it, in any order: so results are the same whichever algorithm is taken, here and between threads.
pub struct Collectives<'mpi> {
    comm: Comm<'mpi>,
    topology: Topology,
    choice: Choice,
    /// What was prepared, the last used at the end.
    known: Vec<(Asked, Rc<Chosen>)>,
    scratch: Vec<u64>,
    packed: Vec<u64>,
    flights: Vec<Flight>,
}

/// What is prepared once.
#[derive(Clone, Copy, PartialEq)]
struct Asked {
    operation: Operation,
    elements: usize,
    element_bytes: usize,
    /// MPI's own operation would give the same bits.
    mpi: bool,
}

struct Chosen {
    way: Way,
    reason: String,
    prepared: Option<Prepared>,
}

/// So many operations and sizes are kept.
const KNOWN_MAX: usize = 256;

impl<'mpi> Collectives<'mpi> {
    /// Operations among the ranks of a communicator, which live as the topology says. Collective; the choice is the same
    /// for all.
    ///
    /// # Errors
    /// The topology is of another number of ranks, or what MPI refuses.
    pub fn new(comm: &Comm<'mpi>, topology: Topology, choice: Choice) -> Result<Collectives<'mpi>, MpiError> {
        if topology.size() != comm.size() {
            let what = format!("the topology {topology} is of {} ranks", topology.size());
            return Err(MpiError::Elements { operation: "a group", ranks: comm.size(), what });
        }
        let comm = comm.again()?;
        let (known, scratch, packed, flights) = Default::default();
        Ok(Collectives { comm, topology, choice, known, scratch, packed, flights })
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.comm.rank()
    }

    /// How many ranks there are.
    pub fn size(&self) -> u32 {
        self.comm.size()
    }

    /// How an operation on so many elements is executed, and why.
    ///
    /// # Errors
    /// No such root.
    pub fn explain<T: Element>(&mut self, operation: Operation, elements: usize) -> Result<(Way, String), MpiError> {
        let chosen = self.chosen::<T>(operation, elements, true)?;
        Ok((chosen.way, chosen.reason.clone()))
    }

    /// Nobody leaves before everybody has entered.
    ///
    /// # Errors
    /// The ranks do not execute the same.
    pub fn barrier(&mut self) -> Result<(), MpiError> {
        let chosen = self.chosen::<u8>(Operation::Barrier, 0, true)?;
        match &chosen.prepared {
            None => self.comm.barrier(),
            Some(prepared) => self.follow::<u8>(prepared, &mut [], None, |_, _, _, _| {}),
        }
    }

    /// The root's elements reach everybody.
    ///
    /// # Errors
    /// No such root, or the ranks do not execute the same.
    pub fn broadcast<T: Element>(&mut self, root: u32, elements: &mut [T]) -> Result<(), MpiError> {
        let chosen = self.chosen::<T>(Operation::Broadcast { root }, elements.len(), true)?;
        match &chosen.prepared {
            None => self.comm.broadcast(root, elements),
            Some(prepared) => self.follow(prepared, elements, None, |_, _, _, _| {}),
        }
    }

    /// Everybody's elements, combined one by one, reach the root; what lies in `into` of the others is undefined, but
    /// elements.
    ///
    /// # Errors
    /// No such root, slices of different lengths, or the ranks do not execute the same.
    pub fn reduce<T: Element>(
        &mut self,
        root: u32,
        from: &[T],
        into: &mut [T],
        operator: &impl Operator<T>,
    ) -> Result<(), MpiError> {
        self.comm.alike("reduce", from, into)?;
        let chosen = self.chosen::<T>(Operation::Reduce { root, order: operator.order() }, from.len(), false)?;
        self.combine(&chosen, from, into, operator)
    }

    /// Everybody's elements, combined one by one, reach everybody.
    ///
    /// # Errors
    /// Slices of different lengths, or the ranks do not execute the same.
    pub fn allreduce<T: Element>(
        &mut self,
        from: &[T],
        into: &mut [T],
        operator: &impl Operator<T>,
    ) -> Result<(), MpiError> {
        self.comm.alike("allreduce", from, into)?;
        let same = T::NAME == "u64" && operator.name() == "sum";
        let chosen = self.chosen::<T>(Operation::Allreduce { order: operator.order() }, from.len(), same)?;
        match chosen.prepared {
            None => self.comm.sum(from, into),
            Some(_) => self.combine(&chosen, from, into, operator),
        }
    }

    fn combine<T: Element>(
        &mut self,
        chosen: &Chosen,
        from: &[T],
        into: &mut [T],
        operator: &impl Operator<T>,
    ) -> Result<(), MpiError> {
        let Some(prepared) = &chosen.prepared else { return Ok(()) };
        self.follow(prepared, into, Some(from), |into, left, right, count| {
            for i in 0..count {
                // SAFETY: `follow` gives places of so many elements, which nobody else uses.
                unsafe { into.add(i).write(operator.combine(left.add(i).read(), right.add(i).read())) };
            }
        })
    }

    /// Each rank's part, as many elements of everybody, is in its place; all parts reach everybody.
    ///
    /// # Errors
    /// Elements that are not as many for each, or the ranks do not execute the same.
    pub fn allgather<T: Element>(&mut self, elements: &mut [T]) -> Result<(), MpiError> {
        self.comm.dealt("all-gather", elements.len())?;
        let chosen = self.chosen::<T>(Operation::Allgather, elements.len(), true)?;
        match &chosen.prepared {
            None => self.comm.allgather(elements),
            Some(prepared) => self.follow(prepared, elements, None, |_, _, _, _| {}),
        }
    }

    /// Part d of rank r becomes part r of rank d.
    ///
    /// # Errors
    /// As [`Collectives::allgather`], or slices of different lengths.
    pub fn alltoall<T: Element>(&mut self, from: &[T], into: &mut [T]) -> Result<(), MpiError> {
        self.comm.alike("all-to-all", from, into)?;
        self.comm.dealt("all-to-all", from.len())?;
        let chosen = self.chosen::<T>(Operation::Alltoall, from.len(), true)?;
        match &chosen.prepared {
            None => self.comm.alltoall(from, into),
            Some(prepared) => self.follow(prepared, into, Some(from), |_, _, _, _| {}),
        }
    }

    fn chosen<T: Element>(&mut self, operation: Operation, elements: usize, mpi: bool) -> Result<Rc<Chosen>, MpiError> {
        let asked = Asked { operation, elements, element_bytes: size_of::<T>(), mpi };
        if let Some(at) = self.known.iter().rposition(|(known, _)| *known == asked) {
            let last = self.known.len() - 1;
            self.known.swap(at, last);
            return Ok(self.known[last].1.clone());
        }
        let payload = Payload { elements: elements as u64, element_bytes: size_of::<T>() as u64 };
        let (way, reason) = self.choice.way(operation, &self.topology, payload, mpi)?;
        let prepared = match way {
            Way::Mpi => None,
            Way::Script(algorithm) => Some(Prepared::new(operation, algorithm, &self.topology, self.rank(), elements)?),
        };
        let chosen = Rc::new(Chosen { way, reason, prepared });
        if self.known.len() == KNOWN_MAX {
            self.known.remove(0);
        }
        self.known.push((asked, chosen.clone()));
        Ok(chosen)
    }

    /// Follows a script. In place: `into` alone. Else `from` is what the rank contributes and `into` what it receives.
    fn follow<T: Element>(
        &mut self,
        prepared: &Prepared,
        into: &mut [T],
        from: Option<&[T]>,
        combine: impl Fn(*mut T, *const T, *const T, usize),
    ) -> Result<(), MpiError> {
        let words = |elements: usize| (elements * size_of::<T>()).div_ceil(8);
        grow(&mut self.scratch, words(prepared.scratch_elements));
        grow(&mut self.packed, words(prepared.packed_elements));
        let second = into.as_mut_ptr();
        // What was contributed is never written unless the operation happens in it: scripts are well formed.
        let first = from.map_or(second, |from| from.as_ptr().cast_mut());
        let (scratch, packed) = (self.scratch.as_mut_ptr().cast::<T>(), self.packed.as_mut_ptr().cast::<T>());
        let at = |extent: Extent| {
            let base = match extent.memory {
                Memory::First => first,
                Memory::Second => second,
                Memory::Scratch => scratch,
            };
            // SAFETY: extents lie in areas, as was checked when the script was prepared; the first two are of the slices'
            // length, and the scratch memory was just seen to be long enough.
            unsafe { base.add(extent.start) }
        };
        // SAFETY: as above, for the packing buffer.
        let packed_at = |start: usize| unsafe { packed.add(start) };
        for round in &prepared.rounds {
            self.flights.clear();
            for Leg { sends, with, extents, packed } in &round.legs {
                let (data, len) = match (&**extents, packed) {
                    ([], _) => (second, 0),
                    ([one], _) => (at(*one), one.end - one.start),
                    (several, Some(range)) => {
                        let mut place = range.start;
                        for extent in several.iter().filter(|_| *sends) {
                            let count = extent.end - extent.start;
                            // SAFETY: so many elements at each; the packing buffer is nobody's slice.
                            unsafe { std::ptr::copy_nonoverlapping(at(*extent), packed_at(place), count) };
                            place += count;
                        }
                        (packed_at(range.start), range.len())
                    }
                    (_, None) => unreachable!("a message of several extents is packed"),
                };
                let bytes = len * size_of::<T>();
                self.flights.push(Flight { sends: *sends, with: *with, data: data.cast(), bytes });
            }
            if !self.flights.is_empty() {
                // SAFETY: places as above. That no two messages of a round touch the same elements, but to read them, was
                // checked when the script was prepared; the slices are borrowed until this returns. Elements may have
                // any bits.
                unsafe { self.comm.fly(&self.flights)? };
            }
            for Leg { sends, extents, packed, .. } in &round.legs {
                let Some(range) = packed.as_ref().filter(|_| !sends) else { continue };
                let mut place = range.start;
                for extent in extents {
                    let count = extent.end - extent.start;
                    // SAFETY: as for packing.
                    unsafe { std::ptr::copy_nonoverlapping(packed_at(place), at(*extent), count) };
                    place += count;
                }
            }
            for act in &round.acts {
                match *act {
                    Act::Combine { into, left, right } => {
                        combine(at(into), at(left), at(right), into.end - into.start);
                    }
                    // SAFETY: places as above, apart from each other, as was checked.
                    Act::Copy { into, from } => unsafe {
                        std::ptr::copy_nonoverlapping(at(from), at(into), into.end - into.start);
                    },
                }
            }
        }
        Ok(())
    }
}

fn grow(memory: &mut Vec<u64>, words: usize) {
    if memory.len() < words {
        memory.resize(words, 0);
    }
}
