//! What a run was, and its arrays, to be looked at.

use crate::afterwards::Afterwards;
use crate::ending::Ending;
use crate::error::Error;
use crate::homes::{Homes, Place, transfer_block};
use crate::keeps::leaves;
use crate::ledger::Lease;
use crate::limits::main_memory;
use crate::together::OfRank;
use multigrain_machine::Machine;
use multigrain_plan::{EdgeTraffic, Plan};
use multigrain_program::{Arg, ArrayNumber, Block, Declared, Element, ElementType, Region};
use multigrain_store::{Direction, Disk};
use multigrain_trace::{Breakdown, Spill, Trace};
use std::path::Path;
use std::sync::Arc;

/// What a check may take however little is free.
const CHECK_BYTES_MIN: u64 = 512 << 10;

/// A completed run.
pub struct Outcome {
    /// The plan that was run.
    pub plan: Arc<Plan>,
    /// The machine it was run on, from the memory down in which the arrays lay.
    pub machine: Machine,
    /// Seconds from the first step to the last.
    pub seconds: f64,
    /// Where the time went.
    pub breakdown: Breakdown,
    /// All records, if they were asked for and did not go to a file.
    pub trace: Option<Trace>,
    /// Bytes over every edge in this run, with lower bounds for the whole job.
    pub edges: Vec<EdgeTraffic>,
    /// Floating-point operations of this run: of the whole program, or of what an interrupted run had left.
    pub flops: f64,
    /// How files were reached.
    pub backend: String,
    /// Whether an interrupted run was continued.
    pub resumed: bool,
    /// What the run was on each rank, where several executed it together; times and steps above are those of this one.
    pub ranks: Vec<OfRank>,
    pub(crate) spill: Option<Arc<Spill>>,
    /// The plan once more, as it was run: what lies in memory and in files is read by it, whatever `plan` is made to be.
    pub(crate) declared: Declared,
    pub(crate) ran: Arc<Plan>,
    pub(crate) homes: Homes,
    /// What is left to be removed of a run from whose results files are made.
    pub(crate) ending: Option<Ending>,
    pub(crate) disk: Arc<Disk>,
    /// What is kept of the main memory besides the arrays.
    pub(crate) beside_bytes: u64,
    /// What is left of what a process takes for itself, its code and stacks aside.
    pub(crate) own_left_bytes: u64,
    /// What the arrays take of the main memory.
    pub(crate) _lease: Lease,
}

impl Outcome {
    /// Bytes of the main memory (that of [`Runtime::memory_bytes`](crate::Runtime::memory_bytes)) that neither the arrays nor
    /// transfer buffers, the plan and the application's tables take: what may be used for work on the results, after
    /// [`Runtime::forget`](crate::Runtime::forget).
    pub fn free_bytes(&self) -> u64 {
        let held = self.held_bytes();
        main_memory(&self.machine).capacity_bytes.saturating_sub(held).saturating_sub(self.beside_bytes)
    }

    /// Bytes of the main memory in which arrays lie.
    fn held_bytes(&self) -> u64 {
        let bytes = |place: &Place| match place {
            Place::Memory(buffer) => buffer.len() as u64,
            // What ranks hold of arrays is not in the capacity that was planned with.
            Place::File(_) | Place::Spread(_) => 0,
        };
        self.homes.places.iter().map(bytes).sum()
    }

    /// A memory with which a run of the same job leaves so many bytes for work on its results, whatever its plan will take.
    pub fn memory_for(&self, work_bytes: u64) -> u64 {
        leaves(work_bytes.saturating_add(self.held_bytes()))
    }

    /// Bytes that work on the results may take: what is free, and what is left of the 16 MiB that a process takes beside its
    /// memory.
    pub fn work_bytes(&self) -> u64 {
        self.free_bytes().saturating_add(self.own_left_bytes)
    }

    /// Bytes that a check may take: what is free, and where that is less, half a MiB, which is part of what a process takes for
    /// itself.
    pub fn check_bytes(&self) -> u64 {
        self.free_bytes().max(CHECK_BYTES_MIN)
    }

    /// How many elements of four bytes a check reads at once: several such bands are an eighth of [`Outcome::check_bytes`]
    /// each, and none is larger than a cache.
    pub fn band_elements(&self) -> u64 {
        (self.check_bytes() / 32).clamp(1 << 12, 1 << 18)
    }

