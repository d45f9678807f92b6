//! A search that is divided by predicted work and executed as jobs: exact cover, Knuth's algorithm X on bit sets. It shows
//! that `division` and `jobs` are for any task that can split itself.
#![cfg(not(loom))]

use multigrain_schedule::division::{Divisible, Grain, divide};
use multigrain_team::jobs::{JobOptions, JobsError};
use multigrain_team::{SpinLimit, Team, TeamOptions};
use proptest::prelude::*;
use std::convert::Infallible;

/// Items to be covered, each once, by some of the sets.
struct Problem {
    items: u32,
    sets: Vec<u64>,
}

/// A partial cover.
#[derive(Clone)]
struct Cover<'a> {
    problem: &'a Problem,
    covered: u64,
}

impl Cover<'_> {
    /// The sets that cover the item with the fewest choices; `None` where all items are covered.
    fn choices(&self) -> Option<Vec<u64>> {
        let open = (0..self.problem.items).filter(|item| self.covered >> item & 1 == 0);
        let choices = |item| {
            let fits = |set: &&u64| *set >> item & 1 == 1 && *set & self.covered == 0;
            self.problem.sets.iter().filter(fits).copied().collect::<Vec<_>>()
        };
        open.map(choices).min_by_key(Vec::len)
    }

    fn with(&self, set: u64) -> Self {
        Cover { problem: self.problem, covered: self.covered | set }
    }

    fn count(&self) -> u64 {
        match self.choices() {
            None => 1,
            Some(sets) => sets.into_iter().map(|set| self.with(set).count()).sum(),
        }
    }
}

impl Divisible for Cover<'_> {
    /// The sets that are left, to the power of half the items that are left: a crude guess.
    fn work(&self) -> f64 {
        let left = self.problem.items - self.covered.count_ones();
        let sets = self.problem.sets.iter().filter(|set| *set & self.covered == 0).count() as f64;
        (sets / f64::from(left.max(1))).max(1.1).powi(left as i32 / 2)
    }

    fn divide(self) -> Result<Vec<Self>, Self> {
        match self.choices() {
            None => Err(self),
            Some(sets) => Ok(sets.into_iter().map(|set| self.with(set)).collect()),
        }
    }
}

/// The covers, by jobs.
fn count(problem: &Problem, team: &Team, grain: &Grain) -> (u64, usize) {
    let division = divide([Cover { problem, covered: 0 }], grain);
    let (parts, mut sum) = (division.parts.len(), 0);
    let mut source = division.parts.into_iter();
    let done: Result<_, JobsError<Infallible>> = team.jobs(
        &JobOptions::default(),
        || Ok(source.next()),
        |_worker| (),
        |(), cover: Cover<'_>| Ok(cover.count()),
        |covers| {
            sum += covers;
            Ok(())
        },
    );
    assert_eq!(done.unwrap().jobs, parts as u64);
    (sum, parts)
}

fn team(workers: usize) -> Team {
    Team::new(TeamOptions { workers, bind: false, spin: SpinLimit::from_polls(100) }).unwrap()
}

/// Dominoes on a board of 6 x 6: 6728 tilings (Kasteleyn, The statistics of dimers on a lattice, 1961).
#[test]
#[cfg_attr(miri, ignore = "too long")]
fn tilings_by_dominoes_are_counted_in_many_parts() {
    let field = |row: u32, column: u32| 1_u64 << (6 * row + column);
    let across = (0..6).flat_map(|row| (0..5).map(move |column| field(row, column) | field(row, column + 1)));
    let down = (0..5).flat_map(|row| (0..6).map(move |column| field(row, column) | field(row + 1, column)));
    let problem = Problem { items: 36, sets: across.chain(down).collect() };
    for workers in 1..4 {
        let (covers, parts) = count(&problem, &team(workers), &Grain { share: 0.01, ..Grain::default() });
        assert_eq!(covers, 6728);
        assert!(parts >= 100, "{parts} parts");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 200 }, ..ProptestConfig::default() })]

    /// Against trying every choice of sets.
    #[test]
    fn covers_are_those_of_a_plain_search(
        items in 1..9_u32, sets in prop::collection::btree_set(1..256_u64, 0..12), share in 0.001..1.5_f64, workers in 1..4_usize,
    ) {
        let all = (1_u64 << items) - 1;
        let sets: Vec<u64> = sets.into_iter().filter(|set| set & !all == 0).collect();
        let exact = |choice: &u32| {
            let chosen = sets.iter().enumerate().filter(|(i, _)| choice >> i & 1 == 1);
            chosen.map(|(_, set)| *set).try_fold(0, |union, set| (union & set == 0).then_some(union | set)) == Some(all)
        };
        let plain = (0..1_u32 << sets.len()).filter(exact).count() as u64;
        let problem = Problem { items, sets };
        prop_assert_eq!(count(&problem, &team(workers), &Grain { share, ..Grain::default() }).0, plain);
    }
}
