//! Where the arrays of a scope lie.

use multigrain_program::{ArrayDecl, Lengths, RawView, Region, Shape};
use multigrain_store::{ArrayFile, StoreError};

/// Where one array of the program lies in the root memory.
#[derive(Clone)]
pub enum Home {
    /// In memory, dense and row-major.
    Memory {
        /// First byte; aligned to the element.
        pointer: *mut u8,
        /// Bytes.
        len_bytes: u64,
    },
    /// In a file.
    File(ArrayFile),
    /// In two files of one shape: calls read in one what they write into the other, as [`Sides`] says.
    Twins([ArrayFile; 2]),
}

// SAFETY: the pointer is only used during `run`, whose caller vouches for the memory and for exclusive access to it.
unsafe impl Send for Home {}
// SAFETY: as above.
unsafe impl Sync for Home {}

/// Told about stores to files at the root edge, so that an interrupted run can be continued.
pub trait StoreLog: Send {
    /// A block is about to be written over what the file holds there.
    ///
    /// # Errors
    /// When it cannot be recorded: the block is not written then.
    fn begin(&mut self, call: u32, argument: u32) -> Result<(), StoreError>;

    /// A block has been written to `file`.
    ///
    /// # Errors
    /// When the file cannot be made durable or this cannot be recorded.
    fn done(&mut self, call: u32, argument: u32, file: &ArrayFile) -> Result<(), StoreError>;
}

/// Of arrays that lie in two files: which of them the numbered calls of a program read, and which they write.
pub trait Sides: Sync {
    /// The file, 0 or 1, in which the content that a call reads by an argument lies.
    fn reads(&self, call: u32, argument: u32) -> usize;

    /// The file, 0 or 1, into which goes what a call writes by an argument.
    fn writes(&self, call: u32, argument: u32) -> usize;
}

/// Where an array of a scope lies, for the interpreter.
#[derive(Clone)]
pub(crate) enum Place<'a> {
    Memory(RawView),
    File(&'a ArrayFile),
    Twins(&'a [ArrayFile; 2]),
    /// A region of an array in a file.
    Part(&'a ArrayFile, Region),
}

impl<'a> Place<'a> {
    /// Where a region of what lies here lies; `None` where it is not inside of it. Of two files, the one on `side`.
    pub(crate) fn part(&self, region: &Region, side: usize) -> Option<Place<'a>> {
        let inside = |lengths: &[u64]| Region::whole(Shape::new(lengths)).contains(region);
        let of = |file: &'a ArrayFile| inside(file.shape()).then_some(Place::Part(file, *region));
        match *self {
            Place::Memory(ref view) => view.part(region).map(Place::Memory),
            Place::File(file) => of(file),
            Place::Twins(files) => of(&files[side]),
            Place::Part(file, outer) => inside(outer.len()).then(|| Place::Part(file, region.within(&outer))),
        }
    }
}

// SAFETY: as for `Home`: the interpreter hands disjoint or read-only regions to different threads, as the plan says.
unsafe impl Send for Place<'_> {}
// SAFETY: as above.
unsafe impl Sync for Place<'_> {}

impl Home {
    pub(crate) fn place(&self, decl: &ArrayDecl) -> Result<Place<'_>, String> {
        match self {
            Home::Memory { pointer, len_bytes } => {
                if *len_bytes != decl.bytes() {
                    return Err(format!("it has {} bytes, {len_bytes} were given", decl.bytes()));
                }
                if !pointer.addr().is_multiple_of(8) {
                    return Err("its memory is not aligned to 8 bytes".to_owned());
                }
                Ok(Place::Memory(RawView::dense(*pointer, decl.element, decl.shape)))
            }
            Home::File(file) => holds(file, decl).map(|()| Place::File(file)),
            Home::Twins(files) => files.iter().try_for_each(|file| holds(file, decl)).map(|()| Place::Twins(files)),
        }
    }
}

/// Whether a file holds an array of this element type and shape.
fn holds(file: &ArrayFile, decl: &ArrayDecl) -> Result<(), String> {
    let (name, expected) = (file.element().name(), decl.element.name());
    if name != expected {
        return Err(format!("{} holds {name}, {expected} is needed", file.path().display()));
    }
    if file.shape() != decl.shape.dims() {
        let found = Lengths(file.shape());
        return Err(format!("{} has shape {found}, {} is needed", file.path().display(), decl.shape));
    }
    Ok(())
}
