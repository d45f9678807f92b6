//! The likelihood of trees: against a plain reference, against references of others, the same bits everywhere.

use crate::support;

use multigrain_phylo::alignment::{Alignment, DataType, Format, Patterns, read_alignment};
use multigrain_phylo::likelihood::{Host, Likelihood, MAX_LENGTH, MIN_LENGTH, Offload, Precision};
use multigrain_phylo::model::{Model, ModelSpec};
use multigrain_phylo::partition::Branches;
use multigrain_phylo::random::{Purpose, Random};
use multigrain_phylo::tree::{HalfEdge, Newick, Splits, Tree};
use multigrain_simd::Isa;
use proptest::prelude::*;

fn names(taxa: usize) -> Vec<String> {
    (0..taxa).map(|t| format!("t{t}")).collect()
}

/// A number between 0 and 1.
fn unit(random: &mut Random) -> f64 {
    random.below(1 << 40) as f64 / (1u64 << 40) as f64
}

/// A random tree with lengths around `scale`.
fn random_tree(random: &mut Random, taxa: usize, sets: usize, scale: f64) -> Tree {
    let mut tree = Tree::new(taxa, sets);
    let lengths =
        |random: &mut Random| -> Vec<f64> { (0..sets).map(|_| scale * (unit(random) * 5.0 - 3.0).exp()).collect() };
    let mut ring = tree.inner(0);
    for taxon in 0..3 {
        let l = lengths(random);
        tree.join(ring, tree.tip(taxon), &l);
        ring = tree.next(ring);
    }
    for taxon in 3..taxa {
        let branches: Vec<HalfEdge> = tree.branches().collect();
        let at = branches[random.below(branches.len() as u64) as usize];
        let root = tree.inner(taxon - 2);
        let [a, b, c] = [lengths(random), lengths(random), lengths(random)];
        let ends = [at, tree.back(at)];
        tree.join(root, tree.tip(taxon), &a);
        tree.regraft(root, ends, [&b, &c]);
    }
    assert!(tree.is_valid());
    tree
}

/// Random letters, similar within a column, with some gaps and ambiguity.
fn random_alignment(random: &mut Random, taxa: usize, sites: usize, data: DataType) -> Alignment {
    let other: &[u8] = match data {
        DataType::Binary => b"??--",
        DataType::Dna => b"RYN-",
        DataType::Protein => b"BZX-",
    };
    let mut rows = vec![Vec::new(); taxa];
    for _ in 0..sites {
        let common = data.letters()[random.below(data.states() as u64) as usize];
        for row in &mut rows {
            row.push(match random.below(10) {
                0 => other[random.below(4) as usize],
                1..=3 => data.letters()[random.below(data.states() as u64) as usize],
                _ => common,
            });
        }
    }
    Alignment { names: names(taxa), rows }
}

fn patterns(random: &mut Random, taxa: usize, sites: usize, data: DataType) -> Patterns {
    Patterns::new(&random_alignment(random, taxa, sites, data), 0..sites, data)
}

fn reference(tree: &Tree, set: usize, patterns: &Patterns, model: &Model) -> f64 {
    let names = names(tree.taxa());
    let newick = support::newick(&tree.to_newick(&names, set, &|_| None).to_text());
    let plain = support::log_likelihood(&newick, &names, patterns, model);
    if !model.is_ascertained {
        return plain;
    }
    // Less the logarithm of the probability that a site varies, by the constant patterns one by one.
    let letters = patterns.data_type.letters();
    let constant = letters.iter().map(|&letter| {
        let alignment = Alignment { names: names.clone(), rows: vec![vec![letter]; tree.taxa()] };
        let one = Patterns::new(&alignment, [0], patterns.data_type);
        support::log_likelihood(&newick, &names, &one, model).exp()
    });
    plain - patterns.sites() as f64 * (1.0 - constant.sum::<f64>()).ln()
}

