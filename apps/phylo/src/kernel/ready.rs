//! What the steps of a batch need of a model in a partition, made by each thread for itself.
//!
//! Each thread that executes chunks of a batch makes all of it: the matrices of a branch of proteins are 13 KB, and to fetch
//! them out of the cache of another processor takes as long as to compute them. What was made is kept for a while: of the
//! branches that a search asks for, one half to nine tenths have a length that was asked for shortly before, since most of
//! the tree stays as it is.

use super::{Batch, Constants};
use std::cell::RefCell;

/// Lengths of which matrices and tables are kept: some 2 MB of proteins, of which those used lately lie in a second-level
/// cache. Batches of more branches go through the whole tree; what they need is made anew.
pub(crate) const KEPT: usize = 64;

thread_local! {
    /// By partition.
    static READY: RefCell<Vec<Ready>> = const { RefCell::new(Vec::new()) };
}

/// What a thread has made in a partition.
#[derive(Debug, Default)]
pub(super) struct Ready {
    /// The batch for which everything is there; 0 for none.
    batch: u64,
    /// Numbers of a branch's matrices, and of its table.
    lens: [usize; 2],
    kept: Vec<Kept>,
    /// `[kept]`: matrices, and tables where there are any.
    matrices: Vec<f64>,
    tables: Vec<f64>,
    /// `[branch]` of the batch: which of `kept`.
    places: Vec<u32>,
    /// Coefficients of slopes.
    pub(super) slopes: Vec<f64>,
    turn: u64,
}

/// One of the branches whose matrices are there.
#[derive(Clone, Copy, Debug)]
struct Kept {
    /// [`Constants::number`], and the bits of the length.
    of: [u64; 2],
    has_table: bool,
    /// The last turn in which it was used.
    used: u64,
}

/// Calls a function with what a batch needs in a partition whose branch lengths are set `set`.
pub(super) fn with_ready<R>(
    batch: &Batch,
    partition: usize,
    constants: &Constants,
    set: usize,
    call: impl FnOnce(&Ready) -> R,
) -> R {
    READY.with_borrow_mut(|all| {
        if all.len() <= partition {
            all.resize_with(partition + 1, Ready::default);
        }
        let ready = &mut all[partition];
        if ready.batch != batch.number {
            ready.make(batch, constants, set);
        }
        call(ready)
    })
}

impl Ready {
    /// Transition matrices `[category]` of a branch.
    pub(super) fn matrices(&self, branch: u32) -> &[f64] {
        let len = self.lens[0];
        &self.matrices[self.places[branch as usize] as usize * len..][..len]
    }

    /// The table `[category][code][state]` of a branch behind which a tip lies.
    pub(super) fn table(&self, branch: u32) -> &[f64] {
        let len = self.lens[1];
        &self.tables[self.places[branch as usize] as usize * len..][..len]
    }

    fn make(&mut self, batch: &Batch, constants: &Constants, set: usize) {
        let lens = [constants.matrix_len(), constants.table_len()];
        // Until it is done nothing is there: a panic in between must not leave the number of a batch.
        self.batch = 0;
        self.turn += 1;
        self.places.clear();
        if batch.branches() > KEPT || lens != self.lens {
            self.kept.clear();
        }
        self.kept.truncate(KEPT);
        self.lens = lens;
        for (length, tip) in batch.lengths_of(set) {
            let place = self.place([constants.number(), length.to_bits()], batch.branches());
            let kept = &mut self.kept[place];
            let matrices = &mut self.matrices[place * lens[0]..][..lens[0]];
            if kept.used == 0 {
                constants.transitions(length, matrices);
            }
            if tip && !kept.has_table {
                constants.tip_table(matrices, &mut self.tables[place * lens[1]..][..lens[1]]);
                kept.has_table = true;
            }
            kept.used = self.turn;
            self.places.push(place as u32);
        }
        constants.slopes(batch.slopes_of(set), &mut self.slopes);
        self.batch = batch.number;
    }

    /// Where the matrices of a branch are, or, not yet used, will be.
    fn place(&mut self, of: [u64; 2], branches: usize) -> usize {
        let known = match branches > KEPT {
            true => None,
            false => self.kept.iter().position(|kept| kept.of == of),
        };
        if let Some(place) = known {
            return place;
        }
        let new = Kept { of, has_table: false, used: 0 };
        if self.kept.len() < KEPT.max(branches) {
            self.kept.push(new);
            let (kept, most) = (self.kept.len(), KEPT.max(branches));
            // Room for all at once: what grows bit by bit takes up to twice as much.
            let grow = |v: &mut Vec<f64>, len: usize| {
                v.reserve_exact((most * len).saturating_sub(v.len()));
                v.resize(v.len().max(kept * len), 0.0);
            };
            grow(&mut self.matrices, self.lens[0]);
            grow(&mut self.tables, self.lens[1]);
            return self.kept.len() - 1;
        }
        // There is one that this batch does not use, since it has no more branches than there are places.
        let oldest = (0..self.kept.len()).min_by_key(|&place| self.kept[place].used).unwrap_or(0);
        self.kept[oldest] = new;
        oldest
    }
}

#[cfg(test)]
mod tests {
    use super::super::Source;
    use super::*;
    use crate::alignment::{Alignment, DataType, Patterns};
    use crate::model::ModelSpec;
    use crate::random::{Purpose, Random};
    use multigrain_simd::Isa;

    fn constants(model: &str) -> Constants {
        let spec = ModelSpec::parse(model).unwrap();
        let letters = Alignment { names: vec![String::new()], rows: vec![DataType::Dna.letters().to_vec()] };
        let model = spec.model(&Patterns::new(&letters, 0..4, DataType::Dna));
        Constants::new(&model, DataType::Dna, Isa::Scalar)
    }

    /// Batches small and large, of models in turn, with lengths that come again and with new ones: whatever was kept and
    /// whatever had to leave, each branch has the matrices and the table that it would have alone.
    #[test]
    fn what_is_kept_is_what_would_be_made() {
        let of = [constants("JC+G4{0.5}"), constants("HKY{3.5}+FU{0.3/0.2/0.2/0.3}+G4{0.5}"), constants("JC+G2{0.5}")];
        let mut random = Random::new(7, Purpose::Start, 0);
        let lengths: Vec<f64> = (1..=2 * KEPT).map(|i| 0.01 * i as f64).collect();
        let mut batch = Batch::default();
        for turn in 0..300 {
            batch.clear(1, 0);
            let branches = random.below(if turn % 9 == 0 { 3 * KEPT } else { KEPT / 2 } as u64) as usize;
            let mut asked = Vec::new();
            for _ in 0..branches {
                let length = lengths[random.below(lengths.len() as u64) as usize];
                let tip = random.below(2) == 0;
                batch.branch(if tip { Source::Tip(0) } else { Source::Slot(0) }, &[length]);
                asked.push((length, tip));
            }
            batch.settle();
            let constants = &of[random.below(3) as usize];
            with_ready(&batch, 0, constants, 0, |ready| {
                for (branch, (length, tip)) in asked.into_iter().enumerate() {
                    let mut matrices = vec![0.0; constants.matrix_len()];
                    constants.transitions(length, &mut matrices);
                    assert_eq!(ready.matrices(branch as u32), matrices, "turn {turn}, length {length}");
                    if tip {
                        let mut table = vec![0.0; constants.table_len()];
                        constants.tip_table(&matrices, &mut table);
                        assert_eq!(ready.table(branch as u32), table, "turn {turn}, length {length}");
                    }
                }
            });
        }
    }
}
