//! What is left of a program after an interrupted run.
//!
//! The root edge's calls are numbered in sequential order. A journal says which stores were begun and which are
//! durable. A call is needed when something it writes is a result that is not durable in its final version, or is
//! read by a needed call and not durable in the version read. Because results do not depend on the plan, running just
//! the needed calls gives the very bytes that an undisturbed run gives.

use crate::dependence::{Dependence, Hazard, dependence};
use crate::scope::Split;
use multigrain_program::{ArrayDecl, Role};
use rustc_hash::{FxHashMap, FxHashSet};

/// An event of the journal: a store of a block to the root memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stored {
    /// Number of the call that wrote the block, in the whole program.
    pub call: u32,
    /// Which of its arguments.
    pub argument: u32,
    /// Whether the block is durable; otherwise its store had been begun, and what was there before is lost.
    pub durable: bool,
}

/// What an interrupted run has left behind.
#[derive(Clone, Copy, Debug)]
pub struct Rest<'a> {
    /// The events of its journal, in order.
    pub events: &'a [Stored],
    /// For each array, whether its file is still there. Scratch files are not.
    pub kept: &'a [bool],
}

/// Keeps the needed calls of `parts` and returns their numbers in the whole program; `None` when some needed call
/// would read what has been overwritten since, so that only starting over helps (nothing has been changed then).
pub(crate) fn remaining(parts: &mut Split, arrays: &[ArrayDecl], rest: &Rest<'_>) -> Option<Vec<u32>> {
    let needed = needed(parts, arrays, rest)?;
    let numbers: Vec<u32> = (0..parts.calls.len() as u32).filter(|&c| needed[c as usize]).collect();
    fn keep<T>(list: &mut Vec<T>, needed: &[bool]) {
        let mut flags = needed.iter();
        list.retain(|_| flags.next().is_some_and(|&n| n));
    }
    keep(&mut parts.calls, &needed);
    keep(&mut parts.class_of, &needed);
    Some(numbers)
}

/// The versions that are durable after the journal's events: writer and block.
fn durable_versions(dependence: &Dependence, rest: &Rest<'_>) -> (FxHashSet<(u32, u32)>, FxHashSet<u32>) {
    let (mut durable, mut begun) = (FxHashSet::default(), FxHashSet::default());
    for event in rest.events {
        let Some(used) = dependence.uses.get(event.call as usize).and_then(|u| u.get(event.argument as usize)) else {
            continue;
        };
        if !rest.kept[dependence.blocks[used.block as usize].array as usize] {
            continue;
        }
        if event.durable {
            durable.insert((event.call, used.block));
        } else {
            begun.insert(used.block);
            let mine = &dependence.blocks[used.block as usize];
            durable.retain(|&(_, other): &(u32, u32)| {
                let other = &dependence.blocks[other as usize];
                other.array != mine.array || !other.region.intersects(&mine.region)
            });
        }
    }
    (durable, begun)
}

fn needed(parts: &Split, arrays: &[ArrayDecl], rest: &Rest<'_>) -> Option<Vec<bool>> {
    let dependence = dependence(&parts.calls, &parts.tasks);
    let (durable, begun) = durable_versions(&dependence, rest);
    // The last writer of each block. Blocks that later, larger writes cover count as well: that only repeats work.
    let mut last_writer: FxHashMap<u32, u32> = FxHashMap::default();
    for (call, uses) in dependence.uses.iter().enumerate() {
        for used in uses.iter().filter(|u| u.access.writes()) {
            last_writer.insert(used.block, call as u32);
        }
    }
    let mut needed = vec![false; parts.calls.len()];
    for (&block, &call) in &last_writer {
        let role = arrays[dependence.blocks[block as usize].array as usize].role;
        if matches!(role, Role::Output | Role::InOut) && !durable.contains(&(call, block)) {
            needed[call as usize] = true;
        }
    }
    for call in (0..needed.len()).rev() {
        for p in &dependence.predecessors[call] {
            if needed[call] && p.hazard == Hazard::ReadAfterWrite && !durable.contains(&(p.call, p.block)) {
                needed[p.call as usize] = true;
            }
        }
    }
    let intact = (0..needed.len())
        .all(|call| !needed[call] || reads_are_intact(&dependence, arrays, call, &durable, &begun, &needed));
    intact.then_some(needed)
}

/// Whether what a needed call reads from the root memory is still there: nothing that is written later in the program
/// has been stored over it.
fn reads_are_intact(
    dependence: &Dependence,
    arrays: &[ArrayDecl],
    call: usize,
    durable: &FxHashSet<(u32, u32)>,
    begun: &FxHashSet<u32>,
    needed: &[bool],
) -> bool {
    dependence.uses[call].iter().filter(|u| u.access.reads()).all(|used| {
        let mine = &dependence.blocks[used.block as usize];
        if arrays[mine.array as usize].role == Role::Input {
            return true;
        }
        let overlaps = |block: u32| {
            let other = &dependence.blocks[block as usize];
            other.array == mine.array && other.region.intersects(&mine.region)
        };
        let sources: Vec<_> = dependence.predecessors[call]
            .iter()
            .filter(|p| p.mine == used.block && p.hazard == Hazard::ReadAfterWrite)
            .collect();
        // Produced again as a whole by a call that runs again: nothing is read from before.
        if sources.iter().any(|p| needed[p.call as usize] && p.block == used.block) {
            return true;
        }
        let newer = durable.iter().any(|&(writer, block)| writer as usize >= call && overlaps(block));
        let covered = sources.iter().any(|p| p.block == used.block);
        let initial_lost =
            !covered && begun.iter().any(|&block| overlaps(block) && !sources.iter().any(|p| p.block == block));
        !newer && !initial_lost
    })
}
