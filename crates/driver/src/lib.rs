//! What moves bytes along the edges of a machine: one trait for every kind of memory, and those that come along.
//!
//! In comes what a plan says of one block: where it lies in the parent ([`Location`]), at which bytes of the child it goes
//! or comes from ([`Transfer`]). Out go the bytes moved, a [`Receipt`] for what is on its way, and faults as values. A
//! [`Driver`] states what others need to know of it ([`DriverFacts`]), reserves the memory of each child ([`Child`]), and
//! executes leaves there if nobody else can. Nobody above knows a driver by name: a machine file's word is looked up among
//! those that are registered ([`register`]). This room never decides what is moved when, and knows no plan.
//!
//! Three come along: `disk` (files, by [`multigrain_store::Disk`]), `local` (a worker's arena, by
//! [`multigrain_store::LocalStore`]) and `shared` (views: nothing is moved). What processes tell each other that execute one
//! plan together is here too ([`ranks`]).

mod disk;
mod exchange;
mod local;
pub mod ranks;
mod rows;
mod set;
pub mod spread;

pub use disk::DiskDriver;
pub use local::LocalDriver;
pub use multigrain_machine::{Driver as DriverName, DriverFacts, Wire};
pub use multigrain_store::{ArrayFile, Direction, Slack, StoreError};
pub use rows::rows;
pub use set::{Drivers, register};

use multigrain_machine::{Edge, Memory};
use multigrain_program::{ElementType, RawView, Region};
use multigrain_trace::Tick;
use std::any::Any;

/// A kind of edge: what it is, and the memories below it.
pub trait Driver: Send + Sync {
    /// What planning, checking and simulating need to know. Its name is the word in machine files.
    fn facts(&self) -> &'static DriverFacts;

    /// Reserves the memory of one child, before a run; `None` where children address what lies in their parent
    /// ([`DriverFacts::views`]). What is reserved may be used by any number of runs, one after the other.
    ///
    /// # Errors
    /// What the system or the device refuses.
    fn reserve(&self, site: &Site<'_>) -> Result<Option<Box<dyn Child>>, StoreError>;
}

/// What is to be reserved: one memory of a machine.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// The memory, as the machine describes all of its kind.
    pub memory: &'a Memory,
    /// The edge above it.
    pub edge: &'a Edge,
    /// Which of the machine's memories of this kind it is.
    pub index: usize,
    /// Bytes that blocks and scratch memory of leaves take together, at most: so many it has at least.
    pub bytes: u64,
}

/// The addresses of a child memory. Where a driver has a processor of its own, nobody else may follow them.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The first byte, aligned to 4096.
    pub start: *mut u8,
    /// Bytes.
    pub len_bytes: u64,
}

// SAFETY: addresses alone; who follows them is told by the driver.
unsafe impl Send for Span {}
// SAFETY: as above.
unsafe impl Sync for Span {}

/// One child memory. Its addresses are fixed as long as it lives; its bytes are initialised.
///
/// One thread at a time executes a child's steps, so calls for one child come one after the other, but from any thread.
///
/// # Safety
/// - [`span`](Self::span) is the same whenever it is asked for: memory of that many initialised bytes, aligned to 4096, that
///   nobody else uses as long as the child lives.
/// - [`issue`](Self::issue) touches the transfer's block and its bytes of the child, slack included, and nothing else; and its
///   receipt says that the transfer is over only when nothing of it is on its way.
/// - [`exchange`](Self::exchange) gives exactly the bytes that were asked for.
pub unsafe trait Child: Send + Sync {
    /// Where it lies.
    fn span(&self) -> Span;

    /// Begins to move a block; `None` where it is moved by now ([`DriverFacts::synchronous`]). Transfers of a child may end in
    /// any order; who needs one before another waits in between.
    ///
    /// # Errors
    /// What is known at once; nothing is on its way then, and how much was moved is unknown.
    ///
    /// # Safety
    /// Until the receipt says that it is over: the block in the parent and the bytes of the child stay where they are; nobody
    /// writes what is read or uses what is written.
    unsafe fn issue(&self, transfer: &Transfer<'_>) -> Result<Option<Box<dyn Receipt>>, StoreError>;

    /// Executes a leaf variant whose blocks lie here, by the driver's own processor, and returns when it is done. Only called
    /// where there is one ([`DriverFacts::own_processor`]). A thread of its own that catches the leaf's panic says so first
    /// ([`multigrain_team::catches_panics`]).
    ///
    /// # Errors
    /// The panic of the leaf. Whatever happened, the leaf is not executed any more.
    ///
    /// # Safety
    /// No transfer of what the leaf uses is under way.
    unsafe fn run(&self, leaf: &mut (dyn FnMut() + Send)) -> std::thread::Result<()> {
        leaf();
        Ok(())
    }

    /// Dense bytes of this memory, to be handed to siblings if they go `out`, or to be filled by one. Only called where
    /// children reach each other ([`DriverFacts::siblings`]).
    ///
    /// # Errors
    /// The bytes do not lie in the memory, or cannot be handed on.
    ///
    /// # Safety
    /// Nobody else uses these bytes as long as the result is used.
    #[allow(clippy::mut_from_ref)]
    unsafe fn exchange(&self, offset_bytes: u64, bytes: u64, out: bool) -> Result<&mut [u8], StoreError> {
        let _ = (offset_bytes, bytes, out);
        let what = "its children cannot hand blocks to each other".to_owned();
        Err(StoreError::Driver { driver: "this driver".into(), what })
    }
}

/// A block between a parent memory and a child.
pub struct Transfer<'a> {
    /// Down into the child, or up from it.
    pub direction: Direction,
    /// The block in the parent.
    pub location: Location<'a>,
    /// Where it lies in the child, densely and row-major: the first byte.
    pub offset_bytes: u64,
    /// Bytes around it in the child that are nobody else's, and that a read may fill with anything.
    pub slack: Slack,
    /// Whether the receipt is to tell when it began and ended to move.
    pub timed: bool,
    /// What is moved, for errors.
    pub name: &'a dyn Fn() -> String,
}

/// Where a block lies in a parent memory.
#[derive(Clone)]
pub enum Location<'a> {
    /// At addresses of this process.
    Memory(RawView),
    /// In an array that has none, which its driver knows how to reach: the region there.
    Opaque(&'a dyn Opaque, Region),
}

/// An array of a parent memory that has no addresses: in a file, on other nodes. Its driver looks at what it is behind
/// this.
pub trait Opaque: Any + Send + Sync {
    /// Type of the elements.
    fn element(&self) -> ElementType;

    /// Lengths along each dimension.
    fn shape(&self) -> &[u64];

    /// What people call it.
    fn name(&self) -> String;
}

impl Opaque for ArrayFile {
    fn element(&self) -> ElementType {
        ArrayFile::element(self)
    }

    fn shape(&self) -> &[u64] {
        ArrayFile::shape(self)
    }

    fn name(&self) -> String {
        self.path().display().to_string()
    }
}

/// What is left of a transfer that was issued. Dropping it cancels nothing. Who hands it out vouches for it ([`Child`]).
pub trait Receipt: Send {
    /// Blocks until the transfer is over. Again after that: the same at once.
    ///
    /// # Errors
    /// The transfer's first fault; how many of its bytes were moved is then unknown.
    fn wait(&self) -> Result<(), StoreError>;

    /// When it began and ended to move, if it is over and that was asked for.
    fn times(&self) -> Option<[Tick; 2]> {
        None
    }
}
