//! Tasks that say one thing of their splits and do another: refused with a word, or planned with bounded work.

use multigrain::prelude::*;
use multigrain::{MachineChoice, parse_bytes};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// What a task does about its split.
#[derive(Clone, Copy, Debug)]
enum Lie {
    /// So many calls, whatever the tunables say.
    Calls(u64),
    /// So many calls, each of which is the whole.
    Wholes(u64),
    /// An axis of extent 0.
    Nothing,
    /// More calls each time it is asked.
    More,
    /// So many stages, each of which is the whole.
    Stages(u64),
    /// So many tunables, of which it uses one.
    Tunables(usize),
    /// So many bytes of scratch memory.
    Scratch(u64),
    /// So many bytes that have to be moved each way.
    Bound(u64),
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
        let count = if let Lie::Tunables(count) = self.lie { count } else { 1 };
        let unused = (1..count).map(|number| &*Box::leak(format!("unused {number}").into_boxed_str()));
        std::iter::once("i").chain(unused).map(|name| Tunable { name, extent, multiple: 1 }).collect()
    }
    fn stages(&self, call: &CallShape) -> Vec<SubCall> {
        let count = if let Lie::Stages(count) = self.lie { count } else { 0 };
        self.made.fetch_add(count, Ordering::Relaxed);
        (0..count).map(|_| SubCall::whole(call)).collect()
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let n = call.shapes[0].elements();
        let calls: Vec<SubCall> = match self.lie {
            Lie::Wholes(calls) => (0..calls).map(|_| SubCall::whole(call)).collect(),
            _ => {
                let each = match self.lie {
                    Lie::Calls(calls) => n.div_ceil(calls).max(1),
                    Lie::More => n.div_ceil(self.made.load(Ordering::Relaxed) + 1).max(1),
                    _ => tunables.get("i", n),
                };
                let block = |(first, len)| SubCall::itself([(0, Region::new(&[first], &[len]))], &call.scalars);
                blocks(n, each).map(block).collect()
            }
        };
        self.made.fetch_add(calls.len() as u64, Ordering::Relaxed);
        calls
    }
    fn scratch_bytes(&self, _: &CallShape, _: u64) -> u64 {
        if let Lie::Scratch(bytes) = self.lie { bytes } else { 0 }
    }
    fn io_lower_bound(&self, _: &CallShape, _: u64) -> Option<IoBound> {
        let Lie::Bound(bytes) = self.lie else { return None };
        Some(IoBound { bytes_down: bytes, bytes_up: bytes })
    }
    fn leaf(&self, (mut y,): (ViewMut<'_, f32, 1>,), _: &mut LeafContext<'_>) {
        y.row_mut(&[]).iter_mut().for_each(|y| *y += 1.0);
    }
}

/// What becomes of a plan, and how many calls were made on the way to it.
fn planned(lie: Lie, memory: &str, machine: &str) -> (Result<usize, String>, u64) {
    planned_within(lie, memory, machine, None)
}

/// The same, with lists that are so long at most.
fn planned_within(lie: Lie, memory: &str, machine: &str, listed_max: Option<u64>) -> (Result<usize, String>, u64) {
    let made = Arc::new(AtomicU64::new(0));
    let mut program = Program::new();
    let task = program.task(Liar { lie, made: made.clone() });
    let y = program.array::<f32, 1>("y", [1 << 20], Role::InOut).unwrap();
    let called = program.call(task, (y.all(),), Scalars::new()).map_err(|e| e.to_string());
    let plan = called.and_then(|()| {
        let options = Options {
            machine: MachineChoice::Given(Box::new(Machine::shipped(machine).unwrap())),
            memory_bytes: Some(parse_bytes(memory).unwrap()),
            listed_max,
            ..Options::default()
        };
        let runtime = Runtime::new(options).map_err(|e| e.to_string())?;
        runtime.plan(&Job::new("liar", program)).map(|planned| planned.plan.calls.len()).map_err(|e| e.to_string())
    });
    (plan, made.load(Ordering::Relaxed))
}

