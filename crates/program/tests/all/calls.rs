//! What a program refuses while it is being written, and how it says so.

use multigrain_program::*;

/// y = x, and z is updated.
struct Move;

impl Task for Move {
    type Params = (Read<f32, 2>, Write<f32, 2>, Update<f32, 2>);
    fn name(&self) -> &'static str {
        "move"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["x", "y", "z"]
    }
    fn tunables(&self, _: &CallShape) -> Vec<Tunable> {
        Vec::new()
    }
    fn split(&self, call: &CallShape, _: &Tunables) -> Vec<SubCall> {
        vec![SubCall::itself((0..3).map(|i| (i, Region::whole(call.shapes[i]))), &call.scalars)]
    }
    fn leaf(
        &self,
        (x, mut y, mut z): (View<'_, f32, 2>, ViewMut<'_, f32, 2>, ViewMut<'_, f32, 2>),
        _: &mut LeafContext<'_>,
    ) {
        for i in 0..x.len(0) {
            y.row_mut(&[i]).copy_from_slice(x.row(&[i]));
            z.row_mut(&[i]).iter_mut().zip(x.row(&[i])).for_each(|(z, x)| *z += x);
        }
    }
    fn work(&self, _: &CallShape) -> Work {
        Work::default()
    }
}

struct Arrays {
    program: Program,
    task: TaskHandle<Move>,
    input: Array<f32, 2>,
    output: Array<f32, 2>,
    inout: Array<f32, 2>,
}

fn arrays() -> Arrays {
    let mut program = Program::new();
    let task = program.task(Move);
    let input = program.array("in", [4, 6], Role::Input).unwrap();
    let output = program.array("out", [4, 6], Role::Output).unwrap();
    let inout = program.array("both", [8, 6], Role::InOut).unwrap();
    Arrays { program, task, input, output, inout }
}

type Blocks = (Block<f32, 2>, Block<f32, 2>, Block<f32, 2>);

/// The refusal of a call, whose words name the task and the parameter; the program stays as it was.
fn refused(blocks: impl Fn(&Arrays) -> Blocks, words: &[&str]) -> ArgumentError {
    let mut a = arrays();
    let blocks = blocks(&a);
    let error = a.program.call(a.task, blocks, Scalars::new()).unwrap_err();
    let message = error.to_string();
    for word in words.iter().chain(&["call 0 of move"]) {
        assert!(message.contains(word), "{word:?} is not in {message:?}");
    }
    assert!(a.program.calls().is_empty());
    let ProgramError::Call { source, .. } = error else { panic!("{error}") };
    source
}

#[test]
fn blocks_outside_their_array() {
    let below = |a: &Arrays| (a.input.block([3, 0], [2, 6]), a.output.all(), a.inout.block([0, 0], [4, 6]));
    let error = refused(below, &["x is given [3..5, 0..6]", "array in", "4 x 6"]);
    assert!(matches!(error, ArgumentError::OutOfBounds { .. }));
    let empty = |a: &Arrays| (a.input.all(), a.output.block([1, 1], [0, 3]), a.inout.block([0, 0], [4, 6]));
    refused(empty, &["y is given [1..1, 1..4]"]);
}

#[test]
fn indices_do_not_wrap_around() {
    let all = |a: &Arrays| (a.output.all(), a.inout.block([0, 0], [4, 6]));
    for (start, len) in [([u64::MAX, 0], [5, 6]), ([1, 0], [u64::MAX, 6]), ([0, u64::MAX - 2], [4, 6])] {
        let error = refused(|a| (a.input.block(start, len), all(a).0, all(a).1), &["x is given", "array in"]);
        assert!(matches!(error, ArgumentError::OutOfBounds { .. }));
    }
}

