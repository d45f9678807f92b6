//! Generated alignments: sequences that evolved along a random tree under a model.

use crate::alignment::{Alignment, DataType};
use crate::constraint::{Constraint, Growing};
use crate::model::Model;
use crate::random::Random;
use crate::tree::{HalfEdge, Tree};

/// Mean length of the branches of a random tree.
const MEAN_LENGTH: f64 = 0.05;

/// A number from 0 up to 1.
fn uniform(random: &mut Random) -> f64 {
    (random.bits() >> 11) as f64 / (1u64 << 53) as f64
}

/// A tree grown by putting each taxon into a random branch, with exponentially distributed lengths.
///
/// # Panics
/// For fewer than three taxa.
pub fn random_tree(taxa: usize, random: &mut Random) -> Tree {
    random_tree_within(None, taxa, random)
}

/// As [`random_tree`], among the branches that a constraint leaves each taxon.
///
/// # Panics
/// For fewer than three taxa.
pub fn random_tree_within(constraint: Option<&Constraint>, taxa: usize, random: &mut Random) -> Tree {
    assert!(taxa >= 3, "an unrooted tree has at least three taxa");
    let mut tree = Tree::new(taxa, 1);
    let center = tree.inner(0);
    let [b, c] = tree.others(center);
    for (taxon, half) in [center, b, c].into_iter().enumerate() {
        tree.join(half, HalfEdge(taxon as u32), &[0.0]);
    }
    let mut growing = constraint.map(Growing::new);
    for taxon in 0..taxa {
        let branches: Vec<HalfEdge> = match &growing {
            _ if taxon < 3 => vec![],
            Some(growing) => growing.places(&tree, HalfEdge(0), taxon),
            None => tree.branches().collect(),
        };
        growing.iter_mut().for_each(|growing| growing.add(taxon));
        if taxon < 3 {
            continue;
        }
        let at = branches[random.below(branches.len() as u64) as usize];
        let root = tree.inner(taxon - 2);
        tree.join(root, HalfEdge(taxon as u32), &[0.0]);
        let ends = [at, tree.back(at)];
        tree.regraft(root, ends, [&[0.0], &[0.0]]);
    }
    let branches: Vec<HalfEdge> = tree.branches().collect();
    for half in branches {
        tree.set_length(half, 0, -MEAN_LENGTH * (1.0 - uniform(random)).ln());
    }
    tree
}

/// An outcome of a discrete distribution.
fn draw(probabilities: impl Iterator<Item = f64>, random: &mut Random) -> usize {
    let mut left = uniform(random);
    let mut last = 0;
    for (outcome, p) in probabilities.enumerate() {
        last = outcome;
        left -= p;
        if left < 0.0 {
            break;
        }
    }
    last
}

/// Sequences of the tree's taxa, named t0, t1, ..., that evolved under the model: every site has one of the model's rates.
pub fn evolve(tree: &Tree, model: &Model, data_type: DataType, sites: usize, random: &mut Random) -> Alignment {
    let n = model.states;
    let eigen = model.eigen();
    let rates = model.rates();
    let categories: Vec<usize> = (0..sites).map(|_| random.below(rates.len() as u64) as usize).collect();
    let mut states = vec![Vec::new(); tree.halves()];
    let first = tree.tip(0);
    states[first.index()] = (0..sites).map(|_| draw(model.frequencies.iter().copied(), random) as u8).collect();
    let letters = data_type.letters();
    // For every half-edge that looks at the first tip, the states of its node, after those above it.
    for half in tree.behind(tree.back(first)) {
        let above = tree.back(half);
        let transitions: Vec<Vec<f64>> = rates.iter().map(|r| eigen.transition(r * tree.length(half, 0))).collect();
        let from = std::mem::take(&mut states[above.index()]);
        let to = from.iter().zip(&categories).map(|(&state, &category)| {
            let row = &transitions[category][state as usize * n..][..n];
            draw(row.iter().copied(), random) as u8
        });
        let to: Vec<u8> = to.collect();
        states[above.index()] = from;
        // A node's states lie at all its half-edges that look away from the root, where its children find them.
        if !tree.is_tip(half) {
            for side in tree.others(half) {
                states[side.index()] = to.clone();
            }
        }
        states[half.index()] = to;
    }
    let row = |taxon: usize| states[taxon].iter().map(|&s| letters[s as usize]).collect();
    Alignment { names: (0..tree.taxa()).map(|t| format!("t{t}")).collect(), rows: (0..tree.taxa()).map(row).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alignment::Patterns;
    use crate::model::ModelSpec;
    use crate::random::Purpose;

    #[test]
    fn sequences_have_the_models_frequencies_and_relatives_are_alike() {
        let mut random = Random::new(3, Purpose::Start, 0);
        let tree = random_tree(12, &mut random);
        assert!(tree.is_valid());
        let spec = ModelSpec::parse("HKY{3}+FU{0.4/0.3/0.2/0.1}+G4{0.7}").unwrap();
        let any = Alignment { names: vec!["a".into()], rows: vec![b"ACGT".to_vec()] };
        let model = spec.model(&Patterns::new(&any, 0..4, DataType::Dna));
        let a = evolve(&tree, &model, DataType::Dna, 5000, &mut random);
        assert_eq!((a.taxa(), a.sites()), (12, 5000));
        let found = Patterns::new(&a, 0..5000, DataType::Dna).frequencies();
        for (found, expected) in found.iter().zip(&model.frequencies) {
            assert!((found - expected).abs() < 0.03, "{found} {expected}");
        }
        let alike = |i: usize, j: usize| a.rows[i].iter().zip(&a.rows[j]).filter(|(x, y)| x == y).count();
        // Twelve taxa on branches of 0.05 differ, but much less than random sequences (of which 0.3 are equal).
        assert!((1..12).all(|t| (2000..5000).contains(&alike(0, t))));
    }
}
