use multigrain_macro::task;

#[task(axes(i))]
fn copied(#[cfg(any())] #[at(i)] x: Read<f32, 1>, #[at(i)] y: Write<f32, 1>) {}

fn main() {}