const MODELS: [&str; 12] = [
    "JC",
    "K80{3}+G4{0.4}",
    "K80{3}+IU{0.1}+R3{0.1/0.9/2.5}{0.5/0.3/0.2}",
    "GTR{1/4/0.5/0.7/6/1}+FU{0.3/0.15/0.2/0.35}+G4{0.2}",
    "GTR{1/4/0.5/0.7/6/1}+FU{0.3/0.15/0.2/0.35}+I{0.3}+G6{1.5}",
    "LG+G4{0.5}",
    "WAG+FE",
    "JTT+I{0.2}+G3{0.7}",
    "BIN+FU{0.3/0.7}+I{0.2}+G4{0.5}",
    "BIN+FU{0.4/0.6}+G4{0.9}+ASC",
    "GTR{1/4/0.5/0.7/6/1}+FU{0.3/0.15/0.2/0.35}+G4{0.5}+ASC",
    "LG+G4{0.5}+ASC",
];

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn equals_a_plain_reference_at_every_branch_with_every_instruction_set(
        seed in any::<u64>(), model in prop::sample::select(&MODELS[..]), taxa in 3usize..16, sites in 1usize..150,
    ) {
        let mut random = Random::new(seed, Purpose::Search, 0);
        let spec = ModelSpec::parse(model).unwrap();
        let patterns = patterns(&mut random, taxa, sites, spec.data_type);
        prop_assume!(!patterns.is_empty());
        let model = spec.model(&patterns);
        let tree = random_tree(&mut random, taxa, 1, 0.1);
        let expected = reference(&tree, 0, &patterns, &model);
        let mut bits = None;
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
            let data = [(&patterns, &model)];
            let mut likelihood = Likelihood::new(&data, Branches::Linked, tree.clone(), isa, Box::new(Host));
            let found = likelihood.log_likelihood();
            prop_assert!(near(found, expected), "{} {}: {} not {}", isa, spec, found, expected);
            let each: f64 = likelihood.of_patterns()[0].iter().zip(&patterns.weights).map(|(l, &w)| l * f64::from(w)).sum();
            prop_assert!(near(each, expected), "{} {}: {} by patterns, not {}", isa, spec, each, expected);
            // A move of the focus keeps the value, up to rounding; optimised lengths are the same in bits.
            for half in tree.branches() {
                likelihood.move_focus(half);
                let there = likelihood.log_likelihood();
                prop_assert!(near(there, expected), "{} at {:?}: {} not {}", isa, half, there, expected);
            }
            let smooth = likelihood.smooth(2, 0.0, Precision::COARSE);
            prop_assert!(smooth >= expected - 1e-6, "{} after {}", smooth, expected);
            let again = reference(likelihood.tree(), 0, &patterns, &model);
            prop_assert!(near(smooth, again), "{} {} vectors went stale: {} not {}", isa, spec, smooth, again);
            let found = (found.to_bits(), smooth.to_bits(), likelihood.tree().clone());
            prop_assert_eq!(bits.get_or_insert(found.clone()), &found, "{}", isa);
        }
    }

    #[test]
    fn partitions_add_up_linked_or_not(seed in any::<u64>(), taxa in 4usize..12, unlinked in any::<bool>()) {
        let mut random = Random::new(seed, Purpose::Search, 1);
        let specs = [MODELS[2], MODELS[4], MODELS[1]].map(|m| ModelSpec::parse(m).unwrap());
        let parts: Vec<Patterns> = specs.iter().map(|s| patterns(&mut random, taxa, 30, s.data_type)).collect();
        prop_assume!(parts.iter().all(|p| !p.is_empty()));
        let models: Vec<Model> = specs.iter().zip(&parts).map(|(s, p)| s.model(p)).collect();
        let tree = random_tree(&mut random, taxa, if unlinked { 3 } else { 1 }, 0.1);
        let data: Vec<_> = parts.iter().zip(&models).collect();
        let branches = if unlinked { Branches::Unlinked } else { Branches::Linked };
        let mut likelihood = Likelihood::new(&data, branches, tree, Isa::detect(), Box::new(Host));
        let before = likelihood.log_likelihood();
        likelihood.smooth(2, 0.0, Precision::COARSE);
        let all = likelihood.log_likelihoods();
        for (p, value) in all.iter().enumerate() {
            let expected = reference(likelihood.tree(), if unlinked { p } else { 0 }, &parts[p], &models[p]);
            prop_assert!(near(*value, expected), "partition {}: {} not {}", p, value, expected);
        }
        prop_assert!(all.iter().sum::<f64>() >= before - 1e-6);
    }

    /// At an optimum a branch's length can be changed in neither direction with a gain that counts: on the plateaus of
    /// long branches the quadratic model of a gain is not exact.
    #[test]
    fn optimised_lengths_are_optima(seed in any::<u64>(), model in prop::sample::select(&MODELS[..])) {
        let mut random = Random::new(seed, Purpose::Search, 2);
        let spec = ModelSpec::parse(model).unwrap();
        let patterns = patterns(&mut random, 6, 60, spec.data_type);
        let model = spec.model(&patterns);
        let tree = random_tree(&mut random, 6, 1, 0.2);
        let data = [(&patterns, &model)];
        let mut likelihood = Likelihood::new(&data, Branches::Linked, tree, Isa::detect(), Box::new(Host));
        for half in likelihood.tree().branches().collect::<Vec<_>>() {
            likelihood.optimize_branch(half, Precision::FINE);
            let best = reference(likelihood.tree(), 0, &patterns, &model);
            for factor in [0.97, 1.03] {
                let mut other = likelihood.tree().clone();
                other.set_length(half, 0, (other.length(half, 0) * factor).clamp(MIN_LENGTH, MAX_LENGTH));
                let there = reference(&other, 0, &patterns, &model);
                prop_assert!(there <= best + 1e-5, "{:?} * {}: {} after {}", half, factor, there, best);
            }
        }
    }
}

