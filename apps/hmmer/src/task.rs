//! The tasks: scores of sequences that lie one after the other in an array of residues, and the filters that they pass.
//!
//! The array is ragged: where its sequences begin is known to the tasks, not to the array. A call's scalar is the number
//! of its first sequence, its number of sequences is that of its rows of results, and so two calls of equal shape and
//! scalars are the same call. Blocks are whole sequences, balanced by residues.

use crate::filter;
use crate::kernel::{self, NODE_FLOATS};
use multigrain::prelude::{
    CallShape, LeafContext, Read, Region, Scalars, SubCall, Task, Tunable, Tunables, View, ViewMut, Work, Write,
};
use multigrain_simd::Isa;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Scores of a sequence in the array of results: Viterbi and Forward, in nats.
pub const SCORES: u64 = 2;

/// Floating-point operations for a residue and a node: Forward's 7 multiplications and fused multiply-adds of 8 with 2
/// additions, and Viterbi's 9 multiplications with 6 maxima.
const CELL_FLOPS: f64 = 31.0;

/// Operations of the filters for a residue and a node, in floating-point operations that take as long: almost all are
/// MSV's addition and maximum, of which a vector has four times as many.
const FILTER_FLOPS: f64 = 0.6;

/// Sequences of which the longest is remembered: plans ask for the longest of thousands of calls.
const GROUP: usize = 64;

/// Where the sequences of a database begin.
struct Ragged {
    offsets: Arc<Vec<u64>>,
    /// Residues of the longest of every [`GROUP`] sequences.
    longest: Vec<u64>,
}

impl Ragged {
    /// For [`Task::version`]: databases that are cut otherwise may have the same residues.
    fn version(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.offsets.hash(&mut hasher);
        hasher.finish()
    }

    fn new(offsets: Arc<Vec<u64>>) -> Ragged {
        let sequences = offsets.len() - 1;
        // Of a group at a time: lengths of all would be as much memory as where they begin.
        let group = |first: usize| &offsets[first..=(first + GROUP).min(sequences)];
        let longest_of = |offsets: &[u64]| offsets.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        let longest = (0..sequences).step_by(GROUP).map(|first| longest_of(group(first))).collect();
        Ragged { offsets, longest }
    }

    /// Offsets of the sequences of a call, and of their end.
    fn offsets(&self, scalars: &Scalars, sequences: usize) -> &[u64] {
        let first = scalars.u64(0) as usize;
        &self.offsets[first..=first + sequences]
    }

    /// Residues of the longest sequence of a call, and perhaps of one of its neighbours.
    fn longest(&self, scalars: &Scalars, sequences: u64) -> u64 {
        let first = scalars.u64(0) as usize;
        let groups = first / GROUP..(first + sequences as usize).div_ceil(GROUP);
        self.longest[groups].iter().copied().max().unwrap_or(0)
    }

    /// As many whole sequences as have the residues that were chosen, but at least one.
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let (residues, _, sequences) = sizes(call);
        let most = tunables.get("residues", residues);
        let first = call.scalars.u64(0);
        let offsets = self.offsets(&call.scalars, sequences as usize);
        let profile = Region::whole(call.shapes[1]);
        let mut calls = Vec::new();
        let mut begin = 0;
        while begin + 1 < offsets.len() {
            let start = offsets[begin];
            let rest = &offsets[begin + 1..];
            let end = begin + rest.partition_point(|&end| end - start <= most).max(1);
            let (block, count) = (offsets[end] - start, (end - begin) as u64);
            let results = match call.shapes[2].rank() {
                1 => Region::new(&[begin as u64], &[count]),
                _ => Region::new(&[begin as u64, 0], &[count, SCORES]),
            };
            let args = [(0, Region::new(&[start - offsets[0]], &[block])), (1, profile), (2, results)];
            calls.push(SubCall::itself(args, &from(first + begin as u64)));
            begin = end;
        }
        calls
    }
}

/// The scalars for a call on the whole database.
pub fn whole() -> Scalars {
    from(0)
}

/// An instruction set that this processor supports: any other is replaced by plain code.
fn supported(isa: Isa) -> Isa {
    if isa.is_supported() { isa } else { Isa::Scalar }
}

/// The scalars of a call whose first sequence is number `first`.
fn from(first: u64) -> Scalars {
    Scalars::new().with_u64(first)
}

/// Residues, numbers of the profile's tables, and sequences of a call.
fn sizes(call: &CallShape) -> (u64, u64, u64) {
    let length = |i: usize| call.shapes[i].dims()[0];
    (length(0), length(1), length(2))
}

/// What can be chosen of a call on some residues.
fn tunables(call: &CallShape) -> Vec<Tunable> {
    vec![Tunable { name: "residues", extent: sizes(call).0, multiple: 1 }]
}

/// Scores of the sequences of a database: scores\[i\] = (Viterbi, Forward) of sequence i against the profile whose tables
/// are given.
pub struct Score {
    isa: Isa,
    ragged: Ragged,
}

