//! Starting trees from distances: neighbour joining in its variance-weighted form, BIONJ (Gascuel 1997, Molecular Biology and
//! Evolution 14:685).
//!
//! A tree by parsimony and one by distances are wrong in different places; searches that begin at both end in one basin
//! less often.

use crate::alignment::Patterns;
use crate::constraint::{Constraint, Joining};
use crate::likelihood::MIN_LENGTH;
use crate::tree::{HalfEdge, Tree};

/// Where letters differ nearly as often as random ones do, a distance means nothing more than far apart.
const FAR: f64 = 3.0;

/// Distances of all taxa, `[taxon][taxon]`: expected substitutions a site where all kinds are equally frequent (Jukes and
/// Cantor), the mean over partitions by the sites that both taxa have. Taxa without such a site are far apart.
fn distances(data: &[&Patterns]) -> Vec<f64> {
    let taxa = data.first().map_or(0, |p| p.taxa());
    // Of two taxa the later's row.
    let at = |i: usize, j: usize| i * (i - 1) / 2 + j;
    let mut sums = vec![[0.0; 2]; taxa * taxa.saturating_sub(1) / 2];
    for patterns in data {
        let masks = patterns.data_type.masks();
        let full = masks[usize::from(patterns.data_type.gap())];
        let rows: Vec<Vec<u32>> =
            patterns.tips.iter().map(|tip| tip.iter().map(|&code| masks[usize::from(code)]).collect()).collect();
        let share = 1.0 - 1.0 / patterns.data_type.states() as f64;
        for i in 0..taxa {
            for j in 0..i {
                let (mut both, mut differ) = (0u64, 0u64);
                for ((a, b), &weight) in rows[i].iter().zip(&rows[j]).zip(&patterns.weights) {
                    let weight = u64::from(weight) * u64::from(*a != full && *b != full);
                    both += weight;
                    differ += weight * u64::from(a & b == 0);
                }
                if both > 0 {
                    let left = 1.0 - differ as f64 / both as f64 / share;
                    let distance = if left > 0.0 { (-share * left.ln()).min(FAR) } else { FAR };
                    let [sum, sites] = &mut sums[at(i, j)];
                    *sum += distance * both as f64;
                    *sites += both as f64;
                }
            }
        }
    }
    let of = |i: usize, j: usize| match i != j {
        false => 0.0,
        true => match sums[at(i.max(j), i.min(j))] {
            [_, 0.0] => FAR,
            [sum, sites] => sum / sites,
        },
    };
    (0..taxa * taxa).map(|ij| of(ij / taxa, ij % taxa)).collect()
}

/// The most bytes that [`join_neighbours`] has at once: distances and their variances, or, before, half a matrix of sums and a
/// partition's letters as sets of states.
pub fn bytes(data: &[&Patterns]) -> u64 {
    let taxa = data.first().map_or(0, |p| p.taxa()) as u64;
    let letters = data.iter().map(|p| size_of::<u32>() as u64 * taxa * p.len() as u64).max().unwrap_or(0);
    let matrix = size_of::<f64>() as u64 * taxa * taxa;
    matrix + matrix.max(letters)
}

/// The tree, with each length in all of `sets` sets; where there is a constraint, only what it lets be joined is.
///
/// # Panics
/// For fewer than three taxa.
pub fn join_neighbours(data: &[&Patterns], sets: usize, constraint: Option<&Constraint>) -> Tree {
    joined(distances(data), data[0].taxa(), sets, constraint)
}