    /// Work on the results, under a name that the job was given ([`Job::with_afterwards`](crate::Job::with_afterwards)):
    /// what workers do under this name is added to the trace of the run, if that goes to a file.
    pub fn afterwards(&self, task: &str) -> Afterwards {
        let spill = self.spill.clone();
        Afterwards::new(spill.and_then(|spill| spill.task(task).map(|number| (spill, number))))
    }

    /// Ends a run from whose results some file could not be made ([`Job::with_file_written`](crate::Job::with_file_written))
    /// and says so: where its arrays lie on a disk, they are kept, and a run with
    /// [`Settings::resume`](crate::Settings::resume) computes nothing.
    pub fn keep(mut self, why: Error) -> Error {
        match self.ending.take() {
            Some(mut ending) => {
                ending.journals = None;
                Error::Kept { source: Box::new(why), result: ending.result.clone() }
            }
            None => why,
        }
    }

    /// Beside which result what is done is kept until this is dropped.
    pub fn kept_beside(&self) -> Option<&Path> {
        self.ending.as_ref().map(|ending| ending.result.as_path())
    }

    /// A block of an array after the run, row-major, as bytes.
    ///
    /// # Errors
    /// When the file cannot be read.
    ///
    /// # Panics
    /// When there is no such array, or the region is not in it.
    pub fn read(&self, array: usize, region: &Region) -> Result<Vec<u8>, Error> {
        self.read_as(array, region)
    }

    /// A block as elements of a type of which the array's elements are one or some, and nothing else beside it.
    fn read_as<T: Element>(&self, array: usize, region: &Region) -> Result<Vec<T>, Error> {
        let decl = &self.ran.arrays[array];
        assert!(Region::whole(decl.shape).contains(region), "{region} of {}", decl.name);
        let size = decl.element.size_bytes();
        let bytes = (region.elements() * size) as usize;
        let mut out = vec![T::default(); bytes / size_of::<T>()];
        assert_eq!(size_of_val(&out[..]), bytes, "elements of {}", decl.name);
        let to = out.as_mut_ptr().cast::<u8>();
        match &self.homes.places[array] {
            Place::Memory(buffer) => {
                let (_, run) = region.fragments(decl.shape);
                let run_bytes = (run * size) as usize;
                for number in 0..bytes / run_bytes.max(1) {
                    let first = (region.element(number as u64 * run, decl.shape) * size) as usize;
                    // SAFETY: the run lies in the array's buffer, which is not written any more.
                    let from = unsafe { &buffer.as_slice()[first..][..run_bytes] };
                    // SAFETY: `out` has room for all runs, and whatever bytes the array holds are elements.
                    unsafe { to.add(number * run_bytes).copy_from_nonoverlapping(from.as_ptr(), run_bytes) };
                }
            }
            // SAFETY: there is room for the region, and nobody else knows it.
            Place::Spread(spread) => unsafe { spread.read(region, to) }.map_err(Error::Store)?,
            Place::File(file) => {
                let (start, len) = (region.start(), region.len());
                transfer_block(&self.disk, file, Direction::Read, start, len, to).map_err(Error::Store)?;
            }
        }
        Ok(out)
    }

    /// A block of an array after the run, or all of it, row-major.
    ///
    /// # Errors
    /// When the file cannot be read.
    ///
    /// # Panics
    /// When the block is of another program.
    pub fn values<T: Element, const R: usize>(&self, block: impl Into<Block<T, R>>) -> Result<Vec<T>, Error> {
        let block = block.into();
        assert!(block.number(&self.declared).is_some(), "the block is one of the program's");
        let Arg { array, region } = block.arg();
        self.read_as(array as usize, &region)
    }

    /// A block of a float32 array after the run, row-major.
    ///
    /// # Errors
    /// When the file cannot be read.
    ///
    /// # Panics
    /// When there is no such array, it is not of float32, or the region is not in it.
    pub fn read_f32(&self, array: usize, region: &Region) -> Result<Vec<f32>, Error> {
        assert_eq!(self.ran.arrays[array].element, ElementType::F32);
        self.read_as(array, region)
    }
}