/// Hundreds of taxa with long branches: without scaling everything would vanish.
#[test]
fn scaling_keeps_large_trees_apart_from_zero() {
    let mut random = Random::new(5, Purpose::Search, 3);
    for model in [MODELS[2], MODELS[3], MODELS[4]] {
        let spec = ModelSpec::parse(model).unwrap();
        let patterns = patterns(&mut random, 700, 20, spec.data_type);
        let model = spec.model(&patterns);
        let tree = random_tree(&mut random, 700, 1, 2.0);
        let data = [(&patterns, &model)];
        let expected = reference(&tree, 0, &patterns, &model);
        let mut likelihood = Likelihood::new(&data, Branches::Linked, tree, Isa::detect(), Box::new(Host));
        let found = likelihood.log_likelihood();
        assert!(near(found, expected), "{spec}: {found} not {expected}");
        likelihood.move_focus(HalfEdge(333));
        assert!(near(likelihood.log_likelihood(), expected));
    }
}

#[test]
fn fixed_trees_of_real_alignments() {
    let Some(folder) = support::data() else { return };
    for name in ["primates12", "syno42", "ds1_27", "bergsten38", "hsc31aa", "sc150", "zilla500"] {
        let (a, _) = read_alignment(&folder.join(format!("{name}.phy")), Format::Auto, u64::MAX).unwrap();
        let json = std::fs::read_to_string(folder.join(format!("fixed/{name}.json"))).unwrap();
        let newick =
            Newick::parse(&std::fs::read_to_string(folder.join(format!("fixed/{name}.nwk"))).unwrap()).unwrap();
        let tree = Tree::from_newick(&newick, &a.names, None).unwrap();
        let spec = ModelSpec::parse(support::string(&json, "iqtree_model")).unwrap();
        let patterns = Patterns::new(&a, 0..a.sites(), spec.data_type);
        let model = spec.model(&patterns);
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
            let data = [(&patterns, &model)];
            let mut likelihood = Likelihood::new(&data, Branches::Linked, tree.clone(), isa, Box::new(Host));
            let found = likelihood.log_likelihood();
            let expected = support::number(&json, "lnL_reference");
            assert!((found - expected).abs() < 1e-6, "{name} {isa}: {found}, not {expected}");
        }
    }
}

