//! What to compute: arrays, regions, tasks and calls, with sequential meaning.
//!
//! In comes a program text in Rust: arrays declared with shape and element type, and calls of [`Task`]s on
//! [`Region`]s of them. Out goes data: a list of [`Call`]s whose meaning is to execute their leaf variants one after
//! the other ([`Program::run_sequential`] does exactly that and is the reference for every other way of running).
//! This room never names a machine, starts no thread and moves no bytes between memories.
//!
//! # Reductions
//!
//! A parameter of kind [`Reduce`] is contributed to by many sub-calls and ends as their combination by a fixed tree, so
//! that its bits depend neither on tiles nor on the number of workers. It is reduced along the axis of the
//! [notation](Task::notation) that cuts none of its dimensions; `every` is the span of one contribution, and the leaf variant
//! computes just that. Here the sum of a vector, and the largest element of each row of a matrix:
//!
//! ```
//! use multigrain_program::*;
//!
//! /// total = the sum of x, in double precision.
//! struct Total;
//!
//! impl Task for Total {
//!     type Params = (Read<f32, 1>, Reduce<f64, 1>);
//!     fn name(&self) -> &'static str {
//!         "total"
//!     }
//!     fn notation(&self) -> Option<Notation> {
//!         Some(Notation::axes(["n"]).every("n", 1024).param("x", ["n"]).param("total", [":"]))
//!     }
//!     // The contribution of one span; `total` begins as the identity.
//!     fn leaf(&self, (x, mut total): (View<'_, f32, 1>, ReduceMut<'_, f64, 1, Sum>), _: &mut LeafContext<'_>) {
//!         total.combine([0], x.row(&[]).iter().map(|&x| f64::from(x)).sum());
//!     }
//! }
//!
//! /// largest = the largest element of each row of a.
//! struct RowMax;
//!
//! impl Task for RowMax {
//!     type Params = (Read<f32, 2>, Reduce<f32, 1, Max>);
//!     fn name(&self) -> &'static str {
//!         "row-max"
//!     }
//!     fn notation(&self) -> Option<Notation> {
//!         let axes = Notation::axes(["rows", "columns"]).every("columns", 256);
//!         Some(axes.param("a", ["rows", "columns"]).param("largest", ["rows"]))
//!     }
//!     fn leaf(&self, (a, mut largest): (View<'_, f32, 2>, ReduceMut<'_, f32, 1, Max>), _: &mut LeafContext<'_>) {
//!         for i in 0..a.len(0) {
//!             a.row(&[i]).iter().for_each(|&x| largest.combine([i], x));
//!         }
//!     }
//! }
//!
//! let mut program = Program::new();
//! let (total, row_max) = (program.task(Total), program.task(RowMax));
//! let a = program.array::<f32, 2>("a", [3, 1000], Role::Input)?;
//! let x = program.array::<f32, 1>("x", [5000], Role::Input)?;
//! let largest = program.array::<f32, 1>("largest", [3], Role::Output)?;
//! let sum = program.array::<f64, 1>("sum", [1], Role::Output)?;
//! program.call(row_max, (a.all(), largest.all()), Scalars::new())?;
//! program.call(total, (x.all(), sum.all()), Scalars::new())?;
//!
//! let floats = |n: u32, f: fn(u32) -> f32| (0..n).flat_map(|i| f(i).to_le_bytes()).collect::<Vec<u8>>();
//! let mut memory = [floats(3000, |i| -(i as f32)), floats(5000, |_| 0.5), vec![0; 12], vec![0; 8]];
//! program.run_sequential(&mut memory)?;
//! assert_eq!(memory[2], [-0.0f32, -1000.0, -2000.0].map(f32::to_le_bytes).concat());
//! assert_eq!(memory[3], 2500f64.to_le_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod any;
mod argument;
mod array;
mod call;
mod cover;
mod dyn_task;
mod element;
mod erased;
mod error;
pub mod notation;
mod params;
mod program;
mod reduce;
mod region;
mod scalars;
mod sequential;
mod steps;
mod task;
mod view;
mod window;

pub use any::{AnyParams, AnyView, AnyViewMut, AnyViews};
pub use array::{AnyArray, AnyBlock, Arg, Args, Array, ArrayDecl, ArrayNumber, Block, Declared, Role};
pub use call::{Access, Call, CallShape, IoBound, Param, Tunable, Tunables, Work};
pub use dyn_task::{Callee, DynTask, LeafContext, SubCall};
pub use element::{Complex32, Complex64, Element, ElementType};
pub use error::{ArgumentError, SplitError, SplitProblem};
pub use notation::{Index, Notation};
pub use params::{ParamKind, ParamList, Read, Update, Write};
pub use program::{Program, ProgramError, TaskHandle};
pub use reduce::{Max, Merge, Min, Operator, Parts, Reduce, ReduceMut, Reduction, Sum};
pub use region::{Lengths, RANK_MAX, Region, Shape, blocks};
pub use scalars::Scalars;
pub use sequential::SequentialError;
pub use steps::Steps;
pub use task::Task;
pub use view::{RawView, View, ViewMut};
pub use window::Window;
