use multigrain_macro::task;

#[task(axes(i, j))]
fn heat(#[at(i, j)] u: Read<f32, 2>, #[at(i +- 1, j)] next: Write<f32, 2>) {}

fn main() {}
