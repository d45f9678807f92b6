//! The program as it is called: what is refused and how, evaluations of fixed trees, files, resuming.

use crate::support;

use multigrain::Abort;
use multigrain::rooms::team::strands::Policy;
use multigrain::rooms::trace::{Kind, Trace};
use multigrain_phylo::Error;
use multigrain_phylo::alignment::{DataType, Format, read_alignment};
use multigrain_phylo::app::{Args, prepare, run};
use multigrain_phylo::partition::{Unnamed, read_schemes};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use support::program::{Interrupting, Silent, args, evolved, folder, path, phylo, scheduler};

const SMALL: &str = "5 12\na ACGTACGTACGT\nb ACGTACGTACGA\nc ACGAACGTTCGA\nd AGGAACGTTCGA\ne AGGAACCTTCGC\n";
const TREE: &str = "((a:0.1,b:0.1):0.05,c:0.1,(d:0.1,e:0.2):0.1);";

/// Fixed trees and parameters give the log-likelihoods that lie beside the real alignments, to 1e-6.
#[test]
fn fixed_trees_have_their_reference_log_likelihoods() {
    let Some(data) = support::data() else { return };
    for name in ["primates12", "syno42", "ds1_27", "bergsten38", "hsc31aa", "sc150", "zilla500"] {
        let json = std::fs::read_to_string(data.join(format!("fixed/{name}.json"))).unwrap();
        let model = support::string(&json, "iqtree_model");
        let alignment = path(&data, &format!("{name}.phy"));
        let tree = path(&data, &format!("fixed/{name}.nwk"));
        let report = phylo(&[&alignment, "--model", model, "--evaluate", &tree, "--fixed"]).unwrap();
        let (found, expected) = (report.log_likelihood.unwrap(), support::number(&json, "lnL_reference"));
        assert!((found - expected).abs() < 1e-6, "{name}: {found}, not {expected}");
        assert!(report.files.is_empty());
    }
}

/// One search, as good as any where there is little to find, down to three taxa; what it left is not gone on with by others.
#[test]
fn a_fast_search_is_one_search() {
    let three = "3 8\na ACGTACGT\nb ACGTACGA\nc ACGAACGT\n";
    let folder = folder(&[("small.phy", SMALL), ("three.phy", three)]);
    for name in ["small.phy", "three.phy"] {
        let alignment = path(folder.path(), name);
        let fast = phylo(&[&alignment, "--fast", "-m", "JC", "--bootstraps", "2"]).unwrap();
        assert_eq!(fast.searches.len(), 1);
        assert_eq!(fast.replicates, 2);
        let full = phylo(&[&alignment, "-m", "JC", "--searches", "2", "--force"]).unwrap();
        assert_eq!(full.searches.len(), 2);
        let [fast, full] = [fast, full].map(|report| report.log_likelihood.unwrap());
        assert!((fast - full).abs() < 1e-3, "{fast} {full}");
    }
    let alignment = path(folder.path(), "small.phy");
    assert_eq!(args(&[&alignment, "--fast", "--searches", "4"]).searches.to_string(), "4");
    let request = |typed: &[&str]| prepare(&args(&[&[&*alignment, "--force"], typed].concat())).unwrap().request;
    assert_ne!(request(&[]), request(&["--fast"]));
}

#[test]
fn wrong_requests_are_refused_with_a_message() {
    let folder = folder(&[
        ("good.phy", SMALL),
        ("two.phy", "2 4\na ACGT\nb ACGA\n"),
        ("gaps.phy", "4 4\na ----\nb NNNN\nc ????\nd ----\n"),
        ("letter.phy", "4 4\na ACGT\nb ACJT\nc ACGA\nd ACGA\n"),
        ("good.nwk", TREE),
        ("other.nwk", "((a:0.1,x:0.1):0.05,c:0.1,(d:0.1,e:0.2):0.1);"),
        ("fewer.nwk", "(a:0.1,c:0.1,(d:0.1,e:0.2):0.1);"),
        ("some.nwk", "((a,b:0.1):0.05,c:0.1,(d:0.1,e:0.2):0.1);"),
        ("negative.nwk", "((a:0.1,b:-0.1):0.05,c:0.1,(d:0.1,e:0.2):0.1);"),
        ("cut.nwk", "((a:0.1,b:0.1"),
        ("part", "DNA, x = 1-6\nDNA, y = 6-12\n"),
        ("some.part", "DNA, x = 1-6\n"),
    ]);
    let at = |name: &str| path(folder.path(), name);
    let good = at("good.phy");
    let fixed = "GTR{1/1/1/1/1/1}+FE+G4{1}";
    for (typed, expected) in [
        (vec![at("missing.phy")], "missing.phy"),
        (vec![at("two.phy")], "at least three"),
        (vec![at("gaps.phy"), "-m".into(), "JC".into()], "nothing but gaps"),
        (vec![at("letter.phy")], "letter.phy:3:5: the letter 'J'"),
        (vec![good.clone(), "-m".into(), "GTR+Q".into()], "+Q"),
        (vec![good.clone(), "-q".into(), at("part")], "part:2:"),
        (vec![good.clone(), "-q".into(), at("some.part")], "site 7 and 5 more"),
        (vec![good.clone(), "--evaluate".into(), at("other.nwk")], "'x' is not in the alignment"),
        (vec![good.clone(), "--evaluate".into(), at("fewer.nwk")], "'b' of the alignment is not in the tree"),
        (vec![good.clone(), "--evaluate".into(), at("some.nwk")], "length"),
        (vec![good.clone(), "--evaluate".into(), at("negative.nwk")], "negative"),
        (vec![good.clone(), "--evaluate".into(), at("cut.nwk")], "cut.nwk"),
        (
            vec![good.clone(), "--evaluate".into(), at("good.nwk"), "--fixed".into()],
            "no value for its exchangeabilities",
        ),
        (vec![good.clone(), "--branches".into(), "unlinked".into()], "--partitions"),
        (vec![good.clone(), "--searches".into(), "0".into()], "nothing to do"),
        (vec![good.clone(), "--prefix".into(), at("nowhere/x")], "nowhere"),
    ] {
        let typed: Vec<&str> = typed.iter().map(String::as_str).collect();
        let error = phylo(&typed).expect_err(&format!("{typed:?}"));
        assert_eq!(error.exit_status(), 2, "{typed:?}: {error}");
        assert!(error.to_string().contains(expected), "{typed:?}: {error}");
    }
    let before = std::fs::read_dir(folder.path()).unwrap().count();
    let tree = at("good.nwk");
    phylo(&[&good, "-m", fixed, "--evaluate", &tree, "--fixed"]).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), before, "nothing is written");
}

