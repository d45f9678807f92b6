//! Executes calls on versions of elements, in the files in which they are to lie.

use super::*;
use crate::blocks::overlap;
use multigrain_machine::Machine;
use multigrain_plan::testing::{Combine, Rng, Scale, random_machine, random_mapping, random_program};
use multigrain_plan::{Mapping, PlanOptions, Planner};
use multigrain_program::{Program, Scalars};

/// Of every element, where its versions lie: the one that counts, and the one before.
#[derive(Clone, Copy, Default)]
struct Cell {
    version: u32,
    holds: [u32; 2],
}

/// Every cell of a block, as an index into its array.
fn cells(block: &Arg, array: &ArrayDecl) -> Vec<usize> {
    (0..block.region.elements()).map(|n| block.region.element(n, array.shape) as usize).collect()
}

/// Executes the calls on versions of elements in two files, and finds that each reads what it should.
fn executed(arrays: &[ArrayDecl], tasks: &[Arc<dyn DynTask>], calls: &[Call], sides: &Sides) -> Result<(), String> {
    use engine::Sides as _;
    let mut memory: Vec<Vec<Cell>> =
        arrays.iter().map(|a| vec![Cell::default(); a.shape.elements() as usize]).collect();
    let in_two = sides.arrays();
    for (array, cells) in memory.iter_mut().enumerate() {
        // What is not initial content is no version at all.
        let other = usize::from(!sides.initial_in_second(array));
        cells.iter_mut().for_each(|cell| cell.holds[other] = u32::MAX);
    }
    for (number, call) in calls.iter().enumerate() {
        let uses = || call.args.iter().zip(tasks[call.task as usize].params()).enumerate();
        for (argument, (arg, _)) in uses().filter(|(_, (_, param))| param.access.reads()) {
            let side = sides.reads(number as u32, argument as u32);
            for at in cells(arg, &arrays[arg.array as usize]) {
                let cell = memory[arg.array as usize][at];
                if cell.holds[side] != cell.version {
                    return Err(format!("call {number} reads element {at} of {} in file {side}", arg.array));
                }
            }
        }
        for (argument, (arg, param)) in uses().filter(|(_, (_, param))| param.access.writes()) {
            let (array, side) = (arg.array as usize, sides.writes(number as u32, argument as u32));
            for at in cells(arg, &arrays[array]) {
                let cell = &mut memory[array][at];
                let keeps = in_two.contains(&array) && (cell.version > 0 || param.access.reads());
                if keeps && cell.holds[side] == cell.version {
                    return Err(format!("call {number} overwrites element {at} of {array}"));
                }
                cell.version = number as u32 + 1;
                cell.holds[side] = cell.version;
            }
        }
    }
    for (array, cells) in memory.iter().enumerate().filter(|(i, _)| arrays[*i].role != Role::Temporary) {
        if let Some(at) = cells.iter().position(|cell| cell.holds[0] != cell.version) {
            return Err(format!("element {at} of {array} ends in the second file"));
        }
    }
    Ok(())
}

#[test]
fn every_call_reads_what_it_should_and_overwrites_nothing_that_counts() {
    let (mut in_two, mut tried) = (0, 0);
    for seed in 0..200 {
        let program = random_program(seed);
        let machine = random_machine(seed);
        let options = PlanOptions::default();
        let mapping = random_mapping(seed, &machine);
        let Ok(plan) = Planner::new(&machine, mapping, options).plan(&program) else {
            continue;
        };
        let written: Vec<usize> = (0..plan.arrays.len()).filter(|&i| plan.arrays[i].role != Role::Input).collect();
        let sides = Sides::of(&plan.arrays, &plan.tasks, &plan.calls, &written);
        executed(&plan.arrays, &plan.tasks, &plan.calls, &sides).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        tried += written.len();
        in_two += sides.arrays().len();
    }
    assert!(in_two * 2 > tried, "{in_two} of {tried} arrays in two files: the proof is too weak");
}

/// A run whose files hold versions of elements, that is killed and continued.
struct Killed<'a> {
    arrays: &'a [ArrayDecl],
    tasks: &'a [Arc<dyn DynTask>],
    calls: &'a [Call],
    sides: &'a Sides,
    /// For each element of each array its versions in both files: numbers of calls from 1 on, 0 for initial content.
    files: Vec<Vec<[u32; 2]>>,
    /// What each call is to find, for each of its arguments, by element.
    past: Vec<Vec<Vec<u32>>>,
    /// What is to be there in the end.
    last: Vec<Vec<u32>>,
    events: Vec<Stored>,
    /// Stores that are complete and not recorded.
    waiting: Vec<Stored>,
}

const JUNK: u32 = u32::MAX;

