//! Model checks of the claims of chains.
#![cfg(loom)]

mod model;

use loom::sync::Arc;
use loom::thread;
use model::check;
use multigrain_team::ChainQueue;

/// All claims of one worker.
fn claims(queue: &ChainQueue, worker: usize) -> Vec<(usize, usize)> {
    std::iter::from_fn(|| queue.claim(worker)).collect()
}

fn every_chain_once(lengths: &'static [u32], workers: usize, preemptions: Option<usize>) {
    check(preemptions, move || {
        let queue = Arc::new(ChainQueue::new(lengths));
        let others: Vec<_> = (1..workers)
            .map(|worker| {
                let queue = queue.clone();
                thread::spawn(move || claims(&queue, worker))
            })
            .collect();
        let mut claimed = claims(&queue, 0);
        for other in others {
            claimed.extend(other.join().unwrap());
        }
        claimed.sort_unstable();
        let expected: Vec<_> = (0..lengths.len())
            .flat_map(|owner| (0..lengths[owner] as usize).map(move |chain| (owner, chain)))
            .collect();
        assert_eq!(claimed, expected);
    });
}

/// Hunts the last chain of a list claimed from both ends: the owner reads front and back, a taker lowers the back,
/// the owner claims what is gone. Two threads, every interleaving.
#[test]
fn an_owner_and_a_taker_meet_in_the_middle() {
    every_chain_once(&[2, 0], 2, None);
}

/// Both take from each other once their own lists are empty. Two threads, every interleaving.
#[test]
fn two_owners() {
    every_chain_once(&[1, 2], 2, None);
}

/// Hunts two takers that claim the same chain. Three threads, three preemptions: one in each claim of the last chain.
#[test]
fn two_takers_of_one_list() {
    every_chain_once(&[2, 0, 0], 3, Some(3));
}