/// The log-likelihood of each pattern is that of an alignment of it alone, however deep the tree (so that vectors are
/// scaled) and however many sites may be invariant.
#[test]
fn every_pattern_by_itself() {
    let mut random = Random::new(5, Purpose::Search, 9);
    for (model, taxa, scale) in
        [(MODELS[4], 12, 0.1), (MODELS[3], 300, 1.0), (MODELS[4], 300, 1.0), (MODELS[5], 9, 0.2)]
    {
        let spec = ModelSpec::parse(model).unwrap();
        let alignment = random_alignment(&mut random, taxa, 20, spec.data_type);
        let all = Patterns::new(&alignment, 0..20, spec.data_type);
        let model = spec.model(&all);
        let tree = random_tree(&mut random, taxa, 1, scale);
        let place = || Box::new(Host);
        let mut likelihood = Likelihood::new(&[(&all, &model)], Branches::Linked, tree.clone(), Isa::detect(), place());
        let logs = likelihood.of_patterns().concat();
        assert_eq!(logs.len(), all.len());
        for site in 0..20 {
            let one = Patterns::new(&alignment, [site], spec.data_type);
            let expected = if one.is_empty() { 0.0 } else { reference(&tree, 0, &one, &model) };
            let found = all.pattern_of_site[site].map_or(0.0, |p| logs[p as usize]);
            assert!((found - expected).abs() < 1e-8 * expected.abs().max(1.0), "{spec} {site}: {found} not {expected}");
        }
    }
}

/// What an exchange makes of the patterns is what a likelihood of the exchanged tree says of them; and nothing has changed
/// when it was looked at.
#[test]
fn exchanges_are_looked_at_without_a_trace() {
    let mut random = Random::new(6, Purpose::Search, 9);
    for unlinked in [false, true] {
        let specs = [MODELS[2], MODELS[4]].map(|m| ModelSpec::parse(m).unwrap());
        let parts: Vec<Patterns> = specs.iter().map(|s| patterns(&mut random, 9, 40, s.data_type)).collect();
        let models: Vec<Model> = specs.iter().zip(&parts).map(|(s, p)| s.model(p)).collect();
        let data: Vec<_> = parts.iter().zip(&models).collect();
        let branches = if unlinked { Branches::Unlinked } else { Branches::Linked };
        let tree = random_tree(&mut random, 9, if unlinked { 2 } else { 1 }, 0.1);
        let mut likelihood = Likelihood::new(&data, branches, tree, Isa::detect(), Box::new(Host));
        let before = likelihood.smooth(20, 1e-6, Precision::FINE);
        let tree = likelihood.tree().clone();
        let weights: Vec<f64> = parts.iter().flat_map(|p| p.weights.iter().map(|&w| f64::from(w))).collect();
        for half in Splits::new(&tree).branches {
            let found = likelihood.of_exchanges(half);
            assert_eq!(likelihood.tree(), &tree);
            assert!(near(likelihood.log_likelihood(), before));
            let [near_ends, far] = [half, tree.back(half)].map(|end| tree.others(end));
            for (logs, other) in found.iter().zip(far) {
                let mut exchanged = tree.clone();
                let [a, b] = [near_ends[1], other].map(|side| (tree.back(side), tree.lengths(side).to_vec()));
                exchanged.join(near_ends[1], b.0, &b.1);
                exchanged.join(other, a.0, &a.1);
                let mut fresh = Likelihood::new(&data, branches, exchanged, Isa::detect(), Box::new(Host));
                let start = fresh.log_likelihood();
                let all = fresh.smooth(30, 1e-6, Precision::FINE);
                let value: f64 = logs.iter().zip(&weights).map(|(l, w)| l * w).sum();
                // Five optimised branches are better than none and not better than all.
                assert!(start <= value + 1e-6 && value <= all + 1e-2, "{start} {value} {all}");
            }
        }
    }
}

/// The host with room for so many vectors.
struct Little(usize);

impl Offload for Little {
    fn chunks(&self, chunks: usize, work: usize, body: &(dyn Fn(usize) + Sync)) {
        Host.chunks(chunks, work, body);
    }

    fn vectors(&self) -> usize {
        self.0
    }
}

/// A tree that is as deep on all sides, which takes more vectors to be computed than any other of as many taxa.
fn balanced(first: usize, taxa: usize) -> String {
    match taxa {
        1 => format!("t{first}:0.1"),
        _ => format!("({},{}):0.1", balanced(first, taxa / 2), balanced(first + taxa / 2, taxa - taxa / 2)),
    }
}

