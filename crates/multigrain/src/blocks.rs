//! Which of a program's blocks are marked, and which marked ones share elements with a block: in logarithmic time.

use multigrain_program::{Arg, Call, DynTask, Region};
use std::sync::Arc;

/// Blocks of one array are halved again and again, along the dimension in which they are spread most; each node knows the
/// region around its blocks.
struct Node {
    around: Region,
    /// Two nodes, or blocks with [`BLOCK`].
    children: [u32; 2],
    parent: u32,
}

/// Of a child that is a block.
const BLOCK: u32 = 1 << 31;
const NONE: u32 = u32::MAX;

/// The blocks, which may be as many as a program's calls, and how they lie.
struct Tree {
    /// Sorted: the place of a block is its number.
    blocks: Vec<Arg>,
    nodes: Vec<Node>,
    /// For each block the node above it.
    parents: Vec<u32>,
    /// For each array its root.
    roots: Vec<(u32, u32)>,
}

impl Tree {
    /// Builds what lies above the blocks of a list; gives it as a child.
    fn build(&mut self, list: &mut [u32], parent: u32) -> u32 {
        if let [block] = list {
            self.parents[*block as usize] = parent;
            return *block | BLOCK;
        }
        let region = |block: u32| self.blocks[block as usize].region;
        let rank = region(list[0]).rank();
        let (mut start, mut end, mut last) = (vec![u64::MAX; rank], vec![0; rank], vec![0; rank]);
        for &block in &*list {
            for d in 0..rank {
                start[d] = start[d].min(region(block).start()[d]);
                last[d] = last[d].max(region(block).start()[d]);
                end[d] = end[d].max(region(block).end(d));
            }
        }
        // How far they are spread along each dimension, in lengths of the first.
        let first = region(list[0]);
        let spread = |d: usize| (last[d] - start[d]) / first.len()[d].max(1);
        let along = (0..rank).max_by_key(|&d| (spread(d), last[d] - start[d])).unwrap_or(0);
        let middle = list.len() / 2;
        list.select_nth_unstable_by_key(middle, |&block| (region(block).start()[along], block));
        let len: Vec<u64> = start.iter().zip(&end).map(|(start, end)| end - start).collect();
        let number = self.nodes.len() as u32;
        self.nodes.push(Node { around: Region::new(&start, &len), children: [NONE; 2], parent });
        let (left, right) = list.split_at_mut(middle);
        self.nodes[number as usize].children = [self.build(left, number), self.build(right, number)];
        number
    }
}

/// A set over blocks that are known from the beginning.
pub(crate) struct Blocks {
    tree: Arc<Tree>,
    is_marked: Vec<bool>,
    /// How many blocks below each node are marked.
    marked: Vec<u32>,
}

impl Blocks {
    /// A set, empty at first, over these blocks.
    pub(crate) fn new(blocks: impl IntoIterator<Item = Arg>) -> Blocks {
        let mut blocks: Vec<Arg> = blocks.into_iter().filter(|block| !block.region.is_empty()).collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks.shrink_to_fit();
        let mut list: Vec<u32> = (0..blocks.len() as u32).collect();
        let (nodes, parents) = (Vec::with_capacity(blocks.len()), vec![NONE; blocks.len()]);
        let mut tree = Tree { blocks, nodes, parents, roots: Vec::new() };
        let mut rest = &mut list[..];
        while let Some(&first) = rest.first() {
            let array = tree.blocks[first as usize].array;
            let of_array = rest.partition_point(|&block| tree.blocks[block as usize].array == array);
            let (of_array, others) = rest.split_at_mut(of_array);
            let root = tree.build(of_array, NONE);
            tree.roots.push((array, root));
            rest = others;
        }
        Blocks::over(Arc::new(tree))
    }

    /// Another set over the same blocks, empty at first.
    pub(crate) fn another(&self) -> Blocks {
        Blocks::over(self.tree.clone())
    }

    fn over(tree: Arc<Tree>) -> Blocks {
        let (is_marked, marked) = (vec![false; tree.blocks.len()], vec![0; tree.nodes.len()]);
        Blocks { tree, is_marked, marked }
    }

    /// How many blocks there are.
    pub(crate) fn len(&self) -> usize {
        self.tree.blocks.len()
    }

    /// The number of a block.
    pub(crate) fn number(&self, block: &Arg) -> Option<u32> {
        self.tree.blocks.binary_search(block).ok().map(|number| number as u32)
    }