/// Everything that a run has written, but the log, which has times.
fn written(folder: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let results = entries.filter(|n| n.starts_with("out.") && n != "out.log");
    results.map(|n| (n.clone(), std::fs::read_to_string(folder.join(&n)).unwrap())).collect()
}

/// Every decision is in the trace with its reason, and no trace is overwritten unasked.
#[test]
fn a_trace_holds_decisions() {
    let folder = folder(&[("a.phy", SMALL)]);
    let [alignment, trace] = ["a.phy", "a.trace"].map(|name| path(folder.path(), name));
    let typed = [&alignment, "--searches", "1", "--threads", "2", "--policy", "llp:2", "--trace", &trace];
    let traced = |typed: &[&str]| {
        let args = args(typed);
        let mut prepared = prepare(&args)?;
        let scheduler = args.scheduler(&mut prepared)?;
        run(&prepared, &scheduler, Arc::new(Abort::new()), &Silent)
    };
    traced(&typed).unwrap();
    let found = Trace::load(Path::new(&trace)).unwrap();
    let decisions = || found.records.iter().filter(|record| record.kind == Kind::Decision);
    assert!(decisions().count() > 100);
    assert!(decisions().all(|decision| !found.header.reasons[usize::from(decision.detail)].is_empty()));
    let prefix = path(folder.path(), "b");
    let again = [&typed[..], &["--prefix", &prefix]].concat();
    let message = traced(&again).unwrap_err().to_string();
    assert!(message.contains("a.trace exists") && message.contains("--trace"), "{message}");
    assert!(!Path::new(&format!("{prefix}.bestTree")).exists());
    traced(&[&again[..], &["--force"]].concat()).unwrap();
}

#[test]
fn an_interrupted_run_goes_on_to_the_same_bits() {
    let whole = folder(&[("a.phy", &evolved(10, 200))]);
    let typed = |folder: &Path, more: &[&str]| {
        let (alignment, prefix) = (path(folder, "a.phy"), path(folder, "out"));
        let mut typed = vec![&*alignment, "--prefix", &*prefix, "-s", "3", "-b", "4", "-m", "HKY+F+G4"];
        typed.extend(more);
        args(&typed)
    };
    let report = run(
        &prepare(&typed(whole.path(), &[])).unwrap(),
        &scheduler(1, Policy::Edtlp),
        Arc::new(Abort::new()),
        &Silent,
    )
    .unwrap();
    let expected = written(whole.path());
    let words: Vec<&str> = expected.keys().map(|n| n.strip_prefix("out.").unwrap()).collect();
    let all = ["bestModel", "bestTree", "bootstraps", "consensus", "mlTrees", "support", "supportTBE", "svg"];
    assert_eq!(words, all);
    assert_eq!((report.searches.len(), report.replicates), (3, 4));
    assert!(expected["out.bestTree"].contains("(t0:0,t9:0)") || expected["out.bestTree"].contains("t9:0"));
    assert_eq!(expected["out.bootstraps"].lines().count(), 4);

    // Nothing is overwritten unasked.
    let refused = prepare(&typed(whole.path(), &[])).unwrap_err();
    assert!(refused.to_string().contains("--force") && refused.exit_status() == 2, "{refused}");
    prepare(&typed(whole.path(), &["--force"])).unwrap();

    let cut = folder(&[("a.phy", &evolved(10, 200))]);
    let mut interrupted = 0;
    let mgps = Policy::Mgps;
    let turns = [(2, mgps), (1, Policy::Edtlp), (3, Policy::Marginal), (2, Policy::Llp { workers_per_loop: 2 })];
    for (attempt, (workers, policy)) in turns.into_iter().cycle().take(20).enumerate() {
        let args = typed(cut.path(), if attempt == 0 { &[] } else { &["--resume"] });
        let abort = Arc::new(Abort::new());
        let watcher = Interrupting::after(9, &abort);
        match run(&prepare(&args).unwrap(), &scheduler(workers, policy), abort, &watcher) {
            Err(error) => assert_eq!(error, Error::Interrupted),
            Ok(_) => break,
        }
        assert_eq!(written(cut.path()).into_keys().collect::<Vec<_>>(), ["out.checkpoint"]);
        interrupted += 1;
        // Neither another alignment nor other settings may use the checkpoint, and it is not forgotten unasked.
        let refused = |args: Args| prepare(&args).unwrap_err().to_string();
        assert!(refused(typed(cut.path(), &[])).contains("--resume"));
        assert!(refused(typed(cut.path(), &["--resume", "--seed", "2"])).contains("seed = 1"));
        let text = std::fs::read_to_string(cut.path().join("a.phy")).unwrap();
        std::fs::write(cut.path().join("a.phy"), text.replacen("t1 A", "t1 C", 1).replacen("t1 G", "t1 T", 1)).unwrap();
        let changed = std::fs::read_to_string(cut.path().join("a.phy")).unwrap() != text;
        if changed {
            assert!(refused(typed(cut.path(), &["--resume"])).contains("another alignment"));
        }
        std::fs::write(cut.path().join("a.phy"), text).unwrap();
    }
    assert!(interrupted > 1, "the run was never interrupted");
    assert_eq!(written(cut.path()), expected);
}

