//! The search for the best tree: subtree pruning and regrafting, hill climbing in the manner of RAxML.
//!
//! A search begins with a parsimony tree and goes through stages. In the **fast** stage every subtree is pruned and all
//! branches within a radius are scored by the likelihood of inserting it there with no branch optimised; the most
//! promising ones get their three adjacent branches optimised, and the best is taken at once if it improves the tree. The
//! radius grows while that pays. In the **thorough** stage more candidates are optimised, and the best moves that by
//! themselves gained nothing are tried with all branches optimised; the radius grows on failure. Between rounds branch
//! lengths and model parameters are optimised anew. What is reached then is a local optimum; in the **shake** stage some
//! random moves disturb the tree, it is climbed again from there, and what is better is kept, until that has failed a
//! number of times in a row. In a bootstrap replicate it is climbed **again** from other starting trees instead, until the best
//! end is met a second time.
//!
//! How much there is to be found depends on the data ([`Signal`]). Of many taxa with few patterns there are many good trees
//! far apart, and the first tree decides which are seen: there a search begins with several trees (the best that
//! parsimony finds, one from distances, and trees by stepwise addition alone, which are less alike), climbs from all of
//! them by exchanges of neighbours and short moves, fuses what it finds into one tree region by region, and disturbs that
//! here and there instead of as a whole. Where patterns abound and two ways end at one tree, it is not looked any further. A search of thousands of taxa
//! may be asked to be fast: then it has one tree by stepwise addition, which is climbed from in the same two ways, and no
//! more.
//!
//! Stamatakis, Ludwig and Meier, RAxML-III (2005); Stamatakis, RAxML-VI-HPC (2006).

mod again;
mod exchange;
mod fuse;
mod moves;
mod scan;
mod shake;
mod signal;
mod state;

pub(crate) use exchange::{EXCHANGED, TABLES as EXCHANGED_TABLES};
pub(crate) use shake::disturbed;
#[cfg(test)]
pub(crate) use shake::random_step;
pub use signal::Signal;
pub use state::{Stage, State, StateError};

use crate::alignment::Patterns;
use crate::constraint::Constraint;
use crate::joining::{self, join_neighbours};
use crate::likelihood::{Likelihood, Offload, Precision};
use crate::model::Model;
use crate::parsimony::Parsimony;
use crate::partition::Branches;
use crate::random::{Purpose, Random};
use crate::tree::{Splits, Tree};
use multigrain_simd::Isa;
use std::ops::ControlFlow;
use std::sync::Arc;

/// How hard a search tries, and among which trees.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Largest radius (branches between the old and the new place) of the fast stage.
    pub fast_radius: usize,
    /// Largest radius of the thorough stage.
    pub thorough_radius: usize,
    /// The search ends when the tree was disturbed so many times in a row without finding a better one.
    pub shakes: usize,
    /// As `shakes`, for each hundred taxa of weak signals, where the tree is disturbed in one place at a time.
    pub local_shakes: usize,
    /// Instead of being disturbed, climbs are begun from other starting trees until the best end is met twice; at most so many.
    pub climbs: usize,
    /// Of weak signals: so many more trees by stepwise addition are begun with.
    pub starts: usize,
    /// The tree from distances is the same in all searches of an alignment: in this one it is disturbed before it is begun
    /// with.
    pub is_varied: bool,
    /// Begins with one tree by stepwise addition, and ends after the fast stage: for thousands of taxa.
    pub is_fast: bool,
    /// Model parameters are optimised to this log-likelihood at the end.
    pub gain: f64,
    /// What every tree must display, from the first on.
    pub constraint: Option<Arc<Constraint>>,
}

impl Options {
    /// For bootstrap replicates, where the variation of the data is larger than what the last effort would find.
    pub fn replicate() -> Options {
        Options {
            fast_radius: 10,
            thorough_radius: 5,
            shakes: 0,
            local_shakes: 0,
            climbs: CLIMBS,
            starts: 0,
            is_varied: false,
            is_fast: false,
            gain: 0.1,
            constraint: None,
        }
    }

    /// For thousands of taxa.
    pub fn fast() -> Options {
        Options { fast_radius: NEAR, is_fast: true, climbs: 0, ..Options::replicate() }
    }
}

