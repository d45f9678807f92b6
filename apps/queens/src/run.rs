//! A whole count: the board divided, its parts as jobs of a team, the checkpoint, the sum.

use crate::checkpoint::{self, Belongs};
use crate::kernel::{Counter, Kernel};
use crate::ring::rings;
use crate::subtree::{Forest, Subtree};
use crate::symmetric::{Symmetric, Symmetry};
use crate::{Counts, Error};
use multigrain::division::{Division, Grain, divide};
use multigrain::jobs::{JobOptions, JobsError, Team, TeamOptions};
use multigrain::{Abort, Progress, whole};
use multigrain_simd::Isa;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A part of less predicted nodes is not split: half a millisecond, where a hand-over takes microseconds.
const PART_NODES_MIN: f64 = 1e6;
/// A part of more is, so that few seconds are lost when a process is killed.
const PART_NODES_MAX: f64 = 1e9;
/// No part is more than this share of the whole, so that a thousand workers would have work.
const PART_SHARE: f64 = 1.0 / 16384.0;
/// More parts are not made: the checkpoint has a line of up to thirty bytes for each.
const PARTS_MAX: usize = 1 << 20;

/// A checkpoint is written when the last one is older than this, and older than so many times what writing took.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(2);
const CHECKPOINT_TIMES: u32 = 50;

/// What is to be counted, and how.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The board is n x n.
    pub n: u32,
    /// Workers; a worker for each processor if it is not said.
    pub threads: Option<usize>,
    /// The instruction set; the widest that this processor executes if it is not said.
    pub isa: Option<Isa>,
    /// Where what has been counted is kept.
    pub checkpoint: Option<PathBuf>,
    /// Goes on from the checkpoint if there is one; without this one that is there is refused.
    pub resume: bool,
}

/// What came out.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// The counts.
    pub counts: Counts,
    /// Parts into which the board was divided.
    pub parts: usize,
    /// Those whose counts were in the checkpoint.
    pub resumed: usize,
    /// Workers.
    pub threads: usize,
    /// What counted.
    pub kernel: Kernel,
    /// From the request to the result.
    pub seconds: f64,
}

/// What a job counts: a part of the searches for symmetric solutions, which come first, or of all.
#[derive(Clone, Copy)]
enum Part<'a> {
    Symmetric(Symmetric),
    Tree(&'a Subtree<'a>),
}

impl Part<'_> {
    fn count(self, counter: &mut Counter, abort: &Abort) -> Option<u64> {
        match self {
            Part::Symmetric(part) => part.count(abort),
            Part::Tree(tree) => counter.count(&tree.ring.board, &tree.node, abort),
        }
    }

    fn nodes(self) -> f64 {
        match self {
            Part::Symmetric(_) => 0.0,
            Part::Tree(tree) => tree.nodes,
        }
    }
}

/// The board in parts: the same for every run with the same n.
fn parts(forest: &Forest) -> Division<Subtree<'_>> {
    let whole: f64 = forest.trees().map(|tree| tree.nodes).sum();
    let share = PART_SHARE.min(PART_NODES_MAX / whole.max(1.0));
    divide(forest.trees(), &Grain { share, least_work: PART_NODES_MIN, parts_max: PARTS_MAX })
}

/// Check sum of what the parts are.
fn fingerprint(parts: &[Subtree<'_>]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    for tree in parts {
        for (row, column) in tree.ring.queens {
            sum.update(&[row as u8, column as u8]);
        }
        for word in [tree.ring.images, tree.node.depth, tree.node.placed, tree.node.left, tree.node.right] {
            sum.update(&word.to_le_bytes());
        }
    }
    sum.finalize()
}

/// What has been counted, and the file that keeps it.
struct Kept<'a> {
    path: Option<&'a PathBuf>,
    belongs: Belongs,
    counts: Vec<Option<u64>>,
    written: Instant,
    took: Duration,
}

impl Kept<'_> {
    fn write(&mut self) -> Result<(), Error> {
        let Some(path) = self.path else { return Ok(()) };
        let begin = Instant::now();
        checkpoint::write(path, &self.belongs, &self.counts)?;
        (self.took, self.written) = (begin.elapsed(), Instant::now());
        Ok(())
    }

    fn add(&mut self, part: usize, count: u64) -> Result<(), Error> {
        self.counts[part] = Some(count);
        if self.path.is_some() && self.written.elapsed() > CHECKPOINT_INTERVAL.max(self.took * CHECKPOINT_TIMES) {
            self.write()?;
        }
        Ok(())
    }
}

