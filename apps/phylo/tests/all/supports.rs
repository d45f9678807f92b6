//! Supports beside those of others: SH-aLRT and site likelihoods beside IQ-TREE's, autoMRE beside RAxML's. Where a peer is
//! not installed that is said, and its part skipped.

use crate::support;

use multigrain_phylo::convergence;
use multigrain_phylo::tree::{HalfEdge, Newick, Splits, Tree};
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use support::program::{args, evolved, folder, path, phylo};

/// What a peer says on standard output; `None` (said on the way) where it is not installed.
fn peer(name: &str, folder: &Path, arguments: &[&str]) -> Option<String> {
    match Command::new(name).args(arguments).current_dir(folder).output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) => {
            println!("skipped: {name}: {error}");
            None
        }
    }
}

/// The labels of the inner branches of a tree, by split.
fn labels(text: &str, names: &[String]) -> HashMap<Vec<u64>, f64> {
    let newick = Newick::parse(text.trim()).unwrap();
    let tree = Tree::from_newick(&newick, names, None).unwrap();
    let mut labelled = HashMap::new();
    // Newick gives no half-edges: the taxa below each labelled node are its split.
    let mut below: Vec<Vec<bool>> = vec![vec![false; names.len()]; newick.nodes.len()];
    for (i, node) in newick.nodes.iter().enumerate().rev() {
        match &node.label {
            Some(name) if node.children.is_empty() => below[i][names.iter().position(|n| n == name).unwrap()] = true,
            _ => {}
        }
        if let Some(parent) = node.parent {
            let own = below[i].clone();
            below[parent].iter_mut().zip(own).for_each(|(all, one)| *all |= one);
        }
        if let (Some(label), false) = (&node.label, node.children.is_empty()) {
            let flip = below[i][0];
            let mut set = vec![0u64; names.len().div_ceil(64)];
            (0..names.len()).filter(|&t| below[i][t] != flip).for_each(|t| set[t / 64] |= 1 << (t % 64));
            labelled.insert(set, label.parse().unwrap());
        }
    }
    assert!(Splits::new(&tree).sets.iter().filter(|set| labelled.contains_key(*set)).count() + 1 >= tree.taxa() - 3);
    labelled
}

/// On the same tree, with parameters fitted by each: nearly the same supports, and nearly the same log-likelihood of each site.
#[test]
fn sh_alrt_and_site_likelihoods_are_those_of_iq_tree() {
    let folder = folder(&[("a.phy", &evolved(16, 250))]);
    let at = |name: &str| path(folder.path(), name);
    let (alignment, ours) = (at("a.phy"), at("ours"));
    let searched = at("searched");
    let found = phylo(&[&alignment, "-m", "GTR+F+G4", "-s", "1", "--prefix", &searched]).unwrap();
    let tree = format!("{searched}.bestTree");
    let typed =
        ["-m", "GTR+F+G4", "--evaluate", &tree, "--alrt", "1000", "--site-likelihoods", "--prefix", &ours, "--force"];
    phylo(&[&[&*alignment], &typed[..]].concat()).unwrap();
    let prepared = multigrain_phylo::app::prepare(&args(&[&alignment, "--force"])).unwrap();
    let mine = labels(&std::fs::read_to_string(format!("{ours}.supportSHaLRT")).unwrap(), &prepared.names);
    assert!(mine.values().any(|s| *s > 90.0) && mine.values().any(|s| *s < 60.0), "{mine:?}");
    let sites = |text: &str| {
        let line = text.lines().nth(1).unwrap();
        line.split_whitespace().skip(1).map(|x| x.parse().unwrap()).collect::<Vec<f64>>()
    };
    let my_sites = sites(&std::fs::read_to_string(format!("{ours}.siteLogLikelihoods")).unwrap());
    let sum: f64 = my_sites.iter().sum();
    assert!((sum - found.log_likelihood.unwrap()).abs() < 0.02, "{sum} {:?}", found.log_likelihood);

    let typed = [
        "-s",
        "a.phy",
        "-m",
        "GTR+F+G4",
        "-te",
        "searched.bestTree",
        "-alrt",
        "1000",
        "-wsl",
        "-T",
        "1",
        "-seed",
        "1",
        "-pre",
        "iq",
        "-keep-ident",
    ];
    if peer("iqtree2", folder.path(), &typed).is_none() {
        return;
    }
    let theirs = labels(&std::fs::read_to_string(at("iq.treefile")).unwrap(), &prepared.names);
    let pairs: Vec<(f64, f64)> =
        mine.iter().filter_map(|(set, own)| theirs.get(set).map(|other| (*own, *other))).collect();
    assert!(pairs.len() >= 12, "{pairs:?}");
    let mean = pairs.iter().map(|(a, b)| (a - b).abs()).sum::<f64>() / pairs.len() as f64;
    assert!(mean < 4.0, "{mean}: {pairs:?}");
    let their_sites = sites(&std::fs::read_to_string(at("iq.sitelh")).unwrap());
    assert_eq!(my_sites.len(), their_sites.len());
    let worst = my_sites.iter().zip(&their_sites).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(worst < 0.1, "{worst}");
}

