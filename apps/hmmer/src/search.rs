//! From what a run tells of all sequences to the hits of a profile: which can be reported, and their domains.
//!
//! The rest of the work is that of few sequences, whose number is known only when all were looked at, so it is no
//! part of the program, nor of its plan and times: it has what memory the run leaves, and the command tells its time and
//! its memory apart; a trace has it behind the run, a leaf for each sequence. Workers take sequences one at a time, the
//! longest first; a hit depends on its sequence alone, and hits come back in the order of the database.

use crate::domain::{Bound, Finder, Short};
use crate::filter::ForwardFilter;
use crate::kernel::Scores;
use crate::profile::Profile;
use crate::sequence::Database;
use crate::table::Named;
use crate::task::SCORES;
use multigrain::prelude::{Error, Outcome, Region};
use multigrain::{Afterwards, Enough, readable_bytes};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
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

/// Calls `each` with the number of every sequence and how many filters it passed, in order.
///
/// # Errors
/// When they cannot be read, and what `each` returns.
///
/// # Panics
/// When array `stages` has not one byte for each sequence of `database`.
pub fn for_stages(
    outcome: &Outcome,
    stages: usize,
    database: &Database,
    mut each: impl FnMut(usize, u8) -> Result<(), Error>,
) -> Result<(), Error> {
    for (first, count) in multigrain::prelude::blocks(database.len() as u64, 16 * ROWS) {
        let bytes = outcome.read(stages, &Region::new(&[first], &[count]))?;
        bytes.into_iter().zip(first as usize..).try_for_each(|(stage, i)| each(i, stage))?;
    }
    Ok(())
}

/// The residue codes of sequence `i`, from the array of all.
///
/// # Errors
/// When they cannot be read.
///
/// # Panics
/// When there is no sequence `i`, or the array is not that of the database's residues.
pub fn sequence(outcome: &Outcome, residues: usize, database: &Database, i: usize) -> Result<Vec<u8>, Error> {
    outcome.read(residues, &Region::new(&[database.offsets()[i]], &[database.length(i)]))
}

/// What hits are looked for with.
pub struct Search<'a> {
    /// The run.
    pub outcome: &'a Outcome,
    /// The array of the sequences' residues.
    pub residues: usize,
    /// The sequences.
    pub database: &'a Database,
    /// The profile.
    pub profile: &'a Profile,
    /// What can be reported.
    pub bound: Bound,
    /// What their Forward scores have to pass.
    pub filter: Option<ForwardFilter>,
    /// Whether the alignments of domains are told.
    pub align: bool,
    /// Whether scores are corrected for biased composition (null2).
    pub correct_bias: bool,
    /// Threads, where memory allows.
    pub workers: usize,
    /// Memory for candidates, hits and the threads' work, in bytes. Of a sequence that needs more, no domains are looked for:
    /// the search fails.
    pub memory_bytes: u64,
    /// What the hits take of it, with those of other profiles.
    pub kept: &'a Kept,
    /// Where what each thread does is told.
    pub told: Afterwards,
}

/// What a candidate takes of the memory: while their list grows, and then perhaps once more as one whose domains take more
/// than a share.
const CANDIDATE_BYTES: u64 = 2 * 8 + 24;

/// About what a hit takes, where none is known.
const HIT_BYTES: u64 = 1 << 10;

/// How much memory hits take, those of all profiles. Beyond half of what there is beside candidates they are counted, so that
/// it can be said how much is enough, and not kept.
#[derive(Debug, Default)]
pub struct Kept {
    bytes: AtomicU64,
    hits: AtomicU64,
    /// The most candidates of a profile.
    candidates: AtomicU64,
    is_too_much: AtomicBool,
}

// Relaxed everywhere: nothing is published by these numbers, and who reads them for good has joined the threads that count.
impl Kept {
    /// Of so many bytes, what candidates leave, before they are looked at.
    fn beside(&self, candidates: usize, memory_bytes: u64) -> u64 {
        let most = self.candidates.fetch_max(candidates as u64, Ordering::Relaxed).max(candidates as u64);
        memory_bytes.saturating_sub(CANDIDATE_BYTES.saturating_mul(most))
    }

    /// Whether hits take more than they may, so that none are kept.
    pub(crate) fn is_too_much(&self) -> bool {
        self.is_too_much.load(Ordering::Relaxed)
    }

    /// What they take, if they are kept.
    fn bytes(&self) -> u64 {
        if self.is_too_much() { 0 } else { self.bytes.load(Ordering::Relaxed) }
    }

    /// Counts a hit: whether it is kept, of so much that hits may take.
    fn takes(&self, hit_bytes: u64, most_bytes: u64) -> bool {
        self.hits.fetch_add(1, Ordering::Relaxed);
        let bytes = self.bytes.fetch_add(hit_bytes, Ordering::Relaxed) + hit_bytes;
        self.is_too_much.fetch_or(bytes > most_bytes, Ordering::Relaxed);
        bytes <= most_bytes
    }

