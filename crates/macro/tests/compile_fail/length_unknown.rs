use multigrain_macro::task;

#[task(axes(i, j))]
fn shrink(#[at(i +- 1, j +- 1)] u: Read<f32, 2>, #[at(i)] next: Write<f32, 1>) {}

fn main() {}
