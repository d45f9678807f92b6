//! Where fitting ends: from wherever it begins, at one place, from which no small step leads higher.

use multigrain_phylo::alignment::{Alignment, DataType, Patterns};
use multigrain_phylo::generate::{evolve, random_tree};
use multigrain_phylo::likelihood::{Host, Likelihood, MAX_LENGTH, MIN_LENGTH, Precision};
use multigrain_phylo::model::{Model, ModelSpec};
use multigrain_phylo::partition::Branches;
use multigrain_phylo::random::{Purpose, Random};
use multigrain_phylo::tree::{HalfEdge, Tree};
use multigrain_simd::Isa;

/// Partitions as coding and ribosomal genes have them: few or all sites vary, some exchanges (also that of G and T, the
/// customary unit) hardly ever happen, speeds differ by thirty.
const PARTS: [(usize, &str); 7] = [
    (250, "GTR{1/8/1/1/20/0.01}+FU{.3/.2/.2/.3}+G8{0.1}+B{1.2}"),
    (220, "GTR{0.5/3/0.1/30/0.2/0.001}+FU{.25/.25/.15/.35}+G8{0.2}+B{0.5}"),
    (250, "GTR{1/15/1/0.5/15/1}+FU{.42/.08/.05/.45}+G8{2}+B{15}"),
    (150, "GTR{5/2/0.05/0.05/60/0.01}+FU{.27/.29/.32/.12}+G8{0.08}+B{1.2}"),
    (120, "GTR{2/2/0.1/40/0.1/0.001}+FU{.29/.26/.21/.24}+G8{0.3}+B{0.5}"),
    (130, "GTR{1/6/2/0.6/3/1}+FU{.09/.47/.3/.14}+G8{0.6}+B{10}"),
    (450, "GTR{0.3/8/7/0.05/3/0.01}+FU{.38/.09/.14/.39}+G8{0.25}+B{1.5}"),
];

/// A tree with its partitions; but in the first, every fifth taxon or so is missing.
fn simulated(taxa: usize, seed: u64) -> (Tree, Vec<Patterns>) {
    let mut random = Random::new(seed, Purpose::Start, 0);
    let tree = random_tree(taxa, &mut random);
    let any = Alignment { names: vec!["a".into()], rows: vec![b"ACGT".to_vec()] };
    let any = Patterns::new(&any, 0..4, DataType::Dna);
    let parts = PARTS.iter().enumerate().map(|(p, (sites, model))| {
        let model = ModelSpec::parse(model).unwrap().model(&any);
        let mut alignment = evolve(&tree, &model, DataType::Dna, *sites, &mut random);
        alignment.rows.iter_mut().filter(|_| p > 0 && random.below(5) == 0).for_each(|row| row.fill(b'-'));
        Patterns::new(&alignment, 0..*sites, DataType::Dna)
    });
    let parts = parts.collect();
    (tree, parts)
}

