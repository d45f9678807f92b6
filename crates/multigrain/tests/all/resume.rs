//! Another run than the one that was interrupted is refused in words, and what can be continued stays; the same run goes
//! on in another budget, to the same bytes, and does nothing twice that was durable.

use crate::support;

use multigrain::prelude::*;
use multigrain::rooms::store::faults::Faults;
use multigrain::rooms::store::{Operation, OperationKind, Verdict};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use support::pairs::*;
use support::*;

#[test]
fn one_task_on_three_shapes_goes_on_in_another_budget() {
    for (first, second) in [(MIB, 1600 << 10), (1600 << 10, MIB), (MIB, 64 * MIB)] {
        let pairs = Pairs::new(&[[8, 24000], [8, 4096], [8, 18000]], &["times"]);
        pairs.killed(first, 5);
        match pairs.resume(second) {
            Ok(outcome) => {
                assert!(outcome.resumed);
                pairs.check("resumed");
            }
            Err(error) => {
                assert!(first > second, "{error}");
                assert_eq!(error.exit_status(), 2, "{error}");
                assert!(error.to_string().contains("--memory"), "{error}");
                assert!(pairs.resume(first).unwrap().resumed);
                pairs.check("resumed as it was");
            }
        }
    }
}

#[test]
fn seventeen_tasks_go_on_in_another_budget() {
    let names: Vec<&'static str> = (0..17).map(|i| &*format!("times{i}").leak()).collect();
    let mut shapes = vec![[8, 64]; 16];
    shapes.push([4096, 1024]);
    let pairs = Pairs::new(&shapes, &names);
    let calls = pairs.killed(2 * MIB, 30);
    assert!(pairs.resume(8 * MIB).unwrap().resumed, "after {calls} calls");
    pairs.check("resumed");
}

#[test]
fn a_task_of_another_version_is_refused() {
    let mut pairs = Pairs::new(&[[512, 4096]], &["times"]);
    // Killed in the middle: until something is durable there is nothing to go on with.
    run(&pairs.runtime(MIB, None), &pairs.job(|i| i), false, None).unwrap();
    let calls = pairs.calls.load(Ordering::SeqCst);
    pairs.killed(MIB, calls / 2);
    pairs.factor = 3.0;
    let refused = pairs.resume(MIB).err().expect("the task computes something else");
    assert_eq!(refused.exit_status(), 2, "{refused}");
    assert!(refused.to_string().contains("versions"), "{refused}");
    pairs.factor = 2.0;
    assert!(pairs.resume(MIB).unwrap().resumed);
    pairs.check("resumed");
}

/// What is recorded is a call's number: of another split another block has it.
#[test]
fn a_task_that_splits_otherwise_is_refused() {
    let mut pairs = Pairs::new(&[[512, 4096]], &["times"]);
    run(&pairs.runtime(MIB, None), &pairs.job(|i| i), false, None).unwrap();
    let calls = pairs.calls.load(Ordering::SeqCst);
    pairs.killed(MIB, calls / 2);
    pairs.backwards = true;
    let refused = pairs.resume(MIB).err().expect("its calls have other numbers");
    assert_eq!(refused.exit_status(), 2, "{refused}");
    assert!(refused.to_string().contains("split their calls otherwise"), "{refused}");
    pairs.backwards = false;
    assert!(pairs.resume(MIB).unwrap().resumed);
    pairs.check("resumed");
}

#[test]
fn results_that_change_places_are_refused() {
    let pairs = Pairs::new(&[[64, 4096], [64, 4096]], &["times"]);
    pairs.killed(MIB, 3);
    let before = pairs.left();
    let refused = run(&pairs.runtime(MIB, None), &pairs.job(|i| 1 - i), true, None).err().expect("it is another run");
    assert_eq!(refused.exit_status(), 2, "{refused}");
    assert!(refused.to_string().contains("y1.npy"), "{refused}");
    assert_eq!(pairs.left(), before, "what can be continued stays");
    assert!(pairs.resume(MIB).unwrap().resumed);
    pairs.check("resumed");
}

