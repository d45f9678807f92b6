//! What inner variants may not make of a call: each of these used to reach memory that was not theirs.

use multigrain_program::*;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

type Make = fn(&CallShape, &Tunables) -> Vec<SubCall>;

/// y = x, element by element, and in `made` whatever its inner variant is made to say.
struct Move {
    split: Make,
    stages: Make,
}

fn copy(x: &View<'_, f32, 1>, y: &mut ViewMut<'_, f32, 1>) {
    y.row_mut(&[]).iter_mut().zip(x.row(&[])).for_each(|(y, x)| *y = *x);
}

impl Task for Move {
    type Params = (Read<f32, 1>, Write<f32, 1>);
    fn name(&self) -> &'static str {
        "move"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["x", "y"]
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        vec![Tunable { name: "n", extent: call.shapes[0].elements(), multiple: 0 }]
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        (self.split)(call, tunables)
    }
    fn stages(&self, call: &CallShape) -> Vec<SubCall> {
        (self.stages)(call, &Tunables::new())
    }
    fn leaf(&self, (x, mut y): (View<'_, f32, 1>, ViewMut<'_, f32, 1>), _: &mut LeafContext<'_>) {
        copy(&x, &mut y);
    }
    fn work(&self, _: &CallShape) -> Work {
        Work::default()
    }
}

/// The same on other parameters.
struct Other;

impl Task for Other {
    type Params = (Read<f64, 1>, Write<f32, 2>, Update<f32, 1>);
    fn name(&self) -> &'static str {
        "other"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["wide", "flat", "twice"]
    }
    fn tunables(&self, _: &CallShape) -> Vec<Tunable> {
        Vec::new()
    }
    fn split(&self, call: &CallShape, _: &Tunables) -> Vec<SubCall> {
        vec![SubCall::itself((0..3).map(|i| (i, Region::whole(call.shapes[i]))), &call.scalars)]
    }
    fn leaf(
        &self,
        (_, _, mut twice): (View<'_, f64, 1>, ViewMut<'_, f32, 2>, ViewMut<'_, f32, 1>),
        _: &mut LeafContext<'_>,
    ) {
        twice.row_mut(&[]).fill(2.0);
    }
    fn work(&self, _: &CallShape) -> Work {
        Work::default()
    }
}

fn none(_: &CallShape, _: &Tunables) -> Vec<SubCall> {
    Vec::new()
}

fn shape() -> CallShape {
    CallShape { shapes: [Shape::new(&[100]), Shape::new(&[100])].into_iter().collect(), scalars: Scalars::new() }
}

fn itself(args: &[(usize, Region)]) -> SubCall {
    SubCall::itself(args.iter().copied(), &Scalars::new())
}

fn part(start: u64, len: u64) -> Region {
    Region::new(&[start], &[len])
}

/// What is wrong with the second call of a split, by the split and by the stages.
fn refused(make: Make) -> ArgumentError {
    let by = |task: Arc<dyn DynTask>, of: &str| {
        let error = match of {
            "split" => task.split(&shape(), &Tunables::new()).unwrap_err(),
            _ => task.stages(&shape()).unwrap_err(),
        };
        let text = error.to_string();
        for words in ["task move", "x 100, y 100", "call 1 of its", "a mistake in the task"] {
            assert!(text.contains(words), "{words:?} is not in {text:?}");
        }
        match error.problem {
            SplitProblem::Call { call: 1, of: found, source, .. } if found == of => source,
            problem => panic!("{problem}"),
        }
    };
    let source = by(Program::erase(Move { split: make, stages: none }), "split");
    assert_eq!(source, by(Program::erase(Move { split: none, stages: make }), "stages"));
    source
}

const GOOD: fn() -> SubCall = || itself(&[(0, part(0, 10)), (1, part(0, 10))]);

