//! From the scores of all sequences to the hits of a profile: which sequences can be reported, and their domains.
//!
//! The rest of the work is that of few sequences, whose number is known only when all are scored, so it is no part of
//! the program. Workers take sequences one at a time, the longest first; a hit depends on its sequence alone, and hits
//! come back in the order of the database.

use crate::domain::{Bound, Finder};
use crate::kernel::Scores;
use crate::profile::Profile;
use crate::sequence::{Database, SequenceError};
use crate::table::Named;
use crate::task::SCORES;
use multigrain::prelude::{Error, Outcome, Region};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Rows of scores that are read at once.
const ROWS: u64 = 1 << 16;

/// Calls `each` with the number and the scores of every sequence, in order.
///
/// # Errors
/// When the scores cannot be read, and what `each` returns.
///
/// # Panics
/// When array `scores` is no array of scores of as many sequences as `database` has.
pub fn for_scores(
    outcome: &Outcome,
    scores: usize,
    database: &Database,
    mut each: impl FnMut(usize, Scores) -> Result<(), Error>,
) -> Result<(), Error> {
    for (first, rows) in multigrain::prelude::blocks(database.len() as u64, ROWS) {
        let bytes = outcome.read(scores, &Region::new(&[first, 0], &[rows, SCORES]))?;
        for (row, i) in bytes.as_chunks::<16>().0.iter().zip(first as usize..) {
            let score = |at: usize| f64::from_le_bytes(std::array::from_fn(|byte| row[at + byte]));
            each(i, Scores::from([score(0), score(8)]))?;
        }
    }
    Ok(())
}

/// What hits are looked for with.
pub struct Search<'a> {
    /// The sequences.
    pub database: &'a Database,
    /// The profile.
    pub profile: &'a Profile,
    /// What can be reported.
    pub bound: Bound,
    /// Whether scores are corrected for biased composition (null2).
    pub correct_bias: bool,
    /// Threads.
    pub workers: usize,
}

impl Search<'_> {
    /// The hits of a run whose array `scores` holds the scores against the profile: all that can be reported and perhaps
    /// some that cannot, in the order of the database.
    ///
    /// # Errors
    /// When scores or sequences cannot be read.
    ///
    /// # Panics
    /// As [`for_scores`].
    pub fn hits(&self, outcome: &Outcome, scores: usize) -> Result<Vec<Named>, Error> {
        let mut candidates = Vec::new();
        for_scores(outcome, scores, self.database, |i, scores| {
            if self.bound.may_be_reported(scores.forward, self.database.length(i) as usize) {
                candidates.push(i);
            }
            Ok(())
        })?;
        candidates.sort_by_key(|&i| std::cmp::Reverse(self.database.length(i)));
        let next = AtomicUsize::new(0);
        let work = || {
            let mut finder = Finder::new(self.profile);
            let mut found = Vec::new();
            // Relaxed: the counter guards nothing but who takes which sequence.
            while let Some(&i) = candidates.get(next.fetch_add(1, Ordering::Relaxed)) {
                found.extend(self.hit(&mut finder, i)?);
            }
            Ok(found)
        };
        let workers = self.workers.min(candidates.len());
        let found: Vec<Result<Vec<Named>, SequenceError>> = match workers {
            0 | 1 => vec![work()],
            _ => thread::scope(|scope| {
                let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
                let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
                joined.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
            }),
        };
        let mut hits = Vec::new();
        for found in found {
            hits.extend(found.map_err(|e| Error::After(e.to_string()))?);
        }
        hits.sort_by_key(|named| named.index);
        Ok(hits)
    }

    fn hit(&self, finder: &mut Finder, i: usize) -> Result<Option<Named>, SequenceError> {
        let residues = self.database.sequence(i)?;
        let Some(hit) = finder.hit(&residues, self.correct_bias, &self.bound) else { return Ok(None) };
        let (name, description) = self.database.header(i)?;
        Ok(Some(Named { name, description, index: i as u64, hit }))
    }
}
