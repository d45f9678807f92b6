//! Models that are chosen: those that data were made with, written down with all that were tried, and the same after an
//! interrupt.

use crate::support;

use multigrain::Abort;
use multigrain::rooms::team::strands::Policy;
use multigrain_phylo::alignment::{Alignment, Patterns};
use multigrain_phylo::app::{Progress, Watcher, prepare, run};
use multigrain_phylo::generate::{evolve, random_tree};
use multigrain_phylo::model::ModelSpec;
use multigrain_phylo::random::{Purpose, Random};
use std::sync::Arc;
use support::program::{Silent, args, folder, path, phylo, scheduler};

/// Sequences that evolved along a random tree under a model, as PHYLIP.
fn evolved(taxa: usize, sites: usize, model: &str, seed: u64) -> Vec<String> {
    let spec = ModelSpec::parse(model).unwrap();
    let letters = spec.data_type.letters().to_vec();
    let any = Alignment { names: vec!["a".into()], rows: vec![letters.clone()] };
    let model = spec.model(&Patterns::new(&any, 0..letters.len(), spec.data_type));
    let mut random = Random::new(seed, Purpose::Start, 0);
    let tree = random_tree(taxa, &mut Random::new(0, Purpose::Start, 0));
    let a = evolve(&tree, &model, spec.data_type, sites, &mut random);
    a.rows.into_iter().map(|row| String::from_utf8(row).unwrap()).collect()
}

fn phylip(parts: &[Vec<String>]) -> String {
    let sites: usize = parts.iter().map(|rows| rows[0].len()).sum();
    let row = |t: usize| format!("t{t} {}\n", parts.iter().map(|rows| rows[t].as_str()).collect::<String>());
    format!("{} {sites}\n{}", parts[0].len(), (0..parts[0].len()).map(row).collect::<String>())
}

/// The lines of the table: partition, model, log-likelihood, parameters, criterion, weight.
fn table(folder: &tempfile::TempDir) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(folder.path().join("out.models")).unwrap();
    text.lines().skip(1).map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

#[test]
fn each_partition_gets_the_model_that_it_was_made_with() {
    let parts = [
        evolved(8, 800, "JC", 1),
        evolved(8, 1500, "HKY{8}+FU{0.4/0.1/0.15/0.35}+G4{0.4}", 2),
        evolved(8, 300, "mtMAM", 3),
    ];
    let scheme = "DNA, first = 1-800\nDNA, second = 801-2300\nAA, third = 2301-2600\n";
    let folder = folder(&[("a.phy", &phylip(&parts)), ("p", scheme)]);
    let (alignment, scheme, prefix) =
        (path(folder.path(), "a.phy"), path(folder.path(), "p"), path(folder.path(), "out"));
    let typed = [&*alignment, "-q", &scheme, "--branches", "unlinked", "-m", "auto", "-s", "1", "--prefix", &prefix];
    let report = phylo(&typed).unwrap();
    let names: Vec<&str> = report.models.iter().map(|(_, model)| model.split(['{', '+']).next().unwrap()).collect();
    assert_eq!(names, ["JC", "HKY", "mtMAM"]);
    assert!(report.models[1].1.contains("+G4m{") && !report.models[0].1.contains("+G"), "{:?}", report.models);
    let table = table(&folder);
    for partition in ["first", "second", "third"] {
        let lines: Vec<&Vec<String>> = table.iter().filter(|line| line[0] == partition).collect();
        assert!(lines.len() > 20, "{partition}: {}", lines.len());
        let values: Vec<f64> = lines.iter().map(|line| line[4].parse().unwrap()).collect();
        assert!(values.is_sorted(), "{partition}");
        let weights: f64 = lines.iter().map(|line| line[5].parse::<f64>().unwrap()).sum();
        assert!((weights - 1.0).abs() < 0.01, "{partition}: {weights}");
        // A model that another one contains is never better.
        let of = |model: &str| lines.iter().find(|line| line[1] == model).map(|line| line[2].parse::<f64>().unwrap());
        for (less, more) in [("JC", "GTR+F"), ("HKY+F", "GTR+F"), ("HKY+F", "HKY+F+G4"), ("mtMAM", "mtMAM+G4")] {
            if let (Some(less), Some(more)) = (of(less), of(more)) {
                assert!(less < more + 0.05, "{partition}: {less} for {less}, {more} for {more}");
            }
        }
    }
}

