//! What to compute: arrays, regions, tasks and calls, with sequential meaning.
//!
//! In comes a program text in Rust: arrays declared with shape and element type, and calls of [`Task`]s on
//! [`Region`]s of them. Out goes data: a list of [`Call`]s whose meaning is to execute their leaf variants one after
//! the other ([`Program::run_sequential`] does exactly that and is the reference for every other way of running).
//! This room never names a machine, starts no thread and moves no bytes between memories.

mod array;
mod element;
mod params;
mod region;
mod scalars;
mod sequential;
mod task;
mod view;

pub use array::{Arg, Args, Array, ArrayDecl, Block, Call, Program, ProgramError, Role, TaskHandle};
pub use element::{Complex32, Element, ElementType};
pub use params::{Access, Param, ParamKind, ParamList, Read, Update, Write};
pub use region::{RANK_MAX, Region, Shape};
pub use scalars::Scalars;
pub use sequential::SequentialError;
pub use task::{CallShape, Callee, DynTask, IoBound, LeafContext, SubCall, Task, Tunable, Tunables, Work, blocks};
pub use view::{RawView, View, ViewMut};
