//! Who is whose parent: the trees along which ready signals and contributions go up, go signals and messages down.

use crate::algorithm::Shape;
use crate::topology::{Domain, Topology, members};

/// Trees over all ranks of a group: one, or, where their leaders are going to exchange signals as equals, several.
#[derive(Clone, Debug)]
pub(crate) struct Trees {
    parent: Vec<Option<u32>>,
    children: Vec<Vec<u32>>,
    /// Position among the parent's children.
    position: Vec<u32>,
    leaders: Vec<u32>,
}

impl Trees {
    /// One tree with `root` at its top. With `blade`, one participant of each domain stands between it and the rest:
    /// the root in its own domains, else the first. Participants of other domains come first among the children.
    pub(crate) fn rooted(topology: &Topology, shape: Shape, blade: bool, root: u32) -> Trees {
        let mut trees = Trees::none(topology.size());
        if blade {
            trees.join_domains(topology.root(), 0, root, shape);
        } else {
            let all: Vec<u32> = (0..topology.size()).collect();
            trees.join(&all, root, shape);
        }
        trees.leaders.push(root);
        trees
    }

    /// A tree for each of the outermost domains (the first, going inwards, that have a neighbour), with the domain's
    /// first participant at its top.
    pub(crate) fn of_domains(topology: &Topology, shape: Shape) -> Trees {
        let mut trees = Trees::none(topology.size());
        let mut domain = topology.root();
        while let Domain::Domains(inner) = domain
            && let [only] = &inner[..]
        {
            domain = only;
        }
        match domain {
            Domain::Members(_) => return Trees::rooted(topology, shape, true, 0),
            Domain::Domains(inner) => {
                let mut first = 0;
                for domain in inner {
                    trees.join_domains(domain, first, first, shape);
                    trees.leaders.push(first);
                    first += members(domain);
                }
            }
        }
        trees
    }

    /// Every rank its own leader.
    pub(crate) fn of_single_ranks(n: u32) -> Trees {
        Trees { leaders: (0..n).collect(), ..Trees::none(n) }
    }

    fn none(n: u32) -> Trees {
        let n = n as usize;
        Trees { parent: vec![None; n], children: vec![Vec::new(); n], position: vec![0; n], leaders: Vec::new() }
    }

    pub(crate) fn size(&self) -> u32 {
        self.parent.len() as u32
    }

    pub(crate) fn parent(&self, rank: u32) -> Option<u32> {
        self.parent[rank as usize]
    }

    pub(crate) fn children(&self, rank: u32) -> &[u32] {
        &self.children[rank as usize]
    }

    /// The ranks at the top of a tree.
    pub(crate) fn leaders(&self) -> &[u32] {
        &self.leaders
    }

    /// The bit that `child` has at its parent: children come first.
    pub(crate) fn bit_at_parent(&self, child: u32) -> u32 {
        self.position[child as usize]
    }

    /// The bit that the parent of `child` has at it, and the first bit that is free where there is no parent.
    pub(crate) fn bit_after_children(&self, rank: u32) -> u32 {
        self.children(rank).len() as u32
    }

    /// All ranks, children before their parents.
    pub(crate) fn upwards(&self) -> Vec<u32> {
        let mut order = self.leaders.clone();
        let mut next = 0;
        while next < order.len() {
            order.extend(self.children(order[next]));
            next += 1;
        }
        order.reverse();
        order
    }

    fn adopt(&mut self, parent: u32, child: u32) {
        self.position[child as usize] = self.children(parent).len() as u32;
        self.parent[child as usize] = Some(parent);
        self.children[parent as usize].push(child);
    }

    /// Joins the ranks of `domain`, which begin at `first`, below `leader`, one of them.
    fn join_domains(&mut self, domain: &Domain, first: u32, leader: u32, shape: Shape) {
        match domain {
            Domain::Members(count) => self.join(&(first..first + count).collect::<Vec<_>>(), leader, shape),
            Domain::Domains(inner) => {
                let mut parts = Vec::new();
                let mut at = first;
                for domain in inner {
                    let ranks = at..at + members(domain);
                    at = ranks.end;
                    parts.push((domain, ranks.start, if ranks.contains(&leader) { leader } else { ranks.start }));
                }
                let speakers: Vec<u32> = parts.iter().map(|part| part.2).collect();
                self.join(&speakers, leader, shape);
                for (domain, first, speaker) in parts {
                    self.join_domains(domain, first, speaker, shape);
                }
            }
        }
    }