/// Two programs that look alike from outside: handles of one are no handles of the other.
#[test]
fn handles_belong_to_their_program() {
    let mut other = Program::new();
    let small = other.array::<u8, 1>("bytes", [8], Role::InOut).unwrap();
    let lonely = other.task(Move);
    other.task(Merge::<f32, 2, Sum>::default());
    let mut a = arrays();
    let blocks = (a.input.all(), a.output.all(), a.inout.block([0, 0], [4, 6]));
    let error = a.program.call(lonely, blocks, Scalars::new()).unwrap_err();
    assert!(matches!(&error, ProgramError::ForeignTask { call: 0, task } if task.contains("Move")), "{error}");
    // The array of that number is another one here, or none.
    let far = arrays();
    for (number, foreign) in [far.input, far.output, far.inout].into_iter().enumerate() {
        let mut blocks = (a.input.all(), a.output.all(), a.inout.block([0, 0], [4, 6]));
        *[&mut blocks.0, &mut blocks.1, &mut blocks.2][number] = foreign.block([0, 0], [4, 6]);
        let error = a.program.call(a.task, blocks, Scalars::new()).unwrap_err();
        assert!(
            matches!(&error, ProgramError::ForeignArray { param, .. } if *param == ["x", "y", "z"][number]),
            "{error}"
        );
        let blocks = (foreign.block([0, 0], [4, 6]), a.output.all(), a.inout.block([0, 0], [4, 6]));
        let error = other.clone().call(far.task, blocks, Scalars::new()).unwrap_err();
        assert!(matches!(error, ProgramError::ForeignTask { .. }), "{error}");
    }
    assert!(a.program.calls().is_empty() && small.index() == 0);
    // Wherever an array is named by a handle.
    let (here, there) = (a.program.declared(), other.declared());
    assert_eq!((small.number(here), small.number(there), small.all().number(here)), (None, Some(0), None));
    assert_eq!((0.number(there), 1.number(there), AnyArray::from(small).number(here)), (Some(0), None, None));
}

#[test]
fn clones_share_what_was_declared_before() {
    let mut a = arrays();
    let mut clone = a.program.clone();
    let blocks = (a.input.all(), a.output.all(), a.inout.block([0, 0], [4, 6]));
    clone.call(a.task, blocks, Scalars::new()).unwrap();
    a.program.call(a.task, blocks, Scalars::new()).unwrap();
    assert!(a.program.is_same(&clone));
    // Both go on alone: the next array has the same number in both, and is not the same.
    let mine = a.program.array::<f32, 2>("mine", [4, 6], Role::Output).unwrap();
    let theirs = clone.array::<f64, 1>("theirs", [3], Role::Output).unwrap();
    assert_eq!(mine.index(), theirs.index());
    let blocks = (a.input.all(), mine.all(), a.inout.block([0, 0], [4, 6]));
    let error = clone.call(a.task, blocks, Scalars::new()).unwrap_err();
    assert!(matches!(error, ProgramError::ForeignArray { param: "y", .. }), "{error}");
    a.program.call(a.task, blocks, Scalars::new()).unwrap();
}

#[test]
fn inputs_are_not_written() {
    let error = refused(|a| (a.output.all(), a.input.all(), a.inout.block([0, 0], [4, 6])), &["y", "in", "inout"]);
    assert!(matches!(error, ArgumentError::WritesInput { .. }));
}

#[test]
fn written_blocks_are_not_shared() {
    let error = refused(
        |a| (a.inout.block([0, 0], [4, 6]), a.output.all(), a.inout.block([3, 5], [4, 1])),
        &["x and z overlap", "both"],
    );
    assert!(matches!(error, ArgumentError::Aliased { .. }));
    refused(|a| (a.input.all(), a.inout.block([0, 0], [4, 6]), a.inout.block([0, 0], [4, 6])), &["y and z overlap"]);
}

#[test]
fn disjoint_blocks_of_one_array_are_fine() {
    let mut a = arrays();
    let blocks = (a.inout.block([0, 0], [4, 6]), a.output.all(), a.inout.block([4, 0], [4, 6]));
    a.program.call(a.task, blocks, Scalars::new()).unwrap();
    let shape = a.program.calls()[0].shape();
    assert_eq!(shape.shapes[2], Shape::new(&[4, 6]));
}

