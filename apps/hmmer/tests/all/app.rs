//! The application: the same table on every machine, what is skipped could not be reported, faults leave nothing behind,
//! refusals in plain words.

use crate::support;

use multigrain::app::Application;
use multigrain::prelude::*;
use multigrain::rooms::store::{Faults, Operation, OperationKind, Verdict};
use multigrain::rooms::trace::{Kind, Record, Spill, Trace};
use multigrain::{MachineChoice, testing};
use multigrain_hmmer::app::Args;
use multigrain_hmmer::domain::{Bound, Finder};
use multigrain_hmmer::filter::{Filters, Reference};
use multigrain_hmmer::generate;
use multigrain_hmmer::kernel::reference;
use multigrain_hmmer::profile::Profile;
use multigrain_hmmer::sequence::{Database, Limit};
use multigrain_hmmer::table::{self, Named, Row, Threshold, Thresholds};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use support::data;

fn generated(directory: &Path, n: u64, m: u64, seed: u64) -> Args {
    let output = Some(directory.join("table"));
    Args { output, scores: Some(directory.join("scores")), n, m, seed, max: true, ..Args::default() }
}

/// The same with filters, and without scores, which some sequences do not have then.
fn filtered(directory: &Path, n: u64, m: u64, seed: u64) -> Args {
    Args { scores: None, max: false, ..generated(directory, n, m, seed) }
}

/// Runs a request and gives the table and the scores that it wrote.
fn run(runtime: &Runtime, args: &Args) -> Result<(String, String), Error> {
    let app = args.prepare(runtime)?;
    let outcome = runtime.run(&app.job, Settings::default())?;
    // Files of an earlier request are none of this one's.
    for path in [&args.output, &args.scores].into_iter().flatten().filter(|path| path.exists()) {
        std::fs::remove_file(path).unwrap();
    }
    let checked = (app.check)(&outcome, 1)?;
    assert!(checked.holds() && checked.elements > 0, "{checked:?}");
    if let Some(after) = &app.after {
        after(&outcome)?;
    }
    let read =
        |path: &Option<PathBuf>| path.as_ref().map_or(String::new(), |path| std::fs::read_to_string(path).unwrap());
    Ok((read(&args.output), read(&args.scores)))
}

fn detected() -> Runtime {
    Runtime::new(Options::default()).unwrap()
}

#[test]
fn every_machine_gives_the_same_table() {
    let directory = tempfile::tempdir().unwrap();
    for seed in 0..2 {
        let make = [generated, filtered][seed as usize];
        let args = make(directory.path(), 150, 10 + 30 * seed, seed);
        let expected = run(&detected(), &args).unwrap();
        assert!(expected.0.lines().any(|line| !line.starts_with('#')), "no hits");
        let mut ran = 0;
        for machine in 16 * seed..16 * seed + 16 {
            // The application's files lie in a place of their own.
            let scratch = tempfile::tempdir().unwrap();
            let runtime = testing::runtime(testing::machine(machine, 200, scratch.path()).unwrap()).unwrap();
            let app = args.prepare(&runtime).unwrap();
            match runtime.run(&app.job, Settings::default()) {
                Ok(outcome) => drop(app.after.as_ref().unwrap()(&outcome).unwrap()),
                Err(error) if error.to_string().contains("does not fit") => continue,
                Err(error) => panic!("seed {seed}, machine {machine}: {error}"),
            }
            let found = [&args.output, &args.scores]
                .map(|path| path.as_ref().map_or(String::new(), |path| std::fs::read_to_string(path).unwrap()));
            assert!(found == [expected.0.clone(), expected.1.clone()], "seed {seed}, machine {machine}");
            ran += 1;
        }
        assert!(ran > 6, "only {ran} of 16 machines hold it");
    }
}

