//! Splits that follow from a notation: they cover what they should, in an order that means the same.

use multigrain_program::notation::{around, around_half, whole};
use multigrain_program::*;
use proptest::prelude::*;

/// out[i, j] = sum over the window of `u`, in units that tell where a border cut it off.
struct Window {
    reach: [(u64, u64); 2],
}

impl Task for Window {
    type Params = (Read<f32, 2>, Write<f32, 2>);
    fn name(&self) -> &'static str {
        "window"
    }
    fn notation(&self) -> Option<Notation> {
        let [(up, down), (left, right)] = self.reach;
        let axes = Notation::axes(["i", "j"]).flops(1.0);
        Some(axes.param("u", [around("i", up, down), around("j", left, right)]).param("out", ["i", "j"]))
    }
    fn leaf(&self, (u, mut out): (View<'_, f32, 2>, ViewMut<'_, f32, 2>), context: &mut LeafContext<'_>) {
        let (top, left) = (context.before(0), context.before(1));
        let [(up, down), (west, east)] = self.reach.map(|(b, a)| (b as usize, a as usize));
        for i in 0..out.len(0) {
            for j in 0..out.len(1) {
                let rows = (top + i).saturating_sub(up)..(top + i + down + 1).min(u.len(0));
                let columns = (left + j).saturating_sub(west)..(left + j + east + 1).min(u.len(1));
                let sum = rows.map(|r| u.row(&[r])[columns.clone()].iter().sum::<f32>()).sum::<f32>();
                out.row_mut(&[i])[j] = sum;
            }
        }
    }
}

/// y[i] = x[i, ..] folded from the left by a function that does not commute, and for `every` columns at once.
struct Fold {
    every: u64,
}

impl Task for Fold {
    type Params = (Write<u8, 1>, Read<u8, 2>);
    fn name(&self) -> &'static str {
        "fold"
    }
    fn notation(&self) -> Option<Notation> {
        Some(Notation::axes(["i", "k"]).every("k", self.every).param("y", ["i"]).param("x", ["i", "k"]))
    }
    fn leaf(&self, (mut y, x): (ViewMut<'_, u8, 1>, View<'_, u8, 2>), context: &mut LeafContext<'_>) {
        let first = context.first();
        for (i, y) in y.row_mut(&[]).iter_mut().enumerate() {
            let start = if first { 7 } else { *y };
            *y = x.row(&[i]).iter().fold(start, |at, &x| at.wrapping_mul(31).wrapping_add(x));
        }
    }
}

/// Executes the calls of a split again and again until `levels` are used up, then their leaves.
fn run(task: &std::sync::Arc<dyn DynTask>, call: &CallShape, blocks: &[RawView], levels: &[Tunables]) {
    let Some((here, below)) = levels.split_first() else {
        // SAFETY: blocks of the caller's arrays, one after the other.
        return unsafe { task.leaf(blocks, &mut LeafContext::new(&call.scalars, &mut [])) };
    };
    for sub in task.split(call, here).unwrap() {
        let part = |(param, region): &(usize, Region)| blocks[*param].part(region).expect("a block of an argument");
        let views: Vec<RawView> = sub.args.iter().map(part).collect();
        run(sub.callee(task), &sub.shape(), &views, below);
    }
}

