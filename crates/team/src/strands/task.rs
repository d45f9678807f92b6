//! What a strand off-loads: a task, in up to three variants that give one result.

use std::marker::PhantomData;
use std::ops::Range;

use multigrain_schedule::Span;

use super::parts::Parts;

/// Which function a task is. Measurements (whether it pays to off-load, how many workers its loop gains from, how its
/// iterations are shared out) are kept by kind and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskKind {
    /// Its number, small and unique in the program.
    pub number: u16,
    /// Its name, in messages and traces.
    pub name: &'static str,
}

impl TaskKind {
    /// A kind of task.
    pub const fn new(number: u16, name: &'static str) -> TaskKind {
        TaskKind { number, name }
    }
}

/// A task, with a host variant, a worker variant and a loop-parallel one. All three give the same result, to the bit,
/// if the first two are left as they are: then the loop is cut into chunks of [`Task::chunk`] iterations whatever the
/// number of workers, and the chunks' results are combined in the order of one binary tree.
///
/// A task is executed by other threads than the strand's, so it must be [`Sync`], and it cannot off-load in turn: a
/// [`Strand`](super::Strand) is not.
pub trait Task: Sync {
    /// What it computes.
    type Output: Send;

    /// Which function it is.
    fn kind(&self) -> TaskKind;

    /// Iterations of its loop; 1 if it has none.
    fn iterations(&self) -> usize;

    /// Iterations of a chunk, at least 1: those whose result is one value. About a microsecond of work is a good
    /// length: long beside what a claim costs (10 ns), short beside the task.
    fn chunk(&self) -> usize;

    /// The result of some iterations: never empty, and of one chunk, unless the other variants ask for others.
    fn part(&self, iterations: Range<usize>) -> Self::Output;

    /// The combination of the results of adjacent parts.
    fn combine(&self, left: Self::Output, right: Self::Output) -> Self::Output;

    /// The worker variant: the whole task on one worker. There is at least one iteration.
    fn on_worker(&self) -> Self::Output {
        alone(self)
    }

    /// The host variant: the whole task on the strand's own thread. There is at least one iteration.
    fn on_host(&self) -> Self::Output {
        self.on_worker()
    }
}

/// The chunks of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunks {
    iterations: usize,
    chunk: usize,
}

impl Chunks {
    pub(crate) fn of<T: Task + ?Sized>(task: &T) -> Chunks {
        Chunks { iterations: task.iterations().max(1), chunk: task.chunk().max(1) }
    }

    pub(crate) fn count(self) -> u32 {
        let count = self.iterations.div_ceil(self.chunk);
        u32::try_from(count).unwrap_or_else(|_| panic!("a loop of {count} chunks: make them longer"))
    }

    /// Iterations of all chunks but the last, which may have fewer.
    pub(crate) fn iterations(self) -> u64 {
        self.chunk as u64
    }

    pub(crate) fn range(self, number: usize) -> Range<usize> {
        let begin = number * self.chunk;
        begin..(begin + self.chunk).min(self.iterations)
    }
}

/// All chunks of a task, one after the other, on the calling thread.
pub(crate) fn alone<T: Task + ?Sized>(task: &T) -> T::Output {
    let chunks = Chunks::of(task);
    combined(task, Span::whole(chunks.count()), &mut |number| task.part(chunks.range(number as usize)))
}

/// The results of a span of chunks, asked for in their order, combined by the canonical tree.
pub(crate) fn combined<T: Task + ?Sized>(task: &T, span: Span, result: &mut impl FnMut(u32) -> T::Output) -> T::Output {
    match span.parts() {
        None => result(span.first),
        Some((left, right)) => {
            let left = combined(task, left, result);
            task.combine(left, combined(task, right, result))
        }
    }
}

/// A task made of closures: a loop over rows of arrays, of which each chunk has its own.
#[derive(Debug)]
pub(crate) struct Loop<'a, P, R, B, C> {
    pub(crate) kind: TaskKind,
    pub(crate) iterations: usize,
    pub(crate) chunk: usize,
    pub(crate) parts: Handed<P>,
    pub(crate) body: &'a B,
    pub(crate) combine: &'a C,
    pub(crate) result: PhantomData<fn() -> R>,
}

/// Arrays of which parts are handed out.
#[derive(Debug)]
pub(crate) struct Handed<P>(pub(crate) P);

// SAFETY: what is shared is handed out in disjoint parts only (`Task::part` is called once for each iteration, which
// `Loop`'s own maker, `Strand::offload`, sees to), and parts can be sent to other threads, as `Parts` demands.
unsafe impl<P: Parts> Sync for Handed<P> {}

impl<P, R, B, C> Task for Loop<'_, P, R, B, C>
where
    P: Parts,
    R: Send,
    B: Fn(Range<usize>, P::Part) -> R + Sync,
    C: Fn(R, R) -> R + Sync,
{
    type Output = R;

    fn kind(&self) -> TaskKind {
        self.kind
    }

    fn iterations(&self) -> usize {
        self.iterations
    }

    fn chunk(&self) -> usize {
        self.chunk
    }

    fn part(&self, iterations: Range<usize>) -> R {
        // SAFETY: the type is not public and its values are executed once: the scheduler claims every chunk once, and
        // `alone` goes over them once; chunks do not overlap.
        let part = unsafe { self.parts.0.part(iterations.clone()) };
        (self.body)(iterations, part)
    }

    fn combine(&self, left: R, right: R) -> R {
        (self.combine)(left, right)
    }
}
