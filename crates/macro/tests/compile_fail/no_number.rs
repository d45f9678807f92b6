use multigrain_macro::task;

#[task(axes(i))]
fn blurred(#[at(i +- 1.5)] x: Read<f32, 1>, #[at(i)] y: Write<f32, 1>) {}

fn main() {}
