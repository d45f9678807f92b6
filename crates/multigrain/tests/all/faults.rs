//! Every operation of a run on files fails once: the run ends with a message that names the file. What was durable is kept
//! and continued to the same bytes; where nothing was, nothing is left behind. The runtime itself is as good as new.

use crate::support;

use multigrain::Error;
use multigrain::rooms::store::faults::Faults;
use multigrain::rooms::store::{BackendChoice, Operation, OperationKind, Verdict};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::*;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// Fails operation `n` and remembers what every operation was.
struct Fail {
    n: u64,
    errno: i32,
    seen: Mutex<Vec<(OperationKind, PathBuf)>>,
}

impl Faults for Fail {
    fn before(&self, operation: &Operation<'_>) -> Verdict {
        let mut seen = self.seen.lock().unwrap();
        seen.push((operation.kind, operation.path.to_owned()));
        // Counted here: operations of two threads may be asked about in another order than they are numbered.
        if seen.len() as u64 - 1 == self.n { Verdict::Fail(self.errno) } else { Verdict::Go }
    }
}

fn failing(n: u64, errno: i32) -> Arc<Fail> {
    Arc::new(Fail { n, errno, seen: Mutex::new(Vec::new()) })
}

/// A device as Linux shows it: a flush that fails has dropped what was written since the one before, and the next one
/// succeeds.
struct Forgetful {
    /// Which flush of a file fails.
    n: usize,
    path: PathBuf,
    state: Mutex<Forgotten>,
}

#[derive(Default)]
struct Forgotten {
    flushes: usize,
    /// What the file held when it was flushed last.
    flushed: Vec<u8>,
    /// What it holds after the flush that failed.
    kept: Option<Vec<u8>>,
}

impl Faults for Forgetful {
    fn before(&self, operation: &Operation<'_>) -> Verdict {
        if operation.kind != OperationKind::Sync || operation.path != self.path {
            return Verdict::Go;
        }
        let mut state = self.state.lock().unwrap();
        state.flushes += 1;
        if state.flushes - 1 == self.n {
            state.kept = Some(state.flushed.clone());
            return Verdict::Fail(EIO);
        }
        if state.kept.is_none() {
            state.flushed = std::fs::read(&self.path).unwrap();
        }
        Verdict::Go
    }
}

#[test]
fn what_a_failed_flush_has_lost_is_made_again() {
    for backend in backends() {
        let case = update(backend);
        let expected = case.expected();
        let mut continued = 0;
        for n in 1.. {
            let path = case.outputs[0].with_extension("npy.part");
            let faults = Arc::new(Forgetful { n, path: path.clone(), state: Mutex::default() });
            let ended = run(&case.setup.runtime(Some(faults.clone())), &case.job, false, Some(Duration::ZERO));
            let Some(kept) = faults.state.lock().unwrap().kept.take() else { break };
            assert!(ended.is_err());
            std::fs::write(&path, kept).unwrap();
            let outcome = run(&case.setup.runtime(None), &case.job, true, Some(Duration::ZERO)).unwrap();
            assert!(case.results() == expected, "flush {n} failed: another result");
            continued += u64::from(outcome.resumed);
            case.clear();
        }
        assert!(continued > 1, "nothing was continued");
    }
}

fn every_operation(case: &Case, errno: i32, only_writes: bool) {
    let expected = case.expected();
    let interval = Some(Duration::ZERO);
    let none = failing(u64::MAX, 0);
    run(&case.setup.runtime(Some(none.clone())), &case.job, false, interval).unwrap();
    case.clear();
    let operations = none.seen.lock().unwrap().len() as u64;
    let (mut before, mut within, mut continued) = (0, 0, 0);
    for n in 0..operations {
        let fail = failing(n, errno);
        let runtime = case.setup.runtime(Some(fail.clone()));
        let ended = run(&runtime, &case.job, false, interval);
        let seen = fail.seen.lock().unwrap().clone();
        let Some((kind, path)) = seen.get(n as usize).cloned() else {
            // Which operations there are depends a little on timing.
            assert!(ended.is_ok());
            case.clear();
            continue;
        };
        let what = format!("{}, operation {n} ({kind:?} of {})", case.name, path.display());
        if kind == OperationKind::Remove {
            assert!(ended.is_ok(), "{what}: a journal that cannot be removed is no fault");
            case.clear();
            continue;
        }
        if errno == ENOSPC && kind == OperationKind::Allocate && path.to_string_lossy().ends_with(".twin.part") {
            assert!(ended.is_ok(), "{what}: an array does without a second file where there is no room");
            assert!(case.results() == expected, "{what}");
            assert_eq!(case.left().len(), case.outputs.len(), "{what}: {:?}", case.left());
            case.clear();
            continue;
        }
        let error = ended.err().unwrap_or_else(|| panic!("{what} failed, but not the run"));
        let message = error.to_string();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(message.contains(name), "{what}: {message}");
        let mut kept = false;
        match &error {
            Error::File(_) => before += 1,
            Error::Run(_) | Error::Store(_) => within += 1,
            Error::Kept { .. } | Error::Unpublished { .. } => {
                within += 1;
                kept = true;
            }
            other => panic!("{what}: {other:?}"),
        }
        if matches!((&error, kind), (Error::Run(_) | Error::Kept { .. }, OperationKind::Write)) {
            assert!(message.contains("block ["), "{what}: {message}");
        }
        assert_eq!(error.exit_status(), if matches!(error, Error::File(_)) { 2 } else { 1 }, "{what}: {message}");
        let left = case.left();
        for (path, expected) in case.outputs.iter().zip(&expected).filter(|(path, _)| path.exists()) {
            assert!(std::fs::read(path).unwrap() == *expected, "{what}: {} is not whole", path.display());
        }
        match kept {
            false => assert_eq!(left, [""; 0], "{what}: {message}"),
            true => {
                assert!(message.contains("--resume"), "{what}: {message}");
                let unnamed = case.outputs.iter().any(|path| !path.exists());
                if unnamed && n % 8 == 0 {
                    let refused = run(&case.setup.runtime(None), &case.job, false, None).err();
                    assert!(matches!(refused, Some(Error::Unfinished { .. })), "{what}: {refused:?}");
                }
                assert_eq!(case.left(), left, "{what}");
                let outcome =
                    run(&runtime, &case.job, true, interval).unwrap_or_else(|e| panic!("{what}, resumed: {e}"));
                assert!(outcome.resumed && case.results() == expected, "{what}, resumed");
                assert_eq!(case.left().len(), case.outputs.len(), "{what}: {:?}", case.left());
                continued += 1;
            }
        }
        case.clear();
        // The runtime itself is as good as new.
        if n % 8 == 0 && (!only_writes || kind == OperationKind::Write) {
            run(&runtime, &case.job, false, interval).unwrap_or_else(|e| panic!("{what}, then once more: {e}"));
            assert!(case.results() == expected, "{what}, then once more");
            case.clear();
        }
    }
    eprintln!("{}: {operations} operations, {before} failed before, {within} within, {continued} continued", case.name);
    assert!(before >= 5 && within > operations / 3 && continued > operations / 4);
}

#[test]
fn every_operation_fails_once() {
    for case in cases(BackendChoice::Auto) {
        every_operation(&case, EIO, false);
    }
}

#[test]
fn every_operation_of_the_pool_finds_the_disk_full_once() {
    for case in cases(BackendChoice::Pool) {
        every_operation(&case, ENOSPC, true);
    }
}
