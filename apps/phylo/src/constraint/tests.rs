use super::*;
use crate::generate::random_tree_within;
use crate::joining::joined;
use crate::search::random_step;
use crate::tree::{NewickNode, Splits};
use proptest::prelude::*;

fn names(taxa: usize) -> Vec<String> {
    (0..taxa).map(|taxon| format!("t{taxon}")).collect()
}

/// The tree without some of its taxa and inner branches.
fn loosened(tree: &Tree, random: &mut Random) -> Newick {
    let names = names(tree.taxa());
    // At least four taxa stay.
    let first = random.below(tree.taxa() as u64 - 3) as usize;
    let lacks: Vec<bool> =
        (0..tree.taxa()).map(|taxon| !(first..first + 4).contains(&taxon) && random.below(4) == 0).collect();
    let own = only(&tree.to_newick(&names, 0, &|_| None), &|name| !lacks[name[1..].parse::<usize>().unwrap()]);
    let mut nodes: Vec<NewickNode> = Vec::new();
    // Where each node went: those that are dissolved into what is above them.
    let mut to = Vec::new();
    for (i, node) in own.nodes.iter().enumerate() {
        let above = node.parent.map(|parent: usize| to[parent]);
        if i > 0 && !node.children.is_empty() && random.below(2) == 0 {
            to.push(above.unwrap());
            continue;
        }
        let new = nodes.len();
        nodes.push(NewickNode { parent: above, children: vec![], ..node.clone() });
        above.into_iter().for_each(|above| nodes[above].children.push(new));
        to.push(new);
    }
    Newick { nodes }
}

/// The definition: each split of the constraint is one of the tree of its taxa alone.
fn displays(tree: &Tree, constraint: &Newick) -> bool {
    let all = names(tree.taxa());
    let is_there =
        |name: &str| constraint.nodes.iter().any(|n| n.children.is_empty() && n.label.as_deref() == Some(name));
    let own: Vec<String> = all.iter().filter(|name| is_there(name)).cloned().collect();
    let splits = |newick: &Newick| {
        let taxa_below = |node: usize| {
            let mut found = vec![false; own.len()];
            let mut todo = vec![node];
            while let Some(i) = todo.pop() {
                let n = &newick.nodes[i];
                if let (true, Some(name)) = (n.children.is_empty(), &n.label) {
                    found[own.iter().position(|own| own == name).unwrap()] = true;
                }
                todo.extend(&n.children);
            }
            if found[0] {
                found.iter_mut().for_each(|is_there| *is_there = !*is_there);
            }
            found
        };
        let sets = (1..newick.nodes.len()).map(taxa_below);
        sets.filter(|set| (2..=own.len() - 2).contains(&set.iter().filter(|x| **x).count())).collect::<HashSet<_>>()
    };
    let alone = only(&tree.to_newick(&all, 0, &|_| None), &is_there);
    splits(&alone).is_superset(&splits(constraint))
}

fn ends(tree: &Tree, at: HalfEdge) -> [HalfEdge; 2] {
    [at, tree.back(at)]
}