impl<'a> Killed<'a> {
    fn new(numbered: &'a Numbered, sides: &'a Sides) -> Killed<'a> {
        let (arrays, tasks, calls) = (numbered.arrays(), numbered.tasks(), numbered.calls());
        let elements = |array: &ArrayDecl| array.shape.elements() as usize;
        let mut last: Vec<Vec<u32>> = arrays.iter().map(|array| vec![0; elements(array)]).collect();
        let mut past = Vec::new();
        for (number, call) in (1..).zip(calls) {
            let found = |arg: &Arg| {
                cells(arg, &arrays[arg.array as usize]).iter().map(|&at| last[arg.array as usize][at]).collect()
            };
            past.push(call.args.iter().map(found).collect());
            for (arg, _) in call.args.iter().zip(tasks[call.task as usize].params()).filter(|(_, p)| p.access.writes())
            {
                cells(arg, &arrays[arg.array as usize]).iter().for_each(|&at| last[arg.array as usize][at] = number);
            }
        }
        let initial = |(number, array): (usize, &ArrayDecl)| {
            let mut holds = [JUNK; 2];
            holds[usize::from(sides.initial_in_second(number))] = 0;
            vec![holds; elements(array)]
        };
        let files = arrays.iter().enumerate().map(initial).collect();
        Killed { arrays, tasks, calls, sides, files, past, last, events: Vec::new(), waiting: Vec::new() }
    }

    fn write(&mut self, arg: &Arg, side: usize, version: u32) {
        let array = arg.array as usize;
        cells(arg, &self.arrays[array]).iter().for_each(|&at| self.files[array][at][side] = version);
    }

    fn lies(&self, event: &Stored) -> Arg {
        let block = &self.calls[event.call as usize].args[event.argument as usize];
        self.sides.lies(event.call, event.argument, block, self.arrays.len())
    }

    /// Whether two calls touch the same elements, and one writes them.
    fn conflict(&self, one: u32, other: u32) -> bool {
        let uses = |call: u32| {
            let call = &self.calls[call as usize];
            call.args
                .iter()
                .zip(self.tasks[call.task as usize].params())
                .map(|(arg, param)| (arg, param.access.writes()))
        };
        uses(one).any(|(a, writes)| uses(other).any(|(b, too)| (writes || too) && overlap(a, b)))
    }

    /// The calls that are left, in some order that keeps those in theirs that touch the same elements.
    fn order(&self, numbers: &[u32], rng: &mut Rng) -> Vec<u32> {
        let (mut left, mut order) = (numbers.to_vec(), Vec::new());
        while !left.is_empty() {
            // The first one may always go, and whoever conflicts with none before it.
            let wanted = rng.below(left.len() as u64) as usize;
            let goes = (0..=wanted).rev().find(|&at| left[..at].iter().all(|&before| !self.conflict(before, left[at])));
            order.push(left.remove(goes.unwrap_or(0)));
        }
        order
    }

    /// Goes on with what is left, until it is killed after so many steps. Says whether it came to the end.
    fn go_on(&mut self, numbered: &Numbered, mut steps: u64, rng: &mut Rng) -> Result<bool, String> {
        use engine::Sides as _;
        let left = left(numbered, self.sides, &self.events);
        self.events.extend_from_slice(&left.given_up);
        for block in &left.restore {
            self.write(block, usize::from(self.sides.initial_in_second(block.array as usize)), 0);
        }
        self.is_believed_rightly()?;
        for number in self.order(left.numbers(), rng) {
            let call = &self.calls[number as usize];
            let params = self.tasks[call.task as usize].params();
            for (argument, (arg, _)) in call.args.iter().zip(params).enumerate().filter(|(_, (_, p))| p.access.reads())
            {
                let side = self.sides.reads(number, argument as u32);
                let array = arg.array as usize;
                for (at, &expected) in
                    cells(arg, &self.arrays[array]).into_iter().zip(&self.past[number as usize][argument])
                {
                    let found = self.files[array][at][side];
                    if found != expected {
                        return Err(format!("call {number} finds {found} in element {at} of {array}, not {expected}"));
                    }
                }
            }
            for (argument, (arg, _)) in (0..).zip(call.args.iter().zip(params)).filter(|(_, (_, p))| p.access.writes())
            {
                let side = self.sides.writes(number, argument);
                let begun = Stored { call: number, argument, durable: false };
                let lies = self.lies(&begun);
                let waiting = std::mem::take(&mut self.waiting);
                self.waiting = waiting.into_iter().filter(|other| !overlap(&self.lies(other), &lies)).collect();
                self.events.push(begun);
                self.write(arg, side, JUNK);
                if steps == 0 {
                    return self.is_believed_rightly().map(|()| false);
                }
                steps -= 1;
                self.write(arg, side, number + 1);
                self.waiting.push(Stored { durable: true, ..begun });
                // Ranks record theirs when they come to it.
                let (recorded, waiting) =
                    std::mem::take(&mut self.waiting).into_iter().partition(|_| rng.below(3) == 0);
                self.waiting = waiting;
                self.events.extend::<Vec<Stored>>(recorded);
            }
        }
        Ok(true)
    }

    /// Whether all is there that the journal says is there.
    fn is_believed_rightly(&self) -> Result<(), String> {
        let mut believed: Vec<(Arg, u32)> = Vec::new();
        for event in &self.events {
            let lies = self.lies(event);
            match event.durable {
                true => believed.push((lies, event.call + 1)),
                false => believed.retain(|(other, _)| !overlap(other, &lies)),
            }
        }
        for (block, version) in believed {
            let (side, array) = (block.array as usize / self.arrays.len(), block.array as usize % self.arrays.len());
            let there = cells(&block, &self.arrays[array]);
            if let Some(at) = there.into_iter().find(|&at| self.files[array][at][side] != version) {
                let found = self.files[array][at][side];
                return Err(format!("element {at} of {array} is {found} in file {side}, and {version} to the journal"));
            }
        }
        Ok(())
    }

    /// Whether the results are what they are to be.
    fn is_right(&self) -> Result<(), String> {
        for (array, decl) in
            self.arrays.iter().enumerate().filter(|(_, a)| matches!(a.role, Role::Output | Role::InOut))
        {
            if let Some(at) = (0..self.last[array].len()).find(|&at| self.files[array][at][0] != self.last[array][at]) {
                return Err(format!(
                    "element {at} of {} is {:?}, not {}",
                    decl.name, self.files[array][at], self.last[array][at]
                ));
            }
        }
        Ok(())
    }
}

