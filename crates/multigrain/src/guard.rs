//! Which stores must have their beginning made durable before they are written. `docs/resume.md` of this crate names the
//! race (*lost begin*): a write that reaches the disk while the record of its beginning does not.
//!
//! That is harmless where nobody would believe what stood there before. It is not where the journal says that a block is
//! durable, or where initial content is still there that a call may read. A flush of the disk costs milliseconds, so it
//! is asked for there and nowhere else: of the second pass over an array in one file, only the first store needs one,
//! because its beginning ends the durability of all blocks of the first pass that it crosses. Where an array lies in two
//! files, each counts as an array of its own.

use crate::blocks::{Blocks, written};
use crate::sides::Sides;
use multigrain_plan::{Stored, without};
use multigrain_program::{Arg, Args, ArrayDecl, Call, DynTask, Region, Role};
use std::sync::Arc;

/// Beyond this many pieces of a block that is only covered in parts, the search is given up, and the careful answer is
/// taken.
const PIECES_MAX: usize = 1 << 12;

/// What the journal of a run says of the blocks of its results.
pub(crate) struct Guard {
    /// The blocks of every call, in the files that are written ([`Sides::lies`]).
    calls: Vec<Args>,
    /// Blocks that the journal says are durable.
    durable: Blocks,
    /// For each file, whether some call reads the initial content that lies there.
    initial: Vec<bool>,
    /// Blocks of those arrays whose beginning is durable: there is no initial content left that would be believed.
    begun: Blocks,
    /// Blocks that were written and wait to be recorded.
    waiting: Blocks,
    /// Where other ranks store too: all blocks, and of each the first call that writes it.
    others: Option<(Blocks, Vec<u32>)>,
}

impl Guard {
    /// For a run of these calls, of which nothing has been done.
    pub(crate) fn new(arrays: &[ArrayDecl], tasks: &[Arc<dyn DynTask>], calls: &[Call], sides: &Sides) -> Guard {
        let initial = reads_initial(arrays, tasks, calls);
        let lies = |second: bool| (0..arrays.len()).map(move |i| sides.initial_in_second(i) == second);
        let initial = lies(false).chain(lies(true)).zip(initial.iter().chain(&initial)).map(|(lies, &i)| lies && i);
        let initial: Vec<bool> = initial.collect();
        let mut calls = calls.to_vec();
        for (call, number) in calls.iter_mut().zip(0..) {
            for (arg, argument) in call.args.iter_mut().zip(0..) {
                *arg = sides.lies(number, argument, arg, arrays.len());
            }
        }
        let durable = Blocks::new(written(tasks, &calls));
        let (begun, waiting) = (durable.another(), durable.another());
        let calls = calls.into_iter().map(|call| call.args).collect();
        Guard { calls, durable, initial, begun, waiting, others: None }
    }

    /// Where other ranks store too, and nobody knows what they have recorded.
    pub(crate) fn among_ranks(mut self, tasks: &[Arc<dyn DynTask>], calls: &[Call]) -> Guard {
        let writes = |(call, args): (&Call, &Args), number: u32| {
            let uses = args.iter().zip(tasks[call.task as usize].params());
            uses.filter(|(_, param)| param.access.writes()).map(|(arg, _)| (*arg, number)).collect::<Vec<_>>()
        };
        let written: Vec<(Arg, u32)> =
            calls.iter().zip(&self.calls).zip(0..).flat_map(|(call, number)| writes(call, number)).collect();
        let mut all = Blocks::new(written.iter().map(|(block, _)| *block));
        let mut first = vec![u32::MAX; all.len()];
        for (block, call) in &written {
            if let Some(number) = all.number(block) {
                all.set(number, true);
                first[number as usize] = first[number as usize].min(*call);
            }
        }
        self.others = Some((all, first));
        self
    }

    /// Whether another rank may have recorded what this call is about to overwrite: an earlier call writes there.
    pub(crate) fn may_end_others(&self, call: u32, block: &Arg) -> bool {
        let Some((all, first)) = &self.others else { return false };
        all.marked_around(block).iter().any(|&other| first[other as usize] < call)
    }

    /// Takes over what the journal of an interrupted run says.
    pub(crate) fn after(mut self, events: &[Stored]) -> Guard {
        for event in events {
            let Some(block) = self.block(event.call, event.argument) else { continue };
            match event.durable {
                true => self.recorded(&block),
                false => {
                    self.begin(&block);
                }
            }
        }
        self
    }

