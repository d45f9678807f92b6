//! Sums of the rows of a matrix and how its elements are spread, from reading it once: `histogram [M.npy [SUMS BINS]]`.
use multigrain::prelude::*;

fn main() -> Result<(), Error> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let name = |i: usize, or: &'static str| given.get(i).cloned().unwrap_or(or.to_owned());
    let runtime = Runtime::with_memory("4MiB")?;
    let m = match given.first() {
        Some(path) => runtime.npy::<f32, 2>(path)?,
        None => runtime.generated([1000, 3000], 1),
    };
    let (sums, bins) = (m.sum_axis::<f64>(1), m.histogram(64, -1.0..1.0));
    let outcome = runtime.compute((sums.save(name(1, "sums.npy")), bins.save(name(2, "bins.npy"))))?;
    println!("{} bytes read of {}", outcome.edges[0].traffic.bytes_down, 4 * m.shape().iter().product::<u64>());
    Ok(())
}
