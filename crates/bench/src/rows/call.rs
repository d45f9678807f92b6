//! What a call costs that does nothing: in a stream of a million, planned once, and one at a time.

use crate::entry::Entry;
use crate::harness::rounds::{Contender, Turn, alternate};
use crate::harness::row::{Bar, Row, Unit, median};
use crate::harness::{Bench, run_seconds};
use multigrain::Job;
use multigrain::prelude::{
    CallShape, Error, LeafContext, Program, Role, Scalars, SubCall, Task, Tunable, Tunables, Update, ViewMut, Work,
};
use multigrain_console::Failure;
use std::time::Instant;

pub(super) const ENTRIES: &[Entry] = &[Entry::rows("call", "Empty calls; oneTBB, StarPU", call)];

/// Elements of a block: one cache line.
const BLOCK: u64 = 16;

/// A task on a block that does nothing with it.
struct Nothing;

impl Task for Nothing {
    type Params = (Update<f32, 1>,);

    fn name(&self) -> &'static str {
        "nothing"
    }

    fn param_names(&self) -> &'static [&'static str] {
        &["block"]
    }

    fn tunables(&self, _: &CallShape) -> Vec<Tunable> {
        Vec::new()
    }

    fn split(&self, call: &CallShape, _: &Tunables) -> Vec<SubCall> {
        let whole = multigrain::prelude::Region::whole(call.shapes[0]);
        vec![SubCall::itself([(0, whole)], &call.scalars)]
    }

    fn leaf(&self, (block,): (ViewMut<'_, f32, 1>,), _: &mut LeafContext<'_>) {
        std::hint::black_box(block.len(0));
    }

    fn work(&self, call: &CallShape) -> Work {
        Work { flops: 0.0, bytes: 4.0 * call.shapes[0].elements() as f64 }
    }
}

/// `calls` calls, each on a block of its own.
fn job(calls: u64) -> Result<Job, Error> {
    let mut program = Program::new();
    let nothing = program.task(Nothing);
    let blocks = program.array::<f32, 1>("blocks", [calls * BLOCK], Role::InOut)?;
    for i in 0..calls {
        program.call(nothing, (blocks.block([i * BLOCK], [BLOCK]),), Scalars::new())?;
    }
    Ok(Job::new("nothing", program))
}

/// Rows of a stream, on the threads asked for and on one; and of a call that is waited for.
pub(crate) fn call(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let calls = bench.size(1_000_000, 10_000);
    let stream = job(calls)?;
    let several = bench.runtime(bench.threads(), None)?;
    let one = bench.runtime(1, None)?;
    let begin = Instant::now();
    let mut on_several = several.prepare(&stream)?;
    let preparing_ns = begin.elapsed().as_secs_f64() * 1e9 / calls as f64;
    let mut on_one = one.prepare(&stream)?;
    let mut turns: [Turn<'_>; 2] = [
        Box::new(|| Ok(run_seconds(&on_several.run(bench.settings())?) * 1e9 / calls as f64)),
        Box::new(|| Ok(run_seconds(&on_one.run(bench.settings())?) * 1e9 / calls as f64)),
    ];
    let options = |work: &str| [("work", work.to_owned()), ("calls", bench.size(1_000_000, 10_000).to_string())];
    let mut peers = [
        Contender::start(bench, "tbb", "tbb", &options("stream")),
        Contender::start(bench, "starpu", "starpu", &[("work", "stream".to_owned())]),
    ];
    let samples = alternate(bench, "call", bench.args.rounds, &mut turns, &mut peers)?;
    drop(turns);
    let [ours, alone] = <[Vec<f64>; 2]>::try_from(samples).unwrap_or_default();
    let alone = median(&alone).unwrap_or(f64::NAN);
    let stream = Row::new(
        "call",
        Unit::Nanoseconds,
        ours,
        peers,
        Bar::AtMost(200.0),
        vec![
            format!(
                "an empty call in a stream of {calls}, on {} threads; on one thread {alone:.1} ns",
                bench.threads()
            ),
            format!("once before the first run: planning and memory, {preparing_ns:.0} ns a call"),
        ],
    );
    Ok(vec![stream, waited_for(bench)?])
}

/// Runs of a plan of one call, each waited for.
fn waited_for(bench: &Bench<'_>) -> Result<Row, Failure> {
    let runs = bench.size(10_000, 100);
    let single = job(1)?;
    let runtime = bench.runtime(bench.threads(), None)?;
    let mut prepared = runtime.prepare(&single)?;
    let turn: Turn<'_> = Box::new(|| {
        let begin = Instant::now();
        for _ in 0..runs {
            prepared.run(bench.settings())?;
        }
        Ok(begin.elapsed().as_secs_f64() * 1e9 / runs as f64)
    });
    let calls = bench.size(100_000, 1_000).to_string();
    let mut peers = [
        Contender::start(bench, "tbb", "tbb", &[("work", "run-wait".to_owned()), ("calls", calls)]),
        Contender::start(bench, "starpu", "starpu", &[("work", "submit-wait".to_owned())]),
    ];
    let ours = alternate(bench, "call", bench.args.rounds, &mut [turn], &mut peers)?.concat();
    Ok(Row::new(
        "call-wait",
        Unit::Nanoseconds,
        ours,
        peers,
        Bar::None,
        vec!["a run of a prepared plan of one empty call, reservation of its memory and report included".into()],
    ))
}