/// Overwrites a part of a file, which keeps its time.
fn alter(path: &Path, at: u64) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let time = file.metadata().unwrap().modified().unwrap();
    file.write_all_at(&7f32.to_le_bytes(), at).unwrap();
    file.set_modified(time).unwrap();
}

#[test]
fn an_input_of_other_content_is_refused_whatever_its_time() {
    // At the beginning, somewhere, at the end: of a file that is looked at as a whole, and of one that is not.
    // In the longer one also where no sample is taken.
    let [short, long] = [([256, 512], [130, 70_000, 524_300]), ([64, 16_384], [130, 1_000_004, 4_194_304])];
    for (shape, places) in [short, long] {
        for at in places {
            let pairs = Pairs::new(&[shape], &["times"]);
            let memory_bytes = if shape[1] == 512 { 320 << 10 } else { MIB };
            pairs.killed(memory_bytes, 5);
            alter(&pairs.path("x0.npy"), at);
            let refused =
                pairs.resume(memory_bytes).err().unwrap_or_else(|| panic!("byte {at} of {shape:?} is another"));
            assert_eq!(refused.exit_status(), 2, "{refused}");
            assert!(refused.to_string().contains("x0.npy"), "{refused}");
        }
    }
    let pairs = Pairs::new(&[[64, 4096]], &["times"]);
    pairs.killed(MIB, 3);
    let file = std::fs::File::options().write(true).open(pairs.path("x0.npy")).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000)).unwrap();
    let refused = pairs.resume(MIB).err().expect("the input was touched");
    assert!(refused.to_string().contains("x0.npy"), "{refused}");
}

/// What is left does not let another run begin over it in silence.
#[test]
fn work_that_is_kept_is_continued_or_thrown_away_by_word_alone() {
    let pairs = Pairs::new(&[[64, 4096], [64, 4096]], &["times"]);
    pairs.killed(MIB, 3);
    let before = pairs.left();
    let run = |resume, discard, job: &Job| {
        pairs.runtime(MIB, None).run(job, Settings { resume, discard, ..Settings::default() })
    };
    let refused = run(false, false, &pairs.job(|i| i)).err().expect("its work would be lost");
    assert!(matches!(refused, Error::Unfinished { .. }) && refused.exit_status() == 2, "{refused}");
    assert!(refused.to_string().contains("--resume") && refused.to_string().contains("--discard"), "{refused}");
    // Nor does a run of one of its results, nor one in memory.
    let mut one = Program::new();
    let task = one.task(Times { name: "other", factor: 1.0, backwards: false, calls: Arc::default() });
    let [x, y] = [("x", Role::Input), ("y", Role::Output)].map(|(n, r)| one.array::<f32, 2>(n, [64, 4096], r).unwrap());
    one.call(task, (x.all(), y.all()), Scalars::new()).unwrap();
    let one = Job::new("other", one).with_sink(1, Sink::Npy(pairs.path("y1.npy")));
    assert!(matches!(run(false, false, &one), Err(Error::Unfinished { .. })));
    assert!(matches!(run(true, false, &one), Err(Error::OtherRun { .. })));
    let memory = Runtime::new(Options {
        machine: multigrain::MachineChoice::Given(Box::new(memory_machine(2, None))),
        ..Options::default()
    });
    let memory = memory.unwrap();
    for job in [&one, &pairs.job(|i| i)] {
        assert!(matches!(memory.run(job, Settings::default()), Err(Error::Unfinished { .. })));
    }
    let refused = memory.run(&pairs.job(|i| i), Settings { resume: true, ..Settings::default() }).err().unwrap();
    assert!(matches!(refused, Error::CannotResume { .. }), "{refused}");
    assert!(run(true, true, &pairs.job(|i| i)).is_err(), "both make no sense");
    assert_eq!(pairs.left(), before, "nothing was touched");
    let outcome = run(false, true, &pairs.job(|i| i)).unwrap();
    assert!(!outcome.resumed);
    assert_eq!(pairs.left(), ["y0.npy", "y1.npy"]);
    pairs.check("begun again");
}

