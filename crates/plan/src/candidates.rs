//! Candidates for the tunables of a call: which lengths there are, and the choice among the most promising by planning them
//! in earnest.

use crate::cost::CLOSE;
use crate::edge::{Draft, draft};
use crate::facts::EdgeFacts;
use crate::rooms::kept;
use crate::rules::Movable;
use crate::scope::{Scope, Split, split};
use multigrain_program::{SplitError, SplitProblem, Tunable, Tunables};
use std::num::NonZero;
use std::sync::OnceLock;

/// How many candidates are planned in earnest, at most and at least.
pub(crate) const FINALISTS: usize = 128;
const FINALISTS_MIN: usize = 8;
/// Between the two, planning goes on until so many sub-calls have been planned, or so many for each second that the work
/// is guessed to take: those who wait for half a second of work should not wait a tenth of one for its plan.
const CALLS_PLANNED: u64 = 2048;
/// The same where there are several children to place calls on: there the first look knows less of a plan.
const CALLS_PLANNED_PLACED: u64 = 6144;
/// As many sub-calls again are planned with every order and depth, but at least so many candidates.
const THOROUGH_MIN: usize = 4;

/// Candidates whose first plan costs at most so many times the best are planned with every order and depth.
const NEAR: f64 = 1.1;
/// At most [`FINALISTS_MIN`] of them, and so many that cost more and move less.
pub(crate) const LEANEST: usize = 4;

/// The most sub-calls that are planned to choose among candidates, in all searches for a program together: one or two seconds.
pub(crate) const CALLS_PLANNED_MAX: u64 = 1 << 17;
/// A search takes this part of what is left of them at most: however many shapes there are, some are left for the next.
const SEARCH_SHARE: u64 = 4;
/// Without slots so many sub-calls are planned in the time of one with.
const CALLS_UNSTAGED: u64 = 4;

/// Prices and bytes this close are equal; then smaller blocks are better, whose transfers overlap more evenly.
const EQUAL: f64 = 1.01;

/// Tunables that may be chosen, with what the first look found.
#[derive(Clone)]
pub(crate) struct Candidate {
    pub(crate) tunables: Tunables,
    pub(crate) calls: u64,
    pub(crate) footprint: u64,
    pub(crate) reserved: u64,
    /// Bytes of partial results of reductions in the parent memory.
    pub(crate) partials: u64,
    /// Time in seconds, in the first look, and the price.
    pub(crate) guess: f64,
    pub(crate) price: f64,
    /// How the edge's rules, where they are enforced, let the worst of its blocks pass.
    pub(crate) movable: Movable,
}

impl Candidate {
    /// What its blocks need, with what is set aside beside them.
    pub(crate) fn needed_bytes(&self) -> u64 {
        self.footprint.saturating_add(self.reserved)
    }
}

/// What a search has chosen, and how many sub-calls it planned and looked at to do so, as [`CALLS_PLANNED_MAX`] counts them.
pub(crate) struct Found {
    pub(crate) tunables: Tunables,
    pub(crate) planned: u64,
}

/// Longer axes are cut as ones of this length: what rounding makes of it is still a number.
const EXTENT_MAX: u64 = 1 << 60;

/// Fractions of an axis, rounded up to friendly numbers.
pub(crate) fn values(spec: &Tunable, axes: usize) -> Vec<u64> {
    let mut divisors: Vec<u64> = match axes {
        0 | 1 => (1..=16).chain([20, 24, 28, 32, 40, 48, 56]).collect(),
        2 => (1..=8).chain([10, 12, 16, 20, 24, 28, 32, 40, 48]).collect(),
        _ => vec![1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48],
    };
    let extent = spec.extent.min(EXTENT_MAX);
    let mut d = 64;
    while d <= 2 * extent {
        divisors.push(d);
        d *= 2;
    }
    let mut values: Vec<u64> = divisors
        .into_iter()
        .map(|d| {
            let raw = extent.div_ceil(d);
            // Steps of an eighth or less, powers of two: blocks begin where pages and vectors do.
            let step = if raw >= 64 { (raw / 8).next_power_of_two().min(1024) } else { 1 };
            let step = if extent.div_ceil(raw.next_multiple_of(step)) < d { 1 } else { step };
            raw.next_multiple_of(step).next_multiple_of(spec.multiple).min(spec.extent)
        })
        .collect();
    values.sort_unstable_by(|a, b| b.cmp(a));
    values.dedup();
    values
}

/// Powers of two of spans of the reduced axis, and the whole axis.
pub(crate) fn spans(spec: &Tunable) -> Vec<u64> {
    let span = spec.multiple.max(1);
    let mut values: Vec<u64> =
        std::iter::successors(Some(span), |v| v.checked_mul(2)).take_while(|&v| v < spec.extent).collect();
    values.push(spec.extent);
    values.reverse();
    values
}

/// So many ways of choosing a value of each list there are, at most.
const COMBINATIONS_MAX: usize = 1 << 16;

