//! Random programs on random machines: what the passes make is proved right, what is damaged is found wrong.

use multigrain_machine::TransferRules;
use multigrain_plan::check::{Problem, check, edge_rules};
use multigrain_plan::testing::{
    Naive, Rng, mutate, mutate_reduction, naive_plan, random_bytes, random_machine, random_mapping, random_program,
};
use multigrain_plan::{Body, Mapping, Op, Plan, PlanError, PlanOptions, Planner};
use multigrain_program::{Arg, LeafContext, Program, RawView, Role};

const PROGRAMS: u64 = 300;

/// The plan that the passes make, if the program fits the machine.
fn planned(seed: u64, program: &Program) -> Option<(Plan, Vec<TransferRules>)> {
    let machine = random_machine(seed);
    // Most plans have short lists of calls, so that there are parts, and parts of parts.
    let listed_max = if seed.is_multiple_of(4) { 1 << 14 } else { 2 };
    let options = PlanOptions { disk_buffer_bytes: 0, listed_max, ..PlanOptions::default() };
    let with = |mapping: Mapping| Planner::new(&machine, mapping, options.clone()).plan(program);
    let plan = match with(random_mapping(seed, &machine)) {
        // A mapping at random may also name a task that the program does not call.
        Err(PlanError::MappingDoesNotFit { .. } | PlanError::MappingUnused { .. } | PlanError::DoesNotFit { .. }) => {
            with(Mapping::default())
        }
        planned => planned,
    };
    match plan {
        Ok(plan) => Some((Plan::clone(&plan), edge_rules(&machine))),
        Err(PlanError::DoesNotFit { .. } | PlanError::Empty) => None,
        Err(error) => panic!("seed {seed}: {error}"),
    }
}

/// The plans of the parts of a plan in parts.
fn parts(plan: &Plan) -> impl Iterator<Item = &Plan> {
    plan.classes.iter().filter(|_| plan.is_in_parts()).filter_map(|class| match &class.body {
        Body::Inner(inner) => Some(&**inner),
        Body::Leaf { .. } => None,
    })
}

/// Calls of the plans of the root edge, each plan counted once.
fn calls_of_edge(plan: &Plan, seen: &mut Vec<*const Plan>) -> u64 {
    if seen.contains(&std::ptr::from_ref(plan)) {
        return 0;
    }
    seen.push(plan);
    plan.calls.len() as u64 + parts(plan).map(|part| calls_of_edge(part, seen)).sum::<u64>()
}

/// Plans in which calls are divided among kinds of children.
#[derive(Default)]
struct Found {
    divisions: u32,
    /// Those in which both groups have something to do.
    both: u32,
    /// Those in which one waits for the other.
    waiting: u32,
    /// Those of a group of another.
    below: u32,
}

impl Found {
    fn add(&mut self, plan: &Plan, within: bool) {
        if plan.is_division {
            let waits = |op: &Op| matches!(op, Op::Wait { .. } | Op::Barrier);
            self.divisions += 1;
            self.both += u32::from(plan.children.iter().all(|child| !child.ops.is_empty()));
            self.waiting += u32::from(plan.children.iter().any(|child| child.ops.iter().any(waits)));
            self.below += u32::from(within);
        }
        for class in &plan.classes {
            if let Body::Inner(inner) = &class.body {
                self.add(inner, plan.is_division);
            }
        }
    }
}

#[test]
fn what_the_passes_make_is_right() {
    let (mut fitting, mut sharing) = (0, 0);
    let (mut in_parts, mut twice) = (0, 0);
    let mut found = Found::default();
    for seed in 0..PROGRAMS {
        let program = random_program(seed);
        let Some((plan, rules)) = planned(seed, &program) else { continue };
        fitting += 1;
        sharing += u32::from(plan.edges().iter().any(|edge| edge.traffic.bytes_across > 0));
        let report = check(&plan, &rules).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert_eq!(report.edges[0].calls, calls_of_edge(&plan, &mut Vec::new()), "seed {seed}");
        in_parts += u32::from(plan.is_in_parts());
        twice += u32::from(parts(&plan).any(|part| part.is_in_parts()));
        found.add(&plan, false);
    }
    let Found { divisions, both, waiting, below } = found;
    println!("{divisions} divisions, {both} with work for both groups, {waiting} that wait, {below} of divisions");
    assert!(
        both > 100 && waiting > 20 && below > 0,
        "{both} of {divisions} divisions, {waiting} wait, {below} in others"
    );
    assert!(in_parts > 5 && twice > 3, "{in_parts} plans in parts, {twice} of them of parts in parts");
    assert!(fitting * 2 > PROGRAMS, "{fitting} of {PROGRAMS} programs fit");
    assert!(sharing > 0, "no plan of {fitting} has a broadcast");
}