#[test]
fn altered_scores_are_refused_by_the_check() {
    let directory = tempfile::tempdir().unwrap();
    let machine = Machine::named("disk").unwrap();
    let machine = MachineChoice::Given(Box::new(
        machine.with("disk", |disk| disk.path = Some(directory.path().to_owned())).unwrap(),
    ));
    let runtime = Runtime::new(Options { machine, threads: Some(2), ..Options::default() }).unwrap();
    // In scores, and in how many filters each sequence passes: all that a check of these can meet is another number.
    for (name, max) in [("scores", true), ("stages", false)] {
        let args = Args { n: 60, m: 20, max, ..Args::default() };
        let app = args.prepare(&runtime).unwrap();
        let array = app.job.arrays().iter().position(|array| array.name == name).unwrap();
        let out = directory.path().join(format!("{name}.npy"));
        let job = app.job.clone().with_sink(array, Sink::Npy(out.clone()));
        let outcome = runtime.run(&job, Settings::default()).unwrap();
        let holds = |seed| {
            let checked = (app.check)(&outcome, seed).unwrap();
            assert!(checked.elements >= 60, "a small search is checked in full: {checked:?}");
            checked.holds()
        };
        if max {
            (0..4).for_each(|seed| testing::alterations(&out, None, seed, || holds(seed)));
            continue;
        }
        let content = std::fs::read(&out).unwrap();
        for at in (content.len() - 60..content.len()).step_by(7) {
            let mut altered = content.clone();
            altered[at] ^= 1;
            std::fs::write(&out, altered).unwrap();
            assert!(!holds(1), "stage {at}");
        }
        std::fs::write(&out, content).unwrap();
        assert!(holds(1));
    }
}

/// Files are what the user gets: one letter, two lines, an end that is missing or one that is too much.
#[test]
fn altered_files_are_refused_by_the_check() {
    let directory = tempfile::tempdir().unwrap();
    let [domtblout, report, alignment] =
        ["domains", "report", "alignment"].map(|name| Some(directory.path().join(name)));
    let args = Args { domtblout, report, alignment, ..generated(directory.path(), 220, 40, 3) };
    let runtime = detected();
    let app = args.prepare(&runtime).unwrap();
    let outcome = runtime.run(&app.job, Settings::default()).unwrap();
    app.after.as_ref().unwrap()(&outcome).unwrap();
    let right = || {
        let checked = (app.check)(&outcome, 1).unwrap();
        assert!(checked.holds() != checked.wrong.is_some(), "{checked:?}");
        checked.holds()
    };
    assert!(right());
    let files = [&args.output, &args.scores, &args.domtblout, &args.report, &args.alignment];
    for path in files.into_iter().flatten() {
        let text = std::fs::read_to_string(path).unwrap();
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        let apart = (1..lines.len()).find(|&i| i > lines.len() / 3 && lines[i] != lines[i - 1]).unwrap();
        lines.swap(apart, apart - 1);
        let digit = text.len() / 2 + text[text.len() / 2..].find(|c: char| c.is_ascii_alphanumeric()).unwrap();
        let other = if text.as_bytes()[digit] == b'7' { "8" } else { "7" };
        let one = [&text[..digit], other, &text[digit + 1..]].concat();
        let mut altered = vec![lines.concat(), one];
        if Some(path) == args.output.as_ref() {
            altered.extend([text[..text.len() - 1].to_owned(), format!("{text}#\n"), String::new()]);
        }
        for altered in altered {
            std::fs::write(path, altered).unwrap();
            assert!(!right(), "{}", path.display());
        }
        std::fs::write(path, text).unwrap();
    }
    assert!(right());
}

