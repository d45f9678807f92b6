//! The report for people.

use multigrain::rooms::machine::{approximate_bytes, approximate_time};
use multigrain::rooms::trace::analysis::{Stall, StepKind};
use multigrain::rooms::trace::{Analysis, Idleness, Trace};
use multigrain_console::table;
use std::fmt::Write as _;

pub(crate) fn report(trace: &Trace, analysis: &Analysis) -> String {
    let header = &trace.header;
    let workers = trace.workers();
    let mut text = format!("{} on {}, {workers} workers\n", header.program, header.machine);
    let _ = writeln!(text, "{:<9}{}", "time", seconds(trace.wall_seconds()));
    let count = trace.records.len();
    let _ = writeln!(text, "{:<9}{count}, {} of them leaves", "records", analysis.leaves);
    if trace.end.dropped > 0 {
        let _ = writeln!(
            text,
            "{:<9}{} records found no room while the run went on; sums are complete, the rest may be not",
            "dropped", trace.end.dropped
        );
    }
    text += "\nwhere the time went\n";
    text += &breakdown(trace);
    if let Some(advice) = analysis.advice(trace) {
        let _ = writeln!(text, "  {advice}");
    }
    text += "\nby worker\n";
    text += &by_worker(trace, analysis);
    text += &kernel(trace, analysis);
    text += "\nby edge\n";
    text += &by_edge(trace, analysis);
    text += "\ncritical path: what the length of the run was made of\n";
    text += &path(trace, analysis);
    if !analysis.stalls.is_empty() {
        text += "\nlongest stalls\n";
        for (number, stall) in analysis.stalls.iter().enumerate() {
            text += &format!("{:>3}. ", number + 1);
            text += &told(trace, stall);
        }
    }
    text
}

fn seconds(seconds: f64) -> String {
    approximate_time(seconds * 1e9)
}

fn percent(part: f64, all: f64) -> String {
    if all > 0.0 { format!("{:.1} %", 100.0 * part / all) } else { "-".to_owned() }
}

fn breakdown(trace: &Trace) -> String {
    let breakdown = trace.breakdown();
    let all = breakdown.worker_seconds();
    let row = |name: String, part: f64| vec![name, percent(part, all), seconds(part)];
    let mut rows = vec![row("leaf work".into(), breakdown.leaf_seconds)];
    let waits = breakdown.wait_seconds.iter().filter(|(_, waited)| *waited > 0.0);
    rows.extend(waits.map(|(edge, waited)| row(format!("wait on {edge}"), *waited)));
    rows.push(row("overhead".into(), breakdown.overhead_seconds));
    table::render(&rows, 2)
}

fn by_worker(trace: &Trace, analysis: &Analysis) -> String {
    let causes = ["signal", "waking", "join", "no work"];
    debug_assert_eq!(causes.len(), Idleness::ALL.len());
    let mut title = vec!["", "leaves", "leaf work", "waiting"];
    title.extend(causes);
    title.extend(["journal", "runtime"]);
    let mut rows = vec![title.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    let wall = (trace.stop() - trace.start()) as f64;
    for (worker, times) in analysis.workers.iter().enumerate() {
        let mut row = vec![trace.header.worker(worker as u32), times.leaves.to_string()];
        let parts = [times.leaf, times.waited()].into_iter().chain(times.idle).chain([times.journal, times.runtime]);
        row.extend(parts.map(|ticks| percent(ticks as f64, wall)));
        rows.push(row);
    }
    // A column in which nothing happened tells nothing.
    let kept: Vec<usize> =
        (0..rows[0].len()).filter(|&c| c < 3 || rows[1..].iter().any(|row| row[c] != "0.0 %")).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(|row| kept.iter().map(|&c| row[c].clone()).collect()).collect();
    table::render(&rows, 2)
}

/// What the operating system did with each worker, if it was observed.
fn kernel(trace: &Trace, analysis: &Analysis) -> String {
    let Some(info) = &trace.end.observed.by else { return String::new() };
    let observed = &trace.end.observed;
    let mut text = format!("\nby the operating system ({})\n", info.source);
    let title = ["", "set aside", "times", "longest", "waited", "moved", "faults", "from disk"];
    let mut rows = vec![title.map(str::to_owned).to_vec()];
    let wall = trace.wall_seconds();
    for (worker, times) in analysis.kernel.iter().enumerate() {
        rows.push(vec![
            trace.header.worker(worker as u32),
            percent(trace.seconds(times.aside), wall),
            times.preempted.to_string(),
            if times.longest > 0 { seconds(trace.seconds(times.longest)) } else { "-".to_owned() },
            times.blocked.to_string(),
            times.migrations.to_string(),
            times.minor_faults.to_string(),
            times.major_faults.to_string(),
        ]);
    }
    text += &table::render(&rows, 2);
    for (worker, times) in analysis.kernel.iter().enumerate().filter(|(_, times)| times.aside > 0) {
        let by = times.by.iter().take(3);
        let by = by.map(|(by, ticks)| format!("{} {}", trace.other(*by), seconds(trace.seconds(*ticks))));
        let _ = writeln!(text, "  {} for {}", trace.header.worker(worker as u32), by.collect::<Vec<_>>().join(", "));
    }
    let _ = writeln!(
        text,
        "  its clock and that of the records agree to {}",
        approximate_time(observed.clock_error_ns as f64)
    );
    if observed.lost > 0 {
        let _ = writeln!(
            text,
            "  {} events found no room: workers may have been set aside longer than is told",
            observed.lost
        );
    }
    text
}

fn by_edge(trace: &Trace, analysis: &Analysis) -> String {
    let title = ["", "busy", "down", "up", "transfers", "waiting", "overhead"];
    let mut rows = vec![title.map(str::to_owned).to_vec()];
    let wall = trace.wall_seconds();
    let all = wall * trace.workers() as f64;
    for edge in &analysis.edges {
        let moved = |bytes: u64| if bytes == 0 { "-".to_owned() } else { approximate_bytes(bytes) };
        rows.push(vec![
            edge.name.clone(),
            if edge.transfers == 0 { "-".to_owned() } else { percent(trace.seconds(edge.busy), wall) },
            moved(edge.bytes_down),
            moved(edge.bytes_up),
            edge.transfers.to_string(),
            percent(trace.seconds(edge.waited), all),
            percent(trace.seconds(edge.overhead), all),
        ]);
    }
    table::render(&rows, 2)
}

fn path(trace: &Trace, analysis: &Analysis) -> String {
    let all = trace.wall_seconds();
    let row = |(kind, ticks): (StepKind, u64)| {
        let part = trace.seconds(ticks);
        let steps = analysis.path.steps.iter().filter(|step| step.kind == kind).count();
        vec![kind.name(&trace.header), percent(part, all), seconds(part), format!("{steps} steps")]
    };
    table::render(&analysis.path.shares().into_iter().map(row).collect::<Vec<_>>(), 2)
}

fn told(trace: &Trace, stall: &Stall) -> String {
    let length = trace.seconds(stall.end - stall.start);
    let at = trace.seconds(stall.start - trace.start());
    let edge = trace.header.edge(stall.edge);
    let (who, what) = (stall.who(&trace.header), stall.what());
    let explanation = &stall.explanation;
    format!(
        "{} at {}, {who} on {edge}, waiting for {what}\n     {}: {}\n     avoided by: {}\n",
        seconds(length),
        seconds(at),
        explanation.cause.name(),
        explanation.shown,
        explanation.remedy
    )
}