#[test]
fn a_run_whose_files_are_gone_is_refused_and_not_begun_again() {
    for gone in ["y0.npy.part", "y1.npy.part"] {
        let pairs = Pairs::new(&[[64, 4096], [64, 4096]], &["times"]);
        pairs.killed(MIB, 3);
        std::fs::rename(pairs.path(gone), pairs.path("elsewhere")).unwrap();
        let refused = pairs.resume(MIB).err().unwrap_or_else(|| panic!("{gone} is gone"));
        assert!(matches!(refused, Error::OtherRun { .. }) && refused.to_string().contains(gone), "{refused}");
        std::fs::write(pairs.path(gone), "something else").unwrap();
        let refused = pairs.resume(MIB).err().unwrap_or_else(|| panic!("{gone} is another"));
        assert!(matches!(refused, Error::OtherRun { .. }) && refused.to_string().contains(gone), "{refused}");
        std::fs::rename(pairs.path("elsewhere"), pairs.path(gone)).unwrap();
        assert!(pairs.resume(MIB).unwrap().resumed);
        pairs.check("resumed");
    }
}

/// Nobody could find what a run still wrote.
#[test]
fn a_run_whose_files_are_removed_ends_soon_and_does_not_say_that_it_can_be_continued() {
    struct Remove {
        path: PathBuf,
        calls: Arc<AtomicU64>,
    }
    impl Faults for Remove {
        fn before(&self, operation: &Operation<'_>) -> Verdict {
            if operation.kind == OperationKind::Sync && self.calls.load(Ordering::SeqCst) >= 3 {
                let _ = std::fs::remove_file(&self.path);
            }
            Verdict::Go
        }
    }
    for removed in ["y0.npy.part", "y1.npy.part"] {
        let pairs = Pairs::new(&[[256, 16_384], [256, 16_384]], &["times"]);
        let remove = Remove { path: pairs.path(removed), calls: pairs.calls.clone() };
        let runtime = pairs.runtime(2 * MIB, Some(Arc::new(remove)));
        let error = run(&runtime, &pairs.job(|i| i), false, Some(Duration::ZERO)).err().expect("nobody has the result");
        assert!(error.to_string().contains(&format!("{removed} is gone")), "{error}");
        assert!(!error.to_string().contains("--resume"), "{error}");
        assert_eq!(error.exit_status(), 1);
        let calls = pairs.calls.load(Ordering::SeqCst);
        assert!(removed == "y1.npy.part" || calls < 60, "{calls} calls, of which three were before the file went");
        assert_eq!(pairs.left(), Vec::<String>::new());
    }
}

/// What can be read no more is thrown away by word, but not what was never a journal.
#[test]
fn a_damaged_journal_is_thrown_away_by_word_alone() {
    for shapes in [&[[64, 4096]][..], &[[64, 4096], [32, 4096]]] {
        damaged_journals(&Pairs::new(shapes, &["times"]));
    }
}

fn damaged_journals(pairs: &Pairs) {
    pairs.killed(MIB, 3);
    let journal = pairs.path("y0.npy.journal");
    let discard = || pairs.runtime(MIB, None).run(&pairs.job(|i| i), Settings { discard: true, ..Settings::default() });
    alter(&journal, 60);
    let damaged = std::fs::read(&journal).unwrap();
    for resume in [false, true] {
        let refused = run(&pairs.runtime(MIB, None), &pairs.job(|i| i), resume, None).err().expect("it is damaged");
        assert!(refused.to_string().contains("--discard"), "{refused}");
        assert_eq!(std::fs::read(&journal).unwrap(), damaged);
    }
    std::fs::write(&journal, "dear diary").unwrap();
    let refused = discard().err().expect("it is no journal");
    assert!(!refused.to_string().contains("--discard"), "{refused}");
    assert_eq!(std::fs::read(&journal).unwrap(), b"dear diary");
    std::fs::write(&journal, damaged).unwrap();
    assert!(!discard().unwrap().resumed);
    assert!(pairs.left().iter().all(|name| name.ends_with(".npy")), "{:?}", pairs.left());
    pairs.check("begun again");
}

/// What lies in a folder besides inputs.
fn kept(case: &Case) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = case.left().into_iter().map(|name| case.directory().join(name));
    paths.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// Whatever happens to the bytes of a journal that keeps work: nothing is begun again without a word, and what is continued
