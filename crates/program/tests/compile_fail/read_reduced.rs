//! A leaf reads what it contributes to, as if it had been declared to be read.

use multigrain_program::*;

struct Total;

impl Task for Total {
    type Params = (Read<f32, 1>, Reduce<f32, 1>);
    fn name(&self) -> &'static str {
        "total"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["x", "total"]
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

    fn leaf(&self, (x, mut total): (View<'_, f32, 1>, ReduceMut<'_, f32, 1, Sum>), _: &mut LeafContext<'_>) {
        let before = total.row(&[])[0];
        total.combine([0], x.row(&[])[0] + before);
    }
}

fn main() {}
