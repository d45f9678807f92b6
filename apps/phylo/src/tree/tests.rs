use super::*;
use proptest::prelude::*;

fn names(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("t{i}")).collect()
}

/// A tree grown by putting taxon t into the branch that `choices` says, with distinct lengths.
pub(crate) fn grown(choices: &[u32]) -> Tree {
    let taxa = choices.len() + 3;
    let mut tree = Tree::new(taxa, 1);
    let center = tree.inner(0);
    let [b, c] = tree.others(center);
    for (i, half) in [center, b, c].into_iter().enumerate() {
        tree.join(half, HalfEdge(i as u32), &[0.1 + i as f64 / 7.0]);
    }
    for (i, &choice) in choices.iter().enumerate() {
        let branches: Vec<HalfEdge> = tree.branches().collect();
        let at = branches[choice as usize % branches.len()];
        let half = tree.length(at, 0) / 2.0;
        let root = tree.inner(i + 1);
        tree.join(root, HalfEdge(i as u32 + 3), &[0.03 * (i + 1) as f64]);
        let ends = [at, tree.back(at)];
        tree.regraft(root, ends, [&[half], &[half]]);
    }
    tree
}

proptest! {
    #[test]
    fn newick_gives_the_same_tree_again(choices in prop::collection::vec(any::<u32>(), 0..40)) {
        let tree = grown(&choices);
        prop_assert!(tree.is_valid());
        let names = names(tree.taxa());
        let text = tree.to_newick(&names, 0, &|_| None).to_text();
        let again = Tree::from_newick(&Newick::parse(&text).unwrap(), &names, None).unwrap();
        prop_assert!(again.is_valid());
        prop_assert_eq!(Splits::new(&tree).distance(&Splits::new(&again)), 0);
        prop_assert_eq!(again.to_newick(&names, 0, &|_| None).to_text(), text);
    }

    #[test]
    fn pruning_and_regrafting_keep_trees_valid(
        choices in prop::collection::vec(any::<u32>(), 2..30),
        moves in prop::collection::vec((any::<u32>(), any::<u32>()), 1..20),
    ) {
        let mut tree = grown(&choices);
        for (what, whither) in moves {
            let inner = tree.halves() - tree.taxa();
            let root = HalfEdge((tree.taxa() + what as usize % inner) as u32);
            let before = tree.clone();
            let pruned = tree.prune(root);
            // All branches of the remaining tree.
            let mut places = tree.behind(pruned.ends[0]);
            places.extend(tree.behind(pruned.ends[1]).into_iter().skip(1));
            let at = places[whither as usize % places.len()];
            let ends = [at, tree.back(at)];
            let half = [tree.length(at, 0) / 2.0];
            tree.regraft(root, ends, [&half, &half]);
            prop_assert!(tree.is_valid());
            let moved = tree.clone();
            let again = tree.prune(root);
            prop_assert_eq!(again.ends, ends);
            tree.put_back(&pruned);
            prop_assert_eq!(&tree, &before);
            tree = moved;
        }
    }
}

#[test]
fn splits_of_a_known_tree() {
    let names = names(5);
    let read = |text: &str| Tree::from_newick(&Newick::parse(text).unwrap(), &names, Some(0.1)).unwrap();
    let a = Splits::new(&read("((t0,t1),(t2,(t3,t4)));"));
    let mut sets: Vec<u64> = a.sets.iter().map(|s| s[0]).collect();
    sets.sort_unstable();
    assert_eq!(sets, [0b11000, 0b11100]);
    let b = Splits::new(&read("((t0,t2),t1,(t3,t4));"));
    assert_eq!((a.distance(&b), a.distance(&a)), (2, 0));
}