impl Options {
    /// At most so many slots beside those of inner nodes: two for each distance up to the largest radius and one for the subtree,
    /// or those of the places that are fitted and of the way to them.
    pub(crate) fn slots(&self) -> usize {
        (2 * self.fast_radius.max(self.thorough_radius) + 1).max(2 * scan::FITS + 2)
    }
}

/// Starts and local shakes: measured on twelve simulated alignments of 250 and 500 taxa with 200 sites. On four of them
/// IQ-TREE 2.0.7's default search was run as well, and ends at most 0.3 above the first seed's (another seed of one ended 1.7
/// below it); one worker takes one to two times as long as IQ-TREE's `-fast`, which ends below on all twelve.
impl Default for Options {
    fn default() -> Options {
        Options {
            fast_radius: 10,
            thorough_radius: 15,
            shakes: 8,
            local_shakes: 50,
            climbs: 0,
            starts: 3,
            is_varied: false,
            is_fast: false,
            gain: 0.001,
            constraint: None,
        }
    }
}

/// A search has at most so many tables of branches.
pub(crate) const TABLES: usize = scan::FITS;

/// A replicate is climbed at most so many times more. Measured on 50 replicates each of 42 and of 38 taxa of DNA: in the mean
/// they end 0.43 and 0.24 below the best log-likelihood that was found, two full searches 0.60 and 0.52, and 1.14 and 0.93.
const CLIMBS: usize = 4;

/// Radius with which rounds of subtrees begin.
const NEAR: usize = 5;

/// Bytes that are taken while the trees with which a search begins are made, before its vectors are.
pub(crate) fn start_bytes(data: &[&Patterns], is_fast: bool) -> u64 {
    match is_fast || Signal::of(data) == Signal::Usual {
        true => Parsimony::bytes(data),
        false => Parsimony::bytes(data).max(joining::bytes(data)),
    }
}

/// The trees with which a search begins besides that of its state.
fn starts(data: &[&Patterns], signal: Signal, options: &Options, state: &State) -> Vec<Tree> {
    let sets = state.tree.sets();
    let mut trees = Vec::new();
    if options.is_fast {
        return trees;
    }
    if signal != Signal::Usual {
        let constraint = options.constraint.as_deref();
        let mut joined = join_neighbours(data, sets, constraint);
        if options.is_varied {
            shake::disturbed(&mut joined, &mut Random::new(state.seed, Purpose::Start, 0), constraint);
        }
        trees.push(joined);
    }
    if signal == Signal::Weak && options.starts > 0 {
        let mut parsimony = Parsimony::new(data).within(options.constraint.clone());
        let numbers = 1..=options.starts as u64;
        let random = |number| Random::new(state.seed, Purpose::Start, number);
        trees.extend(numbers.map(|number| parsimony.stepwise_tree(&mut random(number), sets)));
    }
    trees
}

/// Is told how a search goes on.
pub trait Progress {
    /// After every round, with the state from which the search can be continued to the same result. To break is to stop
    /// the search.
    fn round(&mut self, state: &State) -> ControlFlow<()>;
}

/// Nobody wants to know.
impl Progress for () {
    fn round(&mut self, _: &State) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResult {
    /// The tree with its branch lengths.
    pub tree: Tree,
    /// The models of the partitions.
    pub models: Vec<Model>,
    /// The log-likelihood.
    pub log_likelihood: f64,
}

/// A search.
pub struct Search<'o> {
    likelihood: Likelihood<'o>,
    options: Options,
    signal: Signal,
    /// Where other starting trees come from, if there will be any.
    parsimony: Option<Parsimony>,
    /// Other trees with which it will begin, too.
    starts: Vec<Tree>,
    state: State,
}

