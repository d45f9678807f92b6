//! Peak resident memory stays below the budget plus 16 MiB, whatever a run keeps: blocks, rows that are filled, partial
//! results, scratch memory. Every run is in a process of its own, so that its peak is its own.

use crate::support;

use multigrain::MachineChoice;
use multigrain::prelude::*;
use std::path::Path;

/// What a process takes for itself.
const OWN_BYTES: u64 = 16 << 20;

/// c = a + b transposed: every block is used once, rows and columns alike.
struct AddTransposed;

impl Task for AddTransposed {
    type Params = (Read<f32, 2>, Read<f32, 2>, Write<f32, 2>);
    fn name(&self) -> &'static str {
        "add transposed"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["a", "b", "c"]
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        let tunable = |name, d: usize| Tunable { name, extent: call.shapes[2].dims()[d], multiple: 1 };
        vec![tunable("rows", 0), tunable("columns", 1)]
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let (m, n) = (call.shapes[2].dims()[0], call.shapes[2].dims()[1]);
        let (rows, columns) = (tunables.get("rows", m), tunables.get("columns", n));
        let sub = |(i, di): (u64, u64), (j, dj): (u64, u64)| {
            let (straight, turned) = (Region::new(&[i, j], &[di, dj]), Region::new(&[j, i], &[dj, di]));
            SubCall::itself([(0, straight), (1, turned), (2, straight)], &call.scalars)
        };
        blocks(m, rows).flat_map(|r| blocks(n, columns).map(move |c| (r, c))).map(|(r, c)| sub(r, c)).collect()
    }
    fn leaf(&self, (a, b, mut c): (View<'_, f32, 2>, View<'_, f32, 2>, ViewMut<'_, f32, 2>), _: &mut LeafContext<'_>) {
        for i in 0..c.len(0) {
            c.row_mut(&[i]).copy_from_slice(a.row(&[i]));
        }
        for j in 0..b.len(0) {
            for (i, b) in b.row(&[j]).iter().enumerate() {
                c.row_mut(&[i])[j] += b;
            }
        }
    }
    fn work(&self, call: &CallShape) -> Work {
        let n = call.shapes[2].elements() as f64;
        Work { flops: n, bytes: 12.0 * n }
    }
}

/// total = the sum of each column of x, whose rows are reduced.
struct Columns;

impl Task for Columns {
    type Params = (Read<f32, 2>, Reduce<f64, 1>);
    fn name(&self) -> &'static str {
        "columns"
    }
    fn notation(&self) -> Option<Notation> {
        Some(Notation::axes(["i", "j"]).every("i", 64).param("x", ["i", "j"]).param("total", ["j"]).flops(1.0))
    }
    fn leaf(&self, (x, mut total): (View<'_, f32, 2>, ReduceMut<'_, f64, 1, Sum>), _: &mut LeafContext<'_>) {
        for i in 0..x.len(0) {
            x.row(&[i]).iter().enumerate().for_each(|(j, &x)| total.combine([j], f64::from(x)));
        }
    }
}

/// x = x + 1
#[task(axes(i))]
fn increase(#[at(i)] x: Update<f32, 1>) {
    for i in 0..x.len(0) {
        x[[i]] += 1.0;
    }
}

/// y = x by way of much scratch memory.
struct Detour {
    scratch_bytes: u64,
}

impl Task for Detour {
    type Params = (Read<f32, 2>, Write<f32, 2>);
    fn name(&self) -> &'static str {
        "detour"
    }
    fn notation(&self) -> Option<Notation> {
        Some(Notation::axes(["i", "j"]).param("x", ["i", "j"]).param("y", ["i", "j"]).flops(1.0))
    }
    fn scratch_bytes(&self, _: &CallShape, _: u64) -> u64 {
        self.scratch_bytes
    }
    fn leaf(&self, (x, mut y): (View<'_, f32, 2>, ViewMut<'_, f32, 2>), context: &mut LeafContext<'_>) {
        assert_eq!(context.scratch.len() as u64, self.scratch_bytes);
        context.scratch.fill(1);
        (0..x.len(0)).for_each(|i| y.row_mut(&[i]).copy_from_slice(x.row(&[i])));
    }
}

fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    1024 * line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
}

