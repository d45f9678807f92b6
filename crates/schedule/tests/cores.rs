//! Cores divided among programs: cases by hand, and what has to hold for any programs at any time.

use multigrain_schedule::cores::{Division, Member, TURN};
use proptest::prelude::*;

fn member(weight: u32, wanted: u32) -> Member {
    Member { weight, wanted }
}

fn shares(cores: u32, members: &[Member]) -> Vec<u32> {
    let division = Division::new(cores, members);
    (0..members.len()).map(|member| division.share(member)).collect()
}

#[test]
fn weights_divide_what_all_want() {
    assert_eq!(shares(4, &[member(3, 4), member(1, 4)]), [3 * TURN, TURN]);
    assert_eq!(shares(2, &[member(3, 2), member(1, 2)]), [3 * TURN / 2, TURN / 2]);
    assert_eq!(shares(2, &[member(1, 2); 3]), [2 * TURN / 3; 3]);
    assert_eq!(shares(2, &[member(0, 2), member(1, 2)]), [TURN, TURN]);
}

#[test]
fn what_one_leaves_the_others_have() {
    assert_eq!(shares(4, &[member(9, 1), member(1, 4), member(1, 4)]), [TURN, 3 * TURN / 2, 3 * TURN / 2]);
    assert_eq!(shares(4, &[member(9, 0), member(1, 9)]), [0, 4 * TURN]);
    assert_eq!(shares(4, &[]), []);
}

#[test]
fn whole_shares_never_move() {
    let division = Division::new(4, &[member(3, 4), member(2, 4), member(9, 1)]);
    // 1.8 and 1.2 of what the third leaves; its core is the first, all the time.
    assert_eq!([0, TURN / 2, TURN - 1].map(|phase| division.owner(0, phase)), [Some(2); 3]);
    assert_eq!(Division::new(4, &[member(1, 2), member(1, 2)]).next_change(0), None);
}

/// The same shares by bisection of the level to which all are raised.
fn levelled(cores: u32, members: &[Member]) -> Vec<f64> {
    let at = |level: f64| -> Vec<f64> {
        let of = |m: &Member| f64::from(m.wanted.min(cores)).min(level * f64::from(m.weight.max(1)));
        members.iter().map(of).collect()
    };
    let (mut low, mut high) = (0.0, f64::from(cores));
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        match at(middle).iter().sum::<f64>() <= f64::from(cores) {
            true => low = middle,
            false => high = middle,
        }
    }
    at(low)
}

fn programs() -> impl Strategy<Value = (u32, Vec<Member>)> {
    let one = (0..=100_u32, 0..=9_u32).prop_map(|(weight, wanted)| member(weight, wanted));
    (1..=8_u32, prop::collection::vec(one, 0..12))
}

proptest! {
    #[test]
    fn shares_are_those_of_the_level((cores, members) in programs()) {
        let (got, expected) = (shares(cores, &members), levelled(cores, &members));
        for (got, expected) in got.iter().zip(&expected) {
            let off = (f64::from(*got) / f64::from(TURN) - expected).abs();
            prop_assert!(off <= 13.0 / f64::from(TURN), "{got} parts instead of {expected} cores");
        }
    }

    /// At every moment no core has two owners, none lies idle that is wanted, and nobody has more than its share's next whole number.
    #[test]
    fn no_core_is_lost_and_none_is_owned_twice((cores, members) in programs(), phase in 0..TURN) {
        let division = Division::new(cores, &members);
        let wanted: u32 = members.iter().map(|m| m.wanted.min(cores)).sum();
        let mut owned = vec![0; cores as usize];
        for member in 0..members.len() {
            let has: Vec<u32> = division.of(member, phase).collect();
            let share = division.share(member);
            prop_assert!((share / TURN..=share.div_ceil(TURN)).contains(&(has.len() as u32)));
            for core in has {
                prop_assert_eq!(division.owner(core, phase), Some(member));
                owned[core as usize] += 1;
            }
        }
        prop_assert!(owned.iter().all(|&owners| owners <= 1));
        prop_assert_eq!(owned.iter().sum::<u32>(), wanted.min(cores));
    }

    /// Over a turn each has its share to the part, so whoever wants a core waits less than a turn for it; between two changes nothing changes.
    #[test]
    fn nobody_waits_for_more_than_a_turn((cores, members) in programs()) {
        let division = Division::new(cores, &members);
        let mut had = vec![0; members.len()];
        let mut next = Some(0);
        while let Some(phase) = next {
            next = division.next_change(phase);
            let until = next.unwrap_or(TURN);
            for (member, had) in had.iter_mut().enumerate() {
                let count = |phase| division.of(member, phase).collect::<Vec<_>>();
                prop_assert_eq!(count(phase), count(until - 1));
                *had += (until - phase) * count(phase).len() as u32;
            }
        }
        for (member, &had) in had.iter().enumerate() {
            prop_assert_eq!(had, division.share(member));
            prop_assert_eq!(had > 0, members[member].wanted > 0);
            prop_assert_eq!(division.next_of(member).is_some(), had > 0);
        }
    }

    /// Whoever leaves, or wants less, leaves the others no less than they had (but for rounding).
    #[test]
    fn who_leaves_takes_nothing_from_the_others((cores, members) in programs(), gone in 0_usize..12) {
        prop_assume!(gone < members.len());
        let before = shares(cores, &members);
        let mut fewer = members.clone();
        fewer[gone].wanted = 0;
        for (member, &share) in shares(cores, &fewer).iter().enumerate() {
            prop_assert!(member == gone || share + 12 >= before[member]);
        }
    }
}
