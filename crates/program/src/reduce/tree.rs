//! The fixed tree, as an order of combining. A node stands where its first contribution stood.

/// The pairs (left, right) of nodes, each named by its first contribution, that are to be combined, in order, as soon
/// as contribution `i` of `count` is there: the node of each pair is complete then.
pub(crate) fn merges(i: u64, count: u64) -> impl Iterator<Item = (u64, u64)> {
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
pub(crate) fn depth(i: u64) -> usize {
    i.count_ones() as usize
}

/// The largest [`depth`] among `count` contributions.
pub(crate) fn depth_max(count: u64) -> usize {
    count.max(1).ilog2() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree of the module page of `reduce`, level by level.
    fn by_levels(mut nodes: Vec<String>) -> String {
        while nodes.len() > 1 {
            nodes = nodes
                .chunks(2)
                .map(|pair| match pair {
                    [left, right] => format!("({left}{right})"),
                    _ => pair[0].clone(),
                })
                .collect();
        }
        nodes.swap_remove(0)
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

    #[test]
    fn merges_make_the_tree_of_neighbours() {
        for count in 1..200 {
            let leaves: Vec<String> = (0..count).map(|i| format!(" {i} ")).collect();
            assert_eq!(by_merges(leaves.clone()), by_levels(leaves), "{count} leaves");
        }
    }

    #[test]
    fn blocks_of_a_power_of_two_are_nodes() {
        for count in 1..70 {
            let leaves: Vec<String> = (0..count).map(|i| format!(" {i} ")).collect();
            let whole = by_levels(leaves.clone());
            for block in [1, 2, 4, 8, 16, 32, 64] {
                let blocks = leaves.chunks(block).map(|b| by_merges(b.to_vec())).collect();
                assert_eq!(by_merges(blocks), whole, "{count} leaves in blocks of {block}");
            }
        }
    }
}