impl Score {
    /// The task for a database whose sequence `i` has the residues from `offsets[i]` to `offsets[i + 1]`.
    pub fn new(isa: Isa, offsets: Arc<Vec<u64>>) -> Score {
        Score { isa: supported(isa), ragged: Ragged::new(offsets) }
    }
}

impl Task for Score {
    type Params = (Read<u8, 1>, Read<f32, 1>, Write<f64, 2>);

    fn name(&self) -> &'static str {
        "hmmer"
    }

    fn version(&self) -> u64 {
        self.ragged.version()
    }

    fn param_names(&self) -> &'static [&'static str] {
        &["residues", "profile", "scores"]
    }

    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        tunables(call)
    }

    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        self.ragged.split(call, tunables)
    }

    fn leaf(
        &self,
        (residues, profile, mut scores): (View<'_, u8, 1>, View<'_, f32, 1>, ViewMut<'_, f64, 2>),
        context: &mut LeafContext<'_>,
    ) {
        let offsets = self.ragged.offsets(context.scalars, scores.len(0));
        let scores = scores.as_mut_slice().map(|scores| scores.as_chunks_mut().0);
        // Blocks of whole rows and of one dimension are dense.
        let scores = scores.expect("rows of scores that lie one after the other");
        kernel::score(self.isa, profile.row(&[]), residues.row(&[]), offsets, context.scratch, scores);
    }

    fn scratch_bytes(&self, call: &CallShape, _capacity_bytes: u64) -> u64 {
        let (_, floats, sequences) = sizes(call);
        kernel::scratch_bytes(self.isa, floats as usize / NODE_FLOATS, sequences as usize) as u64
    }

    fn work(&self, call: &CallShape) -> Work {
        let (residues, floats, sequences) = sizes(call);
        let nodes = floats / NODE_FLOATS as u64;
        let lanes = kernel::lanes(self.isa) as u64;
        // The operations of idle lanes are executed too. Lanes that take one sequence after the other have all ended
        // after at most so many rows (Graham 1966, on list scheduling); short calls with a long sequence are dear.
        let longest = self.ragged.longest(&call.scalars, sequences).min(residues);
        let cells = (residues + (lanes - 1) * longest) * nodes;
        let (residues, nodes, sequences) = (residues as f64, nodes as f64, sequences as f64);
        Work {
            flops: CELL_FLOPS * cells as f64,
            bytes: residues + 4.0 * nodes * NODE_FLOATS as f64 + 8.0 * SCORES as f64 * sequences,
        }
    }
}

/// How many filters each sequence of a database passes: stages\[i\] of sequence i for the profile whose tables are given.
pub struct Filter {
    isa: Isa,
    ragged: Ragged,
}

impl Filter {
    /// The task for a database as of [`Score::new`]. Tables are those of [`filter::pack`] for [`isa`](Self::isa).
    pub fn new(isa: Isa, offsets: Arc<Vec<u64>>) -> Filter {
        Filter { isa: supported(isa), ragged: Ragged::new(offsets) }
    }

    /// The instruction set that tables are for.
    pub fn isa(&self) -> Isa {
        self.isa
    }
}

impl Task for Filter {
    type Params = (Read<u8, 1>, Read<u8, 1>, Write<u8, 1>);

    fn name(&self) -> &'static str {
        "hmmer-filter"
    }

    fn version(&self) -> u64 {
        self.ragged.version()
    }

    fn param_names(&self) -> &'static [&'static str] {
        &["residues", "profile", "stages"]
    }

    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        tunables(call)
    }

    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        self.ragged.split(call, tunables)
    }

    fn leaf(
        &self,
        (residues, profile, mut stages): (View<'_, u8, 1>, View<'_, u8, 1>, ViewMut<'_, u8, 1>),
        context: &mut LeafContext<'_>,
    ) {
        let offsets = self.ragged.offsets(context.scalars, stages.len(0));
        let stages = stages.as_mut_slice().expect("blocks of one dimension are dense");
        filter::passed(self.isa, profile.row(&[]), residues.row(&[]), offsets, context.scratch, stages);
    }

    fn scratch_bytes(&self, call: &CallShape, _capacity_bytes: u64) -> u64 {
        filter::scratch_bytes(self.isa, filter::nodes_most(sizes(call).1 as usize)) as u64
    }

    fn work(&self, call: &CallShape) -> Work {
        let (residues, table_bytes, sequences) = sizes(call);
        let nodes = filter::nodes_most(table_bytes as usize);
        Work {
            flops: FILTER_FLOPS * residues as f64 * nodes as f64,
            bytes: (residues + table_bytes + sequences) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_is_cut_otherwise_is_another_task() {
        let version = |offsets: [u64; 3]| {
            let tasks = [
                Score::new(Isa::Scalar, offsets.to_vec().into()).version(),
                Filter::new(Isa::Scalar, offsets.to_vec().into()).version(),
            ];
            assert_eq!(tasks[0], tasks[1]);
            tasks[0]
        };
        assert_eq!(version([0, 5, 9]), version([0, 5, 9]));
        assert_ne!(version([0, 5, 9]), version([0, 4, 9]));
    }
}
