//! Which source is had: the first that is not refused. Why others are not is told, with a way out.

use crate::events::Tracepoints;
use crate::perf::{Refusal, Ring, Whose};
use crate::sums::numbers;
use crate::tracepoint::Layout;
use multigrain_trace::KernelSource;
use rustix::io::Errno;
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
    /// Whose rings they are, where they are of processors.
    pub(crate) processors: Vec<u32>,
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
            return Source { kind, rings, processors, tracepoints, refused };
        }
        Err(refusal) => refused.push(told(
            "perf events of all processors",
            &refusal,
            "run it as root, give the program the capability CAP_PERFMON, or set kernel.perf_event_paranoid to 0",
        )),
    }
    let of_threads = |kind, rings, refused| {
        let (processors, tracepoints) = (Vec::new(), Tracepoints::default());
        Source { kind, rings, processors, tracepoints, refused }
    };
    match rings(threads, Whose::Thread) {
        Ok(rings) => of_threads(KernelSource::Threads, rings, refused),
        Err(refusal) => {
            refused.push(told(
                "perf events of the workers' own threads",
                &refusal,
                "set kernel.perf_event_paranoid to 2 or less, or let the container call perf_event_open",
            ));
            of_threads(KernelSource::Sums, Vec::new(), refused)
        }
    }
}

/// How many rings are had at most when so many threads of this process are observed. The source is asked for and given back.
pub(crate) fn rings_for(threads: usize) -> usize {
    let this = [rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()];
    let processors = processors(&this);
    if rings(&processors, Whose::Processor).is_ok() {
        processors.len()
    } else if rings(&this, Whose::Thread).is_ok() {
        threads
    } else {
        0
    }
}

/// What was refused, why, and a way out: `permit` where such events are not permitted.
fn told(what: &str, refusal: &Refusal, permit: &str) -> String {
    let error = &refusal.error;
    if let Some(way) = way_out(refusal) {
        return format!("{what}: refused ({error}); {way}");
    }
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    match paranoid.as_deref().map(str::trim) {
        Ok(level) => format!("{what}: refused ({error}; kernel.perf_event_paranoid is {level}); {permit}"),
        Err(_) => format!("{what}: refused ({error}; this kernel has no perf events, or hides them); {permit}"),
    }
}

/// What lets a ring be had that was refused, where the reason is not that such events are.
fn way_out(refusal: &Refusal) -> Option<&'static str> {
    match Errno::from_io_error(&refusal.error)? {
        Errno::MFILE => Some("allow it more open files (ulimit -n)"),
        Errno::NFILE => Some("allow the system more open files (fs.file-max)"),
        Errno::NOMEM => Some("leave the system more memory"),
        Errno::PERM if refusal.mapping => Some(
            "allow it more locked memory (ulimit -l), or the system (kernel.perf_event_mlock_kb), or use fewer threads",
        ),
        _ => None,
    }
}

/// Whether the numbers of threads that tracepoints tell, which are those of the system's first space of numbers, are those that
/// this program knows its own by.
fn are_the_kernels(space: Option<&Path>) -> bool {
    // The first has this number on every system. What /proc/self/status says under NSpid begins with the space in which /proc
    // was mounted, so it does not tell.
    space == Some(Path::new("pid:[4026531836]"))
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

fn rings(of: &[u32], whose: fn(u32) -> Whose) -> Result<Vec<Ring>, Refusal> {
    if of.is_empty() {
        return Err(io::Error::other("there is nothing to observe").into());
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
    if !are_the_kernels(std::fs::read_link("/proc/self/ns/pid").ok().as_deref()) {
        return Err("tracepoints (who woke whom, disk requests): they tell threads by numbers that are not those of this space of \
                    processes; run it outside of the container"
            .into());
    }
    let filter: Vec<String> = threads.iter().map(|thread| format!("pid == {thread}")).collect();
    let filter = Some(filter.join(" || ")).filter(|filter| filter.len() <= FILTER_BYTES_MAX);
    let mut add = |layout: &Layout, filter: Option<&str>| {
        let mut each = rings.iter_mut().zip(processors);
        each.try_for_each(|(ring, processor)| ring.add(layout.id, *processor, filter))
    };
    add(&waking, filter.as_deref())
        .map_err(|error| told("the tracepoint sched_waking", &error.into(), "run it as root"))?;
    let mut found = Tracepoints { waking: Some(waking), ..Tracepoints::default() };
    // A system without disks has none, and one that refuses these has told what matters already.
    let disk = layout("block/block_rq_issue", &Tracepoints::ISSUE)
        .zip(layout("block/block_rq_complete", &Tracepoints::COMPLETE))
        .filter(|(issue, complete)| add(issue, None).is_ok() && add(complete, None).is_ok());
    (found.issue, found.complete) = disk.unzip();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_question_of_permission_has_another_way_out() {
        let way = |errno: Errno, mapping| way_out(&Refusal { error: errno.into(), mapping }).unwrap_or_default();
        assert!(way(Errno::MFILE, false).contains("ulimit -n"));
        assert!(way(Errno::NFILE, false).contains("fs.file-max"));
        assert!(way(Errno::PERM, true).contains("ulimit -l"));
        assert!(way(Errno::NOMEM, true).contains("memory"));
        // Paranoia, and a filter of system calls.
        assert_eq!((way(Errno::ACCESS, false), way(Errno::PERM, false), way(Errno::NOSYS, false)), ("", "", ""));
    }

    #[test]
    fn numbers_of_another_space_are_not_the_kernels() {
        assert!(are_the_kernels(Some(Path::new("pid:[4026531836]"))));
        assert!(!are_the_kernels(Some(Path::new("pid:[4026532301]"))));
        assert!(!are_the_kernels(None));
    }
}
