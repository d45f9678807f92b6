//! Where batches of kernels run.

use multigrain::rooms::team::strands::{Strand, TaskKind};
use std::ops::Range;

/// Something that runs the chunks of a loop: on the calling thread, or shared over the workers of a team.
pub trait Offload {
    /// Calls `body` once for each number below `chunks`, in any order and on any threads, and returns when all calls have.
    /// `work` are the multiply-adds for each pattern: loops of as much work take equally long for each of their chunks.
    fn chunks(&self, chunks: usize, work: usize, body: &(dyn Fn(usize) + Sync));

    /// How many conditional likelihood vectors of inner nodes there is room for in the memory.
    fn vectors(&self) -> usize {
        usize::MAX
    }
}

/// The host variant: everything on the calling thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct Host;

impl Offload for Host {
    fn chunks(&self, chunks: usize, _work: usize, body: &(dyn Fn(usize) + Sync)) {
        (0..chunks).for_each(body);
    }
}

/// Every batch is off-loaded by a strand, under the policy of its scheduler.
#[derive(Debug)]
pub struct OnStrand<'a, 's>(pub &'a Strand<'s>);

/// Kinds of batches for the scheduler's measurements, by the power of two of their work: what takes equally long per
/// chunk pays to be off-loaded, and is shared out, in the same way.
const KINDS: [&str; 12] = [
    "kernels of 64",
    "kernels of 128",
    "kernels of 256",
    "kernels of 512",
    "kernels of 1 Ki",
    "kernels of 2 Ki",
    "kernels of 4 Ki",
    "kernels of 8 Ki",
    "kernels of 16 Ki",
    "kernels of 32 Ki",
    "kernels of 64 Ki",
    "kernels of 128 Ki",
];

fn kind(work: usize) -> TaskKind {
    let class = (work.max(1).ilog2().saturating_sub(6) as usize).min(KINDS.len() - 1);
    TaskKind::new(class as u16, KINDS[class])
}

impl Offload for OnStrand<'_, '_> {
    fn chunks(&self, chunks: usize, work: usize, body: &(dyn Fn(usize) + Sync)) {
        // Iterations are multiply-adds, so that times of one kind are compared by what each does.
        let each = work.max(1);
        let chunk = |range: Range<usize>, ()| body(range.start / each);
        self.0.offload(kind(work), chunks * each, each, (), chunk, |(), ()| ());
    }
}
