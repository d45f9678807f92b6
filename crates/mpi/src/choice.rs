//! Which algorithm serves which operation and size, and why.

use multigrain_schedule::Topology;
use multigrain_schedule::message::{Algorithm, Costs, Operation, Payload, choose};
use std::fmt;

/// How an operation is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By a script.
    Script(Algorithm),
    /// By MPI's own operation; where that promises other bits (sums of floats), or does not know the operator, by the
    /// cheapest script.
    Mpi,
}

/// One line of a table: for so many bytes and fewer, down to the line before of the same operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Which operation, by its name.
    pub operation: &'static str,
    /// The most bytes of all blocks together that it is for.
    pub bytes_max: u64,
    /// What to do.
    pub way: Way,
    /// Why, with the figures.
    pub reason: String,
}

/// What is known of a cluster: lines that were measured, and what messages cost where there is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Lines, those of an operation by ascending bytes; the last serves everything above.
    pub rows: Vec<Row>,
    /// What messages cost.
    pub costs: Costs,
}

impl Choice {
    /// One way for everything that it can do.
    pub fn only(way: Way, costs: Costs) -> Choice {
        let names = ["barrier", "broadcast", "reduce", "allreduce", "all-gather", "all-to-all"];
        let row = |operation| Row { operation, bytes_max: u64::MAX, way, reason: "it was asked for".to_owned() };
        Choice { rows: names.map(row).to_vec(), costs }
    }

    /// What to do, and why. `mpi`: whether MPI's own operation gives the same bits.
    pub(crate) fn way(
        &self,
        operation: Operation,
        topology: &Topology,
        payload: Payload,
        mpi: bool,
    ) -> Result<(Way, String), crate::MpiError> {
        let bytes = payload.elements * payload.element_bytes;
        let mut rows = self.rows.iter().filter(|row| row.operation == operation.name()).peekable();
        let mut found = None;
        while let Some(row) = rows.next() {
            if bytes <= row.bytes_max || rows.peek().is_none() {
                found = Some(row);
                break;
            }
        }
        match found.map(|row| (row.way, row)) {
            Some((way @ Way::Mpi, row)) if mpi => return Ok((way, row.reason.clone())),
            Some((way @ Way::Script(algorithm), row)) if algorithm.performs(operation, topology).is_ok() => {
                return Ok((way, row.reason.clone()));
            }
            _ => {}
        }
        let candidates = choose(operation, topology, payload, &self.costs)?;
        let others = candidates.iter().skip(1).map(|c| format!("{} {:.1} us", c.algorithm, c.time_ns / 1000.0));
        let others = others.collect::<Vec<_>>().join(", ");
        let best = &candidates[0];
        let reason = match &*others {
            "" => "nothing else performs it here".to_owned(),
            others => format!("predicted {:.1} us; {others}", best.time_ns / 1000.0),
        };
        Ok((Way::Script(best.algorithm), reason))
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Script(algorithm) => write!(f, "{algorithm}"),
            Way::Mpi => f.write_str("MPI's own"),
        }
    }
}
