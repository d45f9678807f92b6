//! Tasks that say one thing of their splits and do another: refused with a word, or planned with bounded work.

use multigrain::prelude::*;
use multigrain::{MachineChoice, parse_bytes};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a task does about its split.
#[derive(Clone, Copy, Debug)]
enum Lie {
    /// So many calls, whatever the tunables say.
    Calls(u64),
    /// So many calls, each of which is the whole.
    Wholes(u64),
    /// An axis of extent 0.
    Nothing,
}

/// y = y + 1, by a split that lies; every call that it makes is counted.
struct Liar {
    lie: Lie,
    made: Arc<AtomicU64>,
}

impl Task for Liar {
    type Params = (Update<f32, 1>,);
    fn name(&self) -> &'static str {
        "liar"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["y"]
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        let extent = if let Lie::Nothing = self.lie { 0 } else { call.shapes[0].elements() };
        vec![Tunable { name: "i", extent, multiple: 1 }]
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let n = call.shapes[0].elements();
        let calls: Vec<SubCall> = match self.lie {
            Lie::Wholes(calls) => (0..calls).map(|_| SubCall::whole(call)).collect(),
            Lie::Calls(_) | Lie::Nothing => {
                let each = match self.lie {
                    Lie::Calls(calls) => n.div_ceil(calls).max(1),
                    _ => tunables.get("i", n),
                };
                let block = |(first, len)| SubCall::itself([(0, Region::new(&[first], &[len]))], &call.scalars);
                blocks(n, each).map(block).collect()
            }
        };
        self.made.fetch_add(calls.len() as u64, Ordering::Relaxed);
        calls
    }
    fn leaf(&self, (mut y,): (ViewMut<'_, f32, 1>,), _: &mut LeafContext<'_>) {
        y.row_mut(&[]).iter_mut().for_each(|y| *y += 1.0);
    }
}

/// What becomes of a plan, and how many calls were made on the way to it.
fn planned(lie: Lie, memory: &str, machine: &str) -> (Result<usize, String>, u64) {
    let made = Arc::new(AtomicU64::new(0));
    let mut program = Program::new();
    let task = program.task(Liar { lie, made: made.clone() });
    let y = program.array::<f32, 1>("y", [1 << 20], Role::InOut).unwrap();
    let called = program.call(task, (y.all(),), Scalars::new()).map_err(|e| e.to_string());
    let plan = called.and_then(|()| {
        let options = Options {
            machine: MachineChoice::Given(Box::new(Machine::shipped(machine).unwrap())),
            memory_bytes: Some(parse_bytes(memory).unwrap()),
            ..Options::default()
        };
        let runtime = Runtime::new(options).map_err(|e| e.to_string())?;
        runtime.plan(&Job::new("liar", program)).map(|planned| planned.plan.calls.len()).map_err(|e| e.to_string())
    });
    (plan, made.load(Ordering::Relaxed))
}

#[test]
fn lies_end_with_a_word_or_bounded_work() {
    let many = 1 << 18;
    for machine in ["disk", "disk+local"] {
        for (lie, words, most) in [
            (Lie::Calls(many), &["liar", "262144", "calls"][..], 4 * many),
            (Lie::Wholes(1000), &["liar", "1000 calls", "whole call again"], 4000),
            (Lie::Nothing, &["liar", "tunable i", "extent 0"], 0),
        ] {
            let (result, made) = planned(lie, "16 MiB", machine);
            let text = result.expect_err(&format!("{lie:?} on {machine}"));
            assert!(words.iter().all(|word| text.contains(word)), "{lie:?} on {machine}: {text}");
            assert!(made <= most, "{lie:?} on {machine}: {made} calls were made");
        }
        // A split that is always the same, and short enough.
        let (result, made) = planned(Lie::Calls(512), "16 MiB", machine);
        assert!(result.is_ok(), "{result:?}");
        assert!(made <= 1 << 18, "{made} calls were made on {machine}");
    }
}