/// gives the right bits.
#[test]
fn of_a_damaged_journal_no_run_begins_anew() {
    use multigrain::rooms::store::faults::DieAt;
    use multigrain::rooms::store::{BackendChoice, StoreError};
    const TEXT_AT: usize = 48;
    for case in [update(BackendChoice::Pool), pipeline(BackendChoice::Pool)] {
        let expected = case.expected();
        let mut resumed = 0;
        let count = Arc::new(multigrain::rooms::store::faults::Count::new());
        run(&case.setup.runtime(Some(count.clone())), &case.job, false, Some(Duration::ZERO)).unwrap();
        case.clear();
        let die = Arc::new(DieAt { n: count.operations() * 7 / 10 });
        assert!(run(&case.setup.runtime(Some(die)), &case.job, false, Some(Duration::ZERO)).is_err());
        let kept = kept(&case);
        let is_journal = |path: &Path| path.extension().is_some_and(|extension| extension == "journal");
        for (journal, bytes) in kept.iter().filter(|(path, _)| is_journal(path)) {
            let text = TEXT_AT + u32::from_le_bytes(*bytes[12..].first_chunk().unwrap()) as usize;
            // Of the text, which is long, some bytes, and one bit of each.
            let is_text = |at: usize| (TEXT_AT..text).contains(&at);
            let cut = (0..bytes.len()).filter(|&len| !is_text(len) || len % 9 == 0);
            let cut = cut.map(|len| (format!("cut to {len} bytes"), bytes[..len].to_vec()));
            let flipped = (0..bytes.len() * 8).map(|at| {
                let mut flipped = bytes.clone();
                flipped[at / 8] ^= 1 << (at % 8);
                (format!("bit {} of byte {}", at % 8, at / 8), flipped)
            });
            let flipped = flipped.enumerate().filter(|(at, _)| !is_text(at / 8) || at % 72 == at / 72 % 8);
            for (what, damaged) in cut.chain(flipped.map(|(_, flipped)| flipped)) {
                let what = format!("{}, {}: {what}", case.name, journal.display());
                std::fs::write(journal, damaged).unwrap();
                let refused = run(&case.setup.runtime(None), &case.job, false, None).err();
                let refused = refused.unwrap_or_else(|| panic!("{what}: begun again without a word"));
                let words = refused.to_string();
                match refused {
                    Error::Unfinished { .. } => {
                        match run(&case.setup.runtime(None), &case.job, true, None) {
                            Ok(outcome) => {
                                assert!(outcome.resumed, "{what}: begun again");
                                assert!(case.results() == expected, "{what}: other bits");
                                resumed += 1;
                            }
                            Err(error) => panic!("{what}: {error}"),
                        }
                        case.clear();
                        kept.iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
                    }
                    Error::File(StoreError::NotAJournal { path, .. }) => {
                        assert_eq!(path, *journal, "{what}");
                        assert!(words.contains("damaged") && words.contains("--discard"), "{what}: {words}");
                        let resumes = run(&case.setup.runtime(None), &case.job, true, None).err();
                        assert_eq!(resumes.map(|error| error.to_string()), Some(words), "{what}");
                    }
                    other => panic!("{what}: {other}"),
                }
            }
            std::fs::write(journal, bytes).unwrap();
        }
        case.clear();
        eprintln!("{}: {resumed} damaged tails were continued", case.name);
        assert!(resumed > 0);
    }
}

