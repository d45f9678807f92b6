//! Homes for a job's arrays: memory, or files that were opened, created and filled.

use crate::error::Error;
use crate::generate;
use crate::job::{Job, Sink, Source};
use crate::names::{part_path, scratch_path, twin_path};
use crate::sides::Sides;
use multigrain_driver::Opaque;
use multigrain_driver::ranks::Ranks;
use multigrain_driver::spread::Spread;
use multigrain_engine::Home;
use multigrain_plan::Plan;
use multigrain_program::{Arg, ArrayDecl, Lengths, Region, Role};
use multigrain_store::{AlignedBuffer, ArrayFile, Direction, Disk, StoreError, TransferList};
use multigrain_team::Abort;
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::Arc;

/// Bytes that are made and written at once when a file is filled.
const CHUNK_BYTES: u64 = 1 << 20;
/// Bytes of a file that are read into memory at once: a tenth of a second or so.
const PART_BYTES: u64 = 256 << 20;

/// Where one array lies during a run.
pub(crate) enum Place {
    Memory(AlignedBuffer),
    File(ArrayFile),
    /// In the memories of all ranks.
    Spread(Arc<Spread>),
}

/// The homes of all arrays of a job.
pub(crate) struct Homes {
    pub(crate) places: Vec<Place>,
    /// For each array, what its file is to the run.
    stays: Vec<Stay>,
    /// Second files of arrays, which are gone when the run is over.
    twins: FxHashMap<usize, ArrayFile>,
}

/// What a file is to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stay {
    /// An input, or an array of a run that keeps no journal.
    No,
    /// A result that goes to a file.
    Result,
    /// A result that has its final name.
    Published,
    /// An array without a file of its own, kept beside the journal until the run is over.
    Scratch,
    /// Such an array that is not kept, and has a name until all ranks have opened it.
    Shared,
}

/// Where a run on disk keeps what has no file of its own.
#[derive(Clone, Copy)]
pub(crate) struct Folder<'a> {
    /// The folder.
    pub(crate) path: &'a Path,
    /// The first file that the job writes, if there is one: then nothing is lost when the run is interrupted.
    pub(crate) first: Option<&'a Path>,
    /// Where other processes open the files too, so that each has to have a name: one that no other run has.
    pub(crate) shared: Option<&'a Path>,
    /// Ranks in whose memories the job's arrays lie, instead of files.
    pub(crate) spread: Option<&'a Arc<Ranks>>,
}

/// How the files of results are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// They are created.
    Fresh,
    /// Another process has created them, and fills them.
    Joined,
    /// They are continued.
    Continued,
    /// They are continued; who is no longer under its `.part` name is complete, and nothing else is needed any more.
    Complete,
}

impl Opening {
    fn resumes(self) -> bool {
        matches!(self, Opening::Continued | Opening::Complete)
    }
}

/// A file, for a driver.
fn opaque(file: &ArrayFile) -> Arc<dyn Opaque> {
    Arc::new(file.clone())
}

/// Makes a file for an array: as that of its result is, where it has one.
fn create(
    disk: &Disk,
    decl: &ArrayDecl,
    result: Option<&Sink>,
    path: &Path,
    opening: Opening,
) -> Result<ArrayFile, StoreError> {
    let (element, dims) = (decl.element, decl.shape.dims());
    if opening == Opening::Joined {
        return disk.join(path, element, dims, matches!(result, Some(Sink::Npy(_))));
    }
    match result {
        Some(Sink::Npy(_)) => disk.create_npy(path, element, dims, opening.resumes()),
        _ => disk.create_raw(path, element, dims, opening.resumes()),
    }
}

