//! Steps of a task as one task: the bits of step by step, however blocks are cut and whatever scratch memory there is; and
//! programs of steps: what is taken together, and what may not be.

use multigrain_plan::check::{check, edge_rules};
use multigrain_plan::testing::{Rng, Windows, mix, random_machine, random_steps};
use multigrain_plan::{Mapping, Plan, PlanError, PlanOptions, Planner};
use multigrain_program::notation::{along, around};
use multigrain_program::*;
use std::sync::Arc;

const AXES: [&str; 3] = ["i", "j", "k"];

/// Splits a call again and again and runs the leaves, each with just the scratch memory that it asks for, and never more than
/// the call above.
fn run(task: &Arc<dyn DynTask>, call: &CallShape, blocks: &[RawView], levels: &[Tunables], capacity_bytes: u64) {
    let Some((here, below)) = levels.split_first() else {
        let need = task.scratch_bytes(call, capacity_bytes) as usize;
        let mut scratch = vec![0xa5a5_a5a5_a5a5_a5a5_u64; need.div_ceil(8) + 8];
        let base: *mut u8 = scratch.as_mut_ptr().cast();
        let skip = base.align_offset(64);
        // SAFETY: 64 bytes more than needed, which alignment takes at most.
        let scratch = unsafe { std::slice::from_raw_parts_mut(base.add(skip), need) };
        // SAFETY: the blocks are parts of live arrays of 64-bit words, and only this call uses them.
        return unsafe { task.leaf(blocks, &mut LeafContext::new(&call.scalars, scratch)) };
    };
    for sub in task.split(call, here).unwrap() {
        let parts: Vec<RawView> = sub.args.iter().map(|(param, region)| blocks[*param].part(region).unwrap()).collect();
        let (callee, shape) = (sub.callee(task), sub.shape());
        assert!(callee.scratch_bytes(&shape, capacity_bytes) <= task.scratch_bytes(call, capacity_bytes));
        run(callee, &shape, &parts, below, capacity_bytes);
    }
}

#[test]
fn steps_together_are_the_steps() {
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let rank = rng.range(1, 3) as usize;
        let longest = [60, 20, 9][rank - 1];
        let mut lengths = || (0..rank).map(|_| rng.range(1, longest)).collect::<Vec<u64>>();
        let (dims, levels) = (lengths(), [lengths(), lengths()]);
        let (task, count, capacity_bytes) = (Windows::random(&mut rng, rank), rng.range(1, 6), rng.below(4096));
        let depth = rng.below(3) as usize;
        let shape = Shape::new(&dims);
        let elements = shape.elements();
        let words = |salt: u64| (0..elements).map(|i| mix(seed ^ salt, i)).collect::<Vec<u64>>();
        let (first, mut by) = (words(1), words(2));
        let one = Program::erase(task.clone());
        let call = CallShape { shapes: [shape; 3].into_iter().collect(), scalars: Scalars::new().with_u64(seed) };
        let view = |array: &mut Vec<u64>| RawView::dense(array.as_mut_ptr().cast(), ElementType::U64, shape);

        let (mut from, mut next) = (first.clone(), vec![0; elements as usize]);
        for _ in 0..count {
            run(&one, &call, &[view(&mut from), view(&mut by), view(&mut next)], &[], u64::MAX);
            std::mem::swap(&mut from, &mut next);
        }
        let expected = from;

        let steps: Arc<dyn DynTask> = Arc::new(Steps::of(&one, &call, 0, count, capacity_bytes).unwrap());
        let tunables = |lengths: &Vec<u64>| AXES.into_iter().zip(lengths.iter().copied()).collect::<Tunables>();
        let levels: Vec<Tunables> = levels[..depth].iter().map(tunables).collect();
        let (mut given, mut found) = (first, vec![0; elements as usize]);
        run(&steps, &call, &[view(&mut given), view(&mut by), view(&mut found)], &levels, capacity_bytes);
        let at = found.iter().zip(&expected).position(|(f, e)| f != e);
        assert!(at.is_none(), "seed {seed}: {count} steps of {task:?} on {shape}: element {at:?} differs");
        assert!(steps.work(&call).flops >= one.work(&call).flops * count as f64 * 0.999, "seed {seed}: work");
    }
}

/// What cannot be taken together is told from what can.
#[test]
fn other_tasks_are_no_steps() {
    struct Other(Notation, bool);
    impl Task for Other {
        type Params = AnyParams;
        fn name(&self) -> &'static str {
            "other"
        }
        fn parameters(&self) -> AnyParams {
            let mut params = AnyParams::default();
            params.push(Access::Read, ElementType::F32, 2);
            params.push(if self.1 { Access::Update } else { Access::Write }, ElementType::F32, 2);
            params
        }
        fn notation(&self) -> Option<Notation> {
            Some(self.0.clone())
        }
        fn leaf(&self, _: AnyViews<'_>, _: &mut LeafContext<'_>) {}
    }
    let axes = || Notation::axes(["i", "j"]);
    let of = |notation: Notation, updates: bool| {
        let shape = Shape::new(&[8, 8]);
        let call = CallShape { shapes: [shape; 2].into_iter().collect(), scalars: Scalars::new() };
        Steps::of(&Program::erase(Other(notation, updates)), &call, 0, 3, 1 << 20).is_some()
    };
    let good = || axes().param("u", [around("i", 1, 1), along("j")]).param("out", ["i", "j"]);
    assert!(of(good(), false));
    assert!(!of(good(), true), "it updates");
    assert!(!of(axes().param("u", [along("j"), along("i")]).param("out", ["i", "j"]), false), "it transposes");
    assert!(!of(good().every("i", 4), false), "blocks end at some places only");
    assert!(!of(axes().param("u", ["i", ":"]).param("out", ["i", "j"]), false), "every step reads whole rows");
}

/// How often and what of a plan is said to be taken together.
fn said(plan: &Plan) -> Vec<&str> {
    plan.passes.iter().filter(|report| report.pass == "steps").map(|report| report.summary.as_str()).collect()
}

#[test]
fn plans_of_steps_are_right() {
    let (mut fitting, mut together) = (0, 0);
    for seed in 0..200 {
        let (program, machine) = (random_steps(seed), random_machine(seed));
        let options = PlanOptions { disk_buffer_bytes: 0, ..PlanOptions::default() };
        let planned = Planner::new(&machine, Mapping::default(), options).plan(&program);
        let plan = match planned {
            Ok(plan) => plan,
            Err(PlanError::DoesNotFit { .. } | PlanError::Empty) => continue,
            Err(error) => panic!("seed {seed}: {error}"),
        };
        fitting += 1;
        together += u32::from(!said(&plan).is_empty());
        check(&plan, &edge_rules(&machine)).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{plan}"));
    }
    assert!(fitting >= 100 && together >= 50, "{fitting} of 200 programs fit, of {together} steps are taken together");
}
