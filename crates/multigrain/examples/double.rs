//! y = 2 x, for vectors of any length: `double [X.npy [Y.npy]]`.
use multigrain::prelude::*;

fn main() -> Result<(), Error> {
    let mut files = std::env::args().skip(1);
    let runtime = Runtime::with_memory("4MiB")?;
    let x = files.next().map_or_else(|| Ok(runtime.generated([1 << 20], 1)), |x| runtime.npy::<f32, 1>(x))?;
    runtime.compute(x.map(|x| 2.0 * x).save(files.next().as_deref().unwrap_or("double.npy")))?;
    Ok(())
}
