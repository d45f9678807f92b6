use multigrain::prelude::*;
use multigrain::{MachineChoice, parse_bytes};
use multigrain_sgemm::{kernel, task::Product};
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let a: Vec<String> = std::env::args().collect();
    let n: u64 = a[1].parse()?;
    let mut options = Options::default();
    if a.len() > 2 && a[2] != "-" {
        options.machine = MachineChoice::Given(Box::new(Machine::shipped(&a[2])?));
    }
    if a.len() > 3 && a[3] != "-" {
        options.memory_bytes = Some(parse_bytes(&a[3])?);
    }
    let mut p = Program::new();
    let t = p.task(Product::new(kernel::detect()));
    let x = p.array::<f32, 2>("A", [n, n], Role::Input)?;
    let y = p.array::<f32, 2>("B", [n, n], Role::Input)?;
    let z = p.array::<f32, 2>("C", [n, n], Role::Output)?;
    p.call(t, (x.all(), y.all(), z.all()), Scalars::new())?;
    let mut job = Job::new("sgemm", p)
        .with_source(0, Source::Generated { seed: 1 })
        .with_source(1, Source::Generated { seed: 2 });
    if a.len() > 4 {
        job = job.with_sink(2, Sink::Npy(a[4].clone().into()));
    }
    let r = Runtime::new(options)?;
    let t0 = std::time::Instant::now();
    let planned = r.plan(&job)?;
    println!("{}planned in {:?}, predicted {:.3} s", planned.plan, t0.elapsed(), planned.plan.seconds);
    if a.len() > 5 {
        return Ok(());
    }
    for _ in 0..2 {
        let o = r.run(&job, Settings::default())?;
        println!("{:.3} s {:.1} GFLOP/s {:?}\n{:?}", o.seconds, o.flops / o.seconds / 1e9, o.breakdown, o.edges);
        let s = o.read_f32(2, &Region::new(&[n / 2, n / 2], &[1, 4]))?;
        println!("{s:?}");
    }
    Ok(())
}