#[test]
fn damage_to_what_the_passes_make_is_found() {
    let (mut damaged, mut fitting) = (0, 0);
    let (mut trees, mut by_meaning) = (0, 0);
    for seed in 0..PROGRAMS {
        let program = random_program(seed);
        let Some((plan, rules)) = planned(seed, &program) else { continue };
        fitting += 1;
        let mut rng = Rng::new(seed);
        for _ in 0..5 {
            let Some((wrong, what)) = mutate(&plan, &mut rng) else { continue };
            damaged += 1;
            assert!(check(&wrong, &rules).is_err(), "seed {seed}: not found: {what}");
        }
        for _ in 0..8 {
            let Some((wrong, what)) = mutate_reduction(&plan, &mut rng) else { continue };
            let error = check(&wrong, &rules).err().unwrap_or_else(|| panic!("seed {seed}: not found: {what}"));
            trees += 1;
            by_meaning += u32::from(matches!(error.problem, Problem::Reduction { .. }));
        }
    }
    assert!(trees > 300 && by_meaning * 2 > trees, "{trees} trees damaged, {by_meaning} found by what the calls mean");
    assert!(damaged > 3 * fitting, "only {damaged} of {fitting} plans were damaged");
}

#[test]
fn naive_plans_are_right_and_damage_to_them_is_found() {
    let rules = [TransferRules::default()];
    for seed in 0..PROGRAMS {
        let program = random_program(seed);
        let mut rng = Rng::new(seed);
        for views in [false, true] {
            let children = rng.range(1, 4) as usize;
            let plan = naive_plan(&program, Naive { children, views, seed });
            check(&plan, &rules).unwrap_or_else(|e| panic!("seed {seed}, views {views}: {e}"));
            for _ in 0..6 {
                if let Some((wrong, what)) = mutate(&plan, &mut rng) {
                    assert!(check(&wrong, &rules).is_err(), "seed {seed}, views {views}: not found: {what}");
                }
            }
        }
    }
}

/// The plan's calls, and instead of a call with an inner plan that plan's calls: the leaves in sequential order.
fn leaves(plan: &Plan) -> Vec<(String, Vec<u64>)> {
    let of_call = |(call, &class): (&multigrain_program::Call, &u32)| match &plan.classes[class as usize].body {
        Body::Leaf { .. } => {
            let elements = call.args.iter().map(|a| a.region.elements()).collect();
            vec![(plan.tasks[call.task as usize].name().to_owned(), elements)]
        }
        Body::Inner(inner) => leaves(inner),
    };
    plan.calls.iter().zip(&plan.class_of).flat_map(of_call).collect()
}

#[test]
fn programs_and_machines_are_varied() {
    let (mut ranks, mut tasks, mut levels, mut split, mut repeated) = ([0; 5], Vec::new(), [0; 7], 0, 0);
    for seed in 0..PROGRAMS {
        let program = random_program(seed);
        assert!(!program.calls().is_empty(), "seed {seed}");
        program.arrays().iter().for_each(|a| ranks[a.shape.rank()] += 1);
        for call in program.calls() {
            let name = program.tasks()[call.task as usize].name();
            if !tasks.contains(&name) {
                tasks.push(name);
            }
        }
        let overlaps = |i: usize| {
            let earlier = program.calls()[..i].iter().flat_map(|c| &c.args);
            let mine = &program.calls()[i].args;
            earlier.into_iter().any(|e| mine.iter().any(|m| m.array == e.array && m.region.intersects(&e.region)))
        };
        repeated += usize::from((1..program.calls().len()).any(overlaps));
        levels[random_machine(seed).memories().len().min(4)] += 1;
        if let Some((plan, _)) = planned(seed, &program) {
            split += usize::from(leaves(&plan).len() > program.calls().len());
        }
    }
    assert!(ranks[1..=3].iter().all(|&n| n > 100), "{ranks:?}");
    assert_eq!(tasks.len(), 8, "{tasks:?}");
    assert!(levels[2..=4].iter().all(|&n| n > 20), "{levels:?}");
    assert!(split > 50 && repeated > 150, "{split} split, {repeated} repeat blocks");
}

