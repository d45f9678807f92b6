use multigrain_macro::task;

#[task(axes(n))]
fn filter(#[at(n +- half(taps, 0))] x: Read<f32, 1>, #[at(:)] weights: Read<f32, 1>, #[at(n)] y: Write<f32, 1>) {}

fn main() {}
