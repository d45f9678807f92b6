//! Branch lengths by Newton's method on the table of a branch, kept within a bracket.

use super::Likelihood;
use crate::kernel::{Source, Step};
use crate::tree::HalfEdge;

/// Shortest branch under optimisation, expected substitutions a site (RAxML-NG's).
pub const MIN_LENGTH: f64 = 1e-6;
/// Longest branch under optimisation (RAxML-NG's).
pub const MAX_LENGTH: f64 = 100.0;

/// So often lengths that are worse than those before are drawn back, each time by three quarters, before they are given up.
const DRAWN_BACK: usize = 6;

/// How exactly branch lengths are found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Precision {
    /// A branch is done when the next step would gain less than this log-likelihood, by the quadratic model.
    pub gain: f64,
    /// At most so many steps for one branch.
    pub steps: usize,
}

impl Precision {
    /// For trees that are compared during a search.
    pub const COARSE: Precision = Precision { gain: 1e-3, steps: 10 };
    /// For results.
    pub const FINE: Precision = Precision { gain: 1e-9, steps: 50 };
    /// A single step.
    pub const ONE: Precision = Precision { gain: f64::INFINITY, steps: 1 };
}

/// The search for one length: the derivative is positive at `low`, negative at `high`, or these are the bounds.
#[derive(Debug, Clone, Copy)]
struct Bracket {
    at: f64,
    low: f64,
    high: f64,
    done: bool,
    /// A step was long: it may have gone over a valley.
    leapt: bool,
    /// Where it goes on if the likelihood rises from the shortest length, at which it is.
    then: Option<f64>,
}

impl Bracket {
    fn new(start: f64) -> Bracket {
        Bracket {
            at: start.clamp(MIN_LENGTH, MAX_LENGTH),
            low: MIN_LENGTH,
            high: MAX_LENGTH,
            done: false,
            leapt: false,
            then: None,
        }
    }

    /// That is over where the likelihood does not rise from the shortest length.
    fn rising(start: f64) -> Bracket {
        let bracket = Bracket::new(start);
        Bracket { at: MIN_LENGTH, then: Some(bracket.at), ..bracket }
    }

    /// Moves on, given the derivatives at `at`.
    fn step(&mut self, first: f64, second: f64, gain: f64) {
        if let Some(then) = self.then.take() {
            (self.at, self.done) = if first > 0.0 { (then, false) } else { (MIN_LENGTH, true) };
            return;
        }
        if first > 0.0 {
            self.low = self.at;
        } else {
            self.high = self.at;
        }
        if self.low >= self.high || first == 0.0 {
            self.done = true;
            return;
        }
        let newton = self.at - first / second;
        let next = if second < 0.0 && newton > self.low && newton < self.high {
            // The quadratic model's gain is half its slope times its step.
            self.done = first * (newton - self.at) * 0.5 < gain || (newton - self.at).abs() < 1e-9;
            newton
        } else if first > 0.0 && self.high == MAX_LENGTH {
            // Not bracketed from above yet: outwards. Far out everything is flat, so Newton is not believed there.
            (self.at * 8.0).min(MAX_LENGTH)
        } else if first < 0.0 && self.low == MIN_LENGTH {
            if second < 0.0 || self.at < 16.0 * MIN_LENGTH { MIN_LENGTH } else { self.at / 8.0 }
        } else {
            self.done = self.high - self.low < 1e-9;
            (self.low * self.high).sqrt()
        };
        self.leapt |= next > 2.0 * self.at || next < 0.1 * self.at;
        self.at = next;
    }
}

