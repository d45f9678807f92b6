//! Drivers that move bytes between a parent memory and a child memory, and the files behind a disk edge.
//!
//! What comes in: descriptions of blocks (a file or a parent address, offsets, lengths, pitches) and the memory that
//! they go to or come from. What goes out: the bytes moved, a [`Ticket`] for each asynchronous transfer, counters, and
//! faults as values ([`StoreError`]) that name the file, the operation and the way out. Three drivers: [`Disk`]
//! (direct asynchronous file I/O), [`LocalStore`] (a worker's private arena, by choice under strict Cell rules) and
//! [`shared`] (nothing to move). The room never decides what is moved when: it knows no plan, and of programs only
//! the element types; it never
//! panics on bad input, never hangs, and never shows a half-written file under its final name.
//!
//! The page `docs/transfers.md` beside the sources tells how a transfer list becomes operations, with the named states
//! of an operation; [`journal`] draws the resume journal.

pub mod buffer;
pub mod disk;
pub mod error;
pub mod faults;
pub mod file;
pub mod journal;
pub mod local;
pub mod mapped;
pub mod npy;
pub mod shared;
pub mod transfer;

mod backend;
mod context;
mod naming;
mod opening;
mod scheduler;
mod state;
mod sync;

pub use buffer::AlignedBuffer;
pub use context::Counters;
pub use disk::{BackendChoice, Disk, DiskOptions, Ticket};
pub use error::{Errno, RuleError, StoreError};
pub use faults::{Faults, Operation, OperationKind, Verdict};
pub use file::ArrayFile;
pub use journal::{Journal, Record};
pub use local::{LocalRules, LocalStore};
pub use mapped::{SharedPlace, touched_bytes};
pub use multigrain_program::ElementType;
pub use naming::part_path;
pub use npy::{ArrayHeader, HeaderError};
pub use state::{FileState, program_hash};
pub use transfer::{Direction, Fragment, Slack, Stride, TransferList};