impl Homes {
    /// For the engine, in the order of the arrays.
    pub(crate) fn homes(&self) -> Vec<Home> {
        self.places
            .iter()
            .enumerate()
            .map(|(i, place)| match (place, self.twins.get(&i)) {
                (Place::Memory(buffer), _) => {
                    Home::Memory { pointer: buffer.as_mut_ptr(), len_bytes: buffer.len() as u64 }
                }
                (Place::File(file), Some(twin)) => Home::Twins([opaque(file), opaque(twin)]),
                (Place::File(file), None) => Home::Opaque(opaque(file)),
                (Place::Spread(array), _) => Home::Opaque(array.clone()),
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
        self.twins.values().for_each(|file| disk.discard(file));
    }

    /// Arrays in memory: inputs are read or made.
    pub(crate) fn in_memory(job: &Job, disk: &Disk, abort: &Abort) -> Result<Homes, Error> {
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
                    let each = chunk_elements(decl);
                    let chunk_bytes = (each * decl.element.size_bytes()) as usize;
                    for (number, piece) in slice[..bytes as usize].chunks_mut(chunk_bytes).enumerate() {
                        go_on(abort)?;
                        generate::fill(decl.element, *seed, number as u64 * each, piece);
                    }
                }
                Some(Source::Bytes(given)) => {
                    let given = bytes_of(decl, given)?;
                    // SAFETY: as above.
                    let slice = unsafe { buffer.as_mut_slice() };
                    slice[..given.len()].copy_from_slice(given);
                }
                Some(file @ (Source::Npy(_) | Source::Raw(_))) => {
                    read_all(disk, &open(decl, file, disk)?, buffer.as_mut_ptr(), abort)?;
                }
            }
            places.push(Place::Memory(buffer));
        }
        Ok(Homes { stays: vec![Stay::No; places.len()], places, twins: FxHashMap::default() })
    }

    /// Arrays in files: inputs are opened, or made as scratch files in the folder; outputs are created beside their final
    /// names. The arrays are those of the job, and behind them temporary ones of a plan. Where the disk has no room for the
    /// second file of an array, it does without, and `sides` know.
    pub(crate) fn on_disk(
        job: &Job,
        plan: &Plan,
        disk: &Disk,
        folder: Folder<'_>,
        opening: Opening,
        sides: &mut Sides,
        abort: &Abort,
    ) -> Result<Homes, Error> {
        let mut homes = Homes::none();
        // What is lent to calls is nobody's between them.
        let (lasting, passing) = plan.arrays.split_at(plan.own_arrays().len());
        let nowhere = Folder { first: None, ..folder };
        let result = (0..)
            .zip(lasting)
            .try_for_each(|(i, decl)| homes.open(job, decl, i, disk, folder, opening))
            .and_then(|()| {
                let mut passing = (lasting.len()..).zip(passing);
                passing.try_for_each(|(i, decl)| homes.open(job, decl, i, disk, nowhere, opening))
            })
            .and_then(|()| homes.open_twins(job, &plan.arrays, disk, folder, opening, sides))
            .and_then(|()| homes.fill(job, disk, sides, opening, abort));
        if result.is_err() && opening == Opening::Fresh {
            homes.discard(disk);
        }
        result.map(|()| homes)
    }

    fn open(
        &mut self,
        job: &Job,
        decl: &ArrayDecl,
        i: usize,
        disk: &Disk,
        folder: Folder<'_>,
        opening: Opening,
    ) -> Result<(), Error> {
        let (element, dims) = (decl.element, decl.shape.dims());
        if let Some(ranks) = folder.spread.filter(|_| i < job.arrays().len()) {
            let array = Spread::new(ranks, &decl.name, element, dims).map_err(Error::File)?;
            self.places.push(Place::Spread(Arc::new(array)));
            self.stays.push(Stay::No);
            return Ok(());
        }
        let source = job.sources.get(i).and_then(Option::as_ref);
        let sink = job.sinks.get(i).and_then(Option::as_ref);
        let (file, stay) = match (decl.role, source, sink) {
            (Role::Input, Some(file @ (Source::Npy(_) | Source::Raw(_))), _) => (open(decl, file, disk)?, Stay::No),
            (Role::Output | Role::InOut, _, Some(sink))
                if opening == Opening::Complete && !part_path(sink.path()).exists() =>
            {
                let file = match sink {
                    Sink::Npy(path) => disk.open_npy_as(path, element),
                    Sink::Raw(path) => disk.open_raw(path, element, dims),
                };
                (file.map_err(Error::File)?, Stay::Published)
            }
            (Role::Output | Role::InOut, _, Some(sink)) => {
                let file = create(disk, decl, Some(sink), sink.path(), opening);
                (file.map_err(Error::File)?, Stay::Result)
            }
            (Role::Temporary, ..) if opening == Opening::Complete => {
                self.places.push(Place::Memory(AlignedBuffer::new(1).map_err(Error::File)?));
                self.stays.push(Stay::No);
                return Ok(());
            }
            (role, ..) => match (folder.first.filter(|_| role != Role::Input), folder.shared) {
                (Some(first), _) => {
                    let file = create(disk, decl, None, &scratch_path(folder.path, first, i), opening);
                    (file.map_err(Error::File)?, Stay::Scratch)
                }
                (None, Some(name)) => {
                    let opening = if opening == Opening::Joined { opening } else { Opening::Fresh };
                    let file = create(disk, decl, None, &scratch_path(folder.path, name, i), opening);
                    (file.map_err(Error::File)?, Stay::Shared)
                }
                (None, None) => (disk.create_temporary(folder.path, element, dims).map_err(Error::File)?, Stay::No),
            },
        };
        self.places.push(Place::File(file));
        self.stays.push(stay);
        Ok(())
    }

    fn open_twins(
        &mut self,
        job: &Job,
        arrays: &[ArrayDecl],
        disk: &Disk,
        folder: Folder<'_>,
        opening: Opening,
        sides: &mut Sides,
    ) -> Result<(), Error> {
        for i in sides.arrays() {
            let (path, decl) = (twin_path(job, folder.path, i), &arrays[i]);
            // As the first file, so that slots lie as both do.
            let sink = job.sinks.get(i).and_then(Option::as_ref);
            match create(disk, decl, sink, &path, opening) {
                Ok(file) => drop(self.twins.insert(i, file)),
                Err(StoreError::NoSpace { .. }) if opening == Opening::Fresh => sides.forget(i),
                Err(error) => return Err(Error::File(error)),
            }
        }
        Ok(())
    }

    /// Writes the initial content of files that are new.
    fn fill(&self, job: &Job, disk: &Disk, sides: &Sides, opening: Opening, abort: &Abort) -> Result<(), Error> {
        for (i, (decl, source)) in job.arrays().iter().zip(&job.sources).enumerate() {
            if let (Place::Spread(array), Some(source)) = (&self.places[i], source) {
                fill_own(decl, source, array, abort)?;
            }
            if let Some(file) = self.initial(i, sides)
                && source.is_some()
                && file.is_writable()
                && opening != Opening::Joined
                && !file.is_resumed()
            {
                fill(decl, source.as_ref(), disk, file, &Region::whole(decl.shape), abort)?;
            }
        }
        Ok(())
    }

    /// The file in which an array's initial content lies.
    fn initial(&self, array: usize, sides: &Sides) -> Option<&ArrayFile> {
        match (&self.places[array], self.twins.get(&array)) {
            (_, Some(twin)) if sides.initial_in_second(array) => Some(twin),
            (Place::File(file), _) => Some(file),
            (Place::Memory(_) | Place::Spread(_), _) => None,
        }
    }

    /// Homes in memory for the arrays that a plan has beyond those of the job: partial results of reductions.
    pub(crate) fn add_temporaries(&mut self, plan: &Plan) -> Result<(), Error> {
        for decl in &plan.arrays[self.places.len().min(plan.arrays.len())..] {
            let buffer = AlignedBuffer::new(decl.bytes() as usize).map_err(Error::File)?;
            self.places.push(Place::Memory(buffer));
            self.stays.push(Stay::No);
        }
        Ok(())
    }

    fn numbered(&self, of: impl Fn(Stay) -> bool) -> impl Iterator<Item = (usize, &ArrayFile)> {
        self.places.iter().zip(&self.stays).enumerate().filter_map(move |(array, (place, &stay))| match place {
            Place::File(file) if of(stay) => Some((array, file)),
            _ => None,
        })
    }

    fn files(&self, of: impl Fn(Stay) -> bool) -> impl Iterator<Item = &ArrayFile> {
        self.numbered(of).map(|(_, file)| file)
    }

    /// The files of results that did not have their final names when they were opened, and which arrays these are.
    pub(crate) fn unpublished(&self) -> impl Iterator<Item = (usize, &ArrayFile)> {
        self.numbered(|stay| stay == Stay::Result)
    }

    /// The files of all results, whatever their names, and of arrays without one of their own.
    pub(crate) fn kept(&self) -> impl Iterator<Item = (usize, &ArrayFile)> {
        self.numbered(|stay| !matches!(stay, Stay::No | Stay::Shared))
    }

    /// The file in which a block lies that stands where [`Sides::lies`] says, of so many arrays.
    pub(crate) fn file_of(&self, lies: u32, arrays: usize) -> Option<&ArrayFile> {
        match (lies as usize).checked_sub(arrays) {
            Some(array) => self.twins.get(&array),
            None => self.places.get(lies as usize).and_then(|place| match place {
                Place::File(file) => Some(file),
                Place::Memory(_) | Place::Spread(_) => None,
            }),
        }
    }

    /// The files of results that had their final names when they were opened.
    pub(crate) fn published(&self) -> impl Iterator<Item = &ArrayFile> {
        self.files(|stay| stay == Stay::Published)
    }

    /// Files that outlive the run when it is interrupted.
    pub(crate) fn lasting(&self) -> impl Iterator<Item = &ArrayFile> {
        self.files(|stay| matches!(stay, Stay::Result | Stay::Scratch)).chain(self.twins.values())
    }

    /// The file of an array, where that is its source.
    pub(crate) fn input(&self, array: usize) -> Option<&ArrayFile> {
        match self.places.get(array) {
            Some(Place::File(file)) if !file.is_writable() && self.stays[array] == Stay::No => Some(file),
            _ => None,
        }
    }

    /// No arrays.
    pub(crate) fn none() -> Homes {
        Homes { places: Vec::new(), stays: Vec::new(), twins: FxHashMap::default() }
    }

    /// Removes second files: the run is over.
    pub(crate) fn remove_twins(&mut self, disk: &Disk) {
        self.twins.drain().for_each(|(_, file)| disk.discard(&file));
    }

    /// The files of arrays that have none of their own.
    pub(crate) fn scratch(&self) -> impl Iterator<Item = &ArrayFile> {
        self.files(|stay| stay == Stay::Scratch)
    }

    /// The files that have names only until all ranks have opened them.
    pub(crate) fn shared(&self) -> impl Iterator<Item = &ArrayFile> {
        self.files(|stay| stay == Stay::Shared)
    }

    /// Puts the initial content of blocks back.
    pub(crate) fn restore(
        &self,
        job: &Job,
        disk: &Disk,
        sides: &Sides,
        blocks: &[Arg],
        abort: &Abort,
    ) -> Result<(), Error> {
        for block in blocks {
            let array = block.array as usize;
            // Partial results of reductions have none, and nobody reads them before they are written.
            if let (Some(file), Some(decl)) = (self.initial(array, sides), job.arrays().get(array)) {
                fill(decl, job.sources[array].as_ref(), disk, file, &block.region, abort)?;
            }
        }
        Ok(())
    }
}