#[test]
fn calls_lie_within_what_was_given() {
    let outside = |error| assert!(matches!(error, ArgumentError::OutOfBounds { .. }), "{error}");
    outside(refused(|_, _| vec![GOOD(), itself(&[(0, part(1 << 40, 10)), (1, part(0, 10))])]));
    outside(refused(|_, _| vec![GOOD(), itself(&[(0, part(0, 10)), (1, part(100, 10))])]));
    outside(refused(|_, _| vec![GOOD(), itself(&[(0, part(95, 6)), (1, part(0, 6))])]));
    outside(refused(|_, _| vec![GOOD(), itself(&[(0, part(0, 0)), (1, part(0, 10))])]));
    // What a relative start becomes that was meant to be absolute.
    outside(refused(|_, _| vec![GOOD(), itself(&[(0, part(0u64.wrapping_sub(50), 10)), (1, part(0, 10))])]));
    outside(refused(|_, _| vec![GOOD(), itself(&[(0, part(0, 10)), (1, part(10, u64::MAX))])]));
}

#[test]
fn calls_have_the_arguments_that_their_task_declares() {
    let count = refused(|_, _| vec![GOOD(), itself(&[(0, part(0, 10))])]);
    assert_eq!(count, ArgumentError::Count { given: 1, declared: 2 });
    let count = refused(|_, _| vec![GOOD(), itself(&[(0, part(0, 1)), (1, part(0, 1)), (0, part(0, 1))])]);
    assert_eq!(count, ArgumentError::Count { given: 3, declared: 2 });
    let number = refused(|_, _| vec![GOOD(), itself(&[(7, part(0, 10)), (1, part(0, 10))])]);
    assert_eq!(number, ArgumentError::NoSuch { param: "x", number: 7, count: 2 });
    let rank = refused(|_, _| vec![GOOD(), itself(&[(0, Region::new(&[0, 0], &[1, 1])), (1, part(0, 10))])]);
    assert!(matches!(rank, ArgumentError::OutOfBounds { .. }), "{rank}");
    let wide = refused(|_, _| {
        let other = |args: [(usize, Region); 3]| SubCall::of(&Program::erase(Other), args, &Scalars::new());
        vec![GOOD(), other([(0, part(0, 1)), (1, part(0, 1)), (1, part(1, 1))])]
    });
    assert!(matches!(wide, ArgumentError::Type { param: "wide", declared: ElementType::F64, .. }), "{wide}");
}

#[test]
fn calls_write_what_was_given_to_be_written_and_that_once() {
    let input = refused(|_, _| vec![GOOD(), itself(&[(1, part(0, 10)), (0, part(0, 10))])]);
    assert!(matches!(&input, ArgumentError::WritesInput { param: "y", array } if array == "x"), "{input}");
    let twice = refused(|_, _| vec![GOOD(), itself(&[(1, part(0, 10)), (1, part(9, 10))])]);
    assert!(matches!(twice, ArgumentError::Aliased { first: "x", second: "y", .. }), "{twice}");
}

#[test]
fn calls_go_with_the_notation_of_their_task() {
    struct Noted;
    impl Task for Noted {
        type Params = (Read<f32, 1>, Write<f32, 1>);
        fn name(&self) -> &'static str {
            "noted"
        }
        fn notation(&self) -> Option<Notation> {
            Some(Notation::axes(["i"]).param("x", ["i"]).param("y", ["i"]))
        }
        fn leaf(&self, (x, mut y): (View<'_, f32, 1>, ViewMut<'_, f32, 1>), _: &mut LeafContext<'_>) {
            copy(&x, &mut y);
        }
    }
    fn noted(x: Region, y: Region) -> SubCall {
        SubCall::of(&Program::erase(Noted), [(0, x), (1, y)], &Scalars::new())
    }
    let error = refused(|_, _| vec![noted(part(0, 50), part(0, 50)), noted(part(50, 49), part(50, 50))]);
    let words = "axis i is 49 long in x and 50 long in y";
    assert!(matches!(&error, ArgumentError::Shapes { why } if why == words), "{error}");
}

#[test]
fn a_split_does_something() {
    let task = Program::erase(Move { split: none, stages: none });
    let error = task.split(&shape(), &Tunables::new()).unwrap_err();
    assert_eq!(error.problem, SplitProblem::Empty);
    assert!(task.stages(&shape()).unwrap().is_empty(), "a task need not have stages");
    assert_eq!(task.tunables(&shape())[0].multiple, 1, "multiples of nothing are none");
}