/// A journal is not believed about a file that has the right name, length and header, but not what was written.
#[test]
fn a_run_whose_files_were_replaced_is_refused() {
    let refused = |pairs: &Pairs, why: &str| {
        let refused = pairs.resume(2 * MIB).err().unwrap_or_else(|| panic!("{why}"));
        assert!(matches!(refused, Error::OtherRun { .. }), "{why}: {refused}");
        assert!(refused.to_string().contains("y0.npy.part"), "{why}: {refused}");
        assert_eq!(refused.exit_status(), 2, "{why}: {refused}");
    };
    let pairs = Pairs::new(&[[256, 16_384]], &["times"]);
    pairs.killed(2 * MIB, 6);
    let [part, early, late] = ["y0.npy.part", "early", "late"].map(|name| pairs.path(name));
    std::fs::copy(&part, &early).unwrap();
    // It goes on, and is killed again.
    pairs.calls.store(0, Ordering::SeqCst);
    let die = DieAfter { calls: pairs.calls.clone(), least_calls: 3 };
    let again = run(&pairs.runtime(2 * MIB, Some(Arc::new(die))), &pairs.job(|i| i), true, Some(Duration::ZERO));
    assert!(again.is_err(), "it was to be killed");
    std::fs::rename(&part, &late).unwrap();
    // An older copy, in a file of its own and written over the one that is there; a file of which only the header is right.
    std::fs::copy(&early, &part).unwrap();
    refused(&pairs, "the .part is an older one");
    let header = std::fs::read(&late).unwrap()[..4096].to_vec();
    let file = std::fs::File::create(&part).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &header, 0).unwrap();
    file.set_len(std::fs::metadata(&late).unwrap().len()).unwrap();
    refused(&pairs, "the .part holds nothing");
    std::fs::copy(&late, &part).unwrap();
    assert!(pairs.resume(2 * MIB).unwrap().resumed, "the bytes count, not the file that holds them");
    pairs.check("resumed");
    // Likewise of a run that only wants its names.
    for in_memory in [false, true] {
        let pairs = Pairs::new(&[[64, 2048]], &["times"]);
        let runtime = |faults| if in_memory { pairs.runtime_in_memory(faults) } else { pairs.runtime(MIB, faults) };
        assert!(run(&runtime(nameless(0)), &pairs.job(|i| i), false, None).is_err());
        let part = pairs.path("y0.npy.part");
        let whole = std::fs::read(&part).unwrap();
        alter(&part, 4096 + 400);
        let refused = run(&runtime(None), &pairs.job(|i| i), true, None).err().expect("a complete .part was altered");
        assert!(refused.to_string().contains("y0.npy.part"), "{refused}");
        // Another file has the name, and what was to have it is gone.
        std::fs::rename(&part, pairs.path("elsewhere")).unwrap();
        std::fs::write(pairs.path("y0.npy"), [&whole[..4096], &vec![0; 64 * 2048 * 4]].concat()).unwrap();
        let refused = run(&runtime(None), &pairs.job(|i| i), true, None).err().expect("it is no result of this run");
        assert!(refused.to_string().contains("y0.npy"), "{refused}");
        std::fs::remove_file(pairs.path("y0.npy")).unwrap();
        std::fs::write(&part, whole).unwrap();
        assert!(run(&runtime(None), &pairs.job(|i| i), true, None).unwrap().resumed);
        pairs.check("named");
    }
}

/// Gives results no names from a number on.
struct Nameless {
    from: u64,
    seen: AtomicU64,
}

impl Faults for Nameless {
    fn before(&self, operation: &Operation<'_>) -> Verdict {
        let is_result = operation.path.extension().is_some_and(|extension| extension == "npy");
        let names = operation.kind == OperationKind::Rename && is_result;
        if names && self.seen.fetch_add(1, Ordering::SeqCst) >= self.from { Verdict::Fail(5) } else { Verdict::Go }
    }
}

fn nameless(from: u64) -> Option<Arc<dyn Faults>> {
    Some(Arc::new(Nameless { from, seen: AtomicU64::new(0) }))
}

#[test]
fn results_that_could_not_be_named_are_named_by_the_next_run() {
    let memory = |faults| {
        let machine = Box::new(memory_machine(2, None));
        let machine = multigrain::MachineChoice::Given(machine);
        Runtime::new(Options { machine, faults, ..Options::default() }).unwrap()
    };
    for in_memory in [false, true] {
        for (count, from) in [(1, 0), (3, 0), (3, 1), (3, 2)] {
            let pairs = Pairs::new(&vec![[64, 4096]; count], &["times"]);
            let faults = nameless(from);
            let runtime = if in_memory { memory(faults) } else { pairs.runtime(MIB, faults) };
            let error = run(&runtime, &pairs.job(|i| i), false, None).err().expect("a name could not be given");
            assert_eq!(error.exit_status(), 1, "{error}");
            let Error::Unpublished { published, waiting, .. } = &error else { panic!("{error}") };
            assert_eq!((published.len() as u64, waiting.len() as u64), (from, count as u64 - from), "{error}");
            assert!(error.to_string().contains("--resume"), "{error}");
            for i in 0..count {
                assert_eq!(pairs.path(&format!("y{i}.npy")).exists(), (i as u64) < from, "{error}");
            }
            pairs.calls.store(0, Ordering::SeqCst);
            let runtime = if in_memory { memory(None) } else { pairs.runtime(MIB, None) };
            assert!(run(&runtime, &pairs.job(|i| i), true, None).unwrap().resumed);
            assert_eq!(pairs.calls.load(Ordering::SeqCst), 0, "nothing was computed again");
            pairs.check("named");
            let names: Vec<String> = (0..count).map(|i| format!("y{i}.npy")).collect();
            assert_eq!(pairs.left(), names);
        }
    }
}