/// Executes the calls of a plan in sequential order on arrays in memory, going down into inner plans.
fn execute(plan: &Plan, arrays: &[RawView], scratch: &mut Vec<[u64; 8]>) {
    for (call, &class) in plan.calls.iter().zip(&plan.class_of) {
        let part = |arg: &Arg| arrays[arg.array as usize].part(&arg.region).expect("a block in its array");
        let blocks: Vec<RawView> = call.args.iter().map(part).collect();
        match &plan.classes[class as usize].body {
            Body::Inner(inner) => {
                let mut memory: Vec<Vec<u64>> =
                    inner.temporaries().iter().map(|t| vec![u64::MAX; t.bytes().div_ceil(8) as usize]).collect();
                let partials = inner.temporaries().iter().zip(&mut memory);
                let partials = partials.map(|(t, words)| RawView::dense(words.as_mut_ptr().cast(), t.element, t.shape));
                let blocks: Vec<RawView> = blocks.into_iter().chain(partials).collect();
                execute(inner, &blocks, scratch);
            }
            Body::Leaf { scratch_bytes } => {
                // One more, since memory for 8-byte words need not begin at a multiple of 64.
                scratch.resize((*scratch_bytes as usize).div_ceil(64) + 1, [0; 8]);
                let first: *mut u8 = scratch.as_mut_ptr().cast();
                let skip = first.align_offset(64);
                // SAFETY: there are 64 bytes more than needed, and `scratch` is not used otherwise meanwhile.
                let scratch = unsafe { std::slice::from_raw_parts_mut(first.add(skip), *scratch_bytes as usize) };
                let mut context = LeafContext::new(&call.scalars, scratch);
                // SAFETY: the plan has been checked, so the blocks lie in their arrays, have the parameters' types,
                // and none that is written overlaps another; this is the only thread.
                unsafe { plan.tasks[call.task as usize].leaf(&blocks, &mut context) };
            }
        }
    }
}

#[test]
fn splits_of_the_test_tasks_keep_every_bit() {
    for seed in 0..PROGRAMS {
        let program = random_program(seed);
        let Some((plan, rules)) = planned(seed, &program) else { continue };
        check(&plan, &rules).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let mut expected = random_bytes(&program, seed);
        let mut memory: Vec<Vec<u64>> = Vec::new();
        for (array, bytes) in program.arrays().iter().zip(&expected) {
            let given = matches!(array.role, Role::Input | Role::InOut);
            let word = |chunk: &[u8]| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                if given { u64::from_ne_bytes(word) } else { 0 }
            };
            memory.push(bytes.chunks(8).map(word).collect());
        }
        program.run_sequential(&mut expected).unwrap();
        // Partial results of reductions, from whatever lies there.
        for array in &plan.arrays[program.arrays().len()..] {
            memory.push(vec![u64::MAX; array.bytes().div_ceil(8) as usize]);
        }
        let views: Vec<RawView> = plan
            .arrays
            .iter()
            .zip(&mut memory)
            .map(|(array, words)| RawView::dense(words.as_mut_ptr().cast(), array.element, array.shape))
            .collect();
        execute(&plan, &views, &mut Vec::new());
        for ((array, words), expected) in program.arrays().iter().zip(&memory).zip(&expected) {
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).take(expected.len()).collect();
            assert!(bytes == *expected, "seed {seed}: array {} differs", array.name);
        }
    }
}
