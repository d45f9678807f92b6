//! What lies in areas, as terms over contributions.

use crate::order::Span;
use std::collections::HashMap;

/// Names a term; 0 is nothing.
pub(super) type Value = u32;

pub(super) const NOTHING: Value = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Term {
    /// What a participant contributes to a round.
    Contribution { round: u32, rank: u32 },
    /// Left (+) right.
    Combined(Value, Value),
}

/// All terms met so far, each once, so that equal names are equal terms.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    names: HashMap<Term, Value>,
    terms: Vec<Term>,
}

impl Values {
    fn name(&mut self, term: Term) -> Value {
        *self.names.entry(term).or_insert_with(|| {
            self.terms.push(term);
            self.terms.len() as Value
        })
    }

    pub(super) fn contribution(&mut self, round: u32, rank: u32) -> Value {
        self.name(Term::Contribution { round, rank })
    }

    pub(super) fn combined(&mut self, left: Value, right: Value) -> Value {
        self.name(Term::Combined(left, right))
    }

    /// The result of a reduction in canonical order.
    pub(super) fn canonical(&mut self, round: u32, span: Span) -> Value {
        match span.parts() {
            None => self.contribution(round, span.first),
            Some((left, right)) => {
                let (left, right) = (self.canonical(round, left), self.canonical(round, right));
                self.combined(left, right)
            }
        }
    }

    /// Whether a value combines the contribution of each of `n` participants to `round` once, in whatever order.
    pub(super) fn combines_each_once(&self, value: Value, round: u32, n: u32) -> bool {
        let mut ranks = Vec::new();
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            match value.checked_sub(1).map(|i| self.terms[i as usize]) {
                Some(Term::Contribution { round: of, rank }) if of == round => ranks.push(rank),
                Some(Term::Combined(left, right)) => open.extend([left, right]),
                _ => return false,
            }
        }
        ranks.sort_unstable();
        ranks.into_iter().eq(0..n)
    }
}