    /// The block of a number.
    pub(crate) fn block(&self, number: u32) -> &Arg {
        &self.tree.blocks[number as usize]
    }

    /// Whether a block is marked.
    pub(crate) fn is_marked(&self, number: u32) -> bool {
        self.is_marked[number as usize]
    }

    /// Marks a block, or takes its mark.
    pub(crate) fn set(&mut self, number: u32, marked: bool) {
        if std::mem::replace(&mut self.is_marked[number as usize], marked) == marked {
            return;
        }
        let mut node = self.tree.parents[number as usize];
        while node != NONE {
            let count = &mut self.marked[node as usize];
            *count = if marked { *count + 1 } else { *count - 1 };
            node = self.tree.nodes[node as usize].parent;
        }
    }

    /// The marked blocks that share elements with a block.
    pub(crate) fn marked_around(&self, block: &Arg) -> Vec<u32> {
        let mut found = Vec::new();
        let root = self.tree.roots.binary_search_by_key(&block.array, |(array, _)| *array);
        let mut open: Vec<u32> = root.map(|at| self.tree.roots[at].1).into_iter().collect();
        while let Some(child) = open.pop() {
            if child & BLOCK != 0 {
                let number = child ^ BLOCK;
                if self.is_marked(number) && self.block(number).region.intersects(&block.region) {
                    found.push(number);
                }
                continue;
            }
            let node = &self.tree.nodes[child as usize];
            if self.marked[child as usize] > 0 && node.around.intersects(&block.region) {
                open.extend(node.children);
            }
        }
        found
    }
}

/// The blocks that calls write.
pub(crate) fn written<'a>(tasks: &'a [Arc<dyn DynTask>], calls: &'a [Call]) -> impl Iterator<Item = Arg> + 'a {
    let uses = |call: &'a Call| call.args.iter().zip(tasks[call.task as usize].params());
    calls.iter().flat_map(uses).filter(|(_, param)| param.access.writes()).map(|(arg, _)| *arg)
}

/// Whether two blocks share elements.
pub(crate) fn overlap(a: &Arg, b: &Arg) -> bool {
    a.array == b.array && a.region.intersects(&b.region)
}

/// The block that a call names.
pub(crate) fn block_of(calls: &[Call], call: u32, argument: u32) -> Option<Arg> {
    calls.get(call as usize)?.args.get(argument as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use multigrain_plan::testing::Rng;

    #[test]
    fn what_is_found_is_what_a_plain_list_finds() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let rank = rng.range(1, 3) as usize;
            let any = |rng: &mut Rng| {
                let start: Vec<u64> = (0..rank).map(|_| rng.below(20)).collect();
                let len: Vec<u64> = (0..rank).map(|_| rng.range(1, 9)).collect();
                Arg { array: rng.below(2) as u32, region: Region::new(&start, &len) }
            };
            let all: Vec<Arg> = (0..rng.range(1, 60)).map(|_| any(&mut rng)).collect();
            let mut set = Blocks::new(all.iter().copied());
            let mut plain: Vec<Arg> = Vec::new();
            for _ in 0..100 {
                let block = *rng.pick(&all).unwrap();
                let number = set.number(&block).unwrap();
                assert_eq!(*set.block(number), block);
                let marked = rng.percent(60);
                set.set(number, marked);
                plain.retain(|other| *other != block);
                plain.extend(marked.then_some(block));
                let asked = any(&mut rng);
                let mut found: Vec<Arg> = set.marked_around(&asked).into_iter().map(|n| *set.block(n)).collect();
                let overlaps = |b: &&Arg| b.array == asked.array && b.region.intersects(&asked.region);
                let mut expected: Vec<Arg> = plain.iter().filter(overlaps).copied().collect();
                found.sort();
                expected.sort();
                assert_eq!(found, expected, "seed {seed}");
            }
        }
    }

    #[test]
    fn a_look_at_a_large_grid_meets_few_nodes() {
        // A thousand by a thousand tiles, all marked: a plain list would be looked at a million times.
        let tile = |i: u64, j: u64| Arg { array: 0, region: Region::new(&[8 * i, 8 * j], &[8, 8]) };
        let mut set = Blocks::new((0..300).flat_map(|i| (0..300).map(move |j| tile(i, j))));
        (0..90_000).for_each(|number| set.set(number, true));
        assert_eq!(set.marked_around(&tile(17, 211)).len(), 1);
        let column = Arg { array: 0, region: Region::new(&[0, 8 * 5], &[2400, 8]) };
        assert_eq!(set.marked_around(&column).len(), 300);
    }
}
