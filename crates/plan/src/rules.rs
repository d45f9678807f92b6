//! What edges that enforce their rules can move: see [`multigrain_machine::TransferRules::strict`].

use multigrain_machine::TransferRules;
use multigrain_program::{ArrayDecl, DynTask, Region};

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

/// How a block can be moved under these rules.
pub(crate) fn movable(rules: &TransferRules, region: &Region, array: &ArrayDecl) -> Movable {
    let (unit, size) = (rules.alignment_bytes.max(1), array.element.size_bytes());
    let (mut stride, mut dense) = (size, size);
    let mut found = Movable::Aligned;
    for d in (0..region.rank()).rev() {
        let (start, len, extent) = (region.start()[d], region.len()[d], array.shape.dims()[d]);
        if len > 1 && stride % unit != dense % unit {
            return Movable::No;
        }
        if !(start * stride).is_multiple_of(unit) {
            found = Movable::Skewed;
        }
        (stride, dense) = (stride * extent, dense * len);
    }
    found
}

/// How far into a unit of the rules' alignment a block begins in its array, which begins with one.
pub(crate) fn skew_bytes(rules: &TransferRules, region: &Region, array: &ArrayDecl) -> u64 {
    let first = region.start().iter().zip(array.shape.dims()).fold(0, |at, (start, len)| at * len + start);
    first * array.element.size_bytes() % rules.alignment_bytes.max(1)
}

/// Elements of a block along an axis should be multiples of this, so that rows keep within units.
pub(crate) fn quantum(rules: &TransferRules, task: &dyn DynTask) -> u64 {
    let smallest = task.params().iter().map(|param| param.element.size_bytes()).min().unwrap_or(1);
    if rules.strict { (rules.alignment_bytes / smallest).max(1) } else { 1 }
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
}
