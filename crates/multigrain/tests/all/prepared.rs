//! A prepared job: planned once, run many times on the same arrays.

use multigrain::prelude::*;
use multigrain::{Machine, MachineChoice};
use std::sync::{Arc, Mutex};

/// y = y + x, element by element, in one call; keeps what y became.
struct Add(Arc<Mutex<Vec<f32>>>);

impl Task for Add {
    type Params = (Read<f32, 1>, Update<f32, 1>);

    fn name(&self) -> &'static str {
        "add"
    }

    fn param_names(&self) -> &'static [&'static str] {
        &["x", "y"]
    }

    fn tunables(&self, _: &CallShape) -> Vec<Tunable> {
        Vec::new()
    }

    fn split(&self, call: &CallShape, _: &Tunables) -> Vec<SubCall> {
        let whole = Region::whole(call.shapes[0]);
        vec![SubCall::itself([(0, whole), (1, whole)], &call.scalars)]
    }

    fn leaf(&self, (x, mut y): (View<'_, f32, 1>, ViewMut<'_, f32, 1>), context: &mut LeafContext<'_>) {
        assert!(context.scalars.f32(0) >= 0.0, "asked to fail");
        y.row_mut(&[]).iter_mut().zip(x.row(&[])).for_each(|(y, x)| *y += x);
        *self.0.lock().unwrap() = y.row_mut(&[]).to_vec();
    }

    fn work(&self, call: &CallShape) -> Work {
        let n = call.shapes[0].elements() as f64;
        Work { flops: n, bytes: 12.0 * n }
    }
}

/// A job whose leaf fails if `sign` is negative, and what y last became.
fn job(n: u64, sign: f32) -> (Job, Arc<Mutex<Vec<f32>>>) {
    let mut program = Program::new();
    let last = Arc::new(Mutex::new(Vec::new()));
    let add = program.task(Add(last.clone()));
    let x = program.array::<f32, 1>("x", [n], Role::Input).unwrap();
    let y = program.array::<f32, 1>("y", [n], Role::InOut).unwrap();
    program.call(add, (x.all(), y.all()), Scalars::new().with_f32(sign)).unwrap();
    let job = Job::new("add", program)
        .with_source(x.index(), Source::Generated { seed: 3 })
        .with_source(y.index(), Source::Generated { seed: 4 });
    (job, last)
}

#[test]
fn each_run_goes_on_from_the_one_before() {
    let runtime = Runtime::new(Options { threads: Some(2), ..Options::default() }).unwrap();
    let (job, last) = job(10_000, 1.0);
    let mut prepared = runtime.prepare(&job).unwrap();
    let mut expected: Vec<f32> = (0..10_000).map(|i| generate::f32_at(4, i)).collect();
    for _ in 0..5 {
        let report = prepared.run(Settings::default()).unwrap();
        assert!(report.seconds > 0.0);
        expected.iter_mut().zip(0..).for_each(|(y, i)| *y += generate::f32_at(3, i));
        let found = last.lock().unwrap().clone();
        assert_eq!(found.len(), expected.len());
        assert!(found.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
}

#[test]
fn faults_come_back_and_the_job_can_be_run_again() {
    let runtime = Runtime::new(Options { threads: Some(2), ..Options::default() }).unwrap();
    let (job, _) = job(1000, -1.0);
    let mut prepared = runtime.prepare(&job).unwrap();
    for _ in 0..2 {
        let error = prepared.run(Settings::default()).unwrap_err();
        assert!(error.to_string().contains("asked to fail"), "{error}");
    }
    let abort = Abort::new();
    abort.raise();
    let interrupted = prepared.run(Settings { abort: Some(&abort), ..Settings::default() });
    assert!(matches!(interrupted, Err(Error::Interrupted { resume: false })));
}

#[test]
fn jobs_with_files_are_refused() {
    let runtime = Runtime::new(Options::default()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let to_a_file = job(1000, 1.0).0.with_sink(1, Sink::Raw(directory.path().join("y")));
    assert!(matches!(runtime.prepare(&to_a_file), Err(Error::Request(_))));

    let machine = Machine::named("disk").unwrap();
    let options = Options { machine: MachineChoice::Given(Box::new(machine)), ..Options::default() };
    let runtime = Runtime::new(options).unwrap();
    assert!(matches!(runtime.prepare(&job(1000, 1.0).0), Err(Error::Request(_))));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
