use multigrain_macro::task;

#[task(axes(i))]
unsafe fn copied(#[at(i)] x: Read<f32, 1>, #[at(i)] y: Write<f32, 1>) {}

fn main() {}
