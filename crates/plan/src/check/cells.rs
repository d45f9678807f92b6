//! Blocks divided into cells: the parts of arrays inside which no block begins or ends.
//!
//! All elements of a cell are read and written together, so one version a cell stands for the versions of all its
//! elements. An array is cut in two at the median of the block boundaries that lie inside it, and so on, until each
//! part is either wholly inside or wholly outside of every block. Cuts are local: blocks elsewhere do not divide.

use multigrain_program::{Arg, ArrayDecl, RANK_MAX, Region};
use rustc_hash::FxHashMap;

/// Distinct blocks, numbered.
#[derive(Default)]
pub(super) struct Blocks {
    numbers: FxHashMap<Arg, u32>,
    list: Vec<Arg>,
}

impl Blocks {
    pub(super) fn number(&mut self, arg: Arg) -> u32 {
        *self.numbers.entry(arg).or_insert_with(|| {
            self.list.push(arg);
            self.list.len() as u32 - 1
        })
    }

    /// Divides; every block lies inside its array.
    pub(super) fn divide(self, arrays: &[ArrayDecl]) -> Cells {
        let mut of_array: Vec<Vec<u32>> = vec![Vec::new(); arrays.len()];
        for (number, block) in self.list.iter().enumerate() {
            of_array[block.array as usize].push(number as u32);
        }
        let mut division =
            Division { blocks: &self.list, array: 0, covering: Vec::new(), pairs: Vec::new(), parts: Vec::new() };
        for (array, blocks) in of_array.into_iter().enumerate() {
            division.array = array as u32;
            division.divide(Region::whole(arrays[array].shape), blocks);
        }
        let Division { pairs, parts, .. } = division;
        let members = Lists::new(self.list.len(), pairs);
        Cells { members, parts }
    }
}

/// The cells and which blocks consist of which.
pub(super) struct Cells {
    members: Lists,
    parts: Vec<Arg>,
}

impl Cells {
    /// The cells of a block, ascending.
    pub(super) fn of(&self, block: u32) -> &[u32] {
        self.members.get(block)
    }

    /// Number of cells.
    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Where a cell lies.
    pub(super) fn part(&self, cell: u32) -> &Arg {
        &self.parts[cell as usize]
    }
}

/// Many short lists of numbers in one piece of memory.
pub(super) struct Lists {
    first: Vec<usize>,
    items: Vec<u32>,
}

impl Lists {
    /// From pairs (list, item); items of a list keep their order.
    pub(super) fn new(lists: usize, pairs: Vec<(u32, u32)>) -> Lists {
        let mut first = vec![0usize; lists + 1];
        for &(list, _) in &pairs {
            first[list as usize + 1] += 1;
        }
        for i in 0..lists {
            first[i + 1] += first[i];
        }
        let mut next = first.clone();
        let mut items = vec![0; pairs.len()];
        for (list, item) in pairs {
            items[next[list as usize]] = item;
            next[list as usize] += 1;
        }
        Lists { first, items }
    }

    pub(super) fn get(&self, list: u32) -> &[u32] {
        &self.items[self.first[list as usize]..self.first[list as usize + 1]]
    }
}

struct Division<'a> {
    blocks: &'a [Arg],
    array: u32,
    /// Blocks that contain the part being divided.
    covering: Vec<u32>,
    /// (block, cell)
    pairs: Vec<(u32, u32)>,
    parts: Vec<Arg>,
}

impl Division<'_> {
    /// `blocks` intersect `part` and are not yet known to contain it.
    fn divide(&mut self, part: Region, mut blocks: Vec<u32>) {
        let known = self.covering.len();
        blocks.retain(|&b| {
            let contains = self.blocks[b as usize].region.contains(&part);
            if contains {
                self.covering.push(b);
            }
            !contains
        });
        if blocks.is_empty() {
            if !self.covering.is_empty() {
                let cell = self.parts.len() as u32;
                self.parts.push(Arg { array: self.array, region: part });
                self.pairs.extend(self.covering.iter().map(|&block| (block, cell)));
            }
        } else {
            let (d, at) = self.cut(&part, &blocks);
            let (low, high) = halves(&part, d, at);
            let inside = |half: &Region| -> Vec<u32> {
                blocks.iter().copied().filter(|&b| self.blocks[b as usize].region.intersects(half)).collect()
            };
            let (in_low, in_high) = (inside(&low), inside(&high));
            drop(blocks);
            self.divide(low, in_low);
            self.divide(high, in_high);
        }
        self.covering.truncate(known);
    }

    /// The dimension with the most boundaries inside the part, and the median of them. Each block has one, since it
    /// intersects the part and does not contain it.
    fn cut(&self, part: &Region, blocks: &[u32]) -> (usize, u64) {
        let mut boundaries: [Vec<u64>; RANK_MAX] = Default::default();
        for &b in blocks {
            let region = &self.blocks[b as usize].region;
            for (d, boundaries) in boundaries.iter_mut().enumerate().take(part.rank()) {
                for at in [region.start()[d], region.end(d)] {
                    if part.start()[d] < at && at < part.end(d) {
                        boundaries.push(at);
                    }
                }
            }
        }
        let d = (0..part.rank()).max_by_key(|&d| boundaries[d].len()).unwrap_or(0);
        let middle = boundaries[d].len() / 2;
        (d, *boundaries[d].select_nth_unstable(middle).1)
    }
}

fn halves(part: &Region, d: usize, at: u64) -> (Region, Region) {
    let (mut start, mut low, mut high) = (part.start().to_vec(), part.len().to_vec(), part.len().to_vec());
    low[d] = at - start[d];
    high[d] = part.end(d) - at;
    let first = Region::new(&start, &low);
    start[d] = at;
    (first, Region::new(&start, &high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use multigrain_program::{ElementType, Role, Shape};

    #[test]
    fn blocks_are_exactly_their_cells() {
        let arrays =
            [ArrayDecl { name: "a".into(), element: ElementType::U8, shape: Shape::new(&[7, 9]), role: Role::InOut }];
        let mut blocks = Blocks::default();
        let mut regions = Vec::new();
        for (start, len) in
            [([0, 0], [7, 9]), ([1, 2], [3, 4]), ([2, 3], [5, 1]), ([6, 8], [1, 1]), ([1, 2], [3, 4]), ([0, 4], [7, 2])]
        {
            let region = Region::new(&start, &len);
            regions.push((region, blocks.number(Arg { array: 0, region })));
        }
        assert_eq!(regions[1].1, regions[4].1);
        let cells = blocks.divide(&arrays);
        for (region, block) in &regions {
            let parts: Vec<Region> = cells.of(*block).iter().map(|&c| cells.part(c).region).collect();
            assert_eq!(parts.iter().map(Region::elements).sum::<u64>(), region.elements());
            assert!(parts.iter().all(|p| region.contains(p)));
        }
        for a in 0..cells.len() as u32 {
            let part = cells.part(a).region;
            assert!((0..a).all(|b| !part.intersects(&cells.part(b).region)));
            assert!(regions.iter().all(|(r, _)| r.contains(&part) || !r.intersects(&part)));
        }
    }
}