/// Leaves every second value out of the longest list, and again, until there are not too many ways of choosing one of each: the
/// first and the last stay, and of two the last, since something should fit.
pub(crate) fn thinned(mut lists: Vec<Vec<u64>>) -> Vec<Vec<u64>> {
    let ways = |lists: &[Vec<u64>]| lists.iter().map(Vec::len).fold(1, usize::saturating_mul);
    while ways(&lists) > COMBINATIONS_MAX
        && let Some(longest) = lists.iter_mut().max_by_key(|list| list.len())
    {
        let last = longest.len() - 1;
        let stays = |at: usize| if last == 1 { at == 1 } else { at.is_multiple_of(2) || at == last };
        *longest = longest.iter().enumerate().filter(|(at, _)| stays(*at)).map(|(_, value)| *value).collect();
    }
    lists
}

/// One value of each list, in all ways.
pub(crate) fn combinations(lists: &[Vec<u64>]) -> impl Iterator<Item = Vec<u64>> + '_ {
    let total: usize = lists.iter().map(Vec::len).product();
    (0..total).map(move |mut index| {
        let pick = |list: &Vec<u64>| {
            let value = list[index % list.len()];
            index /= list.len();
            value
        };
        lists.iter().map(pick).collect()
    })
}

pub(crate) fn split_with(scope: &Scope, tunables: &Tunables) -> Result<Split, SplitError> {
    split(scope, |_, _| Ok(tunables.clone()))
}

/// Splits are counted by what their tunables say, and by their shortest list; one that makes so many times as many calls as there may be
/// makes others each time it is asked.
const UNCOUNTED: u64 = 8;

/// A split of one call that makes about as many calls as it was counted to make.
///
/// # Errors
/// [`SplitProblem::Uncounted`] where it makes far more.
pub(crate) fn as_counted(facts: &EdgeFacts<'_>, scope: &Scope, split: Split) -> Result<Split, SplitError> {
    let (calls, most) = (split.calls.len() as u64, facts.calls_max);
    if calls <= most.saturating_mul(UNCOUNTED) {
        return Ok(split);
    }
    let call = &scope.calls[0];
    Err(SplitError::of(&*scope.tasks[call.task as usize], &call.shape(), SplitProblem::Uncounted { calls, most }))
}

/// How many sub-calls one search may plan at most, whatever they are for.
fn planned_max(facts: &EdgeFacts<'_>) -> u64 {
    facts.searched_max / SEARCH_SHARE * if facts.stages() { 1 } else { CALLS_UNSTAGED }
}

/// So many sub-calls of this edge as [`CALLS_PLANNED_MAX`] counts them.
pub(crate) fn as_planned(facts: &EdgeFacts<'_>, calls: u64) -> u64 {
    calls / if facts.stages() { 1 } else { CALLS_UNSTAGED }
}

/// How many sub-calls a search plans for work that takes so many seconds.
pub(crate) fn calls_planned(facts: &EdgeFacts<'_>, seconds: f64) -> u64 {
    let each_second = if facts.children > 1 { CALLS_PLANNED_PLACED } else { CALLS_PLANNED };
    (each_second as f64 * seconds.max(1.0)).min(planned_max(facts) as f64) as u64
}

