//! The memory of one chunk of patterns.

use super::layout::Line;
use super::{Constants, kernel_states};
use crate::alignment::Patterns;
use multigrain_simd::DOUBLES;

/// The most patterns in a chunk.
pub(super) const CHUNK_PATTERNS: usize = 64;

/// Patterns in a chunk, but in the last one of a partition: 64 of DNA, 16 of proteins, so that a vector of four categories
/// has some 8 KiB, the vectors of one step lie in a first-level cache, and a step takes one or two microseconds: workers
/// that share a loop end at most so far apart.
pub fn chunk_patterns(states: usize) -> usize {
    if states > 4 { CHUNK_PATTERNS / 4 } else { CHUNK_PATTERNS }
}

/// Products in the space of eigenvectors.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    /// `[block][category][eigenvalue]`.
    pub(super) lines: Vec<Line>,
    /// What the scaling of the vectors adds to the log-likelihood.
    pub(super) offset: f64,
    /// `[pattern]`: 2^-256 to the power of the count where the pattern may be invariant; empty: nothing was scaled or
    /// there is no invariant class.
    pub(super) factors: Vec<f64>,
}

/// Up to [`chunk_patterns`] patterns of one partition, with the memory for all that is computed from them.
#[derive(Debug)]
pub struct Chunk {
    partition: usize,
    pub(super) states: usize,
    pub(super) categories: usize,
    /// How many patterns there are.
    patterns: usize,
    /// Blocks of eight patterns.
    pub(super) blocks: usize,
    /// `[taxon][pattern]`: codes times states, where a code's row begins in a table; gaps fill the last block.
    pub(super) tips: Vec<u16>,
    /// The end of the last row.
    pub(super) rows_end: usize,
    /// `[pattern]`: how many sites; 0 in the rest of the last block.
    pub(super) weights: Vec<f64>,
    /// `[pattern]`: states that the pattern may be invariant in.
    invariant_masks: Vec<u32>,
    /// `[pattern]`: likelihood of the invariant class of sites; empty where there is none.
    pub(super) invariant: Vec<f64>,
    /// `[slot][block][category][state]`.
    pub(super) vectors: Vec<Line>,
    /// `[slot][pattern]`: how often the pattern was scaled. Meaningful where `scaled` is set.
    pub(super) counts: Vec<u32>,
    /// `[slot]`: whether any pattern was scaled.
    pub(super) scaled: Vec<bool>,
    /// `[table]`.
    pub(super) tables: Vec<Table>,
    pub(super) results: Vec<[f64; 3]>,
    /// `[pattern]`: log-likelihoods, where they were asked for last; those in the rest of the last block mean nothing.
    pub(super) logs: Vec<f64>,
    /// Whether results add up likelihoods instead of their logarithms.
    pub(super) is_plain: bool,
}

impl Chunk {
    /// The chunks of a partition, in order.
    pub fn of(patterns: &Patterns, partition: usize, categories: usize) -> Vec<Chunk> {
        Chunk::of_at_most(chunk_patterns(patterns.data_type.states()), patterns, partition, categories)
    }

    fn of_at_most(most: usize, patterns: &Patterns, partition: usize, categories: usize) -> Vec<Chunk> {
        let masks = patterns.invariant_masks();
        let starts = (0..patterns.len()).step_by(most);
        let chunk = |start: usize| {
            let range = start..(start + most).min(patterns.len());
            let padding = range.len().next_multiple_of(DOUBLES) - range.len();
            let blocks = range.len().div_ceil(DOUBLES);
            let gap = patterns.data_type.gap();
            let letters = patterns
                .tips
                .iter()
                .flat_map(|tip| tip[range.clone()].iter().copied().chain(std::iter::repeat_n(gap, padding)));
            let states = kernel_states(patterns.data_type.states());
            // Nobody knows how many a chain of rows has: its list would grow to up to twice as much.
            let mut tips = Vec::with_capacity(patterns.taxa() * blocks * DOUBLES);
            tips.extend(letters.map(|code| u16::from(code) * states as u16));
            let zeros = std::iter::repeat_n(0, padding);
            Chunk {
                partition,
                states,
                categories,
                patterns: range.len(),
                blocks,
                rows_end: patterns.data_type.masks().len() * states,
                tips,
                weights: patterns.weights[range.clone()].iter().copied().chain(zeros.clone()).map(f64::from).collect(),
                invariant_masks: masks[range].iter().copied().chain(zeros).collect(),
                invariant: vec![],
                vectors: vec![],
                counts: vec![],
                scaled: vec![],
                tables: vec![],
                results: vec![],
                logs: vec![],
                is_plain: false,
            }
        };
        starts.map(chunk).collect()
    }

    /// A chunk of the patterns in which all taxa have one state, each once: what its results add up are likelihoods.
    pub fn of_constant(patterns: &Patterns, partition: usize, categories: usize) -> Chunk {
        let data_type = patterns.data_type;
        let code = |state: usize| data_type.masks().iter().position(|&mask| mask == 1 << state).unwrap_or(0) as u8;
        let codes: Vec<u8> = (0..data_type.states()).map(code).collect();
        let constant = Patterns {
            data_type,
            tips: vec![codes; patterns.taxa()],
            weights: vec![1; data_type.states()],
            pattern_of_site: vec![],
        };
        let mut chunks = Chunk::of_at_most(CHUNK_PATTERNS, &constant, partition, categories);
        assert!(chunks.len() == 1, "{} constant patterns are more than a chunk holds", data_type.states());
        Chunk { is_plain: true, ..chunks.remove(0) }
    }

    /// The partition that the patterns belong to.
    pub fn partition(&self) -> usize {
        self.partition
    }

    /// Results of the last batch.
    pub fn results(&self) -> &[[f64; 3]] {
        &self.results
    }

    /// The log-likelihood of each pattern, as it was when it was asked for last.
    pub fn logs(&self) -> &[f64] {
        &self.logs[..self.patterns]
    }

    /// Takes over what depends on the model and on patterns: the likelihoods of the invariant class.
    pub fn set_model(&mut self, constants: &Constants) {
        self.invariant.clear();
        if constants.pinv() > 0.0 {
            let likelihood = |&mask: &u32| constants.invariant_likelihood(mask);
            self.invariant.extend(self.invariant_masks.iter().map(likelihood));
        }
    }

    /// Lines of one vector.
    pub(super) fn lines(&self) -> usize {
        self.blocks * self.categories * self.states
    }

    /// Room for `slots` vectors, `tables` tables and `results` results.
    pub(super) fn reserve(&mut self, slots: usize, tables: usize, results: usize) {
        if self.scaled.len() < slots {
            // No more than was said to be needed.
            let (lines, counts) = (slots * self.lines(), slots * self.blocks * DOUBLES);
            self.vectors.reserve_exact(lines - self.vectors.len());
            self.vectors.resize(lines, Line([0.0; DOUBLES]));
            self.counts.reserve_exact(counts - self.counts.len());
            self.counts.resize(counts, 0);
            self.scaled.resize(slots, false);
        }
        if self.tables.len() < tables {
            self.tables.resize(tables, Table::default());
        }
        self.results.clear();
        self.results.resize(results, [0.0; 3]);
    }

    /// Bytes of memory that `slots` vectors take.
    pub fn bytes(&self, slots: usize) -> usize {
        slots * (self.lines() * size_of::<Line>() + self.blocks * DOUBLES * size_of::<u32>())
    }
}