/// Where lists are to be short, and what would be a part of one does not fit a memory below, a long list is not looked at: there its
/// blocks would be cut in the same way.
#[test]
fn what_no_part_has_room_for_below_is_not_looked_at_in_a_long_list() {
    let (result, made) = planned_within(Lie::Scratch(1 << 20), "1 MiB", "disk+local", Some(2));
    let text = result.expect_err("its scratch memory is more than a local store");
    assert!(text.contains("memory local offers 0 B"), "{text}");
    assert!(made <= 1 << 16, "{made} calls were made");
}

#[test]
fn lies_end_with_a_word_or_bounded_work() {
    let many = 1 << 18;
    for machine in ["disk", "disk+local"] {
        for (lie, words, most) in [
            (Lie::Calls(many), &["liar", "262144", "calls"][..], 4 * many),
            (Lie::Wholes(1000), &["liar", "1000 calls", "whole call again"], 4000),
            (Lie::Nothing, &["liar", "tunable i", "extent 0"], 0),
            (Lie::More, &["liar", "calls"], 1 << 24),
            (Lie::Stages(16), &["liar", "stages", "4096"], 1 << 18),
        ] {
            let (result, made) = planned(lie, "16 MiB", machine);
            assert!(made <= most, "{lie:?} on {machine}: {made} calls were made");
            let text = match (result, lie) {
                (Err(text), _) => text,
                // Where one block takes it there is no need of stages.
                (Ok(1), Lie::Stages(_)) => continue,
                (Ok(calls), _) => panic!("{lie:?} on {machine} has {calls} calls"),
            };
            assert!(words.iter().all(|word| text.contains(word)), "{lie:?} on {machine}: {text}");
        }
        // A split that is always the same, and short enough.
        let (result, made) = planned(Lie::Calls(512), "16 MiB", machine);
        assert!(result.is_ok(), "{result:?}");
        assert!(made <= 1 << 18, "{made} calls were made on {machine}");
        // However many ways there are of setting tunables, few are looked at.
        for count in [1, 12, 50] {
            let (result, _) = planned(Lie::Tunables(count), "16 MiB", machine);
            // Of fifty the finest is all that is looked at.
            let told = result.as_ref().is_err_and(|text| count == 50 && text.contains("liar is split into"));
            assert!(result.is_ok() || told, "{count} tunables on {machine}: {result:?}");
        }
    }
}

/// Sizes near the largest number are large sizes, and not small ones.
#[test]
fn sums_of_sizes_end_at_the_largest_number() {
    for machine in ["disk", "disk+local", "smp"] {
        for bytes in [u64::MAX, u64::MAX - 63, u64::MAX / 2, 1 << 40] {
            let (result, _) = planned(Lie::Scratch(bytes), "16 MiB", machine);
            let text = result.expect_err("there is no such memory");
            assert!(text.contains("does not fit"), "{bytes} on {machine}: {text}");
        }
        let (result, _) = planned(Lie::Bound(u64::MAX), "16 MiB", machine);
        assert!(result.is_ok(), "{result:?}");
    }
    // Arrays of nearly as many bytes as there can be, of which there are several.
    let mut program = Program::new();
    let task = program.task(Liar { lie: Lie::Tunables(1), made: Arc::default() });
    for number in 0..3 {
        let y = program.array::<f32, 1>(&format!("y{number}"), [1 << 60], Role::InOut).unwrap();
        program.call(task, (y.all(),), Scalars::new()).unwrap();
    }
    let job = Job::new("liar", program);
    for memory_bytes in [None, Some(1 << 30)] {
        let runtime = Runtime::new(Options { memory_bytes, ..Options::default() }).unwrap();
        let refused = runtime.run(&job, Settings::default()).err().expect("no computer has so much room");
        assert_eq!(refused.exit_status(), 2, "{refused}");
        let _ = runtime.plan(&job);
    }
}

