//! Constraints of topology: every tree of a run agrees with them, as IQ-TREE's do, and what cannot be one is refused.

use crate::support;

use multigrain::Abort;
use multigrain_phylo::Error;
use multigrain_phylo::alignment::{Alignment, DataType, Patterns};
use multigrain_phylo::app::prepare;
use multigrain_phylo::copies::only;
use multigrain_phylo::random::{Purpose, Random};
use multigrain_phylo::search::Signal;
use multigrain_phylo::tree::Newick;
use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;
use support::program::{Interrupting, args, evolved, folder, path, phylo, scheduler};

/// Sequences of taxa t0, t1, ... that say nothing.
fn noise(taxa: usize, sites: usize) -> Alignment {
    let mut random = Random::new(3, Purpose::Search, 0);
    let mut row = || (0..sites).map(|_| b"ACGT"[random.below(4) as usize]).collect();
    Alignment { names: (0..taxa).map(|t| format!("t{t}")).collect(), rows: (0..taxa).map(|_| row()).collect() }
}

fn phylip(alignment: &Alignment) -> String {
    let rows = alignment.names.iter().zip(&alignment.rows);
    let lines = rows.map(|(name, row)| format!("{name} {}\n", std::str::from_utf8(row).unwrap()));
    format!("{} {}\n{}", alignment.taxa(), alignment.sites(), lines.collect::<String>())
}

/// Random nested groups of some taxa, which the data know nothing of.
fn groups(taxa: &[usize], random: &mut Random) -> String {
    if let [taxon] = taxa {
        return format!("t{taxon}");
    }
    let count = (2 + random.below(3) as usize).min(taxa.len());
    let parts: Vec<String> =
        (0..count).map(|i| groups(&taxa[i * taxa.len() / count..(i + 1) * taxa.len() / count], random)).collect();
    format!("({})", parts.join(","))
}

fn random_constraint(taxa: usize, lacking: usize, number: u64) -> String {
    let mut random = Random::new(number, Purpose::Halves, 0);
    let mut order: Vec<usize> = (0..taxa).collect();
    random.shuffle(&mut order);
    groups(&order[lacking..], &mut random) + ";"
}

/// The splits of a tree, each as the names on the side without the first of these names.
fn splits(newick: &Newick, names: &BTreeSet<String>) -> BTreeSet<BTreeSet<String>> {
    let below = |node: usize| {
        let mut found = BTreeSet::new();
        let mut todo = vec![node];
        while let Some(i) = todo.pop() {
            let node = &newick.nodes[i];
            found.extend(node.label.clone().filter(|_| node.children.is_empty()));
            todo.extend(&node.children);
        }
        match found.contains(names.first().unwrap()) {
            true => names.difference(&found).cloned().collect(),
            false => found,
        }
    };
    let sets = (1..newick.nodes.len()).map(below);
    sets.filter(|set: &BTreeSet<String>| (2..=names.len() - 2).contains(&set.len())).collect()
}

/// Asserts that all trees of some texts have all splits of a constraint; gives how many trees there were.
fn assert_displayed(constraint: &str, texts: &[String]) -> usize {
    let constraint = Newick::parse(constraint).unwrap();
    let tips = constraint.nodes.iter().filter(|node| node.children.is_empty());
    let names: BTreeSet<String> = tips.filter_map(|node| node.label.clone()).collect();
    let wanted = splits(&constraint, &names);
    let mut trees = 0;
    for newick in texts.iter().flat_map(|text| Newick::parse_all(text).unwrap()) {
        let own = only(&newick, &|name| names.contains(name));
        assert!(splits(&own, &names).is_superset(&wanted), "{} lacks a split of the constraint", newick.to_text());
        trees += 1;
    }
    trees
}