pub(crate) fn joined(mut d: Vec<f64>, taxa: usize, sets: usize, constraint: Option<&Constraint>) -> Tree {
    assert!(taxa >= 3, "an unrooted tree has at least three taxa");
    let mut variance = d.clone();
    let mut tree = Tree::new(taxa, sets);
    // What is left to be joined: rows of `d`, and the half-edges that wait for a branch.
    let mut rows: Vec<usize> = (0..taxa).collect();
    let mut halves: Vec<HalfEdge> = (0..taxa).map(|t| tree.tip(t)).collect();
    let mut sums: Vec<f64> = (0..taxa).map(|i| d[i * taxa..(i + 1) * taxa].iter().sum()).collect();
    let branch = |tree: &mut Tree, a: HalfEdge, b: HalfEdge, length: f64| {
        tree.join(a, b, &vec![length.max(MIN_LENGTH); sets]);
    };
    let mut within = constraint.map(Joining::new);
    let mut inner = 0;
    while rows.len() > 3 {
        let left = (rows.len() - 2) as f64;
        let mut best = (f64::INFINITY, 0, 0);
        for (x, &i) in rows.iter().enumerate() {
            let row = &d[i * taxa..(i + 1) * taxa];
            for (y, &j) in rows[..x].iter().enumerate() {
                let score = left * row[j] - sums[i] - sums[j];
                if score < best.0 && within.as_ref().is_none_or(|within| within.may_join(i, j)) {
                    best = (score, y, x);
                }
            }
        }
        let (x, y) = (best.1, best.2);
        let (i, j) = (rows[x], rows[y]);
        let apart = d[i * taxa + j];
        let [to_i, to_j] = [0.5 * (apart + (sums[i] - sums[j]) / left), 0.5 * (apart + (sums[j] - sums[i]) / left)];
        let uncertain = variance[i * taxa + j];
        let others = || rows.iter().copied().filter(|&k| k != i && k != j);
        let difference: f64 = others().map(|k| variance[j * taxa + k] - variance[i * taxa + k]).sum();
        let weight = match uncertain > 0.0 {
            true => (0.5 + difference / (2.0 * left * uncertain)).clamp(0.0, 1.0),
            false => 0.5,
        };
        let ring = tree.inner(inner);
        inner += 1;
        let second = tree.next(ring);
        branch(&mut tree, ring, halves[i], to_i);
        branch(&mut tree, second, halves[j], to_j);
        halves[i] = tree.next(second);
        // The new node takes the row of i.
        let others: Vec<usize> = others().collect();
        sums[i] = 0.0;
        for k in others {
            let [ik, jk] = [d[i * taxa + k], d[j * taxa + k]];
            let new = (weight * (ik - to_i) + (1.0 - weight) * (jk - to_j)).max(0.0);
            sums[k] += new - ik - jk;
            sums[i] += new;
            let [vi, vj] = [variance[i * taxa + k], variance[j * taxa + k]];
            let v = (weight * vi + (1.0 - weight) * vj - weight * (1.0 - weight) * uncertain).max(0.0);
            (d[i * taxa + k], d[k * taxa + i]) = (new, new);
            (variance[i * taxa + k], variance[k * taxa + i]) = (v, v);
        }
        within.iter_mut().for_each(|within| within.join(i, j));
        rows.swap_remove(y);
    }
    let [i, j, k] = [rows[0], rows[1], rows[2]];
    let ring = tree.inner(inner);
    let [ij, ik, jk] = [d[i * taxa + j], d[i * taxa + k], d[j * taxa + k]];
    let second = tree.next(ring);
    let third = tree.next(second);
    branch(&mut tree, ring, halves[i], 0.5 * (ij + ik - jk));
    branch(&mut tree, second, halves[j], 0.5 * (ij + jk - ik));
    branch(&mut tree, third, halves[k], 0.5 * (ik + jk - ij));
    tree
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::random_tree;
    use crate::random::{Purpose, Random};
    use crate::tree::Splits;
    use proptest::prelude::*;

    proptest! {
        /// Distances along a tree give the tree again, with its lengths.
        #[test]
        fn a_tree_is_found_from_its_own_distances(taxa in 3usize..30, seed in any::<u64>()) {
            let tree = random_tree(taxa, &mut Random::new(seed, Purpose::Start, 0));
            let mut d = vec![0.0; taxa * taxa];
            for from in 0..taxa {
                let mut stack = vec![(tree.back(tree.tip(from)), tree.length(tree.tip(from), 0))];
                while let Some((half, far)) = stack.pop() {
                    if tree.is_tip(half) {
                        d[from * taxa + half.index()] = far;
                    } else {
                        stack.extend(tree.others(half).map(|side| (tree.back(side), far + tree.length(side, 0))));
                    }
                }
            }
            let found = joined(d, taxa, 2, None);
            prop_assert!(found.is_valid());
            prop_assert_eq!(Splits::new(&found).distance(&Splits::new(&tree)), 0);
            for tip in 0..taxa {
                let [a, b] = [tree.length(tree.tip(tip), 0), found.length(found.tip(tip), 1)];
                prop_assert!((a - b).abs() < 1e-5 + 1e-9 * a, "{} {}", a, b);
            }
        }
    }
}