    /// Joins `ranks`, which ascend, below `leader`, one of them.
    fn join(&mut self, ranks: &[u32], leader: u32, shape: Shape) {
        let others = || ranks.iter().copied().filter(|&rank| rank != leader);
        match shape {
            Shape::AllToOne | Shape::Exchange => others().for_each(|rank| self.adopt(leader, rank)),
            Shape::Tree(degree) => {
                let others: Vec<u32> = others().collect();
                let mut open = vec![(leader, &others[..])];
                while let Some((parent, mut rest)) = open.pop() {
                    for parts in (1..=(degree as usize).min(rest.len())).rev() {
                        let (part, after) = rest.split_at(rest.len().div_ceil(parts));
                        rest = after;
                        self.adopt(parent, part[0]);
                        open.push((part[0], &part[1..]));
                    }
                }
            }
            Shape::Binomial => {
                let mut open = vec![(leader, ranks)];
                while let Some((leader, ranks)) = open.pop() {
                    if ranks.len() < 2 {
                        continue;
                    }
                    let (left, right) = ranks.split_at(crate::order::largest_power_below(ranks.len() as u32) as usize);
                    let (own, other) = if left.contains(&leader) { (left, right) } else { (right, left) };
                    self.adopt(leader, other[0]);
                    open.push((other[0], other));
                    open.push((leader, own));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(trees: &Trees) -> u32 {
        let up = |rank| std::iter::successors(Some(rank), |&r| trees.parent(r)).count() as u32 - 1;
        (0..trees.size()).map(up).max().unwrap()
    }

    /// ceil(log_d n)
    fn log_ceil(n: u32, d: u32) -> u32 {
        (0..).find(|&s| u64::from(d).pow(s) >= u64::from(n)).unwrap()
    }

    #[test]
    fn a_tree_is_no_deeper_than_published() {
        // Gaona et al.: ceil(log_d N) steps up, with domains ceil(log_d N/2) in each.
        for n in 1..=64 {
            for degree in 2..=8 {
                let flat = Topology::flat(n).unwrap();
                let trees = Trees::rooted(&flat, Shape::Tree(degree), false, 0);
                assert!(depth(&trees) <= log_ceil(n, degree), "{n} ranks, degree {degree}");
                assert!((0..n).all(|r| trees.children(r).len() <= degree as usize));
            }
        }
        let blade = Trees::of_domains(&Topology::packed(16, &[2, 8]).unwrap(), Shape::Tree(2));
        assert_eq!((depth(&blade), blade.leaders()), (3, &[0, 8][..]));
    }

    #[test]
    fn every_rank_hangs_below_a_leader_once() {
        let shapes = [Shape::AllToOne, Shape::Tree(1), Shape::Tree(2), Shape::Tree(3), Shape::Binomial];
        for n in 1..=40 {
            let topologies =
                [Topology::flat(n), Topology::packed(n, &[5, 8]), Topology::packed(n, &[2, 4, 5])].map(Result::unwrap);
            for topology in topologies {
                for shape in shapes {
                    for root in 0..n {
                        for trees in [false, true].map(|blade| Trees::rooted(&topology, shape, blade, root)) {
                            let mut order = trees.upwards();
                            assert_eq!(order.last(), Some(&root));
                            order.sort_unstable();
                            assert!(order.into_iter().eq(0..n));
                        }
                    }
                    let mut order = Trees::of_domains(&topology, shape).upwards();
                    order.sort_unstable();
                    assert!(order.into_iter().eq(0..n));
                }
            }
        }
    }

    #[test]
    fn one_link_crosses_to_each_other_domain_and_comes_first() {
        let blade = Topology::packed(16, &[2, 8]).unwrap();
        for shape in [Shape::AllToOne, Shape::Tree(2), Shape::Tree(3), Shape::Binomial] {
            for root in 0..16 {
                let trees = Trees::rooted(&blade, shape, true, root);
                let crossing: Vec<u32> =
                    (0..16).filter(|&r| trees.parent(r).is_some_and(|parent| blade.distance(r, parent) > 0)).collect();
                assert_eq!(crossing, [if root < 8 { 8 } else { 0 }], "{shape}, root {root}");
                assert_eq!(trees.children(root)[0], crossing[0]);
            }
        }
    }
}
