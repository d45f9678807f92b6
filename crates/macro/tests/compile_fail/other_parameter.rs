use multigrain_macro::task;

#[task(axes(n))]
fn scale(#[at(n)] x: Read<f32, 1>, #[at(n)] y: Write<f32, 1>, by: i32) {}

fn main() {}
