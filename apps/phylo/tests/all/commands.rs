//! The front door of the program for trees: what it prints, what it leaves behind, what it refuses.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A directory of its own, in which the program runs.
struct Place(tempfile::TempDir);

/// What it left.
struct Ran {
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Ran {
    fn json(&self) -> Value {
        assert_eq!(self.status, Some(0), "{}", self.stderr);
        serde_json::from_str(&self.stdout).unwrap()
    }
}

impl Place {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn run(&self, arguments: &str) -> Ran {
        let mut program = Command::new(env!("CARGO_BIN_EXE_multigrain-phylo"));
        program.args(arguments.split_whitespace()).current_dir(self.0.path()).stdin(Stdio::null());
        let output = program.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let ran = Ran { status: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) };
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        ran
    }
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

const ALIGNMENT: &str = "5 24\n\
    ape ACGTACGTACGTACGTTTGACCAA\n\
    bat ACGTACGTACGAACGTTTGACCAA\n\
    cat ACGAACGTTCGAACGATTGACGAA\n\
    dog AGGAACGTTCGAACGATTCACGAA\n\
    elk AGGAACCTTCGCACGATTCACGAT\n";
const TREE: &str = "((ape:0.1,bat:0.1):0.05,cat:0.1,(dog:0.1,elk:0.2):0.1);";

fn place() -> Place {
    let place = Place(tempfile::tempdir().unwrap());
    place.write("a.phy", ALIGNMENT);
    place.write("a.nwk", TREE);
    place
}

#[test]
fn a_search_leaves_its_files_and_prints_its_object() {
    let place = place();
    let json = place.run("a.phy --model HKY+F+G4 --searches 2 --bootstraps 3 --threads 2 --json").json();
    let mut expected = vec![
        "app",
        "log_likelihood",
        "taxa",
        "distinct_taxa",
        "sites",
        "patterns",
        "models",
        "free_parameters",
        "searches",
        "topologies",
        "replicates",
        "resumed",
        "tree",
        "seed",
        "threads",
        "policy",
        "files",
        "seconds",
        "aic",
        "aicc",
        "bic",
    ];
    expected.sort_unstable();
    assert_eq!(keys(&json), expected);
    assert!(json["log_likelihood"].as_f64().unwrap() < 0.0);
    assert_eq!(json["searches"].as_array().unwrap().len(), 2);
    let mut names: Vec<String> =
        ["bestTree", "bestModel", "mlTrees", "support", "supportTBE", "bootstraps", "consensus", "svg", "log"]
            .map(|word| format!("a.phy.{word}"))
            .to_vec();
    names.extend(["a.phy".into(), "a.nwk".into()]);
    names.sort();
    assert_eq!(place.names(), names);

    // What the run is made from is never overwritten, nor is a result by the trace.
    let before = std::fs::read(place.path("a.phy")).unwrap();
    for (taken, why) in [("./a.phy", "input"), ("a.phy.bestTree", "result"), ("a.phy.checkpoint", "result")] {
        let refused = place.run(&format!("a.phy --searches 1 --trace {taken} --force"));
        assert!(refused.status == Some(2) && refused.stderr.contains(why), "{}", refused.stderr);
    }
    std::fs::rename(place.path("a.phy"), place.path("b.log")).unwrap();
    let refused = place.run("b.log --searches 1 --prefix b --force");
    assert!(refused.status == Some(2) && refused.stderr.contains("b.log is an input"), "{}", refused.stderr);
    std::fs::rename(place.path("b.log"), place.path("a.phy")).unwrap();
    assert_eq!(std::fs::read(place.path("a.phy")).unwrap(), before);
    assert_eq!(place.names(), names);

    // Nothing is overwritten unasked.
    let again = place.run("a.phy --model HKY+F+G4 --searches 1");
    assert_eq!(again.status, Some(2));
    assert!(again.stderr.contains("--force"), "{}", again.stderr);
    assert_eq!(
        place.run("a.phy --model HKY+F+G4 --searches 1 --force --json").json()["searches"][0],
        json["searches"][0]
    );
}

#[test]
fn an_evaluation_of_a_fixed_tree_writes_nothing() {
    let place = place();
    let fixed = "a.phy --model JC --evaluate a.nwk --fixed";
    let json = place.run(&format!("{fixed} --json")).json();
    assert_eq!(json["free_parameters"], 0);
    assert_eq!(place.names(), ["a.nwk", "a.phy"]);
    let text = place.run(fixed);
    let value = format!("{:.4}", json["log_likelihood"].as_f64().unwrap());
    assert!(text.status == Some(0) && text.stdout.contains(&value), "{}", text.stdout);
}

#[test]
fn wrong_requests_end_with_two_and_one_line() {
    let place = place();
    place.write("b.phy", ALIGNMENT.replace("AGGAACC", "AGGA!CC"));
    for (typed, expected) in [
        ("missing.phy", "missing.phy"),
        ("b.phy", "b.phy:6:9"),
        ("a.phy --policy fastest", "marginal"),
        ("a.phy --policy llp:9 --threads 2", "llp:9"),
        ("a.phy --dispatch fifo", "queue or mailbox"),
        ("a.phy --threads 0", "workers"),
        ("a.phy --model GTR+X", "+X"),
        ("a.phy --fixed", "--evaluate"),
        ("a.phy --resume --force", "--resume"),
    ] {
        let ran = place.run(typed);
        assert_eq!(ran.status, Some(2), "{typed}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected) && ran.stdout.is_empty(), "{typed}: {}", ran.stderr);
    }
    assert_eq!(place.names(), ["a.nwk", "a.phy", "b.phy"]);
}

/// A job script may say `--resume` always: before anything was done, and after all was.
#[test]
fn a_run_that_is_resumed_begins_where_nothing_is_and_ends_where_all_is_done() {
    let place = place();
    let typed = "a.phy --model JC --searches 1 --resume";
    let first = place.run(typed);
    assert!(first.status == Some(0) && first.stdout.contains("Final LogLikelihood"), "{}", first.stderr);
    let before = std::fs::read(place.path("a.phy.bestTree")).unwrap();
    let again = place.run(typed);
    assert!(again.status == Some(0) && again.stdout.contains("finished"), "{} {}", again.stdout, again.stderr);
    assert_eq!(std::fs::read(place.path("a.phy.bestTree")).unwrap(), before);
    let other = place.run("a.phy --model K80 --searches 1 --resume");
    assert!(other.status == Some(2) && other.stderr.contains("--force"), "{}", other.stderr);
}
