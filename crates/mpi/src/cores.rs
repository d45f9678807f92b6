//! Which cores of a node each of its ranks computes on.

/// Of cores that as many ranks share, those of one: as many for each, at least one.
pub(crate) fn share(cpus: &[usize], number: usize, sharing: usize) -> Vec<usize> {
    let from = number * cpus.len() / sharing;
    let to = (number + 1) * cpus.len() / sharing;
    cpus[from..to.max(from + 1).min(cpus.len())].to_vec()
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn ranks_of_a_node_share_its_cores() {
        let all = |cores: usize, ranks: usize| -> Vec<Vec<usize>> {
            let cpus: Vec<usize> = (0..cores).map(|core| 2 * core).collect();
            (0..ranks).map(|rank| share(&cpus, rank, ranks)).collect()
        };
        assert_eq!(all(4, 2), [[0, 2], [4, 6]]);
        assert_eq!(all(5, 2), [vec![0, 2], vec![4, 6, 8]]);
        assert_eq!(all(2, 5), [[0], [0], [0], [2], [2]]);
        assert_eq!(all(1, 3), [[0], [0], [0]]);
    }
}