/// A script that always says `--resume` is right before the first run, after an interrupt and after the end; the log has all
/// parts of the run.
#[test]
fn resuming_is_right_in_every_state() {
    let folder = folder(&[("a.phy", &evolved(8, 150))]);
    let (alignment, prefix) = (path(folder.path(), "a.phy"), path(folder.path(), "out"));
    let typed = args(&[&*alignment, "--prefix", &prefix, "-s", "2", "-m", "HKY+F+G4", "--resume"]);
    let log = || std::fs::read_to_string(folder.path().join("out.log")).unwrap();
    let abort = Arc::new(Abort::new());
    let watcher = Interrupting::after(5, &abort);
    let prepared = prepare(&typed).unwrap();
    assert!(!prepared.is_finished);
    run(&prepared, &scheduler(1, Policy::Edtlp), abort, &watcher).unwrap_err();
    let first = log();
    assert!(first.contains("partition all") && first.contains("interrupted"), "{first}");
    let prepared = prepare(&typed).unwrap();
    assert!(!prepared.is_finished);
    run(&prepared, &scheduler(1, Policy::Edtlp), Arc::new(Abort::new()), &Silent).unwrap();
    let whole = log();
    assert!(whole.starts_with(&first) && whole.contains("Final LogLikelihood"), "{whole}");
    assert!(prepare(&typed).unwrap().is_finished);
    // More searches are another request, and so is another seed: its files are not overwritten.
    for more in [["-s", "3"], ["--seed", "2"]] {
        let count = ["-s", "2"];
        let more = [&[&*alignment, "--prefix", &prefix, "-m", "HKY+F+G4", "--resume"], &more[..]].concat();
        let more = if more.contains(&"-s") { more } else { [&more[..], &count].concat() };
        let refused = prepare(&args(&more)).unwrap_err();
        assert!(refused.to_string().contains("--force"), "{refused}");
    }
}

/// Whoever began with `--force` over the results of another run goes on with `--resume`, in every state: at once, from a
/// checkpoint, and after being killed while files got their names. What the run might not have replaced stays refused.
#[test]
fn what_was_begun_with_force_is_gone_on_with() {
    let folder = folder(&[("a.phy", &evolved(8, 150))]);
    let [alignment, prefix, trace] = ["a.phy", "out", "a.trace"].map(|name| path(folder.path(), name));
    let typed = |seed: &str, more: &[&str]| {
        let common = [&*alignment, "--prefix", &prefix, "-s", "2", "-m", "HKY+F+G4", "--seed", seed];
        args(&[&common[..], more].concat())
    };
    let make = |args: &Args| {
        let mut prepared = prepare(args).unwrap();
        let scheduler = args.scheduler(&mut prepared).unwrap();
        run(&prepared, &scheduler, Arc::new(Abort::new()), &Silent).unwrap();
    };
    let interrupt = |args: &Args, left: usize| {
        let abort = Arc::new(Abort::new());
        let watcher = Interrupting::after(left, &abort);
        if left == 0 {
            abort.raise();
        }
        run(&prepare(args).unwrap(), &scheduler(1, Policy::Edtlp), abort, &watcher).unwrap_err();
    };
    make(&typed("2", &["-b", "1"]));
    let bootstraps = written(folder.path())["out.bootstraps"].clone();
    make(&typed("2", &["--force"]));
    let expected = written(folder.path());
    make(&typed("1", &["--force"]));
    assert_ne!(written(folder.path())["out.mlTrees"], expected["out.mlTrees"]);
    for left in [0, 5] {
        interrupt(&typed("2", &["--force"]), left);
        // Of another seed nothing is left, and what this run would not have written it does not replace.
        assert!(prepare(&typed("1", &["--resume"])).unwrap_err().to_string().contains("seed = 2"));
        let refused = prepare(&typed("2", &["--resume", "-b", "1"])).unwrap_err().to_string();
        assert!(refused.contains("out.bootstraps exists"), "{refused}");
        make(&typed("2", &["--resume"]));
        assert_eq!(written(folder.path()), expected, "interrupted after {left} rounds");
        assert!(prepare(&typed("2", &["--resume"])).unwrap().is_finished);
    }
    assert_eq!(written(folder.path())["out.bootstraps"], bootstraps);

    // Killed between two names: the checkpoint and some files are there. The trace was none of this run's.
    for word in ["bestTree", "log", "svg", "mlTrees", "bestModel"] {
        std::fs::remove_file(format!("{prefix}.{word}")).unwrap();
    }
    interrupt(&typed("2", &[]), 5);
    std::fs::write(format!("{prefix}.bestTree"), &expected["out.bestTree"]).unwrap();
    std::fs::write(&trace, "").unwrap();
    let traced = ["--resume", "--trace", &*trace];
    assert!(prepare(&typed("2", &traced)).unwrap_err().to_string().contains("a.trace exists"));
    std::fs::remove_file(&trace).unwrap();
    make(&typed("2", &traced));
    // A finished run is finished, though its trace is there.
    assert!(Path::new(&trace).exists() && prepare(&typed("2", &traced)).unwrap().is_finished);
    std::fs::remove_file(&trace).unwrap();
    assert_eq!(written(folder.path()), expected);
}