impl Likelihood<'_> {
    /// Optimises the lengths of one branch, which becomes the focus.
    pub fn optimize_branch(&mut self, half: HalfEdge, precision: Precision) {
        self.begin();
        self.push_focus(half);
        let branch = (self.source(half), self.source(self.tree.back(half)));
        let mut lengths = [self.tree.lengths(half).to_vec()];
        self.newton(&[branch], &mut lengths, 1, precision);
        self.release_ends(half);
        self.set_focus_lengths(&lengths[0]);
    }

    /// Optimises the lengths of some branches, each given by the vectors at its ends and independent of the others. What
    /// the batch holds already is executed first, together with their tables. From the branch `rising` on, they get the shortest
    /// length where the likelihood does not rise from it.
    pub(crate) fn newton(
        &mut self,
        branches: &[(Source, Source)],
        lengths: &mut [Vec<f64>],
        rising: usize,
        precision: Precision,
    ) {
        for (table, &(a, b)) in branches.iter().enumerate() {
            self.push(Step::Table { a, b, table: table as u32 });
        }
        let begun = |(branch, of_sets): (usize, &Vec<f64>)| {
            let begin = if branch < rising { Bracket::new } else { Bracket::rising };
            of_sets.iter().map(|&length| begin(length)).collect()
        };
        let mut brackets: Vec<Vec<Bracket>> = lengths.iter().enumerate().map(begun).collect();
        for step in 0..precision.steps {
            if step > 0 {
                self.begin();
            }
            let open = |b: &[Bracket]| b.iter().any(|b| !b.done);
            for (table, brackets) in brackets.iter().enumerate().filter(|(_, b)| open(b)) {
                let at: Vec<f64> = brackets.iter().map(|b| b.at).collect();
                let (length, table) = (self.batch.length(&at), table as u32);
                self.push(Step::Slope { table, length, log: false, result: table });
            }
            self.run();
            for (result, brackets) in brackets.iter_mut().enumerate().filter(|(_, b)| open(b)) {
                for (set, bracket) in brackets.iter_mut().enumerate().filter(|(_, b)| !b.done) {
                    let [_, first, second] = self.of_set(result, set);
                    bracket.step(first, second, precision.gain);
                }
            }
            if !brackets.iter().any(|b| open(b)) {
                break;
            }
        }
        let found: Vec<Vec<f64>> = brackets.iter().map(|b| b.iter().map(|b| b.at).collect()).collect();
        let leapt = brackets.iter().flatten().any(|b| b.leapt);
        let found = if leapt { self.not_worse(lengths, found) } else { found };
        lengths.iter_mut().zip(found).for_each(|(length, found)| *length = found);
    }

    /// The lengths found, drawn back towards those before where they are worse: a likelihood may have several maxima, and
    /// a long step may have gone over a valley.
    fn not_worse(&mut self, before: &[Vec<f64>], mut found: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
        let old = self.at_lengths(before.iter().map(Vec::as_slice));
        for turn in 0..=DRAWN_BACK {
            let new = self.at_lengths(found.iter().map(Vec::as_slice));
            let worse = |i: usize| new[i] < old[i];
            if !(0..found.len()).any(worse) {
                break;
            }
            for i in (0..found.len()).filter(|&i| worse(i)) {
                let keep = if turn == DRAWN_BACK { 0.0 } else { 0.25 };
                found[i].iter_mut().zip(&before[i]).for_each(|(f, b)| *f = b + keep * (*f - b));
            }
        }
        found
    }

    /// The log-likelihoods at other lengths of the branches whose tables were made last.
    pub(crate) fn at_lengths<'l>(&mut self, lengths: impl Iterator<Item = &'l [f64]>) -> Vec<f64> {
        self.begin();
        let mut count = 0;
        for (table, lengths) in lengths.enumerate() {
            let (length, table) = (self.batch.length(lengths), table as u32);
            self.push(Step::Slope { table, length, log: true, result: table });
            count += 1;
        }
        self.run();
        (0..count).map(|result| self.value(result)).collect()
    }

    /// Optimises all branches, one after the other from the focus outwards, at most `passes` times, until a pass gains less
    /// than `gain` of log-likelihood. Gives the log-likelihood.
    pub fn smooth(&mut self, passes: usize, gain: f64, precision: Precision) -> f64 {
        let mut best = self.log_likelihood();
        for _ in 0..passes {
            for half in self.depth_first(self.focus) {
                self.optimize_branch(half, precision);
            }
            let now = self.log_likelihood();
            let gained = now - best;
            best = now;
            if gained < gain {
                break;
            }
        }
        best
    }

    /// One half-edge of each branch, depth first from a branch: neighbours in the list are near each other in the tree.
    pub(crate) fn depth_first(&self, from: HalfEdge) -> Vec<HalfEdge> {
        let mut order = vec![];
        let mut stack = vec![self.tree.back(from), from];
        while let Some(half) = stack.pop() {
            if half != self.tree.back(from) {
                order.push(half);
            }
            if !self.tree.is_tip(half) {
                let [a, b] = self.tree.others(half).map(|side| self.tree.back(side));
                stack.extend([b, a]);
            }
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a log-likelihood of these derivatives, as functions of the length, is largest, and after how many looks.
    fn found(mut bracket: Bracket, derivatives: impl Fn(f64) -> [f64; 2]) -> (f64, usize) {
        let mut looks = 0;
        while !bracket.done && looks < 100 {
            let [first, second] = derivatives(bracket.at);
            bracket.step(first, second, 1e-9);
            looks += 1;
        }
        (bracket.at, looks)
    }

    #[test]
    fn a_branch_that_falls_from_no_length_is_looked_at_once() {
        // 3 ln(t + 0.01) - 10 t has its maximum at 0.29, 3 ln(t + 0.5) - 10 t falls from 0 on.
        let of = |shift: f64| move |t: f64| [3.0 / (t + shift) - 10.0, -3.0 / (t + shift).powi(2)];
        for start in [1e-6, 0.05, 0.29, 1.0, 20.0] {
            for begin in [Bracket::new, Bracket::rising] {
                let (at, _) = found(begin(start), of(0.01));
                assert!((at - 0.29).abs() < 1e-4, "{at} from {start}");
            }
            assert_eq!(found(Bracket::rising(start), of(0.5)), (MIN_LENGTH, 1));
            assert!(found(Bracket::new(start), of(0.5)).0 < 1e-5);
        }
    }
}
