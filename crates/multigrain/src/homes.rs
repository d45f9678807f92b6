//! Homes for a job's arrays: memory, or files that were opened, created and filled.

use crate::error::Error;
use crate::generate;
use crate::job::{Job, Sink, Source};
use multigrain_engine::Home;
use multigrain_program::{ArrayDecl, Role};
use multigrain_store::{AlignedBuffer, ArrayFile, Direction, Disk, StoreError, TransferList};
use std::path::Path;
use std::sync::Arc;

/// Bytes that are made and written at once when a file is filled.
const CHUNK_BYTES: u64 = 4 << 20;

/// Where one array lies during a run.
pub(crate) enum Place {
    Memory(AlignedBuffer),
    File(ArrayFile),
}

/// The homes of all arrays of a job.
pub(crate) struct Homes {
    pub(crate) places: Vec<Place>,
    /// For each array, whether its file outlives the run.
    pub(crate) kept: Vec<bool>,
    /// Whether every output was found as an interrupted run left it.
    pub(crate) resumed: bool,
}

impl Homes {
    /// For the engine, in the order of the arrays.
    pub(crate) fn homes(&self) -> Vec<Home> {
        self.places
            .iter()
            .map(|p| match p {
                Place::Memory(buffer) => Home::Memory { pointer: buffer.as_mut_ptr(), len_bytes: buffer.len() as u64 },
                Place::File(file) => Home::File(file.clone()),
            })
            .collect()
    }

    /// Removes unpublished outputs.
    pub(crate) fn discard(&self, disk: &Disk) {
        for place in &self.places {
            if let Place::File(file) = place {
                disk.discard(file);
            }
        }
    }

    /// Arrays in memory: inputs are read or made.
    pub(crate) fn in_memory(job: &Job, disk: &Disk) -> Result<Homes, Error> {
        let mut places = Vec::new();
        for (decl, source) in job.arrays().iter().zip(&job.sources) {
            let bytes = decl.bytes();
            // An array is whole in memory; buffers are zeroed and at least a page.
            let mut buffer = AlignedBuffer::new(bytes as usize).map_err(Error::File)?;
            match source {
                None => {}
                Some(Source::Generated { seed }) => {
                    // SAFETY: nobody else knows the buffer yet.
                    let slice = unsafe { buffer.as_mut_slice() };
                    generate::fill(decl.element, *seed, 0, &mut slice[..bytes as usize]);
                }
                Some(Source::Bytes(given)) => {
                    let given = bytes_of(decl, given)?;
                    // SAFETY: as above.
                    let slice = unsafe { buffer.as_mut_slice() };
                    slice[..given.len()].copy_from_slice(given);
                }
                Some(file @ (Source::Npy(_) | Source::Raw(_))) => {
                    let file = open(decl, file, disk)?;
                    transfer_all(disk, &file, Direction::Read, buffer.as_mut_ptr()).map_err(Error::File)?;
                }
            }
            places.push(Place::Memory(buffer));
        }
        Ok(Homes { kept: vec![false; places.len()], places, resumed: false })
    }

    /// Arrays in files: inputs are opened, or made as scratch files in `directory`; outputs are created beside their
    /// final names.
    pub(crate) fn on_disk(job: &Job, disk: &Disk, directory: &Path, resume: bool) -> Result<Homes, Error> {
        let mut homes = Homes { places: Vec::new(), kept: Vec::new(), resumed: resume };
        let result = homes.fill_from(job, disk, directory, resume);
        if result.is_err() && !resume {
            homes.discard(disk);
        }
        result.map(|()| homes)
    }

    fn fill_from(&mut self, job: &Job, disk: &Disk, directory: &Path, resume: bool) -> Result<(), Error> {
        for (i, decl) in job.arrays().iter().enumerate() {
            let (source, sink) = (&job.sources[i], &job.sinks[i]);
            let place = match (decl.role, source, sink) {
                (Role::Input, Some(file @ (Source::Npy(_) | Source::Raw(_))), _) => open(decl, file, disk)?,
                (Role::Output | Role::InOut, _, Some(sink)) => {
                    let (element, dims) = (decl.element, decl.shape.dims());
                    let file = match sink {
                        Sink::Npy(path) => disk.create_npy(path, element, dims, resume),
                        Sink::Raw(path) => disk.create_raw(path, element, dims, resume),
                    }
                    .map_err(Error::File)?;
                    self.places.push(Place::File(file.clone()));
                    self.kept.push(true);
                    self.resumed &= file.is_resumed();
                    if !file.is_resumed() {
                        fill(decl, source.as_ref(), disk, &file)?;
                    }
                    continue;
                }
                _ => {
                    let file =
                        disk.create_temporary(directory, decl.element, decl.shape.dims()).map_err(Error::File)?;
                    fill(decl, source.as_ref(), disk, &file)?;
                    file
                }
            };
            self.places.push(Place::File(place));
            self.kept.push(false);
        }
        Ok(())
    }
}