/// Evaluations are gone on with, too, and do not take the checkpoint of a search for theirs.
#[test]
fn evaluations_are_resumed() {
    let bare = TREE.replace(":0.1", "").replace(":0.2", "").replace(":0.05", "");
    let folder = folder(&[("a.phy", SMALL), ("t.nwk", TREE), ("bare.nwk", &bare)]);
    let at = |name: &str| path(folder.path(), name);
    let typed = |tree: &str, more: &[&str]| {
        args(&[&[&*at("a.phy"), "-m", "JC", "--evaluate", &at(tree), "--prefix", &at("out")], more].concat())
    };
    let make = |args: &Args| {
        let prepared = prepare(args).unwrap();
        run(&prepared, &scheduler(1, Policy::Edtlp), Arc::new(Abort::new()), &Silent).unwrap().log_likelihood.unwrap()
    };
    // Lengths that are fitted need not be there before.
    let [fitted, bare] = ["t.nwk", "bare.nwk"].map(|tree| make(&typed(tree, &["--force"])));
    assert!((fitted - bare).abs() < 1e-3, "{fitted} {bare}");
    assert!(prepare(&typed("bare.nwk", &["--resume"])).unwrap().is_finished);
    let refused = prepare(&typed("t.nwk", &["--resume"])).unwrap_err().to_string();
    assert!(refused.contains("out.bestTree exists"), "{refused}");
    let fixed = ["--fixed", "--site-likelihoods", "--resume"];
    ["bestTree", "bestModel", "log"].iter().for_each(|word| std::fs::remove_file(at(&format!("out.{word}"))).unwrap());
    make(&typed("t.nwk", &fixed));
    assert!(prepare(&typed("t.nwk", &fixed)).unwrap().is_finished);
    assert!(!Path::new(&at("out.checkpoint")).exists());

    let search = args(&[&at("a.phy"), "-m", "JC", "-s", "3", "--prefix", &at("s")]);
    let abort = Arc::new(Abort::new());
    let watcher = Interrupting::after(2, &abort);
    run(&prepare(&search).unwrap(), &scheduler(1, Policy::Edtlp), abort, &watcher).unwrap_err();
    let other = |more: &[&str]| {
        args(&[&[&*at("a.phy"), "-m", "JC", "--evaluate", &at("t.nwk"), "--prefix", &at("s")], more].concat())
    };
    assert!(prepare(&other(&[])).unwrap_err().to_string().contains("another --prefix"));
    assert!(prepare(&other(&["--resume"])).unwrap_err().to_string().contains("evaluate = "));
    prepare(&other(&["--fixed"])).unwrap();
}

/// Sequences that tell nothing of a tree.
fn noise(taxa: usize, sites: usize) -> String {
    let mut state = 7_u64;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        b"ACGT"[(state >> 62) as usize] as char
    };
    let rows = (0..taxa).map(|taxon| format!("t{taxon} {}\n", (0..sites).map(|_| letter()).collect::<String>()));
    format!("{taxa} {sites}\n{}", rows.collect::<String>())
}

