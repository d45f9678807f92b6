//! The choice of tunables where the cost of a nest of loops is a formula ([`crate::estimate`]): all nests of some orders are
//! looked at, the best are refined, the most promising planned.

use crate::candidates::{Candidate, FINALISTS, Found, LEANEST, combinations, finals, in_parallel};
use crate::cost::CLOSE;
use crate::estimate::{Estimate, FRIENDLY, Loop, Nest};
use crate::facts::EdgeFacts;
use crate::rules::Movable;
use crate::scope::Scope;
use multigrain_program::{SplitError, Tunable, Tunables};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// So many ways are looked at before all but the promising ones are forgotten.
const AT_ONCE: usize = 2048;

/// So many are promising.
const PROMISING: usize = 2 * FINALISTS;

/// How many candidates are refined, how often each of their lengths is changed, and what a round must gain.
const REFINED: usize = 24;
const REFINE_ROUNDS: usize = 8;
const REFINE_GAIN: f64 = 0.9995;

/// Why no tunables can be chosen.
pub(crate) enum Unfit {
    /// Whatever fits has so many calls or more, which no plan has room for.
    TooMany(u64),
    /// Whatever fits has so many calls or more of which some cannot move their blocks: these.
    Unmovable(Box<Candidate>),
    /// Not even this, which needs least, can be planned.
    Smallest(Box<Candidate>),
    /// There is no way of splitting the call.
    Nothing,
    /// A task makes of its call what cannot be.
    Split(Box<SplitError>),
}

impl From<SplitError> for Unfit {
    fn from(error: SplitError) -> Unfit {
        Unfit::Split(Box::new(error))
    }
}

/// Loops and what the formula says of them.
#[derive(Clone)]
pub(crate) struct Looked {
    loops: SmallVec<[Loop; 6]>,
    pub(crate) price: f64,
    bytes: f64,
    calls: u64,
    /// Whether so many calls may be parts, where they are more than a list may have.
    is_in_parts: bool,
    fits: bool,
    movable: Movable,
}

impl Looked {
    pub(crate) fn at(nest: &Nest<'_>, loops: SmallVec<[Loop; 6]>) -> Looked {
        let found = nest.estimate(&loops);
        Looked::found(nest, loops, &found)
    }

    /// With what is known of the loops.
    fn found(nest: &Nest<'_>, loops: SmallVec<[Loop; 6]>, found: &Estimate) -> Looked {
        let facts = nest.facts();
        let fits = facts.fits(found.footprint, found.reserved, found.partials);
        let is_in_parts = found.calls > facts.listed_max && nest.may_be_long(&loops);
        let movable = nest.movable(&nest.lengths(&loops));
        Looked { loops, price: found.price, bytes: found.bytes, calls: found.calls, is_in_parts, fits, movable }
    }

    pub(crate) fn is_possible(&self, facts: &EdgeFacts<'_>) -> bool {
        self.fits && (self.calls <= facts.calls_max || self.is_in_parts)
    }
}

/// Better loops of the same order: one length after the other is changed as long as that helps.
pub(crate) fn refine(nest: &Nest<'_>, specs: &[Tunable], start: &Looked, calls_max: Option<u64>) -> Looked {
    let mut best = start.clone();
    for _ in 0..REFINE_ROUNDS {
        let before = best.price;
        for at in 0..best.loops.len() {
            let (axis, length) = best.loops[at];
            let (extent, every) = (specs[axis].extent, nest.every[axis]);
            let inner = best.loops[at + 1..].iter().find(|(a, _)| *a == axis).map(|&(_, inner)| inner);
            let outer = best.loops[..at].iter().rfind(|(a, _)| *a == axis).map_or(extent, |&(_, outer)| outer);
            let unit = inner.unwrap_or(every);
            let count = outer.div_ceil(length);
            let counts = (count.saturating_sub(3)..=count + 3).chain([count / 2, count * 2]);
            for count in counts.filter(|&count| count > 0) {
                // Blocks of one size, that begin where cache lines do unless they are short.
                let even = outer.div_ceil(count);
                let friendly = if inner.is_none() && even >= 8 * FRIENDLY { FRIENDLY } else { 1 };
                let even = even.next_multiple_of(friendly).next_multiple_of(unit).min(outer);
                let mut loops = best.loops.clone();
                loops[at].1 = even;
                let reduced = nest.is_reduced(axis);
                if even == length || reduced || (inner.is_none() && outer < extent && !outer.is_multiple_of(even)) {
                    continue;
                }
                let found = Looked::at(nest, loops);
                let is_short = calls_max.is_none_or(|most| found.calls <= most);
                if found.is_possible(nest.facts())
                    && found.price < best.price
                    && is_short
                    && found.movable >= best.movable
                {
                    best = found;
                }
            }
        }
        if best.price >= before * REFINE_GAIN {
            break;
        }
    }
    best
}

