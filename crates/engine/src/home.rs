//! Where the arrays of a scope lie.

use multigrain_driver::{Location, Opaque, StoreError};
use multigrain_program::{ArrayDecl, Lengths, RawView, Region, Shape};
use std::sync::Arc;

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
    /// Where it has no addresses, and the driver of the root's edge finds it: in a file.
    Opaque(Arc<dyn Opaque>),
    /// In two of those, of one shape: calls read in one what they write into the other, as [`Sides`] says.
    Twins([Arc<dyn Opaque>; 2]),
}

// SAFETY: the pointer is only used during `run`, whose caller vouches for the memory and for exclusive access to it.
unsafe impl Send for Home {}
// SAFETY: as above.
unsafe impl Sync for Home {}

/// Told about what is stored at the root edge where it has no addresses, so that an interrupted run can be continued.
pub trait StoreLog: Send {
    /// A block is about to be written over what lies there.
    ///
    /// # Errors
    /// When it cannot be recorded: the block is not written then.
    fn begin(&mut self, call: u32, argument: u32) -> Result<(), StoreError>;

    /// A block has been written to an array.
    ///
    /// # Errors
    /// When it cannot be made durable or this cannot be recorded.
    fn done(&mut self, call: u32, argument: u32, array: &dyn Opaque) -> Result<(), StoreError>;
}

/// Of arrays that lie in two places: which of them the numbered calls of a program read, and which they write.
pub trait Sides: Sync {
    /// The place, 0 or 1, in which the content that a call reads by an argument lies.
    fn reads(&self, call: u32, argument: u32) -> usize;

    /// The place, 0 or 1, into which goes what a call writes by an argument.
    fn writes(&self, call: u32, argument: u32) -> usize;
}

/// Where an array of a scope lies, for the interpreter.
#[derive(Clone)]
pub(crate) enum Place<'a> {
    Memory(RawView),
    Opaque(&'a dyn Opaque),
    Twins(&'a [Arc<dyn Opaque>; 2]),
    /// A region of an array.
    Part(&'a dyn Opaque, Region),
}

impl<'a> Place<'a> {
    /// Where a region of what lies here lies; `None` where it is not inside of it. Of two places, the one on `side`.
    pub(crate) fn part(&self, region: &Region, side: usize) -> Option<Place<'a>> {
        let inside = |lengths: &[u64]| Region::whole(Shape::new(lengths)).contains(region);
        let of = |array: &'a dyn Opaque| inside(array.shape()).then_some(Place::Part(array, *region));
        match *self {
            Place::Memory(ref view) => view.part(region).map(Place::Memory),
            Place::Opaque(array) => of(array),
            Place::Twins(arrays) => of(&*arrays[side]),
            Place::Part(array, outer) => inside(outer.len()).then(|| Place::Part(array, region.within(&outer))),
        }
    }

    /// The same, for a driver.
    pub(crate) fn location(&self, region: &Region, side: usize) -> Option<Location<'a>> {
        match self.part(region, side)? {
            Place::Memory(view) => Some(Location::Memory(view)),
            Place::Part(array, region) => Some(Location::Opaque(array, region)),
            Place::Opaque(_) | Place::Twins(_) => None,
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
            Home::Opaque(array) => holds(&**array, decl).map(|()| Place::Opaque(&**array)),
            Home::Twins(both) => both.iter().try_for_each(|one| holds(&**one, decl)).map(|()| Place::Twins(both)),
        }
    }
}

/// Whether what is stored is an array of this element type and shape.
fn holds(array: &dyn Opaque, decl: &ArrayDecl) -> Result<(), String> {
    let (name, expected) = (array.element().name(), decl.element.name());
    if name != expected {
        return Err(format!("{} holds {name}, {expected} is needed", array.name()));
    }
    if array.shape() != decl.shape.dims() {
        let found = Lengths(array.shape());
        return Err(format!("{} has shape {found}, {} is needed", array.name(), decl.shape));
    }
    Ok(())
}
