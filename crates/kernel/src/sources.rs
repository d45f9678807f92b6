//! Which source is had: the first that is not refused. Why others are not is told, with a way out.

use crate::events::Tracepoints;
use crate::perf::{Ring, Whose};
use crate::sums::numbers;
use crate::tracepoint::Layout;
use multigrain_trace::KernelSource;
use std::io;
use std::path::Path;

/// Where the kernel tells of its tracepoints.
const TRACEPOINTS: [&str; 2] = ["/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"];
/// The longest filter that is asked for: the kernel takes a page.
const FILTER_BYTES_MAX: usize = 3000;

/// A source that is open.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) kind: KernelSource,
    pub(crate) rings: Vec<Ring>,
    pub(crate) tracepoints: Tracepoints,
    /// What would have told more.
    pub(crate) refused: Vec<String>,
}

/// The source that tells most of what the system allows.
pub(crate) fn open(threads: &[u32]) -> Source {
    let mut refused = Vec::new();
    let processors = processors(threads);
    match rings(&processors, Whose::Processor) {
        Ok(mut rings) => {
            let tracepoints = match tracepoints(&mut rings, &processors, threads) {
                Ok(tracepoints) => tracepoints,
                Err(why) => {
                    refused.push(why);
                    Tracepoints::default()
                }
            };
            let kind = match tracepoints.waking {
                Some(_) => KernelSource::ProcessorsAndWakings,
                None => KernelSource::Processors,
            };
            return Source { kind, rings, tracepoints, refused };
        }
        Err(error) => refused.push(format!(
            "perf events of all processors: {}; run it as root, give the program the capability CAP_PERFMON, or set \
             kernel.perf_event_paranoid to 0",
            why(&error)
        )),
    }
    match rings(threads, Whose::Thread) {
        Ok(rings) => Source { kind: KernelSource::Threads, rings, tracepoints: Tracepoints::default(), refused },
        Err(error) => {
            refused.push(format!(
                "perf events of the workers' own threads: {}; set kernel.perf_event_paranoid to 2 or less, or let the container \
                 call perf_event_open",
                why(&error)
            ));
            Source { kind: KernelSource::Sums, rings: Vec::new(), tracepoints: Tracepoints::default(), refused }
        }
    }
}

fn why(error: &io::Error) -> String {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    match paranoid.as_deref().map(str::trim) {
        Ok(level) => format!("refused ({error}; kernel.perf_event_paranoid is {level})"),
        Err(_) => format!("refused ({error}; this kernel has no perf events, or hides them)"),
    }
}

/// The processors on which the threads may run.
fn processors(threads: &[u32]) -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    for thread in threads {
        let Ok(status) = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")) else { continue };
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        found.extend(list.and_then(numbers).unwrap_or_default());
    }
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").ok().and_then(|list| numbers(&list));
    found.sort_unstable();
    found.dedup();
    found.retain(|processor| online.as_ref().is_none_or(|online| online.contains(processor)));
    found
}

fn rings(of: &[u32], whose: fn(u32) -> Whose) -> io::Result<Vec<Ring>> {
    if of.is_empty() {
        return Err(io::Error::other("there is nothing to observe"));
    }
    of.iter().map(|number| Ring::open(whose(*number))).collect()
}

/// Adds tracepoints to the rings of processors: wakings of the threads, and requests to disks where there are any.
fn tracepoints(rings: &mut [Ring], processors: &[u32], threads: &[u32]) -> Result<Tracepoints, String> {
    let layout = |name: &str, fields: &[&str]| {
        let format = |root: &&str| std::fs::read_to_string(Path::new(root).join(name).join("format")).ok();
        TRACEPOINTS.iter().find_map(format).and_then(|format| Layout::read(&format, fields))
    };
    let Some(waking) = layout("sched/sched_waking", &Tracepoints::WAKING) else {
        return Err(
            "tracepoints (who woke whom, disk requests): /sys/kernel/tracing cannot be read; as root: mount -t \
                    tracefs nodev /sys/kernel/tracing"
                .into(),
        );
    };
    let filter: Vec<String> = threads.iter().map(|thread| format!("pid == {thread}")).collect();
    let filter = Some(filter.join(" || ")).filter(|filter| filter.len() <= FILTER_BYTES_MAX);
    let mut add = |layout: &Layout, filter: Option<&str>| {
        let mut each = rings.iter_mut().zip(processors);
        each.try_for_each(|(ring, processor)| ring.add(layout.id, *processor, filter))
    };
    add(&waking, filter.as_deref()).map_err(|error| format!("the tracepoint sched_waking: {}", why(&error)))?;
    let mut found = Tracepoints { waking: Some(waking), ..Tracepoints::default() };
    // A system without disks has none, and one that refuses these has told what matters already.
    let disk = layout("block/block_rq_issue", &Tracepoints::ISSUE)
        .zip(layout("block/block_rq_complete", &Tracepoints::COMPLETE))
        .filter(|(issue, complete)| add(issue, None).is_ok() && add(complete, None).is_ok());
    (found.issue, found.complete) = disk.unzip();
    Ok(found)
}