/// The choice among nests of loops whose cost is a formula: all of them are looked at, and the most promising planned.
///
/// # Errors
/// [`Unfit`] where nothing can be planned.
pub(crate) fn by_formula(
    nest: &Nest<'_>,
    scope: &Scope,
    lists: &[Vec<u64>],
    is_mapped: bool,
    depth_max: usize,
    known: Option<&Tunables>,
) -> Result<Found, Unfit> {
    let (facts, task) = (nest.facts(), &scope.tasks[0]);
    let specs = &task.tunables(nest.call())[..];
    let named = |loops: &[Loop]| loops.iter().map(|&(axis, length)| (specs[axis].name, length)).collect::<Tunables>();
    let unplanned = |loops: &[Loop]| Found { tunables: named(loops), planned: 0 };
    let candidate = |loops: &[Loop]| {
        let found = nest.estimate(loops);
        Candidate {
            tunables: named(loops),
            calls: found.calls,
            footprint: found.footprint,
            reserved: found.reserved,
            partials: found.partials,
            guess: found.seconds,
            price: found.price,
            movable: Movable::Aligned,
        }
    };
    let fits = |c: &Candidate| facts.fits(c.footprint, c.reserved, c.partials);
    // The smallest tile decides whether anything fits: blocks grow with each of their lengths.
    let least: Vec<Loop> = lists.iter().map(|list| list.last().copied().unwrap_or(1)).enumerate().collect();
    // Along the reduced axis it is the other way round: more contributions are more partial results.
    let mut leanest = least.clone();
    if let Some(reduced) = task.reduced_axis().and_then(|name| specs.iter().position(|spec| spec.name == name)) {
        leanest[reduced].1 = lists[reduced].first().copied().unwrap_or(1);
    }
    let smallest = candidate(&least);
    if facts.stages() && smallest.footprint.saturating_add(smallest.reserved) > facts.total_bytes {
        return Err(Unfit::Smallest(Box::new(smallest)));
    }
    let look = |lengths: &Vec<u64>| {
        let blocks = nest.blocks(lengths);
        if facts.stages() && blocks.bytes() > facts.total_bytes {
            return Vec::new();
        }
        let room = facts.total_bytes.saturating_sub(blocks.reserved());
        let at = |loops: SmallVec<[Loop; 6]>| {
            let found = nest.estimate_with(&loops, &blocks);
            Looked::found(nest, loops, &found)
        };
        let nests = nest.orders(lengths, room).into_iter();
        let mut found: Vec<Looked> = nests.map(at).filter(|found| found.is_possible(facts)).collect();
        found.sort_by(|a, b| b.movable.cmp(&a.movable).then(a.price.total_cmp(&b.price)));
        found.truncate(2);
        found
    };
    let (mut looked, mut rest): (Vec<Looked>, _) = (Vec::new(), combinations(lists));
    loop {
        let these: Vec<Vec<u64>> = rest.by_ref().take(AT_ONCE).collect();
        if these.is_empty() {
            break;
        }
        looked.extend(in_parallel(usize::MAX, &these, look).into_iter().flatten());
        if looked.len() > AT_ONCE {
            looked = promising(looked, facts.listed_max);
        }
    }
    let number = |name: &str| specs.iter().position(|spec| spec.name == name);
    let known = known.map(|known| known.iter().filter_map(|(name, length)| Some((number(name)?, length))).collect());
    looked.extend(known.map(|loops| Looked::at(nest, loops)).filter(|found| found.is_possible(facts)));
    if looked.is_empty() {
        let fit =
            combinations(lists).filter(|lengths| !facts.stages() || nest.blocks(lengths).bytes() <= facts.total_bytes);
        let pieces = |lengths: Vec<u64>| {
            let counts = specs.iter().zip(&lengths).map(|(spec, &length)| spec.extent.div_ceil(length.max(1)));
            counts.fold(1, u64::saturating_mul)
        };
        if let Some(calls) = fit.map(pieces).min().filter(|&calls| calls > facts.calls_max) {
            return Err(Unfit::TooMany(calls));
        }
    }
    looked.sort_by(by_price);
    let listed = facts.listed_max;
    // Where nothing that obeys rules that are enforced can be planned, the plan with the fewest calls is made all the same:
    // whoever proves it names what breaks which.
    for movable in [Movable::Aligned, Movable::Skewed, Movable::No] {
        let mut looked: Vec<Looked> = looked.extract_if(.., |found| found.movable == movable).collect();
        if movable == Movable::No {
            // So that this is soon told. What is no part may be a list that obeys them.
            looked.sort_by_key(|found| found.calls);
            if let Some(first) = looked.first().filter(|first| first.calls > listed || facts.is_part) {
                return Err(Unfit::Unmovable(Box::new(candidate(&first.loops))));
            }
            let mut candidates = looked.iter().map(|found| candidate(&found.loops)).filter(fits);
            match candidates.find_map(|candidate| finals(facts, scope, vec![candidate], depth_max)) {
                Some(first) => return Ok(first),
                None => break,
            }
        }
        let short = facts.stages() && looked.first().is_some_and(|best| best.calls <= listed);
        let long = looked.iter().find(|found| found.is_in_parts).cloned();
        looked.retain(|found| !short || found.calls <= listed);
        looked.truncate(PROMISING);
        if !is_mapped && facts.stages() {
            let promising = &looked[..looked.len().min(REFINED)];
            let mut refined =
                in_parallel(usize::MAX, promising, |found| refine(nest, specs, found, short.then_some(listed)));
            looked.append(&mut refined);
            looked.sort_by(by_price);
            looked.dedup_by(|a, b| a.loops == b.loops);
        }
        // What would be a long list is not planned as one: the formula decides, and so many calls of it are planned as parts.
        if let Some(best) = looked.first().filter(|best| best.is_in_parts) {
            return Ok(unplanned(&best.loops));
        }
        looked.retain(|found| !found.is_in_parts);
        lean_ones_ahead(&mut looked);
        let fitting: Vec<Candidate> = looked.iter().map(|found| candidate(&found.loops)).filter(fits).collect();
        let planned = finals(facts, scope, fitting, depth_max);
        if let Some(best) = planned.or(long.map(|long| unplanned(&long.loops))) {
            return Ok(best);
        }
    }
    // Blocks of the smallest tile fit beside each other, but not as their addresses must lie, or not with what a reduction
    // keeps.
    Err(Unfit::Smallest(Box::new(candidate(&leanest))))
}