#[test]
fn a_split_writes_all_that_the_task_writes() {
    let half: Make = |_, _| (0..5).map(|i| itself(&[(0, part(10 * i, 10)), (1, part(10 * i, 10))])).collect();
    // As many elements as there are, and not all of them.
    let again: Make = |_, _| (0..10).map(|i| itself(&[(0, part(10 * i, 10)), (1, part(0, 10))])).collect();
    let shifted: Make = |_, _| {
        let to = |i| part(if i == 4 { 45 } else { 10 * i }, 10);
        (0..10).rev().map(|i| itself(&[(0, part(10 * i, 10)), (1, to(i))])).collect()
    };
    for make in [half, again, shifted] {
        let error = Program::erase(Move { split: make, stages: none }).split(&shape(), &Tunables::new()).unwrap_err();
        assert_eq!(error.problem, SplitProblem::Unwritten { param: "y", of: "split", shape: Shape::new(&[100]) });
        let error = Program::erase(Move { split: none, stages: make }).stages(&shape()).unwrap_err();
        assert!(matches!(error.problem, SplitProblem::Unwritten { of: "stages", .. }), "{error}");
    }
}

/// total = the sum of x, by spans of four; its inner variant does what it is made to.
struct Total {
    split: Make,
}

impl Task for Total {
    type Params = (Read<f32, 1>, Reduce<f32, 1>);
    fn name(&self) -> &'static str {
        "total"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["x", "total"]
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        vec![Tunable { name: "n", extent: call.shapes[0].elements(), multiple: 4 }]
    }
    fn reduced_axis(&self) -> Option<&'static str> {
        Some("n")
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        (self.split)(call, tunables)
    }
    fn leaf(&self, (x, mut total): (View<'_, f32, 1>, ReduceMut<'_, f32, 1, Sum>), _: &mut LeafContext<'_>) {
        total.combine([0], x.row(&[]).iter().sum());
    }
    fn work(&self, _: &CallShape) -> Work {
        Work::default()
    }
}

fn spans(call: &CallShape, tunables: &Tunables) -> impl Iterator<Item = (u64, u64)> {
    let n = call.shapes[0].elements();
    blocks(n, tunables.get("n", n))
}

fn total(split: Make) -> (Program, CallShape) {
    let mut program = Program::new();
    let task = program.task(Total { split });
    let x = program.array::<f32, 1>("x", [32], Role::Input).unwrap();
    let total = program.array::<f32, 1>("total", [3], Role::Output).unwrap();
    program.call(task, (x.block([8], [20]), total.block([1], [1])), Scalars::new()).unwrap();
    let shape = program.calls()[0].shape();
    (program, shape)
}

fn run(program: &Program) -> Vec<u8> {
    let mut memory = [(0..32).flat_map(|i: u8| f32::from(i).to_le_bytes()).collect::<Vec<u8>>(), vec![0; 12]];
    program.run_sequential(&mut memory).unwrap();
    memory[1].clone()
}

/// The inner variant is asked again where a leaf is executed: what it says there is checked there, and beforehand.
fn caught(split: Make) -> SplitProblem {
    let (program, shape) = total(split);
    let error = program.tasks()[0].check_leaf(&shape).unwrap_err();
    let panic = std::panic::catch_unwind(AssertUnwindSafe(|| run(&program))).unwrap_err();
    assert_eq!(panic.downcast_ref::<String>(), Some(&error.to_string()));
    error.problem
}