fn tunables(values: &[(&'static str, u64)]) -> Tunables {
    let mut tunables = Tunables::new();
    values.iter().for_each(|&(name, value)| tunables.set(name, value));
    tunables
}

proptest! {
    #[test]
    fn blocks_with_halos_equal_the_whole(
        (rows, columns) in (1u64..20, 1u64..20),
        reach in [(0u64..4, 0u64..4), (0u64..4, 0u64..4)],
        cuts in proptest::collection::vec((1u64..12, 1u64..12), 0..3),
    ) {
        let task = Program::erase(Window { reach });
        let shape = Shape::new(&[rows, columns]);
        let call = CallShape { shapes: [shape, shape].into_iter().collect(), scalars: Scalars::new() };
        let mut u: Vec<f32> = (0..rows * columns).map(|i| (i % 61) as f32).collect();
        let levels: Vec<Tunables> = cuts.iter().map(|&(i, j)| tunables(&[("i", i), ("j", j)])).collect();
        let mut results = [&levels[..], &[]].map(|levels| {
            let mut out = vec![-1.0f32; u.len()];
            let blocks = [&mut u, &mut out].map(|x| RawView::dense(x.as_mut_ptr().cast(), ElementType::F32, shape));
            run(&task, &call, &blocks, levels);
            out
        });
        let whole = std::mem::take(&mut results[1]);
        prop_assert_eq!(&results[0], &whole);
    }

    #[test]
    fn folded_blocks_are_written_by_the_first_and_updated_by_the_others(
        (rows, columns, every) in (1u64..9, 1u64..40, 1u64..5),
        cuts in proptest::collection::vec((1u64..6, 1u64..6), 0..3),
    ) {
        let task = Program::erase(Fold { every });
        let shapes = [Shape::new(&[rows]), Shape::new(&[rows, columns])];
        let call = CallShape { shapes: shapes.into_iter().collect(), scalars: Scalars::new() };
        let mut x: Vec<u8> = (0..rows * columns).map(|i| (i * 37 % 251) as u8).collect();
        let levels: Vec<Tunables> = cuts.iter().map(|&(i, k)| tunables(&[("i", i), ("k", k * every)])).collect();
        for sub in levels.first().map(|first| task.split(&call, first).unwrap()).unwrap_or_default() {
            let later = matches!(sub.callee, Callee::Task(_));
            let access = if let Callee::Task(task) = &sub.callee { task.params()[0].access } else { Access::Write };
            prop_assert_eq!(later, sub.args[1].1.start()[1] > 0);
            prop_assert_eq!(access, if later { Access::Update } else { Access::Write });
            let end = sub.args[1].1.end(1);
            prop_assert!(end == columns || end.is_multiple_of(every));
        }
        let results = [&levels[..], &[]].map(|levels| {
            let mut y = vec![99u8; rows as usize];
            let block = |memory: &mut Vec<u8>, shape| RawView::dense(memory.as_mut_ptr(), ElementType::U8, shape);
            let blocks = [block(&mut y, shapes[0]), block(&mut x, shapes[1])];
            run(&task, &call, &blocks, levels);
            y
        });
        prop_assert_eq!(&results[0], &results[1]);
    }
}

/// A task of any notation, for what its author is told.
struct Says(fn() -> Notation);
impl Task for Says {
    type Params = (Read<f32, 2>, Write<f32, 2>);
    fn name(&self) -> &'static str {
        "says"
    }
    fn notation(&self) -> Option<Notation> {
        Some(self.0())
    }
    fn leaf(&self, _: (View<'_, f32, 2>, ViewMut<'_, f32, 2>), _: &mut LeafContext<'_>) {}
}

#[test]
fn a_notation_that_means_nothing_is_told_to_its_author() {
    let said = |notation: fn() -> Notation| {
        let panic = std::panic::catch_unwind(|| Program::erase(Says(notation)).params().len()).unwrap_err();
        panic.downcast_ref::<String>().cloned().unwrap_or_default()
    };
    let one = said(|| Notation::axes(["i", "j"]).param("a", ["i", "j"]));
    assert!(one.contains("1 parameters, the task 2"), "{one}");
    let rank = said(|| Notation::axes(["i"]).param("a", ["i"]).param("b", ["i", ":"]));
    assert!(rank.contains("a has 1 dimensions, its type 2"), "{rank}");
    let halo = said(|| Notation::axes(["i", "j"]).param("a", ["i", "j"]).param("b", [around("i", 1, 1), whole()]));
    assert!(halo.contains("b is written"), "{halo}");
    let unknown = said(|| Notation::axes(["i"]).param("a", ["i", "q"]).param("b", ["i", ":"]));
    assert!(unknown.contains("axis q"), "{unknown}");
    let length = said(|| {
        let a = [around_half("i", "b", 1), whole()];
        Notation::axes(["i"]).param("a", a).param("b", [":", ":"])
    });
    assert!(length.contains("length is unknown"), "{length}");
    let missing = said(|| Notation::axes(["i"]).param("a", [around_half("i", "c", 0), whole()]).param("b", ["i", ":"]));
    assert!(missing.contains("dimension 0 of c, which does not exist"), "{missing}");
    let missing = said(|| Notation::axes(["i"]).param("a", [around_half("i", "b", 9), whole()]).param("b", ["i", ":"]));
    assert!(missing.contains("dimension 9 of b, which does not exist"), "{missing}");
    let cut = said(|| {
        let a = [around_half("i", "b", 0), whole()];
        Notation::axes(["i"]).param("a", a).param("b", ["i", ":"])
    });
    assert!(cut.contains("half of dimension 0 of b, which an axis cuts"), "{cut}");
    let free = |notation: fn() -> Notation| {
        struct Free(fn() -> Notation);
        impl Task for Free {
            type Params = (Read<f32, 2>, Reduce<f32, 1>);
            fn name(&self) -> &'static str {
                "free"
            }
            fn notation(&self) -> Option<Notation> {
                Some(self.0())
            }
            fn leaf(&self, _: (View<'_, f32, 2>, ReduceMut<'_, f32, 1, Sum>), _: &mut LeafContext<'_>) {}
        }
        let panic = std::panic::catch_unwind(|| Program::erase(Free(notation)).params().len()).unwrap_err();
        panic.downcast_ref::<String>().cloned().unwrap_or_default()
    };
    let rounding = free(|| Notation::axes(["i", "j"]).param("a", ["i", "j"]).param("sum", [":"]));
    assert!(rounding.contains("sum leaves out several axes"), "{rounding}");
    let twice = said(|| Notation::axes(["i"]).param("a", ["i", "i"]).param("b", ["i", ":"]));
    assert!(twice.contains("two dimensions of a"), "{twice}");
}

/// What is folded has one order, and contributions to a sum have none.
#[test]
fn axes_are_folded_alike_or_reduced() {
    struct Folds<P>(fn() -> Notation, std::marker::PhantomData<fn() -> P>);
    impl<P: ParamList> Task for Folds<P> {
        type Params = P;
        fn name(&self) -> &'static str {
            "folds"
        }
        fn notation(&self) -> Option<Notation> {
            Some(self.0())
        }
        fn leaf(&self, _: P::Views<'_>, _: &mut LeafContext<'_>) {}
    }
    fn said<P: ParamList>(notation: fn() -> Notation) -> Option<String> {
        let panic = std::panic::catch_unwind(|| Program::erase(Folds::<P>(notation, Default::default())).version());
        panic.err().map(|panic| panic.downcast_ref::<String>().cloned().unwrap_or_default())
    }
    type Written = (Read<f32, 2>, Write<f32, 1>, Update<f32, 1>);
    let alike =
        said::<Written>(|| Notation::axes(["i", "j"]).param("a", ["i", "j"]).param("b", ["i"]).param("c", ["i"]));
    assert_eq!(alike, None);
    let other =
        said::<Written>(|| Notation::axes(["i", "j"]).param("a", ["i", "j"]).param("b", ["i"]).param("c", ["j"]));
    assert!(other.as_ref().is_some_and(|said| said.contains("folded along the same axes")), "{other:?}");
    // Blocks of some budget end one fold elsewhere than those of another.
    let several = said::<(Read<f32, 3>, Write<f32, 1>)>(|| {
        Notation::axes(["i", "j", "k"]).param("a", ["i", "k", "j"]).param("b", ["i"])
    });
    assert!(several.as_ref().is_some_and(|said| said.contains("b is folded along several axes (j, k)")), "{several:?}");
    let one = said::<(Read<f32, 3>, Write<f32, 1>)>(|| {
        Notation::axes(["i", "j"]).param("a", ["i", ":", "j"]).param("b", ["i"])
    });
    assert_eq!(one, None);
    type Reduced = (Read<f32, 2>, Reduce<f32, 1>, Write<f32, 2>);
    let plain = said::<Reduced>(|| {
        Notation::axes(["i", "j"]).param("a", ["i", "j"]).param("sum", ["i"]).param("b", ["i", "j"])
    });
    assert_eq!(plain, None);
    let both = said::<Reduced>(|| {
        Notation::axes(["i", "j"]).param("a", ["i", "j"]).param("sum", ["i"]).param("b", ["i", ":"])
    });
    assert!(both.as_ref().is_some_and(|said| said.contains("a task that reduces folds nothing")), "{both:?}");
}

/// A free split that asks for a tunable by a wrong name.
struct Misspelt;
impl Task for Misspelt {
    type Params = (Write<u8, 1>,);
    fn name(&self) -> &'static str {
        "misspelt"
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        vec![Tunable { name: "rows", extent: call.shapes[0].elements(), multiple: 1 }]
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let n = call.shapes[0].elements();
        let block = |(start, len)| SubCall::itself([(0, Region::new(&[start], &[len]))], &call.scalars);
        blocks(n, tunables.get("row", n)).map(block).collect()
    }
    fn leaf(&self, _: (ViewMut<'_, u8, 1>,), _: &mut LeafContext<'_>) {}
}

#[test]
fn a_tunable_that_is_not_there_is_told_to_its_author() {
    let task = Program::erase(Misspelt);
    let call = CallShape { shapes: [Shape::new(&[7])].into_iter().collect(), scalars: Scalars::new() };
    let split = std::panic::AssertUnwindSafe(|| task.split(&call, &tunables(&[("rows", 2)])).is_ok());
    let panic = std::panic::catch_unwind(split).unwrap_err();
    let said = panic.downcast_ref::<String>().cloned().unwrap_or_default();
    assert!(said.contains("the tunable row; its task has rows"), "{said}");
}

/// How often each byte occurs, and the sum of each row: reduced along both axes, and along one.
struct Counts;
impl Task for Counts {
    type Params = (Read<u8, 2>, Reduce<u64, 1>, Reduce<f32, 1>);
    fn name(&self) -> &'static str {
        "counts"
    }
    fn notation(&self) -> Option<Notation> {
        let axes = Notation::axes(["i", "j"]).every("j", 3);
        Some(axes.param("a", ["i", "j"]).param("counts", [":"]).param("sums", ["i"]))
    }
    fn leaf(
        &self,
        (a, mut counts, mut sums): (View<'_, u8, 2>, ReduceMut<'_, u64, 1, Sum>, ReduceMut<'_, f32, 1, Sum>),
        _: &mut LeafContext<'_>,
    ) {
        for i in 0..a.len(0) {
            a.row(&[i]).iter().for_each(|&byte| counts.combine([usize::from(byte)], 1));
            a.row(&[i]).iter().for_each(|&byte| sums.combine([i], 1.0 / (1.0 + f32::from(byte))));
        }
    }
}

proptest! {
    #[test]
    fn what_is_exact_may_be_reduced_along_several_axes(
        (rows, columns, i, spans) in (1u64..9, 1u64..40, 1u64..9, 0u32..4),
    ) {
        let task = Program::erase(Counts);
        prop_assert_eq!(task.reduced_axis(), Some("j"));
        let shapes = [Shape::new(&[rows, columns]), Shape::new(&[5]), Shape::new(&[rows])];
        let call = CallShape { shapes: shapes.into_iter().collect(), scalars: Scalars::new() };
        let bytes: Vec<u8> = (0..rows * columns).map(|i| (i * i % 5) as u8).collect();
        let parts = Parts::of(&task, &call, &tunables(&[("i", i), ("j", 3 << spans)])).unwrap();
        let run = |calls: &[SubCall]| {
            let (mut a, mut counts, mut sums) = (bytes.clone(), [u64::MAX; 5], vec![f32::NAN; rows as usize]);
            let mut temporaries: Vec<Vec<u64>> =
                parts.temporaries.iter().map(|decl| vec![0; decl.bytes().div_ceil(8) as usize]).collect();
            let mut blocks = vec![
                RawView::dense(a.as_mut_ptr(), ElementType::U8, shapes[0]),
                RawView::dense(counts.as_mut_ptr().cast(), ElementType::U64, shapes[1]),
                RawView::dense(sums.as_mut_ptr().cast(), ElementType::F32, shapes[2]),
            ];
            for (decl, memory) in parts.temporaries.iter().zip(&mut temporaries) {
                blocks.push(RawView::dense(memory.as_mut_ptr().cast(), decl.element, decl.shape));
            }
            for sub in calls {
                let views: Vec<RawView> =
                    sub.args.iter().map(|(number, region)| blocks[*number].part(region).unwrap()).collect();
                let callee = sub.callee(&task);
                let mut scratch = vec![0u64; callee.scratch_bytes(&sub.shape(), u64::MAX).div_ceil(8) as usize + 8];
                let scratch: &mut [u8] = {
                    let bytes = scratch.len() * 8;
                    // SAFETY: words are bytes.
                    unsafe { std::slice::from_raw_parts_mut(scratch.as_mut_ptr().cast(), bytes) }
                };
                let skip = scratch.as_ptr().align_offset(64).min(scratch.len());
                // SAFETY: blocks of arrays that live here, one call after the other.
                unsafe { callee.leaf(&views, &mut LeafContext::new(&sub.scalars, &mut scratch[skip..])) };
            }
            (counts, sums.iter().map(|sum| sum.to_bits()).collect::<Vec<u32>>())
        };
        let whole = run(&[SubCall::whole(&call)]);
        prop_assert_eq!(run(&parts.calls), whole.clone());
        let counted: Vec<u64> = (0..5).map(|byte| bytes.iter().filter(|&&b| b == byte).count() as u64).collect();
        prop_assert_eq!(whole.0.to_vec(), counted);
    }
}

#[test]
fn arguments_that_do_not_belong_together_are_refused_by_the_program() {
    let mut program = Program::new();
    let task = program.task(Window { reach: [(1, 1), (0, 0)] });
    let u = program.array::<f32, 2>("u", [8, 5], Role::Input).unwrap();
    let out = program.array::<f32, 2>("out", [4, 5], Role::Output).unwrap();
    let error = program.call(task, (u.all(), out.all()), Scalars::new()).unwrap_err().to_string();
    assert!(error.contains("u is 8 long along axis i of 4"), "{error}");
    // A block of the array with its halo is said to be one.
    let halo = Scalars::new().with_before(&[1, 0]);
    program.call(task, (u.block([1, 0], [6, 5]), out.all()), halo).unwrap();
    // A halo is no longer than the window reaches: of what is before, and of what is behind.
    for (before, rows) in [(2, 6), (2, 7), (0, 6), (1, 7)] {
        let halo = Scalars::new().with_before(&[before, 0]);
        let error = program.call(task, (u.block([0, 0], [rows, 5]), out.all()), halo).unwrap_err().to_string();
        assert!(error.contains("it may have up to 1 before and 1 behind"), "{before} of {rows}: {error}");
    }
}

#[test]
#[should_panic(expected = "declares the axis i twice")]
fn an_axis_is_declared_once() {
    let _ = Notation::axes(["i", "j", "i"]);
}