/// Ends what comes before the run when the run is to end.
fn go_on(abort: &Abort) -> Result<(), Error> {
    if abort.is_raised() { Err(Error::Interrupted { resume: false }) } else { Ok(()) }
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
        Source::Npy(path) => disk.open_npy_as(path, decl.element).map_err(Error::File)?,
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
    if file.shape() != decl.shape.dims() {
        return Err(Error::Request(format!(
            "{} has shape {}, but array {} has {}; give a file of that shape",
            file.path().display(),
            Lengths(file.shape()),
            decl.name,
            decl.shape
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

/// Reads a whole file into memory, in parts long enough that the disk does not notice, and short enough for who waits for
/// the end.
fn read_all(disk: &Disk, file: &ArrayFile, memory: *mut u8, abort: &Abort) -> Result<(), Error> {
    let [rows, rest @ ..] = file.shape() else {
        return transfer_all(disk, file, Direction::Read, memory).map_err(Error::File);
    };
    let row_bytes = rest.iter().product::<u64>() * file.element().size_bytes();
    let rows_each = (PART_BYTES / row_bytes.max(1)).max(1);
    for (row, count) in multigrain_program::blocks(*rows, rows_each) {
        go_on(abort)?;
        let (mut start, mut len) = (vec![0; rest.len() + 1], file.shape().to_vec());
        (start[0], len[0]) = (row, count);
        let to = memory.wrapping_add((row * row_bytes) as usize);
        transfer_block(disk, file, Direction::Read, &start, &len, to).map_err(Error::File)?;
    }
    Ok(())
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
    // SAFETY: the memory holds the block (the callers made it for that) and is not touched before the wait is over.
    let ticket = unsafe { disk.submit(list) };
    disk.wait(ticket)
}

/// Elements of an array in a chunk: at least one, whatever its size.
fn chunk_elements(decl: &ArrayDecl) -> u64 {
    (CHUNK_BYTES / decl.element.size_bytes()).max(1)
}

/// Writes the initial content of a region of an array, zeros where it has no source, into its file.
fn fill(
    decl: &ArrayDecl,
    source: Option<&Source>,
    disk: &Disk,
    file: &ArrayFile,
    region: &Region,
    abort: &Abort,
) -> Result<(), Error> {
    let opened = match source {
        Some(source @ (Source::Npy(_) | Source::Raw(_))) => Some(open(decl, source, disk)?),
        _ => None,
    };
    let size = decl.element.size_bytes();
    let most = region.elements().min(chunk_elements(decl));
    let mut buffer = AlignedBuffer::new((most * size) as usize).map_err(Error::File)?;
    for piece in region.pieces(most) {
        go_on(abort)?;
        let (start, len) = (piece.start(), piece.len());
        match &opened {
            Some(from) => {
                transfer_block(disk, from, Direction::Read, start, len, buffer.as_mut_ptr()).map_err(Error::File)?
            }
            None => {
                // SAFETY: no transfer is under way.
                let slice = unsafe { buffer.as_mut_slice() };
                make(decl, source, &piece, &mut slice[..(piece.elements() * size) as usize])?;
            }
        }
        transfer_block(disk, file, Direction::Write, start, len, buffer.as_mut_ptr()).map_err(Error::File)?;
    }
    Ok(())
}

/// Makes the initial content of what lies here of an array of all ranks.
fn fill_own(decl: &ArrayDecl, source: &Source, array: &Spread, abort: &Abort) -> Result<(), Error> {
    let (own, size) = (array.own_elements(), decl.element.size_bytes());
    let each = chunk_elements(decl);
    let given = match source {
        Source::Bytes(given) => bytes_of(decl, given)?,
        _ => &[],
    };
    for first in (own.start..own.end).step_by(each as usize) {
        go_on(abort)?;
        let bytes = ((own.end - first).min(each) * size) as usize;
        let here = array.own_start().wrapping_add(((first - own.start) * size) as usize);
        // SAFETY: within what lies here, initialised as it is made; nobody knows it before all ranks meet.
        let piece = unsafe { std::slice::from_raw_parts_mut(here, bytes) };
        match source {
            Source::Generated { seed } => generate::fill(decl.element, *seed, first, piece),
            _ => piece.copy_from_slice(&given[(first * size) as usize..][..bytes]),
        }
    }
    Ok(())
}

/// The initial content of a region of an array that does not come from a file, row-major.
fn make(decl: &ArrayDecl, source: Option<&Source>, region: &Region, out: &mut [u8]) -> Result<(), Error> {
    let given = match source {
        Some(Source::Bytes(given)) => bytes_of(decl, given)?,
        _ => &[],
    };
    let size = decl.element.size_bytes();
    let (_, run) = region.fragments(decl.shape);
    for (number, piece) in out.chunks_mut((run * size) as usize).enumerate() {
        let first = region.element(number as u64 * run, decl.shape);
        match source {
            Some(Source::Generated { seed }) => generate::fill(decl.element, *seed, first, piece),
            Some(Source::Bytes(_)) => piece.copy_from_slice(&given[(first * size) as usize..][..piece.len()]),
            _ => piece.fill(0),
        }
    }
    Ok(())
}
