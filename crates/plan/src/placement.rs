//! Pass "placement": which child runs what.
//!
//! Calls that write the same block form a chain and stay together, so that a partial result never travels between
//! siblings.

use crate::dependence::Dependence;

/// What the pass decides.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    /// Chain of each call. Chains are numbered in the order of their first calls.
    pub chain_of: Vec<u32>,
    /// Number of chains.
    pub chains: usize,
    /// Child of each chain.
    pub child_of_chain: Vec<u32>,
    /// Whether no call depends on a call of another chain.
    pub independent: bool,
}

impl Placement {
    /// The child that runs a call.
    pub fn child_of(&self, call: usize) -> usize {
        self.child_of_chain[self.chain_of[call] as usize] as usize
    }
}

/// Places calls, whose predicted times are `seconds`, on `children` children.
pub fn placement(dependence: &Dependence, seconds: &[f64], children: usize) -> Placement {
    let weights: Vec<[f64; 1]> = seconds.iter().map(|&seconds| [seconds]).collect();
    placed(dependence, &weights, children, |group, weight, child_of_chain| {
        assign(group, |chain| weight[chain as usize][0], children, child_of_chain);
    })
}

/// Places calls on children that differ, where they take each its own time: of chains of one depth the longest first, each to
/// the child that is done with it first.
pub(crate) fn by_completion<const N: usize>(dependence: &Dependence, seconds: &[[f64; N]]) -> Placement {
    placed(dependence, seconds, N, |group, weight, child_of_chain| {
        let least = |chain: u32| weight[chain as usize].iter().copied().fold(f64::INFINITY, f64::min);
        let mut longest_first = group.to_vec();
        longest_first.sort_by(|&a, &b| least(b).total_cmp(&least(a)).then(a.cmp(&b)));
        let mut load = [0.0; N];
        for chain in longest_first {
            let weight = &weight[chain as usize];
            let done = |child: usize| load[child] + weight[child];
            let child = (0..N).min_by(|&a, &b| done(a).total_cmp(&done(b))).unwrap_or(0);
            load[child] += weight[child];
            child_of_chain[chain as usize] = child as u32;
        }
    })
}

/// Finds chains, and has those of each depth, which can run side by side, assigned by what they weigh on each child.
fn placed<const N: usize>(
    dependence: &Dependence,
    seconds: &[[f64; N]],
    children: usize,
    mut assign: impl FnMut(&[u32], &[[f64; N]], &mut [u32]),
) -> Placement {
    let (chain_of, chains) = chains(dependence);
    let mut independent = true;
    // Longest path in calls that leads to the chain's first call: chains of one depth can run side by side.
    let mut depth_of_call = vec![0u32; chain_of.len()];
    let mut depth = vec![u32::MAX; chains];
    let mut weight = vec![[0.0; N]; chains];
    for call in 0..chain_of.len() {
        let chain = chain_of[call] as usize;
        for p in &dependence.predecessors[call] {
            let crosses = chain_of[p.call as usize] != chain_of[call];
            independent &= !crosses;
            let step = depth_of_call[p.call as usize] + u32::from(crosses);
            depth_of_call[call] = depth_of_call[call].max(step);
        }
        if depth[chain] == u32::MAX {
            depth[chain] = depth_of_call[call];
        }
        weight[chain].iter_mut().zip(seconds[call]).for_each(|(weight, seconds)| *weight += seconds);
    }
    let mut child_of_chain = vec![0u32; chains];
    let mut by_depth: Vec<u32> = if children > 1 { (0..chains as u32).collect() } else { Vec::new() };
    by_depth.sort_by_key(|&c| (depth[c as usize], c));
    for group in by_depth.chunk_by(|&a, &b| depth[a as usize] == depth[b as usize]) {
        assign(group, &weight, &mut child_of_chain);
    }
    Placement { chain_of, chains, child_of_chain, independent }
}

fn chains(dependence: &Dependence) -> (Vec<u32>, usize) {
    let calls = dependence.uses.len();
    let mut parent: Vec<u32> = (0..calls as u32).collect();
    fn root(parent: &mut [u32], mut c: u32) -> u32 {
        while parent[c as usize] != c {
            parent[c as usize] = parent[parent[c as usize] as usize];
            c = parent[c as usize];
        }
        c
    }
    let mut writer_of: Vec<u32> = vec![u32::MAX; dependence.blocks.len()];
    for (call, uses) in dependence.uses.iter().enumerate() {
        for used in uses.iter().filter(|u| u.access.writes()) {
            let writer = &mut writer_of[used.block as usize];
            if *writer == u32::MAX {
                *writer = call as u32;
            } else {
                let (a, b) = (root(&mut parent, *writer), root(&mut parent, call as u32));
                parent[a.max(b) as usize] = a.min(b);
            }
        }
    }
    let mut number = vec![u32::MAX; calls];
    let mut chain_of = vec![0; calls];
    let mut chains = 0;
    for call in 0..calls as u32 {
        let r = root(&mut parent, call) as usize;
        if number[r] == u32::MAX {
            number[r] = chains;
            chains += 1;
        }
        chain_of[call as usize] = number[r];
    }
    (chain_of, chains as usize)
}

