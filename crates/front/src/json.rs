//! One JSON object for programs that read. Keys are stable; sizes are in bytes, times in seconds.

use crate::report::{Finished, Prepared, fastest_and_slowest};
use multigrain::ranks::OfRank;
use multigrain::rooms::plan::check::CheckReport;
use multigrain::{EdgeTraffic, Machine, MemoryUse, main_memory};
use serde_json::{Map, Value, json};

/// The object as one line.
pub(crate) fn line(value: &Value) -> String {
    format!("{value}\n")
}

/// What a run was.
pub(crate) fn run(finished: &Finished<'_>) -> Value {
    let Finished { app, machine, breakdown, .. } = finished;
    let waits: Map<String, Value> = breakdown.wait_seconds.iter().map(|(n, s)| (n.clone(), json!(s))).collect();
    let mut value = json!({
        "app": app.job.app,
        "shape": shape(&app.shape),
        "seconds": finished.seconds,
        "gflops": (finished.flops > 0.0).then(|| finished.flops / finished.seconds / 1e9),
        "peak_rss_bytes": finished.peak_rss_bytes,
        "memory_budget_bytes": main_memory(machine).capacity_bytes,
        "threads": machine.workers(),
        "machine": machine.name,
        "edges": edges(finished.edges),
        "breakdown": {
            "leaf_seconds": breakdown.leaf_seconds,
            "wait_seconds": waits,
            "overhead_seconds": breakdown.overhead_seconds,
        },
        "io": finished.io,
        "resumed": finished.resumed,
    });
    if !finished.ranks.is_empty() {
        let rank = |rank: &OfRank| {
            json!({
                "node": rank.node,
                "seconds": rank.seconds,
                "leaf_seconds": rank.leaf_seconds,
                "peak_rss_bytes": rank.peak_bytes,
                "moved_bytes": rank.moved_bytes,
            })
        };
        value["ranks"] = finished.ranks.iter().map(rank).collect();
        if let Some([fastest, slowest]) = fastest_and_slowest(finished.ranks) {
            value["fastest_rank"] = fastest.into();
            value["slowest_rank"] = slowest.into();
        }
    }
    if let Some(after) = &finished.after {
        value["after"] = json!({ "seconds": after.seconds, "peak_rss_bytes": after.peak_rss_bytes });
    }
    if let Some(checked) = &finished.checked {
        value["checked"] = json!({
            // Not a number JSON has: an error that is infinite becomes null.
            "max_relative_error": checked.max_relative_error,
            "tolerance": checked.tolerance,
            "elements": checked.elements,
            "covered": checked.covered,
        });
        if let Some(uncovered) = &checked.uncovered {
            value["checked"]["uncovered"] = json!(uncovered);
        }
        if !checked.figures.is_empty() {
            let figures = checked.figures.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
            value["checked"]["figures"] = Value::Object(figures.collect());
        }
    }
    value
}

/// What a run would be.
pub(crate) fn plan(prepared: &Prepared<'_>) -> Value {
    let Prepared { app, planned, verified } = prepared;
    let plan = &planned.plan;
    let mut value = json!({
        "app": app.job.app,
        "shape": shape(&app.shape),
        "memory_budget_bytes": main_memory(&planned.machine).capacity_bytes,
        "threads": planned.machine.workers(),
        "machine": planned.machine.name,
        "edges": edges(&planned.edges),
        "memories": plan.memory_use().iter().map(memory).collect::<Vec<_>>(),
        "flops": plan.flops(),
        "predicted_seconds": plan.seconds,
        "refused": planned.refused,
    });
    if let Some(wire) = &planned.wire {
        value["wire"] = json!({
            "needed_bytes": wire.needed_bytes,
            "moved_bytes": wire.moved_bytes,
            "lower_bound_bytes": wire.lower_bound_bytes,
        });
    }
    if let Some(report) = verified {
        value["verified"] = checked_edges(report);
    }
    value
}

/// A machine: its memories from the root down, with edges and processors where they have them.
pub(crate) fn machine(machine: &Machine) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::to_value(machine)?;
    for (i, memory) in machine.memories().iter().enumerate() {
        value["memories"][i]["parent"] = json!(memory.parent.map(|id| machine.memory(id).name.as_str()));
    }
    Ok(value)
}

fn shape(sizes: &[(&'static str, u64)]) -> Value {
    sizes.iter().map(|&(name, size)| (name.to_owned(), json!(size))).collect::<Map<String, Value>>().into()
}

fn edges(edges: &[EdgeTraffic]) -> Vec<Value> {
    let edge = |e: &EdgeTraffic| {
        let mut value = json!({
            "name": e.name,
            "bytes_down": e.traffic.bytes_down,
            "bytes_up": e.traffic.bytes_up,
            "lower_bound_bytes": e.lower_bound_bytes,
            "transfers": e.traffic.transfers,
        });
        if e.traffic.bytes_across > 0 {
            value["bytes_across"] = json!(e.traffic.bytes_across);
        }
        value
    };
    edges.iter().map(edge).collect()
}

fn memory(used: &MemoryUse) -> Value {
    json!({
        "name": used.name,
        "capacity_bytes": used.capacity_bytes,
        "blocks_bytes": used.staging_bytes,
        "scratch_bytes": used.scratch_bytes,
        "fixed_bytes": used.fixed_bytes,
    })
}

fn checked_edges(report: &CheckReport) -> Value {
    let edge = |e: &multigrain::rooms::plan::check::EdgeReport| {
        json!({
            "name": format!("{} - {}", e.parent, e.child),
            "plans": e.plans,
            "calls": e.calls,
            "steps": e.ops,
            "transfers": e.transfers,
        })
    };
    report.edges.iter().map(edge).collect()
}