proptest! {
    /// Random trees, trees from distances, and whatever random moves lead to display it; other trees are told from them.
    #[test]
    fn trees_stay_within_a_constraint(taxa in 4usize..25, seed in any::<u64>()) {
        let mut random = Random::new(seed, Purpose::Search, 0);
        let truth = random_tree_within(None, taxa, &mut random);
        let newick = loosened(&truth, &mut random);
        let constraint = Constraint::new(&newick, &names(taxa)).unwrap();
        prop_assert!(displays(&truth, &newick) && constraint.missing(&truth).is_none());
        let any = random_tree_within(None, taxa, &mut random);
        prop_assert_eq!(displays(&any, &newick), constraint.missing(&any).is_none());
        let mut tree = random_tree_within(Some(&constraint), taxa, &mut random);
        prop_assert!(tree.is_valid() && displays(&tree, &newick));
        let mut distances = vec![0.0; taxa * taxa];
        for i in 0..taxa {
            for j in 0..i {
                let distance = random.below(1000) as f64 / 1000.0;
                (distances[i * taxa + j], distances[j * taxa + i]) = (distance, distance);
            }
        }
        let near = joined(distances, taxa, 1, Some(&constraint));
        prop_assert!(near.is_valid() && displays(&near, &newick));
        for _ in 0..10 {
            random_step(&mut tree, &mut random, Some(&constraint));
            prop_assert!(tree.is_valid() && displays(&tree, &newick));
        }
    }

    /// The places of a subtree, and of a taxon that is put into a tree, are just those of trees that display the constraint.
    #[test]
    fn places_are_those_that_may_be(taxa in 5usize..16, seed in any::<u64>()) {
        let mut random = Random::new(seed, Purpose::Search, 1);
        let newick = loosened(&random_tree_within(None, taxa, &mut random), &mut random);
        let constraint = Constraint::new(&newick, &names(taxa)).unwrap();
        let tree = random_tree_within(Some(&constraint), taxa, &mut random);
        let bounds = constraint.bounds(&tree);
        for root in (taxa as u32..tree.halves() as u32).map(HalfEdge) {
            let mut moved = tree.clone();
            let pruned = moved.prune(root);
            let mut places: Vec<HalfEdge> = moved.behind(pruned.ends[0]);
            places.extend(moved.behind(pruned.ends[1]).into_iter().skip(1));
            let found = bounds.places(&moved, pruned.ends, tree.back(root));
            for at in places {
                let mut there = moved.clone();
                there.regraft(root, ends(&moved, at), [&[0.1], &[0.1]]);
                prop_assert_eq!(displays(&there, &newick), found.contains(&at), "{:?} at {:?}", root, at);
            }
            prop_assert_eq!(found.iter().collect::<HashSet<_>>().len(), found.len());
        }
        // The last taxon alone.
        let mut growing = Growing::new(&constraint);
        (0..taxa - 1).for_each(|taxon| growing.add(taxon));
        let last = tree.tip(taxa - 1);
        let mut less = tree.clone();
        let root = less.back(last);
        let pruned = less.prune(root);
        let found = growing.places(&less, HalfEdge(0), taxa - 1);
        for at in less.behind(less.back(HalfEdge(0))) {
            let mut there = less.clone();
            there.regraft(root, ends(&less, at), [&[0.1], &[0.1]]);
            let is_found = found.contains(&at) || found.contains(&less.back(at));
            prop_assert_eq!(displays(&there, &newick), is_found, "{:?} {:?}", pruned.ends, at);
        }
    }

    /// Exchanges are left out just where they would lead out of the constraint, one after the other.
    #[test]
    fn exchanges_are_those_that_may_be(taxa in 4usize..16, seed in any::<u64>()) {
        let mut random = Random::new(seed, Purpose::Search, 2);
        let newick = loosened(&random_tree_within(None, taxa, &mut random), &mut random);
        let constraint = Constraint::new(&newick, &names(taxa)).unwrap();
        let mut tree = random_tree_within(Some(&constraint), taxa, &mut random);
        let mut bounds = constraint.bounds(&tree);
        for _ in 0..3 {
            for half in Splits::new(&tree).branches {
                // Exchanges before may have put a tip there.
                if tree.is_tip(half) || tree.is_tip(tree.back(half)) {
                    continue;
                }
                let which = random.below(2) as usize;
                let mut others = [tree.clone(), tree.clone()];
                for (i, other) in others.iter_mut().enumerate() {
                    let (a, b) = (tree.others(half)[1], tree.others(tree.back(half))[i]);
                    other.join(a, tree.back(b), &[0.1]);
                    other.join(b, tree.back(a), &[0.1]);
                    prop_assert_eq!(displays(other, &newick), !bounds.is_needed(&tree, half));
                }
                if !bounds.is_needed(&tree, half) {
                    tree = others[which].clone();
                    bounds.exchanged(&tree, half);
                    prop_assert_eq!(&bounds.sums, &constraint.bounds(&tree).sums);
                }
            }
        }
    }
}

#[test]
fn wrong_constraints_are_refused() {
    let refused = |text: &str| Constraint::new(&Newick::parse(text).unwrap(), &names(6)).unwrap_err().to_string();
    assert_eq!(refused("((t0,t9),t1,t2);"), "line 1, column 6: taxon 't9' is not in the alignment");
    assert_eq!(refused("((t0,t1),(t1,t2));"), "line 1, column 11: taxon 't1' is in the tree twice");
    assert!(refused("((t0,t1),t2);").contains("of 3 taxa"));
    assert!(refused("(t0);").contains("of 1 taxa"));
    let of = |text: &str| Constraint::new(&Newick::parse(text).unwrap(), &names(6)).unwrap();
    assert_eq!([of("(t0,t1,t2,t3);").splits(), of("((t0,t1),((t2,t3)));").splits()], [0, 1]);
    assert_eq!(of("((t4,t1:2)x,t5,t3);").bytes(), of("(t1,t4,(t3,t5));").bytes());
    assert_ne!(of("((t4,t1),t5,t3);").bytes(), of("((t4,t1),t5,t2);").bytes());
    assert_ne!(of("((t4,t1),t5,t3);").bytes(), of("((t4,t5),t1,t3);").bytes());
}
