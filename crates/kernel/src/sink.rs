//! Where records go.

use multigrain_trace::Record;

/// Takes a chunk of records and gives an empty one; is given one without room at first. What it gives has room for some records,
/// or for none if it takes no more.
pub type Sink = Box<dyn FnMut(Vec<Record>) -> Vec<Record> + Send>;