fn bytes_of<'a>(decl: &ArrayDecl, given: &'a [u8]) -> Result<&'a [u8], Error> {
    if given.len() as u64 != decl.bytes() {
        let (name, need, len) = (&decl.name, decl.bytes(), given.len());
        return Err(Error::Request(format!("array {name} has {need} bytes, {len} were given")));
    }
    Ok(given)
}

fn open(decl: &ArrayDecl, source: &Source, disk: &Disk) -> Result<ArrayFile, Error> {
    let file = match source {
        Source::Npy(path) => disk.open_npy(path).map_err(Error::File)?,
        Source::Raw(path) => disk.open_raw(path, decl.element, decl.shape.dims()).map_err(Error::File)?,
        Source::Generated { .. } | Source::Bytes(_) => {
            return Err(Error::Request(format!("array {} does not come from a file", decl.name)));
        }
    };
    if file.element() != decl.element {
        return Err(Error::Request(format!(
            "{} holds {}, but array {} is of {}; convert it, for example with NumPy's astype",
            file.path().display(),
            file.element(),
            decl.name,
            decl.element
        )));
    }
    Ok(file)
}

/// Moves a whole file from or to memory.
pub(crate) fn transfer_all(
    disk: &Disk,
    file: &ArrayFile,
    direction: Direction,
    memory: *mut u8,
) -> Result<(), StoreError> {
    let start = vec![0; file.shape().len()];
    transfer_block(disk, file, direction, &start, file.shape(), memory)
}

/// Moves a block between a file and dense memory.
pub(crate) fn transfer_block(
    disk: &Disk,
    file: &ArrayFile,
    direction: Direction,
    start: &[u64],
    len: &[u64],
    memory: *mut u8,
) -> Result<(), StoreError> {
    let row = len.last().copied().unwrap_or(1) * file.element().size_bytes();
    let label: Arc<str> = file.path().display().to_string().into();
    let list = TransferList::block(file, direction, start, len, memory, row, label)?;
    // SAFETY: the memory holds the block (both callers made it for that) and is not touched before the wait is over.
    let ticket = unsafe { disk.submit(list) };
    disk.wait(ticket)
}

/// Writes the initial content of an array into its file. Files start as zeros.
fn fill(decl: &ArrayDecl, source: Option<&Source>, disk: &Disk, file: &ArrayFile) -> Result<(), Error> {
    let Some(source) = source else { return Ok(()) };
    let opened = match source {
        Source::Npy(_) | Source::Raw(_) => Some(open(decl, source, disk)?),
        _ => None,
    };
    let dims = decl.shape.dims();
    let size = decl.element.size_bytes();
    let row_elements: u64 = dims[1..].iter().product();
    let rows_each = (CHUNK_BYTES / (row_elements * size)).clamp(1, dims[0]);
    let mut buffer = AlignedBuffer::new((rows_each * row_elements * size) as usize).map_err(Error::File)?;
    for (row, rows) in multigrain_program::blocks(dims[0], rows_each) {
        let mut start = vec![0; dims.len()];
        start[0] = row;
        let mut len = dims.to_vec();
        len[0] = rows;
        let bytes = (rows * row_elements * size) as usize;
        let first = row * row_elements;
        match source {
            Source::Generated { seed } => {
                // SAFETY: no transfer is under way.
                let slice = unsafe { buffer.as_mut_slice() };
                generate::fill(decl.element, *seed, first, &mut slice[..bytes]);
            }
            Source::Bytes(given) => {
                let given = bytes_of(decl, given)?;
                let from = (first * size) as usize;
                // SAFETY: as above.
                let slice = unsafe { buffer.as_mut_slice() };
                slice[..bytes].copy_from_slice(&given[from..from + bytes]);
            }
            Source::Npy(_) | Source::Raw(_) => {
                if let Some(from) = &opened {
                    transfer_block(disk, from, Direction::Read, &start, &len, buffer.as_mut_ptr())
                        .map_err(Error::File)?;
                }
            }
        }
        transfer_block(disk, file, Direction::Write, &start, &len, buffer.as_mut_ptr()).map_err(Error::File)?;
    }
    Ok(())
}
