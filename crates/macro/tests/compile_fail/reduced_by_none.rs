use multigrain_macro::task;

#[task(axes(n))]
fn total(#[at(n)] x: Read<f32, 1>, #[at(n)] sum: Reduce<f64, 1>) {}

fn main() {}
