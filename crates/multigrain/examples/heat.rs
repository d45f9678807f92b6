//! Heat spreads over a plate of any size: `heat [U.npy [OUT.npy [STEPS [MEMORY]]]]`.
use multigrain::prelude::*;

/// Each point becomes the mean of its neighbours; beyond the edge of the plate it is as warm as at the edge.
#[task(axes(i, j), flops = 4.0)]
fn heat(#[at(i +- 1, j +- 1)] u: Read<f32, 2>, #[at(i, j)] next: Write<f32, 2>) {
    for i in 0..next.len(0) {
        for (j, next) in next.row_mut(&[i]).iter_mut().enumerate() {
            let near = |di, dj| u.near([i, j], [di, dj]);
            *next = 0.25 * (near(-1, 0) + near(1, 0) + near(0, -1) + near(0, 1));
        }
    }
}

fn main() -> Result<(), Error> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let runtime = Runtime::with_memory(given.get(3).map_or("4MiB", String::as_str))?;
    let plate = match given.first() {
        Some(path) => runtime.npy(path)?,
        None => runtime.generated([1000, 1200], 1),
    };
    let no_number = |steps| Error::Request(format!("{steps}: how many steps?"));
    let steps = given.get(2).map_or(Ok(50), |steps| steps.parse().map_err(|_| no_number(steps)))?;
    let out = given.get(1).map_or("heat.npy", String::as_str);
    runtime.compute(plate.iterate(steps, heat).save(out))?;
    Ok(())
}
