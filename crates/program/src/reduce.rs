//! Reductions: a parameter that many sub-calls contribute to, combined by a fixed tree.
//!
//! The picture: the axis that is reduced is cut into *spans* of [`Tunable::multiple`](crate::Tunable::multiple)
//! elements. The leaf variant makes one contribution a span, and contributions are combined in pairs of neighbours,
//! pairs of pairs, and so on; who has no neighbour on the right goes up alone. It is the tree of the reduce schedules
//! (`multigrain_schedule::contributions`):
//!
//! ```text
//!             [0..5)
//!            /      \
//!        [0..4)      |
//!        /    \      |
//!    [0..2) [2..4)   |
//!     / \    / \     |
//!    0   1  2   3    4        spans
//! ```
//!
//! A block of a power of two of spans that begins at a multiple of its length is a node of this tree, and its own tree
//! is the part below that node. So a call may be split into such blocks (and the rest at the end), again and again,
//! each block reduced wherever it is, and the bits are those of the tree: see [`DynTask::allows`](crate::DynTask::allows)
//! and [`Parts`].

mod kind;
mod merge;
mod operator;
mod parts;
mod reduction;
mod spans;
mod view;

pub use kind::Reduce;
pub use merge::Merge;
pub use operator::{Max, Min, Operator, Sum};
pub use parts::Parts;
pub use reduction::Reduction;
pub(crate) use spans::{OneSpan, Spans};
pub use view::ReduceMut;
