//! Pass "rooms": a child's memory divided among the parameters of a nest of loops, as its formula says.
//!
//! The walk that decides residency gives addresses as it goes, so blocks of several sizes come to lie between each other: a
//! panel fetched into the place of a tile that just left takes more than one of its blocks, and what is free lies in pieces
//! for as long as the tile stays. Where memory is as tight as that, each parameter gets a room of its own, with so many slots
//! of one size as the formula keeps blocks of it ([`crate::estimate`]); what is left over is for fetching ahead. In a room
//! nothing lies in pieces, and what one parameter fetches ahead never makes blocks of another leave.

use crate::dependence::Dependence;
use crate::estimate::{Kept, Loop, Nest};
use crate::facts::EdgeFacts;
use crate::scope::{Scope, Split};
use multigrain_program::{Call, Tunables};
use smallvec::SmallVec;

/// For the blocks of each parameter so many slots of one size.
#[derive(Clone, Debug)]
pub(crate) struct Rooms {
    /// For each block, its room.
    pub(crate) of_block: Vec<u8>,
    /// For each room: bytes of a slot, and how many there are.
    pub(crate) slots: SmallVec<[(u64, u64); 6]>,
}

/// What the formula keeps of the blocks of a scope that is one call, split by these tunables.
pub(crate) fn kept(facts: &EdgeFacts<'_>, scope: &Scope, tunables: &Tunables) -> Option<Kept> {
    let [call] = &scope.calls[..] else { return None };
    let (task, shape) = (&scope.tasks[call.task as usize], call.shape());
    let nest = Nest::of(facts, task, &shape).filter(|_| facts.stages())?;
    let specs = task.tunables(&shape);
    let one = |(name, length)| Some((specs.iter().position(|spec| spec.name == name)?, length));
    let loops: SmallVec<[Loop; 6]> = tunables.iter().filter_map(one).collect();
    nest.kept(&loops)
}

/// The rooms of a split, whose calls are those of one call; `None` where what is kept does not fit beside each other.
pub(crate) fn rooms(
    facts: &EdgeFacts<'_>,
    split: &Split,
    dependence: &Dependence,
    bytes: impl Fn(usize) -> u64,
    kept: &Kept,
    capacity_bytes: u64,
    ahead: u64,
) -> Option<Rooms> {
    let count = kept.blocks.len();
    // Others than the blocks of the parameters, contributions to a reduction, are not in the formula.
    let arrays = |call: &Call| call.args.iter().map(|arg| arg.array).collect::<SmallVec<[u32; 6]>>();
    let first = arrays(split.calls.first()?);
    if first.len() != count || split.calls.iter().any(|call| arrays(call) != first) {
        return None;
    }
    let mut rooms = Rooms { of_block: vec![u8::MAX; dependence.blocks.len()], slots: SmallVec::new() };
    let (mut slot_bytes, mut distinct): (SmallVec<[u64; 6]>, SmallVec<[u64; 6]>) =
        (SmallVec::from_elem(0, count), SmallVec::from_elem(0, count));
    for uses in &dependence.uses {
        for (parameter, used) in uses.iter().enumerate() {
            let (block, room) = (used.block as usize, &mut rooms.of_block[used.block as usize]);
            if *room == u8::MAX {
                *room = parameter as u8;
                slot_bytes[parameter] = slot_bytes[parameter].max(bytes(block));
                distinct[parameter] += 1;
            }
        }
    }
    let align = facts.align_bytes();
    rooms.slots = slot_bytes
        .iter()
        .zip(&kept.blocks)
        .zip(&distinct)
        .map(|((bytes, &(blocks, _)), &distinct)| (bytes.max(&1).next_multiple_of(align), blocks.min(distinct).max(1)))
        .collect();
    let mut left = capacity_bytes.checked_sub(rooms.slots.iter().map(|(bytes, count)| bytes * count).sum())?;
    let mut more = |at: usize, slots: &mut SmallVec<[(u64, u64); 6]>| {
        let (bytes, count) = &mut slots[at];
        let fits = *bytes <= left && *count < distinct[at];
        if fits {
            (left, *count) = (left - *bytes, *count + 1);
        }
        fits
    };
    // First what another block is needed of for nearly every call, then one of each as long as there is room.
    for _ in 0..ahead {
        for at in (0..count).filter(|&at| kept.blocks[at].1) {
            more(at, &mut rooms.slots);
        }
    }
    loop {
        let mut any = false;
        for at in 0..count {
            any |= more(at, &mut rooms.slots);
        }
        if !any {
            break;
        }
    }
    Some(rooms)
}
