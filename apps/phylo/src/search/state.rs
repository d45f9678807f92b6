//! The state of a search between two rounds, as text that is read again to the same bits.

use crate::model::Model;
use crate::tree::{HalfEdge, Tree};
use std::fmt::Write as _;

/// Where a search is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Before the first round.
    Start,
    /// Before the tree from distances is tried.
    Join,
    /// Rounds with few fitted places.
    Fast,
    /// Rounds with many.
    Thorough,
    /// Climbs from other starting trees.
    Again,
    /// Random moves and climbing.
    Shake,
    /// Only parameters and branch lengths are left.
    Final,
    /// At its end.
    Done,
}

const STAGES: [(Stage, &str); 8] = [
    (Stage::Start, "start"),
    (Stage::Join, "join"),
    (Stage::Fast, "fast"),
    (Stage::Thorough, "thorough"),
    (Stage::Again, "again"),
    (Stage::Shake, "shake"),
    (Stage::Final, "final"),
    (Stage::Done, "done"),
];

impl Stage {
    /// Its name.
    pub fn name(self) -> &'static str {
        STAGES.iter().find(|(s, _)| *s == self).map_or("", |(_, name)| name)
    }
}

/// All that a search knows between two rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Where it is.
    pub stage: Stage,
    /// Radius of the next round.
    pub radius: usize,
    /// Seed of the random moves.
    pub seed: u64,
    /// How often the tree has been disturbed.
    pub shakes: usize,
    /// How often in a row that was in vain.
    pub failures: usize,
    /// The log-likelihood of the tree.
    pub log_likelihood: f64,
    /// The tree.
    pub tree: Tree,
    /// The models of the partitions.
    pub models: Vec<Model>,
}

/// A text that is no state of this search.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the state of the search is damaged: {0}")]
pub struct StateError(String);

fn words(values: impl IntoIterator<Item = f64>) -> String {
    values.into_iter().map(|v| format!(" {:016x}", v.to_bits())).collect()
}

/// A number from all its bits.
fn bits(word: &str) -> Option<f64> {
    (word.len() == 16).then(|| u64::from_str_radix(word, 16).ok().map(f64::from_bits))?
}

impl State {
    /// Before the first round.
    pub fn new(tree: Tree, models: Vec<Model>, seed: u64) -> State {
        let (stage, log_likelihood) = (Stage::Start, f64::NEG_INFINITY);
        State { stage, radius: 0, seed, shakes: 0, failures: 0, log_likelihood, tree, models }
    }

    /// About how far the search is, 0 to 1: what its stages take of its time. For people who wait.
    pub fn share(&self) -> f64 {
        match self.stage {
            Stage::Start => 0.0,
            Stage::Join => 0.1,
            Stage::Fast => 0.15 + 0.01 * self.radius as f64,
            Stage::Thorough => 0.3 + 0.01 * self.radius as f64,
            Stage::Again | Stage::Shake => 0.95 - 0.45 / (1.0 + 0.25 * self.shakes as f64),
            Stage::Final => 0.97,
            Stage::Done => 1.0,
        }
    }

    /// As lines of text; numbers are written with all their bits.
    pub fn to_text(&self) -> String {
        let State { radius, seed, shakes, failures, .. } = self;
        let value = words([self.log_likelihood]);
        let mut text = format!("search {} {radius} {seed} {shakes} {failures}{value}\n", self.stage.name());
        for m in &self.models {
            let scalars = words([m.alpha, m.pinv, m.speed].map(|x| x.unwrap_or(f64::NAN)));
            let free = m.free_rates.as_flattened();
            let lists = words(m.exchangeabilities.iter().chain(&m.frequencies).chain(free).copied());
            let _ = writeln!(text, "parameters{scalars}{lists}");
        }
        for half in self.tree.branches() {
            let lengths = words(self.tree.lengths(half).iter().copied());
            let _ = writeln!(text, "branch {} {}{lengths}", half.0, self.tree.back(half).0);
        }
        text
    }

    /// Reads what [`State::to_text`] wrote. `start` is a state of the same search, from which names and kinds of models and
    /// the size of the tree are taken.
    ///
    /// # Errors
    /// Where the text is damaged or belongs to another search.
    pub fn from_text(text: &str, start: &State) -> Result<State, StateError> {
        let wrong = |what: &str| StateError(what.to_owned());
        let mut state = start.clone();
        let (taxa, sets) = (start.tree.taxa(), start.tree.sets());
        let mut tree = Tree::new(taxa, sets);
        let (mut models, mut begun) = (0, false);
        for line in text.lines() {
            let mut fields = line.split(' ');
            let word = fields.next().unwrap_or("");
            let mut number = || -> Result<f64, StateError> {
                let field = fields.next().and_then(bits);
                field.ok_or_else(|| wrong("a number is missing"))
            };
            match word {
                "parameters" if models < state.models.len() => {
                    let model = &mut state.models[models];
                    let (alpha, pinv, speed) = (number()?, number()?, number()?);
                    model.alpha = model.alpha.map(|_| alpha);
                    model.pinv = model.pinv.map(|_| pinv);
                    model.speed = model.speed.map(|_| speed);
                    let free = model.free_rates.as_flattened_mut();
                    for value in model.exchangeabilities.iter_mut().chain(&mut model.frequencies).chain(free) {
                        *value = number()?;
                    }
                    models += 1;
                }
                "search" => {
                    let stage = fields.next().and_then(|name| STAGES.iter().find(|(_, n)| *n == name));
                    state.stage = stage.ok_or_else(|| wrong("an unknown stage"))?.0;
                    let mut count = || {
                        let count = fields.next().and_then(|r| r.parse::<u64>().ok());
                        count.ok_or_else(|| wrong("a number is missing"))
                    };
                    state.radius = count()? as usize;
                    state.seed = count()?;
                    state.shakes = count()? as usize;
                    state.failures = count()? as usize;
                    let value = fields.next().and_then(bits);
                    state.log_likelihood = value.ok_or_else(|| wrong("no log-likelihood"))?;
                    begun = true;
                }
                "branch" => {
                    let mut half = || {
                        let half = fields.next().and_then(|f| f.parse().ok()).map(HalfEdge);
                        half.filter(|h| h.index() < tree.halves()).ok_or_else(|| wrong("an unknown node"))
                    };
                    let (a, b) = (half()?, half()?);
                    let lengths: Option<Vec<f64>> = fields.map(bits).collect();
                    let lengths = lengths.ok_or_else(|| wrong("a length is cut"))?;
                    if lengths.len() != sets || a == b || tree.is_attached(a) || tree.is_attached(b) {
                        return Err(wrong("a branch that cannot be"));
                    }
                    tree.join(a, b, &lengths);
                }
                _ => return Err(wrong("an unknown line")),
            }
        }
        if !begun || models != state.models.len() || !tree.is_valid() {
            return Err(wrong("it is incomplete"));
        }
        state.tree = tree;
        Ok(state)
    }
}