#[test]
fn criteria_differ_and_a_choice_needs_something_to_fit() {
    let folder = folder(&[("a.phy", &phylip(&[evolved(8, 300, "HKY{4}+FE+G4{0.8}", 5)]))]);
    let (alignment, prefix) = (path(folder.path(), "a.phy"), path(folder.path(), "out"));
    let value = |criterion: &str| {
        let typed = ["-m", "auto", "--criterion", criterion, "-s", "1", "--prefix", &prefix, "--force"];
        phylo(&[&[&*alignment], &typed[..]].concat()).unwrap();
        let best = &table(&folder)[0];
        let (log_likelihood, k): (f64, f64) = (best[2].parse().unwrap(), best[3].parse().unwrap());
        let price = if criterion == "bic" { 300f64.ln() } else { 2.0 };
        let found: f64 = best[4].parse().unwrap();
        assert!((found - (k * price - 2.0 * log_likelihood)).abs() < 1e-3, "{criterion}: {best:?}");
        k
    };
    assert!(value("bic") <= value("aic"));
    let tree = path(folder.path(), "out.bestTree");
    let refused = phylo(&[&alignment, "-m", "auto", "--evaluate", &tree, "--fixed"]).unwrap_err();
    assert!(refused.to_string().contains("--model auto"), "{refused}");
}

/// Ends a run when its first search has begun.
struct Ending(Arc<Abort>);

impl Watcher for Ending {
    fn line(&self, _line: &str) {}
    fn progress(&self, progress: Progress) {
        if progress.round.is_some() {
            self.0.raise();
        }
    }
}

#[test]
fn what_was_chosen_stays_after_an_interrupt() {
    let folder = folder(&[("a.phy", &phylip(&[evolved(9, 300, "K80{5}+G4{0.5}", 7)]))]);
    let (alignment, prefix) = (path(folder.path(), "a.phy"), path(folder.path(), "out"));
    let typed = |prefix: &str| args(&[&alignment, "-m", "auto", "-s", "2", "--prefix", prefix, "--resume"]);
    let whole = run(
        &prepare(&typed(&format!("{prefix}2"))).unwrap(),
        &scheduler(2, Policy::Marginal),
        Arc::new(Abort::new()),
        &Silent,
    );
    let abort = Arc::new(Abort::new());
    let watcher = Ending(abort.clone());
    run(&prepare(&typed(&prefix)).unwrap(), &scheduler(1, Policy::Edtlp), abort, &watcher).unwrap_err();
    let before = table(&folder);
    let prepared = prepare(&typed(&prefix)).unwrap();
    assert_eq!(prepared.saved.chosen, [before[0][1].clone()]);
    let again = run(&prepared, &scheduler(2, Policy::Marginal), Arc::new(Abort::new()), &Silent).unwrap();
    assert_eq!(table(&folder), before);
    assert_eq!(again.tree, whole.unwrap().tree);
    assert!(prepare(&typed(&prefix)).unwrap().is_finished);
}

/// Sites that all vary have candidates with the correction for that, and none with invariant sites; fitted frequencies are tried
/// where they are asked for.
#[test]
fn candidates_are_those_that_were_asked_for() {
    let dna = evolved(7, 300, "HKY{6}+FU{0.4/0.1/0.15/0.35}", 5);
    let bit = |c: char| if "AG".contains(c) { '0' } else { '1' };
    let all: Vec<String> = dna.iter().map(|row| row.chars().map(bit).collect()).collect();
    let varies = |site: &usize| all.iter().any(|row| row.as_bytes()[*site] != all[0].as_bytes()[*site]);
    let sites: Vec<usize> = (0..300).filter(varies).collect();
    let rows = all.iter().map(|row| sites.iter().map(|&site| char::from(row.as_bytes()[site])).collect()).collect();
    let folder = folder(&[("dna.phy", &phylip(&[dna])), ("bits.phy", &phylip(&[rows]))]);
    let names = |alignment: &str, model: &str| {
        let (alignment, prefix) = (path(folder.path(), alignment), path(folder.path(), "out"));
        phylo(&[&alignment, "-m", model, "-s", "1", "--prefix", &prefix, "--force"]).unwrap();
        table(&folder).into_iter().map(|line| line[1].clone()).collect::<Vec<_>>()
    };
    let bits = names("bits.phy", "auto");
    assert!(
        bits.iter().any(|name| name.ends_with("+ASC")) && bits.iter().any(|name| !name.ends_with("+ASC")),
        "{bits:?}"
    );
    assert!(bits.iter().all(|name| !name.contains("+I")), "{bits:?}");
    let usual = names("dna.phy", "auto");
    assert!(usual.iter().all(|name| !name.contains("+FO") && !name.contains("+ASC")), "{usual:?}");
    let fitted = names("dna.phy", "auto+FO");
    assert!(fitted.iter().any(|name| name.starts_with("HKY+FO")), "{fitted:?}");
}