impl<'o> Search<'o> {
    /// A search from a parsimony tree that `random` determines.
    pub fn new(
        data: &[(&Patterns, &Model)],
        branches: Branches,
        options: Options,
        isa: Isa,
        random: &mut Random,
        offload: Box<dyn Offload + 'o>,
    ) -> Search<'o> {
        let sets = if branches == Branches::Linked { 1 } else { data.len() };
        let patterns: Vec<&Patterns> = data.iter().map(|(p, _)| *p).collect();
        let tree = {
            let mut parsimony = Parsimony::new(&patterns).within(options.constraint.clone());
            match options.is_fast {
                true => parsimony.stepwise_tree(random, sets),
                false => parsimony.start_tree(random, sets),
            }
        };
        Search::from_tree(data, branches, options, isa, tree, random.bits(), offload)
    }

    /// A search from a given tree; `seed` is that of its random moves.
    pub fn from_tree(
        data: &[(&Patterns, &Model)],
        branches: Branches,
        options: Options,
        isa: Isa,
        tree: Tree,
        seed: u64,
        offload: Box<dyn Offload + 'o>,
    ) -> Search<'o> {
        let models = data.iter().map(|(_, m)| (*m).clone()).collect();
        let state = State::new(tree, models, seed);
        Search::from_state(data, branches, options, isa, state, offload)
    }

    /// A search that goes on from a state that [`Progress::round`] was given; it ends with the same bits as the search
    /// that gave it.
    pub fn from_state(
        data: &[(&Patterns, &Model)],
        branches: Branches,
        options: Options,
        isa: Isa,
        state: State,
        offload: Box<dyn Offload + 'o>,
    ) -> Search<'o> {
        let data: Vec<_> = data.iter().zip(&state.models).map(|((patterns, _), model)| (*patterns, model)).collect();
        let patterns: Vec<&Patterns> = data.iter().map(|(patterns, _)| *patterns).collect();
        let signal = Signal::of(&patterns);
        let starts = match state.stage {
            Stage::Start | Stage::Join => starts(&patterns, signal, &options, &state),
            _ => vec![],
        };
        let mut likelihood = Likelihood::new(&data, branches, state.tree.clone(), isa, offload);
        likelihood.set_constraint(options.constraint.clone());
        likelihood.set_spare(options.slots());
        let parsimony = (options.climbs > 0).then(|| Parsimony::new(&patterns).within(options.constraint.clone()));
        Search { likelihood, options, signal, parsimony, starts, state }
    }

    /// Runs to the end, or until `progress` breaks it off; then gives `None`.
    pub fn run(mut self, progress: &mut dyn Progress) -> Option<SearchResult> {
        while self.state.stage != Stage::Done {
            self.round();
            // What a round leaves behind is in the state alone, so that it does not matter who goes on from it.
            self.state.tree = self.likelihood.tree().clone();
            self.state.models = self.likelihood.models().to_vec();
            self.likelihood.set_tree(self.state.tree.clone());
            if progress.round(&self.state).is_break() && self.state.stage != Stage::Done {
                return None;
            }
        }
        let State { tree, models, log_likelihood, .. } = self.state;
        Some(SearchResult { tree, models, log_likelihood })
    }

    /// Climbs from the next of the other starting trees. Keeps the better of what is found and what was there, with what is
    /// better in parts of the other where the signal is weak. True where both are one tree.
    fn climb_from_another(&mut self) -> bool {
        let (mut before, mut first) = (self.state.log_likelihood, self.likelihood.tree().clone());
        let tree = self.starts[self.state.shakes].clone();
        self.state.shakes += 1;
        self.likelihood.set_tree(tree);
        let mut now = self.climb_from_start();
        let agree = |a: &Tree, b: &Tree| Splits::new(a).distance(&Splits::new(b)) == 0;
        if self.signal == Signal::Abundant && !agree(&first, self.likelihood.tree()) {
            // Exchanges alone end early; where the better tree is the only one, larger moves lead to it from the worse one.
            if now > before {
                let worse = std::mem::replace(&mut first, self.likelihood.tree().clone());
                self.likelihood.set_tree(worse);
                std::mem::swap(&mut now, &mut before);
            }
            now = self.climb_while(&moves::Effort::fast(NEAR), now, 1.0);
        }
        let mut other = self.likelihood.tree().clone();
        let agree = agree(&first, &other);
        self.state.log_likelihood = now.max(before);
        if now < before {
            self.likelihood.set_tree(first);
        } else {
            other = first;
        }
        if self.signal == Signal::Weak && !agree {
            self.state.log_likelihood = self.likelihood.fuse(&other, self.state.log_likelihood);
        }
        agree
    }

    /// Climbs from a starting tree, not far where there will be others.
    fn climb_from_start(&mut self) -> f64 {
        let now = self.likelihood.exchange_while(1.0);
        match self.signal {
            Signal::Weak if !self.options.is_fast => self.climb_while(&moves::Effort::fast(NEAR), now, 1.0),
            _ => now,
        }
    }

    /// One round of the present stage.
    fn round(&mut self) {
        let before = self.state.log_likelihood;
        let Options { fast_radius, gain, .. } = self.options;
        let n = self.likelihood.tree().taxa();
        // What is disturbed in many places one by one need not be looked at from far away.
        let (thorough_radius, shakes) = match self.signal {
            Signal::Weak => (NEAR.min(self.options.thorough_radius), self.options.local_shakes * n / 100),
            _ => (self.options.thorough_radius, self.options.shakes),
        };
        match self.state.stage {
            Stage::Start if self.options.is_fast || !self.starts.is_empty() => {
                self.likelihood.smooth(1, 1.0, Precision::COARSE);
                self.likelihood.optimize_models(1.0);
                self.state.log_likelihood = self.climb_from_start();
                self.state.stage = match n {
                    3 => Stage::Final,
                    _ if self.options.is_fast => Stage::Fast,
                    _ => Stage::Join,
                };
                self.state.radius = NEAR.min(fast_radius);
            }
            Stage::Start => {
                self.likelihood.smooth(3, 1.0, Precision::COARSE);
                self.likelihood.optimize_models(1.0);
                self.state.log_likelihood = self.likelihood.smooth(2, 1.0, Precision::COARSE);
                // Of three taxa there is one tree.
                self.state.stage = if n == 3 { Stage::Final } else { Stage::Fast };
                self.state.radius = NEAR.min(fast_radius);
            }
            Stage::Join => {
                let agree = self.climb_from_another();
                if self.state.shakes == self.starts.len() {
                    let is_clear = self.signal == Signal::Abundant && agree;
                    self.state.stage = if is_clear { Stage::Final } else { Stage::Fast };
                    (self.state.shakes, self.state.radius) = (0, NEAR.min(fast_radius));
                }
            }
            Stage::Fast => {
                let found = moves::Effort::fast(self.state.radius);
                let now = self.climb(&found);
                self.state.log_likelihood = now;
                if now - before < 1.0 {
                    self.state.radius += 5;
                    if self.state.radius > fast_radius && self.options.is_fast {
                        self.state.stage = Stage::Final;
                    } else if self.state.radius > fast_radius {
                        self.state.log_likelihood = self.likelihood.optimize_all(0.1);
                        (self.state.stage, self.state.radius) = (Stage::Thorough, NEAR.min(thorough_radius));
                    }
                } else if now - before > 20.0 {
                    self.likelihood.optimize_models(0.5);
                    self.state.log_likelihood = self.likelihood.smooth(2, 0.5, Precision::COARSE);
                }
            }
            Stage::Thorough => {
                let found = moves::Effort::thorough(self.state.radius);
                let now = self.climb(&found);
                self.state.log_likelihood = now;
                if now - before > 0.01 {
                    self.state.radius = NEAR.min(thorough_radius);
                } else {
                    self.state.radius += 5;
                    if self.state.radius > thorough_radius {
                        // Of four taxa there are three trees; they have been tried.
                        self.state.stage = match (self.options.climbs, shakes) {
                            _ if n < 5 => Stage::Final,
                            (1.., _) => Stage::Again,
                            (_, 1..) => Stage::Shake,
                            _ => Stage::Final,
                        };
                        self.state.shakes = 0;
                    }
                }
            }
            Stage::Again => {
                if self.climb_again() || self.state.shakes >= self.options.climbs {
                    self.state.stage = Stage::Final;
                }
            }
            Stage::Shake => {
                match self.signal {
                    Signal::Weak => self.shake_locally(),
                    _ => self.shake(),
                }
                if self.state.failures >= shakes {
                    self.state.stage = Stage::Final;
                }
            }
            Stage::Final => {
                self.likelihood.optimize_all(gain);
                let fine = Precision { gain: 1e-7, ..Precision::FINE };
                self.state.log_likelihood = self.likelihood.smooth(16, 1e-3 * gain, fine);
                self.state.stage = Stage::Done;
            }
            Stage::Done => {}
        }
    }
}