/// Searches are made until two found the best tree: five where that is easy, more where it is not, the same whoever executes
/// them, and wherever they were interrupted; a note where the best was found once.
#[test]
fn searches_go_on_until_the_best_is_found_twice() {
    let folder = folder(&[("easy.phy", &evolved(8, 300)), ("noise.phy", &noise(24, 40))]);
    let out = |name: &str| path(folder.path(), name);
    let ends = |name: &str, word: &str| std::fs::read_to_string(out(&format!("{name}.{word}"))).unwrap();
    let easy = phylo(&[&out("easy.phy"), "-m", "JC"]).unwrap();
    assert_eq!(easy.searches.len(), 5);
    assert!(ends("easy.phy", "log").contains("of 5 searches found the best tree: enough"));

    let typed = |most: &str, prefix: &str, more: &[&str]| {
        let (alignment, prefix) = (out("noise.phy"), out(prefix));
        args(&[&[&*alignment, "-m", "JC", "--fast", "-s", most, "--prefix", &prefix], more].concat())
    };
    let whole = |most: &str, prefix: &str, workers| {
        let prepared = prepare(&typed(most, prefix, &[])).unwrap();
        run(&prepared, &scheduler(workers, Policy::Edtlp), Arc::new(Abort::new()), &Silent).unwrap().searches
    };
    let best_twice = |searches: &[f64]| {
        let best = searches.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        searches.iter().filter(|one| **one >= best - 0.1).count() >= 2
    };
    let all = whole("20", "all", 2);
    // The first number that is looked at, of 5, 10 and 12.
    let expected = [5, 10].into_iter().find(|count| best_twice(&all[..*count])).unwrap_or(12);
    assert!(expected > 5, "no other data would be needed: {all:?}");
    assert_eq!(whole("auto{12}", "one", 1), all[..expected]);
    assert_eq!(whole("auto{12}", "three", 3), all[..expected]);
    assert_eq!(ends("one", "mlTrees"), ends("three", "mlTrees"));
    let once = whole("auto{3}", "few", 2);
    assert_eq!(once, all[..3]);
    assert_eq!(ends("few", "log").contains("note: one of 3 searches found the best tree"), !best_twice(&once));

    for attempt in 0..50 {
        let prepared = prepare(&typed("auto{12}", "cut", if attempt == 0 { &[] } else { &["--resume"] })).unwrap();
        let abort = Arc::new(Abort::new());
        let watcher = Interrupting::after(40, &abort);
        match run(&prepared, &scheduler(2, Policy::Edtlp), abort, &watcher) {
            Err(error) => assert_eq!(error, Error::Interrupted),
            Ok(report) => {
                assert!(attempt > 0, "the run was never interrupted");
                assert_eq!(report.searches, all[..expected]);
                break;
            }
        }
    }
    assert_eq!(ends("cut", "mlTrees"), ends("one", "mlTrees"));
}

/// Gzipped files, names with more behind them, three taxa.
#[test]
fn what_others_read_is_read() {
    let folder = folder(&[]);
    let file = path(folder.path(), "a.fas.gz");
    let text = ">a Homo sapiens\nACGTACGTAC\n>b Pan\nACGTACGTAA\n>c Gorilla\nACGAACG.TC\n";
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, text.as_bytes()).unwrap();
    std::fs::write(&file, packed.finish().unwrap()).unwrap();
    let prefix = path(folder.path(), "out");
    let typed = [&*file, "--prefix", &prefix, "-s", "1", "-b", "2", "-m", "JC"];
    let prepared = prepare(&args(&typed)).unwrap();
    assert_eq!(prepared.names, ["a", "b", "c"]);
    let notes = prepared.notes.join("\n");
    assert!(notes.contains("\"a Homo sapiens\" is a") && notes.contains("1 '.' in the sequences"), "{notes}");
    let report = phylo(&typed).unwrap();
    assert_eq!((report.topologies, report.replicates), (1, 2));
}

/// Searches begin with what is asked for, and are others where that is; a tree of all taxa, copies among them, with nodes of
/// many branches and without lengths may be begun with.
#[test]
fn searches_begin_with_given_trees() {
    let folder = folder(&[
        ("a.phy", &evolved(8, 60)),
        ("start.nwk", "((t0,t1),t2,(t3,t4,t5,t6,t7));"),
        ("few.nwk", "(t0,t1,t2);"),
    ]);
    let at = |name: &str| path(folder.path(), name);
    let alignment = at("a.phy");
    let search = |start: &str, prefix: &str| {
        phylo(&[&alignment, "-m", "JC", "-s", "2", "--tree", start, "--prefix", &at(prefix)])
    };
    let found = [("parsimony", "p"), ("random", "r"), (&*at("start.nwk"), "g")].map(|(s, p)| search(s, p).unwrap());
    let best: Vec<f64> = found.iter().map(|report| report.log_likelihood.unwrap()).collect();
    assert!(best.iter().all(|value| (value - best[0]).abs() < 0.5), "{best:?}");
    // Both searches of one given tree begin with it, but go on by random moves of their own.
    let request = |start: &str| prepare(&args(&[&alignment, "--tree", start, "--force"])).unwrap().request;
    assert_ne!(request("parsimony"), request("random"));
    assert_ne!(request(&at("start.nwk")), request("parsimony"));
    for (start, expected) in
        [("few.nwk", "'t3' of the alignment is not in the tree"), ("none.nwk", "parsimony, random or a file")]
    {
        let error = search(&at(start), "x").unwrap_err();
        assert!(error.exit_status() == 2 && error.to_string().contains(expected), "{error}");
    }
}