/// A random program of phases, each of which writes all of an array anew or updates all of it, by blocks of its own: a simulation's
/// steps, a transform's passes.
fn phases(rng: &mut Rng) -> Program {
    let mut program = Program::new();
    let (combine, scale) = (program.task(Combine::<f32, 1>::default()), program.task(Scale::<f32, 1>::default()));
    let n = rng.range(8, 40);
    let roles = [Role::Output, *rng.pick(&[Role::Output, Role::Temporary, Role::InOut]).unwrap(), Role::Temporary];
    let arrays = roles.map(|role| program.array(&format!("a{}", program.arrays().len()), [n], role).unwrap());
    // An array is mostly written by the same blocks, and read by those of the others.
    let grids = [0; 3].map(|_| rng.range(n.div_ceil(4), n));
    for _ in 0..rng.range(6, 16) {
        let [to, from, other] = [0; 3].map(|_| rng.below(3) as usize);
        let (updates, reads_all) = (rng.below(3) == 0, rng.percent(30));
        let len = if rng.percent(80) { grids[to] } else { rng.range(n.div_ceil(4), n) };
        for start in (0..n).step_by(len as usize) {
            let len = len.min(n - start);
            let block = |array: usize| arrays[array].block([start], [len]);
            // What writes and reads one block is refused, and left out.
            let _ = match (updates, reads_all) {
                (true, _) => program.call(scale, (block(to), block(from)), Scalars::new()),
                (_, false) => program.call(combine, (block(from), block(other), block(to)), Scalars::new().with_u64(1)),
                (_, true) => {
                    // A block elsewhere, of another grid.
                    let at = (n - len - start).min(start / 2);
                    let away = arrays[from].block([at], [len]);
                    program.call(combine, (away, block(other), block(to)), Scalars::new().with_u64(1))
                }
            };
        }
    }
    program
}

#[test]
fn however_often_a_run_is_killed_every_call_finds_what_it_should() {
    let machine = Machine::shipped("disk").unwrap();
    let cases = std::env::var("MULTIGRAIN_CASES").ok().and_then(|s| s.parse().ok()).unwrap_or(250);
    let mut in_two = 0;
    for seed in 0..cases {
        let mut rng = Rng::new(seed);
        let program = if seed % 4 == 0 { random_program(seed) } else { phases(&mut rng) };
        let mut planner = Planner::new(&machine, Mapping::default(), PlanOptions::default());
        let Ok(plan) = planner.plan(&program) else { continue };
        let numbered = Numbered::of(&program, &plan.ways).unwrap();
        let arrays = numbered.arrays();
        let written: Vec<usize> = (0..arrays.len()).filter(|&i| arrays[i].role != Role::Input).collect();
        let sides = Sides::of(arrays, numbered.tasks(), numbered.calls(), &written);
        in_two += sides.arrays().len();
        for _ in 0..8 {
            let mut run = Killed::new(&numbered, &sides);
            let mut killed = Vec::new();
            loop {
                let steps = if killed.len() < 4 { rng.below(numbered.calls().len() as u64 + 1) } else { u64::MAX };
                killed.push(steps);
                run.waiting.clear();
                let ended = run.go_on(&numbered, steps, &mut rng);
                let ended = ended.and_then(|ended| if ended { run.is_right().map(|()| true) } else { Ok(false) });
                if ended.unwrap_or_else(|e| panic!("seed {seed}, after {killed:?} stores: {e}")) {
                    break;
                }
            }
        }
    }
    assert!(in_two as u64 > cases, "{in_two} arrays in two files: the proof is too weak");
}