/// With room for few vectors, or for the fewest, all numbers have the bits that they have with room for all.
#[test]
fn little_memory_changes_no_bit() {
    let mut random = Random::new(4, Purpose::Search, 9);
    for (taxa, unlinked) in [(64, false), (64, true), (37, true), (150, false)] {
        let specs = [MODELS[2], MODELS[4]].map(|m| ModelSpec::parse(m).unwrap());
        let parts: Vec<Patterns> = specs.iter().map(|s| patterns(&mut random, taxa, 20, s.data_type)).collect();
        let models: Vec<Model> = specs.iter().zip(&parts).map(|(s, p)| s.model(p)).collect();
        let data: Vec<_> = parts.iter().zip(&models).collect();
        let branches = if unlinked { Branches::Unlinked } else { Branches::Linked };
        let tree = match taxa {
            64 => {
                let newick = Newick::parse(&format!("({},{});", balanced(0, 32), balanced(32, 32))).unwrap();
                Tree::from_newick(&newick, &names(64), None).unwrap().with_sets(if unlinked { &[0, 0] } else { &[0] })
            }
            _ => random_tree(&mut random, taxa, if unlinked { 2 } else { 1 }, 0.3),
        };
        let moves: Vec<HalfEdge> = (0..60).map(|_| HalfEdge(random.below(tree.halves() as u64) as u32)).collect();
        let everything = |vectors: usize| {
            let place = Box::new(Little(vectors));
            let mut likelihood = Likelihood::new(&data, branches, tree.clone(), Isa::detect(), place);
            let mut found = vec![likelihood.log_likelihood()];
            for &half in &moves {
                likelihood.move_focus(half);
                found.push(likelihood.log_likelihood());
            }
            found.push(likelihood.smooth(1, 0.0, Precision::COARSE));
            found.push(likelihood.optimize_models(0.5));
            found.extend(likelihood.of_patterns().concat());
            let inner = Splits::new(likelihood.tree()).branches;
            found.extend(inner.iter().step_by(7).flat_map(|&half| likelihood.of_exchanges(half).concat()));
            found.push(likelihood.log_likelihood());
            (found.into_iter().map(f64::to_bits).collect::<Vec<u64>>(), likelihood.tree().clone(), likelihood.bytes(0))
        };
        let all = everything(usize::MAX);
        for vectors in [0, taxa / 2, taxa - 3] {
            let little = everything(vectors);
            assert!((&little.0, &little.1) == (&all.0, &all.1), "{taxa} taxa, {vectors} vectors");
            assert!(little.2 < all.2, "{taxa} taxa, {vectors} vectors take {} of {}", little.2, all.2);
        }
    }
}

/// Where sites were taken because they vary, the probabilities of all sites that vary add up to 1.
#[test]
fn sites_that_vary_have_probability_one() {
    let mut random = Random::new(8, Purpose::Search, 9);
    for (text, taxa) in [(MODELS[9], 7), (MODELS[10], 4), (MODELS[11], 3)] {
        let spec = ModelSpec::parse(text).unwrap();
        let letters = spec.data_type.letters();
        let columns = letters.len().pow(taxa as u32);
        let letter = |column: usize, taxon: usize| letters[column / letters.len().pow(taxon as u32) % letters.len()];
        let varies = |column: &usize| (1..taxa).any(|taxon| letter(*column, taxon) != letter(*column, 0));
        let chosen: Vec<usize> = (0..columns).filter(varies).collect();
        let rows = (0..taxa).map(|taxon| chosen.iter().map(|&column| letter(column, taxon)).collect()).collect();
        let alignment = Alignment { names: names(taxa), rows };
        let patterns = Patterns::new(&alignment, 0..chosen.len(), spec.data_type);
        assert_eq!(patterns.len(), columns - letters.len());
        let model = spec.model(&patterns);
        let tree = random_tree(&mut random, taxa, 1, 0.3);
        let mut likelihood =
            Likelihood::new(&[(&patterns, &model)], Branches::Linked, tree, Isa::detect(), Box::new(Host));
        let sum: f64 = likelihood.of_patterns()[0].iter().map(|log| log.exp()).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{text}: {sum}");
    }
}
