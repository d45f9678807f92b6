//! A parameter that is reduced is taken as a view of its content.

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

    fn leaf(&self, (x, mut total): (View<'_, f32, 1>, ViewMut<'_, f32, 1>), _: &mut LeafContext<'_>) {
        total.row_mut(&[])[0] += x.row(&[])[0];
    }
}

fn main() {}
