use multigrain_macro::task;

#[task]
fn double(#[at(n)] x: Read<f32, 1>, #[at(n)] y: Write<f32, 1>) {}

fn main() {}