#[test]
fn leaves_that_split_stay_within_their_blocks() {
    let right: Make = |call, tunables| {
        let whole = Region::whole(call.shapes[1]);
        spans(call, tunables).map(|(i, n)| itself(&[(0, part(i, n)), (1, whole)])).collect()
    };
    let (program, shape) = total(right);
    program.tasks()[0].check_leaf(&shape).unwrap();
    assert_eq!(run(&program), [0.0f32, (8..28).sum::<i32>() as f32, 0.0].map(f32::to_le_bytes).concat());
    // Starts relative to another block.
    let found = caught(|call, tunables| {
        let whole = Region::whole(call.shapes[1]);
        spans(call, tunables).map(|(i, n)| itself(&[(0, part(i.wrapping_sub(8), n)), (1, whole)])).collect()
    });
    assert!(matches!(found, SplitProblem::Call { source: ArgumentError::OutOfBounds { .. }, .. }), "{found}");
    let found = caught(|call, tunables| {
        let behind = part(1, 1);
        spans(call, tunables).map(|(i, n)| itself(&[(0, part(i, n)), (1, behind)])).collect()
    });
    assert!(matches!(found, SplitProblem::Call { source: ArgumentError::OutOfBounds { .. }, .. }), "{found}");
    let found = caught(|call, tunables| {
        let whole = Region::whole(call.shapes[1]);
        spans(call, tunables).map(|(i, n)| itself(&[(3, part(i, n)), (1, whole)])).collect()
    });
    assert!(matches!(found, SplitProblem::Call { source: ArgumentError::NoSuch { number: 3, .. }, .. }), "{found}");
}

#[test]
fn leaves_that_split_come_to_an_end() {
    let found =
        caught(|call, _| vec![itself(&[(0, Region::whole(call.shapes[0])), (1, Region::whole(call.shapes[1]))])]);
    assert!(matches!(found, SplitProblem::Endless { axis: "n", length: 20, call: 0, .. }), "{found}");
    // One span off the end each time: it would end, as deep in calls as there are spans.
    let found = caught(|call, _| {
        let (n, whole) = (call.shapes[0].elements(), Region::whole(call.shapes[1]));
        let (most, rest) = ((n - 1) / 4 * 4, n - (n - 1) / 4 * 4);
        let parts = [(0, most), (most, rest)].into_iter().filter(|(_, n)| *n > 0);
        parts.map(|(i, n)| itself(&[(0, part(i, n)), (1, whole)])).collect()
    });
    assert!(matches!(found, SplitProblem::Endless { axis: "n", length: 16, call: 0, .. }), "{found}");
    let found = caught(|_, _| Vec::new());
    assert_eq!(found, SplitProblem::Empty);
}

#[test]
fn leaves_that_split_contribute_to_all_that_is_reduced() {
    // All of it is contributed to, though never by one call.
    let split: Make = |call, tunables| {
        let to = (0..2).flat_map(|total| spans(call, tunables).map(move |(i, n)| (i, n, total)));
        to.map(|(i, n, total)| itself(&[(0, part(i, n)), (1, part(total, 1))])).collect()
    };
    let task = Program::erase(Total { split });
    let shapes = [Shape::new(&[20]), Shape::new(&[2])];
    let call = CallShape { shapes: shapes.into_iter().collect(), scalars: Scalars::new() };
    let error = task.check_leaf(&call).unwrap_err();
    assert_eq!(error.problem, SplitProblem::Cut { call: 0, param: "total", region: part(0, 1) });
}

/// The sum of x, and how many spans there are, of which only the first call tells.
struct Both;

impl Task for Both {
    type Params = (Read<f32, 1>, Reduce<f32, 1>, Reduce<f32, 1>);
    fn name(&self) -> &'static str {
        "both"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["x", "total", "count"]
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        vec![Tunable { name: "n", extent: call.shapes[0].elements(), multiple: 4 }]
    }
    fn reduced_axis(&self) -> Option<&'static str> {
        Some("n")
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let [total, count] = [1, 2].map(|param| (param, Region::whole(call.shapes[param])));
        let one = |(i, n)| match i {
            0 => itself(&[(0, part(i, n)), total, count]),
            i => SubCall::of(&Program::erase(Total { split: none }), [(0, part(i, n)), total], &call.scalars),
        };
        spans(call, tunables).map(one).collect()
    }
    fn leaf(
        &self,
        (x, mut total, mut count): (View<'_, f32, 1>, ReduceMut<'_, f32, 1, Sum>, ReduceMut<'_, f32, 1, Sum>),
        _: &mut LeafContext<'_>,
    ) {
        total.combine([0], x.row(&[]).iter().sum());
        count.combine([0], 1.0);
    }
    fn work(&self, _: &CallShape) -> Work {
        Work::default()
    }
}