/// Whatever a run makes agrees with the constraint: searches from trees of every kind, by every way of searching, replicates,
/// the ultrafast bootstrap; of data that say little, much, or something in between, with copies among the taxa.
#[test]
fn every_tree_agrees_with_a_constraint() {
    let small = folder(&[("a.phy", &evolved(13, 80))]);
    let alignment = path(small.path(), "a.phy");
    let run = |number: u64, more: &[&str]| {
        // Sometimes the copies t0 and t12 both have their place, and sometimes not.
        let constraint = random_constraint(13, 3 * (number as usize % 3), number);
        let (file, prefix) = (path(small.path(), "c.nwk"), path(small.path(), "out"));
        std::fs::write(&file, &constraint).unwrap();
        let typed = [&alignment, "-m", "HKY+F+G4", "-g", &file, "--prefix", &prefix, "--force"];
        let report = phylo(&[&typed[..], more].concat()).unwrap();
        let read = |word: &str| std::fs::read_to_string(format!("{prefix}.{word}")).ok();
        let texts: Vec<String> = ["bestTree", "mlTrees", "bootstraps", "ufboot"].into_iter().filter_map(read).collect();
        assert!(assert_displayed(&constraint, &texts) > report.replicates + report.searches.len());
        for word in ["bestTree", "mlTrees", "bootstraps", "ufboot"] {
            drop(std::fs::remove_file(format!("{prefix}.{word}")));
        }
    };
    for number in 0..6 {
        run(number, &["-s", "2", "-b", "2"]);
        run(number, &["-s", "1", "--tree", "random", "--ufboot", "30", "--bnni"]);
        run(number, &["--fast"]);
    }
}

#[test]
fn other_ways_of_searching_keep_to_it() {
    for (taxa, sites, signal) in [(100, 60, Signal::Weak), (8, 2000, Signal::Abundant)] {
        let data = noise(taxa, sites);
        assert_eq!(Signal::of(&[&Patterns::new(&data, 0..sites, DataType::Dna)]), signal);
        let constraint = random_constraint(taxa, taxa / 4, 5);
        let folder = folder(&[("a.phy", &phylip(&data)), ("c.nwk", &constraint)]);
        let at = |name: &str| path(folder.path(), name);
        phylo(&[&at("a.phy"), "-m", "HKY", "-s", "2", "-g", &at("c.nwk"), "--prefix", &at("out")]).unwrap();
        let texts = ["out.bestTree", "out.mlTrees"].map(|name| std::fs::read_to_string(at(name)).unwrap());
        assert_eq!(assert_displayed(&constraint, &texts), 3);
    }
}

