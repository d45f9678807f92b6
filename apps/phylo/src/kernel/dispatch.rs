//! The interpreter of batches, once for each instruction set and number of states.

use super::operand::{Inner, Plain, Tip};
use super::ready::{Ready, with_ready};
use super::{Batch, Chunk, Constants, Operand, Source, Step, combine, reduce};
use multigrain_simd::{DOUBLES, Doubles, Isa, dispatch};

/// Executes all steps of a settled batch on one chunk. `set_of` gives the set of branch lengths of each partition. The
/// results are the same to the last bit with each `isa`.
///
/// # Panics
/// Where a step names a taxon, slot or branch that does not exist, or the processor does not support `isa`.
pub fn execute(isa: Isa, batch: &Batch, constants: &[Constants], set_of: &[usize], chunk: &mut Chunk) {
    let partition = chunk.partition();
    let constants = &constants[partition];
    with_ready(batch, partition, constants, set_of[partition], |ready| run(isa, batch, ready, constants, chunk));
}

fn run(isa: Isa, batch: &Batch, ready: &Ready, constants: &Constants, chunk: &mut Chunk) {
    assert_eq!((chunk.states, chunk.categories), (constants.states, constants.categories));
    chunk.reserve(batch.slots(), batch.tables(), batch.results());
    let run = Run { batch, ready, constants };
    assert!(isa.is_supported(), "this processor does not execute {isa}");
    // SAFETY: the instruction set is supported.
    unsafe {
        let run = &run;
        dispatch!(isa, (run: &Run<'_>, chunk: &mut Chunk) => {
            Scalar: Run::all::<[f64; DOUBLES]>,
            Neon: Run::all::<[f64; DOUBLES]>,
            Avx2: Run::all::<multigrain_simd::Pair>,
            Avx512: Run::all::<std::arch::x86_64::__m512d>,
        });
    }
}

struct Run<'a> {
    batch: &'a Batch,
    ready: &'a Ready,
    constants: &'a Constants,
}

/// The slot of a source that is no tip.
fn slot(source: Source) -> Option<u32> {
    match source {
        Source::Tip(_) => None,
        Source::Slot(slot) => Some(slot),
    }
}

