use multigrain_macro::task;

#[task(axes(n))]
fn double(x: Read<f32, 1>, #[at(n)] y: Write<f32, 1>) {}

fn main() {}
