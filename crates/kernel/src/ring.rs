//! Where in a ring the bytes lie that were written and not read yet. The kernel counts bytes from its beginning on and never
//! wraps the counts; the ring's size is a power of two.

use std::ops::Range;

/// The parts of a ring of `size` bytes, in order, that hold what was written from `tail` to `head`: the second is empty
/// unless the ring's end lies between. No more than the ring holds, the newest, whatever the counts.
pub(crate) fn parts(size: usize, tail: u64, head: u64) -> [Range<usize>; 2] {
    let length = usize::try_from(head.wrapping_sub(tail)).unwrap_or(usize::MAX).min(size);
    if length == 0 {
        return [0..0, 0..0];
    }
    let first = (head.wrapping_sub(length as u64) % size as u64) as usize;
    let until = (first + length).min(size);
    [first..until, 0..length - (until - first)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Bytes that are written behind each other come out in that order, wherever the ring's end lies.
        #[test]
        fn what_was_written_is_read_in_order(
            shift in 4_u32..12,
            start in any::<u64>(),
            lengths in proptest::collection::vec(0.0..1.0_f64, 1..40),
        ) {
            let size = 1_usize << shift;
            let mut ring = vec![0_u8; size];
            let (mut head, mut next) = (start, 0_u8);
            for part in lengths {
                let (tail, length) = (head, (part * size as f64) as usize);
                let mut written = Vec::new();
                for _ in 0..length {
                    ring[(head % size as u64) as usize] = next;
                    written.push(next);
                    (head, next) = (head.wrapping_add(1), next.wrapping_add(1));
                }
                let [first, second] = parts(size, tail, head);
                prop_assert_eq!([&ring[first], &ring[second]].concat(), written);
            }
        }

        #[test]
        fn no_counts_lead_out_of_the_ring(shift in 4_u32..12, tail in any::<u64>(), head in any::<u64>()) {
            let size = 1_usize << shift;
            let [first, second] = parts(size, tail, head);
            prop_assert!(first.end <= size && second.end <= size);
            prop_assert!(first.len() + second.len() <= size);
        }
    }

    #[test]
    fn the_end_of_the_ring_divides_what_lies_across_it() {
        assert_eq!(parts(64, 60, 70), [60..64, 0..6]);
        assert_eq!(parts(64, 60, 64), [60..64, 0..0]);
        assert_eq!(parts(64, 5, 5), [0..0, 0..0]);
        // More than the ring holds: what is left of it.
        assert_eq!(parts(64, 0, 70), [6..64, 0..6]);
    }
}
