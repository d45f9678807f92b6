//! Pairs of inputs and results on a disk, of which a run is killed and continued.

use super::*;
use multigrain::prelude::*;
use multigrain::rooms::store::{Operation, OperationKind, Verdict};
use std::sync::atomic::{AtomicU64, Ordering};

/// y = factor x by rows, in fours; calls are counted.
pub(crate) struct Times {
    pub(crate) name: &'static str,
    pub(crate) factor: f32,
    /// Which its version does not tell.
    pub(crate) backwards: bool,
    pub(crate) calls: Arc<AtomicU64>,
}

impl Task for Times {
    type Params = (Read<f32, 2>, Write<f32, 2>);
    fn name(&self) -> &'static str {
        self.name
    }
    fn version(&self) -> u64 {
        u64::from(self.factor.to_bits())
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["x", "y"]
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        let rows = call.shapes[0].dims()[0];
        vec![Tunable { name: "rows", extent: rows, multiple: 4.min(rows) }]
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let (rows, columns) = (call.shapes[0].dims()[0], call.shapes[0].dims()[1]);
        let part = |(start, len)| {
            let part = Region::new(&[start, 0], &[len, columns]);
            SubCall::itself([(0, part), (1, part)], &call.scalars)
        };
        let mut parts: Vec<SubCall> = blocks(rows, tunables.get("rows", rows)).map(part).collect();
        if self.backwards {
            parts.reverse();
        }
        parts
    }
    fn leaf(&self, (x, mut y): (View<'_, f32, 2>, ViewMut<'_, f32, 2>), _: &mut LeafContext<'_>) {
        self.calls.fetch_add(1, Ordering::SeqCst);
        for i in 0..x.len(0) {
            y.row_mut(&[i]).iter_mut().zip(x.row(&[i])).for_each(|(y, x)| *y = self.factor * x);
        }
    }
    fn work(&self, call: &CallShape) -> Work {
        let n = call.shapes[0].elements() as f64;
        Work { flops: n, bytes: 8.0 * n }
    }
}

/// Kills a run at the first record after so many leaves.
pub(crate) struct DieAfter {
    pub(crate) calls: Arc<AtomicU64>,
    pub(crate) least_calls: u64,
}

impl Faults for DieAfter {
    fn before(&self, operation: &Operation<'_>) -> Verdict {
        let enough = self.calls.load(Ordering::SeqCst) >= self.least_calls;
        if enough && operation.kind == OperationKind::Append { Verdict::Dead } else { Verdict::Go }
    }
}

/// Pairs of an input and a result of these shapes, each made by a task of its own name, in a folder.
pub(crate) struct Pairs {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) shapes: Vec<[u64; 2]>,
    pub(crate) names: Vec<&'static str>,
    pub(crate) factor: f32,
    pub(crate) backwards: bool,
    pub(crate) calls: Arc<AtomicU64>,
}

impl Pairs {
    pub(crate) fn new(shapes: &[[u64; 2]], names: &[&'static str]) -> Pairs {
        let folder = directory();
        for (i, shape) in shapes.iter().enumerate() {
            let n = shape[0] * shape[1];
            let values: Vec<f32> = (0..n).map(|k| generate::f32_at(i as u64 + 1, k)).collect();
            multigrain::testing::write_npy(&folder.path().join(format!("x{i}.npy")), shape, &values).unwrap();
        }
        let names = (0..shapes.len()).map(|i| names[i % names.len()]).collect();
        Pairs { folder, shapes: shapes.to_vec(), names, factor: 2.0, backwards: false, calls: Arc::default() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The job, with the results in files of these numbers.
    pub(crate) fn job(&self, sinks: impl Fn(usize) -> usize) -> Job {
        let mut program = Program::new();
        let mut handles: Vec<(&str, _)> = Vec::new();
        let mut arrays = Vec::new();
        for (i, shape) in self.shapes.iter().enumerate() {
            let task = match handles.iter().find(|(name, _)| *name == self.names[i]) {
                Some((_, task)) => *task,
                None => {
                    let (name, calls) = (self.names[i], self.calls.clone());
                    let made = Times { name, factor: self.factor, backwards: self.backwards, calls };
                    handles.push((self.names[i], program.task(made)));
                    handles.last().unwrap().1
                }
            };
            let x = program.array::<f32, 2>(&format!("x{i}"), *shape, Role::Input).unwrap();
            let y = program.array::<f32, 2>(&format!("y{i}"), *shape, Role::Output).unwrap();
            program.call(task, (x.all(), y.all()), Scalars::new()).unwrap();
            arrays.push((x.index(), y.index()));
        }
        let mut job = Job::new("pairs", program);
        for (i, (x, y)) in arrays.into_iter().enumerate() {
            job = job.with_source(x, Source::Npy(self.path(&format!("x{i}.npy"))));
            job = job.with_sink(y, Sink::Npy(self.path(&format!("y{}.npy", sinks(i)))));
        }
        job
    }

    pub(crate) fn runtime(&self, memory_bytes: u64, faults: Option<Arc<dyn Faults>>) -> Runtime {
        Runtime::new(Options {
            machine: multigrain::MachineChoice::Given(Box::new(Machine::named("disk").unwrap())),
            memory_bytes: Some(memory_bytes),
            threads: Some(2),
            disk_buffer_bytes: Some(BUFFER_BYTES),
            faults,
            ..Options::default()
        })
        .unwrap()
    }

    /// For jobs whose arrays lie in memory.
    pub(crate) fn runtime_in_memory(&self, faults: Option<Arc<dyn Faults>>) -> Runtime {
        let machine = multigrain::MachineChoice::Given(Box::new(memory_machine(2, None)));
        Runtime::new(Options { machine, faults, ..Options::default() }).unwrap()
    }

    /// Runs, and is killed at the first record after so many leaves.
    pub(crate) fn killed(&self, memory_bytes: u64, least_calls: u64) -> u64 {
        self.calls.store(0, Ordering::SeqCst);
        let die = DieAfter { calls: self.calls.clone(), least_calls };
        let ended =
            run(&self.runtime(memory_bytes, Some(Arc::new(die))), &self.job(|i| i), false, Some(Duration::ZERO));
        assert!(ended.is_err(), "the run ended before {least_calls} calls");
        self.calls.load(Ordering::SeqCst)
    }

    pub(crate) fn resume(&self, memory_bytes: u64) -> Result<Outcome, Error> {
        self.calls.store(0, Ordering::SeqCst);
        run(&self.runtime(memory_bytes, None), &self.job(|i| i), true, Some(Duration::ZERO))
    }

    pub(crate) fn check(&self, what: &str) {
        for (i, shape) in self.shapes.iter().enumerate() {
            let found = multigrain::testing::read_npy(&self.path(&format!("y{i}.npy"))).unwrap();
            let x = multigrain::testing::read_npy(&self.path(&format!("x{i}.npy"))).unwrap();
            let wrong = found.iter().zip(&x).filter(|(y, x)| **y != self.factor * **x).count() as u64;
            assert_eq!(wrong, 0, "{what}: y{i} has {wrong} wrong elements of {}", shape[0] * shape[1]);
        }
    }

    pub(crate) fn left(&self) -> Vec<String> {
        let names =
            std::fs::read_dir(self.folder.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('x')).collect();
        names.sort();
        names
    }
}

pub(crate) const MIB: u64 = 1 << 20;
