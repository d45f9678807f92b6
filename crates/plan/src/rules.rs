//! What edges that enforce their rules can move: see [`multigrain_machine::TransferRules::strict`].

use multigrain_machine::TransferRules;
use multigrain_program::{ArrayDecl, DynTask, Region};
use smallvec::SmallVec;

/// How short and long commands can move a block between its array and a slot, where its runs lie one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Movable {
    /// Not at all: some of its runs begin elsewhere within a unit of the rules' alignment than the others, on one side only.
    No,
    /// Into a slot that begins as far into a unit as the block does in its array ([`skew_bytes`]).
    Skewed,
    /// Into a slot at an aligned address.
    Aligned,
}

/// How blocks can be moved under these rules that begin and are long, along each dimension of an array, as one of a list
/// says, given with the array's extent there: the worst of them.
pub(crate) fn movable_blocks<'a>(
    rules: &TransferRules,
    size_bytes: u64,
    dims: impl DoubleEndedIterator<Item = (u64, &'a [(u64, u64)])>,
) -> Movable {
    let unit = rules.alignment_bytes.max(1);
    // Steps from row to row modulo the unit, in the array and, for each length of the blocks, in their slots.
    let mut stride = size_bytes % unit;
    let mut dense: SmallVec<[u64; 8]> = SmallVec::from_slice(&[stride]);
    let mut found = Movable::Aligned;
    let product = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(unit)) as u64;
    for (extent, blocks) in dims.rev() {
        if blocks.iter().any(|&(_, len)| len > 1) && dense.iter().any(|&dense| dense != stride) {
            return Movable::No;
        }
        if blocks.iter().any(|&(start, _)| product(start, stride) != 0) {
            found = Movable::Skewed;
        }
        dense = dense.iter().flat_map(|&dense| blocks.iter().map(move |&(_, len)| product(dense, len))).collect();
        dense.sort_unstable();
        dense.dedup();
        stride = product(stride, extent);
    }
    found
}

/// Where blocks along a dimension begin, and how long they are.
pub(crate) type Ends = SmallVec<[(u64, u64); 5]>;

/// Beginnings and lengths of the first blocks along an axis and of the last. Those between begin in a unit where the second
/// and the third do. A window that reaches beyond two blocks is cut in more lengths than these: a plan is proved in the end
/// whatever is told here.
pub(crate) fn ends(extent: u64, length: u64) -> Ends {
    let length = length.max(1);
    let count = extent.div_ceil(length);
    let numbers = (0..count.min(3)).chain(count.saturating_sub(2).max(3)..count);
    numbers.map(|number| (number * length, length.min(extent - number * length))).collect()
}

/// How a block can be moved under these rules.
pub(crate) fn movable(rules: &TransferRules, region: &Region, array: &ArrayDecl) -> Movable {
    let blocks: SmallVec<[(u64, u64); 4]> = region.start().iter().copied().zip(region.len().iter().copied()).collect();
    let dims = array.shape.dims().iter().zip(&blocks).map(|(&extent, block)| (extent, std::slice::from_ref(block)));
    movable_blocks(rules, array.element.size_bytes(), dims)
}

/// How far into a unit of the rules' alignment a block begins in its array, which begins with one.
pub(crate) fn skew_bytes(rules: &TransferRules, region: &Region, array: &ArrayDecl) -> u64 {
    let first = region.start().iter().zip(array.shape.dims()).fold(0, |at, (start, len)| at * len + start);
    first * array.element.size_bytes() % rules.alignment_bytes.max(1)
}

/// Of what a block's elements along an axis should be multiples, where the task says one thing: so that rows keep within units
/// of so many bytes, another as well.
pub(crate) fn multiple(unit_bytes: u64, task: &dyn DynTask, said: u64) -> u64 {
    let smallest = task.params().iter().map(|param| param.element.size_bytes()).min().unwrap_or(1);
    let (said, unit) = (said.max(1), (unit_bytes / smallest).max(1));
    let (mut divisor, mut rest) = (said, unit);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (said / divisor).saturating_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use multigrain_program::{ElementType, Role, Shape};

    #[test]
    fn runs_are_movable_where_both_sides_are_alike() {
        let rules = TransferRules { alignment_bytes: 16, strict: true, ..TransferRules::default() };
        let array = |dims: &[u64]| ArrayDecl {
            name: "a".into(),
            element: ElementType::F32,
            shape: Shape::new(dims),
            role: Role::Input,
        };
        let can = |dims: &[u64], start: &[u64], len: &[u64]| {
            let (region, array) = (Region::new(start, len), array(dims));
            (movable(&rules, &region, &array), skew_bytes(&rules, &region, &array))
        };
        let (aligned, no) = ((Movable::Aligned, 0), (Movable::No, 0));
        assert_eq!(can(&[1001], &[0], &[1001]), aligned);
        assert_eq!(can(&[1001], &[4], &[997]), aligned);
        assert_eq!(can(&[1001], &[3], &[8]), (Movable::Skewed, 12));
        // Rows of 344 bytes in rows of 16384; of 336.
        assert_eq!(can(&[4096, 4096], &[0, 0], &[256, 86]), no);
        assert_eq!(can(&[4096, 4096], &[0, 84], &[256, 84]), aligned);
        assert_eq!(can(&[4096, 4096], &[3, 0], &[1, 86]), aligned, "one row is one run");
        // Whole rows of an odd length follow each other on both sides; they begin in a unit every fourth row.
        assert_eq!(can(&[1001, 1001], &[4, 0], &[7, 1001]), aligned);
        assert_eq!(can(&[1001, 1001], &[1, 0], &[7, 1001]), (Movable::Skewed, 4));
        assert_eq!(can(&[9, 9, 9], &[0, 0, 0], &[9, 4, 8]), no);
        assert_eq!(can(&[8, 8, 8], &[1, 2, 4], &[7, 6, 4]), aligned);
    }

    #[test]
    fn the_first_blocks_and_the_last_tell_of_all() {
        let rules = TransferRules { alignment_bytes: 16, strict: true, ..TransferRules::default() };
        let mut found = [0; 3];
        // An array with a halo around each of its dimensions, cut into blocks with theirs.
        for (rows, columns, before, after) in
            [(5, 23, 0, 0), (6, 24, 1, 2), (13, 32, 4, 4), (9, 17, 2, 0), (4, 40, 0, 8)]
        {
            let dims = [rows + before + after, columns + before + after];
            let array =
                ArrayDecl { name: "a".into(), element: ElementType::F32, shape: Shape::new(&dims), role: Role::Input };
            let halo = |(start, len)| (start, before + len + after);
            for (height, width) in (1..=rows).flat_map(|height| (1..=columns).map(move |width| (height, width))) {
                let all = |extent: u64, length: u64| {
                    (0..extent).step_by(length as usize).map(move |at| halo((at, length.min(extent - at))))
                };
                let each = all(rows, height).flat_map(|row| all(columns, width).map(move |column| (row, column)));
                let region = |((i, m), (j, n))| Region::new(&[i, j], &[m, n]);
                let worst = each.map(|block| movable(&rules, &region(block), &array)).min().unwrap();
                let ends = [(rows, height), (columns, width)]
                    .map(|(extent, length)| ends(extent, length).into_iter().map(halo).collect::<Ends>());
                let told = movable_blocks(&rules, 4, dims.into_iter().zip(ends.iter().map(|blocks| &blocks[..])));
                assert_eq!(told, worst, "{dims:?} in {height} x {width} with {before} and {after} around");
                found[worst as usize] += 1;
            }
        }
        assert!(found.iter().all(|&count| count > 10), "{found:?}");
    }
}
