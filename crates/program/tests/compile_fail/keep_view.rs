//! A view is kept beyond the leaf.

use std::sync::Mutex;
use multigrain_program::*;

struct Copy1(Mutex<Option<View<'static, f32, 1>>>);

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

    fn leaf(&self, (x, _y): (View<'_, f32, 1>, ViewMut<'_, f32, 1>), _: &mut LeafContext<'_>) {
        *self.0.lock().unwrap() = Some(x);
    }
}

fn main() {}