/// The mean distance of halves, and whether they are enough, as RAxML finds them of the same trees.
#[test]
fn auto_mre_is_that_of_raxml() {
    let folder = folder(&[("a.phy", &evolved(14, 150))]);
    let at = |name: &str| path(folder.path(), name);
    let (alignment, prefix) = (at("a.phy"), at("out"));
    let report = phylo(&[&alignment, "-m", "JC", "-s", "1", "-b", "autoMRE{150}", "--prefix", &prefix]).unwrap();
    let text = std::fs::read_to_string(format!("{prefix}.bootstraps")).unwrap();
    assert_eq!(text.lines().count(), report.replicates);
    assert!([50, 100, 150].contains(&report.replicates));
    let log = std::fs::read_to_string(format!("{prefix}.log")).unwrap();
    assert_eq!(log.matches("autoMRE after").count(), report.replicates / 50, "{log}");
    let names = multigrain_phylo::app::prepare(&args(&[&alignment, "--force"])).unwrap().names;
    let trees: Vec<Splits> = Newick::parse_all(&text)
        .unwrap()
        .iter()
        .map(|newick| Splits::new(&Tree::from_newick(newick, &names, None).unwrap()))
        .collect();
    let verdicts: Vec<_> = (50..=trees.len()).step_by(50).map(|count| convergence::look(&trees[..count], 1)).collect();
    // It is gone on exactly until they are enough.
    let enough: Vec<bool> = verdicts.iter().map(|verdict| verdict.is_enough).collect();
    assert!(enough[..enough.len() - 1].iter().all(|enough| !enough), "{verdicts:?}");
    assert!(report.replicates == 150 || enough[enough.len() - 1]);
    let typed = ["-m", "GTRCAT", "-I", "autoMRE", "-z", "out.bootstraps", "-n", "r", "-p", "1"];
    let Some(said) = peer("raxmlHPC", folder.path(), &typed) else { return };
    let mut compared = 0;
    for (verdict, count) in verdicts.iter().zip((50..).step_by(50)) {
        let line = said.lines().find(|line| line.split_whitespace().next() == Some(&format!("{count}")));
        let Some(line) = line else { continue };
        let distance: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!((100.0 * verdict.distance - distance).abs() < 0.3, "{count}: {verdict:?}, not {distance}");
        compared += 1;
    }
    assert!(compared > 0, "{said}");
}

/// Copies of a sequence change nothing about the branches of the others; those that divide copies alone have no support.
#[test]
fn copies_take_no_part_in_tests() {
    let text = evolved(9, 200);
    let folder = folder(&[("a.phy", &text)]);
    let prefix = path(folder.path(), "out");
    let alignment = path(folder.path(), "a.phy");
    phylo(&[&alignment, "-m", "HKY+F+G4", "-s", "1", "--alrt", "200", "--prefix", &prefix]).unwrap();
    let text = std::fs::read_to_string(format!("{prefix}.supportSHaLRT")).unwrap();
    let names = multigrain_phylo::app::prepare(&args(&[&alignment, "--force"])).unwrap().names;
    let newick = Newick::parse(&text).unwrap();
    let tree = Tree::from_newick(&newick, &names, None).unwrap();
    // Nine taxa, the last a copy of the first: of six inner branches one divides the two from the rest.
    assert_eq!(Splits::new(&tree).sets.len(), 6);
    let labelled = newick.nodes.iter().filter(|n| !n.children.is_empty() && n.label.is_some()).count();
    assert_eq!(labelled, 5);
    let pair =
        |half: HalfEdge| tree.is_tip(tree.back(tree.others(half)[0])) && tree.is_tip(tree.back(tree.others(half)[1]));
    assert!(Splits::new(&tree).branches.iter().any(|&half| pair(half)));
}

/// A binary alignment of sites that vary, on the same tree: the log-likelihood is IQ-TREE's. Sites that need not vary are
/// refused.
#[test]
fn binary_data_that_varies_is_iq_trees() {
    let mut text = String::from("9 60\n");
    let dna = evolved(9, 400);
    let rows: Vec<&str> = dna.lines().skip(1).map(|line| line.split_once(' ').unwrap().1).collect();
    let bit = |row: &str, site: usize| if b"AG".contains(&row.as_bytes()[site]) { '0' } else { '1' };
    let varies = |site: &usize| rows.iter().any(|row| bit(row, *site) != bit(rows[0], *site));
    let sites: Vec<usize> = (0..400).filter(varies).take(60).collect();
    assert_eq!(sites.len(), 60);
    for (taxon, row) in rows.iter().enumerate() {
        text += &format!("t{taxon} {}\n", sites.iter().map(|&site| bit(row, site)).collect::<String>());
    }
    let constant = text.replace("9 60", "9 61").replace('\n', "0\n").replacen("9 610", "9 61", 1);
    let folder = folder(&[("a.phy", &text), ("c.phy", &constant)]);
    let at = |name: &str| path(folder.path(), name);
    let (alignment, prefix) = (at("a.phy"), at("ours"));
    let report = phylo(&[&alignment, "-m", "BIN+FO+G4+ASC", "-s", "1", "-b", "2", "--prefix", &prefix]).unwrap();
    let error = phylo(&[&at("c.phy"), "-m", "BIN+ASC"]).unwrap_err();
    assert!(error.exit_status() == 2 && error.to_string().contains("site 61"), "{error}");
    let typed = [
        "-s",
        "a.phy",
        "-st",
        "BIN",
        "-m",
        "GTR2+FO+G4+ASC",
        "-te",
        "ours.bestTree",
        "-T",
        "1",
        "-pre",
        "iq",
        "-keep-ident",
    ];
    if peer("iqtree2", folder.path(), &typed).is_none() {
        return;
    }
    let said = std::fs::read_to_string(at("iq.iqtree")).unwrap();
    let line = said.lines().find_map(|line| line.strip_prefix("Log-likelihood of the tree: ")).unwrap();
    let theirs: f64 = line.split_whitespace().next().unwrap().parse().unwrap();
    let ours = report.log_likelihood.unwrap();
    assert!(ours > theirs - 0.1 && ours < theirs + 1.0, "{ours}, not {theirs}");
}