/// What a call contributes nothing to would be combined as it lies.
#[test]
fn each_call_contributes_to_all_that_is_reduced() {
    let shapes = [20, 1, 1].map(|n| Shape::new(&[n]));
    let call = CallShape { shapes: shapes.into_iter().collect(), scalars: Scalars::new() };
    let error = Program::erase(Both).check_leaf(&call).unwrap_err();
    assert_eq!(error.problem, SplitProblem::Missing { call: 1, param: "count" });
}

#[test]
fn contributions_are_to_equal_or_to_disjoint_blocks() {
    let split: Make = |call, tunables| {
        let half = |i: u64, n: u64| itself(&[(0, part(i, n)), (1, part(i / 10, 1))]);
        let whole = itself(&[(0, part(0, 4)), (1, Region::whole(call.shapes[1]))]);
        spans(call, tunables).map(|(i, n)| half(i, n)).chain([whole]).collect()
    };
    let call =
        CallShape { shapes: [Shape::new(&[20]), Shape::new(&[2])].into_iter().collect(), scalars: Scalars::new() };
    let task = Program::erase(Total { split });
    let error = task.split(&call, &Tunables::new()).unwrap_err();
    assert_eq!(error.problem, SplitProblem::Crossing { param: "total" });
}

#[test]
fn contributions_do_not_read_what_is_reduced() {
    let found = caught(|call, _| {
        let merge = Program::erase(Merge::<f32, 1, Sum>::default());
        vec![SubCall::of(&merge, [(1, Region::whole(call.shapes[1])), (0, part(0, 1))], &Scalars::new())]
    });
    assert!(matches!(found, SplitProblem::Call { source: ArgumentError::ReadsReduced { .. }, .. }), "{found}");
}

/// y = y + 1.
struct Increment;

impl Task for Increment {
    type Params = (Update<f32, 1>,);
    fn name(&self) -> &'static str {
        "increment"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["it"]
    }
    fn leaf(&self, (mut it,): (ViewMut<'_, f32, 1>,), _: &mut LeafContext<'_>) {
        it.row_mut(&[]).iter_mut().for_each(|it| *it += 1.0);
    }
}

/// What a task only writes lies in memory that held something else: nobody may see that.
#[test]
fn what_is_only_written_is_read_after_it_was_written() {
    fn add(start: u64, len: u64) -> SubCall {
        SubCall::of(&Program::erase(Increment), [(1, part(start, len))], &Scalars::new())
    }
    fn copy(start: u64, len: u64) -> SubCall {
        itself(&[(0, part(start, len)), (1, part(start, len))])
    }
    let right: [Make; 4] = [
        |_, _| vec![copy(0, 60), copy(60, 40), add(0, 100)],
        |_, _| vec![copy(0, 50), add(10, 20), copy(50, 50), add(0, 100), add(99, 1)],
        |_, _| vec![copy(90, 10), copy(0, 60), add(20, 40), copy(40, 60), add(80, 20)],
        // Moved on within what is only written.
        |_, _| vec![copy(0, 10), itself(&[(1, part(0, 10)), (1, part(10, 10))]), copy(20, 80)],
    ];
    for make in right {
        Program::erase(Move { split: make, stages: none }).split(&shape(), &Tunables::new()).unwrap();
        Program::erase(Move { split: none, stages: make }).stages(&shape()).unwrap();
    }
    let unread = |make: Make, param: &str, region: Region| {
        let error = refused(make);
        let words = error.to_string();
        for word in [param, &region.to_string(), "y, which the task only writes"] {
            assert!(words.contains(word), "{word:?} is not in {words:?}");
        }
        assert!(matches!(error, ArgumentError::ReadsUnwritten { region: found, .. } if found == region), "{error}");
    };
    unread(|_, _| vec![copy(0, 50), add(50, 50)], "it", part(50, 50));
    unread(|_, _| vec![copy(0, 50), add(49, 2), copy(50, 50)], "it", part(49, 2));
    unread(|_, _| vec![copy(1, 99), add(0, 100), copy(0, 1)], "it", part(0, 100));
    // Reading what the same call writes only.
    unread(|_, _| vec![copy(0, 20), itself(&[(1, part(20, 80)), (1, part(0, 20))])], "x", part(20, 80));
    // The first call.
    let first: Make = |_, _| vec![add(0, 100)];
    let error = Program::erase(Move { split: first, stages: none }).split(&shape(), &Tunables::new()).unwrap_err();
    assert!(matches!(error.problem, SplitProblem::Call { call: 0, callee: "increment", .. }), "{error}");
}

