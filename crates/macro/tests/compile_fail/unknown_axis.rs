use multigrain_macro::task;

#[task(axes(i, j))]
fn heat(#[at(i +- 1, k +- 1)] u: Read<f32, 2>, #[at(i, j)] next: Write<f32, 2>) {}

fn main() {}
