//! Roots: in the middle of the longest path between two tips, or of a branch that is given.

use crate::tree::{HalfEdge, Newick, NewickNode, Tree};

/// For each half-edge that looks at `from`: its node's distance from there, and the half-edge above it.
struct Away {
    order: Vec<HalfEdge>,
    distance: Vec<f64>,
    above: Vec<HalfEdge>,
}

fn away(tree: &Tree, tip: HalfEdge, set: usize) -> Away {
    let order = tree.behind(tree.back(tip));
    let mut found = Away { order, distance: vec![0.0; tree.halves()], above: vec![tip; tree.halves()] };
    found.distance[tree.back(tip).index()] = tree.length(tip, set);
    for &half in found.order.iter().filter(|h| !tree.is_tip(**h)) {
        for side in tree.others(half) {
            let child = tree.back(side).index();
            found.distance[child] = found.distance[half.index()] + tree.length(side, set);
            found.above[child] = half;
        }
    }
    found
}

impl Away {
    fn farthest_tip(&self, tree: &Tree) -> HalfEdge {
        let tips = self.order.iter().copied().filter(|h| tree.is_tip(*h));
        // The first of equals, so that the picture does not depend on how `max_by` breaks ties.
        let mut best = self.order[0];
        let mut most = -1.0;
        for tip in tips {
            if self.distance[tip.index()] > most {
                (best, most) = (tip, self.distance[tip.index()]);
            }
        }
        best
    }
}

/// The tree, rooted in the middle of its longest path, with the lengths of one set. `label` gives labels of inner
/// branches; it is asked for either half-edge of a branch. Children with fewer tips come first.
pub fn rooted_at_midpoint(
    tree: &Tree,
    names: &[String],
    set: usize,
    label: &dyn Fn(HalfEdge) -> Option<String>,
) -> Newick {
    let start = away(tree, HalfEdge(0), set).farthest_tip(tree);
    let from_start = away(tree, start, set);
    let mut half = from_start.farthest_tip(tree);
    let middle = 0.5 * from_start.distance[half.index()];
    let above = |half: HalfEdge| from_start.above[half.index()];
    while above(half) != start && from_start.distance[above(half).index()] > middle {
        half = above(half);
    }
    let below = (from_start.distance[half.index()] - middle).clamp(0.0, tree.length(half, set));
    rooted_at(tree, names, set, label, half, below)
}

/// As [`rooted_at_midpoint`], in the branch of `half`, whose node is so far `below` the root.
pub fn rooted_at(
    tree: &Tree,
    names: &[String],
    set: usize,
    label: &dyn Fn(HalfEdge) -> Option<String>,
    half: HalfEdge,
    below: f64,
) -> Newick {
    let length = tree.length(half, set);
    let mut nodes = vec![NewickNode { place: (1, 1), ..NewickNode::default() }];
    let mut todo = vec![(tree.back(half), 0, length - below), (half, 0, below)];
    let mut root_label = (!tree.is_tip(half) && !tree.is_tip(tree.back(half))).then(|| label(half)).flatten();
    while let Some((half, parent, length)) = todo.pop() {
        let node = nodes.len();
        let tip = tree.is_tip(half);
        let text = match (tip, parent) {
            (true, _) => Some(names[half.index()].clone()),
            // Both nodes below the root are ends of one branch; its label is written once.
            (false, 0) => root_label.take(),
            (false, _) => label(half),
        };
        let length = Some(length);
        nodes.push(NewickNode { parent: Some(parent), children: vec![], label: text, length, place: (1, 1) });
        nodes[parent].children.push(node);
        if !tip {
            let mut sides = tree.others(half).map(|side| (tree.back(side), node, tree.length(side, set)));
            sides.reverse();
            todo.extend(sides);
        }
    }
    let mut tips: Vec<usize> = nodes.iter().map(|n| usize::from(n.children.is_empty())).collect();
    for node in (1..nodes.len()).rev() {
        if let Some(parent) = nodes[node].parent {
            tips[parent] += tips[node];
        }
    }
    nodes.iter_mut().for_each(|n| n.children.sort_by_key(|&child| tips[child]));
    Newick { nodes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_in_the_middle_of_the_longest_path() {
        let names: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        let tree = Newick::parse("(a:1,b:2,(c:3,d:7):1);").unwrap();
        let tree = Tree::from_newick(&tree, &names, None).unwrap();
        let rooted = rooted_at_midpoint(&tree, &names, 0, &|_| Some("9".to_owned()));
        // From b to d are 10: the root is 5 from d.
        assert_eq!(rooted.to_text(), "(d:5,(c:3,(a:1,b:2)9:1):2);");
        let again = Tree::from_newick(&rooted, &names, None).unwrap();
        assert!(again.is_valid());
    }

    #[test]
    fn trees_without_lengths_have_a_root_too() {
        let names: Vec<String> = (0..9).map(|i| format!("t{i}")).collect();
        let tree = Newick::parse("((t0,t1),(t2,t3),((t4,t5),(t6,(t7,t8))));").unwrap();
        let tree = Tree::from_newick(&tree, &names, Some(0.0)).unwrap();
        let rooted = rooted_at_midpoint(&tree, &names, 0, &|_| None);
        assert_eq!(rooted.nodes.iter().filter(|n| n.children.is_empty()).count(), 9);
        assert!(Tree::from_newick(&rooted, &names, None).unwrap().is_valid());
    }
}