/// The cheapest of the candidates, the most promising of which come first, once they are planned in earnest.
pub(crate) fn finals(
    facts: &EdgeFacts<'_>,
    scope: &Scope,
    mut fitting: Vec<Candidate>,
    depth_max: usize,
) -> Option<Found> {
    let plan = |candidate: &Candidate, thorough: bool| -> Option<(f64, u64)> {
        let split = split_with(scope, &candidate.tunables).and_then(|split| as_counted(facts, scope, split)).ok()?;
        let kept = kept(facts, scope, &candidate.tunables);
        let draft: Draft = draft(facts, &split, kept.as_ref(), depth_max, thorough, &[]).ok()?;
        Some((draft.price(), draft.bytes()))
    };
    let seconds = fitting.first().map_or(0.0, |best| best.guess);
    let (calls_planned, most) = (calls_planned(facts, seconds), planned_max(facts));
    let mut calls = 0;
    let few = fitting.iter().enumerate().take_while(|(number, candidate)| {
        let least = if calls < most { FINALISTS_MIN } else { 1 };
        let goes_on = *number < least || (*number < FINALISTS && calls < calls_planned);
        calls += candidate.calls;
        goes_on
    });
    let few = few.count();
    let calls_of = |candidates: &mut dyn Iterator<Item = &Candidate>| candidates.map(|one| one.calls).sum::<u64>();
    let mut planned_calls = calls_of(&mut fitting[..few].iter());
    let longest = |candidates: &mut dyn Iterator<Item = &Candidate>| candidates.map(|one| one.calls).max().unwrap_or(1);
    let workers = at_once(facts, longest(&mut fitting[..few].iter()));
    let found = in_parallel(workers, &fitting[..few], |candidate| plan(candidate, false));
    let mut rest = fitting.split_off(few).into_iter();
    let mut planned: Vec<((f64, u64), Candidate)> =
        found.into_iter().zip(fitting).filter_map(|(found, candidate)| Some((found?, candidate))).collect();
    if planned.is_empty() {
        // The next that can be planned at all.
        planned.extend(rest.find_map(|candidate| Some((plan(&candidate, false)?, candidate))));
    }
    planned.sort_by(|a, b| a.0.0.total_cmp(&b.0.0));
    if facts.stages() && planned.len() > 1 {
        let near = planned.first()?.0.0 * NEAR;
        planned.retain(|(found, _)| found.0 <= near);
        // The cheapest, and of the others those that move least.
        let mut others = planned.split_off(planned.len().min(FINALISTS_MIN));
        others.sort_by_key(|((_, bytes), _)| *bytes);
        planned.extend(others.into_iter().take(LEANEST));
        // Every order and depth of some hundred calls each is soon more work than what is planned.
        let mut calls = 0;
        let affordable = planned.iter().take_while(|(_, candidate)| {
            calls += candidate.calls;
            calls <= calls_planned
        });
        let affordable = affordable.count().max(if calls < most { THOROUGH_MIN } else { 1 });
        planned.truncate(affordable);
        planned_calls += calls_of(&mut planned.iter().map(|(_, candidate)| candidate));
        let workers = at_once(facts, longest(&mut planned.iter().map(|(_, candidate)| candidate)));
        let thorough = in_parallel(workers, &planned, |(_, candidate)| plan(candidate, true));
        for ((found, _), thorough) in planned.iter_mut().zip(thorough) {
            *found = thorough.unwrap_or(*found);
        }
    }
    let lowest = planned.iter().map(|(found, _)| found.0).min_by(f64::total_cmp)?;
    let close = planned.iter().map(|(found, _)| *found).filter(|found| found.0 <= lowest * CLOSE);
    let least = close.clone().map(|found| found.1).min()?;
    // The cheapest of those that move about as little as any.
    let leanest = close.filter(|found| found.1 as f64 <= least as f64 * EQUAL);
    let (price, bytes) = leanest.min_by(|a, b| a.0.total_cmp(&b.0))?;
    planned.retain(|(found, _)| found.0 <= price * EQUAL && found.1 as f64 <= bytes as f64 * EQUAL);
    let (_, chosen) = match facts.stages() {
        true => planned.into_iter().min_by_key(|(_, c)| c.footprint),
        false => planned.into_iter().min_by(|a, b| a.0.0.total_cmp(&b.0.0)),
    }?;
    Some(Found { tunables: chosen.tunables, planned: as_planned(facts, planned_calls) })
}

/// Applies a function to every item on all processors, or so many; the results are in the order of the items.
pub(crate) fn in_parallel<T: Sync, R: Send>(most: usize, items: &[T], apply: impl Fn(&T) -> R + Sync) -> Vec<R> {
    // Asked once: the answer is put together from files of control groups.
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    let processors = *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, NonZero::get));
    let workers = processors.min(items.len() / ITEMS_EACH_MIN).min(most);
    if workers < 2 {
        return items.iter().map(apply).collect();
    }
    // Taken in turns: neighbours cost about the same.
    let share = |worker: usize| items.iter().skip(worker).step_by(workers).map(&apply).collect::<Vec<R>>();
    let mut shares: Vec<std::vec::IntoIter<R>> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers).map(|worker| scope.spawn(move || share(worker))).collect();
        let mine = share(0);
        let joined =
            others.into_iter().map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        std::iter::once(mine).chain(joined).map(Vec::into_iter).collect()
    });
    (0..items.len()).filter_map(|at| shares[at % workers].next()).collect()
}

/// While a plan is made its lists take so much more than when it is done: they grow by doubling.
const DRAFT_CALLS: u64 = 2;

/// How many lists, of which the longest is so long, are planned or looked at beside each other: a plan that fits is made beside
/// others that are larger than it while they are made.
pub(crate) fn at_once(facts: &EdgeFacts<'_>, longest: u64) -> usize {
    (facts.drafts_calls_max / (DRAFT_CALLS * longest.max(1))).max(1) as usize
}

/// Fewer items than this are not worth a thread.
const ITEMS_EACH_MIN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_respect_multiples_and_extents() {
        for extent in [1, 2, 3, 7, 255, 256, 257, 1000, 16384, 33_554_432] {
            for multiple in [1, 4, 256] {
                let values = values(&Tunable { name: "k", extent, multiple }, 3);
                assert_eq!(values[0], extent, "the whole axis is always a candidate");
                assert!(values.iter().all(|v| *v == extent || v.is_multiple_of(multiple)), "{values:?}");
                assert!(values.last().is_some_and(|&v| v <= multiple.max(1)) || extent <= multiple, "{values:?}");
            }
        }
    }
}
