//! Identical sequences: left out of searches, put back into trees beside their originals.

use crate::tree::{Newick, NewickNode};

/// Puts taxa back into a tree: for each taxon of `names` the position of its representative in `kept_names`. A copy
/// becomes a sister of its original; both hang at branches of no length from where the original was, which leaves every
/// likelihood as it is.
pub fn with_copies(tree: &Newick, kept_names: &[String], names: &[String], representatives: &[usize]) -> Newick {
    let mut groups: Vec<Vec<&String>> = vec![Vec::new(); kept_names.len()];
    names.iter().zip(representatives).for_each(|(name, &kept)| groups[kept].push(name));
    let position: std::collections::HashMap<&str, usize> =
        kept_names.iter().enumerate().map(|(i, n)| (n.as_str(), i)).collect();
    let mut nodes: Vec<NewickNode> = tree.nodes.clone();
    for tip in 0..tree.nodes.len() {
        let name = match (&tree.nodes[tip].label, tree.nodes[tip].children.is_empty()) {
            (Some(name), true) => name,
            _ => continue,
        };
        let Some(group) = position.get(name.as_str()).map(|&p| &groups[p]).filter(|g| g.len() > 1) else { continue };
        // A ladder: every inner node has the next copy and what is left.
        let length = nodes[tip].length.map(|_| 0.0);
        let mut at = tip;
        for (i, copy) in group.iter().enumerate().take(group.len() - 1) {
            nodes[at].label = None;
            let mut below = vec![Some((*copy).clone()), None];
            if i + 2 == group.len() {
                below[1] = Some(group[i + 1].clone());
            }
            for label in below {
                let node = nodes.len();
                nodes.push(NewickNode { parent: Some(at), children: vec![], label, length, place: (1, 1) });
                nodes[at].children.push(node);
            }
            at = nodes.len() - 1;
        }
    }
    Newick { nodes }
}

/// The tree of the taxa that are kept alone: what [`with_copies`] has put back is taken out again, and with it whatever other
/// taxa there are. Nodes with a single branch below them are dissolved, their lengths added up.
pub fn only(tree: &Newick, is_kept: &dyn Fn(&str) -> bool) -> Newick {
    // From the tips upwards: what stands for each node, if anything does, with the length above it.
    let mut kept: Vec<Option<usize>> = vec![None; tree.nodes.len()];
    let mut lengths: Vec<Option<f64>> = tree.nodes.iter().map(|node| node.length).collect();
    for (i, node) in tree.nodes.iter().enumerate().rev() {
        let mut below = node.children.iter().filter_map(|&child| kept[child]);
        kept[i] = match (node.children.is_empty(), below.next(), below.next()) {
            (true, ..) => node.label.as_deref().is_some_and(is_kept).then_some(i),
            (_, None, _) => None,
            (_, Some(single), None) => {
                lengths[single] = match (lengths[single], node.length) {
                    (Some(a), Some(b)) => Some(a + b),
                    (a, b) => a.or(b),
                };
                Some(single)
            }
            _ => Some(i),
        };
    }
    let mut nodes = Vec::new();
    let mut todo: Vec<(usize, Option<usize>)> =
        kept.first().copied().flatten().map(|root| (root, None)).into_iter().collect();
    while let Some((from, parent)) = todo.pop() {
        let node = nodes.len();
        let NewickNode { label, place, .. } = tree.nodes[from].clone();
        let length = parent.and(lengths[from]);
        nodes.push(NewickNode { parent, children: vec![], label, length, place });
        if let Some(parent) = parent {
            nodes[parent].children.push(node);
        }
        todo.extend(
            tree.nodes[from].children.iter().rev().filter_map(|&child| kept[child]).map(|child| (child, Some(node))),
        );
    }
    Newick { nodes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_hang_beside_their_originals() {
        let strings = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let tree = Newick::parse("(a:1,b:2,(c:3,d:4):5);").unwrap();
        let names = strings(&["a", "b", "b2", "c", "b3", "d", "d2"]);
        let full = with_copies(&tree, &strings(&["a", "b", "c", "d"]), &names, &[0, 1, 1, 2, 1, 3, 3]);
        assert_eq!(full.to_text(), "(a:1,(b:0,(b2:0,b3:0):0):2,(c:3,(d:0,d2:0):4):5);");
        assert_eq!(Newick::parse(&full.to_text()).unwrap().to_text(), full.to_text());
        let same = with_copies(&tree, &strings(&["a", "b", "c", "d"]), &strings(&["a", "b", "c", "d"]), &[0, 1, 2, 3]);
        assert_eq!(same, tree);
        assert_eq!(only(&full, &|name| ["a", "b", "c", "d"].contains(&name)).to_text(), tree.to_text());
    }

    #[test]
    fn other_taxa_are_left_out() {
        let of =
            |text: &str, kept: &[&str]| only(&Newick::parse(text).unwrap(), &|name| kept.contains(&name)).to_text();
        assert_eq!(of("((a:1,b:2)9:0.5,(c:3,(d:4,e:5)8:6)7:0.5);", &["a", "c", "e"]), "(a:1.5,(c:3,e:11)7:0.5);");
        assert_eq!(of("((a:1,b:2)9:0.5,(c:3,(d:4,e:5)8:6)7:0.5);", &["c", "d", "e"]), "(c:3,(d:4,e:5)8:6)7;");
        assert_eq!(of("((a,b),c,d);", &["a", "c", "d"]), "(a,c,d);");
    }
}