/// A tree with nodes of many branches is evaluated as it is: branches of no length that resolve it change nothing.
#[test]
fn nodes_of_many_branches_are_evaluated() {
    let star = "(a:0.1,b:0.2,c:0.1,(d:0.1,e:0.2):0.1);";
    let folder = folder(&[("a.phy", SMALL), ("star.nwk", star)]);
    let (alignment, tree) = (path(folder.path(), "a.phy"), path(folder.path(), "star.nwk"));
    let typed = args(&[&alignment, "-m", "JC", "--evaluate", &tree, "--fixed"]);
    let prepared = prepare(&typed).unwrap();
    assert!(prepared.notes.iter().any(|note| note.contains("1 branches of no length")), "{:?}", prepared.notes);
    let report = run(&prepared, &scheduler(1, Policy::Edtlp), Arc::new(Abort::new()), &Silent).unwrap();
    let partition = &prepared.partitions[0];
    let plain = support::log_likelihood(&support::newick(star), &prepared.names, &partition.patterns, &partition.model);
    assert!((report.log_likelihood.unwrap() - plain).abs() < 1e-4, "{:?} {plain}", report.log_likelihood);
}

/// Trees and picture are rooted at the branch of the outgroup, where there is one; supports stay with their branches.
#[test]
fn an_outgroup_roots_what_is_written() {
    let folder = folder(&[("a.phy", &evolved(9, 300))]);
    let at = |name: &str| path(folder.path(), name);
    let (alignment, prefix) = (at("a.phy"), at("out"));
    let common = ["-m", "JC", "-s", "1", "-b", "3", "--force", "--prefix", &prefix];
    phylo(&[&[&*alignment], &common[..]].concat()).unwrap();
    let supports = |text: String| {
        let newick = multigrain_phylo::tree::Newick::parse(&text).unwrap();
        let mut labels: Vec<String> =
            newick.nodes.iter().filter(|n| !n.children.is_empty()).filter_map(|n| n.label.clone()).collect();
        labels.sort();
        (labels, newick.nodes[0].children.len())
    };
    let read = |word: &str| std::fs::read_to_string(format!("{prefix}.{word}")).unwrap();
    let (before, branches) = supports(read("support"));
    assert_eq!(branches, 3);
    assert!(read("svg").contains("rooted at the middle of the longest path"));
    for outgroup in ["t3", "t0,t8"] {
        phylo(&[&[&*alignment], &common[..], &["--outgroup", outgroup]].concat()).unwrap();
        let (after, branches) = supports(read("support"));
        assert_eq!((after, branches), (before.clone(), 2), "{outgroup}");
        assert!(read("svg").contains("rooted at the outgroup"));
        let evaluated =
            phylo(&[&alignment, "-m", "JC", "--evaluate", &format!("{prefix}.bestTree"), "--fixed"]).unwrap();
        let searched: f64 =
            read("log").split_once("Final LogLikelihood: ").unwrap().1.lines().next().unwrap().parse().unwrap();
        assert!((evaluated.log_likelihood.unwrap() - searched).abs() < 1e-3);
    }
    phylo(&[&[&*alignment], &common[..], &["--outgroup", "t1,t3,t0,t6"]].concat()).unwrap();
    let apart = read("log").contains("no branch of the best tree divides the outgroup");
    assert_eq!(apart, supports(read("support")).1 == 3);
    let error = phylo(&[&[&*alignment], &common[..], &["--outgroup", "tx"]].concat()).unwrap_err();
    assert!(error.exit_status() == 2 && error.to_string().contains("\"tx\""), "{error}");
}

/// What is written is read by the program itself: the best tree under the best model has the best log-likelihood.
#[test]
fn the_best_tree_evaluates_to_its_log_likelihood() {
    let partitions = "HKY+F+G4, first = 1-120\\3, 2-120\\3\nJC+I, second = 3-120\\3\n";
    let folder = folder(&[("a.phy", &evolved(8, 120)), ("p", partitions)]);
    let (alignment, part, prefix) =
        (path(folder.path(), "a.phy"), path(folder.path(), "p"), path(folder.path(), "out"));
    let report = phylo(&[&alignment, "-q", &part, "--prefix", &prefix, "-s", "1"]).unwrap();
    let (tree, model) = (path(folder.path(), "out.bestTree"), path(folder.path(), "out.bestModel"));
    let again = phylo(&[&alignment, "-q", &model, "--evaluate", &tree, "--fixed"]).unwrap();
    let (found, again) = (report.log_likelihood.unwrap(), again.log_likelihood.unwrap());
    assert!((found - again).abs() < 1e-8, "{found} {again}");
    // Fitting anew gains next to nothing; lengths of their own gain something.
    let fitted = phylo(&[&alignment, "-q", &part, "--evaluate", &tree, "--prefix", &format!("{prefix}2")]).unwrap();
    assert!((fitted.log_likelihood.unwrap() - found).abs() < 0.05);
    let free = |branches: &str, prefix: &str| {
        let typed = [&*alignment, "-q", &part, "--branches", branches, "--evaluate", &tree, "--prefix", prefix];
        phylo(&typed).unwrap().log_likelihood.unwrap()
    };
    let [linked, scaled, unlinked] =
        ["linked", "scaled", "unlinked"].map(|branches| free(branches, &format!("{prefix}-{branches}")));
    assert!(scaled > linked - 1e-6 && unlinked > scaled - 1e-6, "{unlinked} {scaled} {linked}");
    assert!((scaled - found).abs() < 0.05, "speeds are fitted unless something else is asked for: {scaled} {found}");
    // Speeds are written with the models, have mean 1 over the sites, and give the same value again.
    let (tree, model) = (format!("{prefix}-scaled.bestTree"), format!("{prefix}-scaled.bestModel"));
    let text = std::fs::read_to_string(&model).unwrap();
    let speeds: Vec<f64> = text
        .lines()
        .map(|line| line.split_once("+B{").unwrap().1.split_once('}').unwrap().0.parse().unwrap())
        .collect();
    assert!((speeds[0] * 80.0 + speeds[1] * 40.0 - 120.0).abs() < 1e-3, "{speeds:?}");
    let again = phylo(&[&alignment, "-q", &model, "--evaluate", &tree, "--fixed"]).unwrap().log_likelihood.unwrap();
    assert!((scaled - again).abs() < 1e-8, "{scaled} {again}");
}

