//! The ultrafast bootstrap: the same on any number of workers, supports beside IQ-TREE's, replicates that their own sites
//! prefer.

use crate::support;

use multigrain::Abort;
use multigrain::rooms::team::strands::Policy;
use multigrain_phylo::app::{prepare, run};
use multigrain_phylo::support::Replicates;
use multigrain_phylo::tree::{Newick, Splits, Tree};
use multigrain_phylo::ultrafast::correlation;
use std::collections::HashMap;
use std::process::Command;
use std::sync::Arc;
use support::program::{Silent, args, evolved, folder, path, phylo, scheduler};

fn trees(text: &str, names: &[String]) -> Vec<Tree> {
    let read = |newick: &Newick| Tree::from_newick(newick, names, None).unwrap();
    Newick::parse_all(text).unwrap().iter().map(read).collect()
}

/// How many of these trees have each split.
fn counts(text: &str, names: &[String]) -> HashMap<Vec<u64>, f64> {
    let mut counts = HashMap::new();
    for tree in trees(text, names) {
        Splits::new(&tree).sets.into_iter().for_each(|set| *counts.entry(set).or_insert(0.0) += 1.0);
    }
    counts
}

#[test]
fn workers_do_not_matter_and_files_belong_together() {
    let folder = folder(&[("a.phy", &evolved(13, 200))]);
    let at = |name: &str| path(folder.path(), name);
    let alignment = at("a.phy");
    let read = |prefix: &str, word: &str| std::fs::read_to_string(at(&format!("{prefix}.{word}"))).unwrap();
    for (corrected, workers) in [(false, 1), (false, 2), (true, 1), (true, 2)] {
        let prefix = at(&format!("out{corrected}{workers}"));
        let mut typed = vec![&*alignment, "-m", "HKY+F+G4", "-s", "2", "--ufboot", "60", "--prefix", &prefix];
        typed.extend(corrected.then_some("--bnni"));
        let prepared = prepare(&args(&typed)).unwrap();
        run(&prepared, &scheduler(workers, Policy::Marginal), Arc::new(Abort::new()), &Silent).unwrap();
    }
    let names = prepare(&args(&[&alignment, "--force"])).unwrap().names;
    for corrected in ["outfalse", "outtrue"] {
        for word in ["ufboot", "supportUFBoot", "consensusUFBoot", "bestTree"] {
            assert_eq!(
                read(&format!("{corrected}1"), word),
                read(&format!("{corrected}2"), word),
                "{corrected} {word}"
            );
        }
        let all = trees(&read(&format!("{corrected}1"), "ufboot"), &names);
        assert_eq!(all.len(), 60);
        let mut replicates = Replicates::default();
        all.iter().for_each(|tree| replicates.add(&Splits::new(tree)));
        let best = read(&format!("{corrected}1"), "supportUFBoot");
        let newick = Newick::parse(&best).unwrap();
        let mut labels: Vec<String> =
            newick.nodes.iter().filter(|n| !n.children.is_empty()).filter_map(|n| n.label.clone()).collect();
        let supports = replicates.supports(&Splits::new(&trees(&best, &names)[0]), names.len());
        let mut expected: Vec<String> =
            supports.iter().map(|s| format!("{}", (100.0 * s.felsenstein).round())).collect();
        labels.sort();
        expected.sort();
        assert_eq!(labels, expected);
    }
    assert_ne!(read("outfalse1", "ufboot"), read("outtrue1", "ufboot"));
    let error = prepare(&args(&[&alignment, "--ufboot", "10", "-s", "0", "--prefix", &at("none")])).unwrap_err();
    assert!(error.exit_status() == 2 && error.to_string().contains("--searches"), "{error}");
}

/// Chains do not go far: that others may be as good as the tree of the only search is told.
#[test]
fn one_search_is_told_to_be_few() {
    let folder = folder(&[("a.phy", &evolved(8, 100))]);
    let at = |name: &str| path(folder.path(), name);
    for (searches, is_told) in [("1", true), ("2", false)] {
        let (alignment, prefix) = (at("a.phy"), at(searches));
        phylo(&[&alignment, "-m", "JC", "-s", searches, "--ufboot", "20", "--prefix", &prefix]).unwrap();
        let log = std::fs::read_to_string(at(&format!("{searches}.log"))).unwrap();
        assert_eq!(log.contains("begins with the tree of one search"), is_told, "{log}");
    }
}

#[test]
fn supports_are_nearly_those_of_iq_tree() {
    let folder = folder(&[("a.phy", &evolved(24, 300))]);
    let at = |name: &str| path(folder.path(), name);
    let (alignment, prefix) = (at("a.phy"), at("ours"));
    phylo(&[&alignment, "-m", "HKY+F+G4", "-s", "2", "--ufboot", "1000", "--prefix", &prefix]).unwrap();
    let read = |name: &str| std::fs::read_to_string(at(name)).unwrap();
    let typed = ["-s", "a.phy", "-m", "HKY+F+G4", "-B", "1000", "-wbtl", "-T", "1", "-seed", "1", "-pre", "iq"];
    let typed = [&typed[..], &["-keep-ident"]].concat();
    if let Err(error) = Command::new("iqtree2").args(typed).current_dir(folder.path()).output() {
        return println!("skipped: iqtree2: {error}");
    }
    let names = prepare(&args(&[&alignment, "--force"])).unwrap().names;
    let (ours, theirs) = (counts(&read("ours.ufboot"), &names), counts(&read("iq.ufboot"), &names));
    let same = correlation(&ours, &theirs);
    assert!(same > 0.97, "{same}");
}