    /// The block that a call writes.
    pub(crate) fn block(&self, call: u32, argument: u32) -> Option<Arg> {
        self.calls.get(call as usize)?.get(argument as usize).copied()
    }

    /// A block is about to be written: whether the record of that must be durable first. It is taken to be.
    pub(crate) fn begin(&mut self, block: &Arg) -> bool {
        let overwritten = self.durable.marked_around(block);
        overwritten.iter().for_each(|&other| self.durable.set(other, false));
        let initial = self.initial.get(block.array as usize).copied().unwrap_or(true);
        let intact = initial && !covered(block, &self.begun);
        if intact && let Some(number) = self.begun.number(block) {
            self.begun.set(number, true);
        }
        !overwritten.is_empty() || intact
    }

    /// A block was written and waits to be recorded.
    pub(crate) fn waits(&mut self, block: &Arg) {
        if let Some(number) = self.waiting.number(block) {
            self.waiting.set(number, true);
        }
    }

    /// Whether blocks that wait to be recorded are overwritten with this one. They wait no longer.
    pub(crate) fn ends_waiting(&mut self, block: &Arg) -> bool {
        let overwritten = self.waiting.marked_around(block);
        overwritten.iter().for_each(|&other| self.waiting.set(other, false));
        !overwritten.is_empty()
    }

    /// The journal says that a block is durable.
    pub(crate) fn recorded(&mut self, block: &Arg) {
        for (set, marked) in [(&mut self.waiting, false), (&mut self.durable, true)] {
            if let Some(number) = set.number(block) {
                set.set(number, marked);
            }
        }
    }
}

/// Whether every element of a block lies in a marked one. When finding out takes long: no.
fn covered(block: &Arg, others: &Blocks) -> bool {
    let mut pieces: Vec<Region> = vec![block.region];
    for other in others.marked_around(block) {
        pieces = pieces.iter().flat_map(|piece| without(piece, &others.block(other).region)).collect();
        if pieces.is_empty() {
            return true;
        }
        if pieces.len() > PIECES_MAX {
            return false;
        }
    }
    false
}

