//! Results without a task of one's own: arrays are opened, mapped, zipped, reduced, counted, iterated on and saved.
//!
//! A [`Lazy`] array is a description; nothing is read before [`Runtime::compute`](crate::Runtime::compute). That makes one
//! program of everything it is given: what is computed element by element is computed where it is used and never stored, but
//! where a chain of functions is some dozens long, and results of one shape that share an array come from one pass over it. Sums end every so many elements and are combined by a
//! fixed tree, so the bits depend on the shapes alone, not on memory or threads.
//!
//! ```
//! use multigrain::prelude::*;
//!
//! let runtime = Runtime::with_memory("4MiB")?;
//! let m = runtime.generated::<f32, 2>([300, 1000], 1);
//! let squares = m.map(|x| f64::from(x) * f64::from(x));
//! let rows = runtime.values(&squares.mean_axis(1))?;
//! assert!(rows.len() == 300 && rows.iter().all(|mean| (0.25..0.45).contains(mean)));
//! # Ok::<(), Error>(())
//! ```

mod array;
mod base;
mod build;
mod expression;
mod output;
mod pass;

pub use array::{Lazy, Save, Saves};