/// A sum may be read by stages behind the one that reduces it, and not before.
#[test]
fn stages_read_what_was_reduced_before() {
    struct Mean {
        stages: Make,
    }
    impl Task for Mean {
        type Params = (Read<f32, 1>, Reduce<f32, 1>);
        fn name(&self) -> &'static str {
            "mean"
        }
        fn param_names(&self) -> &'static [&'static str] {
            &["x", "mean"]
        }
        fn reduced_axis(&self) -> Option<&'static str> {
            Some("n")
        }
        fn stages(&self, call: &CallShape) -> Vec<SubCall> {
            (self.stages)(call, &Tunables::new())
        }
        fn leaf(&self, _: (View<'_, f32, 1>, ReduceMut<'_, f32, 1, Sum>), _: &mut LeafContext<'_>) {}
    }
    fn total() -> SubCall {
        let args = [(0, part(0, 20)), (1, part(0, 1))];
        SubCall::of(&Program::erase(Total { split: none }), args, &Scalars::new())
    }
    fn add() -> SubCall {
        SubCall::of(&Program::erase(Increment), [(1, part(0, 1))], &Scalars::new())
    }
    let call = CallShape { shapes: [20, 1].map(|n| Shape::new(&[n])).into_iter().collect(), scalars: Scalars::new() };
    let stages = |stages: Make| Program::erase(Mean { stages }).stages(&call);
    stages(|_, _| vec![total(), add()]).unwrap();
    let error = stages(|_, _| vec![add(), total()]).unwrap_err();
    let SplitProblem::Call { call: 0, source: ArgumentError::ReadsUnwritten { .. }, .. } = &error.problem else {
        panic!("{error}")
    };
}

/// Partial results are counted before there is memory for them.
#[test]
fn contributions_can_be_counted() {
    let split: Make = |call, tunables| {
        let whole = Region::whole(call.shapes[1]);
        spans(call, tunables).map(|(i, n)| itself(&[(0, part(i, n)), (1, whole)])).collect()
    };
    let parts = |elements: u64, count: u64| {
        let shapes = [4 * count, elements].map(|n| Shape::new(&[n])).into_iter().collect();
        let tunables = [("n", 4)].into_iter().collect();
        Parts::of(&Program::erase(Total { split }), &CallShape { shapes, scalars: Scalars::new() }, &tunables)
    };
    assert_eq!(parts(1 << 58, 8).unwrap().temporary_bytes(), 7 << 60);
    let many = [(1 << 58, 9), (1 << 59, 5), (1 << 60, 3), (1 << 52, 1 << 12), (1 << 52, 1 << 16)];
    // Miri takes minutes for thousands.
    for &(elements, count) in &many[..if cfg!(miri) { 3 } else { many.len() }] {
        let error = parts(elements, count).err().expect("more bytes than there are");
        assert_eq!(error.problem, SplitProblem::TooLarge { param: "total", count });
    }
}

/// A task that says another thing each time it is asked.
struct Fickle(std::sync::atomic::AtomicU64);

impl Task for Fickle {
    type Params = (Read<f32, 1>, Reduce<f32, 1>);
    fn name(&self) -> &'static str {
        ["one", "another"][usize::from(self.version() > 1)]
    }
    fn version(&self) -> u64 {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }
    fn reduced_axis(&self) -> Option<&'static str> {
        (self.version() < 4).then_some("n")
    }
    fn leaf(&self, _: (View<'_, f32, 1>, ReduceMut<'_, f32, 1, Sum>), _: &mut LeafContext<'_>) {}
}

#[test]
fn what_plans_hold_to_is_asked_once() {
    let task = Program::erase(Fickle(Default::default()));
    let asked = || (task.name(), task.version(), task.reduced_axis());
    let first = asked();
    assert_eq!((first.0, first.2), ("one", Some("n")));
    assert!((0..8).all(|_| asked() == first));
}