/// One of calls that are almost as long is searched for, and not each.
#[test]
fn calls_of_almost_one_length_are_planned_like_the_first() {
    let made_for = |step: u64| {
        let made = Arc::new(AtomicU64::new(0));
        let mut program = Program::new();
        let task = program.task(Liar { lie: Lie::Tunables(1), made: made.clone() });
        let lengths: Vec<u64> = (0..64).map(|number| (1 << 16) - step * number).collect();
        let y = program.array::<f32, 1>("y", [lengths.iter().sum()], Role::InOut).unwrap();
        let mut first = 0;
        for len in lengths {
            program.call(task, (y.block([first], [len]),), Scalars::new()).unwrap();
            first += len;
        }
        let options = Options {
            machine: MachineChoice::Given(Box::new(Machine::shipped("disk+local").unwrap())),
            memory_bytes: Some(1 << 20),
            ..Options::default()
        };
        let planned = Runtime::new(options).unwrap().plan(&Job::new("liar", program)).unwrap();
        assert!(planned.plan.calls.len() >= 64);
        made.load(Ordering::Relaxed)
    };
    let (of_one, of_many) = (made_for(0), made_for(7));
    // Each is split some times to be looked at and planned: that is not the search for one.
    assert!(of_many < 16 * of_one, "{of_one} calls were made for one length, {of_many} for 64");
}

/// A leaf that begins a run of the runtime that executes it.
struct Begins {
    runtime: Arc<OnceLock<Runtime>>,
    said: Arc<Mutex<Vec<String>>>,
}

impl Task for Begins {
    type Params = (Update<f32, 1>,);
    fn name(&self) -> &'static str {
        "begins"
    }
    fn notation(&self) -> Option<Notation> {
        Some(Notation::axes(["i"]).param("y", ["i"]))
    }
    fn leaf(&self, _: (ViewMut<'_, f32, 1>,), _: &mut LeafContext<'_>) {
        let ended = self.runtime.get().unwrap().run(&Job::new("inner", Program::new()), Settings::default());
        self.said.lock().unwrap().push(ended.map(|_| ()).unwrap_err().to_string());
    }
}

#[test]
fn a_run_that_is_begun_from_within_a_run_is_refused_on_every_worker() {
    let (runtime, said) = (Arc::new(OnceLock::new()), Arc::default());
    let options = Options { threads: Some(3), memory_bytes: Some(64 << 20), ..Options::default() };
    runtime.get_or_init(|| Runtime::new(options).unwrap());
    let mut program = Program::new();
    let task = program.task(Begins { runtime: runtime.clone(), said: Arc::clone(&said) });
    let y = program.array::<f32, 1>("y", [1 << 20], Role::InOut).unwrap();
    (0..64).for_each(|i| program.call(task, (y.block([i << 14], [1 << 14]),), Scalars::new()).unwrap());
    runtime.get().unwrap().run(&Job::new("outer", program), Settings::default()).unwrap();
    let said = said.lock().unwrap();
    assert!(said.len() >= 64 && said.iter().all(|text| text.contains("from within a run")), "{said:?}");
}

#[task(axes(i, j))]
fn below(#[at(i +- 1, j)] u: Read<f32, 2>, #[at(i, j)] y: Write<f32, 2>) {
    for i in 0..y.len(0) {
        for j in 0..y.len(1) {
            y[[i, j]] = u.get([i + 1, j], [1, 0]).unwrap_or(0.0);
        }
    }
}

/// Else it would find the end of a block where it means that of the array, and its results would depend on the memory.
#[test]
fn an_index_beyond_a_block_ends_the_run_in_any_memory() {
    let directory = tempfile::tempdir().unwrap();
    for memory in ["64MiB", "1MiB"] {
        let runtime = Runtime::with_memory(memory).unwrap();
        let steps = runtime.generated::<f32, 2>([700, 600], 1).iterate(1, below);
        let Err(error) = runtime.compute(steps.save(directory.path().join("y.npy"))) else {
            panic!("it read what is not its own")
        };
        let words = error.to_string();
        assert!(words.contains("below") && words.contains("along dimension 0 of a block of"), "{words}");
        assert_eq!(error.exit_status(), 1);
    }
}