#[test]
fn the_shape_of_a_file_must_be_that_of_its_array() {
    for shape in [[65, 4096], [64, 4097], [63, 4096], [4096, 64], [1, 4096 * 64]] {
        let pairs = Pairs::new(&[[64, 4096]], &["times"]);
        let values = vec![1.0; (shape[0] * shape[1]) as usize];
        multigrain::testing::write_npy(&pairs.path("x0.npy"), &shape, &values).unwrap();
        let memory = multigrain::MachineChoice::Given(Box::new(memory_machine(2, None)));
        let memory = Runtime::new(Options { machine: memory, ..Options::default() }).unwrap();
        for runtime in [memory, pairs.runtime(MIB, None)] {
            let refused = run(&runtime, &pairs.job(|i| i), false, None).err().expect("another shape");
            assert_eq!(refused.exit_status(), 2, "{refused}");
            let [found, needed] = [format!("{} x {}", shape[0], shape[1]), "64 x 4096".to_owned()];
            let text = refused.to_string();
            assert!(text.contains(&found) && text.contains(&needed) && text.contains("x0.npy"), "{text}");
            assert_eq!(pairs.left(), [""; 0]);
        }
        // An array that is updated begins with the content of a file as well.
        let mut program = Program::new();
        let task = program.task(multigrain::rooms::plan::testing::Scale::<f32, 2>::default());
        let [x, a] = ["x", "a"].map(|name| program.array::<f32, 2>(name, [64, 4096], Role::InOut).unwrap());
        program.call(task, (x.all(), a.all()), Scalars::new()).unwrap();
        let job = Job::new("update", program).with_source(0, Source::Npy(pairs.path("x0.npy")));
        let refused = run(&pairs.runtime(MIB, None), &job, false, None).err().expect("another shape");
        assert!(refused.to_string().contains("64 x 4096"), "{refused}");
    }
}

/// Writes into the input while a run reads it.
struct Writes {
    path: PathBuf,
    calls: Arc<AtomicU64>,
    replace: bool,
}

impl Faults for Writes {
    fn before(&self, operation: &Operation<'_>) -> Verdict {
        if operation.kind == OperationKind::Append && self.calls.fetch_add(1, Ordering::SeqCst) == 4 {
            match self.replace {
                true => {
                    let other = self.path.with_extension("other");
                    std::fs::write(&other, "another file").unwrap();
                    std::fs::rename(other, &self.path).unwrap();
                }
                false => {
                    use std::os::unix::fs::FileExt;
                    let file = std::fs::File::options().write(true).open(&self.path).unwrap();
                    file.write_all_at(&[1; 16], 200_000).unwrap();
                }
            }
        }
        Verdict::Go
    }
}

#[test]
fn an_input_that_is_written_during_the_run_ends_it_without_a_result() {
    for replace in [false, true] {
        let pairs = Pairs::new(&[[64, 16_384]], &["times"]);
        let path = pairs.path("x0.npy");
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        std::fs::copy(&path, pairs.path("x-copy")).unwrap();
        let writes = Arc::new(Writes { path: path.clone(), calls: Arc::default(), replace });
        let ended = run(&pairs.runtime(MIB, Some(writes)), &pairs.job(|i| i), false, Some(Duration::ZERO));
        if replace {
            // The run has the old file open, and that is whole.
            ended.unwrap();
            std::fs::copy(pairs.path("x-copy"), &path).unwrap();
            pairs.check("replaced");
            continue;
        }
        let error = ended.err().expect("the input was written");
        assert!(matches!(error, Error::InputChanged { .. }) && error.exit_status() == 1, "{error}");
        assert!(error.to_string().contains("x0.npy"), "{error}");
        assert_eq!(pairs.left(), [""; 0]);
    }
}

