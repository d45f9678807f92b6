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
    }
}
