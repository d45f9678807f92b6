//! The report for programs. Keys are stable; times are in seconds from the start of the run, sizes in bytes.

use multigrain::rooms::trace::analysis::{KernelTimes, Stall};
use multigrain::rooms::trace::{Analysis, Idleness, Trace};
use serde_json::{Map, Value, json};

pub(crate) fn report(trace: &Trace, analysis: &Analysis) -> Value {
    let breakdown = trace.breakdown();
    let waits: Map<String, Value> = breakdown.wait_seconds.iter().map(|(n, s)| (n.clone(), json!(s))).collect();
    json!({
        "program": trace.header.program,
        "machine": trace.header.machine,
        "seconds": trace.wall_seconds(),
        "threads": trace.workers(),
        "records": trace.records.len(),
        "dropped": trace.end.dropped,
        "leaves": analysis.leaves,
        "breakdown": {
            "leaf_seconds": breakdown.leaf_seconds,
            "wait_seconds": waits,
            "overhead_seconds": breakdown.overhead_seconds,
        },
        "advice": analysis.advice(trace),
        "workers": (0..analysis.workers.len()).map(|w| worker(trace, analysis, w)).collect::<Vec<_>>(),
        "kernel": trace.end.observed.by.as_ref().map(|info| json!({
            "source": info.source,
            "refused": info.refused,
            "lost": trace.end.observed.lost,
            "clock_error_seconds": trace.end.observed.clock_error_ns as f64 / 1e9,
            "workers": analysis.kernel.iter().map(|times| kernel(trace, times)).collect::<Vec<_>>(),
        })),
        "edges": analysis.edges.iter().map(|edge| json!({
            "name": edge.name,
            "busy_seconds": trace.seconds(edge.busy),
            "bytes_down": edge.bytes_down,
            "bytes_up": edge.bytes_up,
            "transfers": edge.transfers,
            "wait_seconds": trace.seconds(edge.waited),
            "overhead_seconds": trace.seconds(edge.overhead),
        })).collect::<Vec<_>>(),
        "critical_path": {
            "seconds": trace.seconds(analysis.path.ticks()),
            "steps": analysis.path.steps.len(),
            "shares": analysis.path.shares().into_iter().map(|(kind, ticks)| json!({
                "what": kind.name(&trace.header),
                "seconds": trace.seconds(ticks),
            })).collect::<Vec<_>>(),
        },
        "stalls": analysis.stalls.iter().map(|s| stall(trace, s)).collect::<Vec<_>>(),
    })
}

fn worker(trace: &Trace, analysis: &Analysis, worker: usize) -> Value {
    let times = &analysis.workers[worker];
    let by_edge = |ticks: &[u64]| -> Map<String, Value> {
        let named = trace.header.edges.iter().zip(ticks);
        named.map(|(edge, ticks)| (edge.name.clone(), json!(trace.seconds(*ticks)))).collect()
    };
    let idle = |cause: Idleness| trace.seconds(times.idle[cause as usize]);
    json!({
        "name": trace.header.worker(worker as u32),
        "leaves": times.leaves,
        "leaf_seconds": trace.seconds(times.leaf),
        "wait_seconds": by_edge(&times.wait),
        "overhead_seconds": trace.seconds(times.overhead_total()),
        "overhead_by_edge_seconds": by_edge(&times.overhead),
        "idle_seconds": {
            "signal": idle(Idleness::Signal),
            "start": idle(Idleness::Start),
            "join": idle(Idleness::Join),
            "spare": idle(Idleness::Spare),
        },
        "journal_seconds": trace.seconds(times.journal),
        "runtime_seconds": trace.seconds(times.runtime),
    })
}

fn kernel(trace: &Trace, times: &KernelTimes) -> Value {
    json!({
        "set_aside_seconds": trace.seconds(times.aside),
        "set_aside_for": times.by.iter().map(|(by, ticks)| json!({
            "who": by.map(|by| trace.other(Some(by))),
            "seconds": trace.seconds(*ticks),
        })).collect::<Vec<_>>(),
        "longest_seconds": trace.seconds(times.longest),
        "preempted": times.preempted,
        "waited": times.blocked,
        "migrations": times.migrations,
        "minor_faults": times.minor_faults,
        "major_faults": times.major_faults,
    })
}

fn stall(trace: &Trace, stall: &Stall) -> Value {
    let since = |tick: u64| trace.seconds(tick.saturating_sub(trace.start()));
    json!({
        "at_seconds": since(stall.start),
        "seconds": trace.seconds(stall.end - stall.start),
        "lost_seconds": trace.seconds(stall.lost),
        "workers": stall.workers,
        "edge": trace.header.edge(stall.edge),
        "idle": stall.idleness.map(Idleness::name),
        "set_aside": stall.aside,
        "transfer": stall.transfer.as_ref().map(|transfer| json!({
            "worker": transfer.moved.worker,
            "number": transfer.moved.number,
            "direction": transfer.moved.flow.name(),
            "block": transfer.block,
            "bytes": transfer.bytes,
            "issued_seconds": since(transfer.moved.issued),
            "started_seconds": since(transfer.moved.started),
            "completed_seconds": since(transfer.moved.ended),
        })),
        "cause": stall.explanation.cause.name(),
        "shown": stall.explanation.shown,
        "avoided_by": stall.explanation.remedy,
    })
}
