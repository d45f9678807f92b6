//! Which of a program's blocks are marked, and which marked ones share elements with a block: in logarithmic time.

use multigrain_program::{Arg, Region};
use rustc_hash::FxHashMap;

/// Blocks of one array are halved again and again, along the dimension in which they are spread most; each node knows the
/// region around its blocks and how many of them are marked.
struct Node {
    around: Region,
    marked: u32,
    /// For a leaf the block, otherwise the right child; the left one follows the node.
    next: u32,
    is_leaf: bool,
    parent: u32,
}

/// A set over blocks that are known from the beginning.
pub(crate) struct Blocks {
    blocks: Vec<Arg>,
    numbers: FxHashMap<Arg, u32>,
    nodes: Vec<Node>,
    /// For each block its leaf.
    leaves: Vec<u32>,
    /// For each array its root.
    roots: FxHashMap<u32, u32>,
    is_marked: Vec<bool>,
}

const NONE: u32 = u32::MAX;

impl Blocks {
    /// A set, empty at first, over these blocks.
    pub(crate) fn new(blocks: impl IntoIterator<Item = Arg>) -> Blocks {
        let mut numbers = FxHashMap::default();
        let mut all: Vec<Arg> = Vec::new();
        let mut of_array: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for block in blocks.into_iter().filter(|block| !block.region.is_empty()) {
            numbers.entry(block).or_insert_with(|| {
                all.push(block);
                of_array.entry(block.array).or_default().push(all.len() as u32 - 1);
                all.len() as u32 - 1
            });
        }
        let is_marked = vec![false; all.len()];
        let leaves = vec![NONE; all.len()];
        let nodes = Vec::with_capacity(2 * all.len());
        let mut set = Blocks { blocks: all, numbers, nodes, leaves, roots: FxHashMap::default(), is_marked };
        for (array, mut list) in of_array {
            let root = set.build(&mut list, NONE);
            set.roots.insert(array, root);
        }
        set
    }

    fn build(&mut self, list: &mut [u32], parent: u32) -> u32 {
        let number = self.nodes.len() as u32;
        let region = |block: u32| self.blocks[block as usize].region;
        if let [block] = list {
            self.nodes.push(Node { around: region(*block), marked: 0, next: *block, is_leaf: true, parent });
            self.leaves[*block as usize] = number;
            return number;
        }
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
        let around = Region::new(&start, &len);
        self.nodes.push(Node { around, marked: 0, next: NONE, is_leaf: false, parent });
        let (left, right) = list.split_at_mut(middle);
        self.build(left, number);
        let right = self.build(right, number);
        self.nodes[number as usize].next = right;
        number
    }

    /// How many blocks there are.
    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// The number of a block.
    pub(crate) fn number(&self, block: &Arg) -> Option<u32> {
        self.numbers.get(block).copied()
    }

    /// The block of a number.
    pub(crate) fn block(&self, number: u32) -> &Arg {
        &self.blocks[number as usize]
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
        let mut node = self.leaves[number as usize];
        while node != NONE {
            let at = &mut self.nodes[node as usize];
            at.marked = if marked { at.marked + 1 } else { at.marked - 1 };
            node = at.parent;
        }
    }

    /// The marked blocks that share elements with a block.
    pub(crate) fn marked_around(&self, block: &Arg) -> Vec<u32> {
        let mut found = Vec::new();
        let mut open: Vec<u32> = self.roots.get(&block.array).copied().into_iter().collect();
        while let Some(number) = open.pop() {
            let node = &self.nodes[number as usize];
            if node.marked == 0 || !node.around.intersects(&block.region) {
                continue;
            }
            match node.is_leaf {
                true => found.push(node.next),
                false => open.extend([number + 1, node.next]),
            }
        }
        found
    }
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