/// A job by its name, and an element of its result with what it should be.
fn job(name: &str) -> (Job, usize, Vec<u64>, f64) {
    let mut program = Program::new();
    let source = |job: Job, seed: u64, array: usize| job.with_source(array, Source::Generated { seed });
    let square = |program: &mut Program, name: &str, n: u64, role| program.array::<f32, 2>(name, [n, n], role).unwrap();
    match name {
        "transposed" | "transposed, large" => {
            let n = if name == "transposed" { 2048 } else { 4096 };
            let task = program.task(AddTransposed);
            let [a, b] = ["a", "b"].map(|name| square(&mut program, name, n, Role::Input));
            let c = square(&mut program, "c", n, Role::Output);
            program.call(task, (a.all(), b.all(), c.all()), Scalars::new()).unwrap();
            let job = source(source(Job::new("memory", program), 1, a.index()), 2, b.index());
            let expected = generate::f32_at(1, 7 * n + 900) + generate::f32_at(2, 900 * n + 7);
            (job, c.index(), vec![7, 900], f64::from(expected))
        }
        "columns" => {
            let (m, n) = (1 << 15, 400);
            let task = program.task(Columns);
            let x = program.array::<f32, 2>("x", [m, n], Role::Input).unwrap();
            let total = program.array::<f64, 1>("total", [n], Role::Output).unwrap();
            program.call(task, (x.all(), total.all()), Scalars::new()).unwrap();
            let exact: f64 = (0..m).map(|i| f64::from(generate::f32_at(1, i * n + 3))).sum();
            (source(Job::new("memory", program), 1, x.index()), total.index(), vec![3], exact)
        }
        // Two rows, of which each is larger than any budget here.
        "rows" | "detour" | "detour, large" => {
            let (rows, columns) = if name == "rows" { (2, 3 << 22) } else { (4096, 2048) };
            let scratch_bytes =
                [("rows", 0), ("detour", 100 << 10)].iter().find(|(n, _)| *n == name).map_or(6 << 20, |n| n.1);
            let task = program.task(Detour { scratch_bytes });
            let x = program.array::<f32, 2>("x", [rows, columns], Role::InOut).unwrap();
            let y = program.array::<f32, 2>("y", [rows, columns], Role::Output).unwrap();
            program.call(task, (x.all(), y.all()), Scalars::new()).unwrap();
            let expected = f64::from(generate::f32_at(1, columns + 5));
            (source(Job::new("memory", program), 1, x.index()), y.index(), vec![1, 5], expected)
        }
        // A program that is a long list itself.
        "calls" => {
            let (calls, each) = (20_000, 2_000);
            let task = program.task(increase);
            let x = program.array::<f32, 1>("x", [calls * each], Role::InOut).unwrap();
            for call in 0..calls {
                program.call(task, (x.block([call * each], [each]),), Scalars::new()).unwrap();
            }
            let expected = f64::from(generate::f32_at(1, 7) + 1.0);
            (source(Job::new("memory", program), 1, x.index()), x.index(), vec![7], expected)
        }
        other => panic!("no job {other}"),
    }
}

fn machine(name: &str, directory: &Path) -> Machine {
    match name {
        "disk" => support::disk_machine(directory, 1 << 30, 2, None),
        "disk+local" => support::disk_machine(directory, 1 << 30, 2, Some(128 << 10)),
        "memory" => support::memory_machine(2, None),
        other => panic!("no machine {other}"),
    }
}

fn runtime(machine: Machine, budget_bytes: u64) -> Runtime {
    let memory_bytes = Some(budget_bytes);
    Runtime::new(Options { machine: MachineChoice::Given(Box::new(machine)), memory_bytes, ..Options::default() })
        .unwrap()
}

/// One run, or several at once; does nothing unless another test starts it in a process of its own.
#[test]
fn run_within_a_budget() {
    let Ok(given) = std::env::var("MULTIGRAIN_TEST_BUDGET") else { return };
    let [directory, on, name, budget, runs] = given.split('|').collect::<Vec<_>>()[..] else { panic!("{given}") };
    let runtime = runtime(machine(on, Path::new(directory)), budget.parse().unwrap());
    if runs == "until refused" {
        // Results that are kept have their plans, each of which is another.
        let mut kept = Vec::new();
        let error = loop {
            match runtime.run(&job(name).0, Settings::default()) {
                Ok(outcome) => kept.push(outcome),
                Err(error) => break error.to_string(),
            }
        };
        assert!(kept.len() > 2 && error.contains("are held by results"), "{}: {error}", kept.len());
        println!("peak {}", peak_bytes());
        return;
    }
    if runs == "interrupted" {
        let (job, array, ..) = job(name);
        let job = job.with_sink(array, Sink::Npy(Path::new(directory).join("result.npy")));
        let abort = Abort::new();
        let stop = |progress: multigrain::Progress| {
            if progress.done > progress.total / 8.0 {
                abort.raise();
            }
        };
        let (abort, progress, journal_interval) = (Some(&abort), Some(&stop as _), Some(std::time::Duration::ZERO));
        let ended = runtime.run(&job, Settings { abort, progress, journal_interval, ..Settings::default() });
        assert!(matches!(ended, Err(Error::Interrupted { resume: true })), "{:?}", ended.err());
        let outcome = runtime.run(&job, Settings { resume: true, ..Settings::default() }).unwrap();
        assert!(outcome.resumed);
        println!("peak {}", peak_bytes());
        return;
    }
    std::thread::scope(|scope| {
        for _ in 0..runs.parse::<u32>().unwrap() {
            scope.spawn(|| {
                let (job, array, index, expected) = job(name);
                let outcome = runtime.run(&job, Settings::default()).unwrap_or_else(|error| panic!("{error}"));
                let bytes = outcome.read(array, &Region::new(&index, &vec![1; index.len()])).unwrap();
                let found = match bytes[..] {
                    [a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])),
                    _ => f64::from_le_bytes(bytes.try_into().unwrap()),
                };
                assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found}, {expected}");
            });
        }
    });
    println!("peak {}", peak_bytes());
}