/// Steps that begin from an input each: what is written in parts and then used as a whole leads no further back than to
/// those parts.
#[test]
fn what_was_written_anew_in_parts_is_where_a_run_goes_on() {
    use multigrain::rooms::plan::testing::{Scale, Transpose};
    use multigrain::rooms::plan::{Numbered, PlanOptions, Planner, Stored};
    const STEPS: u32 = 5;
    let mut program = Program::new();
    let (transpose, scale) = (program.task(Transpose::<f32>::default()), program.task(Scale::<f32, 2>::default()));
    let input = program.array::<f32, 2>("input", [8, 8], Role::Input).unwrap();
    let t = program.array::<f32, 2>("t", [8, 8], Role::Temporary).unwrap();
    for step in 0..STEPS {
        let out = program.array::<f32, 2>(&format!("out{step}"), [8, 8], Role::Output).unwrap();
        for half in [0, 4] {
            let (from, to) = (input.block([0, half], [8, 4]), t.block([half, 0], [4, 8]));
            program.call(transpose, (from, to), Scalars::new()).unwrap();
        }
        program.call(scale, (t.all(), input.all()), Scalars::new()).unwrap();
        program.call(transpose, (t.all(), out.all()), Scalars::new()).unwrap();
    }
    let machine = disk_machine(Path::new("."), 1 << 20, 1, None);
    let options = PlanOptions { disk_buffer_bytes: BUFFER_BYTES, ..PlanOptions::default() };
    let plan = Planner::new(&machine, multigrain::Mapping::default(), options).plan(&program).unwrap();
    let numbered = Numbered::of(&program, &plan.ways).unwrap();
    assert_eq!(numbered.calls().len() as u32, 4 * STEPS);
    for done in 0..=STEPS {
        let events: Vec<Stored> = (0..done).map(|s| Stored { call: 4 * s + 3, argument: 1, durable: true }).collect();
        let left: Vec<u32> = (4 * done..4 * STEPS).collect();
        assert_eq!(numbered.left(&events).numbers(), left, "{done} of {STEPS} steps are durable");
    }
}

#[task(axes(i, j))]
fn both(#[at(i, j)] x: Update<f32, 2>, #[at(i, j)] y: Write<f32, 2>) {
    for i in 0..x.len(0) {
        for j in 0..x.len(1) {
            y[[i, j]] = x[[i, j]];
            x[[i, j]] += 1.0;
        }
    }
}

/// Of a call that is made again nothing counts that it has done: it would update what it has updated.
#[test]
fn a_call_of_which_one_result_is_durable_gives_it_up() {
    use multigrain::rooms::plan::{Numbered, PlanOptions, Planner, Stored};
    let mut program = Program::new();
    let task = program.task(both);
    let [x, y] = [("x", Role::InOut), ("y", Role::Output)].map(|(n, r)| program.array::<f32, 2>(n, [8, 8], r).unwrap());
    program.call(task, (x.all(), y.all()), Scalars::new()).unwrap();
    let machine = disk_machine(Path::new("."), 1 << 20, 1, None);
    let options = PlanOptions { disk_buffer_bytes: BUFFER_BYTES, ..PlanOptions::default() };
    let plan = Planner::new(&machine, multigrain::Mapping::default(), options).plan(&program).unwrap();
    let numbered = Numbered::of(&program, &plan.ways).unwrap();
    let calls = numbered.calls().len() as u32;
    let left = numbered.left(&[false, true].map(|durable| Stored { call: 0, argument: 0, durable }));
    assert_eq!(left.numbers(), (0..calls).collect::<Vec<_>>());
    let given_up: Vec<_> = left.given_up.iter().map(|s| (s.call, s.argument, s.durable)).collect();
    assert_eq!(given_up, [(0, 0, false)]);
    assert!(left.restore.iter().any(|block| block.array == 0), "it begins from what x was");
}