/// For each array, whether some call reads what no call before it has written.
fn reads_initial(arrays: &[ArrayDecl], tasks: &[Arc<dyn DynTask>], calls: &[Call]) -> Vec<bool> {
    let mut reads: Vec<bool> = arrays.iter().map(|a| a.role == Role::InOut).collect();
    let mut before = Blocks::new(written(tasks, calls));
    for call in calls {
        let uses = || call.args.iter().zip(tasks[call.task as usize].params());
        for (arg, _) in uses().filter(|(_, param)| param.access.reads()) {
            let array = arg.array as usize;
            if arrays[array].role != Role::Input && !reads[array] {
                let same = before.number(arg).is_some_and(|number| before.is_marked(number));
                reads[array] = !same && !covered(arg, &before);
            }
        }
        for (arg, _) in uses().filter(|(_, param)| param.access.writes()) {
            if let Some(number) = before.number(arg) {
                before.set(number, true);
            }
        }
    }
    reads
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use multigrain_program::{
        CallShape, LeafContext, Program, Read, Scalars, SubCall, Task, Tunable, Tunables, Update, View, ViewMut, Work,
        Write,
    };

    /// Makes a block of another.
    struct Make;
    /// Changes a block.
    struct Change;

    macro_rules! task {
        ($task:ident, $params:ty, $views:ty, $names:expr) => {
            impl Task for $task {
                type Params = $params;
                fn name(&self) -> &'static str {
                    stringify!($task)
                }
                fn param_names(&self) -> &'static [&'static str] {
                    $names
                }
                fn tunables(&self, _: &CallShape) -> Vec<Tunable> {
                    Vec::new()
                }
                fn split(&self, call: &CallShape, _: &Tunables) -> Vec<SubCall> {
                    let all = call.shapes.iter().map(|shape| Region::whole(*shape)).enumerate();
                    vec![SubCall::itself(all, &call.scalars)]
                }
                fn leaf(&self, _: $views, _: &mut LeafContext<'_>) {}
                fn work(&self, _: &CallShape) -> Work {
                    Work::default()
                }
            }
        };
    }
    task!(Make, (Read<f32, 2>, Write<f32, 2>), (View<'_, f32, 2>, ViewMut<'_, f32, 2>), &["from", "to"]);
    task!(Change, (Update<f32, 2>,), (ViewMut<'_, f32, 2>,), &["data"]);

    fn guard(program: &Program) -> Guard {
        Guard::new(program.arrays(), program.tasks(), program.calls(), &Sides::default())
    }

    fn begin(guard: &mut Guard, call: u32, argument: u32) -> bool {
        let block = guard.block(call, argument).unwrap();
        guard.begin(&block)
    }

    fn recorded(guard: &mut Guard, call: u32, argument: u32) {
        let block = guard.block(call, argument).unwrap();
        guard.recorded(&block);
    }

    /// Rows of `out` are made, then its columns are changed: two passes over a result.
    pub(crate) fn two_passes(rows: u64) -> Program {
        let mut program = Program::new();
        let (make, change) = (program.task(Make), program.task(Change));
        let from = program.array::<f32, 2>("in", [4, 4], Role::Input).unwrap();
        let to = program.array::<f32, 2>("out", [4, 4], Role::Output).unwrap();
        for row in 0..rows {
            let (first, second) = (from.block([row, 0], [1, 4]), to.block([row, 0], [1, 4]));
            program.call(make, (first, second), Scalars::new()).unwrap();
        }
        for column in 0..4 {
            program.call(change, (to.block([0, column], [4, 1]),), Scalars::new()).unwrap();
        }
        program
    }

    #[test]
    fn of_the_second_pass_only_the_first_store_has_to_wait() {
        let mut guard = guard(&two_passes(4));
        for row in 0..4 {
            assert!(!begin(&mut guard, row, 1), "nothing is believed of row {row} before it is written");
        }
        (0..4).for_each(|row| recorded(&mut guard, row, 1));
        assert!(begin(&mut guard, 4, 0), "the journal says that all rows are durable, which this store ends");
        for column in 5..8 {
            assert!(!begin(&mut guard, column, 0), "no row is believed any more");
        }
        recorded(&mut guard, 5, 0);
        assert!(!begin(&mut guard, 6, 0), "another column is not overwritten");
        assert!(begin(&mut guard, 5, 0), "the same is");
    }

    #[test]
    fn of_a_second_pass_into_another_file_no_store_has_to_wait() {
        let program = two_passes(4);
        let (arrays, tasks, calls) = (program.arrays(), program.tasks(), program.calls());
        let mut guard = Guard::new(arrays, tasks, calls, &Sides::of(arrays, tasks, calls, &[1]));
        for row in 0..4 {
            assert!(!begin(&mut guard, row, 1));
            recorded(&mut guard, row, 1);
        }
        assert!((4..8).all(|column| !begin(&mut guard, column, 0)), "rows stay where they are");
        recorded(&mut guard, 5, 0);
        assert!(begin(&mut guard, 5, 0));
        assert!(begin(&mut guard, 2, 1), "a row that is made again is overwritten");
    }

    #[test]
    fn zeros_that_are_read_are_content_too() {
        // The last row is never made: columns read it as it was.
        let mut guard = guard(&two_passes(3));
        assert!(begin(&mut guard, 0, 1));
        assert!(!begin(&mut guard, 0, 1), "once it is known that the row was begun, its zeros are not believed");
        assert!(begin(&mut guard, 3, 0), "the last row is still as it was");
    }

    #[test]
    fn what_a_journal_says_counts_as_if_this_run_had_done_it() {
        let event = |call, durable| Stored { call, argument: u32::from(call < 4), durable };
        let events = [event(0, false), event(0, true), event(1, false), event(1, true), event(4, false)];
        let mut rows = guard(&two_passes(4)).after(&events[..4]);
        assert!(begin(&mut rows, 5, 0), "rows are durable");
        let mut columns = guard(&two_passes(4)).after(&events);
        assert!(!begin(&mut columns, 5, 0), "they have been overwritten");
    }

    #[test]
    fn an_array_that_is_updated_in_place_is_guarded_until_all_of_it_was_begun() {
        let mut program = Program::new();
        let change = program.task(Change);
        let data = program.array::<f32, 2>("data", [4, 4], Role::InOut).unwrap();
        for row in 0..4 {
            program.call(change, (data.block([row, 0], [1, 4]),), Scalars::new()).unwrap();
        }
        program.call(change, (data.block([0, 1], [4, 2]),), Scalars::new()).unwrap();
        let mut guard = guard(&program);
        assert!((0..3).all(|row| begin(&mut guard, row, 0)));
        assert!(begin(&mut guard, 3, 0));
        assert!(!begin(&mut guard, 4, 0), "nothing is left of the initial content, and no row is recorded");
    }
}