    /// So much memory is enough for candidates, hits that were counted and so many more: hits take half of it.
    fn needed_bytes(&self, more: usize) -> u64 {
        let (hits, bytes) = (self.hits.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed));
        let each = bytes.checked_div(hits).unwrap_or(HIT_BYTES);
        let all = bytes.saturating_add(each.saturating_mul(more as u64));
        let candidates = CANDIDATE_BYTES.saturating_mul(self.candidates.load(Ordering::Relaxed));
        all.saturating_mul(2).saturating_add(candidates)
    }

    /// Refuses hits of which not all were kept.
    ///
    /// # Errors
    /// Says how much memory is enough for all.
    pub fn check(&self, outcome: &Outcome) -> Result<(), Error> {
        if !self.is_too_much() {
            return Ok(());
        }
        let (hits, bytes) = (self.hits.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed));
        Err(Error::After(format!(
            "{hits} hits take about {} of memory, twice as much with what finds them, and there is too little; give --memory at \
             least {}, or ask for fewer hits (a smaller -E, a larger -T)",
            readable_bytes(bytes),
            Enough::from_need(outcome.memory_for(self.needed_bytes(0)))
        )))
    }
}

/// What some sequences gave.
#[derive(Default)]
struct Looked {
    hits: Vec<Named>,
    /// Sequences whose domains take more than a thread's share of the memory.
    short: Vec<(usize, Short)>,
}

impl Search<'_> {
    /// The hits among these sequences: all that can be reported and perhaps some that cannot, in the order of the
    /// database.
    ///
    /// # Errors
    /// When sequences cannot be read, or the domains of one could not be found within the memory.
    pub fn hits(&self, mut candidates: Vec<usize>) -> Result<Vec<Named>, Error> {
        // The longest first, so that all threads end together.
        candidates.sort_unstable_by_key(|&i| (std::cmp::Reverse(self.database.length(i)), i));
        let room = self.kept.beside(candidates.len(), self.memory_bytes);
        let (mut hits, mut workers) = (Vec::new(), self.workers);
        // What a region takes is known when it is found. Who needs more than a share waits for larger ones, of fewer threads.
        loop {
            workers = workers.min(candidates.len()).max(1);
            let looked = self.hits_of(&candidates, workers, room)?;
            hits.extend(looked.hits);
            let most = looked.short.iter().max_by_key(|(_, short)| short.needed_bytes);
            match most {
                None => break,
                Some(&(i, short)) if workers == 1 => return Err(self.too_little(i, short, looked.short.len(), room)),
                Some(_) => workers /= 2,
            }
            candidates = looked.short.into_iter().map(|(i, _)| i).collect();
        }
        hits.sort_unstable_by_key(|named| named.index);
        Ok(hits)
    }

    /// Of so many sequences whose domains could not be found, the one that takes most.
    fn too_little(&self, i: usize, short: Short, count: usize, room: u64) -> Error {
        let (length, nodes) = (self.database.length(i), self.profile.nodes());
        let name = self.database.header(i).map_or_else(|_| (i + 1).to_string(), |(name, _)| name);
        let others = self.kept.needed_bytes(count);
        Error::After(format!(
            "sequence {name} of {length} residues is perhaps a hit, and to find its domains with profile {} of {nodes} nodes \
             takes {}; the memory has {} for that; give --memory at least {}",
            self.profile.name,
            readable_bytes(short.needed_bytes),
            readable_bytes(room.saturating_sub(self.kept.bytes())),
            Enough::from_need(self.outcome.memory_for(short.needed_bytes.saturating_add(others)))
        ))
    }

    /// The hits among some sequences, in no order, found within so many bytes, of which hits take their part.
    fn hits_of(&self, sequences: &[usize], workers: usize, room: u64) -> Result<Looked, Error> {
        let next = AtomicUsize::new(0);
        let another = || Finder::new(self.profile).with_filter(self.filter.clone()).with_alignments(self.align);
        let work = |worker: usize| {
            let mut told = self.told.worker(worker);
            let mut finder = another();
            let mut looked = Looked::default();
            // Relaxed: the counter guards nothing but who takes which sequence.
            while let Some(&i) = sequences.get(next.fetch_add(1, Ordering::Relaxed)) {
                let share = room.saturating_sub(self.kept.bytes()) / workers as u64;
                if finder.held_bytes() > share {
                    finder = another();
                }
                finder.set_limit(share);
                match told.leaf(i as u32, || self.hit(&mut finder, i))? {
                    Ok(hit) => looked.hits.extend(hit.filter(|hit| self.kept.takes(hit.bytes(self.profile), room / 2))),
                    Err(short) => looked.short.push((i, short)),
                }
                if self.kept.is_too_much() {
                    looked.hits = Vec::new();
                }
            }
            Ok(looked)
        };
        if workers == 1 {
            return work(0);
        }
        thread::scope(|scope| {
            let work = &work;
            let threads: Vec<_> = (0..workers).map(|worker| scope.spawn(move || work(worker))).collect();
            let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
            let found = joined.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            found.reduce(|all, one| {
                let (mut all, one) = (all?, one?);
                all.hits.extend(one.hits);
                all.short.extend(one.short);
                Ok(all)
            })
        })
        .unwrap_or_else(|| Ok(Looked::default()))
    }

    fn hit(&self, finder: &mut Finder, i: usize) -> Result<Result<Option<Named>, Short>, Error> {
        let residues = sequence(self.outcome, self.residues, self.database, i)?;
        let hit = match finder.hit(&residues, self.correct_bias, &self.bound) {
            Ok(Some(hit)) => hit,
            Ok(None) => return Ok(Ok(None)),
            Err(short) => return Ok(Err(short)),
        };
        let (name, description) = self.database.header(i).map_err(|e| Error::After(e.to_string()))?;
        Ok(Ok(Some(Named { name, description, index: i as u64, length: self.database.length(i), hit })))
    }
}