#[test]
fn a_trace_tells_both_stages() {
    let directory = tempfile::tempdir().unwrap();
    let args = generated(directory.path(), 400, 30, 3);
    let runtime = Runtime::new(Options { threads: Some(2), ..Options::default() }).unwrap();
    let app = args.prepare(&runtime).unwrap();
    let path = directory.path().join("run.trace");
    let spill = Spill::create(&path).unwrap();
    let outcome = runtime.run(&app.job, Settings { trace: Some(spill.clone()), ..Settings::default() }).unwrap();
    app.after.as_ref().unwrap()(&outcome).unwrap();
    spill.publish().unwrap();
    let trace = Trace::load(&path).unwrap();
    let task = trace.header.tasks.iter().position(|task| task == "hmmer-domains").unwrap();
    let (later, run): (Vec<&Record>, Vec<&Record>) = trace
        .records
        .iter()
        .filter(|record| record.kind == Kind::Leaf)
        .partition(|record| usize::from(record.index) == task);
    assert!(!run.is_empty() && run.iter().all(|r| later.iter().all(|l| r.end <= l.start)), "one stage after the other");
    // A leaf for each sequence whose domains were looked for: no fewer than there are hits.
    let table = std::fs::read_to_string(directory.path().join("table")).unwrap();
    let hits = table.lines().filter(|line| !line.starts_with('#')).count();
    assert!(hits > 0 && later.len() >= hits && later.len() <= 400, "{} leaves, {hits} hits", later.len());
    let breakdown = trace.breakdown();
    let leaves: u64 = run.iter().chain(&later).map(|record| record.ticks()).sum();
    assert!((breakdown.leaf_seconds * trace.ticks_per_second() - leaves as f64).abs() < 1.0 + 1e-9 * leaves as f64);
    let parts = breakdown.leaf_seconds + breakdown.waited_seconds() + breakdown.overhead_seconds;
    assert!((parts / breakdown.worker_seconds() - 1.0).abs() < 1e-6, "{breakdown:?}");
    assert!(outcome.breakdown.leaf_seconds < breakdown.leaf_seconds, "the run's own breakdown has the run only");
}

/// The rows of a search in which every sequence's domains are looked for.
fn thorough(profile: &Profile, database: &Database, evalue: f64) -> Vec<Row> {
    let evalue = Threshold::Evalue(evalue);
    let thresholds = Thresholds { report: evalue, report_domains: evalue, ..Thresholds::new(database.len() as f64) };
    let everything =
        Bound::new(profile.forward, &Thresholds { report: Threshold::Evalue(f64::INFINITY), ..thresholds });
    let mut finder = Finder::new(profile);
    let hits = (0..database.len()).filter_map(|i| {
        let hit = finder.hit(&database.sequence(i).unwrap(), true, &everything).unwrap()?;
        let (name, description) = database.header(i).unwrap();
        Some(Named { name, description, index: i as u64, length: database.length(i), hit })
    });
    let hits = hits.collect();
    table::rows(profile, hits, &thresholds).hits
}

#[test]
fn what_is_skipped_could_not_be_reported() {
    let directory = tempfile::tempdir().unwrap();
    let limit = Limit { memory_bytes: u64::MAX, sequences: usize::MAX, directory: directory.path() };
    for (seed, m, evalue) in [(1, 40, 10.0), (2, 25, 1e-3), (3, 70, 100.0)] {
        let args = Args { evalue, domain_evalue: evalue, ..generated(directory.path(), 500, m, seed) };
        let (table, scores) = run(&detected(), &args).unwrap();
        let profile = &Profile::parse(generate::profile(seed, m as usize).as_bytes(), Path::new("made")).unwrap()[0];
        let text = generate::sequences(seed, args.n, m as usize);
        let database = Database::from_reader(text.as_bytes(), Path::new("made"), limit, 0).unwrap();
        let expected = thorough(profile, &database, evalue);
        let mut printed = Vec::new();
        table::write_rows(&mut printed, &expected).unwrap();
        let rows: String = table.lines().filter(|l| !l.starts_with('#')).map(|l| format!("{l}\n")).collect();
        assert!(!expected.is_empty(), "seed {seed} has no hits");
        assert_eq!(rows, String::from_utf8(printed).unwrap(), "seed {seed}");
        let nodes = profile.local();
        for (i, line) in scores.lines().skip(1).enumerate().step_by(50) {
            let fields: Vec<&str> = line.split('\t').collect();
            let exact = reference(&nodes, &database.sequence(i).unwrap());
            assert_eq!(fields[1], database.header(i).unwrap().0);
            for (field, exact) in [(4, exact.viterbi), (5, exact.forward)] {
                assert!((fields[field].parse::<f64>().unwrap() - exact).abs() < 1e-3, "{line}: {exact}");
            }
        }
        assert_eq!(scores.lines().count(), database.len() + 1);
    }
}