#[test]
fn arrays_hold_something_and_can_be_counted() {
    let mut program = Program::new();
    let zero = program.array::<f32, 3>("empty", [3, 0, 5], Role::Input).unwrap_err();
    let none = program.any_array("single", ElementType::F32, Shape::new(&[]), Role::Output).unwrap_err();
    assert!(matches!(&none, ProgramError::NoDimensions { .. }) && none.to_string().contains("single"), "{none}");
    assert!(matches!(&zero, ProgramError::ZeroLength { .. }) && zero.to_string().contains("3 x 0 x 5"), "{zero}");
    for shape in [[1 << 31, 1 << 31], [u64::MAX, 2], [1 << 60, 2]] {
        let large = program.array::<f32, 2>("large", shape, Role::Input).unwrap_err();
        assert!(matches!(&large, ProgramError::TooLarge { .. }) && large.to_string().contains("large"), "{large}");
    }
    program.array::<u8, 1>("just", [i64::MAX as u64], Role::Input).unwrap();
    assert_eq!(program.arrays().len(), 1);
}

#[test]
fn sequential_execution_wants_every_byte() {
    let a = arrays();
    let error = a.program.run_sequential(&mut [vec![0; 96], vec![0; 95], vec![0; 192]]).unwrap_err();
    let wanted = SequentialError::WrongLength { array: "out".to_owned(), expected: 96, given: 95 };
    assert_eq!(error.to_string(), wanted.to_string());
}

/// Asks for as much as it is told.
struct Greedy(u64);

impl Task for Greedy {
    type Params = (Write<u8, 1>,);
    fn name(&self) -> &'static str {
        "greedy"
    }
    fn split(&self, call: &CallShape, _: &Tunables) -> Vec<SubCall> {
        vec![SubCall::itself([(0, Region::whole(call.shapes[0]))], &call.scalars)]
    }
    fn scratch_bytes(&self, _: &CallShape, _: u64) -> u64 {
        self.0
    }
    fn leaf(&self, _: (ViewMut<'_, u8, 1>,), context: &mut LeafContext<'_>) {
        assert_eq!(context.scratch.len() as u64, self.0);
    }
    fn work(&self, _: &CallShape) -> Work {
        Work::default()
    }
}

#[test]
fn scratch_memory_is_as_long_as_asked_for_or_refused() {
    let run = |bytes: u64| {
        let mut program = Program::new();
        let task = program.task(Greedy(bytes));
        let out = program.array::<u8, 1>("out", [4], Role::Output).unwrap();
        program.call(task, (out.all(),), Scalars::new()).unwrap();
        program.run_sequential(&mut [vec![0; 4]])
    };
    for bytes in [0, 1, 1000] {
        run(bytes).unwrap();
    }
    for bytes in [u64::MAX - 20, u64::MAX, i64::MAX as u64] {
        assert!(matches!(run(bytes), Err(SequentialError::Scratch { .. })), "{bytes}");
    }
}

#[test]
fn sequential_execution_reads_inputs_and_clears_the_rest() {
    let mut a = arrays();
    let blocks = (a.input.all(), a.output.all(), a.inout.block([2, 0], [4, 6]));
    a.program.call(a.task, blocks, Scalars::new()).unwrap();
    let bytes = |f: &dyn Fn(usize) -> f32, n: usize| (0..n).flat_map(|i| f(i).to_le_bytes()).collect::<Vec<u8>>();
    let mut memory = [bytes(&|i| i as f32, 24), bytes(&|_| 7.0, 24), bytes(&|i| 100.0 * i as f32, 48)];
    a.program.run_sequential(&mut memory).unwrap();
    assert_eq!(memory[1], memory[0]);
    let updated = |i: usize| 100.0 * i as f32 + if (12..36).contains(&i) { (i - 12) as f32 } else { 0.0 };
    assert_eq!(memory[2], bytes(&updated, 48));
}
