//! The edge between memories that share one address space: there is nothing to move.
//!
//! A child's block *is* a part of the parent's array, so a "transfer" is an address computation: the address of the
//! block's first element and the parent's pitch. Nothing is copied, nothing completes later.

/// A block of a row-major array seen from a child that shares the parent's address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Bytes from the start of the array to the first element of the block.
    pub offset_bytes: u64,
    /// Bytes from one row of the block to the next; the parent's own.
    pub pitch_bytes: u64,
}

impl View {
    /// The block that starts at `row`, `column` of an array with `pitch_bytes` from row to row and elements of
    /// `element_bytes`. `None` when the offset does not fit 64 bits.
    pub fn block(row: u64, column: u64, pitch_bytes: u64, element_bytes: u64) -> Option<View> {
        let offset_bytes = row.checked_mul(pitch_bytes)?.checked_add(column.checked_mul(element_bytes)?)?;
        Some(View { offset_bytes, pitch_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_is_an_address() {
        assert_eq!(View::block(3, 5, 100, 4), Some(View { offset_bytes: 320, pitch_bytes: 100 }));
        assert_eq!(View::block(u64::MAX, 5, 100, 4), None);
    }
}