#[test]
fn real_databases_give_the_hits_of_hmmsearch() {
    let directory = tempfile::tempdir().unwrap();
    let database = "protdb/938293.PRJEB85.HG003687.faa";
    for (profile, database, expected, nonull2) in [
        ("hmm/globins4.hmm", "hmm/globins45.fa", "hmm/globins4.globins45.max.tbl", false),
        ("hmm/globins4.hmm", "hmm/globins45.fa", "hmm/globins4.globins45.default.tbl", false),
        ("hmm/fn3.hmm", "hmm/globins45.fa", "hmm/fn3.globins45.default.tbl", false),
        ("hmm/fn3.hmm", database, "hmm/fn3.938293.PRJEB85.HG003687.max.tbl", false),
        ("hmm/globins4.hmm", database, "hmm/globins4.938293.PRJEB85.HG003687.max_nonull2.tbl", true),
    ] {
        let (Some(profile), Some(database), Some(expected)) = (data(profile), data(database), data(expected)) else {
            continue;
        };
        let output = Some(directory.path().join("table"));
        let max = expected.to_string_lossy().contains(".max");
        let args = Args { profile: Some(profile), database: Some(database), output, nonull2, max, ..Args::default() };
        let (found, _) = run(&detected(), &args).unwrap();
        // Columns are as wide as the longest name; what they hold must be equal.
        let rows = |text: &str| -> Vec<Vec<String>> {
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            lines.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
        };
        assert_eq!(rows(&found), rows(&std::fs::read_to_string(expected).unwrap()));
    }
}

/// Fails one operation on files.
struct Fail {
    at: u64,
    next: AtomicU64,
}

impl Faults for Fail {
    fn before(&self, operation: &Operation<'_>) -> Verdict {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number == self.at && operation.kind != OperationKind::Remove { Verdict::Fail(5) } else { Verdict::Go }
    }
}

#[test]
fn failed_operations_on_files_leave_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let args = generated(directory.path(), 250, 8, 4);
    let expected = run(&detected(), &args).unwrap();
    // Residues take some 90 KB: more than an eighth of the memory.
    let within = |faults: Option<Arc<dyn Faults>>| {
        Runtime::new(Options { memory_bytes: Some(600 << 10), faults, ..Options::default() }).unwrap()
    };
    let clear = || ["table", "scores"].map(|name| std::fs::remove_file(directory.path().join(name)).is_ok());
    clear();
    assert!(run(&within(None), &args).unwrap() == expected, "from a file");
    clear();
    let none = Arc::new(Fail { at: u64::MAX, next: AtomicU64::new(0) });
    run(&within(Some(none.clone())), &args).unwrap();
    clear();
    // One in so many that some sixteen are tried; the first and the last among them.
    let operations = none.next.load(Ordering::Relaxed);
    let (mut failed, mut kept) = (0, 0);
    for at in (0..operations).step_by(operations.div_ceil(16) as usize).chain([operations - 1]) {
        let faults = Arc::new(Fail { at, next: AtomicU64::new(0) });
        match run(&within(Some(faults)), &args) {
            Ok(found) => assert!(found == expected, "operation {at}"),
            Err(error) => {
                failed += 1;
                // Nothing is left but what can be continued, and then that is said.
                let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().path()).collect();
                assert!(left.is_empty() || error.to_string().contains("--resume"), "operation {at}: {left:?}: {error}");
                kept += usize::from(!left.is_empty());
                left.iter().for_each(|path| std::fs::remove_file(path).unwrap());
            }
        }
        clear();
    }
    assert!(failed > 3 && kept * 2 < failed, "{failed} of {operations} operations failed, {kept} kept work");
}

