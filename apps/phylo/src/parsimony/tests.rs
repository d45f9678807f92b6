use super::*;
use crate::alignment::{Alignment, DataType};
use crate::random::Purpose;
use proptest::prelude::*;

fn patterns(taxa: usize, letters: &[u8], data: DataType) -> Patterns {
    let alphabet: &[u8] = if data == DataType::Dna { b"AAACCGTR-" } else { b"AARNDKKX" };
    let sites = letters.len() / taxa;
    let row = |t: usize| (0..sites).map(|s| alphabet[letters[t * sites + s] as usize % alphabet.len()]).collect();
    let names = (0..taxa).map(|t| t.to_string()).collect();
    Patterns::new(&Alignment { names, rows: (0..taxa).map(row).collect() }, 0..sites, data)
}

/// Sankoff's dynamic programme for one site, all changes costing one.
fn sankoff(tree: &Tree, patterns: &Patterns, p: usize) -> u64 {
    let (states, masks) = (patterns.data_type.states(), patterns.data_type.masks());
    fn costs(tree: &Tree, half: HalfEdge, tip: &dyn Fn(usize) -> Vec<u64>) -> Vec<u64> {
        if tree.is_tip(half) {
            return tip(half.index());
        }
        let mut sum = vec![0; tip(0).len()];
        for side in tree.others(half) {
            let below = costs(tree, tree.back(side), tip);
            for (i, s) in sum.iter_mut().enumerate() {
                *s += below.iter().enumerate().map(|(j, c)| c + u64::from(i != j)).min().unwrap();
            }
        }
        sum
    }
    let tip = |t: usize| -> Vec<u64> {
        let mask = masks[patterns.tips[t][p] as usize];
        (0..states).map(|s| if mask >> s & 1 == 1 { 0 } else { 1000 }).collect()
    };
    let below = costs(tree, tree.back(HalfEdge(0)), &tip);
    let cost = |i: usize| below.iter().enumerate().map(|(j, c)| c + u64::from(i != j)).min().unwrap();
    tip(0).iter().enumerate().map(|(i, c)| c + cost(i)).min().unwrap()
}

proptest! {
    #[test]
    fn costs_are_those_of_dynamic_programming(
        seed in any::<u64>(), taxa in 4usize..12, letters in prop::collection::vec(any::<u8>(), 12 * 30),
    ) {
        let parts = [patterns(taxa, &letters, DataType::Dna), patterns(taxa, &letters, DataType::Protein)];
        let mut parsimony = Parsimony::new(&[&parts[0], &parts[1]]);
        let tree = parsimony.start_tree(&mut Random::new(seed, Purpose::Start, 0), 1);
        prop_assert!(tree.is_valid());
        let expected: u64 = parts.iter().flat_map(|part| {
            (0..part.len()).map(|p| sankoff(&tree, part, p) * u64::from(part.weights[p]))
        }).sum();
        prop_assert_eq!(parsimony.cost(&tree), expected);
        // The cost of an insertion is the difference of the costs of two trees.
        let root = tree.inner(0);
        let subtree = tree.back(root);
        let mut moved = tree.clone();
        for half in moved.behind(subtree).into_iter().rev().filter(|&half| !tree.is_tip(half)) {
            parsimony.combine(&moved, half);
        }
        let pruned = moved.prune(root);
        parsimony.fill_both(&moved, pruned.ends);
        let mut places = moved.behind(pruned.ends[0]);
        places.extend(moved.behind(pruned.ends[1]).into_iter().skip(1));
        let costs: Vec<u64> = places.iter().map(|&p| parsimony.insertion_cost(&moved, subtree, p)).collect();
        let totals: Vec<u64> = places.iter().map(|&p| {
            let mut whole = moved.clone();
            whole.regraft(root, [p, whole.back(p)], [&[0.1], &[0.1]]);
            Parsimony::new(&[&parts[0], &parts[1]]).cost(&whole)
        }).collect();
        for i in 0..places.len() {
            prop_assert_eq!(totals[i] as i64 - totals[0] as i64, costs[i] as i64 - costs[0] as i64);
        }
        // The tree is a local optimum: no subtree of it has a cheaper place.
        prop_assert!(totals.iter().all(|&t| t >= expected));
    }
}
