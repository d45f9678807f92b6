//! A call is given an array of another rank.

use multigrain_program::*;

struct Copy1;

impl Task for Copy1 {
    type Params = (Read<f32, 1>, Write<f32, 1>);
    fn name(&self) -> &'static str {
        "copy"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["x", "y"]
    }
    fn tunables(&self, _: &CallShape) -> Vec<Tunable> {
        Vec::new()
    }
    fn split(&self, _: &CallShape, _: &Tunables) -> Vec<SubCall> {
        Vec::new()
    }
    fn work(&self, _: &CallShape) -> Work {
        Work::default()
    }

    fn leaf(&self, (x, mut y): (View<'_, f32, 1>, ViewMut<'_, f32, 1>), _: &mut LeafContext<'_>) {
        y.row_mut(&[]).copy_from_slice(x.row(&[]));
    }
}

fn main() {
    let mut program = Program::new();
    let copy = program.task(Copy1);
    let x = program.array::<f32, 2>("x", [8, 8], Role::Input).unwrap();
    let y = program.array::<f32, 1>("y", [8], Role::Output).unwrap();
    program.call(copy, (x.all(), y.all()), Scalars::new()).unwrap();
}