/// The parameters at which RAxML 8.2.12 (-f e -m GTRGAMMA, joint branch lengths) ends for the beetles, as it prints them.
const RAXML_BEETLES: &str = "\
GTR{1.078814/210.693935/0.980137/0.380619/18.845285/1}+FU{0.284139/0.136982/0.257042/0.321837}+G4{0.066878}, a = 3-752\\3
GTR{0.0001/7.385997/0.06658/573.906742/0.0001/1}+FU{0.188198/0.241705/0.144701/0.425396}+G4{0.037128}, b = 1-752\\3
GTR{1.176929/10.595072/0.400011/0.079721/9.169013/1}+FU{0.429990/0.078141/0.031598/0.460271}+G4{0.655287}, c = 2-752\\3
GTR{19.098753/0.0001/0.0001/0.0001/10958.310263/1}+FU{0.271611/0.294160/0.320716/0.113513}+G4{0.070417}, d = 755-1062\\3
GTR{15.621583/0.0001/0.0001/20080.195485/0.0001/1}+FU{0.287921/0.260066/0.211446/0.240567}+G4{0.02}, e = 753-1062\\3
GTR{0.979425/6.524202/2.187831/0.614795/2.935704/1}+FU{0.088804/0.475591/0.292751/0.142854}+G4{0.431653}, f = 754-1062\\3
GTR{0.225183/13.68242/10.641205/0.0001/2.697952/1}+FU{0.381668/0.088214/0.140133/0.389985}+G4{0.158669}, g = 1063-1510
GTR{0.598446/300.15738/0.546632/1.013972/2.274429/1}+FU{0.264446/0.258338/0.264625/0.212591}+G4{0.050805}, h = 1511-2111
";

/// Real partitions with linked branch lengths on RAxML's tree. At RAxML's parameters, with lengths fitted, the log-likelihood
/// is RAxML's, -13522.404134, up to the digits it prints: both mean the same by linked lengths and partitions. But
/// RAxML's parameters are a local optimum: the fit is better by more than 50, and the plain reference gives the same
/// log-likelihood for the lengths and parameters that were written.
#[test]
fn partitions_of_beetles() {
    let Some(data) = support::data() else { return };
    let folder = folder(&[]);
    let (alignment, part, prefix) =
        (path(&data, "bergsten38.phy"), path(&data, "bergsten38.part"), path(folder.path(), "out"));
    let tree = path(&data, "ref/bergsten38.raxml.nwk");
    let linked = ["--branches", "linked", "--evaluate", &tree, "--prefix"];
    let typed = [&[&*alignment, "-q", &part, "-m", "GTR+F+G4"], &linked[..], &[&*prefix]].concat();
    let found = phylo(&typed).unwrap().log_likelihood.unwrap();
    assert!(found > -13522.404134 + 50.0, "{found}");

    let (theirs, prefix) = (path(folder.path(), "raxml.part"), format!("{prefix}-raxml"));
    std::fs::write(&theirs, RAXML_BEETLES).unwrap();
    let at_theirs = phylo(&[&[&*alignment, "-q", &theirs], &linked[..], &[&*prefix]].concat()).unwrap();
    let at_theirs = at_theirs.log_likelihood.unwrap();
    assert!((at_theirs + 13522.404134).abs() < 1e-3, "{at_theirs}");

    let (a, source) = read_alignment(Path::new(&alignment), Format::Auto, u64::MAX).unwrap();
    let schemes = read_schemes(
        &folder.path().join("out.bestModel"),
        a.sites(),
        Unnamed { model: None, data_type: DataType::Dna },
    )
    .unwrap();
    let tree = support::newick(&std::fs::read_to_string(folder.path().join("out.bestTree")).unwrap());
    let plain = schemes.iter().map(|scheme| {
        let partition = scheme.partition(&a, &source).unwrap();
        support::log_likelihood(&tree, &a.names, &partition.patterns, &partition.model)
    });
    let plain: f64 = plain.sum();
    assert!((found - plain).abs() < 1e-6, "{found} {plain}");
}