#[test]
fn refusals_name_what_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("p.hmm"), generate::profile(1, 5)).unwrap();
    std::fs::write(path("db.fa"), generate::sequences(1, 3, 5)).unwrap();
    std::fs::write(path("dna.hmm"), generate::profile(1, 5).replace("ALPH  amino", "ALPH  DNA")).unwrap();
    std::fs::write(path("bad.fa"), ">a\nMKV\n>b\nMK1\n").unwrap();
    let args = |profile: &str, database: &str, output: &str| Args {
        profile: Some(path(profile)),
        database: Some(path(database)),
        output: Some(path(output)),
        ..Args::default()
    };
    let fine = args("p.hmm", "db.fa", "table");
    assert!(fine.prepare(&detected()).is_ok());
    for (args, words) in [
        (args("dna.hmm", "db.fa", "table"), &["dna.hmm", "DNA"][..]),
        (args("p.hmm", "bad.fa", "table"), &["bad.fa:4:3"]),
        (args("db.fa", "p.hmm", "table"), &["db.fa:1"]),
        (args("p.hmm", "p.hmm", "table"), &["p.hmm:1", "HMMER3"]),
        (args("p.hmm", "missing.fa", "table"), &["missing.fa"]),
        (args("p.hmm", "db.fa", "nowhere/table"), &["nowhere", "create it"]),
        (Args { evalue: f64::NAN, ..fine.clone() }, &["--evalue"]),
        (Args { targets: Some(0.0), ..fine.clone() }, &["--targets"]),
        (Args { f2: -1.0, ..fine.clone() }, &["--F2 -1"]),
        (Args { include_score: Some(f64::INFINITY), ..fine.clone() }, &["--incT"]),
        (Args { cut_ga: true, ..fine.clone() }, &["--cut_ga", "GA", "generated-1-5"]),
        (Args { m: 0, ..Args::default() }, &["--m 0"]),
    ] {
        let Err(error) = args.prepare(&detected()) else { panic!("{args:?} was accepted") };
        assert_eq!(error.exit_status(), 2);
        let message = error.to_string();
        assert!(words.iter().all(|word| message.contains(word)), "{words:?}: {message}");
    }
    for (args, words) in [
        (args("p.hmm", "db.fa", "db.fa"), "would replace the input"),
        (Args { scores: Some(path("p.hmm")), ..fine.clone() }, "would replace the input"),
        (Args { scores: fine.output.clone(), ..fine }, "two results"),
    ] {
        let Err(error) = run(&detected(), &args) else { panic!("{args:?} was accepted") };
        assert!(error.exit_status() == 2 && error.to_string().contains(words), "{error}");
    }
    let [profile, database] = ["p.hmm", "db.fa"].map(|name| std::fs::read_to_string(path(name)).unwrap());
    assert!(profile == generate::profile(1, 5) && database == generate::sequences(1, 3, 5));
}

/// What hmmsearch says of a generated profile and sequences, its table and its report, and our table; None where it is not
/// installed. `options` are given to it.
fn beside_hmmsearch(options: &[&str], args: &Args) -> Option<(String, String, String)> {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("p.hmm"), with_cutoffs(&generate::profile(2, 40))).unwrap();
    std::fs::write(path("db.fa"), generate::sequences(2, 600, 40)).unwrap();
    let mut command = std::process::Command::new("hmmsearch");
    command.args(options).args(["--noali", "-o", "report", "--tblout", "theirs", "p.hmm", "db.fa"]);
    match command.current_dir(directory.path()).output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            println!("skipped: no hmmsearch ({error})");
            return None;
        }
    }
    let [profile, database, output] = ["p.hmm", "db.fa", "table"].map(|name| Some(path(name)));
    let (found, _) = run(&detected(), &Args { profile, database, output, ..args.clone() }).unwrap();
    let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    Some((read("theirs"), read("report"), found))
}

/// A profile's text with cutoffs.
fn with_cutoffs(profile: &str) -> String {
    profile.replace("STATS LOCAL MSV", "GA    22.50 15.25;\nTC    25.10 18.00;\nNC    9.80 7.40;\nSTATS LOCAL MSV")
}