/// Runs jobs in a process of their own, and compares their peak with the budget.
fn held(on: &str, name: &str, budget_bytes: u64, runs: impl std::fmt::Display) {
    let directory = tempfile::tempdir().unwrap();
    let given = format!("{}|{on}|{name}|{budget_bytes}|{runs}", directory.path().display());
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "memory::run_within_a_budget", "--nocapture", "--test-threads=1"])
        .env("MULTIGRAIN_TEST_BUDGET", given)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{name} on {on}: {text}\n{}", String::from_utf8_lossy(&child.stderr));
    let peak: u64 = text.split_once("peak ").unwrap().1.lines().next().unwrap().trim().parse().unwrap();
    let most = budget_bytes + OWN_BYTES;
    eprintln!("{name} on {on}: peak {:.1} MiB of {}", peak as f64 / 1048576.0, most >> 20);
    assert!(job(name).0.bytes() > most, "{name}: the data would fit, so nothing is proved");
    assert!(peak <= most, "{name} on {on}: peak {peak}, budget {budget_bytes}");
}

#[test]
fn blocks_are_within_the_budget() {
    for budget in [1 << 20, 4 << 20, 16 << 20] {
        held("disk", "transposed", budget, 1);
        held("disk+local", "transposed", budget, 1);
    }
    held("disk", "transposed, large", 64 << 20, 1);
}

#[test]
fn partial_results_are_within_the_budget() {
    for budget in [1 << 20, 16 << 20] {
        held("disk", "columns", budget, 1);
        held("disk+local", "columns", budget, 1);
    }
}

#[test]
fn rows_that_are_filled_are_within_the_budget() {
    held("disk", "rows", 1 << 20, 1);
    held("disk", "rows", 16 << 20, 1);
}

#[test]
fn scratch_memory_is_within_the_budget() {
    held("disk", "detour", 1 << 20, 1);
    held("disk", "detour, large", 16 << 20, 1);
}

#[test]
fn lists_of_calls_are_within_the_budget() {
    held("disk", "calls", 60 << 20, 1);
    held("disk", "calls", 80 << 20, 1);
    held("disk", "calls", 60 << 20, "until refused");
    // What the journal needs to know of every call is less than the calls, and what a run has left goes on within as much.
    held("disk", "calls", 32 << 20, "interrupted");
}

#[test]
fn runs_at_once_are_within_one_budget() {
    held("disk", "transposed", 16 << 20, 3);
}

/// Where arrays lie in memory, what else a run keeps is counted beside them.
#[test]
fn arrays_in_memory_leave_room_for_the_rest() {
    let (job, ..) = job("detour, large");
    let arrays = job.bytes();
    let run = |budget| {
        let directory = tempfile::tempdir().unwrap();
        runtime(machine("memory", directory.path()), budget).run(&job, Settings::default()).map(|_| ())
    };
    let error = run(arrays + (7 << 20)).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("its arrays take 64 MiB") && text.contains("scratch memory 12 MiB"), "{text}");
    assert_eq!(error.exit_status(), 2);
    run(arrays + (13 << 20)).unwrap();
}

#[test]
fn what_is_held_is_not_given_twice() {
    let (job, ..) = job("transposed");
    let directory = tempfile::tempdir().unwrap();
    let runtime = runtime(machine("memory", directory.path()), job.bytes() * 3 / 2);
    let first = runtime.run(&job, Settings::default()).unwrap();
    let error = runtime.run(&job, Settings::default()).err().expect("no room for two");
    assert!(error.to_string().contains("48 MiB are held by results"), "{error}");
    drop(first);
    let prepared = runtime.prepare(&job).unwrap();
    assert!(runtime.run(&job, Settings::default()).is_err());
    drop(prepared);
    runtime.run(&job, Settings::default()).unwrap();
}

#[test]
fn runs_within_runs_and_budgets_that_cannot_be_are_refused() {
    let (job, ..) = job("transposed");
    let directory = tempfile::tempdir().unwrap();
    let memory = runtime(machine("memory", directory.path()), 64 << 20);
    let inner = std::sync::Mutex::new(None);
    let begin = || *inner.lock().unwrap() = memory.run(&job, Settings::default()).err().map(|error| error.to_string());
    memory.run(&job, Settings { on_start: Some(&begin), ..Settings::default() }).unwrap();
    assert!(inner.lock().unwrap().as_ref().is_some_and(|text| text.contains("within a run")), "{inner:?}");
    for (budget, words) in [(100 << 10, "give dram at least"), (1 << 50, "cannot be had")] {
        let error = runtime(machine("disk", directory.path()), budget).run(&job, Settings::default()).err().unwrap();
        assert!(error.to_string().contains(words) && error.exit_status() == 2, "{error}");
    }
}
