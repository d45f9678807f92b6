//! Pass "order": among legal orders, one that moves little.
//!
//! Within a chain the order is the program's. Chains that do not depend on each other may be permuted: after each
//! chain comes the one that shares most bytes with it, so that what it leaves behind is used at once.

use crate::dependence::Dependence;
use crate::placement::Placement;
use rustc_hash::FxHashMap;

/// Beyond this many chains the search for neighbours, quadratic in their number, is not worth its time.
const CHAINS_MAX: usize = 1024;

/// The calls in the program's order.
pub fn program_order(calls: usize) -> Vec<u32> {
    (0..calls as u32).collect()
}

/// The calls with chains permuted so that neighbours share blocks, or `None` where that is not legal, not worth
/// it, or the program's order itself.
pub fn sharing_order(dependence: &Dependence, placement: &Placement, block_bytes: &[u64]) -> Option<Vec<u32>> {
    if !placement.independent || placement.chains < 3 || placement.chains > CHAINS_MAX {
        return None;
    }
    let mut calls_of: Vec<Vec<u32>> = vec![Vec::new(); placement.chains];
    let mut chains_of_block: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for (call, uses) in dependence.uses.iter().enumerate() {
        let chain = placement.chain_of[call];
        calls_of[chain as usize].push(call as u32);
        for used in uses.iter().filter(|u| u.access.reads()) {
            let chains = chains_of_block.entry(used.block).or_default();
            if chains.last() != Some(&chain) {
                chains.push(chain);
            }
        }
    }
    // Where the chains that use a block follow each other for every block, the program's order cannot be bettered.
    if placement.child_of_chain.iter().all(|&child| child == 0)
        && chains_of_block.values().all(|chains| chains.windows(2).all(|w| w[1] == w[0] + 1))
    {
        return None;
    }
    let mut blocks_of: Vec<Vec<u32>> = vec![Vec::new(); placement.chains];
    for (&block, chains) in &chains_of_block {
        for &chain in chains {
            blocks_of[chain as usize].push(block);
        }
    }
    let children = placement.child_of_chain.iter().max().map_or(1, |&c| c as usize + 1);
    let mut order = Vec::with_capacity(dependence.uses.len());
    let mut shared = vec![0u64; placement.chains];
    for child in 0..children {
        let mut left: Vec<u32> =
            (0..placement.chains as u32).filter(|&c| placement.child_of_chain[c as usize] as usize == child).collect();
        let mut current = None;
        while !left.is_empty() {
            shared.fill(0);
            if let Some(chain) = current {
                for block in &blocks_of[chain as usize] {
                    for &c in &chains_of_block[block] {
                        shared[c as usize] += block_bytes[*block as usize];
                    }
                }
            }
            let best = (0..left.len())
                .max_by_key(|&i| (shared[left[i] as usize], std::cmp::Reverse(left[i])))
                .unwrap_or_default();
            let chain = left.remove(best);
            order.extend_from_slice(&calls_of[chain as usize]);
            current = Some(chain);
        }
    }
    (!order.is_sorted()).then_some(order)
}
