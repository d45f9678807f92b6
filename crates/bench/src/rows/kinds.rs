//! Children that differ: one core and an emulated device multiply together, beside what their rates add up to.

use crate::entry::Entry;
use crate::harness::Bench;
use crate::harness::rounds::{Turn, alternate};
use crate::harness::row::{Bar, Figure, Row, Unit};
use multigrain::prelude::*;
use multigrain::rooms::machine::ProcessorKind;
use multigrain::rooms::program::Region;
use multigrain::{Job, MachineChoice, Options, Source};
use multigrain_console::Failure;
use multigrain_sgemm::task::Product;
use multigrain_simd::Isa;
use std::time::Duration;

pub(super) const ENTRIES: &[Entry] =
    &[Entry::rows("kinds", "A core and an emulated device multiply together; their rates added up", together)];

/// Rates of the core and of the device: which of them works how many times as long on a leaf as it needs.
const RATES: [(&str, u64, u64); 3] = [("kinds-1-1", 1, 1), ("kinds-1-4", 4, 1), ("kinds-4-1", 1, 4)];

/// The product of `apps/sgemm` on a core that is so many times slower than it is.
struct Paced {
    product: Product,
    slower: u32,
}

impl Task for Paced {
    type Params = <Product as Task>::Params;

    fn name(&self) -> &'static str {
        self.product.name()
    }

    fn notation(&self) -> Option<Notation> {
        self.product.notation()
    }

    fn leaf(&self, views: (View<'_, f32, 2>, View<'_, f32, 2>, ViewMut<'_, f32, 2>), context: &mut LeafContext<'_>) {
        let used = processor_time();
        self.product.leaf(views, context);
        // The device has a pace of its own.
        if context.processor() == ProcessorKind::Cpu.name() {
            let least = used + (processor_time() - used) * self.slower;
            while processor_time() < least {
                std::hint::spin_loop();
            }
        }
    }

    fn scratch_bytes(&self, call: &CallShape, capacity_bytes: u64) -> u64 {
        self.product.scratch_bytes(call, capacity_bytes)
    }

    fn work(&self, call: &CallShape) -> Work {
        self.product.work(call)
    }
}

/// What the calling thread has used of processors.
fn processor_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec.unsigned_abs(), used.tv_nsec.unsigned_abs() as u32)
}

fn job(n: u64, slower: u64) -> Result<Job, Failure> {
    let mut program = Program::new();
    let product = program.task(Paced { product: Product::new(Isa::detect()), slower: slower as u32 });
    let [a, b] = ["A", "B"].map(|name| program.array::<f32, 2>(name, [n, n], Role::Input));
    let (a, b, c) = (a?, b?, program.array::<f32, 2>("C", [n, n], Role::Output)?);
    program.call(product, (a.all(), b.all(), c.all()), Scalars::new())?;
    let source = |seed| Source::Generated { seed };
    Ok(Job::new("sgemm", program).with_source(0, source(1)).with_source(1, source(2)))
}

/// The shipped machine with these rates, in floating-point operations per second, and a slower device; without one of the kinds
/// if that has no rate.
fn machine(core: Option<f64>, device: Option<f64>, slower: u64) -> Result<Machine, Failure> {
    let mut machine = Machine::shipped("cpu+device")?.with("device", |memory| {
        memory.settings.retain(|(key, _)| key != "slower");
        memory.settings.push(("slower".to_owned(), slower.to_string()));
        memory.processor.iter_mut().for_each(|processor| processor.kind = ProcessorKind::Gpu);
    })?;
    for (name, rate) in [("core", core), ("device", device)] {
        let Some(rate) = rate else {
            let rest = machine.memories().iter().filter(|memory| memory.name != name).cloned();
            machine = Machine::new(&machine.name, &machine.description, rest.collect())?;
            continue;
        };
        machine = machine.with(name, |memory| {
            memory.processor.iter_mut().for_each(|processor| processor.flops_per_second = rate);
        })?;
    }
    Ok(machine)
}

fn runtime(machine: Machine) -> Result<Runtime, Failure> {
    Ok(Runtime::new(Options { machine: MachineChoice::Given(Box::new(machine)), ..Options::default() })?)
}

fn together(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    multigrain_device::register()?;
    RATES.iter().map(|&(name, core, device)| row(bench, name, core, device)).collect()
}

fn row(bench: &Bench<'_>, name: &str, core_slower: u64, device_slower: u64) -> Result<Row, Failure> {
    let n = bench.size(4096, 256);
    let flops = 2.0 * (n as f64).powi(3);
    let job = job(n, core_slower)?;
    let guess = 1e11;
    let alone = [
        runtime(machine(Some(guess / core_slower as f64), None, 1)?)?,
        runtime(machine(None, Some(guess / device_slower as f64), device_slower)?)?,
    ];
    let [mut core, mut device] = [alone[0].prepare(&job)?, alone[1].prepare(&job)?];
    // Each alone says what the machine file of both has to say; the first run finds untouched memory.
    let rate = |prepared: &mut multigrain::Prepared<'_>| -> Result<f64, Failure> {
        prepared.run(bench.settings())?;
        Ok(flops / prepared.run(bench.settings())?.seconds)
    };
    let rates = [rate(&mut core)?, rate(&mut device)?];
    let both = runtime(machine(Some(rates[0]), Some(rates[1]), device_slower)?)?;
    let result = |runtime: &Runtime| -> Result<Vec<u8>, Failure> {
        Ok(runtime.run(&job, bench.settings())?.read(2, &Region::whole(Shape::new(&[n, n])))?)
    };
    if result(&both)? != result(&alone[0])? {
        return Ok(Row::failed(name, "the core and the device together give other bits than the core".into()));
    }
    let mut both = both.prepare(&job)?;
    let mut turns: [Turn<'_>; 3] = [
        Box::new(|| Ok(both.run(bench.settings())?.seconds)),
        Box::new(|| Ok(core.run(bench.settings())?.seconds)),
        Box::new(|| Ok(device.run(bench.settings())?.seconds)),
    ];
    let samples = alternate(bench, name, bench.args.rounds, &mut turns, &mut [])?;
    drop(turns);
    let [both, core, device] = <[Vec<f64>; 3]>::try_from(samples).unwrap_or_default();
    let each = both.iter().zip(core.iter().zip(&device));
    let ours = each.map(|(both, (core, device))| both * (1.0 / core + 1.0 / device)).collect();
    let speed = |samples: Vec<f64>| {
        let seconds = Figure { name: String::new(), version: None, samples, missing: None }.median();
        seconds.map_or(0.0, |seconds| flops / seconds / 1e9)
    };
    let (core, device, both) = (speed(core), speed(device), speed(both));
    let note = format!(
        "C = A B in memory, n = {n}: time of both in multiples of what their rates add up to; core {core:.1}, device {device:.1}, \
         both {both:.1} GFLOP/s; the same bits"
    );
    Ok(Row::new(name, Unit::Multiple, ours, None::<Figure>, Bar::AtMost(1.1), vec![note]))
}
