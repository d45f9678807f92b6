//! Fitting to given trees of real alignments in partitions, against what others reach there.

use crate::support;

use multigrain_phylo::app::BranchesChoice;
use support::program::{path, phylo};

/// Alignment, its partitions, and the higher of the log-likelihoods of IQ-TREE 2.0.7 (`-te TREE -m GTR+F+G4` with `-q`, `-p`
/// or `-Q`) and RAxML 8.2.12 (`-f e -m GTRGAMMA -e 0.001 -q`, with `-M` where lengths are unlinked), for linked, scaled and
/// unlinked lengths on RAxML's best tree of the alignment.
const REFERENCES: [(&str, &str, [f64; 3]); 3] = [
    ("primates12", "codons", [-5671.423, -5638.536, -5608.543]),
    ("syno42", "codons", [-4775.556, -4663.582, -4594.583]),
    ("bergsten38", "bergsten38.part", [-13512.320, -13021.537, -12671.719]),
];

#[test]
fn no_given_tree_ends_below_the_best_of_others() {
    let Some(data) = support::data() else { return };
    let folder = tempfile::tempdir().unwrap();
    let codons: String = (1..=3).map(|i| format!("DNA, c{i} = {i}-.\\3\n")).collect();
    std::fs::write(folder.path().join("codons"), codons).unwrap();
    for (name, parts, references) in REFERENCES {
        let alignment = path(&data, &format!("{name}.phy"));
        let tree = path(&data, &format!("ref/{name}.raxml.nwk"));
        let parts = path(if parts == "codons" { folder.path() } else { &data }, parts);
        let prefix = path(folder.path(), name);
        let choices = [BranchesChoice::Linked, BranchesChoice::Scaled, BranchesChoice::Unlinked];
        for (choice, reference) in choices.into_iter().zip(references) {
            let choice = format!("{choice:?}").to_lowercase();
            let typed =
                [&*alignment, "-q", &parts, "--evaluate", &tree, "--branches", &choice, "--prefix", &prefix, "--force"];
            let found = phylo(&typed).unwrap().log_likelihood.unwrap();
            println!("{name}, {choice}: {found}, others {reference}");
            assert!(found > reference - 0.1, "{name}, {choice}: {found}, others {reference}");
        }
    }
}