/// Reads what the checkpoint holds, or refuses it.
fn look(request: &Request, belongs: &Belongs) -> Result<Vec<Option<u64>>, Error> {
    let nothing = vec![None; belongs.parts];
    let Some(path) = &request.checkpoint else { return Ok(nothing) };
    whole::check_target(path)?;
    if request.resume {
        return Ok(checkpoint::read(path, belongs)?.unwrap_or(nothing));
    }
    if path.exists() {
        let why = "there is a file already; --resume goes on from a checkpoint, or name another file".to_owned();
        return Err(Error::Checkpoint { path: path.clone(), why });
    }
    Ok(nothing)
}

/// Counts, telling `watch` how far it is, in predicted nodes. The result depends on `n` only.
///
/// # Errors
/// A request that is wrong, before any work; [`Error::Interrupted`] after `abort` was raised, when what was counted is in the
/// checkpoint; [`Error::Classes`] where the searches contradict each other.
pub fn run(request: &Request, abort: &Abort, mut watch: impl FnMut(Progress)) -> Result<Finished, Error> {
    let begin = Instant::now();
    let n = request.n;
    let isa = request.isa.unwrap_or_else(Isa::detect);
    if !isa.is_supported() {
        return Err(Error::Isa { isa: isa.name() });
    }
    let forest = Forest::new(n, rings(n)?);
    let division = parts(&forest);
    let symmetric = [Symmetry::Point, Symmetry::Rotation].into_iter().flat_map(|symmetry| symmetry.parts(n));
    let all: Vec<Part<'_>> = symmetric.map(Part::Symmetric).chain(division.parts.iter().map(Part::Tree)).collect();
    let belongs = Belongs { n, parts: all.len(), split: fingerprint(&division.parts) };
    let counts = look(request, &belongs)?;
    let resumed = counts.iter().flatten().count();
    let mut progress = Progress { done: 0.0, total: division.work };
    progress.done +=
        all.iter().zip(&counts).filter(|(_, count)| count.is_some()).map(|(part, _)| part.nodes()).sum::<f64>();
    watch(progress);

    let kernel = Kernel::of(isa, forest.columns());
    let options = TeamOptions { bind: false, ..TeamOptions::default() };
    let threads = request.threads.unwrap_or(options.workers).max(1);
    let team =
        Team::new(TeamOptions { workers: threads, ..options }).map_err(|source| Error::Threads { threads, source })?;
    let todo: Vec<usize> = (0..all.len()).filter(|part| counts[*part].is_none()).collect();
    let mut kept = Kept { path: request.checkpoint.as_ref(), belongs, counts, written: begin, took: Duration::ZERO };
    let mut next = todo.into_iter();
    // Whoever sees the abort hands over nothing, so the call ends in order and all that was counted is kept.
    let done = team.jobs(
        &JobOptions::default(),
        || Ok(next.next().filter(|_| !abort.is_raised())),
        |_worker| Counter::new(kernel),
        |counter, part: usize| Ok(all[part].count(counter, abort).map(|count| (part, count))),
        |counted| match counted {
            Some((part, count)) => {
                progress.done += all[part].nodes();
                watch(progress);
                kept.add(part, count)
            }
            None => Ok(()),
        },
    );
    match done {
        Ok(_) if resumed < all.len() => kept.write()?,
        Ok(_) => {}
        Err(JobsError::Failed(error)) => return Err(error),
        Err(JobsError::Panic(panic)) => {
            kept.write()?;
            return Err(panic.into());
        }
    }
    let counted: Option<Vec<u128>> = kept.counts.iter().map(|count| count.map(u128::from)).collect();
    let Some(counted) = counted else { return Err(Error::Interrupted { kept: request.checkpoint.clone() }) };
    let (mut solutions, mut point, mut rotation) = (0, 0, 0);
    for (part, count) in all.iter().zip(counted) {
        match part {
            Part::Symmetric(part) if part.symmetry() == Symmetry::Point => point += count,
            Part::Symmetric(_) => rotation += count,
            Part::Tree(tree) => solutions += count * u128::from(tree.ring.images),
        }
    }
    let counts = Counts::new(n, solutions, point, rotation)?;
    Ok(Finished { counts, parts: all.len(), resumed, threads, kernel, seconds: begin.elapsed().as_secs_f64() })
}
