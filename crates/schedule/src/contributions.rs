//! The canonical tree of a reduction whose contributions come one after the other.
//!
//! A group combines by [`Span`](crate::Span): who contributes is a rank. A program combines what the parts of a split
//! contribute, in the order of an axis, and does so as the contributions come. It is the same tree, the one that [`check`](crate::check)
//! proves every reduce schedule to combine by: contribution `i` stands where rank `i` does, and a node is named by its first
//! contribution.
//!
//! ```text
//!             [0..5)
//!            /      \
//!        [0..4)      |
//!        /    \      |
//!    [0..2) [2..4)   |
//!     / \    / \     |
//!    0   1  2   3    4
//! ```

/// The pairs (left, right) of nodes, each named by its first contribution, that are to be combined, in order, as soon
/// as contribution `i` of `count` is there: the node of each pair is complete then.
///
/// ```
/// use multigrain_schedule::contributions::merges;
///
/// assert_eq!(merges(3, 5).collect::<Vec<_>>(), [(2, 3), (0, 2)]);
/// assert_eq!(merges(4, 5).collect::<Vec<_>>(), [(0, 4)]);
/// ```
pub fn merges(i: u64, count: u64) -> impl Iterator<Item = (u64, u64)> {
    let complete = (0..i.trailing_ones()).map(move |level| (i + 1 - (2 << level), i + 1 - (1 << level)));
    let mut end = if i + 1 == count { count } else { 0 };
    let rest = std::iter::from_fn(move || {
        // `end` without its lowest bit is where the last node of what is left begins.
        let right = end & end.wrapping_sub(1);
        end = right;
        (right != 0).then(|| (right & (right - 1), right))
    });
    complete.chain(rest)
}

/// How many nodes to the left of contribution `i` are not combined yet when it comes.
pub fn depth(i: u64) -> usize {
    i.count_ones() as usize
}

/// The largest [`depth`] among `count` contributions.
pub fn depth_max(count: u64) -> usize {
    count.max(1).ilog2() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;

    /// The tree that a group of `count` ranks combines by.
    fn by_spans(span: Span, leaves: &[String]) -> String {
        match span.parts() {
            None => leaves[span.first as usize].clone(),
            Some((left, right)) => format!("({}{})", by_spans(left, leaves), by_spans(right, leaves)),
        }
    }

    fn tree(leaves: &[String]) -> String {
        by_spans(Span::whole(leaves.len() as u32), leaves)
    }

    fn by_merges(leaves: Vec<String>) -> String {
        let count = leaves.len() as u64;
        let mut nodes: Vec<Option<String>> = vec![None; leaves.len()];
        for (i, leaf) in leaves.into_iter().enumerate() {
            let before = nodes.iter().flatten().count();
            assert_eq!(before, depth(i as u64));
            assert!(before <= depth_max(count));
            nodes[i] = Some(leaf);
            for (left, right) in merges(i as u64, count) {
                let right = nodes[right as usize].take().unwrap();
                let left = nodes[left as usize].as_mut().unwrap();
                *left = format!("({left}{right})");
            }
        }
        assert_eq!(nodes.iter().flatten().count(), 1);
        nodes[0].take().unwrap()
    }

    fn leaves(count: usize) -> Vec<String> {
        (0..count).map(|i| format!(" {i} ")).collect()
    }

    #[test]
    fn merges_make_the_canonical_tree() {
        for count in 1..200 {
            assert_eq!(by_merges(leaves(count)), tree(&leaves(count)), "{count} contributions");
        }
    }

    #[test]
    fn blocks_of_a_power_of_two_are_nodes() {
        for count in 1..70 {
            let whole = tree(&leaves(count));
            for block in [1, 2, 4, 8, 16, 32, 64] {
                let blocks = leaves(count).chunks(block).map(|b| by_merges(b.to_vec())).collect();
                assert_eq!(by_merges(blocks), whole, "{count} contributions in blocks of {block}");
            }
        }
    }
}
