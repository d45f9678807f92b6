//! Reductions: the fixed tree, whatever the split.

use multigrain_program::*;
use std::sync::Arc;

const SPAN: u64 = 4;

/// Per column of a: the sum, and the largest element; rows are reduced, columns are not.
struct Columns;

impl Task for Columns {
    type Params = (Read<f32, 2>, Reduce<f32, 1>, Reduce<f64, 1, Max>);
    fn name(&self) -> &'static str {
        "columns"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["a", "sums", "largest"]
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        let dims = call.shapes[0].dims();
        vec![
            Tunable { name: "rows", extent: dims[0], multiple: SPAN },
            Tunable { name: "columns", extent: dims[1], multiple: 1 },
        ]
    }
    fn reduced_axis(&self) -> Option<&'static str> {
        Some("rows")
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let (m, n) = (call.shapes[0].dims()[0], call.shapes[0].dims()[1]);
        let mut calls = Vec::new();
        for (i, rows) in blocks(m, tunables.get("rows", m)) {
            for (j, columns) in blocks(n, tunables.get("columns", n)) {
                let target = Region::new(&[j], &[columns]);
                let args = [(0, Region::new(&[i, j], &[rows, columns])), (1, target), (2, target)];
                calls.push(SubCall::itself(args, &call.scalars));
            }
        }
        calls
    }
    fn scratch_bytes(&self, call: &CallShape, _: u64) -> u64 {
        4 * call.shapes[0].dims()[0]
    }
    fn leaf(
        &self,
        (a, mut sums, mut largest): (View<'_, f32, 2>, ReduceMut<'_, f32, 1, Sum>, ReduceMut<'_, f64, 1, Max>),
        context: &mut LeafContext<'_>,
    ) {
        assert!(a.len(0) as u64 <= SPAN, "one span");
        assert!(context.scratch.len() >= 4 * a.len(0) && context.scratch.as_ptr().addr().is_multiple_of(64));
        context.scratch.fill(0xff);
        for i in 0..a.len(0) {
            sums.combine_row(&[], a.row(&[i]));
            a.row(&[i]).iter().enumerate().for_each(|(j, &x)| largest.combine([j], f64::from(x)));
        }
    }
    fn work(&self, call: &CallShape) -> Work {
        let n = call.shapes[0].elements() as f64;
        Work { flops: 2.0 * n, bytes: 4.0 * n }
    }
}

/// Values whose sum depends on the order.
fn values(n: u64) -> Vec<f32> {
    let mut state = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / 3.0 - 2.0e6
    };
    (0..n).map(|_| next()).collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// The tree of the module page, by its definition: contributions of spans, level by level.
fn by_definition(a: &[f32], m: usize, n: usize) -> Vec<f32> {
    let mut level: Vec<Vec<f32>> = a
        .chunks(SPAN as usize * n)
        .map(|span| {
            let mut sums = vec![-0.0; n];
            span.chunks(n).for_each(|row| sums.iter_mut().zip(row).for_each(|(s, x)| *s += x));
            sums
        })
        .collect();
    assert_eq!(level.len(), m.div_ceil(SPAN as usize));
    while level.len() > 1 {
        let combine = |pair: &[Vec<f32>]| match pair {
            [left, right] => left.iter().zip(right).map(|(l, r)| l + r).collect(),
            _ => pair[0].clone(),
        };
        level = level.chunks(2).map(combine).collect();
    }
    level.swap_remove(0)
}

fn sequential(a: &[f32], m: u64, n: u64) -> (Vec<u8>, Vec<u8>) {
    let mut program = Program::new();
    let task = program.task(Columns);
    let input = program.array::<f32, 2>("a", [m, n], Role::Input).unwrap();
    let sums = program.array::<f32, 1>("sums", [n], Role::Output).unwrap();
    let largest = program.array::<f64, 1>("largest", [n], Role::Output).unwrap();
    program.call(task, (input.all(), sums.all(), largest.all()), Scalars::new()).unwrap();
    let mut memory = [bytes(a), vec![0; 4 * n as usize], vec![0; 8 * n as usize]];
    program.run_sequential(&mut memory).unwrap();
    let [_, sums, largest] = memory;
    (sums, largest)
}

#[test]
fn a_call_is_the_fixed_tree() {
    for (m, n) in [(1, 1), (4, 2), (5, 3), (16, 1), (1000, 3), (257, 2), (1025, 1), (20_000, 2)] {
        let a = values(m * n);
        let (sums, largest) = sequential(&a, m, n);
        assert_eq!(sums, bytes(&by_definition(&a, m as usize, n as usize)), "{m} x {n}");
        for j in 0..n as usize {
            let column = a.iter().skip(j).step_by(n as usize);
            let max = column.fold(f64::NEG_INFINITY, |max, &x| max.max(f64::from(x)));
            assert_eq!(largest[8 * j..8 * j + 8], max.to_le_bytes());
        }
    }
}

