//! Pass "barriers": where every child waits for every other, all of them meet.
//!
//! A step of a simulation or a stage of a transform, of which each call depends on all of the step before, makes each child
//! give a signal and wait for those of all others: n (n - 1) waits for what one collective operation does in n log n
//! signals. Such a place becomes [`Op::Barrier`] in the steps of every child, which whoever executes the plan executes by the
//! schedule of a barrier.
//!
//! The order stays what it was. A barrier stands where the signal stood, only where nothing but waits (for siblings, or for
//! transfers of the child's own) lies between the signal and what it meets, and only if all children meet there: so nobody
//! waits for anything for which it would not have waited anyway.

use crate::plan::{ChildPlan, Op};
use std::collections::HashSet;

/// A place where a child gives a signal and waits for every other child.
struct Meeting {
    /// For each child, the signal that is waited for; for the child itself, the one that it gives.
    signals: Vec<u32>,
    /// Steps of the child: its signal, and one behind the last of the waits.
    steps: std::ops::Range<usize>,
}

/// Replaces signals and waits by barriers where they are barriers; gives how many.
pub(crate) fn barriers(children: &mut [ChildPlan]) -> usize {
    if children.len() < 2 {
        return 0;
    }
    let count = children.len();
    let meetings: Vec<Vec<Meeting>> =
        children.iter().enumerate().map(|(child, plan)| meetings(&plan.ops, child, count)).collect();
    // Signals of a child are numbered in the order of its steps, so meetings of all come in the same order for all.
    let [first, others @ ..] = &meetings[..] else { return 0 };
    let same = |meeting: &Meeting, (index, list): (usize, &Vec<Meeting>)| {
        let own = |other: &Meeting| other.signals[index + 1];
        let at = list.binary_search_by_key(&meeting.signals[index + 1], own).ok()?;
        (list[at].signals == meeting.signals).then_some(at)
    };
    let of_all = |(at, meeting): (usize, &Meeting)| -> Option<Vec<usize>> {
        let theirs = others.iter().enumerate().map(|other| same(meeting, other));
        std::iter::once(Some(at)).chain(theirs).collect()
    };
    let made: Vec<Vec<usize>> = first.iter().enumerate().filter_map(of_all).collect();
    if made.is_empty() {
        return 0;
    }
    for (child, plan) in children.iter_mut().enumerate() {
        let mut ops = Vec::with_capacity(plan.ops.len());
        let mut rest = &plan.ops[..];
        let mut done = 0;
        for meeting in made.iter().map(|at| &meetings[child][at[child]]) {
            let (before, from) = rest.split_at(meeting.steps.start - done);
            let (waits, after) = from.split_at(meeting.steps.len());
            ops.extend(before);
            // The signal may be waited for elsewhere; if not, it goes with the others that nobody waits for.
            ops.push(waits[0]);
            ops.push(Op::Barrier);
            ops.extend(waits[1..].iter().filter(|op| !matches!(op, Op::Wait { .. })));
            (rest, done) = (after, meeting.steps.end);
        }
        ops.extend(rest);
        plan.ops = ops;
    }
    drop_unawaited(children);
    made.len()
}

fn meetings(ops: &[Op], child: usize, children: usize) -> Vec<Meeting> {
    let mut found = Vec::new();
    let mut given = 0;
    let mut at = 0;
    while at < ops.len() {
        if !matches!(ops[at], Op::Signal) {
            at += 1;
            continue;
        }
        given += 1;
        let mut signals = vec![0; children];
        let (mut met, mut end) = (1, at + 1);
        signals[child] = given;
        for (step, op) in ops.iter().enumerate().skip(at + 1) {
            match *op {
                Op::Await { .. } => {}
                Op::Wait { child: other, signals: wanted } => {
                    let known = &mut signals[other as usize];
                    met += usize::from(*known == 0);
                    *known = wanted.max(*known);
                    end = step + 1;
                }
                _ => break,
            }
        }
        if met == children {
            found.push(Meeting { signals, steps: at..end });
        }
        at = end;
    }
    found
}