/// Nothing around is higher: not along any parameter, nor along the lengths of all branches together, nor along both.
fn assert_is_optimum(likelihood: &mut Likelihood<'_>, random: &mut Random) {
    const LEAST: f64 = 2e-3;
    let best = likelihood.log_likelihood();
    let (tree, models) = (likelihood.tree().clone(), likelihood.models().to_vec());
    let stretched = |by: f64, power: f64| {
        let mut other = tree.clone();
        for half in tree.branches() {
            for set in 0..tree.sets() {
                let length = tree.length(half, set);
                let moved = if length < 1e-4 { length } else { by * length.powf(power) };
                other.set_length(half, set, moved.clamp(MIN_LENGTH, MAX_LENGTH));
            }
        }
        other
    };
    let mut check = |what: &str, tree: &Tree, changed: Option<(usize, Model)>| {
        likelihood.set_tree(tree.clone());
        if let Some((p, model)) = &changed {
            likelihood.set_model(*p, model.clone());
        }
        let there = likelihood.log_likelihood();
        assert!(there < best + LEAST, "{what}: {there} after {best}");
        if let Some((p, _)) = changed {
            likelihood.set_model(p, models[p].clone());
        }
    };
    for by in [0.8, 0.97, 1.03, 1.25] {
        check("scale", &stretched(by, 1.0), None);
        check("contrast", &stretched(1.0, by), None);
        for (p, start) in models.iter().enumerate() {
            let mut model = start.clone();
            model.alpha = model.alpha.map(|alpha| (alpha * by).clamp(0.02, 100.0));
            for stretch in [0.97, 1.0, 1.03] {
                check(
                    &format!("alpha {p} * {by}, lengths * {stretch}"),
                    &stretched(stretch, 1.0),
                    Some((p, model.clone())),
                );
            }
            for rate in 0..5 {
                let mut model = start.clone();
                model.exchangeabilities[rate] *= by;
                check(&format!("exchangeability {p}.{rate} * {by}"), &tree, Some((p, model)));
            }
            let mut model = start.clone();
            if model.free.speed {
                model.speed = model.speed.map(|speed| speed * by);
                check(&format!("speed {p} * {by}"), &tree, Some((p, model)));
            }
        }
    }
    let branches: Vec<HalfEdge> = tree.branches().collect();
    for _ in 0..40 {
        let half = branches[random.below(branches.len() as u64) as usize];
        let set = random.below(tree.sets() as u64) as usize;
        for by in [0.9, 1.1] {
            let mut other = tree.clone();
            other.set_length(half, set, (tree.length(half, set) * by).clamp(MIN_LENGTH, MAX_LENGTH));
            check(&format!("branch {half:?} * {by}"), &other, None);
        }
    }
}

/// Branch lengths and shapes from which it begins are a tenth and ten times of the true ones, or all alike. Where every
/// partition has lengths of its own, few sites decide them, and there are several optima.
#[test]
fn partitions_are_fitted_to_one_optimum_from_any_start() {
    let starts = [(1.0, 1.0), (0.1, 0.1), (10.0, 5.0), (0.0, 0.3)];
    for (seed, text, branches, starts) in [
        (1, "GTR+F+G4", Branches::Linked, &starts[..]),
        (2, "GTR+F+G4+B", Branches::Linked, &starts[..]),
        (3, "GTR+FO+G4", Branches::Unlinked, &starts[..1]),
    ] {
        let (truth, parts) = simulated(16, seed);
        let models: Vec<Model> = parts.iter().map(|p| ModelSpec::parse(text).unwrap().model(p)).collect();
        let mut random = Random::new(seed, Purpose::Search, 0);
        let mut ends: Vec<f64> = Vec::new();
        for &(scale, alpha) in starts {
            let mut tree = truth.with_sets(&vec![0; if branches == Branches::Linked { 1 } else { parts.len() }]);
            for half in truth.branches() {
                let length = if scale == 0.0 { 0.1 } else { truth.length(half, 0) * scale };
                (0..tree.sets()).for_each(|set| tree.set_length(half, set, length));
            }
            let models: Vec<Model> = models.iter().map(|m| Model { alpha: Some(alpha), ..m.clone() }).collect();
            let data: Vec<_> = parts.iter().zip(&models).collect();
            let mut likelihood = Likelihood::new(&data, branches, tree, Isa::detect(), Box::new(Host));
            likelihood.optimize_thoroughly(1e-3);
            ends.push(likelihood.smooth(16, 1e-6, Precision::FINE));
            println!("seed {seed}, {text}, from lengths * {scale}, alpha {alpha}: {:?}", ends.last());
            assert_is_optimum(&mut likelihood, &mut random);
        }
        let (low, high) = (ends.iter().copied().fold(0.0, f64::min), ends.iter().copied().fold(f64::MIN, f64::max));
        assert!(high - low < 0.1, "seed {seed}, {text}: {ends:?}");
    }
}
