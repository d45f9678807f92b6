use multigrain_macro::task;

#[task(axes(i))]
fn diagonal(#[at(i, i)] a: Read<f32, 2>, #[at(i)] d: Write<f32, 1>) {}

fn main() {}
