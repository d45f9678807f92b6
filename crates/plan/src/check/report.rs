//! What a check looked at.

use std::fmt;

/// What a successful check looked at, for display: one entry an edge of the machine, from the root down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// The edges.
    pub edges: Vec<EdgeReport>,
}

/// What was checked of the plans of one edge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgeReport {
    /// Its number.
    pub edge: usize,
    /// Name of the parent memory.
    pub parent: String,
    /// Name of the child memories.
    pub child: String,
    /// Distinct plans.
    pub plans: u64,
    /// Calls of these plans.
    pub calls: u64,
    /// Steps of all children.
    pub ops: u64,
    /// Parts of arrays whose versions were followed: no block begins or ends inside one.
    pub cells: u64,
    /// Waits for signals of other children.
    pub waits: u64,
    /// Fetches and stores.
    pub transfers: u64,
    /// Stores of which nothing was fetched again and nothing is a result.
    pub unread_stores: u64,
    /// The largest staging memory of a child, in bytes.
    pub staging_bytes: u64,
}

impl CheckReport {
    pub(super) fn add(&mut self, edge: EdgeReport) {
        let Some(sum) = self.edges.iter_mut().find(|e| e.edge == edge.edge) else {
            let at = self.edges.partition_point(|e| e.edge < edge.edge);
            self.edges.insert(at, edge);
            return;
        };
        sum.plans += edge.plans;
        sum.calls += edge.calls;
        sum.ops += edge.ops;
        sum.cells += edge.cells;
        sum.waits += edge.waits;
        sum.transfers += edge.transfers;
        sum.unread_stores += edge.unread_stores;
        sum.staging_bytes = sum.staging_bytes.max(edge.staging_bytes);
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, e) in self.edges.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(
                f,
                "{} -> {}: {} plans, {} calls, {} steps, {} transfers, {} waits, {} cells, peak {} bytes",
                e.parent, e.child, e.plans, e.calls, e.ops, e.transfers, e.waits, e.cells, e.staging_bytes
            )?;
        }
        Ok(())
    }
}
