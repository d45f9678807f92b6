//! Files that are made from results when a run is over: what they are made from is kept until they are there, through every
//! kill and through failures of who makes them.

use crate::support;

use multigrain::prelude::*;
use multigrain::rooms::store::faults::{Count, DieAt};
use multigrain::rooms::store::{BackendChoice, faults::Faults};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use support::*;

/// A job none of whose arrays has a file, and the file that is made from all results.
struct Made {
    case: Case,
    job: Job,
    file: PathBuf,
    interval: Option<Duration>,
}

impl Made {
    fn of(case: Case) -> Made {
        let file = case.directory().join("made");
        let job = Job::new(case.name, case.job.program().clone()).with_file_written(&file);
        let inputs = case.job.arrays().iter().enumerate().filter(|(_, a)| matches!(a.role, Role::Input | Role::InOut));
        let job = inputs.fold(job, |job, (i, decl)| {
            job.with_source(i, Source::Npy(case.directory().join(format!("in-{}.npy", decl.name))))
        });
        Made { case, job, file, interval: Some(Duration::ZERO) }
    }

    fn run(&self, resume: bool, faults: Option<Arc<dyn Faults>>) -> Result<Outcome, Error> {
        run(&self.case.setup.runtime(faults), &self.job, resume, self.interval)
    }

    fn results(&self, outcome: &Outcome) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        for (i, decl) in self.job.arrays().iter().enumerate() {
            if matches!(decl.role, Role::Output | Role::InOut) {
                bytes.extend(outcome.read(i, &Region::whole(decl.shape))?);
            }
        }
        Ok(bytes)
    }

    /// What a run does, and then its application.
    fn whole(&self, resume: bool, faults: Option<Arc<dyn Faults>>) -> Result<Outcome, Error> {
        let outcome = self.run(resume, faults)?;
        match self.results(&outcome) {
            Ok(bytes) => {
                std::fs::write(&self.file, bytes).unwrap();
                Ok(outcome)
            }
            Err(error) => Err(outcome.keep(error)),
        }
    }

    fn made(&self) -> Vec<u8> {
        let bytes = std::fs::read(&self.file).unwrap();
        assert_eq!(self.case.left(), ["made"]);
        self.case.clear();
        bytes
    }
}

#[test]
fn what_a_file_is_made_from_survives_every_kill() {
    for case in [update(BackendChoice::Auto), pipeline(BackendChoice::Pool)] {
        let name = case.name;
        let made = Made::of(case);
        let count = Arc::new(Count::new());
        let calls = made.whole(false, Some(count.clone())).unwrap().plan.calls.len();
        let expected = made.made();
        let operations = count.operations();
        let (mut resumed, mut nothing_left) = (0, 0);
        for n in 0..operations {
            let ended = made.whole(false, Some(Arc::new(DieAt { n })));
            let over = ended.is_ok();
            drop(ended);
            let outcome = made.whole(true, None).unwrap_or_else(|e| panic!("{name}, killed at {n}: {e}"));
            assert!(!over || n + 8 >= operations, "{name}: {n} of {operations}");
            resumed += u64::from(outcome.resumed);
            nothing_left += u64::from(outcome.resumed && outcome.plan.calls.is_empty());
            drop(outcome);
            assert!(made.made() == expected, "{name}, killed at {n}");
        }
        eprintln!(
            "{name}: {operations} operations, {resumed} resumed, {nothing_left} with nothing to do; {calls} calls"
        );
        assert!(resumed * 2 > operations, "{name}: {resumed} of {operations} kills were continued");
        assert!(nothing_left > 0, "{name}: killed while the file is made, nothing is to be computed again");
    }
}

#[test]
fn a_file_that_cannot_be_made_costs_no_work() {
    let made = Made::of(update(BackendChoice::Auto));
    let outcome = made.run(false, None).unwrap();
    let bytes = made.results(&outcome).unwrap();
    let error = outcome.keep(Error::After("cannot write made: no space".into()));
    let text = error.to_string();
    assert!(error.exit_status() == 1 && text.contains("no space") && text.contains("--resume"), "{text}");
    // It is not begun over in silence.
    let refused = made.run(false, None).err().expect("work is kept");
    assert!(matches!(refused, Error::Unfinished { .. }), "{refused}");
    let outcome = made.run(true, None).unwrap();
    assert!(outcome.resumed && outcome.plan.calls.is_empty(), "{}", outcome.plan);
    assert!(made.results(&outcome).unwrap() == bytes);
    // What it is to be made from is what it was, or not believed.
    drop(outcome.keep(Error::After(String::new())));
    let kept = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().path();
    let parts = std::fs::read_dir(made.case.directory()).unwrap().map(kept);
    let parts: Vec<PathBuf> = parts.filter(|path| path.extension().is_some_and(|end| end == "part")).collect();
    assert!(!parts.is_empty(), "{:?}", made.case.left());
    for part in &parts {
        let whole = std::fs::read(part).unwrap();
        std::fs::write(part, vec![0; whole.len()]).unwrap();
        let refused = made.run(true, None).err().unwrap_or_else(|| panic!("{} holds zeros", part.display()));
        assert!(matches!(refused, Error::OtherRun { .. }), "{refused}");
        std::fs::write(part, whole).unwrap();
    }
    let outcome = made.run(true, None).unwrap();
    // Somebody who panics on the way keeps it as well.
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _outcome = outcome;
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    let outcome = made.whole(true, None).unwrap();
    assert!(outcome.resumed);
    drop(outcome);
    assert!(made.made() == bytes);
    // What was kept can be thrown away.
    drop(made.run(false, None).unwrap().keep(Error::After(String::new())));
    assert!(!made.case.left().is_empty());
    let settings = Settings { discard: true, journal_interval: made.interval, ..Settings::default() };
    let outcome = made.case.setup.runtime(None).run(&made.job, settings).unwrap();
    assert!(!outcome.resumed && !outcome.plan.calls.is_empty());
    drop(outcome);
    assert_eq!(made.case.left(), [""; 0]);
}

/// A check of a result reads what was delivered, wherever it was computed.
#[test]
fn a_result_is_read_from_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.npy");
    let mut program = Program::new();
    let task = program.task(multigrain::rooms::plan::testing::Scale::<f32, 2>::default());
    let x = program.array::<f32, 2>("x", [30, 40], Role::InOut).unwrap();
    let a = program.array::<f32, 2>("a", [30, 40], Role::Input).unwrap();
    program.call(task, (x.all(), a.all()), Scalars::new()).unwrap();
    let generated = |seed| Source::Generated { seed };
    let job = Job::new("scaled", program).with_source(0, generated(1)).with_source(1, generated(2));
    let job = job.with_sink(0, Sink::Npy(path.clone()));
    let machine = multigrain::MachineChoice::Given(Box::new(memory_machine(2, None)));
    let runtime = Runtime::new(Options { machine, ..Options::default() }).unwrap();
    let outcome = runtime.run(&job, Settings::default()).unwrap();
    assert!(!outcome.plan.driver.files, "it was computed in memory");
    let whole = Region::whole(job.arrays()[0].shape);
    let (before, mut content) = (outcome.read_f32(0, &whole).unwrap(), std::fs::read(&path).unwrap());
    let last = content.len() - 4;
    assert_eq!(content[last..], before[before.len() - 1].to_le_bytes());
    content[last..].copy_from_slice(&7.0f32.to_le_bytes());
    use std::os::unix::fs::FileExt;
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&content, 0).unwrap();
    assert_eq!(outcome.read_f32(0, &whole).unwrap().last(), Some(&7.0));
}
