//! Unrooted trees from Newick and to it.

use super::{HalfEdge, Newick, NewickNode, Tree};
use std::collections::HashMap;

/// A tree that does not fit the alignment, or is not an unrooted binary tree with lengths. Places are line and column in
/// the Newick text.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TreeError {
    /// A tip that the alignment does not have.
    #[error("line {}, column {}: taxon '{name}' is not in the alignment", place.0, place.1)]
    Unknown {
        /// As it is written.
        name: String,
        /// Line and column.
        place: (usize, usize),
    },
    /// A tip that is there twice.
    #[error("line {}, column {}: taxon '{name}' is in the tree twice", place.0, place.1)]
    Twice {
        /// As it is written.
        name: String,
        /// Line and column.
        place: (usize, usize),
    },
    /// A taxon that the tree does not have.
    #[error("taxon '{name}' of the alignment is not in the tree{}", others(*more))]
    Absent {
        /// The first of them.
        name: String,
        /// How many others.
        more: usize,
    },
    /// A node with another number of neighbours than three.
    #[error("line {}, column {}: {what}; an unrooted binary tree is needed", place.0, place.1)]
    Degree {
        /// How many there are, in words.
        what: String,
        /// Line and column.
        place: (usize, usize),
    },
    /// A branch without a length.
    #[error("line {}, column {}: the branch has no length; every branch needs one here", place.0, place.1)]
    NoLength {
        /// Line and column.
        place: (usize, usize),
    },
    /// A branch with a negative length.
    #[error("line {}, column {}: the branch length {length} is negative", place.0, place.1)]
    Negative {
        /// As it is written.
        length: f64,
        /// Line and column.
        place: (usize, usize),
    },
    /// Fewer than three taxa.
    #[error("the tree has {taxa} taxa; an unrooted tree needs at least three")]
    Few {
        /// How many there are.
        taxa: usize,
    },
}

fn others(more: usize) -> String {
    if more == 0 { String::new() } else { format!(" (nor are {more} others)") }
}

/// The taxa of an alignment, of which a tree names some, each once.
pub(crate) struct Taxa<'a> {
    taxon_of: HashMap<&'a str, usize>,
    seen: Vec<bool>,
}

impl<'a> Taxa<'a> {
    pub(crate) fn new(names: &'a [String]) -> Taxa<'a> {
        let taxon_of = names.iter().enumerate().map(|(taxon, name)| (name.as_str(), taxon)).collect();
        Taxa { taxon_of, seen: vec![false; names.len()] }
    }

    /// The taxon that a tip names.
    ///
    /// # Errors
    /// It is none of them, or was named before.
    pub(crate) fn taxon(&mut self, tip: &NewickNode) -> Result<usize, TreeError> {
        let (name, place) = (tip.label.clone().unwrap_or_default(), tip.place);
        match self.taxon_of.get(name.as_str()) {
            None => Err(TreeError::Unknown { name, place }),
            Some(&taxon) if std::mem::replace(&mut self.seen[taxon], true) => Err(TreeError::Twice { name, place }),
            Some(&taxon) => Ok(taxon),
        }
    }
}

impl Tree {
    /// The unrooted tree of a Newick tree with one set of branch lengths. Tip t is the taxon `names[t]`. A root with two
    /// branches is dissolved. Branches without a length get `default_length`, or are refused where it is `None`.
    ///
    /// # Errors
    /// Names that do not match, nodes that do not have three neighbours, lengths negative or missing.
    pub fn from_newick(newick: &Newick, names: &[String], default_length: Option<f64>) -> Result<Tree, TreeError> {
        let mut taxa = Taxa::new(names);
        // For each node the half-edge that looks at its parent.
        let mut up = vec![HalfEdge(0); newick.nodes.len()];
        for (i, node) in newick.nodes.iter().enumerate() {
            check_degree(i, node)?;
            if node.children.is_empty() {
                up[i] = HalfEdge(taxa.taxon(node)? as u32);
            }
        }
        let absent = taxa.seen.iter().filter(|s| !**s).count();
        if let Some(first) = taxa.seen.iter().position(|s| !s) {
            return Err(TreeError::Absent { name: names[first].clone(), more: absent - 1 });
        }
        if names.len() < 3 {
            return Err(TreeError::Few { taxa: names.len() });
        }
        let mut tree = Tree::new(names.len(), 1);
        let mut inner = 0;
        for i in (0..newick.nodes.len()).rev() {
            let children = &newick.nodes[i].children;
            if children.is_empty() {
                continue;
            }
            let length = |child: usize| length(&newick.nodes[child], default_length);
            if i == 0 && children.len() == 2 {
                let sum = length(children[0])? + length(children[1])?;
                tree.join(up[children[0]], up[children[1]], &[sum]);
                continue;
            }
            let first = tree.inner(inner);
            inner += 1;
            up[i] = first;
            let mut at = if i == 0 { first } else { tree.next(first) };
            for &child in children {
                tree.join(at, up[child], &[length(child)?]);
                at = tree.next(at);
            }
        }
        Ok(tree)
    }

    /// The tree as Newick with the lengths of one set, rooted at the inner node next to taxon 0, so that its root has
    /// three branches. `label` gives labels (supports) of inner branches: it is asked for the half-edge that looks towards
    /// the root.
    pub fn to_newick(&self, names: &[String], set: usize, label: &dyn Fn(HalfEdge) -> Option<String>) -> Newick {
        let mut nodes = vec![NewickNode::default()];
        let root = self.back(HalfEdge(0));
        let mut todo: Vec<(HalfEdge, usize)> = vec![];
        let children_of = |half: HalfEdge, node: usize, todo: &mut Vec<(HalfEdge, usize)>| {
            let [a, b] = self.others(half);
            todo.extend([(self.back(b), node), (self.back(a), node)]);
        };
        children_of(root, 0, &mut todo);
        todo.push((HalfEdge(0), 0));
        while let Some((half, parent)) = todo.pop() {
            let node = nodes.len();
            let tip = self.is_tip(half);
            nodes.push(NewickNode {
                parent: Some(parent),
                children: vec![],
                label: if tip { Some(names[half.index()].clone()) } else { label(half) },
                length: Some(self.length(half, set)),
                place: (1, 1),
            });
            nodes[parent].children.push(node);
            if !tip {
                children_of(half, node, &mut todo);
            }
        }
        Newick { nodes }
    }
}

fn check_degree(i: usize, node: &NewickNode) -> Result<(), TreeError> {
    let expected: &[usize] = if i == 0 { &[2, 3] } else { &[0, 2] };
    if expected.contains(&node.children.len()) {
        return Ok(());
    }
    let n = node.children.len();
    let what = match (i, n) {
        (0, _) => format!("the root has {n} branches"),
        (_, 1) => "a node has a single branch below it".to_owned(),
        _ => format!("a node has {n} branches below it"),
    };
    Err(TreeError::Degree { what, place: node.place })
}

fn length(node: &NewickNode, default: Option<f64>) -> Result<f64, TreeError> {
    match node.length.or(default) {
        None => Err(TreeError::NoLength { place: node.place }),
        Some(length) if length < 0.0 => Err(TreeError::Negative { length, place: node.place }),
        Some(length) => Ok(length),
    }
}