fn by_price(a: &Looked, b: &Looked) -> Ordering {
    a.price.total_cmp(&b.price).then(a.calls.cmp(&b.calls))
}

/// What may be chosen of all that was looked at, in the order of prices: of those that move alike the cheapest, the cheapest
/// whose lists are no longer than `listed`, and the cheapest that is in parts; of those that break rules the shortest.
fn promising(mut looked: Vec<Looked>, listed: u64) -> Vec<Looked> {
    looked.sort_by(by_price);
    let mut shortest: Vec<Looked> = looked.extract_if(.., |found| found.movable == Movable::No).collect();
    shortest.sort_by_key(|found| found.calls);
    shortest.truncate(PROMISING);
    for movable in [Movable::Aligned, Movable::Skewed] {
        let (mut all, mut short, mut long) = (0, 0, 0);
        looked.retain(|found| {
            if found.movable != movable {
                return true;
            }
            let (is_short, is_long) = (found.calls <= listed, found.is_in_parts);
            (all, short, long) = (all + 1, short + usize::from(is_short), long + usize::from(is_long));
            all <= PROMISING || (is_short && short <= PROMISING) || (is_long && long == 1)
        });
    }
    looked.append(&mut shortest);
    looked
}

/// Of those whose prices are about the best, the ones that move least come behind the best, to be planned whatever else is.
fn lean_ones_ahead(looked: &mut Vec<Looked>) {
    let Some(lowest) = looked.first().map(|found| found.price) else { return };
    let close = looked.partition_point(|found| found.price <= lowest * CLOSE);
    let mut lean: Vec<usize> = (1..close).collect();
    lean.sort_by(|&a, &b| looked[a].bytes.total_cmp(&looked[b].bytes));
    lean.truncate(LEANEST);
    let ahead: Vec<Looked> = lean.iter().map(|&at| looked[at].clone()).collect();
    let mut at = 0..;
    looked.retain(|_| at.next().is_none_or(|at| !lean.contains(&at)));
    looked.splice(1..1, ahead);
}
