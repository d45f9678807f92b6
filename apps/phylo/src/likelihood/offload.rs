//! Where batches of kernels run.

/// Something that runs the chunks of a batch: on the calling thread, or shared over the workers of a team.
pub trait Offload: Send {
    /// Calls `body` once for each number below `chunks`, in any order and on any threads, and returns when all calls have.
    /// `work` measures one chunk's work: multiply-adds of eight doubles for eight patterns.
    fn chunks(&self, chunks: usize, work: usize, body: &(dyn Fn(usize) + Sync));
}

/// The host variant: everything on the calling thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct Host;

impl Offload for Host {
    fn chunks(&self, chunks: usize, _work: usize, body: &(dyn Fn(usize) + Sync)) {
        (0..chunks).for_each(body);
    }
}
