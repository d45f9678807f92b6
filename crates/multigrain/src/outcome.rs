//! What a run was, and its arrays, to be looked at.

use crate::afterwards::Afterwards;
use crate::choose::main_memory;
use crate::ending::Ending;
use crate::error::Error;
use crate::homes::{Homes, Place, transfer_block};
use crate::ledger::Lease;
use multigrain_machine::Machine;
use multigrain_plan::{EdgeTraffic, Plan};
use multigrain_program::{Arg, Block, Element, ElementType, Region};
use multigrain_store::{AlignedBuffer, Direction, Disk};
use multigrain_trace::{Breakdown, Spill, Trace};
use std::sync::Arc;

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
    pub(crate) spill: Option<Arc<Spill>>,
    /// The plan once more, as it was run: what lies in memory and in files is read by it, whatever `plan` is made to be.
    pub(crate) ran: Arc<Plan>,
    pub(crate) homes: Homes,
    /// What is left to be removed of a run from whose results files are made.
    pub(crate) ending: Option<Ending>,
    pub(crate) disk: Arc<Disk>,
    /// What the arrays take of the main memory.
    pub(crate) _lease: Lease,
}

impl Outcome {
    /// Bytes of the main memory (that of [`Runtime::memory_bytes`](crate::Runtime::memory_bytes)) that the arrays do not
    /// take: what may be used for work on the results.
    pub fn free_bytes(&self) -> u64 {
        let held: u64 = self
            .homes
            .places
            .iter()
            .map(|place| match place {
                Place::Memory(buffer) => buffer.len() as u64,
                Place::File(_) => 0,
            })
            .sum();
        main_memory(&self.machine).capacity_bytes.saturating_sub(held)
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

    /// A block of an array after the run, row-major, as bytes.
    ///
    /// # Errors
    /// When the file cannot be read.
    ///
    /// # Panics
    /// When there is no such array, or the region is not in it.
    pub fn read(&self, array: usize, region: &Region) -> Result<Vec<u8>, Error> {
        let decl = &self.ran.arrays[array];
        assert!(Region::whole(decl.shape).contains(region), "{region} of {}", decl.name);
        let size = decl.element.size_bytes();
        let bytes = (region.elements() * size) as usize;
        match &self.homes.places[array] {
            Place::Memory(buffer) => {
                let (_, run) = region.fragments(decl.shape);
                let mut out = vec![0; bytes];
                for (number, piece) in out.chunks_mut((run * size) as usize).enumerate() {
                    let first = (region.element(number as u64 * run, decl.shape) * size) as usize;
                    // SAFETY: the run lies in the array's buffer, which is not written any more.
                    piece.copy_from_slice(unsafe { &buffer.as_slice()[first..][..piece.len()] });
                }
                Ok(out)
            }
            Place::File(file) => {
                let buffer = AlignedBuffer::new(bytes).map_err(Error::Store)?;
                let (start, len) = (region.start(), region.len());
                transfer_block(&self.disk, file, Direction::Read, start, len, buffer.as_mut_ptr())
                    .map_err(Error::Store)?;
                // SAFETY: the transfer is over.
                Ok(unsafe { buffer.as_slice() }[..bytes].to_vec())
            }
        }
    }

    /// A block of an array after the run, or all of it, row-major.
    ///
    /// # Errors
    /// When the file cannot be read.
    ///
    /// # Panics
    /// When the array is of another program, whose array of this number is not of this type or has no such block.
    pub fn values<T: Element, const R: usize>(&self, block: impl Into<Block<T, R>>) -> Result<Vec<T>, Error> {
        let Arg { array, region } = block.into().arg();
        let decl = &self.ran.arrays[array as usize];
        assert_eq!((decl.element, decl.shape.rank()), (T::TYPE, R), "type of array {}", decl.name);
        Ok(T::from_bytes(&self.read(array as usize, &region)?))
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
        let bytes = self.read(array, region)?;
        Ok(bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
    }
}
