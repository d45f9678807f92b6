//! What edges that enforce their rules can move: see [`multigrain_machine::TransferRules::strict`].

use multigrain_machine::TransferRules;
use multigrain_program::{ArrayDecl, DynTask, Region};

/// Whether every contiguous run of a block begins at the same place within a unit of the rules' alignment in its array and
/// in a slot, where runs lie one behind the other from an aligned address on. Then short and long commands can move it.
pub(crate) fn movable(rules: &TransferRules, region: &Region, array: &ArrayDecl) -> bool {
    let (unit, size) = (rules.alignment_bytes.max(1), array.element.size_bytes());
    let (mut stride, mut dense) = (size, size);
    for d in (0..region.rank()).rev() {
        let (start, len, extent) = (region.start()[d], region.len()[d], array.shape.dims()[d]);
        if !(start * stride).is_multiple_of(unit) && start > 0 {
            return false;
        }
        if len > 1 && stride % unit != dense % unit {
            return false;
        }
        (stride, dense) = (stride * extent, dense * len);
    }
    true
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
        let can = |dims: &[u64], start: &[u64], len: &[u64]| movable(&rules, &Region::new(start, len), &array(dims));
        assert!(can(&[1001], &[0], &[1001]) && can(&[1001], &[4], &[997]) && !can(&[1001], &[3], &[8]));
        // Rows of 344 bytes in rows of 16384; of 336.
        assert!(!can(&[4096, 4096], &[0, 0], &[256, 86]) && can(&[4096, 4096], &[0, 84], &[256, 84]));
        assert!(can(&[4096, 4096], &[3, 0], &[1, 86]), "one row is one run");
        // Whole rows of an odd length follow each other on both sides; they begin in a unit every fourth row.
        assert!(can(&[1001, 1001], &[4, 0], &[7, 1001]) && !can(&[1001, 1001], &[1, 0], &[7, 1001]));
        assert!(!can(&[9, 9, 9], &[0, 0, 0], &[9, 4, 8]) && can(&[8, 8, 8], &[1, 2, 4], &[7, 6, 4]));
    }
}
