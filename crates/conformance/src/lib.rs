//! What every driver has to pass: call [`all`] from a test of its crate.
//!
//! In comes a driver. Random programs of several blocks run on machines that have memories of random capacities below its
//! edge, and every result is compared with sequential execution, byte by byte. Then its transfers are made to fail, to come
//! late and to come in another order than they were issued in, by a layer around it ([`Disturbed`]) that is the same for all
//! drivers: each transfer in turn. What fails must come back as an error that says so, end everything, and leave nothing
//! behind: the same job on the same runtime then gives the same bytes. Everything is a function of a seed, which a failing
//! test names. This room knows no driver, and measures nothing.
//!
//! ```
//! use multigrain::driver::LocalDriver;
//! use std::sync::Arc;
//! multigrain_conformance::all(&(Arc::new(LocalDriver) as _), &multigrain_conformance::Extent::SMALL);
//! ```

mod disturbed;
mod machines;
mod suite;

pub use disturbed::{Disturbance, Disturbed};
pub use suite::{Extent, all, blocks, faults, orders, reservations};