#[test]
fn quotes_comments_and_a_root_with_two_branches() {
    let names: Vec<String> = ["it's", "a b", "c", "d"].map(str::to_owned).to_vec();
    let text = "[&R] (('it''s':1,\n 'a b':2e-1)95[x[y]]:0.5 , (c:1,d:1):0.25):0 ;";
    let newick = Newick::parse(text).unwrap();
    let tree = Tree::from_newick(&newick, &names, None).unwrap();
    let inner = tree.branches().find(|&h| !tree.is_tip(h) && !tree.is_tip(tree.back(h))).unwrap();
    assert_eq!(tree.length(inner, 0), 0.75);
    assert_eq!(newick.nodes[1].label.as_deref(), Some("95"));
    let written = tree.to_newick(&names, 0, &|_| Some("7".to_owned())).to_text();
    assert_eq!(written, "('it''s':1,'a b':0.2,(c:1,d:1)7:0.75);");
    assert_eq!(Newick::parse(&written).unwrap().to_text(), written);
    assert_eq!(Newick::parse_all(&format!("{text}\n{written}")).unwrap().len(), 2);
}

#[test]
fn wrong_texts_are_refused_with_their_place() {
    let place = |text: &str| Newick::parse(text).map(|_| ()).map_err(|e| (e.line, e.column));
    for (text, at) in [
        ("", (1, 1)),
        ("a;", (1, 1)),
        ("(a,b", (1, 5)),
        ("(a,b)", (1, 6)),
        ("(a,\nb));", (2, 3)),
        ("(a,,b);", (1, 4)),
        ("(a:x,b);", (1, 4)),
        ("(a:,b);", (1, 4)),
        ("(a,b); c", (1, 8)),
        ("(a,'b);", (1, 4)),
        ("(a,[b);", (1, 4)),
        ("(a:nan,b);", (1, 4)),
        ("(a b,c);", (1, 4)),
    ] {
        assert_eq!(place(text), Err(at), "{text}");
    }
}

#[test]
fn trees_that_do_not_fit_are_refused() {
    let names = names(4);
    let read = |text: &str| Tree::from_newick(&Newick::parse(text).unwrap(), &names, None).unwrap_err();
    assert!(matches!(read("(t0:1,t1:1,t9:1,t3:1);"), TreeError::Degree { .. }));
    assert_eq!(read("(t0:1,t1:1,(t9:1,t3:1):1);").to_string(), "line 1, column 13: taxon 't9' is not in the alignment");
    assert!(matches!(read("(t0:1,t1:1,(t1:1,t3:1):1);"), TreeError::Twice { .. }));
    assert_eq!(read("(t0:1,t1:1,t2:1);").to_string(), "taxon 't3' of the alignment is not in the tree");
    assert!(matches!(read("(t0:1,t1,(t2:1,t3:1):1);"), TreeError::NoLength { .. }));
    assert!(matches!(read("(t0:1,t1:-1,(t2:1,t3:1):1);"), TreeError::Negative { .. }));
    assert!(matches!(read("(t0:1,t1:1,((t2:1,t3:1):1):1);"), TreeError::Degree { .. }));
}

#[test]
fn nodes_of_many_branches_are_resolved() {
    let of = |text: &str| {
        let (newick, added) = Newick::parse(text).unwrap().resolved();
        (newick.to_text(), added)
    };
    assert_eq!(of("(a:1,b:2,(c:1,d:1,e:1,f:1)95:2);"), ("(a:1,b:2,(c:1,(d:1,(e:1,f:1):0):0)95:2);".to_owned(), 2));
    assert_eq!(of("(a,b,c,d,e);"), ("(a,b,(c,(d,e)));".to_owned(), 2));
    assert_eq!(of("((a:1,b:2):1,(c:3,d:4):5);"), ("((a:1,b:2):1,(c:3,d:4):5);".to_owned(), 0));
    let names = names(6);
    let (star, _) = Newick::parse("(t0:1,t1:1,t2:1,t3:1,t4:1,t5:1);").unwrap().resolved();
    assert!(Tree::from_newick(&star, &names, None).unwrap().is_valid());
}