/// Removes signals that nobody waits for, and numbers the others anew.
fn drop_unawaited(children: &mut [ChildPlan]) {
    let awaited: HashSet<(u32, u32)> = children
        .iter()
        .flat_map(|child| &child.ops)
        .filter_map(|op| match *op {
            Op::Wait { child, signals } => Some((child, signals)),
            _ => None,
        })
        .collect();
    // For each child and each of its signals, how many are left up to it.
    let mut left: Vec<Vec<u32>> = Vec::with_capacity(children.len());
    for (child, plan) in children.iter_mut().enumerate() {
        let (mut given, mut kept) = (0, vec![0]);
        plan.ops.retain(|op| {
            if !matches!(op, Op::Signal) {
                return true;
            }
            given += 1;
            let keep = awaited.contains(&(child as u32, given));
            kept.push(kept[kept.len() - 1] + u32::from(keep));
            keep
        });
        left.push(kept);
    }
    for op in children.iter_mut().flat_map(|child| &mut child.ops) {
        if let Op::Wait { child, signals } = op {
            *signals = left[*child as usize].get(*signals as usize).copied().unwrap_or(*signals);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Places;

    fn run(call: u32) -> Op {
        Op::Run { call, places: Places::Views }
    }

    fn wait(child: u32, signals: u32) -> Op {
        Op::Wait { child, signals }
    }

    fn children<const N: usize>(ops: [Vec<Op>; N]) -> [ChildPlan; N] {
        ops.map(|ops| ChildPlan { ops, ..ChildPlan::default() })
    }

    #[test]
    fn everybody_waits_for_everybody() {
        let transfer = Op::Await { transfer: 0 };
        let mut plans = children([
            vec![run(0), Op::Signal, run(1), Op::Signal, wait(1, 1), wait(2, 1), run(4)],
            vec![run(2), Op::Signal, transfer, wait(0, 1), wait(0, 2), wait(2, 1), run(5)],
            vec![run(3), Op::Signal, wait(1, 1), wait(0, 2), transfer, run(6)],
        ]);
        assert_eq!(barriers(&mut plans), 1);
        assert_eq!(plans[0].ops, [run(0), run(1), Op::Barrier, run(4)]);
        assert_eq!(plans[1].ops, [run(2), Op::Barrier, transfer, run(5)]);
        assert_eq!(plans[2].ops, [run(3), Op::Barrier, transfer, run(6)]);
    }

    #[test]
    fn a_signal_that_others_wait_for_stays() {
        let mut plans = children([
            vec![run(0), Op::Signal, run(1), Op::Signal, wait(1, 1), run(3)],
            vec![wait(0, 1), run(2), Op::Signal, wait(0, 2), run(4), wait(0, 2)],
        ]);
        assert_eq!(barriers(&mut plans), 1);
        assert_eq!(plans[0].ops, [run(0), Op::Signal, run(1), Op::Signal, Op::Barrier, run(3)]);
        assert_eq!(plans[1].ops, [wait(0, 1), run(2), Op::Barrier, run(4), wait(0, 2)]);
    }

    #[test]
    fn what_is_no_barrier_stays() {
        // Work between the signal and the waits; a child that is not waited for; waits for different signals.
        let kept = [
            vec![
                vec![run(0), Op::Signal, run(1), wait(1, 1), run(3)],
                vec![run(2), Op::Signal, wait(0, 1), run(4)],
                vec![],
            ],
            vec![
                vec![run(0), Op::Signal, wait(1, 1), run(3)],
                vec![run(2), Op::Signal, wait(0, 1), run(4)],
                vec![run(5), Op::Signal, wait(0, 1), wait(1, 1), run(6)],
            ],
            vec![
                vec![run(0), Op::Signal, wait(1, 1), run(3), Op::Signal],
                vec![run(2), Op::Signal, wait(0, 2), run(4)],
            ],
        ];
        for ops in kept {
            let mut plans: Vec<ChildPlan> =
                ops.iter().map(|ops| ChildPlan { ops: ops.clone(), ..ChildPlan::default() }).collect();
            assert_eq!(barriers(&mut plans), 0);
            assert!(plans.iter().zip(&ops).all(|(plan, ops)| plan.ops == *ops));
        }
    }
}
