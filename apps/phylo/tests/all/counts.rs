//! Free parameters, which information criteria charge for: counted by hand, and by IQ-TREE where it is installed.

use crate::support;

use multigrain_phylo::alignment::{Alignment, DataType, Patterns};
use multigrain_phylo::generate::{evolve, random_tree};
use multigrain_phylo::model::ModelSpec;
use multigrain_phylo::random::{Purpose, Random};
use std::path::Path;
use std::process::{Command, Stdio};
use support::program::{folder, path, phylo};

/// Ten taxa of 400 sites; the last three have nothing but gaps in the sites from 201 on, the last is the last but one
/// again. And their tree.
fn files() -> (String, String) {
    let mut random = Random::new(11, Purpose::Start, 0);
    let tree = random_tree(10, &mut random);
    let any = Alignment { names: vec!["a".into()], rows: vec![b"ACGT".to_vec()] };
    let model = ModelSpec::parse("HKY{3}+FU{0.4/0.3/0.2/0.1}+G4{0.7}").unwrap().model(&Patterns::new(
        &any,
        0..4,
        DataType::Dna,
    ));
    let mut a = evolve(&tree, &model, DataType::Dna, 400, &mut random);
    a.rows[9] = a.rows[8].clone();
    a.rows[7..].iter_mut().for_each(|row| row[200..].fill(b'-'));
    let rows = a.names.iter().zip(&a.rows).map(|(n, row)| format!("{n} {}\n", std::str::from_utf8(row).unwrap()));
    let text = format!("10 400\n{}", rows.collect::<String>());
    (text, tree.to_newick(&a.names, 0, &|_| None).to_text())
}

/// What IQ-TREE counts for a tree, or `None` (said on the way) where it is not installed.
fn counted_by_iqtree(folder: &Path, options: &[&str]) -> Option<usize> {
    let typed = ["-s", "a.phy", "-te", "t.nwk", "--prefix", "iq", "-redo", "-T", "1", "--quiet"];
    let run = Command::new("iqtree2").args(typed).args(options).current_dir(folder).stdout(Stdio::null()).status();
    if run.is_err() {
        println!("skipped: there is no iqtree2");
        return None;
    }
    let text = std::fs::read_to_string(folder.join("iq.iqtree")).unwrap();
    let line =
        text.lines().find_map(|line| line.strip_prefix("Number of free parameters (#branches + #model parameters): "));
    Some(line.unwrap().trim().parse().unwrap())
}

#[test]
fn parameters_are_counted_as_others_count_them() {
    let (alignment, tree) = files();
    let parts = "DNA, first = 1-200\nDNA, second = 201-400\n";
    let folder = folder(&[("a.phy", &alignment), ("t.nwk", &tree), ("p", parts)]);
    let [a, t, p] = ["a.phy", "t.nwk", "p"].map(|name| path(folder.path(), name));
    // 2n - 3 = 17 branches of ten taxa, 11 of the seven that the second partition has. GTR has 5 exchangeabilities, HKY 1;
    // frequencies that are counted or fitted are 3; alpha and the share of invariant sites are 1 each.
    let whole: [(&str, usize); 6] = [
        ("JC", 17),
        ("K80+G4", 17 + 2),
        ("HKY+F+I", 17 + 1 + 3 + 1),
        ("GTR+F+G4", 17 + 5 + 3 + 1),
        ("GTR+FO+I+G4", 17 + 5 + 3 + 2),
        ("SYM+G4", 17 + 5 + 1),
    ];
    let mut number = 0;
    let mut count = |more: &[&str]| {
        number += 1;
        let prefix = path(folder.path(), &format!("out{number}"));
        let typed = [&[&*a, "--evaluate", &t, "--prefix", &prefix], more].concat();
        phylo(&typed).unwrap().free_parameters
    };
    for (model, expected) in whole {
        assert_eq!(count(&["-m", model]), expected, "{model}");
        if let Some(theirs) = counted_by_iqtree(folder.path(), &["-m", model]) {
            assert_eq!(expected, theirs, "{model}");
        }
    }
    // With speeds of two partitions one ratio is free.
    for (branches, option, expected) in
        [("linked", "-q", 17 + 2 * 9), ("scaled", "-p", 17 + 2 * 9 + 1), ("unlinked", "-Q", 17 + 11 + 2 * 9)]
    {
        assert_eq!(count(&["-m", "GTR+F+G4", "-q", &p, "--branches", branches]), expected, "{branches}");
        if let Some(theirs) = counted_by_iqtree(folder.path(), &["-m", "GTR+F+G4", option, "p"]) {
            assert_eq!(expected, theirs, "{branches}");
        }
    }
}