#[test]
fn wrong_constraints_are_refused_and_belong_to_a_checkpoint() {
    let folder = folder(&[
        ("a.phy", &evolved(9, 200)),
        ("c.nwk", "((t0,t1),(t2,t3,t4));"),
        ("same.nwk", "((t1:1,t0:2)9:1,t3:1,(t2,t4));"),
        ("other.nwk", "((t0,t2),(t1,t3,t4));"),
        ("unknown.nwk", "((t0,tx),t1,t2);"),
        ("twice.nwk", "((t0,t1),t1,t2);"),
        ("few.nwk", "((t0,t1),t2);"),
        ("two.nwk", "((t0,t1),t2,t3);((t0,t1),t2,t3);"),
        ("start.nwk", "(t2,t0,(t1,(t3,(t4,(t5,(t6,(t7,t8)))))));"),
        ("fitting.nwk", "(t1,t0,(t2,(t3,(t4,(t5,(t6,(t7,t8)))))));"),
    ]);
    let at = |name: &str| path(folder.path(), name);
    let (alignment, prefix) = (at("a.phy"), at("out"));
    let typed = |constraint: &str, more: &[&str]| {
        let common = [&*alignment, "-m", "JC", "-s", "3", "--prefix", &prefix, "-g"];
        args(&[&common[..], &[&*at(constraint)], more].concat())
    };
    for (constraint, start, expected) in [
        ("unknown.nwk", "parsimony", "column 6: taxon 'tx' is not in the alignment"),
        ("twice.nwk", "parsimony", "column 10: taxon 't1' is in the tree twice"),
        ("few.nwk", "parsimony", "of 3 taxa"),
        ("two.nwk", "parsimony", "one tree was expected"),
        ("none.nwk", "parsimony", "none.nwk"),
        ("c.nwk", "start.nwk", "tree 1 does not agree with --constraint: none of its branches divides t0, t1 from"),
    ] {
        let start = if start == "parsimony" { start.to_owned() } else { at(start) };
        let error = prepare(&typed(constraint, &["--tree", &start])).unwrap_err();
        let text = error.to_string();
        assert!(error.exit_status() == 2 && text.contains(expected) && text.lines().count() == 1, "{text}");
    }
    prepare(&typed("c.nwk", &["--tree", &at("fitting.nwk")])).unwrap();
    // An output may not replace it.
    let error = phylo(&[&alignment, "-g", &at("c.nwk"), "--prefix", &at("c.nwk"), "--trace", &at("c.nwk"), "--force"]);
    assert!(error.unwrap_err().to_string().contains("is an input of the run"));

    let abort = Arc::new(Abort::new());
    let watcher = Interrupting::after(4, &abort);
    let prepared = prepare(&typed("c.nwk", &[])).unwrap();
    let interrupted =
        multigrain_phylo::app::run(&prepared, &scheduler(1, "edtlp".parse().unwrap()), abort.clone(), &watcher);
    assert_eq!(interrupted.unwrap_err(), Error::Interrupted);
    let refused = prepare(&typed("other.nwk", &["--resume"])).unwrap_err().to_string();
    assert!(refused.contains("constraint = given") && refused.contains("--force"), "{refused}");
    let bare = args(&[&alignment, "-m", "JC", "-s", "3", "--prefix", &prefix, "--resume"]);
    assert!(prepare(&bare).unwrap_err().to_string().contains("now constraint = none is asked for"));
    let more = prepare(&typed("same.nwk", &["--resume"])).unwrap_err().to_string();
    assert!(more.contains("constraint = given"), "it asks for one split more: {more}");
    std::fs::write(at("same.nwk"), "((t1:1,t0:2)9:1,t3:1,t2,t4);").unwrap();
    prepare(&typed("same.nwk", &["--resume"])).unwrap();
}

/// A constraint against what the data say: the best tree within it is as good as IQ-TREE's.
#[test]
fn the_best_within_a_constraint_is_no_worse_than_that_of_iq_tree() {
    let Some(data) = support::data() else { return };
    let constraint = "((Tarsius,H_sapiens),(Lemur,Chimp,Gibbon),(Macaca,M_sylvanus),Saimiri);";
    let folder = folder(&[("c.nwk", constraint)]);
    let (alignment, file, prefix) =
        (path(&data, "primates12.phy"), path(folder.path(), "c.nwk"), path(folder.path(), "x"));
    let ran = Command::new("iqtree2")
        .args(["-s", &alignment, "-m", "GTR+F+G4", "-g", &file, "-T", "1", "-seed", "1", "--prefix", &prefix])
        .output();
    let Ok(ran) = ran else {
        println!("skipped: iqtree2 is not installed");
        return;
    };
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    let theirs: f64 = said.split_once("BEST SCORE FOUND : ").unwrap().1.lines().next().unwrap().trim().parse().unwrap();
    let ours = path(folder.path(), "ours");
    let found = phylo(&[&alignment, "-g", &file, "--prefix", &ours]).unwrap().log_likelihood.unwrap();
    println!("{found}, IQ-TREE {theirs}");
    assert!(found > theirs - 0.1, "{found} {theirs}");
    let texts = ["ours.bestTree", "x.treefile"].map(|name| std::fs::read_to_string(path(folder.path(), name)).unwrap());
    assert_eq!(assert_displayed(constraint, &texts), 2);
}