/// Executes a call split again and again, by every length that the task allows.
fn run_split(
    task: &Arc<dyn DynTask>,
    views: &[RawView],
    scalars: &Scalars,
    lengths: &mut dyn FnMut() -> u64,
    depth: u32,
) {
    let call = CallShape { shapes: views.iter().map(RawView::shape).collect(), scalars: scalars.clone() };
    if depth == 0 {
        let mut scratch = vec![0u128; task.scratch_bytes(&call, u64::MAX) as usize / 16 + 8];
        let base: *mut u8 = scratch.as_mut_ptr().cast();
        let skip = base.align_offset(64);
        // SAFETY: the part of the vector behind `skip` bytes.
        let scratch = unsafe { std::slice::from_raw_parts_mut(base.add(skip), 16 * scratch.len() - skip) };
        // SAFETY: the views are blocks of arrays of the test, disjoint where one is written.
        return unsafe { task.leaf(views, &mut LeafContext::new(scalars, scratch)) };
    }
    let mut tunables = Tunables::new();
    for axis in task.tunables(&call) {
        let length = (axis.multiple << lengths()).min(axis.extent);
        assert!(task.allows(&axis, length), "{axis:?} {length}");
        tunables.set(axis.name, length);
    }
    let parts = Parts::of(task, &call, &tunables).unwrap();
    let mut memory: Vec<Vec<u64>> =
        parts.temporaries.iter().map(|t| vec![u64::MAX; t.bytes().div_ceil(8) as usize]).collect();
    let mut arrays = views.to_vec();
    for (decl, words) in parts.temporaries.iter().zip(&mut memory) {
        arrays.push(RawView::dense(words.as_mut_ptr().cast(), decl.element, decl.shape));
    }
    for sub in &parts.calls {
        let callee = sub.callee(task);
        let blocks: Vec<RawView> =
            sub.args.iter().map(|(array, region)| arrays[*array].part(region).expect("a part")).collect();
        run_split(callee, &blocks, &sub.scalars, lengths, depth - 1);
    }
}

#[test]
fn every_split_gives_the_same_bits() {
    let task = Program::erase(Columns);
    for (m, n) in [(1u64, 1u64), (7, 5), (64, 3), (100, 4), (333, 2), (1030, 3)] {
        let a = values(m * n);
        let expected = sequential(&a, m, n);
        for seed in 0..40u64 {
            let mut state = seed;
            let mut lengths = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % 7
            };
            let mut input = a.clone();
            let mut sums = vec![f32::NAN; n as usize];
            let mut largest = vec![f64::NAN; n as usize];
            let views = [
                RawView::dense(input.as_mut_ptr().cast(), ElementType::F32, Shape::new(&[m, n])),
                RawView::dense(sums.as_mut_ptr().cast(), ElementType::F32, Shape::new(&[n])),
                RawView::dense(largest.as_mut_ptr().cast(), ElementType::F64, Shape::new(&[n])),
            ];
            run_split(&task, &views, &Scalars::new(), &mut lengths, (seed % 4) as u32);
            assert_eq!(bytes(&sums), expected.0, "{m} x {n}, seed {seed}");
            let largest: Vec<u8> = largest.iter().flat_map(|v| v.to_le_bytes()).collect();
            assert_eq!(largest, expected.1, "{m} x {n}, seed {seed}");
        }
    }
}

#[test]
fn blocks_of_the_reduced_axis_are_powers_of_two_of_spans() {
    let task = Program::erase(Columns);
    let call = CallShape {
        shapes: [Shape::new(&[100, 9]), Shape::new(&[9]), Shape::new(&[9])].into_iter().collect(),
        scalars: Scalars::new(),
    };
    let axes = task.tunables(&call);
    let allowed = |axis: usize| (0..=101).filter(|&n| task.allows(&axes[axis], n)).collect::<Vec<u64>>();
    assert_eq!(allowed(0), [4, 8, 16, 32, 64, 100, 101]);
    assert_eq!(allowed(1), (1..=101).collect::<Vec<u64>>());
}

#[test]
fn partials_are_as_many_as_contributions_less_one() {
    let task = Program::erase(Columns);
    let call = CallShape {
        shapes: [Shape::new(&[100, 9]), Shape::new(&[9]), Shape::new(&[9])].into_iter().collect(),
        scalars: Scalars::new(),
    };
    let mut tunables = Tunables::new();
    tunables.set("rows", 16);
    tunables.set("columns", 4);
    let parts = Parts::of(&task, &call, &tunables).unwrap();
    // Seven blocks of rows, three of columns; two parameters.
    assert_eq!(parts.calls.len(), 7 * 3 + 2 * 6 * 3);
    assert_eq!(parts.temporaries.len(), 2);
    assert_eq!(parts.temporaries[0].shape, Shape::new(&[6 * 9]));
    assert_eq!(parts.temporary_bytes(), 6 * 9 * (4 + 8));
}

/// A task that reduces without saying along which axis.
struct Nowhere;

impl Task for Nowhere {
    type Params = (Reduce<f32, 1>,);
    fn name(&self) -> &'static str {
        "nowhere"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["x"]
    }
    fn tunables(&self, _: &CallShape) -> Vec<Tunable> {
        Vec::new()
    }
    fn split(&self, _: &CallShape, _: &Tunables) -> Vec<SubCall> {
        Vec::new()
    }
    fn leaf(&self, _: (ReduceMut<'_, f32, 1, Sum>,), _: &mut LeafContext<'_>) {}
    fn work(&self, _: &CallShape) -> Work {
        Work::default()
    }
}

#[test]
#[should_panic(expected = "task nowhere")]
fn the_reduced_axis_has_a_name() {
    Program::new().task(Nowhere);
}