#[test]
fn generated_inputs_give_the_hits_of_hmmsearch() {
    let default = Args::default;
    let loose = Args { f1: 0.4, f2: 0.2, f3: 0.1, ..default() };
    let cases: [(&[&str], Args); 10] = [
        (&[], default()),
        (&["--max"], Args { max: true, ..default() }),
        (&["--F1", "0.4", "--F2", "0.2", "--F3", "0.1"], loose),
        (&["--nobias", "--nonull2", "-E", "1e-4"], Args { nobias: true, nonull2: true, evalue: 1e-4, ..default() }),
        (&["--max", "-T", "5.5", "--domT", "4"], {
            Args { max: true, score: Some(5.5), domain_score: Some(4.0), ..default() }
        }),
        (&["--max", "--domE", "1e-3", "--incE", "1e-6", "--incdomE", "1e-8"], {
            Args { max: true, domain_evalue: 1e-3, include_evalue: 1e-6, include_domain_evalue: 1e-8, ..default() }
        }),
        (&["--incT", "20", "--incdomT", "25", "-Z", "1000000", "--domZ", "1e5"], {
            let include = Args { include_score: Some(20.0), include_domain_score: Some(25.0), ..default() };
            Args { targets: Some(1e6), domain_targets: Some(1e5), ..include }
        }),
        (&["--cut_ga"], Args { cut_ga: true, ..default() }),
        (&["--cut_tc", "--max"], Args { cut_tc: true, max: true, ..default() }),
        (&["--cut_nc", "--max"], Args { cut_nc: true, max: true, ..default() }),
    ];
    for (options, args) in cases {
        let Some((theirs, _, found)) = beside_hmmsearch(options, &args) else { return };
        let rows =
            |text: &str| text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
        assert!(!rows(&found).is_empty());
        assert_eq!(rows(&found), rows(&theirs), "{options:?}");
    }
}

/// hmmsearch tells how many sequences pass each filter.
#[test]
fn as_many_sequences_pass_each_filter_as_in_hmmsearch() {
    let (profile, text) = (generate::profile(2, 40), generate::sequences(2, 600, 40));
    let profile = &Profile::parse(profile.as_bytes(), Path::new("made")).unwrap()[0];
    let limit = Limit { memory_bytes: u64::MAX, sequences: usize::MAX, directory: Path::new(".") };
    let database = Database::from_reader(text.as_bytes(), Path::new("made"), limit, 0).unwrap();
    for (f1, f2) in [(0.02, 1e-3), (0.3, 0.1), (0.6, 0.02), (0.1, 0.05), (0.05, 0.01)] {
        let args = Args { f1, f2, ..Args::default() };
        let options = ["--F1", &f1.to_string(), "--F2", &f2.to_string()];
        let Some((_, report, _)) = beside_hmmsearch(&options, &args) else { return };
        let mut filters = Reference::new(profile, &Filters { msv: f1, viterbi: f2, ..Filters::default() });
        let stages: Vec<u8> = (0..database.len()).map(|i| filters.passed(&database.sequence(i).unwrap())).collect();
        for (stage, name) in ["MSV", "bias", "Vit"].into_iter().enumerate() {
            let line = report.lines().find(|line| line.starts_with(&format!("Passed {name} filter:"))).unwrap();
            let theirs: usize = line.split_whitespace().nth(3).unwrap().parse().unwrap();
            let found = stages.iter().filter(|&&passed| usize::from(passed) > stage).count();
            assert_eq!(found, theirs, "{name}, {options:?}");
        }
    }
}

#[test]
fn alignments_are_written_where_domains_are_significant() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| Some(directory.path().join(name));
    let some = Args { report: path("report"), alignment: path("aligned"), ..filtered(directory.path(), 300, 40, 5) };
    let (hits, _) = run(&detected(), &some).unwrap();
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
    let (report, aligned) = (read("report"), read("aligned"));
    let hits = hits.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(report.lines().filter(|line| line.starts_with(">> ")).count(), hits);
    // What was aligned is a database, and its rows are found again.
    let rows = aligned.lines().filter(|line| line.starts_with("#=GS ")).count();
    let again = Database::read(
        &directory.path().join("aligned"),
        Limit { memory_bytes: 1 << 20, sequences: usize::MAX, directory: directory.path() },
        2,
    );
    assert_eq!(again.unwrap().len(), rows);
    assert!(0 < rows && report.ends_with("//\n[ok]\n"), "{rows}");
    let none = Args { include_evalue: 1e-300, alignment: path("nothing"), ..filtered(directory.path(), 300, 40, 5) };
    run(&detected(), &none).unwrap();
    assert!(!directory.path().join("nothing").exists());
}
