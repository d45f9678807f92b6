//! Programs whose arrays lie in memory, on cores that share it and on local stores: the bytes of sequential execution. Few
//! and small under Miri, which sees every access outside of what it may touch, and every two that race.

use multigrain_driver::Drivers;
use multigrain_engine::{EngineError, Home, Memories, Part, RunOptions, run};
use multigrain_machine::{Driver, Machine};
use multigrain_plan::testing::{random_bytes, random_machine, random_mapping, random_program};
use multigrain_plan::{Mapping, Plan, PlanError, PlanOptions, Planner};
use multigrain_program::{ArrayDecl, Program, Region, Role};
use multigrain_team::{Abort, SpinLimit, Team, TeamOptions};
use multigrain_trace::Mode;
use std::sync::Arc;

/// The arrays that the engine is lent, in memory.
fn memory(program: &Program, plan: &Plan, bytes: &[Vec<u8>]) -> Vec<Vec<u64>> {
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    };
    let given = program.arrays().iter().zip(bytes).map(|(array, bytes)| match array.role {
        Role::Input | Role::InOut => bytes.chunks(8).map(word).collect(),
        _ => vec![0; bytes.len().div_ceil(8)],
    });
    // Partial results of reductions, from whatever lies there.
    let partials = &plan.arrays[program.arrays().len()..];
    given.chain(partials.iter().map(|array| vec![u64::MAX; array.bytes().div_ceil(8) as usize])).collect()
}

fn execute(machine: &Machine, plan: &Plan, memory: &mut [Vec<u64>]) -> Result<(), EngineError> {
    let homes: Vec<Home> = memory
        .iter_mut()
        .zip(&plan.arrays)
        .map(|(words, array)| Home::Memory { pointer: words.as_mut_ptr().cast(), len_bytes: array.bytes() })
        .collect();
    let team =
        Team::new(TeamOptions { workers: machine.workers(), bind: !cfg!(miri), spin: SpinLimit::SHORT }).unwrap();
    let mut memories = Memories::reserve(machine, plan, &Drivers::with_disk(None), Part::WHOLE)?;
    let options = RunOptions {
        abort: &Abort::new(),
        mode: Mode::Off,
        spill: None,
        kernel: false,
        program: "test",
        afterwards: &[],
        ranks: None,
        log: None,
        sides: None,
        progress: None,
    };
    // SAFETY: the homes are vectors of this test, one for each array, which nobody else uses; the plan is the planner's, or
    // leads to calls that the engine finds misplaced before it makes them.
    unsafe { run(plan, machine, &team, &mut memories, &homes, options) }.map(|_| ())
}

/// The plan of a random program on a random machine, if that has its arrays in memory and the program fits.
fn planned(seed: u64) -> Option<(Program, Machine, Arc<Plan>)> {
    let (program, machine) = (random_program(seed), random_machine(seed));
    if machine.memories()[1].edge.is_some_and(|edge| edge.driver == Driver::DISK) {
        return None;
    }
    // Miri takes a minute for what takes a millisecond.
    if cfg!(miri) && (program.calls().len() > 6 || program.arrays().iter().any(|array| array.bytes() > 2048)) {
        return None;
    }
    let with = |mapping: Mapping| Planner::new(&machine, mapping, PlanOptions::default()).plan(&program);
    let given = with(random_mapping(seed, &machine));
    // Nor does it look for tiles.
    let planned = if cfg!(miri) { given } else { given.or_else(|_| with(Mapping::default())) };
    match planned {
        Ok(plan) => Some((program, machine, plan)),
        Err(PlanError::MappingDoesNotFit { .. }) if cfg!(miri) => None,
        Err(PlanError::DoesNotFit { .. } | PlanError::Empty) => None,
        Err(error) => panic!("seed {seed}: {error}"),
    }
}

#[test]
fn runs_in_memory_equal_sequential_execution() {
    let mut ran = 0;
    for (seed, (program, machine, plan)) in (0..200).filter_map(|seed| Some((seed, planned(seed)?))) {
        let mut expected = random_bytes(&program, seed);
        let mut memory = memory(&program, &plan, &expected);
        program.run_sequential(&mut expected).unwrap();
        execute(&machine, &plan, &mut memory).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let kept = |array: &&ArrayDecl| array.role != Role::Temporary;
        for ((array, words), expected) in
            program.arrays().iter().zip(&memory).zip(&expected).filter(|((a, _), _)| kept(a))
        {
            let found: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).take(expected.len()).collect();
            assert!(found == *expected, "seed {seed}: array {} differs", array.name);
        }
        ran += 1;
    }
    assert!(ran >= 60, "only {ran} programs were run");
}

/// A plan that is no plan of these arrays ends at the call that would leave them, and not in somebody else's memory.
#[test]
fn blocks_outside_of_their_arrays_and_slots_are_not_touched() {
    let (mut views, mut slots) = (0, 0);
    for (seed, (program, machine, plan)) in (0..100).filter_map(|seed| Some((seed, planned(seed)?))) {
        let bytes = random_bytes(&program, seed);
        let mut wrong = Plan::clone(&plan);
        match wrong.children.iter().position(|child| !child.slots.is_empty()) {
            Some(child) => {
                wrong.children[child].slots[0].offset_bytes += 1 << 40;
                slots += 1;
            }
            None => {
                let arg = &mut wrong.calls[0].args[0];
                let shape = wrong.arrays[arg.array as usize].shape;
                arg.region = arg.region.within(&Region::new(shape.dims(), shape.dims()));
                views += 1;
            }
        }
        match execute(&machine, &wrong, &mut memory(&program, &plan, &bytes)) {
            Err(EngineError::Misplaced { .. }) => {}
            other => panic!("seed {seed}: {other:?}"),
        }
        if cfg!(miri) && views + slots == 2 {
            return;
        }
    }
    assert!(views > 0 && slots > 0, "{views} of views, {slots} of slots");
}
