//! A block with addresses, row by row.

use multigrain_program::RawView;

/// The contiguous rows of a block in a parent memory, in the order in which they lie densely in a child: address and bytes of
/// each.
pub fn rows(block: &RawView) -> impl Iterator<Item = (*mut u8, usize)> + use<> {
    let (shape, size) = (block.shape(), block.element().size_bytes());
    let (dims, strides) = (shape.dims(), block.strides());
    let outer = dims.len().saturating_sub(1);
    let row_bytes = (dims.last().copied().unwrap_or(1) * size) as usize;
    // The outer dimensions, the last one first: lengths, and bytes from one index to the next.
    let steps: Vec<(u64, u64)> = (0..outer).rev().map(|d| (dims[d], strides[d] as u64 * size)).collect();
    let count = if row_bytes == 0 { 0 } else { dims[..outer].iter().product() };
    let first = block.pointer();
    (0..count).map(move |number: u64| {
        let mut rest = number;
        let skip: u64 = steps
            .iter()
            .map(|&(len, bytes)| {
                let index = rest % len;
                rest /= len;
                index * bytes
            })
            .sum();
        (first.wrapping_add(skip as usize), row_bytes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use multigrain_program::{ElementType, Region, Shape};

    #[test]
    fn rows_lie_where_the_elements_do() {
        let whole = RawView::dense(std::ptr::null_mut(), ElementType::F32, Shape::new(&[4, 5, 6]));
        let found = |start: &[u64], len: &[u64]| -> Vec<(usize, usize)> {
            let part = whole.part(&Region::new(start, len)).unwrap();
            rows(&part).map(|(address, bytes)| (address.addr(), bytes)).collect()
        };
        let at = |i: u64, j: u64, k: u64| 4 * (30 * i + 6 * j + k) as usize;
        assert_eq!(found(&[1, 2, 3], &[2, 2, 2]), [at(1, 2, 3), at(1, 3, 3), at(2, 2, 3), at(2, 3, 3)].map(|a| (a, 8)));
        assert_eq!(found(&[0, 0, 0], &[4, 5, 6]).len(), 20);
        let line = RawView::dense(std::ptr::null_mut(), ElementType::U8, Shape::new(&[7]));
        assert_eq!(rows(&line).map(|(address, bytes)| (address.addr(), bytes)).collect::<Vec<_>>(), [(0, 7)]);
    }
}