impl Run<'_> {
    /// # Safety
    /// The processor supports the instruction set of `V`.
    #[inline(always)]
    unsafe fn all<V: Doubles>(&self, chunk: &mut Chunk) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.constants.states {
                4 => self.steps::<V, 4>(chunk),
                20 => self.steps::<V, 20>(chunk),
                n => panic!("kernels are made for 4 and 20 states, not for {n}"),
            }
        }
    }

    /// # Safety
    /// The processor supports the instruction set of `V`.
    #[inline(always)]
    unsafe fn steps<V: Doubles, const N: usize>(&self, chunk: &mut Chunk) {
        for step in &self.batch.steps {
            // SAFETY: the caller's promise.
            unsafe {
                match *step {
                    Step::Combine { left, right, to } => self.combine::<V, N>(chunk, left, right, to),
                    Step::Propagate { from, to } => self.propagate::<V, N>(chunk, from, to),
                    Step::Evaluate { near, far, result, each } => {
                        chunk.results[result as usize] = [self.evaluate::<V, N>(chunk, near, far, each), 0.0, 0.0];
                    }
                    Step::Insert { near, far, subtree, result } => {
                        chunk.results[result as usize] = [self.insert::<V, N>(chunk, near, far, subtree), 0.0, 0.0];
                    }
                    Step::Table { a, b, table } => self.table::<V, N>(chunk, a, b, table),
                    Step::Slope { table, length, log, result } => {
                        let len = 3 * self.constants.slope_len();
                        let coefficients = &self.ready.slopes[length as usize * len..][..len];
                        chunk.results[result as usize] =
                            reduce::slope::<V, N>(chunk, &chunk.tables[table as usize], coefficients, log);
                    }
                }
            }
        }
    }

    fn tip(&self, chunk: &Chunk, taxon: u32, branch: u32) -> Tip {
        Tip::new(chunk, taxon, self.ready.table(branch), self.constants.table_stride())
    }

    fn inner(&self, chunk: &Chunk, slot: u32, branch: u32) -> Inner {
        Inner::new(chunk, slot, self.ready.matrices(branch), self.constants.states * self.constants.states)
    }

    /// # Safety
    /// As the others.
    #[inline(always)]
    unsafe fn combine<V: Doubles, const N: usize>(&self, chunk: &mut Chunk, left: Operand, right: Operand, to: u32) {
        let from = [slot(left.source), slot(right.source)];
        // A product has the same bits in either order.
        // SAFETY: the caller's promise.
        unsafe {
            match (left.source, right.source) {
                (Source::Tip(a), Source::Tip(b)) => {
                    let (a, b) = (self.tip(chunk, a, left.branch), self.tip(chunk, b, right.branch));
                    combine::combine::<V, N>(chunk, &a, &b, from, to);
                }
                (Source::Tip(a), Source::Slot(b)) => {
                    let (a, b) = (self.tip(chunk, a, left.branch), self.inner(chunk, b, right.branch));
                    combine::combine::<V, N>(chunk, &a, &b, from, to);
                }
                (Source::Slot(_), Source::Tip(_)) => self.combine_swapped::<V, N>(chunk, right, left, to),
                (Source::Slot(a), Source::Slot(b)) => {
                    let (a, b) = (self.inner(chunk, a, left.branch), self.inner(chunk, b, right.branch));
                    combine::combine::<V, N>(chunk, &a, &b, from, to);
                }
            }
        }
    }

    /// # Safety
    /// As the others.
    #[inline(always)]
    unsafe fn combine_swapped<V: Doubles, const N: usize>(
        &self,
        chunk: &mut Chunk,
        tip: Operand,
        inner: Operand,
        to: u32,
    ) {
        if let (Source::Tip(a), Source::Slot(b)) = (tip.source, inner.source) {
            let (a, s) = (self.tip(chunk, a, tip.branch), self.inner(chunk, b, inner.branch));
            // SAFETY: the caller's promise.
            unsafe { combine::combine::<V, N>(chunk, &a, &s, [None, Some(b)], to) }
        }
    }

    /// # Safety
    /// As the others.
    #[inline(always)]
    unsafe fn propagate<V: Doubles, const N: usize>(&self, chunk: &mut Chunk, from: Operand, to: u32) {
        let weights = &self.constants.weights;
        // SAFETY: the caller's promise.
        unsafe {
            match from.source {
                Source::Tip(t) => {
                    let side = self.tip(chunk, t, from.branch);
                    combine::propagate::<V, N>(chunk, &side, None, weights, to);
                }
                Source::Slot(s) => {
                    let side = self.inner(chunk, s, from.branch);
                    combine::propagate::<V, N>(chunk, &side, Some(s), weights, to);
                }
            }
        }
    }

    /// # Safety
    /// As the others.
    #[inline(always)]
    unsafe fn evaluate<V: Doubles, const N: usize>(
        &self,
        chunk: &mut Chunk,
        near: Source,
        far: Operand,
        each: bool,
    ) -> f64 {
        let weights = &self.constants.weights;
        let from = [slot(near), slot(far.source)];
        // SAFETY: the caller's promise.
        unsafe {
            match (near, far.source) {
                (Source::Tip(a), Source::Tip(b)) => {
                    let a = Tip::new(chunk, a, &self.constants.plain_table, 0);
                    let b = self.tip(chunk, b, far.branch);
                    reduce::evaluate::<V, N>(chunk, &a, &b, from, weights, each)
                }
                (Source::Tip(a), Source::Slot(b)) => {
                    let a = Tip::new(chunk, a, &self.constants.plain_table, 0);
                    let b = self.inner(chunk, b, far.branch);
                    reduce::evaluate::<V, N>(chunk, &a, &b, from, weights, each)
                }
                (Source::Slot(a), Source::Tip(b)) => {
                    let b = self.tip(chunk, b, far.branch);
                    let a = Plain::new(chunk, a);
                    reduce::evaluate::<V, N>(chunk, &a, &b, from, weights, each)
                }
                (Source::Slot(a), Source::Slot(b)) => {
                    let b = self.inner(chunk, b, far.branch);
                    let a = Plain::new(chunk, a);
                    reduce::evaluate::<V, N>(chunk, &a, &b, from, weights, each)
                }
            }
        }
    }

    /// # Safety
    /// As the others.
    #[inline(always)]
    unsafe fn insert<V: Doubles, const N: usize>(
        &self,
        chunk: &Chunk,
        near: Operand,
        far: Operand,
        subtree: u32,
    ) -> f64 {
        let s = Plain::new(chunk, subtree);
        let from = [slot(near.source), slot(far.source), Some(subtree)];
        // SAFETY: the caller's promise.
        unsafe {
            match (near.source, far.source) {
                (Source::Tip(a), Source::Tip(b)) => {
                    let (a, b) = (self.tip(chunk, a, near.branch), self.tip(chunk, b, far.branch));
                    reduce::insert::<V, N>(chunk, &a, &b, &s, from)
                }
                (Source::Tip(a), Source::Slot(b)) => {
                    let (a, b) = (self.tip(chunk, a, near.branch), self.inner(chunk, b, far.branch));
                    reduce::insert::<V, N>(chunk, &a, &b, &s, from)
                }
                (Source::Slot(a), Source::Tip(b)) => {
                    let (a, b) = (self.inner(chunk, a, near.branch), self.tip(chunk, b, far.branch));
                    reduce::insert::<V, N>(chunk, &a, &b, &s, from)
                }
                (Source::Slot(a), Source::Slot(b)) => {
                    let (a, b) = (self.inner(chunk, a, near.branch), self.inner(chunk, b, far.branch));
                    reduce::insert::<V, N>(chunk, &a, &b, &s, from)
                }
            }
        }
    }

    /// # Safety
    /// As the others.
    #[inline(always)]
    unsafe fn table<V: Doubles, const N: usize>(&self, chunk: &mut Chunk, a: Source, b: Source, table: u32) {
        let from = [slot(a), slot(b)];
        let weights = &self.constants.category_weights;
        let tip = |chunk: &Chunk, t: u32| Tip::new(chunk, t, &self.constants.eigen_table, 0);
        let inner = |chunk: &Chunk, s: u32| Inner::new(chunk, s, &self.constants.eigen_matrix, 0);
        // SAFETY: the caller's promise.
        unsafe {
            match (a, b) {
                (Source::Tip(a), Source::Tip(b)) => {
                    let (a, b) = (tip(chunk, a), tip(chunk, b));
                    combine::table::<V, N>(chunk, &a, &b, from, weights, table);
                }
                (Source::Tip(a), Source::Slot(b)) => {
                    let (a, b) = (tip(chunk, a), inner(chunk, b));
                    combine::table::<V, N>(chunk, &a, &b, from, weights, table);
                }
                (Source::Slot(b), Source::Tip(a)) => {
                    let (a, b) = (tip(chunk, a), inner(chunk, b));
                    combine::table::<V, N>(chunk, &a, &b, from, weights, table);
                }
                (Source::Slot(a), Source::Slot(b)) => {
                    let (a, b) = (inner(chunk, a), inner(chunk, b));
                    combine::table::<V, N>(chunk, &a, &b, from, weights, table);
                }
            }
        }
    }
}