/// How much longer than the best balance the longest child may take for the sake of neighbours, which share blocks.
const FOR_NEIGHBOURS: f64 = 1.0 / 0.98;

/// Consecutive chains to one child where that balances, since neighbours share blocks: equal shares, or as many as each has time
/// for. Else longest first to the child with least (Graham 1969).
fn assign(group: &[u32], weight: impl Fn(u32) -> f64, children: usize, child_of_chain: &mut [u32]) {
    let total: f64 = group.iter().map(|&c| weight(c)).sum();
    let mut load = vec![0.0; children];
    let mut before = 0.0;
    for (i, &c) in group.iter().enumerate() {
        let w = weight(c);
        let share = if total > 0.0 { (before + w / 2.0) / total } else { (i as f64 + 0.5) / group.len() as f64 };
        let child = ((share * children as f64) as usize).min(children - 1);
        child_of_chain[c as usize] = child as u32;
        load[child] += w;
        before += w;
    }
    if group.len() > 4096 {
        return;
    }
    let longest = |load: &[f64]| load.iter().fold(0.0, |a: f64, &b| a.max(b));
    let mut longest_first = group.to_vec();
    longest_first.sort_by(|&a, &b| weight(b).total_cmp(&weight(a)).then(a.cmp(&b)));
    let mut lpt = vec![0.0f64; children];
    let choice: Vec<u32> = longest_first
        .iter()
        .map(|&c| {
            let child = (0..children).min_by(|&a, &b| lpt[a].total_cmp(&lpt[b])).unwrap_or(0);
            lpt[child] += weight(c);
            child as u32
        })
        .collect();
    let most = longest(&lpt) * FOR_NEIGHBOURS;
    if longest(&load) <= most {
        return;
    }
    let (mut child, mut has) = (0, 0.0);
    let consecutive = group.iter().map(|&c| {
        let w = weight(c);
        if has + w > most {
            (child, has) = (child + 1, 0.0);
        }
        has += w;
        child
    });
    let consecutive: Vec<u32> = consecutive.collect();
    let (chosen, by) = if (child as usize) < children { (group, consecutive) } else { (&longest_first[..], choice) };
    chosen.iter().zip(by).for_each(|(&c, child)| child_of_chain[c as usize] = child);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Children of chains of these weights, and the longest child's load.
    fn assigned(weights: &[f64], children: usize) -> (Vec<u32>, f64) {
        let group: Vec<u32> = (0..weights.len() as u32).collect();
        let mut child_of_chain = vec![0; weights.len()];
        assign(&group, |chain| weights[chain as usize], children, &mut child_of_chain);
        let mut load = vec![0.0; children];
        child_of_chain.iter().zip(weights).for_each(|(&child, weight)| load[child as usize] += weight);
        (child_of_chain, load.into_iter().fold(0.0, f64::max))
    }

    #[test]
    fn neighbours_stay_together_where_the_last_ones_are_shorter() {
        // 23 columns of 128 tiles on a thousand nodes, the last of which is narrower.
        let mut weights = vec![1.0; 22 * 128];
        weights.resize(23 * 128, 0.947);
        let (children, longest) = assigned(&weights, 1000);
        assert!(children.is_sorted(), "consecutive chains are apart");
        assert!(longest <= 3.0 + 1e-9, "{longest}");
    }

    #[test]
    fn what_cannot_stay_together_is_balanced() {
        let (children, longest) = assigned(&[3.0, 1.0, 3.0, 1.0, 1.0, 3.0], 3);
        assert_eq!(longest, 4.0, "{children:?}");
        let (children, longest) = assigned(&[4.0, 2.0, 3.0, 3.0], 2);
        assert_eq!((children, longest), (vec![0, 0, 1, 1], 6.0));
        let (children, longest) = assigned(&[4.0, 3.0, 2.0, 3.0], 2);
        assert_eq!((children, longest), (vec![0, 1, 0, 1], 6.0));
    }
}