/// Memory is stated before a run, fewer jobs are in progress where it is short, and what has no room is refused.
#[test]
fn memory_bounds_what_is_in_progress() {
    use multigrain_phylo::app::Needs;
    let folder = folder(&[("a.phy", &evolved(21, 200))]);
    let alignment = path(folder.path(), "a.phy");
    let typed = ["--threads", "2", "-b", "4"];
    let with = |memory: u64| {
        let memory = memory.to_string();
        let args = args(&[&[&*alignment, "--memory", &memory], &typed[..]].concat());
        let mut prepared = prepare(&args).unwrap();
        let scheduler = args.scheduler(&mut prepared)?;
        Ok::<_, Error>((scheduler.options().strands_max, prepared.vectors, Needs::of(&prepared)))
    };
    let (most, vectors, needs) = with(1 << 40).unwrap();
    assert!(most > Some(1) && vectors == 18, "{most:?} {vectors}");
    let at = |memory: u64| with(memory).map(|(jobs, vectors, _)| (jobs, vectors)).unwrap();
    assert_eq!(at(needs.bytes(1, 2)), (Some(1), 18));
    assert_eq!(at(needs.bytes(1, 2) - 1), (Some(1), 17));
    assert_eq!(at(needs.least_bytes(2)), (Some(1), 14));
    let refused = with(needs.least_bytes(2) - 1).unwrap_err();
    assert!(refused.exit_status() == 2 && refused.to_string().contains("--memory"), "{refused}");
}

/// An evaluation, which reads each vector once for every model that it tries, has the fewest, however much room there is; not so
/// where it would lose those of other partitions, or looks at the tree from all branches.
#[test]
fn evaluations_have_few_vectors() {
    use multigrain_phylo::app::Needs;
    let letters = evolved(31, 120);
    let folder = folder(&[("a.phy", &letters), ("p.txt", "HKY, x = 1-60\nJC, y = 61-120\n")]);
    let [alignment, partitions, tree] = ["a.phy", "p.txt", "t.nwk"].map(|name| path(folder.path(), name));
    let (read, _) = read_alignment(Path::new(&alignment), Format::Auto, u64::MAX).unwrap();
    std::fs::write(&tree, format!("({});", read.names.join(","))).unwrap();
    let vectors = |more: &[&str]| {
        let args = args(&[&[&*alignment, "--threads", "1", "--memory", "1099511627776"], more].concat());
        let mut prepared = prepare(&args).unwrap();
        let scheduler = args.scheduler(&mut prepared).unwrap();
        let needs = Needs::of(&prepared);
        assert_eq!((prepared.vectors, scheduler.options().strands_max.is_some()), (needs.vectors, true));
        (needs.vectors, needs.bytes(1, 1))
    };
    let (all, searched) = vectors(&[]);
    let (few, evaluated) = vectors(&["--evaluate", &tree]);
    assert!((all, few) == (28, 14) && evaluated < searched, "{all} {few} {evaluated} {searched}");
    assert_eq!(vectors(&["--evaluate", &tree, "--alrt", "100"]).0, 29);
    assert_eq!(vectors(&["--evaluate", &tree, "--partitions", &partitions]).0, 29);
}

/// Where a model is chosen, memory is stated for the candidate that takes most.
#[test]
fn candidates_are_counted_in_the_memory() {
    use multigrain_phylo::app::Needs;
    let folder = folder(&[("a.phy", &evolved(21, 200))]);
    let alignment = path(folder.path(), "a.phy");
    let needs = |model: &str| Needs::of(&prepare(&args(&[&alignment, "--model", model])).unwrap());
    let [chosen, widest, usual] = ["auto", "GTR+F+R10", "GTR+F+G4"].map(needs);
    assert_eq!((chosen.vector, chosen.thread), (widest.vector, widest.thread));
    let [chosen_job, usual_job] = [chosen, usual].map(|needs| needs.stages[0].job);
    assert!(chosen_job > 2 * usual_job && chosen.vectors == usual.vectors, "{chosen:?} {usual:?}");
}

/// With room for the fewest vectors everything that is written is what it is with room for all, but for what the log says.
#[test]
fn little_memory_changes_no_result() {
    use multigrain_phylo::app::Needs;
    let folder = folder(&[("a.phy", &evolved(31, 120)), ("p.txt", "HKY+G4, x = 1-60\nJC+G4, y = 61-120\n")]);
    let [alignment, partitions] = ["a.phy", "p.txt"].map(|name| path(folder.path(), name));
    for branches in ["scaled", "unlinked"] {
        let make = |memory: Option<u64>| {
            let (prefix, memory) = (path(folder.path(), "out"), memory.unwrap_or(1 << 40).to_string());
            let typed =
                [&alignment, "--partitions", &partitions, "--branches", branches, "--prefix", &prefix, "--force"];
            let more = ["-s", "1", "-b", "1", "--threads", "1", "--ufboot", "10", "--alrt", "10", "--memory", &memory];
            let args = args(&[&typed[..], &more].concat());
            let mut prepared = prepare(&args).unwrap();
            let scheduler = args.scheduler(&mut prepared).unwrap();
            run(&prepared, &scheduler, Arc::new(Abort::new()), &Silent).unwrap();
            (written(folder.path()), prepared.vectors, Needs::of(&prepared))
        };
        let (all, room, needs) = make(None);
        let (fewest, less, _) = make(Some(needs.least_bytes(1)));
        assert_eq!((room, less), (28, 14));
        assert!(all.len() > 8 && all == fewest, "{branches}");
        let log = std::fs::read_to_string(folder.path().join("out.log")).unwrap();
        assert!(log.contains("room for 14 of 28 vectors"), "{log}");
    }
}
